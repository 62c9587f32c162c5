//! Arguments for a program: values that tell where they stand, outputs that hold nothing.

use tilewright_interp::{Argument, Arguments, Tensor, fill};
use tilewright_ir::{Bindings, Buffer, Expr, PrimFunc, Scalar, StmtKind, TypeClass, Var};

/// The arguments of a function whose extents are constants. Tensors that it writes are not defined.
///
/// # Errors
/// A shape is not constant or no size.
pub fn arguments(func: &PrimFunc, seed: u64) -> Result<Arguments, String> {
    let written = written(func);
    let mut params = Vec::with_capacity(func.params.len());
    for (param, part) in func.params.iter().zip(1u64..) {
        params.push(match func.param_buffer(param) {
            None => Argument::Scalar(scalar(param, seed.wrapping_add(part))),
            Some(buffer) => {
                let mut tensor =
                    Tensor::undefined(buffer.dtype, &extents(buffer)?).map_err(|error| error.to_string())?;
                if !written.contains(&buffer.data) {
                    fill(&mut tensor, seed.wrapping_mul(31).wrapping_add(part));
                }
                Argument::Tensor(tensor)
            }
        });
    }
    Ok(Arguments { params, symbols: Vec::new() })
}

/// The constant extents of a buffer.
///
/// # Errors
/// One is not constant, or negative.
pub fn extents(buffer: &Buffer) -> Result<Vec<u64>, String> {
    let one = |extent: &Expr| {
        let value = extent.as_const_int().or_else(|| extent.eval_index(&Bindings::new()).ok());
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
