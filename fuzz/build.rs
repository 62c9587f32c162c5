//! Lets the targets find Z3 where `scripts/setup.sh` puts it; cargo-fuzz's own flags replace those of `.cargo/config.toml`.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{here}/../.deps/z3/lib");
    println!("cargo::rerun-if-changed=build.rs");
}
