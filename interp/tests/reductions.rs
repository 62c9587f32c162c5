//! Reductions in loops of their own, which the block engine runs outside of a block of outputs: results and traps are
//! those of the reference interpreter, with starts and ends around the loops, for every type, with guards, overlaps and holes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at what it did not expect")]

mod common;

use common::{agree_everywhere, assert_same_values, config, execute, func, refer, run_in_all_configs};
use proptest::prelude::*;
use tilewright_interp::{Arguments, Config, Observers, RunError, Tensor, TrapKind, fill};
use tilewright_ir::{BinaryOp, Buffer, Expr, ForKind, PrimFunc, Scalar, ScalarType, SharedExpr, Stmt, StmtKind, Var};

/// Elements of each buffer.
const CELLS: i64 = 1300;

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

fn filled(ty: ScalarType, seed: u64) -> Tensor {
    let mut tensor = Tensor::undefined(ty, &[CELLS.cast_unsigned()]).unwrap();
    fill(&mut tensor, seed);
    tensor
}

/// What a statement before or after the reduction does.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    /// Stores to the element of the output.
    Sets,
    /// Combines the element with something.
    Updates,
    /// Stores the element to another buffer, or its neighbour, which other iterations write.
    Copies(i64),
    /// Stores to the element in some iterations.
    Guarded,
}

fn around() -> impl Strategy<Value = Around> {
    prop_oneof![
        3 => Just(Around::Nothing),
        4 => Just(Around::Sets),
        1 => Just(Around::Updates),
        2 => (0..2i64).prop_map(Around::Copies),
        1 => Just(Around::Guarded),
    ]
}

#[derive(Clone, Debug)]
struct Spec {
    ty: ScalarType,
    /// Starts and extents of two outer loops and of two loops of the reduction.
    loops: [(i64, i64); 4],
    /// How far the loops move the places of the output and of the two inputs.
    output: [i64; 2],
    inputs: [[i64; 4]; 2],
    op: BinaryOp,
    swapped: bool,
    /// Whether an input is the output itself.
    overlaps: bool,
    divides: bool,
    /// The reduction runs where a sum of the variables is below this.
    guard: Option<i64>,
    before: Around,
    after: Around,
    kind: ForKind,
}

