//! Calls of TVMScript's functions that return a value.
//!
//! | call | value |
//! |---|---|
//! | `T.float32(x)`, `T.int8(3)` | a constant of the type if `x` is a literal, a conversion otherwise |
//! | `T.cast(x, "float32")`, `T.Cast("float32", x)`, `x.astype("float32")` | a conversion |
//! | `T.max(x, y)`, `T.truncdiv(x, y)`, `T.And(x, y)` | a binary operator of the table in [`tilewright_ir::op`] |
//! | `T.exp(x)`, `T.pow(x, y)` | a math function of that table |
//! | `T.if_then_else(c, x, y)`, `T.Select(c, x, y)` | a choice; `Select` evaluates both values |
//! | `T.Ramp(base, stride, lanes)`, `T.Broadcast(x, lanes)` | a vector |
//! | `T.Not(x)`, `T.bitwise_not(x)` | a unary operator |
//! | `T.likely(c)` | `c`; the hint is dropped |
//! | `T.texture2d_load(...)` | a texel, see the module `texture` |
//! | `T.Let`, `T.ceildiv`, `T.infinity`, `T.min_value`, `T.max_value`, `T.reinterpret` | see the module `values` |
//!
//! The printer uses the spellings with a capital letter where TVM has both, since only they name the node
//! unambiguously.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{BinaryOp, DataType, Expr, MathFn, ScalarType, SharedExpr, UnaryOp};

use super::promote::Value;
use super::reader::{Reader, string};
use crate::source::{MAX_NESTING, nearest, nearest_function};

/// Function names for "did you mean" hints, in addition to those of the operator table.
pub(super) const KNOWN: &[&str] = &[
    "min",
    "max",
    "abs",
    "cast",
    "Cast",
    "if_then_else",
    "Select",
    "ramp",
    "Ramp",
    "broadcast",
    "Broadcast",
    "likely",
    "Let",
    "ceildiv",
    "infinity",
    "min_value",
    "max_value",
    "reinterpret",
    "Not",
    "bitwise_not",
    "truncdiv",
    "truncmod",
    "floordiv",
    "floormod",
    "serial",
    "grid",
    "parallel",
    "vectorized",
    "unroll",
    "thread_binding",
    "alloc_buffer",
    "decl_buffer",
    "buffer_decl",
    "match_buffer",
    "allocate",
    "allocate_const",
    "func_attr",
    "attr",
    "evaluate",
    "tvm_storage_sync",
    "tvm_thread_allreduce",
    "texture2d_alloca",
    "texture2d_load",
    "texture2d_store",
    "Assert",
    "assume",
    "LetStmt",
    "launch_thread",
    "env_thread",
    "index_map",
    "prim_func",
    "Buffer",
];

/// Returns the binary operator that a function name denotes: its name in the operator table, or one of TVM's older
/// names.
pub(super) fn binary_named(name: &str) -> Option<BinaryOp> {
    let other = match name {
        "add" => "Add",
        "subtract" | "sub" => "Sub",
        "multiply" | "mul" => "Mul",
        "div" => "Div",
        "Mod" => "truncmod",
        "FloorDiv" => "floordiv",
        "FloorMod" => "floormod",
        "indexdiv" => "floordiv",
        "indexmod" => "floormod",
        "Min" => "min",
        "Max" => "max",
        "all" => "And",
        "any" => "Or",
        name => name,
    };
    BinaryOp::ALL.into_iter().find(|op| op.info().call == other)
}

/// Returns the math function that a name denotes: its name in the operator table, or another one that TVM has for it. TVM rounds ties to even
/// in `round` as in `nearbyint`, which `topi.round` gives in release 0.27.
pub(super) fn math_named(name: &str) -> Option<MathFn> {
    MathFn::by_name(match name {
        "fabs" => "abs",
        "nearbyint" => "round",
        name => name,
    })
}

impl<'a> Reader<'a> {
    /// Reads a call that returns a value. Names are looked up in this order: element types, binary operators, math
    /// functions, and the functions below, each of which has its own parameters.
    pub(super) fn call(&mut self, call: &'a ast::ExprCall) -> Option<Value> {
        let value = self.call_of_any_type(call)?;
        self.of_stated_type(call, value)
    }

