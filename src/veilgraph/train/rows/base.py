"""What every source of entity rows is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from veilgraph.config import TrainConfig
from veilgraph.errors import PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.train.batches import Batch, LabelBatch, TripleBatch
from veilgraph.train.gradients import RowGradient
from veilgraph.train.optim import Optimiser
from veilgraph.train.private.clip import ClippedSum, How, Into

Optimisers = Mapping[str, Optimiser]


class Place(NamedTuple):
    """Where a training is: what is drawn for a step follows from it."""

    epoch: int
    step: int


class Made(NamedTuple):
    """Rows to compute a batch with, the batch by their ids, and what ``pull`` needs again."""

    p: Parameters
    batch: Any  # of the kind it was made for
    kept: Any = None


class Rows(ABC):
    """Rows are made for a batch (``of``), and what it pulls at them is given back (``pull``); ``flush`` makes all of them anew.

    Everything learnt is in the tables or among the weights (under names that begin with ``prefix``), so that checkpoints, resuming and run
    folders are those of any training.
    """

    prefix: ClassVar[str] = ""  # of the names of its weights
    candidates: np.ndarray | None = None  # entities that may be wrong answers; None: all
    anchor: Tensor | None = None  # a federation's weights, which a distance is paid to

    @classmethod
    def refuse(cls, graph: Graph, config: TrainConfig) -> None:
        """Raise for settings that contradict each other or the promise, before anything is written."""

    @classmethod
    def facts(cls, graph: Graph, config: TrainConfig) -> dict[str, Any]:
        """What a run must remember of what its rows are made of."""
        return {}

    def start(self, rng: np.random.Generator, streams: Streams) -> dict[str, Tensor]:
        """Weights before the first step."""
        return {}

    @abstractmethod
    def of(self, p: Parameters, batch: Batch | LabelBatch, place: Place) -> Made:
        """Rows for a batch."""

    @abstractmethod
    def pull(
        self, p: Parameters, optimisers: Optimisers, made: Made, gradient: RowGradient, rate: float
    ) -> None:
        """Move what the rows were made of."""

    @abstractmethod
    def flush(self, p: Parameters) -> None:
        """``p.entities`` as everything learnt makes them: before anything leaves the trainer."""

    def own(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights that are the scorer's."""
        return {name: w for name, w in weights.items() if not (self.prefix and name.startswith(self.prefix))}

    # --- private steps --------------------------------------------------------------------------------------------
    moved: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"entities": "entities", "relations": "relations"}
    )  # what private steps move, by what optimisers call it

    def tables(self, p: Parameters) -> Parameters:
        """What private steps move."""
        return p

    def clipped(
        self, how: How, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into
    ) -> ClippedSum:
        """The sum of the clipped gradients of a batch's units on what private steps move; refused where no bound is known.

        Reads confidential data: the batch. Releases: nothing; the sum is to be noised by a mechanism.
        """
        raise PrivacyError(
            f"what one statement pulls at {type(self).__name__} has no bound that is known here."
        )
