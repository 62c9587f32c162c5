//! Reads and writes NumPy's `.npz`: a zip archive with one `.npy` file for each array.
//!
//! ```text
//! numpy.savez("in.npz", image=image, mask=mask)      image.npy, mask.npy     stored
//! numpy.savez_compressed("in.npz", image=image)      image.npy               deflated
//! ```
//!
//! Both forms are read. What is written is stored, in the order given and with a fixed date, so that equal arrays make equal files.

use std::io::{Cursor, Read, Write};

// Names the crate whose features choose what `zip` inflates with.
use flate2 as _;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::npy::{self, Array};

/// Most bytes that all arrays of an archive may have together once they are inflated: a small archive can hold very large files.
const MAX_BYTES: u64 = 1 << 31;
/// What the names of the files in an archive end with.
const SUFFIX: &str = ".npy";

/// Reads the arrays of an archive with their names, in the order of the archive.
///
/// # Errors
/// The bytes are no such archive, a file in it is no array of float32, two have one name, or they are too large together.
pub fn read(bytes: &[u8]) -> Result<Vec<(String, Array)>, String> {
    let mut archive =
        ZipArchive::new(Cursor::new(bytes)).map_err(|error| format!("this is no .npz file: {}", said(&error)))?;
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut left = MAX_BYTES;
    for number in 0..archive.len() {
        let mut file = archive.by_index(number).map_err(|error| format!("file {number} in it: {}", said(&error)))?;
        let name = file.name().map_err(|error| format!("the name of file {number} in it: {}", said(&error)))?;
        let Some(name) = name.strip_suffix(SUFFIX).map(str::to_owned) else {
            return Err(format!("`{name}` in it is no {SUFFIX} file"));
        };
        if arrays.iter().any(|(known, _)| *known == name) {
            return Err(format!("there are two arrays `{name}` in it"));
        }
        let mut contents = Vec::new();
        // The size that the archive states is not believed.
        let read = file.by_ref().take(left + 1).read_to_end(&mut contents);
        read.map_err(|error| format!("array `{name}` cannot be read: {error}"))?;
        let length = u64::try_from(contents.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(length).ok_or_else(|| format!("its arrays have more than {MAX_BYTES} bytes"))?;
        arrays.push((name.clone(), npy::read(&contents).map_err(|what| format!("array `{name}`: {what}"))?));
    }
    Ok(arrays)
}

/// Returns the bytes of an archive with these arrays, not compressed.
///
/// # Errors
/// The number of elements of an array is not that of its shape, or two arrays have one name.
pub fn write<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> Result<Vec<u8>, String> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, array) in arrays {
        let contents = npy::write(array).map_err(|what| format!("array `{name}`: {what}"))?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file(contents.len() >= 1 << 31);
        let wrong = |what: String| format!("array `{name}`: {what}");
        writer.start_file(format!("{name}{SUFFIX}"), options).map_err(|error| wrong(said(&error)))?;
        writer.write_all(&contents).map_err(|error| wrong(error.to_string()))?;
    }
    writer.finish().map(Cursor::into_inner).map_err(|error| said(&error))
}

/// An error of the archive in words.
fn said(error: &ZipError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[u64], first: f32) -> Array {
        let elements = (0..shape.iter().product::<u64>()).scan(first, |next, _| {
            *next += 0.5;
            Some(*next)
        });
        Array { shape: shape.to_vec(), elements: elements.collect() }
    }

    /// An archive with one file of these bytes, deflated.
    fn deflated(name: &str, contents: &[u8]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        let done = writer.start_file(name, options).is_ok() && writer.write_all(contents).is_ok();
        assert!(done, "{name}");
        writer.finish().map(Cursor::into_inner).unwrap_or_default()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let arrays = [("image/a b", array(&[3, 5], 0.0)), ("scalar", array(&[], 7.0)), ("rows", array(&[7, 2], -3.0))];
        let bytes = write(arrays.iter().map(|(name, array)| (*name, array))).unwrap_or_default();
        let expected: Vec<(String, Array)> =
            arrays.iter().map(|(name, array)| ((*name).to_owned(), array.clone())).collect();
        assert_eq!(read(&bytes), Ok(expected));
        assert_eq!(write(arrays.iter().map(|(name, array)| (*name, array))), Ok(bytes));
        assert_eq!(write([]).and_then(|bytes| read(&bytes)), Ok(Vec::new()));
    }

    #[test]
    fn deflated_arrays_are_read() {
        let one = array(&[11, 13], 1.0);
        let contents = npy::write(&one).unwrap_or_default();
        assert_eq!(read(&deflated("x.npy", &contents)), Ok(vec![("x".to_owned(), one)]));
    }

    #[test]
    fn damaged_archives_are_refused() {
        assert!(read(b"").is_err());
        assert!(read(b"\x93NUMPY\x01\x00\x02\x00{}").is_err());
        assert!(read(&deflated("readme.txt", b"x")).is_err());
        assert!(read(&deflated("x.npy", b"no array")).is_err());
        let one = array(&[4], 0.0);
        assert!(write([("x", &one), ("x", &one)]).is_err());
        let wrong = Array { shape: vec![5], elements: vec![0.0; 4] };
        assert!(write([("x", &wrong)]).is_err());
        let good = write([("x", &array(&[3], 0.0))]).unwrap_or_default();
        assert!(read(&good[..good.len() - 7]).is_err());
        // A bit of the elements flipped: the checksum of the archive says so.
        let mut flipped = good.clone();
        let at = good.windows(2).position(|pair| pair == b" \n").unwrap_or(0) + 3;
        flipped[at] ^= 1;
        assert!(read(&flipped).is_err());
    }

    #[test]
    fn an_array_whose_header_promises_more_than_it_has_is_refused() {
        let header = npy::write(&Array { shape: vec![1 << 20], elements: vec![0.0; 1 << 20] }).unwrap_or_default();
        let hostile = String::from_utf8_lossy(&header[..128]).replace("(1048576,)", "(9048576,)").into_bytes();
        assert!(read(&deflated("x.npy", &hostile)).is_err());
    }
}
