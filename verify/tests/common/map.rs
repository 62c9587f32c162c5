//! Index maps as text, and what is claimed of them.

use tilewright_ir::{Expr, IndexMap, InverseClaim};
use tilewright_script::{Symbols, read_condition, read_index_map, read_predicate, read_shape};
use tilewright_verify::MapClaim;

/// A map and the shape that it is said to fill. Names that are no indices are symbolic extents.
pub(crate) struct Mapped {
    pub(crate) map: IndexMap,
    pub(crate) shape: Vec<Expr>,
    symbols: Symbols,
}

impl Mapped {
    /// The map of a lambda over the indices of `domain`, into `shape`; both are written as `2, n, 7`.
    #[track_caller]
    pub(crate) fn new(lambda: &str, domain: &str, shape: &str) -> Self {
        let mut symbols = Symbols::default();
        let domain = read_shape(domain, &mut symbols).unwrap();
        let map = read_index_map(lambda, Some(&domain), &mut symbols).unwrap();
        let shape = read_shape(shape, &mut symbols).unwrap();
        Self { map, shape, symbols }
    }

    pub(crate) fn claim(&self) -> MapClaim<'_> {
        MapClaim::new(&self.map, &self.shape)
    }

    /// The inverse by two lambdas over the indices of the shape: where an element comes from, and whether it is padding.
    #[track_caller]
    pub(crate) fn inverse(&self, lambda: &str, padding: &str) -> InverseClaim {
        let mut symbols = self.symbols.clone();
        let back = read_index_map(lambda, Some(&self.shape), &mut symbols).unwrap();
        let (vars, padding) = read_predicate(padding, &self.shape, &mut symbols).unwrap();
        let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
        InverseClaim { outputs: back.apply(&index), vars, padding }
    }

    /// A condition on the symbolic extents.
    #[track_caller]
    pub(crate) fn condition(&self, text: &str) -> Expr {
        read_condition(text, &mut self.symbols.clone()).unwrap()
    }
}
