//! The checked mode: what is outside of a texture by one, and the first of several, is reported with all there is to say.

use tilewright::codegen::{Access, Options};
use tilewright::harness::engine::{Engine, EngineFault, StageProgram};
use tilewright::harness::opencl::OpenCl;
use tilewright_interp::{Argument, Tensor};
use tilewright_ir::{Bindings, Expr, PrimFunc, Scalar, ScalarType, Stmt};

use crate::textures::{
    Left, arguments, broadcast, channel, function, kernels, nest, numbers, run_source, store, texel, texture,
};

const CHECKED: Options = Options { checked: true, placed: false, aliased: false };

/// Runs a function of X and Y, both of 5 rows and 7 columns, in the checked mode.
fn run(func: &PrimFunc) -> Left {
    let generated = kernels(func, CHECKED);
    run_source(&generated, &generated.source, &arguments(func, &[numbers(ScalarType::Float32, &[5, 7, 4])], &[]))
}

fn one_texel(body: impl FnOnce(&tilewright_ir::Buffer, &tilewright_ir::Buffer) -> Stmt) -> PrimFunc {
    let (x, y) = (texture("X", ScalarType::Float32, 5, 7), texture("Y", ScalarType::Float32, 5, 7));
    let body = body(&x, &y);
    function("one", &[&x, &y], nest(1, 1, |_, _| body))
}

fn value(tensor: &Tensor, row: u64, column: u64, lane: u64) -> Scalar {
    tensor.get(tensor.lane_at(&[row, column, lane]).unwrap()).unwrap()
}

const OUTSIDE: [(i64, i64); 7] = [(5, 0), (0, 7), (-1, 3), (3, -1), (5, 7), (i32::MAX as i64, 0), (0, i32::MIN as i64)];

#[test]
fn a_read_outside_by_one_is_reported_and_gives_zero() {
    for (row, column) in OUTSIDE {
        let read = |x: &_, y: &_| store(y, 2, 3, texel(x, Expr::int(row), Expr::int(column)));
        let left = run(&one_texel(read));
        let outside = left.outside.expect("it is reported");
        assert_eq!((i64::from(outside.row), i64::from(outside.column), outside.lane), (row, column, 0));
        assert_eq!((outside.height, outside.width), (Some(5), Some(7)));
        assert_eq!((outside.kernel.as_str(), outside.buffer.as_str(), outside.access), ("one_0", "X", Access::Read));
        let text = outside.to_string();
        let expected = format!(
            "kernel `one_0` reads texture `X` at row {row}, column {column}, outside of its 5 rows and 7 columns of 4 \
             lanes, in `Y[2, 3, ramp(0, 1, 4)] = X[{row}, {column}, ramp(0, 1, 4)]`"
        );
        assert_eq!(text, expected);
        assert!(value(&left.outputs["Y"], 2, 3, 1).same(Scalar::Float(0.0)));
    }
}

#[test]
fn a_write_outside_by_one_is_reported_and_left_out() {
    for (row, column) in OUTSIDE {
        let left = run(&one_texel(|x, y| store(y, Expr::int(row), Expr::int(column), texel(x, 1, 1))));
        let outside = left.outside.expect("it is reported");
        assert_eq!((i64::from(outside.row), i64::from(outside.column)), (row, column));
        assert_eq!((outside.buffer.as_str(), outside.access), ("Y", Access::Write));
        // All of Y is as poisoned as it was.
        assert!(left.outputs["Y"].bytes().iter().all(|&byte| byte == tilewright_device::POISON));
    }
}

#[test]
fn a_lane_that_is_none_is_reported() {
    for lane in [4, -1] {
        for (row, is_bad) in [(4, false), (5, true)] {
            let left = run(&one_texel(|x, y| store(y, 0, 0, broadcast(channel(x, row, 6, lane)))));
            let outside = left.outside.expect("it is reported");
            assert_eq!((i64::from(outside.row), i64::from(outside.lane)), (row, lane), "{is_bad}");
            assert!(outside.to_string().contains(&format!("column 6, lane {lane}, outside")), "{outside}");
        }
    }
}

#[test]
fn the_first_of_several_is_reported() {
    let left = run(&one_texel(|x, y| {
        let stores = [(4, 6), (5, 1), (0, 7), (-1, -1)];
        let one = |&(row, column)| store(y, 0, 0, texel(x, Expr::int(row), Expr::int(column)));
        Stmt::seq(stores.iter().map(one).collect())
    }));
    let outside = left.outside.unwrap();
    assert_eq!((outside.row, outside.column), (5, 1));
}

#[test]
fn kernels_that_come_later_do_not_hide_the_first() {
    let (x, y) = (texture("X", ScalarType::Float32, 5, 7), texture("Y", ScalarType::Float32, 5, 7));
    let shifted = |by: i64| nest(5, 7, |i, j| store(&y, i, j, texel(&x, i, Expr::from(j) + Expr::int(by))));
    let func = function("shifts", &[&x, &y], Stmt::seq(vec![shifted(0), shifted(1), shifted(9)]));
    let outside = run(&func).outside.unwrap();
    assert_eq!((outside.kernel.as_str(), outside.column), ("shifts_1", 7));
}

#[test]
fn extents_that_differ_are_not_exchanged() {
    // Row 6 and column 4 are both inside if the two are exchanged.
    let left = run(&one_texel(|x, y| store(y, 0, 0, texel(x, 6, 4))));
    assert_eq!(left.outside.unwrap().row, 6);
    let left = run(&one_texel(|x, y| store(y, 0, 0, texel(x, 4, 6))));
    assert_eq!(left.outside, None);
}

#[test]
fn the_comparison_on_a_device_says_where_a_program_leaves_a_texture() {
    let (x, y) = (texture("X", ScalarType::Float32, 5, 7), texture("Y", ScalarType::Float32, 5, 7));
    let body = nest(5, 7, |i, j| store(&y, i, j, texel(&x, Expr::from(i) + Expr::int(1), j)));
    let func = function("below", &[&x, &y], body);
    let input = Argument::Tensor(numbers(ScalarType::Float32, &[5, 7, 4]));
    let output = Argument::Tensor(Tensor::undefined(ScalarType::Float32, &[5, 7, 4]).unwrap());
    let mut arguments = tilewright_interp::Arguments { params: vec![input, output], symbols: Vec::new() };
    let device = OpenCl::open(None).unwrap();
    let fault = device.run(&StageProgram::Func(&func), &Bindings::new(), &mut arguments).unwrap_err();
    let EngineFault::Trap { message, is_undefined_read: false } = fault else { panic!("{fault:?}") };
    assert!(message.contains("kernel `below_0` reads texture `X` at row 5, column "), "{message}");
    assert!(message.contains("outside of its 5 rows and 7 columns"), "{message}");
    assert!(message.contains("in `Y[i, j, ramp(0, 1, 4)] = X[i + 1, j, ramp(0, 1, 4)]`"), "{message}");
}
