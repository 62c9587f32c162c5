//! A program computes what its definition says: both are run here, element by element, in exact integer arithmetic.

use std::collections::HashMap;

use proptest::prelude::*;
use tilewright_ir::{BinaryOp, Bindings, Buffer, Expr, Scalar, Stmt, StmtKind, Var};

use super::super::Lowered;
use super::{claims, lower_one};

type Memory = HashMap<(Var, Vec<i128>), Scalar>;

fn index(expr: &Expr, vars: &Bindings) -> i128 {
    expr.eval_index(vars).unwrap_or_else(|error| panic!("{expr}: {error}"))
}

fn value(expr: &Expr, vars: &Bindings, memory: &Memory) -> Scalar {
    let of = |expr: &Expr| value(expr, vars, memory);
    match expr {
        Expr::Int { value, .. } => Scalar::Int(*value),
        Expr::Var(var) => Scalar::Int(vars[var]),
        Expr::Binary(op, a, b) => op.eval(a.dtype().scalar, of(a), of(b)).unwrap(),
        Expr::IfThenElse(c, a, b) => of(if of(c).as_int() == Some(0) { b } else { a }),
        Expr::Load { buffer, indices } => {
            let at: Vec<i128> = indices.iter().map(|expr| index(expr, vars)).collect();
            memory
                .get(&(buffer.data.clone(), at.clone()))
                .copied()
                .unwrap_or_else(|| panic!("{buffer}{at:?} has no value"))
        }
        other => panic!("not in these programs: {other}"),
    }
}

fn run(stmt: &Stmt, vars: &mut Bindings, memory: &mut Memory) {
    match &stmt.kind {
        StmtKind::For(inner) => {
            for step in 0..index(&inner.extent, vars) {
                vars.insert(inner.var.clone(), step);
                run(&inner.body, vars, memory);
            }
        }
        StmtKind::If { cond, then_body, .. } => {
            if index(cond, vars) != 0 {
                run(then_body, vars, memory);
            }
        }
        StmtKind::Store { buffer, indices, value: stored } => {
            let at = indices.iter().map(|expr| index(expr, vars)).collect();
            let stored = value(stored, vars, memory);
            memory.insert((buffer.data.clone(), at), stored);
        }
        _ => stmt.children().for_each(|child| run(child, vars, memory)),
    }
}

/// Every index of a shape, in order.
fn indices(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |all, &extent| {
        all.iter().flat_map(|head| (0..extent).map(move |last| [&head[..], &[last]].concat())).collect()
    })
}

fn shape(buffer: &Buffer) -> Vec<i128> {
    buffer.const_shape().expect("constant shapes")
}

/// Runs the definition and the program on the same inputs, and compares the outputs.
pub(super) fn check(lowered: &Lowered) {
    let mut expected = Memory::new();
    for (at, input) in (1..).zip(lowered.definition.inputs()) {
        for (step, position) in (1..).zip(indices(&shape(input))) {
            expected.insert((input.data.clone(), position), Scalar::Int((step * 37 + at * 11) % 101));
        }
    }
    let mut memory = expected.clone();
    for stage in &lowered.definition.stages {
        for position in indices(&shape(&stage.buffer)) {
            let mut vars: Bindings = stage.axes.iter().map(|axis| axis.var.clone()).zip(position.clone()).collect();
            let result = match &stage.body {
                tilewright_ir::StageBody::Elementwise(body) => value(body, &vars, &expected),
                tilewright_ir::StageBody::Reduce { op, axes, source, .. } => {
                    let extents: Vec<i128> = axes.iter().map(|axis| index(&axis.extent, &vars)).collect();
                    let ty = source.dtype().scalar;
                    indices(&extents).into_iter().fold(op.identity(ty), |sum, reduced| {
                        vars.extend(axes.iter().map(|axis| axis.var.clone()).zip(reduced));
                        let combine: BinaryOp = op.combine();
                        combine.eval(ty, sum, value(source, &vars, &expected)).unwrap()
                    })
                }
            };
            expected.insert((stage.buffer.data.clone(), position), result);
        }
    }
    run(&lowered.func.body, &mut Bindings::new(), &mut memory);
    let outputs = lowered.definition.outputs();
    assert!(!outputs.is_empty());
    for output in outputs {
        for position in indices(&shape(output)) {
            let key = (output.data.clone(), position.clone());
            let (found, wanted) = (memory.get(&key).copied(), expected[&key]);
            assert!(found.is_some_and(|found| found.same(wanted)), "{output}{position:?}: {found:?}, not {wanted:?}");
        }
    }
}

