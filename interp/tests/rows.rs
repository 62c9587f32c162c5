//! Nests whose rows are long, which write whole rows at a time, and whose threads have parts of the memory for themselves: results and
//! traps are those of the reference interpreter, for rows of any length, several outputs, and reads of what was written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at what it did not expect")]

mod common;

use common::{
    agree_everywhere, assert_same_trap, assert_same_values, config, execute, func, racing, refer, run_in_all_configs,
};
use proptest::prelude::*;
use tilewright_interp::{Arguments, Config, RunError, Tensor, TrapKind, fill};
use tilewright_ir::{BinaryOp, Buffer, Expr, ForKind, PrimFunc, ScalarType, SharedExpr, Stmt, Var};

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug)]
enum Operand {
    /// The element of the first input.
    Same,
    /// Its neighbour.
    Next,
    /// One value for a row.
    OfRow,
    /// One row for all.
    OfColumn,
    Constant,
}

#[derive(Clone, Debug)]
struct Spec {
    ty: ScalarType,
    rows: i64,
    len: i64,
    /// Elements between the rows of all buffers.
    gap: i64,
    chain: Vec<(BinaryOp, Operand)>,
    second: Second,
    kind: ForKind,
    /// The place of an element of the first input that was never written.
    hole: Option<usize>,
    /// How many elements of a row are missing in the output.
    missing: i64,
}

/// What is stored besides the first output.
#[derive(Clone, Copy, Debug)]
enum Second {
    Nothing,
    /// To another output, in the same iterations.
    Beside,
    /// The output itself, again.
    InPlace,
    /// To another output, in loops of their own that read the first one, its rows in this order or in the other.
    Behind(bool),
}

fn spec() -> impl Strategy<Value = Spec> {
    // `bool` has none of the operators.
    let numbers: Vec<_> = ScalarType::ELEMENTS.into_iter().filter(|ty| *ty != ScalarType::Bool).collect();
    let ty = prop_oneof![6 => Just(ScalarType::Float32), 4 => prop::sample::select(numbers)];
    let len = prop_oneof![Just(512i64), 513..700i64, 1000..1700i64, Just(2048), 3..40i64];
    let operand =
        prop::sample::select(vec![Operand::Same, Operand::Next, Operand::OfRow, Operand::OfColumn, Operand::Constant]);
    let op = prop::sample::select(vec![BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]);
    let chain = prop::collection::vec((op, operand), 0..4);
    let second = prop_oneof![
        Just(Second::Nothing),
        Just(Second::Beside),
        Just(Second::InPlace),
        any::<bool>().prop_map(Second::Behind)
    ];
    let kind = prop::sample::select(vec![ForKind::Serial, ForKind::Parallel]);
    let gap = prop_oneof![2 => Just(0i64), 1 => 1..70i64];
    let hole = prop::option::weighted(0.2, 0..6000usize);
    let missing = prop_oneof![9 => Just(0i64), 1 => 1..9i64];
    (ty, 1..9i64, len, gap, chain, second, kind, hole, missing).prop_map(
        |(ty, rows, len, gap, chain, second, kind, hole, missing)| {
            let rows = if len < 100 { rows * 40 } else { rows };
            Spec { ty, rows, len, gap, chain, second, kind, hole, missing: missing.min(len - 1) }
        },
    )
}

