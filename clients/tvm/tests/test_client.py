"""Tests of the client that need nothing but Python; those of the program itself need TILEWRIGHT to name it."""

import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

import tilewright_tvm as tw
import tilewright_tvm.runner
from tilewright_tvm import Verdict
from tilewright_tvm.results import worst

from . import support


class WithFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = held.name

    def client(self, body, **options):
        """Returns a client of a stand-in."""
        return tw.Tilewright(support.stand_in(self.folder, body), **options)


class Finding(WithFolder):
    """Where the program is looked for."""

    def test_a_program_that_is_not_there_is_an_error(self):
        with self.assertRaisesRegex(tw.BinaryNotFound, "no/such/program"):
            tw.Tilewright("/no/such/program")
        with mock.patch.dict(os.environ, {"TILEWRIGHT": "/no/such/other"}):
            with self.assertRaisesRegex(tw.BinaryNotFound, "TILEWRIGHT"):
                tw.Tilewright()
        with mock.patch.dict(os.environ, {"TILEWRIGHT": "", "PATH": self.folder}):
            with self.assertRaisesRegex(tw.BinaryNotFound, "PATH"):
                tw.Tilewright()

    def test_the_argument_is_before_the_environment_and_that_is_before_the_path(self):
        path = support.stand_in(self.folder, "")
        with mock.patch.dict(os.environ, {"TILEWRIGHT": "", "PATH": self.folder}):
            self.assertEqual(tw.Tilewright().binary, path)
        with mock.patch.dict(os.environ, {"TILEWRIGHT": path, "PATH": "/no/such"}):
            self.assertEqual(tw.Tilewright().binary, path)
            self.assertEqual(tw.Tilewright(sys.executable).binary, sys.executable)


class Running(WithFolder):
    """What a run may end with."""

    def validate(self, body, **options):
        """Compares two programs with a stand-in."""
        return self.client(body, **options).validate(support.BEFORE, support.AFTER)

    def test_only_proved_is_proved(self):
        for verdict in Verdict:
            client = tw.Tilewright(support.printing(self.folder, support.document(verdict.value), 1))
            result = client.validate(support.BEFORE, support.AFTER)
            self.assertEqual((result.verdict, result.is_proved), (verdict, verdict is Verdict.PROVED))
            if verdict is not Verdict.PROVED:
                with self.assertRaisesRegex(tw.NotProved, verdict.value):
                    result.raise_unless_proved()
                self.assertIn("the reason", result.summary())

    def test_a_result_without_functions_is_not_proved(self):
        client = tw.Tilewright(support.printing(self.folder, support.document(functions=[])))
        self.assertFalse(client.validate(support.BEFORE, support.AFTER).is_proved)

    def test_a_verdict_that_is_not_known_is_no_verdict(self):
        client = tw.Tilewright(support.printing(self.folder, support.document("maybe")))
        with self.assertRaises(ValueError):
            client.validate(support.BEFORE, support.AFTER)

    def test_a_crash_is_an_error_that_says_how_it_ended(self):
        with self.assertRaisesRegex(tw.BinaryCrashed, "SIGSEGV"):
            self.validate("os.kill(os.getpid(), signal.SIGSEGV)")
        with self.assertRaisesRegex(tw.BinaryCrashed, "code 70: solvers disagree"):
            self.validate("print('solvers disagree', file=sys.stderr); sys.exit(70)")
        for printed in ("", "print('no json')", "print('[]')", "print('{}')", "print('{\"schema\": 1}')"):
            with self.assertRaisesRegex(tw.BinaryCrashed, "no JSON document"):
                self.validate(printed)

    def test_a_run_that_takes_too_long_is_ended(self):
        with self.assertRaisesRegex(tw.TimedOut, "0.3 s"):
            self.validate("time.sleep(60)", timeout=0.3)

    def test_an_input_that_is_refused_has_its_diagnostics(self):
        label = {"line": 3, "column": 5, "end_line": 3, "end_column": 9, "message": ""}
        fault = {"severity": "error", "code": "type", "message": "no", "labels": [label], "help": "do"}
        found = {"schema": "tilewright.error/1", "file": "after.py", "exit_code": 2, "diagnostics": [fault]}
        client = tw.Tilewright(support.printing(self.folder, found, 2))
        with self.assertRaisesRegex(tw.InputRefused, "after.py: line 3, column 5: no .help: do.") as raised:
            client.validate(support.BEFORE, support.AFTER)
        self.assertEqual(raised.exception.diagnostics[0].code, "type")

    def test_options_are_handed_on(self):
        body = "print(json.dumps({**json.loads(sys.argv[0] and DOCUMENT), 'line': sys.argv[1:]}))"
        text = f"import json\nDOCUMENT = {support.json.dumps(support.document())!r}\n{body}"
        client = self.client(text, proof_timeout=3)
        given = {"maps": ["A: lambda i, j: [j, i]"], "assume": ["n >= 0"], "reassociate": True, "implicit_barriers": "first"}
        line = client.validate(support.BEFORE, support.AFTER, **given).raw["line"]
        self.assertEqual(line[:3], ["validate", "--format", "json"])
        for part in ("--map", "A: lambda i, j: [j, i]", "--assume", "n >= 0", "--reassociate", "--implicit-barriers=first", "--timeout", "3"):
            self.assertIn(part, line)

    def test_a_program_is_a_text_a_path_or_prints_itself(self):
        path = pathlib.Path(self.folder) / "p.py"
        path.write_text("text")
        self.assertEqual(tw.runner.script_of(path), "text")
        self.assertEqual(tw.runner.script_of("text"), "text")
        self.assertEqual(tw.runner.script_of(support.module("text")), "text")
        with self.assertRaises(TypeError):
            tw.runner.script_of(3)

    def test_the_worst_verdict_of_none_is_unknown(self):
        self.assertIs(worst([]), Verdict.UNKNOWN)
        self.assertIs(worst([Verdict.PROVED, Verdict.SKIPPED]), Verdict.SKIPPED)
        self.assertIs(worst([Verdict.UNKNOWN, Verdict.REFUTED, Verdict.PROVED]), Verdict.REFUTED)


