//! `T.Shuffle`, which takes vectors apart and makes one of their lanes.
//!
//! | written | read as |
//! |---|---|
//! | `T.Shuffle([A[i], A[i + 4]], [0, 1])` | `T.Select(T.Ramp(0, 1, 2) == T.Broadcast(0, 2), T.Broadcast(A[i], 2), T.Broadcast(A[i + 4], 2))` |
//! | `T.Shuffle([T.Ramp(i, 1, 4)], [2])` | `i + 2` |
//! | `T.Shuffle([A[T.Ramp(i, 1, 2)]], [1, 0])` | the elements `A[i + 1]` and `A[i]`, as above |
//! | `T.Shuffle([v], [0, 1, 2, 3])` for a `v` of four lanes | `v` |
//!
//! The lanes of the operands are numbered one operand after the other. A lane of an operator is that operator of the lanes of its operands.
//! Lanes that are not chosen are left out, and so they may neither read memory nor divide: they could lie outside of a buffer.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{BinaryOp, Expr, ScalarType, SharedExpr, SharedExprs, Traps};

use super::reader::{Reader, sequence};
use crate::source::MAX_NESTING;

const HELP: &str = "write `T.Shuffle([x, y], [0, 1])`: values, and for each lane of the result its number among theirs";

impl<'a> Reader<'a> {
    /// Reads `T.Shuffle(vectors, indices)`.
    pub(super) fn shuffle(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        let args = self.bind_args(call, "Shuffle", &["vectors", "indices"], 2)?;
        let (Some(vectors), Some(indices)) = (sequence(args.get(0)?), sequence(args.get(1)?)) else {
            return self.error("shuffle", call.range(), "the operands and the lanes are lists", HELP);
        };
        let vectors = self.exprs(vectors)?;
        let mut chosen = Vec::new();
        for index in indices {
            let number = self.expr(index)?.as_const_int();
            match number.and_then(|number| usize::try_from(number).ok()).and_then(|number| numbered(&vectors, number)) {
                Some(found) => chosen.push(found),
                None => return self.error("shuffle", index.range(), "the operands have no lane of this number", HELP),
            }
        }
        if let [only] = &vectors[..]
            && chosen.len() == usize::from(only.dtype().lanes)
            && (0u16..).zip(&chosen).all(|(place, (_, lane))| *lane == place)
        {
            return Some(only.clone());
        }
        let is_whole = |vector: &Expr| {
            let of = |lane: u16| chosen.iter().any(|(other, at)| std::ptr::eq(*other, vector) && *at == lane);
            (0..vector.dtype().lanes).all(of)
        };
        if vectors.iter().any(|vector| may_trap(vector) && !is_whole(vector)) {
            let message = "the lanes that are not chosen read memory or divide, which may have no value";
            let help = "choose lanes by their indices: `A[i * 4 + 2]`, or `A[T.Ramp(i * 8, 2, 4)]`";
            return self.error("shuffle", call.range(), message, help);
        }
        let lanes: Option<Vec<Expr>> = chosen.iter().map(|(vector, at)| lane(vector, *at)).collect();
        let Some(lanes) = lanes.filter(|lanes| !lanes.is_empty()) else {
            let help = "choose lanes by their indices: `A[i * 4 + 2]`, or `A[T.Ramp(i * 8, 2, 4)]`";
            return self.error("shuffle", call.range(), "this vector is not taken apart", help);
        };
        let Some(vector) = of_lanes(&lanes) else {
            return self.error("shuffle", call.range(), "the operands have different types, or too many lanes", HELP);
        };
        Some(vector)
    }
}

/// Whether evaluating a value may have no result.
pub(super) fn may_trap(value: &Expr) -> bool {
    let mut found = false;
    value.walk(&mut |part| {
        found |= match part {
            Expr::Load { .. } | Expr::Cast(..) | Expr::Call(..) => true,
            Expr::Binary(op, ..) => op.traps() != Traps::Never,
            _ => false,
        };
    });
    found
}

/// The operand with a lane, and the number of the lane in it.
fn numbered(vectors: &[Expr], number: usize) -> Option<(&Expr, u16)> {
    let mut before = 0;
    for vector in vectors {
        let lanes = usize::from(vector.dtype().lanes);
        if number < before + lanes {
            return Some((vector, u16::try_from(number - before).ok()?));
        }
        before += lanes;
    }
    None
}

/// One lane of a value; `None` for elements that are vectors, and for the names of vectors.
fn lane(value: &Expr, at: u16) -> Option<Expr> {
    if value.dtype().is_scalar() {
        return Some(value.clone());
    }
    let shared = |value: &Expr| lane(value, at).map(SharedExpr::new);
    let all = |values: &[Expr]| values.iter().map(|value| lane(value, at)).collect::<Option<Vec<_>>>();
    Some(match value {
        Expr::Broadcast { value, .. } => Expr::clone(value),
        Expr::Ramp { base, stride, .. } => {
            let number = Expr::int_of(at.into(), base.dtype().scalar)?;
            Expr::clone(base) + number * Expr::clone(stride)
        }
        Expr::Binary(op, a, b) => Expr::Binary(*op, shared(a)?, shared(b)?),
        Expr::Unary(op, a) => Expr::Unary(*op, shared(a)?),
        Expr::Call(function, args) => Expr::Call(*function, SharedExprs::from(all(args)?)),
        Expr::Select(cond, a, b) => Expr::Select(shared(cond)?, shared(a)?, shared(b)?),
        Expr::IfThenElse(cond, a, b) => Expr::IfThenElse(shared(cond)?, shared(a)?, shared(b)?),
        Expr::Cast(ty, a) => Expr::Cast(ty.scalar.into(), shared(a)?),
        Expr::Load { buffer, indices } if buffer.dtype.is_scalar() => Expr::load(buffer, all(indices)?),
        Expr::Load { .. } | Expr::Var(_) | Expr::Int { .. } | Expr::Float { .. } => return None,
    })
}

/// The vector with these lanes, all of one type.
fn of_lanes(lanes: &[Expr]) -> Option<Expr> {
    let (last, others) = lanes.split_last()?;
    if others.is_empty() || others.iter().any(|lane| lane.dtype() != last.dtype()) {
        return others.is_empty().then(|| last.clone());
    }
    let count = u16::try_from(lanes.len()).ok().filter(|count| usize::from(*count) <= MAX_NESTING)?;
    let spread = |value: Expr| Expr::Broadcast { value: SharedExpr::new(value), lanes: count };
    let number = |value: i128| Expr::int_of(value, ScalarType::Int32);
    let (zero, one) = (SharedExpr::new(number(0)?), SharedExpr::new(number(1)?));
    let numbers = Expr::Ramp { base: zero, stride: one, lanes: count };
    let mut vector = spread(last.clone());
    for (place, lane) in (0i128..).zip(others).collect::<Vec<_>>().into_iter().rev() {
        let is_here = Expr::binary(BinaryOp::Eq, numbers.clone(), spread(number(place)?));
        vector = Expr::Select(SharedExpr::new(is_here), SharedExpr::new(spread(lane.clone())), SharedExpr::new(vector));
    }
    Some(vector)
}
