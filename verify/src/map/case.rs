//! The decision of one obligation of a map claim by a sequence of tiers.
//!
//! ```text
//! certified    the certificate of a symbolic claim
//! small        2^12 points: enumeration answers in microseconds
//! digits       the certificate of a constant claim, of any size
//! bits         maps that move and mix bits, of any size
//! medium       2^20 points: some tens of milliseconds
//! brief        Z3 with a budget of some tens of milliseconds
//! wide         2^24 points: less than a second
//! sampled, z3  large and symbolic shapes
//! large        up to the judge's limit of points, if nothing else has decided
//! ```
//!
//! The order affects time only: any tier that decides is right by itself. If a certificate is recorded, later tiers are
//! asked as well, until one of them records a proof. A tier that refutes what another one proved is an internal error.

use std::cell::OnceCell;

use tilewright_ir::{Bindings, Expr, Var};

use super::MapClaim;
use super::instance::{Answer, Instance};
use super::{restriction, shrink};
use crate::digits::Accepted;
use crate::door::everywhere;
use crate::enumerate::{MAX_POINTS, shapes};
use crate::judge::{Decision, Judge, vacuity};
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::reason::{Reason, ReasonKind};
use crate::record;
use crate::translate::Names;
use crate::verdict::Verdict;

/// A decision procedure for an obligation; returns `None` if it does not apply. After a verdict of unknown the next tier
/// is tried.
pub(super) type Tier = fn(&Case<'_>) -> Option<Decision>;

/// Decides an obligation for one constant shape, looking at no more than the given number of points for each part.
pub(super) type Exhaustive = fn(&Instance<'_>, u64) -> Answer;

/// Number of points that are enumerated before any other tier: it takes microseconds.
const SMALL: u64 = 1 << 12;
/// Number of points that are enumerated before Z3 is asked: it takes some tens of milliseconds at most.
const MEDIUM: u64 = 1 << 20;
/// Number of points that are enumerated instead of a search in several parts that may take hundreds of milliseconds.
const EASY: u64 = 1 << 22;
/// Number of points that are enumerated before Z3 gets its whole budget of seconds.
const WIDE: u64 = 1 << 24;
/// Z3's resource count for a first try: some tens of milliseconds.
const BRIEF: u32 = 30_000;
/// Number of points, of all small shapes together, on which a symbolic claim is tried.
const TRIED: u64 = 1 << 17;

/// The shapes on which the obligations of one claim are enumerated, each compiled once.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    symbols: Vec<Var>,
    constant: OnceCell<Option<Instance<'a>>>,
    digits: OnceCell<Option<Accepted>>,
    small: OnceCell<Vec<Instance<'a>>>,
    /// The decision if the predicate of the claim holds nowhere, or may lack a value.
    restriction: OnceCell<Option<Decision>>,
}

impl Shared<'_> {
    /// Nothing is compiled yet.
    pub(super) fn new(claim: MapClaim<'_>) -> Self {
        Self {
            symbols: claim.symbols(),
            constant: OnceCell::new(),
            digits: OnceCell::new(),
            small: OnceCell::new(),
            restriction: OnceCell::new(),
        }
    }
}

/// An obligation being decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) judge: &'a Judge,
    pub(super) claim: MapClaim<'a>,
    /// The id of the obligation.
    pub(super) obligation: Obligation,
    pub(super) exhaustive: Exhaustive,
    pub(super) shared: &'a Shared<'a>,
}

