//! Files that a command writes: checks before any work is done, and messages if they cannot be written.

use std::fs;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::files::write_file;

/// A file that a command will write.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputFile<'a> {
    /// The option that names it.
    pub(super) option: &'static str,
    /// The path of the file.
    pub(super) path: &'a Path,
    /// The suffix of its format, without the point; none for a folder.
    pub(super) suffix: Option<&'static str>,
}

/// Refuses outputs that would replace an input or each other, a file in a folder that is written as a whole, and those
/// whose suffix is that of another format. Devices such as `/dev/stdout` are taken as they are.
///
/// # Errors
/// The first output that is refused.
pub(super) fn refuse_clashes(inputs: &[&str], outputs: &[OutputFile<'_>]) -> Result<(), Failure> {
    let files: Vec<&OutputFile<'_>> = outputs.iter().filter(|output| !is_device(output.path)).collect();
    for (position, output) in files.iter().enumerate() {
        let name = output.path.display();
        let refused = |code, message: String| Err(Failure::plain("<arguments>", code, message));
        if let Some(input) = inputs.iter().find(|input| **input != "-" && is_same(Path::new(input), output.path)) {
            let message = format!("{} {name} would replace the input {input}", output.option);
            return refused("output-is-input", message).map_err(|fault| fault.with_help("give another name"));
        }
        if let Some(other) = files[..position].iter().find(|other| is_same(other.path, output.path)) {
            let message = format!("{} and {} name one file, {name}", other.option, output.option);
            return refused("outputs-clash", message).map_err(|fault| fault.with_help("give each its own name"));
        }
        if let Some(folder) = files.iter().find(|other| other.suffix.is_none() && is_in(output.path, other.path)) {
            let message =
                format!("{} {name} is in the folder of {}, which holds nothing else", output.option, folder.option);
            return refused("outputs-clash", message).map_err(|fault| fault.with_help("give another name"));
        }
        let Some(expected) = output.suffix else { continue };
        let suffix = output.path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
        if let Some(found) = suffix.filter(|found| found != expected) {
            let message =
                format!("{} {name} would be {} in a file that ends with .{found}", output.option, written(expected));
            let help = format!("let the name end with .{expected}");
            return refused("output-suffix", message).map_err(|fault| fault.with_help(&help));
        }
    }
    Ok(())
}

fn written(suffix: &str) -> &'static str {
    match suffix {
        "svg" => "an SVG picture",
        "json" => "JSON",
        "html" => "a page",
        _ => "another format",
    }
}

/// Writes a file, or replaces it.
///
/// # Errors
/// The machine does not take it; an older file is unchanged then.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// As [`write`], for contents that are no text.
///
/// # Errors
/// As [`write`].
pub(super) fn write_bytes(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    write_file(path, contents).map_err(|error| {
        let name = path.display().to_string();
        let failure = Failure::plain(&name, "cannot-write", format!("cannot write {name}: {error}"));
        match error.kind() {
            std::io::ErrorKind::StorageFull => failure.with_help("the disk is full; nothing was written"),
            std::io::ErrorKind::FileTooLarge => {
                failure.with_help("it is above the limit on the size of files (ulimit -f)")
            }
            _ => failure.with_help("give the path of a file in a folder that exists"),
        }
    })
}

/// Whether a path exists and is neither a plain file nor a folder, such as `/dev/stdout`.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// Whether two paths lead to the same file, also through links. Files that do not exist are compared by their paths.
fn is_same(left: &Path, right: &Path) -> bool {
    if let (Ok(left), Ok(right)) = (fs::metadata(left), fs::metadata(right)) {
        return is_same_inode(&left, &right);
    }
    matches!((absolute(left), absolute(right)), (Some(left), Some(right)) if left == right)
}

/// Whether a file is directly in a folder.
fn is_in(file: &Path, folder: &Path) -> bool {
    let parent = file.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    parent.is_some_and(|parent| is_same(parent, folder))
}

#[cfg(unix)]
fn is_same_inode(left: &fs::Metadata, right: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (left.dev(), left.ino()) == (right.dev(), right.ino())
}

#[cfg(not(unix))]
fn is_same_inode(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    false
}

/// The path without links and `..` in its folder. The file itself need not exist.
fn absolute(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder that is not there yet is compared by its name.
    let parent = parent.canonicalize().or_else(|_| std::path::absolute(parent)).ok()?;
    Some(parent.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(inputs: &[&str], outputs: &[(&'static str, &Path, &'static str)]) -> Result<(), &'static str> {
        let outputs: Vec<_> =
            outputs.iter().map(|&(option, path, suffix)| OutputFile { option, path, suffix: Some(suffix) }).collect();
        refuse_clashes(inputs, &outputs).map_err(|failure| match failure {
            Failure::Input { diagnostics, .. } => diagnostics[0].code,
            _ => "another failure",
        })
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("in.json"), "x").unwrap();
        fs::hard_link(at("in.json"), at("link.json")).unwrap();
        let input = at("in.json").to_str().unwrap().to_owned();
        let inputs = [input.as_str()];
        for name in ["in.json", "./in.json", "link.json"] {
            assert_eq!(outcome(&inputs, &[("-o", &at(name), "json")]), Err("output-is-input"), "{name}");
        }
        assert_eq!(outcome(&inputs, &[("-o", &at("out.json"), "json")]), Ok(()));
        let twice = [("-o", &*at("a"), "json"), ("--svg", &*at("./a"), "svg")];
        assert_eq!(outcome(&inputs, &twice), Err("outputs-clash"));
        assert_eq!(outcome(&inputs, &[("--svg", &at("a.png"), "svg")]), Err("output-suffix"));
        assert_eq!(outcome(&inputs, &[("--svg", &at("A.SVG"), "svg"), ("-o", &at("a"), "json")]), Ok(()));
        assert_eq!(outcome(&["-"], &[("-o", Path::new("/dev/null"), "json")]), Ok(()));
    }

    #[test]
    fn a_folder_that_is_written_as_a_whole_holds_no_other_output() {
        let root = tempfile::tempdir().unwrap();
        let (proof, file) = (root.path().join("proof"), root.path().join("o.json"));
        let folder = |path| OutputFile { option: "--certificate", path, suffix: None };
        let json = |path| OutputFile { option: "-o", path, suffix: Some("json") };
        assert!(refuse_clashes(&[], &[json(&file), folder(&file)]).is_err(), "one name");
        let inside = proof.join("o.json");
        for exists in [false, true] {
            assert!(refuse_clashes(&[], &[json(&inside), folder(&proof)]).is_err(), "{exists}");
            assert!(refuse_clashes(&[], &[json(&file), folder(&proof)]).is_ok(), "{exists}");
            let _ = fs::create_dir(&proof);
        }
    }
}
