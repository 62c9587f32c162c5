//! Conversion from the Python parser's syntax tree to that of the TE dialect.
//!
//! Every construct outside the dialect becomes a diagnostic. The conversion continues with the siblings of a rejected
//! node, so that one run reports all problems.

use ruff_python_ast as py;
use ruff_text_size::Ranged;
use tilewright_ir::{Diagnostic, Span};

use super::ast::{
    Argument, BinaryOp, CompareOp, Expr, ExprKind, Function, Keyword, LogicOp, Parameter, SourceFile, Stmt, StmtKind,
    Target, TargetKind, UnaryOp,
};
use crate::source::{nearest, span};

/// The greatest nesting depth of expressions and statements.
///
/// The evaluator recurses over the tree, so this bounds its stack.
const MAX_DEPTH: usize = 200;

/// Converts a module.
///
/// # Errors
/// All constructs that are not part of the dialect.
pub(super) fn source_file(module: &py::ModModule) -> Result<SourceFile, Vec<Diagnostic>> {
    let mut converter = Converter::default();
    let body = converter.block(&module.body);
    if converter.errors.is_empty() { Ok(SourceFile { body }) } else { Err(converter.errors) }
}

/// The state of a conversion. A method that returns `None` has added a diagnostic.
#[derive(Default)]
struct Converter {
    /// The problems found so far.
    errors: Vec<Diagnostic>,
    /// The number of nodes around the current one.
    depth: usize,
}

impl Converter {
    /// Reports that `what` is not part of the dialect.
    fn unsupported(&mut self, span: Span, what: &str, help: &str) {
        let message = format!("{what} is not part of the TE dialect");
        self.errors.push(Diagnostic::error("unsupported-syntax", Some(span), message).with_help(help));
    }

