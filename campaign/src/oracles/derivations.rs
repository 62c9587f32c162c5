//! Compares what the proof kernel derives with evaluation at all points of a small box.
//!
//! A case is a derivation: premises are assumed, goals derived, contexts forked and their facts discharged, theorems made and applied,
//! divisions defined. Most steps fail, as they should. Each fact that the kernel hands out has to hold wherever the premises of its
//! context hold, so a rule that forgets a premise or a hypothesis is found, although no proof of the judge uses it wrongly.
//!
//! ```text
//! assume x < 2;  fork: assume y == x, derive y < 2, discharge      gives   y == x => y < 2      and never   y < 2
//! ```

use arbitrary::{Result as Drawn, Unstructured};
use serde::{Deserialize, Serialize};
use tilewright_verify::kernel::{Context, Fact, Failure as Refusal, Mode};
use tilewright_verify::solver::{Budget, Solver};
use tilewright_verify::term::{Assignment, Prop, Substitution, Term};

use crate::case::{Case, without_one};
use crate::config::Config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// The variables of a derivation.
const VARIABLES: [&str; 3] = ["x", "y", "z"];
/// The values of each variable that are tried.
const BOX: std::ops::RangeInclusive<i128> = -4..=4;
/// Z3's budget per question.
const RLIMIT: u32 = 20_000;

/// A term: a variable, or a function of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A variable.
    Variable(usize),
    /// A constant.
    Constant(i8),
    /// The sum of two variables and a constant.
    Sum(usize, usize, i8),
    /// The difference of two variables.
    Difference(usize, usize),
    /// A variable times a constant.
    Multiple(usize, i8),
    /// The floor quotient of a variable and a constant.
    Quotient(usize, i8),
    /// The floor remainder of a variable by a constant.
    Remainder(usize, i8),
}

/// A comparison of two terms: `<`, `<=`, `==` or `!=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The first is below the second.
    Below(Value, Value),
    /// The first is not above the second.
    AtMost(Value, Value),
    /// They are equal.
    Equal(Value, Value),
    /// They differ.
    Differ(Value, Value),
}

/// A step of a derivation. A number selects one of the facts so far, modulo their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A premise.
    Assume(Claim),
    /// A goal, from facts.
    Derive(Claim, Vec<usize>),
    /// A goal, from facts, over bit-vectors.
    DeriveInBits(Claim, Vec<usize>),
    /// A premise of a fork, a goal derived in it from the premise and a fact, and discharged.
    Fork(Claim, Claim, usize),
    /// A theorem with a hypothesis and a conclusion, applied to terms with facts.
    Theorem(Claim, Claim, [Value; 3], Vec<usize>),
    /// The definition of a quotient, with a fact about the divisor.
    Divide(Value, Value, usize),
    /// Two facts joined, and split again.
    Join(usize, usize),
}

/// A derivation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derivation {
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

impl Case for Derivation {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> Drawn<Self> {
        let mut claims = vec![claim(u)?];
        let mut steps = vec![Step::Assume(claims[0])];
        for _ in 0..u.int_in_range(2..=7)? {
            steps.push(step(u, &mut claims)?);
        }
        Ok(Self { steps })
    }

    fn simpler(&self) -> Vec<Self> {
        without_one(&self.steps).into_iter().map(|steps| Self { steps }).collect()
    }

    fn features(&self) -> Vec<String> {
        let name = |step: &Step| match step {
            Step::Assume(_) => "assume",
            Step::Derive(..) => "derive",
            Step::DeriveInBits(..) => "bits",
            Step::Fork(..) => "fork",
            Step::Theorem(..) => "theorem",
            Step::Divide(..) => "divide",
            Step::Join(..) => "join",
        };
        let mut names: Vec<String> = self.steps.iter().map(|step| format!("step:{}", name(step))).collect();
        names.sort();
        names.dedup();
        names
    }

    fn text(&self) -> String {
        self.steps.iter().map(|step| format!("{step:?}")).collect::<Vec<_>>().join("\n")
    }
}

fn value(u: &mut Unstructured<'_>) -> Drawn<Value> {
    let (a, b) = (u.int_in_range(0..=2)?, u.int_in_range(0..=2)?);
    let number = u.int_in_range(-3..=3)?;
    Ok(match u.int_in_range(0..=9u8)? {
        0..=2 => Value::Variable(a),
        3 | 4 => Value::Constant(number),
        5 => Value::Sum(a, b, number),
        6 => Value::Difference(a, b),
        7 => Value::Multiple(a, number),
        8 => Value::Quotient(a, if number == 0 { 2 } else { number }),
        _ => Value::Remainder(a, if number == 0 { 2 } else { number }),
    })
}