fn program(spec: &Spec) -> PrimFunc {
    let of = |name: &str, shape: &[i64]| {
        Buffer::compact(name, spec.ty, shape.iter().map(|&extent| Expr::int(extent)).collect())
    };
    let shape = [spec.rows, spec.len + spec.gap + 1];
    let (a, s, r) = (of("A", &shape), of("S", &[spec.rows]), of("R", &[spec.len]));
    let out = [spec.rows, spec.len + spec.gap - spec.missing];
    let (c, d) = (of("C", &out), of("D", &out));
    let [i, j, k, l] = &["i", "j", "k", "l"].map(Var::index);
    let constant = || Expr::Cast(spec.ty.into(), SharedExpr::new(Expr::int(1)));
    let operand = |operand: Operand| match operand {
        Operand::Same => Expr::load(&a, vec![v(i), v(j)]),
        Operand::Next => Expr::load(&a, vec![v(i), v(j) + Expr::int(1)]),
        Operand::OfRow => Expr::load(&s, vec![v(i)]),
        Operand::OfColumn => Expr::load(&r, vec![v(j)]),
        Operand::Constant => constant(),
    };
    let first = operand(Operand::Same);
    let value = || spec.chain.iter().fold(first.clone(), |value, &(op, of)| Expr::binary(op, value, operand(of)));
    let at = |row: Expr, column: &Var| vec![row, v(column)];
    let last = |value: Expr| Expr::binary(BinaryOp::Max, value, constant());
    let mut stmts = vec![Stmt::store(&c, at(v(i), j), value())];
    match spec.second {
        Second::Nothing | Second::Behind(_) => {}
        Second::Beside => stmts.push(Stmt::store(&d, at(v(i), j), last(value()))),
        Second::InPlace => stmts.push(Stmt::store(&c, at(v(i), j), last(Expr::load(&c, at(v(i), j))))),
    }
    let row = |outer: &Var, inner: &Var, body: Stmt| {
        let inner = Stmt::for_loop(inner, Expr::int(spec.len), ForKind::Serial, body);
        Stmt::for_loop(outer, Expr::int(spec.rows), spec.kind, inner)
    };
    let mut nests = vec![row(i, j, Stmt::seq(stmts))];
    if let Second::Behind(reversed) = spec.second {
        let from = if reversed { Expr::int(spec.rows - 1) - v(k) } else { v(k) };
        nests.push(row(k, l, Stmt::store(&d, at(v(k), l), last(Expr::load(&c, at(from, l))))));
    }
    func(&[&a, &s, &r, &c, &d], Stmt::seq(nests))
}

/// Arguments whose memory nobody else has, with inputs that are filled.
fn arguments(spec: &Spec) -> Arguments {
    let of = |shape: &[i64], seed: Option<u64>| {
        let shape: Vec<u64> = shape.iter().map(|extent| extent.cast_unsigned()).collect();
        let mut tensor = Tensor::undefined(spec.ty, &shape).unwrap();
        if let Some(seed) = seed {
            fill(&mut tensor, seed);
        }
        tensor
    };
    let shape = [spec.rows, spec.len + spec.gap + 1];
    let mut input = of(&shape, Some(1));
    if let Some(place) = spec.hole {
        let mut flags = vec![true; input.lane_count()];
        let place = place % flags.len();
        flags[place] = false;
        input = Tensor::from_parts(spec.ty, input.shape().to_vec().as_slice(), input.into_bytes(), flags).unwrap();
    }
    let out = [spec.rows, spec.len + spec.gap - spec.missing];
    let tensors = [input, of(&[spec.rows], Some(2)), of(&[spec.len], Some(3)), of(&out, None), of(&out, None)];
    Arguments::tensors(tensors)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// One thread, three and the race check agree with the reference interpreter; with too little fuel, too.
    #[test]
    fn rows_agree_with_the_reference_interpreter(spec in spec(), fuel in prop_oneof![9 => Just(1u64 << 40), 1 => 0..9000u64]) {
        agree_everywhere(&program(&spec), &arguments(&spec), fuel);
    }

    /// The same in memory that nobody shares, which a run makes its own; a trap leaves it as it was.
    #[test]
    fn memory_that_nobody_shares_is_the_results_or_stays_as_it_was(spec in spec(), threads in 1..4usize) {
        let (program, mut args, mut expected) = (program(&spec), arguments(&spec), arguments(&spec));
        match (execute(&program, &mut args, &config(threads)), refer(&program, &mut expected, &config(1))) {
            (Ok(report), Ok(expected_report)) => {
                assert_eq!(report.iterations, expected_report.iterations);
                for position in 0..args.params.len() {
                    assert_same_values(args.tensor(position), expected.tensor(position));
                }
            }
            (Err(RunError::Trap(trap)), Err(RunError::Trap(expected))) => {
                assert_same_trap(&trap, &expected);
                let before = arguments(&spec);
                for position in 0..args.params.len() {
                    assert_eq!(args.tensor(position), before.tensor(position));
                }
            }
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        }
    }
}

/// Rows of 1500 numbers, 9 of them, and the store that a loop over rows runs in each iteration.
fn stores(kind: ForKind, place: impl Fn(&Var, &Var) -> Vec<Expr>) -> (PrimFunc, Arguments) {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let (a, c) = (common::buffer("A", &[9, 1500]), common::buffer("C", &[10, 1500]));
    let value = Expr::load(&a, vec![v(&i), v(&j)]) + Expr::float_of(0.5, ScalarType::Float32);
    let body = Stmt::for_loop(&j, Expr::int(1500), ForKind::Serial, Stmt::store(&c, place(&i, &j), value));
    let args = Arguments::tensors([common::filled(&[9, 1500], 1), common::empty(&[10, 1500])]);
    (func(&[&a, &c], Stmt::for_loop(&i, Expr::int(9), kind, body)), args)
}

