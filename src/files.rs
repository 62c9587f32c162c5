//! Writes files and folders completely or not at all.
//!
//! The contents go to a temporary name in the same folder and are moved to their own names once all of them are written, so
//! that a full disk leaves what was there before. An existing folder is written into, never replaced: it keeps its owner and
//! its permissions, and may be the current folder or be reached by a link.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Replaces the contents of a file, or makes it. A link stays, and the file that it points to is replaced. Whatever is no
/// plain file, such as `/dev/stdout`, is written to directly.
///
/// # Errors
/// Those of the file system; an existing file is unchanged then.
pub(crate) fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let about = match fs::metadata(path) {
        Ok(about) if about.is_file() => about,
        Ok(_) => return fs::write(path, contents),
        // Of a link to nothing, too, only the target is made.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => return fs::write(path, contents),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let (temporary, file) = temporary_file(folder_of(path))?;
            return finish(&temporary, file, contents, path);
        }
        Err(error) => return Err(error),
    };
    // A file that may not be written is not replaced either, though its folder would allow that.
    drop(OpenOptions::new().write(true).open(path)?);
    let target = path.canonicalize()?;
    match temporary_file(folder_of(&target)) {
        Ok((temporary, file)) => {
            if let Err(error) = file.set_permissions(about.permissions()) {
                drop(fs::remove_file(&temporary));
                return Err(error);
            }
            finish(&temporary, file, contents, &target)
        }
        // The file may be written although its folder takes no new one.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => fs::write(&target, contents),
        Err(error) => Err(error),
    }
}

/// Writes the contents to the temporary file and moves it to its place.
fn finish(temporary: &Path, mut file: fs::File, contents: &[u8], target: &Path) -> io::Result<()> {
    let done = file.write_all(contents);
    drop(file);
    let done = done.and_then(|()| fs::rename(temporary, target));
    if done.is_err() {
        // The first fault is the one to report.
        drop(fs::remove_file(temporary));
    }
    done
}

/// Writes files to a folder, all or none. The names are relative to it and may have one folder before them. An existing
/// folder keeps its permissions; the entries in it whose names are in `replaced` go.
///
/// # Errors
/// Those of the file system; the folder is as it was before then.
pub(crate) fn write_folder<T: AsRef<[u8]>>(
    folder: &Path,
    files: &[(String, T)],
    replaced: &[String],
) -> io::Result<()> {
    if fs::metadata(folder).is_ok_and(|about| about.is_dir()) {
        let partial = temporary_folder(folder)?;
        let written = write_all(&partial, files).and_then(|()| exchange(folder, &partial, replaced));
        return removed(&partial, written);
    }
    if folder.is_symlink() {
        return Err(io::Error::new(ErrorKind::NotFound, "it is a link to a folder that is not there"));
    }
    fs::create_dir_all(folder_of(folder))?;
    let partial = temporary_folder(folder_of(folder))?;
    match write_all(&partial, files).and_then(|()| fs::rename(&partial, folder)) {
        Ok(()) => Ok(()),
        Err(error) => removed(&partial, Err(error)),
    }
}

/// Removes a temporary folder. The first fault is the one to report, with what stays behind.
fn removed(partial: &Path, done: io::Result<()>) -> io::Result<()> {
    let removed = fs::remove_dir_all(partial);
    match (done, removed) {
        (Err(error), Err(left)) if left.kind() != ErrorKind::NotFound => {
            let message = format!("{error}; {} could not be removed: {left}", partial.display());
            Err(io::Error::new(error.kind(), message))
        }
        (Err(error), _) => Err(error),
        (Ok(()), removed) => removed,
    }
}

fn write_all<T: AsRef<[u8]>>(folder: &Path, files: &[(String, T)]) -> io::Result<()> {
    for (name, contents) in files {
        let path = folder.join(name);
        match fs::create_dir(folder_of(&path)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => fs::write(path, contents)?,
        }
    }
    Ok(())
}

