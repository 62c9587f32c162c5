"""Validates TIR programs of TVM with the program `tilewright`.

    import tilewright_tvm

    result = tilewright_tvm.validate(before, after)     # two modules, functions, or texts in TVMScript
    result.raise_unless_proved()

    passes = tilewright_tvm.ValidatePasses()            # every TIR pass of a build
    with tvm.transform.PassContext(instruments=[passes.instrument()]):
        tvm.compile(module, target="llvm")
    print(passes.report())                              # the first pass that is not proved

Only `Verdict.PROVED` means that something was proved. A program that cannot be read, a run that takes too long and a pass
that was not compared are never counted as proved.
"""

from .errors import (
    BinaryCrashed,
    BinaryNotFound,
    InputRefused,
    NotProved,
    TilewrightError,
    TimedOut,
)
from .instrument import PassRecord, ValidatePasses
from .results import Diagnostic, FunctionResult, Obligation, Result, Verdict
from .runner import Tilewright

__all__ = [
    "BinaryCrashed",
    "BinaryNotFound",
    "Diagnostic",
    "FunctionResult",
    "InputRefused",
    "NotProved",
    "Obligation",
    "PassRecord",
    "Result",
    "Tilewright",
    "TilewrightError",
    "TimedOut",
    "ValidatePasses",
    "Verdict",
    "check",
    "validate",
]


def check(mod, *, binary=None, timeout=60.0, **options):
    """Lowers every function of `mod`, and proves each step: `Tilewright(binary, timeout=timeout).check(mod, **options)`."""
    return Tilewright(binary, timeout=timeout).check(mod, **options)


def validate(before, after, *, binary=None, timeout=60.0, **options):
    """Proves that `after` means what `before` means: `Tilewright(binary, timeout=timeout).validate(before, after, **options)`."""
    return Tilewright(binary, timeout=timeout).validate(before, after, **options)
