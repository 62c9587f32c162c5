//! Premises: what a proof about a program takes for granted, because the caller or the launch has to guarantee it.
//!
//! ```text
//! def main(a: (n, 64), b: (n, 64))     n is at least 1; A and B have at most 2147418111 elements each
//! ```
//!
//! Every report lists them, and a verdict says under how many it holds. Nothing else is assumed: what a program asserts is
//! checked when it runs, and what its conditions say is part of each goal.

use std::fmt;

use tilewright_ir::phases::n_implicit_barriers;
use tilewright_ir::{
    BinaryOp, Buffer, Comparison, Definition, Evidence, Expr, ForKind, LoweringEvidence, MAX_SYMBOLIC_ELEMENTS,
    PrimFunc, StageBody, Stmt, StmtKind, StoreClaim, StoreRole, Var,
};

use crate::definitions;
use crate::judge::{Report, Side};
use crate::map::MapClaim;
use crate::method::Method;

/// Something that a proof takes for granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Premise {
    /// These symbolic extents are at least 1.
    Extents(Vec<String>),
    /// These buffers of symbolic shape have no more elements than can be addressed.
    Sizes(Vec<String>),
    /// The caller writes a value to the padding of a buffer that the program only reads.
    HostPadding {
        /// The buffer.
        buffer: String,
        /// The value, as it is printed.
        value: String,
    },
    /// The caller passes these buffers with more elements than the program before takes: the rest is padding.
    Padded(Vec<String>),
    /// The user assumes this of the integers of the call.
    Assumed(String),
    /// The map is used for the indices for which this predicate holds, and for no others.
    Restricted(String),
    /// The program before keeps to these obligations, which nobody has shown: the program after does if the one before does.
    Before(Vec<String>),
    /// The threads of a launch wait for each other before and after the loops over these variables, without a barrier in the program.
    /// Kernels that are generated have one there; another compiler may not.
    Waits(Vec<String>),
    /// The threads of a group wait for each other at so many places where the text has no barrier: a pass is to find out which barriers it
    /// needs.
    ImplicitBarriers(usize),
    /// The floats of these tensors may be combined in another order than the definition lists them, and with or without a neutral
    /// value (0 in a sum).
    ReductionOrder(Vec<String>),
}

impl Premise {
    /// The premises about a call of a program.
    pub fn of_call(func: &PrimFunc) -> Vec<Self> {
        let extents: Vec<String> = func.extents().iter().map(|var| var.name().to_owned()).collect();
        let buffers = func.buffers().into_iter().filter(|buffer| is_symbolic(&buffer.shape));
        let mut sizes: Vec<String> = buffers.map(|buffer| buffer.name.clone()).collect();
        sizes.sort();
        sizes.dedup();
        Self::of_names(extents, sizes)
    }

    /// What the function assumes of a call (`T.assume`).
    pub fn of_assumptions(func: &PrimFunc) -> Vec<Self> {
        let mut found = Vec::new();
        func.body.walk(&mut |stmt| {
            if let StmtKind::Assert { cond, is_assumed: true, .. } = &stmt.kind {
                found.push(Self::Assumed(cond.to_string()));
            }
        });
        found
    }

    /// The premise about loops over threads that stand beside other statements of their launch, or in a loop of it: they are
    /// taken for loops that wait for each other.
    pub fn of_launches(func: &PrimFunc) -> Option<Self> {
        let mut found = Vec::new();
        waiting(&func.body, (false, false), &mut found);
        (!found.is_empty()).then_some(Self::Waits(found))
    }

    /// The premise about barriers that the text of a program does not have.
    pub fn of_implicit_barriers(func: &PrimFunc) -> Option<Self> {
        let count = n_implicit_barriers(&func.body);
        (count > 0).then_some(Self::ImplicitBarriers(count))
    }

    /// The premises about extents and about the sizes of shapes, by their names.
    fn of_names(extents: Vec<String>, sizes: Vec<String>) -> Vec<Self> {
        let extents = (!extents.is_empty()).then_some(Self::Extents(extents));
        let sizes = (!sizes.is_empty()).then_some(Self::Sizes(sizes));
        extents.into_iter().chain(sizes).collect()
    }

    /// The premises of a claim about an index map.
    pub fn of_map(claim: MapClaim<'_>) -> Vec<Self> {
        let symbols = claim.symbols().into_iter().filter(|symbol| !claim.scalars.contains(symbol)).collect();
        let shapes = [("the logical shape", claim.map.domain()), ("the physical shape", claim.shape)];
        let mut found = Self::of_shapes(symbols, &shapes);
        found.extend(claim.assumptions.iter().map(|assumption| Self::Assumed(assumption.to_string())));
        found.extend(claim.predicate.map(|predicate| Self::Restricted(predicate.to_string())));
        found
    }

