"""What the program answers, as dataclasses. `Result.raw` has the whole JSON document, which docs/schemas.md describes."""

import dataclasses
import enum
from typing import Any, Mapping, Optional, Tuple

from .errors import NotProved


class Verdict(enum.Enum):
    """What is known. Only `PROVED` means that it holds."""

    PROVED = "proved"
    SKIPPED = "skipped"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"
    MISMATCH = "mismatch"
    REFUTED = "refuted"


@dataclasses.dataclass(frozen=True)
class Obligation:
    """A proof obligation. `detail` is the counterexample, or why it is not decided; `place` is `FILE:LINE:COLUMN`."""

    name: str
    subject: str
    verdict: Verdict
    method: str
    detail: Optional[str] = None
    place: Optional[str] = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Obligation":
        """Takes an obligation from a document."""
        counterexample = entry.get("counterexample") or {}
        place = entry.get("place")
        return cls(
            name=entry["obligation"],
            subject=entry["subject"],
            verdict=Verdict(entry["verdict"]),
            method=entry["method"],
            detail=counterexample.get("text") or entry.get("reason"),
            place=f"{place['file']}:{place['line']}:{place['column']}" if place else None,
        )

    def __str__(self):
        at = f" at {self.place}" if self.place else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.verdict.value} {self.name} of {self.subject}{at}{detail}"


@dataclasses.dataclass(frozen=True)
class FunctionResult:
    """What was found of a function, or of a pair of functions. `holds_for` says for which calls a pair is equal."""

    name: str
    verdict: Verdict
    obligations: Tuple[Obligation, ...]
    premises: Tuple[str, ...] = ()
    holds_for: Optional[str] = None
    method: Optional[str] = None
    tried: Tuple[Tuple[str, str], ...] = ()

    def open(self) -> Tuple[Obligation, ...]:
        """Returns the obligations that are not proved."""
        return tuple(one for one in self.obligations if one.verdict is not Verdict.PROVED)


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """An error of the reader."""

    code: str
    message: str
    line: Optional[int] = None
    column: Optional[int] = None
    help: Optional[str] = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Diagnostic":
        """Takes a diagnostic from a document."""
        place = (entry.get("labels") or [{}])[0]
        return cls(entry["code"], entry["message"], place.get("line"), place.get("column"), entry.get("help"))

    def __str__(self):
        at = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        hint = f" (help: {self.help})" if self.help else ""
        return f"{at}{self.message}{hint}"


@dataclasses.dataclass(frozen=True)
class Result:
    """The answer to `check` or `validate`."""

    verdict: Verdict
    functions: Tuple[FunctionResult, ...]
    seconds: float
    raw: Mapping[str, Any] = dataclasses.field(repr=False, default_factory=dict)

    @property
    def is_proved(self) -> bool:
        """Whether everything is proved, and there was something to prove."""
        return self.verdict is Verdict.PROVED and bool(self.functions)

    def open(self) -> Tuple[Obligation, ...]:
        """Returns the obligations that are not proved."""
        return tuple(one for function in self.functions for one in function.open())

    def summary(self) -> str:
        """Returns the verdict, and the first obligation that is not proved."""
        proved = sum(len(function.obligations) - len(function.open()) for function in self.functions)
        total = sum(len(function.obligations) for function in self.functions)
        text = f"{self.verdict.value}: {proved} of {total} obligations proved"
        worst = [one for one in self.open() if one.verdict is self.verdict] or list(self.open())
        return f"{text}; {worst[0]}" if worst else text

    def raise_unless_proved(self) -> "Result":
        """Returns the result if it is proved.

        Raises `NotProved` otherwise.
        """
        if not self.is_proved:
            raise NotProved(self.summary(), self)
        return self


# From the best to the worst, as the program orders them.
_ORDER = [Verdict.PROVED, Verdict.SKIPPED, Verdict.VACUOUS, Verdict.UNKNOWN, Verdict.MISMATCH, Verdict.REFUTED]


def worst(verdicts) -> Verdict:
    """Returns the worst of some verdicts. Of none nothing is known."""
    return max(verdicts, key=_ORDER.index, default=Verdict.UNKNOWN)


def result_of(document: Mapping[str, Any], seconds: float) -> Result:
    """Takes a result from a document `tilewright.check/1` or `tilewright.validate/1`."""
    if document["schema"].startswith("tilewright.check/"):
        functions = _checked(document)
    else:
        functions = tuple(_pair(entry) for entry in document["functions"])
    return Result(Verdict(document["verdict"]), functions, seconds, document)


def _pair(entry: Mapping[str, Any]) -> FunctionResult:
    obligations = tuple(Obligation.of(one) for one in entry["obligations"])
    return FunctionResult(
        name=entry["name"],
        verdict=worst(one.verdict for one in obligations),
        obligations=obligations,
        premises=tuple(entry["premises"]),
        holds_for=entry.get("holds_for"),
        method=entry.get("method"),
        tried=tuple((way["way"], way["why"]) for way in entry.get("tried") or ()),
    )


def _checked(document: Mapping[str, Any]) -> Tuple[FunctionResult, ...]:
    functions = []
    for entry in document["functions"]:
        steps = [step for step in document["passes"] if step.get("function") == entry["name"]]
        functions.append(
            FunctionResult(
                name=entry["name"],
                verdict=Verdict(entry["verdict"]),
                obligations=tuple(Obligation.of(one) for step in steps for one in step["obligations"]),
                premises=tuple(dict.fromkeys(premise for step in steps for premise in step["premises"])),
            )
        )
    return tuple(functions)
