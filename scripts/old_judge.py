#!/usr/bin/env python3
"""Asks a built tilewright, of any version, about the pairs that the example write_pairs wrote, and counts its wrong verdicts.

    cargo run -p tilewright-campaign --example write_pairs -- pairs 2000 0
    scripts/old_judge.py OLD/target/debug/tilewright pairs [MINUTES]

A verdict is wrong if programs that differ are proved, if a program that traps is proved not to, or if equal programs are
refuted. The table has a row for each class of tests/judge_classes.rs. The exit code is 1 if a verdict is wrong.
"""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

# A program that leaves a buffer was proved wrongly only if all of these were proved.
PARTS = {"bounds": ("bounds", "overflow", "lanes")}
# The class of what is not true of a single program, unless its pair has one.
CLASSES = {"race": "a", "defined": "e"}


def ask(binary, arguments):
    """The first document that the program prints; None if it prints none, as for bad input."""
    command = [binary, *arguments, "--format", "json", "--timeout", "2", "--threads", "1"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return json.loads(done.stdout.splitlines()[0])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return None


def obligations(report):
    """Obligations with their verdicts, of `validate` or of the program that `check` is given."""
    if "functions" in report and "passes" not in report:
        return [found for function in report["functions"] for found in function["obligations"]]
    steps = report.get("passes", [])
    return [found for step in steps for found in step["obligations"] if step["name"] == "input" or found["obligation"] == "defined"]


def are_proved(found):
    return bool(found) and all(one["verdict"] == "proved" for one in found)


def wrong_verdicts(binary, folder):
    """Pairs of a class and a description, one for each wrong verdict; None in place of the list if nothing was decided."""
    truth = json.loads((folder / "truth.json").read_text())
    before, after = folder / "before.py", folder / "after.py"
    wrong, decided = [], False
    report = ask(binary, ["validate", str(before), str(after)])
    if report and "functions" in report:
        decided, found = True, obligations(report)
        refuted = any(one["obligation"] in ("simulation", "iteration") and one["verdict"] == "refuted" for one in found)
        if truth["pair"] == "different" and are_proved(found):
            wrong.append((truth["class"], "proved, and different"))
        if truth["pair"] == "equal" and refuted:
            wrong.append(("equal", "refuted, and equal"))
    for path, false in ((before, truth["before"]), (after, truth["after"])):
        report = ask(binary, ["check", "--device", "none", str(path)]) if false else None
        for name in false if report and "passes" in report else []:
            decided = True
            parts = PARTS.get(name, (name,))
            if are_proved([one for one in obligations(report) if one["obligation"] in parts]):
                kind = truth["class"] if truth["class"] in "bdg" else CLASSES.get(name, truth["class"])
                wrong.append((kind, f"{name} proved, and the program traps"))
    return wrong, decided


def main():
    binary, folder, *rest = sys.argv[1:]
    minutes = float(rest[0]) if rest else 15
    start = time.monotonic()
    folders = sorted((one for one in pathlib.Path(folder).iterdir() if one.is_dir()), key=lambda one: int(one.name))
    counts, examples, n_decided, n_asked = collections.Counter(), {}, 0, 0

    def look(one):
        return (one, *wrong_verdicts(binary, one)) if time.monotonic() - start < 60 * minutes else (one, None, False)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for one, wrong, decided in pool.map(look, folders):
            n_asked, n_decided = n_asked + (wrong is not None), n_decided + decided
            for key in wrong or []:
                counts[key] += 1
                examples.setdefault(key, one.name)
    spent = (time.monotonic() - start) / 60
    print(f"{n_asked} pairs in {spent:.1f} minutes, {n_decided} of them decided")
    for (kind, what), count in sorted(counts.items()):
        print(f"{count:6}  class {kind}: {what} (first: {examples[kind, what]})")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
