//! Obligations of XLA's tiled layouts, and of two layouts of the same data.
//!
//! A claimed layout is held against its meaning, which the judge writes down itself tile by tile (`layout/meaning.rs`):
//!
//! | id | here |
//! |---|---|
//! | tiling | the claimed formula is pad, reshape, transpose: the same physical extents, indices and positions |
//! | bounds, injective, overflow | of the map from logical indices to positions |
//! | tight | the allocation: one more than the largest position of the padded array, rounded up to the tail alignment |
//! | inverse, padding | from positions back to logical indices, and which positions are padding |
//!
//! Dimensions are compared one by one, where the arithmetic is linear even for symbolic extents; the position is the
//! numeral of what was compared, a polynomial identity. [`bitcast`] and [`relayout`] are about two layouts.

pub mod bitcast;
mod meaning;
pub mod relayout;
mod undo;

use tilewright_ir::layout::Layout;
use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim, ScalarType, SharedExpr, Var};

use self::meaning::{Kind, Meaning, Stage};
use crate::judge::{Decision, Judge, Report};
use crate::map::{MapClaim, decide, look};
use crate::verdict::{Counterexample, Verdict};

/// What is claimed of a layout of an array. The maps carry the logical extents as their domain, and have the same
/// variables.
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
/// for report in Judge::new(Config::default())?.check_layout(&claim) {
///     assert!(report.verdict.is_proved(), "{}: {}", report.obligation, report.verdict);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LayoutClaim<'a> {
    /// The layout as data.
    pub layout: &'a Layout,
    /// From logical indices to the indices after the last tile.
    pub tiled: &'a IndexMap,
    /// The extents after the last tile, from major to minor.
    pub shape: &'a [Expr],
    /// From logical indices to positions in memory, its only output.
    pub flat: &'a IndexMap,
    /// Elements that memory is allocated for.
    pub slots: &'a Expr,
    /// The claimed inverse of `flat`, from a position, and which positions are padding.
    pub inverse: Option<&'a InverseClaim>,
    /// What may be taken for granted of the symbolic extents.
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

    /// With this inverse, and this padding.
    #[must_use]
    pub fn inverse(self, inverse: &'a InverseClaim) -> Self {
        Self { inverse: Some(inverse), ..self }
    }

    /// Only for symbolic extents of which these hold.
    #[must_use]
    pub fn assuming(self, assumptions: &'a [Expr]) -> Self {
        Self { assumptions, ..self }
    }
}

/// The map of a layout on an array of these extents, over `vars`, and the extents of its outputs: what a layout asks of the
/// indices of a buffer. None for a layout that is no order of these dimensions, does more than order and tile them, or
/// folds dimensions without end.
pub fn order_and_tiles(layout: &Layout, vars: &[Var], shape: &[Expr]) -> Option<(IndexMap, Vec<Expr>)> {
    let bare = Layout::new(layout.minor_to_major.clone()).with_tiles(layout.tiles.clone());
    let meaning = Meaning::new(layout, vars, shape).filter(|_| bare == *layout)?;
    Some((meaning.tiled()?, meaning.extents()))
}

impl Judge {
    /// Decides tiling, bounds, injective, tight and overflow of a layout; inverse and padding, where an inverse is claimed.
    pub fn check_layout(&self, claim: &LayoutClaim<'_>) -> Vec<Report> {
        let subject = claim.flat.to_string();
        let Some(meaning) = Meaning::new(claim.layout, claim.flat.vars(), claim.flat.domain()) else {
            return vec![Self::report("tiling", subject, no_layout)];
        };
        let way = Way::new(claim, &meaning);
        let mut reports = vec![
            Self::report("tiling", subject.clone(), || self.tiling(claim, &meaning)),
            Self::report("bounds", subject.clone(), || self.placed("bounds", &way)),
            Self::report("injective", subject.clone(), || self.placed("injective", &way)),
            Self::report("tight", subject.clone(), || self.allocation(claim, &meaning)),
            Self::report("overflow", subject.clone(), || self.whole("overflow", &way)),
        ];
        if claim.inverse.is_some() {
            reports
                .extend(["inverse", "padding"].map(|id| Self::report(id, subject.clone(), || self.undone(id, &way))));
        }
        reports
    }

    /// An obligation of the map to positions, taken as it is.
    fn whole(&self, id: &str, way: &Way<'_>) -> Decision {
        self.of_the_map(id, way, decide)
    }

