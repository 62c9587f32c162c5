//! The arguments of a run: the values that they give to symbols and scalar parameters, and the check that every tensor
//! fits its buffer.
//!
//! ```text
//! f(A: Buffer((n, m + 1), "float32"), k: int32)     called with a tensor of 3 x 5 elements and 7:  n = 3, k = 7
//!                                                   m is bound by no shape, so the caller gives it as a symbol
//! ```

use tilewright_ir::{Bindings, Buffer, Diagnostic, Expr, PrimFunc, Scalar, StmtKind, Var};

use crate::config::{Argument, Arguments};
use crate::tensor::Tensor;

/// Values of the symbols and scalar parameters: the integers as bindings, and all of them as scalars.
pub(crate) struct Bound {
    pub(crate) bindings: Bindings,
    pub(crate) scalars: Vec<(Var, Scalar)>,
}

/// An error about the arguments of a run.
pub(crate) fn argument_error(message: String) -> Diagnostic {
    Diagnostic::error("argument", None, message)
}

/// Binds symbols and scalar parameters from the arguments, then checks every tensor's shape against its buffer.
pub(crate) fn bind_arguments(func: &PrimFunc, args: &Arguments) -> Result<Bound, Diagnostic> {
    let (given, expected) = (args.params.len(), func.params.len());
    if given != expected {
        return Err(argument_error(format!("`{}` takes {expected} arguments, but {given} are given", func.name)));
    }
    let mut bound = Bound { bindings: Bindings::new(), scalars: Vec::new() };
    for (var, value) in &args.symbols {
        bind_symbol(&mut bound, var, *value)?;
    }
    for (param, arg) in func.params.iter().zip(&args.params) {
        match (func.param_buffer(param), arg) {
            (Some(buffer), Argument::Tensor(tensor)) => bind_shape(&mut bound, buffer, tensor)?,
            (Some(buffer), Argument::Scalar(_)) => {
                return Err(argument_error(format!("parameter `{buffer}` takes a tensor, but a scalar is given")));
            }
            (None, Argument::Scalar(value)) => bind_scalar(&mut bound, param, *value)?,
            (None, Argument::Tensor(_)) => {
                return Err(argument_error(format!("parameter `{param}` takes a scalar, but a tensor is given")));
            }
        }
    }
    if let Some(var) = func.symbols().iter().find(|var| !bound.bindings.contains_key(var)) {
        let message = format!("no argument's shape determines `{var}`");
        return Err(argument_error(message).with_help("give its value as a symbol"));
    }
    if let Some(var) = func.attrs.extents.iter().find(|var| bound.bindings.get(*var).is_some_and(|&value| value < 1)) {
        return Err(argument_error(format!("the extent `{var}` is {}; an extent is at least 1", bound.bindings[var])));
    }
    for (param, arg) in func.params.iter().zip(&args.params) {
        if let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) {
            check_shape(&bound, buffer, tensor)?;
        }
    }
    Ok(bound)
}

/// Binds a symbol. Fails if it has another value already or the value is outside its type.
fn bind_symbol(bound: &mut Bound, var: &Var, value: i128) -> Result<(), Diagnostic> {
    match bound.bindings.get(var) {
        Some(&known) if known != value => {
            Err(argument_error(format!("`{var}` is {known} in one place, {value} in another")))
        }
        Some(_) => Ok(()),
        None => {
            let range = var.dtype().scalar.integer_range().unwrap_or((0, 0));
            if !(range.0..=range.1).contains(&value) {
                return Err(argument_error(format!("{value} is no value of `{var}`, whose type is {}", var.dtype())));
            }
            bound.bindings.insert(var.clone(), value);
            bound.scalars.push((var.clone(), Scalar::Int(value)));
            Ok(())
        }
    }
}

/// Binds a scalar parameter; a float is rounded to the parameter's type.
fn bind_scalar(bound: &mut Bound, param: &Var, value: Scalar) -> Result<(), Diagnostic> {
    let ty = param.dtype().scalar;
    match value {
        Scalar::Int(value) if !ty.is_float() => bind_symbol(bound, param, value),
        Scalar::Float(value) if ty.is_float() => {
            let value = tilewright_ir::scalar::round_float(ty, value);
            bound.scalars.push((param.clone(), Scalar::Float(value)));
            Ok(())
        }
        Scalar::Int(_) | Scalar::Float(_) => Err(argument_error(format!(
            "parameter `{param}` has the type {}, but a value of another type is given",
            param.dtype()
        ))),
    }
}

/// Checks rank and element type of a tensor, and binds the extents that are single variables.
fn bind_shape(bound: &mut Bound, buffer: &Buffer, tensor: &Tensor) -> Result<(), Diagnostic> {
    if tensor.dtype() != buffer.dtype || tensor.shape().len() != buffer.rank() {
        let (rank, ty) = (buffer.rank(), buffer.dtype);
        let (given, given_ty) = (tensor.shape().len(), tensor.dtype());
        return Err(argument_error(format!(
            "parameter `{buffer}` has {rank} axes of {ty}, but a tensor of {given} axes of {given_ty} is given"
        )));
    }
    for (expr, &extent) in buffer.shape.iter().zip(tensor.shape()) {
        if let Expr::Var(var) = expr {
            if extent == 0 {
                return Err(argument_error(format!(
                    "the extent `{var}` of `{buffer}` is 0; a symbolic extent is at least 1"
                )));
            }
            bind_symbol(bound, var, extent.into())?;
        }
    }
    Ok(())
}

/// Checks the extents of a tensor against the buffer's shape, in which all variables are bound.
fn check_shape(bound: &Bound, buffer: &Buffer, tensor: &Tensor) -> Result<(), Diagnostic> {
    for (axis, (expr, &extent)) in buffer.shape.iter().zip(tensor.shape()).enumerate() {
        let wanted = expr.eval_index(&bound.bindings).map_err(|error| argument_error(error.to_string()))?;
        if wanted != i128::from(extent) {
            return Err(argument_error(format!(
                "axis {axis} of `{buffer}` has {wanted} elements, but {extent} are given"
            )));
        }
    }
    Ok(())
}

/// The data variables of the buffers that the function writes.
pub(crate) fn stored_data_vars(func: &PrimFunc) -> Vec<Var> {
    let mut stored = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !stored.contains(&buffer.data)
        {
            stored.push(buffer.data.clone());
        }
    });
    stored
}
