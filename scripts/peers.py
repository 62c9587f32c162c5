"""Measures Tilewright beside its peers and prints one table. Started by scripts/peers.sh, which says what it needs.

Ours is a process that measures on request (benches/peers.rs). Each round takes ours and the peer's measurement of one thing right
after each other, so that both see the same machine; the table has the medians of the rounds, and the ratio is the median of the
ratios of single rounds.
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import platform
import re
import statistics
import subprocess

import measuring
from measuring import median_us, shown, times

START, END = "<!-- peers: written by `scripts/peers.sh --write` -->", "<!-- end of peers -->"
#: The devices that compile kernels, as `--device` selects them, and their names.
KERNELS = {"pocl": "PoCL", "Intel(R) OpenCL": "Intel's runtime"}


class Ours:
    """The process that measures our side."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            return {"error": "our process ended"}
        return json.loads(line)


def load(name):
    """A module, or why there is none."""
    try:
        return __import__(name), None
    except Exception as error:
        return None, f"{name} is not there ({type(error).__name__})"


class Table:
    def __init__(self):
        self.rows = []

    def row(self, what, ours, peer, ratio):
        self.rows.append([what, ours, peer, ratio])

    def missing(self, what, why):
        self.row(what, "", "", f"not measured: {why}")

    def markdown(self):
        return measuring.table(["what", "Tilewright", "peer", "peer / Tilewright"], self.rows)


# --- maps ---


def index_map(tvm, text, shape):
    """The same map for TVM: the lambda is Python."""
    from tvm import tirx

    args = text[len("lambda") : text.index(":")].replace(" ", "").split(",")
    words = set(re.findall(r"[A-Za-z_]\w*", text + " " + shape)) - {"lambda", "if", "else"}
    # A symbol may have the name of an index: it is another variable.
    of_shape = {word: tirx.Var(word, "int64") for word in words}
    of_map = {word: var for word, var in of_shape.items() if word not in args}
    # Python would decide a choice while it traces the lambda.
    text = re.sub(r"(\w+) if (.+?) else (.+?)\]", r"choose(\2, \1, \3)]", text)
    of_map["choose"] = lambda c, a, b: tirx.if_then_else(c, a, b)
    return tirx.IndexMap.from_func(eval(text, of_map)), list(eval(f"({shape},)", dict(of_shape)))


def same_inverse(found, text, shape):
    """Whether what TVM gave leads back, on the corners and some points of a constant shape."""
    extents = [int(extent) for extent in shape.split(",")]
    forward = eval(text)
    from tvm import tirx
    from tvm.tirx import const  # noqa: F401

    for seed in range(24):
        point = [0 if seed == 0 else e - 1 if seed == 1 else (seed * 7919 * (k + 3)) % e for k, e in enumerate(extents)]
        image = [tirx.IntImm("int64", int(value)) for value in forward(*point)]
        back = [int(value) for value in found.map_indices(image)]
        if back != point:
            return False
    return True


def tvm_calls(tvm, text, shape):
    """TVM's calls that give an inverse of a map: name, call, answer or reason."""
    calls = {}
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            found, extents = index_map(tvm, text, shape)
    except Exception as error:
        return None, f"TVM cannot state it: {str(error).splitlines()[0][:60]}"
    for name, call in (
        ("inverse", lambda: found.inverse(extents)),
        ("non_surjective_inverse", lambda: found.non_surjective_inverse(extents)),
    ):
        try:
            answer = call()
            calls[name] = (call, answer[0] if isinstance(answer, tuple) or name != "inverse" else answer)
        except Exception as error:
            calls[name] = (None, str(error).strip().splitlines()[-1][:60])
    return calls, None


def refused(call):
    def run():
        try:
            call()
        except Exception:
            pass

    return run


