//! Loops that became lanes.
//!
//! ```text
//! for c in 4:                          T[i, j, ramp(0, 1, 4)] = if_then_else(
//!     if j * 4 + c < 18:        ->         broadcast(j * 4, 4) + ramp(0, 1, 4) < 18,
//!         T[i, j, c] = X[i, j * 4 + c]     X[i, ramp(j * 4, 1, 4)], broadcast(0, 4))
//! ```
//!
//! The vector statement is looked at one lane at a time: lane `c` of it has to do what iteration `c` of the loop does, and
//! the walk ([`crate::lockstep`]) compares the two as any other statements. That says everything if the iterations do
//! not see each other: all lanes read before any lane writes, so no iteration may read what one before it wrote, and no
//! two lanes may write one element.
//!
//! A condition that differs from lane to lane may be *gathered* into the value, as above. Then lanes without a value are
//! written too. That is right only where nobody ever reads them (obligation `defined`) and nobody else has the texel
//! (obligation `race`), in a texture that the function itself allocates.

use std::collections::HashSet;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Buffer, Expr, For, ForKind, IndexMap, PrimFunc, Stmt, StmtKind, Var};

use crate::access::{Access, accesses, at_point, bindings_of, lane_of};
use crate::concrete::{instances, tuple};
use crate::door::Grounds;
use crate::forms::plain;
use crate::judge::{Decision, Judge, decide, unsupported};
use crate::kernel::Failure;
use crate::map::{self, MapClaim};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::{Path, Step, sites};
use crate::reason::{Reason, ReasonKind};
use crate::steps::Steps;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Lanes of the one store that a statement is, conditions around it aside; none if it is no such statement.
pub(crate) fn vector_store(stmt: &Stmt) -> Option<u16> {
    match &single(stmt)?.kind {
        StmtKind::Store { buffer, value, .. } if buffer.dtype.is_scalar() => {
            Some(value.dtype().lanes).filter(|&lanes| lanes > 1)
        }
        _ => None,
    }
}

/// The store inside a statement that is one store under conditions.
pub(crate) fn single(stmt: &Stmt) -> Option<Stmt> {
    let mut parts = Vec::new();
    under_conditions(stmt, &mut parts)
}

/// How many conditions there are around the store of a statement that is one store.
pub(crate) fn conditions_of(stmt: &Stmt) -> usize {
    let mut conditions = Vec::new();
    under_conditions(stmt, &mut conditions).map_or(0, |_| conditions.len())
}

/// The store inside a statement that is one store under conditions, and the conditions, outermost first; bindings are
/// inlined.
fn under_conditions(stmt: &Stmt, conditions: &mut Vec<Expr>) -> Option<Stmt> {
    let [only] = plain(&[stmt]).try_into().ok()?;
    match &only.kind {
        StmtKind::If { cond, then_body, else_body: None } => {
            conditions.push(cond.clone());
            under_conditions(then_body, conditions)
        }
        StmtKind::Store { .. } => Some(only),
        _ => None,
    }
}

/// One lane of a statement that [`vector_store`] knows.
pub(crate) fn one_lane(stmt: &Stmt, lane: &Expr) -> Option<Stmt> {
    let [only] = plain(&[stmt]).try_into().ok()?;
    match only.kind {
        StmtKind::If { cond, then_body, else_body: None } => Some(Stmt::guarded(cond, one_lane(&then_body, lane)?)),
        StmtKind::Store { buffer, indices, value } => {
            let indices = indices.iter().map(|index| lane_of(index, lane)).collect();
            Some(Stmt::store(&buffer, indices, lane_of(&value, lane)))
        }
        _ => None,
    }
}

/// Conditions around a store with those in front that do not differ from lane to lane, as vectors have them: `if own and shared`
/// is `if shared: if own`. None where they are in that order.
pub(crate) fn shared_first(stmt: &Stmt, lane: &Var) -> Option<Stmt> {
    let (mut shared, mut own, mut moved) = (Vec::new(), Vec::new(), false);
    let mut inner = stmt.clone();
    while let StmtKind::If { cond, then_body, else_body: None } = &inner.kind {
        let (mut differing, mut common) = (Vec::new(), Vec::new());
        for part in conjuncts(cond) {
            let behind = !differing.is_empty() || !own.is_empty();
            // What is read behind a condition may hold nothing where that one does not hold.
            if part.vars().contains(lane) || (behind && part.reads_memory()) {
                differing.push(part);
            } else {
                moved |= behind;
                common.push(part);
            }
        }
        moved |= !differing.is_empty() && !common.is_empty();
        shared.extend(common.into_iter().reduce(Expr::and));
        own.extend(differing.into_iter().reduce(Expr::and));
        let [only] = plain(&[then_body]).try_into().ok()?;
        inner = only;
    }
    let conditions = shared.into_iter().chain(own).rev();
    moved.then(|| conditions.fold(inner, |body, cond| Stmt::guarded(cond, body)))
}

