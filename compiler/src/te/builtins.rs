//! Functions of `tvm.te`: tensors, axes, reductions; and where every other function is found.

use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Expr, ScalarType, Span};

use super::args::{Arg, Args};
use super::arith;
use super::eval::Interp;
use super::value::{
    AxisValue, Closure, Eval, Reduction, Tensor, TensorKind, Value, to_dtype, to_expr, to_index, to_items, to_shape,
    to_str, wrong_kind,
};

/// The functions of `tvm.te` that are no functions on scalars.
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
            None if matches!(local, "lower" | "build") => self.lower_call(args),
            _ => Err(unsupported_path(path, span)),
        }
    }

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
            _ => self.reduction(ir::ReduceOp::Min, args),
        }
    }

    fn add_tensor(&mut self, buffer: &ir::Buffer, kind: TensorKind, named: bool, span: Span) -> Value<'a> {
        let buffer = buffer.with(|info| info.span = Some(span));
        self.tensors.push(Tensor { buffer, kind, named, span });
        Value::Tensor(self.tensors.len() - 1)
    }

    fn placeholder(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (shape, shape_span) = args.need("shape")?;
        let dtype = args.take("dtype")?.filter(|(value, _)| !matches!(value, Value::None));
        let dtype = dtype.map_or(Ok(ScalarType::Float32.into()), |(value, span)| to_dtype(&value, span))?;
        let name = name_of(&mut args, "placeholder")?;
        let span = args.span;
        args.finish()?;
        let shape = to_shape(&shape, shape_span)?;
        let buffer = ir::Buffer::compact(name.0, dtype, shape);
        Ok(self.add_tensor(&buffer, TensorKind::Input, name.1, span))
    }

    fn symbol(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (name, _) = name_of(&mut args, "v")?;
        let dtype = args.take("dtype")?.map(|(value, span)| Ok((to_dtype(&value, span)?, span))).transpose()?;
        args.finish()?;
        if let Some((ty, span)) = dtype
            && !(ty.scalar.is_integer() && ty.is_scalar())
        {
            return Err(Diagnostic::error("dtype", Some(span), format!("an extent is an integer, not {ty}")));
        }
        let var = ir::Var::new(name, dtype.map_or(ir::DataType::INT32, |(ty, _)| ty));
        self.symbols.push(var.clone());
        Ok(Value::Expr(Expr::from(var)))
    }

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
        let body = self.stage_body(&value, &axes, closure.function.span)?;
        let (ir::StageBody::Elementwise(expr) | ir::StageBody::Reduce { source: expr, .. }) = &body;
        let buffer = ir::Buffer::compact(name.0, expr.dtype(), shape);
        Ok(self.add_tensor(&buffer, TensorKind::Computed { axes, body }, name.1, span))
    }

    /// The body of a tensor, with nothing in it but its axes and symbolic extents.
    fn stage_body(&self, value: &Value<'a>, axes: &[ir::Axis], span: Span) -> Eval<ir::StageBody> {
        let (body, reduced) = match value {
            Value::Reduction(reduction) => {
                let Reduction { op, axes, source } = &**reduction;
                let body = ir::StageBody::Reduce { op: *op, axes: axes.clone(), source: source.clone() };
                (body, axes.clone())
            }
            Value::List(_) | Value::Tuple(_) => {
                let message = "a te.compute with several results is not supported";
                return Err(Diagnostic::error("several-results", Some(span), message)
                    .with_help("write one te.compute for each tensor"));
            }
            _ => (ir::StageBody::Elementwise(to_expr(value, span)?), Vec::new()),
        };
        let (ir::StageBody::Elementwise(expr) | ir::StageBody::Reduce { source: expr, .. }) = &body;
        ir::check::type_of(expr).map_err(|mut error| {
            error.labels = vec![ir::Label { span, message: String::new() }];
            error
        })?;
        let known =
            |var: &ir::Var| axes.iter().chain(&reduced).any(|axis| axis.var == *var) || self.symbols.contains(var);
        if let Some(stray) = expr.vars().into_iter().find(|var| !known(var)) {
            let message = format!("the axis `{stray}` is neither an index of this tensor nor reduced over");
            return Err(Diagnostic::error("stray-axis", Some(span), message)
                .with_help(format!("reduce over it: te.sum(..., axis={stray})")));
        }
        Ok(body)
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
                Value::Axis(axis) if axis.reduce => axes.push(ir::Axis { var: axis.var, extent: axis.extent }),
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
        if axes.is_empty() {
            return Err(Diagnostic::error("reduction", Some(axis_span), "a reduction needs at least one axis"));
        }
        let twice = axes.iter().enumerate().find(|(at, axis)| axes[..*at].iter().any(|other| other.var == axis.var));
        if let Some((_, axis)) = twice {
            let message = format!("the axis `{}` is reduced twice", axis.var);
            return Err(Diagnostic::error("reduction", Some(axis_span), message));
        }
        let source = to_expr(&source, source_span)?;
        let ty = source.dtype();
        if !ty.is_scalar() || op.combine().result_type(ty, ty).is_none() {
            let message = format!("elements of type {ty} cannot be reduced so");
            return Err(Diagnostic::error("type", Some(source_span), message));
        }
        Ok(Value::Reduction(Rc::new(Reduction { op, axes, source })))
    }

    /// Reads an element: `A[i, j]` and `A(i, j)`.
    pub(super) fn load(&mut self, tensor: usize, indices: &[Arg<'a>], span: Span) -> Eval<Value<'a>> {
        let entry = &mut self.tensors[tensor];
        if let TensorKind::Cache { .. } = entry.kind {
            let message = "a cache of a schedule cannot be read by a definition";
            return Err(Diagnostic::error("cache-read", Some(span), message).with_help("read the tensor itself"));
        }
        let rank = entry.buffer.rank();
        if indices.len() != rank {
            let message = format!("`{}` has {rank} axes, but {} indices are given", entry.buffer, indices.len());
            return Err(Diagnostic::error("rank", Some(span), message).with_label(entry.span, "defined here"));
        }
        entry.named = true;
        let buffer = entry.buffer.clone();
        let indices = indices.iter().map(|(index, span)| to_index(index, *span)).collect::<Eval<Vec<_>>>()?;
        self.symbolic(Expr::load(&buffer, indices), span)
    }
}

pub(super) fn missing(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("argument", Some(span), format!("`{name}` needs an argument"))
}

/// A function or a module that is not known.
pub(super) fn unsupported_path(path: &str, span: Span) -> Diagnostic {
    let root = path.split('.').next().unwrap_or_default();
    if root == "numpy" {
        let message = format!("`{path}`: numpy is not part of the TE dialect");
        return Diagnostic::error("numpy", Some(span), message)
            .with_help("arguments are made by the tool itself; leave the code that runs the program out");
    }
    let local = path.strip_prefix("tvm.").unwrap_or(path);
    let known = known_paths();
    let near = tilewright_script::nearest(local, known.iter().map(String::as_str));
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
    let scalar = ir::MathFn::ALL.iter().map(|function| format!("te.{}", function.info().0));
    let others =
        ["te.if_then_else", "te.all", "te.any", "tir.if_then_else", "tir.const", "lower", "build", "target.Target"];
    of_te.chain(scalar).chain(others.map(str::to_owned)).collect()
}

/// The name given, and whether one was.
fn name_of(args: &mut Args<'_>, default: &str) -> Eval<(String, bool)> {
    match args.take("name")? {
        Some((value, span)) => {
            let name = to_str(&value, span)?;
            check_name(&name, span)?;
            Ok((name.replace('.', "_"), true))
        }
        None => Ok((default.to_owned(), false)),
    }
}

/// Names of buffers and functions are printed as identifiers; TVM's dots are allowed.
fn check_name(name: &str, span: Span) -> Eval<()> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if !name.is_empty() && name.chars().all(letter) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Ok(());
    }
    Err(Diagnostic::error("name", Some(span), format!("`{name}` is no name"))
        .with_help("names are letters, digits and underscores, not starting with a digit"))
}

