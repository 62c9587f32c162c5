//! Compares the queries that the judge gives to Z3 with evaluation: the encoding, its text, and the memo.
//!
//! A random goal is translated and encoded in every way that the judge uses. The text is read by the evaluator in
//! [`smt`], which knows SMT-LIB and nothing of the judge. At each point tried, the assertions can hold if and
//! only if, by the evaluation of `ir`, the premises hold, the result is the value of the expression, and the goal does
//! not hold. So a premise that is left out, a rounding that is wrong for one sign, and a definition that is too weak are
//! all found, although every solver would agree on the wrong text.
//!
//! Then Z3 is asked about one point of the goal and of its twin, which differs inside the expression only, by a solver
//! with a memo that lives as long as the oracle.

use std::time::Duration;

use tilewright_ir::{Bindings, Expr, Var};
use tilewright_verify::encode::{Encoding, Query, bits, encode};
use tilewright_verify::smtlib;
use tilewright_verify::solver::{Budget, Outcome as Answered, Solver};
use tilewright_verify::term::{Prop, Term};
use tilewright_verify::translate::Names;

use crate::expression::{Goal, Link, Value};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::smt::search::{Answer, satisfiable};
use crate::smt::{self, Script, Sort};

/// Points of a case that are tried.
const POINTS: usize = 24;
/// Z3's budget per question.
const RLIMIT: u32 = 20_000;
/// Magnitude below which all values of an expression lie in the low bits that the exact encoding has for certain.
const LOW_BITS: i128 = 16;

/// The oracle `encoder`; see the module.
#[derive(Debug)]
pub struct Encoder {
    solver: Solver,
}

impl Encoder {
    /// Creates the oracle with a solver of its own.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let timeout_ms = u32::try_from(Duration::MAX.as_millis()).unwrap_or(u32::MAX);
        let budget = Budget { rlimit: RLIMIT, timeout_ms, ..Budget::default() };
        Ok(Self { solver: Solver::with_budget(budget).map_err(|error| error.to_string())? })
    }
}

/// A case as expressions, and as the assumptions and the goal that the judge would have.
struct Built {
    vars: Vec<Var>,
    premises: Vec<Expr>,
    value: Expr,
    goals: Vec<Expr>,
    link: Link,
    /// The assumptions; the last two say that the result is the value.
    assumptions: Vec<Prop>,
    goal: Prop,
    /// The terms of the variables, and of the result.
    terms: Vec<Term>,
    result: Term,
}

impl Built {
    /// Builds a case with a value.
    fn of(case: &Goal, value: &Value) -> Self {
        let (vars, ty) = (case.vars(), case.ty());
        let mut names = Names::default();
        let terms: Vec<Term> = vars.iter().map(|var| names.var(var)).collect();
        let result = Term::sym(names.fresh("result"));
        let mut assumptions = Vec::new();
        for (term, (low, more)) in terms.iter().zip(&case.ranges) {
            assumptions.push(term.at_least(i128::from(*low)));
            assumptions.push(term.at_most(i128::from(*low) + i128::from(*more)));
        }
        let premises: Vec<Expr> = case.premises.iter().map(|premise| premise.expr(&vars, ty)).collect();
        assumptions.extend(premises.iter().map(|premise| names.prop(premise)));
        let value = value.expr(&vars, ty);
        // Two comparisons and not an equation, so that the value is shared and becomes a definition.
        let term = names.term(&value);
        assumptions.push(result.at_least(&term));
        assumptions.push(result.at_most(&term));
        let goals = vec![case.goal.expr(&vars, ty), case.other.expr(&vars, ty)];
        let (first, second) = (names.prop(&goals[0]), names.prop(&goals[1]));
        let goal = match case.link {
            Link::First => first,
            Link::Implies => first.implies(second),
            Link::Iff => first.iff(second),
        };
        Self { vars, premises, value, goals, link: case.link, assumptions, goal, terms, result }
    }

