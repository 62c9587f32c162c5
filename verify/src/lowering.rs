//! Obligations of a lowering: a program computes what a definition says.
//!
//! Every store of the program claims which element of which tensor it writes. The judge asks that the iterations that
//! reach it correspond one to one to the indices of the tensor (*iteration*), that it writes the right element with the
//! value of the definition, reading the same elements (*simulation*), that what it reads was written completely before, and
//! that concurrent iterations do not combine into one element (*race*).

use rayon::prelude::*;
use tilewright_ir::phases::has_groups;
use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    Axis, Buffer, Definition, Expr, ForKind, LoweringEvidence, PrimFunc, Span, StageBody, Stmt, StmtKind, StoreClaim,
    StoreRole, Var,
};

use crate::access::{Base, at_point};
use crate::claims::Relation;
use crate::door::inspected;
use crate::finder;
use crate::judge::{Decision, Judge, Report, Side, suspected, unsupported, worse};
use crate::lockstep::{Goal, GoalKind, Lockstep};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::{equal, fit, guessed_if, holds, same_value};
use crate::path::{Path, Site, Step, sites};
use crate::sample;
use crate::verdict::{Counterexample, Verdict};
use crate::words::describe;

/// A store of the program and what surrounds it.
struct Written<'a> {
    path: Path,
    kinds: Vec<ForKind>,
    /// Position among the statements of the body's outermost sequence.
    nest: usize,
    buffer: &'a Buffer,
    indices: &'a [Expr],
    value: &'a Expr,
    claim: &'a StoreClaim,
    subject: String,
    span: Option<Span>,
}

impl Judge {
    /// Decides whether a program computes a definition, as the evidence of the lowering claims; with the `bounds` and
    /// `overflow` of all its accesses.
    pub fn check_lowering(&self, definition: &Definition, func: &PrimFunc, evidence: &LoweringEvidence) -> Vec<Report> {
        self.check_lowering_assuming(definition, func, evidence, &[])
    }

    /// [`Judge::check_lowering`] for calls of which the caller guarantees conditions: the function may assert what follows from them.
    pub fn check_lowering_assuming(
        &self,
        definition: &Definition,
        func: &PrimFunc,
        evidence: &LoweringEvidence,
        assumed: &[Expr],
    ) -> Vec<Report> {
        if has_groups(&func.body) {
            let reason = "the program has barriers or memory that threads share, which no definition lowers to";
            return vec![Self::report(Obligation::Simulation, "barriers", || unsupported(reason))];
        }
        let stores = match written(func, evidence) {
            Ok(stores) => stores,
            Err(reason) => {
                return vec![Self::report(Obligation::Simulation, "claims of the lowering", || unsupported(reason))];
            }
        };
        let base = Base::new(self, func, &func.buffers());
        let premises = Base::new(self, func, &func.buffers());
        let whole = Lowering { judge: self, definition, func, evidence, stores: &stores, assumed, base };
        let mut reports =
            vec![Self::report(Obligation::Simulation, "every tensor is computed once, before it is read", || {
                suspected(whole.structure())
            })];
        reports.extend(
            self.in_parallel(|| stores.par_iter().flat_map_iter(|store| whole.check_store(store)).collect::<Vec<_>>()),
        );
        reports.extend(self.check_asserts(func, assumed));
        reports.extend(self.check_program(func));
        premises.grounded(reports)
    }

    /// A definition never traps: what a program asserts must hold in every call for which the assumed conditions do.
    fn check_asserts(&self, func: &PrimFunc, assumed: &[Expr]) -> Vec<Report> {
        let check = |site: &Site<'_>| match &site.stmt.kind {
            StmtKind::Assert { cond, .. } => {
                let mut path = site.path.clone();
                for cond in assumed {
                    path.steps.push(Step::Guard(cond.clone(), true));
                }
                let decide = || suspected(holds(self, &path, cond));
                Some(Self::report(Obligation::Simulation, describe(site.stmt), decide))
            }
            _ => None,
        };
        sites(func).iter().filter_map(check).collect()
    }
}

