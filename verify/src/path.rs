//! The way to a statement: the loops, bindings, guards and assertions under which it runs.

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Bindings, Expr, For, PrimFunc, Stmt, StmtKind, UnaryOp, Var};

use crate::concrete::instances;
use crate::prove::Prover;
use crate::steps::Steps;
use crate::translate::Names;

/// One step of the way.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A loop.
    Loop(Var, Expr, Expr),
    /// A name for a value.
    Let(Var, Expr),
    /// A condition that holds, or one that does not.
    Guard(Expr, bool),
}

/// The way from the start of a function, outermost first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The symbolic extents: at least 1.
    pub symbols: Vec<Var>,
    /// Integers of the call that are no extents: any value of their type.
    pub scalars: Vec<Var>,
    /// The steps, shared with the paths that begin alike.
    pub steps: Steps,
}

impl Path {
    /// The start of a function.
    pub fn of(func: &PrimFunc) -> Self {
        Self { symbols: func.extents(), scalars: func.scalars(), steps: Steps::default() }
    }

    /// The way into a loop.
    pub fn enter(&mut self, inner: &For) {
        self.steps.push(Step::Loop(inner.var.clone(), inner.min.clone(), inner.extent.clone()));
    }

    /// The variables of the loops, outermost first.
    pub fn loops(&self) -> Vec<Var> {
        let of = |step: &Step| if let Step::Loop(var, ..) = step { Some(var.clone()) } else { None };
        self.steps.iter().filter_map(of).collect()
    }

    /// Assumes the steps as premises.
    pub fn assume(&self, prover: &mut Prover<'_>, names: &mut Names) {
        for scalar in &self.scalars {
            let term = names.var(scalar);
            if let Some((low, high)) = scalar.dtype().scalar.integer_range() {
                prover.assume(&term.at_least(low).and(term.at_most(high)), "a parameter of this type");
            }
        }
        for step in &self.steps {
            // What a step reads may change before the next one does; no later load is the same.
            names.next_statement();
            match step {
                Step::Loop(var, min, extent) => {
                    let term = names.var(var);
                    prover.index(term.free_symbols());
                    let (min, extent) = (names.term(min), names.term(extent));
                    prover.assume(&term.at_least(&min).and(term.less(&min + &extent)), "an iteration of the loop");
                }
                // A value that is read may have wrapped on its way: nothing is known of it.
                Step::Let(_, value) if value.reads_memory() => {}
                Step::Let(var, value) => {
                    let value = names.term(value);
                    names.bind(var, value);
                }
                Step::Guard(cond, holds) => {
                    for (part, holds) in premises(cond, *holds) {
                        let part = names.prop(&part);
                        prover.assume(&if holds { part } else { part.negate() }, "a condition on the way");
                    }
                }
            }
        }
    }

    /// Concrete iterations that reach the end of the way, at most `limit` an instance of the shapes: all loops at their
    /// first, all at their last iteration, then mixtures. Where a guard reads memory nobody knows, and nothing is sampled.
    pub fn samples(&self, limit: usize) -> Vec<Bindings> {
        let mut found = Vec::new();
        let instances = instances(&self.symbols);
        let each = limit.div_ceil(instances.len().max(1)).max(24);
        for mut instance in instances {
            self.give_scalars(&mut instance);
            found.extend((0..each).filter_map(|attempt| self.attempt(attempt, instance.clone())));
        }
        found
    }

    /// Whether one of a few concrete executions gets to the end of the way.
    pub fn is_reached(&self) -> bool {
        instances(&self.symbols).into_iter().any(|mut instance| {
            self.give_scalars(&mut instance);
            (0..24).any(|attempt| self.attempt(attempt, instance.clone()).is_some())
        })
    }

    fn give_scalars(&self, bindings: &mut Bindings) {
        for (position, scalar) in self.scalars.iter().enumerate() {
            let (low, high) = scalar.dtype().scalar.integer_range().unwrap_or((0, 3));
            bindings.insert(scalar.clone(), [1, 3, 0, 2][position % 4].clamp(low, high));
        }
    }

