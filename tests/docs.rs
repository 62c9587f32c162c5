//! The commands shown in README.md and in every page of docs/guide are run, and print what the page shows.
//!
//! Each page is one test, named after its path. A page may hold
//!
//! - ```` ```console ````: lines that begin with `$ ` are commands, run by a shell in a folder that holds links to
//!   `examples` and `tests`; what follows is their standard output. A command that ends with 2 (bad usage), 70 (internal)
//!   or by a signal fails the test, unless the next command is `echo $?`.
//! - ```` ```sh ````: commands that are not run. Every `tilewright` command in them must exist, with the options used.
//! - a fence below `<!-- file: PATH -->`: the content of that file.
//!
//! `UPDATE_EXPECT=1 cargo test --test docs` rewrites outputs and files in place. Times are not compared, nor are line
//! breaks and columns, which depend on the width of times. Without an OpenCL device the commands whose output shows one
//! are left alone, and named.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "docs/examples.rs"]
mod examples;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/options.rs"]
mod options;
#[path = "docs/page.rs"]
mod page;
#[path = "common/session.rs"]
mod session;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};

use page::{Page, Shown};
use session::{Output, UPDATE, is_update, root, workplace};

/// The pages that are tested, relative to the root, sorted.
fn pages() -> Vec<PathBuf> {
    let guide = fs::read_dir(root().join("docs/guide")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = guide.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    let relative = pages.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned());
    std::iter::once(PathBuf::from("README.md")).chain(relative).collect()
}

/// Runs a line, or one of the library's examples.
fn run(line: &str, folder: &Path, last: i32) -> Output {
    match examples::output(line) {
        Some(text) => Output { text, errors: String::new(), code: Some(0) },
        None => session::run(line, folder, last),
    }
}

/// The page with real outputs, and the commands that were left alone because there is no device.
fn with_real_outputs(page: &Page, has_device: bool) -> Result<(Page, Vec<String>), Failed> {
    let folder = workplace();
    let mut real = page.clone();
    let (mut skipped, mut last) = (Vec::new(), 0);
    let asks_for_code: Vec<bool> = {
        let commands: Vec<&Shown> = page.commands().collect();
        (0..commands.len()).map(|k| commands.get(k + 1).is_some_and(|next| next.command == "echo $?")).collect()
    };
    for (shown, asked) in real.commands_mut().zip(asks_for_code) {
        if shown.names_a_device() && !has_device {
            skipped.push(shown.command.clone());
            continue;
        }
        let Output { mut text, errors, code } = run(&shown.command, folder.path(), last);
        if !text.is_empty() && !text.ends_with('\n') {
            // The end of the fence has a line of its own.
            text.push('\n');
        }
        match code {
            Some(code) if asked || (code != 2 && code != 70) => last = code,
            _ => return Err(format!("`{}` ends with {code:?}:\n{text}{errors}", shown.command).into()),
        }
        shown.output = text;
    }
    Ok((real, skipped))
}

fn check(path: &Path, has_device: bool) -> Result<(), Failed> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let page = Page::read(&text);
    assert_eq!(page.to_string(), text, "reading a page and writing it again changes nothing");
    let wrong = options::unknown(&page, |line| run(line, root(), 0).text);
    if !wrong.is_empty() {
        return Err(format!("commands that do not exist: {wrong:#?}").into());
    }
    let (mut real, skipped) = with_real_outputs(&page, has_device)?;
    real.read_files(root());
    if !skipped.is_empty() {
        eprintln!("skipped: {}: there is no OpenCL device for {skipped:?}", path.display());
    }
    if is_update() {
        fs::write(root().join(path), real.to_string()).unwrap();
        return Ok(());
    }
    match page.first_difference(&real) {
        None => Ok(()),
        Some(found) => {
            Err(format!("{}: {found}\n`{UPDATE}=1 cargo test --test docs` rewrites it", path.display()).into())
        }
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let listed = run("tilewright devices", root(), 0);
    let has_device = listed.code == Some(0) && !listed.text.contains("no OpenCL device");
    let page = |path: PathBuf| Trial::test(path.display().to_string(), move || check(&path, has_device));
    let mut trials: Vec<Trial> = pages().into_iter().map(page).collect();
    trials.extend(page::trials());
    trials.extend(options::trials());
    trials.extend(examples::trials());
    trials.extend(links::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
