//! The options `--input`, `--expect` and `--save`: files of arrays for the tensors of a network.
//!
//! ```text
//! --input image=image.npy     one tensor             .npy, or .pb as ONNX ships test data
//! --input image=in.npz        one tensor             the array `image` of an archive
//! --input in.npz              every array of it      each is for the tensor of its name
//! --save out.npz              every output
//! ```
//!
//! All files are read before anything is proved, so that a wrong name or shape is reported at once.

use std::fs;
use std::path::Path;

use crate::cli::failure::Failure;
use crate::cli::output;
use crate::network::npy::{self, Array};
use crate::network::npz;

/// Longest file read, in bytes: the weights of the classic networks are below 600 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Options for the inputs and the outputs of a network that is run.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct ArrayArgs {
    /// With --run: the contents of an input, as `.npy`, in an `.npz`, or as `.pb` as ONNX ships test data; all inputs that an
    /// `.npz` names, if no NAME is given. Other inputs are random numbers
    #[arg(long = "input", value_name = "[NAME=]FILE", value_parser = named)]
    inputs: Vec<Named>,
    /// With --run: an expected output, which is compared with the device's; or those that an `.npz` names
    #[arg(long = "expect", value_name = "[NAME=]FILE", value_parser = named)]
    expected: Vec<Named>,
    /// With --run: write an output of the device to a `.npy` or `.npz` file; or all of them to an `.npz`
    #[arg(long = "save", value_name = "[NAME=]FILE", value_parser = named)]
    saved: Vec<Named>,
}

/// A file for a tensor, or an archive for the tensors that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: Option<String>,
    file: String,
}

/// Reads `NAME=FILE` or `FILE.npz`; a name may contain `=`.
fn named(text: &str) -> Result<Named, String> {
    match text.rsplit_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok(Named { name: Some(name.to_owned()), file: file.to_owned() })
        }
        None if has_suffix(text, "npz") => Ok(Named { name: None, file: text.to_owned() }),
        Some(_) | None => Err("expected NAME=FILE, or an archive FILE.npz".to_owned()),
    }
}

fn has_suffix(path: &str, wanted: &str) -> bool {
    Path::new(path).extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case(wanted))
}

/// A tensor that may be named, with its shape.
pub(in crate::cli) type Known<'a> = (&'a str, &'a [u64]);

/// The contents of a tensor, and the file that they come from.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Contents {
    /// The tensor.
    pub(in crate::cli) name: String,
    /// The file.
    pub(in crate::cli) file: String,
    /// The elements, row-major.
    pub(in crate::cli) elements: Vec<f32>,
}

/// What the options give and want.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Exchanged {
    /// Inputs with their contents.
    pub(in crate::cli) inputs: Vec<Contents>,
    /// Outputs with the contents that are expected.
    pub(in crate::cli) expected: Vec<Contents>,
    /// Files to write, each with the outputs in it.
    saved: Vec<(String, Vec<String>)>,
}