    fn call_of_any_type(&mut self, call: &'a ast::ExprCall) -> Option<Value> {
        let range = call.range();
        let Some(name) = self.callee(&call.func).map(str::to_owned) else { return self.method(call).map(Value::from) };
        if let Ok(ty) = name.parse::<DataType>() {
            return self.typed_call(call, &name, ty).map(Value::from);
        }
        if let Some(op) = binary_named(&name) {
            return self.binary_call(call, &name, op).map(Value::from);
        }
        if let Some(function) = math_named(&name) {
            return self.math_call(call, function).map(Value::from);
        }
        let expr = match name.as_str() {
            "cast" => {
                let args = self.bind_args(call, "cast", &["value", "dtype"], 2)?;
                // Here and below, `?` comes after both arguments were read, so that errors in both are reported.
                let value = self.value(args.get(0)?);
                let ty = self.dtype(args.get(1)?)?;
                cast(value?, ty)
            }
            "Cast" => {
                let args = self.bind_args(call, "Cast", &["dtype", "value"], 2)?;
                let ty = self.dtype(args.get(0)?);
                Expr::Cast(ty?, SharedExpr::new(round_literal(self.value(args.get(1)?)?)))
            }
            "if_then_else" | "Select" => {
                let args = self.bind_args(call, &name, &["condition", "true_value", "false_value"], 3)?;
                let make = if name == "Select" { Expr::Select } else { Expr::IfThenElse };
                self.conditional(args.get(0)?, args.get(1)?, args.get(2)?, range, make)?
            }
            "ramp" | "Ramp" => {
                let args = self.bind_args(call, &name, &["base", "stride", "lanes"], 3)?;
                let (base, stride) = (self.value(args.get(0)?), self.value(args.get(1)?));
                let lanes = self.lanes(args.get(2)?);
                let (base, stride) = self.unify(base?, stride?, range)?;
                Expr::Ramp { base: SharedExpr::new(base), stride: SharedExpr::new(stride), lanes: lanes? }
            }
            "broadcast" | "Broadcast" => {
                let args = self.bind_args(call, &name, &["value", "lanes"], 2)?;
                let value = self.value(args.get(0)?);
                let lanes = self.lanes(args.get(1)?)?;
                Expr::Broadcast { value: SharedExpr::new(round_literal(value?)), lanes }
            }
            "Not" | "bitwise_not" => {
                let args = self.bind_args(call, &name, &["value"], 1)?;
                let op = if name == "Not" { UnaryOp::Not } else { UnaryOp::BitNot };
                Expr::unary(op, self.expr(args.get(0)?)?)
            }
            "texture2d_load" => self.texture_load(call)?,
            "texture2d_store" => {
                let help = "write it as a statement; a value comes from `T.texture2d_load`";
                return self.error("texture-store", range, "`texture2d_store` is a statement, not a value", help);
            }
            "call_intrin" | "call_pure_intrin"
                if self.positional_texture(call).is_some_and(|found| found.name == "texture2d_load") =>
            {
                let found = self.positional_texture(call)?;
                self.texture_load_at(found)?
            }
            "load" | "store" => {
                let help =
                    "write `A[i]`; for the memory of `p = T.allocate(...)`, `X = T.Buffer(..., data=p)` and `X[i]`";
                let message = format!("`T.{name}` accesses bare memory, which TVM gave up for buffers in release 0.9");
                return self.error("unsupported", range, message, help);
            }
            "assume" => {
                let help = "write it as a statement";
                return self.error("assumption", range, "`T.assume` is a statement, not a value", help);
            }
            "Shuffle" => self.shuffle(call)?,
            "Let" | "let" => self.let_value(call)?,
            "ceildiv" => self.ceildiv(call)?,
            "infinity" | "min_value" | "max_value" => self.limit(call, &name)?,
            "reinterpret" => self.reinterpret(call)?,
            "vectorlow" | "vectorhigh" | "vectorcombine" => {
                let help = "choose lanes by their indices: `A[i * 4 + 2]`, or `A[T.Ramp(i * 8, 2, 4)]`";
                return self.error("unsupported", range, format!("`T.{name}` takes vectors apart"), help);
            }
            "nd_mem_alloc_with_scope" => {
                let help = "state its type, `X: T.handle(\"float32\", \"global.texture\") = ...`, or allocate the texture with \
                    `T.texture2d_alloca(height=h, width=w, dtype=\"float32\")`";
                return self.error("unsupported", range, "memory of a texture has no type here", help);
            }
            // A hint for branch prediction, with the value of its argument.
            "likely" => return self.bind_args(call, "likely", &["cond"], 1)?.get(0).and_then(|cond| self.value(cond)),
            "where" | "reads" | "writes" | "sblock_attr" | "block_attr" => {
                return self.outside_of_block(&format!("T.{name}"), call.range());
            }
            _ => {
                let named = |function: &MathFn| !function.is_reinterpretation();
                let functions = MathFn::ALL.into_iter().filter(named).map(|function| function.info().0);
                let operators = BinaryOp::ALL.into_iter().map(|op| op.info().call);
                let known = KNOWN.iter().copied().chain(functions).chain(operators);
                let help = nearest_function(&name, known).map_or_else(
                    || "values come from operators, `A[i]`, `T.cast`, `T.if_then_else` and math functions".to_owned(),
                    |known| format!("did you mean `T.{known}`?"),
                );
                return self.error(
                    "unknown-function",
                    range,
                    format!("`{name}` is not a function with a value here"),
                    help,
                );
            }
        };
        Some(expr.into())
    }

