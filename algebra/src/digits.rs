//! Finds digit certificates: mixed radices in which a map is a sum of digits.
//!
//! ```text
//! lambda h, c: [c // 4 * 9 + h, c % 4]   over 9, 17
//! h = h0    c = c0 + 4*c1    outputs: h0 + 9*c1, c0
//! ```
//!
//! The search starts with one digit for each index and evaluates the map symbolically. Where a division cuts through a
//! digit, the digit is split there, and the evaluation starts again. Nothing is proved here: sizes are compared at
//! sample extents only, and the judge checks the certificate with a checker of its own.

mod eval;
mod multiples;
mod sums;

use tilewright_ir::sabotage;
use tilewright_ir::{
    Bindings, DigitCertificate, DigitPlace, DigitSource, DigitSum, DigitView, Expr, IndexMap, InverseClaim, ScalarType,
    Var,
};

use self::eval::{Env, Evaluator, Stop};
use self::multiples::Multiples;
use self::sums::{Digit, Space, Sum};
use super::poly::Poly;
use super::ranges::Ranges;
use super::rewrite::Simplifier;
use super::work;

/// Splits of digits before the search gives up.
const MAX_SPLITS: usize = 64;

/// Finds a digit certificate for a map into the physical shape `shape`. The certificate covers the claimed inverse and
/// the meaning too, if they are sums of digits; otherwise it leaves them out.
///
/// Returns `None` if an output is no sum of digits, or if a digit would have to be split in two incompatible ways, as
/// by 4 and by 6.
pub fn digit_certificate(
    map: &IndexMap,
    shape: &[Expr],
    inverse: Option<&InverseClaim>,
    meaning: Option<&IndexMap>,
    assumptions: &[Expr],
) -> Option<DigitCertificate> {
    let _limit = work::limit(work::MAP);
    let multiples = Multiples::from_assumptions(assumptions);
    if !multiples.is_empty() {
        return multiples.certificate(map, shape, inverse, meaning, assumptions);
    }
    find(map, shape, inverse, meaning, assumptions)
}

/// The search of [`digit_certificate`], without assumptions about divisibility.
fn find(
    map: &IndexMap,
    shape: &[Expr],
    inverse: Option<&InverseClaim>,
    meaning: Option<&IndexMap>,
    assumptions: &[Expr],
) -> Option<DigitCertificate> {
    let exprs = map.domain().iter().chain(shape).chain(map.outputs()).chain(assumptions);
    let mut symbols: Vec<Var> = exprs.flat_map(Expr::vars).filter(|var| !map.vars().contains(var)).collect();
    symbols.sort();
    symbols.dedup();
    let ranges = symbols.iter().fold(Ranges::new(), Ranges::with_symbol);
    let samples = samples(&symbols, assumptions);
    if samples.is_empty() || shape.len() != map.outputs().len() {
        return None;
    }
    let finder = Finder { map, shape, ranges: &ranges, samples: &samples };
    let all = inverse.and_then(|inverse| finder.run(Some(inverse), meaning));
    all.or_else(|| finder.run(None, meaning)).or_else(|| finder.run(None, None))
}

/// Returns values of the symbolic extents to compare at, at most 16: all small, all large, pairwise distinct, and one
/// large among small ones. Only values under which the assumptions hold.
fn samples(symbols: &[Var], assumptions: &[Expr]) -> Vec<Bindings> {
    let patterns: [&dyn Fn(i128) -> i128; 9] = [
        &|_| 1,
        &|_| 2,
        &|_| 3,
        &|position| 5 + 2 * (position % 7),
        &|position| 31 - 4 * (position % 7),
        &|position| 8 << (position % 5),
        &|position| 1 << (10 - position % 5),
        &|_| 1024,
        &|position| 1009 + 24 * position,
    ];
    let bound = |pattern: &&dyn Fn(i128) -> i128| {
        (0..).zip(symbols).map(|(position, symbol)| (symbol.clone(), pattern(position))).collect::<Bindings>()
    };
    let holds = |symbols: &Bindings| {
        assumptions.iter().all(|assumption| assumption.eval_index(symbols).is_ok_and(|value| value != 0))
    };
    let mut samples: Vec<_> = patterns.iter().map(bound).filter(holds).collect();
    // A single large extent tells a weight from a product of small ones.
    for large in 0..symbols.len().min(6) {
        let value = |position: usize| if position == large { 100_800 } else { 4 + 2 * (i128::from(position % 3 == 1)) };
        samples.extend(
            Some(symbols.iter().enumerate().map(|(at, symbol)| (symbol.clone(), value(at))).collect()).filter(holds),
        );
    }
    samples.truncate(if symbols.is_empty() { 1 } else { 16 });
    samples
}

/// Splits digits of a space until `evaluate` stops at none; what it then returns.
fn split<T>(space: &mut Space, evaluate: impl Fn(&Space) -> Result<T, Stop>) -> Option<T> {
    for _ in 0..MAX_SPLITS {
        match evaluate(space) {
            Ok(found) => return Some(found),
            Err(Stop::Split { digit, by }) => space.split(digit, &by)?,
            Err(Stop::Fail) => return None,
        }
    }
    None
}

/// A map, its physical shape, and the samples at which its sums are compared.
struct Finder<'f> {
    map: &'f IndexMap,
    shape: &'f [Expr],
    ranges: &'f Ranges,
    samples: &'f [Bindings],
}

/// The sums that evaluation found once no digit had to be split any more.
struct FoundSums {
    /// The outputs of the map, over the digits of the logical index.
    outputs: Vec<Sum>,
    /// The outputs of the inverse, over the digits of the physical index.
    back: Option<Vec<Sum>>,
}

