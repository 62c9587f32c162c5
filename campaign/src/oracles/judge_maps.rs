//! Compares the judge's verdicts on index maps with evaluation at every point. Soundness: a proved
//! obligation holds, and a refuted one does not. Completeness, which is only counted: an obligation that
//! holds is proved, and one that does not is refuted.
//!
//! Some claims are about the indices for which a predicate holds: then it is evaluated at those points alone.
//!
//! A map with symbolic extents is evaluated on several small shapes: an obligation that is proved
//! has to hold on all of them, one that is refuted has to fail on the shape of its counterexample.

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{BinaryOp, Bindings, Expr, InverseClaim};
use tilewright_verify::{Config as Budget, Counterexample, Judge, MapClaim, Obligation, Report, Verdict};

use crate::case::Case;
use crate::config::Config;
use crate::map::restriction::excluded;
use crate::map::truth::{Truth, numbers};
use crate::map::{Generated, MapCase, MapRecipe, Op, Restriction};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use tilewright_algebra as algebra;

/// A case: a map, and what the judge has to decide about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The map.
    pub map: MapCase,
    /// Whether the judge may enumerate all points; otherwise its other tiers have to decide.
    pub points: bool,
    /// The claimed inverse.
    pub inverse: Inverse,
    /// The indices that the claim is about; all if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restriction: Option<Restriction>,
}

/// The inverse and the padding predicate of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inverse {
    /// None.
    None,
    /// Those that the algebra finds.
    Found,
    /// Those with one output larger by one.
    OneMore(usize),
    /// Those with one output equal to 0.
    Zero(usize),
    /// Those with a padding predicate that is never true.
    NoPadding,
    /// Those with a negated padding predicate.
    Negated,
}

impl Case for Question {
    /// Draws a map with the probabilities of [`MapRanges`](crate::config::MapRanges). One case in
    /// sixteen is a map of bits, of which one in three loses a bit. An inverse is claimed in half
    /// of the cases, a wrong one in a quarter. One case in four is restricted by a predicate.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let mut map = MapCase::draw(u, config)?;
        let mut points = u.int_in_range(0..=999)? >= config.maps.pointless_permille;
        if !points && u.arbitrary()? {
            map = MapCase::Recipe(MapRecipe::draw_bits(u)?);
        } else if u.ratio(1, 16)? {
            // The judge's linear algebra over bits decides these quickly, even without enumeration.
            let mut bits = MapRecipe::draw_bits(u)?;
            if u.ratio(1, 3)? {
                let at = u.int_in_range(0..=bits.ops.len())?;
                bits.ops.insert(at, Op::LoseBit(u.int_in_range(0..=7)?, u.int_in_range(0..=15)?));
            }
            (map, points) = (MapCase::Recipe(bits), false);
        }
        let inverse = match u.int_in_range(0..=15)? {
            0..=7 => Inverse::None,
            8..=11 => Inverse::Found,
            12 => Inverse::OneMore(u.int_in_range(0..=5)?),
            13 => Inverse::Zero(u.int_in_range(0..=5)?),
            14 => Inverse::NoPadding,
            _ => Inverse::Negated,
        };
        Ok(Self { map, points, inverse, restriction: Restriction::draw(u)? })
    }

    /// Simplifies the claim first, then the map.
    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.inverse != Inverse::None {
            found.push(Self { inverse: Inverse::None, ..self.clone() });
        }
        if !self.points {
            found.push(Self { points: true, ..self.clone() });
        }
        if let Some(restriction) = self.restriction {
            found.push(Self { restriction: None, ..self.clone() });
            let simpler = restriction.simpler().into_iter();
            found.extend(simpler.map(|simpler| Self { restriction: Some(simpler), ..self.clone() }));
        }
        found.extend(self.map.simpler().into_iter().map(|map| Self { map, ..self.clone() }));
        found
    }

    fn features(&self) -> Vec<String> {
        let mut found = self.map.features();
        if self.inverse != Inverse::None {
            let twin = !matches!(self.inverse, Inverse::None | Inverse::Found);
            found.push(if twin { "inverse:twin" } else { "inverse:found" }.to_owned());
        }
        if !self.points {
            found.push("judge:without points".to_owned());
        }
        if let Some(restriction) = self.restriction {
            found.push(format!("restriction:{:?}", restriction.form).to_lowercase());
        }
        found
    }

    fn text(&self) -> String {
        let predicate = self.map.build().ok().and_then(|built| self.predicate(&built));
        let predicate = predicate.map_or_else(String::new, |predicate| format!(" where {predicate}"));
        let points = if self.points { "" } else { ", without points" };
        format!("{}{predicate} ({:?}{points})", self.map.text(), self.inverse)
    }
}

