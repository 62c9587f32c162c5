#!/usr/bin/env bash
# Makes .deps/opencl-vendors, a folder of OpenCL drivers that holds those of the system, Oclgrind where it is installed (its package
# registers it with no loader), and Intel's runtime where scripts/opencl_intel.sh has installed it; and prints its path:
#
#   OCL_ICD_VENDORS=$(scripts/opencl-vendors.sh) cargo test -p tilewright-device
set -euo pipefail
cd "$(dirname "$0")/.."

folder=.deps/opencl-vendors
mkdir -p "$folder"
cp -f /etc/OpenCL/vendors/*.icd "$folder/" 2>/dev/null || true
found=
for library in /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/lib/*/oclgrind/liboclgrind-rt-icd.so \
  /usr/local/lib/oclgrind/liboclgrind-rt-icd.so; do
  if [ -e "$library" ]; then
    printf '%s\n' "$library" >"$folder/oclgrind.icd"
    found=yes
    break
  fi
done
[ -n "$found" ] || printf 'opencl-vendors: Oclgrind is not installed\n' >&2
rm -f "$folder/intel.icd"
if [ -e .deps/opencl-intel/lib/libintelocl.so ]; then
  printf '%s\n' "$PWD/.deps/opencl-intel/lib/libintelocl.so" >"$folder/intel.icd"
fi
# The slash makes ocl-icd take it for a folder.
printf '%s/\n' "$PWD/$folder"
