//! The values computed for many points at once are those of the language's own evaluation of each point.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tilewright_ir::{BinaryOp, Bindings, DataType, Expr, MathFn, ScalarType, SharedExpr, UnaryOp, Var};

use super::program::PointProgram;
use super::search::Collision;
use super::*;
use crate::concrete::row_major;
use crate::judge::{Config, Judge};

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

/// A random integer expression of every operator over some variables.
fn expression(vars: Vec<Var>) -> impl Strategy<Value = Expr> {
    let constant = prop_oneof![-9i64..40, Just(1), Just(2), Just(4), Just(8), Just(64)].prop_map(Expr::int);
    let leaf = prop_oneof![2 => prop::sample::select(vars).prop_map(Expr::from), 1 => constant];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let int_op = prop::sample::select(vec![
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::FloorDiv,
            BinaryOp::FloorMod,
            BinaryOp::TruncDiv,
            BinaryOp::TruncMod,
            BinaryOp::Min,
            BinaryOp::Max,
            BinaryOp::BitAnd,
            BinaryOp::BitOr,
            BinaryOp::BitXor,
            BinaryOp::Shl,
            BinaryOp::Shr,
        ]);
        let comparisons = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
        let compare = (prop::sample::select(comparisons.to_vec()), inner.clone(), inner.clone())
            .prop_map(|(op, a, b)| Expr::binary(op, a, b));
        let logic = (prop::sample::select(vec![BinaryOp::And, BinaryOp::Or]), compare.clone(), compare.clone())
            .prop_map(|(op, a, b)| Expr::binary(op, a, b));
        let condition = prop_oneof![compare.clone(), logic, compare.prop_map(|c| Expr::unary(UnaryOp::Not, c))];
        prop_oneof![
            8 => (int_op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::binary(op, a, b)),
            1 => inner.clone().prop_map(|a| Expr::unary(UnaryOp::Neg, a)),
            1 => inner.clone().prop_map(|a| Expr::unary(UnaryOp::BitNot, a)),
            1 => inner.clone().prop_map(|a| Expr::Call(MathFn::Abs, [a].into())),
            1 => inner.clone().prop_map(|a| Expr::Cast(DataType::scalar(ScalarType::Int32), SharedExpr::new(a))),
            1 => (condition.clone(), inner.clone(), inner.clone())
                .prop_map(|(c, a, b)| Expr::Select(SharedExpr::new(c), SharedExpr::new(a), SharedExpr::new(b))),
            1 => (condition, inner.clone(), inner)
                .prop_map(|(c, a, b)| Expr::IfThenElse(SharedExpr::new(c), SharedExpr::new(a), SharedExpr::new(b))),
        ]
    })
}

fn vars() -> Vec<Var> {
    ["i", "j", "k"].map(Var::index).to_vec()
}

/// All values of the first root in row-major order.
fn all_values(program: &PointProgram) -> Vec<i64> {
    let mut runner = program.runner();
    let mut found = Vec::new();
    for block in 0..program.blocks() {
        let (start, length) = runner.run(block);
        assert_eq!(start, found.len() as u64);
        found.extend((0..length).map(|lane| runner.root(0).at(lane)));
    }
    found
}

fn agrees(vars: &[Var], extents: &[i128], symbols: &Bindings, expr: &Expr) -> Result<bool, TestCaseError> {
    let mut builder = Builder::new(extents, symbols).unwrap();
    builder.bind_axes(vars).unwrap();
    let Some(node) = builder.expr(expr) else { return Ok(false) };
    let axes: Vec<usize> = (0..extents.len()).collect();
    let program = builder.program_over(&[node], &axes).unwrap();
    let values = all_values(&program);
    let points = row_major(extents);
    prop_assert_eq!(values.len(), points.len());
    let range = builder.range(node);
    for (value, point) in values.iter().zip(&points) {
        let mut bindings = symbols.clone();
        bindings.extend(vars.iter().cloned().zip(point.iter().copied()));
        prop_assert_eq!(Ok(i128::from(*value)), expr.eval_index(&bindings), "{} at {:?}", expr, point);
        prop_assert!((range.low..=range.high).contains(value), "{} = {} is outside {:?}", expr, value, range);
    }
    Ok(true)
}

#[test]
fn a_program_computes_the_value_of_every_point() {
    let mut built = 0;
    let vars = vars();
    let strategy = (expression(vars.clone()), prop::collection::vec(1i128..9, 2));
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..3000 {
        let (expr, extents) = strategy.new_tree(&mut runner).unwrap().current();
        let symbols = [(vars[2].clone(), 5)].into_iter().collect();
        built += usize::from(agrees(&vars[..2], &extents, &symbols, &expr).unwrap());
    }
    assert!(built > 1000, "only {built} of 3000 expressions were built");
}