/// The stores in program order, each with its claim.
fn written<'a>(func: &'a PrimFunc, evidence: &'a LoweringEvidence) -> Result<Vec<Written<'a>>, String> {
    let sites = sites(func);
    let stores: Vec<_> = sites.iter().filter(|site| matches!(site.stmt.kind, StmtKind::Store { .. })).collect();
    if stores.len() != evidence.stores.len() {
        return Err(format!("the program has {} stores, the evidence claims {}", stores.len(), evidence.stores.len()));
    }
    let mut surroundings = Vec::new();
    let body = root(&func.body);
    for (nest, stmt) in body.iter().enumerate() {
        around(stmt, nest, &mut Vec::new(), &mut surroundings);
    }
    let pairs = stores.into_iter().zip(surroundings).zip(&evidence.stores);
    Ok(pairs
        .filter_map(|((site, (nest, kinds)), claim)| match &site.stmt.kind {
            StmtKind::Store { buffer, indices, value } => Some(Written {
                path: site.path.clone(),
                kinds,
                nest,
                buffer,
                indices,
                value,
                claim,
                subject: describe(site.stmt),
                span: site.stmt.span,
            }),
            _ => None,
        })
        .collect())
}

/// The statements of the outermost sequence, allocations and declarations stepped into.
fn root(stmt: &Stmt) -> Vec<&Stmt> {
    match &stmt.kind {
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => root(body),
        StmtKind::Seq(stmts) => stmts.iter().flat_map(root).collect(),
        _ => vec![stmt],
    }
}

/// For each store in program order: its nest, and the kinds of the loops around it.
fn around(stmt: &Stmt, nest: usize, kinds: &mut Vec<ForKind>, found: &mut Vec<(usize, Vec<ForKind>)>) {
    if matches!(stmt.kind, StmtKind::Store { .. }) {
        found.push((nest, kinds.clone()));
    }
    let entered = if let StmtKind::For(inner) = &stmt.kind {
        kinds.push(inner.kind);
        true
    } else {
        false
    };
    for child in stmt.children() {
        around(child, nest, kinds, found);
    }
    if entered {
        kinds.pop();
    }
}

struct Lowering<'a> {
    judge: &'a Judge,
    definition: &'a Definition,
    func: &'a PrimFunc,
    evidence: &'a LoweringEvidence,
    stores: &'a [Written<'a>],
    /// What the caller guarantees of the integers of a call.
    assumed: &'a [Expr],
    base: Base<'a>,
}

fn unknown(reason: impl Into<String>) -> Decision {
    unsupported(reason)
}

impl<'a> Lowering<'a> {
    /// The axes that a claim's variables stand for: those of the tensor and, for an update, the reduced ones.
    fn axes(&self, claim: &StoreClaim) -> Result<Vec<Axis>, String> {
        let tensor = &claim.tensor;
        let stage = self.definition.stage_of(tensor);
        let fresh = |extent: &Expr| Axis { var: Var::index("i"), extent: extent.clone() };
        let plain = || tensor.shape.iter().map(fresh).collect();
        let mut axes: Vec<Axis> = stage.map_or_else(plain, |stage| stage.axes.clone());
        if claim.role == StoreRole::Update {
            match stage.map(|stage| &stage.body) {
                Some(StageBody::Reduce { axes: reduced, .. }) => axes.extend(reduced.iter().cloned()),
                _ => return Err(format!("`{tensor}` is updated but is no reduction")),
            }
        }
        if axes.len() == claim.axis_vars.len() && axes.len() == claim.axes.len() {
            Ok(axes)
        } else {
            Err(format!("the claim for `{tensor}` has {} axes, the definition {}", claim.axes.len(), axes.len()))
        }
    }

    fn check_store(&self, store: &Written<'_>) -> Vec<Report> {
        let axes = match self.axes(store.claim) {
            Ok(axes) => axes,
            Err(reason) => {
                return vec![Judge::report(Obligation::Iteration, store.subject.clone(), || unknown(reason))];
            }
        };
        [
            Judge::report(Obligation::Iteration, store.subject.clone(), || suspected(self.iteration(store, &axes))),
            Judge::report(Obligation::Simulation, store.subject.clone(), || suspected(self.simulation(store, &axes))),
        ]
        .map(|report| report.placed(Side::Before, store.span))
        .into()
    }

