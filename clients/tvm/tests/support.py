"""Programs for the tests, a stand-in for `tilewright` and one for TVM's modules."""

import json
import os
import pathlib
import stat
import sys
import textwrap

HEAD = "from tvm.script import tir as T\n"

BEFORE = HEAD + textwrap.dedent(
    """
    @T.prim_func
    def main(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
        for i, j in T.grid(5, 7):
            B[i, j] = A[i, j] * T.float32(2)
    """
)
# The loops are interchanged.
AFTER = BEFORE.replace("for i, j in T.grid(5, 7)", "for j, i in T.grid(7, 5)")
# Another value, and the last row left out.
BROKEN = (AFTER.replace("T.float32(2)", "T.float32(3)"), AFTER.replace("T.grid(7, 5)", "T.grid(7, 4)"))
NOT_READ = BEFORE.replace("A[i, j] *", "T.no_such_function(A[i, j]) *")

# Threads that meet in shared memory, before `ThreadSync`.
SHARED = """
@T.prim_func
def main(A: T.Buffer((5, 8), "float32"), B: T.Buffer((5, 8), "float32")):
    for i in T.thread_binding(5, thread="blockIdx.x"):
        S = T.alloc_buffer((8,), "float32", scope="shared")
        for j in T.thread_binding(8, thread="threadIdx.x"):
            S[j] = A[i, j]
            B[i, j] = S[7 - j]
"""


def document(verdict="proved", schema="tilewright.validate/1", functions=None):
    """Returns a document as `validate` prints it, with one obligation."""
    goal = {"obligation": "simulation", "subject": "B[i]", "verdict": verdict, "method": "z3", "ms": 1.0}
    goal.update(counterexample=None, reason=None if verdict == "proved" else "the reason")
    pair = {"name": "main", "ms": 1.0, "obligations": [goal], "premises": [], "skipped": None, "tried": []}
    return {"schema": schema, "verdict": verdict, "functions": [pair] if functions is None else functions}


def stand_in(folder, body):
    """Writes a program that stands in for `tilewright`: a script in Python. Returns its path."""
    path = pathlib.Path(folder) / "tilewright"
    path.write_text(f"#!{sys.executable}\nimport json, os, signal, sys, time\n{textwrap.dedent(body)}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def printing(folder, found, code=0):
    """Writes a stand-in that prints a document and ends with a code."""
    return stand_in(folder, f"print({json.dumps(found)!r})\nsys.exit({code})")


def real_binary():
    """Returns the program that TILEWRIGHT names, or None."""
    return os.environ.get("TILEWRIGHT") or None



class PrimFunc:
    """Stands in for a function of TVM."""

    def __init__(self, text):
        self.text = text


class Function(PrimFunc):
    """Stands in for a function of Relax."""


class Module:
    """Stands in for a module of TVM."""

    def __init__(self, functions):
        self.functions = dict(functions)

    def script(self):
        """Returns the texts of the functions."""
        return "\n".join(one.text for one in self.functions.values())


def module(text):
    """Returns a module with one function."""
    return Module({"main": PrimFunc(text)})