impl Finder<'_> {
    /// Splits digits until everything evaluates to sums, and returns the certificate. First the logical indices are split, and then
    /// the physical ones: neither depends on the other.
    fn run(&self, inverse: Option<&InverseClaim>, meaning: Option<&IndexMap>) -> Option<DigitCertificate> {
        let evaluator = Evaluator::new(Simplifier::new(self.ranges), self.samples);
        let mut logical = Space::new(evaluator.as_polys(self.map.domain())?);
        let mut physical = Space::new(evaluator.as_polys(self.shape)?);
        let outputs = split(&mut logical, |space| self.outputs(&evaluator, space, inverse, meaning))?;
        let back = match inverse {
            Some(inverse) => Some(split(&mut physical, |space| self.back(&evaluator, space, inverse))?),
            None => None,
        };
        self.certificate(&evaluator, &logical, &physical, &FoundSums { outputs, back })
    }

    /// Evaluates the map over the digits of the logical indices; and its meaning and the inverse of its outputs, because the judge
    /// will do so.
    ///
    /// # Errors
    /// The first digit that has to be split, or a failure.
    fn outputs(
        &self,
        evaluator: &Evaluator<'_>,
        logical: &Space,
        inverse: Option<&InverseClaim>,
        meaning: Option<&IndexMap>,
    ) -> Result<Vec<Sum>, Stop> {
        let outputs = evaluator.eval_all(self.map.outputs(), &Env::indices(self.map.vars(), logical))?;
        if let Some(meaning) = meaning {
            evaluator.eval_all(meaning.outputs(), &Env::indices(meaning.vars(), logical))?;
        }
        if let Some(inverse) = inverse {
            let image = Env::with_values(&inverse.vars, &outputs, logical);
            evaluator.eval_all(&inverse.outputs, &image)?;
            evaluator.check_splits(&inverse.padding, &image)?;
        }
        Ok(outputs)
    }

    /// Evaluates the inverse over the digits of the physical indices, and the map of its outputs.
    ///
    /// # Errors
    /// The first digit that has to be split, or a failure.
    fn back(&self, evaluator: &Evaluator<'_>, physical: &Space, inverse: &InverseClaim) -> Result<Vec<Sum>, Stop> {
        let env = Env::indices(&inverse.vars, physical);
        let back = evaluator.eval_all(&inverse.outputs, &env)?;
        evaluator.check_splits(&inverse.padding, &env)?;
        evaluator.eval_all(self.map.outputs(), &Env::with_values(self.map.vars(), &back, physical))?;
        Ok(back)
    }

    /// Writes the sums that were found as a certificate; `None` if a weight is no expression of the index type.
    fn certificate(
        &self,
        evaluator: &Evaluator<'_>,
        logical: &Space,
        physical: &Space,
        found: &FoundSums,
    ) -> Option<DigitCertificate> {
        let ordered = |space: &Space, sums: &[Sum]| {
            sums.iter().map(|sum| evaluator.ordered(space, sum)).collect::<Option<Vec<_>>>()
        };
        let outputs = ordered(logical, &found.outputs)?;
        let inverse = match &found.back {
            Some(back) => Some(view(evaluator, physical, back, &ordered(physical, back)?)?),
            None => None,
        };
        let orders: Vec<_> = outputs.iter().map(|(order, _)| order.clone()).collect();
        let witnesses = found.outputs.iter().zip(&orders).zip(self.shape);
        Some(DigitCertificate {
            map: view(evaluator, logical, &found.outputs, &outputs)?,
            sources: sources(logical, &outputs).unwrap_or_default(),
            inverse,
            witnesses: witnesses.map(|((sum, order), extent)| evaluator.witness(logical, sum, order, extent)).collect(),
        })
    }
}

/// The digits of a sum in order, and whether their values are determined by the sum: each weight exceeds all smaller
/// digits together.
type Ordered = (Vec<Digit>, bool);

/// Writes a space and its sums with expressions for radices, weights and offsets.
fn view(evaluator: &Evaluator<'_>, space: &Space, sums: &[Sum], orders: &[Ordered]) -> Option<DigitView> {
    let emit = |poly: &Poly| evaluator.emit(poly);
    let radices = space.radices().iter().map(|axis| axis.iter().map(emit).collect()).collect::<Option<_>>()?;
    let place = |sum: &Sum, digit: Digit| {
        Some(DigitPlace { axis: digit.0, digit: digit.1, weight: emit(sum.places.get(&digit)?)? })
    };
    let outputs = sums.iter().zip(orders).map(|(sum, (order, _))| {
        let places = order.iter().map(|digit| place(sum, *digit)).collect::<Option<_>>()?;
        let zero = Expr::Int { value: 0, ty: WIDE };
        let offset = if sabotage::on("certificate-forgets-offset") { zero } else { emit(&sum.offset)? };
        Some(DigitSum { places, offset })
    });
    Some(DigitView { radices, outputs: outputs.collect::<Option<_>>()? })
}

/// Returns for each digit the first place at which an output determines it; `None` if a digit is determined nowhere.
fn sources(space: &Space, outputs: &[Ordered]) -> Option<Vec<DigitSource>> {
    let source = |(axis, digit): Digit| {
        outputs.iter().enumerate().filter(|(_, (_, separated))| *separated).find_map(|(output, (order, _))| {
            let place = order.iter().position(|other| *other == (axis, digit))?;
            Some(DigitSource { axis, digit, output, place })
        })
    };
    space.digits().into_iter().filter(|digit| !space.is_unit(*digit)).map(source).collect()
}

/// The type in which radices and weights are written.
const WIDE: ScalarType = ScalarType::Int64;
