//! The block engine against the one-by-one engine, which a run with the race check uses, and against the reference
//! interpreter: same results, same traps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at what it did not expect")]

use std::sync::Arc;

mod common;

use common::{assert_same_trap, assert_same_values, config, execute, func, racing, refer, run_in_all_configs};
use proptest::prelude::*;
use tilewright_interp::{Arguments, RunError, Tensor, TrapKind, fill};
use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, ForKind, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, Var};

const EXTENTS: [i64; 3] = [3, 5, 23];

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

fn filled(ty: ScalarType, shape: &[u64], seed: u64) -> Tensor {
    let mut tensor = Tensor::undefined(ty, shape).unwrap();
    fill(&mut tensor, seed);
    tensor
}

/// Asserts that both engines leave the same tensors or report the same trap, those of the reference interpreter. Returns
/// whether there was no trap.
fn agree(program: &PrimFunc, args: &Arguments) -> bool {
    let mut expected = args.clone();
    let reference = refer(program, &mut expected, &config(1));
    let (mut blocks, mut single) = (args.clone(), args.clone());
    let results = [execute(program, &mut blocks, &config(1)), execute(program, &mut single, &racing())];
    match results {
        [Ok(blocks_report), Ok(report)] => {
            assert_eq!(report.iterations, reference.unwrap().iterations);
            assert_eq!(blocks_report.iterations, report.iterations);
            for param in 0..args.params.len() {
                assert_eq!(blocks.tensor(param), single.tensor(param), "parameter {param}");
                assert_same_values(blocks.tensor(param), expected.tensor(param));
            }
            true
        }
        [Err(RunError::Trap(in_blocks)), Err(RunError::Trap(one_by_one))] => {
            assert_eq!(in_blocks, one_by_one);
            let Err(RunError::Trap(expected)) = reference else { panic!("{in_blocks} and {reference:?}") };
            assert_same_trap(&one_by_one, &expected);
            false
        }
        other => panic!("{other:?}"),
    }
}

/// An affine index into 64 elements, mostly in bounds.
#[derive(Clone, Debug)]
struct Index {
    factors: [i64; 3],
    plus: i64,
    wrapped: bool,
}

impl Index {
    fn expr(&self, vars: &[Var; 3]) -> Expr {
        let terms = vars.iter().zip(self.factors).map(|(var, factor)| v(var) * Expr::int(factor));
        let sum = terms.fold(Expr::int(self.plus), |sum, term| sum + term);
        if self.wrapped { sum.floor_mod(Expr::int(61)) } else { sum }
    }
}

fn index() -> impl Strategy<Value = Index> {
    let factors = prop_oneof![
        Just([0, 0, 1]),
        Just([0, 0, 2]),
        Just([0, 4, 1]),
        Just([20, 4, 0]),
        Just([1, 3, 0]),
        Just([0, 0, 0]),
        Just([0, 0, -1]),
        Just([0, 1, 1]),
        Just([7, 1, -2]),
    ];
    (factors, 0..48i64, any::<bool>()).prop_map(|(factors, plus, wrapped)| {
        // A falling index starts high enough most of the time.
        let plus = if factors[2] < 0 { plus + 15 } else { plus / 3 };
        Index { factors, plus, wrapped }
    })
}

/// The element of its target that a store reads.
#[derive(Clone, Debug)]
enum OwnRead {
    Nothing,
    SameElement,
    Other(Index),
}

/// One store: `target[to] = target[own_read] op (source[from] + counter)`, guarded or not.
#[derive(Clone, Debug)]
struct Spec {
    target: usize,
    to: Index,
    own_read: OwnRead,
    from: (usize, Index),
    op: BinaryOp,
    swapped: bool,
    guard: Option<i64>,
}

fn spec() -> impl Strategy<Value = Spec> {
    let op = prop_oneof![
        Just(BinaryOp::Add),
        Just(BinaryOp::Max),
        Just(BinaryOp::Min),
        Just(BinaryOp::Mul),
        Just(BinaryOp::Sub)
    ];
    let own_read = prop_oneof![2 => Just(OwnRead::Nothing), 3 => Just(OwnRead::SameElement), 2 => index().prop_map(OwnRead::Other)];
    let guard = prop::option::weighted(0.3, 0..30i64);
    (0..2usize, index(), own_read, (0..3usize, index()), op, any::<bool>(), guard).prop_map(
        |(target, to, own_read, from, op, swapped, guard)| Spec { target, to, own_read, from, op, swapped, guard },
    )
}

