//! Reads and writes `.npy` files as bytes: elements are moved, not understood.
//!
//! ```text
//! \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), } <the elements, row-major>
//! ```

/// What every file begins with.
const MAGIC: &[u8] = b"\x93NUMPY";
/// The header ends at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// The contents of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Npy {
    /// NumPy's name of the element type, such as `<f4`, as it stands in the file.
    pub(super) descr: String,
    /// Bytes of an element.
    pub(super) element_bytes: usize,
    /// The shape.
    pub(super) shape: Vec<u64>,
    /// The elements in row-major order.
    pub(super) data: Vec<u8>,
}

impl Npy {
    /// Reads a file.
    ///
    /// # Errors
    /// Why it cannot be read, as a sentence.
    pub(super) fn read(mut bytes: Vec<u8>) -> Result<Self, String> {
        let cut = || "the file ends inside of its header".to_owned();
        if !bytes.starts_with(MAGIC) {
            return Err("this is no .npy file".to_owned());
        }
        let number = |range: std::ops::Range<usize>| {
            let bytes = bytes.get(range)?;
            Some(bytes.iter().rev().fold(0usize, |value, byte| value << 8 | usize::from(*byte)))
        };
        let version = *bytes.get(6).ok_or_else(cut)?;
        let (start, length) = match version {
            1 => (10, number(8..10)),
            2 | 3 => (12, number(8..12)),
            other => return Err(format!("version {other} of the .npy format is not known")),
        };
        let end = start + length.ok_or_else(cut)?;
        let header = String::from_utf8_lossy(bytes.get(start..end).ok_or_else(cut)?).into_owned();
        let descr =
            text_of(&header, "descr").ok_or("the header has no simple element type; structures are not moved")?;
        let element_bytes =
            size_of_type(&descr).ok_or_else(|| format!("the size of the type `{descr}` is not known"))?;
        let shape = shape(&header).ok_or("the header has no shape")?;
        let is_by_columns = after(&header, "fortran_order").is_some_and(|rest| rest.starts_with("True"));
        if is_by_columns && shape.len() > 1 {
            return Err(
                "its elements are in column-major order (fortran_order): save numpy.ascontiguousarray of it".into()
            );
        }
        let data = bytes.split_off(end);
        let needed = shape.iter().try_fold(element_bytes as u64, |size, &extent| size.checked_mul(extent));
        if needed != Some(data.len() as u64) {
            return Err(format!("the shape {shape:?} of `{descr}` does not fit the {} bytes of elements", data.len()));
        }
        Ok(Self { descr, element_bytes, shape, data })
    }

    /// Returns the bytes of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let extents: Vec<String> = self.shape.iter().map(|extent| format!("{extent},")).collect();
        let shape = extents.join(" ");
        let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", self.descr);
        let length = (10 + header.len() + 1).next_multiple_of(ALIGNMENT) - 10;
        header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
        header.push('\n');
        let size = u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
        [MAGIC, &[1, 0], &size, header.as_bytes(), &self.data].concat()
    }
}

/// The text after a key and its colon.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// The text in quotes after a key.
fn text_of(header: &str, key: &str) -> Option<String> {
    let rest = after(header, key)?.strip_prefix('\'')?;
    Some(rest.split_once('\'')?.0.to_owned())
}

fn shape(header: &str) -> Option<Vec<u64>> {
    let (extents, _) = after(header, "shape")?.strip_prefix('(')?.split_once(')')?;
    extents.split(',').map(str::trim).filter(|extent| !extent.is_empty()).map(|extent| extent.parse().ok()).collect()
}

/// The bytes of an element: the number after the letter of its kind.
fn size_of_type(descr: &str) -> Option<usize> {
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    let is_known = kind.starts_with(['b', 'i', 'u', 'f', 'c', 'V', 'B']);
    kind.get(1..)?.parse().ok().filter(|size| is_known && (1..=16).contains(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for shape in [vec![], vec![3], vec![2, 3]] {
            let count = shape.iter().product::<u64>() * 2;
            let data = (0..count).map(|at| u8::try_from(at).unwrap_or_default()).collect();
            let npy = Npy { descr: "<i2".into(), element_bytes: 2, shape, data };
            assert_eq!(npy.bytes().len() % 2, 0);
            assert_eq!(Npy::read(npy.bytes()), Ok(npy));
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = Npy { descr: "<f4".into(), element_bytes: 4, shape: vec![2], data: vec![0; 8] }.bytes();
        assert!(Npy::read(good[..9].to_vec()).is_err());
        assert!(Npy::read(good[..40].to_vec()).is_err());
        assert!(Npy::read(good[..good.len() - 1].to_vec()).is_err());
        assert!(Npy::read(b"PK".to_vec()).is_err());
        let columns = String::from_utf8_lossy(&good[10..]).replace("False", "True ").replace("(2,)", "(2,1)");
        let columns = [&good[..10], columns.as_bytes()].concat();
        assert!(Npy::read(columns).is_err_and(|why| why.contains("column-major")));
    }
}
