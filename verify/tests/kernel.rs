//! The kernel creates facts only by its sound rules.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::time::{Duration, Instant};
use tilewright_verify::certificate::Certificate;
use tilewright_verify::encode::Encoding;
use tilewright_verify::kernel::{Consistency, Context, Fact, Failure, Mode, Rule};
use tilewright_verify::lemmas::{self, Lemma, Lemmas};
use tilewright_verify::solver::text::{self, TextAnswer};
use tilewright_verify::solver::{Budget, Method, Outcome, Solver};
use tilewright_verify::term::{Prop, Substitution, Term};
use tilewright_verify::{Reason, ReasonKind};

fn solver() -> Solver {
    Solver::new().unwrap()
}

fn syms<const N: usize>(names: [&str; N]) -> [Term; N] {
    names.map(Term::sym)
}

#[test]
fn facts_of_another_context_are_refused() {
    let solver = solver();
    let [x] = syms(["x"]);
    let (mut ours, mut theirs) = (Context::new(&solver), Context::new(&solver));
    let fact = theirs.assume(x.equals(3), "theirs");
    let refused = ours.derive(x.at_least(0), &[&fact], Mode::Exact);
    assert_eq!(refused.unwrap_err(), Failure::Foreign(x.equals(3)));
    assert!(matches!(ours.split(&fact), Err(Failure::Foreign(_))));
    assert!(matches!(ours.join(&[&fact]), Err(Failure::Foreign(_))));
    assert!(matches!(ours.define_div(&x, &x, Some(&fact)), Err(Failure::Foreign(_))));
    assert!(matches!(ours.generalize("stolen", &fact), Err(Failure::Foreign(_))));
}

#[test]
fn a_fork_inherits_facts_and_is_discharged_to_implications() {
    let solver = solver();
    let [x, y] = syms(["x", "y"]);
    let mut parent = Context::new(&solver);
    let low = parent.assume(x.at_least(1), "x is positive");
    let mut child = parent.fork();
    let late = parent.assume(y.equals(7), "after the fork");
    let case = child.assume(y.at_least(&x), "a case");
    let shown = child.derive(y.at_least(1), &[&low, &case], Mode::Abstract).unwrap();
    assert!(matches!(child.derive(y.equals(7), &[&late], Mode::Exact), Err(Failure::Foreign(_))));
    assert!(matches!(parent.derive(y.at_least(1), &[&shown], Mode::Exact), Err(Failure::Foreign(_))));
    let implication = parent.discharge(child, &shown).unwrap();
    assert_eq!(implication.prop().to_string(), "x <= y implies 1 <= y");
    let stranger = Context::new(&solver);
    let mut other = Context::new(&solver);
    let fact = stranger.fork().assume(x.equals(1), "no child");
    assert!(other.discharge(stranger, &fact).is_err());
}

#[test]
fn division_needs_a_divisor_known_to_be_positive() {
    let mut context = Context::new(&solver());
    let [x, b] = syms(["x", "b"]);
    let weak = context.assume(b.at_least(0), "possibly 0");
    for using in [None, Some(&weak)] {
        assert!(matches!(context.define_div(&x, &b, using), Err(Failure::NotShown(_))));
    }
    assert!(context.define_div(&x, &Term::int(0), None).is_err());
    assert!(context.define_div(&x, &Term::int(-4), None).is_err());
    let parts = context.define_div(&x, &Term::int(4), None).unwrap();
    assert_eq!(parts.prop().to_string(), "x == x // 4 * 4 + x % 4 and 0 <= x % 4 and x % 4 < 4");
    let strong = context.assume(b.at_least(1), "an extent");
    assert!(context.define_div(&x, &b, Some(&strong)).is_ok());
}

#[test]
fn theorems_are_applied_only_where_their_hypotheses_are_facts() {
    let solver = solver();
    let lemmas = Lemmas::new(&solver);
    let mut context = Context::new(&solver);
    let theorem = lemmas.theorem(Lemma::HornerBounds).unwrap();
    let [i, n, j, m] = syms(["i", "n", "j", "m"]);
    let values = Substitution::new([("q", &i), ("n", &n), ("r", &j), ("d", &m)]);
    let facts: Vec<Fact> =
        theorem.hypotheses().iter().map(|hypothesis| context.assume(values.prop(hypothesis), "digit")).collect();
    let all: Vec<&Fact> = facts.iter().collect();
    assert!(context.apply(&theorem, &values, &all).is_ok());
    for missing in 0..all.len() {
        let mut some = all.clone();
        some.remove(missing);
        assert!(matches!(context.apply(&theorem, &values, &some), Err(Failure::NotShown(_))));
    }
}

