//! Obligation bitcast: two layouts hold the same element, or both padding, in every slot of the same memory.
//!
//! ```text
//! A = f32[6,4]{1,0}   B = f32[24]{0}      the same memory: element (i, j) of A is element i * 4 + j of B
//! A = f32[6,4]{1,0}   B = f32[4,6]{1,0}   permuted: slot 1 holds (0, 1) in A and (0, 1), the element (1, 0) of A, in B
//! ```

use tilewright_ir::layout::{ArrayShape, Dimension, Layout, Tiling};
use tilewright_ir::{Bindings, Expr, IndexMap, Var};

use super::meaning::{Meaning, numeral, product};
use super::{all, index_type, same, symbols_of};
use crate::concrete::tuple;
use crate::judge::{Decision, Judge, Report, unfit};
use crate::map::{MapClaim, decide};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::verdict::{Counterexample, Verdict};

/// Number of slots searched for the first one that differs.
const SCANNED: u64 = 1 << 18;

/// Two arrays that hold the same data.
#[derive(Clone, Copy, Debug)]
pub struct PairClaim<'a> {
    /// The array A. Its extents are the domain of `reindex`.
    pub from: &'a ArrayShape,
    /// The array B.
    pub to: &'a ArrayShape,
    /// The extents of B, in the symbols of A's.
    pub to_extents: &'a [Expr],
    /// From the logical index in A to that in B of the same element.
    pub reindex: &'a IndexMap,
    /// Dimension `k` of B is dimension `permutation[k]` of A. Without one, elements are the same whose row-major numbers
    /// are: B is a reshape of A.
    pub permutation: Option<&'a [usize]>,
}

/// The meanings of both layouts, and the positions in both as functions of A's logical index.
#[derive(Debug)]
pub(super) struct Pair {
    /// The meaning of A's layout.
    pub(super) from: Meaning,
    /// The meaning of B's layout.
    pub(super) to: Meaning,
    /// Position in A of A's logical index.
    pub(super) from_flat: IndexMap,
    /// Position in B of B's logical index.
    pub(super) to_flat: IndexMap,
    /// Position in B of A's logical index.
    pub(super) to_flat_from: IndexMap,
}

impl Judge {
    /// Decides whether the memory of A, reinterpreted as B, holds the same data: the same number of slots of the same width,
    /// and in each slot the same element, or padding in both.
    pub fn check_bitcast(&self, claim: &PairClaim<'_>) -> Report {
        Self::report(Obligation::Bitcast, claim.reindex.to_string(), || self.bitcast(claim))
    }

    /// Decides the obligation bitcast.
    fn bitcast(&self, claim: &PairClaim<'_>) -> Decision {
        let Some(pair) = claim.pair() else {
            return unfit("the layouts do not fit");
        };
        if let Some(text) = claim.different_element() {
            return (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), Method::Shape);
        }
        let slots = [pair.to.slots()];
        let placed = MapClaim::new(&pair.from_flat, &slots).meaning(&pair.to_flat_from);
        let decision = all([
            self.decide_reindex(claim),
            same(self, &[pair.from.slots()], &slots, &[]),
            decide(self, Obligation::Specification, placed),
        ]);
        match decision {
            (Verdict::Refuted(found), method) => (Verdict::Refuted(claim.in_terms_of_slots(found)), method),
            other => other,
        }
    }

    /// Decides whether B has as many elements as A, and `reindex` gives the index in B of the same element.
    pub(super) fn decide_reindex(&self, claim: &PairClaim<'_>) -> Decision {
        let (map, ty) = (claim.reindex, index_type(claim.reindex));
        let counts = [map.domain(), claim.to_extents].map(|extents| product(extents, ty));
        let vars = |vars: &[Var]| vars.iter().map(Expr::from).collect::<Vec<_>>();
        let one =
            |output: Expr| IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), vec![output], Vec::new()).ok();
        let [from, to] = &counts;
        let counted = same(self, std::slice::from_ref(from), std::slice::from_ref(to), &[]);
        if let Some(permutation) = claim.permutation {
            let mut sorted = permutation.to_vec();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..map.vars().len()) {
                // Otherwise A and B would have different elements.
                return unfit("it is no permutation of the dimensions");
            }
            let moved: Option<Vec<Expr>> =
                permutation.iter().map(|&axis| map.vars().get(axis).map(Expr::from)).collect();
            let extents: Option<Vec<Expr>> = permutation.iter().map(|&axis| map.domain().get(axis).cloned()).collect();
            let (Some(moved), Some(extents)) =
                (moved, extents.filter(|extents| extents.len() == claim.to_extents.len()))
            else {
                return unfit("the permutation does not fit");
            };
            let moved = IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), moved, Vec::new()).ok();
            let Some(moved) = moved else { return unfit("no index map") };
            let claimed = MapClaim::new(map, claim.to_extents).meaning(&moved);
            return all([
                same(self, &extents, claim.to_extents, &[]),
                decide(self, Obligation::Specification, claimed),
            ]);
        }
        let number = one(numeral(&vars(map.vars()), map.domain(), ty));
        let number_in_b = one(numeral(map.outputs(), claim.to_extents, ty));
        let (Some(number), Some(number_in_b)) = (number, number_in_b) else {
            return unfit("no index map");
        };
        let size = std::slice::from_ref(from);
        let renumbered = MapClaim::new(&number_in_b, size).meaning(&number);
        let inside = MapClaim::new(map, claim.to_extents);
        all([counted, decide(self, Obligation::Bounds, inside), decide(self, Obligation::Specification, renumbered)])
    }
}

