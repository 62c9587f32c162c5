//! The parts of an index map: which part of which logical index each output is made of.
//!
//! ```text
//! lambda h, c: [c // 4 * 9 + h, c % 4]   over 9, 17
//! output 0:   c // 4 % 5 * 9 + h % 9 * 1        output 1:   c % 4 * 1
//! ```
//!
//! TVM's `detect_iter_map` answers the same question with its `IterSumExpr` and `IterSplitExpr`. The digits that
//! [`digit_certificate`] finds are joined where they lie side by side in one output. Nothing is proved here.

use tilewright_ir::{Diagnostic, DigitSum, DigitView, Expr, IndexMap, ScalarType};

use super::digits::digit_certificate;
use super::physical::{physical_shape_above_zero, ranges_of_map};
use super::ranges::Ranges;
use super::simplify;

/// The part `index // lower_factor % extent * scale` of an output, where `index` is a logical index. With `lower_factor` and
/// `extent` the part takes the digits of the index between two weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The logical index, counted from 0.
    pub axis: usize,
    /// The divisor of the index: the product of the extents of the parts below this one.
    pub lower_factor: Expr,
    /// The number of values of the part.
    pub extent: Expr,
    /// The factor of the part in the sum.
    pub scale: Expr,
}

/// An output as a sum of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSum {
    /// The parts, the one of the greatest scale first if scales can be compared.
    pub parts: Vec<Part>,
    /// The number that is added to them.
    pub base: Expr,
}

impl PartSum {
    /// The sum as an expression in the indices of a map.
    pub fn value(&self, map: &IndexMap) -> Expr {
        let ty = self.base.dtype().scalar;
        let parts = self.parts.iter().map(|part| {
            let index = Expr::from(&map.vars()[part.axis]);
            index.floor_div(part.lower_factor.clone()).floor_mod(part.extent.clone()) * part.scale.clone()
        });
        let sum = parts.reduce(|sum, part| sum + part).unwrap_or(Expr::Int { value: 0, ty });
        sum + self.base.clone()
    }
}

/// Finds the parts of each output of a map.
///
/// # Errors
/// `no-parts`: an output is no sum of parts of indices, or the outputs split an index at places that do not fit together,
/// such as at 4 and at 6. The faults of [`physical_shape`](super::physical_shape).
///
/// ```
/// use tilewright_algebra::parts_of;
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [h, c] = ["h", "c"].map(Var::index);
/// let high = Expr::from(&c).floor_div(Expr::int(4)) * Expr::int(9) + Expr::from(&h);
/// let map = IndexMap::new(vec![h, c], vec![Expr::int(9), Expr::int(17)], vec![high], vec![])?;
/// let parts = parts_of(&map, &[])?;
/// assert_eq!(parts[0].value(&map).to_string(), "c // 4 % 5 * 9 + h // 1 % 9 * 1 + 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parts_of(map: &IndexMap, assumptions: &[Expr]) -> Result<Vec<PartSum>, Diagnostic> {
    let shape = physical_shape_above_zero(map, assumptions)?.extents;
    let found = digit_certificate(map, &shape, None, None, assumptions);
    let ranges = ranges_of_map(map, assumptions);
    let sums = found.and_then(|found| {
        let view = &found.map;
        view.outputs.iter().map(|sum| Joined { map, view, ranges: &ranges }.sum(sum)).collect::<Option<Vec<_>>>()
    });
    sums.ok_or_else(|| {
        let message = format!("the map `{map}` is no sum of parts of its indices");
        let help = "each output is a sum of indices, of their quotients and of their remainders by divisors that divide one \
                    another, times numbers; a sum has parts only where the divisor divides all of its terms but the last ones, as in \
                    `(i * 8 + j) // 4`, and not in `(i * 3 + j) // 2` or `(i + 5) // 16`";
        Diagnostic::error("no-parts", None, message).with_help(help)
    })
}

/// Joins the digits of one sum.
struct Joined<'j> {
    map: &'j IndexMap,
    view: &'j DigitView,
    ranges: &'j Ranges,
}

/// A run of neighbouring digits of one axis in a sum.
struct Run {
    axis: usize,
    first: usize,
    last: usize,
    scale: Expr,
}

impl Joined<'_> {
    /// The sum with its parts; `None` if a number does not fit the type of an index.
    fn sum(&self, sum: &DigitSum) -> Option<PartSum> {
        let mut runs: Vec<Run> = Vec::new();
        for place in &sum.places {
            let below = runs.iter_mut().find(|run| {
                run.axis == place.axis && run.last + 1 == place.digit && self.continues(run, &place.weight)
            });
            match below {
                Some(run) => run.last = place.digit,
                None => runs.push(Run {
                    axis: place.axis,
                    first: place.digit,
                    last: place.digit,
                    scale: place.weight.clone(),
                }),
            }
        }
        let parts = runs.iter().rev().map(|run| self.part(run)).collect::<Option<_>>()?;
        Some(PartSum { parts, base: self.typed(&sum.offset)? })
    }

    /// Whether a digit of this weight continues a run: the weight is the scale times the values of the run.
    fn continues(&self, run: &Run, weight: &Expr) -> bool {
        let values = product(&self.view.radices[run.axis][run.first..=run.last]);
        let expected = values.map_or_else(|| run.scale.clone(), |values| run.scale.clone() * values);
        let difference = simplify(&(expected - weight.clone()), self.ranges);
        difference.as_const_int() == Some(0)
    }

    /// The part that a run of digits is.
    fn part(&self, run: &Run) -> Option<Part> {
        let radices = &self.view.radices[run.axis];
        let one = Expr::Int { value: 1, ty: ScalarType::Int64 };
        let lower = product(&radices[..run.first]).unwrap_or_else(|| one.clone());
        let extent = if let Some(radices) = radices.get(run.first..=run.last) {
            product(radices).unwrap_or(one)
        } else {
            // The last digit is what is left of the index.
            let all = self.map.domain()[run.axis].clone();
            (all + (lower.clone() - one)).floor_div(lower.clone())
        };
        Some(Part {
            axis: run.axis,
            lower_factor: self.typed(&lower)?,
            extent: self.typed(&extent)?,
            scale: self.typed(&run.scale)?,
        })
    }

    /// The expression, simplified and in the type of the indices.
    fn typed(&self, expr: &Expr) -> Option<Expr> {
        let ty = self.map.vars().first().map_or(ScalarType::Int32, |var| var.dtype().scalar);
        let simple = super::rewrite::Simplifier::new(self.ranges);
        simple.emit(&simple.poly(expr)?, ty)
    }
}

/// The product of some factors; `None` if there are none.
fn product(factors: &[Expr]) -> Option<Expr> {
    factors.iter().cloned().reduce(|product, factor| product * factor)
}