impl Question {
    /// The predicate that restricts the map, if the case has one.
    pub(super) fn predicate(&self, built: &Generated) -> Option<Expr> {
        self.restriction?.predicate(&built.map)
    }

    /// The inverse that the case claims. `None` if it claims none, or if the algebra finds none.
    pub(super) fn claimed_inverse(&self, built: &Generated) -> Option<InverseClaim> {
        claimed_inverse(built, self.inverse, self.predicate(built).as_ref())
    }
}

/// The oracle `judge_maps`; see the module.
#[derive(Debug)]
pub struct JudgeMaps {
    judge: Judge,
    without_points: Judge,
}

/// Z3's budget per question. Questions beyond it count as not decided, which keeps cases cheap.
const RLIMIT: u32 = 20_000;

impl JudgeMaps {
    /// Creates the oracle with judges of its own on one thread: one that may enumerate points and
    /// one that may not.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        // Without a time limit the verdict does not depend on the machine, and questions are
        // faster, because Z3 starts a thread for each question with a limit. A hanging worker is
        // detected by the campaign.
        let budget = Budget { threads: 1, rlimit: RLIMIT, timeout: Duration::MAX, ..Budget::default() };
        let judge = |budget| Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string());
        Ok(Self { judge: judge(budget)?, without_points: judge(Budget { most_points: 0, ..budget })? })
    }
}

/// The values of the symbols for which a claim is evaluated: nine for one symbol, eighteen
/// combinations for several.
fn bindings(built: &Generated) -> Vec<Bindings> {
    const VALUES: [i128; 9] = [1, 2, 3, 4, 5, 7, 8, 12, 17];
    if built.symbols.is_empty() {
        return vec![Bindings::new()];
    }
    let bind = |turn: usize| {
        let value = |axis: usize| VALUES[(turn + axis * (turn / VALUES.len())) % VALUES.len()];
        built.symbols.iter().enumerate().map(|(axis, symbol)| (symbol.clone(), value(axis))).collect()
    };
    (0..if built.symbols.len() == 1 { 9 } else { 18 }).map(bind).collect()
}

/// The inverse of a map, changed in this way. `None` if none is asked for, or if the algebra finds none.
fn claimed_inverse(built: &Generated, inverse: Inverse, predicate: Option<&Expr>) -> Option<InverseClaim> {
    if inverse == Inverse::None {
        return None;
    }
    let mut claim = algebra::inverse(&built.map, &built.shape, &[]).ok()?;
    if let Some(predicate) = predicate {
        let excluded = excluded(built.map.vars(), &claim.outputs, predicate);
        claim.padding = Expr::binary(BinaryOp::Or, claim.padding, excluded);
    }
    let n_outputs = claim.outputs.len().max(1);
    match inverse {
        Inverse::None | Inverse::Found => {}
        Inverse::OneMore(at) => {
            let output = claim.outputs.get_mut(at % n_outputs)?;
            *output = output.clone() + Expr::int(1);
        }
        Inverse::Zero(at) => *claim.outputs.get_mut(at % n_outputs)? = Expr::int(0),
        Inverse::NoPadding => claim.padding = Expr::bool(false),
        Inverse::Negated => claim.padding = algebra::negate(&claim.padding),
    }
    Some(claim)
}

/// Which obligations hold on one shape, by evaluation.
struct Facts {
    truth: Truth,
    inverse: Option<[bool; 2]>,
}

impl Facts {
    /// Evaluates a claim on one shape; `None` if there are too many points, or none that the claim is about.
    fn of(
        built: &Generated,
        predicate: Option<&Expr>,
        claim: Option<&InverseClaim>,
        symbols: &Bindings,
    ) -> Option<Self> {
        let truth = Truth::restricted(&built.map, &built.shape, symbols, predicate)?;
        let inverse = claim.and_then(|claim| truth.of_inverse(&built.map, claim));
        Some(Self { truth, inverse })
    }

