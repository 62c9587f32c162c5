//! The text of `--version`.

/// Commit of the sources, from `build.rs`; `unknown` if they are not in a repository.
const COMMIT: &str = env!("TILEWRIGHT_COMMIT");

/// Version, commit, solver and OpenCL loader, on one line each.
pub(super) fn text() -> String {
    let solver = super::solver().unwrap_or_else(|_| "unknown".to_owned());
    let loader = tilewright_device::loader();
    format!("tilewright {}\ncommit: {COMMIT}\nsolver: {solver}\nopencl: {loader}\n", env!("CARGO_PKG_VERSION"))
}
