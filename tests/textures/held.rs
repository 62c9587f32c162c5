//! A texel of which a loop takes channels is read once, in front of the loop, where that is the same; elsewhere it is not.

use tilewright::codegen::Options;
use tilewright_ir::{Expr, ForKind, ScalarType, SharedExpr, Stmt, Var};

use crate::textures::{Case, channel, function, linear, nest, numbers, texture};

const HEIGHT: i64 = 5;
const WIDTH: i64 = 7;

fn choose(condition: Expr, value: Expr) -> Expr {
    let zero = Expr::float_of(0.0, ScalarType::Float32);
    Expr::IfThenElse(SharedExpr::new(condition), SharedExpr::new(value), SharedExpr::new(zero))
}

/// For each texel, a sum over a loop of 4: of `value(row, column, variable of the loop, load)`, where `load` reads a channel. Returns the
/// source, after it ran on the device and agreed with the interpreter.
fn sum(guard: bool, value: impl Fn(&Var, &Var, &Var, &dyn Fn(Expr, Expr, Expr) -> Expr) -> Expr) -> String {
    let ty = ScalarType::Float32;
    let (t, b) = (texture("T", ty, HEIGHT, WIDTH), linear("B", ty, HEIGHT * WIDTH));
    let body = nest(HEIGHT, WIDTH, |i, j| {
        let lane = Var::index("c");
        let at = vec![Expr::from(i) * Expr::int(WIDTH) + Expr::from(j)];
        let load = |row: Expr, column: Expr, lane: Expr| channel(&t, row, column, lane);
        let total = Expr::load(&b, at.clone()) + value(i, j, &lane, &load);
        let update = Stmt::store(&b, at.clone(), total);
        let update = if guard {
            let condition = Expr::from(j).lt(Expr::int(5));
            Stmt::guarded(condition, update)
        } else {
            update
        };
        let init = Stmt::store(&b, at, Expr::float_of(0.0, ty));
        Stmt::seq(vec![init, Stmt::for_loop(&lane, Expr::int(4), ForKind::Serial, update)])
    });
    let given = [numbers(ty, &[HEIGHT.unsigned_abs(), WIDTH.unsigned_abs(), 4])];
    let case = Case::new(function("sum", &[&t, &b], body), &given);
    let checked = case.kernels(Options { checked: true, placed: false, aliased: false });
    assert!(!checked.source.contains("texel ="), "{}", checked.source);
    case.agrees().source
}

fn reads(source: &str) -> usize {
    source.matches("read_imagef(").count()
}

#[test]
fn the_channels_of_a_texel_are_read_at_once() {
    let source = sum(false, |i, j, c, load| load(i.into(), j.into(), c.into()));
    assert!(source.contains("const float4 texel = read_imagef(T, tw_sampler, (int2)(j, i));"), "{source}");
    assert_eq!(reads(&source), 1, "{source}");
    // Two reads of one texel are one, and another texel has a name of its own.
    let source = sum(false, |i, j, c, load| {
        let own = load(i.into(), j.into(), c.into());
        own.clone() * own + load(Expr::int(4) - Expr::from(i), j.into(), Expr::int(3) - Expr::from(c))
    });
    assert_eq!((reads(&source), source.matches("const float4 texel").count()), (2, 2), "{source}");
}

#[test]
fn a_texel_is_read_under_the_conditions_of_its_channels() {
    let source = sum(false, |i, j, c, load| {
        let inside = Expr::from(j).lt(Expr::int(6));
        choose(inside, load(i.into(), Expr::from(j) + Expr::int(1), c.into()))
    });
    assert!(
        source.contains("const float4 texel = j < 6 ? read_imagef(T, tw_sampler, (int2)(j + 1, i)) : "),
        "{source}"
    );
    assert_eq!(reads(&source), 1, "{source}");
}

#[test]
fn a_texel_that_is_not_the_same_for_all_channels_is_read_for_each() {
    let none = |source: String| assert!(!source.contains("texel ="), "{source}");
    // The place depends on the loop.
    none(sum(false, |i, _, c, load| load(i.into(), c.into(), c.into())));
    // The condition does.
    none(sum(false, |i, j, c, load| {
        let some = Expr::from(j) + Expr::from(c);
        choose(some.lt(Expr::int(7)), load(i.into(), j.into(), c.into()))
    }));
    // Two reads of the texel have different conditions: one of them is made where the other is not.
    none(sum(false, |i, j, c, load| {
        let own = || load(i.into(), j.into(), c.into());
        choose(Expr::from(j).lt(Expr::int(6)), own()) + choose(Expr::from(j).lt(Expr::int(2)), own())
    }));
    none(sum(false, |i, j, c, load| {
        let own = || load(i.into(), j.into(), c.into());
        choose(Expr::from(j).lt(Expr::int(6)), own()) + own()
    }));
    // The loop decides whether there is a read.
    none(sum(true, |i, j, c, load| load(i.into(), j.into(), c.into())));
}
