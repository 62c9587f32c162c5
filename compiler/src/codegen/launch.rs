//! Launch geometry: which loops become axes of a launch, and what has to wait for what.
//!
//! `blockIdx` is the work-group, `threadIdx` the work-item in it; x, y and z are dimensions 0, 1 and 2. Outside of the loops over
//! threads, statements run in order. If work-items of one group have to wait for each other between statements, a
//! barrier is written. Groups cannot wait for each other, so a program that needs this has to be several kernels (`host_loops`), or
//! is refused.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::sabotage;
use tilewright_ir::{Diagnostic, Expr, For, ForKind, Stmt, StmtKind, ThreadTag, Var};

use super::code::SUM;
use super::range::constant;
use super::target::{Refusal, Target, Words};
use super::writer::Writer;

/// How the loops of one kernel are spread over work-items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launching {
    /// Explicitly bound axes and their extents.
    pub(crate) extents: BTreeMap<ThreadTag, Expr>,
    /// Variables of loops that the code generator binds on its own, and the C expression of their iteration.
    pub(crate) automatic: Vec<(Var, String)>,
    /// Whether work-items may touch each other's elements, so that the order of statements matters between them.
    pub(crate) is_ordered: bool,
    /// Whether work-items may write the same texel: no barrier orders that.
    pub(crate) shares_texels: bool,
    /// Local memory of which each work-item touches elements of its own, wherever it is allocated.
    pub(crate) kept: BTreeSet<Var>,
    /// Variables that differ between the work-items of a group.
    pub(crate) thread_vars: BTreeSet<Var>,
}

/// The loops bound to launch axes in a statement.
pub(crate) fn bound_loops(stmt: &Stmt) -> Vec<(&For, ThreadTag)> {
    let mut found = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind
            && let ForKind::ThreadBinding(tag) = inner.kind
        {
            found.push((&**inner, tag));
        }
    });
    found
}

/// Returns the extent of each bound axis of a kernel: the greatest one if several loops are bound to the axis.
///
/// # Errors
/// Extents that are not known at the launch, or symbolic ones that differ.
pub(crate) fn extents(
    target: &Target,
    nest: &Stmt,
    known: &BTreeSet<Var>,
) -> Result<BTreeMap<ThreadTag, Expr>, Diagnostic> {
    let code = || target.dialect.code(Refusal::LaunchExtent);
    let mut extents: BTreeMap<ThreadTag, Expr> = BTreeMap::new();
    for (inner, tag) in bound_loops(nest) {
        let is_known = inner.extent.vars().iter().all(|var| known.contains(var)) && !inner.extent.reads_memory();
        if !is_known {
            let message =
                format!("the extent `{}` of `{}` on {tag} is not known at the launch", inner.extent, inner.var);
            return Err(Diagnostic::error(code(), nest.span, message)
                .with_help("it may use constants, symbolic extents and scalar parameters only"));
        }
        // Two loops on one axis run in one launch: as many work-items as the longer one has, and a guard around the other.
        let Some(other) = extents.get(&tag) else {
            extents.insert(tag, inner.extent.clone());
            continue;
        };
        match (constant(other), constant(&inner.extent)) {
            (Some(a), Some(b)) if b > a => {
                extents.insert(tag, inner.extent.clone());
            }
            (Some(_), Some(_)) => {}
            _ if *other == inner.extent => {}
            _ => {
                let message = format!("two loops on {tag} have the extents `{other}` and `{}`", inner.extent);
                return Err(Diagnostic::error(code(), nest.span, message)
                    .with_help("symbolic extents of loops on one axis have to be the same"));
            }
        }
    }
    Ok(extents)
}

impl Launching {
    /// Returns whether `bound`, the axes bound by the loops around a statement, is every axis of the launch.
    pub(crate) fn all_bound(&self, bound: &BTreeSet<ThreadTag>) -> bool {
        self.extents.keys().all(|tag| bound.contains(tag))
    }

    /// Returns whether a statement contains bound loops.
    pub(crate) fn binds_inside(&self, stmt: &Stmt) -> bool {
        !self.extents.is_empty() && !bound_loops(stmt).is_empty()
    }

    /// Returns the C expression of the iteration of a loop that the code generator bound; `None` for other loops.
    pub(crate) fn automatic_axis(&self, var: &Var) -> Option<String> {
        self.automatic.iter().find(|(known, _)| known == var).map(|(_, text)| text.clone())
    }
}

/// The C expression of a launch axis. There are three of each kind.
fn axis_id(words: &Words, tag: ThreadTag) -> &'static str {
    match tag {
        ThreadTag::Block(axis) => words.group_id[usize::from(axis)],
        ThreadTag::Thread(axis) => words.local_id[usize::from(axis)],
    }
}

