//! The claim that each store after is a store before with the same value, kept in other memory.
//!
//! Where a program has vectors, or sees memory through views, the claim is about the programs with elements in their place: each store
//! of a vector is a loop over its lanes, and a view the buffer whose memory it shows. Where threads wait for each other, it is about the
//! programs phase by phase. The judge makes these programs by itself.

use std::collections::HashSet;

use tilewright_ir::phases::{Barriers, has_groups, without_barriers};
use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, Comparison, Evidence, Expr, IndexMap, Origin, Phased, PrimFunc, Scalarization,
    Stmt, StmtKind, Var,
};
use tilewright_verify::reorder::Statement;
use tilewright_verify::scalarize::{has_other_form, scalarize};

use super::super::schedule::unchanged;
use crate::flow::{self, Origins};

/// The claim about two programs of which the caller knows the stores that correspond. If these do not fit, they are searched for; if
/// nothing is found, the judge will find that the programs differ in structure.
pub(in crate::passes) fn values(before: &PrimFunc, after: &PrimFunc, pass: &str, origins: &Origins<'_>) -> Evidence {
    let evidence = Evidence { pass: pass.to_owned(), ..Evidence::default() };
    let has_phases = has_groups(&before.body) || has_groups(&after.body);
    let of_phases = || of_phases(before, after, &evidence, origins);
    let comparison = has_phases.then(of_phases).flatten();
    let comparison = comparison.or_else(|| without_groups(before, after, &evidence, origins));
    Evidence { comparison: comparison.unwrap_or_default(), ..evidence }
}

/// The claim about programs without barriers.
fn without_groups(
    before: &PrimFunc,
    after: &PrimFunc,
    evidence: &Evidence,
    origins: &Origins<'_>,
) -> Option<Comparison> {
    let is_about_elements = is_plain(before) && is_plain(after);
    let claim = if is_about_elements { of_elements } else { of_vectors };
    claim(before, after, evidence, origins)
}

/// The claim about the programs phase by phase.
fn of_phases(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, origins: &Origins<'_>) -> Option<Comparison> {
    let phases = |func: &PrimFunc| without_barriers(func, Barriers::Dropped).ok();
    let (before, after) = (phases(before)?, phases(after)?);
    let comparison = without_groups(&before, &after, evidence, origins)?;
    let evidence = Evidence { comparison, ..evidence.clone() };
    Some(Comparison::Phases(Box::new(Phased { before, after, evidence })))
}

/// The origins of stores that are the stores before, in their order and in the same loops; these may have other variables.
pub(in crate::passes) fn same_stores(before: &[Statement], after: &[Statement]) -> Option<Vec<Origin>> {
    let is_same = |(old, new): (&Statement, &Statement)| old.loops().len() == new.loops().len();
    let is_each_same = before.len() == after.len() && before.iter().zip(after).all(is_same);
    let same = || after.iter().enumerate().map(|(position, store)| unchanged(position, store)).collect();
    is_each_same.then(same)
}

/// The claim about programs without vectors.
fn of_elements(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, origins: &Origins<'_>) -> Option<Comparison> {
    let stated = flow::known(before, after, evidence, origins);
    stated.or_else(|| flow::find(before, after, evidence).ok()).map(Comparison::Values)
}

/// The claim about the programs with elements in the place of vectors and views.
fn of_vectors(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, origins: &Origins<'_>) -> Option<Comparison> {
    over_elements(before, after, evidence, &|before, after| of_elements(before, after, evidence, origins))
}

/// A claim that `find` makes about the programs with elements in the place of vectors and views, if they have any.
pub(in crate::passes) fn over_elements(
    before: &PrimFunc,
    after: &PrimFunc,
    evidence: &Evidence,
    find: &dyn Fn(&PrimFunc, &PrimFunc) -> Option<Comparison>,
) -> Option<Comparison> {
    if is_plain(before) && is_plain(after) {
        return find(before, after);
    }
    let buffered = [before, after].map(lanes_together);
    let [first, second] = [(before, &buffered[0]), (after, &buffered[1])]
        .map(|(func, buffered)| scalarize(func, buffered).ok().map(|found| found.func));
    let (first, second) = (first?, second?);
    let comparison = find(&first, &second)?;
    let evidence = Evidence { comparison, ..evidence.clone() };
    Some(Comparison::Scalarized(Box::new(Scalarization { before: first, after: second, buffered, evidence })))
}

