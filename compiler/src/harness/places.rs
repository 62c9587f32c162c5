//! Where a layout puts each element of a tensor: the row-major position of a logical element and that of the memory.
//!
//! Most layouts are sums with one term for each axis: `n, h, w, c` goes to `[n, c // 4, h, w, c % 4]`, whose position is
//! `t0[n] + t1[h] + t2[w] + t3[c]` for four tables. [`AxisTables`] are these tables. A map that is no such sum, such as
//! `[i ^ j]`, is evaluated for each element.

use std::ops::RangeInclusive;

use super::digits::Digits;
use tilewright_ir::{BinaryOp, Bindings, EvalError, Expr, IndexMap, ScalarType};

/// The longest axis for which tables are made.
const MAX_TABLE_LEN: u64 = 1 << 20;

/// Positions that are a sum of a start and one term for each axis.
#[derive(Debug)]
pub(super) struct AxisTables {
    start: usize,
    /// The terms of each axis, by index.
    terms: Vec<Vec<usize>>,
}

impl AxisTables {
    /// The positions of a buffer with strides. `None` if a position exceeds the host's memory.
    pub(super) fn strided(extents: &[u64], strides: &[u64], start: u64) -> Option<Self> {
        let term = |at: u64, stride: u64| usize::try_from(at.checked_mul(stride)?).ok();
        let axis = |(&extent, &stride): (&u64, &u64)| (0..extent).map(|at| term(at, stride)).collect::<Option<_>>();
        let terms = extents.iter().zip(strides).map(axis).collect::<Option<_>>()?;
        let tables = Self { start: usize::try_from(start).ok()?, terms };
        tables.size()?;
        Some(tables)
    }

    /// The positions of a map, whose outputs are taken as an index of a tensor of the shape `physical`. `None` if the map is no sum,
    /// or leads outside.
    pub(super) fn of_map(map: &IndexMap, symbols: &Bindings, logical: &[u64], physical: &[u64]) -> Option<Self> {
        if map.outputs().len() != physical.len() {
            return None;
        }
        let mut total = Sum { constant: 0, terms: logical.iter().map(|&extent| vec![0; host(extent)]).collect() };
        let mut stride = 1_i128;
        for (output, &extent) in map.outputs().iter().zip(physical).rev() {
            let sum = Sum::of(output, map, symbols, logical)?;
            let (least, greatest) = sum.range().into_inner();
            if least < 0 || greatest >= i128::from(extent) {
                return None;
            }
            total = total.plus(&sum, stride)?;
            stride = stride.checked_mul(extent.into())?;
        }
        total.into_tables()
    }

    /// The size of memory that has all positions; `None` if it exceeds that of the host.
    pub(super) fn size(&self) -> Option<usize> {
        if self.terms.iter().any(Vec::is_empty) {
            return Some(self.start);
        }
        self.terms.iter().try_fold(self.start, |sum, terms| sum.checked_add(*terms.iter().max()?))?.checked_add(1)
    }

    /// The positions as digits of the indices, if they are such.
    pub(super) fn digits(&self) -> Option<Digits> {
        Digits::of(self.start, &self.terms)
    }

    /// Calls `visit` with the number of each element, in row-major order, and its position.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, usize)) {
        let Some((inner, outer)) = self.terms.split_last() else {
            return visit(0, self.start);
        };
        if self.terms.iter().any(Vec::is_empty) {
            return;
        }
        let mut index = vec![0; outer.len()];
        let mut element = 0;
        loop {
            let row = self.start + index.iter().zip(outer).map(|(&at, terms): (&usize, _)| terms[at]).sum::<usize>();
            for term in inner {
                visit(element, row + term);
                element += 1;
            }
            let Some(axis) = (0..outer.len()).rev().find(|&axis| index[axis] + 1 < outer[axis].len()) else { return };
            index[axis] += 1;
            index[axis + 1..].fill(0);
        }
    }
}

/// An extent of memory that is allocated, as a number of the host.
fn host(extent: u64) -> usize {
    usize::try_from(extent).unwrap_or(usize::MAX)
}

/// An index expression as a sum of a constant and one term for each axis.
struct Sum {
    constant: i128,
    terms: Vec<Vec<i128>>,
}

