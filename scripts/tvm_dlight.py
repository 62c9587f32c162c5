#!/usr/bin/env python3
"""Writes operators before and after the default schedules of TVM for a GPU, dlight, and judges them with Tilewright.

    python=$(scripts/tvm_env.sh)
    "$python" scripts/tvm_dlight.py --out .deps/dlight [--only matmul]
    "$python" scripts/tvm_dlight.py --out .deps/dlight --judge target/release/tilewright [--only softmax] [--limit 40]

NAME.TARGET.before.py is an operator NAME of scripts/tvm_operators.py, and NAME.TARGET.after.py what the first rule of dlight
that applies to it makes of it for TARGET, which is cuda or opencl. index.json lists all of them with their rules.

`validate` is asked whether the program after computes what the one before computes, with sums in any order, and `check` about
the program after by itself. The limit is one of processor time, so that other work of the machine does not matter. A line is
printed for each answer that is not `proved`, and tables in Markdown at the end. Nothing here is random.

| column | meaning |
|---|---|
| open | unknown, vacuous or skipped |
| error | the program is not read, or Tilewright has a bug |
| late | no answer within the limit |
| other | engines of `check` differ, or a program traps |

The exit status is 1 if something is refuted.
"""

import argparse
import collections
import json
import pathlib
import resource
import signal
import subprocess
import sys

from tvm_corpus import reasons

# So many times the limit passes, in all, before a process is stopped that waits and computes nothing.
PATIENCE = 30
LONGEST_REASON = 240
COLUMNS = ["proved", "refuted", "open", "error", "late", "other"]
COLUMN = {"unknown": "open", "vacuous": "open", "skipped": "open", "mismatch": "other"}


def rules():
    """Returns the rules of dlight by name, in the order in which they are tried."""
    from tvm.s_tir.dlight import gpu
    made = [gpu.Matmul(), gpu.GEMV(), gpu.LowBatchGEMV(4), gpu.Reduction(), gpu.RMSNorm(), gpu.GeneralReduction(), gpu.Transpose(),
            gpu.Fallback()]
    return {type(rule).__name__: rule for rule in made}


def targets():
    """Returns the targets by name."""
    import tvm
    cuda = {"kind": "cuda", "arch": "sm_80", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32}
    opencl = {"kind": "opencl", "max_threads_per_block": 256, "max_shared_memory_per_block": 32768, "thread_warp_size": 1}
    return {made["kind"]: tvm.target.Target(made, host="llvm") for made in (cuda, opencl)}


def scheduled(func, target):
    """Returns the first rule that applies to a function and the program that it makes, and what went wrong; None without a rule."""
    import tvm
    from tvm.s_tir.dlight import ApplyDefaultSchedule
    wrong = []
    for name, rule in rules().items():
        try:
            with target:
                after = ApplyDefaultSchedule(rule)(tvm.IRModule({"main": func}))
        except Exception as error:  # TVM throws what its C++ throws
            wrong.append(f"{name}: {str(error).strip().splitlines()[-1]}")
            continue
        if "tirx.is_scheduled" in after["main"].attrs:
            return name, after, wrong
    return None, None, wrong


def generate(folder, only):
    """Writes the programs into a folder."""
    import tvm
    import tvm_operators
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.before.py"), *folder.glob("*.after.py")]:
        old.unlink()
    index, of_targets = [], targets()
    for name, func in tvm_operators.operators().items():
        func = func.with_attr("global_symbol", "main")
        for target_name, target in of_targets.items():
            stem = f"{name}.{target_name}"
            if only not in stem:
                continue
            rule, after, wrong = scheduled(func, target)
            for message in [*wrong, *([] if rule else ["no rule applies"])]:
                print(f"{stem}: {message}")
            if rule:
                for side, module in (("before", tvm.IRModule({"main": func})), ("after", after)):
                    (folder / f"{stem}.{side}.py").write_text(module.script() + "\n")
                index.append({"stem": stem, "operator": name, "target": target_name, "rule": rule})
    (folder / "index.json").write_text(json.dumps(index, indent=0) + "\n")
    print(f"{len(index)} pairs in {folder}")
    for rule, count in collections.Counter(pair["rule"] for pair in index).items():
        print(f"{count:4}  {rule}")