impl PairClaim<'_> {
    /// The meanings of both layouts; `None` if a layout does not fit its array.
    pub(super) fn pair(&self) -> Option<Pair> {
        let (vars, domain) = (self.reindex.vars(), self.reindex.domain());
        let ty = index_type(self.reindex);
        let to_vars: Vec<Var> = (0..self.to_extents.len()).map(|axis| Var::new(format!("j{axis}"), ty)).collect();
        let from = Meaning::new(&self.from.layout_or_default(), vars, domain)?;
        let to = Meaning::new(&self.to.layout_or_default(), &to_vars, self.to_extents)?;
        let (from_flat, to_flat) = (from.flat()?, to.flat()?);
        let placed = to_flat.apply(self.reindex.outputs());
        let to_flat_from = IndexMap::new(vars.to_vec(), domain.to_vec(), placed, Vec::new()).ok()?;
        Some(Pair { from, to, from_flat, to_flat, to_flat_from })
    }

    /// The reason why no element of A can be one of B: their memory spaces, widths or metadata prefixes differ. `None` if they do not.
    fn different_element(&self) -> Option<String> {
        let bits = |array: &ArrayShape| match array.layout().map_or(0, |layout| layout.element_bits) {
            0 => array.element_type().storage_bits(),
            bits => bits,
        };
        let prefix = |array: &ArrayShape| array.layout().map_or(0, |layout| layout.metadata_prefix_bytes);
        let space = |array: &ArrayShape| array.layout().map_or(0, |layout| layout.memory_space);
        if space(self.from) != space(self.to) {
            let (from, to) = (space(self.from), space(self.to));
            return Some(format!(
                "A is in memory space {from}, B in {to}: a bitcast moves nothing from one to the other"
            ));
        }
        if bits(self.from) != bits(self.to) {
            return Some(format!("elements take {} bits in A and {} in B", bits(self.from), bits(self.to)));
        }
        (prefix(self.from) != prefix(self.to)).then(|| {
            format!(
                "a prefix of {} bytes stands before the elements of A, of {} before those of B",
                prefix(self.from),
                prefix(self.to)
            )
        })
    }

    /// The counterexample, described by the first slot that differs if there is one among the first [`SCANNED`].
    fn in_terms_of_slots(&self, found: Counterexample) -> Counterexample {
        let text = self.difference(&found);
        Counterexample { text: text.unwrap_or_else(|| found.text.clone()), ..found }
    }

    /// How the two memories differ for the extents of a counterexample.
    fn difference(&self, found: &Counterexample) -> Option<String> {
        let extents: Vec<&Expr> = self.reindex.domain().iter().chain(self.to_extents).collect();
        let symbols = symbols_of(found, &extents);
        let a = PlacedArray::new(self.from, self.reindex.domain(), &symbols)?;
        let b = PlacedArray::new(self.to, self.to_extents, &symbols)?;
        let reshaped = a.extents != b.extents && self.permutation.is_none();
        let number_in_b = |index: &[u64]| match self.permutation {
            Some(permutation) => number(&moved_back(index, permutation, a.extents.len()), &a.extents),
            None => number(index, &b.extents),
        };
        let in_a = |slot: u64| a.content(slot, |index| number(index, &a.extents));
        let in_b = |slot: u64| b.content(slot, number_in_b);
        let slots = [&a, &b].map(|placed| placed.tiling.physical_elements());
        let scanned = slots[0].max(slots[1]).min(SCANNED);
        let first = (0..scanned).find(|&slot| in_a(slot).key() != in_b(slot).key());
        let first = first.or_else(|| Self::slot_of(found, &a)).map(|slot| {
            let (in_a, in_b) = (in_a(slot), in_b(slot));
            // "holds X in A and Y in B" if both hold an element.
            let in_b = match (&in_a, in_b.element(reshaped)) {
                (SlotContent::Element(..), Some(element)) => element,
                _ => in_b.describe(reshaped),
            };
            format!("slot {slot} {} in A and {in_b} in B", in_a.describe(reshaped))
        });
        let sizes = (slots[0] != slots[1]).then(|| format!("A has {} slots, B {}", slots[0], slots[1]));
        match (sizes, first) {
            (Some(sizes), Some(first)) => Some(format!("{sizes}; {first}")),
            (sizes, first) => sizes.or(first),
        }
    }

    /// The slot in A of the element that the counterexample is about.
    fn slot_of(found: &Counterexample, a: &PlacedArray) -> Option<u64> {
        let index: Option<Vec<u64>> = found.indices.first()?.iter().map(|&at| u64::try_from(at).ok()).collect();
        a.tiling.linear_index(&index?)
    }
}

