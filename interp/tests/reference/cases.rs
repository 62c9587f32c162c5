//! Programs and what they have to compute.

use std::sync::Arc;

use tilewright_interp::{Tensor, TrapKind};
use tilewright_ir::{
    AxisSeparators, BinaryOp as B, Buffer, DataType, Expr, For, ForKind, MathFn, PrimFunc, ScalarType as S, Scope,
    SharedExpr, Stmt, StmtKind, UnaryOp, Var,
};

use crate::common::func;

/// A function whose first parameter is its only output, and the values that it has to leave there or the trap.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) func: PrimFunc,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) expected: Result<Vec<f64>, TrapKind>,
}

pub(crate) fn int(value: i128, ty: S) -> Expr {
    Expr::int_of(value, ty).unwrap()
}

fn float(value: f64, ty: S) -> Expr {
    Expr::Float { value, ty }
}

pub(crate) fn shared(expr: Expr) -> SharedExpr {
    SharedExpr::new(expr)
}

pub(crate) fn cast(to: S, value: Expr) -> Expr {
    Expr::Cast(DataType::scalar(to).with_lanes(value.dtype().lanes), shared(value))
}

pub(crate) fn ramp(base: i64, stride: i64, lanes: u16) -> Expr {
    Expr::Ramp { base: shared(Expr::int(base)), stride: shared(Expr::int(stride)), lanes }
}

pub(crate) fn call(function: MathFn, args: &[Expr]) -> Expr {
    Expr::Call(function, args.to_vec().into())
}

pub(crate) fn vector(name: &str, ty: S, extent: i64) -> Buffer {
    Buffer::compact(name, ty, vec![Expr::int(extent)])
}

pub(crate) fn empty(buffer: &Buffer) -> Tensor {
    let shape: Vec<u64> = buffer.const_shape().unwrap().iter().map(|extent| u64::try_from(*extent).unwrap()).collect();
    Tensor::undefined(buffer.dtype, &shape).unwrap()
}

pub(crate) fn store(buffer: &Buffer, index: impl Into<Expr>, value: Expr) -> Stmt {
    Stmt::store(buffer, vec![index.into()], value)
}

fn load(buffer: &Buffer, index: impl Into<Expr>) -> Expr {
    Expr::load(buffer, [index.into()])
}

fn around(buffer: &Buffer, body: Stmt, make: fn(Buffer, Arc<Stmt>) -> StmtKind) -> Stmt {
    Stmt::new(make(buffer.clone(), Arc::new(body)))
}

pub(crate) fn allocate(buffer: &Buffer, body: Stmt) -> Stmt {
    around(buffer, body, |buffer, body| StmtKind::Allocate { buffer, body })
}

fn declare(buffer: &Buffer, body: Stmt) -> Stmt {
    around(buffer, body, |buffer, body| StmtKind::DeclBuffer { buffer, body })
}

/// A case that stores the value of an expression.
fn of_value(name: &'static str, value: Expr, expected: Result<&[f64], TrapKind>) -> Case {
    let out = Buffer::compact("O", value.dtype(), vec![Expr::int(1)]);
    of_stmt(name, &out, store(&out, 0, value), expected)
}

/// A case that runs a statement.
fn of_stmt(name: &'static str, out: &Buffer, body: Stmt, expected: Result<&[f64], TrapKind>) -> Case {
    Case { name, func: func(&[out], body), inputs: vec![empty(out)], expected: expected.map(<[f64]>::to_vec) }
}