    /// The premises about symbolic extents, and about the sizes of the shapes that are made of them, each with its name.
    pub fn of_shapes(mut symbols: Vec<Var>, shapes: &[(&str, &[Expr])]) -> Vec<Self> {
        symbols.sort();
        symbols.dedup();
        let extents: Vec<String> = symbols.iter().map(|symbol| symbol.name().to_owned()).collect();
        let sizes = shapes.iter().filter(|(_, shape)| is_symbolic(shape)).map(|(name, _)| (*name).to_owned());
        Self::of_names(extents, sizes.collect())
    }

    /// The premises that the claims of a pass add.
    pub fn of_pass(evidence: &Evidence) -> Vec<Self> {
        if let Comparison::Scalarized(claim) = &evidence.comparison {
            return Self::of_pass(&claim.evidence);
        }
        if let Comparison::Phases(claim) = &evidence.comparison {
            return Self::of_pass(&claim.evidence);
        }
        let by_host = evidence.fills.iter().filter(|fill| fill.by_host);
        let by_host =
            by_host.map(|fill| Self::HostPadding { buffer: fill.buffer.name.clone(), value: fill.value.to_string() });
        by_host.chain(Self::of_definitions(evidence)).collect()
    }

    /// The premise that the parameters of the program after have the padding that is claimed of them.
    pub fn of_padding(before: &PrimFunc, evidence: &Evidence) -> Option<Self> {
        let is_param = |buffer: &Buffer| before.buffer_map.iter().any(|(_, param)| param == buffer);
        let padded = evidence.buffers.iter().filter(|claim| is_param(&claim.before) && !claim.padded_axes.is_empty());
        let names: Vec<String> =
            padded.map(|claim| format!("{} (axes {:?})", claim.after, claim.padded_axes)).collect();
        (!names.is_empty()).then_some(Self::Padded(names))
    }

    /// The premises that a comparison of definitions adds: the order of reductions, and the sizes of tensors that are not in the
    /// programs.
    fn of_definitions(evidence: &Evidence) -> Vec<Self> {
        let Comparison::Definitions(claim) = &evidence.comparison else { return Vec::new() };
        let order = definitions::reassociated(evidence, claim);
        let order = (!order.is_empty()).then_some(Self::ReductionOrder(order));
        let stages = [&claim.before, &claim.after].into_iter().flat_map(|lifted| &lifted.definition.stages);
        let sizes = stages.filter(|stage| is_symbolic(&stage.buffer.shape)).map(|stage| stage.buffer.name.clone());
        order.into_iter().chain(Self::of_names(Vec::new(), sizes.collect())).collect()
    }

    /// The premises about the program before on which reports about the program after rest.
    pub fn of_reports(reports: &[Report]) -> Vec<Self> {
        let open: Vec<&Report> = reports.iter().filter(|report| report.method == Method::Before).collect();
        let is_before = |report: &&Report| report.place.is_some_and(|place| place.side == Side::Before);
        // Where the program before was looked at, too, its own words are clearer.
        let names_both = open.iter().any(is_before);
        let open = open.iter().filter(|report| !names_both || is_before(report));
        let open: Vec<String> = open.map(|report| format!("{} of {}", report.obligation, report.subject)).collect();
        if open.is_empty() { Vec::new() } else { vec![Self::Before(open)] }
    }

    /// The premises that a lowering adds: the order of its reductions.
    pub fn of_lowering(definition: &Definition, evidence: &LoweringEvidence) -> Vec<Self> {
        let tensors = reassociated(definition, evidence);
        if tensors.is_empty() { Vec::new() } else { vec![Self::ReductionOrder(tensors)] }
    }
}

impl Premise {
    /// Several premises as one list, in which those of one kind are joined.
    pub fn joined<'a>(premises: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for premise in premises {
            if !found.iter_mut().any(|known| known.takes(premise)) {
                found.push(premise.clone());
            }
        }
        found
    }

    /// Takes another premise of the same kind in; false if it is of another kind.
    fn takes(&mut self, other: &Self) -> bool {
        match (self, other) {
            (Self::Extents(own), Self::Extents(more))
            | (Self::Sizes(own), Self::Sizes(more))
            | (Self::Padded(own), Self::Padded(more))
            | (Self::Before(own), Self::Before(more))
            | (Self::Waits(own), Self::Waits(more))
            | (Self::ReductionOrder(own), Self::ReductionOrder(more)) => {
                let new: Vec<String> = more.iter().filter(|name| !own.contains(name)).cloned().collect();
                own.extend(new);
                true
            }
            (own, other) => *own == *other,
        }
    }
}

