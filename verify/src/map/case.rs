//! The decision of one obligation of a map claim by a sequence of tiers.
//!
//! ```text
//! certified    the certificate of a symbolic claim; of any claim, if the judge is for many
//! small        2^8 points: enumeration answers in microseconds
//! digits       the certificate of a constant claim, of any size
//! bits         maps that move and mix bits, of any size
//! medium       2^17 points: some tens of milliseconds
//! brief        Z3 with a budget of some tens of milliseconds
//! wide         2^22 points: less than a second
//! sampled      some points of larger shapes, which can only refute
//! large        2^24 points: some seconds, as long as Z3 may take with its whole budget, but with a certain answer
//! z3           symbolic shapes and those with too many points
//! ```
//!
//! Enumeration looks for a counterexample fast, at up to 2^24 points (`fast`), before a plain loop looks at the points once more to
//! prove the obligation.
//!
//! The order affects time only: any tier that decides is right by itself. If a certificate is recorded, later tiers are
//! asked as well, until one of them records a proof. A tier that refutes what another one proved is an internal error.

use std::cell::OnceCell;

use tilewright_ir::{Bindings, Expr, Var};

use super::MapClaim;
use super::fast::Seen;
use super::instance::{Answer, Instance, too_many};
use super::{memory, restriction, shrink};
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

/// The ways to look at all points of a constant shape, at no more than the given number for each part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    /// Finds counterexamples fast. That it finds none proves nothing.
    pub(super) fast: fn(&Instance<'_>, u64) -> Seen,
    /// Decides the obligation by the language's own evaluation.
    pub(super) plain: fn(&Instance<'_>, u64) -> Answer,
}

/// Number of points that are enumerated before any other tier: it takes tens of microseconds.
const SMALL: Limits = Limits { fast: 1 << 12, plain: 1 << 8 };
/// Number of points that are enumerated before Z3 is asked: it takes some tens of milliseconds at most.
const MEDIUM: Limits = Limits { fast: 1 << 20, plain: 1 << 17 };
/// Number of points that are enumerated instead of a search in several parts that may take hundreds of milliseconds.
const EASY: Limits = Limits { fast: 1 << 22, plain: 1 << 20 };
/// Number of points that are enumerated before some points of a larger shape are tried.
const WIDE: Limits = Limits { fast: 1 << 24, plain: 1 << 22 };
/// Number of points that are enumerated before Z3 gets its whole budget: it takes some seconds.
const LARGE: Limits = Limits { fast: MAX_POINTS, plain: MAX_POINTS };
/// Z3's resource count for a first try: some tens of milliseconds.
const BRIEF: u32 = 30_000;
/// Number of points, of all small shapes together, on which a symbolic claim is tried.
const TRIED: u64 = 1 << 17;
/// Number of points at which a symbolic claim is tried where its map cannot be evaluated fast.
const SLOW: u64 = 1 << 15;

/// Greatest numbers of points of a part.
#[derive(Clone, Copy)]
struct Limits {
    /// For fast evaluation.
    fast: u64,
    /// For the plain loop, which takes about ten times as long.
    plain: u64,
}

/// The shapes on which the obligations of one claim are enumerated, each compiled once.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    symbols: Vec<Var>,
    constant: OnceCell<Option<Instance<'a>>>,
    digits: OnceCell<Option<Accepted>>,
    small: OnceCell<Vec<Instance<'a>>>,
    /// The decision if the predicate of the claim holds nowhere, or may lack a value.
    restriction: OnceCell<Option<Decision>>,
    text: OnceCell<String>,
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
            text: OnceCell::new(),
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
    pub(super) loops: Loops,
    pub(super) shared: &'a Shared<'a>,
}

impl<'a> Case<'a> {
    /// The symbolic extents.
    pub(super) fn symbols(&self) -> &'a [Var] {
        &self.shared.symbols
    }

    /// The text by which the claim is remembered.
    pub(super) fn text(&self) -> &'a str {
        self.shared.text.get_or_init(|| memory::text(&self.claim, self.symbols()))
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

    /// What fast evaluation finds; where the map cannot be evaluated fast, what the plain loop finds at a few points.
    pub(super) fn seen(&self, instance: &Instance<'_>, limit: u64) -> Seen {
        match (self.loops.fast)(instance, limit) {
            Seen::Unfit => match (self.loops.plain)(instance, limit.min(SLOW)) {
                Answer::Fails(found) => Seen::Fails(found),
                Answer::Holds(_) | Answer::Open(_) => Seen::Unfit,
            },
            seen => seen,
        }
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
        Some(instance) => settled(case, instance, SMALL),
        None => on_small_shapes(case),
    }
}