impl Sum {
    /// `None` if the expression is no such sum, or if its value is not defined for some index.
    fn of(expr: &Expr, map: &IndexMap, symbols: &Bindings, logical: &[u64]) -> Option<Self> {
        let zero = || logical.iter().map(|&extent| vec![0; host(extent)]).collect::<Vec<_>>();
        match (axes_of(expr, map).as_slice(), expr) {
            ([], _) => Some(Self { constant: expr.eval_index(symbols).ok()?, terms: zero() }),
            (&[axis], _) => {
                let mut terms = zero();
                terms[axis] =
                    table(expr, axis, map, symbols, logical).filter(|_| logical[axis] <= MAX_TABLE_LEN)?.ok()?;
                Some(Self { constant: 0, terms })
            }
            (_, Expr::Binary(BinaryOp::Add, a, b)) => {
                let [a, b] = [a, b].map(|side| Self::of(side, map, symbols, logical));
                a?.plus(&b?, 1)
            }
            (_, Expr::Binary(BinaryOp::Sub, a, b)) => {
                let [a, b] = [a, b].map(|side| Self::of(side, map, symbols, logical));
                a?.plus(&b?, -1)
            }
            (_, Expr::Binary(BinaryOp::Mul, a, b)) => {
                let (sum, factor) = if axes_of(b, map).is_empty() { (a, b) } else { (b, a) };
                let factor = factor.eval_index(symbols).ok()?;
                Self { constant: 0, terms: zero() }.plus(&Self::of(sum, map, symbols, logical)?, factor)
            }
            _ => None,
        }
    }

    /// This sum and `factor` times the other one.
    fn plus(mut self, other: &Self, factor: i128) -> Option<Self> {
        let added = |to: i128, what: i128| to.checked_add(what.checked_mul(factor)?);
        self.constant = added(self.constant, other.constant)?;
        for (to, what) in self.terms.iter_mut().flatten().zip(other.terms.iter().flatten()) {
            *to = added(*to, *what)?;
        }
        Some(self)
    }

    /// The least and the greatest value, each of which some index has. Every axis has elements.
    fn range(&self) -> RangeInclusive<i128> {
        let ends = self.terms.iter().filter_map(|terms| Some((terms.iter().min()?, terms.iter().max()?)));
        let (least, greatest) = ends.fold((self.constant, self.constant), |(least, greatest), (low, high)| {
            (least.saturating_add(*low), greatest.saturating_add(*high))
        });
        least..=greatest
    }

    /// The same values with terms that are not negative.
    fn into_tables(self) -> Option<AxisTables> {
        let mut start = self.constant;
        let mut axis = |terms: Vec<i128>| {
            let least = terms.iter().copied().min().unwrap_or(0);
            start = start.checked_add(least)?;
            terms.into_iter().map(|term| usize::try_from(term - least).ok()).collect::<Option<Vec<_>>>()
        };
        let terms = self.terms.into_iter().map(&mut axis).collect::<Option<_>>()?;
        Some(AxisTables { start: usize::try_from(start).ok()?, terms })
    }
}

/// The axes that an expression mentions.
fn axes_of(expr: &Expr, map: &IndexMap) -> Vec<usize> {
    let vars = expr.vars();
    (0..map.vars().len()).filter(|&axis| vars.contains(&map.vars()[axis])).collect()
}

/// The values of an expression over the index of one axis; `None` if the axis is too long for a table.
fn table(
    expr: &Expr,
    axis: usize,
    map: &IndexMap,
    symbols: &Bindings,
    logical: &[u64],
) -> Option<Result<Vec<i128>, EvalError>> {
    let extent = Some(logical[axis]).filter(|&extent| extent <= MAX_TABLE_LEN)?;
    if matches!(expr, Expr::Var(_)) {
        return Some(Ok((0..extent).map(i128::from).collect()));
    }
    let mut bindings = symbols.clone();
    let values = (0..extent).map(|at| {
        bindings.insert(map.vars()[axis].clone(), at.into());
        expr.eval_index(&bindings)
    });
    Some(values.collect())
}

