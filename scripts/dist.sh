#!/usr/bin/env bash
# Puts the program and all it needs into a folder, or packs that folder: a program, Z3's library, licences, completions and
# man pages.
#
#   scripts/dist.sh install FOLDER    into FOLDER/bin, FOLDER/lib/tilewright and FOLDER/share
#   scripts/dist.sh tarball           into target/tilewright-VERSION-SYSTEM.tar.gz, whose path is printed
#
# TILEWRIGHT_PROGRAM names a program that is built already; without it the profile `dist` is built.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { printf 'dist: %s\n' "$*" >&2; exit 1; }

[ -e .deps/z3/lib/libz3.so ] || die "Z3's library is missing: run scripts/setup.sh first"
target=${CARGO_TARGET_DIR:-target}

# No rpath into the folders of this machine: the program finds its library beside itself (build.rs).
build() {
  TILEWRIGHT_RELOCATABLE=1 RUSTFLAGS='' cargo build --profile dist --locked --bin tilewright >&2
  printf '%s\n' "$target/dist/tilewright"
}

# Fills the folder $1 with what the program $2 needs.
fill() {
  local prefix=$1 program=$2 share=$1/share soname
  install -Dm755 "$program" "$prefix/bin/tilewright"
  # One file, under the name that the program asks the loader for.
  soname=$(readelf -d "$program" | sed -n 's/.*NEEDED.*\[\(libz3\.so[^]]*\)\].*/\1/p')
  [ -n "$soname" ] || die "$program is not linked with libz3.so"
  install -Dm644 ".deps/z3/lib/$soname" "$prefix/lib/tilewright/$soname"
  install -Dm644 -t "$share/doc/tilewright" README.md LICENSE-MIT LICENSE-APACHE scripts/dist/LICENSE-Z3
  cargo tree --locked --offline --edges normal --prefix none --format '{p} {l} {r}' | sed 's/ (\*)$//' | grep -v '^tilewright' \
    | LC_ALL=C sort -u >"$share/doc/tilewright/THIRD-PARTY"
  mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
  "$prefix/bin/tilewright" completions bash >"$share/bash-completion/completions/tilewright"
  "$prefix/bin/tilewright" completions zsh >"$share/zsh/site-functions/_tilewright"
  "$prefix/bin/tilewright" completions fish >"$share/fish/vendor_completions.d/tilewright.fish"
  "$prefix/bin/tilewright" man "$share/man/man1"
}

program=${TILEWRIGHT_PROGRAM:-$(build)}
case ${1:-} in
  install)
    [ -n "${2:-}" ] || die "install where? scripts/dist.sh install FOLDER"
    fill "$2" "$program"
    ;;
  tarball)
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    name=tilewright-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
    work=$(mktemp -d "$target/packing.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    fill "$work/$name" "$program"
    tar -C "$work" --owner=0 --group=0 --numeric-owner --sort=name -czf "$target/$name.tar.gz" "$name"
    printf '%s\n' "$target/$name.tar.gz"
    ;;
  *) die "usage: scripts/dist.sh install FOLDER | tarball" ;;
esac
