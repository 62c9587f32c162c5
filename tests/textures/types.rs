//! Every type of channel: copies, arithmetic that wraps and rounds, lanes that are known and lanes that are not.

use tilewright_ir::{DataType, Expr, ScalarType, SharedExpr, Stmt};

use crate::textures::{Case, broadcast, channel, four, function, linear, nest, store, texel, texture, values};

const TYPES: [ScalarType; 8] = [
    ScalarType::Float32,
    ScalarType::Float16,
    ScalarType::Int8,
    ScalarType::Int16,
    ScalarType::Int32,
    ScalarType::UInt8,
    ScalarType::UInt16,
    ScalarType::UInt32,
];

/// Runs `body`, which writes texture Y of the shape of texture X, for every type.
fn for_all_types(name: &str, body: impl Fn(&tilewright_ir::Buffer, &tilewright_ir::Buffer) -> Stmt) {
    for ty in TYPES {
        let (x, y) = (texture("X", ty, 5, 7), texture("Y", ty, 5, 7));
        let func = function(name, &[&x, &y], body(&x, &y));
        Case::new(func, &[values(ty, &[5, 7, 4])]).agrees();
    }
}

#[test]
fn copies_are_exact() {
    for_all_types("copy", |x, y| nest(5, 7, |i, j| store(y, i, j, texel(x, i, j))));
}

#[test]
fn arithmetic_wraps_and_rounds_as_the_language_says() {
    for_all_types("arithmetic", |x, y| {
        nest(5, 7, |i, j| {
            let other = texel(x, Expr::int(4) - Expr::from(i), Expr::int(6) - Expr::from(j));
            store(y, i, j, texel(x, i, j) * texel(x, i, j) + other)
        })
    });
}

#[test]
fn known_lanes_are_picked() {
    for ty in TYPES {
        let (x, y) = (texture("X", ty, 5, 7), texture("Y", ty, 20, 7));
        let one = |lane: i64| {
            nest(5, 7, |i, j| {
                let row = Expr::from(i) + Expr::int(5 * lane);
                store(&y, row, j, texel(&x, i, j) - broadcast(channel(&x, i, j, lane)))
            })
        };
        let func = function("known", &[&x, &y], Stmt::seq((0..4).map(one).collect()));
        Case::new(func, &[values(ty, &[5, 7, 4])]).agrees();
    }
}

#[test]
fn lanes_that_vary_are_picked() {
    for_all_types("varying", |x, y| {
        nest(5, 7, |i, j| {
            let lane = (Expr::from(i) * Expr::int(3) + Expr::from(j)).floor_mod(Expr::int(4));
            store(y, i, j, broadcast(channel(x, i, j, lane)) + texel(x, i, j))
        })
    });
}

#[test]
fn buffers_and_textures_hold_the_same_values() {
    for ty in TYPES {
        let (a, b, t) = (linear("A", ty, 140), linear("B", ty, 140), texture("T", ty, 5, 7));
        let fill = nest(5, 7, |i, j| store(&t, i, j, Expr::load(&a, vec![four(i, j, 7)])));
        let drain = nest(5, 7, |i, j| Stmt::store(&b, vec![four(i, j, 7)], texel(&t, i, j)));
        let body = crate::textures::allocate(&t, Stmt::seq(vec![fill, drain]));
        Case::new(function("round_trip", &[&a, &b], body), &[values(ty, &[140])]).agrees();
    }
}

#[test]
fn values_are_converted_between_channels_of_different_types() {
    for (from, to) in [
        (ScalarType::Float32, ScalarType::Float16),
        (ScalarType::Float16, ScalarType::Float32),
        (ScalarType::Float32, ScalarType::Int8),
        (ScalarType::UInt32, ScalarType::Float32),
        (ScalarType::Int16, ScalarType::UInt8),
        (ScalarType::Int8, ScalarType::Int32),
        (ScalarType::UInt16, ScalarType::Float16),
    ] {
        let (x, y) = (texture("X", from, 3, 11), texture("Y", to, 3, 11));
        let wide = DataType::scalar(to).with_lanes(4);
        let body = nest(3, 11, |i, j| store(&y, i, j, Expr::Cast(wide, SharedExpr::new(texel(&x, i, j)))));
        Case::new(function("convert", &[&x, &y], body), &[values(from, &[3, 11, 4])]).agrees();
    }
}

#[test]
fn some_channels_of_a_texel_are_a_shorter_vector() {
    let ty = ScalarType::Int8;
    let (x, b) = (texture("X", ty, 5, 7), linear("B", ty, 70));
    let body = nest(5, 7, |i, j| {
        let two = Expr::load(&x, vec![i.into(), j.into(), crate::textures::ramp(1, 2)]);
        let at = (Expr::from(i) * Expr::int(7) + Expr::from(j)) * Expr::int(2);
        Stmt::store(&b, vec![crate::textures::ramp(at, 2)], two)
    });
    Case::new(function("two", &[&x, &b], body), &[values(ty, &[5, 7, 4])]).agrees();
}