/// A schedule of `stage`: primitives on loops picked by `choices`. `reduced` of the loops are reductions, the last ones.
fn random_schedule(stage: &str, n_axes: usize, reduced: usize, choices: &[(u8, usize, usize)]) -> String {
    use std::fmt::Write;
    let total = n_axes + reduced;
    let mut text = String::new();
    let mut leaves: Vec<(String, bool)> = (0..total).map(|at| (format!("{stage}{at}"), at >= n_axes)).collect();
    let names: Vec<_> = leaves.iter().map(|(name, _)| name.clone()).collect();
    writeln!(text, "{}, = list(s[{stage}].op.axis) + list(s[{stage}].op.reduce_axis)", names.join(", ")).unwrap();
    for (count, &(kind, a, b)) in choices.iter().enumerate() {
        let at = a % leaves.len();
        let (name, reduce) = leaves[at].clone();
        match kind % 4 {
            0 | 1 => {
                let by = if kind % 4 == 0 { "factor" } else { "nparts" };
                let (outer, inner) = (format!("{stage}o{count}"), format!("{stage}i{count}"));
                writeln!(text, "{outer}, {inner} = s[{stage}].split({name}, {by}={})", b % 5 + 1).unwrap();
                leaves.splice(at..=at, [(outer, reduce), (inner, reduce)]);
            }
            2 => {
                let other = b % leaves.len();
                leaves.swap(at, other);
                let order: Vec<_> = leaves.iter().map(|(name, _)| name.as_str()).collect();
                writeln!(text, "s[{stage}].reorder({})", order.join(", ")).unwrap();
            }
            _ if at + 1 < leaves.len() && leaves[at + 1].1 == reduce => {
                let fused = format!("{stage}f{count}");
                writeln!(text, "{fused} = s[{stage}].fuse({name}, {})", leaves[at + 1].0).unwrap();
                leaves.splice(at..=at + 1, [(fused, reduce)]);
            }
            _ => {}
        }
    }
    text
}

const LAYOUTS: [&str; 6] = [
    "lambda i, j: [i, j]",
    "lambda i, j: [j, i]",
    "lambda i, j: [j // 4, i, j % 4]",
    "lambda i, j: [i // 3, j // 2, te.AXIS_SEPARATOR, i % 3, j % 2]",
    "lambda i, j: [i * 5 + j]",
    "lambda *x: [6 - x[0], x[1]]",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_computes_what_is_defined(
        first in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 0..4),
        second in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 0..5),
        layout in 0..LAYOUTS.len(),
        caches in 0..4_u8,
    ) {
        let (mut caching, mut stage) = (String::new(), "C");
        if caches & 1 != 0 {
            caching.push_str("PL = s.cache_read(P, 'shared', [C])\n");
        }
        if caches & 2 != 0 {
            caching.push_str("CL = s.cache_write(C, 'local')\n");
            stage = "CL";
        }
        let copy = if stage == "CL" { format!("s[C].transform_layout({})\n", LAYOUTS[layout]) } else { String::new() };
        let source = format!(
            "A = te.placeholder((7, 3), 'int32', 'A')
W = te.placeholder((4, 5), 'int32', 'W')
P = te.compute((7, 6), lambda i, j: te.if_then_else(te.all(j >= 1, j < 4), A[i, j - 1], 0), name='P')
r = te.reduce_axis((0, 2), name='r')
q = te.reduce_axis((1, 3), name='q')
C = te.compute((7, 5), lambda i, j: te.sum(P[i, r + q] * W[r + 1, j], axis=[r, q]), name='C')
s = te.create_schedule(C.op)
{caching}p = s[P].transform_layout(lambda i, j: [j // 4, i, j % 4])
{}{copy}{}",
            random_schedule("P", 3, 0, &first).replace("list(s[P].op.axis) +", "list(p) +"),
            random_schedule(stage, 2, 2, &second),
        );
        let lowered = lower_one(&source);
        claims::check(&lowered, &Bindings::new());
        check(&lowered);
    }

    #[test]
    fn every_layout_computes_what_is_defined(
        layouts in prop::collection::vec(0..LAYOUTS.len(), 0..3),
        choices in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 0..3),
    ) {
        let mut source = "A = te.placeholder((7, 5), 'int32', 'A')
B = te.compute((7, 5), lambda i, j: A[i, j] * 3 + i, name='B')
s = te.create_schedule(B.op)
x = s[B].op.axis
".to_owned();
        let (mut rank, mut swapped) = (2, false);
        for layout in layouts {
            // The last map is that of rows of 5 only.
            if rank == 2 && !(swapped && LAYOUTS[layout].contains("* 5")) {
                swapped |= layout == 1;
                let line = ["x = s[B].transform_layout(", LAYOUTS[layout], ")\n"];
                source.push_str(&line.concat());
                rank = [2, 2, 3, 4, 1, 2][layout];
            }
        }
        let loops = random_schedule("B", rank, 0, &choices);
        source.push_str(&loops.replace("list(s[B].op.axis)", "list(x)").replace(" + list(s[B].op.reduce_axis)", ""));
        let lowered = lower_one(&source);
        claims::check(&lowered, &Bindings::new());
        check(&lowered);
    }
}
