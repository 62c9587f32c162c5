#!/usr/bin/env python3
"""Writes pairs of programs, before and after a pass of TVM, and judges them with `tilewright validate`.

    python=$(scripts/tvm_env.sh)
    "$python" scripts/tvm_corpus.py --out .deps/corpus
    "$python" scripts/tvm_corpus.py --out .deps/corpus --judge target/debug/tilewright [--only blocks|loops] [--each 8]

A pair is NAME.PASS.before.py and NAME.PASS.after.py, where NAME is a definition and a schedule of scripts/tvm_programs.py.
PASS is one of these:

  sched_STEP   a step of the schedule, as blocks of S-TIR
  lower_STEP   the same step, both programs lowered to loops
  PASS         a pass of TVM's pipeline, in its order
  alone_PASS   the pass, applied to the program of loops without the passes before it
  pipeline     the program of loops, and what all passes after it make of it

A pass that changes nothing gives no pair, and equal pairs are written once. Very long programs are left out. index.json lists all pairs, and what has to be said
of each to `validate`: maps of parameters whose layout changed, and whether sums were reordered. Nothing here is random.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import time

# Longer programs, of loops that were unrolled completely, are left out.
MAX_CHARACTERS = 60_000
CONFIG = {
    "s_tir.LoopPartition": {"partition_const_loop": True},
    "tirx.UnrollLoop": {"auto_max_step": 12, "auto_max_depth": 8, "auto_max_extent": 4, "explicit_unroll": True},
}


def passes():
    """Returns TVM's passes as pairs of a name and a pass: those that lower blocks to loops, and those of loops."""
    from tvm.s_tir import transform as s
    from tvm.tirx import transform as t

    def named(*made):
        return [(one.info.name.split(".")[-1], one) for one in made]

    lowering = named(
        s.CanonicalizeLoop(), s.LowerCrossThreadReduction(), s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(), s.ConvertBlocksToOpaque(), s.LiftThreadBinding(),
        s.ManifestSharedMemoryLocalStage(), s.CompactBufferAllocation(), s.LowerAutoCopy(), s.UnifyThreadBinding(),
        s.LowerMatchBuffer(), s.InjectSoftwarePipeline(), s.LowerOpaqueBlock())
    loops = named(
        t.FlattenBuffer(), t.BF16ComputeLegalize(), t.NarrowDataType(32), s.LoopPartition(), t.VectorizeLoop(),
        s.InjectVirtualThread(), s.InjectDoubleBuffer(), t.StorageRewrite(), s.HoistIfThenElse(), t.UnrollLoop(),
        s.RenormalizeSplitPattern(), t.StmtSimplify(), t.RemoveNoOp(), s.RewriteUnsafeSelect(), t.CommonSubexprElim(),
        t.PointerValueTypeRewrite(), s.MergeSharedMemoryAllocations())
    alone = named(
        s.LoopPartition(), t.VectorizeLoop(), s.InjectVirtualThread(), s.InjectDoubleBuffer(), t.UnrollLoop(), t.StmtSimplify(),
        t.RemoveNoOp(), t.CommonSubexprElim(), t.ForceNarrowIndexToInt32(), s.ConvertSSA(), s.HoistExpression(), t.SkipAssert())
    return lowering, loops, alone