    /// Runs `inner` one level deeper, or reports that the nesting exceeds [`MAX_DEPTH`].
    fn nested<T>(&mut self, span: Span, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("nesting is deeper than {MAX_DEPTH} levels");
            self.errors.push(
                Diagnostic::error("too-deep", Some(span), message).with_help("name parts of it by assignments first"),
            );
            return None;
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Converts the statements of a block. Statements with an error are left out.
    fn block(&mut self, body: &[py::Stmt]) -> Vec<Stmt> {
        body.iter().filter_map(|stmt| self.stmt(stmt)).collect()
    }

    /// Converts a statement.
    fn stmt(&mut self, stmt: &py::Stmt) -> Option<Stmt> {
        let location = span(stmt.range());
        let kind = self.nested(location, |converter| converter.stmt_kind(stmt, location))?;
        Some(Stmt { kind, span: location })
    }

    /// Converts a statement without its location. Each kind of Python statement is listed, so that an update of the
    /// parser cannot add one that is accepted by accident.
    fn stmt_kind(&mut self, stmt: &py::Stmt, location: Span) -> Option<StmtKind> {
        let no_loop = "plain Python around the schedule may use `for ... in range(...)`, `if` and list comprehensions";
        if let Some(name) = crate::tvmscript::scripted::definition(stmt) {
            return Some(StmtKind::Script(name.to_owned()));
        }
        let what = match stmt {
            py::Stmt::Import(import) => {
                return Some(StmtKind::Import(import.names.iter().map(module_import).collect()));
            }
            py::Stmt::ImportFrom(import) => return self.import_from(import),
            py::Stmt::FunctionDef(def) => return self.function_def(def).map(StmtKind::Def),
            py::Stmt::Return(ret) => {
                let value = match &ret.value {
                    Some(value) => Some(self.expr(value)?),
                    None => None,
                };
                return Some(StmtKind::Return(value));
            }
            py::Stmt::Assign(assign) => {
                let targets: Vec<_> = assign.targets.iter().filter_map(|target| self.target(target)).collect();
                return Some(StmtKind::Assign { targets, value: self.expr(&assign.value)? });
            }
            py::Stmt::AnnAssign(assign) => {
                let target = self.target(&assign.target)?;
                // `x: int` without a value declares a type, which has no effect.
                let Some(value) = &assign.value else { return Some(StmtKind::Pass) };
                return Some(StmtKind::Assign { targets: vec![target], value: self.expr(value)? });
            }
            py::Stmt::AugAssign(assign) => {
                let target = self.target(&assign.target)?;
                let op = self.binary_op(assign.op, location)?;
                return Some(StmtKind::AugAssign { target, op, value: self.expr(&assign.value)? });
            }
            py::Stmt::Expr(expr) => return self.expr(&expr.value).map(StmtKind::Expr),
            py::Stmt::If(branch) => return self.branch(branch),
            py::Stmt::For(each) => {
                if !each.orelse.is_empty() || each.is_async {
                    self.unsupported(location, "`else` after a `for`, or an `async for`,", no_loop);
                }
                // `?` comes after all three, so that an error in one does not hide those in the others.
                let (target, iter) = (self.target(&each.target), self.expr(&each.iter));
                let body = self.block(&each.body);
                return Some(StmtKind::For { target: target?, iter: iter?, body });
            }
            py::Stmt::Pass(_) => return Some(StmtKind::Pass),
            py::Stmt::Break(_) => return Some(StmtKind::Break),
            py::Stmt::Continue(_) => return Some(StmtKind::Continue),
            py::Stmt::While(_) => "`while`",
            py::Stmt::ClassDef(_) => "`class`",
            py::Stmt::With(_) => "`with`",
            py::Stmt::Try(_) => "`try`",
            py::Stmt::Raise(_) => "`raise`",
            py::Stmt::Assert(_) => "`assert`",
            py::Stmt::Delete(_) => "`del`",
            py::Stmt::Match(_) => "`match`",
            py::Stmt::TypeAlias(_) => "`type`",
            py::Stmt::Global(_) | py::Stmt::Nonlocal(_) => "`global` or `nonlocal`",
            py::Stmt::IpyEscapeCommand(_) => "a notebook command",
        };
        self.unsupported(location, what, no_loop);
        None
    }

    /// Converts `from package import item as name`. Relative and `*` imports are rejected.
    fn import_from(&mut self, import: &py::StmtImportFrom) -> Option<StmtKind> {
        let location = span(import.range());
        let Some(module) = import.module.as_ref().filter(|_| import.level == 0) else {
            self.unsupported(location, "a relative import", "import from `tvm`");
            return None;
        };
        let mut names = Vec::with_capacity(import.names.len());
        for alias in &import.names {
            if alias.name.as_str() == "*" {
                self.unsupported(location, "`import *`", "name what you import");
                return None;
            }
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            names.push((bound.to_string(), format!("{module}.{}", alias.name)));
        }
        Some(StmtKind::Import(names))
    }

    /// Converts `def`. Decorators, `async` and type parameters are rejected.
    fn function_def(&mut self, def: &py::StmtFunctionDef) -> Option<Function> {
        let location = span(def.range());
        let plain = "write a plain function";
        for decorator in &def.decorator_list {
            self.decorator(decorator)?;
        }
        if def.is_async {
            self.unsupported(location, "an `async` function", plain);
        }
        if let Some(params) = &def.type_params {
            self.unsupported(span(params.range()), "a function with type parameters", plain);
        }
        let (params, var_args) = self.parameters(Some(&def.parameters))?;
        let body = self.block(&def.body);
        Some(Function { name: def.name.to_string(), params, var_args, body, span: location })
    }

    /// Reports a decorator. Returns `None` if it is a misspelling of `@T.prim_func`: the function is then one of
    /// TVMScript, whose notation would only give errors here.
    fn decorator(&mut self, decorator: &py::Decorator) -> Option<()> {
        let named = match &decorator.expression {
            py::Expr::Call(call) => &call.func,
            other => other,
        };
        let name = match named {
            py::Expr::Attribute(attribute) => attribute.attr.as_str(),
            py::Expr::Name(name) => name.id.as_str(),
            _ => "",
        };
        let location = span(decorator.range());
        if nearest(name, ["prim_func"]).is_some() {
            let message = format!("`{name}` is not a decorator that is known");
            self.errors.push(
                Diagnostic::error("unknown-decorator", Some(location), message)
                    .with_help("did you mean `@T.prim_func`? It marks a function in TVMScript"),
            );
            return None;
        }
        let help = "write a plain function; TVMScript (`@T.prim_func`) is another dialect of files";
        self.unsupported(location, "a decorator", help);
        Some(())
    }

    /// Converts positional parameters and `*args`. Keyword-only and `**` parameters are rejected.
    fn parameters(&mut self, parameters: Option<&py::Parameters>) -> Option<(Vec<Parameter>, Option<String>)> {
        let Some(parameters) = parameters else { return Some((Vec::new(), None)) };
        if !parameters.kwonlyargs.is_empty() || parameters.kwarg.is_some() {
            let location = span(parameters.range());
            self.unsupported(location, "a keyword-only or `**` parameter", "use positional parameters or `*args`");
            return None;
        }
        let mut params = Vec::new();
        for param in parameters.posonlyargs.iter().chain(&parameters.args) {
            let default = match &param.default {
                Some(default) => Some(self.expr(default)?),
                None => None,
            };
            let name = param.parameter.name.to_string();
            params.push(Parameter { name, default, span: span(param.range()) });
        }
        Some((params, parameters.vararg.as_ref().map(|param| param.name.to_string())))
    }

    /// Converts `if`. An `elif` becomes an `if` in the `else` branch, so the clauses are converted from the last to
    /// the first.
    fn branch(&mut self, branch: &py::StmtIf) -> Option<StmtKind> {
        let test = self.expr(&branch.test);
        let then_body = self.block(&branch.body);
        let mut else_body = Vec::new();
        for clause in branch.elif_else_clauses.iter().rev() {
            let body = self.block(&clause.body);
            else_body = match &clause.test {
                None => body,
                Some(test) => {
                    let kind = StmtKind::If { test: self.expr(test)?, then_body: body, else_body };
                    vec![Stmt { kind, span: span(clause.range()) }]
                }
            };
        }
        Some(StmtKind::If { test: test?, then_body, else_body })
    }

    /// Converts an assignment target: a name, or nested tuples or lists of names.
    fn target(&mut self, target: &py::Expr) -> Option<Target> {
        let location = span(target.range());
        let parts = match target {
            py::Expr::Name(name) => {
                return Some(Target { kind: TargetKind::Name(name.id.to_string()), span: location });
            }
            py::Expr::Tuple(tuple) => &tuple.elts,
            py::Expr::List(list) => &list.elts,
            _ => {
                self.unsupported(
                    location,
                    "an assignment to anything but names",
                    "assign to a name or a tuple of names",
                );
                return None;
            }
        };
        let kind = self.nested(location, |converter| {
            let targets: Vec<_> = parts.iter().filter_map(|part| converter.target(part)).collect();
            (targets.len() == parts.len()).then_some(TargetKind::Tuple(targets))
        })?;
        Some(Target { kind, span: location })
    }

    /// Converts an expression.
    fn expr(&mut self, expr: &py::Expr) -> Option<Expr> {
        let location = span(expr.range());
        let kind = self.nested(location, |converter| converter.expr_kind(expr, location))?;
        Some(Expr { kind, span: location })
    }

    /// Converts an operand.
    fn boxed(&mut self, expr: &py::Expr) -> Option<Box<Expr>> {
        self.expr(expr).map(Box::new)
    }

    /// Converts expressions in order. All of them are converted even if one has an error.
    fn exprs(&mut self, exprs: &[py::Expr]) -> Option<Vec<Expr>> {
        let all: Vec<_> = exprs.iter().map(|expr| self.expr(expr)).collect();
        all.into_iter().collect()
    }

    /// Converts the elements of a list or a tuple, where `*items` may stand.
    fn elements(&mut self, exprs: &[py::Expr]) -> Option<Vec<Expr>> {
        let convert = |expr: &py::Expr| match expr {
            py::Expr::Starred(starred) => {
                let kind = ExprKind::Starred(self.boxed(&starred.value)?);
                Some(Expr { kind, span: span(starred.range()) })
            }
            other => self.expr(other),
        };
        let all: Vec<_> = exprs.iter().map(convert).collect();
        all.into_iter().collect()
    }

    /// Converts an expression without its location. Each kind of Python expression is listed, as in
    /// [`Converter::stmt_kind`].
    fn expr_kind(&mut self, expr: &py::Expr, location: Span) -> Option<ExprKind> {
        let what = match expr {
            py::Expr::Name(name) => return Some(ExprKind::Name(name.id.to_string())),
            py::Expr::NumberLiteral(number) => return self.number(&number.value, location),
            py::Expr::StringLiteral(text) => return Some(ExprKind::Str(text.value.to_str().to_owned())),
            py::Expr::BooleanLiteral(literal) => return Some(ExprKind::Bool(literal.value)),
            py::Expr::NoneLiteral(_) => return Some(ExprKind::None),
            py::Expr::EllipsisLiteral(_) => return Some(ExprKind::Ellipsis),
            py::Expr::List(list) => return self.elements(&list.elts).map(ExprKind::List),
            py::Expr::Tuple(tuple) => return self.elements(&tuple.elts).map(ExprKind::Tuple),
            py::Expr::Dict(dict) => return self.dict(dict, location),
            py::Expr::Slice(slice) => {
                let bounds = [&slice.lower, &slice.upper, &slice.step];
                let read = bounds.map(|bound| bound.as_ref().map(|bound| self.boxed(bound)));
                // A bound that is there must be readable.
                if read.iter().any(|bound| matches!(bound, Some(None))) {
                    return None;
                }
                let [lower, upper, step] = read.map(Option::flatten);
                return Some(ExprKind::Slice(lower, upper, step));
            }
            py::Expr::Subscript(node) => {
                return Some(ExprKind::Subscript(self.boxed(&node.value)?, self.boxed(&node.slice)?));
            }
            py::Expr::Attribute(node) => {
                return Some(ExprKind::Attribute(self.boxed(&node.value)?, node.attr.to_string()));
            }
            py::Expr::Call(call) => return self.call(call, location),
            py::Expr::Lambda(lambda) => {
                let (params, var_args) = self.parameters(lambda.parameters.as_deref())?;
                let value = self.expr(&lambda.body)?;
                let body = vec![Stmt { span: value.span, kind: StmtKind::Return(Some(value)) }];
                let name = "<lambda>".to_owned();
                return Some(ExprKind::Lambda(Box::new(Function { name, params, var_args, body, span: location })));
            }
            py::Expr::BinOp(node) => {
                let op = self.binary_op(node.op, location)?;
                return Some(ExprKind::Binary(op, self.boxed(&node.left)?, self.boxed(&node.right)?));
            }
            py::Expr::UnaryOp(node) => {
                return Some(ExprKind::Unary(unary_op(node.op), self.boxed(&node.operand)?));
            }
            py::Expr::Compare(node) => {
                let rest = self.exprs(&node.comparators)?;
                let pairs = node.ops.iter().map(|op| compare_op(*op)).zip(rest).collect();
                return Some(ExprKind::Compare(self.boxed(&node.left)?, pairs));
            }
            py::Expr::BoolOp(node) => {
                let op = if node.op == py::BoolOp::And { LogicOp::And } else { LogicOp::Or };
                return Some(ExprKind::Logic(op, self.exprs(&node.values)?));
            }
            py::Expr::If(node) => {
                let test = self.boxed(&node.test)?;
                return Some(ExprKind::Conditional(test, self.boxed(&node.body)?, self.boxed(&node.orelse)?));
            }
            py::Expr::ListComp(comp) => return self.comprehension(&comp.elt, &comp.generators, location),
            py::Expr::Generator(comp) => return self.comprehension(&comp.elt, &comp.generators, location),
            py::Expr::Named(_) => "`:=`",
            py::Expr::Set(_) | py::Expr::SetComp(_) => "a set",
            py::Expr::DictComp(_) => "a dictionary comprehension",
            py::Expr::Await(_) => "`await`",
            py::Expr::Yield(_) | py::Expr::YieldFrom(_) => "`yield`",
            py::Expr::FString(_) | py::Expr::TString(_) => "a formatted string",
            py::Expr::BytesLiteral(_) => "a bytes literal",
            py::Expr::Starred(_) => "`*` here",
            py::Expr::IpyEscapeCommand(_) => "a notebook command",
        };
        self.unsupported(location, what, "use names, numbers, strings, lists, tuples, calls, lambdas and operators");
        None
    }

    /// Converts a number. Integers must fit into 64 bits, and complex numbers are rejected.
    fn number(&mut self, number: &py::Number, location: Span) -> Option<ExprKind> {
        match number {
            py::Number::Int(value) => {
                let Some(value) = value.as_i64() else {
                    let message = "the number is above 2^63 - 1";
                    self.errors.push(Diagnostic::error("number-too-large", Some(location), message));
                    return None;
                };
                Some(ExprKind::Int(value))
            }
            py::Number::Float(value) => Some(ExprKind::Float(*value)),
            py::Number::Complex { .. } => {
                self.unsupported(location, "a complex number", "elements are integers, floats or bool");
                None
            }
        }
    }

    /// Converts a dictionary display. `**` is rejected.
    fn dict(&mut self, dict: &py::ExprDict, location: Span) -> Option<ExprKind> {
        let mut items = Vec::with_capacity(dict.items.len());
        for item in &dict.items {
            let Some(key) = &item.key else {
                self.unsupported(location, "`**` in a dictionary", "write the keys out");
                return None;
            };
            items.push((self.expr(key)?, self.expr(&item.value)?));
        }
        Some(ExprKind::Dict(items))
    }

    /// Converts a call. `*` is allowed for positional arguments, `**` is rejected.
    fn call(&mut self, call: &py::ExprCall, location: Span) -> Option<ExprKind> {
        let func = self.boxed(&call.func);
        let mut args = Vec::with_capacity(call.arguments.args.len());
        for arg in &call.arguments.args {
            let (value, star) = match arg {
                py::Expr::Starred(starred) => (self.expr(&starred.value)?, true),
                _ => (self.expr(arg)?, false),
            };
            args.push(Argument { value, star });
        }
        let mut keywords = Vec::with_capacity(call.arguments.keywords.len());
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                self.unsupported(location, "`**` in a call", "write the keywords out");
                return None;
            };
            let value = self.expr(&keyword.value)?;
            keywords.push(Keyword { name: name.to_string(), value, span: span(keyword.range()) });
        }
        Some(ExprKind::Call { func: func?, args, keywords })
    }

    /// Converts a list comprehension or a generator expression. The dialect does not distinguish them.
    fn comprehension(&mut self, item: &py::Expr, generators: &[py::Comprehension], location: Span) -> Option<ExprKind> {
        let mut clauses = Vec::with_capacity(generators.len());
        for clause in generators {
            if clause.is_async {
                self.unsupported(location, "`async for`", "use a plain `for`");
                return None;
            }
            clauses.push((self.target(&clause.target)?, self.expr(&clause.iter)?, self.exprs(&clause.ifs)?));
        }
        Some(ExprKind::ListComp { item: self.boxed(item)?, clauses })
    }

    /// Converts an arithmetic or bitwise operator. `@` is rejected.
    fn binary_op(&mut self, op: py::Operator, location: Span) -> Option<BinaryOp> {
        Some(match op {
            py::Operator::Add => BinaryOp::Add,
            py::Operator::Sub => BinaryOp::Sub,
            py::Operator::Mult => BinaryOp::Mul,
            py::Operator::Div => BinaryOp::Div,
            py::Operator::FloorDiv => BinaryOp::FloorDiv,
            py::Operator::Mod => BinaryOp::Mod,
            py::Operator::Pow => BinaryOp::Pow,
            py::Operator::LShift => BinaryOp::Shl,
            py::Operator::RShift => BinaryOp::Shr,
            py::Operator::BitAnd => BinaryOp::BitAnd,
            py::Operator::BitOr => BinaryOp::BitOr,
            py::Operator::BitXor => BinaryOp::BitXor,
            py::Operator::MatMult => {
                self.unsupported(location, "`@`", "write the product as a te.compute with te.sum");
                return None;
            }
        })
    }
}