# Judges by what the text after contains.
JUDGE = f"""
text = open("after.py").read()
if "SLOW" in text: time.sleep(60)
if "CRASH" in text: sys.exit(70)
found = json.loads({support.json.dumps(support.document())!r})
for verdict in ("unknown", "refuted"):
    if verdict.upper() in text: found["verdict"] = found["functions"][0]["obligations"][0]["verdict"] = verdict
print(json.dumps(found))
"""


class Passes(WithFolder):
    """The instrument, with programs that stand in for those of TVM."""

    def passes(self, steps, **options):
        """Runs passes that give these programs, in which `>` opens a pass and `<` closes it. Returns the collection."""
        passes = tw.ValidatePasses(self.client(JUDGE, timeout=1), **options)
        for kind, name, text in steps:
            call = passes.before_pass if kind == ">" else passes.after_pass
            call(support.module(text), name)
        return passes

    @staticmethod
    def chain(*steps):
        """Passes one after the other: each has a name and the program that it makes."""
        found, text = [], "START"
        for name, after in steps:
            found += [(">", name, text), ("<", name, after)]
            text = after
        return found

    def test_the_first_pass_that_is_not_proved_is_named(self):
        chain = self.chain(("tir.A", "a"), ("tirx.B", "UNKNOWN"), ("s_tir.C", "REFUTED"), ("tir.D", "d"))
        passes = self.passes(chain)
        self.assertEqual([one.verdict.value for one in passes.records], ["proved", "unknown", "refuted", "proved"])
        self.assertEqual((passes.first_not_proved.name, passes.first_not_proved.position), ("tirx.B", 2))
        self.assertIs(passes.verdict, Verdict.REFUTED)
        self.assertIn("2 of 4 passes", passes.report())
        self.assertIn("first pass that is not proved: 2 tirx.B: unknown", passes.report())
        with self.assertRaisesRegex(tw.NotProved, "tirx.B"):
            passes.raise_unless_proved()

    def test_a_pass_that_changes_nothing_and_one_of_another_language_give_no_record(self):
        passes = self.passes(self.chain(("tir.A", "START"), ("relax.B", "b"), ("sequential", "c")))
        self.assertEqual((passes.records, passes.unchanged), ([], 1))
        self.assertIs(passes.verdict, Verdict.SKIPPED)
        with self.assertRaisesRegex(tw.NotProved, "no pass was compared"):
            passes.raise_unless_proved()

    def test_a_crash_a_timeout_and_a_skipped_pass_are_not_proved(self):
        chain = self.chain(("tir.A", "CRASH"), ("tir.B", "SLOW"), ("tirx.MakePackedAPI", "c"), ("tir.D", "d"))
        passes = self.passes(chain)
        verdicts = [one.verdict for one in passes.records]
        self.assertEqual(verdicts, [Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.SKIPPED, Verdict.PROVED])
        self.assertIn("code 70", passes.records[0].reason)
        self.assertIn("no answer", passes.records[1].reason)
        self.assertIn("not compared: tirx.MakePackedAPI", passes.report())
        self.assertIn("1 of 3 passes", passes.report())

    def test_skipped_passes_alone_are_not_proved(self):
        passes = self.passes(self.chain(("tirx.MakePackedAPI", "c")))
        self.assertIsNone(passes.first_not_proved)
        self.assertIs(passes.verdict, Verdict.SKIPPED)
        with self.assertRaises(tw.NotProved):
            passes.raise_unless_proved()

    def test_a_build_stops_at_the_first_pass_that_is_not_proved(self):
        with self.assertRaisesRegex(tw.NotProved, "tir.B"):
            self.passes(self.chain(("tir.A", "a"), ("tir.B", "REFUTED"), ("tir.C", "c")), stop=True)

    def test_passes_within_passes_are_compared_with_their_own_programs(self):
        steps = [(">", "tir.Outer", "s"), (">", "tir.Inner", "x"), ("<", "tir.Inner", "y"), ("<", "tir.Outer", "UNKNOWN")]
        passes = self.passes(steps)
        found = [(one.name, one.before, one.after) for one in passes.records]
        self.assertEqual(found, [("tir.Inner", "x", "y"), ("tir.Outer", "s", "UNKNOWN")])

    def test_a_pass_that_failed_does_not_shift_the_others(self):
        steps = [(">", "tir.Outer", "s"), (">", "tir.Fails", "x"), ("<", "tir.Outer", "z"), ("<", "tir.Stray", "q")]
        passes = self.passes(steps)
        self.assertEqual([(one.name, one.before) for one in passes.records], [("tir.Outer", "s")])

    def test_only_chosen_passes_are_compared(self):
        chain = self.chain(("tir.A", "a"), ("tir.B", "b"))
        passes = self.passes(chain, only=lambda name: name.endswith("B"))
        self.assertEqual([one.name for one in passes.records], ["tir.B"])

    def test_programs_before_thread_sync_leave_their_barriers_out(self):
        with_barrier = 'T.tvm_storage_sync("shared")'
        which = tw.instrument._implicit_barriers
        self.assertEqual(which("tirx.FlattenBuffer", "a", "b"), "all")
        self.assertEqual(which("s_tir.ThreadSync", "a", with_barrier), "first")
        self.assertEqual(which("s_tir.ThreadSync", "a", "b"), "first")
        self.assertIsNone(which("tirx.StmtSimplify", with_barrier, with_barrier))
        self.assertIsNone(which("tirx.StmtSimplify", with_barrier, "a"))

    def test_functions_of_other_languages_are_left_out(self):
        both = support.Module({"main": support.PrimFunc("tir"), "graph": support.Function("relax")})
        self.assertEqual(tw.ValidatePasses._text(both), "tir")

    def test_the_instrument_of_tvm_hands_the_programs_on(self):
        tvm, ir, hooks = (types.ModuleType(name) for name in ("tvm", "tvm.ir", "tvm.ir.instrument"))
        hooks.pass_instrument = lambda decorated: decorated
        with mock.patch.dict(sys.modules, {"tvm": tvm, "tvm.ir": ir, "tvm.ir.instrument": hooks}):
            passes = tw.ValidatePasses(self.client(JUDGE))
            instrument, info = passes.instrument(), types.SimpleNamespace(name="tir.A")
        instrument.run_before_pass(support.module("a"), info)
        instrument.run_after_pass(support.module("b"), info)
        self.assertEqual([(one.name, one.verdict) for one in passes.records], [("tir.A", Verdict.PROVED)])


