"""Exceptions and warnings of the package."""

from __future__ import annotations


class FuseeError(RuntimeError):
    """Base class of errors that fusee itself raises."""


class Unsupported(FuseeError):
    """Raised under ``fullgraph=True`` where one graph cannot hold the whole function.

    The message holds file, line, the expression with a caret, the reason id and a hint.
    """


class UnknownSetting(FuseeError, ValueError):
    """A setting, option, log or backend name that does not exist; the message lists those that do."""


class FuseeWarning(UserWarning):
    """Category of every warning of fusee: something could not be compiled and runs as plain Python."""


class HostFailure(Exception):
    """Internal: this compile cannot be finished and the call runs as plain Python.

    ``cause`` names the kind of failure; one warning is given for each cause. After a ``lasting`` one the function is
    not tried again, as it would fail again.
    """

    def __init__(self, cause: str, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.lasting = lasting
