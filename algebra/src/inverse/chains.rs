//! Flattened maps with symbolic extents, inverted directly: row-major numerals of parts of indices.
//!
//! ```text
//! lambda n, c, h: [((n * ((C + 3) // 4) + c // 4) * H + h) * 4 + c % 4]   over N, C, H
//! n == p // 4 // H // ((C + 3) // 4)    c == p // 4 // H % ((C + 3) // 4) * 4 + p % 4    h == p // 4 % H
//! padding: p // 4 // H % ((C + 3) // 4) * 4 + p % 4 >= C
//! ```
//!
//! Every output is a sum of parts of indices, as in [`super::parts`], each times a weight. The weights are 1 and then always
//! the weight before times the number of values of its part, and the physical extent is the product of all of them. So each
//! physical index is one combination of parts, which successive divisions read off, and the indices that are made of the
//! parts are logical ones if and only if they are below their extents. As there, no sample is tried. Weights that leave
//! spare room, and two neighbouring parts of one index, are left to the rules, which print the same where both apply.

use tilewright_ir::{BinaryOp, Expr, IndexMap, ScalarType, Var};

use super::super::physical::ranges_of_map;
use super::super::poly::Poly;
use super::super::rewrite::Simplifier;
use super::parts::{Part, index_of, part_of, parts_of_axis};

/// Parts of all outputs before the map is left to the rules.
const MAX_PARTS: usize = 32;

/// A part of an index, and what it is multiplied by.
struct Place {
    part: Part,
    weight: Poly,
}

/// A part and how it is read off the physical index.
struct Read {
    part: Part,
    /// The numbers of values of the parts below it in the same output, the least significant first.
    below: Vec<Poly>,
    /// The number of its values; `None` for the most significant part of an output.
    values: Option<Poly>,
}

/// A map that is inverted, with the arithmetic of its extents.
struct Chains<'a> {
    map: &'a IndexMap,
    simplifier: Simplifier<'a>,
    ty: ScalarType,
}

impl Chains<'_> {
    /// Whether an expression does not depend on an index.
    fn is_fixed(&self, expr: &Expr) -> bool {
        !expr.vars().iter().any(|var| self.map.vars().contains(var))
    }

    /// Adds the parts that an expression is the sum of, each times `weight`; `None` if it is no such sum.
    fn collect(&self, expr: &Expr, output: usize, weight: &Poly, places: &mut Vec<Place>) -> Option<()> {
        if let Some(part) = part_of(expr, output, self.map.vars()) {
            places.push(Place { part, weight: weight.clone() });
            return (places.len() <= MAX_PARTS).then_some(());
        }
        let Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Mul), lhs, rhs) = expr else { return None };
        if *op == BinaryOp::Add {
            self.collect(lhs, output, weight, places)?;
            return self.collect(rhs, output, weight, places);
        }
        let (factor, rest) = if self.is_fixed(rhs) { (rhs, lhs) } else { (lhs, rhs) };
        self.is_fixed(factor).then_some(())?;
        self.collect(rest, output, &weight.times(&self.simplifier.poly(factor)?)?, places)
    }

    /// The number of values of a part.
    fn values(&self, part: Part) -> Option<Poly> {
        if let Some(radix) = part.radix {
            return Some(Poly::constant(radix));
        }
        let extent = self.simplifier.poly(&self.map.domain()[part.axis])?;
        let padded = extent.plus_const(part.stride.checked_sub(1)?)?;
        self.simplifier.divide(&padded, &Poly::constant(part.stride)).map(|(count, _)| count)
    }

    /// How the parts of an output are read off it; `None` if its weights are not those of a numeral that fills `extent`.
    fn chain(&self, mut places: Vec<Place>, extent: &Expr) -> Option<Vec<Read>> {
        let (mut reads, mut weight, mut below) = (Vec::<Read>::new(), Poly::constant(1), Vec::new());
        while !places.is_empty() {
            let at = places.iter().position(|place| place.weight == weight)?;
            let part = places.swap_remove(at).part;
            let values = self.values(part)?;
            // A part with one value has the same weight as the next part, so which one is meant is not known.
            let joins =
                |last: &Read| last.part.axis == part.axis && last.part.radix.is_some() && follows(last.part, part);
            if values.as_const() == Some(1) || reads.last().is_some_and(joins) {
                return None;
            }
            weight = weight.times(&values)?;
            reads.push(Read { part, below: below.clone(), values: Some(values.clone()) });
            below.push(values);
        }
        reads.last_mut()?.values = None;
        (self.simplifier.poly(extent)? == weight).then_some(reads)
    }

    /// The value of a part in terms of the physical index of its output.
    fn value(&self, read: &Read, var: &Var) -> Option<Expr> {
        let mut value = Expr::from(var);
        for divisor in joined(&read.below)? {
            value = value.floor_div(self.simplifier.emit(&divisor, self.ty)?);
        }
        match &read.values {
            Some(values) => Some(value.floor_mod(self.simplifier.emit(values, self.ty)?)),
            None => Some(value),
        }
    }
}

/// Whether `upper` is the next part of the same index.
fn follows(lower: Part, upper: Part) -> bool {
    lower.radix.and_then(|radix| lower.stride.checked_mul(radix)) == Some(upper.stride)
}