    fn of_the_map(&self, id: &str, way: &Way<'_>, by: fn(&Judge, &str, MapClaim<'_>) -> Decision) -> Decision {
        let slots = [way.claim.slots.clone()];
        let mut flat = MapClaim::new(way.claim.flat, &slots).assuming(way.claim.assumptions);
        if matches!(id, "inverse" | "padding") {
            flat.inverse = way.claim.inverse;
        }
        by(self, id, flat)
    }

    /// A small constant layout is decided by its points; for a certificate, goals are asked for.
    fn looked_at(&self, id: &str, way: &Way<'_>) -> Option<Decision> {
        if self.is_recording() {
            return None;
        }
        let decision = self.of_the_map(id, way, look);
        let decided = matches!(decision.0, Verdict::Proved | Verdict::Refuted(_));
        decided.then_some(decision)
    }

    /// Bounds or injective of the positions: each stage of the way to the position is shown to have it, and so has the whole.
    /// Where that fails, the map is taken as it is.
    fn placed(&self, id: &str, way: &Way<'_>) -> Decision {
        if let Some(decision) = self.looked_at(id, way) {
            return decision;
        }
        match self.by_stages(id, way) {
            (Verdict::Proved, _) => (Verdict::Proved, format!("z3, in {} stages", way.stages.len())),
            _ => self.whole(id, way),
        }
    }

    /// Inverse or padding of the positions, stage by stage; where that fails, the map and its inverse are taken as they are.
    fn undone(&self, id: &str, way: &Way<'_>) -> Decision {
        let Some(inverse) = way.claim.inverse else {
            return (Verdict::Unknown("no inverse is claimed".into()), "none".into());
        };
        if let Some(decision) = self.looked_at(id, way) {
            return decision;
        }
        match self.undone_by_stages(id, way, inverse) {
            (Verdict::Proved, _) => (Verdict::Proved, format!("z3, in {} stages", way.stages.len())),
            _ => self.whole(id, way),
        }
    }

    fn by_stages(&self, id: &str, way: &Way<'_>) -> Decision {
        let (claim, assumptions) = (way.claim, way.claim.assumptions);
        let mut decisions = vec![way.complete(), self.tiling(claim, way.meaning)];
        for stage in &way.stages {
            let claimed = MapClaim::new(&stage.map, &stage.extents).assuming(assumptions);
            decisions.push(match (&stage.kind, id) {
                // What can be undone is injective.
                (Kind::Numeral | Kind::Fold(_), "injective") => self.numerals(stage, assumptions),
                _ => decide(self, id, claimed),
            });
        }
        if id == "bounds" {
            decisions.push(self.beyond(way));
        }
        all(decisions)
    }

    /// What is allocated beyond the padded array is less than the tail alignment, and no negative number.
    fn beyond(&self, way: &Way<'_>) -> Decision {
        let beyond = way.claim.slots.clone() - way.meaning.padded_elements();
        let tail = [way.meaning.tail()];
        match IndexMap::new(Vec::new(), Vec::new(), vec![beyond], Vec::new()) {
            Ok(map) => decide(self, "bounds", MapClaim::new(&map, &tail).assuming(way.claim.assumptions)),
            Err(error) => (Verdict::Unknown(error.to_string()), "shape".into()),
        }
    }

    /// Inverse or padding of the positions: each stage is undone, and what is claimed is all of them undone, from the last
    /// one to the first.
    fn undone_by_stages(&self, id: &str, way: &Way<'_>, inverse: &InverseClaim) -> Decision {
        let unknown = || (Verdict::Unknown("the claim is no inverse of a position".into()), "shape".to_owned());
        let [slot] = inverse.vars.as_slice() else { return unknown() };
        let (layout, assumptions) = (way.claim.layout, way.claim.assumptions);
        let padded = undo::beyond(&way.stages, &way.meaning.tail(), way.ty);
        let composed = undo::composed(&way.stages, &layout.minor_to_major, &slot.into(), padded.clone(), way.ty);
        let Some(composed) = composed else { return unknown() };
        let truth = |padding: Expr| {
            let [yes, no] = [1, 0].map(|value| SharedExpr::new(Expr::Int { value, ty: way.ty }));
            Expr::IfThenElse(SharedExpr::new(padding), yes, no)
        };
        let map = |outputs: &[Expr], padding: Expr| {
            let outputs = outputs.iter().cloned().chain([truth(padding)]).collect();
            IndexMap::new(vec![slot.clone()], vec![way.claim.slots.clone()], outputs, Vec::new()).ok()
        };
        let claimed = map(&inverse.outputs, inverse.padding.clone());
        let (Some(claimed), Some(meant)) = (claimed, map(&composed.index, undo::either(composed.padding))) else {
            return unknown();
        };
        let shape = vec![way.claim.slots.clone(); claimed.outputs().len()];
        let equal = MapClaim::new(&claimed, &shape).assuming(assumptions).meaning(&meant);
        let allocated = if padded.is_some() {
            self.beyond(way)
        } else {
            // Without a condition on the position itself, every slot has to be one of the padded array.
            same(self, std::slice::from_ref(way.claim.slots), &[way.meaning.padded_elements()], assumptions)
        };
        let mut decisions = vec![way.complete(), self.tiling(way.claim, way.meaning), allocated];
        for stage in &way.stages {
            let inside = MapClaim::new(&stage.map, &stage.extents).assuming(assumptions);
            decisions.push(decide(self, "bounds", inside));
            decisions.push(undo::undoes(self, id, stage, assumptions, way.ty));
        }
        decisions.push(decide(self, "specification", equal));
        all(decisions)
    }

    /// The claimed formula is pad, reshape, transpose.
    fn tiling(&self, claim: &LayoutClaim<'_>, meaning: &Meaning) -> Decision {
        let (extents, rank) = (meaning.extents(), claim.shape.len());
        if rank != extents.len() || claim.tiled.outputs().len() != rank {
            let text = format!("the tiles make {} physical dimensions, {rank} are claimed", extents.len());
            return (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), "shape".into());
        }
        if claim.tiled.vars() != claim.flat.vars() || claim.tiled.domain() != claim.flat.domain() {
            let reason = "the two maps differ in their indices or extents".to_owned();
            return (Verdict::Unknown(reason), "shape".into());
        }
        let ty = index_type(claim.flat);
        let indices = claim.tiled.outputs();
        let position = meaning::numeral(indices, claim.shape, ty);
        let (vars, domain) = (claim.flat.vars().to_vec(), claim.flat.domain().to_vec());
        let position = IndexMap::new(vars, domain, vec![position], Vec::new()).ok();
        let (Some(stated), Some(position)) = (meaning.tiled(), position) else {
            return (Verdict::Unknown("the extents are no integers".into()), "shape".into());
        };
        let slots = [claim.slots.clone()];
        all([
            same(self, claim.shape, &extents, claim.assumptions),
            decide(
                self,
                "specification",
                MapClaim::new(claim.tiled, claim.shape).assuming(claim.assumptions).meaning(&stated),
            ),
            decide(
                self,
                "specification",
                MapClaim::new(claim.flat, &slots).assuming(claim.assumptions).meaning(&position),
            ),
        ])
    }

    /// Memory is allocated for one more element than the largest position of the padded array, rounded up as stated.
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
        (verdict, format!("allocation: {method}"))
    }
}

