//! Arguments for a program: values that tell where they stand, outputs that hold nothing.

use tilewright_interp::{Argument, Arguments, Tensor, fill};
use tilewright_ir::{Bindings, Buffer, Expr, PrimFunc, Scalar, StmtKind, TypeClass, Var};

use tilewright_compiler::harness::inputs::Numbers;

/// The arguments of a function, with these values of its symbols. Tensors that it writes are not defined.
///
/// # Errors
/// A shape depends on something else, or is no size.
pub fn arguments(func: &PrimFunc, symbols: &Bindings, seed: u64) -> Result<Arguments, String> {
    let written = written(func);
    let mut params = Vec::with_capacity(func.params.len());
    for (param, part) in func.params.iter().zip(1u64..) {
        params.push(match func.param_buffer(param) {
            None => Argument::Scalar(scalar(param, seed.wrapping_add(part))),
            Some(buffer) => {
                let mut tensor =
                    Tensor::undefined(buffer.dtype, &extents(buffer, symbols)?).map_err(|error| error.to_string())?;
                if !written.contains(&buffer.data) {
                    fill(&mut tensor, seed.wrapping_mul(31).wrapping_add(part));
                    if has_special_floats(seed) {
                        stumble(&mut tensor, seed.wrapping_add(part));
                    }
                }
                Argument::Tensor(tensor)
            }
        });
    }
    Ok(Arguments { params, symbols: listed(symbols) })
}

/// Whether the floats of a case are to be such as arithmetic has_special_floats over.
pub fn has_special_floats(seed: u64) -> bool {
    seed % 4 == 2
}

/// Makes some floats NaN, infinite, minus zero.
fn stumble(tensor: &mut Tensor, seed: u64) {
    let (mut numbers, ty) = (Numbers::new(seed, 0), tensor.dtype().scalar);
    if !ty.is_float() {
        return;
    }
    for lane in 0..tensor.lane_count() {
        if let value @ Scalar::Float(odd) = numbers.value_or_special(ty)
            && (!odd.is_normal() || odd.abs() > 2.0)
        {
            tensor.set(lane, value);
        }
    }
}

/// The symbols as an argument of a run.
pub fn listed(symbols: &Bindings) -> Vec<(Var, i128)> {
    symbols.iter().map(|(var, value)| (var.clone(), *value)).collect()
}

/// The extents of a buffer, with these values of the symbols.
///
/// # Errors
/// One depends on something else, or is negative.
pub fn extents(buffer: &Buffer, symbols: &Bindings) -> Result<Vec<u64>, String> {
    let one = |extent: &Expr| {
        let value = extent.as_const_int().or_else(|| extent.eval_index(symbols).ok());
        value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| format!("an extent of {buffer} is no constant"))
    };
    buffer.shape.iter().map(one).collect()
}

/// The memory that a function writes.
pub fn written(func: &PrimFunc) -> Vec<Var> {
    let mut written = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !written.contains(&buffer.data)
        {
            written.push(buffer.data.clone());
        }
    });
    written
}

/// A small value of a scalar parameter.
fn scalar(param: &Var, seed: u64) -> Scalar {
    let small = i8::try_from(seed % 13).unwrap_or(0);
    match param.dtype().scalar.class() {
        TypeClass::Bool => Scalar::Int(i128::from(small & 1)),
        TypeClass::Float => Scalar::Float(f64::from(small) / 2.0 - 3.0),
        TypeClass::UInt | TypeClass::Handle => Scalar::Int(small.into()),
        TypeClass::Int => Scalar::Int(i128::from(small) - 6),
    }
}

/// Whether something that is read decides what runs, or where.
pub fn asks_memory(func: &PrimFunc) -> bool {
    let mut asks = false;
    func.body.walk(&mut |stmt| {
        asks |= match &stmt.kind {
            StmtKind::If { cond, .. } | StmtKind::Assert { cond, .. } => cond.reads_memory(),
            StmtKind::For(inner) => inner.min.reads_memory() || inner.extent.reads_memory(),
            StmtKind::Let { value, .. } => value.reads_memory(),
            StmtKind::Store { indices, .. } => indices.iter().any(Expr::reads_memory),
            _ => false,
        };
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                asks |= match part {
                    Expr::Load { indices, .. } => indices.iter().any(Expr::reads_memory),
                    Expr::IfThenElse(cond, ..) => cond.reads_memory(),
                    _ => false,
                };
            });
        }
    });
    asks
}