/// The claim that buffers of elements became buffers of vectors, and that the statements are the same: for programs of which values cannot
/// be followed. `vectors` has the buffers before and after that the functions allocate.
pub(in crate::passes) fn vectors(
    before: &PrimFunc,
    after: &PrimFunc,
    pass: &str,
    vectors: &[(Buffer, Buffer)],
) -> Option<Evidence> {
    let buffered = [before, after].map(lanes_together);
    let first = scalarize(before, &buffered[0]).ok()?.func;
    let second = scalarize(after, &buffered[1]).ok()?.func;
    let known = second.buffers();
    let claim = |(old, new): &(Buffer, Buffer)| {
        let elements = known.iter().find(|buffer| buffer.data == new.data && buffer.rank() == old.rank() + 1)?;
        let vars: Vec<Var> = old.shape.iter().map(|extent| Var::new("i", extent.dtype())).collect();
        let (last, outer) = vars.split_last()?;
        let lanes = Expr::int_of(i128::from(new.dtype.lanes), last.dtype().scalar)?;
        let number = Expr::from(last);
        let digits = [number.clone().floor_div(lanes.clone()), number.floor_mod(lanes)];
        let outputs = outer.iter().map(Expr::from).chain(digits).collect();
        let map = IndexMap::new(vars.clone(), old.shape.clone(), outputs, Vec::new()).ok()?;
        let (change, padded_axes) = (BufferChange::Layout, Vec::new());
        Some(BufferClaim { before: old.clone(), after: elements.clone(), map, change, padded_axes })
    };
    let buffers = vectors.iter().map(claim).collect::<Option<Vec<_>>>()?;
    let evidence = Evidence { pass: pass.to_owned(), buffers, ..Evidence::default() };
    let claim = Scalarization { before: first, after: second, buffered, evidence };
    let comparison = Comparison::Scalarized(Box::new(claim));
    Some(Evidence { pass: pass.to_owned(), comparison, ..Evidence::default() })
}

/// Whether a program has no vectors, and one buffer for each part of memory.
fn is_plain(func: &PrimFunc) -> bool {
    let mut seen = HashSet::new();
    !has_other_form(func) && func.buffers().iter().all(|buffer| seen.insert(buffer.data.clone()))
}

/// The stores of vectors, in program order, that read the memory that they write at another index.
fn lanes_together(func: &PrimFunc) -> Vec<usize> {
    let mut stores: Vec<&Stmt> = Vec::new();
    func.body.walk(&mut |stmt| {
        if matches!(&stmt.kind, StmtKind::Store { value, .. } if !value.dtype().is_scalar()) {
            stores.push(stmt);
        }
    });
    let is_mixed = |(_, stmt): &(usize, &&Stmt)| match &stmt.kind {
        StmtKind::Store { buffer, indices, value } => reads_elsewhere(value, buffer, indices),
        StmtKind::For(_) | StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::If { .. } => false,
        StmtKind::Let { .. } | StmtKind::Seq(_) | StmtKind::Evaluate(_) => false,
        StmtKind::Attr { .. } | StmtKind::Barrier | StmtKind::Assert { .. } => false,
    };
    stores.iter().enumerate().filter(is_mixed).map(|(position, _)| position).collect()
}

fn reads_elsewhere(value: &Expr, buffer: &Buffer, indices: &[Expr]) -> bool {
    let mut found = false;
    value.walk(&mut |part| {
        if let Expr::Load { buffer: read, indices: at } = part {
            found |= read.aliases(buffer) && (read != buffer || at.iter().ne(indices));
        }
    });
    found
}