def ask(command, limit):
    """Runs Tilewright for so many seconds of processor time. Returns the verdict, and what keeps it from being `proved`."""
    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * limit, preexec_fn=limited, check=False)
    except subprocess.TimeoutExpired:
        return "late", [f"no answer in {PATIENCE * limit} s"]
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "late", [f"stopped by {signal.Signals(-done.returncode).name}, the limit is {limit} s of processor time"]
    try:
        report = json.loads(done.stdout.splitlines()[0])
    except (IndexError, ValueError):
        return "error", [(done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]]
    if report["schema"].startswith("tilewright.error"):
        return "error", [f"{found['code']}: {found['message']}" for found in report["diagnostics"]]
    if done.returncode == 70:
        return "error", [f"a bug of Tilewright: {(done.stderr.strip().splitlines() or ['?'])[0]}"]
    return report["verdict"], why(report)


def why(report):
    """Returns what is not proved in a report of `validate` or `check`, first what is refuted, and which engines disagree."""
    found = reasons({"functions": report["passes"] if "passes" in report else report["functions"]})
    found.sort(key=lambda text: not text.startswith("refuted"))
    engines = [one for one in report.get("engines", []) if one["status"] in ("mismatch", "trap", "failed")]
    differ = [f"{one['status']} {one['engine']} {one['stage']}: {one['reason']}" for one in engines]
    return differ + found if report["verdict"] == "mismatch" else found + differ


def judge(binary, folder, only, limit):
    """Judges the programs of a folder and prints the tables. Returns whether something is refuted."""
    pairs = [pair for pair in json.loads((folder / "index.json").read_text()) if only in pair["stem"]]
    tables = {"validate": collections.defaultdict(collections.Counter), "check": collections.defaultdict(collections.Counter)}
    common = ["--format", "json", "--device", "none", "--timeout", "5"]
    with (folder / "results.jsonl").open("w") as log:
        for command, table in tables.items():
            for pair in pairs:
                before, after = (folder / f"{pair['stem']}.{side}.py" for side in ("before", "after"))
                files = ["--reassociate", before, after] if command == "validate" else [after]
                verdict, reason = ask([binary, command, *common, *files], limit)
                if verdict != "proved":
                    text = (reason or ["no reason"])[0]
                    text = text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "..."
                    print(f"{command} {pair['stem']} ({pair['rule']}): {verdict}: {text}", flush=True)
                for row in (pair["rule"], "all"):
                    table[row].update(["of", COLUMN.get(verdict, verdict)])
                log.write(json.dumps({**pair, "command": command, "verdict": verdict, "why": reason}) + "\n")
                log.flush()
    order = list(dict.fromkeys(pair["rule"] for pair in pairs))
    print_table("`validate --reassociate`", "pairs", order, tables["validate"])
    print_table("`check`", "programs", order, tables["check"])
    return any(table["all"]["refuted"] for table in tables.values())


def print_table(title, counted, order, table):
    """Prints a table in Markdown, with a row for each rule."""
    print(f"\n{title}\n\n| rule | {counted} | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 2)}")
    for row in [*order, "all"]:
        print(f"| {row} | {' | '.join(str(table[row][column]) for column in ['of', *COLUMNS])} |")


def main():
    """Writes the programs, or judges them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="the folder of the programs")
    parser.add_argument("--judge", metavar="TILEWRIGHT", help="judge the programs of the folder with this program")
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="programs whose name and target, as in softmax_n.cuda, contain this")
    parser.add_argument("--limit", type=int, default=40, metavar="SECONDS", help="seconds of processor time for one answer")
    options = parser.parse_args()
    sys.setrecursionlimit(20000)
    if options.judge and not (options.out / "index.json").exists():
        parser.error(f"there are no programs in {options.out}; write them first, without --judge")
    if options.judge:
        sys.exit(1 if judge(options.judge, options.out, options.only, options.limit) else 0)
    generate(options.out, options.only)


if __name__ == "__main__":
    main()
