"""Everything a training needs to go on after a crash, in one file that is replaced in one step."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

from torch import Tensor

from veilgraph.config import Settled
from veilgraph.errors import RunError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.layout import CHECKPOINT
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.text.rows import PREFIX as TEXT
from veilgraph.rng import Streams
from veilgraph.train import optim
from veilgraph.train.rows.base import Rows
from veilgraph.train.tasks.base import Task

TENSORS = ("parameters", "optimisers", "best", "average")


@dataclass
class TrainingState:
    """Parameters, optimiser memory, and how far the training is."""

    parameters: Parameters
    optimisers: dict[str, optim.Optimiser]
    best: Parameters | None = None  # where validation was best
    average: Parameters | None = None  # moving average over the last epochs
    averaged: int = 0  # how many times it was moved
    epoch: int = 0  # epochs that are over
    step: int = 0  # steps of the epoch that is not
    loss: float = 0.0  # their sum
    steps: int = 0
    best_mrr: float = -1.0
    stalled: int = 0  # validations since the best one
    rate_factor: float = 1.0  # of the plateau schedule
    seconds: float = 0.0
    finished: bool = False
    phase: int = 0  # 1: private steps after unrestricted ones
    ledger: str = ""  # what was on the ledger (see Ledger.mark), in a private training
    round: int = 0  # the last round of a federation that was trained

    @property
    def numbers(self) -> list[str]:
        """The fields that are plain values: all that a checkpoint holds beside tensors."""
        return [one.name for one in fields(self) if one.name not in TENSORS]

    @classmethod
    def fresh(
        cls,
        graph: Graph,
        model: Model,
        settings: Settled,
        streams: Streams,
        rows: Rows | None = None,
        task: Task | None = None,
    ) -> TrainingState:
        """The state before the first step, with the weights that rows and task start from."""
        rng = streams.numpy("init")
        relations = len(graph.relations) * (2 if settings.scorer.reciprocal else 1)
        p = Parameters(*model.initialise(len(graph.entities), relations, rng), model.weights(rng))
        p.weights |= rows.start(rng, streams) if rows is not None else {}
        p.weights |= task.start(model.entity_width, rng) if task is not None else {}
        chosen, private = settings.steps.optimiser, settings.private
        optimisers = {name: optim.create(chosen, table) for name, table in tables(p).items()}
        if private is not None:
            optimisers |= {f"private.{k}": optim.create(private.optimiser, t) for k, t in tables(p).items()}
        return cls(p, optimisers, average=copy(p) if settings.steps.averaging else None)

    @property
    def current(self) -> Parameters:
        """What would be used if training ended now."""
        return self.average if self.average is not None and self.averaged else self.parameters

    @property
    def result(self) -> Parameters:
        """What training found: the best by validation, or the last."""
        return self.best if self.best is not None else self.current

    def keep_best(self) -> None:
        """Remember the current parameters."""
        self.best = copy(self.current)

    def next_phase(self) -> None:
        """Go on from what was found, as a new training of few steps that are not averaged."""
        self.parameters, self.average = copy(self.result), None
        self.best, self.best_mrr, self.averaged, self.stalled = None, -1.0, 0, 0
        self.epoch, self.step, self.loss, self.rate_factor, self.finished = 0, 0, 0.0, 1.0, False
        self.phase += 1

    def move_average(self, share: float) -> None:
        """Move the average towards the parameters; early on it is their plain mean."""
        if self.average is None:
            return
        self.averaged += 1
        share = max(share, 1 / self.averaged)
        for name, table in tables(self.average).items():
            table.lerp_(tables(self.parameters)[name], share)

    def save(self, folder: Path) -> None:
        """Write the checkpoint."""
        tensors = {f"{part}/{k}": v for part, p in self._parts().items() for k, v in tables(p).items()}
        for name, optimiser in self.optimisers.items():
            tensors |= {f"optimiser/{name}/{k}": v for k, v in optimiser.state.items()}
        numbers = {name: getattr(self, name) for name in self.numbers}
        write_tensors(folder / CHECKPOINT, tensors, {"state": json.dumps(numbers)})

    def restore(self, folder: Path) -> bool:
        """Read the checkpoint, if there is one."""
        if not (folder / CHECKPOINT).exists():
            return False
        tensors, metadata = read_tensors(folder / CHECKPOINT)
        if "best/entities" in tensors:
            self.keep_best()
        if "average/entities" not in tensors:
            self.average = None
        for part, p in self._parts().items():
            for name, table in tables(p).items():
                saved = tensors[f"{part}/{name}"]
                if saved.shape != table.shape:
                    raise RunError(
                        f"{folder}: the checkpoint does not fit config.yaml, which was changed. Undo the change."
                    )
                table.copy_(saved)
        for name, optimiser in self.optimisers.items():
            for key, value in optimiser.state.items():
                value.copy_(tensors[f"optimiser/{name}/{key}"])
        for name, value in json.loads(metadata["state"]).items():
            setattr(self, name, value)
        return True

    def _parts(self) -> dict[str, Parameters]:
        parts = {"now": self.parameters, "best": self.best, "average": self.average}
        return {name: p for name, p in parts.items() if p is not None}


def tables(p: Parameters) -> dict[str, Tensor]:
    """Every learnt tensor by name, as a table; shared weights are one row each, but for those that descriptions are read with."""
    weights = {
        f"weights.{name}": w if name.startswith(TEXT) and w.dim() == 2 else w.view(1, -1)
        for name, w in p.weights.items()
    }
    return {"entities": p.entities, "relations": p.relations, **weights}


def copy(p: Parameters) -> Parameters:
    """An independent copy."""
    weights = {name: tensor.clone() for name, tensor in p.weights.items()}
    return Parameters(p.entities.clone(), p.relations.clone(), weights, p.prior)