/// The name of a function, as it is printed.
pub(super) fn function_name(name: &str, span: Span) -> Eval<String> {
    check_name(name, span)?;
    let name = name.replace('.', "_");
    if tilewright_script::is_name(&name) {
        return Ok(name);
    }
    Err(Diagnostic::error("name", Some(span), format!("`{name}` is a word of Python's, and names no function"))
        .with_help("call it something else: what is lowered is printed as TVMScript"))
}

/// Names of the indices that a function of `rank` indices takes: its parameters, `*i` giving `i0`, `i1` and so on.
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
    let (min, end) = arith::match_types(to_index(begin, span)?, to_index(end, span)?, span)?;
    let extent = match (min.as_const_int(), end.as_const_int()) {
        (Some(0), _) => end,
        (Some(low), Some(high)) => Expr::int_of(high - low, end.dtype().scalar)
            .ok_or_else(|| Diagnostic::error("extent", Some(span), "the range is too large"))?,
        _ => end - min.clone(),
    };
    super::value::check_extent(&extent, span)?;
    let var = ir::Var::new(name, extent.dtype());
    Ok(Value::Axis(AxisValue { var, min, extent, reduce: true }))
}

/// `te.thread_axis("blockIdx.x")`, `te.thread_axis((0, 32), "threadIdx.x")`.
fn thread_axis(mut args: Args<'_>) -> Eval<Value<'_>> {
    let first = args.take("dom")?;
    let second = args.take("tag")?.or(args.keyword("thread_tag"));
    args.take("name")?;
    let span = args.span;
    args.finish()?;
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