fn spec() -> impl Strategy<Value = Spec> {
    let extents = prop_oneof![Just([5, 23, 3, 4]), Just([2, 9, 7, 1]), Just([1, 530, 2, 1]), Just([11, 3, 2, 3])];
    let starts = [-3..3i64, -3..3, -3..3, -3..3];
    let output =
        prop_oneof![4 => Just([23, 1]), 2 => Just([1, 11]), 1 => Just([0, 1]), 1 => Just([-23, -1]), 1 => Just([2, 2])];
    let input = || {
        prop_oneof![
            Just([23, 1, 0, 0]),
            Just([5, 0, 3, 1]),
            Just([0, 1, 31, 5]),
            Just([4, 1, 4, 1]),
            Just([0, 0, 0, 0]),
            Just([-2, 2, -7, 3])
        ]
    };
    let op = prop::sample::select(vec![BinaryOp::Add, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max, BinaryOp::Sub]);
    let kind = prop::sample::select(vec![ForKind::Serial, ForKind::Parallel]);
    let flags = (any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    let guard = prop::option::weighted(0.2, -4..40i64);
    let shape = (extents, starts, output, [input(), input()]);
    (prop::sample::select(ScalarType::ELEMENTS.to_vec()), shape, (op, flags, guard), (around(), around(), kind))
        .prop_map(|(ty, (extents, starts, output, inputs), (op, flags, guard), (before, after, kind))| {
            let (swapped, overlaps, divides) = flags;
            // The types without these operators.
            let op = if ty == ScalarType::Bool { BinaryOp::Max } else { op };
            let divides = divides && ty.is_integer();
            let loops = [0, 1, 2, 3].map(|at| (starts[at], extents[at]));
            Spec { ty, loops, output, inputs, op, swapped, overlaps, divides, guard, before, after, kind }
        })
}

/// An affine index that is in bounds for all loops unless they are longer than usual.
fn index(vars: &[Var], factors: &[i64], loops: &[(i64, i64)]) -> Vec<Expr> {
    let least: i64 = factors.iter().zip(loops).map(|(by, (min, extent))| (by * min).min(by * (min + extent - 1))).sum();
    let terms = vars.iter().zip(factors).map(|(var, &factor)| v(var) * Expr::int(factor));
    vec![terms.fold(Expr::int(-least), |sum, term| sum + term)]
}

fn program(spec: &Spec) -> PrimFunc {
    let buffers = ["A", "B", "C", "D"].map(|name| Buffer::compact(name, spec.ty, vec![Expr::int(CELLS)]));
    let [a, b, c, d] = &buffers;
    let vars = ["i", "j", "k", "l"].map(Var::index);
    let [i, j, k, l] = &vars;
    let place = || index(&vars[..2], &spec.output, &spec.loops[..2]);
    let input = |which: usize, buffer: &Buffer| Expr::load(buffer, index(&vars, &spec.inputs[which], &spec.loops));
    let first = input(0, if spec.overlaps { c } else { a });
    let value = if spec.divides { first.floor_div(input(1, b)) } else { first * input(1, b) };
    let (x, y) = if spec.swapped { (value, Expr::load(c, place())) } else { (Expr::load(c, place()), value) };
    let mut update = Stmt::store(c, place(), Expr::binary(spec.op, x, y));
    if let Some(limit) = spec.guard {
        update = Stmt::guarded((v(i) + v(j) + v(k)).lt(Expr::int(limit)), update);
    }
    let range = |var: &Var, at: usize, kind: ForKind, body: Stmt| {
        let mut made = Stmt::for_loop(var, Expr::int(spec.loops[at].1), kind, body);
        if let StmtKind::For(inner) = &mut made.kind {
            std::sync::Arc::make_mut(inner).min = Expr::int(spec.loops[at].0);
        }
        made
    };
    let reduction = range(k, 2, ForKind::Serial, range(l, 3, ForKind::Serial, update));
    let one = || Expr::Cast(spec.ty.into(), SharedExpr::new(v(j) + Expr::int(4)));
    let around = |what: Around| match what {
        Around::Nothing => None,
        Around::Sets => Some(Stmt::store(c, place(), one())),
        Around::Updates => Some(Stmt::store(c, place(), Expr::load(c, place()) * one())),
        Around::Copies(by) => {
            let from: Vec<Expr> = place().into_iter().map(|at| at + Expr::int(by)).collect();
            Some(Stmt::store(d, place(), Expr::load(c, from)))
        }
        Around::Guarded => Some(Stmt::guarded(v(j).lt(Expr::int(2)), Stmt::store(c, place(), one()))),
    };
    let parts = [around(spec.before), Some(reduction), around(spec.after)];
    let body = Stmt::seq(parts.into_iter().flatten().collect());
    func(&[a, b, c, d], range(i, 0, spec.kind, range(j, 1, spec.kind, body)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1200) })]

    #[test]
    fn reductions_are_those_of_the_reference_interpreter(
        spec in spec(),
        hole in prop::option::weighted(0.3, (0..3usize, 0..CELLS)),
        zero in 0..CELLS,
        fuel in prop_oneof![9 => Just(1_000_000u64), 1 => 0..3000u64],
    ) {
        let program = program(&spec);
        let Ok(_) = tilewright_ir::validate(&program) else { return Ok(()) };
        let mut tensors = [1, 2, 3, 4].map(|seed| filled(spec.ty, seed));
        if spec.divides {
            // One zero, and often none among the elements that are read.
            for lane in 0..1300 {
                tensors[1].set(lane, Scalar::Int(i128::from(Ok(lane) != usize::try_from(zero))));
            }
        }
        if let Some((which, hole)) = hole {
            let whole = tensors[which].clone();
            tensors[which] = Tensor::undefined(spec.ty, &[CELLS.unsigned_abs()]).unwrap();
            for lane in (0..1300).filter(|&lane| Ok(lane) != usize::try_from(hole)) {
                tensors[which].set(lane, whole.get(lane).unwrap());
            }
        }
        agree_everywhere(&program, &Arguments::tensors(tensors), fuel);
    }
}

