//! Reductions that are spread over several stores to one element.
//!
//! ```text
//! for k: C[i] = C[i] + A[i, k]               C[i] = sum over k of A[i, k] + (B[i, k] if k < 5 else 0)
//!        if k < 5: C[i] = C[i] + B[i, k]
//! ```
//!
//! The store behind the others is the reduction: what it reads is followed back through stores that combine in the same way, until
//! its own value of an earlier iteration is reached. These stores are *links*. A sum of floats is rounded after each store, so that each
//! link is an iteration of its own, of one more reduced axis:
//!
//! ```text
//! C[i] = sum over k, part of (A[i, k] if part == 0 else B[i, k])        where part == 0 or k < 5
//! ```

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Axis, BinaryOp, Expr, Instance, ReduceOp, SharedExpr, Var};

use super::definition::Lifter;

/// Stores that one reduction may be spread over.
const MOST_LINKS: usize = 16;

/// A store that combines what it reads with another value.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The store, and the values of its loops, in terms of those of the reduction.
    pub(super) store: usize,
    pub(super) at: Vec<Expr>,
    /// When it takes part, if not always.
    pub(super) when: Option<Expr>,
    /// The read of what was combined so far, and what is combined with it.
    pub(super) so_far: usize,
    pub(super) source: Expr,
}

/// How a store combines what it reads with another value, and where that comes from.
struct Combined {
    op: ReduceOp,
    so_far: usize,
    source: Expr,
}

/// The links of a reduction, the last one first, how they combine, and where the value before all of them comes from.
pub(super) struct Chain {
    pub(super) op: ReduceOp,
    pub(super) links: Vec<Link>,
    pub(super) pieces: Vec<Instance>,
    /// The load of the value before all of them.
    pub(super) read: Expr,
}

impl Lifter<'_> {
    /// The chain of stores from a store back to its own value; `None` if it does not come back to it.
    pub(super) fn chain(&self, place: usize) -> Option<Chain> {
        let store = self.statement(place);
        let first = self.combined(place, None)?;
        let at: Vec<Expr> = store.loops().iter().map(Expr::from).collect();
        let mut pieces = self.sources[place][first.so_far].clone();
        let mut read = self.observed.reads(store).get(first.so_far)?.clone();
        let op = first.op;
        let mut links = vec![Link { store: place, at, when: None, so_far: first.so_far, source: first.source }];
        while !pieces.iter().any(|piece| piece.store == Some(place)) {
            let latest = pieces.first()?.clone();
            let writer = latest.store.filter(|_| links.len() < MOST_LINKS)?;
            let Combined { so_far, source, .. } = self.combined(writer, Some(op))?;
            let there = Substitution::new(&self.statement(writer).loops(), latest.at.iter().cloned());
            let inside: Vec<Instance> = self.sources[writer][so_far].iter().map(|piece| put(piece, &there)).collect();
            if latest.when.is_some() && !are_alike(&inside, &pieces[1..]) {
                return None;
            }
            read = there.apply(self.observed.reads(self.statement(writer)).get(so_far)?);
            links.push(Link { store: writer, at: latest.at, when: latest.when, so_far, source });
            pieces = inside;
        }
        Some(Chain { op, links, pieces, read })
    }

    /// How a store combines one of its reads with another value, by this operator if one is given.
    fn combined(&self, place: usize, op: Option<ReduceOp>) -> Option<Combined> {
        let store = self.statement(place);
        let element = |read: &Expr| {
            matches!(read, Expr::Load { buffer, indices }
            if *buffer == store.buffer && indices.iter().eq(&store.indices))
        };
        let reads = self.observed.reads(store);
        reads.iter().enumerate().filter(|(_, read)| element(read)).find_map(|(so_far, read)| {
            let (found, source) = super::definition::combined(&store.value, read)?;
            op.is_none_or(|op| op == found).then_some(Combined { op: found, so_far, source })
        })
    }
}

/// Whether values come from the same places under the same conditions.
fn are_alike(some: &[Instance], others: &[Instance]) -> bool {
    let is_same = |(a, b): (&Instance, &Instance)| a.store == b.store && a.when == b.when && a.at == b.at;
    some.len() == others.len() && some.iter().zip(others).all(is_same)
}

/// The claim about an instance at other values of its loops.
fn put(piece: &Instance, at: &Substitution) -> Instance {
    Instance {
        when: piece.when.as_ref().map(|when| at.apply(when)),
        store: piece.store,
        at: piece.at.iter().map(|value| at.apply(value)).collect(),
    }
}

/// The values that the links combine as iterations of one more reduced axis, in the order in which they run; the condition under which an
/// iteration takes part; and the value of an iteration.
pub(super) fn spread(op: ReduceOp, parts: &[(Option<Expr>, Expr)]) -> Option<(Axis, Option<Expr>, Expr)> {
    let count = i64::try_from(parts.len()).ok()?;
    let placed: Vec<(i64, &(Option<Expr>, Expr))> = (0..count).zip(parts).collect();
    let axis = Axis { var: Var::index("part"), extent: Expr::int(count) };
    let is = |place: i64, op| Expr::binary(op, Expr::from(&axis.var), Expr::int(place));
    let mut source = op.identity_expr(parts.first()?.1.dtype().scalar);
    for (place, (_, value)) in placed.iter().rev() {
        source = Expr::IfThenElse(is(*place, BinaryOp::Eq).into(), value.clone().into(), source.into());
    }
    let conditions = placed
        .iter()
        .filter_map(|(place, (when, _))| Some(Expr::binary(BinaryOp::Or, is(*place, BinaryOp::Ne), when.clone()?)));
    let condition = conditions.reduce(Expr::and);
    Some((axis, condition, source))
}

/// What all links combine, in their order in time: each under its condition.
pub(super) fn joined(op: ReduceOp, parts: Vec<(Option<Expr>, Expr)>) -> Option<Expr> {
    let part = |(when, value): (Option<Expr>, Expr)| match when {
        None => value,
        Some(when) => {
            let neutral = op.identity_expr(value.dtype().scalar);
            Expr::IfThenElse(SharedExpr::new(when), value.into(), neutral.into())
        }
    };
    parts.into_iter().map(part).reduce(|a, b| Expr::binary(op.combine(), a, b))
}
