//! What is claimed of the blocks of a program for the judge: which iteration has certain values of the reduced axes.

use tilewright_algebra::inverse;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{AxisKind, Block, Expr, For, IndexMap, PrimFunc, Stmt, StmtKind, Var};

/// Returns for each block, in program order, the values of the loops that count its reduced axes, in terms of these axes. Nothing
/// is claimed of a block for which no inverse is found.
pub fn inverses(func: &PrimFunc) -> Vec<Vec<(Var, Expr)>> {
    let mut found = Vec::new();
    collect(&func.body, &mut Vec::new(), &mut found);
    found
}

fn collect<'a>(stmt: &'a Stmt, loops: &mut Vec<&'a For>, found: &mut Vec<Vec<(Var, Expr)>>) {
    let depth = loops.len();
    if let StmtKind::For(inner) = &stmt.kind {
        loops.push(inner);
    }
    if let Some((block, below)) = Block::of(stmt) {
        found.push(inverse_of(block, below, loops).unwrap_or_default());
    }
    stmt.children().for_each(|child| collect(child, loops, found));
    loops.truncate(depth);
}

/// The inverse of the map from the loops that count the reduced axes of a block to these axes.
fn inverse_of(block: &Block, below: &Stmt, loops: &[&For]) -> Option<Vec<(Var, Expr)>> {
    let bindings = block.parts(below)?.bindings;
    let reduced: Vec<_> = block.axes.iter().zip(bindings).filter(|(axis, _)| axis.kind == AxisKind::Reduce).collect();
    let used: Vec<&For> = loops
        .iter()
        .copied()
        .filter(|inner| reduced.iter().any(|(_, value)| value.vars().contains(&inner.var)))
        .collect();
    let from_zero = Substitution::new(
        used.iter().map(|inner| &inner.var),
        used.iter().map(|inner| Expr::from(&inner.var) + inner.min.clone()),
    );
    let outputs = reduced.iter().map(|(axis, value)| from_zero.apply(value) - axis.min.clone()).collect();
    let domain = used.iter().map(|inner| inner.extent.clone()).collect();
    let map = IndexMap::new(used.iter().map(|inner| inner.var.clone()).collect(), domain, outputs, Vec::new()).ok()?;
    let shape: Vec<Expr> = reduced.iter().map(|(axis, _)| axis.extent.clone()).collect();
    let claim = inverse(&map, &shape, &[]).ok()?;
    let axes = Substitution::new(&claim.vars, reduced.iter().map(|(axis, _)| Expr::from(&axis.var) - axis.min.clone()));
    let value = |(inner, value): (&&For, &Expr)| (inner.var.clone(), axes.apply(value) + inner.min.clone());
    Some(used.iter().zip(&claim.outputs).map(value).collect())
}