/// `C[i, j] = 0` and the sum over `k` of `A[i, k] * B[k, j]`, in ragged sizes.
fn product(ty: ScalarType, [rows, columns, inner]: [i64; 3]) -> PrimFunc {
    let shape = |name: &str, shape: [i64; 2]| Buffer::compact(name, ty, shape.map(Expr::int).to_vec());
    let (a, b, c) = (shape("A", [rows, inner]), shape("B", [inner, columns]), shape("C", [rows, columns]));
    let [i, j, k] = &["i", "j", "k"].map(Var::index);
    let at = || vec![v(i), v(j)];
    let term = Expr::load(&a, vec![v(i), v(k)]) * Expr::load(&b, vec![v(k), v(j)]);
    let update = Stmt::store(&c, at(), Expr::load(&c, at()) + term);
    let zero = Expr::Cast(ty.into(), SharedExpr::new(Expr::int(0)));
    let reduction = Stmt::for_loop(k, Expr::int(inner), ForKind::Serial, update);
    let body = Stmt::seq(vec![Stmt::store(&c, at(), zero), reduction]);
    let body = Stmt::for_loop(j, Expr::int(columns), ForKind::Serial, body);
    func(&[&a, &b, &c], Stmt::for_loop(i, Expr::int(rows), ForKind::Serial, body))
}

fn product_arguments(ty: ScalarType, [rows, columns, inner]: [u64; 3]) -> Arguments {
    let tensor = |shape: [u64; 2], seed: u64| {
        let mut tensor = Tensor::undefined(ty, &shape).unwrap();
        fill(&mut tensor, seed);
        tensor
    };
    let output = Tensor::undefined(ty, &[rows, columns]).unwrap();
    Arguments::tensors([tensor([rows, inner], 1), tensor([inner, columns], 2), output])
}

#[test]
fn matrix_products_of_ragged_sizes_have_the_bits_of_the_reference() {
    for ty in ScalarType::ELEMENTS.into_iter().filter(|ty| *ty != ScalarType::Bool) {
        for sizes in [[3, 517, 5], [2, 31, 11], [5, 17, 2], [1, 1100, 3]] {
            let args = product_arguments(ty, sizes.map(i64::cast_unsigned));
            run_in_all_configs(&product(ty, sizes), &args);
        }
    }
}

#[test]
fn an_undefined_element_in_the_middle_of_a_reduction_traps_in_its_iteration() {
    let program = product(ScalarType::Float32, [3, 600, 7]);
    let mut args = product_arguments(ScalarType::Float32, [3, 600, 7]);
    let whole = args.tensor(1).unwrap().clone();
    let mut holed = Tensor::undefined(ScalarType::Float32, &[7, 600]).unwrap();
    let hole = 4 * 600 + 401;
    (0..7 * 600).filter(|&lane| lane != hole).for_each(|lane| holed.set(lane, whole.get(lane).unwrap()));
    args.params[1] = tilewright_interp::Argument::Tensor(holed);
    assert_eq!(agree_everywhere(&program, &args, u64::MAX), Some(TrapKind::Undefined));
    let Err(RunError::Trap(trap)) = execute(&program, &mut args, &config(1)) else { panic!("there is a trap") };
    assert_eq!(trap.loops, [("i".to_owned(), 0), ("j".to_owned(), 401), ("k".to_owned(), 4)]);
}

#[test]
fn a_trap_in_a_block_is_found_with_the_last_of_the_fuel() {
    // The loops start 3, 3 * 600 and 3 * 600 * 7 iterations.
    let program = product(ScalarType::Float32, [3, 600, 7]);
    let mut args = product_arguments(ScalarType::Float32, [3, 600, 7]);
    args.params[0] = tilewright_interp::Argument::Tensor(Tensor::undefined(ScalarType::Float32, &[3, 7]).unwrap());
    for fuel in [3 + 1800 + 12600, 3 + 1800 + 12599] {
        let limited = Config { fuel: Some(fuel), ..config(1) };
        let Err(RunError::Trap(trap)) = execute(&program, &mut args, &limited) else { panic!("there is a trap") };
        assert_eq!(trap.kind, TrapKind::Undefined, "the first element read is undefined");
    }
    assert!(agree_everywhere(&program, &args, 3 + 1800 + 12600) == Some(TrapKind::Undefined));
}

