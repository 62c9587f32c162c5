#!/bin/sh
# Unpacks the nine light models of PyPI's wheel `onnx`, with their expected outputs, into .deps/onnx, and prints that folder.
# Nothing of the wheel is committed; tests that need it say so and skip where it is missing.
set -eu
cd "$(dirname "$0")/.."
folder=.deps/onnx
if [ ! -e "$folder/light_squeezenet.onnx" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work" onnx >&2
    python3 - "$work" "$folder" <<'PYTHON'
import pathlib, sys, zipfile

work, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(next(work.glob("onnx-*.whl"))) as wheel:
    for name in wheel.namelist():
        if name.startswith("onnx/backend/test/data/light/") and not name.endswith("/"):
            (folder / pathlib.PurePosixPath(name).name).write_bytes(wheel.read(name))
PYTHON
fi
echo "$folder"
