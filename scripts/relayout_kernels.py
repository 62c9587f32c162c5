#!/usr/bin/env python3
"""Times relayouts: the kernels of `tilewright relayout` on every OpenCL device, and numpy, JAX and TVM. Prints a table of Markdown.

    scripts/relayout_kernels.py --tilewright target/release/tilewright [--only NHWC] [--plain] [--symbolic] [--ratios BINARY] [--write]

Each move is chosen and proved by `tilewright relayout --explain`; the program that its kernels are made of is timed by
`tilewright bench`: the sum of the medians of its kernels. --plain adds the program without vectors and registers for devices, --symbolic
the kernel for all extents, at the same extents. Times become ratios to a single-threaded copy of the same bytes, which is measured right before and after each row. numpy, JAX and TVM run on
one thread (scripts/relayout_peers.py) and are compared with copies of their own process; they do the three moves of images.

--ratios is the program that `cargo bench -p tilewright-relayout --bench ratios --no-run` builds; it adds the columns of Rust.
--write replaces the table in docs/BENCHMARKS.md. Python and drivers are those of scripts/peers_env.sh and scripts/opencl-vendors.sh.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measuring
from measuring import Run, table

START = "<!-- relayouts: written by `scripts/relayout_kernels.py --write` -->"
END = "<!-- end of relayouts -->"
PEERS = ("numpy", "JAX", "TVM")
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
# The same moves for all extents, and the extents at which their kernels are timed.
ANY_IMAGE = ["--shape", "n,c,h,w", "--dtype", "float32"]
ANY = ["--shape", "n,m", "--dtype"]
ROWS, COLUMNS = "lambda i, j: [i, j]", "lambda i, j: [j, i]"
TILES = "lambda i, j: [i // 8, j // 128, i % 8, j % 128]"
SYMBOLIC = {
    "NHWC to NCHW": (["NHWC", "NCHW", *ANY_IMAGE], "n=16,c=64,h=64,w=64"),
    "NCHW to NHWC": (["NCHW", "NHWC", *ANY_IMAGE], "n=16,c=64,h=64,w=64"),
    "NCHW to NCHW4c": (["NCHW", "NCHW4c", *ANY_IMAGE], "n=16,c=64,h=64,w=64"),
    "T(8,128)": ([ROWS, TILES, *ANY, "float32"], "n=2048,m=2048"),
    "T(2,2)": ([ROWS, "lambda i, j: [i // 2, j // 2, i % 2, j % 2]", *ANY, "float32"], "n=2048,m=2048"),
    "T(8,128)(2,1) of 16 bits": (
        [ROWS, "lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2]", *ANY, "bfloat16"],
        "n=4096,m=2048",
    ),
    "transpose 2048x2048": ([ROWS, COLUMNS, *ANY, "float32"], "n=2048,m=2048"),
    "transpose 4096x1024": ([ROWS, COLUMNS, *ANY, "float32"], "n=4096,m=1024"),
    "columns to T(8,128)": ([COLUMNS, TILES, *ANY, "float32"], "n=2048,m=2048"),
    "ragged T(8,128)": ([ROWS, TILES, *ANY, "float32"], "n=4001,m=4003"),
}


def note(text):
    print(f"relayout_kernels: {text}", file=sys.stderr, flush=True)


def kernel_ms(options, program, device, folder):
    """The time of the kernels of a program at given extents, or why it did not run."""
    text, *extents = program
    path = Path(folder) / "program.py"
    path.write_text(text)
    words = ["bench", path, "--rounds", options.rounds, "--device", device, *extents, "--format", "json"]
    run = Run([options.tilewright, *words])
    if not run.is_good:
        return run.why
    return sum(kernel["median_ms"] for kernel in run.report["functions"][0]["runs"][0]["kernels"])


def copies(bytes_of_move, rounds):
    """The median time of a single-threaded copy in milliseconds, into memory that was touched."""
    import numpy

    source, target = (numpy.full(bytes_of_move, value, "uint8") for value in (1, 2))
    return measuring.median_us(lambda: numpy.copyto(target, source), seconds=0, least=rounds) / 1e3


def peers(options):
    """What scripts/relayout_peers.py found, by move; empty if it failed."""
    note("peers")
    command = [sys.executable, str(Path(__file__).with_name("relayout_peers.py")), str(options.rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def rust(options):
    """The columns of `ratios` by move: one thread and two."""
    if not options.ratios:
        return {}
    note("Rust")
    lines = subprocess.run([options.ratios], stdout=subprocess.PIPE, text=True, check=False).stdout.split("\n")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[2:] if line.startswith("|")]
    return {row[0]: row[2:] for row in rows}


def kinds(options):
    """The programs of each move, as they are named in the head of the table."""
    return ["", *[", plain program"] * options.plain, *[", symbolic"] * options.symbolic]


def ratio(copy, ms):
    """The ratio of a copy's time to a time; a text is why there is no time."""
    return f"{copy / ms:.2f}" if isinstance(ms, float) else str(ms)


