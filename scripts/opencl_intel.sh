#!/usr/bin/env bash
# Installs Intel's OpenCL runtime for processors (it runs on AMD's, too) into .deps/opencl-intel, a virtual environment with the packages
# intel-opencl-rt and intel-cmplr-lib-rt from PyPI (0.8 GB), and prints the path of its library. scripts/opencl-vendors.sh lists it beside
# the other drivers from then on:
#
#   scripts/opencl_intel.sh && OCL_ICD_VENDORS=$(scripts/opencl-vendors.sh) tilewright devices
#
# Does nothing if it is there already. The exit code is 3 where it cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.deps/opencl-intel
packages="intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0"
say() { printf '%s\n' "opencl_intel: $*" >&2; }

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) ;;
  *) say "there is no such runtime for $(uname -s) on $(uname -m)"; exit 3 ;;
esac
# shellcheck disable=SC2086
scripts/venv.sh "$folder" $packages >/dev/null || { say "the packages cannot be had"; exit 3; }
# The library finds those that it needs beside itself.
library=$folder/lib/libintelocl.so
[ -e "$library" ] || { say "$library is not there"; exit 1; }
printf '%s\n' "$PWD/$library"
