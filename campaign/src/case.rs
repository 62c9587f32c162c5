//! Test cases: plain data that is drawn from bytes, reduced when it fails, and written to files.

use std::fmt::Debug;

use arbitrary::Unstructured;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::config::Config;

/// Plain data from which an oracle builds the object it checks.
///
/// A case is a recipe and not the object itself, so that it can be reduced by deleting operations
/// and shrinking numbers.
pub trait Case: Clone + Debug + PartialEq + Send + Serialize + DeserializeOwned + 'static {
    /// Draws a case. Missing bytes count as zeros, so every byte string is a case.
    ///
    /// The same bytes have to give the same case in every version: the corpus in `fuzz/corpus` and
    /// the numbers in reports refer to them.
    ///
    /// # Errors
    /// Those of `arbitrary`; never because there are too few bytes.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self>;

    /// Simpler cases, the most simplified first: without an operation, then with smaller extents.
    /// Each is strictly smaller in some well-founded order, so that reduction terminates.
    fn simpler(&self) -> Vec<Self>;

    /// The features of the case for the coverage table, each at most once: `op:split`,
    /// `kind:window`, `dtype:float16`.
    fn features(&self) -> Vec<String>;

    /// The case in readable form: TVMScript, a lambda with its shape, an XLA string.
    fn text(&self) -> String;

    /// The same case in a form that does not depend on the generator, if there is one: the text of
    /// a program in place of its recipe. Findings are stored in that form if it fails in the same
    /// way, so that they keep their meaning when the generator changes.
    fn pinned(&self) -> Option<Self> {
        None
    }
}

/// A case type that wraps another one and differs from it only in the distribution it is drawn
/// from.
pub trait Redrawn: Clone + Debug + PartialEq + Send + Serialize + DeserializeOwned + From<Self::Of> + 'static {
    /// The wrapped case type.
    type Of: Case;

    /// Draws a wrapped case.
    ///
    /// # Errors
    /// As [`Case::draw`].
    fn redraw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self::Of>;

    /// The wrapped case.
    fn inner(&self) -> &Self::Of;
}

impl<T: Redrawn> Case for T {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        T::redraw(u, config).map(T::from)
    }

    fn simpler(&self) -> Vec<Self> {
        self.inner().simpler().into_iter().map(T::from).collect()
    }

    fn features(&self) -> Vec<String> {
        self.inner().features()
    }

    fn text(&self) -> String {
        self.inner().text()
    }

    fn pinned(&self) -> Option<Self> {
        self.inner().pinned().map(T::from)
    }
}

/// The list without one item, for each item; the last item is left out first.
pub fn without_one<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    (0..items.len()).rev().map(|at| [&items[..at], &items[at + 1..]].concat()).collect()
}

/// Smaller candidates for an extent, in increasing order: 1, 2, 3, half of it, one less.
pub fn smaller(extent: i64) -> Vec<i64> {
    let mut found: Vec<i64> =
        [1, 2, 3, extent / 2, extent - 1].into_iter().filter(|&less| less >= 1 && less < extent).collect();
    found.sort_unstable();
    found.dedup();
    found
}
