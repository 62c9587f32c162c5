//! Every operator, function and conversion on every type, in one lane and in vectors, against ir's own evaluation.

use tilewright_device::Session;
use tilewright_interp::Tensor;
use tilewright_ir::{
    BinaryOp, Buffer, DataType, Expr, ForKind, MathFn, Scalar, ScalarType, SharedExpr, Stmt, UnaryOp, Var, scalar,
};

use super::support::{contents, function, kernels, run_all, session};
use crate::harness::compare::{max_ulp_error, ulp_distance};

/// One case: what is computed and the expected value for each pair of inputs.
struct Case {
    name: String,
    value: Expr,
    out: ScalarType,
    /// Units in the last place that the device may be off.
    ulp: u64,
    expected: Box<dyn Fn(Scalar, Scalar) -> Option<Scalar>>,
}

/// Values worth trying: limits, signs, zeros, and a few in between.
fn samples(ty: ScalarType) -> Vec<Scalar> {
    if let Some((low, high)) = ty.integer_range() {
        // The last two lie above a tie of bfloat16 by a bit that float32 cannot hold.
        let near = [0, 1, 2, 3, 5, 7, 13, 100, (1 << 30) + (1 << 22) + 1, (1 << 40) + (1 << 32) + 1];
        let mut values: Vec<_> =
            near.iter().flat_map(|&x| [x, -x]).chain([low, low + 1, high, high - 1, high / 3]).collect();
        values.retain(|value| (low..=high).contains(value));
        values.sort_unstable();
        values.dedup();
        return values.into_iter().map(Scalar::Int).collect();
    }
    let big = scalar::round_float(ty, 60000.0);
    [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 3.3, -7.7, 100.25, 1e-3, 1e-5, big, -big, 2049.0, 257.5]
        .into_iter()
        .chain([1.0 + 2f64.powi(-8) + 2f64.powi(-40), -1.0 - 2f64.powi(-11) - 2f64.powi(-40)])
        .chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN])
        .map(|value| Scalar::Float(scalar::round_float(ty, value)))
        .collect()
}

/// All pairs of samples, padded to a multiple of 12 (for vectors of 2, 3 and 4 lanes).
fn pairs(a: ScalarType, b: ScalarType) -> Vec<(Scalar, Scalar)> {
    let (xs, ys) = (samples(a), samples(b));
    let mut pairs: Vec<_> = xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y))).collect();
    while pairs.len() % 12 != 0 {
        pairs.push(pairs[0]);
    }
    pairs
}

fn binary_cases(ty: ScalarType, a: &Expr, b: &Expr) -> Vec<Case> {
    let mut cases = Vec::new();
    for op in BinaryOp::ALL {
        let Some(out) = op.result_type(ty.into(), ty.into()) else { continue };
        cases.push(Case {
            name: format!("{op:?} {ty}"),
            value: Expr::binary(op, a.clone(), b.clone()),
            out: out.scalar,
            ulp: 0,
            expected: Box::new(move |x, y| op.eval(ty, x, y).ok()),
        });
    }
    cases
}

fn unary_cases(ty: ScalarType, a: &Expr) -> Vec<Case> {
    let mut cases = Vec::new();
    for op in [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot] {
        if op.result_type(ty.into()).is_some() {
            cases.push(Case {
                name: format!("{op:?} {ty}"),
                value: Expr::unary(op, a.clone()),
                out: ty,
                ulp: 0,
                expected: Box::new(move |x, _| op.eval(ty, x).ok()),
            });
        }
    }
    for to in ScalarType::ELEMENTS {
        let lanes = a.dtype().lanes;
        cases.push(Case {
            name: format!("{ty} to {to}"),
            value: Expr::Cast(DataType::scalar(to).with_lanes(lanes), SharedExpr::new(a.clone())),
            out: to,
            ulp: 0,
            expected: Box::new(move |x, _| Some(scalar::cast(ty, to, x))),
        });
    }
    cases
}

fn math_cases(ty: ScalarType, a: &Expr, b: &Expr) -> Vec<Case> {
    let mut cases = Vec::new();
    for function in MathFn::ALL {
        let args = [a.clone(), b.clone()][..function.info().1].to_vec();
        let Some(out) = function.result_type(&vec![ty.into(); args.len()]) else { continue };
        let n_args = args.len();
        cases.push(Case {
            name: format!("{function:?} {ty}"),
            value: Expr::Call(function, args.into()),
            out: out.scalar,
            ulp: max_ulp_error(function, ty),
            expected: Box::new(move |x, y| function.eval(ty, &[x, y][..n_args]).ok()),
        });
    }
    cases
}

