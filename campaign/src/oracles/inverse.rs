//! Round trips: a map and its inverse at every point, tensors that are packed and unpacked, and
//! relayouts from one layout to another and back.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_interp::Tensor;
use tilewright_ir::{Bindings, IndexMap, InverseClaim, Scalar, ScalarType};

use crate::case::Case;
use crate::config::Config;
use crate::layout::{Cells, LayoutCase, LayoutRecipe};
use crate::map::table::Table;
use crate::map::truth::{MAX_POINTS, Truth, numbers};
use crate::map::{Generated, MapCase, MapRecipe};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use tilewright_algebra as algebra;
use tilewright_algebra::layouts;
use tilewright_compiler::harness::layout::{pack, unpack};

/// A case: something that can be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reversible {
    /// A map that is injective and whose images lie in its shape.
    Map(MapCase),
    /// Two layouts of the same array.
    Layouts(LayoutCase, LayoutCase),
}

impl Case for Reversible {
    /// Draws two layouts of one shape in one case out of five, otherwise a map without mistakes.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        if u.ratio(1, 5)? {
            let from = LayoutRecipe::draw(u, config)?;
            let mut to = LayoutRecipe::draw(u, config)?;
            to.extents.clone_from(&from.extents);
            (to.element, to.bits) = (from.element, from.bits);
            return Ok(Self::Layouts(LayoutCase::Recipe(from), LayoutCase::Recipe(to)));
        }
        Ok(Self::Map(MapCase::Recipe(MapRecipe::draw(u, config)?)))
    }

    /// Simplifies the map, or both layouts, which keep equal extents.
    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Map(map) => map.simpler().into_iter().map(Self::Map).collect(),
            Self::Layouts(from, to) => {
                let extents = |case: &LayoutCase| match case {
                    LayoutCase::Recipe(recipe) => Some(recipe.extents.clone()),
                    LayoutCase::Text(_) => None,
                };
                let with = |case: &LayoutCase, extents: Option<Vec<i64>>| match (case, extents) {
                    (LayoutCase::Recipe(recipe), Some(extents)) => {
                        LayoutCase::Recipe(LayoutRecipe { extents, ..recipe.clone() })
                    }
                    (case, _) => case.clone(),
                };
                let left = from.simpler().into_iter().map(|from| Self::Layouts(from.clone(), with(to, extents(&from))));
                let same = |simpler: &LayoutCase| extents(simpler) == extents(to);
                let right = to.simpler().into_iter().filter(same).map(|to| Self::Layouts(from.clone(), to));
                left.chain(right).collect()
            }
        }
    }

    fn features(&self) -> Vec<String> {
        match self {
            Self::Map(map) => map.features(),
            Self::Layouts(..) => vec!["kind:two layouts".to_owned()],
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Map(map) => map.text(),
            Self::Layouts(from, to) => format!("{} and {}", from.text(), to.text()),
        }
    }
}

/// The oracle `inverse`; see the module.
#[derive(Debug, Default)]
pub struct Inverse;

impl Inverse {
    /// Creates the oracle.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

/// Evaluates a claimed inverse at every point and describes its mistake; `None` if it is right.
fn inverse_error(truth: &Truth, map: &IndexMap, claim: &InverseClaim) -> Option<&'static str> {
    match truth.of_inverse(map, claim) {
        Some([true, true]) => None,
        Some([false, _]) => Some("an inverse does not lead back"),
        Some([true, false]) => Some("a padding predicate is not exact"),
        None => Some("an inverse has no value somewhere"),
    }
}

/// Packs a tensor and unpacks it. In the packed tensor each element has to be where the map says,
/// and nothing else may be defined; the unpacked tensor has to equal the original one.
fn check_packing(built: &Generated, truth: &Truth) -> Result<(), &'static str> {
    let none = Bindings::new();
    let shapes = (numbers(built.map.domain(), &none), numbers(&built.shape, &none));
    let (Some(logical), Some(physical)) = shapes else { return Err("a shape has no value") };
    let shape = |extents: Vec<i64>| extents.into_iter().map(i64::unsigned_abs).collect::<Vec<u64>>();
    let (logical, physical) = (shape(logical), shape(physical));
    let number = |at: usize| Scalar::Int(i128::try_from(at).unwrap_or(0) + 1);
    let tensor = Tensor::from_fn(ScalarType::Int32, &logical, number).map_err(|_| "a tensor cannot be made")?;
    let there = pack(&tensor, &built.map, &physical, &none, None).map_err(|_| "a tensor cannot be packed")?;
    let places = truth.places();
    let right = places
        .iter()
        .enumerate()
        .all(|(at, place)| place.and_then(|place| there.get(place)).is_some_and(|value| value.same(number(at))));
    let defined = there.defined().iter().filter(|defined| **defined).count();
    if !right || defined != places.len() {
        return Err("a packed tensor is not where the map says");
    }
    let back = unpack(&there, &built.map, &logical, &none).map_err(|_| "a tensor cannot be unpacked")?;
    if back.bytes() == tensor.bytes() && back.has_same_flags(&tensor) {
        Ok(())
    } else {
        Err("a tensor does not come back")
    }
}

