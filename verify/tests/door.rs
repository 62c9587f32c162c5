//! Whatever a strategy returns, only a proof of the goal from its own premises counts.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use tilewright_ir::{Expr, IndexMap, Var};
use tilewright_kernel::facts::{Context, Fact, Failure};
use tilewright_kernel::lemmas::{Lemma, Lemmas};
use tilewright_kernel::strategy::{Search, Strategy};
use tilewright_verify::solver::Solver;
use tilewright_verify::term::{Prop, Symbol, Term};
use tilewright_verify::{Config, Judge, MapClaim, Obligation, Verdict};

/// How a strategy cheats.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// It does not.
    None,
    /// It assumes the goal and returns that.
    Assumes,
    /// It returns a fact that states something else.
    StatesElse,
    /// It returns a fact of another context, in which the goal is a premise.
    FromElsewhere,
    /// It forgets a premise, which makes the goal harder.
    Forgets,
}

/// Strategies that cheat.
#[derive(Debug)]
struct Liars(Lie);

impl Search for Liars {
    fn begin(&self, context: Context, lemmas: &Arc<Lemmas>) -> Box<dyn Strategy> {
        Box::new(Liar { honest: tilewright_search::strategies().begin(context.fork(), lemmas), context, lie: self.0 })
    }
}

/// A strategy that cheats.
#[derive(Debug)]
struct Liar {
    honest: Box<dyn Strategy>,
    context: Context,
    lie: Lie,
}

impl Strategy for Liar {
    fn context(&self) -> &Context {
        if self.lie == Lie::None { self.honest.context() } else { &self.context }
    }

    fn fork(&self) -> Box<dyn Strategy> {
        Box::new(Self { honest: self.honest.fork(), context: self.context.fork(), lie: self.lie })
    }

    fn index(&mut self, symbols: BTreeSet<Symbol>) {
        self.honest.index(symbols);
    }

    fn assume(&mut self, premise: Prop, reason: &str) {
        if self.lie != Lie::Forgets {
            self.context.assume(premise.clone(), reason);
        }
        self.honest.assume(premise, reason);
    }

    fn keep(&mut self, fact: &Fact) {
        self.honest.keep(fact);
    }

    fn known(&self, prop: &Prop) -> Option<Fact> {
        self.honest.known(prop)
    }

    fn bounds_factor(&mut self, goal: &Prop, size: &Term, factor: &Term) {
        self.honest.bounds_factor(goal, size, factor);
    }

    fn equated(&mut self, pairs: &[(Term, Term)]) {
        self.honest.equated(pairs);
    }

    fn prove(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        match self.lie {
            Lie::None => self.honest.prove(goal),
            Lie::Assumes | Lie::Forgets => Ok(self.context.assume(goal.clone(), "a strategy would like it so")),
            Lie::StatesElse => self.context.derive(Prop::bool(true), &[], tilewright_kernel::facts::Mode::Abstract),
            Lie::FromElsewhere => Ok(Context::new(&Solver::new()?).assume(goal.clone(), "elsewhere")),
        }
    }

    fn prove_in_bits(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        self.prove(goal)
    }

    fn positive(&mut self, product: &Term) -> Option<Fact> {
        self.honest.positive(product)
    }

    fn lemma(&mut self, _: Lemma, _: &[(&str, &Term)], _: &[&Fact]) -> Result<Fact, Failure> {
        self.prove(&Prop::bool(true))
    }
}

/// The verdict about the bounds of `lambda i: [i]` on `(n)` into `(n)`, which is right, or into `(n - 1)`, which is not.
fn bounds(lie: Lie, is_right: bool) -> Verdict {
    let (i, n) = (Var::index("i"), Var::index("n"));
    let map = IndexMap::new(vec![i.clone()], vec![Expr::from(&n)], vec![Expr::from(&i)], vec![]).unwrap();
    let shape = [if is_right { Expr::from(&n) } else { Expr::from(&n) - common::int(1) }];
    let judge = Judge::new(Config::default(), Arc::new(Liars(lie))).unwrap();
    let reports = judge.check_map(MapClaim::new(&map, &shape));
    reports.into_iter().find(|report| report.obligation == Obligation::Bounds).unwrap().verdict
}

#[test]
fn an_honest_strategy_proves_what_is_right() {
    let verdict = bounds(Lie::None, true);
    let Verdict::Proved(grounds) = &verdict else { panic!("{verdict}") };
    assert!(grounds.facts() > 0 && grounds.points() == 0);
    assert!(!bounds(Lie::None, false).is_proved());
}

#[test]
fn a_strategy_that_cheats_proves_nothing_and_is_an_internal_error() {
    for lie in [Lie::Assumes, Lie::StatesElse, Lie::FromElsewhere, Lie::Forgets] {
        for is_right in [true, false] {
            let verdict = bounds(lie, is_right);
            assert!(!verdict.is_proved(), "{lie:?}");
            if is_right {
                assert!(verdict.reason().is_some_and(tilewright_verify::Reason::is_internal), "{lie:?}: {verdict}");
            }
        }
    }
}