fn choice_cases(ty: ScalarType, a: &Expr, b: &Expr) -> Vec<Case> {
    let less = Expr::binary(BinaryOp::Lt, a.clone(), b.clone());
    vec![Case {
        name: format!("select {ty}"),
        value: Expr::Select(SharedExpr::new(less), SharedExpr::new(a.clone()), SharedExpr::new(b.clone())),
        out: ty,
        ulp: 0,
        expected: Box::new(move |x, y| {
            let less = BinaryOp::Lt.eval(ty, x, y).ok()?.as_int()? != 0;
            Some(if less { x } else { y })
        }),
    }]
}

/// Runs all cases of a type in one program and compares every element.
fn check(session: &Session, ty: ScalarType, lanes: u16) -> usize {
    let inputs = pairs(ty, ty);
    let n = i64::try_from(inputs.len()).unwrap();
    let source = |name: &str| Buffer::compact(name, ty, vec![Expr::int(n)]);
    let (lhs, rhs) = (source("lhs"), source("rhs"));
    let i = Var::index("i");
    let index = |var: &Var| {
        if lanes == 1 {
            return Expr::from(var);
        }
        let base = Expr::from(var) * Expr::int(lanes.into());
        Expr::Ramp { base: SharedExpr::new(base), stride: SharedExpr::new(Expr::int(1)), lanes }
    };
    let (a, b) = (Expr::load(&lhs, vec![index(&i)]), Expr::load(&rhs, vec![index(&i)]));
    let mut cases = binary_cases(ty, &a, &b);
    cases.extend(unary_cases(ty, &a));
    cases.extend(math_cases(ty, &a, &b));
    cases.extend(choice_cases(ty, &a, &b));
    let outputs: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(place, case)| Buffer::compact(format!("out{place}"), case.out, vec![Expr::int(n)]))
        .collect();
    // One kernel: a driver takes longer to build it than to run it.
    let stores =
        cases.iter().zip(&outputs).map(|(case, output)| Stmt::store(output, vec![index(&i)], case.value.clone()));
    let body = Stmt::for_loop(&i, Expr::int(n / i64::from(lanes)), ForKind::Parallel, Stmt::seq(stores.collect()));
    let buffers: Vec<_> = [&lhs, &rhs].into_iter().chain(&outputs).collect();
    let generated = kernels(&function("ops", &buffers, body));
    let size = [u64::try_from(n).unwrap()];
    let tensor = |pick: fn(&(Scalar, Scalar)) -> Scalar| Tensor::from_fn(ty, &size, |k| pick(&inputs[k])).unwrap();
    let arguments = contents([(&lhs, tensor(|pair| pair.0)), (&rhs, tensor(|pair| pair.1))]);
    let results = run_all(session, &generated, &arguments);
    let mut compared = 0;
    for (case, output) in cases.iter().zip(&outputs) {
        let got = Tensor::from_bytes(case.out, &size, results[&output.data].clone()).unwrap();
        for (k, &(x, y)) in inputs.iter().enumerate() {
            let Some(expected) = (case.expected)(x, y) else { continue };
            let got = got.get(k).unwrap();
            let distance = ulp_distance(case.out, expected, got);
            assert!(
                distance <= case.ulp,
                "{} x{lanes} of {x:?}, {y:?}: expected {expected:?}, got {got:?}, {distance} ulp",
                case.name
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn operators_on_scalars_mean_what_ir_says() {
    let session = session();
    let compared: usize = ScalarType::ELEMENTS.into_iter().map(|ty| check(&session, ty, 1)).sum();
    assert!(compared > 50_000, "only {compared} values were compared");
}

#[test]
fn operators_on_vectors_mean_what_ir_says() {
    let session = session();
    let of = |lanes: u16, types: &[ScalarType]| types.iter().map(|&ty| check(&session, ty, lanes)).sum::<usize>();
    let compared = of(4, &ScalarType::ELEMENTS) + of(3, &[ScalarType::Float32, ScalarType::Int16, ScalarType::Float16]);
    assert!(compared > 50_000, "only {compared} values were compared");
}