/// The divisors with neighbouring constants multiplied: a division by 4 and then by 8 is written as one by 32.
fn joined(divisors: &[Poly]) -> Option<Vec<Poly>> {
    let mut joined: Vec<Poly> = Vec::new();
    for divisor in divisors {
        match joined.last_mut() {
            Some(last) if last.as_const().is_some() && divisor.as_const().is_some() => *last = last.times(divisor)?,
            _ => joined.push(divisor.clone()),
        }
    }
    Some(joined)
}

/// Returns the logical indices in terms of the physical ones, and the condition under which a physical index is
/// reached. Returns `None` if the map is not of this kind.
pub(super) fn solutions(map: &IndexMap, physical: &[Expr], vars: &[Var]) -> Option<(Vec<Expr>, Expr)> {
    let ty = map.vars().first()?.dtype().scalar;
    if map.vars().iter().chain(vars).any(|var| var.dtype().scalar != ty) {
        return None;
    }
    let ranges = ranges_of_map(map, &[]);
    let chains = Chains { map, simplifier: Simplifier::new(&ranges), ty };
    let (mut parts, mut reads) = (Vec::new(), Vec::new());
    for (output, (expr, extent)) in map.outputs().iter().zip(physical).enumerate() {
        let mut places = Vec::new();
        chains.collect(expr, output, &Poly::constant(1), &mut places)?;
        parts.extend(places.iter().map(|place| place.part));
        reads.extend(chains.chain(places, extent)?);
    }
    let (mut outputs, mut reached) = (Vec::with_capacity(map.vars().len()), Vec::new());
    for (axis, extent) in map.domain().iter().enumerate() {
        let own = parts_of_axis(&parts, axis)?;
        let value = |part: &Part| {
            let is_read = |read: &&Read| read.part.axis == axis && read.part.stride == part.stride;
            chains.value(reads.iter().find(is_read)?, &vars[part.output])
        };
        let (index, is_inside) = index_of(&own, extent, ty, value)?;
        reached.extend(is_inside);
        outputs.push(index);
    }
    Some((outputs, reached.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))))
}

#[cfg(test)]
mod tests {
    use tilewright_script::{Symbols, read_index_map, read_shape};

    use super::super::{by_rules, physical_vars};
    use super::*;
    use crate::physical_shape;

    fn read(map: &str, shape: &str) -> (IndexMap, Vec<Expr>) {
        let mut symbols = Symbols::default();
        let shape = read_shape(shape, &mut symbols).unwrap();
        let map = read_index_map(map, Some(&shape), &mut symbols).unwrap();
        let physical = physical_shape(&map, &[]).unwrap().extents;
        (map, physical)
    }

    #[test]
    fn direct_inverses_equal_those_of_the_rules() {
        for [map, shape] in [
            ["lambda i, j, k: [(i * J + j) * K + k]", "I,J,K"],
            ["lambda i, j, k: [i * (J * 7) + j * 7 + k]", "I,J,7"],
            ["lambda n, h, w, c: [((n * H + h) * W + w) * C + c]", "N,H,W,C"],
            ["lambda n, y, x, c: [(n * H + y) * W + x, c]", "N,H,W,C"],
            ["lambda n, h, w, c: [(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]", "N,H,W,C"],
            ["lambda n, c, h, w: [(n * ((C + 3) // 4) + c // 4) * H + h, w, c % 4]", "N,C,H,W"],
            ["lambda n, c, h, w: [n, ((c // 8 * H + h) * W + w) * 8 + c % 8]", "N,C,H,W"],
            ["lambda i, j: [((i // 16 * ((N + 15) // 16) + j // 16) * 16 + i % 16) * 16 + j % 16]", "M,N"],
            ["lambda i, j: [((i // 5 * ((N + 6) // 7) + j // 7) * 5 + i % 5) * 7 + j % 7]", "M,N"],
            ["lambda n, c, h: [((n * 5 + c // 4) * H + h) * 4 + c % 4]", "N,17,H"],
        ] {
            let (map, physical) = read(map, shape);
            let vars = physical_vars(&map);
            let (outputs, reached) = solutions(&map, &physical, &vars).unwrap_or_else(|| panic!("{map}"));
            let rules = by_rules(&map, &physical, &[], &vars).unwrap();
            let text = |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(text(&outputs), text(&rules.outputs), "{map}");
            assert_eq!(crate::negate(&reached).to_string(), rules.padding.to_string(), "{map}");
        }
    }

    #[test]
    fn maps_of_other_kinds_are_left_to_the_rules() {
        for [map, shape] in [
            // Spare room, overlap, a repeated part, an offset, a part with one value, and parts that are one number.
            ["lambda i, j: [i * (M + 3) + j]", "N,M"],
            ["lambda i, j: [i * N + j]", "N,M"],
            ["lambda i, j: [i * M + j, j]", "N,M"],
            ["lambda i, j: [i * M + j + 1]", "N,M"],
            ["lambda i, j, k: [(i * 1 + j) * M + k]", "N,1,M"],
            ["lambda i, j: [(j * ((N + 3) // 4) + i // 4) * 4 + i % 4]", "N,M"],
            ["lambda i, j: [(i + j) * M]", "N,M"],
        ] {
            let (map, physical) = read(map, shape);
            assert!(solutions(&map, &physical, &physical_vars(&map)).is_none(), "{map}");
        }
        let (map, _) = read("lambda i, j: [i * M + j]", "N,M");
        assert!(solutions(&map, &map.domain()[..1], &physical_vars(&map)).is_none(), "another physical extent");
    }
}
