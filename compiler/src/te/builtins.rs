//! Functions of `tvm.te`: tensors, axes, reductions; and where every other function is found.

use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Expr, PrimFunc, ScalarType, Span};
use tilewright_script::Scripted;

use super::args::{Arg, Args};
use super::arith;
use super::blocks::is_schedule_class;
use super::build::{self, Tensor, check_reduce_axes, tensor_name};
use super::eval::Interp;
use super::value::{
    AxisValue, Closure, Eval, Placed, Value, to_dtype, to_expr, to_index, to_items, to_shape, to_str, wrong_kind,
};

/// The functions of `tvm.te`, except the functions on scalars.
const TE: [&str; 11] = [
    "placeholder",
    "compute",
    "var",
    "size_var",
    "reduce_axis",
    "thread_axis",
    "create_schedule",
    "sum",
    "prod",
    "max",
    "min",
];

impl<'a> Interp<'a> {
    /// Calls the function at a dotted path.
    pub(super) fn builtin(&mut self, path: &str, args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let local = path.strip_prefix("tvm.").unwrap_or(path);
        if is_schedule_class(local) {
            return self.block_schedule(args);
        }
        match local.split_once('.') {
            Some(("builtins", name)) => self.python(name, args),
            Some(("te", name)) if TE.contains(&name) => self.te(name, args),
            Some(("te" | "tir", name)) => self.scalar_function(name, path, args),
            Some(("driver", "lower" | "build")) => self.lower_call(args),
            Some(("target", "Target" | "create")) => {
                self.target(args);
                Ok(Value::Opaque("a target"))
            }
            Some(("topi", _)) => {
                let message = format!("`{path}`: the operator library topi is not part of the TE dialect");
                Err(Diagnostic::error("topi", Some(span), message).with_help("write the operator as a te.compute"))
            }
            None if matches!(local, "lower" | "build" | "compile") => self.lower_call(args),
            None if local == "IRModule" => module(args),
            Some(("IRModule", "from_expr")) => module(args),
            _ => Err(unsupported_path(path, span)),
        }
    }

    /// Calls a function of `tvm.te`.
    fn te(&mut self, name: &str, args: Args<'a>) -> Eval<Value<'a>> {
        match name {
            "placeholder" => self.placeholder(args),
            "compute" => self.compute(args),
            "var" | "size_var" => self.symbol(args),
            "reduce_axis" => reduce_axis(args),
            "thread_axis" => thread_axis(args),
            "create_schedule" => self.create_schedule(args),
            "sum" => self.reduction(ir::ReduceOp::Sum, args),
            "prod" => self.reduction(ir::ReduceOp::Prod, args),
            "max" => self.reduction(ir::ReduceOp::Max, args),
            "min" => self.reduction(ir::ReduceOp::Min, args),
            _ => Err(unsupported_path(&format!("te.{name}"), args.span)),
        }
    }

    /// Returns the value of a new tensor. Unless it was `named`, it takes the name of the variable that it is assigned to.
    fn new_tensor(&mut self, tensor: Tensor, named: bool) -> Value<'a> {
        if named {
            self.named.insert(tensor.index);
        }
        Value::Tensor(tensor)
    }

    /// `te.placeholder(shape, dtype, name)`.
    fn placeholder(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (shape, shape_span) = args.need("shape")?;
        let dtype = args.take("dtype")?.filter(|(value, _)| !matches!(value, Value::None));
        let dtype = dtype.map_or(Ok(ScalarType::Float32.into()), |(value, span)| to_dtype(&value, span))?;
        let name = name_of(&mut args, "placeholder")?;
        let span = args.span;
        args.finish()?;
        let shape = to_shape(&shape, shape_span)?;
        self.te.set_place(Some(span));
        let tensor = self.te.placeholder(&name.0, &shape, dtype).at(span)?;
        Ok(self.new_tensor(tensor, name.1))
    }

    /// `te.var(name, dtype)`.
    fn symbol(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (name, _) = name_of(&mut args, "v")?;
        let dtype = args.take("dtype")?.map(|(value, span)| Ok((to_dtype(&value, span)?, span))).transpose()?;
        let span = args.span;
        args.finish()?;
        let (ty, span) = dtype.unwrap_or((ir::DataType::INT32, span));
        let var = self.te.symbol(&name, ty).at(span)?;
        Ok(Value::Expr(Expr::from(var)))
    }

