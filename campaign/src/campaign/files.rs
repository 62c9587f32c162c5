//! Writes the files of a campaign: one for each finding, and the report. Each is written completely
//! or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// Maximal length of the part of a file name that describes the failure.
const SLUG: usize = 60;

/// Writes a file by renaming a temporary one, so that it never has partial contents.
///
/// # Errors
/// Those of the file system; the file is unchanged then.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let done = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    if done.is_err() {
        // The incomplete temporary file is useless; failing to remove it is not worth a second
        // error.
        let _ = fs::remove_file(&partial);
    }
    done
}

/// Writes a finding to a new file in `folder`, which is created if necessary:
/// `passes-flatten-buffer-changes-1.json`. The number at the end is the first that is free, so
/// files of earlier campaigns are kept. `more` is appended to the replay command.
///
/// # Errors
/// Those of the file system.
pub fn write_finding(folder: &Path, finding: &Finding, more: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let stem = format!("{}-{}", finding.oracle, slug(&finding.failure.what));
    let mut number = 1u32;
    loop {
        let path = folder.join(format!("{stem}-{number}.json"));
        // Creating the file reserves the name against the threads of other workers.
        match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => {
                let replay = format!("tilewright replay {}{more}", quoted(&path.to_string_lossy()));
                let finding = Finding { replay, ..finding.clone() };
                let text = serde_json::to_string_pretty(&finding)? + "\n";
                write_whole(&path, &text).inspect_err(|_| drop(fs::remove_file(&path)))?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The text reduced to lower-case letters, digits, underscores and dashes, for a file name.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
        if slug.len() >= SLUG {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The text as one word of a shell command, quoted if necessary.
pub fn quoted(text: &str) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:,@".contains(letter);
    if !text.is_empty() && text.chars().all(is_safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_no_odd_letters() {
        assert_eq!(slug("flatten_buffer changes the result of `input`!"), "flatten_buffer-changes-the-result-of-input");
        assert_eq!(slug("../../x"), "x");
        assert!(slug(&"ab ".repeat(100)).len() <= SLUG);
    }

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("fuzz-findings/a-1.json"), "fuzz-findings/a-1.json");
        assert_eq!(quoted("my folder/it's"), "'my folder/it'\\''s'");
    }
}