    /// The iterations that reach the store correspond one to one to the indices of the tensor.
    fn iteration(&self, store: &Written<'_>, axes: &[Axis]) -> Decision {
        let claim = store.claim;
        let loops = store.path.loops();
        let named: Vec<&Var> = claim.inverse.iter().map(|(var, _)| var).collect();
        if loops.iter().collect::<Vec<_>>() != named {
            return unknown("the claim does not name the loops around the store");
        }
        // Every iteration stays in the domain, and determines itself through the axes.
        let mut decision: Decision = (inspected(), Method::SameText);
        for (value, axis) in claim.axes.iter().zip(axes) {
            let inside = Expr::binary(tilewright_ir::BinaryOp::Le, zero(&axis.extent), value.clone())
                .and(value.clone().lt(axis.extent.clone()));
            decision = worse(decision, holds(self.judge, &store.path, &inside));
        }
        let forward = Substitution::new(&claim.axis_vars, claim.axes.iter().cloned());
        let back = claim.inverse.iter().map(|(var, expr)| (Expr::from(var), forward.apply(expr))).collect::<Vec<_>>();
        decision = worse(decision, equal(self.judge, &store.path, &back));
        if !decision.0.is_proved() {
            return decision;
        }
        worse(decision, self.onto(store, axes))
    }

    /// Every index of the tensor is reached: the iteration that the inverse names exists, passes the guards, and leads back.
    fn onto(&self, store: &Written<'_>, axes: &[Axis]) -> Decision {
        let claim = store.claim;
        let axes = claim.axis_vars.iter().zip(axes);
        let loops = axes.map(|(var, axis)| Step::Loop(var.clone(), zero(&axis.extent), axis.extent.clone()));
        let assumed = self.assumed.iter().map(|cond| Step::Guard(cond.clone(), true));
        let domain = Path { steps: assumed.chain(loops).collect(), ..Path::of(self.func) };
        let inverse = Substitution::new(
            claim.inverse.iter().map(|(var, _)| var),
            claim.inverse.iter().map(|(_, expr)| expr.clone()),
        );
        let mut decision: Decision = (inspected(), Method::SameText);
        for step in &store.path.steps {
            if matches!(step, Step::Guard(..)) && sabotage::on("lowering-ignores-guards") {
                continue;
            }
            let Some(needed) = step.conditions(&inverse).and_then(|parts| parts.into_iter().reduce(Expr::and)) else {
                return unknown("a binding around a store of a lowered program");
            };
            decision = worse(decision, holds(self.judge, &domain, &needed));
        }
        let forth: Vec<_> =
            claim.axis_vars.iter().zip(&claim.axes).map(|(var, expr)| (Expr::from(var), inverse.apply(expr))).collect();
        worse(decision, equal(self.judge, &domain, &forth))
    }

    /// The store writes the element that it claims, with the value that the definition says.
    fn simulation(&self, store: &Written<'_>, axes: &[Axis]) -> Decision {
        let claim = store.claim;
        let tensor = &claim.tensor;
        if self.tensor_of(store.buffer) != Some(tensor) {
            return unknown(format!("`{}` is not claimed to hold `{tensor}`", store.buffer));
        }
        let own = tensor.rank();
        let element: Vec<Expr> = claim.axes[..own].to_vec();
        // What is combined so far stands in the buffer that is written, not in another holder of the tensor.
        if loaded(store).iter().any(|buffer| {
            self.tensor_of(buffer) == Some(tensor) && buffer != store.buffer && claim.role == StoreRole::Update
        }) {
            return unknown(format!("the update of `{}` reads another holder of `{tensor}`", store.buffer));
        }
        let expected = match self.expected(store, axes, &element) {
            Ok(expected) => expected,
            Err(reason) => return unknown(reason),
        };
        let pairs: Vec<_> = element.iter().cloned().zip(store.indices.iter().cloned()).collect();
        let mut decision = equal(self.judge, &store.path, &pairs);
        let read = self.holders_as_tensors(store.value);
        if let Some(bindings) = sample::difference(&store.path, 60, [&expected, &read], [&sample::own_place; 2]) {
            let text = format!("the definition says `{expected}`, the program `{read}`");
            return (Verdict::Refuted(at_point(&store.path, &bindings, text)), Method::Evaluation);
        }
        let relation = Relation::default();
        let along = finder::values(&expected, &read, store.path.clone(), &relation);
        let goals = Lockstep::compare([&expected, &read], store.path.clone(), &relation, &along);
        for goal in &goals {
            decision = worse(decision, self.decide_value(goal));
        }
        decision
    }

