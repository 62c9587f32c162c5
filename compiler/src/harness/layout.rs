//! Conversion of tensors between layouts: what the host does with the arguments of a function whose parameters were
//! moved to another layout.
//!
//! An [`IndexMap`] is evaluated once for every element, so its outputs are compiled first: an expression over a single
//! index becomes a table.

use tilewright_interp::Tensor;
use tilewright_ir::{BinaryOp, Bindings, EvalError, Expr, IndexMap, Scalar};

/// A compiled index expression, with the meaning of [`Expr::eval_index`].
enum CompiledExpr {
    /// A constant.
    Constant(i128),
    /// The index of this axis.
    Index(usize),
    /// The values of an expression over one index: its axis, and a value for each position.
    Table(usize, Vec<i128>),
    /// An operator on two expressions, with the type that bounds shift amounts.
    Binary(BinaryOp, tilewright_ir::ScalarType, Box<CompiledExpr>, Box<CompiledExpr>),
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

/// The longest axis for which tables are made.
const MAX_TABLE_LEN: u64 = 1 << 20;

/// Compiles an expression over the indices of a map.
fn compile(expr: &Expr, map: &IndexMap, symbols: &Bindings, shape: &[u64]) -> Result<CompiledExpr, EvalError> {
    let vars = expr.vars();
    let axes: Vec<_> = (0..map.vars().len()).filter(|&axis| vars.contains(&map.vars()[axis])).collect();
    match (axes.as_slice(), expr) {
        ([], _) => expr.eval_index(symbols).map(CompiledExpr::Constant),
        (&[axis], Expr::Var(_)) => Ok(CompiledExpr::Index(axis)),
        (&[axis], _) if shape[axis] <= MAX_TABLE_LEN => {
            let mut bindings = symbols.clone();
            let values = (0..shape[axis]).map(|at| {
                bindings.insert(map.vars()[axis].clone(), at.into());
                expr.eval_index(&bindings)
            });
            Ok(CompiledExpr::Table(axis, values.collect::<Result<_, _>>()?))
        }
        (_, Expr::Binary(op, a, b)) => {
            let (a, b) = (compile(a, map, symbols, shape)?, compile(b, map, symbols, shape)?);
            Ok(CompiledExpr::Binary(*op, expr_type(expr), Box::new(a), Box::new(b)))
        }
        _ => Ok(CompiledExpr::Other(expr.clone())),
    }
}

/// The type of the left operand, which bounds shift amounts.
fn expr_type(expr: &Expr) -> tilewright_ir::ScalarType {
    expr.children().next().map_or(tilewright_ir::ScalarType::Int32, |lhs| lhs.dtype().scalar)
}

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

/// Calls `visit` with the row-major position of each logical element, and of the physical element that the map takes
/// it to.
fn each_element(
    map: &IndexMap,
    logical: &[u64],
    physical: &[u64],
    symbols: &Bindings,
    mut visit: impl FnMut(usize, usize),
) -> Result<(), String> {
    if logical.len() != map.vars().len() {
        return Err(format!("`{map}` does not take {} indices", logical.len()));
    }
    let compiled = CompiledMap::new(map, symbols, logical).map_err(|error| error.to_string())?;
    if logical.contains(&0) {
        return Ok(());
    }
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

/// Returns, for each logical element in row-major order, the row-major position of its physical element.
///
/// # Errors
/// The map leads outside of the physical shape.
pub fn places(map: &IndexMap, logical: &[u64], physical: &[u64], symbols: &Bindings) -> Result<Vec<usize>, String> {
    let mut places = Vec::new();
    each_element(map, logical, physical, symbols, |_, at| places.push(at))?;
    Ok(places)
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
    let mut bytes = Vec::new();
    let mut defined = Vec::new();
    let blank = match pad {
        None => Tensor::undefined(logical.dtype(), physical_shape),
        Some(value) => Tensor::from_fn(logical.dtype(), physical_shape, |_| value),
    };
    let blank = blank.map_err(|error| error.to_string())?;
    bytes.extend_from_slice(blank.bytes());
    defined.extend_from_slice(blank.defined());
    let lanes = usize::from(logical.dtype().lanes.max(1));
    let size = logical.bytes().len() / logical.lane_count().max(1) * lanes;
    each_element(map, logical.shape(), physical_shape, symbols, |from, to| {
        bytes[to * size..(to + 1) * size].copy_from_slice(&logical.bytes()[from * size..(from + 1) * size]);
        defined[to * lanes..(to + 1) * lanes].copy_from_slice(&logical.defined()[from * lanes..(from + 1) * lanes]);
    })?;
    with_defined(blank.dtype(), physical_shape, bytes, &defined)
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
    let (mut bytes, mut defined) = (blank.bytes().to_vec(), blank.defined().to_vec());
    let lanes = usize::from(physical.dtype().lanes.max(1));
    let size = physical.bytes().len() / physical.lane_count().max(1) * lanes;
    each_element(map, logical_shape, physical.shape(), symbols, |to, from| {
        bytes[to * size..(to + 1) * size].copy_from_slice(&physical.bytes()[from * size..(from + 1) * size]);
        defined[to * lanes..(to + 1) * lanes].copy_from_slice(&physical.defined()[from * lanes..(from + 1) * lanes]);
    })?;
    with_defined(blank.dtype(), logical_shape, bytes, &defined)
}

/// Returns a tensor of the given bytes in which only the lanes marked in `defined` are defined.
fn with_defined(
    dtype: tilewright_ir::DataType,
    shape: &[u64],
    bytes: Vec<u8>,
    defined: &[bool],
) -> Result<Tensor, String> {
    let full = Tensor::from_bytes(dtype, shape, bytes).map_err(|error| error.to_string())?;
    if defined.iter().all(|&defined| defined) {
        return Ok(full);
    }
    let mut partial = Tensor::undefined(dtype, shape).map_err(|error| error.to_string())?;
    for (lane, _) in defined.iter().enumerate().filter(|(_, defined)| **defined) {
        if let Some(value) = full.get(lane) {
            partial.set(lane, value);
        }
    }
    Ok(partial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{ScalarType, Var};

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
