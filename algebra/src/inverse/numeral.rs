//! Maps whose outputs are plain numerals, written down directly: the common case, in microseconds.
//!
//! ```text
//! lambda h, c: [c // 4 * 9 + h, c % 4]   over 9, 17   in [45, 4]
//! h = h0    c = c0 + 4*c1    outputs: h0 + 9*c1, c0
//! h == p % 9    c == p // 9 * 4 + q    padding: p // 9 * 4 + q >= 17
//! ```
//!
//! All extents are numbers, and every output is a sum of digits of the indices in which the weight of each place divides
//! that of the next one and leaves room for the digit. Each digit then stands in one place alone, is read off by one
//! quotient and one remainder, and a place is reached exactly where each index that they come to is below its extent. What is
//! not so plain (offsets, strides, digits that stand twice) is left to the rules. Of an index that is only ever subtracted
//! the digits are those of its distance from the last one.
//!
//! Such a claim is not tried on points, as those of the rules are, because it cannot be wrong. The weights of an output begin
//! with 1 and each divides the next, so every place below the extent is one sum of parts below the rooms; a part is the digit
//! that stands there. All digits but the last of an index have exactly their room, so the parts that belong to an index make
//! one number, and no two choices of parts the same one. That number is a logical index exactly where it is below the extent,
//! and then its digits are the parts; where the parts cannot reach the extent nothing needs to be said.

use tilewright_ir::{BinaryOp, Expr, IndexMap, ScalarType, Var};

/// How often a digit is split at most.
const MAX_SPLITS: usize = 32;

/// An axis and one of its digits, the least being 0, and its weight.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    axis: usize,
    digit: usize,
    weight: i128,
}

/// A sum of digits and an offset.
#[derive(Clone, Default)]
struct Sum {
    places: Vec<Place>,
    offset: i128,
}

/// An extent and the radices of its digits but the last.
struct Axis {
    extent: i128,
    radices: Vec<i128>,
    /// Whether the digits are those of `extent - 1 - index`: the index is subtracted wherever it stands.
    reversed: bool,
}

/// Why there is no sum of digits yet, or at all.
enum Stop {
    Split { axis: usize, digit: usize, by: i128 },
    Fail,
}

impl Axis {
    fn stride(&self, digit: usize) -> i128 {
        self.radices[..digit].iter().product()
    }

    /// How many values a digit has.
    fn extent_of(&self, digit: usize) -> i128 {
        let rounded_up = || (self.extent - 1).div_euclid(self.stride(digit)) + 1;
        self.radices.get(digit).copied().unwrap_or_else(rounded_up)
    }

    /// Splits a digit into one below `by` and the rest.
    fn split(&mut self, digit: usize, by: i128) {
        if let Some(radix) = self.radices.get_mut(digit) {
            *radix /= by;
        }
        self.radices.insert(digit, by);
    }
}

impl Sum {
    fn plus(mut self, other: &Self, times: i128) -> Option<Self> {
        for place in &other.places {
            let weight = place.weight.checked_mul(times)?;
            match self.places.iter_mut().find(|known| (known.axis, known.digit) == (place.axis, place.digit)) {
                Some(known) => known.weight = known.weight.checked_add(weight)?,
                None => self.places.push(Place { weight, ..*place }),
            }
        }
        self.places.retain(|place| place.weight != 0);
        self.offset = self.offset.checked_add(other.offset.checked_mul(times)?)?;
        Some(self)
    }

    fn as_const(&self) -> Option<i128> {
        self.places.is_empty().then_some(self.offset)
    }
}

struct Numerals<'m> {
    map: &'m IndexMap,
    axes: Vec<Axis>,
}

