//! Equations between the indices of two stores that may correspond.

use tilewright_algebra::inverse;
use tilewright_ir::{BinaryOp, Buffer, BufferClaim, Evidence, Expr};
use tilewright_verify::path::Step;
use tilewright_verify::reorder::Statement;

use super::types::untyped;

/// Pairs of an index before and the index after that it equals, and how much of the two stores is alike.
#[derive(Clone, Debug, Default)]
pub(super) struct Equations {
    pub(super) pairs: Vec<(Expr, Expr)>,
    /// Parts of the values that have the same form.
    pub(super) score: usize,
    /// Parts that have not.
    n_different: usize,
}

/// The equations of two stores; `None` if they write different buffers.
pub(super) fn of(before: &Statement, after: &Statement, evidence: &Evidence) -> Option<Equations> {
    let mut found = Equations::default();
    found.access((&before.buffer, &before.indices), (&after.buffer, &after.indices), evidence)?;
    found.values(&before.value, &after.value, evidence);
    for (old, new) in asked(before).into_iter().zip(asked(after)) {
        found.values(old, new, evidence);
    }
    Some(found)
}

/// The conditions and extents around a store that read memory, outermost first.
fn asked(store: &Statement) -> Vec<&Expr> {
    let mut found = Vec::new();
    for step in &store.path.steps {
        match step {
            Step::Guard(asked, _) | Step::Loop(_, _, asked) if asked.reads_memory() => found.push(asked),
            Step::Guard(..) | Step::Loop(..) | Step::Let(..) => {}
        }
    }
    found
}

impl Equations {
    /// Two accesses to the same element.
    fn access(&mut self, old: (&Buffer, &[Expr]), new: (&Buffer, &[Expr]), evidence: &Evidence) -> Option<()> {
        let indices = in_old_layout(old.0, new.0, new.1, evidence)?;
        (indices.len() == old.1.len()).then_some(())?;
        for (old, new) in old.1.iter().zip(indices) {
            if old.reads_memory() && new.reads_memory() {
                self.values(old, &new, evidence);
            } else {
                self.pairs.push((untyped(old), untyped(&new)));
            }
        }
        self.score += 1;
        Some(())
    }

    /// Two values, as far as they have the same form; the operands of a commutative operator in the order that fits better.
    fn values(&mut self, old: &Expr, new: &Expr, evidence: &Evidence) {
        match (old, new) {
            (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }) => {
                let is_same = self.access((x, i), (y, j), evidence).is_some();
                self.n_different += usize::from(!is_same);
            }
            (Expr::Binary(op, a, b), Expr::Binary(other, c, d)) if op == other => {
                let tried = |pairs: [(&Expr, &Expr); 2]| {
                    let mut found = Self::default();
                    for (old, new) in pairs {
                        found.values(old, new, evidence);
                    }
                    found
                };
                let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
                let mut best = tried([(a, c), (b, d)]);
                if commutes && best.n_different > 0 {
                    let crossed = tried([(a, d), (b, c)]);
                    best = if crossed.score > best.score { crossed } else { best };
                }
                self.pairs.extend(best.pairs);
                self.score += best.score + 1;
                self.n_different += best.n_different;
            }
            _ if old.dtype().is_scalar() && is_index(old) && is_index(new) => {
                self.pairs.push((untyped(old), untyped(new)));
                self.score += usize::from(old == new);
            }
            _ if std::mem::discriminant(old) == std::mem::discriminant(new) => {
                let (mut left, mut right) = (old.children(), new.children());
                let mut is_leaf = true;
                while let (Some(old), Some(new)) = (left.next(), right.next()) {
                    self.values(old, new, evidence);
                    is_leaf = false;
                }
                // Two parameters, or two constants, are alike if they are the same.
                self.score += usize::from(!is_leaf || old == new);
            }
            _ => self.n_different += 1,
        }
    }
}

/// Whether an expression is an integer that no memory decides.
fn is_index(expr: &Expr) -> bool {
    expr.dtype().scalar.integer_range().is_some() && !expr.reads_memory()
}

/// The index before of an index after; `None` if the buffers do not correspond.
fn in_old_layout(old: &Buffer, new: &Buffer, indices: &[Expr], evidence: &Evidence) -> Option<Vec<Expr>> {
    let Some(claim) = evidence.buffers.iter().find(|claim| claim.after == *new) else {
        return (old == new).then(|| indices.to_vec());
    };
    (claim.before == *old).then_some(())?;
    undo(claim, indices)
}

pub(crate) fn undo(claim: &BufferClaim, indices: &[Expr]) -> Option<Vec<Expr>> {
    let index: Vec<Expr> = claim.map.vars().iter().map(Expr::from).collect();
    if claim.map.outputs() == index {
        return Some(indices.to_vec());
    }
    let found = inverse(&claim.map, &claim.after.shape, &[]).ok()?;
    (found.vars.len() == indices.len()).then_some(())?;
    let at = tilewright_ir::visit::Substitution::new(&found.vars, indices.iter().cloned());
    Some(found.outputs.iter().map(|output| at.apply(output)).collect())
}
