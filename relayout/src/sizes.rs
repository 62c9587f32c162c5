//! How the numbers of a strategy are written in its program, for extents that are known or symbolic.
//!
//! ```text
//! shape (n, h, 7), strategy chosen at (263, 269, 7):
//!
//!   a loop of 263 over all of axis 0                 for i0 in n
//!   a loop of 33 over blocks of 8 of axis 0          for i0_8 in (n + 7) // 8, with the bound i0_8 * 8 + i0 < n
//!   a step of 1883 in A's flat memory                h * 7
//! ```
//!
//! A strategy for symbolic extents is chosen at samples of them: primes, so that no block divides them and that a product shows its factors.
//! What is written is a claim, like the strategy itself: the judge compares the program with the index maps, for all extents.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Expr, IndexMap, ScalarType, Var};

use crate::digits::{Placement, Relayout};
use crate::strategy::{Bound, Fill, Loop, Strategy};

/// Samples of extents: large enough for every tile, small enough that a shape of six axes has fewer than 2^63 elements.
const SAMPLES: [u64; 12] = [263, 269, 271, 277, 281, 283, 293, 307, 311, 313, 317, 331];

/// The extents of a move as expressions, with the numbers that stand for them in a strategy.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// The type of indices.
    pub(crate) ty: ScalarType,
    /// The extent of each logical axis in the strategy, and as it is written.
    axes: Vec<(u64, Expr)>,
    /// The physical shape of A.
    pub(crate) from: Vec<Expr>,
    /// The physical shape of B.
    pub(crate) to: Vec<Expr>,
}

/// Two index maps on one logical shape, with their physical shapes, all of which may name symbols.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    /// The logical extents.
    pub extents: &'a [Expr],
    /// From a logical index to one of A, and A's shape.
    pub from: (&'a IndexMap, &'a [Expr]),
    /// From a logical index to one of B, and B's shape.
    pub to: (&'a IndexMap, &'a [Expr]),
}

impl Maps<'_> {
    /// Returns a strategy that is chosen at samples of the symbols, with the way in which its sizes are written. `None` if a size is no number
    /// at them, there are more symbols than samples, or nothing moves the elements ([`Strategy::choose`]).
    pub fn choose(&self, element_bytes: u64) -> Option<(Strategy, Sizes)> {
        let (relayout, sizes) = self.at_samples()?;
        let mut strategy = Strategy::choose(&relayout, element_bytes).ok()?;
        // Where edges begin is a number at the samples, and no expression.
        if matches!(strategy.fill, Fill::Edges(_)) && sizes.is_symbolic() && !strategy.fills_what_bounds_leave() {
            strategy.fill = Fill::Whole;
        }
        Some((strategy, sizes))
    }

    fn at_samples(&self) -> Option<(Relayout, Sizes)> {
        let mut samples = Bindings::new();
        for var in self.extents.iter().flat_map(Expr::vars) {
            let next = *SAMPLES.get(samples.len())?;
            samples.entry(var).or_insert(next.into());
        }
        let numbers = |extents: &[Expr]| -> Option<Vec<u64>> {
            extents.iter().map(|extent| u64::try_from(extent.eval_index(&samples).ok()?).ok()).collect()
        };
        let extents = numbers(self.extents)?;
        let side = |(map, shape): (&IndexMap, &[Expr])| {
            Some(Placement { shape: numbers(shape)?, map: at(map, &extents, &samples)? })
        };
        let sizes = Sizes {
            ty: index_type(self.from.0),
            axes: extents.iter().copied().zip(self.extents.iter().cloned()).collect(),
            from: self.from.1.to_vec(),
            to: self.to.1.to_vec(),
        };
        Some((Relayout { from: side(self.from)?, to: side(self.to)?, extents }, sizes))
    }
}

