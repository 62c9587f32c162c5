#!/usr/bin/env bash
# Unpacks a tarball of scripts/dist.sh in another folder and uses it there with an empty environment.
#
#   scripts/test-dist.sh [TARBALL]
#
# Without a tarball one is packed from the program that the tests have built, so that `make test` needs no second build. Only a
# program of the profile `dist` is measured (TARBALL given): nothing but the tarball may be needed, and it has to be small.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'test-dist: %s\n' "$*" >&2; exit 1; }

is_release=${1:+yes}
if [ -z "$is_release" ]; then
  cargo build --quiet --bin tilewright
  set -- "$(TILEWRIGHT_PROGRAM=${CARGO_TARGET_DIR:-target}/debug/tilewright scripts/dist.sh tarball)"
fi
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xzf "$1"
cd "$work"/tilewright-*
for file in bin/tilewright share/doc/tilewright/{README.md,LICENSE-MIT,LICENSE-APACHE,LICENSE-Z3,THIRD-PARTY} \
  share/bash-completion/completions/tilewright share/zsh/site-functions/_tilewright \
  share/fish/vendor_completions.d/tilewright.fish share/man/man1/tilewright.1 share/man/man1/tilewright-check.1; do
  [ -s "$file" ] || fail "$file is missing or empty"
done
[ "$(find . -name 'libz3*' | wc -l)" = 1 ] || fail "not one copy of Z3: $(find . -name 'libz3*')"
libraries=$(env -i ldd bin/tilewright)
case $libraries in
  *"not found"*) fail "a library is missing: $libraries" ;;
  *libOpenCL*) fail "the program is linked with OpenCL: $libraries" ;;
esac
if [ -n "$is_release" ]; then
  case $libraries in *"$PWD/bin/../lib/tilewright/libz3.so"*) ;; *) fail "another libz3 is used: $libraries" ;; esac
  size=$(stat -c %s bin/tilewright)
  [ "$size" -lt 25000000 ] || fail "the program has $size bytes, 25 MB are allowed"
  if readelf -d bin/tilewright | grep -q "$root"; then fail "the program looks into $root"; fi
  grep -q "^commit: $(git -C "$root" rev-parse --short=12 HEAD)$" <<<"$(bin/tilewright --version)" \
    || fail "--version does not name the commit: $(bin/tilewright --version)"
fi

# The program without anything in its environment, in a folder of its own.
mkdir elsewhere
cp "$root/examples/addone.py" elsewhere/
cd elsewhere
use() { env -i ../bin/tilewright "$@"; }
use --version >/dev/null || fail "--version"
use map 'lambda n, h, w, c: [n, c // 4, h, w, c % 4]' --shape 1,4,4,8 >/dev/null || fail "map"
use check --device none addone.py >/dev/null || fail "check --device none"
use fuzz --runs 16 --device none >/dev/null 2>&1 || fail "fuzz --runs 16"

# No OpenCL: files that are no libraries stand in for the loader.
mkdir hidden
: >hidden/libOpenCL.so.1
: >hidden/libOpenCL.so
without() { env -i LD_LIBRARY_PATH="$PWD/hidden" ../bin/tilewright "$@"; }
without devices | grep -q 'no OpenCL' || fail "devices does not say that there is no OpenCL"
if without check addone.py >report; then fail "check is content without a device that was asked for"; fi
grep -q 'no OpenCL' report || fail "check does not say that there is no OpenCL: $(cat report)"
grep -q 'proved' report || fail "check has lost its proofs: $(cat report)"
without --version | grep -q '^opencl: no OpenCL' || fail "--version does not say that there is no OpenCL"
printf 'test-dist: %s works in another folder with an empty environment\n' "$(basename "$1")"