fn claim(u: &mut Unstructured<'_>) -> Drawn<Claim> {
    let (a, b) = (value(u)?, value(u)?);
    Ok(match u.int_in_range(0..=3u8)? {
        0 => Claim::Below(a, b),
        1 => Claim::AtMost(a, b),
        2 => Claim::Equal(a, b),
        _ => Claim::Differ(a, b),
    })
}

/// A claim that one of the claims so far may imply.
fn goal(u: &mut Unstructured<'_>, claims: &[Claim]) -> Drawn<Claim> {
    let known = *u.choose(claims)?;
    Ok(match (u.int_in_range(0..=3u8)?, known) {
        (0, _) => claim(u)?,
        (1, Claim::Below(a, b) | Claim::Equal(a, b)) => Claim::AtMost(a, b),
        (2, Claim::Below(a, b)) => Claim::Differ(a, b),
        (_, known) => known,
    })
}

fn step(u: &mut Unstructured<'_>, claims: &mut Vec<Claim>) -> Drawn<Step> {
    let using = |u: &mut Unstructured<'_>| -> Drawn<Vec<usize>> {
        (0..u.int_in_range(0..=3u8)?).map(|_| u.int_in_range(0..=7)).collect()
    };
    Ok(match u.int_in_range(0..=9u8)? {
        0 => {
            let premise = claim(u)?;
            claims.push(premise);
            Step::Assume(premise)
        }
        1 | 2 => Step::Derive(goal(u, claims)?, using(u)?),
        3 => Step::DeriveInBits(goal(u, claims)?, using(u)?),
        4 | 5 => {
            let premise = claim(u)?;
            Step::Fork(premise, goal(u, &[premise])?, u.int_in_range(0..=7)?)
        }
        6 | 7 => {
            let hypothesis = claim(u)?;
            let conclusion = goal(u, &[hypothesis])?;
            Step::Theorem(hypothesis, conclusion, [value(u)?, value(u)?, value(u)?], using(u)?)
        }
        8 => Step::Divide(value(u)?, value(u)?, u.int_in_range(0..=7)?),
        _ => Step::Join(u.int_in_range(0..=7)?, u.int_in_range(0..=7)?),
    })
}

impl Value {
    fn term(self) -> Term {
        let var = |at: usize| Term::sym(VARIABLES[at % VARIABLES.len()]);
        match self {
            Self::Variable(at) => var(at),
            Self::Constant(value) => Term::int(value.into()),
            Self::Sum(a, b, value) => var(a) + var(b) + Term::int(value.into()),
            Self::Difference(a, b) => var(a) - var(b),
            Self::Multiple(a, by) => var(a) * Term::int(by.into()),
            Self::Quotient(a, by) => var(a).floor_div(i128::from(by)),
            Self::Remainder(a, by) => var(a).floor_mod(i128::from(by)),
        }
    }
}

impl Claim {
    fn prop(self) -> Prop {
        match self {
            Self::Below(a, b) => a.term().less(b.term()),
            Self::AtMost(a, b) => a.term().at_most(b.term()),
            Self::Equal(a, b) => a.term().equals(b.term()),
            Self::Differ(a, b) => a.term().differs(b.term()),
        }
    }
}

/// A context with the facts that it gave out.
struct Proof {
    context: Context,
    facts: Vec<Fact>,
}

impl Proof {
    /// The facts that numbers select.
    fn selected(&self, numbers: &[usize]) -> Vec<Fact> {
        let count = self.facts.len().max(1);
        numbers.iter().filter_map(|number| self.facts.get(number % count).cloned()).collect()
    }

