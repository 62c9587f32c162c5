//! A kernel for each operator: a tensor definition, and a schedule for the arrangements of its operands.
//!
//! ```text
//! Conv, x and y in NCHW4c, w in OIHW4o:     sum[n, b, y, x, l] = sum over i, ky, kx, k of x[n, i, ..., k] * w[b, 4 * i + k, ky, kx, l]
//!                                            y[n, b, y, x, l] = sum[n, b, y, x, l] + bias[b, l]
//! ```
//!
//! `define` states what an element is, for any arrangement: it indexes operands by logical coordinates, and
//! `coords` turns them into indices of the arrangement. `schedule` decides which loops are threads. The result is lowered,
//! proved and compiled like any TE program.

mod coords;
mod define;
mod schedule;
mod softmax;

use tilewright_compiler::pipeline::Program;
use tilewright_compiler::te::build::{Builder, Tensor};
use tilewright_ir::{Diagnostic, Expr};

use crate::model::Op;
use crate::place::{Arrangement, Operand};

/// Everything that decides what a kernel is. Steps of one signature share a kernel; the scopes are part of it through the
/// arrangements (texture RFC, L1.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The operator.
    pub op: Op,
    /// The operands, in order.
    pub operands: Vec<Operand>,
    /// The result.
    pub result: Operand,
    /// The most work-items of a group.
    pub group: u64,
}

/// A kernel under construction: its operands as tensors of a builder.
struct Kernel<'a> {
    te: Builder,
    operands: Vec<(Tensor, &'a Operand)>,
    result: &'a Operand,
}

/// Makes the program of a signature: the operands are its first parameters, the result the last one.
///
/// # Errors
/// The arrangement of the result is not possible ([`unwritable`]), or a shape is too large for the language.
pub fn program(name: &str, signature: &Signature) -> Result<Program, Vec<Diagnostic>> {
    if let Some(why) = unwritable(&signature.op, &signature.operands, &signature.result) {
        return Err(vec![Diagnostic::error("network-kernel", None, format!("kernel `{name}`: {why}"))]);
    }
    let lowered = match signature.op {
        Op::Softmax { first, end } => softmax::lower(name, signature, first, end)?,
        _ => schedule::lower(name, signature)?,
    };
    Ok(Program {
        func: lowered.func,
        definition: Some((lowered.definition, lowered.evidence)),
        written: lowered.written,
        assumed: Vec::new(),
        scheduled: Vec::new(),
    })
}

/// Returns why an operator cannot write its result in an arrangement, as part of a sentence; `None` if it can.
///
/// A texel is stored whole, so its four channels have to be computed from whole texels, or from the same scalar.
pub fn unwritable(op: &Op, operands: &[Operand], result: &Operand) -> Option<String> {
    match result.arrangement {
        Arrangement::Plain => return None,
        Arrangement::Channels4 => {}
        Arrangement::Filter4 | Arrangement::Vector4 => {
            return Some("only constants are arranged as weights".to_owned());
        }
    }
    let channels = |operand: &Operand| operand.shape.get(1).copied().unwrap_or(1);
    match op {
        Op::Conv { groups, .. } => {
            let per_group = channels(result) / (*groups).max(1);
            let is_depthwise = per_group == 1 && *groups == channels(&operands[0]);
            let is_split = *groups > 1 && per_group % 4 != 0 && !is_depthwise;
            is_split.then(|| format!("{per_group} filters a group do not fill whole texels"))
        }
        Op::Concat { axis: 1 } => {
            let odd = operands.iter().rev().skip(1).find(|operand| channels(operand) % 4 != 0);
            odd.map(|odd| format!("a part of {} channels does not end with a whole texel", channels(odd)))
        }
        Op::Pad { before, after, .. } => {
            (before.get(1) != Some(&0) || after.get(1) != Some(&0)).then(|| "it pads the channels".to_owned())
        }
        Op::Lrn { .. } => Some("its sums run over the channels of several texels".to_owned()),
        Op::MaxPool(_)
        | Op::AveragePool { .. }
        | Op::GlobalAveragePool
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Sum
        | Op::Concat { .. }
        | Op::BatchNormalization { .. } => None,
        Op::Gemm { .. } | Op::MatMul => Some("products of matrices are in buffers".to_owned()),
        Op::Softmax { .. } => Some("sums over channels are in buffers".to_owned()),
        // The identity is the copy that changes the arrangement.
        Op::Reshape if operands[0].shape == result.shape => None,
        Op::Reshape | Op::Transpose { .. } => Some("its channels are not those of its operand".to_owned()),
    }
}

/// Extents as constants.
fn extents(shape: &[u64]) -> Vec<Expr> {
    shape.iter().map(|&extent| int(extent)).collect()
}

/// A size as a constant; sizes above `i64::MAX` do not occur, because the reader limits shapes.
fn int(value: u64) -> Expr {
    Expr::int(i64::try_from(value).unwrap_or(i64::MAX))
}
