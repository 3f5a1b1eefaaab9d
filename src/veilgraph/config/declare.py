"""How a key of a configuration is declared: its type, its range, what it may be. Which keys there are says asked.py."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

from veilgraph import registry
from veilgraph.errors import ConfigError


@dataclass(frozen=True)
class Setting:
    """What may be said about one key."""

    kind: type
    help: str
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    of: str | None = None  # the kind of component it names (registry.py)
    also: tuple[str, ...] = ()  # and what else it may be

    @property
    def choices(self) -> tuple[str, ...]:
        """What it may be, where that is a list."""
        return self.words if self.of is None else (*registry.names(self.of), *self.also)

    def check(self, key: str, value: object) -> Any:
        """The value in the right type, or an error that says what is allowed."""
        if value is None:
            return None
        if self.kind is bool:
            words = {"true": True, "yes": True, "false": False, "no": False}
            found = value if isinstance(value, bool) else words.get(str(value).lower())
            if found is None:
                raise ConfigError(f"{key} must be true or false, found {value!r}")
            return found
        try:
            if isinstance(value, float) and self.kind is int and value != int(value):
                raise ValueError
            typed = self.kind(value)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{key} must be {_KINDS[self.kind]}, found {value!r}") from None
        if self.choices and typed not in self.choices:
            near = difflib.get_close_matches(str(typed), self.choices, 1)
            guess = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{key} must be one of {', '.join(self.choices)}; found {value!r}.{guess}")
        if (self.low is not None and typed < self.low) or (self.high is not None and typed > self.high):
            top = f" and at most {self.high:g}" if self.high is not None else ""
            raise ConfigError(f"{key} must be at least {self.low:g}{top}, found {value}")
        if isinstance(typed, float) and typed != typed:
            raise ConfigError(f"{key} must be a number, found {value!r}")
        return typed


_KINDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


def setting(
    default: Any,
    kind: type,
    help: str,
    *choices: str,
    low: float | None = None,
    high: float | None = None,
    of: str | None = None,
    also: tuple[str, ...] = (),
) -> Any:
    """A key of a configuration, with what may be said about it."""
    declared = Setting(kind, help, choices, low, high, of, also)
    return field(default=default, metadata={"setting": declared})
