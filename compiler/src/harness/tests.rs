//! Chains of stages in the interpreter and on a real device.

use std::sync::Arc;

use tilewright_ir::{
    Axis, AxisSeparators, Buffer, BufferChange, BufferClaim, DataType, Definition, Evidence, Expr, ForKind, FuncAttrs,
    IndexMap, MathFn, PrimFunc, ReduceOp, ScalarType, Stage as TensorStage, StageBody, Stmt, StmtKind, Var,
};

use super::arguments::Inputs;
use super::engine::{Engine, EngineFault, Ran, StageProgram, Status};
use super::interpreter::Interpreter;
use super::opencl::OpenCl;
use super::stages::{ChainOutcome, Config, Stage, run_chain, run_chain_within};

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
    (before, after, Evidence { pass: "move".into(), buffers: vec![claim], ..Evidence::default() })
}

fn report(wrong: bool) -> super::stages::ChainOutcome {
    let device = OpenCl::open(None).expect("an OpenCL device");
    let (before, after, evidence) = chain(wrong);
    let stages = [
        Stage { name: "lower", program: StageProgram::Func(&before), evidence: None, reassociates: false },
        Stage { name: "move", program: StageProgram::Func(&after), evidence: Some(&evidence), reassociates: false },
    ];
    let absent = EngineFault::Absent("no OpenCL device".into());
    let devices: [Result<&dyn Engine, EngineFault>; 2] = [Ok(&device), Err(absent)];
    run_chain(
        &stages,
        &Config { seed: 7, symbols: Vec::new(), inputs: Inputs::Random, ..Config::default() },
        &Interpreter::default(),
        &devices,
    )
    .unwrap()
}

#[test]
fn stages_in_different_layouts_agree() {
    let report = report(false);
    let statuses: Vec<_> = report.engines.iter().map(|line| line.status).collect();
    assert_eq!(statuses, [Status::Reference, Status::Agrees, Status::Agrees, Status::Absent], "{report:#?}");
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
    let silent = Evidence { pass: "move".into(), buffers: Vec::new(), ..Evidence::default() };
    let stages = [
        Stage { name: "lower", program: StageProgram::Func(&before), evidence: None, reassociates: false },
        Stage { name: "move", program: StageProgram::Func(&after), evidence: Some(&silent), reassociates: false },
    ];
    let report = run_chain(&stages, &Config::default(), &Interpreter::default(), &[Ok(&device)]).unwrap();
    assert_eq!(report.engines[1].status, Status::Failed);
    assert_eq!(report.engines[2].status, Status::Skipped);
    assert_eq!(report.blame.as_deref(), Some("move"));
}

/// `C[i, j] = sum of A[i, k] * B[k, j]` for n x 7 and 7 x 9, as a definition, as loops, and flattened.
struct Product {
    definition: Definition,
    lowered: PrimFunc,
    flattened: PrimFunc,
}

