#!/usr/bin/env bash
# Makes a virtual environment with TVM in .deps/tvm, or in the folder TVM_ENV, for scripts/tvm_corpus.py and the tests of
# clients/tvm. Prints the path of its Python.
#
#   python=$(scripts/tvm_env.sh) && "$python" scripts/tvm_corpus.py --out .deps/corpus
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/venv.sh "${TVM_ENV:-.deps/tvm}" apache-tvm==0.27.0.post1 numpy