@unittest.skipUnless(support.real_binary(), "TILEWRIGHT does not name the program")
class Real(unittest.TestCase):
    """The client with the program itself."""

    def test_loops_that_are_interchanged_are_proved(self):
        result = tw.validate(support.BEFORE, support.AFTER)
        self.assertTrue(result.is_proved, result.summary())
        self.assertEqual([one.name for one in result.functions], ["main"])
        self.assertTrue(result.functions[0].obligations)

    def test_wrong_programs_are_not_proved(self):
        for after in support.BROKEN:
            result = tw.validate(support.BEFORE, after)
            self.assertIs(result.verdict, Verdict.REFUTED, result.summary())
            with self.assertRaises(tw.NotProved):
                result.raise_unless_proved()

    def test_barriers_are_left_out_only_where_that_is_said(self):
        given = {"implicit_barriers": "all"}
        self.assertTrue(tw.validate(support.SHARED, support.SHARED, **given).is_proved)
        self.assertFalse(tw.validate(support.SHARED, support.SHARED).is_proved)
        wrong = support.SHARED.replace("7 - j", "6 - j")
        self.assertFalse(tw.validate(support.SHARED, wrong, **given).is_proved)

    def test_a_program_alone_is_checked(self):
        result = tw.check(support.BEFORE)
        self.assertTrue(result.is_proved, result.summary())

    def test_what_is_not_read_is_an_error_with_its_place(self):
        with self.assertRaises(tw.InputRefused) as raised:
            tw.validate(support.BEFORE, support.NOT_READ)
        first = raised.exception.diagnostics[0]
        self.assertEqual((first.code, first.line), ("unknown-function", 6))


if __name__ == "__main__":
    unittest.main()
