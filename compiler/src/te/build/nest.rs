//! One stage's loops: where a store stands in them, what its axes are there, and which guards it needs.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, DataType, Diagnostic, Expr, ForKind, SharedExpr, Stmt, Var, sabotage};

use super::arith::cast;
use super::stage::{Relation, StageData};
use super::{Built, maps};
use tilewright_algebra::negate;

/// The loops of a stage, with the variables of those that two stores may share.
pub(super) struct Nest<'s> {
    stage: &'s StageData,
    vars: Vec<Var>,
}

/// The site of a store inside some loops of a stage.
pub(super) struct Site {
    /// Loop and its variable, outermost first.
    pub(super) loops: Vec<(usize, Var)>,
    ranges: Vec<(Var, Expr)>,
    /// The condition under which the axes are inside their extents, if they are not always.
    pub(super) guard: Option<Expr>,
    /// The axes in terms of the loop variables.
    pub(super) axes: Vec<Expr>,
    /// The loop variables in terms of the axes, from [`forward`]: evidence that every element is visited once.
    pub(super) inverse: Vec<(Var, Expr)>,
}

impl<'s> Nest<'s> {
    /// Creates the nest of a stage.
    ///
    /// # Errors
    /// A vectorized loop with another loop inside.
    pub(super) fn new(stage: &'s StageData) -> Built<Self> {
        for (position, &leaf) in stage.leaves.iter().enumerate() {
            let run = &stage.loops[leaf];
            if run.kind == ForKind::Vectorized && position + 1 != stage.leaves.len() {
                let inner = &stage.loops[stage.leaves[position + 1]].name;
                let message = format!("`{}` is vectorized, but the loop `{inner}` is inside it", run.name);
                return Err(Diagnostic::error("vectorize-inner", run.kind_place, message)
                    .with_help("reorder the loops so that the vectorized one is innermost"));
            }
        }
        let vars = stage.loops.iter().map(|run| Var::new(run.name.as_str(), run.extent.dtype())).collect();
        Ok(Self { stage, vars })
    }

    /// Returns the number of loops outside the first reduced one. The store of the identity and the store that combines
    /// share these loops.
    pub(super) fn first_reduction(&self) -> usize {
        let leaves = &self.stage.leaves;
        if sabotage::on("te-starts-too-deep") {
            return leaves.len();
        }
        leaves.iter().position(|&leaf| self.stage.loops[leaf].reduce).unwrap_or(leaves.len())
    }

    /// Returns the site inside all loops. `axis_vars` stand for the axes of the tensor and the reduced axes.
    pub(super) fn all(&self, axis_vars: &[Var]) -> Site {
        let loops = self.stage.leaves.iter().map(|&leaf| (leaf, self.vars[leaf].clone())).collect();
        let roots: Vec<usize> = self.stage.roots.iter().chain(&self.stage.reduced).copied().collect();
        self.site(loops, &roots, axis_vars)
    }

    /// Returns the site inside the loops over the axes of the tensor only. Loops inside the first reduced one get fresh
    /// variables, because the site inside all loops binds the variables of the stage.
    pub(super) fn spatial(&self, axis_vars: &[Var]) -> Site {
        let shared = self.first_reduction();
        let spatial = self.stage.leaves.iter().enumerate().filter(|(_, leaf)| !self.stage.loops[**leaf].reduce);
        let loops = spatial
            .map(|(position, &leaf)| {
                let var = &self.vars[leaf];
                let suffix = if self.stage.names_init { "_init" } else { "" };
                let own = || Var::new(format!("{}{suffix}", var.name()), var.dtype());
                (leaf, if position < shared { var.clone() } else { own() })
            })
            .collect();
        self.site(loops, &self.stage.roots, axis_vars)
    }

    /// Returns the site inside the reduced loops alone. `axis_vars` stand for the reduced axes.
    pub(super) fn reduction(&self, axis_vars: &[Var]) -> Site {
        let reduced = self.stage.leaves.iter().filter(|leaf| self.stage.loops[**leaf].reduce);
        let loops = reduced.map(|&leaf| (leaf, self.vars[leaf].clone())).collect();
        self.site(loops, &self.stage.reduced, axis_vars)
    }

