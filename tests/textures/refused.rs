//! What no kernel can do with a texture, and what is said about it.

use tilewright::codegen::{Options, generate_with};
use tilewright_ir::{
    Buffer, Diagnostic, Expr, ForKind, PrimFunc, ScalarType, Scope, SharedExpr, Stmt, ThreadTag, Var, validate,
};

use crate::textures::{allocate, channel, function, linear, nest, store, texel, texture};

fn errors(func: &PrimFunc) -> Vec<Diagnostic> {
    let found = generate_with(validate(func).expect("a well-formed function"), &Options::default());
    found.map(|generated| generated.source).expect_err("it is refused")
}

const TY: ScalarType = ScalarType::Float32;

fn two() -> [Buffer; 2] {
    [texture("X", TY, 5, 7), texture("Y", TY, 5, 7)]
}

#[test]
fn a_kernel_that_reads_and_writes_one_texture_is_refused() {
    let [x, y] = two();
    let both = nest(5, 7, |i, j| Stmt::seq(vec![store(&y, i, j, texel(&x, i, j)), store(&x, i, j, texel(&y, i, j))]));
    let found = errors(&function("both", &[&x, &y], both));
    assert_eq!(found[0].code, "opencl-image-access");
    assert!(found[0].message.contains("one kernel reads and writes texture `"), "{}", found[0]);
    assert!(found[0].help.as_ref().is_some_and(|help| help.contains("nests of their own")));
    // In nests of their own the two are two kernels.
    let apart = Stmt::seq(vec![
        nest(5, 7, |i, j| store(&y, i, j, texel(&x, i, j))),
        nest(5, 7, |i, j| store(&x, i, j, texel(&y, i, j))),
    ]);
    let func = function("apart", &[&x, &y], apart);
    let generated = generate_with(validate(&func).unwrap(), &Options::default()).unwrap();
    assert_eq!(generated.metadata.kernels.len(), 2);
    let in_place = nest(5, 7, |i, j| store(&x, i, j, texel(&x, i, j)));
    assert_eq!(errors(&function("in_place", &[&x], in_place))[0].code, "opencl-image-access");
}

#[test]
fn a_store_to_some_channels_is_refused() {
    let [x, y] = two();
    let one = nest(5, 7, |i, j| Stmt::store(&y, vec![i.into(), j.into(), Expr::int(2)], channel(&x, i, j, 1)));
    assert_eq!(errors(&function("one", &[&x, &y], one))[0].code, "opencl-channel-store");
    let half = nest(5, 7, |i, j| {
        let two = vec![i.into(), j.into(), crate::textures::ramp(0, 2)];
        Stmt::store(&y, two.clone(), Expr::load(&x, two))
    });
    assert_eq!(errors(&function("half", &[&x, &y], half))[0].code, "opencl-channel-store");
    let turned = nest(5, 7, |i, j| {
        let lanes =
            Expr::Ramp { base: SharedExpr::new(Expr::int(3)), stride: SharedExpr::new(Expr::int(-1)), lanes: 4 };
        Stmt::store(&y, vec![i.into(), j.into(), lanes], texel(&x, i, j))
    });
    assert_eq!(errors(&function("turned", &[&x, &y], turned))[0].code, "opencl-channel-store");
}

#[test]
fn a_texture_that_is_not_lowered_is_refused() {
    let scoped = |shape: &[i64], scope: Scope| {
        let shape = shape.iter().copied().map(Expr::int).collect();
        Buffer::compact("T", TY, shape).with(|info| info.scope = scope)
    };
    for (shape, scope) in [
        (&[5, 7, 4][..], Scope::Texture),
        (&[2, 3, 5, 4][..], Scope::TextureWeight),
        (&[2, 3, 5, 4][..], Scope::TextureNhwc),
        (&[140][..], Scope::Texture),
    ] {
        let (t, b) = (scoped(shape, scope), linear("B", TY, 140));
        let zeros: Vec<_> = shape.iter().map(|_| Expr::int(0)).collect();
        let body = nest(1, 1, |i, _| Stmt::store(&b, vec![i.into()], Expr::load(&t, zeros.clone())));
        for func in [function("param", &[&t, &b], body.clone()), function("scratch", &[&b], allocate(&t, body))] {
            let found = errors(&func);
            assert_eq!(found[0].code, "opencl-texture", "{scope}");
            assert!(found[0].help.as_ref().is_some_and(|help| help.contains("lower_texture")), "{}", found[0]);
        }
    }
}

#[test]
fn an_order_of_writes_to_one_texel_is_refused() {
    let [x, y] = two();
    let thread = |body: &dyn Fn(Expr) -> Stmt| {
        let j = Var::index("j");
        Stmt::for_loop(&j, Expr::int(7), ForKind::ThreadBinding(ThreadTag::Thread(0)), body(Expr::from(&j)))
    };
    let group = |second: Stmt| {
        let (i, first) = (Var::index("i"), thread(&|j| store(&y, 0, j.clone(), texel(&x, 0, j))));
        Stmt::for_loop(&i, Expr::int(1), ForKind::Serial, Stmt::seq(vec![first, second]))
    };
    let turned = thread(&|j| store(&y, 0, Expr::int(6) - j.clone(), texel(&x, 1, j)));
    assert_eq!(errors(&function("turned", &[&x, &y], group(turned)))[0].code, "opencl-order");
    // The same work-item writes a texel again: nothing has to wait.
    let again = thread(&|j| store(&y, 0, j.clone(), texel(&x, 1, j)));
    let func = function("again", &[&x, &y], group(again));
    let source = generate_with(validate(&func).unwrap(), &Options::default()).unwrap().source;
    assert!(!source.contains("barrier("), "{source}");
}

#[test]
fn a_texture_inside_of_a_kernel_is_refused() {
    let [x, y] = two();
    let body = nest(5, 7, |i, j| allocate(&texture("T", TY, 5, 7), store(&y, i, j, texel(&x, i, j))));
    let found = errors(&function("inside", &[&x, &y], body));
    assert_eq!(found[0].code, "opencl-texture");
}