/// A compiled index expression, with the meaning of [`Expr::eval_index`].
enum CompiledExpr {
    /// A constant.
    Constant(i128),
    /// The index of this axis.
    Index(usize),
    /// The values of an expression over one index: its axis, and a value for each position.
    Table(usize, Vec<i128>),
    /// An operator on two expressions, with the type that bounds shift amounts.
    Binary(BinaryOp, ScalarType, Box<CompiledExpr>, Box<CompiledExpr>),
    /// Any other expression, evaluated by [`Expr::eval_index`].
    Other(Expr),
}

/// A map with compiled outputs.
struct CompiledMap<'a> {
    map: &'a IndexMap,
    symbols: &'a Bindings,
    outputs: Vec<CompiledExpr>,
}

impl<'a> CompiledMap<'a> {
    /// Compiles the outputs of a map for the given extents and symbols.
    fn new(map: &'a IndexMap, symbols: &'a Bindings, shape: &[u64]) -> Result<Self, EvalError> {
        let outputs = map.outputs().iter().map(|output| compile(output, map, symbols, shape));
        Ok(Self { map, symbols, outputs: outputs.collect::<Result<_, _>>()? })
    }

    /// Evaluates a compiled expression at an index.
    fn eval(&self, node: &CompiledExpr, index: &[u64]) -> Result<i128, EvalError> {
        match node {
            CompiledExpr::Constant(value) => Ok(*value),
            CompiledExpr::Index(axis) => Ok(index[*axis].into()),
            CompiledExpr::Table(axis, values) => {
                let place = usize::try_from(index[*axis]).unwrap_or(usize::MAX);
                values.get(place).copied().ok_or_else(|| EvalError::Unbound(self.map.vars()[*axis].name().to_owned()))
            }
            CompiledExpr::Binary(op, ty, a, b) => {
                let (a, b) = (self.eval(a, index)?, self.eval(b, index)?);
                op.eval_exact(a, b, *ty).map_err(|source| EvalError::Scalar { source, expr: self.map.to_string() })
            }
            CompiledExpr::Other(expr) => {
                let mut bindings = self.symbols.clone();
                bindings.extend(self.map.vars().iter().cloned().zip(index.iter().map(|&at| i128::from(at))));
                expr.eval_index(&bindings)
            }
        }
    }
}

/// Compiles an expression over the indices of a map.
fn compile(expr: &Expr, map: &IndexMap, symbols: &Bindings, shape: &[u64]) -> Result<CompiledExpr, EvalError> {
    match (axes_of(expr, map).as_slice(), expr) {
        ([], _) => expr.eval_index(symbols).map(CompiledExpr::Constant),
        (&[axis], Expr::Var(_)) => Ok(CompiledExpr::Index(axis)),
        (&[axis], _) if shape[axis] <= MAX_TABLE_LEN => match table(expr, axis, map, symbols, shape) {
            Some(values) => Ok(CompiledExpr::Table(axis, values?)),
            None => Ok(CompiledExpr::Other(expr.clone())),
        },
        (_, Expr::Binary(op, a, b)) => {
            let (a, b) = (compile(a, map, symbols, shape)?, compile(b, map, symbols, shape)?);
            Ok(CompiledExpr::Binary(*op, expr_type(expr), Box::new(a), Box::new(b)))
        }
        _ => Ok(CompiledExpr::Other(expr.clone())),
    }
}

/// The type of the left operand, which bounds shift amounts.
fn expr_type(expr: &Expr) -> ScalarType {
    expr.children().next().map_or(ScalarType::Int32, |lhs| lhs.dtype().scalar)
}

