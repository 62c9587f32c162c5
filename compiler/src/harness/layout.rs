//! Conversion of tensors between layouts: what the host does with the arguments of a function whose parameters were
//! moved to another layout.

use tilewright_interp::Tensor;
use tilewright_ir::{Bindings, Expr, IndexMap, Scalar};

use super::digits::{Digits, Way};
use super::places::{AxisTables, each_element};

/// Returns the values of extents.
///
/// # Errors
/// A symbol has no value, or an extent is negative.
pub fn shape(extents: &[Expr], symbols: &Bindings) -> Result<Vec<u64>, String> {
    let one = |extent: &Expr| {
        let value = extent.eval_index(symbols).map_err(|error| error.to_string())?;
        u64::try_from(value).map_err(|_| format!("the extent `{extent}` is {value}"))
    };
    extents.iter().map(one).collect()
}

/// Returns, for each logical element in row-major order, the row-major position of its physical element.
///
/// # Errors
/// The map leads outside of the physical shape.
pub fn places(map: &IndexMap, logical: &[u64], physical: &[u64], symbols: &Bindings) -> Result<Vec<usize>, String> {
    let mut places = Vec::new();
    each_element(map, logical, physical, symbols, |_, at| places.push(at))?;
    Ok(places)
}

/// Returns the physical tensor of a logical one. Physical elements that no logical element reaches are padding: they
/// have the value `pad`, or are undefined.
///
/// # Errors
/// The map leads outside of the physical shape.
pub fn pack(
    logical: &Tensor,
    map: &IndexMap,
    physical_shape: &[u64],
    symbols: &Bindings,
    pad: Option<Scalar>,
) -> Result<Tensor, String> {
    let blank = match pad {
        None => Tensor::undefined(logical.dtype(), physical_shape),
        Some(value) => Tensor::from_lanes(logical.dtype(), physical_shape, |_| value),
    };
    let blank = blank.map_err(|error| error.to_string())?;
    let element = Element::of(logical);
    if let Some(digits) = digits(map, logical.shape(), &blank, symbols) {
        if pad.is_none() && logical.is_none_defined() {
            return Ok(blank);
        }
        let is_whole = logical.is_all_defined() && (pad.is_some() || logical.lane_count() == blank.lane_count());
        return element.moved((&digits, Way::Pack), logical, blank, is_whole);
    }
    let (mut bytes, mut defined) = blank.into_parts();
    let Element { lanes, size } = element;
    let given = logical.defined();
    each_element(map, logical.shape(), physical_shape, symbols, |from, to| {
        bytes[to * size..(to + 1) * size].copy_from_slice(&logical.bytes()[from * size..(from + 1) * size]);
        defined[to * lanes..(to + 1) * lanes].copy_from_slice(&given[from * lanes..(from + 1) * lanes]);
    })?;
    Tensor::from_parts(logical.dtype(), physical_shape, bytes, defined).map_err(|error| error.to_string())
}

/// The size of an element.
#[derive(Clone, Copy, Debug)]
struct Element {
    lanes: usize,
    /// In bytes.
    size: usize,
}

impl Element {
    fn of(tensor: &Tensor) -> Self {
        let lanes = usize::from(tensor.dtype().lanes.max(1));
        Self { lanes, size: tensor.bytes().len() / tensor.lane_count().max(1) * lanes }
    }

    /// The elements of `from` in the places of `to`, of which all are defined then if `is_whole`.
    fn moved(self, (digits, way): (&Digits, Way), from: &Tensor, to: Tensor, is_whole: bool) -> Result<Tensor, String> {
        let (dtype, shape) = (to.dtype(), to.shape().to_vec());
        let made = if is_whole {
            let mut bytes = to.into_bytes();
            digits.copy(way, self.size, from.bytes(), &mut bytes);
            Tensor::from_bytes(dtype, &shape, bytes)
        } else {
            let (mut bytes, mut defined) = to.into_parts();
            digits.copy(way, self.size, from.bytes(), &mut bytes);
            digits.copy_parts(way, self.lanes, &from.defined(), &mut defined);
            Tensor::from_parts(dtype, &shape, bytes, defined)
        };
        made.map_err(|error| error.to_string())
    }
}

/// The layout of a tensor as digits; `None` if it is of another form, or does not fit the shapes.
fn digits(map: &IndexMap, logical: &[u64], physical: &Tensor, symbols: &Bindings) -> Option<Digits> {
    if logical.len() != map.vars().len() || logical.contains(&0) {
        return None;
    }
    let elements = logical.iter().try_fold(1_usize, |size, &extent| size.checked_mul(usize::try_from(extent).ok()?))?;
    let digits = AxisTables::of_map(map, symbols, logical, physical.shape())?.digits()?;
    digits.fits(elements, physical.lane_count() / usize::from(physical.dtype().lanes.max(1))).then_some(digits)
}

/// Checks that every padding element of a physical tensor has the value `pad`.
///
/// # Errors
/// The first padding element with another value, or a map that leads outside of the physical tensor.
pub fn padding_holds(
    physical: &Tensor,
    map: &IndexMap,
    logical_shape: &[u64],
    symbols: &Bindings,
    pad: Scalar,
) -> Result<(), String> {
    let lanes = usize::from(physical.dtype().lanes.max(1));
    let mut is_padding = vec![true; physical.lane_count() / lanes];
    each_element(map, logical_shape, physical.shape(), symbols, |_, at| is_padding[at] = false)?;
    let holds = |lane: usize| physical.get(lane).is_some_and(|value| value.same(pad));
    let wrong = (0..physical.lane_count()).find(|lane| is_padding[lane / lanes] && !holds(*lane));
    match wrong.map(|lane| (lane, physical.get(lane))) {
        None => Ok(()),
        Some((lane, Some(found))) => Err(format!("the padding at {lane} is {found:?}, not {pad:?}")),
        Some((lane, None)) => Err(format!("the padding at {lane} was never written, but has to be {pad:?}")),
    }
}

