//! Pairs of small programs, one of which is the other one restructured or changed: what a judge of pairs must not prove
//! or must not refute.
//!
//! - [`recipe`] is the data, `draw` draws it; a pair has a theme, which is a kind of mistake that a judge could make.
//! - `build` builds the program before, in the form of `nest`; `rewrite` has the changes that never change what a
//!   program computes, `change` the others, `storage` those of where values are kept,
//!   `vectors` those that make vectors of iterations, `asserts` those of what a call has to fulfil.
//!
//! ```text
//! base    a nest of two loops that stores A[o, i] to B[o, i], guarded by `k > 0`, `B` at the offset m
//! twists  [split at the inner loop, by 3; drop_guard]
//!
//! before:  for o in range(2):                     after:  for o in range(2):
//!              for i in range(7):                             for ih in range(3):
//!                  if k > 0:                                      for il in range(3):
//!                      B[o, i] = A[o, i]                              if ih * 3 + il < 7:
//!                                                                         B[o, ih * 3 + il] = A[o, ih * 3 + il]
//! ```
//!
//! The truth is not in the recipe: only equal forms are known to be equal, everything else is executed. Programs too large
//! to run, and programs whose premises no input fulfils, are executed without the sizes and the premises.

mod asserts;
mod build;
mod change;
mod draw;
mod nest;
pub mod recipe;
mod rewrite;
mod simpler;
mod storage;
pub mod twist;
mod vectors;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};

use self::nest::Function;
use self::recipe::{Base, How, Premise, Recipe, Rows, Twist, Value, View};
use crate::case::Case;
use crate::config::Config;

/// A pair, as a recipe or as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairCase {
    /// As generated.
    Recipe(Recipe),
    /// As TVMScript.
    Tvmscript(PairTexts),
}

/// A pair of programs as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairTexts {
    /// The program before.
    pub before: String,
    /// The program after.
    pub after: String,
    /// What is known without running them.
    pub known: Known,
    /// The pair that is executed in place of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<[String; 2]>,
    /// Whether the executed pair has other sizes, so that its accesses say nothing about those of this pair.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_resized: bool,
    /// The seed of the input values.
    pub seed: u64,
}

/// Whether a flag is not set, for serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What is known about a pair without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The programs compute the same.
    Equal,
    /// The programs differ: they ask for other layouts.
    Different,
    /// Nothing: runs decide.
    Nothing,
}

impl PairCase {
    /// Both programs as text, with what is known about them.
    pub fn texts(&self) -> PairTexts {
        match self {
            Self::Tvmscript(texts) => texts.clone(),
            Self::Recipe(recipe) => texts(recipe),
        }
    }

    /// What the pair is about: a letter of `tests/judge_classes.rs`, `equal` or `mistake`.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Recipe(recipe) => class(recipe),
            Self::Tvmscript(_) => "text",
        }
    }
}

/// The programs of a recipe.
fn texts(recipe: &Recipe) -> PairTexts {
    let [before, after] = functions(recipe, &recipe.base).map(|function| function.text());
    let asked: Vec<_> = recipe
        .twists
        .iter()
        .filter_map(|twist| if let How::Ask(other) = twist.how { Some(other) } else { None })
        .collect();
    let known = if asked.last().is_some_and(|last| *last != recipe.base.request) {
        Known::Different
    } else if recipe.twists.iter().all(|twist| twist.how.is_equal()) {
        Known::Equal
    } else {
        Known::Nothing
    };
    let is_hopeless =
        |premise| matches!(premise, Premise::Oversized | Premise::WithoutValue | Premise::Contradictory(_));
    let is_resized = recipe.base.huge.is_some();
    let executed = (is_resized || recipe.base.premise.is_some_and(is_hopeless)).then(|| {
        let premise = recipe.base.premise.filter(|premise| !is_hopeless(*premise));
        let base = Base { huge: None, premise, ..recipe.base.clone() };
        functions(recipe, &base).map(|function| function.text())
    });
    PairTexts { before, after, known, executed, is_resized, seed: recipe.seed }
}

/// The functions of a recipe with another base.
fn functions(recipe: &Recipe, base: &Base) -> [Function; 2] {
    let mut changed = base.clone();
    let rest: Vec<Twist> =
        recipe.twists.iter().copied().filter(|twist| !change::in_base(&mut changed, twist.how)).collect();
    let both = |mut function: Function, base: &Base, first: &[Twist]| {
        for twist in first.iter().chain(&recipe.both) {
            if twist.how.is_equal() {
                rewrite::apply(&mut function, base, *twist);
            } else {
                change::apply(&mut function, base, *twist);
            }
        }
        function
    };
    [both(build::function(base), base, &[]), both(build::function(&changed), &changed, &rest)]
}

/// The class of a recipe, by its least usual part.
fn class(recipe: &Recipe) -> &'static str {
    let has = |wanted: fn(&How) -> bool| recipe.twists.iter().any(|twist| wanted(&twist.how));
    let base = &recipe.base;
    if base.premise.is_some() {
        "d"
    } else if base.value == Value::Texture {
        "e"
    } else if has(|how| matches!(how, How::Ask(_))) {
        "f"
    } else if has(|how| matches!(how, How::PermuteScalars)) {
        "c"
    } else if has(|how| matches!(how, How::RegroupFloats | How::Backwards)) {
        "h"
    } else if matches!(base.view, View::SymbolicOffset | View::SymbolicShape | View::SymbolicStride)
        || matches!(base.rows, Rows::Scalar | Rows::Stated)
    {
        "b"
    } else if matches!(base.view, View::Strides(..) | View::Declared(..)) {
        "g"
    } else if recipe.twists.iter().all(|twist| twist.how.is_equal()) {
        "a or equal"
    } else {
        "mistake"
    }
}

impl Case for PairCase {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        Ok(Self::Recipe(draw::recipe(u)?))
    }

    fn simpler(&self) -> Vec<Self> {
        let Self::Recipe(recipe) = self else { return Vec::new() };
        simpler::simpler(recipe).into_iter().map(Self::Recipe).collect()
    }

    fn features(&self) -> Vec<String> {
        let Self::Recipe(recipe) = self else { return Vec::new() };
        let mut features = vec![format!("class:{}", class(recipe))];
        for twist in &recipe.twists {
            let how = format!("{:?}", twist.how);
            let feature = format!("twist:{}", how.split('(').next().unwrap_or_default());
            if !features.contains(&feature) {
                features.push(feature);
            }
        }
        features
    }

    fn text(&self) -> String {
        let PairTexts { before, after, .. } = self.texts();
        format!("before:\n{before}\nafter:\n{after}")
    }

    fn pinned(&self) -> Option<Self> {
        matches!(self, Self::Recipe(_)).then(|| Self::Tvmscript(self.texts()))
    }
}

#[cfg(test)]
mod tests;
