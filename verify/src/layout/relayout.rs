//! A claimed map from the slots of one layout to those of another.
//!
//! ```text
//! A = f32[3,5]{1,0:T(2,2)}     B = f32[3,5]{1,0}     slot 17 of A holds (2, 3), which is in slot 13 of B: map(17) = 13
//! ```
//!
//! The claim is compared with the composition `A's inverse, reindex, B's layout`. The inverse is claimed as well and
//! proved first; the layouts of A and B are the judge's own statements (`meaning`), not the formulas of the untrusted
//! side.

use std::cell::OnceCell;

use tilewright_ir::layout::{ArrayShape, Layout};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Expr, IndexMap, InverseClaim};

use super::bitcast::{Pair, PairClaim};
use super::meaning::Meaning;
use super::{LayoutClaim, StagedLayout, all, same};
use crate::judge::{Decision, Judge, Report, unfit};
use crate::map::{MapClaim, decide};
use crate::obligation::Obligation;
use crate::verdict::Verdict;

/// A claimed relayout: `map` takes the slot of an element in A to its slot in B.
#[derive(Clone, Copy, Debug)]
pub struct RelayoutClaim<'a> {
    /// The two arrays.
    pub pair: PairClaim<'a>,
    /// From a slot of A to the logical index in A, and which slots of A are padding.
    pub inverse: &'a InverseClaim,
    /// From a slot of A, in `0..` the slots of A, to a slot of B; on padding it may have any value.
    pub map: &'a IndexMap,
}

impl Judge {
    /// Decides the obligations of a map from A's slots to B's:
    ///
    /// - specification: the slot of every element in A is mapped to its slot in B;
    /// - bounds: slots of A that are not padding are mapped into B's allocation;
    /// - injective: different slots of A that are not padding are mapped to different slots;
    /// - padding: the padding predicate holds exactly for the slots of A that hold no element.
    pub fn check_relayout(&self, claim: &RelayoutClaim<'_>) -> Vec<Report> {
        let subject = claim.map.to_string();
        let Some(pair) = claim.pair.pair() else {
            let reason = "the layouts do not fit".to_owned();
            return vec![Self::report(Obligation::Specification, subject, || unfit(reason))];
        };
        let arrays = [claim.pair.from, claim.pair.to].map(ArrayShape::layout_or_default);
        let owns = [OwnClaim::new(&pair.from, &pair.from_flat), OwnClaim::new(&pair.to, &pair.to_flat)];
        let [Some(from_own), Some(to_own)] = owns else {
            return vec![Self::report(Obligation::Specification, subject, super::no_layout)];
        };
        let from_claim = from_own.claim(&arrays[0]).inverse(claim.inverse);
        let to_claim = to_own.claim(&arrays[1]);
        let (from, to) = (StagedLayout::new(&from_claim, &pair.from), StagedLayout::new(&to_claim, &pair.to));
        // All obligations rest on the claimed inverse.
        let inverse = OnceCell::new();
        let given = || inverse.get_or_init(|| self.decide_inverse(Obligation::Inverse, &from)).clone();
        vec![
            Self::report(Obligation::Specification, subject.clone(), || {
                all([given(), self.decide_relayout(claim, &pair, &from)])
            }),
            Self::report(Obligation::Bounds, subject.clone(), || {
                all([given(), self.decide_relayout(claim, &pair, &from), self.decide_bounds_in_b(claim, &to)])
            }),
            Self::report(Obligation::Injective, subject.clone(), || {
                all([given(), self.decide_relayout(claim, &pair, &from), self.decide_injective_in_b(claim, &to)])
            }),
            Self::report(Obligation::Padding, subject, || self.decide_inverse(Obligation::Padding, &from)),
        ]
    }