/// Returns the logical tensor of a physical one, without its padding.
///
/// # Errors
/// The map leads outside of the physical tensor.
pub fn unpack(physical: &Tensor, map: &IndexMap, logical_shape: &[u64], symbols: &Bindings) -> Result<Tensor, String> {
    let blank = Tensor::undefined(physical.dtype(), logical_shape).map_err(|error| error.to_string())?;
    let element = Element::of(physical);
    if let Some(digits) = digits(map, logical_shape, physical, symbols) {
        if physical.is_none_defined() {
            return Ok(blank);
        }
        return element.moved((&digits, Way::Unpack), physical, blank, physical.is_all_defined());
    }
    let (mut bytes, mut defined) = blank.into_parts();
    let Element { lanes, size } = element;
    let given = physical.defined();
    each_element(map, logical_shape, physical.shape(), symbols, |to, from| {
        bytes[to * size..(to + 1) * size].copy_from_slice(&physical.bytes()[from * size..(from + 1) * size]);
        defined[to * lanes..(to + 1) * lanes].copy_from_slice(&given[from * lanes..(from + 1) * lanes]);
    })?;
    Tensor::from_parts(physical.dtype(), logical_shape, bytes, defined).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{BinaryOp, ScalarType, Var};

    /// NHWC to NCHWc on a ragged shape: 17 channels in blocks of 4, so that 3 of the last block are padding.
    fn nchw4c() -> IndexMap {
        let [n, h, w, c] = ["n", "h", "w", "c"].map(Var::index);
        let outputs = vec![
            Expr::from(&n),
            Expr::from(&c).floor_div(Expr::int(4)),
            Expr::from(&h),
            Expr::from(&w),
            Expr::from(&c).floor_mod(Expr::int(4)),
        ];
        IndexMap::new(vec![n, h, w, c], [2, 7, 9, 17].map(Expr::int).to_vec(), outputs, vec![]).unwrap()
    }

    #[test]
    fn pack_follows_the_map_and_leaves_padding_undefined() {
        let map = nchw4c();
        let logical = Tensor::from_fn(ScalarType::Int32, &[2, 7, 9, 17], |k| Scalar::Int(k as i128)).unwrap();
        let physical = pack(&logical, &map, &[2, 5, 7, 9, 4], &Bindings::new(), None).unwrap();
        let at = |index: &[u64]| physical.get(physical.lane_at(index).unwrap());
        let expected = ((7 + 6) * 9 + 5) * 17 + 16;
        assert!(at(&[1, 4, 6, 5, 0]).unwrap().same(Scalar::Int(expected)));
        assert!(at(&[1, 4, 6, 5, 1]).is_none());
        let undefined = physical.defined().iter().filter(|&&defined| !defined).count();
        assert_eq!(undefined, 2 * 7 * 9 * 3);
        assert_eq!(unpack(&physical, &map, &[2, 7, 9, 17], &Bindings::new()).unwrap(), logical);
    }

    #[test]
    fn pack_writes_the_pad_value_and_padding_holds_checks_it() {
        let (map, none) = (nchw4c(), Bindings::new());
        let logical = Tensor::from_fn(ScalarType::Int32, &[2, 7, 9, 17], |k| Scalar::Int(k as i128)).unwrap();
        let packed = |pad| pack(&logical, &map, &[2, 5, 7, 9, 4], &none, pad).unwrap();
        let held = |physical: &Tensor| padding_holds(physical, &map, &[2, 7, 9, 17], &none, Scalar::Int(-3));
        let right = packed(Some(Scalar::Int(-3)));
        assert!(right.is_all_defined());
        assert_eq!(unpack(&right, &map, &[2, 7, 9, 17], &none).unwrap(), logical);
        held(&right).unwrap();
        assert!(held(&packed(Some(Scalar::Int(4)))).unwrap_err().contains("not Int(-3)"));
        assert!(held(&packed(None)).unwrap_err().contains("never written"));
    }

    #[test]
    fn a_map_that_leaves_the_shape_is_an_error() {
        let logical = Tensor::from_fn(ScalarType::Int32, &[2, 7, 9, 17], |k| Scalar::Int(k as i128)).unwrap();
        let error = pack(&logical, &nchw4c(), &[2, 4, 7, 9, 4], &Bindings::new(), None).unwrap_err();
        assert!(error.contains("[0, 0, 0, 16] to [0, 4, 0, 0, 0], outside of [2, 4, 7, 9, 4]"), "{error}");
    }

    #[test]
    fn expressions_over_several_indices_are_evaluated_too() {
        let [i, j] = ["i", "j"].map(Var::index);
        let xor = Expr::binary(BinaryOp::BitXor, Expr::from(&i), Expr::from(&j));
        let map =
            IndexMap::new(vec![i.clone(), j], vec![Expr::int(4), Expr::int(8)], vec![Expr::from(&i), xor], vec![]);
        let logical = Tensor::from_fn(ScalarType::Int8, &[4, 8], |k| Scalar::Int(k as i128)).unwrap();
        let physical = pack(&logical, &map.unwrap(), &[4, 8], &Bindings::new(), None).unwrap();
        assert!(physical.get(physical.lane_at(&[3, 5 ^ 3]).unwrap()).unwrap().same(Scalar::Int(3 * 8 + 5)));
    }
}
