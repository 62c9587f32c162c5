#!/usr/bin/env bash
# Installs what the build needs and is not there yet: system packages (Debian and Ubuntu, through apt-get) and Z3.
# Everything of the project's own goes into .deps/, which git ignores. Running it twice does nothing the second time.
set -euo pipefail
cd "$(dirname "$0")/.."

Z3_VERSION=5.4.0

say() { printf '%s\n' "setup: $*" >&2; }

# The system's tools: a C linker, Python (only to unpack Z3), OpenCL's loader, and PoCL as the device everyone has.
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v python3 >/dev/null || missing+=(python3)
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
[ -e /usr/include/CL/cl.h ] && ldconfig -p 2>/dev/null | grep -q 'libOpenCL\.so$\|libOpenCL\.so ' || missing+=(ocl-icd-opencl-dev)
ls /etc/OpenCL/vendors/*pocl* >/dev/null 2>&1 || missing+=(pocl-opencl-icd)

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    say "please install what these Debian packages hold, then run this again: ${missing[*]}"
    exit 1
  fi
  say "installing ${missing[*]}"
  sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

if ! command -v cargo >/dev/null; then
  say "please install Rust 1.95 or later (https://rustup.rs), then run this again"
  exit 1
fi

# Z3 from the z3-solver wheel: Debian's 4.8.12 links silently and then answers wrongly late.
if [ ! -e ".deps/z3-$Z3_VERSION/lib/libz3.so" ]; then
  say "unpacking Z3 $Z3_VERSION into .deps/"
  rm -rf .deps/wheel .deps/unpacked && mkdir -p .deps/wheel .deps/unpacked
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d .deps/wheel "z3-solver==$Z3_VERSION" >&2
  python3 -m zipfile -e .deps/wheel/z3_solver-*.whl .deps/unpacked
  mkdir -p ".deps/z3-$Z3_VERSION"
  mv .deps/unpacked/z3/lib ".deps/z3-$Z3_VERSION/lib"
  mv .deps/unpacked/z3/include ".deps/z3-$Z3_VERSION/include"
  rm -rf .deps/wheel .deps/unpacked
fi
ln -sfn "z3-$Z3_VERSION" .deps/z3
