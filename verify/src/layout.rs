//! The obligations of XLA's tiled layouts, and of two layouts of the same data.
//!
//! A claimed layout is compared with its meaning, which the judge constructs itself tile by tile (`layout/meaning.rs`):
//!
//! | id | here |
//! |---|---|
//! | tiling | the claimed formula is pad, reshape, transpose: the same physical extents, indices and positions |
//! | bounds, injective, overflow | of the map from logical indices to positions |
//! | tight | the allocation: one more than the largest position of the padded array, rounded up to the tail alignment |
//! | inverse, padding | of the map from positions back to logical indices |
//!
//! Dimensions are compared one at a time, since the arithmetic of one dimension is linear even for symbolic extents. The
//! position is then the numeral of the compared indices, which is a polynomial identity. [`bitcast`] and [`relayout`] are
//! about two layouts.
//!
//! The formula that is judged comes from `tilewright-ir` and is not believed. What is believed is `meaning`: that a
//! tile is pad, reshape and transpose, as XLA's page "Tiled layout" defines it.

pub mod bitcast;
mod meaning;
pub mod relayout;
mod undo;

use tilewright_ir::layout::Layout;
use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim, ScalarType, SharedExpr, Var};

use self::meaning::{Kind, Meaning, Stage};
use crate::door::{All, inspected};
use crate::judge::{Decision, Judge, Report, unfit};
use crate::map::{MapClaim, decide, look};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::reason::Reason;
use crate::verdict::{Counterexample, Verdict};

/// A claim about the layout of an array. Both maps have the logical extents as their domain, and the same variables.
///
/// ```
/// use tilewright_ir::layout::{Layout, SymbolicTiling, Tile};
/// use tilewright_ir::{Expr, ScalarType, Var};
/// use tilewright_verify::{Config, Judge, LayoutClaim};
/// let layout = Layout::row_major(2).with_tiles(vec![Tile::from_vector(&[8, 128])?, Tile::from_vector(&[2, 1])?]);
/// let [rows, columns] = ["r", "c"].map(|name| Expr::from(Var::new(name, ScalarType::Int64)));
/// let formula = SymbolicTiling::new(&layout, &[rows, columns])?;
/// let (tiled, flat) = (formula.to_tiled_map()?, formula.to_flat_map()?);
/// let claim = LayoutClaim::new(&layout, &tiled, formula.physical_shape(), &flat, formula.physical_elements());
/// for report in Judge::new(Config::default(), tilewright_search::strategies())?.check_layout(&claim) {
///     assert!(report.verdict.is_proved(), "{}: {}", report.obligation, report.verdict);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LayoutClaim<'a> {
    /// The layout: order of dimensions, tiles, memory space, tail alignment.
    pub layout: &'a Layout,
    /// The map from logical indices to the indices after the last tile.
    pub tiled: &'a IndexMap,
    /// The extents after the last tile, from major to minor.
    pub shape: &'a [Expr],
    /// The map from logical indices to positions in memory, in elements, which are its only output.
    pub flat: &'a IndexMap,
    /// The size of the allocation in elements.
    pub slots: &'a Expr,
    /// The claimed inverse of `flat`, and the predicate that says which positions are padding.
    pub inverse: Option<&'a InverseClaim>,
    /// Conditions on the symbolic extents that may be assumed.
    pub assumptions: &'a [Expr],
}

impl<'a> LayoutClaim<'a> {
    /// A claim without an inverse.
    pub fn new(
        layout: &'a Layout,
        tiled: &'a IndexMap,
        shape: &'a [Expr],
        flat: &'a IndexMap,
        slots: &'a Expr,
    ) -> Self {
        Self { layout, tiled, shape, flat, slots, inverse: None, assumptions: &[] }
    }

    /// The claim with an inverse and a padding predicate.
    #[must_use]
    pub fn inverse(self, inverse: &'a InverseClaim) -> Self {
        Self { inverse: Some(inverse), ..self }
    }

    /// The claim, restricted to symbolic extents for which these conditions hold.
    #[must_use]
    pub fn assuming(self, assumptions: &'a [Expr]) -> Self {
        Self { assumptions, ..self }
    }
}

/// The map of a layout from the indices `vars` of an array to physical indices, and the physical extents. `None` if the
/// layout does not order these dimensions, does more than order and tile them, or folds dimensions so often that the map
/// becomes too long.
pub fn order_and_tiles(layout: &Layout, vars: &[Var], shape: &[Expr]) -> Option<(IndexMap, Vec<Expr>)> {
    let bare = Layout::new(layout.minor_to_major.clone()).with_tiles(layout.tiles.clone());
    let meaning = Meaning::new(layout, vars, shape).filter(|_| bare == *layout)?;
    Some((meaning.tiled()?, meaning.extents()))
}