impl<'a> Case<'a> {
    /// The symbolic extents.
    pub(super) fn symbols(&self) -> &'a [Var] {
        &self.shared.symbols
    }

    /// The instance of a claim without symbols; `None` if there are symbols, an assumption is false or the domain is empty.
    pub(super) fn constant(&self) -> Option<&'a Instance<'a>> {
        let make = || {
            let only = self.symbols().is_empty() && assumed(self.claim.assumptions, &Bindings::new());
            only.then(|| Instance::new(self.judge, self.claim, Bindings::new())).flatten()
        };
        self.shared.constant.get_or_init(make).as_ref()
    }

    /// The instances of a symbolic claim for small shapes whose domain is not empty, smallest first.
    pub(super) fn small(&self) -> &'a [Instance<'a>] {
        let make = || {
            if self.symbols().is_empty() {
                return Vec::new();
            }
            let exprs = self.claim.map.domain().iter().chain(self.claim.map.outputs()).chain(self.claim.shape);
            let exprs = exprs.chain(self.claim.predicate);
            let shapes = shapes(self.symbols(), self.claim.assumptions, exprs).into_iter();
            let instances = shapes.filter_map(|symbols| Instance::new(self.judge, self.claim, symbols));
            instances.filter(|instance| instance.is_inhabited).collect()
        };
        self.shared.small.get_or_init(make)
    }

    /// Number of points that are enumerated before any other tier. None are if a certificate has to be checked anyway: the
    /// padding of a large map takes all points, and a certificate shows all obligations together.
    fn small_limit(&self, instance: &Instance<'_>) -> u64 {
        let has_certificate = self.claim.digits.is_some() && self.claim.inverse.is_some();
        if has_certificate && instance.points().is_none_or(|points| points > SMALL) { 0 } else { SMALL }
    }

    /// The decision of the first tier that proves or refutes the obligation.
    ///
    /// A judge that records a certificate asks the later tiers too, until one with a recorded proof agrees. Two tiers that
    /// contradict each other are an internal error.
    pub(super) fn decide(&self, tiers: &[Tier]) -> Decision {
        let restriction = self.shared.restriction.get_or_init(|| restriction::unusable(self));
        if let Some(decision) = restriction {
            return decision.clone();
        }
        let mut reasons: Vec<Reason> = Vec::new();
        let mut last = Method::Nothing;
        let mut rest = tiers.iter();
        while let Some(tier) = rest.next() {
            match record::attempt(|| tier(self)) {
                None => {}
                Some((Verdict::Unknown(reason), method)) if reason.is_internal() => {
                    return (Verdict::Unknown(reason), method);
                }
                Some((Verdict::Unknown(reason), method)) => {
                    if !reasons.iter().any(|known| known.text() == reason.text()) {
                        reasons.push(reason);
                    }
                    last = method;
                }
                Some((Verdict::Refuted(found), method)) => return shrink::smallest(self, found, method),
                Some((Verdict::Proved(grounds), method)) if self.judge.is_recording() => {
                    return self.second_opinion(rest.as_slice(), (Verdict::Proved(grounds), method));
                }
                Some(decided) => return decided,
            }
        }
        (Verdict::Unknown(joined(&reasons)), last)
    }

    /// Confirms a proof by later tiers, up to the first one that records a proof.
    fn second_opinion(&self, tiers: &[Tier], proved: Decision) -> Decision {
        for tier in tiers {
            match record::attempt(|| tier(self)) {
                Some((Verdict::Refuted(_), other)) => return contradiction(proved.1, other),
                Some((Verdict::Proved(_), _)) if record::has_proof() => break,
                _ => {}
            }
        }
        proved
    }
}

/// All reasons as one, of their kind if they have one kind.
fn joined(reasons: &[Reason]) -> Reason {
    let Some((first, others)) = reasons.split_first() else {
        return Reason::unsupported("no way to decide it applies");
    };
    let same = others.iter().all(|other| other.kind() == first.kind());
    let kind = if same { first.kind() } else { ReasonKind::Undecided };
    Reason::new(kind, reasons.iter().map(Reason::text).collect::<Vec<_>>().join("; "))
}

/// The decision that an answer of enumeration amounts to.
fn decision(answer: Answer, points: Points) -> Decision {
    match answer {
        Answer::Holds(0) => (everywhere(0), Method::Intervals),
        Answer::Holds(count) => (everywhere(count), Method::Enumeration(Points::Count(count))),
        Answer::Fails(found) => (Verdict::Refuted(found), Method::Enumeration(points)),
        Answer::Open(reason) => (Verdict::Unknown(reason), Method::Enumeration(Points::All)),
    }
}