fn product(wrong_init: bool) -> Product {
    let n = Var::index("n");
    let of = |name, shape: [Expr; 2]| Buffer::compact(name, ScalarType::Float32, shape.to_vec());
    let a = of("A", [Expr::from(&n), Expr::int(7)]);
    let b = of("B", [Expr::int(7), Expr::int(9)]);
    let c = of("C", [Expr::from(&n), Expr::int(9)]);
    let [i, j, k] = ["i", "j", "k"].map(Var::index);
    let axis = |var: &Var, extent: Expr| Axis { var: var.clone(), extent };
    let source = |a: Expr, b: Expr| a * b;
    let factors = source(
        Expr::load(&a, vec![Expr::from(&i), Expr::from(&k)]),
        Expr::load(&b, vec![Expr::from(&k), Expr::from(&j)]),
    );
    let body = StageBody::reduce(ReduceOp::Sum, vec![axis(&k, Expr::int(7))], factors);
    let stage = TensorStage { buffer: c.clone(), axes: vec![axis(&i, Expr::from(&n)), axis(&j, Expr::int(9))], body };
    let params = vec![a.clone(), b.clone(), c.clone()];
    let definition = Definition { name: "product".into(), params, stages: vec![stage] };
    let buffers = [a, b, c];
    let wrap = |views: &[Buffer; 3], flat: bool, columns: [i64; 3]| {
        let [i, j, k] = ["i", "j", "k"].map(Var::index);
        let at = |place: usize, row: &Var, column: &Var| {
            let index = vec![Expr::from(row), Expr::from(column)];
            let line = Expr::from(row) * Expr::int(columns[place]) + Expr::from(column);
            (views[place].clone(), if flat { vec![line] } else { index })
        };
        let load = |(buffer, index): (Buffer, Vec<Expr>)| Expr::load(&buffer, index);
        let store = |(buffer, index): (Buffer, Vec<Expr>), value| Stmt::store(&buffer, index, value);
        let start = if wrong_init && flat { 0.5 } else { 0.0 };
        let init = store(at(2, &i, &j), Expr::float_of(start, ScalarType::Float32));
        let value = load(at(2, &i, &j)) + source(load(at(0, &i, &k)), load(at(1, &k, &j)));
        let update = Stmt::for_loop(&k, Expr::int(7), ForKind::Serial, store(at(2, &i, &j), value));
        let inner = Stmt::for_loop(&j, Expr::int(9), ForKind::Serial, Stmt::seq(vec![init, update]));
        Stmt::for_loop(&i, Expr::from(&n), ForKind::Serial, inner)
    };
    let func = |body: Stmt| {
        let params = ["a", "b", "c"].map(|name| Var::new(name, DataType::HANDLE));
        let buffer_map = params.iter().cloned().zip(buffers.clone()).collect();
        PrimFunc { name: "product".into(), params: params.to_vec(), buffer_map, attrs: FuncAttrs::default(), body }
    };
    let lowered = func(wrap(&buffers, false, [7, 9, 9]));
    let flat = buffers.clone().map(|buffer| {
        buffer.with(|info| {
            info.shape = vec![info.shape[0].clone() * info.shape[1].clone()];
            info.axis_separators = AxisSeparators::none(1);
        })
    });
    let declared = flat.iter().fold(wrap(&flat, true, [7, 9, 9]), |body, buffer| {
        Stmt::new(StmtKind::DeclBuffer { buffer: buffer.clone(), body: Arc::new(body) })
    });
    let flattened = func(declared);
    Product { definition, lowered, flattened }
}

fn product_report(wrong_init: bool) -> super::stages::ChainOutcome {
    let product = product(wrong_init);
    let evidence = Evidence { pass: "flatten_buffer".into(), buffers: Vec::new(), ..Evidence::default() };
    let stage = |name, program, evidence| Stage { name, program, evidence, reassociates: false };
    let stages = [
        stage("definition", StageProgram::Definition(&product.definition), None),
        stage("lower", StageProgram::Func(&product.lowered), None),
        stage("flatten_buffer", StageProgram::Func(&product.flattened), Some(&evidence)),
    ];
    let device = OpenCl::open(None).expect("an OpenCL device");
    run_chain(&stages, &Config::default(), &Interpreter::default(), &[Ok(&device)]).unwrap()
}

#[test]
fn definition_loops_and_kernels_agree_bit_for_bit_on_a_symbolic_shape() {
    let report = product_report(false);
    assert!(report.is_ok(), "{report:#?}");
    assert_eq!(report.symbols, [("n".to_owned(), 2)]);
    let lines: Vec<_> =
        report.engines.iter().map(|line| (line.stage.as_deref().unwrap(), line.compared, line.max_ulp)).collect();
    assert_eq!(lines, [("definition", 0, 0), ("lower", 18, 0), ("flatten_buffer", 18, 0), ("flatten_buffer", 18, 0)]);
}