#[test]
fn every_hypothesis_of_every_lemma_is_needed() {
    let solver = solver().limited_to(Budget { rlimit: 300_000, ..Budget::default() });
    let lemmas = Lemmas::new(&solver);
    for lemma in Lemma::ALL {
        let theorem = lemmas.theorem(*lemma).unwrap();
        let hypotheses = theorem.hypotheses();
        for dropped in 0..hypotheses.len() {
            let mut context = Context::new(&solver);
            let rest = hypotheses.iter().enumerate().filter(|(position, _)| *position != dropped);
            let facts: Vec<Fact> = rest.map(|(_, prop)| context.assume(prop.clone(), "kept")).collect();
            let using: Vec<&Fact> = facts.iter().collect();
            let shown = context.derive(theorem.conclusion().clone(), &using, Mode::Exact);
            assert!(!matches!(shown, Ok(_) | Err(Failure::Internal(_))), "{lemma:?} without {dropped}: {shown:?}");
        }
    }
}

#[test]
fn refutations_satisfy_all_premises_and_replay() {
    let mut context = Context::new(&solver());
    let [x, y] = syms(["x", "y"]);
    let used = context.assume(x.at_least(0), "used");
    context.assume(x.less(&y).and(y.less(3)), "not used");
    let goal = (&x * &x + &x).floor_mod(3).equals(0);
    let Err(Failure::Refuted(model)) = context.derive(goal.clone(), &[&used], Mode::Exact) else {
        panic!("x = 1 refutes it")
    };
    assert_eq!(goal.eval(&model), Ok(false));
    for premise in context.premises() {
        assert_eq!(premise.prop.eval(&model), Ok(true));
    }
    let abstractly = context.derive(goal, &[&used], Mode::Abstract);
    assert!(matches!(abstractly, Err(Failure::NotShown(_))));
}

#[test]
fn opaque_operations_on_equal_operands_are_equal() {
    let mut context = Context::new(&solver());
    let [x, y, b] = syms(["x", "y", "b"]);
    let lhs = (&x * &y + &x).floor_div(&b);
    let rhs = (&x * (&y + 1)).floor_div(&b);
    assert!(context.derive(lhs.equals(&rhs), &[], Mode::Abstract).is_ok());
    let other = context.derive(lhs.equals((&x * &y).floor_div(&b)), &[], Mode::Abstract);
    assert!(matches!(other, Err(Failure::NotShown(_))), "{other:?}");
}

#[test]
fn uninterpreted_values_are_equal_for_equal_arguments_and_never_refute() {
    let mut context = Context::new(&solver());
    let [i, j] = syms(["i", "j"]);
    let same = context.assume(i.equals(&j + 1), "one element");
    let load = |index: &Term| Term::app("load A", [index.clone()]);
    assert!(context.derive(load(&(&i - 1)).equals(load(&j)), &[&same], Mode::Abstract).is_ok());
    let other = context.derive(load(&i).equals(load(&j)), &[&same], Mode::Exact);
    assert!(matches!(other, Err(Failure::NotShown(_))), "{other:?}");
}

#[test]
fn contradicting_premises_are_vacuous() {
    let [x, n] = syms(["x", "n"]);
    let mut context = Context::new(&solver());
    context.assume(x.at_least(0).and(x.less(&n)), "domain");
    let Consistency::Satisfiable(witness) = context.consistent().unwrap() else { panic!("n = 1") };
    assert!(context.premises().iter().all(|premise| premise.prop.eval(&witness) == Ok(true)));
    context.assume(n.equals(1000).and(x.floor_mod(7).equals(3)), "far away");
    assert!(matches!(context.consistent().unwrap(), Consistency::Satisfiable(_)));
    context.assume(n.equals(0), "empty");
    assert_eq!(context.consistent().unwrap(), Consistency::Vacuous);
}

#[test]
fn goals_that_differ_in_names_only_are_asked_once() {
    let solver = solver();
    let ask = |name: &str, goal: fn(&Term) -> Prop| {
        let x = Term::sym(name);
        solver.check(&[x.at_least(0)], &goal(&x), Encoding::Exact).unwrap()
    };
    let right = |x: &Term| x.floor_div(2).at_most(x);
    let wrong = |x: &Term| x.floor_div(2).less(x);
    assert_eq!(ask("x", right).method, Method::Solver);
    let again = ask("y", right);
    assert_eq!((again.outcome, again.method), (Outcome::Proved, Method::Memo));
    let Outcome::Refuted(first) = ask("x", wrong).outcome else { panic!("0 refutes it") };
    let Outcome::Refuted(again) = ask("z", wrong).outcome else { panic!("0 refutes it") };
    assert_eq!((first.to_string(), again.to_string()), ("x = 0".into(), "z = 0".into()));
    assert_eq!(solver.remembered(), 2);
}

/// Fermat's last theorem for exponent 3: nothing a solver finds out.
fn hard() -> (Vec<Prop>, Prop) {
    let [x, y, z] = syms(["x", "y", "z"]);
    let cube = |t: &Term| t * t * t;
    let facts = [&x, &y, &z].map(|t| t.at_least(1)).to_vec();
    (facts, (cube(&x) + cube(&y)).differs(cube(&z)))
}