/// A map with numbers for symbols.
fn at(map: &IndexMap, extents: &[u64], samples: &Bindings) -> Option<IndexMap> {
    let value = |(var, value): (&Var, &i128)| Expr::Int { value: *value, ty: var.dtype().scalar };
    let (vars, values): (Vec<&Var>, Vec<Expr>) = samples.iter().map(|pair| (pair.0, value(pair))).unzip();
    let samples = Substitution::new(vars, values);
    let ty = index_type(map);
    let domain = extents.iter().map(|&extent| Expr::Int { value: extent.into(), ty }).collect();
    let outputs = map.outputs().iter().map(|output| samples.apply(output)).collect();
    IndexMap::new(map.vars().to_vec(), domain, outputs, Vec::new()).ok()
}

/// The type of the indices of a map.
fn index_type(map: &IndexMap) -> ScalarType {
    map.vars().first().map_or(ScalarType::Int32, |var| var.dtype().scalar)
}

impl Sizes {
    /// Returns the sizes of a relayout whose extents are known: each number is written as it is.
    pub fn known(relayout: &Relayout) -> Self {
        let ty = index_type(&relayout.from.map);
        let number = |&extent: &u64| Expr::Int { value: extent.into(), ty };
        Self {
            ty,
            axes: relayout.extents.iter().map(|extent| (*extent, number(extent))).collect(),
            from: relayout.from.shape.iter().map(number).collect(),
            to: relayout.to.shape.iter().map(number).collect(),
        }
    }

    /// Returns whether some extent is symbolic.
    pub fn is_symbolic(&self) -> bool {
        self.axes.iter().any(|(_, extent)| extent.as_const_int().is_none())
    }

    /// Returns the number of iterations of a loop.
    pub fn extent(&self, one: &Loop) -> Expr {
        self.blocks(one, one.weight, one.extent).unwrap_or_else(|| self.constant(one.extent))
    }

    /// Returns what one iteration of a loop adds to the position in A's memory and in B's, in elements.
    pub fn distances(&self, one: &Loop) -> (Expr, Expr) {
        let distance = |steps: &[u64], shape: &[Expr]| {
            let stride = |axis: usize| shape.iter().skip(axis + 1).cloned().reduce(|a, b| a * b);
            let term = |(axis, step): (usize, &u64)| match (step, stride(axis)) {
                (0, _) => None,
                (1, Some(stride)) => Some(stride),
                (step, None) => Some(self.step(*step)),
                (step, Some(stride)) => Some(self.step(*step) * stride),
            };
            steps.iter().enumerate().filter_map(term).reduce(|a, b| a + b).unwrap_or_else(|| self.constant(0))
        };
        (distance(&one.from, &self.from), distance(&one.to, &self.to))
    }

    /// The number that the sum of a bound stays below.
    pub(crate) fn limit(&self, bound: &Bound, loops: &[Loop]) -> Expr {
        let largest = bound.terms.iter().max_by_key(|(_, factor)| *factor);
        let blocks = largest.and_then(|&(at, factor)| {
            let one = loops.get(at)?;
            self.blocks(one, one.weight.checked_div(factor)?, bound.limit)
        });
        blocks.unwrap_or_else(|| self.constant(bound.limit))
    }

    /// A distance: a product of a number and of extents.
    pub(crate) fn step(&self, value: u64) -> Expr {
        let (mut rest, mut factors) = (value, Vec::new());
        for (sample, extent) in self.axes.iter().filter(|(_, extent)| extent.as_const_int().is_none()) {
            while rest != 0 && *sample > 1 && rest.is_multiple_of(*sample) {
                rest /= sample;
                factors.push(extent.clone());
            }
        }
        if rest != 1 || factors.is_empty() {
            factors.push(self.constant(rest));
        }
        factors.into_iter().reduce(|a, b| a * b).unwrap_or_else(|| self.constant(value))
    }

    pub(crate) fn constant(&self, value: u64) -> Expr {
        Expr::Int { value: value.into(), ty: self.ty }
    }

