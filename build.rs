//! Tells the program its commit, and where to find Z3's library when it is started.
//!
//! A program built from the sources looks for `libz3.so` in `../lib/tilewright` from its own folder, as `make install` and `make dist`
//! put it, and then where the library was at build time, so that `cargo install --path .` gives a program that starts.

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=TILEWRIGHT_COMMIT={}", commit());
    match link_z3() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn set(name: &str) -> String {
    println!("cargo::rerun-if-env-changed={name}");
    std::env::var(name).unwrap_or_default()
}

/// Where the program looks for the library. An error if it is not where the build was told it is: the linker's own message
/// would come late and name no remedy.
fn link_z3() -> Result<(), String> {
    let system = set("CARGO_CFG_TARGET_OS");
    let (origin, library) = match system.as_str() {
        "linux" => ("$ORIGIN/../lib/tilewright", "libz3.so"),
        "macos" => ("@loader_path/../lib/tilewright", "libz3.dylib"),
        _ => return Ok(()),
    };
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{origin}");
    let folder = set("Z3_LIBRARY_PATH_OVERRIDE");
    if folder.is_empty() {
        return Ok(());
    }
    let file = Path::new(&folder).join(library);
    println!("cargo::rerun-if-changed={}", file.display());
    if !file.exists() {
        return Err(format!("Z3's library {} is missing: run scripts/setup.sh, then build again", file.display()));
    }
    // What is shipped must not look into folders of the machine that built it.
    if set("TILEWRIGHT_RELOCATABLE").is_empty() {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
    }
    Ok(())
}

/// The commit of the sources: from the repository, or from the file that `cargo package` adds; `unknown` elsewhere. A debug
/// build has none, because it would be made anew for every commit.
fn commit() -> String {
    let packaged = Path::new(".cargo_vcs_info.json");
    if packaged.exists() {
        let text = std::fs::read_to_string(packaged).unwrap_or_default();
        let hash = text.split_once("\"sha1\": \"").and_then(|(_, rest)| rest.split_once('"'));
        return hash.map_or_else(|| "unknown".to_owned(), |(hash, _)| hash.chars().take(12).collect());
    }
    // The sources' own repository, not one that they were unpacked in.
    if !Path::new(".git").exists() {
        return "unknown".to_owned();
    }
    if set("PROFILE") == "debug" {
        return "unknown (debug build)".to_owned();
    }
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