impl Numerals<'_> {
    fn eval(&self, expr: &Expr) -> Result<Sum, Stop> {
        match expr {
            Expr::Int { value, .. } => Ok(Sum { places: Vec::new(), offset: *value }),
            Expr::Var(var) => {
                let axis = self.map.vars().iter().position(|other| other == var).ok_or(Stop::Fail)?;
                let of = &self.axes[axis];
                let (sign, offset) = if of.reversed { (-1, of.extent - 1) } else { (1, 0) };
                let place = |digit| Place { axis, digit, weight: sign * of.stride(digit) };
                let places = if of.extent > 1 { (0..=of.radices.len()).map(place).collect() } else { Vec::new() };
                Ok(Sum { places, offset })
            }
            Expr::Binary(op, lhs, rhs) => {
                let (a, b) = (self.eval(lhs)?, self.eval(rhs)?);
                let sum = match op {
                    BinaryOp::Add => a.plus(&b, 1),
                    BinaryOp::Sub => a.plus(&b, -1),
                    BinaryOp::Mul => match (a.as_const(), b.as_const()) {
                        (_, Some(factor)) => Sum::default().plus(&a, factor),
                        (Some(factor), None) => Sum::default().plus(&b, factor),
                        (None, None) => None,
                    },
                    BinaryOp::FloorDiv => return self.divide(&a, &b).map(|(quotient, _)| quotient),
                    BinaryOp::FloorMod => return self.divide(&a, &b).map(|(_, rest)| rest),
                    _ => None,
                };
                sum.ok_or(Stop::Fail)
            }
            _ => Err(Stop::Fail),
        }
    }

    /// Quotient and rest, where no digit is on both sides.
    fn divide(&self, sum: &Sum, by: &Sum) -> Result<(Sum, Sum), Stop> {
        let by = by.as_const().filter(|by| *by > 0).ok_or(Stop::Fail)?;
        let mut quotient = Sum { places: Vec::new(), offset: sum.offset.div_euclid(by) };
        let mut rest = Sum { places: Vec::new(), offset: sum.offset.rem_euclid(by) };
        for place in &sum.places {
            if place.weight % by == 0 {
                quotient.places.push(Place { weight: place.weight / by, ..*place });
            } else {
                rest.places.push(*place);
            }
        }
        let mut greatest = rest.offset;
        for Place { axis, digit, weight } in &rest.places {
            let most = (self.axes[*axis].extent_of(*digit) - 1).checked_mul(*weight).filter(|_| *weight > 0);
            greatest = most.and_then(|most| most.checked_add(greatest)).ok_or(Stop::Fail)?;
        }
        if greatest < by {
            return Ok((quotient, rest));
        }
        // A weight that does not divide is one that may be above the divisor.
        let cut =
            rest.places.iter().filter(|place| by % place.weight == 0).find_map(|Place { axis, digit, weight }| {
                let (of, at) = (&self.axes[*axis], by / weight);
                let fits = of.radices.get(*digit).is_none_or(|radix| radix % at == 0 && *radix != at);
                let cuts = at > 1 && fits && of.extent_of(*digit) > at;
                cuts.then_some(Stop::Split { axis: *axis, digit: *digit, by: at })
            });
        Err(cut.unwrap_or(Stop::Fail))
    }

    /// The outputs as sums of digits; digits are split until they are.
    fn outputs(&mut self) -> Option<Vec<Sum>> {
        for _ in 0..MAX_SPLITS {
            match self.map.outputs().iter().map(|output| self.eval(output)).collect() {
                Ok(sums) => return Some(sums),
                Err(Stop::Split { axis, digit, by }) => self.axes[axis].split(digit, by),
                Err(Stop::Fail) => return None,
            }
        }
        None
    }

    /// Where each digit of each axis is read off, and how many values can be read there.
    fn read_off(&self, sums: &[Sum], shape: &[i128], vars: &[Var], ty: ScalarType) -> Option<Vec<Vec<(Expr, i128)>>> {
        let mut found: Vec<Vec<Option<(Expr, i128)>>> =
            self.axes.iter().map(|axis| vec![None; axis.radices.len() + 1]).collect();
        for ((sum, &extent), var) in sums.iter().zip(shape).zip(vars) {
            let mut places = sum.places.clone();
            places.sort_unstable_by_key(|place| place.weight);
            let starts_at_one = places.first().map_or(extent == 1, |place| place.weight == 1);
            if sum.offset != 0 || !starts_at_one || self.greatest(&places)? != extent - 1 {
                return None;
            }
            for (position, place) in places.iter().enumerate() {
                let (axis, next) = (&self.axes[place.axis], places.get(position + 1));
                let room = next.map(|next| (next.weight % place.weight == 0).then_some(next.weight / place.weight));
                let values = match room {
                    Some(room) => room?,
                    None => (extent - 1) / place.weight + 1,
                };
                let is_top = axis.radices.len() == place.digit;
                // Neighbours of one index would be one number, and a lower digit with room above it a padding of its own.
                let joins =
                    next.is_some_and(|next| (next.axis, next.digit) == (place.axis, place.digit + 1) && !is_top);
                if joins || values < axis.extent_of(place.digit) || !is_top && values != axis.extent_of(place.digit) {
                    return None;
                }
                let mut value = Expr::from(var);
                if place.weight != 1 {
                    value = value.floor_div(Expr::int_of(place.weight, ty)?);
                }
                if next.is_some() {
                    value = value.floor_mod(Expr::int_of(values, ty)?);
                }
                let slot = &mut found[place.axis][place.digit];
                if slot.replace((value, values)).is_some() {
                    return None;
                }
            }
        }
        let of_axis = |(axis, slots): (&Axis, Vec<Option<(Expr, i128)>>)| {
            if axis.extent == 1 { Some(Vec::new()) } else { slots.into_iter().collect() }
        };
        self.axes.iter().zip(found).map(of_axis).collect()
    }

    fn greatest(&self, places: &[Place]) -> Option<i128> {
        let most = |place: &Place| (self.axes[place.axis].extent_of(place.digit) - 1).checked_mul(place.weight.max(0));
        // A ragged index does not reach the end of all its digits at once.
        let mut sum = 0i128;
        for (at, axis) in self.axes.iter().enumerate() {
            let mut own: Vec<&Place> = places.iter().filter(|place| place.axis == at).collect();
            own.sort_unstable_by_key(|place| place.digit);
            let last = axis.extent - 1;
            let in_proportion = own.windows(2).all(|pair| pair[0].weight <= pair[1].weight);
            let whole = own.len() == axis.radices.len() + 1 && in_proportion;
            for place in own {
                let value = (last / axis.stride(place.digit)).rem_euclid(axis.extent_of(place.digit));
                let part = if whole { value.checked_mul(place.weight)? } else { most(place)? };
                sum = sum.checked_add(part)?;
            }
        }
        Some(sum)
    }
}

