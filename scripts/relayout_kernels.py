#!/usr/bin/env python3
"""Times the kernels of relayouts on an OpenCL device, and prints a table of Markdown.

    scripts/relayout_kernels.py [--tilewright target/release/tilewright] [--device 0] [--rounds 50] [--memcpy-ms 0.5]

Each move is chosen and proved by `tilewright relayout --explain`; the program that its kernels are made of, and the plain one
(`program`), are timed by `tilewright bench`: the sum of the medians of their kernels. With --memcpy-ms, the time of a single-threaded copy
of 16 MiB (`cargo bench -p tilewright-relayout --bench ratios` prints it), times become ratios to it; the last row, which has
64 MiB, is compared with four times as long. --memcpy-large-ms is better for it.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

IMAGE = ["--shape", "16,64,64,64", "--dtype", "float32"]
TURN = ["lambda i, j: [i, j]", "lambda i, j: [j, i]", "--shape"]
MOVES = [
    ("NHWC to NCHW", ["NHWC", "NCHW", *IMAGE]),
    ("NCHW to NHWC", ["NCHW", "NHWC", *IMAGE]),
    ("NCHW to NCHW4c", ["NCHW", "NCHW4c", *IMAGE]),
    ("T(8,128)", ["f32[2048,2048]{1,0}", "{1,0:T(8,128)}"]),
    ("T(2,2)", ["f32[2048,2048]{1,0}", "{1,0:T(2,2)}"]),
    ("T(8,128)(2,1) of 16 bits", ["bf16[4096,2048]{1,0}", "{1,0:T(8,128)(2,1)}"]),
    ("transpose 2048x2048", [*TURN, "2048,2048"]),
    ("transpose 4096x1024", [*TURN, "4096,1024"]),
    ("columns to T(8,128)", ["f32[2048,2048]{0,1}", "{1,0:T(8,128)}"]),
    ("ragged T(8,128)", ["f32[4001,4003]{1,0}", "{1,0:T(8,128)}"]),
]


def output(command):
    """The JSON document that a command prints; None if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def milliseconds(options, text, folder):
    """The time of the kernels of a program; None if it did not run."""
    path = pathlib.Path(folder) / "program.py"
    path.write_text(text)
    command = [options.tilewright, "bench", str(path), "--rounds", str(options.rounds), "--format", "json"]
    report = output(command + (["--device", options.device] if options.device else []))
    if report is None:
        return None
    return sum(kernel["median_ms"] for kernel in report["functions"][0]["runs"][0]["kernels"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", default="target/release/tilewright")
    parser.add_argument("--device", default="")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--memcpy-ms", type=float)
    parser.add_argument("--memcpy-large-ms", type=float)
    options = parser.parse_args()
    unit = "ratio to memcpy" if options.memcpy_ms else "ms"
    print(f"| move | plain program, {unit} | program of the kernel, {unit} |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in MOVES:
            report = output([options.tilewright, "relayout", *arguments, "--explain", "--format", "json"])
            if report is None:
                print(f"| {name} | not proved | not proved |")
                continue
            copy = options.memcpy_ms
            if copy and name.startswith("ragged"):
                copy = options.memcpy_large_ms or 4 * copy
            plain = milliseconds(options, report["program"], folder)
            device = milliseconds(options, report["device_program"], folder) if report["device_program"] else plain
            shown = ["not run" if ms is None else f"{copy / ms:.2f}" if copy else f"{ms:.3f}" for ms in (plain, device)]
            print(f"| {name} | {shown[0]} | {shown[1]} |", flush=True)


if __name__ == "__main__":
    main()
