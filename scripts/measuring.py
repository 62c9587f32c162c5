"""What the scripts that measure share: an environment with peers, runs of `tilewright`, times, tables, and sections of a page.

`scripts/peers.py`, `scripts/growth.py` and `scripts/relayout_kernels.py` import it. As a program it is a part of `Run`.
"""

import collections
import contextlib
import importlib.metadata
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/BENCHMARKS.md"


def enter():
    """Starts this script again with the Python of scripts/peers_env.sh and all OpenCL drivers, unless that was done."""
    if os.environ.get("TILEWRIGHT_PEERS") == "1":
        return
    python = last_line(ROOT / "scripts/peers_env.sh") or sys.executable
    vendors = os.environ.get("OCL_ICD_VENDORS") or last_line(ROOT / "scripts/opencl-vendors.sh")
    python = str(ROOT / python) if "/" in python else python
    os.execvpe(python, [python, *sys.argv], {**os.environ, "TILEWRIGHT_PEERS": "1", "OCL_ICD_VENDORS": vendors})


def last_line(*command):
    """The last line that a command prints, or the empty text."""
    try:
        lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.split("\n")
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line), "")


# --- times ---


def median_us(run, seconds=0.02, least=5):
    """The median time of a call in microseconds."""
    times_taken, begin = [], time.perf_counter()
    while len(times_taken) < least or (len(times_taken) < 2000 and time.perf_counter() - begin < seconds):
        start = time.perf_counter_ns()
        run()
        times_taken.append(time.perf_counter_ns() - start)
    return statistics.median(times_taken) / 1e3


def shown(us):
    """A time in microseconds, as text."""
    if us < 1000:
        return f"{us:.1f} us" if us < 100 else f"{us:.0f} us"
    if us < 1e6:
        return f"{us / 1e3:.2f} ms" if us < 1e5 else f"{us / 1e3:.0f} ms"
    return f"{us / 1e6:.2f} s"


def times(ratio):
    """A ratio, as text."""
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


def grown(text, before, after):
    """A text with the exponent of growth from the row before, in parentheses; rows are pairs of a size and what it takes."""
    if not before or not all(before) or not all(after) or before[0] == after[0]:
        return text
    return f"{text} ({math.log(after[1] / before[1]) / math.log(after[0] / before[0]):.2f})"


# --- tilewright ---


class Run:
    """A finished command: the JSON that it printed, its seconds, and its largest memory in bytes."""

    def __init__(self, command):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ("out", "err")]
            launcher = [sys.executable, __file__, *map(str, paths), *map(str, command)]
            told = subprocess.run(launcher, stdout=subprocess.PIPE, text=True, check=True).stdout
            texts = [path.read_text(errors="replace") for path in paths]
        self.seconds, self.code, self.bytes = json.loads(told)
        self.report = None
        with contextlib.suppress(ValueError):
            self.report = json.loads(texts[0])
        error = (self.report or {}).get("error") or {}
        self.why = error.get("message") or texts[1].strip().split("\n")[-1] or f"exit code {self.code}"

    @property
    def is_good(self):
        return self.code == 0 and self.report is not None


def launch(out, err, *command):
    """Runs a command and prints its seconds, exit code and largest memory.

    This is a process of its own, because Linux counts the memory of the process that starts a command as the command's.
    """
    start = time.perf_counter()
    with open(out, "wb") as out_file, open(err, "wb") as err_file:
        process = subprocess.Popen(command, stdout=out_file, stderr=err_file)
        _, status, usage = os.wait4(process.pid, 0)
    seconds, code = time.perf_counter() - start, os.waitstatus_to_exitcode(status)
    print(json.dumps([seconds, code, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)]))


def devices(tilewright):
    """The OpenCL devices: pairs of index and a short name."""
    names = {"Portable Computing Language": "PoCL", "Intel(R) OpenCL": "Intel"}
    report = Run([tilewright, "devices", "--format", "json"]).report or {"devices": []}
    return [(str(d["id"]), names.get(d["platform"], d["platform"])) for d in report["devices"] if d["available"]]


# --- profiles ---


def owner(frames):
    """The part of the program that a sample belongs to: its innermost function that is ours, whatever that calls."""
    for library, symbol in frames:
        if "libz3" in library:
            return "Z3"
        found = re.search(r"tilewright(?:_(\w+))?::(\w+)", symbol)
        if found:
            return f"{found.group(1) or 'tilewright'}::{found.group(2)}"
        if "serde_json" in symbol:
            return "JSON"
    return "other"


def stacks(text):
    """The stacks that `perf script` prints: lists of library and symbol, innermost first."""
    for sample in text.split("\n\n"):
        frames = re.findall(r"^\s*[0-9a-f]+ (.*) \(([^()]*)\)$", sample, re.MULTILINE)
        if frames:
            yield [(library, symbol) for symbol, library in frames]


def profile(command, seconds, within="", most=3):
    """Where a command spends its time, of which `seconds` count: the largest shares from samples of `perf`.

    Only samples count that have a function on their stack whose name contains `within`. A short command is run up to 50 times. `system` is
    the kernel's part of all shares; most of it makes pages of memory. The text is empty without perf, or with fewer than 30 samples.
    """
    repeats = max(1, min(50, round(0.3 / max(seconds, 1e-3))))
    often = max(49, min(1999, round(2000 / max(seconds * repeats, 1e-3))))
    loop = ["sh", "-c", 'n=0; while [ $n -lt $0 ]; do "$@"; n=$((n + 1)); done', str(repeats)]
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "perf.data")
        record = ["perf", "record", "-q", "-F", str(often), "--call-graph", "dwarf,16384", "-o", data, "--", *loop, *map(str, command)]
        try:
            subprocess.run(record, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            script = ["perf", "script", "--no-inline", "-i", data, "-F", "ip,sym,dso"]
            text = subprocess.run(script, capture_output=True, text=True, errors="replace", check=False).stdout
        except OSError:
            return ""
    samples = [frames for frames in stacks(text) if any(within in symbol for _, symbol in frames)]
    shares = collections.Counter(owner(frames) for frames in samples)
    system = sum("kernel" in frames[0][0] for frames in samples)
    found = [f"{name} {100 * count / len(samples):.0f} %" for name, count in shares.most_common(most)]
    return ", ".join(found + [f"system {100 * system / len(samples):.0f} %"]) if len(samples) >= 30 else ""


# --- the page ---


def table(heads, rows):
    """The lines of a table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def write_section(start, end, text, page=PAGE):
    """Replaces what a page has between two markers."""
    whole = page.read_text()
    if start not in whole or end not in whole:
        sys.exit(f"{Path(sys.argv[0]).name}: {page} has no markers")
    before, rest = whole.split(start, 1)
    page.write_text(before + start + "\n\n" + text + "\n\n" + end + rest.split(end, 1)[1])


def packages(*names):
    """Names and versions of those of some packages that are installed here, or that scripts/opencl_intel.sh has installed."""
    marker = ROOT / ".deps/opencl-intel/installed"
    found = dict(word.split("==") for word in marker.read_text().split()) if marker.exists() else {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return ", ".join(f"{name} {found[name]}" for name in names if name in found)


def machine():
    """The processor, in words, with its cores and the load."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        name = found.group(1) if found else name
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"


if __name__ == "__main__":
    launch(*sys.argv[1:])
