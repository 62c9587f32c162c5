#!/usr/bin/env bash
# Installs Intel's OpenCL runtime for processors (it runs on AMD's, too) into .deps/opencl-intel, a virtual environment with the packages
# intel-opencl-rt and intel-cmplr-lib-rt from PyPI (0.8 GB), and prints the path of its library. scripts/opencl-vendors.sh lists it beside
# the other drivers from then on:
#
#   scripts/opencl_intel.sh && OCL_ICD_VENDORS=$(scripts/opencl-vendors.sh) tilewright devices
#
# Does nothing if it is there already: the marker names the packages that were installed last.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.deps/opencl-intel
packages="intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0"
say() { printf '%s\n' "opencl_intel: $*" >&2; }

if [ "$(cat "$folder/installed" 2>/dev/null || true)" != "$packages" ]; then
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) ;;
    *) say "there is no such runtime for $(uname -s) on $(uname -m)"; exit 3 ;;
  esac
  mkdir -p "$folder"
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder" ||
    { say "no virtual environment (Debian's python3-venv makes one)"; exit 3; }
  say "installing $packages"
  # shellcheck disable=SC2086
  "$folder/bin/python" -m pip install -q --disable-pip-version-check $packages >&2 ||
    { say "the packages cannot be had"; exit 3; }
  printf '%s\n' "$packages" >"$folder/installed"
fi
# The library finds those that it needs beside itself.
library=$folder/lib/libintelocl.so
[ -e "$library" ] || { say "$library is not there"; exit 1; }
printf '%s\n' "$PWD/$library"
