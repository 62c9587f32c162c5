//! Maps whose outputs are ordinary numerals, inverted directly: the common case, in microseconds.
//!
//! ```text
//! lambda h, c: [c // 4 * 9 + h, c % 4]   over 9, 17   in [45, 4]
//! h = h0    c = c0 + 4*c1    outputs: h0 + 9*c1, c0
//! h == p % 9    c == p // 9 * 4 + q    padding: p // 9 * 4 + q >= 17
//! ```
//!
//! All extents are constants, and every output is a sum of digits of the indices in which the weight of each place
//! divides the weight of the next one and leaves room for the digit. Each digit then stands at exactly one place, and
//! is read off with one quotient and one remainder. A physical index is reached if and only if every logical index
//! computed from it is below its extent. Maps with offsets, strides or repeated digits are left to the rules. An index
//! that is only ever subtracted is represented by the digits of its distance from the last index.
//!
//! Unlike the results of the rules, such an inverse is not tried on sample points, because it is correct by
//! construction: the weights of an output begin with 1 and each divides the next, so every physical index below the
//! extent is one sum of parts, and each part is the digit at its place. All digits of an index except the top one have
//! exactly their room, so different parts give different numbers. Such a number is a logical index if and only if it
//! is below the extent, and its digits are then the parts. Where the parts cannot reach the extent, no condition is
//! needed.

use tilewright_ir::{BinaryOp, Expr, IndexMap, ScalarType, Var};

/// Splits of digits before the search gives up.
const MAX_SPLITS: usize = 32;

/// A digit of an axis, where 0 is the least significant one, times its weight.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WeightedDigit {
    axis: usize,
    digit: usize,
    weight: i128,
}

/// A sum of digits and an offset.
#[derive(Clone, Default)]
struct Sum {
    places: Vec<WeightedDigit>,
    offset: i128,
}

/// An index: its extent, and the radices of all its digits but the top one, the least significant first.
struct Axis {
    extent: i128,
    radices: Vec<i128>,
    /// Whether the digits are those of `extent - 1 - index`, because every output subtracts the index.
    reversed: bool,
}

/// Why evaluation returned no sum: a digit has to be split first, or there is none.
enum Stop {
    Split { axis: usize, digit: usize, by: i128 },
    Fail,
}

impl Axis {
    /// The product of the radices below a digit.
    fn stride(&self, digit: usize) -> i128 {
        self.radices[..digit].iter().product()
    }

    /// The number of values of a digit.
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
    /// The sum plus `times` times another; `None` if a weight leaves 128 bits.
    fn plus(mut self, other: &Self, times: i128) -> Option<Self> {
        for place in &other.places {
            let weight = place.weight.checked_mul(times)?;
            match self.places.iter_mut().find(|known| (known.axis, known.digit) == (place.axis, place.digit)) {
                Some(known) => known.weight = known.weight.checked_add(weight)?,
                None => self.places.push(WeightedDigit { weight, ..*place }),
            }
        }
        self.places.retain(|place| place.weight != 0);
        self.offset = self.offset.checked_add(other.offset.checked_mul(times)?)?;
        Some(self)
    }

    /// The offset, if there are no digits.
    fn as_const(&self) -> Option<i128> {
        self.places.is_empty().then_some(self.offset)
    }
}

/// A map, and the digits that its indices are split into so far.
struct Numerals<'m> {
    map: &'m IndexMap,
    axes: Vec<Axis>,
}