impl fmt::Display for Premise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extents(names) => write!(f, "at least 1: {}", names.join(", ")),
            Self::Sizes(names) => write!(f, "at most {MAX_SYMBOLIC_ELEMENTS} elements each: {}", names.join(", ")),
            Self::Assumed(condition) => write!(f, "assumed: {condition}"),
            Self::Restricted(predicate) => write!(f, "only indices for which {predicate}"),
            Self::HostPadding { buffer, value } => write!(f, "the caller writes {value} to the padding of {buffer}"),
            Self::Padded(names) => write!(f, "the caller passes room for padding in {}", names.join(", ")),
            Self::Waits(names) => {
                write!(f, "threads wait for each other before and after the loops over {}", names.join(", "))
            }
            Self::ImplicitBarriers(count) => {
                write!(
                    f,
                    "threads wait for each other after each statement on shared memory: {count} barriers that the text leaves out"
                )
            }
            Self::Before(places) => write!(f, "true of the program before: {}", places.join("; ")),
            Self::ReductionOrder(names) => {
                write!(f, "floats may be combined in any order, with or without a neutral value: {}", names.join(", "))
            }
        }
    }
}

/// Adds the variables of loops over threads that are not alone in their launch. `is_inside`: a launch is around the statement;
/// `is_beside`: and within it a loop that is not over threads, or another statement next to this one.
fn waiting(stmt: &Stmt, (is_inside, is_beside): (bool, bool), found: &mut Vec<String>) {
    match &stmt.kind {
        StmtKind::For(inner) => {
            let is_thread = matches!(inner.kind, ForKind::ThreadBinding(_));
            let name = inner.var.name().to_owned();
            if is_thread && is_inside && is_beside && !found.contains(&name) {
                found.push(name);
            }
            waiting(&inner.body, (is_inside || is_thread, is_beside || (is_inside && !is_thread)), found);
        }
        StmtKind::Seq(parts) => {
            let is_beside = is_beside || (is_inside && parts.len() > 1);
            parts.iter().for_each(|part| waiting(part, (is_inside, is_beside), found));
        }
        StmtKind::Store { .. }
        | StmtKind::Allocate { .. }
        | StmtKind::DeclBuffer { .. }
        | StmtKind::If { .. }
        | StmtKind::Let { .. }
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Attr { .. }
        | StmtKind::Assert { .. } => {
            stmt.children().for_each(|child| waiting(child, (is_inside, is_beside), found));
        }
    }
}

fn is_symbolic(shape: &[Expr]) -> bool {
    shape.iter().any(|extent| extent.as_const_int().is_none())
}

/// The tensors whose floats a lowering may sum (or multiply) in another order than the definition, which does so in row-major
/// order of the reduction axes. In doubt a tensor is among them.
pub fn reassociated(definition: &Definition, evidence: &LoweringEvidence) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for claim in evidence.stores.iter().filter(|claim| claim.role == StoreRole::Update) {
        let in_order = match definition.stage_of(&claim.tensor).map(|stage| &stage.body) {
            Some(StageBody::Reduce { axes, op, .. }) => {
                let is_exact =
                    !claim.tensor.dtype.scalar.is_float() || !matches!(op.combine(), BinaryOp::Add | BinaryOp::Mul);
                is_exact || keeps_order(claim, axes.len())
            }
            Some(StageBody::Elementwise(_)) | None => false,
        };
        if !in_order && !found.contains(&claim.tensor.name) {
            found.push(claim.tensor.name.clone());
        }
    }
    found
}

/// Whether the reduced axes are loops of their own, in the order of the definition.
fn keeps_order(claim: &StoreClaim, n_reduced: usize) -> bool {
    let reduced = &claim.axis_vars[claim.axis_vars.len().saturating_sub(n_reduced)..];
    let mut at = 0;
    for (_, value) in &claim.inverse {
        let used: Vec<_> = value.vars().into_iter().filter(|var| reduced.contains(var)).collect();
        match (used.as_slice(), value) {
            ([], _) => {}
            ([only], Expr::Var(_)) if reduced.get(at) == Some(only) => at += 1,
            _ => return false,
        }
    }
    at == reduced.len()
}