def explained(options, arguments):
    """What `relayout --explain` says of a move."""
    return Run([options.tilewright, "relayout", *arguments, "--explain", "--format", "json"])


def programs_of(options, name, move):
    """The programs of a move whose kernels are timed, each with the options that give its extents."""
    found = [[move["device_program"] or move["program"]]]
    if options.plain:
        found.append([move["program"]])
    if options.symbolic:
        arguments, shape = SYMBOLIC[name]
        move = explained(options, arguments)
        text = (move.report["device_program"] or move.report["program"]) if move.is_good else f"# not proved: {move.why}"
        found.append([text, "--shape", shape])
    return found


def row(options, devices, name, arguments, folder):
    """The copy's time and the ratios of the kernels of a move, for each device and program."""
    move = explained(options, arguments)
    if not move.is_good:
        return ["", *[f"not proved: {move.why}"] * len(devices) * len(kinds(options))]
    slots = 1
    for extent in move.report["to_shape"]:
        slots *= extent
    bytes_of_move = slots * move.report["element_bytes"]
    before = copies(bytes_of_move, options.rounds)
    programs = programs_of(options, name, move.report)
    found = [kernel_ms(options, program, index, folder) for index, _ in devices for program in programs]
    copy = statistics.mean([before, copies(bytes_of_move, options.rounds)])
    return [f"{copy:.3f}", *[ratio(copy, ms) for ms in found]]


def measured(options):
    """The lines of the table."""
    devices = [(index, name) for index, name in measuring.devices(options.tilewright) if options.device in ("", index, name)]
    others, ours = peers(options), rust(options)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in MOVES:
            if options.only not in name:
                continue
            note(name)
            cells = [name, *row(options, devices, name, arguments, folder)]
            cells += ours.get(name, [""] * 2) if ours else []
            other = others.get(name, {})
            rows.append([*cells, *[ratio(other["memcpy"], other[peer]) if other else "" for peer in PEERS]])
    names = [f"{name}{kind}" for _, name in devices for kind in kinds(options)]
    heads = ["move", "memcpy, ms", *names, *(["Rust, 1 thread", "Rust, 2 threads"] if ours else []), *PEERS]
    return table(heads, rows)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--tilewright", default="target/release/tilewright")
    parser.add_argument("--device", default="", help="an index, or PoCL or Intel; all if not given")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", default="", help="moves whose names contain this")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--symbolic", action="store_true")
    parser.add_argument("--ratios")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    measuring.enter()
    machine = measuring.machine()
    packages = measuring.packages("numpy", "jax", "apache-tvm", "intel-opencl-rt")
    text = "\n".join([*measured(options), "", f"Machine: {machine}. {packages}. Medians of {options.rounds} rounds."])
    print(text)
    if options.write:
        measuring.write_section(START, END, text)


if __name__ == "__main__":
    main()
