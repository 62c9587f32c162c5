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
    let file = npyz::NpyFile::new(bytes).map_err(|error| format!("this is no .npy file: {error}"))?;
    if file.order() != npyz::Order::C && file.shape().len() > 1 {
        return Err("its elements are in Fortran's order, which is not supported".to_owned());
    }
    let shape = file.shape().to_vec();
    let count = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    // A header that promises more elements than there are bytes is refused before memory is taken for them.
    if count.is_none_or(|count| count > bytes.len() as u64) {
        return Err(format!("its shape {shape:?} has more elements than the file"));
    }
    let wrong = |error: std::io::Error| format!("its elements cannot be read: {error}");
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
    Ok(Array { shape, elements })
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
        let hostile = String::from_utf8_lossy(&good).replace("(4,)", "(4000000000000,)").into_bytes();
        assert!(read(&hostile).is_err());
        assert!(read_message(b"\xff\xff").is_err());
    }
}
