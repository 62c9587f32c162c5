//! Bounds under conditions, of indices that are all negative, and of absolute values that wrap.

use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, IndexMap, MathFn, ScalarType, SharedExpr, Var};

use super::super::{Ranges, physical_shape, physical_shape_above_zero, simplify};
use super::int;

#[test]
fn the_absolute_value_of_the_least_value_is_negative() {
    let i8s = Buffer::compact("A", ScalarType::Int8, vec![int(8)]);
    let i = Var::index("i");
    let ranges = Ranges::new().with(&i, &int(8));
    let simplified = |value: Expr, divisor: Expr| {
        let abs = Expr::Call(MathFn::Abs, vec![value].into_iter().collect());
        simplify(&Expr::binary(BinaryOp::TruncMod, abs, divisor), &ranges).to_string()
    };
    // -128 has no absolute value of its type, so the remainder may be negative.
    let loaded = Expr::load(&i8s, vec![Expr::from(&i)]);
    let seven = Expr::Int { value: 7, ty: ScalarType::Int8 };
    assert!(simplified(loaded.clone(), seven).contains("truncmod"));
    // A wider type holds it, and the absolute value of an index is none.
    let wider = Expr::Cast(DataType::INT32, SharedExpr::new(loaded));
    assert!(!simplified(wider, int(7)).contains("truncmod"));
    assert!(!simplified(Expr::from(&i) - int(4), int(7)).contains("truncmod"));
    // A parameter may have any value of its type.
    assert!(simplified(Expr::from(Var::index("x")), int(7)).contains("truncmod"));
}

#[test]
fn conditions_bound_their_branches() {
    let [i, n] = ["i", "n"].map(Var::index);
    let half = Expr::from(&n).floor_div(int(2));
    let shape = |output: Expr| {
        let map = IndexMap::new(vec![i.clone()], vec![Expr::from(&n)], vec![output], vec![]).unwrap();
        physical_shape(&map, &[]).map(|shape| shape.extents[0].to_string()).map_err(|fault| fault.code)
    };
    let first = Expr::from(&i) * int(2);
    let second = (Expr::from(&i) - half.clone()) * int(2) + int(1);
    let choice = |cond: Expr, a: &Expr, b: &Expr| {
        Expr::IfThenElse(SharedExpr::new(cond), SharedExpr::new(a.clone()), SharedExpr::new(b.clone()))
    };
    let below = Expr::from(&i).lt(half);
    assert_eq!(shape(choice(below.clone(), &first, &second)).unwrap(), "n * 2 - n // 2 * 2");
    // The other way round the second index is negative.
    assert_eq!(shape(choice(below, &second, &first)).unwrap_err(), "negative-index");
    let clamped = Expr::binary(BinaryOp::Max, Expr::from(&i) - int(3), int(0));
    assert_eq!(shape(clamped).unwrap(), "max(n - 3, 1)");
}

#[test]
fn a_map_of_negative_indices_has_a_shape_of_one_element_at_least() {
    let [i, n] = ["i", "n"].map(Var::index);
    let map = IndexMap::new(vec![i], vec![Expr::from(&n)], vec![Expr::from(&n) * int(-8)], vec![]).unwrap();
    assert_eq!(physical_shape(&map, &[]).unwrap_err().code, "negative-index");
    assert_eq!(physical_shape_above_zero(&map, &[]).unwrap().extents, [int(1)]);
}
