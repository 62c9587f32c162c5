//! The folder of a certificate: written whole or not at all, and never over anything that is not an older certificate.
//!
//! A certificate is first written to `.NAME.PID.partial` beside its folder and then renamed into place, so that no
//! reader sees half of one. An older certificate is renamed to `.NAME.PID.old`, and removed after the new one is in
//! place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use serde::de::IgnoredAny;

use super::{MANIFEST, Manifest, SCHEMA, is_goal_name};
use crate::files::write_folder;

/// Longest file that is read, in bytes. A longer one is reported as damage.
pub const MAX_BYTES: u64 = 256 << 20;

/// The reason why a certificate may not be written to `folder`. `None` if the folder does not exist, is empty, or holds
/// an older certificate and nothing else.
pub fn refuses(folder: &Path) -> Option<String> {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().and_then(|_| not_ours(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Some("it is no folder".into()),
        Err(error) => Some(format!("it cannot be looked into: {error}")),
    }
}

/// The reason why the files in a folder are not exactly an older certificate; `None` if they are. Only names are
/// compared: a damaged certificate may be replaced, too.
fn not_ours(folder: &Path) -> Option<String> {
    let Ok(text) = read_text(&folder.join(MANIFEST)) else {
        return Some(format!("it is not empty and has no {MANIFEST}"));
    };
    let Some(manifest) = serde_json::from_str::<Manifest<IgnoredAny>>(&text).ok().filter(|old| old.schema == SCHEMA)
    else {
        return Some(format!("its {MANIFEST} is not that of a certificate"));
    };
    let listed: BTreeSet<&str> = listed(&manifest).filter(|name| is_goal_name(name)).collect();
    match names(folder) {
        Ok(found) => {
            let ours = |name: &str| name == MANIFEST || listed.contains(name);
            let (other, _) = found.into_iter().find(|(name, plain)| !plain || !ours(name))?;
            Some(format!("`{other}` in it belongs to no certificate"))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// The names of the files that a manifest lists. A file that several steps refer to is repeated.
pub(super) fn listed<C>(manifest: &Manifest<C>) -> impl Iterator<Item = &str> {
    let lemmas = manifest.lemmas.iter().flat_map(|lemma| &lemma.steps);
    let steps = manifest.obligations.iter().flat_map(|obligation| &obligation.steps);
    steps.chain(lemmas).filter_map(|step| step.file.as_deref())
}

/// The entries of a folder, sorted by name, each with whether it is a plain file. Links are not followed.
///
/// # Errors
/// A folder that cannot be read.
pub(super) fn names(folder: &Path) -> io::Result<Vec<(String, bool)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        names.push((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?.is_file()));
    }
    names.sort_unstable();
    Ok(names)
}

/// The text of a plain file. Links are refused, so that a certificate cannot make a reader open other files.
///
/// # Errors
/// The file does not exist, is not a plain file, is longer than [`MAX_BYTES`], or is not UTF-8.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("no plain file"));
    }
    if about.len() > MAX_BYTES {
        return Err(io::Error::other(format!("longer than {} MiB", MAX_BYTES >> 20)));
    }
    fs::read_to_string(path)
}

/// Writes the files, which are in place all together or not at all; the files of an older certificate go. An existing folder
/// stays what it is, with its owner and its permissions.
///
/// # Errors
/// The folder is one that [`refuses`], or the disk cannot be written.
pub fn write(folder: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    if let Some(reason) = refuses(folder) {
        return Err(io::Error::other(reason));
    }
    let older: Vec<String> = match names(folder) {
        Ok(names) => names.into_iter().map(|(name, _)| name).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let files: Vec<(String, &str)> = files.iter().map(|(name, text)| (name.clone(), text.as_str())).collect();
    write_folder(folder, &files, &older)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_older_certificate_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/er/proof");
        let files = super::super::files(&[]).unwrap();
        write(&folder, &files).unwrap();
        assert_eq!(refuses(&folder), None);
        write(&folder, &files).unwrap();
        assert_eq!(names(&folder).unwrap(), [(MANIFEST.to_owned(), true)]);
        let left: Vec<_> = fs::read_dir(folder.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing stays behind");

        fs::write(folder.join("notes.txt"), "mine").unwrap();
        assert!(refuses(&folder).unwrap().contains("notes.txt"));
        assert!(write(&folder, &files).is_err());
        assert_eq!(fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
        fs::remove_file(folder.join("notes.txt")).unwrap();
        fs::create_dir(folder.join("0001-a.smt2")).unwrap();
        assert!(refuses(&folder).is_some(), "a folder in it");

        let other = root.path().join("other");
        fs::create_dir(&other).unwrap();
        assert_eq!(refuses(&other), None, "empty");
        fs::write(other.join(MANIFEST), "{}").unwrap();
        assert!(refuses(&other).is_some(), "another program's manifest");
        assert!(refuses(&other.join(MANIFEST)).is_some(), "a file");
    }

    #[test]
    fn a_file_that_an_old_manifest_lists_under_a_path_is_not_touched() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proof");
        fs::create_dir(&folder).unwrap();
        let outside = root.path().join("outside.smt2");
        fs::write(&outside, "mine").unwrap();
        let step = r#"{"rule":"r","goal":"g","file":"../outside.smt2","sha256":null,"expected":"unsat"}"#;
        let manifest = format!(
            r#"{{"schema":"{SCHEMA}","digest":"","solver":{{"name":"Z3","version":"5"}},"encoder":1,"obligations":[],
                "lemmas":[{{"name":"l","steps":[{step}]}}]}}"#
        );
        fs::write(folder.join(MANIFEST), manifest).unwrap();
        write(&folder, &super::super::files(&[]).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }
}