/// Calls `visit` with the row-major position of each logical element, and of the physical element that the map takes
/// it to.
///
/// # Errors
/// The map does not fit the logical shape, or leads outside of the physical one.
pub(super) fn each_element(
    map: &IndexMap,
    logical: &[u64],
    physical: &[u64],
    symbols: &Bindings,
    mut visit: impl FnMut(usize, usize),
) -> Result<(), String> {
    if logical.len() != map.vars().len() {
        return Err(format!("`{map}` does not take {} indices", logical.len()));
    }
    if logical.contains(&0) {
        return Ok(());
    }
    if let Some(tables) = AxisTables::of_map(map, symbols, logical, physical) {
        tables.each(visit);
        return Ok(());
    }
    let compiled = CompiledMap::new(map, symbols, logical).map_err(|error| error.to_string())?;
    let mut index = vec![0; logical.len()];
    let mut place = vec![0; map.outputs().len()];
    let mut element = 0;
    loop {
        for (at, node) in place.iter_mut().zip(&compiled.outputs) {
            let value = compiled.eval(node, &index).map_err(|error| error.to_string())?;
            *at = u64::try_from(value).map_err(|_| format!("`{map}` takes {index:?} to the negative index {value}"))?;
        }
        // A map that leaves the shape is an error and not a panic: it may be the very bug that is being looked for.
        let inside = place.len() == physical.len() && place.iter().zip(physical).all(|(at, extent)| at < extent);
        if !inside {
            return Err(format!("`{map}` takes {index:?} to {place:?}, outside of {physical:?}"));
        }
        let number = place.iter().zip(physical).fold(0, |number, (at, extent)| number * extent + at);
        visit(element, usize::try_from(number).map_err(|error| error.to_string())?);
        element += 1;
        if !advance(&mut index, logical) {
            return Ok(());
        }
    }
}

/// Advances an index in row-major order. Returns false after the last one.
fn advance(index: &mut [u64], shape: &[u64]) -> bool {
    for axis in (0..index.len()).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return true;
        }
        index[axis] = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;
    use tilewright_ir::Var;

    /// Positions of a map by evaluating it for each element.
    fn slow(map: &IndexMap, logical: &[u64], physical: &[u64]) -> Vec<usize> {
        let none = Bindings::new();
        let compiled = CompiledMap::new(map, &none, logical).unwrap();
        let (mut index, mut places) = (vec![0; logical.len()], Vec::new());
        loop {
            let place = compiled.outputs.iter().zip(physical).fold(0, |number, (output, &extent)| {
                number * i128::from(extent) + compiled.eval(output, &index).unwrap()
            });
            places.push(usize::try_from(place).unwrap());
            if !advance(&mut index, logical) {
                return places;
            }
        }
    }

    fn fast(map: &IndexMap, logical: &[u64], physical: &[u64]) -> Option<Vec<usize>> {
        let tables = AxisTables::of_map(map, &Bindings::new(), logical, physical)?;
        let mut places = Vec::new();
        tables.each(|element, at| {
            assert_eq!(element, places.len());
            places.push(at);
        });
        Some(places)
    }

    #[test]
    fn sums_of_axes_are_the_values_of_the_map() {
        let [i, j, k] = ["i", "j", "k"].map(Var::index);
        let [x, y, z] = [&i, &j, &k].map(Expr::from);
        let extents = [3_u64, 5, 7];
        let map = |outputs: Vec<Expr>| {
            IndexMap::new(vec![i.clone(), j.clone(), k.clone()], [3, 5, 7].map(Expr::int).to_vec(), outputs, vec![])
                .unwrap()
        };
        let tiled =
            map(vec![z.clone().floor_div(Expr::int(4)), x.clone(), y.clone(), z.clone().floor_mod(Expr::int(4))]);
        let back = map(vec![Expr::int(4) - y.clone(), Expr::int(6) - z.clone() + x.clone() * Expr::int(7)]);
        for (map, physical) in [(&tiled, &[2, 3, 5, 4][..]), (&back, &[5, 21])] {
            assert_eq!(fast(map, &extents, physical).unwrap(), slow(map, &extents, physical), "{map}");
        }
        // One row less, and one index that is negative.
        assert!(fast(&tiled, &extents, &[1, 3, 5, 4]).is_none());
        assert!(fast(&map(vec![y.clone() - z.clone(), x.clone()]), &extents, &[5, 3]).is_none());
        // A product of two axes is no sum.
        assert!(fast(&map(vec![x * y, z]), &extents, &[9, 7]).is_none());
    }

    #[test]
    fn strides_give_positions_and_a_size() {
        let tables = AxisTables::strided(&[2, 3], &[10, 2], 1).unwrap();
        let mut places = Vec::new();
        tables.each(|_, at| places.push(at));
        assert_eq!((places, tables.size()), (vec![1, 3, 5, 11, 13, 15], Some(16)));
        assert_eq!(AxisTables::strided(&[2, 0], &[10, 2], 1).unwrap().size(), Some(1));
        assert!(AxisTables::strided(&[2, 3], &[u64::MAX, u64::MAX], 0).is_none());
    }
}
