//! Compares the judge's verdicts on tiled layouts, and on pairs of layouts of the same data, with
//! the definition: pad, reshape and transpose an array of labels. A right claim must not be
//! refuted, a wrong one must not be proved.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::layout::{ArrayShape, Layout, SymbolicTiling};
use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim};
use tilewright_verify::{Config as Budget, Judge, LayoutClaim, Obligation, PairClaim, RelayoutClaim, Report, Verdict};

use crate::case::Case;
use crate::config::Config;
use crate::layout::{Cells, LayoutCase, LayoutRecipe};
use crate::map::table::Table;
use crate::map::truth::{MAX_POINTS, Truth, numbers};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use tilewright_algebra::layouts;

/// A case: a layout and a claim about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutClaimCase {
    /// The layout.
    pub layout: LayoutCase,
    /// The mistake in the claim.
    pub twin: Twin,
    /// A second layout of the same array: whether both are the same in memory, and the relayout
    /// between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<LayoutCase>,
}

/// The mistake in a claim, if the layout has a place for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Twin {
    /// Nothing.
    Right,
    /// Positions are one more.
    Shifted,
    /// One slot too few.
    Less,
    /// One slot too many.
    More,
    /// Two indices after the last tile are swapped.
    Swapped,
    /// The formula is that of the layout without its last tile.
    WithoutTile,
    /// The inverse has no padding.
    NoPadding,
    /// An index of the inverse is 0.
    Zero,
}

impl Case for LayoutClaimCase {
    /// Draws a layout; in one case out of four a second one with the same extents, which mostly has
    /// the same element size; and a mistake in half of the cases.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let recipe = LayoutRecipe::draw(u, config)?;
        let other = if u.ratio(1, 4)? {
            let mut other = LayoutRecipe::draw(u, config)?;
            other.extents.clone_from(&recipe.extents);
            // Layouts with elements of different sizes are never the same in memory, so most cases have equal sizes.
            (other.element, other.bits) = (recipe.element, if u.ratio(1, 8)? { other.bits } else { recipe.bits });
            // Independent tilings hardly ever agree; equal ones give pairs that may be the same in memory.
            if u.ratio(1, 3)? {
                other.tiles.clone_from(&recipe.tiles);
                other.tail = recipe.tail;
            }
            Some(LayoutCase::Recipe(other))
        } else {
            None
        };
        let twin = match u.int_in_range(0..=13)? {
            0..=6 => Twin::Right,
            7 => Twin::Shifted,
            8 => Twin::Less,
            9 => Twin::More,
            10 => Twin::Swapped,
            11 => Twin::WithoutTile,
            12 => Twin::NoPadding,
            _ => Twin::Zero,
        };
        Ok(Self { layout: LayoutCase::Recipe(recipe), twin, other })
    }

    /// Simplifies the claim first, then both layouts together, then the second one.
    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.other.is_some() {
            found.push(Self { other: None, ..self.clone() });
        }
        if self.twin != Twin::Right {
            found.push(Self { twin: Twin::Right, ..self.clone() });
        }
        for layout in self.layout.simpler() {
            // Both have the same extents.
            let mut other = self.other.clone();
            if let (LayoutCase::Recipe(layout), Some(LayoutCase::Recipe(other))) = (&layout, &mut other) {
                other.extents.clone_from(&layout.extents);
            }
            found.push(Self { layout, other, ..self.clone() });
        }
        if let Some(LayoutCase::Recipe(other)) = &self.other {
            for simpler in LayoutCase::Recipe(other.clone()).simpler() {
                if matches!(&simpler, LayoutCase::Recipe(simpler) if simpler.extents == other.extents) {
                    found.push(Self { other: Some(simpler), ..self.clone() });
                }
            }
        }
        found
    }

    fn features(&self) -> Vec<String> {
        let mut found = self.layout.features();
        found.push(if self.twin == Twin::Right { "claim:right" } else { "claim:twin" }.to_owned());
        if self.other.is_some() {
            found.push("claim:two layouts".to_owned());
        }
        found
    }

    fn text(&self) -> String {
        let other = self.other.as_ref().map_or_else(String::new, |other| format!(", other {}", other.text()));
        format!("{} ({:?}{other})", self.layout.text(), self.twin)
    }
}

/// The oracle `judge_layouts`; see the module.
#[derive(Debug)]
pub struct JudgeLayouts {
    judge: Judge,
}

