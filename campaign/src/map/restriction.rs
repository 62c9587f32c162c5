//! Predicates that restrict a map to some of its indices, as the guards of loop nests do.
//!
//! ```text
//! split    x0 * 4 + x1 < 17     the guard of a loop that was split, on (5, 4)
//! below    x1 < 3               hole    x0 != 2       step    x0 % 3 != 1       corner    x0 < 2 or x1 >= 1
//! ```
//!
//! A restriction is drawn as numbers, which fit any map: axes are counted modulo the rank, bounds modulo the extent.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

/// A predicate on the index of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restriction {
    /// The form of the predicate.
    pub form: Form,
    /// The axis that it is about.
    pub axis: usize,
    /// Another axis, for the forms that have two.
    pub other: usize,
    /// The number that it compares with.
    pub number: u8,
}

/// The form of a predicate. `x` is the index of the first axis, `y` that of the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `x < number`.
    Below,
    /// `x >= number`.
    From,
    /// `x != number`.
    Hole,
    /// `x % 3 != number`.
    Step,
    /// `x * extent of y + y < number`, counted from the end of the box.
    Split,
    /// `x < number or y >= 1`.
    Corner,
    /// `9 // (2 * x - 3) < 9`: false for x == 2 alone. The divisor is never 0, which fast evaluation does not know.
    Quotient,
}

const FORMS: [Form; 7] = [Form::Below, Form::From, Form::Hole, Form::Step, Form::Split, Form::Corner, Form::Quotient];

/// The extent that stands for a symbolic one where a number is drawn: it is small, so that few shapes lie below it.
const SYMBOLIC: i128 = 4;

impl Restriction {
    /// Draws a restriction in a quarter of the cases.
    pub fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<Self>> {
        if u.int_in_range(0..=3)? != 3 {
            return Ok(None);
        }
        let form = *u.choose(&FORMS)?;
        let (axis, other) = (u.int_in_range(0..=5)?, u.int_in_range(0..=5)?);
        Ok(Some(Self { form, axis, other, number: u.arbitrary()? }))
    }

    /// Simpler restrictions of the same map: of one axis, with a smaller number.
    pub fn simpler(self) -> Vec<Self> {
        let mut found = Vec::new();
        if matches!(self.form, Form::Step | Form::Split | Form::Corner | Form::Quotient) {
            found.push(Self { form: Form::Below, ..self });
        }
        if self.number > 0 {
            found.push(Self { number: self.number / 2, ..self });
        }
        found
    }

    /// The predicate, in the parameters of the map; `None` if the map has no index.
    pub fn predicate(self, map: &IndexMap) -> Option<Expr> {
        let rank = map.vars().len();
        let at = |axis: usize| axis.checked_rem(rank);
        let (x, y) = (at(self.axis)?, at(self.other)?);
        let number = self.bounded(map, x);
        let value = |axis: usize| Expr::from(&map.vars()[axis]);
        let constant = |number: i128| Expr::int_of(number, map.vars()[x].dtype().scalar);
        Some(match self.form {
            Form::Below => value(x).lt(constant(number + 1)?),
            Form::From => Expr::binary(BinaryOp::Ge, value(x), constant(number)?),
            Form::Hole => Expr::binary(BinaryOp::Ne, value(x), constant(number)?),
            Form::Step => {
                let rest = value(x).floor_mod(constant(3)?);
                Expr::binary(BinaryOp::Ne, rest, constant(i128::from(self.number % 3))?)
            }
            Form::Split => {
                let inner = map.domain()[y].clone();
                let all = map.domain()[x].clone() * inner.clone();
                (value(x) * inner + value(y)).lt(all - constant(i128::from(self.number % 5))?)
            }
            Form::Corner => {
                let (low, high) = (value(x).lt(constant(number)?), Expr::binary(BinaryOp::Ge, value(y), constant(1)?));
                Expr::binary(BinaryOp::Or, low, high)
            }
            Form::Quotient => {
                let divisor = value(x) * constant(2)? - constant(3)?;
                constant(9)?.floor_div(divisor).lt(constant(9)?)
            }
        })
    }

    /// The number, made an index of an axis.
    fn bounded(self, map: &IndexMap, axis: usize) -> i128 {
        let extent = map.domain()[axis].as_const_int().unwrap_or(SYMBOLIC);
        i128::from(self.number).rem_euclid(extent.max(1))
    }
}

/// The inverse of a map on its box as one of the restricted map: a physical index whose logical index does not satisfy the
/// predicate is padding.
pub fn excluded(vars: &[Var], outputs: &[Expr], predicate: &Expr) -> Expr {
    let back = tilewright_ir::visit::Substitution::new(vars, outputs.iter().cloned()).apply(predicate);
    tilewright_algebra::negate(&back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapCase;

    fn text(form: Form, number: u8) -> String {
        let (text, shape, physical) = ("lambda i, j: [i * 4 + j]".into(), "5,4".into(), "20".into());
        let map = MapCase::Lambda { text, shape, physical }.build().unwrap().map;
        Restriction { form, axis: 2, other: 1, number }.predicate(&map).unwrap().to_string()
    }

    #[test]
    fn numbers_fit_the_map() {
        assert_eq!(text(Form::Below, 7), "i < 3");
        assert_eq!(text(Form::From, 7), "i >= 2");
        assert_eq!(text(Form::Hole, 5), "i != 0");
        assert_eq!(text(Form::Step, 7), "i % 3 != 1");
        assert_eq!(text(Form::Split, 3), "i * 4 + j < 5 * 4 - 3");
        assert_eq!(text(Form::Corner, 2), "i < 2 or j >= 1");
        assert_eq!(text(Form::Quotient, 2), "9 // (i * 2 - 3) < 9");
    }

    #[test]
    fn reduction_ends() {
        let mut restriction = Restriction { form: Form::Corner, axis: 0, other: 1, number: u8::MAX };
        for _ in 0..20 {
            match restriction.simpler().pop() {
                Some(simpler) => restriction = simpler,
                None => return,
            }
        }
        panic!("{restriction:?}");
    }
}
