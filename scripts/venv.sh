#!/usr/bin/env bash
# Makes a virtual environment in a folder, installs packages from PyPI into it, and prints the path of its Python.
#
#   python=$(scripts/venv.sh .deps/tvm apache-tvm==0.27.0.post1 numpy)
#
# Does nothing if it is there already: the marker `installed` names the packages that were installed last.
set -euo pipefail
folder=$1
shift
say() { printf '%s\n' "venv: $*" >&2; }

if [ "$(cat "$folder/installed" 2>/dev/null || true)" != "$*" ]; then
  mkdir -p "$folder"
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder" ||
    { say "no virtual environment (Debian's python3-venv makes one)"; exit 1; }
  say "installing $*"
  "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@" >&2 || { say "$* cannot be installed"; exit 1; }
  printf '%s\n' "$*" >"$folder/installed"
fi
printf '%s\n' "$folder/bin/python"