    /// Whether an obligation holds; `None` if it was not evaluated.
    fn holds(&self, obligation: Obligation) -> Option<bool> {
        match obligation {
            Obligation::Bounds => Some(self.truth.bounds),
            Obligation::Injective => Some(self.truth.injective),
            Obligation::Tight => Some(self.truth.tight),
            Obligation::Overflow => Some(self.truth.fits),
            Obligation::Inverse => self.inverse.map(|[there, _]| there),
            Obligation::Padding => self.inverse.map(|[_, exact]| exact),
            Obligation::Iteration
            | Obligation::Order
            | Obligation::Alive
            | Obligation::Simulation
            | Obligation::Flatten
            | Obligation::Tiling
            | Obligation::Texture
            | Obligation::Lanes
            | Obligation::Race
            | Obligation::Barrier
            | Obligation::Defined
            | Obligation::Specification
            | Obligation::Bitcast
            | Obligation::Dividend
            | Obligation::PlanDisjoint
            | Obligation::PlanFits
            | Obligation::PlanType
            | Obligation::PlanAccess
            | Obligation::PlanInPlace
            | Obligation::Region => None,
        }
    }
}

/// Whether a counterexample of the obligations about indices is genuine, by evaluation; `None` for
/// other obligations.
fn shows(
    built: &Generated,
    predicate: Option<&Expr>,
    obligation: Obligation,
    symbols: &Bindings,
    found: &Counterexample,
) -> Option<bool> {
    let admits = |index: &[i128]| {
        let bind = || symbols.clone().into_iter().chain(built.map.vars().iter().cloned().zip(index.iter().copied()));
        predicate.is_none_or(|predicate| predicate.eval_index(&bind().collect()).is_ok_and(|value| value != 0))
    };
    let domain = numbers(built.map.domain(), symbols)?;
    let shape = numbers(&built.shape, symbols)?;
    let inside = |index: &[i128], extents: &[i64]| {
        index.len() == extents.len()
            && index.iter().zip(extents).all(|(at, extent)| (0..i128::from(*extent)).contains(at))
    };
    let image = |index: &[i128]| built.map.eval(index, symbols).ok();
    match (obligation, found.indices.as_slice()) {
        (Obligation::Bounds, [index]) => {
            Some(admits(index) && inside(index, &domain) && !inside(&image(index)?, &shape))
        }
        (Obligation::Injective, [a, b]) => {
            let both = admits(a) && admits(b) && inside(a, &domain) && inside(b, &domain);
            Some(both && a != b && image(a) == image(b))
        }
        (Obligation::Bounds | Obligation::Injective, _) => Some(false),
        _ => None,
    }
}

/// The values of the symbols in a counterexample; `None` if one is missing.
fn shape_of(built: &Generated, found: &Counterexample) -> Option<Bindings> {
    let value = |name: &str| found.shape.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    built.symbols.iter().map(|symbol| Some((symbol.clone(), value(symbol.name())?))).collect()
}

/// The state while the reports on one map are compared with the truth.
struct Comparison<'a> {
    case: &'a Question,
    built: &'a Generated,
    predicate: Option<&'a Expr>,
    claim: Option<&'a InverseClaim>,
    facts: Vec<Facts>,
    tally: &'a mut Tally,
}