impl JudgeLayouts {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, rlimit: 1_000_000, ..Budget::default() };
        Ok(Self { judge: Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }
}

/// Everything that is claimed of a layout.
struct Claim {
    layout: Layout,
    tiled: IndexMap,
    shape: Vec<Expr>,
    flat: IndexMap,
    slots: Expr,
    inverse: Option<InverseClaim>,
}

/// The claim with the given mistake. `None` if the layout has no formula or no place for the
/// mistake.
fn claim_of(array: &ArrayShape, twin: Twin) -> Option<Claim> {
    let layout = array.layout_or_default();
    let formula = array.symbolic_tiling().ok()?;
    let inverse = layouts::inverse(&layout, &formula);
    let mut claim = stated(layout.clone(), &formula, inverse)?;
    let one = |like: &Expr| Expr::int_of(1, like.dtype().scalar);
    match twin {
        Twin::Right => {}
        Twin::Shifted => {
            let output = claim.flat.outputs().first()?;
            claim.flat = with_outputs(&claim.flat, vec![output.clone() + one(output)?])?;
        }
        Twin::Less => claim.slots = changed(&claim.slots, -1)?,
        Twin::More => claim.slots = changed(&claim.slots, 1)?,
        Twin::Swapped => {
            let mut outputs = claim.tiled.outputs().to_vec();
            let last = outputs.len().checked_sub(1)?;
            outputs.swap(0, last);
            claim.tiled = with_outputs(&claim.tiled, outputs)?;
        }
        Twin::WithoutTile => {
            // The claim still names the full layout. Without tiles it stays right: evaluation decides, not the mistake.
            let mut fewer = layout.clone();
            fewer.tiles.pop();
            let formula = SymbolicTiling::new(&fewer, formula.domain()).ok()?;
            let inverse = layouts::inverse(&fewer, &formula);
            claim = stated(layout, &formula, inverse)?;
        }
        Twin::NoPadding => claim.inverse.as_mut()?.padding = Expr::bool(false),
        Twin::Zero => {
            let output = claim.inverse.as_mut()?.outputs.last_mut()?;
            *output = Expr::int_of(0, output.dtype().scalar)?;
        }
    }
    Some(claim)
}

/// The claim that follows from a formula.
fn stated(layout: Layout, formula: &SymbolicTiling, inverse: Option<InverseClaim>) -> Option<Claim> {
    Some(Claim {
        layout,
        tiled: formula.to_tiled_map().ok()?,
        shape: formula.physical_shape().to_vec(),
        flat: formula.to_flat_map().ok()?,
        slots: formula.physical_elements().clone(),
        inverse,
    })
}

/// A map with other outputs.
fn with_outputs(map: &IndexMap, outputs: Vec<Expr>) -> Option<IndexMap> {
    IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs, Vec::new()).ok()
}

/// A positive constant changed by a number; `None` if it would not be positive.
fn changed(expr: &Expr, by: i128) -> Option<Expr> {
    Expr::int_of(expr.as_const_int()?.checked_add(by).filter(|value| *value > 0)?, expr.dtype().scalar)
}

/// Which obligations hold of a claim, by evaluation.
struct Facts {
    tiling: bool,
    tight: bool,
    truth: Truth,
    inverse: Option<[bool; 2]>,
}

impl Facts {
    /// Evaluates a claim at every index; `None` if there are too many.
    fn of(claim: &Claim, cells: &Cells) -> Option<Self> {
        let none = Bindings::new();
        let places = cells.slots();
        let truth = Truth::of(&claim.flat, std::slice::from_ref(&claim.slots), &none)?;
        let extents = numbers(claim.flat.domain(), &none)?;
        let points = Table::of_box(claim.flat.vars(), &extents, &none, MAX_POINTS)?;
        let is_place = |values: &[i64]| values.iter().zip(&places).all(|(at, place)| i64::try_from(*place) == Ok(*at));
        // Read as a mixed-radix number, the indices after the last tile are the position, too.
        let shape = numbers(&claim.shape, &none)?;
        let mut number = vec![0i64; points.len()];
        let same_shape =
            shape.iter().map(|&extent| usize::try_from(extent).ok()).eq(cells.extents.iter().map(|e| Some(*e)));
        let mut tiling = same_shape && claim.tiled.outputs().len() == shape.len();
        for (output, extent) in claim.tiled.outputs().iter().zip(&shape) {
            let values = points.eval(output)?;
            tiling &= values.iter().all(|value| (0..*extent).contains(value));
            for (number, value) in number.iter_mut().zip(values) {
                *number = *number * extent + value;
            }
        }
        tiling &= is_place(&number) && is_place(&points.eval(claim.flat.outputs().first()?)?);
        let tight = claim.slots.as_const_int() == i128::try_from(cells.labels.len()).ok();
        let inverse = claim.inverse.as_ref().and_then(|inverse| truth.of_inverse(&claim.flat, inverse));
        Some(Self { tiling, tight, truth, inverse })
    }

