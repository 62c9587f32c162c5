#!/usr/bin/env bash
# Makes a virtual environment with TVM in .deps/tvm, or in the folder TVM_ENV, for scripts/tvm_corpus.py and the tests of
# clients/tvm. Prints the path of its Python.
#
#   python=$(scripts/tvm_env.sh) && "$python" scripts/tvm_corpus.py --out .deps/corpus
#
# Does nothing if it is there already: the marker names the packages that were installed last.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${TVM_ENV:-.deps/tvm}
packages="apache-tvm==0.27.0.post1 numpy"
say() { printf '%s\n' "tvm_env: $*" >&2; }

if [ "$(cat "$folder/installed" 2>/dev/null || true)" != "$packages" ]; then
  mkdir -p "$folder"
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder" ||
    { say "no virtual environment (Debian's python3-venv makes one)"; exit 1; }
  say "installing $packages"
  # shellcheck disable=SC2086
  "$folder/bin/python" -m pip install -q --disable-pip-version-check $packages >&2
  printf '%s\n' "$packages" > "$folder/installed"
fi
printf '%s\n' "$folder/bin/python"
