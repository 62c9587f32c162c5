//! The axes that a map has while operations are applied to it.

use tilewright_ir::{Expr, IndexMap, Var};

/// An axis: its index and its extent.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) index: Expr,
    pub(super) extent: Expr,
}

/// Axes in their order, with separators between some of them.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    axes: Vec<Axis>,
    separators: Vec<usize>,
}

/// A map, and the physical shape that its operations ask for.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The map.
    pub map: IndexMap,
    /// The physical shape.
    pub shape: Vec<Expr>,
    /// The symbolic extents.
    pub symbols: Vec<Var>,
}

pub(super) fn int(value: i64) -> Expr {
    Expr::int(value)
}

/// A number as it is computed, if both are constants that stay small.
fn folded(a: &Expr, b: &Expr, of: impl Fn(i64, i64) -> Option<i64>) -> Option<Expr> {
    let number = |expr: &Expr| expr.as_const_int().and_then(|value| i64::try_from(value).ok());
    of(number(a)?, number(b)?).map(int)
}

pub(super) fn plus(a: Expr, b: i64) -> Expr {
    match folded(&a, &int(b), i64::checked_add) {
        Some(sum) => sum,
        None if b == 0 => a,
        None if b < 0 => a - int(-b),
        None => a + int(b),
    }
}

pub(super) fn minus(a: Expr, b: &Expr) -> Expr {
    folded(&a, b, i64::checked_sub).unwrap_or_else(|| a - b.clone())
}

pub(super) fn times(a: Expr, b: &Expr) -> Expr {
    folded(&a, b, i64::checked_mul).unwrap_or_else(|| a * b.clone())
}

/// `x // by, x % by`; of a divisor of 0 or less, those of 1.
pub(super) fn quotient_and_rest(x: &Expr, by: i64) -> (Expr, Expr) {
    let by = int(by.max(1));
    (x.clone().floor_div(by.clone()), x.clone().floor_mod(by))
}

impl Axis {
    /// Its extent, if that is a constant.
    pub(super) fn constant(&self) -> Option<i64> {
        self.extent.as_const_int().and_then(|extent| i64::try_from(extent).ok())
    }

    /// How many bits an index has, where all numbers of so many bits are indices.
    pub(super) fn bits(&self) -> Option<u32> {
        let extent = self.constant().filter(|extent| *extent > 0)?;
        let bits = extent.trailing_zeros();
        (extent == 1 << bits).then_some(bits)
    }

    /// The largest power of two, up to 2^16, that divides the extent; 1 of an extent that is no constant.
    pub(super) fn power(&self) -> i64 {
        self.constant().filter(|extent| *extent > 0).map_or(1, |extent| 1 << extent.trailing_zeros().min(16))
    }

    /// `x // by, x % by`.
    pub(super) fn split(&self, by: i64) -> [Self; 2] {
        let by = by.max(1);
        let (outer, inner) = quotient_and_rest(&self.index, by);
        let count = match self.constant() {
            Some(extent) => int(extent / by + i64::from(extent % by != 0)),
            None => plus(self.extent.clone(), by - 1).floor_div(int(by)),
        };
        [Self { index: outer, extent: count }, Self { index: inner, extent: int(by) }]
    }
}

impl Axes {
    pub(super) fn new(vars: &[Var], extents: &[Expr]) -> Self {
        let axes =
            vars.iter().zip(extents).map(|(var, extent)| Axis { index: Expr::from(var), extent: extent.clone() });
        Self { axes: axes.collect(), separators: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.axes.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Axis> {
        self.axes.get(at)
    }

    /// Replaces so many axes by others; separators stand before the same axes as they did.
    pub(super) fn replace(&mut self, at: usize, count: usize, by: Vec<Axis>) {
        let (end, grown) = (at + count, by.len());
        for position in &mut self.separators {
            if *position >= end {
                *position = *position + grown - count;
            } else if *position > at {
                *position = (at + (*position - at).min(grown)).min(at + grown);
            }
        }
        self.axes.splice(at..end, by);
    }

    pub(super) fn separate(&mut self, position: usize) {
        self.separators.push(position);
    }

    /// The permutation of this number in the order of the factorial number system.
    pub(super) fn permute(&mut self, number: u32) {
        let mut left = std::mem::take(&mut self.axes);
        let mut number = usize::try_from(number).unwrap_or(0);
        while !left.is_empty() {
            let at = number % left.len();
            number /= left.len();
            self.axes.push(left.remove(at));
        }
    }

    /// Whether no constant extent comes near the end of `int32`.
    pub(super) fn are_small(&self) -> bool {
        self.axes.iter().all(|axis| axis.extent.as_const_int().is_none_or(|extent| extent <= 1 << 30))
    }

    /// The map of it all.
    pub(super) fn generated(mut self, vars: Vec<Var>, domain: Vec<Expr>, symbols: Vec<Var>) -> Option<Generated> {
        let rank = self.axes.len();
        self.separators.sort_unstable();
        self.separators.dedup();
        self.separators.retain(|position| (1..rank).contains(position));
        let outputs = self.axes.iter().map(|axis| axis.index.clone()).collect();
        let map = IndexMap::new(vars, domain, outputs, self.separators).ok()?;
        Some(Generated { map, shape: self.axes.into_iter().map(|axis| axis.extent).collect(), symbols })
    }
}