impl Comparison<'_> {
    /// A failure, with the verdict and its method.
    fn failure(&self, what: String, report: &Report) -> Outcome {
        Failure::outcome(what, format!("{}: {} [{}]", self.case.text(), report.verdict, report.method))
    }

    /// Compares a report with the truth; returns a failure, or that the obligation is undecided.
    fn report(&mut self, report: &Report) -> Option<Outcome> {
        let obligation = report.obligation;
        let kind = if self.predicate.is_some() {
            "restricted "
        } else if !self.built.symbols.is_empty() {
            "symbolic "
        } else if !self.case.points {
            "pointless "
        } else {
            ""
        };
        let truths: Option<Vec<bool>> = self.facts.iter().map(|facts| facts.holds(obligation)).collect();
        let Some(truths) = truths.filter(|truths| !truths.is_empty()) else {
            self.tally.count("claims too large to be tried", 1);
            return None;
        };
        // With symbolic extents an obligation has to hold for every shape, so one shape suffices to disprove it.
        let holds = truths.iter().all(|holds| *holds);
        let tier = report.method.tier();
        self.tally.saw(&format!("tier:{tier}"));
        self.tally.count(&format!("completeness: {kind}{obligation} {}", if holds { "holds" } else { "fails" }), 1);
        match &report.verdict {
            Verdict::Proved(_) => {
                self.tally.count("soundness checks", 1);
                if !holds {
                    return Some(self.failure(format!("{obligation} is proved and does not hold"), report));
                }
                self.tally.count(&format!("completeness: {kind}{obligation} proved"), 1);
                None
            }
            Verdict::Refuted(found) => {
                self.tally.count("soundness checks", 1);
                self.tally.count(&format!("completeness: {kind}{obligation} refuted"), 1);
                // The counterexample may have a shape that is not among those evaluated.
                self.refuted(report, found, holds)
            }
            Verdict::Unknown(reason) if reason.is_internal() => {
                Some(self.failure(format!("{obligation} is an internal error"), report))
            }
            Verdict::Unknown(_) => Some(Outcome::Undecided(format!("{kind}{obligation} unknown [{tier}]"))),
            Verdict::Vacuous(_) | Verdict::Skipped(_) => {
                Some(self.failure(format!("{obligation} of a map with indices is vacuous or skipped"), report))
            }
        }
    }

    /// Checks a refutation: its counterexample is genuine, and the obligation fails on the
    /// counterexample's shape.
    fn refuted(&mut self, report: &Report, found: &Counterexample, holds: bool) -> Option<Outcome> {
        let obligation = report.obligation;
        let Some(symbols) = shape_of(self.built, found) else {
            return Some(self.failure(format!("{obligation} is refuted without a shape"), report));
        };
        match shows(self.built, self.predicate, obligation, &symbols, found) {
            Some(false) => return Some(self.failure(format!("the counterexample to {obligation} is none"), report)),
            Some(true) => self.tally.count("counterexamples replayed", 1),
            None => {}
        }
        if self.built.symbols.is_empty() {
            return holds.then(|| self.failure(format!("{obligation} is refuted and holds"), report));
        }
        match Facts::of(self.built, self.predicate, self.claim, &symbols).and_then(|facts| facts.holds(obligation)) {
            Some(true) => Some(self.failure(format!("{obligation} is refuted on a shape where it holds"), report)),
            Some(false) => None,
            None => {
                self.tally.count("counterexamples too large to be tried", 1);
                None
            }
        }
    }
}

impl Oracle for JudgeMaps {
    type Case = Question;

    const NAME: &'static str = "judge_maps";

    fn check(&mut self, case: &Question, tally: &mut Tally) -> Outcome {
        let built = match case.map.build() {
            Ok(built) => built,
            Err(why) => return Outcome::Invalid(why),
        };
        let (predicate, inverse) = (case.predicate(&built), case.claimed_inverse(&built));
        let of = |symbols: &Bindings| Facts::of(&built, predicate.as_ref(), inverse.as_ref(), symbols);
        let facts: Vec<Facts> = bindings(&built).iter().filter_map(of).collect();
        let Some(first) = facts.first() else {
            return Outcome::Undecided("no shape that is small enough, or no value, or no index".to_owned());
        };
        tally.count("points tried", facts.iter().map(|facts| facts.truth.n_points() as u64).sum());
        // Every map that has an inverse should have one that the algebra finds; counted for the
        // coverage report.
        let is_right = built.symbols.is_empty() && first.truth.injective && first.truth.bounds && first.truth.fits;
        if case.inverse == Inverse::Found && is_right {
            tally.count(if inverse.is_some() { "inverses found" } else { "inverses not found" }, 1);
        }
        let digits = (!built.symbols.is_empty() || !case.points || first.truth.n_points() > 1 << 10)
            .then(|| algebra::digit_certificate(&built.map, &built.shape, inverse.as_ref(), None, &[]))
            .flatten();
        let claim = MapClaim {
            inverse: inverse.as_ref(),
            digits: digits.as_ref(),
            predicate: predicate.as_ref(),
            ..MapClaim::new(&built.map, &built.shape)
        };
        let judge = if case.points { &self.judge } else { &self.without_points };
        let reports = judge.check_map(claim);
        let expected = if inverse.is_some() { 6 } else { 4 };
        if reports.len() != expected {
            return Failure::outcome("obligations are not reported", format!("{}: {}", case.text(), reports.len()));
        }
        let (predicate, claim) = (predicate.as_ref(), inverse.as_ref());
        let mut comparison = Comparison { case, built: &built, predicate, claim, facts, tally };
        let found: Vec<Outcome> = reports.iter().filter_map(|report| comparison.report(report)).collect();
        let failed = found.iter().position(|outcome| matches!(outcome, Outcome::Failed(_)));
        found.into_iter().nth(failed.unwrap_or(0)).unwrap_or(Outcome::Held)
    }
}
