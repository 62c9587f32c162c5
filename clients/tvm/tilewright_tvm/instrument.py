"""A pass instrument that validates every TIR pass of a build.

    passes = ValidatePasses()
    with tvm.transform.PassContext(instruments=[passes.instrument()]):
        tvm.compile(module, target="llvm")
    print(passes.report())

Before a pass the program is kept as text, and after it the two texts are compared by `tilewright validate`. A pass that leaves the text
as it is needs no proof. A pass that runs others, such as `HoistIfThenElse`, is compared like the passes in it.

Every other pass of TIR gives a record. A record is proved only if the program said so: a program that it does not read, a run
without an answer in time and a pass in `SKIPPED` are records with another verdict.
"""

import dataclasses
from typing import Callable, Iterable, List, Optional

from .errors import InputRefused, NotProved, TilewrightError
from .results import Result, Verdict, worst
from .runner import Tilewright

# The packages of TVM whose passes change TIR: `tir` until release 0.24, `s_tir` and `tirx` since.
PREFIXES = ("tir.", "s_tir.", "tirx.")

# Passes that turn a program into calls of the runtime, or into a function for another machine. What they make cannot be
# written in the language that is compared.
SKIPPED = {
    "SplitHostDevice": "it moves a part of the program to a function of its own",
    "MakePackedAPI": "it changes the calling convention",
    "MakeUnpackedAPI": "it changes the calling convention",
    "LowerTVMBuiltin": "it makes calls of the runtime",
    "LowerIntrin": "it makes intrinsics of the target",
    "LowerCustomDatatypes": "it makes calls of another library",
    "LowerDeviceKernelLaunch": "it makes calls of the runtime",
    "Filter": "it drops functions",
}


@dataclasses.dataclass(frozen=True)
class PassRecord:
    """A pass that changed the program. `position` counts the passes of TIR from 1, in the order in which they end.

    `result` is None if nothing was compared, or if the program gave no result; `reason` says why.
    """

    position: int
    name: str
    verdict: Verdict
    before: str = dataclasses.field(repr=False)
    after: str = dataclasses.field(repr=False)
    result: Optional[Result] = None
    reason: Optional[str] = None

    def summary(self) -> str:
        """Returns one line: the pass, the verdict and what is not proved."""
        if self.result is not None:
            return f"{self.position} {self.name}: {self.result.summary()}"
        return f"{self.position} {self.name}: {self.verdict.value}: {self.reason}"