/// The content of a slot.
#[derive(Clone, Debug)]
enum SlotContent {
    /// The slot is beyond the allocation.
    Outside,
    /// The slot holds no element.
    Padding,
    /// An element: its logical index, and a number that identifies it in both arrays.
    Element(Vec<u64>, u64),
}

impl SlotContent {
    /// Equal keys mean equal contents.
    fn key(&self) -> (u8, u64) {
        match self {
            Self::Outside => (0, 0),
            Self::Padding => (1, 0),
            Self::Element(_, number) => (2, *number),
        }
    }

    /// The content as the end of a sentence about the slot; with the number of the element if `numbered`.
    fn describe(&self, numbered: bool) -> String {
        match (self, self.element(numbered)) {
            (Self::Outside, _) => "is no part of the allocation".into(),
            (Self::Padding, _) => "is padding".into(),
            (Self::Element(..), element) => format!("holds {}", element.unwrap_or_default()),
        }
    }

    /// The element in the slot, if there is one; with its number if `numbered`.
    fn element(&self, numbered: bool) -> Option<String> {
        let Self::Element(index, number) = self else { return None };
        let index = tuple(&index.iter().map(|&at| at.into()).collect::<Vec<_>>());
        Some(if numbered { format!("{index}, which is element {number},") } else { index })
    }
}

/// The index in A of the element with this index in B.
fn moved_back(index: &[u64], permutation: &[usize], rank: usize) -> Vec<u64> {
    let mut back = vec![0; rank];
    for (&axis, &at) in permutation.iter().zip(index) {
        if let Some(place) = back.get_mut(axis) {
            *place = at;
        }
    }
    back
}

/// The row-major number of an index.
fn number(index: &[u64], extents: &[u64]) -> u64 {
    index.iter().zip(extents).fold(0, |high, (at, extent)| high.saturating_mul(*extent).saturating_add(*at))
}

/// An array with known extents.
struct PlacedArray {
    /// The layout, evaluated.
    tiling: Tiling,
    /// The logical extents.
    extents: Vec<u64>,
}

impl PlacedArray {
    /// The array with the values of the symbols; `None` if an extent has no value or the layout does not fit.
    fn new(array: &ArrayShape, extents: &[Expr], symbols: &Bindings) -> Option<Self> {
        let value = |expr: &Expr| {
            // The value of a symbol that the counterexample does not mention does not matter.
            let mut symbols = symbols.clone();
            for var in expr.vars() {
                symbols.entry(var).or_insert(1);
            }
            u64::try_from(expr.eval_index(&symbols).ok()?).ok()
        };
        let extents: Option<Vec<u64>> = extents.iter().map(value).collect();
        let extents = extents?;
        let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
        let layout = Layout { split_configs: Vec::new(), ..array.layout_or_default() };
        let tiling = ArrayShape::new(array.element_type(), dimensions, Some(layout)).ok()?.tiling().ok()?;
        Some(Self { tiling, extents })
    }

    /// The content of a slot; `number` gives the number of an element.
    fn content(&self, slot: u64, number: impl Fn(&[u64]) -> u64) -> SlotContent {
        match self.tiling.element_at(slot) {
            _ if slot >= self.tiling.physical_elements() => SlotContent::Outside,
            None => SlotContent::Padding,
            Some(index) => {
                let number = number(&index);
                SlotContent::Element(index, number)
            }
        }
    }
}