#[test]
fn blocks_and_pieces_of_a_long_axis_compute_the_value_of_every_point() {
    let vars = vars();
    let (i, j) = (Expr::from(&vars[0]), Expr::from(&vars[1]));
    let expr = (i.clone() * Expr::int(7) + j.clone().floor_div(Expr::int(3))).floor_mod(Expr::int(1000)) + i * j;
    for extents in [[3, 5000], [5000, 3], [70, 70], [2, 2048], [2, 2049], [1, 1], [4097, 1]] {
        assert!(agrees(&vars[..2], &extents, &Bindings::new(), &expr).unwrap());
    }
}

#[test]
fn an_expression_that_may_lack_a_value_or_leave_64_bits_has_no_node() {
    let vars = vars();
    let (i, j) = (Expr::from(&vars[0]), Expr::from(&vars[1]));
    let mut builder = Builder::new(&[4, 1 << 40], &Bindings::new()).unwrap();
    builder.bind_axes(&vars[..2]).unwrap();
    let by_zero = j.clone().floor_div(i.clone());
    let guarded = Expr::IfThenElse(
        SharedExpr::new(Expr::bool(true)),
        SharedExpr::new(i.clone()),
        SharedExpr::new(by_zero.clone()),
    );
    let far = Expr::binary(BinaryOp::Shl, Expr::int(1), j.clone());
    assert!(builder.expr(&by_zero).is_none());
    assert!(builder.expr(&guarded).is_some());
    assert!(builder.expr(&far).is_none());
    assert!(builder.expr(&(j.clone() * j)).is_none());
    assert!(builder.expr(&i.floor_div(Expr::int(2))).is_some());
}

/// The first collision, by comparing all pairs.
fn first_collision(images: &[i64]) -> Option<Collision> {
    let first = |second: usize| images[..second].iter().position(|image| *image == images[second]);
    (0..images.len())
        .find_map(|second| first(second).map(|first| Collision { first: first as u64, second: second as u64 }))
}

#[test]
fn marking_and_sorting_find_the_first_collision() {
    let judge = judge();
    let vars = vars();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (expression(vars[..2].to_vec()), prop::collection::vec(2i128..9, 2));
    let (mut seen, mut none) = (0, 0);
    for _ in 0..1500 {
        let (expr, extents) = strategy.new_tree(&mut runner).unwrap().current();
        let mut builder = Builder::new(&extents, &Bindings::new()).unwrap();
        let axes = builder.bind_axes(&vars[..2]).unwrap();
        let Some(node) = builder.expr(&expr) else { continue };
        let program = builder.program_over(&[node], &[0, 1]).unwrap();
        let expected = first_collision(&all_values(&program));
        assert_eq!(collision(&judge, &program, 1, None), expected, "{expr} sorted");
        let Some((key, size)) = builder.key(&[node]) else { continue };
        let keyed = builder.program_over(&[key], &[0, 1]).unwrap();
        assert_eq!(collision(&judge, &keyed, 1, Some(size)), expected, "{expr} marked");
        let both = builder.program_over(&[node, axes[1]], &[0, 1]).unwrap();
        let (key, size) = builder.key(&[node, axes[1]]).unwrap();
        let keyed = builder.program_over(&[key], &[0, 1]).unwrap();
        assert_eq!(collision(&judge, &both, 2, None), collision(&judge, &keyed, 1, Some(size)));
        seen += usize::from(expected.is_some());
        none += usize::from(expected.is_none());
    }
    assert!(seen > 100 && none > 3, "{seen} with and {none} without a collision");
}

#[test]
fn a_large_box_gives_the_same_result_on_several_threads() {
    let judge = judge();
    let vars = vars();
    let (i, j) = (Expr::from(&vars[0]), Expr::from(&vars[1]));
    let mut builder = Builder::new(&[1000, 700], &Bindings::new()).unwrap();
    builder.bind_axes(&vars[..2]).unwrap();
    let flat = builder.expr(&(i.clone() * Expr::int(700) + j.clone())).unwrap();
    let wrong = Expr::binary(BinaryOp::Eq, i.clone() * Expr::int(700) + j.clone(), Expr::int(432_100));
    let wrong = builder.expr(&wrong).unwrap();
    let late = Expr::binary(BinaryOp::Min, i * Expr::int(700) + j, Expr::int(690_000));
    let late = builder.expr(&late).unwrap();
    assert_eq!(first_nonzero(&judge, &builder.program(&[wrong]).unwrap()), Some(432_100));
    let flat = builder.program(&[flat]).unwrap();
    assert_eq!(collision(&judge, &flat, 1, Some(700_000)), None);
    let late = builder.program(&[late]).unwrap();
    let expected = Some(Collision { first: 690_000, second: 690_001 });
    assert_eq!(collision(&judge, &late, 1, Some(700_000)), expected);
    assert_eq!(collision(&judge, &late, 1, None), expected);
}
