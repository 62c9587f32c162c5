//! Programs: recipes from which functions are built.
//!
//! - [`recipe`] is the data; `draw` draws it from bytes, `simpler` makes it smaller, `features` says what is in it.
//! - `build` makes a function of a recipe. It never fails: an index that would leave its tensor starts again, a type that
//!   lacks an operator takes another.

mod build;
mod draw;
mod features;
pub mod recipe;
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
    /// As it was generated.
    Recipe(Recipe),
    /// As TVMScript, such as in a file that somebody wrote: exactly this program, whatever the generator becomes.
    Tvmscript {
        /// One function.
        text: String,
        /// Seed of the input values.
        seed: u64,
        /// Values of the symbols.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        symbols: BTreeMap<String, i128>,
    },
}

/// A program ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The function; it validates.
    pub func: PrimFunc,
    /// Seed of the input values.
    pub seed: u64,
    /// Values of the symbols.
    pub symbols: Bindings,
}

impl ProgramCase {
    /// A program without symbols, as text.
    pub fn tvmscript(text: impl Into<String>, seed: u64) -> Self {
        Self::Tvmscript { text: text.into(), seed, symbols: BTreeMap::new() }
    }

    /// Seed of the input values.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Recipe(recipe) => recipe.seed,
            Self::Tvmscript { seed, .. } => *seed,
        }
    }

    /// The program.
    ///
    /// # Errors
    /// It does not validate, or the text cannot be read: in a sentence.
    pub fn build(&self) -> Result<Program, String> {
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
            Ok(_) => Ok(Program { func, seed: self.seed(), symbols }),
            Err(found) => Err(found.first().map_or_else(|| "not valid".to_owned(), ToString::to_string)),
        }
    }
}

/// Drawn within the default ranges.
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
            Self::Recipe(recipe) => features::of(recipe),
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