    /// Reads a method call; the only one is `x.astype("float32")`.
    fn method(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        if let ast::Expr::Attribute(attribute) = &*call.func
            && attribute.attr.as_str() == "astype"
        {
            let value = self.value(&attribute.value);
            let args = self.bind_args(call, "astype", &["dtype"], 1)?;
            let ty = self.dtype(args.get(0)?)?;
            return Some(cast(value?, ty));
        }
        if self.is_failed(&call.func) {
            return None;
        }
        let is_kind = |kind: &&str| *kind == "remap" || super::blocks::axis_kind(kind).is_some();
        if let Some(kind) = self.axis_call(call).filter(is_kind) {
            return self.outside_of_block(&format!("T.axis.{kind}"), call.range());
        }
        self.error("unknown-function", call.func.range(), "this is not a function", "functions are written `T.exp(x)`")
    }

    /// Reads `T.float32(x)`: a constant if `x` is a literal, a conversion otherwise. Unlike a conversion, a constant must be
    /// a value of the type: `T.int8(300)` is an error.
    fn typed_call(&mut self, call: &'a ast::ExprCall, name: &str, ty: DataType) -> Option<Expr> {
        let args = self.bind_args(call, name, &["value"], 1)?;
        let arg = args.get(0)?;
        if let Some(text) = string(arg) {
            let special = match text.trim_start_matches('+') {
                "inf" | "infinity" => Some(f64::INFINITY),
                "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
                "nan" | "-nan" => Some(f64::NAN),
                _ => None,
            };
            let Some(value) = special.filter(|_| ty.scalar.is_float() && ty.is_scalar()) else {
                let help = "a float may be \"inf\", \"-inf\" or \"nan\"";
                return self.error(
                    "constant",
                    arg.range(),
                    format!("\"{text}\" is not a value of the type {ty}"),
                    help,
                );
            };
            return Some(Expr::Float { value, ty: ty.scalar });
        }
        // Other literals are limited to `int64`, but `T.uint64(18446744073709551615)` must be readable.
        let wide = wide_int(arg).filter(|_| ty.scalar.is_integer());
        let value = match wide {
            Some(wide) => Value { expr: Expr::Int { value: wide, ty: ScalarType::Int64 }, is_literal: true },
            None => self.value(arg)?,
        };
        if value.is_literal && ty.is_scalar() {
            let adapted = match (&value.expr, ty.scalar) {
                (Expr::Int { value, .. }, ScalarType::Bool) => Expr::int_of(*value, ScalarType::Bool),
                #[expect(clippy::cast_precision_loss, reason = "a literal is rounded to the type it is given")]
                (Expr::Int { value, .. }, scalar) if scalar.is_float() => Some(Expr::float_of(*value as f64, scalar)),
                (literal, scalar) => super::promote::literal_as(literal, scalar),
            };
            let help = "the constant has to be a value of the type; a conversion is `T.cast(x, \"...\")`";
            let message = format!("{} is not a value of the type {ty}", value.expr);
            return adapted.or_else(|| self.error("constant", arg.range(), message, help));
        }
        let same = value.expr.dtype() == ty;
        if same { Some(value.expr) } else { Some(Expr::Cast(ty, SharedExpr::new(value.expr))) }
    }