#[test]
fn a_block_is_numbered_in_the_order_of_its_longest_loop() {
    // The longest loop is the second of three; the input is split as for a layout with channels in fours.
    let names = ["o", "y", "x", "i", "c", "k"].map(Var::index);
    let [o, y, x, i, c, k] = &names;
    for ty in [ScalarType::Float32, ScalarType::Float16, ScalarType::Int8, ScalarType::UInt64] {
        let buffer =
            |name: &str, shape: &[i64]| Buffer::compact(name, ty, shape.iter().map(|&n| Expr::int(n)).collect());
        let (data, weight, out) =
            (buffer("D", &[3, 7, 21, 4]), buffer("W", &[2, 12, 3, 3]), buffer("O", &[2, 7, 19, 3]));
        let quotient = v(c).floor_div(Expr::int(4));
        let input = Expr::load(&data, vec![quotient, v(y), v(x) + v(k), v(c).floor_mod(Expr::int(4))]);
        let factor = Expr::load(&weight, vec![v(o), v(c), v(k), v(i)]);
        let at = || vec![v(o), v(y), v(x), v(i)];
        let update = Stmt::store(&out, at(), Expr::load(&out, at()) + input * factor);
        let zero = Stmt::store(&out, at(), Expr::Cast(ty.into(), SharedExpr::new(v(i))));
        let nest = |loops: &[(&Var, i64)], body: Stmt| {
            loops
                .iter()
                .rev()
                .fold(body, |body, &(var, extent)| Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body))
        };
        let last = Stmt::store(&out, at(), Expr::binary(BinaryOp::Max, Expr::load(&out, at()), Expr::load(&out, at())));
        let body = Stmt::seq(vec![zero, nest(&[(c, 12), (k, 3)], update), last]);
        let program = func(&[&data, &weight, &out], nest(&[(o, 2), (y, 7), (x, 19), (i, 3)], body));
        let tensor = |shape: &[u64], seed| {
            let mut tensor = Tensor::undefined(ty, shape).unwrap();
            fill(&mut tensor, seed);
            tensor
        };
        let output = Tensor::undefined(ty, &[2, 7, 19, 3]).unwrap();
        let tensors = [tensor(&[3, 7, 21, 4], 1), tensor(&[2, 12, 3, 3], 2), output];
        run_in_all_configs(&program, &Arguments::tensors(tensors));
    }
}

#[test]
fn a_trap_leaves_the_arguments_and_the_tensors_they_share_as_they_were() {
    let program = product(ScalarType::Float32, [3, 600, 7]);
    let mut args = product_arguments(ScalarType::Float32, [3, 600, 7]);
    let copy = args.clone();
    execute(&program, &mut args, &config(2)).unwrap();
    assert!(copy.tensor(2).unwrap().is_none_defined(), "a clone of the result shares nothing with it");
    assert_eq!((args.tensor(0), args.tensor(1)), (copy.tensor(0), copy.tensor(1)));
    let result = args.tensor(2).unwrap().clone();
    // A second run writes a defined tensor; then one without an input traps after it has begun to write.
    execute(&program, &mut args, &config(1)).unwrap();
    assert_eq!(args.tensor(2), Some(&result));
    let mut holed = Tensor::undefined(ScalarType::Float32, &[3, 7]).unwrap();
    (0..14).for_each(|lane| holed.set(lane, Scalar::Float(1.0)));
    args.params[0] = tilewright_interp::Argument::Tensor(holed);
    for output in [Tensor::undefined(ScalarType::Float32, &[3, 600]).unwrap(), result] {
        args.params[2] = tilewright_interp::Argument::Tensor(output.clone());
        execute(&program, &mut args, &config(1)).unwrap_err();
        assert_eq!(args.tensor(2), Some(&output));
    }
}

#[test]
fn a_guarded_reduction_touches_only_the_elements_that_it_reduces_to() {
    let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
    for ty in [ScalarType::Float32, ScalarType::Int16, ScalarType::Float16] {
        let shape =
            |name: &str, extents: &[i64]| Buffer::compact(name, ty, extents.iter().map(|&n| Expr::int(n)).collect());
        let (source, target) = (shape("A", &[40, 5]), shape("B", &[40]));
        let update = Expr::load(&target, vec![v(&j)]) + Expr::load(&source, vec![v(&j), v(&k)]);
        let inside = (v(&j) + v(&k) + v(&i) * Expr::int(20)).lt(Expr::int(25));
        let body = Stmt::guarded(inside, Stmt::store(&target, vec![v(&j)], update));
        let body = Stmt::for_loop(&k, Expr::int(5), ForKind::Serial, body);
        let body = Stmt::for_loop(&j, Expr::int(40), ForKind::Serial, body);
        let program = func(&[&source, &target], Stmt::for_loop(&i, Expr::int(2), ForKind::Serial, body));
        let mut input = Tensor::undefined(ty, &[40, 5]).unwrap();
        fill(&mut input, 3);
        for (defined, holes) in [(true, 0), (true, 30), (false, 0), (false, 30), (false, 40)] {
            let mut output = Tensor::undefined(ty, &[40]).unwrap();
            (0..40 - holes).for_each(|lane| output.set(lane, Scalar::Int(2)));
            let args = Arguments::tensors([input.clone(), output]);
            let observers = Observers { defined, race: false };
            let (mut got, mut expected) = (args.clone(), args.clone());
            let config = Config { observers, ..config(1) };
            let results = [execute(&program, &mut got, &config), refer(&program, &mut expected, &config)];
            assert_eq!(results[0].is_ok(), results[1].is_ok());
            assert_same_values(got.tensor(1), expected.tensor(1));
        }
    }
}