    /// Evaluates the case at a point, the values of its variables; `None` if an expression has no value there.
    fn at(&self, point: &[i128]) -> Option<Truth> {
        let bindings: Bindings = self.vars.iter().cloned().zip(point.iter().copied()).collect();
        let holds = |expr: &Expr| expr.eval_index(&bindings).ok().map(|value| value != 0);
        let premises = self.premises.iter().map(holds).collect::<Option<Vec<bool>>>()?;
        let value = self.value.eval_index(&bindings).ok()?;
        let first = holds(&self.goals[0])?;
        let goal = match self.link {
            Link::First => first,
            Link::Implies => holds(&self.goals[1])? || !first,
            Link::Iff => holds(&self.goals[1])? == first,
        };
        let mut is_small = true;
        for expr in self.premises.iter().chain([&self.value]).chain(&self.goals) {
            expr.walk(&mut |part| {
                is_small &= part.eval_index(&bindings).is_ok_and(|value| (-LOW_BITS..LOW_BITS).contains(&value));
            });
        }
        Some(Truth { is_wanted: premises.iter().all(|holds| *holds) && !goal, value, is_small })
    }
}

/// The evaluation of a case at a point.
struct Truth {
    /// Whether the premises hold and the conclusion does not, so that the assertions of a query can hold here.
    is_wanted: bool,
    /// The value of the expression.
    value: i128,
    /// Whether all parts are so small that bit operations are encoded without loss.
    is_small: bool,
}

/// Points of the box of a case, at most [`POINTS`], spread evenly.
fn points(case: &Goal) -> Vec<Vec<i128>> {
    let all: usize = case.ranges.iter().map(|(_, more)| usize::from(*more) + 1).product();
    let step = all.div_ceil(POINTS).max(1);
    // A step that has a factor in common with an extent would leave values of that axis out.
    let numbers = (0..all.min(POINTS)).map(|number| (number * step + number % step) % all.max(1));
    let point = |mut number: usize| {
        let mut point = Vec::new();
        for (low, more) in &case.ranges {
            let extent = usize::from(*more) + 1;
            point.push(i128::from(*low) + i128::try_from(number % extent).unwrap_or(0));
            number /= extent;
        }
        point
    };
    numbers.map(point).collect()
}

/// Integers that could be taken for the result by mistake.
fn guesses(value: i128, bound: Option<i128>) -> Vec<i128> {
    let mut all = vec![value, value + 1, value - 1, -value];
    all.dedup();
    all.retain(|guess| bound.is_none_or(|bound| (-bound..=bound).contains(guess)));
    all
}