class Corpus:
    """The pairs that were written, and the folder that they are in."""

    def __init__(self, folder):
        self.folder, self.seen, self.index, self.failed = folder, set(), [], collections.Counter()
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.py"):
            old.unlink()

    def add(self, name, step, before, after, claims=None):
        """Writes a pair unless its texts are equal or were written already."""
        before, after = before.script(), after.script()
        key = hashlib.sha256(f"{step}\0{before}\0{after}".encode()).hexdigest()
        if before == after or key in self.seen or max(len(before), len(after)) > MAX_CHARACTERS:
            return
        self.seen.add(key)
        stem, number = f"{name}.{step}", 1
        while any(pair["stem"] == stem for pair in self.index):
            number += 1
            stem = f"{name}.{step}{number}"
        for side, text in (("before", before), ("after", after)):
            (self.folder / f"{stem}.{side}.py").write_text(text + "\n")
        has_blocks = "T.sblock" in before or "T.sblock" in after
        self.index.append({"stem": stem, "pass": step, "blocks": has_blocks, **(claims or {})})

    def apply(self, step, one, module):
        """Applies a pass and returns its module; None if the pass fails."""
        try:
            return one(module)
        except Exception as error:  # TVM throws what its C++ throws
            self.failed[f"{step}: {str(error).strip().splitlines()[0]}"] += 1
            return None

    def chain(self, name, module, steps, write=True, must=True):
        """Applies passes one after the other, writes a pair for each, and returns the last module. A pass that fails ends
        the chain, with None, or is left out unless it `must` be applied."""
        for step, one in steps:
            after = self.apply(step, one, module)
            if after is None and must:
                return None
            if after is None:
                continue
            if write:
                self.add(name, step, module, after)
            module = after
        return module

    def program(self, name, func, schedule, made):
        """Writes the pairs of a definition with a schedule."""
        import tvm
        lowering, loops, alone = made
        s = tvm.s_tir.Schedule(tvm.IRModule({"main": func}))
        before, steps = s.mod, schedule(s)
        while True:
            try:
                step = next(steps)
            except StopIteration:
                break
            except Exception as error:  # a step that does not apply to this program ends its schedule
                self.failed[f"{schedule.__name__}: {str(error).strip().splitlines()[0]}"] += 1
                break
            step, claims = step if isinstance(step, tuple) else (step, {})
            self.add(name, f"sched_{step}", before, s.mod, claims)
            sides = [self.chain(name, side, lowering, False) for side in (before, s.mod)]
            if None not in sides:
                self.add(name, f"lower_{step}", *sides, claims)
            before = s.mod
        lowered = self.chain(name, before, lowering)
        if lowered is None:
            return
        self.add(name, "pipeline", lowered, self.chain(name, lowered, loops, must=False))
        for step, one in alone:
            after = self.apply(step, one, lowered)
            if after is not None:
                self.add(name, f"alone_{step}", lowered, after)


def generate(folder):
    """Writes the corpus into a folder."""
    import tvm
    import tvm_programs
    corpus, made = Corpus(folder), passes()
    with tvm.transform.PassContext(config=CONFIG), tvm.target.Target("llvm"):
        for name, func in tvm_programs.definitions().items():
            for schedule in tvm_programs.SCHEDULES:
                corpus.program(f"{name}.{schedule.__name__}", func, schedule, made)
    (folder / "index.json").write_text(json.dumps(corpus.index, indent=0) + "\n")
    for message, count in corpus.failed.most_common():
        print(f"not applied {count:4}  {message}")
    blocks = sum(pair["blocks"] for pair in corpus.index)
    print(f"{len(corpus.index)} pairs in {folder}, {blocks} of them with blocks")


def judge_pair(binary, folder, pair, limit):
    """Judges a pair. Returns the verdict, the seconds, and what keeps it from being proved."""
    before, after = (folder / f"{pair['stem']}.{side}.py" for side in ("before", "after"))
    command = [binary, "validate", "--format", "json", "--device", "none", "--timeout", "5", before, after]
    command += ["--map", pair["map"]] if pair.get("map") else []
    command += ["--reassociate"] if pair.get("reassociate") else []
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return "timeout", limit, [f"no answer in {limit} s"]
    seconds = time.monotonic() - start
    try:
        report = json.loads(done.stdout.splitlines()[0])
    except (IndexError, ValueError):
        return "crash", seconds, [done.stderr.strip().splitlines()[0] if done.stderr else f"exit {done.returncode}"]
    if report["schema"].startswith("tilewright.error"):
        return "error", seconds, [f"{found['code']}: {found['message']}" for found in report["diagnostics"]]
    return report["verdict"], seconds, reasons(report)