impl Numerals<'_> {
    /// Evaluates an expression to a sum of digits.
    fn eval(&self, expr: &Expr) -> Result<Sum, Stop> {
        match expr {
            Expr::Int { value, .. } => Ok(Sum { places: Vec::new(), offset: *value }),
            Expr::Var(var) => {
                let axis = self.map.vars().iter().position(|other| other == var).ok_or(Stop::Fail)?;
                let index = &self.axes[axis];
                // A reversed index is `extent - 1 - (its digits)`.
                let (sign, offset) = if index.reversed { (-1, index.extent - 1) } else { (1, 0) };
                let place = |digit| WeightedDigit { axis, digit, weight: sign * index.stride(digit) };
                let places = if index.extent > 1 { (0..=index.radices.len()).map(place).collect() } else { Vec::new() };
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
                    BinaryOp::Div | BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::Min | BinaryOp::Max => None,
                    BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => None,
                    BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => None,
                    BinaryOp::Shl | BinaryOp::Shr => None,
                };
                sum.ok_or(Stop::Fail)
            }
            Expr::Float { .. } | Expr::Unary(..) | Expr::Call(..) | Expr::Select(..) => Err(Stop::Fail),
            Expr::IfThenElse(..) | Expr::Cast(..) => Err(Stop::Fail),
            Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => Err(Stop::Fail),
        }
    }

    /// Returns quotient and remainder of a division by a constant, if no digit contributes to both.
    ///
    /// # Errors
    /// The split that would separate the parts of such a digit, or a failure.
    fn divide(&self, sum: &Sum, by: &Sum) -> Result<(Sum, Sum), Stop> {
        let by = by.as_const().filter(|by| *by > 0).ok_or(Stop::Fail)?;
        let mut quotient = Sum { places: Vec::new(), offset: sum.offset.div_euclid(by) };
        let mut rest = Sum { places: Vec::new(), offset: sum.offset.rem_euclid(by) };
        for place in &sum.places {
            if place.weight % by == 0 {
                quotient.places.push(WeightedDigit { weight: place.weight / by, ..*place });
            } else {
                rest.places.push(*place);
            }
        }
        let mut greatest = rest.offset;
        for WeightedDigit { axis, digit, weight } in &rest.places {
            let most = (self.axes[*axis].extent_of(*digit) - 1).checked_mul(*weight).filter(|_| *weight > 0);
            greatest = most.and_then(|most| most.checked_add(greatest)).ok_or(Stop::Fail)?;
        }
        if greatest < by {
            return Ok((quotient, rest));
        }
        // Only a digit whose weight divides the divisor can be split there.
        let cut = rest.places.iter().filter(|place| by % place.weight == 0).find_map(
            |WeightedDigit { axis, digit, weight }| {
                let (index, at) = (&self.axes[*axis], by / weight);
                let fits = index.radices.get(*digit).is_none_or(|radix| radix % at == 0 && *radix != at);
                let cuts = at > 1 && fits && index.extent_of(*digit) > at;
                cuts.then_some(Stop::Split { axis: *axis, digit: *digit, by: at })
            },
        );
        Err(cut.unwrap_or(Stop::Fail))
    }

    /// Returns the outputs as sums of digits, splitting digits until they are; `None` if they are not.
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

    /// Returns for each digit of each axis the expression that reads it off a physical index, and the number of values
    /// that can be read there. Returns `None` if the outputs are no numerals in the sense of the module.
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
                // Two neighbouring digits of one index are a single number, and a lower digit with spare room has
                // padding of its own: both are left to the rules.
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

    /// Returns the greatest value of a sum of digits.
    fn greatest(&self, places: &[WeightedDigit]) -> Option<i128> {
        let most =
            |place: &WeightedDigit| (self.axes[place.axis].extent_of(place.digit) - 1).checked_mul(place.weight.max(0));
        // If the extent is no multiple of the stride, the digits of an index are not all at their greatest value at once.
        let mut sum = 0i128;
        for (at, axis) in self.axes.iter().enumerate() {
            let mut own: Vec<&WeightedDigit> = places.iter().filter(|place| place.axis == at).collect();
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

/// Whether a variable appears as the right operand of a subtraction.
fn is_subtracted(map: &IndexMap, var: &Var) -> bool {
    let mut found = false;
    let mut look = |part: &Expr| {
        found |=
            matches!(part, Expr::Binary(BinaryOp::Sub, _, rhs) if matches!(&**rhs, Expr::Var(other) if other == var));
    };
    map.outputs().iter().for_each(|output| output.walk(&mut look));
    found
}

/// Returns the logical indices in terms of the physical ones, and the condition under which a physical index is
/// reached. Returns `None` if the map is not of this kind.
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
        // Padding is computed too, so the greatest value that can be read must fit the type.
        Expr::int_of(last, ty)?;
        if last >= axis.extent {
            // Here the rules find a shorter condition, on the top digit alone; both paths must print the same.
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
    fn direct_inverses_equal_those_of_the_rules() {
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
    fn maps_that_are_no_numerals_are_left_to_the_rules() {
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
