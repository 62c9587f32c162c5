#!/usr/bin/env bash
# Installs what the build needs and is not there yet: system packages (Debian and Ubuntu, through apt-get) and Z3.
# Everything of the project's own goes into .deps/, which git ignores. Running it twice does nothing the second time, and
# needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

Z3_VERSION=5.4.0
CVC5_VERSION=1.4.2

say() { printf '%s\n' "setup: $*" >&2; }

if ! command -v cargo >/dev/null; then
  say "please install Rust 1.95 or later (https://rustup.rs), then run this again"
  exit 1
fi

# A driver for any device: PoCL is the one that everybody can have. The folders are those that ocl-icd and Khronos's
# loader look into.
has_opencl_driver() {
  local place
  for place in "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}" "${OPENCL_VENDOR_PATH:-/etc/OpenCL/vendors}"; do
    compgen -G "${place%/}/*.icd" >/dev/null && return 0
    case $place in *.icd | *.so | *.so.*) return 0 ;; esac
  done
  return 1
}

has_z3() { [ -e ".deps/z3-$Z3_VERSION/lib/libz3.so" ] && [ -e ".deps/z3-$Z3_VERSION/include/z3.h" ]; }

install_packages() {
  command -v apt-get >/dev/null || return 1
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || return 1
    sudo=(sudo)
  fi
  say "installing $*"
  # A package list that is out of date may still do.
  "${sudo[@]}" apt-get update -qq >&2 || say "apt-get update failed; going on with the lists there are"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# What the build cannot do without: a C linker, and Python with pip, only to fetch and unpack Z3.
required=()
command -v cc >/dev/null || required+=(gcc libc6-dev)
if ! has_z3; then
  command -v python3 >/dev/null || required+=(python3)
  python3 -m pip --version >/dev/null 2>&1 || required+=(python3-pip)
fi
if [ ${#required[@]} -gt 0 ] && ! install_packages "${required[@]}"; then
  say "please install what these Debian packages hold, then run this again: ${required[*]}"
  exit 1
fi

# The library that finds the drivers; Debian's package of PoCL does not ask for it.
has_opencl_loader() {
  local linker
  linker=$(command -v ldconfig || echo /sbin/ldconfig)
  [[ "$("$linker" -p 2>/dev/null)" == *libOpenCL.so* ]]
}

# Without both everything builds, proves and interprets; kernels are not run, and the reports say so.
opencl=()
has_opencl_driver || opencl+=(pocl-opencl-icd)
has_opencl_loader || opencl+=(ocl-icd-libopencl1)
if [ ${#opencl[@]} -gt 0 ] && ! install_packages "${opencl[@]}"; then
  say "no OpenCL: kernels will not be run (Debian's packages pocl-opencl-icd and ocl-icd-libopencl1 are enough on every processor)"
fi

# Z3 from the z3-solver wheel: Debian's 4.8.12 links silently and then answers wrongly late. `pip download` installs
# nothing, so an "externally managed" Python allows it. The folder appears in one step, when it is complete.
if ! has_z3; then
  say "unpacking Z3 $Z3_VERSION into .deps/"
  mkdir -p .deps
  work=$(mktemp -d .deps/unpacking.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    -d "$work" "z3-solver==$Z3_VERSION" >&2
  python3 -m zipfile -e "$work"/z3_solver-*.whl "$work/unpacked"
  mkdir "$work/z3"
  mv "$work/unpacked/z3/lib" "$work/unpacked/z3/include" "$work/z3/"
  rm -rf ".deps/z3-$Z3_VERSION"
  mv "$work/z3" ".deps/z3-$Z3_VERSION"
  has_z3 || { say "the z3-solver wheel does not hold lib/libz3.so and include/z3.h"; exit 1; }
fi
[ "$(readlink .deps/z3 2>/dev/null)" = "z3-$Z3_VERSION" ] || ln -sfn "z3-$Z3_VERSION" .deps/z3

# cvc5, a second opinion for `tilewright recheck`: the wheel has no program, so a few lines of Python are one. Nothing else
# needs it, and where it cannot be had `recheck` says that it was skipped.
install_cvc5() {
  local target=.deps/cvc5-$CVC5_VERSION unpack
  unpack=$(mktemp -d .deps/unpacking.XXXXXX) || return 1
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    -d "$unpack" "cvc5==$CVC5_VERSION" >&2 \
    && mkdir -p "$unpack/cvc5/bin" \
    && python3 -m zipfile -e "$unpack"/cvc5-*.whl "$unpack/cvc5/lib" \
    && cat >"$unpack/cvc5/bin/cvc5" <<'PYTHON' && chmod +x "$unpack/cvc5/bin/cvc5" \
    && "$unpack/cvc5/bin/cvc5" --version >/dev/null && rm -rf "$target" && mv "$unpack/cvc5" "$target" \
    && ln -sfn "cvc5-$CVC5_VERSION" .deps/cvc5
#!/usr/bin/env python3
"""cvc5 [--tlimit-per=MILLISECONDS] [FILE]: as the program of that name, for SMT-LIB 2."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib"))
import cvc5

solver = cvc5.Solver(cvc5.TermManager())
if "--version" in sys.argv:
    version = solver.getVersion()
    print("This is cvc5 version", version.decode() if isinstance(version, bytes) else version)
    sys.exit(0)
name = "-"
for argument in sys.argv[1:]:
    if argument.startswith("--tlimit-per="):
        solver.setOption("tlimit-per", argument.split("=", 1)[1])
    elif not argument.startswith("--"):
        name = argument
text = sys.stdin.read() if name == "-" else open(name, encoding="utf-8").read()
parser = cvc5.InputParser(solver)
parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, name)
try:
    while not (command := parser.nextCommand()).isNull():
        print(command.invoke(solver, parser.getSymbolManager()), end="")
except Exception as fault:
    print(f'(error "{fault}")')
    sys.exit(1)
PYTHON
  local status=$?
  rm -rf "$unpack"
  return $status
}

if [ ! -x .deps/cvc5/bin/cvc5 ] && [ ! -e ".deps/no-cvc5-$CVC5_VERSION" ] && ! command -v cvc5 >/dev/null; then
  say "unpacking cvc5 $CVC5_VERSION into .deps/"
  if ! install_cvc5; then
    say "cvc5 cannot be had: recheck will ask Z3 only (remove .deps/no-cvc5-$CVC5_VERSION to try again)"
    : >".deps/no-cvc5-$CVC5_VERSION"
  fi
fi
