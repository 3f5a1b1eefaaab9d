"""Everything a training needs to go on after a crash, in one file that is replaced in one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from veilgraph.config import TrainConfig
from veilgraph.errors import RunError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.text.rows import PREFIX as TEXT
from veilgraph.rng import Streams
from veilgraph.train import optim

CHECKPOINT = "checkpoint.safetensors"


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
    numbers: tuple[str, ...] = field(
        default=(
            "averaged",
            "epoch",
            "step",
            "loss",
            "steps",
            "best_mrr",
            "stalled",
            "rate_factor",
            "seconds",
            "finished",
            "phase",
            "ledger",
            "round",
        ),
        repr=False,
    )

    @classmethod
    def fresh(
        cls,
        graph: Graph,
        model: Model,
        config: TrainConfig,
        streams: Streams,
        private: str | None = None,
        more: Mapping[str, Tensor] | None = None,
    ) -> TrainingState:
        """The state before the first step; ``private`` names the optimiser of private steps, ``more`` are weights beside the model's."""
        rng = streams.numpy("init")
        relations = len(graph.relations) * (2 if config.reciprocal else 1)
        p = Parameters(*model.initialise(len(graph.entities), relations, rng), model.weights(rng))
        if config.encoder is not None:
            from veilgraph.train.encoder import encoder_weights

            p.weights |= encoder_weights(graph, model, config, rng)
        p.weights |= more or {}
        optimisers = {
            name: optim.create(config.optimiser or "adagrad", table) for name, table in tables(p).items()
        }
        if private is not None:
            optimisers |= {f"private.{k}": optim.create(private, t) for k, t in tables(p).items()}
        return cls(p, optimisers, average=copy(p) if config.averaging else None)

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