/// Checks a map: packing and unpacking, then the inverse that the algebra finds.
fn check_map(case: &MapCase, tally: &mut Tally) -> Outcome {
    let built = match case.build() {
        Ok(built) => built,
        Err(why) => return Outcome::Invalid(why),
    };
    if !built.symbols.is_empty() {
        return Outcome::Undecided("a symbolic map".to_owned());
    }
    let Some(truth) = Truth::of(&built.map, &built.shape, &Bindings::new()) else {
        return Outcome::Undecided("a map too large to be tried".to_owned());
    };
    if !truth.bounds || !truth.injective || !truth.fits {
        let what = "an operation that is no mistake breaks a map";
        return if matches!(case, MapCase::Recipe(recipe) if recipe.is_sound()) {
            Failure::outcome(what, case.text())
        } else {
            Outcome::Invalid("no injective map".to_owned())
        };
    }
    let physical = numbers(&built.shape, &Bindings::new());
    // Padding can make the physical shape much larger than the domain.
    let small = physical.is_some_and(|shape| crate::map::table::n_points(&shape, MAX_POINTS).is_some());
    if !small {
        return Outcome::Undecided("a physical shape too large to be tried".to_owned());
    }
    if let Err(what) = check_packing(&built, &truth) {
        return Failure::outcome(what, case.text());
    }
    tally.count("elements packed and unpacked", truth.n_points() as u64);
    let Ok(claim) = algebra::inverse(&built.map, &built.shape, &[]) else {
        return Outcome::Undecided("no inverse was found".to_owned());
    };
    tally.count("inverses compared", 1);
    if let Some(what) = inverse_error(&truth, &built.map, &claim) {
        let detail = format!("{}: {}, padding {}", case.text(), claim.lambda(), claim.padding_lambda());
        return Failure::outcome(what, detail);
    }
    Outcome::Held
}

/// Checks two layouts: a relayout followed by the relayout back is the identity on all slots of
/// elements, and the padding predicate of the first is exact.
fn check_layouts(from: &LayoutCase, to: &LayoutCase, tally: &mut Tally) -> Outcome {
    let (from, to) = match (from.build(), to.build()) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(why), _) | (_, Err(why)) => return Outcome::Invalid(why),
    };
    let (Some(cells), Some(_)) = (Cells::of(&from), Cells::of(&to)) else {
        return Outcome::Undecided("a layout too large to be tried".to_owned());
    };
    let relayout = |from, to| layouts::pair(from, to, None).and_then(|pair| layouts::relayout(from, to, &pair));
    let (there, back) = match (relayout(&from, &to), relayout(&to, &from)) {
        (Ok(there), Ok(back)) => (there, back),
        (Err(why), _) | (_, Err(why)) => return Failure::outcome("there is no way from one layout to the other", why),
    };
    let slots: Vec<i64> = cells.slots().into_iter().filter_map(|slot| i64::try_from(slot).ok()).collect();
    let none = Bindings::new();
    let along = |map: &IndexMap, slots: Vec<i64>| {
        Table::of_columns(map.vars(), vec![slots], &none).eval(map.outputs().first()?)
    };
    // The simplified maps and those from which they were made are checked apart, so that a mistake of the
    // simplification cannot hide one of the construction.
    for (there, back) in [(&there.map, &back.map), (&there.unsimplified, &back.unsimplified)] {
        let again = along(there, slots.clone()).and_then(|moved| along(back, moved));
        if again.as_ref() != Some(&slots) {
            return Failure::outcome("a relayout and the one back are not the identity", format!("{there}; {back}"));
        }
    }
    let is_padding =
        Table::of_box(&there.inverse.vars, &[i64::try_from(cells.labels.len()).unwrap_or(0)], &none, MAX_POINTS)
            .and_then(|slots| slots.eval(&there.inverse.padding));
    let exact = is_padding.is_some_and(|found| {
        found.iter().zip(&cells.labels).all(|(is_padding, label)| (*is_padding != 0) == label.is_none())
    });
    if !exact {
        return Failure::outcome("the padding of a layout is not exact", there.inverse.padding_lambda());
    }
    tally.count("slots there and back", slots.len() as u64);
    Outcome::Held
}

impl Oracle for Inverse {
    type Case = Reversible;

    const NAME: &'static str = "inverse";

    fn check(&mut self, case: &Reversible, tally: &mut Tally) -> Outcome {
        match case {
            Reversible::Map(case) => check_map(case, tally),
            Reversible::Layouts(from, to) => check_layouts(from, to, tally),
        }
    }
}
