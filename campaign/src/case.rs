//! What a case is: plain data, drawn from bytes, that can be made simpler and written to a file.

use std::fmt::Debug;

use arbitrary::Unstructured;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::config::Config;

/// Plain data from which what an oracle looks at is built.
///
/// A case is a recipe and not the thing itself, so that making it smaller is deleting operations and shrinking numbers.
pub trait Case: Clone + Debug + PartialEq + Send + Serialize + DeserializeOwned + 'static {
    /// Draws a case. Bytes that are missing count as zeros, so every byte string is a case.
    ///
    /// # Errors
    /// What `arbitrary` says; not for want of bytes.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self>;

    /// Simpler cases, the boldest first: without an operation, then with smaller extents. Each is strictly smaller in some
    /// order without infinite descent, so that reduction ends.
    fn simpler(&self) -> Vec<Self>;

    /// What is in it, for the table of coverage: `op:split`, `kind:window`, `dtype:float16`. Each at most once.
    fn features(&self) -> Vec<String>;

    /// The case as people read it: TVMScript, a lambda with its shape, an XLA string.
    fn text(&self) -> String;

    /// The same case in a form that does not depend on the generator, where there is one: the program's text in place of its
    /// recipe. Findings are written in that form where it fails in the same way, so that they mean the same for ever.
    fn pinned(&self) -> Option<Self> {
        None
    }
}

/// Cases of another kind that are drawn in a way of their own, and otherwise the same.
pub trait Redrawn: Clone + Debug + PartialEq + Send + Serialize + DeserializeOwned + From<Self::Of> + 'static {
    /// The other kind.
    type Of: Case;

    /// Draws one.
    ///
    /// # Errors
    /// As [`Case::draw`].
    fn redraw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self::Of>;

    /// The case as one of the other kind.
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

/// Lists with one item left out, the last first.
pub fn without_one<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    (0..items.len()).rev().map(|at| [&items[..at], &items[at + 1..]].concat()).collect()
}

/// Smaller numbers to try in place of an extent: the smallest first.
pub fn smaller(extent: i64) -> Vec<i64> {
    let mut found: Vec<i64> =
        [1, 2, 3, extent / 2, extent - 1].into_iter().filter(|&less| less >= 1 && less < extent).collect();
    found.sort_unstable();
    found.dedup();
    found
}