impl Judge {
    /// Decides tiling, bounds, injective, tight and overflow of a layout; inverse and padding if an inverse is claimed.
    pub fn check_layout(&self, claim: &LayoutClaim<'_>) -> Vec<Report> {
        let subject = claim.flat.to_string();
        let Some(meaning) = Meaning::new(claim.layout, claim.flat.vars(), claim.flat.domain()) else {
            return vec![Self::report(Obligation::Tiling, subject, no_layout)];
        };
        let staged = StagedLayout::new(claim, &meaning);
        let mut reports = vec![
            Self::report(Obligation::Tiling, subject.clone(), || self.tiling(claim, &meaning)),
            Self::report(Obligation::Bounds, subject.clone(), || self.decide_position(Obligation::Bounds, &staged)),
            Self::report(Obligation::Injective, subject.clone(), || {
                self.decide_position(Obligation::Injective, &staged)
            }),
            Self::report(Obligation::Tight, subject.clone(), || self.allocation(claim, &meaning)),
            Self::report(Obligation::Overflow, subject.clone(), || self.decide_whole(Obligation::Overflow, &staged)),
        ];
        if claim.inverse.is_some() {
            reports.extend(
                [Obligation::Inverse, Obligation::Padding]
                    .map(|id| Self::report(id, subject.clone(), || self.decide_inverse(id, &staged))),
            );
        }
        reports
    }

    /// Decides an obligation of the map to positions as for any other map.
    fn decide_whole(&self, id: Obligation, staged: &StagedLayout<'_>) -> Decision {
        self.decide_flat(id, staged, decide)
    }