    /// Decides whether the map is the composition of A's inverse, `reindex` and B's layout. Since the inverse maps every
    /// element's slot back to its index, the composition maps the slot of every element in A to its slot in B.
    ///
    /// Slots without an element may be mapped anywhere. If the two maps differ on some slot, they are therefore compared
    /// again without the slots that are proved to be padding.
    fn decide_relayout(&self, claim: &RelayoutClaim<'_>, pair: &Pair, from: &StagedLayout<'_>) -> Decision {
        let composed = composition(claim, pair);
        let Some(composed) = composed else { return unfit("no index map") };
        let slots = [pair.to.slots()];
        let mut equal = decide(self, Obligation::Specification, MapClaim::new(claim.map, &slots).meaning(&composed));
        if let (Verdict::Refuted(_), Some(map), Some(composed)) =
            (&equal.0, off_padding(claim, claim.map), off_padding(claim, &composed))
        {
            let kept = decide(self, Obligation::Specification, MapClaim::new(&map, &slots).meaning(&composed));
            equal = all([self.decide_inverse(Obligation::Padding, from), kept]);
        }
        all([same(self, claim.map.domain(), &[pair.from.slots()], &[]), self.decide_reindex(&claim.pair), equal])
    }

    /// Decides whether every element has a slot in B's allocation.
    fn decide_bounds_in_b(&self, claim: &RelayoutClaim<'_>, to: &StagedLayout<'_>) -> Decision {
        let inside = decide(self, Obligation::Bounds, MapClaim::new(claim.pair.reindex, claim.pair.to_extents));
        all([inside, self.decide_position(Obligation::Bounds, to)])
    }

    /// Decides whether different elements have different slots in B.
    fn decide_injective_in_b(&self, claim: &RelayoutClaim<'_>, to: &StagedLayout<'_>) -> Decision {
        let reindex = decide(self, Obligation::Injective, MapClaim::new(claim.pair.reindex, claim.pair.to_extents));
        all([reindex, self.decide_position(Obligation::Injective, to)])
    }
}

/// The judge's own meaning of a layout, in the form of a claim.
struct OwnClaim {
    /// The map to the indices after the last tile.
    tiled: IndexMap,
    /// The extents after the last tile.
    shape: Vec<Expr>,
    /// The map to positions.
    flat: IndexMap,
    /// The size of the allocation.
    slots: Expr,
}

impl OwnClaim {
    /// The claim parts of a meaning whose map to positions is `flat`.
    fn new(meaning: &Meaning, flat: &IndexMap) -> Option<Self> {
        Some(Self { tiled: meaning.tiled()?, shape: meaning.extents(), flat: flat.clone(), slots: meaning.slots() })
    }

    /// The claim that the layout has this meaning.
    fn claim<'a>(&'a self, layout: &'a Layout) -> LayoutClaim<'a> {
        LayoutClaim::new(layout, &self.tiled, &self.shape, &self.flat, &self.slots)
    }
}

/// The map with the value 0 for slots that are padding according to the claim.
fn off_padding(claim: &RelayoutClaim<'_>, map: &IndexMap) -> Option<IndexMap> {
    let ([slot], [output]) = (map.vars(), map.outputs()) else { return None };
    let padding = Substitution::new(&claim.inverse.vars, [Expr::from(slot)]).apply(&claim.inverse.padding);
    let zero = Expr::int_of(0, output.dtype().scalar)?;
    let kept = Expr::IfThenElse(padding.into(), zero.into(), output.clone().into());
    IndexMap::new(vec![slot.clone()], map.domain().to_vec(), vec![kept], Vec::new()).ok()
}

/// The map from a slot of A to a slot of B by way of the logical indices.
fn composition(claim: &RelayoutClaim<'_>, pair: &Pair) -> Option<IndexMap> {
    let [slot] = claim.map.vars() else { return None };
    let back =
        IndexMap::new(claim.inverse.vars.clone(), vec![pair.from.slots()], claim.inverse.outputs.clone(), vec![]);
    let logical = back.ok()?.apply(&[slot.into()]);
    let placed = pair.to_flat_from.apply(&logical);
    IndexMap::new(vec![slot.clone()], vec![pair.from.slots()], placed, Vec::new()).ok()
}