impl Writer {
    /// A loop that a launch axis runs.
    pub(crate) fn bound_loop(&mut self, inner: &For, tag: ThreadTag) -> Result<(), Diagnostic> {
        if !self.bound.insert(tag) {
            return Err(
                self.error(Refusal::BoundTwice, format!("`{}` binds {tag}, which a loop around it binds", inner.var))
            );
        }
        self.iteration(inner, axis_id(&self.target.words, tag))?;
        if matches!(tag, ThreadTag::Thread(_)) {
            self.launch.thread_vars.insert(inner.var.clone());
        }
        let outer = self.divergent;
        let is_partial = self.launch.extents.get(&tag) != Some(&inner.extent);
        let is_block = matches!(tag, ThreadTag::Block(_));
        if is_partial && is_block && !self.divergent && self.waits(&inner.body) {
            let extent = self.index(&inner.extent)?;
            let flag = self.flag("taken", &format!("{} < {}", axis_id(&self.target.words, tag), extent.within(SUM)));
            self.below(Some(flag), |writer| writer.stmt(&inner.body))?;
        } else if is_partial {
            self.divergent |= !is_block;
            let extent = self.index(&inner.extent)?;
            self.open(&format!("if ({} < {})", axis_id(&self.target.words, tag), extent.text));
            self.stmt(&inner.body)?;
            self.close();
        } else {
            self.stmt(&inner.body)?;
        }
        self.divergent = outer;
        self.bound.remove(&tag);
        Ok(())
    }

    /// A loop of which every work-item runs one iteration.
    pub(crate) fn automatic_loop(&mut self, inner: &For, axis: &str) -> Result<(), Diagnostic> {
        self.iteration(inner, axis)?;
        self.stmt(&inner.body)
    }

    /// Declares the variable of a loop that a launch runs.
    fn iteration(&mut self, inner: &For, axis: &str) -> Result<(), Diagnostic> {
        let min = self.index(&inner.min)?;
        self.ranges.insert_loop(&inner.var, &inner.min, &inner.extent);
        let name = self.declare(&inner.var);
        let ty = self.dialect().value_name(inner.var.dtype());
        let start = if min.text == "0" { String::new() } else { format!("{} + ", min.within(12)) };
        self.line(&format!("const {ty} {name} = {start}({ty}){axis};"));
        Ok(())
    }

    /// Returns whether a value may differ between the work-items of a group.
    pub(crate) fn may_diverge(&self, expr: &Expr) -> bool {
        expr.reads_memory() || expr.vars().iter().any(|var| self.launch.thread_vars.contains(var))
    }

    /// Writes a statement that the program runs once for all values of the launch axes that no loop around it binds:
    /// work-item 0 of these axes runs it.
    pub(crate) fn single(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Diagnostic>) -> Result<(), Diagnostic> {
        let missing: Vec<_> = self.launch.extents.keys().filter(|tag| !self.bound.contains(tag)).copied().collect();
        if missing.is_empty() {
            return write(self);
        }
        let first: Vec<_> = missing.iter().map(|&tag| format!("{} == 0", axis_id(&self.target.words, tag))).collect();
        self.open(&format!("if ({})", first.join(" && ")));
        write(self)?;
        self.close();
        Ok(())
    }

    /// Writes a barrier between two statements if work-items may touch each other's elements.
    ///
    /// # Errors
    /// The statements need an order that a barrier does not give: between groups, below a condition on which the work-items
    /// of a group may disagree, or between writes of the same texel.
    pub(crate) fn synchronise(&mut self) -> Result<(), Diagnostic> {
        // Below all bound loops a work-item runs its own iteration, and the iterations of bound loops are concurrent.
        if !self.launch.is_ordered || self.launch.all_bound(&self.bound) {
            return Ok(());
        }
        let mut missing = self.launch.extents.keys().filter(|tag| !self.bound.contains(tag));
        let help = "bind the loop outside of the statements, or put them into nests of their own";
        if missing.any(|tag| matches!(tag, ThreadTag::Block(_))) {
            self.groups_wait = true;
            let message = "work-groups would have to wait for each other between these statements";
            return Err(self.error(Refusal::Order, message).with_help(help));
        }
        // A barrier that not every work-item of the group reaches is undefined behaviour.
        if self.divergent {
            let message = "work-items would have to wait for others that do not reach this place";
            return Err(self.error(Refusal::Order, message).with_help(help));
        }
        if self.launch.shares_texels {
            let message = format!(
                "work-items would write the same texel one after the other, and {} keeps no such order",
                self.target.version
            );
            return Err(self.error(Refusal::Order, message).with_help(help));
        }
        if !sabotage::on("kernel-forgets-barrier") {
            let words = &self.target.words;
            self.line(if self.local_arrays.is_empty() { words.barrier } else { words.full_barrier });
        }
        Ok(())
    }

    /// Writes a barrier of the program.
    ///
    /// # Errors
    /// The work-items of a group may disagree on whether they get here.
    pub(crate) fn barrier(&mut self) -> Result<(), Diagnostic> {
        if self.divergent {
            let message = "not every work-item of the group gets to this barrier";
            let help = "move the barrier out of conditions and loops that depend on threadIdx or on memory";
            return Err(self.error(Refusal::Order, message).with_help(help));
        }
        if !sabotage::on("kernel-drops-written-barrier") {
            self.line(self.target.words.full_barrier);
        }
        Ok(())
    }
}