    /// Reads an operator in the form of a call. More than two operands are combined from the left, as in
    /// `T.max(a, b, c)`.
    fn binary_call(&mut self, call: &'a ast::ExprCall, name: &str, op: BinaryOp) -> Option<Expr> {
        // TVM declares these functions with different parameter names, so only positional arguments are accepted.
        let is_type = |keyword: &ast::Keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == "dtype");
        if !call.arguments.keywords.iter().all(is_type) || call.arguments.args.len() < 2 {
            let message = format!("`{name}` takes two operands, by position");
            return self.error("argument", call.range(), message, format!("write `T.{name}(x, y)`"));
        }
        if call.arguments.args.len() > MAX_NESTING {
            let message = format!("`{name}` takes at most {MAX_NESTING} operands: each is a level of the expression");
            return self.error("nesting", call.range(), message, "combine some of them in names or in a loop");
        }
        let values: Vec<_> = call.arguments.args.iter().map(|arg| self.value(arg)).collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        if let [a, b] = &*values
            && op == BinaryOp::TruncMod
            && [a, b].into_iter().any(|value| value.expr.dtype().scalar.is_float())
        {
            return self.math_call(call, MathFn::Fmod);
        }
        // Unlike `/`, TVM's node `T.Div` takes integers, and rounds to zero as C does.
        let divides_integers = op == BinaryOp::Div && values.iter().all(|value| value.expr.dtype().scalar.is_integer());
        let op = if divides_integers { BinaryOp::TruncDiv } else { op };
        let mut values = values.into_iter();
        let first = values.next()?;
        let joined = values.try_fold(first, |lhs, rhs| self.binary(op, lhs, rhs, call.range()).map(Value::from));
        joined.map(|value| value.expr)
    }

    /// Reads a call of a math function. Two arguments are converted to a common type.
    fn math_call(&mut self, call: &'a ast::ExprCall, function: MathFn) -> Option<Expr> {
        let (name, arity) = function.info();
        let params: &[&str] = if arity == 2 { &["x1", "x2"] } else { &["x"] };
        let args = self.bind_args(call, name, params, arity)?;
        let values: Vec<_> = (0..arity).map(|position| args.get(position).and_then(|arg| self.value(arg))).collect();
        let mut values = values.into_iter().collect::<Option<Vec<_>>>()?;
        let exprs = if arity == 2 {
            let (second, first) = (values.pop()?, values.pop()?);
            let (first, second) = self.unify(first, second, call.range())?;
            vec![first, second]
        } else {
            values.into_iter().map(round_literal).collect()
        };
        let types: Vec<_> = exprs.iter().map(Expr::dtype).collect();
        if function.result_type(&types).is_none() {
            let message = format!("`{name}` is not defined for the type {}", types[0]);
            let other = if types[0].scalar.is_float() { "int32" } else { "float32" };
            return self.error(
                "type",
                call.range(),
                message,
                format!("convert the argument: `T.cast(x, \"{other}\")`"),
            );
        }
        Some(Expr::Call(function, exprs.into()))
    }

    /// Reads a number of lanes, a constant from 2 to 65535.
    fn lanes(&mut self, expr: &'a ast::Expr) -> Option<u16> {
        let lanes = self.expr(expr)?.as_const_int().and_then(|lanes| u16::try_from(lanes).ok());
        match lanes.filter(|lanes| *lanes > 1) {
            Some(lanes) => Some(lanes),
            None => self.error("lanes", expr.range(), "the number of lanes is a constant of 2 to 65535", "such as 4"),
        }
    }

    /// Reads an element type: `"float32x4"` or `T.float32`.
    pub(super) fn dtype(&mut self, expr: &'a ast::Expr) -> Option<DataType> {
        let text = string(expr).or_else(|| self.callee(expr));
        match text.map(str::parse::<DataType>) {
            Some(Ok(ty)) => Some(ty),
            Some(Err(error)) => {
                let names = ScalarType::ELEMENTS.map(ScalarType::name);
                let near = text.and_then(|text| nearest(text, names));
                let help = near.map_or(
                    "types are bool, int8 to int64, uint8 to uint64, float16, float32, float64, \
                    bfloat16, with lanes as in float32x4"
                        .to_owned(),
                    |near| format!("did you mean \"{near}\"?"),
                );
                self.error("unknown-type", expr.range(), error.to_string(), help)
            }
            None => self.error("unknown-type", expr.range(), "expected an element type", "such as \"float32\""),
        }
    }
}

/// Returns the expression of a value that keeps its own type. A float literal is rounded to that type.
pub(super) fn round_literal(value: Value) -> Expr {
    match value.expr {
        Expr::Float { value, ty } => Expr::float_of(value, ty),
        other => other,
    }
}

/// Returns the value converted to `ty`. A literal becomes a constant of that type if it can, and a value of that type
/// is unchanged.
fn cast(value: Value, ty: DataType) -> Expr {
    let adapted =
        if value.is_literal && ty.is_scalar() { super::promote::literal_as(&value.expr, ty.scalar) } else { None };
    match adapted {
        Some(constant) => constant,
        None if value.expr.dtype() == ty => round_literal(value),
        None => Expr::Cast(ty, SharedExpr::new(round_literal(value))),
    }
}

/// Returns the value of an integer literal with its sign. Unlike other literals it may exceed `int64`, for
/// `T.uint64(...)`.
fn wide_int(expr: &ast::Expr) -> Option<i128> {
    match expr {
        ast::Expr::NumberLiteral(number) => match &number.value {
            ast::Number::Int(int) => int.as_u64().map(i128::from),
            _ => None,
        },
        ast::Expr::UnaryOp(op)
            if op.op == ast::UnaryOp::USub && matches!(&*op.operand, ast::Expr::NumberLiteral(_)) =>
        {
            wide_int(&op.operand).map(|value| -value)
        }
        _ => None,
    }
}
