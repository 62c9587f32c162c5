//! Whether the claims of a pass hang together: each buffer moves once, whole, with all that share its memory, by a map
//! that means the same everywhere; and the layouts that the program asks for are the ones that it gets.

use std::collections::HashMap;

use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, Diagnostic, Evidence, Expr, IndexMap, PrimFunc, Stmt, Var, validate,
};

use crate::correspondence::Correspondence;
use crate::door::All;
use crate::judge::{Decision, Judge, Side, unsupported};
use crate::lockstep::{Goal, GoalKind, Lockstep};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::all_equal;
use crate::path::Path;
use crate::verdict::Verdict;

/// Which buffers became which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relation<'a> {
    by_after: HashMap<Buffer, &'a BufferClaim>,
    by_before: HashMap<Buffer, &'a BufferClaim>,
}

impl<'a> Relation<'a> {
    pub(crate) fn new(evidence: &'a Evidence) -> Self {
        Self {
            by_after: evidence.buffers.iter().map(|claim| (claim.after.clone(), claim)).collect(),
            by_before: evidence.buffers.iter().map(|claim| (claim.before.clone(), claim)).collect(),
        }
    }

    /// What became of a buffer of the program before, if it became another one.
    pub(crate) fn claim_of(&self, before: &Buffer) -> Option<&'a BufferClaim> {
        self.by_before.get(before).copied()
    }

    /// Whether every buffer that an expression of the program after reads is the same buffer of the program before.
    pub(crate) fn keeps(&self, after: &Expr) -> bool {
        let mut kept = true;
        after.walk(&mut |part| {
            kept &= !matches!(part, Expr::Load { buffer, .. } if self.by_after.contains_key(buffer));
        });
        kept
    }

    /// The buffer of the program before that a buffer of the program after is, element by element; none if it was moved.
    pub(crate) fn unmoved<'b>(&self, after: &'b Buffer) -> Option<&'b Buffer>
    where
        'a: 'b,
    {
        match self.by_after.get(after) {
            Some(claim) => (claim.change == BufferChange::Rename).then_some(&claim.before),
            None => Some(after),
        }
    }

    /// The index in `after` that corresponds to an index in `before`; none if the buffers do not correspond.
    pub(crate) fn image(&self, before: &Buffer, after: &Buffer, indices: &[Expr]) -> Option<Vec<Expr>> {
        match self.by_after.get(after) {
            Some(claim) if claim.before == *before && indices.len() == claim.map.vars().len() => {
                Some(claim.map.apply(indices))
            }
            Some(_) => None,
            None => (before == after).then(|| indices.to_vec()),
        }
    }

    /// Whether one buffer became the other.
    pub(crate) fn relates(&self, before: &Buffer, after: &Buffer) -> bool {
        self.image(before, after, &vec![Expr::int(0); before.rank()]).is_some()
    }
}

/// The first thing that is wrong with the programs and the claims as such; none if they can be followed.
pub(crate) fn wrong(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Option<String> {
    for (func, which) in [(before, "before"), (after, "after")] {
        if let Some(reason) = not_well_formed(func) {
            return Some(format!("the program {which} is not well formed: {reason}"));
        }
    }
    let extents = before.extents();
    if let Some(extent) = after.attrs.extents.iter().find(|extent| !extents.contains(extent)) {
        return Some(format!(
            "the program after asks of its caller that `{extent}` is at least 1, and the one before does not"
        ));
    }
    let symbols = before.symbols();
    let buffers = before.buffers().into_iter().chain(after.buffers());
    buffers.into_iter().find_map(|buffer| depends(&buffer, &symbols)).or_else(|| {
        let kept = after.buffers();
        evidence.buffers.iter().enumerate().find_map(|(position, claim)| {
            let others = &evidence.buffers[..position];
            repeated(claim, others).or_else(|| map_depends(claim, &symbols)).or_else(|| left(claim, &kept, evidence))
        })
    })
}

/// What is wrong with a program by itself.
pub(crate) fn not_well_formed(func: &PrimFunc) -> Option<String> {
    let found = validate(func).err()?;
    Some(found.first().map_or_else(String::new, |first: &Diagnostic| first.message.clone()))
}

fn foreign<'e>(exprs: impl IntoIterator<Item = &'e Expr>, known: &[Var]) -> Option<Var> {
    exprs.into_iter().flat_map(Expr::vars).find(|var| !known.contains(var))
}

/// A shape, stride or offset that differs from iteration to iteration.
fn depends(buffer: &Buffer, symbols: &[Var]) -> Option<String> {
    let strides = buffer.strides.iter().flatten();
    let var = foreign(buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]), symbols)?;
    Some(format!("the buffer `{buffer}` depends on `{var}`, which is no symbolic extent of the program before"))
}

fn map_depends(claim: &BufferClaim, symbols: &[Var]) -> Option<String> {
    let known: Vec<Var> = symbols.iter().chain(claim.map.vars()).cloned().collect();
    let var = foreign(claim.map.outputs(), &known).or_else(|| foreign(claim.map.domain(), symbols))?;
    Some(format!("the map of `{}` depends on `{var}`, which is no symbolic extent", claim.before))
}

fn repeated(claim: &BufferClaim, others: &[BufferClaim]) -> Option<String> {
    let twice = others.iter().find(|other| other.before == claim.before || other.after == claim.after)?;
    Some(format!("there are two claims of `{}` and `{}`", twice.before, twice.after))
}

