//! Loops that are nested in each other with nothing but conditions between them: what `fuse` and `reorder` take.
//!
//! ```text
//! for i in range(10):
//!     if io * 8 + i < n:              the loops i and j, one condition, and the store
//!         for j in range(12):
//!             t[i, j] = ...
//! ```

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, For, ForKind, Stmt, StmtKind, Var};

use super::fault;

/// Loops from the outermost one on, down to the last one that was named.
pub(crate) struct Nest<'f> {
    pub(crate) loops: Vec<&'f For>,
    /// The conditions between them, outermost first. They read no memory, so that they may be asked further inside.
    pub(crate) guards: Vec<Expr>,
    /// What the last loop contains.
    pub(crate) body: &'f Stmt,
}

impl<'f> Nest<'f> {
    /// The loops from `top` down to the last of `vars`.
    ///
    /// # Errors
    /// `schedule`: something else than conditions on integers stands between two of them.
    pub(crate) fn of(top: &'f For, vars: &[Var]) -> Result<Self, Diagnostic> {
        let mut nest = Self { loops: vec![top], guards: Vec::new(), body: &top.body };
        let missing = |nest: &Self| vars.iter().find(|var| !nest.loops.iter().any(|run| run.var == **var)).cloned();
        while let Some(var) = missing(&nest) {
            match &nest.body.kind {
                StmtKind::For(run) => {
                    nest.loops.push(run);
                    nest.body = &run.body;
                }
                StmtKind::If { cond, then_body, else_body: None } if !cond.reads_memory() => {
                    nest.guards.push(cond.clone());
                    nest.body = then_body;
                }
                _ => {
                    let message =
                        format!("`{var}` is not directly inside of `{}`", nest.loops[nest.loops.len() - 1].var);
                    return Err(fault(message, "name loops that have nothing but conditions between them"));
                }
            }
        }
        Ok(nest)
    }

    /// The body under the conditions.
    pub(crate) fn guarded(&self) -> Stmt {
        self.guards.iter().rev().fold(self.body.clone(), |body, guard| Stmt::guarded(guard.clone(), body))
    }
}

/// Whether the range of a loop depends on a variable.
pub(crate) fn depends(run: &For, var: &Var) -> bool {
    run.min.vars().contains(var) || run.extent.vars().contains(var)
}

/// A loop from 0 with the kind and the hints of another one.
pub(crate) fn loop_of(var: &Var, extent: Expr, like: &For, body: Stmt) -> Stmt {
    let min = Expr::Int { value: 0, ty: var.dtype().scalar };
    let (kind, annotations) = (like.kind, like.annotations.clone());
    Stmt::new(StmtKind::For(For { var: var.clone(), min, extent, kind, annotations, body }.into()))
}

/// One loop for several.
pub(crate) struct Fused {
    pub(crate) var: Var,
    pub(crate) extent: Expr,
    /// The loops in terms of the new one.
    pub(crate) forward: Substitution,
    /// The new loop in terms of the others.
    pub(crate) number: Expr,
}

impl Fused {
    /// The loop over all iterations of some loops, in their order.
    ///
    /// # Errors
    /// `schedule`: the loops have different types, or the range of one depends on another one.
    pub(crate) fn of(chain: &[&For], ranges: &Ranges) -> Result<Self, Diagnostic> {
        let [first, .., _] = chain else { return Err(fault("`fuse` needs two loops", "such as `fuse=i:j`")) };
        let names: Vec<&str> = chain.iter().map(|run| run.var.name()).collect();
        let var = Var::new(format!("{}_fused", names.join("_")), first.var.dtype());
        if chain.iter().any(|run| run.var.dtype() != first.var.dtype()) {
            return Err(fault("the loops have different types", "fuse loops of one type"));
        }
        if let Some(run) = chain.iter().find(|run| chain.iter().any(|other| depends(run, &other.var))) {
            return Err(fault(
                format!("the range of `{}` depends on another one of the loops", run.var),
                "fuse others",
            ));
        }
        let zero = Expr::Int { value: 0, ty: var.dtype().scalar };
        let (mut forward, mut rest, mut extent, mut number) =
            (Substitution::default(), Expr::from(&var), None::<Expr>, zero);
        for (at, run) in chain.iter().enumerate().rev() {
            let part = if at == 0 { rest.clone() } else { rest.clone().floor_mod(run.extent.clone()) };
            rest = rest.floor_div(run.extent.clone());
            forward.insert(&run.var, if is_from_zero(run) { part } else { run.min.clone() + part });
            extent = Some(extent.map_or_else(|| run.extent.clone(), |inner| run.extent.clone() * inner));
        }
        for (at, run) in chain.iter().enumerate() {
            let here = Expr::from(&run.var);
            let offset = if is_from_zero(run) { here } else { here - run.min.clone() };
            number = if at == 0 { offset } else { number * run.extent.clone() + offset };
        }
        let extent = simplify(&extent.unwrap_or_else(|| first.extent.clone()), ranges);
        Ok(Self { var, extent, forward, number })
    }
}

fn is_from_zero(run: &For) -> bool {
    run.min.as_const_int() == Some(0)
}

/// Some loops of a nest in the order of `vars`, at the places that they have together; the others stay where they are.
///
/// # Errors
/// `schedule`: the range of a loop depends on one that would come inside of it.
pub(crate) fn ordered<'f>(chain: &[&'f For], vars: &[Var]) -> Result<Vec<&'f For>, Diagnostic> {
    let mut order = vars.iter().filter_map(|var| chain.iter().find(|run| run.var == *var));
    let mut after: Vec<&For> = Vec::new();
    for run in chain {
        let next = if vars.contains(&run.var) { order.next().unwrap_or(run) } else { run };
        after.push(next);
    }
    for (at, run) in after.iter().enumerate() {
        if let Some(inner) = after[at..].iter().find(|inner| depends(run, &inner.var)) {
            let message = format!("the range of `{}` depends on `{}`, which would be inside of it", run.var, inner.var);
            return Err(fault(message, "keep them in their order"));
        }
    }
    Ok(after)
}

/// Loops around a statement, the last one innermost.
pub(crate) fn around(loops: &[&For], body: Stmt) -> Stmt {
    let wrap = |body: Stmt, run: &&For| Stmt::new(StmtKind::For(For { body, ..For::clone(run) }.into()));
    loops.iter().rev().fold(body, wrap)
}

/// The name of a kind of loops in steps.
pub(crate) const KINDS: [(&str, ForKind); 4] = [
    ("serial", ForKind::Serial),
    ("parallel", ForKind::Parallel),
    ("vectorized", ForKind::Vectorized),
    ("unrolled", ForKind::Unrolled),
];