/// The tier for claims whose premises cannot hold: the domain is empty or the assumptions contradict each other. The
/// verdict is vacuous.
pub(super) fn empty(case: &Case<'_>) -> Option<Decision> {
    if case.constant().is_some() || !case.small().is_empty() {
        return None;
    }
    let mut names = Names::default();
    let mut question = case.claim.question(case.judge, &mut names);
    case.claim.assume(&mut question, &mut names, "");
    vacuity(&question)
}

/// All points of a small constant shape; for a symbolic claim the points of small shapes, smallest first, which can only
/// refute.
pub(super) fn small(case: &Case<'_>) -> Option<Decision> {
    match case.constant() {
        Some(instance) => settled(instance, case.exhaustive, case.small_limit(instance).min(case.judge.most_points)),
        None => on_small_shapes(case),
    }
}

/// The digit certificate of a symbolic claim, before any shape is tried.
pub(super) fn certified(case: &Case<'_>) -> Option<Decision> {
    if case.symbols().is_empty() { None } else { by_digits(case) }
}

/// The digit certificate of a constant claim.
pub(super) fn digits(case: &Case<'_>) -> Option<Decision> {
    if case.symbols().is_empty() { by_digits(case) } else { None }
}

/// The digit certificate of the claim.
fn by_digits(case: &Case<'_>) -> Option<Decision> {
    let accepted = case.shared.digits.get_or_init(|| Accepted::of(case.judge, &case.claim));
    let decided = accepted.as_ref()?.decide(case.judge, case.obligation)?;
    // A certificate is about all indices of the box.
    if case.claim.predicate.is_some() { restriction::of_the_box(case.obligation, decided) } else { Some(decided) }
}

/// All points of a constant shape, if that takes some tens of milliseconds.
pub(super) fn medium(case: &Case<'_>) -> Option<Decision> {
    settled(case.constant()?, case.exhaustive, MEDIUM.min(case.judge.most_points))
}

/// All points of a constant shape, if that takes less than a tenth of a second.
pub(super) fn easy(case: &Case<'_>) -> Option<Decision> {
    settled(case.constant()?, case.exhaustive, EASY.min(case.judge.most_points))
}

/// All points of a constant shape, if that takes less than a second.
pub(super) fn wide(case: &Case<'_>) -> Option<Decision> {
    settled(case.constant()?, case.exhaustive, WIDE.min(case.judge.most_points))
}

/// A proof of Z3 with a small budget, for constant shapes that `wide` would enumerate. Refutations are left to enumeration,
/// which finds the first counterexample.
pub(super) fn briefly(case: &Case<'_>, by_z3: Tier) -> Option<Decision> {
    case.constant()?;
    with_budget(case, BRIEF, by_z3).filter(|(verdict, _)| verdict.is_proved())
}

/// The decision of a tier whose questions to Z3 have a smaller budget.
pub(super) fn with_budget(case: &Case<'_>, rlimit: u32, tier: Tier) -> Option<Decision> {
    let judge = case.judge.limited(rlimit);
    let shared = Shared::new(case.claim);
    let Case { claim, obligation, exhaustive, .. } = *case;
    tier(&Case { judge: &judge, claim, obligation, exhaustive, shared: &shared })
}

/// All points of a constant shape, up to the limit of the judge: the last tier.
pub(super) fn large(case: &Case<'_>) -> Option<Decision> {
    Some(decision((case.exhaustive)(case.constant()?, MAX_POINTS.min(case.judge.most_points)), Points::All))
}

/// Enumerates an instance with at most `limit` points for each part; `None` if that does not decide it.
fn settled(instance: &Instance<'_>, exhaustive: Exhaustive, limit: u64) -> Option<Decision> {
    // If some parts were too large, they may fail at a smaller index, so the counterexample need not be the first one.
    let all = instance.points().is_some_and(|points| points <= limit);
    match exhaustive(instance, limit) {
        // Too many points: a later tier may decide it.
        Answer::Open(reason) if !reason.is_internal() => None,
        answer => Some(decision(answer, if all { Points::All } else { Points::SomeParts })),
    }
}