    /// Decides an obligation of the map to positions with the given procedure.
    fn decide_flat(
        &self,
        id: Obligation,
        staged: &StagedLayout<'_>,
        by: fn(&Judge, Obligation, MapClaim<'_>) -> Decision,
    ) -> Decision {
        let slots = [staged.claim.slots.clone()];
        let mut flat = MapClaim::new(staged.claim.flat, &slots).assuming(staged.claim.assumptions);
        if matches!(id, Obligation::Inverse | Obligation::Padding) {
            flat.inverse = staged.claim.inverse;
        }
        by(self, id, flat)
    }

    /// Decides an obligation of a small constant layout by its points. `None` if that is not possible, or if a certificate
    /// is recorded, which needs goals.
    fn decide_by_points(&self, id: Obligation, staged: &StagedLayout<'_>) -> Option<Decision> {
        if self.is_recording() {
            return None;
        }
        let decision = self.decide_flat(id, staged, look);
        let decided = matches!(decision.0, Verdict::Proved(_) | Verdict::Refuted(_));
        decided.then_some(decision)
    }

    /// Decides bounds or injective of the positions: if every stage has the property, so has their composition. If that is
    /// not proved, the map is judged as a whole.
    fn decide_position(&self, id: Obligation, staged: &StagedLayout<'_>) -> Decision {
        if let Some(decision) = self.decide_by_points(id, staged) {
            return decision;
        }
        match self.decide_by_stages(id, staged) {
            (Verdict::Proved(grounds), by) => {
                (Verdict::Proved(grounds), Method::InStages(Box::new(by), staged.stages.len()))
            }
            _ => self.decide_whole(id, staged),
        }
    }

    /// Decides inverse or padding of the positions, stage by stage. If that is not proved, the map and its inverse are
    /// judged as a whole.
    fn decide_inverse(&self, id: Obligation, staged: &StagedLayout<'_>) -> Decision {
        let Some(inverse) = staged.claim.inverse else {
            return (Verdict::Unknown(Reason::undecided("no inverse is claimed")), Method::Nothing);
        };
        if let Some(decision) = self.decide_by_points(id, staged) {
            return decision;
        }
        match self.decide_inverse_by_stages(id, staged, inverse) {
            (Verdict::Proved(grounds), by) => {
                (Verdict::Proved(grounds), Method::InStages(Box::new(by), staged.stages.len()))
            }
            _ => self.decide_whole(id, staged),
        }
    }

    /// Shows bounds or injective for every stage, and that the stages compose to the claimed map.
    fn decide_by_stages(&self, id: Obligation, staged: &StagedLayout<'_>) -> Decision {
        let (claim, assumptions) = (staged.claim, staged.claim.assumptions);
        let mut decisions = vec![staged.complete(), self.tiling(claim, staged.meaning)];
        for stage in &staged.stages {
            let claimed = MapClaim::new(&stage.map, &stage.extents).assuming(assumptions);
            decisions.push(match (&stage.kind, id) {
                // A stage with a left inverse is injective.
                (Kind::Numeral | Kind::Fold(_), Obligation::Injective) => self.numerals(stage, assumptions),
                _ => decide(self, id, claimed),
            });
        }
        if id == Obligation::Bounds {
            decisions.push(self.decide_tail(staged));
        }
        all(decisions)
    }

    /// Shows that the number of slots beyond the padded array is in `0..tail alignment`.
    fn decide_tail(&self, staged: &StagedLayout<'_>) -> Decision {
        let beyond = staged.claim.slots.clone() - staged.meaning.padded_elements();
        let tail = [staged.meaning.tail()];
        match IndexMap::new(Vec::new(), Vec::new(), vec![beyond], Vec::new()) {
            Ok(map) => decide(self, Obligation::Bounds, MapClaim::new(&map, &tail).assuming(staged.claim.assumptions)),
            Err(error) => unfit(error.to_string()),
        }
    }

    /// Shows inverse or padding for every stage, and that the claimed inverse is the composition of the stages' inverses,
    /// from the last one to the first.
    fn decide_inverse_by_stages(&self, id: Obligation, staged: &StagedLayout<'_>, inverse: &InverseClaim) -> Decision {
        let unknown = || unfit("the claim is no inverse of a position");
        let [slot] = inverse.vars.as_slice() else { return unknown() };
        let (layout, assumptions) = (staged.claim.layout, staged.claim.assumptions);
        let padded = undo::beyond(&staged.stages, &staged.meaning.tail(), staged.ty);
        let composed = undo::composed(&staged.stages, &layout.minor_to_major, &slot.into(), padded.clone(), staged.ty);
        let Some(composed) = composed else { return unknown() };
        let truth = |padding: Expr| {
            let [yes, no] = [1, 0].map(|value| SharedExpr::new(Expr::Int { value, ty: staged.ty }));
            Expr::IfThenElse(SharedExpr::new(padding), yes, no)
        };
        let map = |outputs: &[Expr], padding: Expr| {
            let outputs = outputs.iter().cloned().chain([truth(padding)]).collect();
            IndexMap::new(vec![slot.clone()], vec![staged.claim.slots.clone()], outputs, Vec::new()).ok()
        };
        let claimed = map(&inverse.outputs, inverse.padding.clone());
        let (Some(claimed), Some(meant)) = (claimed, map(&composed.index, undo::either(composed.padding))) else {
            return unknown();
        };
        let shape = vec![staged.claim.slots.clone(); claimed.outputs().len()];
        let equal = MapClaim::new(&claimed, &shape).assuming(assumptions).meaning(&meant);
        let allocated = if padded.is_some() {
            self.decide_tail(staged)
        } else {
            // There is no condition on the position itself, so every slot must belong to the padded array.
            same(self, std::slice::from_ref(staged.claim.slots), &[staged.meaning.padded_elements()], assumptions)
        };
        let mut decisions = vec![staged.complete(), self.tiling(staged.claim, staged.meaning), allocated];
        for stage in &staged.stages {
            let inside = MapClaim::new(&stage.map, &stage.extents).assuming(assumptions);
            decisions.push(decide(self, Obligation::Bounds, inside));
            decisions.push(undo::undoes(self, id, stage, assumptions, staged.ty));
        }
        decisions.push(decide(self, Obligation::Specification, equal));
        all(decisions)
    }

    /// Decides whether the claimed maps are pad, reshape and transpose.
    fn tiling(&self, claim: &LayoutClaim<'_>, meaning: &Meaning) -> Decision {
        let (extents, rank) = (meaning.extents(), claim.shape.len());
        if rank != extents.len() || claim.tiled.outputs().len() != rank {
            let text = format!("the tiles make {} physical dimensions, {rank} are claimed", extents.len());
            return (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), Method::Shape);
        }
        if claim.tiled.vars() != claim.flat.vars() || claim.tiled.domain() != claim.flat.domain() {
            return unfit("the two maps differ in their indices or extents");
        }
        let ty = index_type(claim.flat);
        // The position is compared with the numeral of the *claimed* indices: a polynomial identity, without divisions.
        // That these indices are the right ones is the second comparison.
        let indices = claim.tiled.outputs();
        let position = meaning::numeral(indices, claim.shape, ty);
        let (vars, domain) = (claim.flat.vars().to_vec(), claim.flat.domain().to_vec());
        let position = IndexMap::new(vars, domain, vec![position], Vec::new()).ok();
        let (Some(stated), Some(position)) = (meaning.tiled(), position) else {
            return unfit("the extents are no integers");
        };
        let slots = [claim.slots.clone()];
        all([
            same(self, claim.shape, &extents, claim.assumptions),
            decide(
                self,
                Obligation::Specification,
                MapClaim::new(claim.tiled, claim.shape).assuming(claim.assumptions).meaning(&stated),
            ),
            decide(
                self,
                Obligation::Specification,
                MapClaim::new(claim.flat, &slots).assuming(claim.assumptions).meaning(&position),
            ),
        ])
    }

