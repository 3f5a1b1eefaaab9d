"""Sanitisers one after another: ``sanitisers("random:keep=3")``, ``sanitisers("shuffle,popular:keep=5")``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veilgraph import registry
from veilgraph.errors import ConfigError
from veilgraph.rng import check_seed
from veilgraph.sanitise.base import Request, Sanitiser


def sanitisers(words: str) -> list[Sanitiser]:
    """From words: names with settings, one after another, separated by commas."""
    found = []
    for part in words.split(","):
        name, _, rest = part.strip().partition(":")
        kind = registry.find("sanitisers", name)
        settings = {}
        for setting in filter(None, rest.split(";")):
            key, equals, value = setting.partition("=")
            if not equals:
                raise ConfigError(f"settings are «key=value», separated by semicolons; found {setting!r}.")
            settings[key.strip()] = value.strip()
        found.append(kind.of(settings))
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
        seen = request if one.reads_scores else _lists_alone(request)
        request = replace(request, given=one.apply(seen, rng))
    return request.lists


def _lists_alone(request: Request) -> Request:
    """What a sanitiser may look at that says it reads lists and no scores: an ε before it would else be spent on nothing."""
    blank = np.broadcast_to(np.float32(0), request.scores.shape)
    return replace(request, given=request.lists, scores=blank, eraser=None)
