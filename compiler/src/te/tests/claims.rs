//! Every store's claim, checked by running its loops.

use std::collections::BTreeSet;

use tilewright_ir::{Bindings, Expr, For, Stmt, StmtKind, StoreClaim, StoreRole};

use super::super::Lowered;

/// Around a statement.
enum Outer<'a> {
    Loop(&'a For),
    Guard(&'a Expr),
}

/// Checks every claim of a lowered program with constant shapes, or with `symbols` for the others; gives the number of
/// iterations that stored.
pub(super) fn check(lowered: &Lowered, symbols: &Bindings) -> usize {
    let mut stores = Vec::new();
    collect(&lowered.func.body, &mut Vec::new(), &mut stores, symbols, &lowered.evidence.stores);
    assert_eq!(stores.len(), lowered.evidence.stores.len(), "one claim for each store");
    stores.iter().sum()
}

fn collect<'a>(
    stmt: &'a Stmt,
    outer: &mut Vec<Outer<'a>>,
    stores: &mut Vec<usize>,
    symbols: &Bindings,
    claims: &[StoreClaim],
) {
    match &stmt.kind {
        StmtKind::For(inner) => outer.push(Outer::Loop(inner)),
        StmtKind::If { cond, .. } => outer.push(Outer::Guard(cond)),
        StmtKind::Store { indices, .. } => {
            let claim = &claims[stores.len()];
            stores.push(check_store(outer, indices, claim, symbols));
        }
        _ => {}
    }
    for child in stmt.children() {
        collect(child, outer, stores, symbols, claims);
    }
    if matches!(stmt.kind, StmtKind::For(_) | StmtKind::If { .. }) {
        outer.pop();
    }
}