/// Returns the name that `import a.b as c` binds, and the module path that it stands for.
fn module_import(alias: &py::Alias) -> (String, String) {
    let path = alias.name.to_string();
    if let Some(name) = &alias.asname {
        return (name.to_string(), path);
    }
    // `import a.b` binds `a`.
    let root = path.split('.').next().unwrap_or_default().to_owned();
    (root.clone(), root)
}

/// Converts a unary operator.
fn unary_op(op: py::UnaryOp) -> UnaryOp {
    match op {
        py::UnaryOp::Invert => UnaryOp::Invert,
        py::UnaryOp::Not => UnaryOp::Not,
        py::UnaryOp::UAdd => UnaryOp::Plus,
        py::UnaryOp::USub => UnaryOp::Neg,
    }
}

/// Converts a comparison operator.
fn compare_op(op: py::CmpOp) -> CompareOp {
    match op {
        py::CmpOp::Eq => CompareOp::Eq,
        py::CmpOp::NotEq => CompareOp::Ne,
        py::CmpOp::Lt => CompareOp::Lt,
        py::CmpOp::LtE => CompareOp::Le,
        py::CmpOp::Gt => CompareOp::Gt,
        py::CmpOp::GtE => CompareOp::Ge,
        py::CmpOp::Is => CompareOp::Is,
        py::CmpOp::IsNot => CompareOp::IsNot,
        py::CmpOp::In => CompareOp::In,
        py::CmpOp::NotIn => CompareOp::NotIn,
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn every_unsupported_construct_is_reported_with_its_location() {
        let source = "while True: pass\nx = {1, 2}\ny = 3j\nclass C: pass\n";
        let errors = read(source).unwrap_err();
        let places: Vec<_> = errors
            .iter()
            .map(|error| &source[error.labels[0].span.start as usize..error.labels[0].span.end as usize])
            .collect();
        assert_eq!(places, ["while True: pass", "{1, 2}", "3j", "class C: pass"]);
        assert!(errors.iter().all(|error| error.help.is_some()));
    }

    #[test]
    fn nesting_beyond_the_limit_is_an_error() {
        let source = format!("x = {}1{}", "(".repeat(150), ")".repeat(150));
        assert!(read(&source).is_ok(), "parentheses leave no nodes");
        let source = format!("x = {}1", "-".repeat(250));
        assert!(read(&source).is_err());
        let source = format!("x = 1{}", " + 1".repeat(250));
        assert_eq!(read(&source).unwrap_err()[0].code, "too-deep");
    }

    #[test]
    fn a_program_keeps_names_defaults_and_star_arguments() {
        let program = read("def f(a, b=3, *rest):\n  return a[1:2](*rest, k=b)\ng = lambda *i: i\n").unwrap();
        let StmtKind::Def(f) = &program.body[0].kind else { panic!("a def") };
        assert_eq!((f.name.as_str(), f.params.len(), f.var_args.as_deref()), ("f", 2, Some("rest")));
        assert_eq!(f.params[1].default.as_ref().map(|default| &default.kind), Some(&ExprKind::Int(3)));
        let StmtKind::Return(Some(value)) = &f.body[0].kind else { panic!("a return") };
        let ExprKind::Call { args, keywords, .. } = &value.kind else { panic!("a call") };
        assert!(args[0].star && keywords[0].name == "k");
    }

    #[test]
    fn imports_bind_what_python_binds() {
        let program = read("import tvm.te\nimport numpy as np\nfrom tvm import te as t, topi\n").unwrap();
        let bound: Vec<_> = program
            .body
            .iter()
            .flat_map(|stmt| if let StmtKind::Import(names) = &stmt.kind { names.clone() } else { Vec::new() })
            .collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(bound, [pair("tvm", "tvm"), pair("np", "numpy"), pair("t", "tvm.te"), pair("topi", "tvm.topi")]);
    }

    #[test]
    fn a_python_syntax_error_has_a_location() {
        let errors = read("x = (1,").unwrap_err();
        assert_eq!(errors[0].code, "syntax");
        assert!(!errors[0].labels.is_empty());
    }
}