    /// Decides whether the allocation is one more than the largest position of the padded array, rounded up to the tail
    /// alignment.
    fn allocation(&self, claim: &LayoutClaim<'_>, meaning: &Meaning) -> Decision {
        let (last, padded) = (meaning.after_last(), meaning.padded_elements());
        let needed = meaning.slots();
        let decision = all([
            same(self, &[last], &[padded], claim.assumptions),
            same(self, std::slice::from_ref(claim.slots), std::slice::from_ref(&needed), claim.assumptions),
        ]);
        let (verdict, method) = decision;
        let verdict = match verdict {
            Verdict::Refuted(found) => {
                Verdict::Refuted(with_values(found, [claim.slots, &needed], |[stated, needed]| {
                    format!("the allocation has {stated} slots, but the padded array with its tail takes {needed}")
                }))
            }
            other => other,
        };
        (verdict, Method::Allocation(Box::new(method)))
    }
}

/// The decision for a layout that does not fit the array.
fn no_layout() -> Decision {
    unfit("the layout fits no array of this rank")
}

/// A claim, its meaning, and the stages that lead from the index of an element to its position.
struct StagedLayout<'a> {
    /// The claim.
    claim: &'a LayoutClaim<'a>,
    /// The judge's own statement of the layout.
    meaning: &'a Meaning,
    /// The steps from the index in physical order to the position; empty if the layout does not fit.
    stages: Vec<Stage>,
    /// The type of indices.
    ty: ScalarType,
}

impl<'a> StagedLayout<'a> {
    /// The stages of a claim; none if the layout does not fit the array.
    fn new(claim: &'a LayoutClaim<'a>, meaning: &'a Meaning) -> Self {
        let ty = index_type(claim.flat);
        let stages = meaning::stages(claim.layout, claim.flat.domain(), ty).unwrap_or_default();
        Self { claim, meaning, stages, ty }
    }

    /// Checks that there are stages: the numeral at least. They are missing if the layout does not fit the array.
    fn complete(&self) -> Decision {
        if self.stages.is_empty() {
            return no_layout();
        }
        (inspected(), Method::Stages)
    }
}

/// The type of a map's indices; `int64` if there are none.
fn index_type(map: &IndexMap) -> ScalarType {
    map.vars().first().map_or(ScalarType::Int64, |var| var.dtype().scalar)
}

/// Decides whether expressions over symbolic extents are pairwise equal, as maps without indices.
fn same(judge: &Judge, stated: &[Expr], meant: &[Expr], assumptions: &[Expr]) -> Decision {
    let map = |outputs: &[Expr]| IndexMap::new(Vec::new(), Vec::new(), outputs.to_vec(), Vec::new()).ok();
    match (map(stated), map(meant)) {
        (Some(stated_map), Some(meant)) => {
            let claim = MapClaim::new(&stated_map, stated).assuming(assumptions).meaning(&meant);
            decide(judge, Obligation::Specification, claim)
        }
        _ => unfit("an extent is no integer"),
    }
}

/// The conjunction of decisions: the first one that is not proved, or proved with all methods if there is none.
fn all(decisions: impl IntoIterator<Item = Decision>) -> Decision {
    let mut methods: Vec<Method> = Vec::new();
    let mut all = All::default();
    for (verdict, method) in decisions {
        let Verdict::Proved(grounds) = verdict else { return (verdict, method) };
        all.add(grounds);
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    (all.proved(), Method::together(methods))
}

/// The values that a counterexample gives to the symbols of some expressions.
fn symbols_of(found: &Counterexample, exprs: &[&Expr]) -> Bindings {
    let vars: Vec<Var> = exprs.iter().flat_map(|expr| expr.vars()).collect();
    let value = |var: &Var| found.shape.iter().find(|(name, _)| name == var.name()).map(|(_, value)| *value);
    vars.iter().filter_map(|var| Some((var.clone(), value(var)?))).collect()
}

/// The counterexample with another text, made from the values of some expressions.
fn with_values<const N: usize>(
    found: Counterexample,
    exprs: [&Expr; N],
    text: impl FnOnce([i128; N]) -> String,
) -> Counterexample {
    let symbols = symbols_of(&found, &exprs);
    let mut values = [0; N];
    for (value, expr) in values.iter_mut().zip(exprs) {
        match expr.eval_index(&symbols) {
            Ok(found) => *value = found,
            Err(_) => return found,
        }
    }
    Counterexample { text: text(values), indices: Vec::new(), ..found }
}
