//! Reads and writes tensors of float32: NumPy's `.npy`, and the protobuf message of one tensor (`.pb`), which is how ONNX ships test data.
//! Several tensors by name are in [`crate::npz`].

use prost::Message;

use crate::onnx::messages::TensorProto;
use crate::onnx::tensor_of;

/// The elements and the extents of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The extents.
    pub shape: Vec<u64>,
    /// The elements, row-major.
    pub elements: Vec<f32>,
}

/// Reads a file in `.npy` format. Elements of type float64 are rounded.
///
/// # Errors
/// The bytes have another format, the elements another type, or they are not row-major.
pub fn read(bytes: &[u8]) -> Result<Array, String> {
    has_sound_shape(bytes)?;
    let mut rest = bytes;
    let file = npyz::NpyFile::new(&mut rest).map_err(|error| format!("this is no .npy file: {error}"))?;
    if file.order() != npyz::Order::C && file.shape().len() > 1 {
        return Err("its elements are in Fortran's order, which is not supported".to_owned());
    }
    let shape = file.shape().to_vec();
    let count = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    // A header that promises more elements than there are bytes is refused before memory is taken for them.
    if count.is_none_or(|count| count > bytes.len() as u64) {
        return Err(format!("its shape {shape:?} has more elements than the file"));
    }
    let wrong = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => format!("it ends in front of the last element of its shape {shape:?}"),
        _ => format!("its elements cannot be read: {error}"),
    };
    let dtype = file.dtype();
    let elements = match file.try_data::<f32>() {
        Ok(reader) => reader.collect::<Result<_, _>>().map_err(wrong)?,
        Err(file) => {
            let reader =
                file.try_data::<f64>().map_err(|_| format!("its elements are {}, not float32", dtype.descr()))?;
            #[expect(clippy::cast_possible_truncation, reason = "networks are computed in float32")]
            let rounded = reader.map(|value| value.map(|value| value as f32)).collect::<Result<_, _>>();
            rounded.map_err(wrong)?
        }
    };
    if !rest.is_empty() {
        return Err(format!("it has {} bytes behind the elements of its shape {shape:?}", rest.len()));
    }
    Ok(Array { shape, elements })
}

/// Checks that the extents in the header have a product: the crate that reads it multiplies them unchecked. Headers of records, which
/// have brackets, are refused before.
fn has_sound_shape(bytes: &[u8]) -> Result<(), String> {
    let start = if bytes.get(6) == Some(&1) { 10 } else { 12 };
    let length = bytes.get(8..start).unwrap_or_default();
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let header = String::from_utf8_lossy(bytes.get(start..).map_or(&[][..], |rest| &rest[..length.min(rest.len())]));
    if header.contains('[') {
        return Err("its elements are records, not float32".to_owned());
    }
    for group in header.split('(').skip(1) {
        let extents = group.split(')').next().unwrap_or_default().split(',').map(str::trim);
        let mut product = 1_u64;
        for extent in extents.filter(|extent| !extent.is_empty()) {
            // An extent of 0 does not make the others small.
            let factor = extent.parse::<u64>().ok().map(|extent| extent.max(1));
            product = factor.and_then(|factor| product.checked_mul(factor)).ok_or_else(|| {
                format!("its shape is ({}), which no file has", group.split(')').next().unwrap_or_default())
            })?;
        }
    }
    Ok(())
}

/// Reads a tensor that is encoded as a protobuf message.
///
/// # Errors
/// The bytes are no such message, or the elements are not float32.
pub fn read_message(bytes: &[u8]) -> Result<Array, String> {
    let tensor = TensorProto::decode(bytes).map_err(|error| format!("this is no tensor: {error}"))?;
    let (shape, contents) = tensor_of(&tensor)?;
    let count = shape.iter().product::<u64>();
    let elements = (0..usize::try_from(count).unwrap_or(0)).map(|at| contents.float(at));
    let elements = elements.collect::<Option<_>>().ok_or("its elements are integers")?;
    Ok(Array { shape, elements })
}

/// Returns the bytes of a `.npy` file.
///
/// # Errors
/// The number of elements is not that of the shape.
pub fn write(array: &Array) -> Result<Vec<u8>, String> {
    use npyz::WriterBuilder;
    let mut bytes = Vec::new();
    let wrong = |error: std::io::Error| error.to_string();
    let options = npyz::WriteOptions::new().default_dtype().shape(&array.shape).writer(&mut bytes);
    let mut writer = options.begin_nd().map_err(wrong)?;
    writer.extend(array.elements.iter().copied()).map_err(wrong)?;
    writer.finish().map_err(wrong)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let array = Array { shape: vec![2, 3], elements: vec![1.0, -0.0, 3.5, f32::INFINITY, 5.0, 1e-30] };
        assert_eq!(write(&array).and_then(|bytes| read(&bytes)), Ok(array));
        let scalar = Array { shape: vec![], elements: vec![7.0] };
        assert_eq!(write(&scalar).and_then(|bytes| read(&bytes)), Ok(scalar));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(read(b"").is_err());
        assert!(read(b"\x93NUMPY\x01\x00\x02\x00{}").is_err());
        let good = write(&Array { shape: vec![4], elements: vec![0.0; 4] }).unwrap_or_default();
        assert!(read(&good[..good.len() - 3]).is_err());
        assert!(read_message(b"\xff\xff").is_err());
    }
}