def maps(ours, tvm, rounds, table, details):
    everything = ours.ask(do="maps")
    per_kind = []
    for kind in ("constant", "symbolic"):
        rows = everything[kind]
        found = []
        for name, text, shape in rows:
            calls, why = tvm_calls(tvm, text, shape) if tvm else (None, "no TVM")
            used = None
            if calls:
                used = next((n for n in ("inverse", "non_surjective_inverse") if calls[n][0]), None)
            mine, theirs, confirm, whole = [], [], [], []
            last = {}
            for _ in range(rounds):
                last = ours.ask(do="map", map=text, shape=shape)
                if "error" in last:
                    break
                mine.append(last["certificate_us"])
                whole.append(last["whole_us"])
                if last.get("confirmation_us") is not None:
                    confirm.append(last["confirmation_us"])
                if used:
                    theirs.append(median_us(calls[used][0]))
            if "error" in last:
                details.append([kind, name, "", "", "", "", f"not measured: {last['error']}"])
                continue
            sufficient = set(last["shown"]) >= {"bounds", "injective", "inverse"} and last["has_inverse"]
            note = f"`{used}`" if used else (why or "TVM refuses it")
            if used and kind == "constant":
                with contextlib.suppress(Exception):
                    note += "" if same_inverse(calls[used][1], text, shape) else ", a wrong inverse"
            us, peer = statistics.median(mine), statistics.median(theirs) if theirs else None
            ratio = statistics.median(t / m for t, m in zip(theirs, mine)) if theirs else None
            found.append((name, us, peer, ratio, used, sufficient, statistics.median(confirm) if confirm else None))
            details.append(
                [
                    kind,
                    name,
                    shown(us) if sufficient else f"{shown(us)} (no certificate)",
                    shown(statistics.median(confirm)) if confirm else "",
                    shown(statistics.median(whole)),
                    shown(peer) if peer else "",
                    (times(ratio) + ", " if ratio else "") + note,
                ]
            )
        per_kind.append((kind, found))
    for kind, found in per_kind:
        for call in ("inverse", "non_surjective_inverse"):
            both = [f for f in found if f[4] == call and f[5]]
            what = f"{kind} maps that have a certificate and `IndexMap.{call}` of TVM answers"
            if not tvm:
                table.missing(what, "apache-tvm is not installed")
            elif both:
                mine, theirs = statistics.median(f[1] for f in both), statistics.median(f[2] for f in both)
                table.row(
                    f"{what}: {len(both)}, median (find, check)",
                    shown(mine),
                    shown(theirs),
                    f"{times(statistics.median(f[3] for f in both))} ({sum(f[3] > 1 for f in both)} of {len(both)} faster)",
                )
        confirmations = [f[6] for f in found if f[6] is not None and f[5]]
        if confirmations:
            table.row(
                f"{kind} maps: Z3 on the lemma instances, once a process, {len(confirmations)} maps, median",
                shown(statistics.median(confirmations)),
                "",
                "TVM proves nothing",
            )


# --- passes ---


def flatten(ours, tvm, rounds, table):
    programs = ours.ask(do="programs")
    for name in ("multiply_add", "padded"):
        text = programs[name].replace("{n}", "4")
        what = f"FlattenBuffer on the NHWC to NCHW4c program ({name.replace('_', '-')})"
        call, why = None, "apache-tvm is not installed"
        if tvm:
            try:
                from tvm.tirx import transform

                module = tvm.IRModule({"main": tvm.script.from_source(text)})
                run = transform.FlattenBuffer()
                run(module)
                call = lambda: run(module)
            except Exception as error:
                why = f"TVM: {str(error).strip().splitlines()[-1][:80]}"
        mine, proved, theirs = [], [], []
        for _ in range(rounds):
            of = ours.ask(do="flatten", program=text)
            if "error" in of:
                why, call = of["error"], None
                break
            mine.append(of["pass_us"])
            proved.append(of["proved_us"])
            if call:
                theirs.append(median_us(call))
        if not call:
            table.missing(what, why)
            continue
        peer = statistics.median(theirs)
        for label, ours_us in (("pass alone", mine), ("with every obligation proved", proved)):
            ratio = statistics.median(t / m for t, m in zip(theirs, ours_us))
            table.row(f"{what}, {label}", shown(statistics.median(ours_us)), shown(peer), times(ratio))


# --- data ---


def numpy_move(numpy, name):
    """A call that does in numpy what the program of that name does."""
    shape, out = (4, 56, 56, 62 if name == "padded" else 64), (4, 64, 56, 56) if name == "transpose" else (4, 16, 56, 56, 4)
    a, b = numpy.random.default_rng(0).random(shape, dtype="float32"), numpy.empty(out, "float32")
    if name == "transpose":
        return lambda: numpy.copyto(b, a.transpose(0, 3, 1, 2))
    if name == "blocked":
        return lambda: numpy.copyto(b, a.reshape(4, 56, 56, 16, 4).transpose(0, 3, 1, 2, 4))
    pad = ((0, 0), (0, 0), (0, 0), (0, 2))
    return lambda: numpy.copyto(b, numpy.pad(a, pad).reshape(4, 56, 56, 16, 4).transpose(0, 3, 1, 2, 4))


def compared(table, what, ours_us, theirs_us):
    """A row of two lists of times; nothing if one of them is empty."""
    if ours_us and theirs_us:
        ratio = statistics.median(t / m for t, m in zip(theirs_us, ours_us))
        table.row(what, shown(statistics.median(ours_us)), shown(statistics.median(theirs_us)), times(ratio))


