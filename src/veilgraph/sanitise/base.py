"""What every sanitiser is: it turns the best lists into lists that may be shown, and says what it promises."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from veilgraph.errors import ConfigError
from veilgraph.recommend.offers import best_columns, without
from veilgraph.sanitise.erase import Eraser


@dataclass(frozen=True)
class Request:
    """What a sanitiser may look at. Rows are users, columns items; lists hold columns, best first."""

    scores: np.ndarray  # [u, i] from 0 to 1
    allowed: np.ndarray  # [u, i] bool: what a list may have
    size: int  # items in a list
    popularity: np.ndarray  # [i] how many people have an item: public
    eraser: Eraser | None = (
        None  # what scores say about the secret, learnt from people who told theirs (see erase.py)
    )
    given: np.ndarray | None = None  # [u, k] the lists as the sanitiser before left them
    public_items: bool = (
        False  # whether the columns are a public list, whoever has what (recommend/catalogue.py)
    )

    repeat: bool = False  # whether lists may have what a user has already

    @cached_property
    def lists(self) -> np.ndarray:
        """``[u, k]`` the lists as they are: the best, or what a sanitiser made of them."""
        if self.given is not None:
            return self.given
        return best_columns(without(self.scores, ~self.allowed), self.size)


@dataclass(frozen=True)
class Sanitiser(ABC):
    """One way of making lists safer; its fields are its settings."""

    name: ClassVar[str]
    promise: ClassVar[str]  # in words; «nothing formal» where nothing is proved
    needs_eraser: ClassVar[bool] = False
    reads_scores: ClassVar[bool] = (
        False  # or histories, beyond the lists it is given: then it spends, or promises nothing
    )
    draws: ClassVar[bool] = (
        True  # whether chance has a part in it: otherwise another list would be the same one
    )
    needs: ClassVar[int] = 1  # so many times a list's size must be allowed

    @abstractmethod
    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        """``[u, k]`` lists of allowed items, none twice."""

    def seen(self, scores: np.ndarray) -> np.ndarray:
        """The scores as this sanitiser takes them; what is erased from them is learnt on this scale."""
        return scores

    @property
    def epsilon(self) -> float | None:
        """ε of one list, where there is one."""
        return None

    @classmethod
    def of(cls, settings: dict[str, str]) -> Sanitiser:
        """With settings as words: ``{"keep": "3"}``."""
        known: dict[str, type] = {field.name: type(field.default) for field in fields(cls)}
        for key, value in settings.items():
            if key not in known:
                raise ConfigError(
                    f"{cls.name} has no setting {key!r}; there are: {', '.join(known) or 'none'}."
                )
            try:
                number = known[key](value)
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                raise ConfigError(f"{key} of {cls.name} must be a number, found {value!r}.")
        return cls(**{key: known[key](value) for key, value in settings.items()})


def fill(lists: np.ndarray, keep: int, order: np.ndarray) -> np.ndarray:
    """Lists with their first ``keep`` items, the rest by ``order`` ([u, i] columns, wanted ones first) without repetition."""
    users, size = lists.shape
    kept = lists[:, :keep]
    used = np.zeros((users, order.shape[1]), bool)
    np.put_along_axis(used, kept, True, 1)
    free = ~np.take_along_axis(used, order, 1)
    place = np.cumsum(free, 1) - 1
    rest = np.empty((users, size - keep), lists.dtype)
    wanted = free & (place < size - keep)
    rows, columns = np.nonzero(wanted)
    rest[rows, place[rows, columns]] = order[rows, columns]
    return np.concatenate([kept, rest], 1)


def drawn_order(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All columns of every row in the order of draws without replacement, by weight; weight 0 comes last."""
    with np.errstate(divide="ignore"):
        keys = np.log(weights) + rng.gumbel(size=weights.shape)
    return np.argsort(-keys, axis=1, kind="stable")


@dataclass(frozen=True)
class Replacing(Sanitiser):
    """``keep`` items stay, the rest is drawn from all that were not in the list."""

    keep: int = 5
    needs: ClassVar[int] = 2

    @abstractmethod
    def weights(self, request: Request) -> np.ndarray:
        """``[i]`` how likely each item is to replace another."""

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        if not 0 <= self.keep <= request.size:
            raise ConfigError(
                f"keep must be between 0 and the {request.size} items of a list, found {self.keep}."
            )
        if int(request.allowed.sum(1).min()) < self.needs * request.size:
            raise ConfigError("somebody has too few items left to replace others with.")
        weights = request.allowed * self.weights(request)[None, :]
        np.put_along_axis(weights, request.lists, 0.0, 1)
        return fill(request.lists, self.keep, drawn_order(weights, rng))