/// A loop from 0 around a statement.
fn each(var: &Var, extent: i64, body: Stmt) -> Stmt {
    Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body)
}

fn ints(name: &str, extents: &[i64]) -> Buffer {
    Buffer::compact(name, ScalarType::Int32, extents.iter().map(|&n| Expr::int(n)).collect())
}

#[test]
fn an_element_that_several_iterations_store_keeps_the_last_value() {
    let (i, j) = (Var::index("i"), Var::index("j"));
    for (step, extent) in [(1, 3), (2, 3), (3, 3), (0, 7)] {
        let target = ints("B", &[400]);
        let value = v(&i) * Expr::int(10) + v(&j);
        let body = Stmt::store(&target, vec![v(&i) * Expr::int(step) + v(&j)], value);
        let program = func(&[&target], each(&i, 100, each(&j, extent, body)));
        run_in_all_configs(&program, &Arguments::tensors([Tensor::undefined(ScalarType::Int32, &[400]).unwrap()]));
    }
}

#[test]
fn a_block_that_is_repeated_combines_nothing_twice() {
    // The last phase stops at elements that were never written and that it does not touch, after the one before has added to others.
    let (i, k, l) = (Var::index("i"), Var::index("k"), Var::index("l"));
    let (source, sums, others) = (ints("A", &[100, 3]), ints("D", &[200]), ints("E", &[200]));
    let plus = |at: i64| v(&i) + Expr::int(at);
    let added = |to: &Buffer, at: Expr, turn: &Var| {
        let value = Expr::load(to, vec![at.clone()]) + Expr::load(&source, vec![v(&i), v(turn)]);
        Stmt::store(to, vec![at], value)
    };
    let guarded = Stmt::guarded((v(&i) + v(&l)).lt(Expr::int(50)), added(&others, v(&i), &l));
    let body = Stmt::seq(vec![
        Stmt::store(&sums, vec![v(&i)], Expr::int(0)),
        Stmt::store(&others, vec![plus(100)], Expr::int(0)),
        each(&k, 3, added(&sums, plus(100), &k)),
        each(&l, 3, guarded),
    ]);
    let program = func(&[&source, &sums, &others], each(&i, 100, body));
    let mut input = Tensor::undefined(ScalarType::Int32, &[100, 3]).unwrap();
    fill(&mut input, 5);
    let defined = |lanes: usize| {
        let mut tensor = Tensor::undefined(ScalarType::Int32, &[200]).unwrap();
        (0..lanes).for_each(|lane| tensor.set(lane, Scalar::Int(7)));
        tensor
    };
    for lanes in [50, 100, 200] {
        let args = Arguments::tensors([input.clone(), defined(200), defined(lanes)]);
        assert_eq!(agree_everywhere(&program, &args, 1 << 20), None);
    }
}