def relayouts(ours, numpy, rounds, table):
    programs = ours.ask(do="programs")
    names = {"transpose": "NHWC to NCHW", "blocked": "NHWC to NCHW4c", "padded": "NHWC to NCHW4c of 62 channels, padded"}
    for name, label in names.items():
        what, text = f"{label}, 802816 float32", programs[name]
        peer, interpreted, kernels, reasons = [], [], {device: [] for device in KERNELS}, {}
        for _ in range(rounds):
            interpreted.append(ours.ask(do="interpret", program=text, threads=1).get("ns", float("nan")) / 1e3)
            for device, taken in kernels.items():
                answer = {"error": reasons[device]} if device in reasons else ours.ask(do="kernel", program=text, device=device)
                if "error" in answer:
                    reasons[device] = answer["error"].splitlines()[0]
                else:
                    taken.append([answer[key] / 1e3 for key in ("ns", "copy_ns", "memcpy_ns")])
            if numpy:
                peer.append(median_us(numpy_move(numpy, name)))
        if not numpy:
            table.missing(f"{what} against numpy", "numpy is not installed")
        compared(table, f"{what}: interpreter, 1 thread, against numpy", interpreted, peer)
        for device, taken in kernels.items():
            kernel, copy, memcpy = zip(*taken) if taken else ([], [], [])
            compared(table, f"{what}: kernel on {KERNELS[device]} against numpy", kernel, peer)
            for other, theirs in (("clEnqueueCopyBuffer", copy), ("memcpy", memcpy)):
                compared(table, f"{what}: kernel on {KERNELS[device]} against {other} of as many bytes", kernel, theirs)
            if device in reasons:
                table.missing(f"{what}: kernel on {KERNELS[device]}", reasons[device])


def interpretation(ours, rounds, table):
    text = ours.ask(do="programs")["multiply_add"].replace("{n}", "1")
    elements = 56 * 56 * 64
    what = "multiply-add NHWC to NCHW4c, 200704 float32"
    mine = {1: [], 2: []}
    labels = {"Oclgrind": "interpreted by Oclgrind"} | {device: f"compiled by {name}" for device, name in KERNELS.items()}
    others = {device: [] for device in labels}
    reasons = {}
    for _ in range(rounds):
        for threads, taken in mine.items():
            taken.append(ours.ask(do="interpret", program=text, threads=threads).get("ns", float("nan")))
        for device, taken in others.items():
            if device not in reasons:
                answer = ours.ask(do="kernel", program=text, device=device)
                if "error" in answer:
                    reasons[device] = answer["error"].splitlines()[0]
                else:
                    taken.append(answer["ns"])
    for device, label in labels.items():
        if device in reasons:
            table.missing(f"{what}: {label}", reasons[device])
            continue
        for threads, taken in mine.items():
            rate = lambda ns: f"{elements / statistics.median(ns) * 1e3:,.1f} million elements/s"
            ratio = statistics.median(t / m for t, m in zip(others[device], taken))
            word = "thread" if threads == 1 else "threads"
            table.row(f"{what}: our interpreter, {threads} {word}, the kernel {label}", rate(taken), rate(others[device]),
                      times(ratio))


def versions(tvm, numpy):
    def output(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        except OSError:
            return ""

    found = [output("rustc", "--version") or "no rustc", f"Python {platform.python_version()}"]
    found.append(f"apache-tvm {importlib.metadata.version('apache-tvm')}" if tvm else "no apache-tvm")
    found.append(f"numpy {numpy.__version__}" if numpy else "no numpy")
    oclgrind = re.search(r"Oclgrind (\S+)", output("oclgrind", "--version"))
    found.append(f"Oclgrind {oclgrind.group(1)}" if oclgrind else "no Oclgrind")
    for line in output("clinfo").splitlines():
        pocl = re.search(r"Platform Version\s+(OpenCL .*pocl \S+)", line)
        if pocl:
            found.append(pocl.group(1).replace("OpenCL ", "OpenCL, "))
            break
    return ", ".join(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=["maps", "flatten", "relayouts", "interpretation"])
    options = parser.parse_args()
    tvm, _ = load("tvm")
    if tvm:
        import tvm.script  # noqa: F401
    numpy, _ = load("numpy")
    ours, table, details = Ours(options.binary), Table(), []
    wanted = lambda part: options.only in (None, part)
    machine = measuring.machine()
    # A refusal of TVM's prints to standard error from C++.
    if wanted("maps"):
        maps(ours, tvm, options.rounds, table, details)
    if wanted("flatten"):
        flatten(ours, tvm, options.rounds, table)
    if wanted("relayouts"):
        relayouts(ours, numpy, options.rounds, table)
    if wanted("interpretation"):
        interpretation(ours, max(3, options.rounds // 2), table)
    lines = table.markdown()
    lines += [
        "",
        f"Machine: {machine}. {versions(tvm, numpy)}.",
        f"Medians of {options.rounds} rounds. A round measures Tilewright and the peer right after each other, each as the"
        " median of several runs (maps, passes and numpy at least 5, interpreter 3, kernels and copies 15, Oclgrind 1); a ratio"
        " is the median of the ratios of the rounds. Times of TVM and numpy include the call from Python. *find, check*:"
        " physical shape, inverse, padding and digits are found, and the checker compares them with the map, except for the"
        " instances of lemmas, which Z3 confirms; a map is called proved only after that.",
    ]
    text = "\n".join(lines)
    print(text)
    if details:
        print("\n| | map | find, check | Z3 confirms | all reports | TVM | |\n|---|---|---|---|---|---|---|")
        for row in details:
            print("| " + " | ".join(row) + " |")
    if options.write:
        measuring.write_section(START, END, text)


main()
