//! Traps: each kind is reported with its statement and loop values, and race-free programs do not trap.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::panic,
    reason = "a test may stop at what it did not expect; exact equality is meant"
)]

use std::sync::Arc;

mod common;

use common::{buffer, config, empty, execute, filled, func, racing, trap};
use tilewright_interp::{Arguments, Config, Observers, RunError, TrapKind};
use tilewright_ir::{Buffer, Expr, ForKind, PrimFunc, ScalarType, SharedExpr, Span, Stmt, StmtKind, ThreadTag, Var};

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

fn one() -> Expr {
    Expr::float_of(1.0, ScalarType::Float32)
}

#[test]
fn a_trap_names_buffer_index_shape_loops_and_span() {
    let target = buffer("B", &[5, 7]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(&target, vec![v(&i), v(&i) + v(&j)], one()).at(Some(Span::new(40, 52)));
    let body = Stmt::for_loop(&j, Expr::int(6), ForKind::Serial, store);
    let program = func(&[&target], Stmt::for_loop(&i, Expr::int(5), ForKind::Serial, body));
    for threads in [1, 2, 7] {
        let trap = trap(&program, &Arguments::tensors([empty(&[5, 7])]), &config(threads));
        assert_eq!(trap.kind, TrapKind::OutOfBounds);
        assert_eq!(trap.span, Some(Span::new(40, 52)));
        assert_eq!(trap.loops, [("i".to_owned(), 2), ("j".to_owned(), 5)]);
        assert!(trap.message.contains("B[2, 7]") && trap.message.contains("(5, 7)"), "{}", trap.message);
        assert_eq!(trap.statement, "B[i, i + j] = 1.0");
    }
}

#[test]
fn an_undefined_read_traps_and_gives_zero_if_unchecked() {
    let (source, target) = (buffer("A", &[9]), buffer("B", &[9]));
    let i = Var::index("i");
    let copy = Stmt::store(&target, vec![v(&i)], Expr::load(&source, vec![v(&i)]));
    let program = func(&[&source, &target], Stmt::for_loop(&i, Expr::int(9), ForKind::Serial, copy));
    let args = Arguments::tensors([empty(&[9]), empty(&[9])]);
    let trap = trap(&program, &args, &config(1));
    assert_eq!((trap.kind, trap.message.as_str()), (TrapKind::Undefined, "A[0] was never written"));
    let unchecked = Config { observers: Observers { defined: false, race: false }, ..config(1) };
    let mut args = args;
    execute(&program, &mut args, &unchecked).unwrap();
    assert_eq!(args.tensor(1).unwrap().get_f64(4), Some(0.0));
}

#[test]
fn the_first_trap_in_program_order_is_reported_for_any_number_of_threads() {
    let (source, target) = (buffer("A", &[5000]), buffer("B", &[5000]));
    let i = Var::index("i");
    let outside = v(&i) + Expr::int(137);
    let copy = Stmt::store(&target, vec![v(&i)], Expr::load(&source, vec![outside]));
    let program = func(&[&source, &target], Stmt::for_loop(&i, Expr::int(5000), ForKind::Parallel, copy));
    let args = Arguments::tensors([filled(&[5000], 1), empty(&[5000])]);
    for threads in [1, 2, 7] {
        assert_eq!(trap(&program, &args, &config(threads)).loops, [("i".to_owned(), 4863)], "{threads}");
    }
}

fn loops(kinds: [ForKind; 2], target: &Buffer, index: impl Fn(Expr, Expr) -> Expr) -> PrimFunc {
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(target, vec![index(v(&i), v(&j))], one());
    let body = Stmt::for_loop(&j, Expr::int(4), kinds[1], store);
    func(&[target], Stmt::for_loop(&i, Expr::int(5), kinds[0], body))
}

#[test]
fn a_race_is_reported_with_both_iterations() {
    let target = buffer("B", &[20]);
    let args = Arguments::tensors([empty(&[20])]);
    let (block, thread) = (ForKind::ThreadBinding(ThreadTag::Block(0)), ForKind::ThreadBinding(ThreadTag::Thread(0)));
    for kinds in [[ForKind::Parallel, ForKind::Serial], [ForKind::Serial, ForKind::Vectorized], [block, thread]] {
        let collide = loops(kinds, &target, |i, j| if kinds[0] == ForKind::Serial { i } else { i * Expr::int(0) + j });
        let trap = trap(&collide, &args, &racing());
        assert_eq!(trap.kind, TrapKind::Race, "{kinds:?}");
        assert!(trap.message.contains("writes it"), "{}", trap.message);
        let apart = loops(kinds, &target, |i, j| i * Expr::int(4) + j);
        execute(&apart, &mut args.clone(), &racing()).unwrap();
    }
}

#[test]
fn consecutive_loops_do_not_race() {
    let target = buffer("B", &[8]);
    let program = |kind: ForKind, launch: bool| {
        let (i, j, b) = (Var::index("i"), Var::index("j"), Var::index("b"));
        let write = Stmt::for_loop(&i, Expr::int(8), kind, Stmt::store(&target, vec![v(&i)], one()));
        let mirrored = Expr::load(&target, vec![Expr::int(7) - v(&j)]);
        let read = Stmt::for_loop(&j, Expr::int(8), kind, Stmt::new(StmtKind::Evaluate(mirrored)));
        let both = Stmt::seq(vec![write, read]);
        let outer = ForKind::ThreadBinding(ThreadTag::Block(0));
        func(&[&target], if launch { Stmt::for_loop(&b, Expr::int(1), outer, both) } else { both })
    };
    let threads = ForKind::ThreadBinding(ThreadTag::Thread(0));
    let args = Arguments::tensors([empty(&[8])]);
    execute(&program(ForKind::Parallel, false), &mut args.clone(), &racing()).unwrap();
    execute(&program(threads, false), &mut args.clone(), &racing()).unwrap();
    execute(&program(threads, true), &mut args.clone(), &racing()).unwrap();
}

#[test]
fn false_assertions_and_exhausted_fuel_trap() {
    let target = buffer("B", &[6]);
    let i = Var::index("i");
    let program = |is_assumed| {
        let (cond, message) = (v(&i).lt(Expr::int(4)), "too far".into());
        let assert = Stmt::new(StmtKind::Assert { cond, message, is_assumed });
        func(&[&target], Stmt::for_loop(&i, Expr::int(6), ForKind::Serial, assert))
    };
    let args = Arguments::tensors([empty(&[6])]);
    for (is_assumed, words) in
        [(false, "assertion failed: too far"), (true, "the call breaks an assumption of the function: too far")]
    {
        let failed = trap(&program(is_assumed), &args, &config(1));
        assert_eq!((failed.kind, failed.loops), (TrapKind::Assertion, vec![("i".to_owned(), 4)]));
        assert_eq!(failed.message, words);
    }
    let program = program(false);
    let starved = Config { fuel: Some(5), ..config(1) };
    assert_eq!(trap(&program, &args, &starved).kind, TrapKind::FuelExhausted);
}

#[test]
fn allocations_of_impossible_size_are_errors() {
    let target = buffer("B", &[6]);
    let args = Arguments::tensors([empty(&[6])]);
    let cases = [
        (vec![1 << 40, 1 << 20], TrapKind::Size),
        (vec![i64::MAX, i64::MAX], TrapKind::Size),
        (vec![1 << 33], TrapKind::Memory),
    ];
    for (extents, kind) in cases {
        let scratch = buffer("S", &extents);
        let body = Stmt::new(StmtKind::Evaluate(Expr::int(0)));
        let program = func(&[&target], Stmt::new(StmtKind::Allocate { buffer: scratch, body: Arc::new(body) }));
        match execute(&program, &mut args.clone(), &config(1)) {
            Err(RunError::Trap(trap)) => assert_eq!(trap.kind, kind, "{extents:?}"),
            Err(RunError::Input(diagnostic)) => {
                assert_eq!((diagnostic.code, kind), ("bad-size", TrapKind::Size), "{extents:?}");
            }
            Ok(_) => panic!("{extents:?} was allocated"),
        }
    }
}

#[test]
fn select_evaluates_both_operands_and_if_then_else_only_one() {
    let target = buffer("B", &[1]);
    let make = |select: bool| {
        let outside = SharedExpr::new(Expr::load(&target, vec![Expr::int(3)]));
        let (cond, value) = (SharedExpr::new(Expr::bool(true)), SharedExpr::new(one()));
        let value = if select { Expr::Select(cond, value, outside) } else { Expr::IfThenElse(cond, value, outside) };
        func(&[&target], Stmt::store(&target, vec![Expr::int(0)], value))
    };
    let args = Arguments::tensors([empty(&[1])]);
    assert_eq!(trap(&make(true), &args, &config(1)).kind, TrapKind::OutOfBounds);
    execute(&make(false), &mut args.clone(), &config(1)).unwrap();
}