fn program(ty: ScalarType, specs: &[Spec]) -> PrimFunc {
    let buffers = ["A", "B", "C"].map(|name| Buffer::compact(name, ty, vec![Expr::int(64)]));
    let vars = ["i", "j", "k"].map(Var::index);
    let stmt = |spec: &Spec| {
        let target = &buffers[spec.target];
        let counter = Expr::Cast(ty.into(), SharedExpr::new(v(&vars[2])));
        let value = Expr::load(&buffers[spec.from.0], vec![spec.from.1.expr(&vars)]) + counter;
        let own_read = match &spec.own_read {
            OwnRead::Nothing => None,
            OwnRead::SameElement => Some(&spec.to),
            OwnRead::Other(index) => Some(index),
        };
        let value = match own_read.map(|index| Expr::load(target, vec![index.expr(&vars)])) {
            None => value,
            Some(element) => {
                let (a, b) = if spec.swapped { (value, element) } else { (element, value) };
                Expr::binary(spec.op, a, b)
            }
        };
        let store = Stmt::store(target, vec![spec.to.expr(&vars)], value);
        match spec.guard {
            None => store,
            Some(limit) => {
                // Every other guard contains a second one.
                let inner = if limit % 2 == 0 { Stmt::guarded(v(&vars[0]).lt(Expr::int(2)), store) } else { store };
                let cond = SharedExpr::new((v(&vars[1]) + v(&vars[2])).lt(Expr::int(limit)));
                let other = Stmt::store(target, vec![Expr::int(7)], Expr::load(&buffers[2], vec![v(&vars[2])]));
                let else_body = (limit % 3 == 0).then(|| Arc::new(other));
                Stmt::new(StmtKind::If { cond: cond.into_expr(), then_body: Arc::new(inner), else_body })
            }
        }
    };
    let body = Stmt::seq(specs.iter().map(stmt).collect());
    let nest = vars.iter().zip(EXTENTS).rev();
    let body = nest.fold(body, |body, (var, extent)| Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body));
    func(&buffers.each_ref(), body)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    /// Nests that read and write the same buffers in all combinations, with guards and reductions.
    #[test]
    fn blocks_compute_what_single_iterations_compute(
        specs in prop::collection::vec(spec(), 1..4),
        ty in prop::sample::select(vec![ScalarType::Float32, ScalarType::Int32, ScalarType::Float64, ScalarType::Int8,
            ScalarType::UInt64, ScalarType::Float16]),
        hole in prop::option::weighted(0.3, 0..64usize),
        together in any::<bool>(),
    ) {
        let mut specs = specs;
        if together {
            // All statements store to the first one's element.
            let (target, to) = (specs[0].target, specs[0].to.clone());
            for spec in &mut specs {
                (spec.target, spec.to) = (target, to.clone());
            }
        }
        let program = program(ty, &specs);
        let mut tensors = [1, 2, 3].map(|seed| filled(ty, &[64], seed));
        if let Some(hole) = hole {
            // One undefined element in a tensor that is read.
            let whole = tensors[0].clone();
            tensors[0] = Tensor::undefined(ty, &[64]).unwrap();
            for lane in (0..64).filter(|&lane| lane != hole) {
                tensors[0].set(lane, whole.get(lane).unwrap());
            }
        }
        agree(&program, &Arguments::tensors(tensors));
    }
}

#[test]
fn the_operands_of_a_reduction_keep_their_order() {
    let [source, target] = ["A", "B"].map(|name| Buffer::compact(name, ScalarType::Float32, vec![Expr::int(6)]));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let values = [0.0f32, -0.0, f32::NAN, 1.5, -2.0, f32::INFINITY];
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = || Tensor::from_bytes(ScalarType::Float32, &[6], bytes.clone()).unwrap();
    for op in [BinaryOp::Min, BinaryOp::Max, BinaryOp::Sub] {
        for (element_first, of_j) in [(true, false), (false, false), (true, true), (false, true)] {
            // The element varies with the inner loop, or stays the same in it.
            let at = |here: bool| vec![v(if here { &j } else { &i })];
            let (element, value) = (Expr::load(&target, at(of_j)), Expr::load(&source, at(!of_j)));
            let (a, b) = if element_first { (element, value) } else { (value, element) };
            let body = Stmt::store(&target, at(of_j), Expr::binary(op, a, b));
            // One source value at a time: a NaN or an infinity would hide the effect of the values before it.
            for single in 0..6 {
                let range = |var: &Var, reads: bool, body: Stmt| {
                    let mut made = Stmt::for_loop(var, Expr::int(if reads { 1 } else { 6 }), ForKind::Serial, body);
                    if let (true, StmtKind::For(inner)) = (reads, &mut made.kind) {
                        Arc::make_mut(inner).min = Expr::int(single);
                    }
                    made
                };
                let nest = range(&i, of_j, range(&j, !of_j, body.clone()));
                assert!(agree(&func(&[&source, &target], nest), &Arguments::tensors([tensor(), tensor()])));
            }
        }
    }
}

#[test]
fn a_recurrence_runs_in_program_order() {
    let target = Buffer::compact("B", ScalarType::Int64, vec![Expr::int(1300)]);
    let i = Var::index("i");
    for distance in [1, 2, 255, 256, 511, 512, 513] {
        let value = Expr::load(&target, vec![v(&i)]) + Expr::load(&target, vec![v(&i) + Expr::int(1)]);
        let store = Stmt::store(&target, vec![v(&i) + Expr::int(distance)], value);
        let body = Stmt::for_loop(&i, Expr::int(1300 - distance), ForKind::Serial, store);
        assert!(agree(&func(&[&target], body), &Arguments::tensors([filled(ScalarType::Int64, &[1300], 9)])));
    }
}

