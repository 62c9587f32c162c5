//! Conditionals evaluate the arm that they choose and no other: the other one may be out of bounds.

use std::sync::Arc;

use tilewright::codegen::Options;
use tilewright_ir::{DataType, Expr, ScalarType, SharedExpr, Stmt, StmtKind, Var};

use crate::textures::{Case, broadcast, channel, four, function, linear, nest, numbers, ramp, store, texel, texture};

/// So far out of bounds that no processor reads it.
const FAR: i64 = 1 << 28;

fn choose(condition: Expr, a: Expr, b: Expr) -> Expr {
    Expr::IfThenElse(SharedExpr::new(condition), SharedExpr::new(a), SharedExpr::new(b))
}

fn zeros() -> Expr {
    broadcast(Expr::float_of(0.0, ScalarType::Float32))
}

#[test]
fn one_condition_chooses_between_vectors_and_evaluates_one() {
    let ty = ScalarType::Float32;
    let (a, b) = (linear("A", ty, 140), linear("B", ty, 140));
    let body = nest(5, 7, |i, j| {
        // The far arm is chosen in the last row only, where it is the first texel.
        let far = ramp(Expr::int(FAR) * (Expr::int(4) - Expr::from(i)), 4);
        let (near, far) = (Expr::load(&a, vec![four(i, j, 7)]), Expr::load(&a, vec![far]));
        Stmt::store(&b, vec![four(i, j, 7)], choose(Expr::from(i).lt(Expr::int(4)), near, far))
    });
    let generated = Case::new(function("rows", &[&a, &b], body), &[numbers(ty, &[140])]).agrees();
    assert!(!generated.source.contains("select("), "{}", generated.source);
    assert!(generated.source.contains("i < 4 ? "), "{}", generated.source);
}

#[test]
fn each_lane_chooses_by_itself() {
    let ty = ScalarType::Float32;
    // 25 elements: the last texel of a row has one that is there and three that are not.
    let (a, y) = (linear("A", ty, 25), texture("Y", ty, 2, 7));
    let body = nest(2, 7, |i, j| {
        let at = |stride: i64| Expr::Ramp {
            base: SharedExpr::new(Expr::from(j) * Expr::int(4 * stride)),
            stride: SharedExpr::new(Expr::int(stride)),
            lanes: 4,
        };
        let inside = at(1).lt(Expr::Broadcast { value: SharedExpr::new(Expr::int(25)), lanes: 4 });
        let zero = zeros();
        let near = choose(inside.clone(), Expr::load(&a, vec![at(1)]), zero.clone());
        // Where a lane is not chosen its neighbours may be: the index is far out of bounds there.
        let reach = at(1).floor_div(broadcast(Expr::int(25)));
        let far = at(1) + reach * broadcast(Expr::int(FAR));
        let scattered = choose(inside, Expr::load(&a, vec![far]), zero);
        store(&y, i, j, near + scattered)
    });
    let generated = Case::new(function("tail", &[&a, &y], body), &[numbers(ty, &[25])]).agrees();
    assert!(!generated.source.contains("select("), "{}", generated.source);
    let text = "(float4)(j * 4 < 25 ? A[j * 4] : 0.0f, j * 4 + 1 < 25 ? A[j * 4 + 1] : 0.0f, ";
    assert!(generated.source.contains(text), "{}", generated.source);
}

#[test]
fn lanes_that_choose_know_vectors_that_are_bound_to_names() {
    let ty = ScalarType::Float32;
    let (x, y) = (texture("X", ty, 3, 5), texture("Y", ty, 3, 5));
    let v = Var::new("v", DataType::scalar(ty).with_lanes(4));
    let body = nest(3, 5, |i, j| {
        let small = Expr::from(&v).lt(broadcast(Expr::float_of(11.0, ty)));
        let body = store(&y, i, j, choose(small, Expr::from(&v), texel(&x, i, j) + Expr::from(&v)));
        Stmt::new(StmtKind::Let { var: v.clone(), value: texel(&x, i, j), body: Arc::new(body) })
    });
    let generated = Case::new(function("named", &[&x, &y], body), &[numbers(ty, &[3, 5, 4])]).agrees();
    assert!(generated.source.contains("v.s1 < 11.0f ? v.s1 : "), "{}", generated.source);
}

/// A stencil with a border of zeros: `Y[i, j] = X[i, j + 1]`, or 0 in the last column.
fn shifted() -> Case {
    let ty = ScalarType::Float32;
    let (x, y) = (texture("X", ty, 3, 5), texture("Y", ty, 3, 5));
    let body = nest(3, 5, |i, j| {
        let next = Expr::from(j) + Expr::int(1);
        store(&y, i, j, choose(next.clone().lt(Expr::int(5)), texel(&x, i, next), zeros()))
    });
    Case::new(function("shift", &[&x, &y], body), &[numbers(ty, &[3, 5, 4])])
}

#[test]
fn a_guard_that_is_left_out_is_hidden_by_the_border_and_found_by_the_checked_mode() {
    let case = shifted();
    case.agrees();
    // The sampler gives zeros outside, so that the mistake cannot be seen from what comes out.
    assert!(!case.tells(Options::default(), "j + 1 < 5 ? ", "1 ? "));
    assert!(case.tells(Options { checked: true, placed: false, aliased: false }, "j + 1 < 5 ? ", "1 ? "));
}

#[test]
fn conditionals_that_evaluate_both_arms_are_found_by_the_checked_mode() {
    let case = shifted();
    let generated = case.kernels(Options { checked: true, placed: false, aliased: false });
    let lazy = generated.source.lines().find(|line| line.contains(" ? tw_read_f")).unwrap();
    let (start, rest) = lazy.split_once("j + 1 < 5 ? ").unwrap();
    let (read, rest) = rest.rsplit_once(" : ").unwrap();
    let zeros = rest.strip_suffix(");").unwrap();
    let eager = format!("{start}select({zeros}, {read}, (int4)(-(j + 1 < 5))));");
    assert!(case.tells(Options { checked: true, placed: false, aliased: false }, lazy, &eager));
}

#[test]
fn a_lane_of_a_texel_may_be_a_lane_of_its_own_guard() {
    let ty = ScalarType::Int32;
    let (x, y) = (texture("X", ty, 3, 5), texture("Y", ty, 3, 5));
    let body = nest(3, 5, |i, j| {
        let three = ramp(0, 4).lt(broadcast(Expr::int(3)));
        let zero = broadcast(Expr::int(0));
        store(&y, i, j, choose(three, texel(&x, i, j) + broadcast(channel(&x, i, j, 1)), zero))
    });
    Case::new(function("padded", &[&x, &y], body), &[numbers(ty, &[3, 5, 4])]).agrees();
}
