//! The two layouts of a move: XLA's notation, index maps, or names such as `NCHW4c`.
//!
//! ```text
//! f32[4001,4003]{1,0}              {1,0:T(8,128)}                          the second one is of the same array
//! lambda n,h,w,c: [n,c,h,w]        lambda n,h,w,c: [n,c//4,h,w,c%4]        with --shape 2,7,9,10 --dtype float16
//! NHWC                             NCHW4c                                  with --shape 2,10,7,9: N, C, H, W
//! ```

use tilewright_ir::layout::{Layout, SymbolicTiling};
use tilewright_ir::{ArrayShape, DataType, ElementType, Expr, IndexMap, ScalarType, Var};
use tilewright_relayout::program::Elements;
use tilewright_relayout::{Placement, Relayout};
use tilewright_script::{Source, Symbols, read_index_map, read_shape};

use super::super::bitcast::{PairArgs, Request};
use super::super::failure::Failure;
use crate::algebra::{self, Ranges};
use crate::formats;

/// A move that was asked for.
pub(super) struct Sides {
    /// A as it was read.
    pub(super) from: String,
    /// B as it was read.
    pub(super) to: String,
    /// The maps and shapes.
    pub(super) relayout: Relayout,
    /// The type in the program.
    pub(super) elements: Elements,
    /// Bytes of an element.
    pub(super) element_bytes: u64,
    /// Whether a byte of memory has two elements, of 4 bits each.
    pub(super) is_packed: bool,
}

/// Completes B if it is only a layout, `{1,0:T(8,128)}`: it is one of A's array.
pub(super) fn completed(pair: &PairArgs) -> PairArgs {
    let mut pair = pair.clone();
    if let (Some(from), Some(to)) = (&pair.from, &pair.to)
        && to.trim_start().starts_with('{')
        && let Some(array) = from.split('{').next()
    {
        pair.to = Some(format!("{}{}", array.trim(), to.trim()));
    }
    pair
}

/// Reads two arrays in XLA's notation.
pub(super) fn of_arrays(request: &Request) -> Result<Sides, Failure> {
    let (from, to) = request.arrays();
    let bits = [from, to].map(element_bits);
    if bits[0] != bits[1] {
        let message = format!("elements of A have {} bits and those of B {}", bits[0], bits[1]);
        return Err(Failure::plain("<A and B>", "element-size", message)
            .with_help("a relayout moves elements as they are; give both arrays one type"));
    }
    let is_packed = bits[0] == 4;
    if !bits[0].is_multiple_of(8) && !is_packed {
        let message = format!("elements of {} bits are not moved", bits[0]);
        return Err(Failure::plain("<A and B>", "element-size", message)
            .with_help("only whole bytes and 4 bits are; without E(n) an element has bytes of its own"));
    }
    let relayout = relayout(request)?;
    let element_bytes = bits[0].div_ceil(8);
    let elements = Elements::zero(program_type(from.element_type(), element_bytes));
    Ok(Sides { from: request.text_a(), to: request.text_b(), relayout, elements, element_bytes, is_packed })
}

/// The two layouts, both as maps from the logical indices of A. Indices have 32 bits if all positions fit and B is no reshape.
fn relayout(request: &Request) -> Result<Relayout, Failure> {
    let (from, to) = request.arrays();
    let pair = &request.pair;
    let extents = constants("A", &pair.from_extents)?;
    let to_extents = constants("B", &pair.to_extents)?;
    let order: Option<Vec<usize>> = match &request.transpose {
        Some(order) => Some(order.clone()),
        None => (extents == to_extents).then(|| (0..extents.len()).collect()),
    };
    let ty = match (order.is_some(), [from, to].map(|array| array.tiling().map(|tiling| tiling.physical_elements()))) {
        (true, [Ok(a), Ok(b)]) if i32::try_from(a.max(b)).is_ok() => ScalarType::Int32,
        (true | false, [_, _]) => ScalarType::Int64,
    };
    let number = |extent: &u64| Expr::Int { value: (*extent).into(), ty };
    let domain: Vec<Expr> = extents.iter().map(number).collect();
    let (vars, indices): (Vec<Var>, Vec<Expr>) = match (order, ty) {
        (Some(order), ScalarType::Int32) => {
            let vars: Vec<Var> = (0..extents.len()).map(|axis| Var::new(format!("i{axis}"), ty)).collect();
            let indices = order.iter().filter_map(|&axis| vars.get(axis)).map(Expr::from).collect();
            (vars, indices)
        }
        _ => (pair.reindex.vars().to_vec(), pair.reindex.outputs().to_vec()),
    };
    let ranges = vars.iter().zip(&domain).fold(Ranges::new(), |ranges, (var, end)| ranges.with(var, end));
    let in_terms_of_a = |placed: Placement, indices: &[Expr]| {
        let outputs = placed.map.apply(indices).iter().map(|output| algebra::simplify(output, &ranges)).collect();
        let map = IndexMap::new(vars.clone(), domain.clone(), outputs, Vec::new());
        map.map(|map| Placement { map, ..placed }).map_err(|error| Failure::Internal(error.to_string()))
    };
    let own: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let b_domain: Vec<Expr> = to_extents.iter().map(number).collect();
    let a = in_terms_of_a(placement("A", from, &domain, ty)?, &own)?;
    let b = in_terms_of_a(placement("B", to, &b_domain, ty)?, &indices)?;
    Ok(Relayout { extents, from: a, to: b })
}