#[test]
fn a_wrong_pass_is_blamed_and_the_device_differs_too() {
    let report = product_report(true);
    assert_eq!(report.blame.as_deref(), Some("flatten_buffer"));
    let statuses: Vec<_> = report.engines.iter().map(|line| line.status).collect();
    assert_eq!(statuses, [Status::Reference, Status::Agrees, Status::Mismatch, Status::Mismatch]);
}

/// A function that replaces the first elements of `A`, which has 17.
fn replaced(body: impl Fn(Expr) -> Expr, extent: i64) -> PrimFunc {
    let a = Buffer::compact("A", ScalarType::Float32, vec![Expr::int(17)]);
    let i = Var::index("i");
    let store = Stmt::store(&a, vec![Expr::from(&i)], body(Expr::load(&a, vec![Expr::from(&i)])));
    let param = Var::new("a", DataType::HANDLE);
    let body = Stmt::for_loop(&i, Expr::int(extent), ForKind::Serial, store);
    let buffer_map = vec![(param.clone(), a)];
    PrimFunc { name: "f".into(), params: vec![param], buffer_map, attrs: FuncAttrs::default(), body }
}

/// A function in the interpreter and on a device.
fn on(device: &dyn Engine, func: &PrimFunc) -> ChainOutcome {
    let stages = [Stage { name: "input", program: StageProgram::Func(func), evidence: None, reassociates: false }];
    run_chain(&stages, &Config::default(), &Interpreter::default(), &[Ok(device)]).unwrap()
}

/// A function over `A`, in the interpreter and on the first OpenCL device.
fn in_place(body: impl Fn(Expr) -> Expr, extent: i64) -> ChainOutcome {
    on(&OpenCl::open(None).expect("an OpenCL device"), &replaced(body, extent))
}

#[test]
fn outputs_that_are_read_first_are_given_as_inputs_and_the_report_says_so() {
    let report = in_place(|x| x.clone() * x, 17);
    assert!(report.is_ok(), "{report:#?}");
    assert!(report.notes[0].contains("read before they are written"));
    assert_eq!(report.engines[1].compared, 17);
}

#[test]
fn inexact_functions_are_compared_within_their_error() {
    let report = in_place(|x| Expr::Call(MathFn::Tan, [x].into()), 17);
    assert!(report.is_ok(), "{report:#?}");
    assert_eq!(report.engines[1].compared, 17);
}

#[test]
fn a_program_that_traps_is_not_launched() {
    let report = in_place(|x| x, 18);
    let statuses: Vec<_> = report.engines.iter().map(|line| line.status).collect();
    assert_eq!(statuses, [Status::Trap, Status::Skipped]);
    assert!(report.engines[1].detail.contains("traps"), "{report:#?}");
    assert_eq!(report.blame.as_deref(), Some("input"));
}

/// A device that must not be asked to run anything.
struct Untouched;

impl Engine for Untouched {
    fn name(&self) -> &'static str {
        "untouched"
    }

    fn device(&self) -> Option<String> {
        Some("none".into())
    }

    fn run(
        &self,
        _: &StageProgram<'_>,
        _: &tilewright_ir::Bindings,
        _: &mut tilewright_interp::Arguments,
    ) -> Result<Ran, EngineFault> {
        Err(EngineFault::Error("it was asked".into()))
    }
}

/// The first 17 elements of a buffer with so many, stored by a chain on a machine with `available` bytes.
fn on_a_machine_with(elements: i64, available: u64) -> ChainOutcome {
    let a = Buffer::compact("A", ScalarType::Float32, vec![Expr::int(elements)]);
    let i = Var::index("i");
    let store = Stmt::store(&a, vec![Expr::from(&i)], Expr::float_of(1.0, ScalarType::Float32));
    let param = Var::new("a", DataType::HANDLE);
    let body = Stmt::for_loop(&i, Expr::int(17), ForKind::Serial, store);
    let buffer_map = vec![(param.clone(), a)];
    let func = PrimFunc { name: "f".into(), params: vec![param], buffer_map, attrs: FuncAttrs::default(), body };
    let stages = [Stage { name: "input", program: StageProgram::Func(&func), evidence: None, reassociates: false }];
    let (config, interpreter) = (Config::default(), Interpreter::default());
    run_chain_within(&stages, &config, &interpreter, &[Ok(&Untouched)], || Some(available)).unwrap()
}

