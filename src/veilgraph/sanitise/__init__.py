"""Lists that may be shown: one file per sanitiser. ``sanitiser("random:keep=3")``, ``sanitiser("shuffle,popular:keep=5")``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veilgraph.errors import ConfigError, UnknownNameError
from veilgraph.rng import check_seed
from veilgraph.sanitise.base import Replacing, Request, Sanitiser
from veilgraph.sanitise.erase import Eraser

__all__ = ["Eraser", "Request", "Sanitiser", "available", "epsilon", "promise", "sanitise", "sanitisers"]


def available() -> dict[str, type[Sanitiser]]:
    """Every sanitiser by its name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found = [*Sanitiser.__subclasses__(), *Replacing.__subclasses__()]
    return {
        one.name: one
        for one in sorted((one for one in found if one is not Replacing), key=lambda one: one.name)
    }


def sanitisers(words: str) -> list[Sanitiser]:
    """From words: names with settings, one after another, separated by commas."""
    known, found = available(), []
    for part in words.split(","):
        name, _, rest = part.strip().partition(":")
        if name not in known:
            raise UnknownNameError("sanitiser", name, known, hint=f"There are: {', '.join(known)}.")
        settings = {}
        for setting in filter(None, rest.split(";")):
            key, equals, value = setting.partition("=")
            if not equals:
                raise ConfigError(f"settings are «key=value», separated by semicolons; found {setting!r}.")
            settings[key.strip()] = value.strip()
        found.append(known[name].of(settings))
    return found


def epsilon(chain: Sequence[Sanitiser]) -> float | None:
    """ε of one list: the last sanitiser that reads scores decides, what follows it works on the list alone."""
    return next((one.epsilon for one in reversed(chain) if one.reads_scores), None)


def promise(chain: Sequence[Sanitiser]) -> str:
    """What a list promises, in words: the ε where there is one, what every sanitiser says otherwise."""
    if not chain:
        return "nothing: lists are as the model makes them"
    if epsilon(chain) is not None:
        return next(one.promise for one in reversed(chain) if one.reads_scores)
    return "; ".join(dict.fromkeys(one.promise for one in chain))


def sanitise(request: Request, chain: Sequence[Sanitiser], seed: int | None = None) -> np.ndarray:
    """The lists after all sanitisers, one after another.

    Chance comes from fresh entropy. A ``seed`` makes lists repeatable, for experiments: whoever knows it can undo the chance,
    so an ε then holds for nobody.
    """
    if seed is not None:
        check_seed(seed)
    for number, one in enumerate(chain):
        rng = np.random.default_rng(None if seed is None else [seed, number])
        request = replace(request, given=one.apply(request, rng))
    return request.lists
