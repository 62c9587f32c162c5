"""What can go wrong apart from a verdict. Every error of this module is a `TilewrightError`."""


class TilewrightError(Exception):
    """The base of all errors here."""


class BinaryNotFound(TilewrightError):
    """There is no program `tilewright` where it was looked for."""


class BinaryCrashed(TilewrightError):
    """The program ended without a result: by a signal, by an internal error, or with output that is no JSON document."""

    def __init__(self, message, code=None, stderr=""):
        super().__init__(message)
        self.code = code
        self.stderr = stderr


class TimedOut(TilewrightError):
    """The program gave no answer within the time limit, and was ended."""


class InputRefused(TilewrightError):
    """The program does not read the input. `diagnostics` has the places and hints."""

    def __init__(self, message, diagnostics=()):
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class NotProved(TilewrightError):
    """A result is not proved. `result` is a `Result`, or the `PassRecord` of a pass."""

    def __init__(self, message, result=None):
        super().__init__(message)
        self.result = result