    /// Walks the way once with the iterations that the number of the attempt chooses.
    fn attempt(&self, attempt: usize, mut bindings: Bindings) -> Option<Bindings> {
        let mut state = (attempt as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for step in &self.steps {
            match step {
                Step::Let(var, value) => {
                    if let Ok(value) = value.eval_index(&bindings) {
                        bindings.insert(var.clone(), value);
                    }
                }
                Step::Guard(cond, holds) => {
                    if (cond.eval_index(&bindings).ok()? != 0) != *holds {
                        return None;
                    }
                }
                Step::Loop(var, min, extent) => {
                    let (min, extent) = (min.eval_index(&bindings).ok()?, extent.eval_index(&bindings).ok()?);
                    if extent <= 0 {
                        return None;
                    }
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let offset = match (attempt, state >> 61) {
                        (0, _) | (2.., 0) => 0,
                        (1, _) | (2.., 1) => extent - 1,
                        (2.., 2) => 1.min(extent - 1),
                        _ => i128::from(state >> 20).rem_euclid(extent),
                    };
                    bindings.insert(var.clone(), min + offset);
                }
            }
        }
        Some(bindings)
    }

    /// Calls `visit` at the end of the way for one iteration after the other, from those with the first values on, until it
    /// finds something or `limit` iterations of loops were begun. What is found, and whether nothing was left out: where a
    /// guard reads memory nobody knows, and nothing is visited.
    pub(crate) fn each_iteration<T>(
        &self,
        symbols: &Bindings,
        limit: usize,
        visit: &mut impl FnMut(&Bindings) -> Option<T>,
    ) -> (Option<T>, bool) {
        let mut bindings = symbols.clone();
        self.give_scalars(&mut bindings);
        let mut walk = Walk { left: limit, complete: self.scalars.is_empty() };
        let found = walk.steps(self.steps.iter().as_slice(), &mut bindings, visit);
        (found, walk.complete)
    }

    /// The expressions on the way.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.steps.iter().flat_map(|step| match step {
            Step::Loop(_, min, extent) => vec![min, extent],
            Step::Let(_, value) | Step::Guard(value, _) => vec![value],
        })
    }

    /// Whether something that is read decides who gets to the end of the way, or with which values.
    pub(crate) fn asks_memory(&self) -> bool {
        self.exprs().any(Expr::reads_memory)
    }

    /// Whether concrete values are an execution of this way: every loop and guard agrees.
    pub fn admits(&self, bindings: &Bindings) -> bool {
        let mut bindings = bindings.clone();
        self.steps.iter().all(|step| match step {
            Step::Let(var, value) => {
                if let Ok(value) = value.eval_index(&bindings) {
                    bindings.insert(var.clone(), value);
                }
                true
            }
            Step::Guard(cond, holds) => cond.eval_index(&bindings).is_ok_and(|value| (value != 0) == *holds),
            Step::Loop(var, min, extent) => {
                let range = min.eval_index(&bindings).and_then(|min| Ok((min, extent.eval_index(&bindings)?)));
                let value = bindings.get(var).copied();
                range.is_ok_and(|(min, extent)| value.is_some_and(|value| (min..min + extent).contains(&value)))
            }
        })
    }

    /// The values of the symbols, and of the loops, by name.
    pub fn describe(&self, bindings: &Bindings) -> (Named, Named) {
        let named = |vars: &[Var]| {
            let value = |var: &Var| bindings.get(var).map(|&value| (var.name().to_owned(), value));
            vars.iter().filter_map(value).collect::<Vec<_>>()
        };
        let mut others = named(&self.scalars);
        others.extend(named(&self.loops()));
        (named(&self.symbols), others)
    }
}

/// Iterations one after the other.
struct Walk {
    /// Iterations that may still be begun.
    left: usize,
    /// Whether all were visited so far.
    complete: bool,
}

