//! Claims about the indices for which a predicate holds.
//!
//! ```text
//! lambda i, j: [i * 4 + j]    on (5, 4), where i * 4 + j < 17    into (17)
//! ```
//!
//! The predicate is a premise of every obligation: of *bounds*, *overflow* and *specification* for the index, of *injective* for
//! both indices. The left inverse is stated for these indices, and the right inverse has to lead to one of them. An index for
//! which the predicate does not hold reaches nothing, so the physical index that it would have is padding.
//!
//! The predicate has to have a value at every index of the box, and to hold at one of them: otherwise every claim is *unknown*
//! or *vacuous*.

use tilewright_ir::{Bindings, sabotage};

use super::case::Case;
use super::instance::{Instance, count, first_point, mentioned, narrowed};
use super::{MapClaim, value};
use crate::door;
use crate::judge::{Decision, vacuity};
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::reason::{Reason, ReasonKind};
use crate::translate::Names;
use crate::verdict::Verdict;

/// Number of points at which the predicate is evaluated to find one where it holds.
const TRIED: u64 = 1 << 22;
/// Number of points at which it is evaluated by the plain loop.
const SLOW: u64 = 1 << 18;

impl MapClaim<'_> {
    /// Whether the claim is about this index of the domain: there is no predicate, or it has a value there and holds.
    pub(super) fn admits(&self, point: &[i128], symbols: &Bindings) -> bool {
        self.predicate.is_none() || self.predicate_at(point, symbols).is_some_and(|value| value != 0)
    }

    /// The value of the predicate at an index; `None` if it has none.
    fn predicate_at(&self, point: &[i128], symbols: &Bindings) -> Option<i128> {
        self.predicate?.eval_index_at(self.map.vars(), point, symbols).ok()
    }
}

/// Whether the predicate of a claim holds at some index of the box, which was evaluated; `None` if there are too many points to
/// tell.
pub(super) fn is_inhabited(instance: &Instance<'_>) -> Option<bool> {
    let (claim, symbols) = (instance.claim, &instance.symbols);
    let Some(predicate) = claim.predicate else { return Some(true) };
    let found = instance.graph().and_then(|graph| graph.admitted(instance, TRIED));
    if found.is_some_and(|index| claim.admits(&index, symbols)) {
        return Some(true);
    }
    let extents = narrowed(&instance.domain, &mentioned(predicate, claim.map.vars()));
    count(&extents).filter(|points| *points <= SLOW)?;
    Some(first_point(instance.judge, &extents, |index| claim.admits(index, symbols).then_some(())).is_some())
}

/// The decision about every obligation of a restricted claim whose predicate may lack a value, or holds nowhere. `None` if the
/// predicate has a value everywhere and holds somewhere, or if there is none.
pub(super) fn unusable(case: &Case<'_>) -> Option<Decision> {
    case.claim.predicate?;
    if let Err(reason) = has_value(case) {
        return Some((Verdict::Unknown(reason.after("the predicate that restricts the domain: ")), Method::Nothing));
    }
    let is_inhabited = case.constant().map_or(!case.small().is_empty(), |instance| instance.is_inhabited);
    if is_inhabited {
        return None;
    }
    if case.symbols().is_empty() && case.constant().is_none() {
        let reason = Reason::new(ReasonKind::Empty, door::CONTRADICTION);
        return Some((Verdict::Vacuous(reason), Method::Enumeration(Points::All)));
    }
    let mut names = Names::default();
    let mut question = case.claim.question(case.judge, &mut names);
    case.claim.assume(&mut question, &mut names, "");
    vacuity(&question)
}

/// Shows that the predicate has a value at every index of the domain.
///
/// # Errors
/// It has none somewhere, or that is not shown.
fn has_value(case: &Case<'_>) -> Result<(), Reason> {
    let claim = case.claim;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    claim.assume_in_box(&mut question, &mut names, "");
    let shown = value::shown_or_open(claim.predicate, &mut names, &mut question);
    shown.map(drop).map_err(|failure| failure.reason())
}

/// What a decision about all indices of the box says of a claim that is restricted to some of them. A proof of a statement
/// about each index, or about each pair of indices, is one for fewer of them. A refutation says nothing, and neither does a
/// proof that some index exists.
pub(super) fn of_the_box(obligation: Obligation, (verdict, method): Decision) -> Option<Decision> {
    let is_about_each = matches!(
        obligation,
        Obligation::Bounds | Obligation::Injective | Obligation::Overflow | Obligation::Specification
    );
    let is_taken = is_about_each || sabotage::on("box-shows-restricted");
    (is_taken && verdict.is_proved()).then_some((verdict, method))
}