    /// `te.compute(shape, fcompute, name)`. Calls the function with the axes of the tensor, named after its parameters.
    fn compute(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (shape, shape_span) = args.need("shape")?;
        let (function, function_span) = args.need("fcompute")?;
        let name = name_of(&mut args, "compute")?;
        for ignored in ["tag", "attrs"] {
            args.take(ignored)?;
        }
        let span = args.span;
        args.finish()?;
        let shape = to_shape(&shape, shape_span)?;
        let Value::Closure(closure) = function else {
            let help = "write the value of an element, such as `lambda i, j: A[i, j] + 1`";
            return Err(wrong_kind(function_span, "a function of the indices", &function).with_help(help));
        };
        let axes: Vec<_> = index_names(&closure, shape.len(), function_span)?
            .into_iter()
            .zip(&shape)
            .map(|(name, extent)| ir::Axis { var: ir::Var::new(name, extent.dtype()), extent: extent.clone() })
            .collect();
        let values = axes.iter().map(|axis| Value::Expr(Expr::from(&axis.var))).collect();
        let value = self.apply(&closure, values, span)?;
        let body = stage_body(&value, closure.function.span)?;
        // The function may define tensors of its own, at other places.
        self.te.set_place(Some(span));
        let tensor = self.te.define(&name.0, axes, body).at(closure.function.span)?;
        Ok(self.new_tensor(tensor, name.1))
    }

    /// `te.sum(source, axis=...)`; `te.max(a, b)` is the greater of two values.
    fn reduction(&mut self, op: ir::ReduceOp, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (source, source_span) = args.need("expr")?;
        // `te.max(a, b)` without a keyword takes two values.
        let two_values = matches!(op, ir::ReduceOp::Max | ir::ReduceOp::Min) && !args.positional.is_empty();
        let (axis, axis_span) = args.need("axis")?;
        let span = args.span;
        args.finish()?;
        let mut axes = Vec::new();
        for item in to_items(&axis) {
            match item {
                Value::Axis(axis) if axis.reduce => axes.push(axis.range.axis),
                _ if two_values && axis.items().is_none() => {
                    let result = arith::apply_values(op.combine(), &source, &axis, span)?;
                    return self.symbolic(result, span);
                }
                other => {
                    return Err(wrong_kind(axis_span, "reduction axes", &other)
                        .with_help("make them by te.reduce_axis((0, extent), name=...)"));
                }
            }
        }
        check_reduce_axes(&axes).at(axis_span)?;
        let source = to_expr(&source, source_span)?;
        Ok(Value::Reduction(Rc::new(build::reduce(op, source, &axes).at(source_span)?)))
    }