fn arithmetic() -> Vec<Case> {
    let of =
        |name, op, ty, a, b, expected: f64| of_value(name, Expr::binary(op, int(a, ty), int(b, ty)), Ok(&[expected]));
    let floats = |name, op, ty, a, b, expected: f64| {
        of_value(name, Expr::binary(op, float(a, ty), float(b, ty)), Ok(&[expected]))
    };
    let traps = |name, op, a, b, kind| of_value(name, Expr::binary(op, int(a, S::Int16), int(b, S::Int16)), Err(kind));
    vec![
        of("int8 sums wrap", B::Add, S::Int8, 100, 100, -56.0),
        of("uint8 sums wrap", B::Add, S::UInt8, 200, 100, 44.0),
        of("uint8 differences wrap", B::Sub, S::UInt8, 3, 5, 254.0),
        of("int32 products wrap", B::Mul, S::Int32, 1 << 30, 6, -2_147_483_648.0),
        of("uint64 products wrap", B::Mul, S::UInt64, i128::from(u64::MAX), i128::from(u64::MAX), 1.0),
        of("floor division of a negative", B::FloorDiv, S::Int32, -7, 2, -4.0),
        of("floor division by a negative", B::FloorDiv, S::Int32, 7, -2, -4.0),
        of("floor modulo of a negative", B::FloorMod, S::Int32, -7, 3, 2.0),
        of("floor modulo by a negative", B::FloorMod, S::Int32, 7, -3, -2.0),
        of("truncating division", B::TruncDiv, S::Int32, -7, 2, -3.0),
        of("truncating modulo", B::TruncMod, S::Int32, -7, 3, -1.0),
        of("the one quotient that wraps", B::FloorDiv, S::Int8, -128, -1, -128.0),
        of("unsigned order", B::Lt, S::UInt8, 200, 100, 0.0),
        of("signed minimum", B::Min, S::Int8, -3, 2, -3.0),
        of("left shift into the sign", B::Shl, S::Int8, 1, 7, -128.0),
        of("arithmetic right shift", B::Shr, S::Int8, -8, 1, -4.0),
        of("logical right shift", B::Shr, S::UInt8, 200, 1, 100.0),
        of("bits", B::BitXor, S::Int8, -1, 5, -6.0),
        of("and of truth values", B::And, S::Bool, 1, 0, 0.0),
        of("or of truth values", B::Or, S::Bool, 1, 0, 1.0),
        floats("float32 rounds", B::Add, S::Float32, f64::from(0.1f32), f64::from(0.2f32), f64::from(0.1f32 + 0.2f32)),
        floats("float16 ties to even", B::Add, S::Float16, 2048.0, 1.0, 2048.0),
        floats("bfloat16 ties to even", B::Add, S::BFloat16, 256.0, 1.0, 256.0),
        floats("float16 overflows", B::Mul, S::Float16, 65504.0, 2.0, f64::INFINITY),
        floats("a NaN loses to a number", B::Min, S::Float32, f64::NAN, 1.0, 1.0),
        floats("a NaN equals nothing", B::Eq, S::Float64, f64::NAN, f64::NAN, 0.0),
        traps("division by zero", B::FloorDiv, 1, 0, TrapKind::DivisionByZero),
        traps("remainder by zero", B::TruncMod, 1, 0, TrapKind::DivisionByZero),
        traps("shift by the width", B::Shl, 1, 16, TrapKind::ShiftRange),
        traps("negative shift", B::Shr, 1, -1, TrapKind::ShiftRange),
        of_value("minus", Expr::unary(UnaryOp::Neg, int(1, S::UInt16)), Ok(&[65535.0])),
        of_value("complement", Expr::unary(UnaryOp::BitNot, int(1, S::UInt8)), Ok(&[254.0])),
        of_value("not", Expr::unary(UnaryOp::Not, Expr::bool(false)), Ok(&[1.0])),
        of_value("absolute value wraps", call(MathFn::Abs, &[int(-128, S::Int8)]), Ok(&[-128.0])),
        of_value("square root", call(MathFn::Sqrt, &[float(2.25, S::Float32)]), Ok(&[1.5])),
        of_value("round to even", call(MathFn::Round, &[float(2.5, S::Float16)]), Ok(&[2.0])),
        of_value("floor", call(MathFn::Floor, &[float(-1.5, S::Float32)]), Ok(&[-2.0])),
        of_value("is nan", call(MathFn::IsNan, &[float(f64::NAN, S::Float32)]), Ok(&[1.0])),
        of_value("power", call(MathFn::Pow, &[float(2.0, S::Float32), float(-2.0, S::Float32)]), Ok(&[0.25])),
    ]
}

