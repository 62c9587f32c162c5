"""Tests with TVM itself, release 0.27. TILEWRIGHT names the program."""

import pathlib
import subprocess
import tempfile
import unittest

import tvm
from tvm import te, tirx

import tilewright_tvm as tw
from tilewright_tvm import Verdict

from . import support

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def scaled(shape=(5, 7)):
    """Returns a module with one function: each element times two, plus its row."""
    a = te.placeholder(shape, "float32", "A")
    b = te.compute(shape, lambda i, j: a[i, j] * tirx.const(2, "float32") + i.astype("float32"), "B")
    return tvm.IRModule({"main": te.create_prim_func([a, b])})


def product():
    """Returns a module with a product of matrices."""
    a, b = te.placeholder((5, 6), "float32", "A"), te.placeholder((6, 7), "float32", "B")
    k = te.reduce_axis((0, 6), "k")
    c = te.compute((5, 7), lambda i, j: te.sum(a[i, k] * b[k, j], k), "C")
    return tvm.IRModule({"main": te.create_prim_func([a, b, c])})


def replacing(old, new, name="tirx.Broken"):
    """Returns a pass that replaces a part of the text of a program."""

    @tvm.transform.module_pass(opt_level=0, name=name)
    def broken(module, _context):
        """Reads the changed text."""
        text = module.script()
        assert old in text, text
        return tvm.script.from_source(text.replace(old, new))

    return broken


def text_of(module):
    """Returns the program as text."""
    return module.script()


class Builds(unittest.TestCase):
    """The instrument in builds."""

    def build(self, module, **options):
        """Builds a module for the processor, and returns the records."""
        passes = tw.ValidatePasses(tw.Tilewright(timeout=60), **options)
        with tvm.transform.PassContext(instruments=[passes.instrument()]):
            tvm.compile(module, target="llvm")
        return passes

    def test_the_passes_of_a_build_are_proved(self):
        for module in (scaled(), product()):
            passes = self.build(module)
            self.assertGreaterEqual(len(passes.records), 4)
            self.assertIsNone(passes.first_not_proved, passes.report())
            self.assertIn("tirx.FlattenBuffer", [one.name for one in passes.records])
            self.assertIn("not compared: ", passes.report())
            self.assertIs(passes.raise_unless_proved(), passes)

    def test_a_wrong_pass_is_the_first_that_is_not_proved(self):
        for old, new in (("* T.float32(2.0)", "* T.float32(3.0)"), ("T.grid(5, 7)", "T.grid(5, 6)")):
            passes = tw.ValidatePasses(tw.Tilewright(timeout=60))
            with tvm.transform.PassContext(instruments=[passes.instrument()]):
                module = replacing("T.grid(5, 7)", "T.grid(5, 7)", "tirx.Same")(scaled())
                replacing(old, new)(module)
            first = passes.first_not_proved
            self.assertEqual((first.name, first.verdict), ("tirx.Broken", Verdict.REFUTED), passes.report())

    def test_a_build_can_be_stopped(self):
        passes = tw.ValidatePasses(tw.Tilewright(timeout=60), stop=True)
        with self.assertRaisesRegex(Exception, "tirx.Broken"):
            with tvm.transform.PassContext(instruments=[passes.instrument()]):
                replacing("* T.float32(2.0)", "* T.float32(3.0)")(scaled())

    def test_modules_are_compared_and_checked(self):
        self.assertTrue(tw.validate(scaled(), scaled()).is_proved)
        self.assertTrue(tw.check(scaled()).is_proved)
        self.assertFalse(tw.validate(scaled(), replacing("2.0", "3.0")(scaled())).is_proved)


class Dialects(unittest.TestCase):
    """What is printed for release 0.27 is read by it, and means the same."""

    def printed(self, program, folder, passes=()):
        """Returns a program after some passes, in the notation of this project and in that of the release."""
        path = pathlib.Path(folder) / "program.py"
        path.write_text(program)
        texts = []
        for dialect in ("canonical", "0.27"):
            line = [support.real_binary(), "opt", "--dialect", dialect, str(path)]
            line += ["-p", ",".join(passes)] if passes else []
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            texts.append(done.stdout)
        return texts

    def returned(self, text):
        """Returns what the release prints of a text that it reads. Its reader takes the functions without the imports."""
        source = "\n".join(line for line in text.splitlines() if not line.startswith("from "))
        return tvm.script.from_source(source).script()

    def test_programs_come_back_as_the_same(self):
        programs = [
            (support.BEFORE, ()),
            (text_of(product()), ()),
            (text_of(scaled()), ("lower_blocks", "flatten_buffer")),
            (SCOPES, ()),
        ]
        with tempfile.TemporaryDirectory() as folder:
            for program, passes in programs:
                canonical, text = self.printed(program, folder, passes)
                back = self.returned(text)
                result = tw.validate(canonical, back)
                self.assertTrue(result.is_proved, f"{result.summary()}\n{text}\n{back}")

    def test_a_scalar_that_changes_is_read_as_tvm_means_it(self):
        returned = self.returned(CHANGED)
        self.assertTrue(tw.validate(CHANGED_PLAIN, returned).is_proved)
        self.assertFalse(tw.validate(CHANGED_PLAIN.replace("x[0] + i", "i"), returned).is_proved)


HEAD = "from tvm.script import ir as I\nfrom tvm.script import tirx as T\n\n@I.ir_module\nclass Module:\n"

SCOPES = """
from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, B: T.Buffer((9,), "float32"), k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 7), "float32")
    assert k < 3, "too large"
    with T.LetStmt(T.min(k, 2)) as x:
        with T.alloc_buffer((4,), "float32", scope="local") as X:
            for i in T.unroll(4):
                X[i] = T.Select(x < 3, A[0, i], T.float32(1))
            for i in T.vectorized(4):
                B[i] = X[i] * T.float32(2)
    with T.LetStmt(k) as x:
        if x == 0:
            B[5] = T.max(T.exp(A[0, 2]), T.Cast("float32", x // 3 + x % 4))
        else:
            for i in T.parallel(2):
                B[i + 6] = T.if_then_else(i < x, A[0, i], T.float32("inf"))
    B[8] = A[0, 0]
"""

CHANGED = HEAD + """
    @T.prim_func
    def main(B: T.Buffer((8,), "int32"), k: T.int32):
        x: T.int32 = k + 1
        for i in range(4):
            x = x + i
        B[0] = x
"""

CHANGED_PLAIN = """
@T.prim_func
def main(B: T.Buffer((8,), "int32"), k: T.int32):
    x = T.alloc_buffer((1,), "int32", scope="local")
    x[0] = k + 1
    for i in range(4):
        x[0] = x[0] + i
    B[0] = x[0]
"""

if __name__ == "__main__":
    unittest.main()