    /// Returns the site of a store inside `loops`: the values of the axes of `roots` there, and the guard under which they
    /// are inside their extents.
    fn site(&self, loops: Vec<(usize, Var)>, roots: &[usize], axis_vars: &[Var]) -> Site {
        let stage = self.stage;
        let ranges: Vec<(Var, Expr)> =
            loops.iter().map(|(leaf, var)| (var.clone(), stage.loops[*leaf].extent.clone())).collect();
        let mut values: Vec<Option<Expr>> = vec![None; stage.loops.len()];
        for (leaf, var) in &loops {
            values[*leaf] = Some(Expr::from(var));
        }
        let guards = backward(stage, &mut values);
        let guard = guards
            .into_iter()
            .map(|guard| maps::simplify(&guard, &ranges))
            .filter(|guard| guard.as_const_int() != Some(1))
            .reduce(Expr::and);
        let axes = roots
            .iter()
            .map(|&root| values[root].as_ref().map_or_else(|| Expr::int(0), |value| maps::simplify(value, &ranges)))
            .collect();
        let inverse = forward(stage, &loops, roots, axis_vars);
        Site { loops, ranges, guard, axes, inverse }
    }

    /// The loops of a site from the one at `from` on, around its store.
    pub(super) fn wrap(&self, body: Stmt, from: usize, site: &Site) -> Stmt {
        self.wrap_loops(body, &site.loops[from.min(site.loops.len())..])
    }

    /// The loops of a site before the one at `until`, around the statements that share them.
    pub(super) fn wrap_shared(&self, body: Stmt, until: usize, site: &Site) -> Stmt {
        self.wrap_loops(body, &site.loops[..until.min(site.loops.len())])
    }

    /// Loops around a statement, the last one innermost.
    fn wrap_loops(&self, body: Stmt, loops: &[(usize, Var)]) -> Stmt {
        loops.iter().rev().fold(body, |body, (leaf, var)| {
            let run = &self.stage.loops[*leaf];
            // The step `allreduce` binds a reduced loop to threads.
            let is_reduced_at_once = run.reduce && matches!(run.kind, ForKind::ThreadBinding(_));
            let kind = if is_reduced_at_once { ForKind::Serial } else { run.kind };
            let mut stmt = Stmt::for_loop(var, run.extent.clone(), kind, body);
            if let tilewright_ir::StmtKind::For(inner) = &mut stmt.kind {
                Arc::make_mut(inner).annotations.clone_from(&run.annotations);
            }
            stmt
        })
    }
}

/// Computes the values of replaced loops from the loops that replaced them, and returns the guards, outermost relation
/// first.
///
/// Relations are undone from the last to the first: the leaves have values, and each relation gives values to the loops
/// that it replaced. A relation is skipped if one of its loops has no value, such as a reduced loop at a site outside the
/// reduction.
fn backward(stage: &StageData, values: &mut [Option<Expr>]) -> Vec<Expr> {
    let mut guards = Vec::new();
    for relation in stage.relations.iter().rev() {
        match relation {
            Relation::Split { parent, outer, inner, factor, exact, by: _ } => {
                let (Some(high), Some(low)) = (&values[*outer], &values[*inner]) else { continue };
                let value = if sabotage::on("te-split-commutes") {
                    low.clone() + high.clone() * factor.clone()
                } else {
                    high.clone() * factor.clone() + low.clone()
                };
                // The factor may not divide the extent; then the last outer iteration runs beyond it.
                let extent = stage.loops[*parent].extent.clone();
                if sabotage::on("te-guard-one-late") && !exact {
                    guards.push(value.clone().lt(extent + Expr::int(1)));
                } else if !exact && !sabotage::on("te-split-unguarded") {
                    guards.push(value.clone().lt(extent));
                }
                values[*parent] = Some(value);
            }
            Relation::Fuse { outer, inner, fused } => {
                let Some(value) = &values[*fused] else { continue };
                // The fused extent is an `int64` if one of the two is: divide in that type, then return to the types of the
                // loops.
                let (extent, value) = (in_type(&stage.loops[*inner].extent, value.dtype()), value.clone());
                let narrow = |value: Expr, at: usize| in_type(&value, stage.loops[at].extent.dtype());
                let (mut high, mut low) = (value.clone().floor_div(extent.clone()), value.floor_mod(extent));
                if sabotage::on("te-fuse-swapped") {
                    std::mem::swap(&mut high, &mut low);
                }
                values[*outer] = Some(narrow(high, *outer));
                values[*inner] = Some(narrow(low, *inner));
            }
            Relation::Layout { from, to, inverse, .. } => {
                let Some(physical) = to.iter().map(|&at| values[at].clone()).collect::<Option<Vec<_>>>() else {
                    continue;
                };
                let substitution = Substitution::new(&inverse.vars, physical);
                let reached = negate(&inverse.padding);
                guards.extend((reached != Expr::bool(true)).then(|| substitution.apply(&reached)));
                for (&at, output) in from.iter().zip(&inverse.outputs) {
                    values[at] = Some(in_type(&substitution.apply(output), stage.loops[at].extent.dtype()));
                }
            }
        }
    }
    guards.reverse();
    guards
}