    /// Reads an element: `A[i, j]` and `A(i, j)`.
    pub(super) fn load(&mut self, tensor: Tensor, indices: &[Arg<'a>], span: Span) -> Eval<Value<'a>> {
        self.te.check_load(tensor, indices.len()).at(span)?;
        // The expression holds the buffer under the name that it has now.
        self.named.insert(tensor.index);
        let indices = indices.iter().map(|(index, span)| to_index(index, *span)).collect::<Eval<Vec<_>>>()?;
        let element = self.te.load(tensor, &indices).at(span)?;
        self.symbolic(element, span)
    }
}

/// The body of a tensor, from the value of its function.
fn stage_body(value: &Value<'_>, span: Span) -> Eval<ir::StageBody> {
    match value {
        Value::Reduction(reduction) => Ok((**reduction).clone()),
        Value::List(_) | Value::Tuple(_) => {
            let message = "a te.compute with several results is not supported";
            Err(Diagnostic::error("several-results", Some(span), message)
                .with_help("write one te.compute for each tensor"))
        }
        _ => Ok(ir::StageBody::Elementwise(to_expr(value, span)?)),
    }
}

/// The error of a call without a required argument.
pub(super) fn missing(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("argument", Some(span), format!("`{name}` needs an argument"))
}

/// The error for an unknown function or module.
pub(super) fn unsupported_path(path: &str, span: Span) -> Diagnostic {
    let root = path.split('.').next().unwrap_or_default();
    if root == "numpy" {
        let message = format!("`{path}`: numpy is not part of the TE dialect");
        return Diagnostic::error("numpy", Some(span), message)
            .with_help("arguments are made by the tool itself; leave the code that runs the program out");
    }
    let local = path.strip_prefix("tvm.").unwrap_or(path);
    let known = known_paths();
    let near = tilewright_script::nearest_function(local, known.iter().map(String::as_str));
    let fault = Diagnostic::error("unsupported", Some(span), format!("`{path}` is not supported"));
    if let Some(near) = near {
        return fault.with_help(format!("did you mean `{near}`?"));
    }
    fault
        .with_help("te.placeholder, te.compute, te.reduce_axis, te.sum/max/min, te.create_schedule, tvm.lower and the scalar functions of te and tvm.tir are known")
}

/// The functions of the dialect, by the paths that programs write.
fn known_paths() -> Vec<String> {
    let of_te = TE.iter().map(|name| format!("te.{name}"));
    let scalar = ir::MathFn::ALL
        .iter()
        .filter(|function| !function.is_reinterpretation())
        .map(|function| format!("te.{}", function.info().0));
    let others =
        ["te.if_then_else", "te.all", "te.any", "tir.if_then_else", "tir.const", "lower", "build", "target.Target"];
    of_te.chain(scalar).chain(others.map(str::to_owned)).collect()
}

/// Takes the argument `name`. Returns it, or `default`, and whether it was given.
fn name_of(args: &mut Args<'_>, default: &str) -> Eval<(String, bool)> {
    match args.take("name")? {
        Some((value, span)) => {
            let name = to_str(&value, span)?;
            Ok((tensor_name(&name).at(span)?, true))
        }
        None => Ok((default.to_owned(), false)),
    }
}

/// Returns names for the `rank` indices that a function takes: those of its parameters; `*i` stands for `i0`, `i1` and so
/// on.
pub(super) fn index_names(closure: &Closure<'_>, rank: usize, span: Span) -> Eval<Vec<String>> {
    let function = closure.function;
    let mut names: Vec<_> = function.params.iter().map(|param| param.name.clone()).take(rank).collect();
    let defaulted = closure.defaults.iter().skip(rank).all(Option::is_some);
    match &function.var_args {
        Some(rest) => {
            let extra = rank.saturating_sub(names.len());
            names.extend((0..extra).map(|position| format!("{rest}{position}")));
        }
        None if names.len() < rank || !defaulted => {
            let message = format!("the function takes {} indices, but there are {rank} axes", function.params.len());
            return Err(Diagnostic::error("rank", Some(span), message)
                .with_label(function.span, "the function")
                .with_help("name one parameter for each axis, or take `*indices`"));
        }
        None => {}
    }
    Ok(names)
}

/// `te.reduce_axis((begin, end), name=...)`.
fn reduce_axis(mut args: Args<'_>) -> Eval<Value<'_>> {
    let (dom, span) = args.need("dom")?;
    let (name, _) = name_of(&mut args, "rv")?;
    args.finish()?;
    let bounds = dom.items().unwrap_or_default();
    let [begin, end] = bounds.as_slice() else {
        return Err(wrong_kind(span, "a range such as (0, k)", &dom));
    };
    let range = build::reduce_axis(&name, &to_index(begin, span)?, &to_index(end, span)?).at(span)?;
    Ok(Value::Axis(AxisValue { range, reduce: true }))
}

/// `te.thread_axis("blockIdx.x")`, `te.thread_axis((0, 32), "threadIdx.x")`.
fn thread_axis(mut args: Args<'_>) -> Eval<Value<'_>> {
    let first = args.take("dom")?;
    let second = args.take("tag")?.or(args.keyword("thread_tag"));
    // TVM's name of the variable; the loop that is bound has a name of its own.
    args.take("name")?;
    let span = args.span;
    args.finish()?;
    // As in TVM, a single argument is the tag, although the first parameter is `dom`.
    let (dom, tag) = match (first, second) {
        (Some((Value::None, _)), tag) => (None, tag),
        (Some(first), None) => (None, Some(first)),
        (dom, tag) => (dom, tag),
    };
    let (tag, tag_span) = tag.ok_or_else(|| missing("te.thread_axis", span))?;
    let text = to_str(&tag, tag_span)?;
    let tag = text.parse::<ir::ThreadTag>().map_err(|error| {
        let help = "virtual threads are not supported; unroll or split the loop instead";
        Diagnostic::error("thread-axis", Some(tag_span), error.to_string()).with_help(help)
    })?;
    let extent = match dom {
        None => None,
        Some((value, span)) => {
            let extent = value.items().map_or(Some(value.clone()), |items| items.get(1).cloned());
            Some(to_index(&extent.ok_or_else(|| wrong_kind(span, "a range such as (0, 32)", &value))?, span)?)
        }
    };
    Ok(Value::Thread { tag, extent })
}

/// A module of one function, which has the name that the module gives it.
fn named<'a>(name: &Value<'a>, scripted: &Scripted, span: Span) -> Eval<Value<'a>> {
    let [func] = &scripted.funcs[..] else { return Ok(Value::Script(Rc::new(scripted.clone()))) };
    let Value::Str(name) = name else { return Err(wrong_kind(span, "the name of a function", name)) };
    let func = PrimFunc { name: name.to_string(), ..func.clone() };
    Ok(Value::Script(Rc::new(Scripted { funcs: vec![func], ..scripted.clone() })))
}

/// `tvm.IRModule({"main": func})` and `tvm.IRModule.from_expr(func)`.
fn module(mut args: Args<'_>) -> Eval<Value<'_>> {
    let (value, span) = args.need("functions")?;
    args.finish()?;
    match &value {
        Value::Script(_) => Ok(value),
        Value::Dict(pairs) if let [(name, Value::Script(scripted))] = &pairs[..] => named(name, scripted, span),
        _ => Err(wrong_kind(span, "a function in TVMScript", &value)),
    }
}