/// The digit certificate of a symbolic claim, before any shape is tried; of a constant claim, if there are many claims.
pub(super) fn certified(case: &Case<'_>) -> Option<Decision> {
    let waits = case.symbols().is_empty() && !case.judge.certificates_first;
    if waits { None } else { by_digits(case) }
}

/// The digit certificate of a constant claim, if small shapes are tried first.
pub(super) fn digits(case: &Case<'_>) -> Option<Decision> {
    let waits = case.symbols().is_empty() && !case.judge.certificates_first;
    if waits { by_digits(case) } else { None }
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
    settled(case, case.constant()?, MEDIUM)
}

/// All points of a constant shape, if that takes less than a tenth of a second.
pub(super) fn easy(case: &Case<'_>) -> Option<Decision> {
    settled(case, case.constant()?, EASY)
}

/// All points of a constant shape, if that takes less than a second.
pub(super) fn wide(case: &Case<'_>) -> Option<Decision> {
    settled(case, case.constant()?, WIDE)
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
    let Case { claim, obligation, loops, .. } = *case;
    tier(&Case { judge: &judge, claim, obligation, loops, shared: &shared })
}

/// All points of a constant shape, up to the limit of the judge.
pub(super) fn large(case: &Case<'_>) -> Option<Decision> {
    let limit = LARGE.plain.min(case.judge.most_points);
    settled(case, case.constant()?, LARGE).or_else(|| match too_many(limit) {
        Answer::Open(reason) => Some((Verdict::Unknown(reason), Method::Enumeration(Points::All))),
        Answer::Holds(_) | Answer::Fails(_) => None,
    })
}

/// Enumerates an instance with at most so many points for each part; `None` if that does not decide it. What is not found by fast
/// evaluation is looked for by the plain loop, which alone proves.
fn settled(case: &Case<'_>, instance: &Instance<'_>, limits: Limits) -> Option<Decision> {
    let [fast, plain] = [limits.fast, limits.plain].map(|limit| limit.min(case.judge.most_points));
    // If some parts were too large, they may fail at a smaller index, so the counterexample need not be the first one.
    let all = instance.points().is_some_and(|points| points <= fast);
    let points = if all { Points::All } else { Points::SomeParts };
    let is_unfit = match (case.loops.fast)(instance, fast) {
        Seen::Fails(found) => return Some((Verdict::Refuted(found), Method::Enumeration(points))),
        Seen::Internal(reason) => return Some((Verdict::Unknown(reason), Method::Enumeration(Points::All))),
        Seen::TooMany => return None,
        Seen::Nothing => false,
        Seen::Unfit => true,
    };
    match (case.loops.plain)(instance, plain) {
        Answer::Holds(count) => Some((everywhere(count), Method::Enumeration(Points::Count(count)))),
        Answer::Fails(found) if is_unfit => Some((Verdict::Refuted(found), Method::Enumeration(points))),
        Answer::Fails(found) => {
            let reason = Reason::internal(format_args!("fast evaluation does not find that {found}"));
            Some((Verdict::Unknown(reason), Method::Enumeration(Points::All)))
        }
        Answer::Open(reason) if reason.is_internal() => {
            Some((Verdict::Unknown(reason), Method::Enumeration(Points::All)))
        }
        // Too many points: a later tier may decide it.
        Answer::Open(_) => None,
    }
}

/// Tries to refute a symbolic claim on small shapes, unless they refuted nothing of the same claim before.
fn on_small_shapes(case: &Case<'_>) -> Option<Decision> {
    let memory = &case.judge.memory;
    if memory.is_unrefuted(case.text(), case.obligation) {
        return None;
    }
    let mut left = TRIED;
    for instance in case.small() {
        let Some(points) = instance.points().filter(|points| *points <= left) else { continue };
        left -= points;
        match case.seen(instance, 4 * SMALL.fast) {
            Seen::Fails(found) => {
                return Some((Verdict::Refuted(found), Method::Enumeration(Points::SmallShapes)));
            }
            Seen::Internal(reason) => {
                return Some((Verdict::Unknown(reason), Method::Enumeration(Points::All)));
            }
            Seen::Nothing | Seen::TooMany | Seen::Unfit => {}
        }
    }
    memory.remember_unrefuted(case.text(), case.obligation);
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
    fn decide(judge: &Judge, room: i64, loops: Loops, tiers: &[Tier]) -> Verdict {
        let i = Var::index("i");
        let map = IndexMap::new(vec![i.clone()], vec![Expr::int(17)], vec![Expr::from(&i)], vec![]).unwrap();
        let shape = [Expr::int(room)];
        let claim = MapClaim::new(&map, &shape);
        let shared = Shared::new(claim);
        Case { judge, claim, obligation: Obligation::Bounds, loops, shared: &shared }.decide(tiers).0
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