fn no_layout() -> Decision {
    (Verdict::Unknown("the layout fits no array of this rank".into()), "shape".into())
}

/// A claim, its meaning, and the way from an element to its position.
struct Way<'a> {
    claim: &'a LayoutClaim<'a>,
    meaning: &'a Meaning,
    stages: Vec<Stage>,
    ty: ScalarType,
}

impl<'a> Way<'a> {
    fn new(claim: &'a LayoutClaim<'a>, meaning: &'a Meaning) -> Self {
        let ty = index_type(claim.flat);
        let stages = meaning::stages(claim.layout, claim.flat.domain(), ty).unwrap_or_default();
        Self { claim, meaning, stages, ty }
    }

    /// That there are stages, the numeral at least.
    fn complete(&self) -> Decision {
        if self.stages.is_empty() {
            return no_layout();
        }
        (Verdict::Proved, "stages".into())
    }
}

fn index_type(map: &IndexMap) -> ScalarType {
    map.vars().first().map_or(ScalarType::Int64, |var| var.dtype().scalar)
}

/// Whether expressions over symbolic extents are pairwise equal: as maps without indices.
fn same(judge: &Judge, stated: &[Expr], meant: &[Expr], assumptions: &[Expr]) -> Decision {
    let map = |outputs: &[Expr]| IndexMap::new(Vec::new(), Vec::new(), outputs.to_vec(), Vec::new()).ok();
    match (map(stated), map(meant)) {
        (Some(stated_map), Some(meant)) => {
            let claim = MapClaim::new(&stated_map, stated).assuming(assumptions).meaning(&meant);
            decide(judge, "specification", claim)
        }
        _ => (Verdict::Unknown("an extent is no integer".into()), "shape".into()),
    }
}

/// The first decision that is not proved; proved, with all methods, if there is none.
fn all(decisions: impl IntoIterator<Item = Decision>) -> Decision {
    let mut methods: Vec<String> = Vec::new();
    for (verdict, method) in decisions {
        if !verdict.is_proved() {
            return (verdict, method);
        }
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    (Verdict::Proved, methods.join(", "))
}

/// The symbols that a counterexample gives values to.
fn symbols_of(found: &Counterexample, exprs: &[&Expr]) -> Bindings {
    let vars: Vec<Var> = exprs.iter().flat_map(|expr| expr.vars()).collect();
    let value = |var: &Var| found.shape.iter().find(|(name, _)| name == var.name()).map(|(_, value)| *value);
    vars.iter().filter_map(|var| Some((var.clone(), value(var)?))).collect()
}

/// The same with another text, in which expressions have their values.
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