/// The parts of a conjunction.
fn conjuncts(cond: &Expr) -> Vec<Expr> {
    match cond {
        Expr::Binary(BinaryOp::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        _ => vec![cond.clone()],
    }
}

/// The lane that an iteration became, counted from 0.
pub(crate) fn lane_number(outer: &For) -> Expr {
    match outer.min.as_const_int() {
        Some(0) => Expr::from(&outer.var),
        _ => Expr::from(&outer.var) - outer.min.clone(),
    }
}

/// What has to hold of two iterations, one before the other: the way to both, and the conditions.
pub(crate) struct Apart {
    pub(crate) path: Path,
    pub(crate) goals: Vec<Expr>,
}

/// That the iterations of a loop do not see each other, `after` being one lane of the statement that it became.
///
/// # Errors
/// Why the loop cannot be lanes of one statement.
pub(crate) fn apart(outer: &For, after: &Stmt, path: &Path) -> Result<Apart, String> {
    if matches!(outer.kind, ForKind::ThreadBinding(_)) {
        return Err(format!("the loop over `{}` is bound to threads, its iterations are no lanes", outer.var));
    }
    let mut read = Vec::new();
    let body = under_conditions(&outer.body, &mut read);
    let Some(StmtKind::Store { buffer, indices, value }) = body.as_ref().map(|body| &body.kind) else {
        return Err(format!("the body of the loop over `{}` is not one store", outer.var));
    };
    if !value.dtype().is_scalar() {
        return Err(format!("the body of the loop over `{}` stores vectors already", outer.var));
    }
    read.extend(indices.iter().chain([value]).cloned());
    let Some(Stmt { kind: StmtKind::Store { indices: lanes, .. }, .. }) = single(after) else {
        return Err("no store".into());
    };
    let [first, second] = ["", "'"].map(|tick| Var::new(format!("{}{tick}", outer.var.name()), outer.var.dtype()));
    let at = |var: &Var, exprs: &[Expr]| {
        let substitution = Substitution::new([&outer.var], [Expr::from(var)]);
        exprs.iter().map(|expr| substitution.apply(expr)).collect::<Vec<_>>()
    };
    let mut path = path.clone();
    for var in [&first, &second] {
        path.steps.push(Step::Loop(var.clone(), outer.min.clone(), outer.extent.clone()));
    }
    path.steps.push(Step::Guard(Expr::from(&first).lt(Expr::from(&second)), true));
    let mut goals = vec![differ(&at(&first, &lanes), &at(&second, &lanes))];
    let mut faults = Vec::new();
    each_load(&read, &mut |other, index| {
        if !other.aliases(buffer) || (other == buffer && index == indices) {
            return;
        }
        if other != buffer {
            faults.push(format!("`{other}` is read and `{buffer}` written, which is the same memory in another shape"));
        }
        goals.push(differ(&at(&first, indices), &at(&second, index)));
    });
    faults.into_iter().next().map_or(Ok(Apart { path, goals }), Err)
}

/// Two indices of one buffer are not the same.
pub(crate) fn differ(a: &[Expr], b: &[Expr]) -> Expr {
    let pairs = a.iter().zip(b).filter(|(x, y)| x != y);
    let unequal = pairs.map(|(x, y)| Expr::binary(BinaryOp::Ne, x.clone(), y.clone()));
    unequal.reduce(|a, b| Expr::binary(BinaryOp::Or, a, b)).unwrap_or_else(|| Expr::bool(false))
}

fn each_load(exprs: &[Expr], visit: &mut impl FnMut(&Buffer, &[Expr])) {
    for expr in exprs {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices } = part {
                visit(buffer, indices);
            }
        });
    }
}

/// A store whose condition became a part of its value.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// The texture, in the program before.
    pub(crate) buffer: Buffer,
    /// The index of one lane.
    pub(crate) indices: Vec<Expr>,
    /// When the lane has a value.
    pub(crate) cond: Expr,
    /// The lane, one of the loops on the way.
    pub(crate) lane: Var,
}

/// Whether a buffer is a texture that the function allocates: only there may lanes be written that have no value.
pub(crate) fn is_scratch_texture(func: &PrimFunc, buffer: &Buffer) -> bool {
    let mut allocated = false;
    func.body.walk(&mut |stmt| {
        allocated |= matches!(&stmt.kind, StmtKind::Allocate { buffer: own, .. } if own.aliases(buffer));
    });
    allocated && buffer.scope.is_texture()
}