#[test]
fn a_program_that_needs_more_memory_than_there_is_is_skipped_before_anything_is_allocated() {
    // 2.4 GB, and a mark for each element: 12 GB in four copies.
    let report = on_a_machine_with(600_000_000, 3 << 30);
    let rows: Vec<_> = report.engines.iter().map(|line| (line.status, line.detail.as_str())).collect();
    let needs = |size: &str| format!("it needs about {size} GiB of memory, and 3.0 GiB are available");
    let (interpreter, device) = (needs("11.2"), needs("38.0"));
    assert_eq!(rows, [(Status::Skipped, interpreter.as_str()), (Status::Skipped, device.as_str())]);
    assert!(!report.is_ok());
}

#[test]
fn an_engine_is_skipped_only_if_the_memory_is_too_little_for_it() {
    // 20 MB: 100 MB for the interpreter, 340 MB for a device.
    let statuses = |available| {
        let report = on_a_machine_with(5_000_000, available);
        report.engines.iter().map(|line| (line.status, line.detail.clone())).collect::<Vec<_>>()
    };
    let little = statuses(200_000_000);
    assert_eq!((little[0].0, little[1].0), (Status::Reference, Status::Skipped), "{little:?}");
    assert!(little[1].1.contains("it needs about 0.3 GiB of memory"), "{little:?}");
    let enough = statuses(400_000_000);
    assert_eq!((enough[0].0, enough[1].1.as_str()), (Status::Reference, "it was asked"), "{enough:?}");
}

/// A device whose optimiser leaves the program out, or fails as it says; without it, it runs the program, or does the same again.
#[derive(Clone)]
struct Miscompiled {
    fault: Option<EngineFault>,
    is_right_unoptimised: bool,
}

impl Engine for Miscompiled {
    fn name(&self) -> &'static str {
        "miscompiled"
    }

    fn device(&self) -> Option<String> {
        Some("none".into())
    }

    fn run(
        &self,
        program: &StageProgram<'_>,
        _: &tilewright_ir::Bindings,
        arguments: &mut tilewright_interp::Arguments,
    ) -> Result<Ran, EngineFault> {
        let StageProgram::Func(func) = program else { return Err(EngineFault::Error("no function".into())) };
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let nothing = PrimFunc { body: Stmt::seq(Vec::new()), ..(*func).clone() };
        Interpreter::default().run(&StageProgram::Func(&nothing), &tilewright_ir::Bindings::new(), arguments)
    }

    fn unoptimised(&self) -> Option<Box<dyn Engine + '_>> {
        Some(if self.is_right_unoptimised { Box::new(Interpreter::default()) } else { Box::new(self.clone()) })
    }
}

#[test]
fn a_fault_that_only_the_optimiser_of_a_driver_causes_keeps_its_status_and_says_so() {
    let func = replaced(|x| x.clone() + x, 17);
    let lost = Some(EngineFault::Lost("it ended".into()));
    for (fault, status) in [(None, Status::Mismatch), (lost, Status::Failed)] {
        for is_right_unoptimised in [true, false] {
            let report = on(&Miscompiled { fault: fault.clone(), is_right_unoptimised }, &func);
            let line = &report.engines[1];
            assert_eq!((line.status, line.agrees_unoptimised), (status, is_right_unoptimised), "{report:#?}");
        }
    }
}

#[test]
fn a_program_that_a_driver_refuses_is_not_run_again() {
    let func = replaced(|x| x.clone() + x, 17);
    let fault = Some(EngineFault::Error("the source is refused".into()));
    let report = on(&Miscompiled { fault, is_right_unoptimised: true }, &func);
    let line = &report.engines[1];
    assert_eq!((line.status, line.agrees_unoptimised), (Status::Failed, false), "{report:#?}");
}