def reasons(report):
    """Returns what the obligations say that are not proved."""
    found = []
    for func in report["functions"]:
        found += [str(func["skipped"])] if func.get("skipped") else []
        for goal in func["obligations"]:
            if goal.get("verdict") != "proved":
                detail = goal.get("reason") or goal.get("detail") or goal.get("counterexample") or ""
                found.append(f"{goal.get('verdict')} {goal.get('obligation')}: {json.dumps(detail)}")
    return found


def judge(binary, folder, options):
    """Judges the pairs of a folder and prints tables: by pass, by message, and the slowest pairs."""
    index = json.loads((folder / "index.json").read_text())
    chosen = [pair for pair in index if options.only is None or pair["blocks"] == (options.only == "blocks")]
    chosen = [pair for pair in chosen if not options.match or options.match in pair["stem"]]
    random.Random(options.seed).shuffle(chosen)
    taken = collections.Counter()
    for pair in list(chosen) if options.each else []:
        taken[pair["pass"]] += 1
        if taken[pair["pass"]] > options.each:
            chosen.remove(pair)
    results, end = [], time.monotonic() + options.seconds
    with (folder / "results.jsonl").open("w") as log:
        for pair in chosen:
            if time.monotonic() > end:
                print(f"stopped after {options.seconds} s: {len(results)} of {len(chosen)} pairs judged")
                break
            verdict, seconds, why = judge_pair(binary, folder, pair, options.limit)
            results.append((pair, verdict, seconds, why))
            log.write(json.dumps({**pair, "verdict": verdict, "seconds": seconds, "why": why}) + "\n")
            log.flush()
    report(results)


def report(results):
    """Prints the tables."""
    columns = ["pairs", "read", "proved", "refuted", "unknown", "vacuous", "timeout", "crash"]
    table, messages = collections.defaultdict(collections.Counter), collections.Counter()
    for pair, verdict, _, why in results:
        for row in (pair["pass"], "all"):
            table[row].update(["pairs", verdict] + ([] if verdict == "error" else ["read"]))
        if verdict in ("error", "crash"):
            messages.update(set(why))
    print(f"{'pass':40}" + "".join(f"{column:>9}" for column in columns))
    for row in sorted(table, key=lambda row: (row == "all", row)):
        print(f"{row:40}" + "".join(f"{table[row][column]:9}" for column in columns))
    print("\nmessages, by the number of pairs")
    for message, count in messages.most_common(30):
        print(f"{count:6}  {message}")
    print("\nslowest")
    for pair, verdict, seconds, _ in sorted(results, key=lambda one: -one[2])[:10]:
        print(f"{seconds:8.1f} s  {verdict:8} {pair['stem']}")
    print("\nrefuted")
    for pair, verdict, _, why in results:
        if verdict == "refuted":
            print(f"  {pair['stem']}: {(why or ['?'])[0][:200]}")


def main():
    """Generates the corpus, or judges one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="the folder of the pairs")
    parser.add_argument("--judge", metavar="TILEWRIGHT", help="judge the pairs of the folder with this program")
    parser.add_argument("--only", choices=["blocks", "loops"], help="pairs with blocks, or pairs without")
    parser.add_argument("--match", default="", help="pairs whose name contains this")
    parser.add_argument("--each", type=int, default=0, help="so many pairs of each pass, chosen by --seed; 0 is all")
    parser.add_argument("--seed", type=int, default=0, help="in which order pairs are judged")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one pair")
    parser.add_argument("--seconds", type=float, default=3600, help="seconds for all pairs")
    options = parser.parse_args()
    sys.setrecursionlimit(10000)
    if options.judge:
        judge(options.judge, options.out, options)
    else:
        generate(options.out)


if __name__ == "__main__":
    main()