/// Moves the old entries of a folder away and those of `partial`, a folder in it, into it. The old ones stay in `partial`,
/// which is removed.
fn exchange(folder: &Path, partial: &Path, replaced: &[String]) -> io::Result<()> {
    let old = partial.join(".replaced");
    let mut fresh = Vec::new();
    for entry in fs::read_dir(partial)? {
        fresh.push(entry?.file_name());
    }
    fs::create_dir(&old)?;
    let mut moved: Vec<(PathBuf, PathBuf)> = Vec::new();
    let steps = replaced.iter().map(|name| (folder.join(name), old.join(name)));
    let steps: Vec<_> = steps.chain(fresh.iter().map(|name| (partial.join(name), folder.join(name)))).collect();
    for (from, to) in steps {
        // A folder of the same name appeared meanwhile: rename would replace a file without a word.
        let renamed = match to.symlink_metadata() {
            Ok(_) => Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} appeared meanwhile", to.display()))),
            Err(_) => fs::rename(&from, &to),
        };
        if let Err(error) = renamed {
            for (from, to) in moved.into_iter().rev() {
                fs::rename(to, from)?;
            }
            return Err(error);
        }
        moved.push((from, to));
    }
    Ok(())
}

/// The folder that a path is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file in a folder.
fn temporary_file(folder: &Path) -> io::Result<(PathBuf, fs::File)> {
    temporary(folder, |path| OpenOptions::new().write(true).create_new(true).open(path))
}

/// A new folder in a folder.
fn temporary_folder(folder: &Path) -> io::Result<PathBuf> {
    temporary(folder, |path| fs::create_dir(path)).map(|(path, ())| path)
}

/// Makes something under the first name that is free: an interrupted process may have left one behind.
fn temporary<T>(folder: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let mut number = 0u32;
    loop {
        // Short, so that it fits wherever the name of the output does.
        let path = folder.join(format!(".tilewright.{}.{number}", std::process::id()));
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn one() -> [(String, &'static str); 2] {
        [("a".into(), "1"), ("in/b".into(), "2")]
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a");
        write_file(&path, b"old").unwrap();
        write_file(&path, b"new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(root.path())), ("new", vec!["a".to_owned()]));
        assert!(write_file(&root.path().join("no/a"), b"x").is_err());
        assert!(write_file(root.path(), b"x").is_err());
        assert_eq!(names(root.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        write_file(&at("a"), b"old").unwrap();
        fs::set_permissions(at("a"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a", at("link")).unwrap();
        write_file(&at("link"), b"new").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!((fs::read_to_string(at("a")).unwrap().as_str(), mode("a")), ("new", 0o640));
        symlink("later", at("dangling")).unwrap();
        write_file(&at("dangling"), b"x").unwrap();
        assert_eq!(fs::read_to_string(at("later")).unwrap(), "x");

        fs::create_dir(at("folder")).unwrap();
        fs::set_permissions(at("folder"), fs::Permissions::from_mode(0o2700)).unwrap();
        symlink("folder", at("to-folder")).unwrap();
        write_folder(&at("to-folder"), &one(), &[]).unwrap();
        assert_eq!((names(&at("folder")), mode("folder")), (vec!["a".to_owned(), "in".to_owned()], 0o2700));
        assert!(at("to-folder").is_symlink());
        symlink("nothing", at("to-nothing")).unwrap();
        assert!(write_folder(&at("to-nothing"), &one(), &[]).is_err());
    }

    #[test]
    fn all_files_of_a_folder_are_there_or_none() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/er/out");
        write_folder(&folder, &one(), &[]).unwrap();
        assert_eq!(
            (names(&folder), names(&root.path().join("deep/er"))),
            (vec!["a".into(), "in".into()], vec!["out".into()])
        );
        // The second name cannot be written, after the first one was.
        let broken = [("c".to_owned(), "1"), ("no/such/b".to_owned(), "2")];
        let new = root.path().join("new");
        assert!(write_folder(&new, &broken, &[]).is_err() && !new.exists());
        assert!(write_folder(&folder, &broken, &["a".into()]).is_err());
        assert_eq!(names(&folder), ["a", "in"]);
        // A name that is taken: what was moved away comes back.
        assert!(write_folder(&folder, &one(), &["a".into()]).is_err());
        assert_eq!(
            (names(&folder), fs::read_to_string(folder.join("a")).unwrap()),
            (vec!["a".into(), "in".into()], "1".into())
        );
        write_folder(&folder, &[("c".into(), "3")], &["a".into(), "in".into()]).unwrap();
        assert_eq!(names(&folder), ["c"]);
    }
}