    /// The number of blocks of `weight` indices on the axis of a loop that counts to the end of it, if it is symbolic and `count` is what
    /// the sample has.
    fn blocks(&self, one: &Loop, weight: u64, count: u64) -> Option<Expr> {
        let (sample, extent) = self.axes.get(one.axis).filter(|(_, extent)| extent.as_const_int().is_none())?;
        let is_last = one.weight.checked_mul(one.extent)? >= *sample;
        if !is_last || weight == 0 || sample.div_ceil(weight) != count {
            return None;
        }
        Some(match weight {
            1 => extent.clone(),
            _ => (extent.clone() + self.constant(weight - 1)).floor_div(self.constant(weight)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::DataType;

    /// A map from two axes, from a function of their indices.
    fn map(extents: &[Expr], outputs: impl Fn(Expr, Expr) -> Vec<Expr>) -> IndexMap {
        let vars = ["i", "j"].map(Var::index);
        let outputs = outputs(Expr::from(&vars[0]), Expr::from(&vars[1]));
        IndexMap::new(vars.to_vec(), extents.to_vec(), outputs, Vec::new()).unwrap()
    }

    /// The strategy for rows in tiles of 8 x 16, and its loops: the extent, what an iteration adds in A's memory, and what in B's.
    fn tiled(extents: &[Expr; 2]) -> (Strategy, Vec<String>) {
        let n = Expr::int;
        let tiles = |extent: &Expr, size: i64| (extent.clone() + n(size - 1)).floor_div(n(size));
        let from = map(extents, |i, j| vec![i, j]);
        let to = map(extents, |i, j| {
            vec![i.clone().floor_div(n(8)), j.clone().floor_div(n(16)), i.floor_mod(n(8)), j.floor_mod(n(16))]
        });
        let shape = [tiles(&extents[0], 8), tiles(&extents[1], 16), n(8), n(16)];
        let maps = Maps { extents, from: (&from, extents), to: (&to, &shape) };
        let (strategy, sizes) = maps.choose(4).unwrap();
        let text = |one: &Loop| {
            let (source, target) = sizes.distances(one);
            [sizes.extent(one), source, target].map(|size| size.to_string()).join("; ")
        };
        let loops = strategy.loops.iter().map(text).collect();
        (strategy, loops)
    }

    #[test]
    fn sizes_at_samples_are_written_with_the_symbols() {
        let [n, m] = ["n", "m"].map(|name| Expr::from(&Var::new(name, DataType::INT32)));
        let (strategy, both) = tiled(&[n.clone(), m]);
        let rows = "(n + 7) // 8; 8 * m; (m + 15) // 16 * 8 * 16";
        assert_eq!(both, [rows, "(m + 15) // 16; 16; 8 * 16", "8; m; 16", "16; 1; 1"]);
        assert!(strategy.fills_what_bounds_leave());
        let (_, first) = tiled(&[n.clone(), Expr::int(35)]);
        assert_eq!(first, ["(n + 7) // 8; 8 * 35; (35 + 15) // 16 * 8 * 16", "3; 16; 8 * 16", "8; 35; 16", "16; 1; 1"]);
        let (_, second) = tiled(&[Expr::int(21), n]);
        let rows = "3; 8 * n; (n + 15) // 16 * 8 * 16";
        assert_eq!(second, [rows, "(n + 15) // 16; 16; 8 * 16", "8; n; 16", "16; 1; 1"]);
    }

    #[test]
    fn a_size_that_is_no_number_at_the_samples_has_no_strategy() {
        let n = Expr::from(&Var::new("n", DataType::INT32));
        let extents = [n.clone(), Expr::int(3)];
        let rows = map(&extents, |i, j| vec![i, j]);
        let shape = [n.floor_div(Expr::int(0)), Expr::int(3)];
        let maps = Maps { extents: &extents, from: (&rows, &extents), to: (&rows, &shape) };
        assert!(maps.choose(4).is_none());
    }
}