impl ArrayArgs {
    /// The first of these options that was given.
    pub(super) fn first_used(&self) -> Option<&'static str> {
        let used = [("--input", &self.inputs), ("--expect", &self.expected), ("--save", &self.saved)];
        used.iter().find(|(_, given)| !given.is_empty()).map(|(option, _)| *option)
    }

    /// Reads all files. `network` is the file of the network, for messages.
    ///
    /// # Errors
    /// A name that is no input or output, a name that is given twice, a file that cannot be read, or an array of another shape.
    pub(super) fn read(
        &self,
        network: &str,
        inputs: &[Known<'_>],
        outputs: &[Known<'_>],
    ) -> Result<Exchanged, Failure> {
        let saved = self.saved.iter().map(|named| match &named.name {
            Some(name) => (named.file.clone(), vec![name.clone()]),
            None => (named.file.clone(), outputs.iter().map(|(name, _)| (*name).to_owned()).collect()),
        });
        let saved: Vec<(String, Vec<String>)> = saved.collect();
        for (position, (file, names)) in saved.iter().enumerate() {
            for name in names {
                shape_of(("--save", network), name, outputs)?;
            }
            if saved[..position].iter().any(|(other, _)| other == file) {
                return Err(Failure::plain(file, "outputs-clash", format!("two options --save name {file}"))
                    .with_help("give each its own file, or write all outputs to one with --save FILE.npz"));
            }
        }
        Ok(Exchanged {
            inputs: contents_of(("--input", network), &self.inputs, inputs)?,
            expected: contents_of(("--expect", network), &self.expected, outputs)?,
            saved,
        })
    }
}

impl Exchanged {
    /// The contents of an input, if they are given.
    pub(in crate::cli) fn input(&self, name: &str) -> Option<&[f32]> {
        self.inputs.iter().find(|contents| contents.name == name).map(|contents| contents.elements.as_slice())
    }

    /// Whether files are to be written.
    pub(in crate::cli) fn saves(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Writes the files of `--save`; `output` returns an output.
    ///
    /// # Errors
    /// A file cannot be written, or an output is missing.
    pub(super) fn save(&self, output: impl Fn(&str) -> Result<Array, Failure>) -> Result<(), Failure> {
        for (file, names) in &self.saved {
            let arrays = names.iter().map(|name| output(name)).collect::<Result<Vec<_>, _>>()?;
            let bytes = match arrays.as_slice() {
                [one] if !has_suffix(file, "npz") => npy::write(one),
                all => npz::write(names.iter().map(String::as_str).zip(all)),
            };
            output::write_bytes(Path::new(file), &bytes.map_err(Failure::Internal)?)?;
        }
        Ok(())
    }
}

/// The shape of a tensor that an option names.
fn shape_of<'a>((option, network): (&str, &str), name: &str, known: &[Known<'a>]) -> Result<&'a [u64], Failure> {
    if let Some((_, shape)) = known.iter().find(|(other, _)| *other == name) {
        return Ok(shape);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let failure = Failure::plain(network, "model-value", format!("{option} names `{name}`, which it cannot"));
    let help =
        if names.is_empty() { "it can name nothing".to_owned() } else { format!("it can name {}", names.join(", ")) };
    Err(failure.with_help(&help))
}

/// The arrays that an option gives.
fn contents_of(option: (&str, &str), given: &[Named], known: &[Known<'_>]) -> Result<Vec<Contents>, Failure> {
    let mut all: Vec<Contents> = Vec::new();
    for named in given {
        // A name that is unknown is reported before the file is read.
        if let Some(name) = &named.name {
            shape_of(option, name, known)?;
        }
        for (name, array) in arrays(named)? {
            let shape = shape_of(option, &name, known)?;
            let wrong = |code, what: String| Failure::plain(&named.file, code, format!("{}: {what}", named.file));
            if array.shape != shape {
                let what = format!("its shape is {:?}, and `{name}` has the shape {shape:?}", array.shape);
                return Err(wrong("model-array", what));
            }
            if all.iter().any(|other| other.name == name) {
                return Err(wrong("model-value", format!("`{name}` is given twice by {}", option.0)));
            }
            all.push(Contents { name, file: named.file.clone(), elements: array.elements });
        }
    }
    Ok(all)
}

/// The arrays of a file.
fn arrays(named: &Named) -> Result<Vec<(String, Array)>, Failure> {
    let bytes = contents(&named.file)?;
    let wrong = |what: String| Failure::plain(&named.file, "model-array", format!("{}: {what}", named.file));
    if !has_suffix(&named.file, "npz") {
        let read = if has_suffix(&named.file, "pb") { npy::read_message(&bytes) } else { npy::read(&bytes) };
        return Ok(vec![(named.name.clone().unwrap_or_default(), read.map_err(wrong)?)]);
    }
    let arrays = npz::read(&bytes).map_err(wrong)?;
    let Some(wanted) = &named.name else { return Ok(arrays) };
    let names = arrays.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    match arrays.into_iter().find(|(name, _)| name == wanted) {
        Some(found) => Ok(vec![found]),
        None => Err(wrong(format!("it has no array `{wanted}`")).with_help(&format!("its arrays are {names}"))),
    }
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read, or is too long.
pub(super) fn contents(path: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |error: std::io::Error| Failure::plain(path, "cannot-read", format!("cannot read {path}: {error}"));
    if fs::metadata(path).map_err(cannot)?.len() > MAX_BYTES {
        return Err(Failure::plain(path, "too-long", format!("{path} is longer than {} MiB", MAX_BYTES >> 20)));
    }
    fs::read(path).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_for_one_tensor_or_an_archive_for_several() {
        let one = |name: Option<&str>, file: &str| Ok(Named { name: name.map(str::to_owned), file: file.to_owned() });
        assert_eq!(named("image=a.npy"), one(Some("image"), "a.npy"));
        assert_eq!(named("a=b=c.npz"), one(Some("a=b"), "c.npz"));
        assert_eq!(named("all.NPZ"), one(None, "all.NPZ"));
        for wrong in ["", "a.npy", "=a.npy", "image=", "="] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
