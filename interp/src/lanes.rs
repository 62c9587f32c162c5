//! Computations on many values at once. What they mean is [`crate::ops`]' alone; here are the loops over it, one for each
//! operator that is common, so that the operator is known inside.

use tilewright_ir::ScalarError;

use crate::code::{Instr, Op};
use crate::ops::value;

/// Computes `out[i]` from the operands number `i`; false if one has no value where the mask is not 0.
pub(crate) fn apply(instr: &Instr, out: &mut [u64], operands: [&[u64]; 3], mask: Option<&[u64]>) -> bool {
    macro_rules! known {
        ($($op:ident)*) => {
            match instr.op {
                $(Op::$op => each(out, operands, mask, |a, b, c| value(Op::$op, instr, || a, || b, || c)),)*
                Op::Binary
                | Op::Unary
                | Op::Call
                | Op::Cast
                | Op::JumpIfZero
                | Op::Jump
                | Op::Load
                | Op::Store
                | Op::LoadStream
                | Op::StoreStream
                | Op::Assert => each(out, operands, mask, |a, b, c| value(instr.op, instr, || a, || b, || c)),
            }
        };
    }
    known!(Move Add Sub Mul Add32 Sub32 Mul32 Wrap FloorDiv FloorMod TruncDiv TruncMod Min Max Eq Ne Lt Le And Or Xor
        Shl Shr AddF32 SubF32 MulF32 DivF32 MinF32 MaxF32 EqF32 LtF32 LeF32 AddF64 SubF64 MulF64 DivF64 IntToF32 Select)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "one loop for each operator")]
fn each(
    out: &mut [u64],
    [a, b, c]: [&[u64]; 3],
    mask: Option<&[u64]>,
    of: impl Fn(u64, u64, u64) -> Result<u64, ScalarError>,
) -> bool {
    let len = out.len();
    let (a, b, c) = (&a[..len], &b[..len], &c[..len]);
    let mut good = true;
    for at in 0..len {
        match of(a[at], b[at], c[at]) {
            Ok(value) => out[at] = value,
            Err(_) => good &= mask.is_some_and(|mask| mask[at] == 0),
        }
    }
    good
}

/// Combines an element with the values, one after the other.
pub(crate) fn fold(instr: &Instr, element: u64, values: &[u64], element_first: bool) -> u64 {
    macro_rules! known {
        ($($op:ident)*) => {
            match instr.op {
                $(Op::$op => in_order(element, values, element_first, |a, b| {
                    value(Op::$op, instr, || a, || b, || 0).unwrap_or(0)
                }),)*
                _ => in_order(element, values, element_first, |a, b| {
                    value(instr.op, instr, || a, || b, || 0).unwrap_or(0)
                }),
            }
        };
    }
    known!(Add Add32 Mul32 Min Max AddF32 MulF32 MinF32 MaxF32 AddF64 MulF64)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "one loop for each operator")]
fn in_order(element: u64, values: &[u64], element_first: bool, of: impl Fn(u64, u64) -> u64) -> u64 {
    if element_first {
        values.iter().fold(element, |element, &value| of(element, value))
    } else {
        values.iter().fold(element, |element, &value| of(value, element))
    }
}
