#!/usr/bin/env python3
"""Measures how time grows with the size of what Tilewright is given, and prints four tables of Markdown.

    scripts/growth.py --tilewright target/release/tilewright [--only plans] [--quick] [--write]

| part | sizes | what is timed |
|---|---|---|
| elements | 10^4 to 10^8 | a multiply-add from NHWC to NCHW4c: the interpreter, numpy, and every OpenCL device |
| maps | rank 1 to 12 | `map --batch`: the proofs, as reported, and the whole answer |
| chains | 1 to 1000 | `check --device none` of so many stages in TE, or loops in TVMScript |
| plans | 10^3 to 10^6 | `plan` of a network of so many tensors |

With --write, each table replaces the one between its markers in docs/BENCHMARKS.md; --quick leaves out the largest sizes. The Python that
has numpy and the drivers are those of scripts/peers_env.sh and scripts/opencl-vendors.sh. In parentheses is the exponent of growth from
the row above: 1 is linear, 2 quadratic. `where the time goes` is a profile of a run of its own, if `perf` is there.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import growth_inputs
import measuring
from measuring import Run, grown, shown, table

PARTS = ("elements", "maps", "chains", "plans")


def note(text):
    print(f"growth: {text}", file=sys.stderr, flush=True)


class Growth:
    """What all parts share: the binary, a folder for inputs, and the rows before, for exponents."""

    def __init__(self, options, folder):
        self.tilewright, self.quick, self.folder = options.tilewright, options.quick, Path(folder)
        self.before = {}

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def command(self, *words):
        return [self.tilewright, *words, "--format", "json"]

    def grown(self, column, size, amount, text):
        """The text of a cell, with the exponent from the cell above."""
        cell = grown(text, self.before.get(column), (size, amount))
        self.before[column] = (size, amount)
        return cell

    def time(self, column, size, us):
        return self.grown(column, size, us, shown(us))



# --- elements ---


def interpreted(growth, path, threads, rounds):
    """The median time in the interpreter in microseconds, or why there is none; each round is a process."""
    found = []
    for _ in range(rounds):
        run = Run(growth.command("run", path, "--threads", threads))
        if not run.is_good:
            return None, run.why
        found.append(run.report["functions"][0]["ms"] * 1e3)
    return statistics.median(found), None


def numpy_us(elements, rounds):
    """The median time of the same in numpy, one thread, into memory that was touched; None without numpy."""
    try:
        import numpy
    except ImportError:
        return None
    n = max(1, elements // 10_000)
    a = numpy.random.default_rng(0).random((n, 25, 25, 16), dtype="float32")
    b = numpy.zeros((n, 4, 25, 25, 4), "float32")
    moved = a.reshape(n, 25, 25, 4, 4).transpose(0, 3, 1, 2, 4)

    def run():
        numpy.multiply(moved, numpy.float32(2), out=b)
        numpy.add(b, moved, out=b)

    return measuring.median_us(run, seconds=0.1, least=rounds)


def elements(growth):
    devices = measuring.devices(growth.tilewright)
    rows = []
    for size in (10**4, 10**5, 10**6) if growth.quick else (10**4, 10**5, 10**6, 10**7, 10**8):
        note(f"{size} elements")
        path, rounds = growth.file("multiply_add.py", growth_inputs.multiply_add(size)), 9 if size < 10**6 else 5 if size < 10**8 else 3
        cells = {f"threads {n}": interpreted(growth, path, n, rounds) for n in (1, 2)}
        for index, name in devices:
            run = Run(growth.command("bench", path, "--device", index, "--rounds", 9 if size < 10**8 else 3, "--warm-up", 2))
            total = run.report["functions"][0]["runs"][0]["total"] if run.is_good else None
            cells[name] = (total["median_ms"] * 1e3, None) if total else (None, run.why)
        cells["numpy"] = (numpy_us(size, rounds), "numpy is not installed")
        row = [f"10^{len(str(size)) - 1}"]
        for column, (us, why) in cells.items():
            row.append(growth.grown(column, size, us, f"{size / us:.1f}") if us else f"not measured: {why}")
        seconds = (cells["threads 1"][0] or 0) / 1e6
        command = growth.command("run", path, "--threads", 1)
        row.append(measuring.profile(command, seconds, within="tilewright_interp::run::run_function"))
        rows.append(row)
    names = [f"kernel, {name}" for _, name in devices]
    heads = ["elements", "interpreter, 1 thread", "2 threads", *names, "numpy", "where the interpreter spends its time"]
    return table(heads, rows)


# --- maps ---


def answers(growth, requests):
    """The proofs' time and the whole answer's of each request of a batch, in microseconds, and how the proofs were found."""
    command = [growth.tilewright, "map", "--batch", "-", "--format", "json", "--threads", "1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found = []
    for request in requests:
        start = time.perf_counter()
        process.stdin.write(request + "\n")
        process.stdin.flush()
        report = json.loads(process.stdout.readline())
        whole = (time.perf_counter() - start) * 1e6
        verdicts = report.get("verdicts", [])
        is_proved = bool(verdicts) and all(verdict["verdict"] == "proved" for verdict in verdicts)
        methods = {verdict["method"].split(" ")[0].rstrip(":") for verdict in verdicts}
        found.append((sum(verdict["ms"] for verdict in verdicts) * 1e3, whole, is_proved, methods))
    process.stdin.close()
    process.wait()
    return found


def maps(growth):
    rows, count = [], 5 if growth.quick else 25
    warm = 5  # The first maps of a process start Z3 and prove the lemmas.
    for rank in range(1, 13):
        row = [str(rank)]
        for kind, symbolic in (("constant", False), ("symbolic", True)):
            others = list(growth_inputs.maps(4, symbolic, warm))
            found = answers(growth, [*others, *growth_inputs.maps(rank, symbolic, count)])[warm:]
            proofs, whole = (statistics.median(answer[at] for answer in found) for at in (0, 1))
            methods = ", ".join(sorted(set().union(*(answer[3] for answer in found))))
            left = sum(not answer[2] for answer in found)
            row += [growth.time(f"{kind} proofs", rank, proofs), growth.time(f"{kind} whole", rank, whole)]
            row.append(methods + (f"; {left} of {count} not proved" if left else ""))
        # A second of maps, so that the start does not count.
        lines = growth_inputs.maps(rank, True, int(1e6 / whole))
        batch = growth.file("batch.jsonl", "".join(f"{line}\n" for line in lines))
        rows.append([*row, measuring.profile([growth.tilewright, "map", "--batch", batch, "--threads", "1"], 1)])
    heads = ["rank"]
    for kind in ("numbers", "symbolic"):
        heads += [f"extents: {kind}, proofs", "answer", "by"]
    return table([*heads, "where the time goes, symbolic"], rows)


# --- chains ---


def chains(growth):
    kinds = {
        "stages, numbers": lambda n: growth_inputs.chain(n, symbolic=False),
        "stages, symbolic": lambda n: growth_inputs.chain(n, symbolic=True),
        "loops": growth_inputs.nests,
    }
    rows = []
    # A schedule has at most 1000 stages, the placeholder included.
    for size in (1, 10, 100) if growth.quick else (1, 10, 100, 999):
        row, last = [str(size)], ("", 0)
        note(f"{size} stages")
        for kind, text in kinds.items():
            command = growth.command("check", growth.file("chain.py", text(size)), "--device", "none", "--threads", 1)
            runs = [Run(command) for _ in range(3 if size < 100 else 1)]
            if not runs[0].is_good or runs[0].report["verdict"] != "proved":
                row.append(f"not measured: {runs[0].why if not runs[0].is_good else runs[0].report['verdict']}")
                continue
            seconds = statistics.median(run.seconds for run in runs)
            steps = sum(step["ms"] for step in runs[0].report["passes"]) / 1e3
            cell = growth.time(kind, size, seconds * 1e6)
            row.append(f"{cell}, steps {min(100, 100 * steps / runs[0].seconds):.0f} %, {max(run.bytes for run in runs) >> 20} MiB")
            if kind == "stages, symbolic":
                last = (measuring.profile(command, seconds), seconds)
        rows.append([*row, last[0]])
    heads = ["stages or loops", "TE stages, extents that are numbers", "TE stages, symbolic extents", "TVMScript loops, symbolic"]
    return table([*heads, "where the second spends its time"], rows)


# --- plans ---


def plans(growth):
    rows = []
    for size in (10**3, 10**4) if growth.quick else (10**3, 10**4, 10**5, 10**6):
        note(f"a plan of {size} tensors")
        path = growth.file("network.json", growth_inputs.network(size))
        command = growth.command("plan", path, "--threads", 1)
        run, reading = Run(command), Run(growth.command("plan", path, "--threads", 1, "--planner", "compatible"))
        if not run.is_good:
            rows.append([str(size), f"refused: {run.why}", *[""] * 6])
            continue
        report, proofs = run.report["report"], sum(verdict["ms"] for verdict in run.report["verdicts"])
        is_proved = all(verdict["verdict"] == "proved" for verdict in run.report["verdicts"])
        ratio = report["bytes"]["planned"] / report["bytes"]["lower_bound"]
        row = [f"{report['tensors']:,}", f"{path.stat().st_size / 2**20:.1f} MiB"]
        row.append(growth.time("rest", size, run.seconds * 1e6 - proofs * 1e3))
        row.append(growth.time("compatible", size, reading.seconds * 1e6 - sum(v["ms"] for v in reading.report["verdicts"]) * 1e3))
        row.append(growth.time("proofs", size, proofs * 1e3) if is_proved else "not proved")
        row.append(growth.grown("memory", size, run.bytes, f"{run.bytes / 2**20:,.0f} MiB"))
        rows.append([*row, f"{ratio:.3f}", measuring.profile(command, run.seconds)])
    heads = ["tensors", "file", "read, plan (best), print", "the same, compatible", "prove", "peak memory", "memory / lower bound"]
    return table([*heads, "where the time goes"], rows)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--tilewright", default="target/release/tilewright")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be given many times")
    parser.add_argument("--quick", action="store_true", help="leave out the largest sizes")
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/BENCHMARKS.md")
    options = parser.parse_args()
    measuring.enter()
    for part in options.only or PARTS:
        machine = measuring.machine()
        with tempfile.TemporaryDirectory() as folder:
            lines = globals()[part](Growth(options, folder))
        text = "\n".join([*lines, "", f"Machine: {machine}."])
        print(f"## {part}\n\n{text}\n", flush=True)
        if options.write:
            start = f"<!-- growth, {part}: written by `scripts/growth.py --write` -->"
            measuring.write_section(start, f"<!-- end of growth, {part} -->", text)


if __name__ == "__main__":
    main()
