//! What the statement of an instance does to memory: its stores and loads, and which of them `T.init` does.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Block, BlockAxis, BlockRegion, Buffer, Expr, Stmt, StmtKind, Var};

use super::declared;
use crate::access::Access;
use crate::path::Step;
use crate::reorder::is_small;

/// A store or a load in the statement of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Touched {
    pub(super) buffer: Buffer,
    pub(super) indices: Vec<Expr>,
    /// The loops of the statement around it: variable, first value and extent.
    pub(super) loops: Vec<(Var, Expr, Expr)>,
    /// Whether a condition of the statement may leave it out.
    pub(super) may_not_run: bool,
    /// Whether an index, or a loop, depends on a name that the statement gives to a value.
    pub(super) is_named: bool,
}

impl Touched {
    /// The indices, and the ranges of the loops around.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.indices.iter().chain(self.loops.iter().flat_map(|(_, min, extent)| [min, extent]))
    }

    /// Whether two accesses touch the same elements, one after the other: their loops have the same ranges, and their indices are the
    /// same in the same iteration.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let used = |touched: &Self| -> Vec<(Var, Expr, Expr)> {
            let vars: Vec<Var> = touched.indices.iter().flat_map(Expr::vars).collect();
            touched.loops.iter().filter(|(var, ..)| vars.contains(var)).cloned().collect()
        };
        let (ours, theirs) = (used(self), used(other));
        if self.buffer != other.buffer || ours.len() != theirs.len() {
            return false;
        }
        let mut renames = Substitution::default();
        for ((our, our_min, our_extent), (their, min, extent)) in ours.iter().zip(&theirs) {
            if our.dtype() != their.dtype() || renames.apply(min) != *our_min || renames.apply(extent) != *our_extent {
                return false;
            }
            renames.insert(their, Expr::from(our));
        }
        self.indices.len() == other.indices.len()
            && self.indices.iter().zip(&other.indices).all(|(one, two)| *one == renames.apply(two))
    }

    /// Whether the loops that the element does not depend on have an iteration.
    pub(super) fn runs_at_least_once(&self) -> bool {
        let is_used = |var: &Var| self.indices.iter().any(|index| index.vars().contains(var));
        self.loops.iter().all(|(var, _, extent)| is_used(var) || extent.as_const_int().is_some_and(|extent| extent > 0))
    }

    /// The place of each of these axes among the indices of the element, of which it is one as it is. `None` if an axis has none.
    pub(super) fn places<'b>(&self, axes: impl Iterator<Item = &'b BlockAxis>) -> Option<Vec<usize>> {
        let is_fixed = |axis: &&BlockAxis| axis.extent.as_const_int() == Some(1) && axis.min.as_const_int().is_some();
        let place = |axis: &BlockAxis| {
            self.indices.iter().position(|index| matches!(index, Expr::Var(own) if *own == axis.var))
        };
        axes.filter(|axis| !is_fixed(axis)).map(place).collect::<Option<_>>().filter(|_| !self.is_named)
    }
}

/// The loops, names and conditions around a part of the statement of an instance.
#[derive(Clone, Default)]
struct Around {
    pub(super) loops: Vec<(Var, Expr, Expr)>,
    /// The values of names, as far as they read no memory.
    names: Substitution,
    may_not_run: bool,
    /// Whether the part belongs to `T.init`.
    is_init: bool,
}

impl Around {
    /// What is around an access, from a step of its way on.
    pub(super) fn of(access: &Access, depth: usize) -> Self {
        let mut around = Self::default();
        for step in access.path.steps.iter().skip(depth) {
            match step {
                Step::Loop(var, min, extent) => around.enter(var, min, extent),
                Step::Let(var, value) => around.name(var, value),
                Step::Guard(..) => {}
            }
        }
        around
    }

    fn enter(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        let [min, extent] = [min, extent].map(|expr| self.names.apply(expr));
        self.loops.push((var.clone(), min, extent));
    }

    fn name(&mut self, var: &Var, value: &Expr) {
        let value = self.names.apply(value);
        if !value.reads_memory() && is_small(&value) {
            self.names.insert(var, value);
        }
    }

    pub(super) fn touched(&self, buffer: &Buffer, indices: &[Expr]) -> Touched {
        Touched {
            buffer: buffer.clone(),
            indices: indices.iter().map(|index| self.names.apply(index)).collect(),
            loops: self.loops.clone(),
            may_not_run: self.may_not_run,
            is_named: false,
        }
    }
}

/// What the statement of an instance does to memory that it does not declare itself.
#[derive(Default)]
pub(super) struct Work {
    /// The stores of `T.init`.
    pub(super) begun: Vec<Touched>,
    /// The loads of `T.init`.
    pub(super) begun_from: Vec<Touched>,
    pub(super) stores: Vec<Touched>,
    pub(super) loads: Vec<Touched>,
    /// Whether something is evaluated that is no store: what it reads and writes is not known.
    pub(super) has_calls: bool,
}

impl Work {
    /// What a statement does; what stands below `first`, the condition of the first instance of a sum, belongs to `T.init`.
    pub(super) fn of(body: &Stmt, first: Option<&Expr>) -> Self {
        let mut found = Self::default();
        let begin = first.and_then(|first| beginning(body, first));
        found.collect(body, begin, &Around::default());
        let mut names = Vec::new();
        body.walk(&mut |stmt| {
            if let StmtKind::Let { var, .. } = &stmt.kind {
                names.push(var.clone());
            }
        });
        let own = declared(body);
        for list in [&mut found.begun, &mut found.begun_from, &mut found.stores, &mut found.loads] {
            list.retain(|touched| !own.iter().any(|buffer| buffer.aliases(&touched.buffer)));
            for touched in list {
                let is_named = touched.exprs().flat_map(Expr::vars).any(|var| names.contains(&var));
                touched.is_named = is_named;
            }
        }
        found
    }

