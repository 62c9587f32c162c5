//! Throughput of the interpreter on one thread and on two, in elements stored, or in multiply-adds for reductions.
#![allow(missing_docs, clippy::expect_used, reason = "criterion's macros make functions; a benchmark may stop")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_interp::{Arguments, Config, Tensor, as_function, fill, run};
use tilewright_ir::{
    Axis, Buffer, DataType, Definition, Expr, ForKind, FuncAttrs, PrimFunc, ReduceOp, ScalarType, Stage, StageBody,
    Stmt, Var, validate,
};

fn buffer(name: &str, shape: &[i64]) -> Buffer {
    Buffer::compact(name, ScalarType::Float32, shape.iter().map(|&extent| Expr::int(extent)).collect())
}

fn func(buffers: &[&Buffer], body: Stmt) -> PrimFunc {
    let params: Vec<_> = buffers.iter().map(|buffer| Var::new(buffer.name.clone(), DataType::HANDLE)).collect();
    let buffer_map = params.iter().cloned().zip(buffers.iter().map(|&buffer| buffer.clone())).collect();
    PrimFunc { name: "bench".into(), params, buffer_map, attrs: FuncAttrs::default(), body }
}

fn nest(vars: &[&Var], extents: &[i64], body: Stmt) -> Stmt {
    let loops = vars.iter().zip(extents).rev();
    loops.fold(body, |body, (var, &extent)| Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body))
}

/// A tensor without defined elements for a buffer.
fn undefined(buffer: &Buffer) -> Tensor {
    let extent = |expr: &Expr| u64::try_from(expr.as_const_int().expect("constant")).expect("positive");
    let shape: Vec<_> = buffer.shape.iter().map(extent).collect();
    Tensor::undefined(buffer.dtype, &shape).expect("small")
}

/// Tensors for all parameters but the last one, filled.
fn inputs(func: &PrimFunc) -> Vec<Tensor> {
    let (_, buffers) = func.buffer_map.split_last().expect("parameters");
    let tensor = |(seed, (_, buffer)): (usize, &(Var, Buffer))| {
        let mut tensor = undefined(buffer);
        fill(&mut tensor, seed as u64);
        tensor
    };
    buffers.iter().enumerate().map(tensor).collect()
}

/// Arguments for all parameters; memory has been found for the last one, which is the result.
fn arguments(func: &PrimFunc, inputs: &[Tensor]) -> Arguments {
    let (_, buffer) = func.buffer_map.last().expect("parameters");
    let mut result = undefined(buffer);
    result.touch();
    Arguments::tensors(inputs.iter().cloned().chain([result]))
}

