"""The ledger: one line per charge, on disk before the noise it pays for is used, never rewritten.

A crash may leave a charge whose noise was never used: it stays. A last line without its end was never paid for by
anything and is cut off when the next charge is written; any other damage is an error, not a smaller ε.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from veilgraph.account.epsilon import Spent, spent
from veilgraph.account.events import Event, is_private, to_accounting
from veilgraph.errors import VerificationError
from veilgraph.files import append_bytes, line_of, require_half, value_of


class Ledger:
    """What one run has spent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        self.whole = 0  # bytes of whole lines
        self.sum = ""  # of the last line, which the next one's goes on from: none is changed unnoticed
        if path.exists():
            self._read()

    def _read(self) -> None:
        data = self.path.read_bytes()
        self.whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self.whole].split(b"\n")[:-1], 1):
            try:
                entry, self.sum = value_of(line.decode(), self.sum)
                to_accounting(entry["charge"])
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise VerificationError(
                    f"line {number} of {self.path} is damaged ({error}): what was spent is not known, so nothing "
                    "can be claimed and nothing more may be spent."
                ) from None
            self.lines.append(entry)
        try:
            require_half(data[self.whole :].decode(errors="replace"), self.sum)
        except EOFError as error:
            raise VerificationError(f"{self.path} is damaged: {error}, so a charge would be lost.") from None

    @property
    def events(self) -> list[Event]:
        """Every charge so far."""
        return [line["charge"] for line in self.lines]

    @property
    def private(self) -> bool:
        """Whether nothing without a guarantee was ever released."""
        return all(is_private(event) for event in self.events)

    def found(self, key: str) -> Any:
        """What was written down under this key beside a charge (the result of a release), if anything."""
        return next((line[key] for line in self.lines if key in line), None)

    def charge(self, event: Event, what: str, **more: Any) -> None:
        """Write a charge and see it on disk; only then may its noise be drawn."""
        entry = json.loads(json.dumps({"what": what, **more, "charge": event}))
        data, after = line_of(entry, self.sum)
        append_bytes(
            self.path, data, keep=self.whole
        )  # (half a line of a charge that was never used is cut off)
        self.whole, self.sum = self.whole + len(data), after
        self.lines.append(entry)

    def spent(self, delta: float) -> Spent:
        """ε so far."""
        return spent(self.events, delta)

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    @property
    def mark(self) -> str:
        """Length and hash of the ledger now: a checkpoint keeps it, so that a ledger cannot be cut back behind it."""
        return f"{self.whole} {hashlib.sha256(self.path.read_bytes()[: self.whole]).hexdigest()}"

    def continues(self, mark: str) -> bool:
        """Whether this ledger begins with the one a mark was taken of."""
        length, found = mark.split()
        data = self.path.read_bytes() if self.path.exists() else b""
        return len(data) >= int(length) and hashlib.sha256(data[: int(length)]).hexdigest() == found