    fn collect(&mut self, stmt: &Stmt, begin: Option<&Stmt>, around: &Around) {
        let is_begin = begin.is_some_and(|begin| std::ptr::eq(begin, stmt));
        // A name in front of `T.init` is for both parts.
        let is_before = around.is_init || begin.is_some();
        // The condition of `T.init` reads nothing.
        if !is_begin {
            for expr in stmt.exprs() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, indices, .. } = part {
                        let list = if is_before { &mut self.begun_from } else { &mut self.loads };
                        list.push(around.touched(buffer, indices));
                    }
                });
            }
        }
        match &stmt.kind {
            StmtKind::Store { buffer, indices, .. } => {
                let list = if around.is_init { &mut self.begun } else { &mut self.stores };
                list.push(around.touched(buffer, indices));
            }
            StmtKind::Evaluate(expr) => self.has_calls |= expr.as_const_int().is_none(),
            StmtKind::For(inner) => {
                let mut inside = around.clone();
                inside.enter(&inner.var, &inner.min, &inner.extent);
                self.collect(&inner.body, None, &inside);
            }
            StmtKind::If { then_body, .. } if is_begin => {
                self.collect(then_body, None, &Around { is_init: true, ..around.clone() });
            }
            StmtKind::If { then_body, else_body, .. } => {
                for arm in std::iter::once(then_body).chain(else_body) {
                    self.collect(arm, None, &Around { may_not_run: true, ..around.clone() });
                }
            }
            StmtKind::Let { var, value, body } => {
                let mut inside = around.clone();
                inside.name(var, value);
                self.collect(body, begin, &inside);
            }
            _ => {
                for (at, child) in stmt.children().enumerate() {
                    self.collect(child, begin.filter(|_| at == 0), around);
                }
            }
        }
    }

    /// Whether `T.init` gives the element its first value.
    pub(super) fn is_begun(&self, touched: &Touched) -> bool {
        self.begun
            .iter()
            .any(|begun| !begun.may_not_run && !begun.is_named && begun.runs_at_least_once() && begun.is_same(touched))
    }

    /// All stores and loads.
    pub(super) fn touched(&self) -> impl Iterator<Item = &Touched> {
        self.written().chain(&self.begun_from).chain(&self.loads)
    }

    /// All stores.
    pub(super) fn written(&self) -> impl Iterator<Item = &Touched> {
        self.begun.iter().chain(&self.stores)
    }
}

/// What stands for `T.init`: the first statement, below the condition of the first instance of a sum.
pub(super) fn beginning<'s>(stmt: &'s Stmt, first: &Expr) -> Option<&'s Stmt> {
    match &stmt.kind {
        StmtKind::If { cond, else_body: None, .. } if cond == first => Some(stmt),
        StmtKind::If { .. } | StmtKind::For(_) => None,
        _ => stmt.children().next().and_then(|child| beginning(child, first)),
    }
}

/// Where an element that an instance reads has its value from.
pub(super) enum Origin {
    /// The instance has not written it.
    Outside,
    /// `T.init` has written it, in this instance or in the first one of the sum.
    Begun,
    /// `T.init` has written these elements, and no others.
    Elements(Vec<BlockRegion>),
    /// It is not known.
    Open,
}

/// The `T.init` of a block, or the condition that TVM's `LowerInitBlock` makes of it.
pub(super) struct Beginning<'s> {
    stmt: Option<&'s Stmt>,
    /// Whether the block has a `T.init`.
    is_declared: bool,
    work: Work,
}

impl<'s> Beginning<'s> {
    pub(super) fn of(body: &'s Stmt, block: &Block) -> Self {
        let first = block.is_first();
        let stmt = first.as_ref().and_then(|first| beginning(body, first));
        Self { stmt, is_declared: block.has_init, work: Work::of(body, first.as_ref()) }
    }

    /// Where an element has its value from that a statement reads, whose way has so many steps in front of the block.
    pub(super) fn origin(&self, stmt: &Stmt, access: &Access, depth: usize) -> Origin {
        let is_after = |begin: &&Stmt| !is_part(stmt, begin) && !is_part(begin, stmt);
        let is_stored = || self.work.written().any(|store| store.buffer.aliases(&access.buffer));
        match self.stmt.filter(is_after) {
            Some(_) if self.work.is_begun(&Around::of(access, depth).touched(&access.buffer, &access.indices)) => {
                Origin::Begun
            }
            Some(_) => self.elements(&access.buffer).map_or(Origin::Open, Origin::Elements),
            None if (self.is_declared || self.stmt.is_some()) && is_stored() => Origin::Open,
            None => Origin::Outside,
        }
    }

    /// The elements of a buffer that `T.init` has written, if these are known.
    fn elements(&self, buffer: &Buffer) -> Option<Vec<BlockRegion>> {
        let begun = self.work.begun.iter().filter(|begun| begun.buffer.aliases(buffer));
        let element = |begun: &Touched| {
            let is_known = begun.buffer == *buffer && begun.loops.is_empty() && !begun.may_not_run && !begun.is_named;
            let one = |index: &Expr| (index.clone(), Expr::int(1));
            is_known.then(|| BlockRegion { buffer: buffer.clone(), ranges: begun.indices.iter().map(one).collect() })
        };
        begun.map(element).collect()
    }
}

/// Whether a statement is a part of another one.
pub(super) fn is_part(part: &Stmt, whole: &Stmt) -> bool {
    let mut found = false;
    whole.walk(&mut |stmt| found |= std::ptr::eq(stmt, part));
    found
}