#[test]
fn two_parallel_iterations_that_write_a_row_race() {
    let half = |i: &Var, j: &Var| vec![v(i).floor_div(Expr::int(2)), v(j)];
    let (program, args) = stores(ForKind::Parallel, half);
    assert_eq!(common::trap(&program, &args, &racing()).kind, TrapKind::Race);
    let overlapping = |i: &Var, j: &Var| vec![v(i) + v(j).floor_div(Expr::int(1499)), v(j)];
    let (program, args) = stores(ForKind::Parallel, overlapping);
    assert!(!matches!(execute(&program, &mut args.clone(), &racing()), Err(RunError::Input(_))));
    // One after the other they may: the last one counts, on any number of threads.
    let (program, args) = stores(ForKind::Serial, half);
    let result = run_in_all_configs(&program, &args);
    let (source, target) = (args.tensor(0).unwrap(), result.tensor(1).unwrap());
    assert_eq!(target.get_f64(7), source.get_f64(1500 + 7).map(|value| value + 0.5));
}

#[test]
fn rows_in_any_order_and_with_holes_are_written_by_all_threads() {
    let places: [fn(&Var, &Var) -> Vec<Expr>; 4] = [
        |i, j| vec![v(i), v(j)],
        |i, j| vec![v(i) + Expr::int(1), v(j)],
        |i, j| vec![Expr::int(9) - v(i), v(j)],
        |i, j| vec![v(i), Expr::int(1499) - v(j)],
    ];
    for place in places {
        let (program, args) = stores(ForKind::Serial, place);
        let result = run_in_all_configs(&program, &args);
        let target = result.tensor(1).unwrap();
        // One of ten rows is left out.
        let undefined = target.defined().iter().filter(|defined| !**defined).count();
        assert_eq!(undefined, 1500);
    }
}

#[test]
fn a_row_that_was_never_written_is_not_read_on_any_number_of_threads() {
    let (i, j, k, l) = (Var::index("i"), Var::index("j"), Var::index("k"), Var::index("l"));
    let (a, b) = (common::buffer("A", &[40, 600]), common::buffer("B", &[40, 600]));
    let c = common::buffer("C", &[40, 600]);
    let nest = |outer: &Var, inner: &Var, rows: i64, body: Stmt| {
        let inner = Stmt::for_loop(inner, Expr::int(600), ForKind::Serial, body);
        Stmt::for_loop(outer, Expr::int(rows), ForKind::Serial, inner)
    };
    let double = |buffer: &Buffer, at: Vec<Expr>| Expr::load(buffer, at) * Expr::float_of(2.0, ScalarType::Float32);
    for rows in [39, 40] {
        let at = |outer: &Var, inner: &Var| vec![v(outer), v(inner)];
        let first = nest(&i, &j, rows, Stmt::store(&b, at(&i, &j), double(&a, at(&i, &j))));
        let second = nest(&k, &l, 40, Stmt::store(&c, at(&k, &l), double(&b, at(&k, &l))));
        let program = func(&[&a, &b, &c], Stmt::seq(vec![first, second]));
        for threads in [1, 2, 5] {
            let args = Arguments::tensors([
                common::filled(&[40, 600], 1),
                common::empty(&[40, 600]),
                common::empty(&[40, 600]),
            ]);
            if rows == 40 {
                let parallel_loops = execute(&program, &mut args.clone(), &config(threads)).unwrap().parallel_loops;
                assert_eq!(parallel_loops, if threads == 1 { 0 } else { 2 });
                continue;
            }
            let trap = common::trap(&program, &args, &config(threads));
            assert_eq!(
                (trap.kind, &trap.loops[0], &trap.loops[1]),
                (TrapKind::Undefined, &("k".into(), 39), &("l".into(), 0))
            );
            let tracked =
                Config { observers: tilewright_interp::Observers { defined: false, race: false }, ..config(threads) };
            assert!(execute(&program, &mut args.clone(), &tracked).is_ok());
        }
    }
}