class ValidatePasses:
    """Collects a record for each TIR pass that changed the program.

    `tilewright` is the client that is used; without one, the program is looked for as `find_binary` says, here and not in the middle of a build.
    With `stop=True` the build ends with `NotProved` at the first pass that is not proved. `only` decides by the name
    which passes are compared, `skipped` names passes that are not compared, with the reason. With `reassociate` a pass may change the order in which floats are
    summed.
    """

    def __init__(
        self,
        tilewright: Optional[Tilewright] = None,
        *,
        stop: bool = False,
        only: Optional[Callable[[str], bool]] = None,
        skipped=None,
        assume: Iterable[str] = (),
        reassociate: bool = False,
    ):
        self.tilewright = tilewright if tilewright is not None else Tilewright()
        self.records: List[PassRecord] = []
        self.unchanged = 0
        self._stop = stop
        self._only = only
        self._skipped = dict(SKIPPED if skipped is None else skipped)
        self._assume = tuple(assume)
        self._reassociate = reassociate
        self._open: List[tuple] = []
        self._position = 0

    def instrument(self):
        """Returns the instrument for `tvm.transform.PassContext(instruments=[...])`. Imports TVM."""
        from tvm.ir.instrument import pass_instrument

        owner = self

        @pass_instrument
        class TilewrightInstrument:
            """Hands the programs before and after each pass to a `ValidatePasses`."""

            def run_before_pass(self, mod, info):
                """Keeps the program before a pass."""
                owner.before_pass(mod, str(info.name))

            def run_after_pass(self, mod, info):
                """Compares the program after a pass with it."""
                owner.after_pass(mod, str(info.name))

        return TilewrightInstrument()

    def before_pass(self, mod, name: str) -> None:
        """Keeps the program before a pass."""
        self._open.append((name, self._text(mod) if self._is_wanted(name) else None))

    def after_pass(self, mod, name: str) -> None:
        """Compares the program after a pass with the one before. Raises `NotProved` if that was asked for."""
        # A pass that failed leaves its entry behind: what is above the entry of this pass did not end.
        while self._open and self._open[-1][0] != name:
            self._open.pop()
        before = self._open.pop()[1] if self._open else None
        if before is None:
            return
        self._position += 1
        after = self._text(mod)
        if before == after:
            self.unchanged += 1
            return
        record = self._judged(name, before, after)
        self.records.append(record)
        if self._stop and record.verdict is not Verdict.PROVED and not self._is_skipped(record):
            raise NotProved(record.summary(), record)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all records, those of skipped passes included. Without a record nothing was compared: `SKIPPED`."""
        return worst(record.verdict for record in self.records) if self.records else Verdict.SKIPPED

    @property
    def first_not_proved(self) -> Optional[PassRecord]:
        """The first pass that was to be compared and is not proved; None if there is none."""
        wanted = (one for one in self.records if one.verdict is not Verdict.PROVED and not self._is_skipped(one))
        return next(wanted, None)

    def report(self) -> str:
        """Returns a line with the numbers, a line for the first pass that is not proved, and the names of the skipped ones."""
        proved = sum(one.verdict is Verdict.PROVED for one in self.records)
        left_out = [one for one in self.records if self._is_skipped(one)]
        compared = len(self.records) - len(left_out)
        lines = [f"{proved} of {compared} passes that changed the program are proved; {self.unchanged} changed nothing"]
        first = self.first_not_proved
        if first is not None:
            lines.append(f"first pass that is not proved: {first.summary()}")
        if left_out:
            names = ", ".join(dict.fromkeys(one.name for one in left_out))
            lines.append(f"not compared: {names}")
        return "\n".join(lines)

    def raise_unless_proved(self) -> "ValidatePasses":
        """Returns the collection if each pass that was to be compared is proved, and there was one.

        Raises `NotProved` otherwise.
        """
        first = self.first_not_proved
        if first is not None:
            raise NotProved(first.summary(), first)
        if not any(one.verdict is Verdict.PROVED for one in self.records):
            raise NotProved("no pass was compared")
        return self

    def _is_wanted(self, name: str) -> bool:
        """Whether a pass changes TIR, and is to be compared or listed as skipped."""
        return name.startswith(PREFIXES) and (self._only is None or bool(self._only(name)))

    def _is_skipped(self, record: PassRecord) -> bool:
        """Whether a pass was left out because its name says so."""
        return record.verdict is Verdict.SKIPPED and _short(record.name) in self._skipped

    def _judged(self, name: str, before: str, after: str) -> PassRecord:
        """Returns the record of a pass."""

        def record(verdict, result=None, reason=None):
            return PassRecord(self._position, name, verdict, before, after, result, reason)

        if _short(name) in self._skipped:
            return record(Verdict.SKIPPED, reason=self._skipped[_short(name)])
        try:
            result = self.tilewright.validate(
                before,
                after,
                assume=self._assume,
                reassociate=self._reassociate,
                implicit_barriers=_implicit_barriers(name, before, after),
            )
        except InputRefused as error:
            return record(Verdict.UNKNOWN, reason=f"not read: {error}")
        except TilewrightError as error:
            return record(Verdict.UNKNOWN, reason=str(error))
        # A result without functions says nothing of the pass.
        verdict = result.verdict if result.functions else Verdict.UNKNOWN
        return record(verdict, result)

    @staticmethod
    def _text(mod) -> str:
        """Returns the functions of TIR in a module as text. Functions of other languages, such as Relax, are left out."""
        functions = dict(mod.functions)
        tir = {key: one for key, one in functions.items() if type(one).__name__ == "PrimFunc"}
        return (mod if len(tir) == len(functions) else type(mod)(tir)).script()


def _implicit_barriers(name: str, before: str, after: str) -> Optional[str]:
    """Which programs of a pass leave their barriers to `ThreadSync`: those before it. What it makes is taken at its word."""
    if _short(name) == "ThreadSync":
        return "first"
    return None if "tvm_storage_sync" in before or "tvm_storage_sync" in after else "all"


def _short(name: str) -> str:
    """Returns the name of a pass without its package."""
    return name.rsplit(".", 1)[-1]
