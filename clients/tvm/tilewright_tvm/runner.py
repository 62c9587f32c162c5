"""Calls the program `tilewright`, with programs as files in a folder of their own."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Iterable, Optional, Sequence

from .errors import BinaryCrashed, BinaryNotFound, InputRefused, TimedOut
from .results import Diagnostic, Result, result_of

# The exit codes of a run that has a result: all is well, refuted, bad input, and unknown.
_WITH_RESULT = (0, 1, 2, 3)


def find_binary(binary: Optional[str] = None) -> str:
    """Returns the path of the program: `binary`, else the environment's TILEWRIGHT, else `tilewright` in PATH.

    Raises `BinaryNotFound`. What is given explicitly is never replaced by another one.
    """
    for source, given in (("the argument", binary), ("the environment variable TILEWRIGHT", os.environ.get("TILEWRIGHT"))):
        if given:
            found = shutil.which(given)
            if found is None:
                raise BinaryNotFound(f"{source} names `{given}`, which is no program that can be run")
            return found
    found = shutil.which("tilewright")
    if found is None:
        raise BinaryNotFound("there is no `tilewright` in PATH; pass `binary=` or set the environment variable TILEWRIGHT")
    return found


def script_of(program) -> str:
    """Returns a program as TVMScript: a text, a path of a file, or an object of TVM that prints itself."""
    if isinstance(program, pathlib.Path):
        return program.read_text()
    if isinstance(program, str):
        return program
    if callable(getattr(program, "script", None)):
        return program.script()
    raise TypeError(f"a program is a text, a path, or a module or function of TVM, not {type(program).__name__}")


class Tilewright:
    """Calls one program, with a limit of `timeout` seconds for each call.

    `proof_timeout` is the time for one obligation, in seconds; the program's own default if it is None.
    """

    def __init__(self, binary: Optional[str] = None, *, timeout: float = 60.0, proof_timeout: Optional[float] = None):
        self.binary = find_binary(binary)
        self.timeout = timeout
        self.proof_timeout = proof_timeout

    def check(self, program, *, device: str = "none", assume: Iterable[str] = ()) -> Result:
        """Lowers a program with every pass, and proves each step.

        `device` is a device to compare with: `none`, `first`, `all` or a part of its name. `assume` are conditions that callers guarantee.
        """
        options = ["--device", device] + [part for one in assume for part in ("--assume", one)]
        return self._run("check", options, {"program.py": script_of(program)})

    def validate(
        self,
        before,
        after,
        *,
        maps: Iterable[str] = (),
        assume: Iterable[str] = (),
        reassociate: bool = False,
        implicit_barriers: Optional[str] = None,
    ) -> Result:
        """Proves that `after` means what `before` means.

        `maps` says how the indices of buffers moved, such as `A: lambda i, j: [j, i]`, where that cannot be inferred.
        With `reassociate` floats may be summed in another order, which is a premise of the proof.
        `implicit_barriers` says which programs leave their barriers to `ThreadSync`: "all", or only the "first" one. Those with blocks and
        without barriers always do.
        """
        options = ["--device", "none"]
        options += [part for one in maps for part in ("--map", one)]
        options += [part for one in assume for part in ("--assume", one)]
        options += ["--reassociate"] if reassociate else []
        options += [f"--implicit-barriers={implicit_barriers}"] if implicit_barriers else []
        files = {"before.py": script_of(before), "after.py": script_of(after)}
        return self._run("validate", options, files)

    def version(self) -> str:
        """Returns the name and the version of the program."""
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            return self._call([self.binary, "--version"], folder).stdout.strip()

    def _run(self, command: str, options: Sequence[str], files) -> Result:
        """Writes the files, runs the command on them, and reads its document."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            for name, text in files.items():
                (pathlib.Path(folder) / name).write_text(text + "\n", encoding="utf-8")
            line = [self.binary, command, "--format", "json", *options, *files]
            if self.proof_timeout is not None:
                line += ["--timeout", str(self.proof_timeout)]
            done = self._call(line, folder)
        document = self._document(command, done)
        if document["schema"].startswith("tilewright.error/"):
            diagnostics = [Diagnostic.of(entry) for entry in document["diagnostics"]]
            file = document.get("file")
            first = f"{diagnostics[0]}" if diagnostics else "no reason given"
            raise InputRefused(f"`tilewright {command}` does not read {file or 'its input'}: {first}", diagnostics)
        return result_of(document, time.monotonic() - start)

    def _call(self, line: Sequence[str], folder: str) -> subprocess.CompletedProcess:
        """Runs a command line in a folder. Raises `TimedOut` or `BinaryNotFound`."""
        try:
            return subprocess.run(
                line, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self.timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise TimedOut(f"`tilewright {line[1]}` gave no answer within {self.timeout:g} s") from None
        except OSError as error:
            raise BinaryNotFound(f"`{self.binary}` cannot be run: {error}") from error

    def _document(self, command: str, done: subprocess.CompletedProcess):
        """Returns the JSON document that a run printed. Raises `BinaryCrashed` if there is none."""
        last = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        if done.returncode < 0:
            name = signal.Signals(-done.returncode).name
            raise BinaryCrashed(f"`tilewright {command}` was ended by {name}: {last[0]}", done.returncode, done.stderr)
        if done.returncode not in _WITH_RESULT:
            message = f"`tilewright {command}` ended with code {done.returncode}: {last[0]}"
            raise BinaryCrashed(message, done.returncode, done.stderr)
        lines = done.stdout.splitlines()
        try:
            document = json.loads(lines[0])
            document["schema"].startswith("tilewright.")
            return document
        except (IndexError, ValueError, KeyError, TypeError, AttributeError):
            message = f"`tilewright {command}` printed no JSON document: {last[0]}"
            raise BinaryCrashed(message, done.returncode, done.stderr) from None