    /// Takes a step, and returns the facts that it gives.
    fn step(&mut self, solver: &Solver, step: &Step) -> Result<Vec<Fact>, Refusal> {
        match step {
            Step::Assume(claim) => Ok(vec![self.context.assume(claim.prop(), "a premise")]),
            Step::Derive(claim, using) => {
                let using = self.selected(using);
                Ok(vec![self.context.derive(claim.prop(), &using.iter().collect::<Vec<_>>(), Mode::Exact)?])
            }
            Step::DeriveInBits(claim, using) => {
                let using = self.selected(using);
                Ok(vec![self.context.derive_in_bits(&claim.prop(), &using.iter().collect::<Vec<_>>())?])
            }
            Step::Fork(premise, claim, using) => {
                let mut fork = self.context.fork();
                let known = self.selected(&[*using]);
                let added = fork.assume(premise.prop(), "a premise of the fork");
                let using: Vec<&Fact> = known.iter().chain([&added]).collect();
                let fact = fork.derive(claim.prop(), &using, Mode::Exact)?;
                Ok(vec![self.context.discharge(fork, &fact)?])
            }
            Step::Theorem(hypothesis, conclusion, values, using) => {
                let mut general = Context::new(solver);
                let assumed = general.assume(hypothesis.prop(), "a hypothesis");
                let fact = general.derive(conclusion.prop(), &[&assumed], Mode::Exact)?;
                let theorem = general.generalize("a theorem", &fact)?;
                let values = Substitution::new(VARIABLES.into_iter().zip(values.map(Value::term)));
                let using = self.selected(using);
                Ok(vec![self.context.apply(&theorem, &values, &using.iter().collect::<Vec<_>>())?])
            }
            Step::Divide(a, b, positive) => {
                let positive = self.selected(&[*positive]);
                Ok(vec![self.context.define_div(&a.term(), &b.term(), positive.first())?])
            }
            Step::Join(a, b) => {
                let parts = self.selected(&[*a, *b]);
                let joined = self.context.join(&parts.iter().collect::<Vec<_>>())?;
                let mut split = self.context.split(&joined)?;
                split.push(joined);
                Ok(split)
            }
        }
    }
}

/// A point at which the premises hold and a proposition does not.
fn counterexample(premises: &[Prop], prop: &Prop) -> Option<Assignment> {
    let points = BOX.flat_map(|x| BOX.flat_map(move |y| BOX.map(move |z| [x, y, z])));
    let mut points = points.map(|values| {
        VARIABLES.into_iter().zip(values).fold(Assignment::new(), |point, (name, value)| point.with(name, value))
    });
    points.find(|point| premises.iter().all(|premise| premise.eval(point) == Ok(true)) && prop.eval(point) == Ok(false))
}

/// The oracle `derivations`; see the module.
#[derive(Debug)]
pub struct Derivations {
    solver: Solver,
}

impl Derivations {
    /// Creates the oracle with a solver of its own.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { rlimit: RLIMIT, timeout_ms: u32::MAX, ..Budget::default() };
        Ok(Self { solver: Solver::with_budget(budget).map_err(|error| error.to_string())? })
    }
}

impl Oracle for Derivations {
    type Case = Derivation;

    const NAME: &'static str = "derivations";

    fn check(&mut self, case: &Derivation, tally: &mut Tally) -> Outcome {
        let mut proof = Proof { context: Context::new(&self.solver), facts: Vec::new() };
        for step in &case.steps {
            let facts = match proof.step(&self.solver, step) {
                Ok(facts) => facts,
                Err(Refusal::Internal(why)) => return Failure::outcome("the kernel fails", why),
                Err(Refusal::NotShown(_) | Refusal::Refuted(_) | Refusal::Foreign(_)) => {
                    tally.count("steps refused", 1);
                    continue;
                }
            };
            let premises: Vec<Prop> = proof.context.premises().iter().map(|premise| premise.prop.clone()).collect();
            for fact in &facts {
                tally.count("facts compared", 1);
                if let Some(point) = counterexample(&premises, fact.prop()) {
                    let premises: Vec<String> = premises.iter().map(ToString::to_string).collect();
                    let detail = format!("{} at {point}, from {}", fact.prop(), premises.join("; "));
                    return Failure::outcome("a fact does not hold", detail);
                }
            }
            proof.facts.extend(facts);
        }
        Outcome::Held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_fact_is_noticed_and_true_ones_hold() {
        let (x, two) = (Value::Variable(0), Value::Constant(2));
        let premise = Claim::Below(x, two).prop();
        assert!(counterexample(&[], &premise).is_some());
        assert!(counterexample(std::slice::from_ref(&premise), &Claim::AtMost(x, two).prop()).is_none());
        assert!(counterexample(&[premise], &Claim::Below(x, Value::Constant(1)).prop()).is_some());
        let steps = vec![
            Step::Assume(Claim::Below(x, two)),
            Step::Fork(Claim::Equal(Value::Variable(1), x), Claim::Below(Value::Variable(1), two), 0),
            Step::Theorem(Claim::Below(x, two), Claim::AtMost(x, two), [x, x, x], vec![0]),
            Step::Divide(Value::Sum(0, 1, 1), two, 0),
            Step::Join(0, 1),
        ];
        let mut tally = Tally::default();
        let mut oracle = Derivations::new(&Environment::default()).unwrap();
        assert_eq!(oracle.check(&Derivation { steps }, &mut tally), Outcome::Held);
        assert_eq!(tally.counts.get("steps refused"), None);
        assert_eq!(tally.counts.get("facts compared"), Some(&7));
    }
}
