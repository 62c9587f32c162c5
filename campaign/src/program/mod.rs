//! Programs as cases: recipes from which functions are built, or texts.
//!
//! - [`recipe`] is the data; `draw` draws it from bytes, `simpler` reduces it, `features` lists its
//!   features.
//! - `build` builds a function from a recipe. It never fails: an index that would leave its tensor
//!   wraps around, and an operator that a type lacks is replaced by another one.
//!
//! A recipe with one input of shape `[3, 5]`, padded and split, and one stage that sums neighbours:
//!
//! ```text
//! inputs  [{dtype: float32, shape: [3, 5], layout: ops [pad 0 0 1, split 1 4]}]
//! stages  [{target: {dtype: float32, shape: [3, 5]},
//!           value: add (read 0 at [axis 0, axis 1]) (read 0 at [axis 0, axis 1 + 1, edge wrap]),
//!           loops: [{kind: parallel}, {split: 4}]}]
//!
//! for i0 in T.parallel(3):
//!     for i1o in range(2):
//!         for i1i in range(4):
//!             if i1o * 4 + i1i < 5:
//!                 B[i0, i1o * 4 + i1i] = A[i0, i1o * 4 + i1i] + A[i0, (i1o * 4 + i1i + 1) % 5]
//! ```
//!
//! The layout becomes an entry of `layout_transform_map`, which the passes apply; the text above is the program before
//! them. Leaving out the split removes a loop and the condition, and leaves the rest as it is.

mod asked;
mod build;
mod draw;
mod features;
pub mod recipe;
pub mod shared;
mod simpler;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use serde::{Deserialize, Serialize};
use tilewright_ir::{Bindings, Module, PrimFunc, Var};

use super::case::Case;
use super::config::Config;

pub use recipe::Recipe;

/// A program, as a recipe or as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramCase {
    /// As generated.
    Recipe(Recipe),
    /// As TVMScript, as in a file written by hand: exactly this program, however the generator
    /// changes.
    Tvmscript {
        /// The text of one function.
        text: String,
        /// The seed of the input values.
        seed: u64,
        /// The values of the symbolic extents, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        symbols: BTreeMap<String, i128>,
    },
}

/// A program that is ready to run.
#[derive(Clone, Debug)]
pub struct BuiltProgram {
    /// The function, which validates.
    pub func: PrimFunc,
    /// The seed of the input values.
    pub seed: u64,
    /// The values of the symbolic extents.
    pub symbols: Bindings,
}

impl ProgramCase {
    /// A program given as text, without symbolic extents.
    pub fn tvmscript(text: impl Into<String>, seed: u64) -> Self {
        Self::Tvmscript { text: text.into(), seed, symbols: BTreeMap::new() }
    }

    /// The seed of the input values.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Recipe(recipe) => recipe.seed,
            Self::Tvmscript { seed, .. } => *seed,
        }
    }

    /// Builds the function, or reads it.
    ///
    /// # Errors
    /// The function does not validate, or the text cannot be read; as a sentence.
    pub fn build(&self) -> Result<BuiltProgram, String> {
        let (func, symbols) = match self {
            Self::Recipe(recipe) => build::func(recipe),
            Self::Tvmscript { text, symbols, .. } => {
                let module = tilewright_script::read_module(text);
                let module = module.map_err(|found| found.first().map_or(String::new(), ToString::to_string))?;
                let func = module.funcs.into_iter().next().ok_or("no function")?;
                let value = |var: Var| symbols.get(var.name()).map(|&value| (var, value));
                let symbols = func.symbols().into_iter().filter_map(value).collect();
                (func, symbols)
            }
        };
        match tilewright_ir::validate(&func) {
            Ok(_) => Ok(BuiltProgram { func, seed: self.seed(), symbols }),
            Err(found) => Err(found.first().map_or_else(|| "not valid".to_owned(), ToString::to_string)),
        }
    }
}

/// Draws within the default ranges.
impl<'a> Arbitrary<'a> for ProgramCase {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Self::draw(u, &Config::default())
    }
}

impl Case for ProgramCase {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        Ok(Self::Recipe(draw::recipe(u, config)?))
    }

    fn simpler(&self) -> Vec<Self> {
        let Self::Recipe(recipe) = self else { return Vec::new() };
        simpler::simpler(recipe).into_iter().map(Self::Recipe).collect()
    }

    fn features(&self) -> Vec<String> {
        match self {
            Self::Recipe(recipe) => features::features(recipe),
            Self::Tvmscript { .. } => Vec::new(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Tvmscript { text, .. } => text.clone(),
            Self::Recipe(_) => match self.build() {
                Ok(program) => tilewright_script::print_module(&Module { funcs: vec![program.func] }),
                Err(why) => format!("{self:?}: {why}"),
            },
        }
    }

    fn pinned(&self) -> Option<Self> {
        let Self::Recipe(recipe) = self else { return None };
        let built = self.build().ok()?;
        let symbols = built.symbols.iter().map(|(var, value)| (var.name().to_owned(), *value)).collect();
        Some(Self::Tvmscript { text: self.text(), seed: recipe.seed, symbols })
    }
}
