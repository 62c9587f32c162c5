//! Index maps as cases: sequences of layout operations on a shape, which are reduced by leaving out
//! operations, or texts.
//!
//! ```text
//! shape [3, 7]            x0, x1             extents 3, 7
//! split 1 4               x0, x1//4, x1%4    extents 3, 2, 4     (rounded up: one element of padding in each row)
//! swap 0                  x1//4, x0, x1%4    extents 2, 3, 4
//! pad 1 0 1               x1//4, x0, x1%4    extents 2, 4, 4
//!
//! lambda x0, x1: [x1 // 4, x0, x1 % 4]       logical [3, 7], physical [2, 4, 4]
//! ```
//!
//! - [`op`] defines the operations and the mistakes, [`MapRecipe`] lists them.
//! - [`restriction`] draws predicates that leave out indices.
//! - [`table`] evaluates expressions at all points of a box, [`truth`] decides every obligation by that.

mod axes;
pub mod op;
mod recipe;
pub mod restriction;
pub mod table;
pub mod truth;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Expr, IndexMap};
use tilewright_script::{Symbols, read_index_map, read_shape};

use super::case::Case;
use super::config::Config;
use super::extents::percent;

pub use axes::Generated;
pub use op::Op;
pub use recipe::MapRecipe;
pub use restriction::Restriction;

/// An index map with the physical shape that is claimed for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapCase {
    /// As generated.
    Recipe(MapRecipe),
    /// As text, as in a file written by hand: exactly this map, however the generator changes.
    Lambda {
        /// The map: `lambda n, c: [n, c // 4, c % 4]`.
        text: String,
        /// The logical shape: `n,17`.
        shape: String,
        /// The physical shape: `n,5,4`.
        physical: String,
    },
}

impl MapCase {
    /// The map and the claimed physical shape.
    ///
    /// # Errors
    /// The text cannot be read; as a sentence.
    pub fn build(&self) -> Result<Generated, String> {
        match self {
            Self::Recipe(recipe) => recipe.build().ok_or_else(|| "the operations make no map".to_owned()),
            Self::Lambda { text, shape, physical } => read(text, shape, physical)
                .map_err(|found| found.first().map_or_else(|| "no map".to_owned(), ToString::to_string)),
        }
    }

    /// The same map as text, if it can be built.
    #[must_use]
    pub fn pinned(&self) -> Option<Self> {
        let Generated { map, shape, .. } = self.build().ok()?;
        Some(Self::Lambda { text: map.to_string(), shape: listed(map.domain()), physical: listed(&shape) })
    }
}

/// Reads the three texts of a lambda; they share their symbols.
fn read(text: &str, shape: &str, physical: &str) -> Result<Generated, Vec<tilewright_ir::Diagnostic>> {
    let mut symbols = Symbols::default();
    let domain = read_shape(shape, &mut symbols)?;
    let map = read_index_map(text, Some(&domain), &mut symbols)?;
    let shape = read_shape(physical, &mut symbols)?;
    Ok(Generated { map, shape, symbols: symbols.vars().to_vec() })
}

/// Extents as a list separated by commas.
pub(crate) fn listed(extents: &[Expr]) -> String {
    let extents: Vec<String> = extents.iter().map(Expr::to_string).collect();
    extents.join(", ")
}

impl Case for MapCase {
    /// Draws a recipe; then, with the probabilities of [`MapRanges`](crate::config::MapRanges),
    /// inserts one mistake and makes about half of the extents symbolic.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let mut recipe = MapRecipe::draw(u, config)?;
        if percent(u, config.maps.mistake_percent)? {
            let at = u.int_in_range(0..=recipe.ops.len())?;
            recipe.ops.insert(at, Op::draw_mistake(u, config)?);
        }
        if percent(u, config.maps.symbolic_percent)? {
            for axis in 0..recipe.shape.len() {
                if u.arbitrary()? {
                    recipe.symbolic.push(axis);
                }
            }
        }
        Ok(Self::Recipe(recipe))
    }

    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Recipe(recipe) => recipe.simpler().into_iter().map(Self::Recipe).collect(),
            Self::Lambda { .. } => Vec::new(),
        }
    }

    fn features(&self) -> Vec<String> {
        match self {
            Self::Recipe(recipe) => recipe.features(),
            Self::Lambda { .. } => vec!["text".to_owned()],
        }
    }

    fn text(&self) -> String {
        match self.build() {
            Ok(Generated { map, shape, .. }) => {
                format!("{map} on [{}] into [{}]", listed(map.domain()), listed(&shape))
            }
            Err(why) => format!("{self:?}: {why}"),
        }
    }
}

/// The extents of a map's domain, if all of them are constants.
pub fn domain(map: &IndexMap) -> Option<Vec<i128>> {
    map.domain().iter().map(Expr::as_const_int).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    fn drawn(number: u64) -> MapCase {
        MapCase::draw(&mut Unstructured::new(&bytes::of_case(3, "map", number)), &Config::default()).unwrap()
    }

    #[test]
    fn every_case_builds_and_is_the_same_map_as_text() {
        for number in 0..1000 {
            let case = drawn(number);
            let built = case.build().unwrap();
            let again = case.pinned().unwrap();
            let read = again.build().unwrap_or_else(|why| panic!("{}: {why}", case.text()));
            assert_eq!((built.map.to_string(), case.text()), (read.map.to_string(), again.text()));
        }
    }

    #[test]
    fn no_bytes_make_a_map_too() {
        assert!(MapCase::draw(&mut Unstructured::new(&[]), &Config::default()).unwrap().build().is_ok());
    }

    #[test]
    fn simpler_cases_build_and_reduction_ends() {
        for number in 0..200 {
            let (mut case, mut steps) = (drawn(number), 0);
            while let Some(simpler) = case.simpler().pop() {
                assert!(simpler.build().is_ok(), "{simpler:?}");
                (case, steps) = (simpler, steps + 1);
                assert!(steps < 10_000, "{case:?}");
            }
        }
    }
}
