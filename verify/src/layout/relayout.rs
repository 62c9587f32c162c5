//! A claimed map from the slots of one layout to those of another.

use std::cell::OnceCell;

use tilewright_ir::layout::{ArrayShape, Layout};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Expr, IndexMap, InverseClaim};

use super::bitcast::{Pair, PairClaim};
use super::meaning::Meaning;
use super::{LayoutClaim, Way, all, same};
use crate::judge::{Decision, Judge, Report};
use crate::map::{MapClaim, decide};
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
    /// Decides, of a map from A's slots to B's:
    ///
    /// - specification: it takes the slot of every element in A to its slot in B;
    /// - bounds: off the padding it leads into B's allocation;
    /// - injective: off the padding it takes different slots to different ones;
    /// - padding: exactly the slots that hold no element are called padding.
    pub fn check_relayout(&self, claim: &RelayoutClaim<'_>) -> Vec<Report> {
        let subject = claim.map.to_string();
        let Some(pair) = claim.pair.pair() else {
            let reason = "the layouts do not fit".to_owned();
            return vec![Self::report("specification", subject, || (Verdict::Unknown(reason), "shape".into()))];
        };
        let arrays = [claim.pair.from, claim.pair.to].map(ArrayShape::layout_or_default);
        let owns = [Own::new(&pair.from, &pair.from_flat), Own::new(&pair.to, &pair.to_flat)];
        let [Some(from_own), Some(to_own)] = owns else {
            return vec![Self::report("specification", subject, super::no_layout)];
        };
        let from_claim = from_own.claim(&arrays[0]).inverse(claim.inverse);
        let to_claim = to_own.claim(&arrays[1]);
        let (from, to) = (Way::new(&from_claim, &pair.from), Way::new(&to_claim, &pair.to));
        // All of them stand on this: off the padding, the inverse is one.
        let inverse = OnceCell::new();
        let given = || inverse.get_or_init(|| self.undone("inverse", &from)).clone();
        vec![
            Self::report("specification", subject.clone(), || all([given(), self.relaid(claim, &pair, &from)])),
            Self::report("bounds", subject.clone(), || {
                all([given(), self.relaid(claim, &pair, &from), self.lands(claim, &to)])
            }),
            Self::report("injective", subject.clone(), || {
                all([given(), self.relaid(claim, &pair, &from), self.one_to_one(claim, &to)])
            }),
            Self::report("padding", subject, || self.undone("padding", &from)),
        ]
    }

    /// The map is: back to A's index, over to B's, and to its slot. Where the inverse takes every element's slot back, it
    /// takes the slot of every element to its slot in B.
    ///
    /// Slots that hold no element may go anywhere: where the two differ on all slots, those that are proved to be padding
    /// are left out.
    fn relaid(&self, claim: &RelayoutClaim<'_>, pair: &Pair, from: &Way<'_>) -> Decision {
        let composed = composition(claim, pair);
        let Some(composed) = composed else { return (Verdict::Unknown("no index map".into()), "shape".into()) };
        let slots = [pair.to.slots()];
        let mut equal = decide(self, "specification", MapClaim::new(claim.map, &slots).meaning(&composed));
        if let (Verdict::Refuted(_), Some(map), Some(composed)) =
            (&equal.0, off_padding(claim, claim.map), off_padding(claim, &composed))
        {
            let kept = decide(self, "specification", MapClaim::new(&map, &slots).meaning(&composed));
            equal = all([self.undone("padding", from), kept]);
        }
        all([same(self, claim.map.domain(), &[pair.from.slots()], &[]), self.reindexed(&claim.pair), equal])
    }

    fn lands(&self, claim: &RelayoutClaim<'_>, to: &Way<'_>) -> Decision {
        let inside = decide(self, "bounds", MapClaim::new(claim.pair.reindex, claim.pair.to_extents));
        all([inside, self.placed("bounds", to)])
    }

    fn one_to_one(&self, claim: &RelayoutClaim<'_>, to: &Way<'_>) -> Decision {
        let reindex = decide(self, "injective", MapClaim::new(claim.pair.reindex, claim.pair.to_extents));
        all([reindex, self.placed("injective", to)])
    }
}

/// The judge's own meaning of a layout, as a claim.
struct Own {
    tiled: IndexMap,
    shape: Vec<Expr>,
    flat: IndexMap,
    slots: Expr,
}

impl Own {
    fn new(meaning: &Meaning, flat: &IndexMap) -> Option<Self> {
        Some(Self { tiled: meaning.tiled()?, shape: meaning.extents(), flat: flat.clone(), slots: meaning.slots() })
    }

    fn claim<'a>(&'a self, layout: &'a Layout) -> LayoutClaim<'a> {
        LayoutClaim::new(layout, &self.tiled, &self.shape, &self.flat, &self.slots)
    }
}

/// The map with 0 for the slots that the claim says are padding.
fn off_padding(claim: &RelayoutClaim<'_>, map: &IndexMap) -> Option<IndexMap> {
    let ([slot], [output]) = (map.vars(), map.outputs()) else { return None };
    let padding = Substitution::new(&claim.inverse.vars, [Expr::from(slot)]).apply(&claim.inverse.padding);
    let zero = Expr::int_of(0, output.dtype().scalar)?;
    let kept = Expr::IfThenElse(padding.into(), zero.into(), output.clone().into());
    IndexMap::new(vec![slot.clone()], map.domain().to_vec(), vec![kept], Vec::new()).ok()
}

/// From a slot of A over the logical indices to a slot of B.
fn composition(claim: &RelayoutClaim<'_>, pair: &Pair) -> Option<IndexMap> {
    let [slot] = claim.map.vars() else { return None };
    let back =
        IndexMap::new(claim.inverse.vars.clone(), vec![pair.from.slots()], claim.inverse.outputs.clone(), vec![]);
    let logical = back.ok()?.apply(&[slot.into()]);
    let placed = pair.to_flat_from.apply(&logical);
    IndexMap::new(vec![slot.clone()], vec![pair.from.slots()], placed, Vec::new()).ok()
}