    /// Whether an obligation holds; `None` if it was not evaluated.
    fn holds(&self, obligation: Obligation) -> Option<bool> {
        match obligation {
            Obligation::Tiling => Some(self.tiling),
            Obligation::Bounds => Some(self.truth.bounds),
            Obligation::Injective => Some(self.truth.injective),
            Obligation::Tight => Some(self.tight),
            Obligation::Overflow => Some(self.truth.fits),
            Obligation::Inverse => self.inverse.map(|[there, _]| there),
            Obligation::Padding => self.inverse.map(|[_, exact]| exact),
            Obligation::Iteration
            | Obligation::Order
            | Obligation::Alive
            | Obligation::Simulation
            | Obligation::Flatten
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

/// Compares a verdict with the truth. Returns an outcome if they contradict each other or if there
/// is no verdict. `prefix` begins the names of counters and the kind of failure.
fn compare_verdict(
    case: &LayoutClaimCase,
    prefix: &str,
    report: &Report,
    holds: bool,
    tally: &mut Tally,
) -> Option<Outcome> {
    let obligation = report.obligation;
    let detail = || format!("{}: {} [{}]", case.text(), report.verdict, report.method);
    let tier = report.method.tier();
    tally.saw(&format!("tier:{tier}"));
    tally.count(&format!("completeness: {prefix}{obligation} {}", if holds { "holds" } else { "fails" }), 1);
    match (&report.verdict, holds) {
        (Verdict::Proved(_), false) => {
            Some(Failure::outcome(format!("{prefix}{obligation} is proved and does not hold"), detail()))
        }
        (Verdict::Refuted(_), true) => {
            Some(Failure::outcome(format!("{prefix}{obligation} is refuted and holds"), detail()))
        }
        (Verdict::Proved(_) | Verdict::Refuted(_), _) => {
            tally.count("soundness checks", 1);
            tally.count(&format!("completeness: {prefix}{obligation} {}", report.verdict.word()), 1);
            None
        }
        (Verdict::Unknown(reason), _) if reason.is_internal() => {
            Some(Failure::outcome(format!("{prefix}{obligation} is an internal error"), detail()))
        }
        (Verdict::Unknown(_), _) => Some(Outcome::Undecided(format!("{prefix}{obligation} unknown"))),
        // A generated array has elements, and all that the judge reports of a layout applies to it.
        (Verdict::Vacuous(_) | Verdict::Skipped(_), _) => {
            Some(Failure::outcome(format!("{prefix}{obligation} is vacuous or skipped"), detail()))
        }
    }
}

/// Checks the table of positions in `ir`, on which the rest of the project relies.
fn check_positions(case: &LayoutClaimCase, array: &ArrayShape, cells: &Cells) -> Option<Outcome> {
    let wrong = |what: &str, detail: String| Some(Failure::outcome(what, format!("{}: {detail}", case.text())));
    let tiling = match array.tiling() {
        Ok(tiling) => tiling,
        Err(error) => return wrong("a valid layout has no positions", error.to_string()),
    };
    if usize::try_from(tiling.physical_elements()) != Ok(cells.labels.len()) {
        return wrong("the allocation is not that of the page", format!("{} slots", tiling.physical_elements()));
    }
    let positions = match tiling.offsets() {
        Ok(offsets) => offsets,
        Err(error) => return wrong("a small layout has no table", error.to_string()),
    };
    let same = positions.iter().map(|at| usize::try_from(*at).ok()).eq(cells.slots().into_iter().map(Some));
    if !same {
        return wrong("the positions are not those of the page", format!("{positions:?}"));
    }
    // `offsets` lists the elements in row-major order, so the position in the list is the row-major number.
    let back = positions.iter().zip(0..).find(|(at, number)| {
        let index = tiling.element_at(**at);
        let found =
            index.map(|index| index.iter().zip(tiling.shape()).fold(0, |high, (at, extent)| high * extent + at));
        found != Some(*number)
    });
    match back {
        Some((at, number)) => wrong("a position does not lead back", format!("slot {at}, element {number}")),
        None => None,
    }
}

impl JudgeLayouts {
    /// Checks the claims about two layouts: whether they are the same in memory, and the relayout
    /// from one to the other.
    fn check_pair(
        &self,
        case: &LayoutClaimCase,
        from: &ArrayShape,
        cells: &Cells,
        tally: &mut Tally,
    ) -> Option<Outcome> {
        let other = match case.other.as_ref()?.build() {
            Ok(other) => other,
            Err(why) => return Some(Outcome::Invalid(why)),
        };
        let Some(other_cells) = Cells::of(&other) else {
            return Some(Outcome::Undecided("a layout too large to be tried".into()));
        };
        let bits = |array: &ArrayShape| match array.layout().map_or(0, |layout| layout.element_bits) {
            0 => array.element_type().storage_bits(),
            bits => bits,
        };
        let pair = match layouts::pair(from, &other, None) {
            Ok(pair) => pair,
            Err(why) => return Some(Failure::outcome("two layouts of one array are no pair", why)),
        };
        let claim =
            PairClaim { from, to: &other, to_extents: &pair.to_extents, reindex: &pair.reindex, permutation: None };
        let same = bits(from) == bits(&other) && cells.labels == other_cells.labels;
        let report = self.judge.check_bitcast(&claim);
        if let Some(found) = compare_verdict(case, "", &report, same, tally) {
            return Some(found);
        }
        let relayout = match layouts::relayout(from, &other, &pair) {
            Ok(relayout) => relayout,
            Err(why) => return Some(Failure::outcome("there is no way from one layout to the other", why)),
        };
        // The expected slot of each element follows from the labels of both layouts.
        let none = Bindings::new();
        let slots = Table::of_box(relayout.map.vars(), &[i64::try_from(cells.labels.len()).ok()?], &none, MAX_POINTS)?;
        let (targets, places) = (slots.eval(relayout.map.outputs().first()?), other_cells.slots());
        let Some(targets) = targets else { return Some(Failure::outcome("a relayout has no value", case.text())) };
        let right = |(target, label): (&i64, &Option<usize>)| {
            label.is_none_or(|label| places.get(label).is_some_and(|place| i64::try_from(*place) == Ok(*target)))
        };
        if !targets.iter().zip(&cells.labels).all(right) {
            return Some(Failure::outcome("a relayout moves an element to a wrong slot", case.text()));
        }
        tally.count("slots moved", targets.len() as u64);
        let claim = RelayoutClaim { pair: claim, inverse: &relayout.inverse, map: &relayout.map };
        let reports = self.judge.check_relayout(&claim);
        let wrong = reports.iter().find_map(|report| compare_verdict(case, "relayout ", report, true, tally));
        wrong.or_else(|| self.check_twin(case, &claim, [cells, &other_cells], tally))
    }

    /// Checks the relayout with a mistake: whatever does not hold of it must not be proved.
    fn check_twin(
        &self,
        case: &LayoutClaimCase,
        right: &RelayoutClaim<'_>,
        cells: [&Cells; 2],
        tally: &mut Tally,
    ) -> Option<Outcome> {
        let (map, inverse) = broken(case.twin, right)?;
        let claim = RelayoutClaim { pair: right.pair, inverse: &inverse, map: &map };
        let facts = RelayoutFacts::of(&claim, cells)?;
        self.judge.check_relayout(&claim).iter().find_map(|report| {
            let holds = facts.holds(report.obligation)?;
            // All obligations but the padding assume the inverse and the specification; if those
            // fail, they may be refuted although they hold.
            let by_itself = report.obligation == Obligation::Padding || facts.specification && facts.padding;
            (by_itself || !holds).then(|| compare_verdict(case, "relayout twin ", report, holds, tally)).flatten()
        })
    }
}

/// The relayout with a mistake; `None` if the mistake does not apply to relayouts.
fn broken(twin: Twin, right: &RelayoutClaim<'_>) -> Option<(IndexMap, InverseClaim)> {
    let output = right.map.outputs().first()?.clone();
    let int = |value: i128| Expr::int_of(value, output.dtype().scalar);
    let mut inverse = right.inverse.clone();
    let output = match twin {
        Twin::Shifted | Twin::More => output.clone() + int(1)?,
        Twin::Less => output.clone() - int(1)?,
        Twin::Swapped => output.clone().floor_div(int(2)?) * int(2)? + int(1)? - output.clone().floor_mod(int(2)?),
        Twin::Zero => int(0)?,
        Twin::NoPadding => {
            inverse.padding = Expr::bool(false);
            output
        }
        Twin::Right | Twin::WithoutTile => return None,
    };
    Some((with_outputs(right.map, vec![output])?, inverse))
}

/// Which obligations hold of a relayout, by evaluation.
#[expect(clippy::struct_excessive_bools, reason = "one fact for each obligation")]
struct RelayoutFacts {
    specification: bool,
    bounds: bool,
    injective: bool,
    padding: bool,
}

impl RelayoutFacts {
    /// Evaluates a relayout at every slot; `None` if there are too many.
    fn of(claim: &RelayoutClaim<'_>, [from, to]: [&Cells; 2]) -> Option<Self> {
        let (none, n_slots) = (Bindings::new(), [i64::try_from(from.labels.len()).ok()?]);
        let slots = Table::of_box(claim.map.vars(), &n_slots, &none, MAX_POINTS)?;
        let targets = slots.eval(claim.map.outputs().first()?)?;
        let is_padding =
            Table::of_box(&claim.inverse.vars, &n_slots, &none, MAX_POINTS)?.eval(&claim.inverse.padding)?;
        let places = to.slots();
        let mut moved: Vec<(usize, i64)> =
            from.labels.iter().zip(&targets).filter_map(|(label, target)| Some(((*label)?, *target))).collect();
        let right = |(label, target): &(usize, i64)| {
            places.get(*label).is_some_and(|place| i64::try_from(*place) == Ok(*target))
        };
        let specification = moved.iter().all(right);
        let bounds = moved.iter().all(|(_, at)| usize::try_from(*at).is_ok_and(|at| at < to.labels.len()));
        let padding =
            is_padding.iter().zip(&from.labels).all(|(is_padding, label)| (*is_padding != 0) == label.is_none());
        moved.sort_unstable_by_key(|(_, target)| *target);
        let injective = moved.windows(2).all(|pair| pair[0].1 != pair[1].1);
        Some(Self { specification, bounds, injective, padding })
    }

    /// Whether an obligation holds; `None` if it was not evaluated.
    fn holds(&self, obligation: Obligation) -> Option<bool> {
        match obligation {
            Obligation::Specification => Some(self.specification),
            Obligation::Bounds => Some(self.bounds),
            Obligation::Injective => Some(self.injective),
            Obligation::Padding => Some(self.padding),
            Obligation::Tight
            | Obligation::Inverse
            | Obligation::Overflow
            | Obligation::Iteration
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

impl Oracle for JudgeLayouts {
    type Case = LayoutClaimCase;

    const NAME: &'static str = "judge_layouts";

    fn check(&mut self, case: &LayoutClaimCase, tally: &mut Tally) -> Outcome {
        let array = match case.layout.build() {
            Ok(array) => array,
            Err(why) => return Outcome::Invalid(why),
        };
        let Some(cells) = Cells::of(&array) else { return Outcome::Undecided("a layout too large to be tried".into()) };
        if let Some(wrong) = check_positions(case, &array, &cells) {
            return wrong;
        }
        tally.count("positions compared", cells.labels.len() as u64);
        let Some(claim) = claim_of(&array, case.twin) else {
            return Outcome::Undecided("nothing to claim of the layout".to_owned());
        };
        let Some(facts) = Facts::of(&claim, &cells) else {
            return Outcome::Undecided("a claim that cannot be tried".to_owned());
        };
        let stated = LayoutClaim::new(&claim.layout, &claim.tiled, &claim.shape, &claim.flat, &claim.slots);
        let stated = LayoutClaim { inverse: claim.inverse.as_ref(), ..stated };
        let mut found = Vec::new();
        for report in self.judge.check_layout(&stated) {
            match facts.holds(report.obligation) {
                Some(holds) => found.extend(compare_verdict(case, "", &report, holds, tally)),
                None => tally.count("claims too large to be tried", 1),
            }
        }
        found.extend(self.check_pair(case, &array, &cells, tally));
        // A failure is reported in preference to an open obligation.
        let failed = found.iter().position(|outcome| matches!(outcome, Outcome::Failed(_)));
        found.into_iter().nth(failed.unwrap_or(0)).unwrap_or(Outcome::Held)
    }
}