/// Returns the loop variables in terms of the axes: the inverse direction of [`backward`].
fn forward(stage: &StageData, loops: &[(usize, Var)], roots: &[usize], axis_vars: &[Var]) -> Vec<(Var, Expr)> {
    let mut values: Vec<Option<Expr>> = vec![None; stage.loops.len()];
    let mut ranges = Vec::new();
    for (&root, var) in roots.iter().zip(axis_vars) {
        values[root] = Some(Expr::from(var));
        ranges.push((var.clone(), stage.loops[root].extent.clone()));
    }
    // In the order in which they were made: a relation replaces axes, or loops that an earlier relation made.
    for relation in &stage.relations {
        match relation {
            Relation::Split { parent, outer, inner, factor, .. } => {
                let Some(value) = values[*parent].clone() else { continue };
                values[*outer] = Some(value.clone().floor_div(factor.clone()));
                values[*inner] = Some(value.floor_mod(factor.clone()));
            }
            Relation::Fuse { outer, inner, fused } => {
                let (Some(high), Some(low)) = (&values[*outer], &values[*inner]) else { continue };
                let ty = stage.loops[*fused].extent.dtype();
                let extent = in_type(&stage.loops[*inner].extent, ty);
                values[*fused] = Some(in_type(high, ty) * extent + in_type(low, ty));
            }
            Relation::Layout { from, to, map, .. } => {
                let Some(logical) = from.iter().map(|&at| values[at].clone()).collect::<Option<Vec<_>>>() else {
                    continue;
                };
                for (&at, output) in to.iter().zip(map.apply(&logical)) {
                    values[at] = Some(in_type(&output, stage.loops[at].extent.dtype()));
                }
            }
        }
    }
    let claim = |(leaf, var): &(usize, Var)| {
        let value = values[*leaf].as_ref().map_or_else(|| Expr::int(0), |value| maps::simplify(value, &ranges));
        (var.clone(), value)
    };
    loops.iter().map(claim).collect()
}

/// Converts an integer expression to another integer type.
fn in_type(expr: &Expr, ty: DataType) -> Expr {
    cast(expr.clone(), ty)
}

impl Site {
    /// The store, under the guards that the place needs.
    pub(super) fn guarded(&self, store: Stmt) -> Stmt {
        match &self.guard {
            Some(guard) => Stmt::guarded(guard.clone(), store),
            None => store,
        }
    }

    /// Returns the value of an element at this site: axes are replaced by their values, every buffer by its `holder`, and
    /// indices and conditions are simplified.
    pub(super) fn value(&self, axis_vars: &[Var], value: &Expr, holder: impl Fn(&Buffer) -> Buffer) -> Expr {
        let substitution = Substitution::new(axis_vars, self.axes.iter().cloned());
        let Ok(result) = Relocation { ranges: &self.ranges, holder }.expr(&substitution.apply(value));
        result
    }
}

/// Replaces buffers and simplifies the integer parts of a value.
struct Relocation<'s, F> {
    ranges: &'s [(Var, Expr)],
    holder: F,
}

impl<F: Fn(&Buffer) -> Buffer> Rewrite for Relocation<'_, F> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let Ok(expr) = self.expr_children(expr);
        Ok(match expr {
            Expr::Load { buffer, indices } => {
                let indices = indices.iter().map(|index| maps::simplify(index, self.ranges)).collect();
                Expr::Load { buffer, indices }
            }
            Expr::IfThenElse(cond, a, b) if !cond.reads_memory() => {
                Expr::IfThenElse(SharedExpr::new(maps::simplify(&cond, self.ranges)), a, b)
            }
            Expr::Select(cond, a, b) if !cond.reads_memory() => {
                Expr::Select(SharedExpr::new(maps::simplify(&cond, self.ranges)), a, b)
            }
            expr => expr,
        })
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok((self.holder)(buffer))
    }
}