    fn decide_value(&self, goal: &Goal) -> Decision {
        let decision = match &goal.kind {
            GoalKind::Equal(pairs) => equal(self.judge, &goal.path, pairs),
            GoalKind::Same(old, new) => same_value(self.judge, &goal.path, (old, new), &self.base),
            GoalKind::Holds(cond) => holds(self.judge, &goal.path, cond),
            GoalKind::Fits(exprs) => fit(&goal.path, exprs, &self.base),
            GoalKind::Stuck(reason) => unknown(reason.clone()),
            GoalKind::Early => (inspected(), Method::SameText),
            GoalKind::Stored(..) | GoalKind::Missing | GoalKind::Unread(_) | GoalKind::Alone(_) | GoalKind::Ordered => {
                unknown("no single value")
            }
        };
        guessed_if(goal.is_guess, decision)
    }

    /// The value that the definition says, with tensors read as such.
    fn expected(&self, store: &Written<'_>, axes: &[Axis], element: &[Expr]) -> Result<Expr, String> {
        let claim = store.claim;
        let tensor = &claim.tensor;
        if claim.role == StoreRole::Copy {
            return Ok(Expr::load(tensor, element.to_vec()));
        }
        let stage = self.definition.stage_of(tensor).ok_or_else(|| format!("`{tensor}` is an input"))?;
        let at = Substitution::new(axes.iter().map(|axis| &axis.var), claim.axes.iter().cloned());
        match (&stage.body, claim.role) {
            (StageBody::Elementwise(body), StoreRole::Compute) => Ok(at.apply(body)),
            (StageBody::Reduce { condition: Some(cond), .. }, _) => Err(format!("`{tensor}` is summed under `{cond}`")),
            (StageBody::Reduce { init: Some(init), .. }, StoreRole::Init) => Ok(at.apply(init)),
            (StageBody::Reduce { op, .. }, StoreRole::Init) => Ok(op.identity_expr(tensor.dtype.scalar)),
            (StageBody::Reduce { op, source, .. }, StoreRole::Update) => {
                let so_far = Expr::load(tensor, element.to_vec());
                Ok(Expr::binary(op.combine(), so_far, at.apply(source)))
            }
            (_, role) => Err(format!("`{tensor}` cannot have a store for {role:?}")),
        }
    }

    /// The tensor that a buffer of the program holds.
    fn tensor_of(&self, buffer: &Buffer) -> Option<&Buffer> {
        self.evidence.holders.iter().find(|holder| holder.buffer == *buffer).map(|holder| &holder.tensor)
    }

    /// The expression with every buffer of the program replaced by the tensor that it holds.
    fn holders_as_tensors(&self, expr: &Expr) -> Expr {
        struct Read<'l, 'a>(&'l Lowering<'a>);
        impl tilewright_ir::visit::Rewrite for Read<'_, '_> {
            type Error = std::convert::Infallible;
            fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Self::Error> {
                Ok(self.0.tensor_of(buffer).unwrap_or(buffer).clone())
            }
        }
        let Ok(read) = tilewright_ir::visit::Rewrite::expr(&mut Read(self), expr);
        read
    }

    /// Every computed tensor is computed by one group of stores, completely before anything reads it.
    fn structure(&self) -> Decision {
        if sabotage::on("lowering-ignores-order") {
            return (inspected(), Method::SameText);
        }
        for buffer in self.func.buffers() {
            if self.tensor_of(&buffer).is_none() {
                return unknown(format!("nothing is claimed of the buffer `{buffer}`"));
            }
        }
        for holder in &self.evidence.holders {
            if let Some(wrong) = self.holder_fits(&holder.tensor, &holder.buffer) {
                return wrong;
            }
        }
        let params: Vec<&Buffer> = self.func.params.iter().filter_map(|param| self.func.param_buffer(param)).collect();
        let same = params.len() == self.definition.params.len()
            && params
                .iter()
                .zip(&self.definition.params)
                .all(|(buffer, tensor)| self.tensor_of(buffer) == Some(tensor));
        if !same {
            return unknown("the parameters do not hold the definition's parameters in order");
        }
        for output in self.definition.outputs() {
            let held = params.iter().any(|param| self.tensor_of(param) == Some(output) && self.writes(param).is_some());
            if !held {
                return not_written(output);
            }
        }
        for store in self.stores {
            if let Some(wrong) = self.order(store) {
                return wrong;
            }
        }
        (inspected(), Method::Inspection("order of the nests"))
    }