fn check_store(outer: &[Outer<'_>], indices: &[Expr], claim: &StoreClaim, symbols: &Bindings) -> usize {
    let mut visited = BTreeSet::new();
    let mut bindings = symbols.clone();
    run(outer, &mut bindings, &mut |bindings| {
        let values: Vec<i128> = claim.axes.iter().map(|axis| axis.eval_index(bindings).unwrap()).collect();
        let stored: Vec<i128> = indices.iter().map(|index| index.eval_index(bindings).unwrap()).collect();
        assert_eq!(values[..stored.len()], stored[..], "the store is at the axes claimed");
        let mut back = symbols.clone();
        back.extend(claim.axis_vars.iter().cloned().zip(values.iter().copied()));
        for (var, value) in &claim.inverse {
            assert_eq!(value.eval_index(&back), Ok(bindings[var]), "inverse of `{var}` = {value} at {values:?}");
        }
        assert!(visited.insert(values.clone()), "{values:?} is visited twice");
    });
    let loops: Vec<_> = outer.iter().filter(|outer| matches!(outer, Outer::Loop(_))).collect();
    assert_eq!(loops.len(), claim.inverse.len(), "every loop around the store has its inverse");
    let extents: Vec<i128> = claim.tensor.shape.iter().map(|extent| extent.eval_index(symbols).unwrap()).collect();
    for values in &visited {
        for (value, extent) in values.iter().zip(&extents) {
            assert!((0..*extent).contains(value), "{values:?} is outside {extents:?}");
        }
    }
    let elements: i128 = extents.iter().product();
    let count = i128::try_from(visited.len()).unwrap();
    let times = if claim.role == StoreRole::Update { count / elements } else { 1 };
    assert_eq!(count, elements * times, "every element is visited");
    assert!(count > 0);
    visited.len()
}

fn run(outer: &[Outer<'_>], bindings: &mut Bindings, body: &mut impl FnMut(&Bindings)) {
    let Some((first, rest)) = outer.split_first() else { return body(bindings) };
    match first {
        Outer::Guard(cond) => {
            if cond.eval_index(bindings).unwrap() != 0 {
                run(rest, bindings, body);
            }
        }
        Outer::Loop(inner) => {
            let extent = inner.extent.eval_index(bindings).unwrap();
            for value in 0..extent {
                bindings.insert(inner.var.clone(), value);
                run(rest, bindings, body);
            }
        }
    }
}

/// Schedules of [`super::scheduled`] and the number of stores that they do.
#[test]
fn every_schedule_visits_every_element_once() {
    let schedules = [
        "",
        "s[B].split(k, 4)",
        "s[B].split(k, nparts=4)",
        "s[B].split(j, factor=100)",
        "s[B].split(s[B].split(k, 4)[1], 3)",
        "s[B].split(s[B].split(k, 4)[0], 2)",
        "s[B].fuse(i, j)",
        "s[B].split(s[B].fuse(i, j, k), 4)",
        "s[B].tile(j, k, 4, 2)",
        "s[B].reorder(k, i)",
        "s[B].reorder(k, i, j)\ns[B].fuse(k, i)",
        "s[B].transform_layout(lambda i, j, k: [k, j, i])",
        "s[B].transform_layout(lambda i, j, k: [i, k // 4, j, k % 4])",
        "s[B].transform_layout(lambda i, j, k: [i, te.AXIS_SEPARATOR, j * 9 + k])",
        "s[B].transform_layout(lambda *x: list(x[:-1]) + [x[-1] // 2, x[-1] % 2])",
        "a, b, c, d = s[B].transform_layout(lambda i, j, k: [i, k // 4, j, k % 4])\ns[B].split(s[B].fuse(a, b), 5)\ns[B].vectorize(d)",
        "s[B].transform_layout(lambda i, j, k: [i, k // 4, j, k % 4])\ns[B].transform_layout(lambda a, b, c, d: [d, a, c // 3, b, c % 3])",
        "s[B].transform_layout(lambda i, j, k: [i + 3, j, 8 - k])",
    ];
    for schedule in schedules {
        assert_eq!(check(&super::lower_one(&super::scheduled(schedule)), &Bindings::new()), 126, "{schedule}");
    }
}

#[test]
fn every_reduction_visits_every_element_and_every_reduced_index_once() {
    let program = |rest: &str| {
        format!(
            "A = te.placeholder((7, 9))\nW = te.placeholder((9, 5))\nr = te.reduce_axis((0, 9), name='r')\nB = te.compute((7, 5), lambda i, j: te.sum(A[i, r] * W[r, j], axis=r))\ns = te.create_schedule(B.op)\ni, j = s[B].op.axis\n{rest}"
        )
    };
    let schedules = [
        "",
        "s[B].reorder(r, j)",
        "s[B].reorder(r, i, j)",
        "ro, ri = s[B].split(r, 4)\ns[B].reorder(i, ro, j, ri)",
        "ro, ri = s[B].split(r, 4)\njo, ji = s[B].split(j, 2)\ns[B].reorder(jo, ro, i, ri, ji)\ns[B].vectorize(ji)",
        "a, b, c = s[B].transform_layout(lambda i, j: [j // 2, i, j % 2])\ns[B].reorder(a, r, b, c)",
    ];
    for schedule in schedules {
        let lowered = super::lower_one(&program(schedule));
        let roles: Vec<_> = lowered.evidence.stores.iter().map(|claim| claim.role).collect();
        assert_eq!(roles, [StoreRole::Init, StoreRole::Update]);
        assert_eq!(check(&lowered, &Bindings::new()), 35 + 35 * 9, "{schedule}");
    }
}

#[test]
fn symbolic_extents_are_split_fused_and_laid_out_for_every_shape() {
    let program = |ty: &str, rest: &str| {
        format!(
            "n, m = te.var('n', '{ty}'), te.size_var('m', dtype='{ty}')\nA = te.placeholder((n, m))\nr = te.reduce_axis((0, m), name='r')\nB = te.compute((n, m), lambda i, j: te.sum(A[i, r] * A[i, j], axis=r))\ns = te.create_schedule(B.op)\ni, j = s[B].op.axis\n{rest}"
        )
    };
    let schedules = [
        "",
        "s[B].split(j, 4)",
        "s[B].split(i, nparts=3)",
        "ro, ri = s[B].split(r, 4)\ns[B].reorder(ro, i, ri, j)",
        "o, p = s[B].split(s[B].fuse(i, j), 4)\ns[B].bind(o, te.thread_axis('blockIdx.x'))",
        "a, b, c = s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])\ns[B].fuse(a, b)\ns[B].reorder(r, c)",
        "s[B].transform_layout(lambda i, j: [j, n - 1 - i])",
        "s[B].transform_layout(lambda i, j: [i * m + j])",
    ];
    for (schedule, ty) in schedules.iter().flat_map(|schedule| [(schedule, "int32"), (schedule, "int64")]) {
        let lowered = super::lower_one(&program(ty, schedule));
        let shape = lowered.definition.params[0].shape.clone();
        for extents in [[7, 9], [1, 1], [2, 3], [4, 8]] {
            let symbols: Bindings = shape.iter().flat_map(Expr::vars).zip(extents).collect();
            let [n, m] = extents;
            assert_eq!(i128::try_from(check(&lowered, &symbols)).unwrap(), n * m + n * m * m, "{schedule}");
        }
    }
}

#[test]
fn symbolic_layouts_visit_every_element_once() {
    let source = std::fs::read_to_string("../examples/nhwc_to_nchw4c_symbolic.py").unwrap();
    let lowered = super::lower_one(&source);
    let shape = lowered.definition.params[0].shape.clone();
    for extents in [[2, 7, 9, 17], [1, 1, 1, 1], [1, 2, 3, 4], [3, 2, 1, 8]] {
        let symbols: Bindings = shape.iter().flat_map(Expr::vars).zip(extents).collect();
        let elements: i128 = extents.iter().product();
        assert_eq!(i128::try_from(check(&lowered, &symbols)).unwrap(), elements);
    }
}