/// Where memory is rearranged, nothing may look at it the old way.
fn left(claim: &BufferClaim, kept: &[Buffer], evidence: &Evidence) -> Option<String> {
    if claim.change != BufferChange::Layout {
        return None;
    }
    if kept.contains(&claim.before) {
        return Some(format!(
            "`{}` was moved to another layout, but the program after uses it as it was",
            claim.before
        ));
    }
    let moved = |other: &&BufferClaim| other.change != BufferChange::Layout && other.before.aliases(&claim.before);
    let other = evidence.buffers.iter().find(moved)?;
    Some(format!("`{}` was moved to another layout, but its alias `{}` was not", claim.before, other.before))
}

/// Whether memory of the program after is that of the program before: the same variable, or claimed.
pub(crate) fn is_memory_of(evidence: &Evidence, before: &Var, after: &Var) -> bool {
    before == after || evidence.buffers.iter().any(|claim| claim.before.data == *before && claim.after.data == *after)
}

/// Whether both ask for the same maps, one after the other, up to the names of their variables.
fn is_same_request(one: &[IndexMap], two: &[IndexMap]) -> bool {
    let is_same = |(a, b): (&IndexMap, &IndexMap)| {
        let index: Vec<Expr> = a.vars().iter().map(Expr::from).collect();
        let same_outputs = b.vars().len() == index.len() && b.apply(&index) == a.outputs();
        same_outputs && a.domain() == b.domain() && a.axis_separators() == b.axis_separators()
    };
    one.len() == two.len() && one.iter().zip(two).all(is_same)
}

/// Every buffer that the program before wants in another layout is in that layout in the program after.
pub(crate) fn requested(judge: &Judge, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Decision {
    let unknown = |reason: String| unsupported(reason);
    let (buffers, scalars) = (before.buffers(), before.scalars());
    let mut all = All::default();
    // A request of the program after has to be one of the program before.
    for (data, maps) in &after.attrs.layout_transform_map {
        let asked = before.attrs.layout_transform_map.iter().find(|(other, _)| is_memory_of(evidence, other, data));
        if !asked.is_some_and(|(_, asked)| is_same_request(asked, maps)) {
            return unknown(format!(
                "the program after asks for a layout of `{data}` that the one before does not ask for"
            ));
        }
    }
    let still =
        |data: &Var| after.attrs.layout_transform_map.iter().any(|(other, _)| is_memory_of(evidence, data, other));
    for (data, maps) in &before.attrs.layout_transform_map {
        if still(data) || maps.is_empty() {
            continue;
        }
        for buffer in buffers.iter().filter(|buffer| buffer.data == *data) {
            let is_move = |claim: &&BufferClaim| claim.before == *buffer && claim.change == BufferChange::Layout;
            let Some(claim) = evidence.buffers.iter().find(is_move) else {
                return unknown(format!("a layout is asked for `{buffer}`, but no claim says that it was applied"));
            };
            let mut asked: Vec<Expr> = claim.map.vars().iter().map(Expr::from).collect();
            for map in maps {
                if map.vars().len() != asked.len() {
                    return unknown(format!("the layouts asked for `{buffer}` do not fit one another"));
                }
                asked = map.apply(&asked);
            }
            if asked.len() != claim.map.outputs().len() {
                return unknown(format!("`{buffer}` has another rank than the layout asked for"));
            }
            let own = maps.last().map(|map| map.axis_separators().positions()).filter(|own| !own.is_empty());
            let separators = own.unwrap_or(before_separators(buffer));
            if claim.after.axis_separators.positions() != separators {
                return unknown(format!("`{}` has other axis separators than asked for", claim.after));
            }
            let pairs: Vec<_> = asked.into_iter().zip(claim.map.outputs().iter().cloned()).collect();
            let decision = all_equal(judge, claim, &scalars, &pairs);
            match decision {
                (Verdict::Proved(grounds), _) => all.add(grounds),
                open => return open,
            }
        }
    }
    (all.proved(), Method::Inspection("same map"))
}

fn before_separators(buffer: &Buffer) -> &[usize] {
    buffer.axis_separators.positions()
}

/// The row-major position of an index within a group of axes.
pub(crate) fn row_major(index: &[Expr], shape: &[Expr], group: std::ops::Range<usize>) -> Expr {
    let mut value: Option<Expr> = None;
    for axis in group {
        let digit = index[axis].clone();
        value = Some(match value {
            None => digit,
            Some(value) => value * shape[axis].clone() + digit,
        });
    }
    value.unwrap_or_else(|| Expr::int(0))
}

/// The position of an index in memory with these strides.
pub(crate) fn strided(index: &[Expr], strides: &[Expr], offset: &Expr) -> Expr {
    index.iter().zip(strides).fold(offset.clone(), |sum, (index, stride)| sum + index.clone() * stride.clone())
}

/// The goals for the parameters of two functions whose bodies are compared in terms of the same variables: a scalar parameter of one
/// is the parameter at the same position of the other.
pub(crate) fn parameters(before: &PrimFunc, after: &PrimFunc, relation: &Relation<'_>) -> Vec<Goal> {
    let head = |func: &PrimFunc| PrimFunc { body: Stmt::seq(Vec::new()), ..func.clone() };
    let (one, two) = (head(before), head(after));
    let mut goals = Lockstep::run(&one, &two, relation, &Correspondence::default());
    let scalars = |func: &PrimFunc| -> Vec<Option<Var>> {
        func.params.iter().map(|param| func.param_buffer(param).is_none().then(|| param.clone())).collect()
    };
    if scalars(before) != scalars(after) {
        let kind = GoalKind::Stuck("the scalar parameters are other variables, or at other positions".into());
        let (subject, path) = ("parameters".into(), Path::of(before));
        let (obligation, side, spans, is_guess) = (Obligation::Simulation, Side::After, [None; 2], false);
        goals.push(Goal { obligation, subject, side, spans, path, is_guess, kind });
    }
    goals
}