#[test]
fn an_unknown_by_the_budget_is_remembered() {
    let (facts, goal) = hard();
    let small = solver().limited_to(Budget { rlimit: 100_000, ..Budget::default() });
    let first = small.check(&facts, &goal, Encoding::Exact).unwrap();
    assert_eq!(
        first.outcome,
        Outcome::Unknown(Reason::new(ReasonKind::Budget, "the budget of 100000 is spent, or memory is"))
    );
    let again = small.check(&facts, &goal, Encoding::Exact).unwrap();
    assert_eq!((again.outcome, again.method), (first.outcome, Method::Memo));
    let larger = small.limited_to(Budget { rlimit: 200_000, ..Budget::default() });
    assert_eq!(larger.check(&facts, &goal, Encoding::Exact).unwrap().method, Method::Solver);
}

#[test]
fn the_time_limit_stops_a_goal_before_the_budget_does() {
    let (facts, goal) = hard();
    let solver = solver().limited_to(Budget { rlimit: u32::MAX, timeout_ms: 200, ..Budget::default() });
    let start = Instant::now();
    let answer = solver.check(&facts, &goal, Encoding::Exact).unwrap();
    assert_eq!(answer.outcome, Outcome::Unknown(Reason::new(ReasonKind::Timeout, "timeout of 200 ms")));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn polynomial_identities_are_proved_and_wrong_ones_are_not() {
    let mut context = Context::new(&solver());
    let [a, b, c] = syms(["a", "b", "c"]);
    let q = a.floor_div(&b);
    let lhs = (&q * &b + &c) * (&b + 1);
    let rhs = &q * &b * &b + &c * &b + &b * &q + &c;
    assert!(lemmas::poly_identity(&mut context, &lhs, &rhs).is_ok());
    assert!(lemmas::poly_identity(&mut context, &lhs, &(&rhs + 1)).is_err());
}

#[test]
fn a_name_used_as_integer_and_truth_value_is_an_error() {
    let mut context = Context::new(&solver());
    let goal = Prop::sym("x").implies(Term::sym("x").at_least(0));
    assert!(matches!(context.derive(goal, &[], Mode::Exact), Err(Failure::NotShown(_))));
}

#[test]
fn threads_share_the_memo_and_fork_freely() {
    let solver = solver();
    let lemmas = Lemmas::new(&solver);
    let [x, b] = syms(["x", "b"]);
    let mut parent = Context::new(&solver);
    let positive = parent.assume(b.at_least(1), "an extent");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut context = parent.fork();
                let values = [("a", &x), ("b", &b)];
                assert!(lemmas.apply(&mut context, Lemma::Euclid, &values, &[&positive]).is_ok());
            });
        }
    });
}

#[test]
fn the_certificate_is_checked_again_from_its_text() {
    let solver = solver();
    let lemmas = Lemmas::new(&solver);
    let mut context = Context::new(&solver);
    let [x, n, b] = syms(["x", "n", "b"]);
    let range = context.assume(x.at_least(0).and(x.less(&n)).and(b.at_least(1)), "domain");
    lemmas.split_axis(&mut context, [&x, &n], &b, &[&range]).unwrap();
    context.derive(x.floor_div(-3).at_most(0), &[&range], Mode::Exact).unwrap();
    assert!(context.derive(x.floor_div(-3).at_most(-1), &[&range], Mode::Exact).is_err());
    assert!(context.steps().iter().any(|step| matches!(step.rule, Rule::Theorem(..))));
    let mut certificate = Certificate::new();
    let lines = certificate.add_context("split", &context).unwrap();
    for (name, text) in certificate.files() {
        assert_eq!(text::answer(text, Budget::default()), Ok(TextAnswer::Unsat), "{name}:\n{text}");
    }
    let lemmas = certificate.lemmas().iter().flat_map(|lemma| &lemma.lines);
    let listed: std::collections::BTreeSet<&str> =
        lines.iter().chain(lemmas).filter_map(|line| line.file.as_deref()).collect();
    assert_eq!(listed, certificate.files().map(|(name, _)| name).collect());
    assert!(listed.len() > 10, "{} files", listed.len());
}

#[test]
fn an_opaque_product_is_not_confused_with_a_function_of_that_name() {
    let solver = solver();
    let mut context = Context::new(&solver);
    let [x, y] = syms(["x", "y"]);
    context.derive((&x * &y).equals(&y * &x), &[], Mode::Abstract).unwrap();
    for name in ["mul", "op mul"] {
        let function = Term::app(name, [x.clone(), y.clone()]);
        assert!(context.derive(function.equals(&x * &y), &[], Mode::Exact).is_err(), "{name}");
    }
    let wrong = context.derive((&x * &y).at_least(&x), &[], Mode::Exact);
    assert!(matches!(wrong, Err(Failure::Refuted(_))), "{wrong:?}");
}
