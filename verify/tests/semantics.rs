//! The encodings agree with evaluation.

use proptest::prelude::*;
use tilewright_verify::encode::Encoding;
use tilewright_verify::kernel::{Context, Failure, Mode};
use tilewright_verify::solver::{Outcome, Solver};
use tilewright_verify::term::{Assignment, BinaryOp, EvalError, Prop, Term, UnaryOp, Value};

const OPERATORS: [BinaryOp; 14] = [
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
];

/// The operator applied to two symbols that are equal to `a` and `b`, or to a symbol and the constant `b`.
fn stated(op: BinaryOp, a: i128, b: i128, constant: bool) -> (Vec<Prop>, Term) {
    let (x, y) = (Term::sym("x"), Term::sym("y"));
    let rhs = if constant { Term::int(b) } else { y.clone() };
    (vec![x.equals(a), y.equals(b)], Term::binary(op, &x, rhs))
}

#[test]
fn every_operator_agrees_with_evaluation_on_a_grid_of_both_signs() {
    let solver = Solver::new().unwrap();
    let (mut defined, mut undefined) = (0, 0);
    for op in OPERATORS {
        for a in [-9, -8, -5, -1, 0, 1, 4, 7, 12] {
            for b in [-7, -4, -1, 0, 1, 3, 4, 6] {
                for constant in [true, false] {
                    let (facts, term) = stated(op, a, b, constant);
                    let env = Assignment::new().with("x", a).with("y", b);
                    let check = |goal: Prop| solver.check(&facts, &goal, Encoding::Exact).unwrap().outcome;
                    match term.eval(&env) {
                        Ok(value) => {
                            assert_eq!(check(term.equals(value)), Outcome::Proved, "{term} at {a}, {b}");
                            if [-4, 3].contains(&b) {
                                let wrong = check(term.equals(value + 1));
                                assert!(matches!(wrong, Outcome::Refuted(_)), "{term} at {a}, {b}: {wrong:?}");
                            }
                            defined += 1;
                        }
                        Err(error) => {
                            assert!(error.is_undefined(), "{term} at {a}, {b}: {error}");
                            let nothing = check(term.equals(a));
                            assert!(matches!(nothing, Outcome::Refuted(_)), "{term} at {a}, {b}");
                            undefined += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(defined > 1500 && undefined > 100, "{defined} and {undefined} points");
}

fn operator() -> impl Strategy<Value = BinaryOp> {
    prop::sample::select(OPERATORS.to_vec())
}

fn term() -> impl Strategy<Value = Term> {
    let leaf =
        prop_oneof![(-9_i128..20).prop_map(Term::int), prop::sample::select(vec!["x", "y", "z"]).prop_map(Term::sym),];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (operator(), inner.clone(), inner.clone()).prop_map(|(op, a, b)| Term::binary(op, a, b)),
            inner.clone().prop_map(|a| Term::unary(UnaryOp::Not, a)),
            inner.clone().prop_map(|a| -a),
            inner.clone().prop_map(|a| a.abs()),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| Term::ite(&a.less(&b), b, c)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn terms_agree_with_evaluation_at_a_point(t in term(), x in -9_i128..10, y in -9_i128..10, z in -9_i128..10) {
        let env = Assignment::new().with("x", x).with("y", y).with("z", z);
        let facts: Vec<Prop> =
            env.iter().map(|(symbol, value)| match value {
                Value::Int(value) => Term::sym(symbol.clone()).equals(value),
                Value::Bool(_) => Prop::bool(true),
            }).collect();
        if let Ok(value) = t.eval(&env) {
            let solver = Solver::new().unwrap();
            // Only the wrong answer is an error: bit operations wider than the constants of the query are approximated.
            let wrong = solver.check(&facts, &t.differs(value), Encoding::Exact).unwrap().outcome;
            prop_assert_ne!(wrong, Outcome::Proved, "{} at {}", t, env);
            let below = solver.check(&facts, &t.differs(value), Encoding::Abstract).unwrap().outcome;
            prop_assert_ne!(below, Outcome::Proved, "{} at {}", t, env);
        }
    }

    #[test]
    fn constructors_keep_the_value(t in term(), x in -9_i128..10, y in -9_i128..10, z in -9_i128..10) {
        let env = Assignment::new().with("x", x).with("y", y).with("z", z);
        let values = tilewright_verify::term::Substitution::new([("x", x), ("y", y), ("z", z)]);
        if let Ok(value) = t.eval(&env) {
            prop_assert_eq!(values.term(&t).as_const(), Some(value), "{} at {}", t, env);
            if let Some(poly) = tilewright_verify::poly::Poly::from_term(&t) {
                match poly.to_term().eval(&env) {
                    Ok(normal) => prop_assert_eq!(normal, value),
                    Err(error) => prop_assert_eq!(error, EvalError::Overflow),
                }
            }
        }
    }
}

#[test]
fn nothing_is_known_about_division_by_zero() {
    let mut context = Context::new(&Solver::new().unwrap());
    let (x, y) = (Term::sym("x"), Term::sym("y"));
    let zero = context.assume(y.equals(0), "a divisor of zero");
    for term in [x.floor_div(&y), x.floor_mod(&y), x.trunc_div(&y), x.trunc_mod(&y)] {
        let shown = context.derive(term.equals(0), &[&zero], Mode::Exact);
        assert!(matches!(shown, Err(Failure::NotShown(_))), "{term}: {shown:?}");
    }
    assert!(context.derive(x.floor_div(&y).equals(x.floor_div(&y)), &[], Mode::Exact).is_ok(), "x against x");
}

#[test]
fn xor_swizzles_are_decided() {
    let mut context = Context::new(&Solver::new().unwrap());
    let [r, c, d] = ["r", "c", "d"].map(Term::sym);
    let range = Prop::all([&r, &c, &d].map(|value| value.at_least(0).and(value.less(8))));
    let range = context.assume(range, "three bits each");
    let same = context.assume((&c ^ &r).equals(&d ^ &r), "one bank");
    assert!(context.derive(c.equals(&d), &[&range, &same], Mode::Exact).is_ok());
    assert!(context.derive((&c ^ &r).less(8), &[&range], Mode::Exact).is_ok());
    let broken = context.derive((&c ^ &r).less(7), &[&range], Mode::Exact);
    assert!(matches!(broken, Err(Failure::Refuted(_))), "{broken:?}");
    let masked = context.assume((&c & &r).equals(&d & &r), "an and in place of the xor");
    let broken = context.derive(c.equals(&d), &[&range, &masked], Mode::Exact);
    // `same` is a premise, too, so that the goal follows after all; without it, it does not.
    assert!(broken.is_ok());
    let mut context = Context::new(&Solver::new().unwrap());
    let range = context.assume(range.prop().clone(), "three bits each");
    let masked = context.assume(masked.prop().clone(), "an and in place of the xor");
    let broken = context.derive(c.equals(&d), &[&range, &masked], Mode::Exact);
    assert!(matches!(broken, Err(Failure::Refuted(_))), "{broken:?}");
}
