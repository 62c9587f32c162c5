//! Keeps the OpenCL library out of the link. `cl-sys`, which `ocl` is built on, passes `-lOpenCL` to the linker, though
//! every function is looked up at run time (`src/opencl/cl/loader.rs`); an empty archive of that name is found before the
//! system's library, so that none has to be installed where Tilewright is built, and no program depends on it.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    if std::env::var_os("CARGO_FEATURE_OPENCL").is_none() || matches!(&*set("CARGO_CFG_TARGET_OS"), "macos" | "windows")
    {
        return ExitCode::SUCCESS;
    }
    let folder = set("OUT_DIR");
    if let Err(error) = std::fs::write(Path::new(&folder).join("libOpenCL.a"), "!<arch>\n") {
        println!("cargo:error=cannot write to {folder}: {error}");
        return ExitCode::FAILURE;
    }
    println!("cargo:rustc-link-search=native={folder}");
    ExitCode::SUCCESS
}
