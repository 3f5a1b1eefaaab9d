"""Every error veilgraph raises on purpose, and the exit code each one ends a command with.

VeilError                       1   anything below
├── UsageError                  2   a command or call that contradicts itself
├── InputError                  3   something given to us cannot be used
│   ├── ReadError               3   a file or endpoint: says which line, what was expected, what was found
│   ├── ConfigError             3   a setting that is unknown or out of range
│   ├── UnknownNameError        3   an entity, relation, model … that is not there: says the nearest one
│   ├── RunError                3   a run or graph folder that is missing, incomplete or of another kind
│   ├── StorageError            3   a disk that is full or may not be written to: what was there before is unchanged
│   ├── UnavailableError        3   a database that does not answer now; a service says 503 and tries again
│   ├── MissingExtraError       3   an optional library: says the exact pip line
│   └── PrivacyError            3   a request whose privacy cannot be guaranteed: says why, and the remedy
├── BudgetError                 4   the privacy budget does not allow it
└── VerificationError           5   a certificate, hash or audit that does not hold

A message says what was asked, what was found, why it matters and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class VeilError(Exception):
    """The root of the tree."""

    exit_code = 1


class UsageError(VeilError):
    """A command or call that contradicts itself."""

    exit_code = 2


class InputError(VeilError):
    """Something given to us cannot be used."""

    exit_code = 3


class ReadError(InputError):
    """A file or endpoint that cannot be read as what it should be."""

    def __init__(self, source: object, problem: str, *, line: int | None = None) -> None:
        where = f"line {line} of {source}" if line is not None else str(source)
        super().__init__(f"{where}: {problem}")
        self.source, self.line = str(source), line


class ConfigError(InputError):
    """A setting that is unknown or out of range."""


class UnknownNameError(InputError):
    """A name that is not there."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
        guess = f" Nearest: {', '.join(near)}." if near else ""
        super().__init__(f"no {kind} is called {name!r}.{guess}{' ' + hint if hint else ''}")


class DivergedError(InputError):
    """A training whose numbers are none any more."""


class RunError(InputError):
    """A run or graph folder that is missing, incomplete or of another kind."""


class StorageError(InputError):
    """A disk that is full, or may not be written to."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{path} cannot be written: {why}. What is on disk is whole and stays as it is. Make room or choose another place, and "
            "do it again; a training that had begun goes on with veil resume."
        )


class UnavailableError(InputError):
    """Something outside of the program that does not answer now, and may later: a database, a disk."""


class MissingExtraError(InputError):
    """An optional library that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional library. Install it with: pip install 'veilgraph[{extra}]'"
        )


class PrivacyError(InputError):
    """A request whose privacy cannot be guaranteed."""


class BudgetError(VeilError):
    """The privacy budget does not allow it."""

    exit_code = 4


class VerificationError(VeilError):
    """A certificate, hash or audit that does not hold."""

    exit_code = 5
