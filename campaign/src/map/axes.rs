//! The axes of a map while operations are applied to it.

use tilewright_ir::{Expr, IndexMap, Var};

/// An axis: its index as an expression of the logical indices, and its extent.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) index: Expr,
    pub(super) extent: Expr,
}

/// The axes in order, with separators between some of them.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    axes: Vec<Axis>,
    separators: Vec<usize>,
}

/// A map together with the physical shape that follows from its operations.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The map.
    pub map: IndexMap,
    /// The physical shape, one extent for each output.
    pub shape: Vec<Expr>,
    /// The variables of the symbolic extents.
    pub symbols: Vec<Var>,
}

/// An `int32` constant.
pub(super) fn int(value: i64) -> Expr {
    Expr::int(value)
}

/// The constant result of an operation on two constants; `None` if one is not a constant or the
/// result is too large.
fn folded(a: &Expr, b: &Expr, compute: impl Fn(i64, i64) -> Option<i64>) -> Option<Expr> {
    let number = |expr: &Expr| expr.as_const_int().and_then(|value| i64::try_from(value).ok());
    compute(number(a)?, number(b)?).map(int)
}

/// `a + b`, folded if possible.
pub(super) fn plus(a: Expr, b: i64) -> Expr {
    match folded(&a, &int(b), i64::checked_add) {
        Some(sum) => sum,
        None if b == 0 => a,
        None if b < 0 => a - int(-b),
        None => a + int(b),
    }
}

/// `a - b`, folded if possible.
pub(super) fn minus(a: Expr, b: &Expr) -> Expr {
    folded(&a, b, i64::checked_sub).unwrap_or_else(|| a - b.clone())
}

/// `a * b`, folded if possible.
pub(super) fn times(a: Expr, b: &Expr) -> Expr {
    folded(&a, b, i64::checked_mul).unwrap_or_else(|| a * b.clone())
}

/// `x // by` and `x % by`; divisors below 1 count as 1.
pub(super) fn quotient_and_rest(x: &Expr, by: i64) -> (Expr, Expr) {
    let by = int(by.max(1));
    (x.clone().floor_div(by.clone()), x.clone().floor_mod(by))
}

impl Axis {
    /// The extent, if it is a constant.
    pub(super) fn constant(&self) -> Option<i64> {
        self.extent.as_const_int().and_then(|extent| i64::try_from(extent).ok())
    }

    /// The number of bits of an index, if the extent is a power of two.
    pub(super) fn bits(&self) -> Option<u32> {
        let extent = self.constant().filter(|extent| *extent > 0)?;
        let bits = extent.trailing_zeros();
        (extent == 1 << bits).then_some(bits)
    }

    /// The largest power of two, up to 2^16, that divides the extent; 1 if the extent is not a
    /// constant.
    pub(super) fn power(&self) -> i64 {
        self.constant().filter(|extent| *extent > 0).map_or(1, |extent| 1 << extent.trailing_zeros().min(16))
    }

    /// The axes with indices `x // by` and `x % by`. The extent of the first is rounded up.
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
    /// Axes whose indices are the variables themselves.
    pub(super) fn new(vars: &[Var], extents: &[Expr]) -> Self {
        let axes =
            vars.iter().zip(extents).map(|(var, extent)| Axis { index: Expr::from(var), extent: extent.clone() });
        Self { axes: axes.collect(), separators: Vec::new() }
    }

    /// Number of axes.
    pub(super) fn len(&self) -> usize {
        self.axes.len()
    }

    /// The axis at a position.
    pub(super) fn get(&self, at: usize) -> Option<&Axis> {
        self.axes.get(at)
    }

    /// Replaces `count` axes from position `at`. A separator keeps its position relative to the
    /// axes around it.
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

    /// Adds a separator before the axis at a position.
    pub(super) fn separate(&mut self, position: usize) {
        self.separators.push(position);
    }

    /// Permutes the axes. `number` encodes the permutation in the factorial number system, modulo
    /// the number of permutations.
    pub(super) fn permute(&mut self, number: u32) {
        let mut left = std::mem::take(&mut self.axes);
        let mut number = usize::try_from(number).unwrap_or(0);
        while !left.is_empty() {
            let at = number % left.len();
            number /= left.len();
            self.axes.push(left.remove(at));
        }
    }

    /// Whether all constant extents are at most 2^30, far from the limit of `int32`.
    pub(super) fn are_small(&self) -> bool {
        self.axes.iter().all(|axis| axis.extent.as_const_int().is_none_or(|extent| extent <= 1 << 30))
    }

    /// The map whose outputs are the axes. `None` if it is not a valid index map.
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
