//! Evaluation of Z3's models: a model counts only if evaluation confirms it.
//!
//! Z3 may give a wrong model where the encoding approximates (bit operations on two terms) or where the goal contains
//! uninterpreted functions. Elsewhere a model that does not replay is an internal error: Z3 or the encoding is wrong.
//!
//! ```text
//! x >= 0   |-   x % 8 < 7        Z3: x = 7       evaluation: 7 >= 0 holds, 7 % 8 < 7 does not: refuted
//! ```

use super::{Consistency, Failure};
use crate::encode::{self, Encoding};
use crate::reason::{Reason, ReasonKind};
use crate::term::{Assignment, EvalError, Prop, Value};

/// The failure for a model in which, according to Z3, the facts hold and the goal does not.
pub(super) fn counterexample(facts: &[Prop], goal: &Prop, model: Assignment) -> Failure {
    let holds = facts.iter().map(|fact| (fact, true)).chain([(goal, false)]);
    for (prop, expected) in holds {
        match prop.eval(&model) {
            Ok(value) if value == expected => {}
            Ok(_) if is_exact(facts, goal) => {
                return Failure::Internal(format!("a countermodel does not replay: {prop} at {model}"));
            }
            Ok(_) => {
                let text = "a countermodel does not replay: bit operations are approximated";
                return Failure::NotShown(Reason::undecided(text));
            }
            Err(error) => return Failure::NotShown(unreplayed(prop, &error, &model)),
        }
    }
    Failure::Refuted(model)
}

/// Whether the exact encoding of a goal approximates nothing, so that its models must replay.
fn is_exact(facts: &[Prop], goal: &Prop) -> bool {
    let opaque = facts.iter().chain([goal]).any(Prop::has_applications);
    !opaque && encode::encode(facts, goal, Encoding::Exact).is_ok_and(|query| !query.approximate)
}

/// Why a proposition cannot be evaluated at a model.
fn unreplayed(prop: &Prop, error: &EvalError, model: &Assignment) -> Reason {
    Reason::undecided(if error.is_undefined() {
        format!("{prop} has no meaning ({error}) at {model}")
    } else {
        format!("the countermodel cannot be replayed ({error})")
    })
}

/// The answer for a model in which, according to Z3, all premises hold.
pub(super) fn witness(premises: &[Prop], model: Assignment, approximate: bool) -> Result<Consistency, Failure> {
    for premise in premises {
        match premise.eval(&model) {
            Ok(true) | Err(EvalError::Uninterpreted(_)) => {}
            Ok(false) if approximate || premises.iter().any(Prop::has_applications) => {
                return Ok(Consistency::Unknown(Reason::new(
                    ReasonKind::Unreplayed,
                    "a model of the premises does not replay",
                )));
            }
            Ok(false) => {
                return Err(Failure::Internal(format!("a model does not replay: {premise} at {model}")));
            }
            Err(error) => return Ok(Consistency::Unknown(unreplayed(premise, &error, &model))),
        }
    }
    Ok(Consistency::Satisfiable(model))
}

/// A point at which the premises hold, if one of a few fixed ones does: all variables 1, 0 or 2, or different ones.
pub(super) fn small_witness(premises: &[Prop]) -> Option<Assignment> {
    let mut integers = std::collections::BTreeSet::new();
    let mut booleans = std::collections::BTreeSet::new();
    for premise in premises {
        integers.extend(premise.free_symbols());
        booleans.extend(premise.free_booleans());
    }
    let points: [fn(i128) -> i128; 6] =
        [|_| 1, |_| 0, |_| 2, |position| position + 2, |position| 7 + 4 * position, |position| -position];
    points.iter().find_map(|point| {
        let mut model = Assignment::new();
        for (position, symbol) in (0..).zip(&integers) {
            model.set(symbol.clone(), Value::Int(point(position)));
        }
        for symbol in &booleans {
            model.set(symbol.clone(), Value::Bool(true));
        }
        premises.iter().all(|premise| premise.eval(&model) == Ok(true)).then_some(model)
    })
}