fn conversions_and_conditions() -> Vec<Case> {
    let zero_divided = || Expr::int(1).floor_div(Expr::int(0));
    let if_then_else = |cond, a, b| Expr::IfThenElse(shared(cond), shared(a), shared(b));
    let (data, mask) = (vector("D", S::Int32, 3), ramp(0, 1, 4).lt(broadcast(2)));
    let guarded = if_then_else(mask.clone(), load(&data, ramp(0, 2, 4)), broadcast(-1));
    let defined = |lane| store(&data, lane, Expr::int(10 + lane));
    let out = Buffer::compact("O", DataType::INT32.with_lanes(4), vec![Expr::int(1)]);
    let lanes = Stmt::seq(vec![defined(0), defined(2), store(&out, 0, guarded)]);
    let falsehood = zero_divided().lt(Expr::int(1));
    let divides = Err(TrapKind::DivisionByZero);
    vec![
        of_value("floats become integers by truncation", cast(S::Int32, float(-2.75, S::Float32)), Ok(&[-2.0])),
        of_value("and saturate", cast(S::UInt8, float(300.0, S::Float16)), Ok(&[255.0])),
        of_value("a NaN becomes 0", cast(S::Int8, float(f64::NAN, S::Float32)), Ok(&[0.0])),
        of_value("integers wrap", cast(S::UInt32, int(-1, S::Int8)), Ok(&[4_294_967_295.0])),
        of_value("integers are rounded once", cast(S::Float32, int(16_777_217, S::Int32)), Ok(&[16_777_216.0])),
        of_value("any number but 0 is true", cast(S::Bool, int(256, S::Int16)), Ok(&[1.0])),
        of_value("narrower floats are rounded", cast(S::BFloat16, float(1.003_906_25, S::Float32)), Ok(&[1.0])),
        of_value("a ramp", ramp(3, 5, 4), Ok(&[3.0, 8.0, 13.0, 18.0])),
        of_value("a ramp wraps", cast(S::Int32, narrow_ramp()), Ok(&[120.0, -126.0, -116.0])),
        of_value("a broadcast", broadcast(7), Ok(&[7.0; 4])),
        of_value("both are evaluated by and", Expr::bool(false).and(falsehood.clone()), divides),
        of_value("both are evaluated by or", Expr::binary(B::Or, Expr::bool(true), falsehood), divides),
        of_value(
            "both are evaluated by select",
            Expr::Select(shared(Expr::bool(false)), shared(zero_divided()), shared(Expr::int(3))),
            divides,
        ),
        of_value("one is evaluated", if_then_else(Expr::bool(false), zero_divided(), Expr::int(3)), Ok(&[3.0])),
        of_value(
            "select by lane",
            Expr::Select(shared(mask), shared(broadcast(1)), shared(ramp(10, 1, 4))),
            Ok(&[1.0, 1.0, 12.0, 13.0]),
        ),
        // Lane 2 would read element 4 of 3, and lane 1 of the other order an element that was never written.
        of_stmt("each lane is evaluated by itself", &out, allocate(&data, lanes), Ok(&[10.0, 12.0, -1.0, -1.0])),
    ]
}

fn broadcast(value: i64) -> Expr {
    Expr::Broadcast { value: shared(Expr::int(value)), lanes: 4 }
}

fn narrow_ramp() -> Expr {
    Expr::Ramp { base: shared(int(120, S::Int8)), stride: shared(int(10, S::Int8)), lanes: 3 }
}