/// Whether a variable stands for itself on the right of a minus.
fn is_subtracted(map: &IndexMap, var: &Var) -> bool {
    let mut found = false;
    let mut look = |part: &Expr| {
        found |=
            matches!(part, Expr::Binary(BinaryOp::Sub, _, rhs) if matches!(&**rhs, Expr::Var(other) if other == var));
    };
    map.outputs().iter().for_each(|output| output.walk(&mut look));
    found
}

/// The logical indices in terms of the physical ones, and whether a place is reached; none if the map is not of this kind.
pub(super) fn solutions(map: &IndexMap, physical: &[Expr], vars: &[Var]) -> Option<(Vec<Expr>, Expr)> {
    let extents = |exprs: &[Expr]| {
        exprs
            .iter()
            .map(|expr| expr.as_const_int().filter(|extent| (1..=1 << 62).contains(extent)))
            .collect::<Option<Vec<_>>>()
    };
    let (domain, shape) = (extents(map.domain())?, extents(physical)?);
    let ty = map.vars().first()?.dtype().scalar;
    if map.vars().iter().chain(vars).any(|var| var.dtype().scalar != ty) {
        return None;
    }
    let axis = |(var, &extent)| Axis { extent, radices: Vec::new(), reversed: is_subtracted(map, var) };
    let axes = map.vars().iter().zip(&domain).map(axis).collect();
    let mut numerals = Numerals { map, axes };
    let sums = numerals.outputs()?;
    let digits = numerals.read_off(&sums, &shape, vars, ty)?;
    let (mut outputs, mut reached) = (Vec::with_capacity(domain.len()), Vec::new());
    for (axis, values) in numerals.axes.iter().zip(digits) {
        let strided = values.iter().enumerate().rev().map(|(digit, (value, _))| (value, axis.stride(digit)));
        let scaled = |(value, stride): (&Expr, i128)| {
            Some(if stride == 1 { value.clone() } else { value.clone() * Expr::int_of(stride, ty)? })
        };
        let index = strided.map(scaled).collect::<Option<Vec<_>>>()?.into_iter().reduce(|sum, part| sum + part);
        let mut index = index.unwrap_or(Expr::int_of(0, ty)?);
        let last: i128 = values.iter().enumerate().map(|(digit, (_, count))| (count - 1) * axis.stride(digit)).sum();
        // All that is computed at a place, reached or not, fits.
        Expr::int_of(last, ty)?;
        if last >= axis.extent {
            // A whole number of strides would be said of the last digit alone.
            if axis.reversed || values.len() > 1 && axis.extent % axis.stride(values.len() - 1) == 0 {
                return None;
            }
            reached.push(index.clone().lt(Expr::int_of(axis.extent, ty)?));
        }
        if axis.reversed {
            let parts = values.iter().enumerate().rev().map(|(digit, (value, _))| (value, axis.stride(digit)));
            let parts = parts.map(scaled).collect::<Option<Vec<_>>>()?;
            index = parts.into_iter().fold(Expr::int_of(axis.extent - 1, ty)?, |sum, part| sum - part);
        }
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
    fn what_is_written_directly_is_what_the_rules_find() {
        for [map, shape] in [
            ["lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "2,7,9,17"],
            ["lambda n, h, w, c: [(((n * 5 + c // 4) * 7 + h) * 9 + w) * 4 + c % 4]", "2,7,9,17"],
            ["lambda n, c, h, w: [(n * 5 + c // 4) * 7 + h, w, c % 4]", "2,17,7,9"],
            ["lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2]", "1000,1000"],
            ["lambda i, j: [i * 17 + j]", "11,15"],
            ["lambda i: [i // 64, i // 4 % 16, i % 4]", "1000"],
            ["lambda i: [7 - i]", "8"],
            ["lambda i: [(999 - i) // 4, (999 - i) % 4]", "1000"],
            ["lambda i, j: [j, 0, i]", "1,5"],
        ] {
            let (map, physical) = read(map, shape);
            let vars = physical_vars(&map);
            let (outputs, reached) = solutions(&map, &physical, &vars).unwrap();
            let rules = by_rules(&map, &physical, &[], &vars).unwrap();
            let text = |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(text(&outputs), text(&rules.outputs), "{map}");
            assert_eq!(crate::negate(&reached).to_string(), rules.padding.to_string(), "{map}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_rules() {
        for [map, shape] in [
            ["lambda i: [(i + 3) % 8]", "8"],
            ["lambda i: [(i + 3) // 4, (i + 3) % 4]", "17"],
            ["lambda i, j: [i, j ^ (i % 8)]", "61,8"],
            ["lambda i, j: [i, i % 4, j]", "17,9"],
            ["lambda i, j: [i * 1020 + j]", "1023,1021"],
            ["lambda i: [i * 4 // 16, i * 4 % 16 // 3, i * 4 % 16 % 3]", "5"],
            ["lambda i: [i * 2]", "5"],
            ["lambda i: [i // 2]", "5"],
        ] {
            let (map, physical) = read(map, shape);
            assert!(solutions(&map, &physical, &physical_vars(&map)).is_none(), "{map}");
        }
    }
}
