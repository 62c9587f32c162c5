//! Chains of stages in the interpreter and on a real device.

use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, DataType, Evidence, Expr, ForKind, FuncAttrs, IndexMap, PrimFunc, ScalarType,
    Stmt, Var,
};

use super::engine::{Engine, Fault, Program, Status};
use super::interpreter::Interpreter;
use super::opencl::OpenCl;
use super::stages::{Config, Stage, run_chain};

/// `B[i, j] = A[i, j] + 1` in physical memory given by the two index functions, both buffers of rank 1.
fn addone(a: &Buffer, b: &Buffer, extents: [i64; 2], at: impl Fn(Expr, Expr) -> (Expr, Expr)) -> PrimFunc {
    let vars = ["i", "j"].map(Var::index);
    let (from, to) = at(Expr::from(&vars[0]), Expr::from(&vars[1]));
    let value = Expr::load(a, vec![from]) + Expr::float_of(1.0, ScalarType::Float32);
    let store = Stmt::store(b, vec![to], value);
    let inner = Stmt::for_loop(&vars[1], Expr::int(extents[1]), ForKind::Serial, store);
    let body = Stmt::for_loop(&vars[0], Expr::int(extents[0]), ForKind::Serial, inner);
    let params = ["a", "b"].map(|name| Var::new(name, DataType::HANDLE));
    let buffer_map = params.iter().cloned().zip([a.clone(), b.clone()]).collect();
    PrimFunc { name: "addone".into(), params: params.to_vec(), buffer_map, attrs: FuncAttrs::default(), body }
}

fn row_major(columns: i64) -> impl Fn(Expr, Expr) -> (Expr, Expr) {
    move |i, j| {
        let index = i * Expr::int(columns) + j;
        (index.clone(), index)
    }
}

/// A and B of 7 x 9 in one axis; B moved to 9 x 7 in a second stage, which may get its index wrong.
fn chain(wrong: bool) -> (PrimFunc, PrimFunc, Evidence) {
    let buffer = |name| Buffer::compact(name, ScalarType::Float32, vec![Expr::int(63)]);
    let (a, b) = (buffer("A"), buffer("B"));
    let moved = b.with(|info| info.shape = vec![Expr::int(70)]);
    let before = addone(&a, &b, [7, 9], row_major(9));
    let after = addone(&a, &moved, [7, 9], |i, j| {
        let row = if wrong { Expr::int(6) - i.clone() } else { i.clone() };
        (i * Expr::int(9) + j.clone(), j * Expr::int(7) + row)
    });
    let x = Var::index("x");
    let transposed = Expr::from(&x).floor_mod(Expr::int(9)) * Expr::int(7) + Expr::from(&x).floor_div(Expr::int(9));
    let map = IndexMap::new(vec![x], vec![Expr::int(63)], vec![transposed], vec![]).unwrap();
    let claim = BufferClaim { before: b, after: moved, map, change: BufferChange::Layout, padded_axes: vec![0] };
    (before, after, Evidence { pass: "move".into(), buffers: vec![claim] })
}

fn report(wrong: bool) -> super::stages::ChainReport {
    let device = OpenCl::open(None).expect("an OpenCL device");
    let (before, after, evidence) = chain(wrong);
    let stages = [
        Stage { name: "lower", program: Program::Func(&before), evidence: None, reassociates: false },
        Stage { name: "move", program: Program::Func(&after), evidence: Some(&evidence), reassociates: false },
    ];
    let absent = Fault::Skipped("no OpenCL device".into());
    let devices: [Result<&dyn Engine, Fault>; 2] = [Ok(&device), Err(absent)];
    run_chain(&stages, &Config { seed: 7, symbols: Vec::new() }, &Interpreter::default(), &devices).unwrap()
}

#[test]
fn stages_in_different_layouts_agree() {
    let report = report(false);
    let statuses: Vec<_> = report.engines.iter().map(|line| line.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Ok, Status::Ok, Status::Skipped], "{report:#?}");
    assert_eq!(report.engines[1].compared, 63);
    assert_eq!(report.engines[2].compared, 63);
    assert_eq!(report.blame, None);
    assert!(!report.is_ok(), "a skipped engine is no success");
}

#[test]
fn the_stage_that_differs_is_blamed() {
    let report = report(true);
    assert_eq!(report.blame.as_deref(), Some("move"));
    let line = &report.engines[1];
    assert_eq!(line.status, Status::Mismatch);
    assert!(line.mismatches > 0 && line.first.is_some(), "{line:?}");
}

#[test]
fn a_parameter_replaced_without_a_claim_is_an_error() {
    let device = OpenCl::open(None).expect("an OpenCL device");
    let (before, after, _) = chain(false);
    let silent = Evidence { pass: "move".into(), buffers: Vec::new() };
    let stages = [
        Stage { name: "lower", program: Program::Func(&before), evidence: None, reassociates: false },
        Stage { name: "move", program: Program::Func(&after), evidence: Some(&silent), reassociates: false },
    ];
    let report = run_chain(&stages, &Config::default(), &Interpreter::default(), &[Ok(&device)]).unwrap();
    assert_eq!(report.engines[1].status, Status::Error);
    assert_eq!(report.engines[2].status, Status::Skipped);
    assert_eq!(report.blame.as_deref(), Some("move"));
}
