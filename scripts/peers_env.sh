#!/usr/bin/env bash
# Makes a virtual environment with the peers that Tilewright is measured beside (numpy, TVM, JAX) in .deps/peers, and prints the path
# of its Python; each package that cannot be installed is left out with a message, and without an environment it is the system's Python.
#
#   python=$(scripts/peers_env.sh) && "$python" scripts/relayout_kernels.py
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.deps/peers
packages="numpy==2.4.6 apache-tvm==0.27.0.post1 jax==0.10.2 jaxlib==0.10.2"
say() { printf '%s\n' "peers_env: $*" >&2; }

# shellcheck disable=SC2086
if ! scripts/venv.sh "$folder" $packages; then
  for package in $packages; do
    [ ! -x "$folder/bin/python" ] || "$folder/bin/python" -m pip install -q --disable-pip-version-check "$package" >&2 ||
      say "$package cannot be installed"
  done
  [ -x "$folder/bin/python" ] && printf '%s\n' "$folder/bin/python" || printf 'python3\n'
fi
