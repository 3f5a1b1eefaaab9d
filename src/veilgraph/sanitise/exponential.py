"""The exponential mechanism: every item of a list is drawn with a chance that grows with its score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.errors import PrivacyError
from veilgraph.recommend.offers import best_columns
from veilgraph.sanitise.base import Request, Sanitiser


@dataclass(frozen=True)
class Exponential(Sanitiser):
    """K draws without replacement with weights exp(``budget`` / 2K · score), as one top-K of scores with Gumbel noise.

    Scores are between 0 and 1 whatever a user did. With another history the weight of an item changes by a factor of
    e^(ε/2K) at most, and so does their sum, the other way: one draw costs ε / K, and K of them ε. So the list of a
    user is at most e^ε times as likely as it would be for any other history or attribute. Whoever guesses a balanced
    attribute of two values is right with probability e^ε / (1 + e^ε) at most (``ceiling``).

    That holds only where every item may be drawn, and where which items there are does not depend on what anybody has: leaving out
    what a user has tells what the user has, and an item that only one user has would vanish with him from everybody's lists. So
    lists of new items only, and lists without a public catalogue, are refused. Repeated lists add up: the service charges each.

    The bound is about a person's own list, for a model that is given. The file of everybody's lists was made by a model that may have
    learnt from the person's history: what that tells is bounded by the run's certificate, or by nothing.
    """

    name: ClassVar[str] = "exponential"
    reads_scores: ClassVar[bool] = True
    promise: ClassVar[str] = (
        "ε for a list: a person's own, whatever is known about the person; not for the file of everybody's lists, which the model made "
        "(see the run's certificate)"
    )
    budget: float = 10.0

    @property
    def epsilon(self) -> float:
        return self.budget

    @property
    def ceiling(self) -> float:
        """The best that any attacker can do on a balanced attribute of two values."""
        return 1 / (1 + math.exp(-self.budget))

    def slope(self, size: int) -> float:
        """By how much the logarithm of a weight grows with the score, for lists of so many items."""
        return self.budget / (2 * size)

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        if not 0 < self.budget < math.inf:
            raise PrivacyError(f"a budget is a positive number, found {self.budget:g}.")
        if not request.public_items:
            raise PrivacyError(
                "which items lists may have was read off the graph, whose names are those that histories have: an item that only one "
                "person has would vanish with that person, so no ε holds. Name the public list of all items in a file, a name on each "
                "line: --catalogue items.txt. (How their names begin, item/, is no such list: it chooses among the names of the graph.)"
            )
        if not (
            request.repeat and request.allowed.all()
        ):  # by what was asked for: whether anything is left out would tell too
            raise PrivacyError(
                "what is left out of a list because the user has it tells what the user has: the exponential mechanism "
                "promises something only for lists that may repeat known items."
            )
        if not ((request.scores >= 0) & (request.scores <= 1)).all():
            raise PrivacyError("the exponential mechanism needs scores between 0 and 1.")
        noisy = request.scores.astype(float) * self.slope(request.size) + rng.gumbel(
            size=request.scores.shape
        )
        return best_columns(noisy, request.size)