fn measure(criterion: &mut Criterion, name: &str, elements: u64, func: &PrimFunc, threads: &[usize]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(elements)).sample_size(10);
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    let inputs = inputs(func);
    let valid = validate(func).expect("well formed");
    for &threads in threads {
        let config = Config { threads, ..Config::default() };
        group.bench_function(format!("{threads} threads"), |bencher| {
            let once = |mut args: Arguments| {
                black_box(run(valid, &mut args, &config).expect("no trap"));
                args
            };
            bencher.iter_batched(|| arguments(func, &inputs), once, BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

/// NHWC to NCHW, and NHWC to NCHW4c with arithmetic.
fn relayout(criterion: &mut Criterion) {
    let (source, copy) = (buffer("A", &[4, 56, 56, 64]), buffer("C", &[4, 64, 56, 56]));
    let target = buffer("B", &[4, 16, 56, 56, 4]);
    let names = ["n", "co", "h", "w", "ci"].map(Var::index);
    let [n, co, h, w, ci] = &names;
    let load = |c: Expr| Expr::load(&source, vec![v(n), v(h), v(w), c]);
    let body = Stmt::store(&copy, vec![v(n), v(ci), v(h), v(w)], load(v(ci)));
    let program = func(&[&source, &copy], nest(&[n, ci, h, w], &[4, 64, 56, 56], body));
    measure(criterion, "relayout", 802_816, &program, &[1, 2]);
    let channel = || v(co) * Expr::int(4) + v(ci);
    let value = load(channel()) * Expr::float_of(2.0, ScalarType::Float32) + load(channel());
    let body = Stmt::store(&target, vec![v(n), v(co), v(h), v(w), v(ci)], value.clone());
    let program = func(&[&source, &target], nest(&[n, co, h, w, ci], &[4, 16, 56, 56, 4], body));
    measure(criterion, "multiply-add NHWC to NCHW4c", 802_816, &program, &[1, 2]);
    // 62 of 64 channels: a split whose factor does not divide the extent leaves such a guard.
    let body = Stmt::store(&target, vec![v(n), v(co), v(h), v(w), v(ci)], value);
    let body = Stmt::guarded(channel().lt(Expr::int(62)), body);
    let program = func(&[&source, &target], nest(&[n, co, h, w, ci], &[4, 16, 56, 56, 4], body));
    measure(criterion, "the same guarded", 802_816, &program, &[1, 2]);
}

/// A definition with one stage, a sum over `reduced`.
fn sum(params: [&Buffer; 3], axes: &[(&Var, i64)], reduced: &[(&Var, i64)], source: Expr) -> PrimFunc {
    let axis = |&(var, extent): &(&Var, i64)| Axis { var: var.clone(), extent: Expr::int(extent) };
    let body = StageBody::reduce(ReduceOp::Sum, reduced.iter().map(axis).collect(), source);
    let stage = Stage { buffer: params[2].clone(), axes: axes.iter().map(axis).collect(), body };
    let params = params.into_iter().cloned().collect();
    as_function(&Definition { name: "sum".into(), params, stages: vec![stage] })
}

fn sums(criterion: &mut Criterion) {
    let names = ["n", "y", "x", "o", "ky", "kx", "c"].map(Var::index);
    let [n, y, x, o, ky, kx, c] = &names;
    let (rows, ones, total) = (buffer("A", &[300, 1000]), buffer("I", &[1]), buffer("S", &[300]));
    let source = Expr::load(&rows, vec![v(y), v(c)]) * Expr::load(&ones, vec![Expr::int(0)]);
    let reduction = sum([&rows, &ones, &total], &[(y, 300)], &[(c, 1000)], source);
    measure(criterion, "sum of rows", 300_000, &reduction, &[1, 2]);
    let (a, b, product) = (buffer("A", &[128, 112]), buffer("B", &[112, 96]), buffer("C", &[128, 96]));
    let source = Expr::load(&a, vec![v(y), v(c)]) * Expr::load(&b, vec![v(c), v(x)]);
    let matmul = sum([&a, &b, &product], &[(y, 128), (x, 96)], &[(c, 112)], source);
    measure(criterion, "matrix product 128x96x112", 128 * 96 * 112, &matmul, &[1, 2]);
    let (data, weight) = (buffer("D", &[1, 30, 30, 32]), buffer("W", &[3, 3, 32, 32]));
    let out = buffer("O", &[1, 28, 28, 32]);
    let source = Expr::load(&data, vec![v(n), v(y) + v(ky), v(x) + v(kx), v(c)])
        * Expr::load(&weight, vec![v(ky), v(kx), v(c), v(o)]);
    let axes = [(n, 1), (y, 28), (x, 28), (o, 32)];
    let conv = sum([&data, &weight, &out], &axes, &[(ky, 3), (kx, 3), (c, 32)], source);
    measure(criterion, "convolution 3x3", 28 * 28 * 32 * 9 * 32, &conv, &[1, 2]);
}

/// Programs of the size at which they are compared with numpy and with compiled kernels (docs/BENCHMARKS.md).
fn large(criterion: &mut Criterion) {
    let names = ["n", "y", "x", "o", "ky", "kx", "c", "oi"].map(Var::index);
    let [n, y, x, o, ky, kx, c, oi] = &names;
    let four = |name| buffer(name, &[4, 50, 50, 1000]);
    let (a, b) = (four("A"), four("B"));
    let at = || vec![v(n), v(y), v(x), v(c)];
    let two = Expr::float_of(2.0, ScalarType::Float32);
    let value = Expr::load(&a, at()) * two + Expr::float_of(1.0, ScalarType::Float32);
    let program = func(&[&a, &b], nest(&[n, y, x, c], &[4, 50, 50, 1000], Stmt::store(&b, at(), value)));
    measure(criterion, "multiply-add of 10000000", 10_000_000, &program, &[1, 2]);
    let square = |name| buffer(name, &[512, 512]);
    let (a, b, product) = (square("A"), square("B"), square("C"));
    let source = Expr::load(&a, vec![v(y), v(c)]) * Expr::load(&b, vec![v(c), v(x)]);
    let matmul = sum([&a, &b, &product], &[(y, 512), (x, 512)], &[(c, 512)], source);
    measure(criterion, "matrix product 512x512x512", 512 * 512 * 512, &matmul, &[1, 2]);
    let (data, weight) = (buffer("D", &[1, 58, 58, 64]), buffer("W", &[3, 3, 64, 64]));
    let out = buffer("O", &[1, 56, 56, 64]);
    let source = Expr::load(&data, vec![v(n), v(y) + v(ky), v(x) + v(kx), v(c)])
        * Expr::load(&weight, vec![v(ky), v(kx), v(c), v(o)]);
    let axes = [(n, 1), (y, 56), (x, 56), (o, 64)];
    let conv = sum([&data, &weight, &out], &axes, &[(ky, 3), (kx, 3), (c, 64)], source);
    let multiply_adds = 56 * 56 * 64 * 9 * 64;
    measure(criterion, "convolution 3x3 of 64 channels, NHWC", multiply_adds, &conv, &[1, 2]);
    let (data, weight) = (buffer("D", &[1, 16, 58, 58, 4]), buffer("W", &[16, 64, 3, 3, 4]));
    let out = buffer("O", &[1, 16, 56, 56, 4]);
    let quotient = || v(c).floor_div(Expr::int(4));
    let source = Expr::load(&data, vec![v(n), quotient(), v(y) + v(ky), v(x) + v(kx), v(c).floor_mod(Expr::int(4))])
        * Expr::load(&weight, vec![v(o), v(c), v(ky), v(kx), v(oi)]);
    let axes = [(n, 1), (o, 16), (y, 56), (x, 56), (oi, 4)];
    let conv = sum([&data, &weight, &out], &axes, &[(c, 64), (ky, 3), (kx, 3)], source);
    measure(criterion, "convolution 3x3 of 64 channels, NCHW4c", multiply_adds, &conv, &[1, 2]);
}

/// Nests of few iterations each, which cost what it takes to enter them.
fn small(criterion: &mut Criterion) {
    let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
    let (a, b, c) = (buffer("A", &[50000, 8]), buffer("B", &[50000, 8]), buffer("C", &[50000, 8]));
    let one = Stmt::store(
        &b,
        vec![v(&i), v(&j)],
        Expr::load(&a, vec![v(&i), v(&j)]) * Expr::float_of(2.0, ScalarType::Float32),
    );
    let two = Stmt::store(
        &c,
        vec![v(&i), v(&k)],
        Expr::load(&a, vec![v(&i), v(&k)]) + Expr::float_of(2.0, ScalarType::Float32),
    );
    let body = Stmt::seq(vec![nest(&[&j], &[8], one), nest(&[&k], &[8], two)]);
    let program = func(&[&a, &b, &c], nest(&[&i], &[50000], body));
    measure(criterion, "small nests", 800_000, &program, &[1]);
}

criterion_group!(benches, relayout, sums, large, small);

criterion_main!(benches);