fn memory() -> Vec<Case> {
    let out = vector("O", S::Int32, 6);
    let view = |change: fn(&mut tilewright_ir::BufferInfo)| out.with(change);
    let shifted = view(|info| (info.elem_offset, info.shape) = (Expr::int(2), vec![Expr::int(4)]));
    let columns = view(|info| {
        (info.shape, info.strides) = (vec![Expr::int(3), Expr::int(2)], Some(vec![Expr::int(1), Expr::int(3)]));
        info.axis_separators = AxisSeparators::new(vec![1], 2).unwrap();
    });
    let bytes = view(|info| (info.dtype, info.shape) = (S::UInt8.into(), vec![Expr::int(24)]));
    let beyond = view(|info| info.shape = vec![Expr::int(7)]);
    let pairs = view(|info| (info.dtype, info.shape) = (DataType::INT32.with_lanes(2), vec![Expr::int(3)]));
    let fresh = vector("S", S::Int32, 4);
    let texture = Buffer::compact("T", S::Float16, [1, 2, 4].map(Expr::int).to_vec()).with(|info| {
        (info.scope, info.axis_separators) = (Scope::Texture, AxisSeparators::new(vec![1, 2], 3).unwrap());
    });
    let fill = |from: i64| store(&out, ramp(0, 1, 6), ramp(from, 1, 6));
    let texel = |index: Expr| vec![Expr::int(0), Expr::int(1), index];
    let half = Expr::Broadcast { value: shared(float(0.5, S::Float16)), lanes: 4 };
    let through_texture = Stmt::seq(vec![
        Stmt::store(&texture, texel(ramp(0, 1, 4)), half),
        fill(0),
        store(&out, 0, cast(S::Int32, Expr::load(&texture, texel(Expr::int(3))) * float(6.0, S::Float16))),
    ]);
    let cells = [Expr::int(1), Expr::int(1)];
    let column_store = Stmt::seq(vec![fill(0), Stmt::store(&columns, cells.to_vec(), Expr::int(99))]);
    let same = Expr::Ramp { base: shared(Expr::int(1)), stride: shared(Expr::int(0)), lanes: 4 };
    let outside = Err(TrapKind::OutOfBounds);
    let read_fresh = Stmt::seq(vec![store(&fresh, 1, Expr::int(5)), store(&out, 0, load(&fresh, 2))]);
    let huge = fresh.with(|info| info.shape = vec![Expr::int(1 << 40)]);
    let none = Stmt::new(StmtKind::Evaluate(Expr::int(0)));
    vec![
        of_stmt(
            "an offset counts elements",
            &out,
            Stmt::seq(vec![fill(0), declare(&shifted, store(&shifted, 1, Expr::int(99)))]),
            Ok(&[0.0, 1.0, 2.0, 99.0, 4.0, 5.0]),
        ),
        of_stmt("strides", &out, declare(&columns, column_store), Ok(&[0.0, 1.0, 2.0, 3.0, 99.0, 5.0])),
        of_stmt(
            "an alias of bytes is little endian",
            &out,
            Stmt::seq(vec![fill(0), declare(&bytes, store(&bytes, 5, int(1, S::UInt8)))]),
            Ok(&[0.0, 257.0, 2.0, 3.0, 4.0, 5.0]),
        ),
        of_stmt(
            "an element of several lanes",
            &out,
            Stmt::seq(vec![
                fill(0),
                declare(&pairs, store(&pairs, 1, Expr::Broadcast { value: shared(Expr::int(8)), lanes: 2 })),
            ]),
            Ok(&[0.0, 1.0, 8.0, 8.0, 4.0, 5.0]),
        ),
        of_stmt(
            "a texture is an array of texels",
            &out,
            allocate(&texture, through_texture),
            Ok(&[3.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ),
        of_stmt(
            "lanes are stored in order",
            &out,
            Stmt::seq(vec![fill(0), store(&out, same, ramp(20, 1, 4))]),
            Ok(&[0.0, 23.0, 2.0, 3.0, 4.0, 5.0]),
        ),
        of_stmt("an index beyond the shape", &out, store(&out, 6, Expr::int(0)), outside),
        of_stmt("a negative index", &out, store(&out, -1, Expr::int(0)), outside),
        of_stmt("a view beyond its memory", &out, declare(&beyond, store(&beyond, 6, Expr::int(0))), outside),
        of_stmt("memory starts undefined", &out, allocate(&fresh, read_fresh), Err(TrapKind::Undefined)),
        of_stmt("the limit on memory", &out, allocate(&huge, none), Err(TrapKind::Memory)),
    ]
}

fn statements() -> Vec<Case> {
    let out = vector("O", S::Int32, 4);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let v = |var: &Var| Expr::from(var);
    let range = |var: &Var, min: i64, extent: i64, kind, body| {
        let (min, extent, annotations) = (Expr::int(min), Expr::int(extent), Vec::new());
        Stmt::new(StmtKind::For(Arc::new(For { var: var.clone(), min, extent, kind, annotations, body })))
    };
    let set = |index: Expr, value: Expr| store(&out, index, value);
    let fill = || set(ramp(0, 1, 4), ramp(0, 1, 4));
    let sum = set(Expr::int(0), load(&out, 0) * Expr::int(3) + v(&j));
    let branch = StmtKind::If {
        cond: Expr::int(1).lt(v(&i)),
        then_body: Arc::new(set(v(&i), Expr::int(7))),
        else_body: Some(Arc::new(set(v(&i), Expr::int(8)))),
    };
    let bound = StmtKind::Let {
        var: j.clone(),
        value: load(&out, 1),
        body: Arc::new(Stmt::seq(vec![set(Expr::int(1), Expr::int(9)), set(Expr::int(2), v(&j))])),
    };
    let assert = |cond| Stmt::new(StmtKind::Assert { cond, message: "no".into(), is_assumed: false });
    let tiny = Var::new("t", S::Int8);
    let wide = StmtKind::For(Arc::new(For {
        var: tiny,
        min: int(120, S::Int8),
        extent: Expr::int(9),
        kind: ForKind::Serial,
        annotations: Vec::new(),
        body: fill(),
    }));
    let fuel = range(&i, 0, 1_000_001, ForKind::Serial, fill());
    vec![
        of_stmt(
            "iterations run in order from the first value",
            &out,
            Stmt::seq(vec![fill(), range(&j, 5, 3, ForKind::Unrolled, sum)]),
            Ok(&[5.0 * 9.0 + 6.0 * 3.0 + 7.0, 1.0, 2.0, 3.0]),
        ),
        of_stmt(
            "no iterations",
            &out,
            Stmt::seq(vec![fill(), range(&i, 0, -2, ForKind::Serial, set(v(&i), Expr::int(4)))]),
            Ok(&[0.0, 1.0, 2.0, 3.0]),
        ),
        of_stmt("branches", &out, range(&i, 0, 4, ForKind::Parallel, Stmt::new(branch)), Ok(&[8.0, 8.0, 7.0, 7.0])),
        of_stmt(
            "a binding keeps its value",
            &out,
            Stmt::seq(vec![fill(), Stmt::new(bound)]),
            Ok(&[0.0, 9.0, 1.0, 3.0]),
        ),
        of_stmt(
            "an assertion that holds",
            &out,
            Stmt::seq(vec![assert(Expr::bool(true)), fill()]),
            Ok(&[0.0, 1.0, 2.0, 3.0]),
        ),
        of_stmt(
            "an assertion that does not",
            &out,
            Stmt::seq(vec![assert(Expr::bool(false)), fill()]),
            Err(TrapKind::Assertion),
        ),
        of_stmt("a loop variable outside its type", &out, Stmt::new(wide), Err(TrapKind::LoopRange)),
        of_stmt("more iterations than allowed", &out, fuel, Err(TrapKind::FuelExhausted)),
    ]
}

pub(crate) fn all_cases() -> Vec<Case> {
    [arithmetic(), conversions_and_conditions(), memory(), statements()].into_iter().flatten().collect()
}