/// The functions that stand for operators in the cheap encodings, with their meaning.
fn operators(name: &str, values: &[i128]) -> Option<i128> {
    let [a, b] = values else { return None };
    let (a, b) = (*a, *b);
    let floor = || {
        let quotient = a.checked_div(b)?;
        Some(if quotient.checked_mul(b)? != a && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
    };
    let amount = || u32::try_from(b).ok().filter(|amount| *amount < 64);
    match name {
        "mul" => a.checked_mul(b),
        "floordiv" => floor(),
        "floormod" => a.checked_sub(floor()?.checked_mul(b)?),
        "truncdiv" => a.checked_div(b),
        "truncmod" => a.checked_sub(a.checked_div(b)?.checked_mul(b)?),
        "bitand" => Some(a & b),
        "bitor" => Some(a | b),
        "bitxor" => Some(a ^ b),
        "shl" => a.checked_mul(1 << amount()?),
        "shr" => Some(a >> amount()?),
        _ => None,
    }
}

/// A query, its text as it was read, and what is known of it.
struct Text {
    query: Query,
    script: Script,
    name: &'static str,
    /// The greatest magnitude of the result.
    bound: Option<i128>,
}

/// The queries of a case in all encodings. `magnitude` bounds the result where it is a bit-vector.
fn texts(built: &Built, magnitude: i128, tally: &mut Tally) -> Result<Vec<Text>, Outcome> {
    let mut wanted = vec![
        ("exact", Encoding::Exact, None),
        ("abstract", Encoding::Abstract, None),
        ("opaque", Encoding::Opaque, None),
    ];
    let mut bounded = built.assumptions.clone();
    bounded.push(built.result.at_least(-magnitude));
    bounded.push(built.result.at_most(magnitude));
    if let Some(width) = bits::width(&bounded, &built.goal) {
        wanted.push(("bits", Encoding::Bits(width), Some(magnitude)));
    }
    let mut found = Vec::new();
    for (name, encoding, bound) in wanted {
        let assumptions = if bound.is_some() { &bounded } else { &built.assumptions };
        let query = match encode(assumptions, &built.goal, encoding) {
            Ok(query) => query,
            Err(error) => return Err(Outcome::Undecided(format!("{name}: {error}"))),
        };
        let text = smtlib::standalone(&query, "a random goal", "unknown");
        let script = Script::read(&text)
            .map_err(|why| Failure::outcome(format!("the text of the {name} encoding cannot be read"), why))?;
        if script.assertions.len() < assumptions.len() + 1 {
            let text = format!("{} assertions of {} assumptions", script.assertions.len(), assumptions.len());
            return Err(Failure::outcome(format!("the {name} encoding leaves a premise out"), text));
        }
        tally.saw(&format!("encoding:{name}"));
        found.push(Text { query, script, name, bound });
    }
    Ok(found)
}

impl Text {
    /// The values of the declared constants; `None` for those that the encoding introduced.
    fn values(&self, built: &Built, point: &[i128], result: i128) -> Vec<Option<smt::Value>> {
        let known = |name: &str| {
            let at = self.query.variables.iter().find(|variable| variable.name == name)?;
            let term = Term::sym(at.symbol.clone()?);
            let integer = built.terms.iter().position(|other| *other == term).and_then(|at| point.get(at).copied());
            integer.or_else(|| (term == built.result).then_some(result))
        };
        let value = |(name, sort): &(String, Sort)| {
            Some(match sort {
                Sort::Bits(width) => smt::Value::Bits(smt::eval::bits_of(known(name)?, *width)),
                Sort::Int | Sort::Bool => smt::Value::Int(known(name)?),
            })
        };
        self.script.variables.iter().map(value).collect()
    }

    /// Compares the assertions at a point with evaluation.
    fn compare(&self, built: &Built, point: &[i128], truth: &Truth, tally: &mut Tally) -> Option<Outcome> {
        for guess in guesses(truth.value, self.bound) {
            let is_possible = truth.is_wanted && guess == truth.value;
            let values = self.values(built, point, guess);
            let answer = satisfiable(&self.script, &values, &operators);
            let name = self.name;
            let detail = || {
                let text = smtlib::canonical_text(&self.query);
                format!("at {point:?} with the result {guess} (evaluated: {})\n{text}", truth.value)
            };
            match (answer, is_possible) {
                (Answer::Open, _) => tally.count("points left open", 1),
                (Answer::Satisfied, true) | (Answer::Contradicted, false) => tally.count("points compared", 1),
                (Answer::Contradicted, true) => {
                    return Some(Failure::outcome(format!("the {name} encoding excludes what is possible"), detail()));
                }
                (Answer::Satisfied, false) if self.query.approximate && !truth.is_small => {
                    tally.count("points that an approximation allows", 1);
                }
                (Answer::Satisfied, false) => {
                    return Some(Failure::outcome(
                        format!("the {name} encoding allows what is not possible"),
                        detail(),
                    ));
                }
            }
        }
        None
    }
}

impl Encoder {
    /// Asks Z3 about one point with a result, and compares the answer with evaluation.
    fn ask(&self, built: &Built, point: &[i128], result: i128, tally: &mut Tally) -> Option<Outcome> {
        let truth = built.at(point)?;
        let is_possible = truth.is_wanted && result == truth.value;
        let mut assumptions = built.assumptions.clone();
        assumptions.extend(built.terms.iter().zip(point).map(|(term, value)| term.equals(*value)));
        assumptions.push(built.result.equals(result));
        let answer = match self.solver.check(&assumptions, &built.goal, Encoding::Exact) {
            Ok(answer) => answer,
            Err(error) => return Some(Failure::outcome("the solver fails", error.to_string())),
        };
        let detail = || format!("at {point:?} with the result {result} (evaluated: {}): {answer:?}", truth.value);
        match (&answer.outcome, is_possible) {
            (Answered::Proved, true) => Some(Failure::outcome("the solver proves what does not hold", detail())),
            (Answered::Refuted(_), false) if !answer.query.approximate => {
                Some(Failure::outcome("the solver refutes what holds", detail()))
            }
            (Answered::Unknown(_), _) => {
                tally.count("questions that Z3 left open", 1);
                None
            }
            _ => {
                tally.count("answers of Z3 compared", 1);
                None
            }
        }
    }
}

impl Oracle for Encoder {
    type Case = Goal;

    const NAME: &'static str = "encoder";

    fn check(&mut self, case: &Goal, tally: &mut Tally) -> Outcome {
        let built = Built::of(case, &case.value);
        let points = points(case);
        let evaluated: Vec<(&Vec<i128>, Truth)> =
            points.iter().filter_map(|point| Some((point, built.at(point)?))).collect();
        tally.count("points without a value", (points.len() - evaluated.len()) as u64);
        let Some((point, truth)) = evaluated.get(case.twin % evaluated.len().max(1)) else {
            return Outcome::Undecided("no point has a value".into());
        };
        let magnitude = evaluated.iter().map(|(_, truth)| truth.value.abs() + 1).max().unwrap_or(1);
        let texts = match texts(&built, magnitude, tally) {
            Ok(texts) => texts,
            Err(outcome) => return outcome,
        };
        for text in &texts {
            // The search for bits takes long, so an approximation is tried at fewer points.
            let some = if text.query.approximate { 4 } else { evaluated.len() };
            for (point, truth) in evaluated.iter().take(some) {
                if let Some(failed) = text.compare(&built, point, truth, tally) {
                    return failed;
                }
            }
        }
        let twin = Built::of(case, &case.value.changed(case.twin));
        let asked = [&built, &twin].into_iter().find_map(|built| self.ask(built, point, truth.value, tally));
        asked.unwrap_or(Outcome::Held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Truth as Condition;

    /// `result == x0 // -3 + x0 % -3` for x0 in -7..=7.
    fn goal() -> Goal {
        let (floor_div, floor_mod, add) = (0, 1, 4);
        let by = |op| Box::new(Value::Binary(op, Box::new(Value::Variable(0)), Box::new(Value::Constant(-3))));
        Goal {
            wide: false,
            ranges: vec![(-7, 14)],
            premises: Vec::new(),
            value: Value::Binary(add, by(floor_div), by(floor_mod)),
            goal: Condition::Constant(false),
            other: Condition::Constant(false),
            link: Link::First,
            twin: 1,
        }
    }

    /// The first failure of the exact encoding after a change of its text.
    fn failure(change: impl Fn(&str) -> String) -> Option<Outcome> {
        let case = goal();
        let built = Built::of(&case, &case.value);
        let mut text = texts(&built, 20, &mut Tally::default()).unwrap().swap_remove(0);
        text.script = Script::read(&change(&smtlib::canonical_text(&text.query))).unwrap();
        let tally = &mut Tally::default();
        points(&case).iter().find_map(|point| text.compare(&built, point, &built.at(point)?, tally))
    }

    #[test]
    fn a_changed_text_is_noticed_and_the_right_one_holds() {
        let mut oracle = Encoder::new(&Environment::default()).unwrap();
        assert_eq!(oracle.check(&goal(), &mut Tally::default()), Outcome::Held);
        assert_eq!(failure(str::to_owned), None);
        // Euclidean division, another rounding, a premise less, a bound that is off by one.
        for (from, to) in [("(mod t6 3)", "(mod v0 3)"), ("(div t6 3)", "(- (div v0 3))"), ("(<= ", "(< ")] {
            let is_there = |text: &str| assert!(text.contains(from), "{from} in {text}");
            let found = failure(|text| {
                is_there(text);
                text.replace(from, to)
            });
            assert!(matches!(found, Some(Outcome::Failed(_))), "{from}");
        }
    }
}
