//! Constant tensors of an ONNX file, as shape and contents.

use super::messages::TensorProto;
use crate::model::Contents;
use crate::shapes::checked;

/// The number that stands for float32 in `data_type` and `elem_type`.
pub(super) const FLOAT32: i32 = 1;
/// The number for int32.
const INT32: i32 = 6;
/// The number for int64.
const INT64: i32 = 7;

/// Returns the shape and the elements of a tensor. A tensor of integers may be empty, one of floats may not.
pub(super) fn read(tensor: &TensorProto) -> Result<(Vec<u64>, Contents), String> {
    if tensor.data_location != 0 {
        return Err("its elements are in another file, which is not supported".to_owned());
    }
    let shape = shape_of(&tensor.dims)?;
    let count = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    let count = count.ok_or_else(|| format!("the shape {shape:?} is too large"))?;
    let contents = match tensor.data_type {
        FLOAT32 => Contents::Floats(floats(tensor)?),
        INT32 => Contents::Integers(int32s(tensor)?),
        INT64 => Contents::Integers(int64s(tensor)?),
        other => return Err(format!("its element type is number {other}; float32, int32 and int64 are supported")),
    };
    let given = match &contents {
        Contents::Floats(values) => values.len(),
        Contents::Integers(values) => values.len(),
        Contents::Same(_) => return Ok((shape, contents)),
    };
    if u64::try_from(given) != Ok(count) {
        return Err(format!("it has {given} elements, and its shape is {shape:?}"));
    }
    if tensor.data_type == FLOAT32 {
        checked(shape.clone())?;
    }
    Ok((shape, contents))
}

/// Extents that are not negative.
pub(super) fn shape_of(dims: &[i64]) -> Result<Vec<u64>, String> {
    let shape = dims.iter().map(|&extent| u64::try_from(extent)).collect::<Result<_, _>>();
    shape.map_err(|_| format!("the shape {dims:?} has a negative extent"))
}

fn floats(tensor: &TensorProto) -> Result<Vec<f32>, String> {
    if tensor.raw_data.is_empty() {
        return Ok(tensor.float_data.clone());
    }
    Ok(words(&tensor.raw_data)?.into_iter().map(f32::from_le_bytes).collect())
}

fn int32s(tensor: &TensorProto) -> Result<Vec<i64>, String> {
    if tensor.raw_data.is_empty() {
        return Ok(tensor.int32_data.iter().copied().map(i64::from).collect());
    }
    Ok(words(&tensor.raw_data)?.into_iter().map(|word| i64::from(i32::from_le_bytes(word))).collect())
}

fn int64s(tensor: &TensorProto) -> Result<Vec<i64>, String> {
    if tensor.raw_data.is_empty() {
        return Ok(tensor.int64_data.clone());
    }
    Ok(words(&tensor.raw_data)?.into_iter().map(i64::from_le_bytes).collect())
}

/// Bytes in groups of one element.
fn words<const N: usize>(bytes: &[u8]) -> Result<Vec<[u8; N]>, String> {
    let (words, rest) = bytes.as_chunks::<N>();
    if rest.is_empty() { Ok(words.to_vec()) } else { Err(format!("its {} bytes are no whole elements", bytes.len())) }
}