/// Why a gathered store is not the only one of its memory; none if it is.
pub(crate) fn other_store(func: &PrimFunc, gathered: &Gathered) -> Option<String> {
    let mut stores = 0;
    func.body.walk(&mut |stmt| {
        stores += usize::from(matches!(&stmt.kind, StmtKind::Store { buffer, .. } if buffer.aliases(&gathered.buffer)));
    });
    (stores != 1).then(|| format!("{stores} statements write `{}`, and one of them fills lanes", gathered.buffer))
}

/// A load of a gathered texture: it never reads a lane without a value.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    /// The load, and the way to it.
    pub(crate) load: Access,
    /// The way to the store, its variables different from those of the load.
    store: Path,
    /// The index of a lane of the store.
    indices: Vec<Expr>,
    /// When the lane has a value.
    cond: Expr,
}

/// What may read lanes without a value: each load of the memory in the program before. `path` is the way to the lanes.
///
/// # Errors
/// A load that sees the memory in another shape.
pub(crate) fn unread(func: &PrimFunc, gathered: &Gathered, path: &Path) -> Result<Vec<Unread>, String> {
    let (store, renames) = renamed(path);
    let indices: Vec<Expr> = gathered.indices.iter().map(|index| renames.apply(index)).collect();
    let cond = renames.apply(&gathered.cond);
    let mut found = Vec::new();
    for site in sites(func) {
        let mut reads = accesses(&site);
        if matches!(site.stmt.kind, StmtKind::Store { .. }) {
            reads.pop();
        }
        for load in reads.into_iter().filter(|load| load.buffer.aliases(&gathered.buffer)) {
            if load.buffer != gathered.buffer {
                return Err(format!("`{}` reads `{}` in another shape", load.buffer, gathered.buffer));
            }
            found.push(Unread { load, store: store.clone(), indices: indices.clone(), cond: cond.clone() });
        }
    }
    Ok(found)
}

/// The same way with variables of its own.
pub(crate) fn renamed(path: &Path) -> (Path, Substitution) {
    let mut renames = Substitution::default();
    let mut steps = Steps::default();
    let fresh = |var: &Var| Var::new(format!("{}'", var.name()), var.dtype());
    for step in &path.steps {
        steps.push(match step {
            Step::Loop(var, min, extent) => {
                let (min, extent, new) = (renames.apply(min), renames.apply(extent), fresh(var));
                renames.insert(var, Expr::from(&new));
                Step::Loop(new, min, extent)
            }
            Step::Let(var, value) => {
                let (value, new) = (renames.apply(value), fresh(var));
                renames.insert(var, Expr::from(&new));
                Step::Let(new, value)
            }
            Step::Guard(cond, holds) => Step::Guard(renames.apply(cond), *holds),
        });
    }
    (Path { steps, ..path.clone() }, renames)
}

/// Iterations of a way that are looked at for a counterexample.
const LOOKED_AT: usize = 4000;

impl Unread {
    /// Wherever the load reads what a lane writes, the lane has a value.
    pub(crate) fn decide(&self, judge: &Judge) -> Decision {
        if let Some(found) = self.found() {
            return (Verdict::Refuted(found), Method::Evaluation);
        }
        let mut names = Names::default();
        let mut question = judge.question(&mut names, &self.load.path.symbols);
        self.load.path.assume(&mut question, &mut names);
        names.next_statement();
        let read: Vec<_> = self.load.indices.iter().map(|index| names.term(index)).collect();
        // A loop that is an index by itself is that index of the load.
        let loops = self.store.loops();
        let mut bound: Vec<(&Var, &Expr)> = Vec::new();
        for ((index, term), at) in self.indices.iter().zip(&read).zip(&self.load.indices) {
            if let Expr::Var(var) = index
                && loops.contains(var)
                && !bound.iter().any(|(other, _)| *other == var)
            {
                names.bind(var, term.clone());
                bound.push((var, at));
            }
        }
        self.store.assume(&mut question, &mut names);
        names.next_statement();
        for (term, index) in read.iter().zip(&self.indices) {
            let written = names.term(index);
            if written != *term {
                question.assume(&term.equals(&written), "the load reads what the lane writes");
            }
        }
        let goal = names.prop(&self.cond);
        let from = question.steps().len();
        let result = question.settle(&goal);
        decide("goal", self.honest(result), &question, from, |model| {
            let mut bindings = bindings_of(&self.load.path, &mut names, model);
            let written = bindings_of(&self.store, &mut names, model);
            for var in loops {
                bindings.insert(var.clone(), *written.get(&var)?);
            }
            for (var, at) in bound {
                bindings.insert(var.clone(), at.eval_index(&bindings).ok()?);
            }
            let reached = self.load.path.admits(&bindings) && self.store.admits(&bindings);
            let met = values(&self.indices, &bindings)? == values(&self.load.indices, &bindings)?;
            let without = self.cond.eval_index(&bindings) == Ok(0);
            (reached && met && without).then(|| self.counterexample(&bindings))
        })
    }