/// Tries to refute a symbolic claim on small shapes.
fn on_small_shapes(case: &Case<'_>) -> Option<Decision> {
    let mut left = TRIED;
    for instance in case.small() {
        let Some(points) = instance.points().filter(|points| *points <= left) else { continue };
        left -= points;
        match (case.exhaustive)(instance, 4 * SMALL) {
            Answer::Fails(found) => {
                return Some((Verdict::Refuted(found), Method::Enumeration(Points::SmallShapes)));
            }
            Answer::Open(reason) if reason.is_internal() => {
                return Some((Verdict::Unknown(reason), Method::Enumeration(Points::All)));
            }
            Answer::Holds(_) | Answer::Open(_) => {}
        }
    }
    None
}

/// The decision if one tier proves what another one refutes: an internal error.
pub(super) fn contradiction(proved_by: Method, refuted_by: Method) -> Decision {
    let reason = Reason::internal(format_args!("{proved_by} proves what {refuted_by} refutes"));
    (Verdict::Unknown(reason), Method::Together(vec![refuted_by, proved_by]))
}

/// Whether the assumptions hold for these values of the symbols.
pub(super) fn assumed(assumptions: &[Expr], symbols: &Bindings) -> bool {
    assumptions.iter().all(|assumption| assumption.eval_index(symbols).is_ok_and(|value| value != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Config;
    use crate::map::{bounds, injective};
    use crate::verdict::Counterexample;
    use tilewright_ir::IndexMap;

    #[expect(clippy::unnecessary_wraps, reason = "a tier may have no answer")]
    fn says_yes(_: &Case<'_>) -> Option<Decision> {
        Some((crate::door::inspected(), Method::Inspection("liar")))
    }

    #[expect(clippy::unnecessary_wraps, reason = "a tier may have no answer")]
    fn says_no(_: &Case<'_>) -> Option<Decision> {
        Some((Verdict::Refuted(Counterexample::default()), Method::Inspection("liar")))
    }

    /// `lambda i: [i]` on 0..17, into `room`.
    fn decide(judge: &Judge, room: i64, exhaustive: Exhaustive, tiers: &[Tier]) -> Verdict {
        let i = Var::index("i");
        let map = IndexMap::new(vec![i.clone()], vec![Expr::int(17)], vec![Expr::from(&i)], vec![]).unwrap();
        let shape = [Expr::int(room)];
        let claim = MapClaim::new(&map, &shape);
        let shared = Shared::new(claim);
        Case { judge, claim, obligation: Obligation::Bounds, exhaustive, shared: &shared }.decide(tiers).0
    }

    fn is_internal(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Unknown(reason) if reason.is_internal())
    }

    #[test]
    fn a_tier_that_refutes_what_enumeration_proves_is_an_internal_error() {
        let judge = || Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        assert!(is_internal(&decide(&judge(), 17, injective::OBLIGATION.1, &[says_no])));
        assert!(is_internal(&decide(&judge(), 17, bounds::OBLIGATION.1, &[says_no, says_yes])));
        // A correct refutation is reported with the counterexample that enumeration finds.
        let right = decide(&judge(), 16, bounds::OBLIGATION.1, &[says_no]);
        assert!(matches!(right, Verdict::Refuted(found) if found.indices == [[16]]));
    }

    #[test]
    fn a_judge_that_records_finds_a_tier_that_proves_what_another_refutes() {
        let judge = || Judge::new(Config::default(), tilewright_search::strategies()).unwrap().recording();
        assert!(is_internal(&decide(&judge(), 16, bounds::OBLIGATION.1, &[says_yes, says_no])));
        assert!(is_internal(&decide(&judge(), 16, bounds::OBLIGATION.1, &[says_yes, small])));
        assert!(decide(&judge(), 17, bounds::OBLIGATION.1, &[says_yes, small]).is_proved());
    }
}
