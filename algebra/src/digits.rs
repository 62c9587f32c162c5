//! Finds digit certificates: mixed radices in which a map is a sum of digits.
//!
//! ```text
//! lambda h, c: [c // 4 * 9 + h, c % 4]   over 9, 17
//! h = h0    c = c0 + 4*c1    outputs: h0 + 9*c1, c0
//! ```
//!
//! It starts with whole indices and evaluates. Where a division cuts through a digit, the digit is split there, and
//! everything starts again. Nothing is proved here: what is compared is compared at sample extents, and the judge looks at
//! the result with a checker of its own.

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

/// How often a digit is split at most.
const MAX_SPLITS: usize = 64;

/// A certificate for a map into a physical shape, its claimed inverse and its meaning, as far as they are sums of digits.
///
/// None is found where an output is not, or a digit would have to be split in two ways, as by 4 and by 6.
pub fn digit_certificate(
    map: &IndexMap,
    shape: &[Expr],
    inverse: Option<&InverseClaim>,
    meaning: Option<&IndexMap>,
    assumptions: &[Expr],
) -> Option<DigitCertificate> {
    let _limit = work::limit(work::MAP);
    let multiples = Multiples::of(assumptions);
    if !multiples.is_empty() {
        return multiples.certificate(map, shape, inverse, meaning, assumptions);
    }
    find(map, shape, inverse, meaning, assumptions)
}

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

/// Extents to try: all small, all large, and distinct ones.
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
    // One large among small ones.
    for large in 0..symbols.len().min(6) {
        let value = |position: usize| if position == large { 100_800 } else { 4 + 2 * (i128::from(position % 3 == 1)) };
        samples.extend(
            Some(symbols.iter().enumerate().map(|(at, symbol)| (symbol.clone(), value(at))).collect()).filter(holds),
        );
    }
    samples.truncate(if symbols.is_empty() { 1 } else { 16 });
    samples
}

struct Finder<'f> {
    map: &'f IndexMap,
    shape: &'f [Expr],
    ranges: &'f Ranges,
    samples: &'f [Bindings],
}

/// What was evaluated without a split.
struct Found {
    outputs: Vec<Sum>,
    back: Option<Vec<Sum>>,
}

impl Finder<'_> {
    fn run(&self, inverse: Option<&InverseClaim>, meaning: Option<&IndexMap>) -> Option<DigitCertificate> {
        let evaluator = Evaluator::new(Simplifier::new(self.ranges), self.samples);
        let mut logical = Space::new(evaluator.free_all(self.map.domain())?);
        let mut physical = Space::new(evaluator.free_all(self.shape)?);
        for _ in 0..MAX_SPLITS {
            match self.evaluate(&logical, &physical, inverse, meaning) {
                Ok(found) => return self.certificate(&evaluator, &logical, &physical, &found),
                Err(Stop::Split { physical: false, digit, by }) => logical.split(digit, &by)?,
                Err(Stop::Split { physical: true, digit, by }) => physical.split(digit, &by)?,
                Err(Stop::Fail) => return None,
            }
        }
        None
    }

    fn evaluate(
        &self,
        logical: &Space,
        physical: &Space,
        inverse: Option<&InverseClaim>,
        meaning: Option<&IndexMap>,
    ) -> Result<Found, Stop> {
        let evaluator = Evaluator::new(Simplifier::new(self.ranges), self.samples);
        let env = Env::indices(self.map.vars(), logical, false);
        let outputs = evaluator.all(self.map.outputs(), &env)?;
        if let Some(meaning) = meaning {
            evaluator.all(meaning.outputs(), &Env::indices(meaning.vars(), logical, false))?;
        }
        let Some(inverse) = inverse else { return Ok(Found { outputs, back: None }) };
        let image = Env::of(&inverse.vars, &outputs, logical, false);
        evaluator.all(&inverse.outputs, &image)?;
        evaluator.condition(&inverse.padding, &image)?;
        let env = Env::indices(&inverse.vars, physical, true);
        let back = evaluator.all(&inverse.outputs, &env)?;
        evaluator.condition(&inverse.padding, &env)?;
        evaluator.all(self.map.outputs(), &Env::of(self.map.vars(), &back, physical, true))?;
        Ok(Found { outputs, back: Some(back) })
    }

    fn certificate(
        &self,
        evaluator: &Evaluator<'_>,
        logical: &Space,
        physical: &Space,
        found: &Found,
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

/// The digits of a sum in order, and whether they are determined by it.
type Ordered = (Vec<Digit>, bool);

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

/// Where each digit is determined first; none if one is not.
fn sources(space: &Space, outputs: &[Ordered]) -> Option<Vec<DigitSource>> {
    let source = |(axis, digit): Digit| {
        outputs.iter().enumerate().filter(|(_, (_, separated))| *separated).find_map(|(output, (order, _))| {
            let place = order.iter().position(|other| *other == (axis, digit))?;
            Some(DigitSource { axis, digit, output, place })
        })
    };
    space.digits().into_iter().filter(|digit| !space.is_unit(*digit)).map(source).collect()
}

/// The type that weights are written in.
const WIDE: ScalarType = ScalarType::Int64;
