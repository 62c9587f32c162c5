//! The obligations of small plans as goals for the kernel, for a certificate that another solver can check.
//!
//! A tensor in its pool is a box of moments, columns and rows (or of moments and bytes). The goals are that no two boxes of
//! a pool share a point, and that every box lies inside its pool.
//!
//! The goals are linear and small. One goal states that a box shares no point with any of the boxes after it. A plan with
//! more than [`MAX_PAIRS`] pairs of boxes has no goals: it rests on the sweep alone, and the report says so.
//!
//! ```text
//! 0 <= column < 60, 0 <= moment <= 4   |-   not (56 <= column < 116 and 1 <= moment <= 4  or  ..)        refuted: column 56
//! ```

use tilewright_ir::{Region, Room};

use super::graph::Planned;
use super::live::Life;
use crate::door::{All, inspected};
use crate::judge::{Decision, Judge, decide};
use crate::map::SECOND_BUDGET;
use crate::method::Method;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::Verdict;

/// Greatest number of pairs given to Z3; larger plans rest on the sweep alone.
const MAX_PAIRS: usize = 1 << 12;

/// A point of a pool at a moment: a column and a row of a texture, or a byte (in `column`).
struct Point {
    /// The moment, as numbered in `live`.
    moment: Term,
    /// The column, or the byte.
    column: Term,
    /// The row; not used for bytes.
    row: Term,
}

impl Point {
    /// A point of free variables.
    fn new() -> Self {
        let [moment, column, row] = ["moment", "column", "row"].map(Term::sym);
        Self { moment, column, row }
    }

    /// The propositions that the point lies in a region.
    fn within(&self, region: Region) -> Vec<Prop> {
        match region {
            Region::Bytes { offset, size } => range(&self.column, offset, size).into(),
            Region::Texels { x, y, width, height } => {
                range(&self.column, x, width).into_iter().chain(range(&self.row, y, height)).collect()
            }
        }
    }

    /// The propositions that the point lies in a region at a moment of a lifetime.
    fn during(&self, region: Region, life: Life) -> Vec<Prop> {
        let mut props = self.within(region);
        let number = |moment: usize| i128::try_from(moment).unwrap_or(i128::MAX);
        props.extend([self.moment.at_least(number(life.first)), self.moment.at_most(number(life.last))]);
        props
    }
}

/// The propositions that a coordinate lies in a range.
fn range(at: &Term, start: u64, size: u64) -> [Prop; 2] {
    [at.at_least(i128::from(start)), at.less(i128::from(start) + i128::from(size))]
}

/// Number of boxes in one goal that they all lie in their pools.
const TOGETHER: usize = 64;

/// Proves that no two boxes of a pool overlap. `swept` is the method of the sweep that has decided it.
pub(super) fn disjoint(judge: &Judge, planned: &Planned<'_>, lives: &[Option<Life>], swept: Method) -> Decision {
    let boxes: Vec<(usize, Life)> =
        lives.iter().enumerate().filter_map(|(root, life)| Some((root, (*life)?))).collect();
    let (mut goals, mut pairs) = (Vec::new(), 0);
    let point = Point::new();
    for (position, &(one, life)) in boxes.iter().enumerate() {
        let place = planned.place(one);
        let others = boxes[position + 1..].iter().filter(|(other, _)| planned.place(*other).pool == place.pool);
        let others: Vec<Prop> =
            others.map(|&(other, life)| Prop::all(point.during(planned.place(other).region, life))).collect();
        pairs += others.len();
        if pairs > MAX_PAIRS {
            return (inspected(), Method::Twice(Box::new(swept), None));
        }
        if !others.is_empty() {
            goals.push((point.during(place.region, life), Prop::any(others).negate()));
        }
    }
    shown(judge, "plan-disjoint", &goals, swept)
}

/// Proves that every box lies inside its pool. `evaluated` is the method of the evaluation that has decided it.
pub(super) fn fits(judge: &Judge, planned: &Planned<'_>, evaluated: Method) -> Decision {
    if planned.roots.len() > MAX_PAIRS {
        return (inspected(), Method::Twice(Box::new(evaluated), None));
    }
    let point = Point::new();
    let goal = |tensor: usize| {
        let place = planned.place(tensor);
        let all = match planned.plan.pools[place.pool].room {
            Room::Bytes(size) => Region::Bytes { offset: 0, size },
            Room::Texels { width, height } => Region::Texels { x: 0, y: 0, width, height },
        };
        Prop::all(point.within(place.region)).and(Prop::all(point.within(all)).negate())
    };
    let tensors: Vec<usize> = (0..planned.roots.len()).collect();
    let goals = tensors.chunks(TOGETHER).map(|tensors| {
        let leaving: Vec<Prop> = tensors.iter().map(|&tensor| goal(tensor)).collect();
        (Vec::new(), Prop::any(leaving).negate())
    });
    let goals: Vec<_> = goals.collect();
    shown(judge, "plan-fits", &goals, evaluated)
}

/// Proves goals, each from its own premises, and keeps the proofs. A goal that Z3 refutes contradicts the method that has
/// decided the plan, which is an internal error; without an answer in its budget, that decision stands.
fn shown(judge: &Judge, of: &'static str, goals: &[(Vec<Prop>, Prop)], method: Method) -> Decision {
    let judge = judge.limited(SECOND_BUDGET);
    let mut asked = 0;
    let mut all = All::default();
    for (premises, goal) in goals {
        let mut question = judge.question(&mut Names::default(), &[]);
        for premise in premises {
            question.assume(premise, "in the region, while the tensor lives");
        }
        let result = question.settle(goal);
        let (verdict, by) = decide(of, result, &question, 0, |_| None);
        match verdict {
            Verdict::Proved(grounds) => all.add(grounds),
            Verdict::Unknown(reason) if !reason.is_internal() => {
                return (inspected(), Method::Twice(Box::new(method), None));
            }
            other => return (other, by),
        }
        asked += usize::from(by.asks_solver());
    }
    (all.proved(), Method::Confirmed(Box::new(method), asked))
}