impl Walk {
    /// The rest of a way.
    fn steps<T>(
        &mut self,
        steps: &[&Step],
        bindings: &mut Bindings,
        visit: &mut impl FnMut(&Bindings) -> Option<T>,
    ) -> Option<T> {
        let Some((step, rest)) = steps.split_first() else { return visit(bindings) };
        match step {
            Step::Let(var, value) => {
                match value.eval_index(bindings) {
                    Ok(value) => drop(bindings.insert(var.clone(), value)),
                    Err(_) => drop(bindings.remove(var)),
                }
                self.steps(rest, bindings, visit)
            }
            Step::Guard(cond, holds) => match cond.eval_index(bindings) {
                Ok(value) if (value != 0) == *holds => self.steps(rest, bindings, visit),
                Ok(_) => None,
                Err(_) => {
                    self.complete = false;
                    None
                }
            },
            Step::Loop(var, min, extent) => {
                let (Ok(min), Ok(extent)) = (min.eval_index(bindings), extent.eval_index(bindings)) else {
                    self.complete = false;
                    return None;
                };
                for value in min..min.saturating_add(extent) {
                    if self.left == 0 {
                        self.complete = false;
                        return None;
                    }
                    self.left -= 1;
                    bindings.insert(var.clone(), value);
                    if let Some(found) = self.steps(rest, bindings, visit) {
                        return Some(found);
                    }
                }
                None
            }
        }
    }
}

/// What a condition says without reading memory: parts of it that hold, or do not. What is read may change before it
/// matters and may have wrapped, so it is no premise.
pub(crate) fn premises(cond: &Expr, holds: bool) -> Vec<(Expr, bool)> {
    match cond {
        Expr::Unary(UnaryOp::Not, inner) => premises(inner, !holds),
        Expr::Binary(BinaryOp::And, a, b) if holds => [premises(a, true), premises(b, true)].concat(),
        Expr::Binary(BinaryOp::Or, a, b) if !holds => [premises(a, false), premises(b, false)].concat(),
        _ if cond.reads_memory() => Vec::new(),
        _ => vec![(cond.clone(), holds)],
    }
}

/// Values by name.
pub type Named = Vec<(String, i128)>;

/// A statement together with the way to it.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// The statement: a store, an evaluation, a loop head, a condition.
    pub stmt: &'a Stmt,
    /// The way to it.
    pub path: Path,
}

/// Every statement of a function that evaluates anything, in program order.
pub fn sites(func: &PrimFunc) -> Vec<Site<'_>> {
    let mut found = Vec::new();
    let mut path = Path::of(func);
    collect(&func.body, &mut path, &mut found);
    found
}

/// [`sites`] of one statement at the end of a way.
pub(crate) fn sites_in<'a>(stmt: &'a Stmt, path: &Path) -> Vec<Site<'a>> {
    let mut found = Vec::new();
    collect(stmt, &mut path.clone(), &mut found);
    found
}

fn collect<'a>(stmt: &'a Stmt, path: &mut Path, found: &mut Vec<Site<'a>>) {
    if !stmt.exprs().is_empty() {
        found.push(Site { stmt, path: path.clone() });
    }
    let depth = path.steps.len();
    match &stmt.kind {
        StmtKind::For(inner) => {
            path.enter(inner);
            collect(&inner.body, path, found);
        }
        StmtKind::Let { var, value, body } => {
            path.steps.push(Step::Let(var.clone(), value.clone()));
            collect(body, path, found);
        }
        StmtKind::If { cond, then_body, else_body } => {
            path.steps.push(Step::Guard(cond.clone(), true));
            collect(then_body, path, found);
            path.steps.truncate(depth);
            if let Some(else_body) = else_body {
                path.steps.push(Step::Guard(cond.clone(), sabotage::on("else-is-not-negated")));
                collect(else_body, path, found);
            }
        }
        StmtKind::Seq(stmts) => {
            for stmt in stmts.iter() {
                collect(stmt, path, found);
                // What was asserted holds for the statements that follow.
                if let StmtKind::Assert { cond, .. } = &stmt.kind {
                    path.steps.push(Step::Guard(cond.clone(), true));
                }
            }
        }
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
            collect(body, path, found);
        }
        StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Assert { .. } => {}
    }
    path.steps.truncate(depth);
}