/// Reads two index maps, or names of formats, on one logical shape.
pub(super) fn of_maps(pair: &PairArgs, shape: &str, dtype: DataType) -> Result<Sides, Failure> {
    let source = Source { name: "<--shape>".into(), text: shape.to_owned() };
    let mut symbols = Symbols::default();
    let extents = read_shape(shape, &mut symbols).map_err(|faults| Failure::input(&source, faults))?;
    let numbers = constants("--shape", &extents)?;
    let (from, to) = (pair.from.as_deref().unwrap_or_default(), pair.to.as_deref().unwrap_or_default());
    let relayout = Relayout {
        extents: numbers,
        from: mapped("<A>", from, &extents, &mut symbols)?,
        to: mapped("<B>", to, &extents, &mut symbols)?,
    };
    let element_bytes = dtype.scalar.bytes() * u64::from(dtype.lanes);
    Ok(Sides {
        from: from.into(),
        to: to.into(),
        relayout,
        elements: Elements::zero(moved_type(dtype)),
        element_bytes,
        is_packed: false,
    })
}

/// A map, or the name of a format, with its physical shape.
fn mapped(name: &str, text: &str, shape: &[Expr], symbols: &mut Symbols) -> Result<Placement, Failure> {
    let source = Source { name: name.into(), text: text.to_owned() };
    if let Some(named) = formats::read(text, shape) {
        let named = named.map_err(|faults| Failure::input(&source, faults))?;
        return Ok(Placement { shape: constants(name, &named.shape)?, map: named.map });
    }
    let map = read_index_map(text, Some(shape), symbols).map_err(|faults| Failure::input(&source, faults))?;
    let physical = algebra::physical_shape(&map, &[]).map_err(|fault| Failure::input(&source, vec![fault]))?;
    Ok(Placement { shape: constants(name, &physical.extents)?, map })
}

/// Where the elements of an array are, before `reindex`.
fn placement(name: &str, array: &ArrayShape, extents: &[Expr], ty: ScalarType) -> Result<Placement, Failure> {
    let layout = Layout { split_configs: Vec::new(), ..array.layout_or_default() };
    let fault = |message: String| Failure::plain(format!("<{name}>"), "no-relayout", message);
    let tiling = SymbolicTiling::with_index_type(&layout, extents, ty);
    let tiling = tiling.map_err(|error| fault(error.to_string()))?;
    let shape = constants(name, tiling.physical_shape())?;
    let allocated = constants(name, std::slice::from_ref(tiling.physical_elements()))?;
    if allocated != [shape.iter().product::<u64>()] {
        let message = format!("the tail alignment of {name} adds slots behind its tiles, which are not moved");
        return Err(fault(message).with_help("leave L(n) out"));
    }
    Ok(Placement { shape, map: tiling.to_tiled_map().map_err(|error| fault(error.to_string()))? })
}

/// The values of extents.
fn constants(name: &str, extents: &[Expr]) -> Result<Vec<u64>, Failure> {
    let known = |extent: &Expr| {
        let value = algebra::simplify(extent, &Ranges::new()).as_const_int();
        value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| {
            let message = format!("`{extent}` is no number: data are moved for extents that are known");
            let name = if name.starts_with('<') { name.to_owned() } else { format!("<{name}>") };
            Failure::plain(name, "symbolic-extent", message).with_help("give every extent as a number")
        })
    };
    extents.iter().map(known).collect()
}

/// Bits from one element to the next.
fn element_bits(array: &ArrayShape) -> u64 {
    match array.layout().map_or(0, |layout| layout.element_bits) {
        0 => array.element_type().storage_bits(),
        bits => bits,
    }
}

/// The type of elements of `--dtype` in the program: floats that a device has to convert are moved as integers of the same size.
pub(super) fn moved_type(dtype: DataType) -> DataType {
    let scalar = match dtype.scalar {
        ScalarType::Float16 | ScalarType::BFloat16 => ScalarType::UInt16,
        other => other,
    };
    DataType { scalar, ..dtype }
}

/// The type of elements in the program: that of the array if the language has it, otherwise integers of the same size.
fn program_type(element: ElementType, bytes: u64) -> DataType {
    if element == ElementType::F32 && bytes == 4 {
        return ScalarType::Float32.into();
    }
    let (scalar, lanes) = match bytes {
        1 => (ScalarType::UInt8, 1),
        2 => (ScalarType::UInt16, 1),
        4 => (ScalarType::UInt32, 1),
        8 => (ScalarType::UInt64, 1),
        16 => (ScalarType::UInt32, 4),
        other => (ScalarType::UInt8, u16::try_from(other).unwrap_or(u16::MAX)),
    };
    DataType { scalar, lanes }
}