#[test]
fn a_block_that_ends_inside_of_an_outer_iteration_is_continued_there() {
    // The extent of `j` is 7, as its range says, and code computes it; `i // 4` keeps blocks from being whole iterations of `i`.
    let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
    let (source, sums) = (ints("A", &[50, 4, 3]), ints("E", &[1400]));
    let place = || v(&i) * Expr::int(7) + v(&j);
    let digits = vec![v(&i).floor_div(Expr::int(4)), Expr::binary(BinaryOp::FloorMod, v(&i), Expr::int(4)), v(&k)];
    let value = Expr::load(&sums, vec![place()]) + Expr::load(&source, digits);
    let update = each(&k, 3, Stmt::guarded(place().lt(Expr::int(1000)), Stmt::store(&sums, vec![place()], value)));
    let extent = Expr::int(7) + v(&i).floor_div(Expr::int(4096));
    let body = Stmt::for_loop(&j, extent, ForKind::Serial, update);
    let program = func(&[&source, &sums], each(&i, 200, body));
    let mut input = Tensor::undefined(ScalarType::Int32, &[50, 4, 3]).unwrap();
    fill(&mut input, 5);
    for lanes in [1000, 1400] {
        let mut output = Tensor::undefined(ScalarType::Int32, &[1400]).unwrap();
        (0..lanes).for_each(|lane| output.set(lane, Scalar::Int(7)));
        assert_eq!(agree_everywhere(&program, &Arguments::tensors([input.clone(), output]), 1 << 20), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    /// Plain stores of nests in which several iterations may have one element: the last one in program order stays.
    #[test]
    fn stores_of_nests_keep_their_order(
        extents in prop::array::uniform3(1..40i64),
        steps in prop::array::uniform3(0..4i64),
        guard in prop::option::of(0..60i64),
        split in 1..5i64,
    ) {
        let vars = ["x", "y", "z"].map(Var::index);
        let sum = |steps: &[i64]| {
            let terms = vars.iter().zip(steps).map(|(var, step)| v(var) * Expr::int(*step));
            terms.reduce(|a, b| a + b).unwrap()
        };
        let place = sum(&steps);
        let target = ints("B", &[100, split]);
        let digits = vec![
            place.clone().floor_div(Expr::int(split)),
            Expr::binary(BinaryOp::FloorMod, place, Expr::int(split)),
        ];
        let digits = if split == 1 { vec![sum(&steps).floor_div(Expr::int(4)), Expr::int(0)] } else { digits };
        let store = Stmt::store(&target, digits, sum(&[10_000, 100, 1]));
        let store = match guard {
            Some(end) => Stmt::guarded(sum(&[1, 1, 1]).lt(Expr::int(end)), store),
            None => store,
        };
        let body = vars.iter().zip(extents).rev().fold(store, |body, (var, extent)| each(var, extent, body));
        let mut output = Tensor::undefined(ScalarType::Int32, &[100, split.cast_unsigned()]).unwrap();
        fill(&mut output, 1);
        agree_everywhere(&func(&[&target], body), &Arguments::tensors([output]), 1 << 20);
    }

    /// Nests in which the innermost loop alone makes several blocks: rows with gaps or without, of memory of their own or in place,
    /// moved back or forth, and with an element that holds nothing.
    #[test]
    fn long_rows_are_those_of_the_reference_interpreter(
        rows in prop::array::uniform2(1..5i64),
        row in prop_oneof![Just(512i64), Just(515), 600..1100i64],
        gap in prop_oneof![2 => Just(0i64), 1 => 1..70i64],
        shift in prop_oneof![3 => Just(2i64), 1 => 0..5i64],
        in_place in any::<bool>(),
        hole in prop::option::of(0..4000usize),
    ) {
        let [x, y, z] = ["x", "y", "z"].map(Var::index);
        let size = rows[0] * rows[1] * (row + gap) + 8;
        let (source, target) = (ints("A", &[size]), ints("B", &[size]));
        let place = || (v(&x) * Expr::int(rows[1]) + v(&y)) * Expr::int(row + gap) + v(&z);
        let read = Expr::load(if in_place { &target } else { &source }, vec![place() + Expr::int(shift)]);
        let store = Stmt::store(&target, vec![place() + Expr::int(2)], read * Expr::int(3) + v(&y));
        let body = each(&x, rows[0], each(&y, rows[1], each(&z, row, store)));
        let mut tensors = [(); 2].map(|()| Tensor::undefined(ScalarType::Int32, &[size.cast_unsigned()]).unwrap());
        fill(&mut tensors[0], 1);
        if in_place {
            fill(&mut tensors[1], 2);
        }
        if let Some(hole) = hole {
            let tensor = &mut tensors[usize::from(in_place)];
            let mut flags = vec![true; tensor.lane_count()];
            let at = hole % flags.len();
            flags[at] = false;
            *tensor = Tensor::from_parts(ScalarType::Int32, &[size.cast_unsigned()], tensor.bytes().to_vec(), flags).unwrap();
        }
        agree_everywhere(&func(&[&source, &target], body), &Arguments::tensors(tensors), 1 << 20);
    }
}