    /// A holder has the tensor's type and shape, is compact, and shares its memory with no other.
    fn holder_fits(&self, tensor: &Buffer, buffer: &Buffer) -> Option<Decision> {
        let compact = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
        let same = tensor.dtype == buffer.dtype && tensor.shape == buffer.shape && compact;
        if !same {
            return Some(unknown(format!("`{buffer}` has another type or shape than `{tensor}`")));
        }
        let shared = self.evidence.holders.iter().any(|other| other.buffer != *buffer && other.buffer.aliases(buffer));
        shared.then(|| unknown(format!("`{buffer}` shares its memory with another buffer")))
    }

    /// The stores that write a buffer, if they make it whole: one that computes or copies, or an init and an update.
    fn writes(&self, buffer: &Buffer) -> Option<Vec<&Written<'a>>> {
        let found: Vec<_> = self.stores.iter().filter(|store| store.buffer == buffer).collect();
        let roles: Vec<_> = found.iter().map(|store| store.claim.role).collect();
        matches!(roles.as_slice(), [StoreRole::Compute | StoreRole::Copy] | [StoreRole::Init, StoreRole::Update])
            .then_some(found)
    }

    /// What a store reads was complete before; an update follows its init for the same element.
    fn order(&self, store: &Written<'_>) -> Option<Decision> {
        let Some(group) = self.writes(store.buffer) else {
            return Some(unknown(format!("`{}` is not written by one computation", store.buffer)));
        };
        if let [init, update] = group.as_slice()
            && let Some(wrong) = init_first(init, update)
        {
            return Some(wrong);
        }
        let inputs = self.definition.inputs();
        for buffer in loaded(store) {
            let own = buffer == *store.buffer && store.claim.role == StoreRole::Update;
            let input = self.func.buffer_map.iter().any(|(_, param)| *param == buffer)
                && self.tensor_of(&buffer).is_some_and(|tensor| inputs.contains(&tensor));
            let never_written = !self.stores.iter().any(|other| *other.buffer == buffer);
            if own || (input && never_written) {
                continue;
            }
            let complete = self.writes(&buffer).is_some_and(|group| group.iter().all(|other| other.nest < store.nest));
            if !complete {
                return Some(unknown(format!("`{}` reads `{buffer}` before it is complete", store.subject)));
            }
        }
        None
    }
}

/// The buffers that a store reads.
fn loaded(store: &Written<'_>) -> Vec<Buffer> {
    let mut found = Vec::new();
    for expr in store.indices.iter().chain([store.value]) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                found.push(buffer.clone());
            }
        });
    }
    found
}

/// An output without a store.
fn not_written(output: &Buffer) -> Decision {
    let text = format!("output `{output}` is never written");
    let indices = vec![vec![0; output.rank()]];
    let found = Counterexample { indices, text, ..Counterexample::default() };
    (Verdict::Refuted(found), Method::Structure)
}

/// The loops that an init and its update share run the same iteration for the same element, the init first.
fn init_first(init: &Written<'_>, update: &Written<'_>) -> Option<Decision> {
    let shared = init.path.loops().into_iter().zip(update.path.loops()).take_while(|(a, b)| a == b).count();
    let own = init.claim.tensor.rank();
    let same_vars = Substitution::new(&update.claim.axis_vars, init.claim.axis_vars.iter().map(Expr::from));
    for position in 0..shared {
        let (Some((var, first)), Some((_, second))) =
            (init.claim.inverse.get(position), update.claim.inverse.get(position))
        else {
            return Some(unknown("the claims do not name the shared loops"));
        };
        let reduced = update.claim.axis_vars.get(own..).unwrap_or_default();
        if second.vars().iter().any(|var| reduced.contains(var)) || *first != same_vars.apply(second) {
            return Some(unknown(format!("the init and the update of one element differ in the loop over `{var}`")));
        }
    }
    // Without a barrier between them, the thread that initialises an element is the one that updates it.
    for (kind, (var, inverse)) in update.kinds.iter().zip(&update.claim.inverse).skip(shared) {
        let same_thread = init
            .kinds
            .iter()
            .zip(&init.claim.inverse)
            .any(|(other, (_, first))| other == kind && *first == same_vars.apply(inverse));
        if matches!(kind, ForKind::ThreadBinding(_)) && !same_thread {
            return Some(unknown(format!("`{var}` is bound to threads that did not initialise what they update")));
        }
    }
    None
}

/// 0 in the type of an extent.
fn zero(extent: &Expr) -> Expr {
    Expr::Int { value: 0, ty: extent.dtype().scalar }
}