#[test]
fn a_trap_in_the_middle_of_a_block_names_its_iteration() {
    let buffers = ["A", "B"].map(|name| Buffer::compact(name, ScalarType::Int32, vec![Expr::int(90)]));
    let [source, target] = &buffers;
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = || vec![v(&i) * Expr::int(9) + v(&j)];
    let quotient = Expr::load(target, at()).floor_div(Expr::load(source, at()));
    let update = Stmt::store(target, at(), quotient);
    let body = Stmt::for_loop(&j, Expr::int(9), ForKind::Serial, update);
    let program = func(&[source, target], Stmt::for_loop(&i, Expr::int(10), ForKind::Serial, body));
    let mut divisors = filled(ScalarType::Int32, &[90], 4);
    for lane in 0..90 {
        divisors.set(lane, tilewright_ir::Scalar::Int(if lane == 58 { 0 } else { 3 }));
    }
    let args = Arguments::tensors([divisors, filled(ScalarType::Int32, &[90], 5)]);
    let trap = common::trap(&program, &args, &config(1));
    assert_eq!(trap.kind, TrapKind::DivisionByZero);
    assert_eq!(trap.loops, [("i".to_owned(), 6), ("j".to_owned(), 4)]);
    assert!(!agree(&program, &args));
}

#[test]
fn lanes_of_vectors_and_if_then_else_run_in_blocks() {
    let vectors = DataType::scalar(ScalarType::Float32).with_lanes(4);
    let source = Buffer::compact("A", vectors, vec![Expr::int(33)]);
    let target = Buffer::compact("B", vectors, vec![Expr::int(33)]);
    let i = Var::index("i");
    let inside = Expr::Int { value: 2, ty: ScalarType::Int32 }.lt(v(&i));
    let before = SharedExpr::new(Expr::load(&source, vec![v(&i) - Expr::int(3)]));
    let here = SharedExpr::new(Expr::load(&source, vec![v(&i)]));
    let value = Expr::IfThenElse(SharedExpr::new(inside), before, here);
    let body = Stmt::for_loop(&i, Expr::int(33), ForKind::Serial, Stmt::store(&target, vec![v(&i)], value));
    let mut tensor = Tensor::undefined(vectors, &[33]).unwrap();
    fill(&mut tensor, 6);
    let args = Arguments::tensors([tensor.clone(), Tensor::undefined(vectors, &[33]).unwrap()]);
    let result = run_in_all_configs(&func(&[&source, &target], body), &args);
    let got = result.tensor(1).unwrap();
    let expected = |lane: usize| tensor.get_f64(if lane >= 12 { lane - 12 } else { lane });
    assert!((0..33 * 4).all(|lane| got.get_f64(lane) == expected(lane)));
}

#[test]
fn guarded_accesses_are_in_bounds_where_their_condition_holds() {
    let [o, x, i] = &["o", "x", "i"].map(Var::index);
    for ty in [ScalarType::Float32, ScalarType::Int16, ScalarType::UInt64, ScalarType::BFloat16] {
        for (channels, limit) in [(11, 11), (12, 11), (11, 12), (10, 7), (12, 12)] {
            let source = Buffer::compact("A", ty, vec![Expr::int(9), Expr::int(channels)]);
            let target = Buffer::compact("B", ty, vec![Expr::int(3), Expr::int(9), Expr::int(4)]);
            let channel = || v(o) * Expr::int(4) + v(i);
            let value = Expr::load(&source, vec![v(x), channel()]);
            let store = Stmt::store(&target, vec![v(o), v(x), v(i)], value.clone() + value);
            let zero = Expr::Cast(ty.into(), SharedExpr::new(v(x)));
            let other = Stmt::store(&target, vec![v(o), v(x), v(i)], zero);
            for else_body in [None, Some(Arc::new(other))] {
                let cond = channel().lt(Expr::int(limit));
                let then_body = Arc::new(store.clone());
                let body = Stmt::new(StmtKind::If { cond, then_body, else_body });
                let nest = [(o, 3), (x, 9), (i, 4)].into_iter().rev();
                let body = nest
                    .fold(body, |body, (var, extent)| Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body));
                let program = func(&[&source, &target], body);
                let shape = [9, channels.unsigned_abs()];
                let whole = Tensor::from_fn(ty, &shape, |lane| tilewright_ir::Scalar::Int(lane as i128 % 50)).unwrap();
                // Undefined where no iteration may read it, and in one place where some iteration does.
                for hole in [None, Some(40)] {
                    let mut given = Tensor::undefined(ty, &shape).unwrap();
                    let lanes = 0..whole.lane_count();
                    let within = |lane: usize| i64::try_from(lane).unwrap() % channels < limit;
                    let in_guard = |lane: &usize| within(*lane) && Some(*lane) != hole;
                    lanes.filter(in_guard).for_each(|lane| given.set(lane, whole.get(lane).unwrap()));
                    let empty = Tensor::undefined(ty, &[3, 9, 4]).unwrap();
                    let fine = agree(&program, &Arguments::tensors([given, empty]));
                    assert_eq!(fine, limit <= channels && (hole.is_none() || 40 % channels >= limit));
                }
            }
        }
    }
}