    /// Where what is read decides what is reached, a model says nothing.
    fn honest(&self, result: Result<Grounds, Failure>) -> Result<Grounds, Failure> {
        let steps = self.load.path.steps.iter().chain(self.store.steps.iter());
        let open = steps.filter_map(|step| match step {
            Step::Guard(cond, _) | Step::Let(_, cond) => Some(cond),
            Step::Loop(..) => None,
        });
        let mut all = open.chain([&self.cond]).chain(&self.indices).chain(&self.load.indices);
        match result {
            Err(Failure::Refuted(_)) if all.any(Expr::reads_memory) => {
                let text = "values in memory decide whether a lane without a value is read";
                Err(Failure::NotShown(Reason::new(ReasonKind::Memory, text)))
            }
            result => result,
        }
    }

    /// A lane without a value that is read, on some small shape.
    fn found(&self) -> Option<Counterexample> {
        instances(&self.load.path.symbols).into_iter().find_map(|instance| {
            let mut without = HashSet::new();
            self.store.each_iteration(&instance, LOOKED_AT, &mut |bindings| {
                if self.cond.eval_index(bindings) == Ok(0) {
                    without.extend(values(&self.indices, bindings));
                }
                None::<()>
            });
            let read = self.load.path.each_iteration(&instance, LOOKED_AT, &mut |bindings| {
                let index = values(&self.load.indices, bindings)?;
                without.contains(&index).then(|| self.counterexample(bindings))
            });
            read.0
        })
    }

    fn counterexample(&self, bindings: &Bindings) -> Counterexample {
        let index = values(&self.load.indices, bindings).unwrap_or_default();
        let text = format!("`{}` reads {}, a lane that has no value", self.load.text, tuple(&index));
        at_point(&self.load.path, bindings, text)
    }
}

pub(crate) fn values(exprs: &[Expr], bindings: &Bindings) -> Option<Vec<i128>> {
    exprs.iter().map(|expr| expr.eval_index(bindings).ok()).collect()
}

/// Different iterations of all loops around a gathered store have different texels.
pub(crate) fn alone(judge: &Judge, path: &Path, gathered: &Gathered) -> Decision {
    let texel = &gathered.indices[..gathered.indices.len().saturating_sub(1)];
    let around: Vec<_> = path
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Loop(var, min, extent) if *var != gathered.lane => Some((var.clone(), min.clone(), extent.clone())),
            _ => None,
        })
        .collect();
    one_to_one(judge, (path, &[]), &around, texel, &gathered.buffer.shape)
}

/// Whether the map from some loops of a path (variable, first value, extent) to an index is injective. All else in the
/// index has to be the same in all iterations: extents and scalars of the call, and the variables `outside` the loops, of
/// which nothing is known.
pub(crate) fn one_to_one(
    judge: &Judge,
    (path, outside): (&Path, &[Var]),
    loops: &[(Var, Expr, Expr)],
    index: &[Expr],
    shape: &[Expr],
) -> Decision {
    let unknown = |reason: String| unsupported(reason);
    let vars: Vec<Var> = loops.iter().map(|(var, ..)| var.clone()).collect();
    let depends = |expr: &Expr| expr.vars().into_iter().find(|var| vars.contains(var));
    if let Some(var) = loops.iter().flat_map(|(_, min, extent)| [min, extent]).find_map(depends) {
        return unknown(format!("the extents of the loops depend on `{var}`"));
    }
    let from_zero = |(var, min, _): &(Var, Expr, Expr)| match min.as_const_int() {
        Some(0) => Expr::from(var),
        _ => Expr::from(var) + min.clone(),
    };
    let shifted = Substitution::new(&vars, loops.iter().map(from_zero));
    let outputs = index.iter().map(|index| shifted.apply(index)).collect();
    let domain: Vec<Expr> = loops.iter().map(|(.., extent)| extent.clone()).collect();
    if index.iter().chain(&domain).any(Expr::reads_memory) {
        return unknown("memory decides".to_owned());
    }
    let scalars = [path.scalars.as_slice(), outside].concat();
    let is_fixed = |var: &Var| vars.contains(var) || path.symbols.contains(var) || scalars.contains(var);
    if let Some(var) = index.iter().chain(&domain).flat_map(Expr::vars).find(|var| !is_fixed(var)) {
        return unknown(format!("`{var}` may differ from iteration to iteration"));
    }
    match IndexMap::new(vars.clone(), domain, outputs, Vec::new()) {
        Ok(map) => {
            let claim = MapClaim::new(&map, &shape[..index.len()]).scalars(&scalars);
            map::decide(judge, Obligation::Injective, claim)
        }
        Err(error) => unknown(error.to_string()),
    }
}
