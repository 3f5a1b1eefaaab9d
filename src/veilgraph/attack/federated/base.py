"""What every attack on a federation is: a score for each target, from what its attacker sees in a round."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from veilgraph.attack.federated.agreement import agreement, standard
from veilgraph.attack.federated.places import says_how_it_links
from veilgraph.attack.federated.targets import Targets
from veilgraph.federate.strategies.base import Strategy
from veilgraph.files import read_arrays
from veilgraph.models.base import GenericModel, Model
from veilgraph.run.run import Run

IDLE = "idle.json"  # in a transcript: clients that send nothing


class Three(NamedTuple):
    """Rows of the targets' heads, relations and tails, ``[n, width]`` each."""

    head: np.ndarray
    relation: np.ndarray
    tail: np.ndarray


def three(seen: Mapping[str, np.ndarray], name: str) -> Three | None:
    """What the client saw of the targets under this name, if it did."""
    parts = [seen.get(f"{name}.{part}") for part in Three._fields]
    return None if any(part is None for part in parts) else Three(*parts)  # type: ignore[arg-type]


CONTROLS = 40  # other targets a target is compared with, on each side


@dataclass(frozen=True)
class Scene:
    """What is known to any attacker: the model, the targets (no attack looks at the truth in them), where the transcript is."""

    folder: Path  # of the transcript
    model: Model
    targets: Targets
    relations: np.ndarray  # [n] the targets' relations, by the client's own numbers
    places: (
        np.ndarray
    )  # [n, 2] where targets' heads and tails are among the victim's rows (where entities are shared)
    victim: Run  # for what it publishes
    strategy: Strategy
    hostile: bool = False  # whether the client ever sent reversed rows
    auxiliary: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # true statements, by the victim's rows and the client's relations

    def seen(self, whose: str, number: int) -> dict[str, np.ndarray] | None:
        """What server or client wrote down in a round."""
        path = self.folder / whose / f"round-{number:06d}.safetensors"
        return read_arrays(path)[0] if path.exists() else None

    def rounds(self, whose: str) -> list[int]:
        """The rounds it wrote something down in."""
        return sorted(
            int(path.stem.removeprefix("round-"))
            for path in (self.folder / whose).glob("round-*.safetensors")
        )

    @property
    def idle(self) -> bool:
        """Whether the victim takes no step, by its settings, and sends nothing."""
        path = self.folder / IDLE
        return path.exists() and self.targets.victim in json.loads(path.read_text(encoding="utf-8"))

    @property
    def silent(self) -> bool:
        """Whether the victim sent nothing that it had not been sent: it is idle, or its rows stayed as they were."""
        seen = [self.seen("server", number) for number in self.rounds("server")]
        return self.idle or (
            len(seen) > 0
            and all(one is not None and np.array_equal(one["rows"], one["sent"]) for one in seen)
        )

    def score(self, rows: Three) -> np.ndarray:
        """``[n]`` how plausible the targets are with these rows."""
        head, relation, tail = (torch.from_numpy(np.ascontiguousarray(part)) for part in rows)
        with torch.no_grad():
            if isinstance(self.model, GenericModel):
                weights = self.victim.parameters.weights  # (of no such model is anything shared but rows)
                h, r, t = (part.unsqueeze(1) for part in (head, relation, tail))
                return self.model.score(h, r, t, weights).squeeze(1).numpy()
            query = self.model.query(head, relation, torch.arange(len(head)), False)
            return self.model.similarity.pairs(query, tail).numpy()

    def standing(self, rows: Three) -> np.ndarray:
        """``[n]`` the same, compared with the targets' relation and tail under other heads, and with other tails.

        What an entity does in all its statements is in both, and leaves the difference: what head and tail have with each other.
        """
        own, (head, relation, tail) = self.score(rows), rows
        others = [
            score
            for shift in range(1, min(CONTROLS, len(head) - 1) + 1)
            for score in (
                self.score(Three(np.roll(head, shift, 0), relation, tail)),
                self.score(Three(head, relation, np.roll(tail, shift, 0))),
            )
        ]
        usual, spread = np.mean(others, 0), np.std(others, 0)
        return np.asarray((own - usual) / np.maximum(spread, 1e-12))

    def agreement(self, rows: Three, *, own: bool = True) -> np.ndarray:
        """``[n]`` how well each target agrees with the others of its relation; ``own``: the rows of relations are asked too."""
        relation = rows.relation if own else None
        if not says_how_it_links(self.model):
            return np.zeros(len(rows.head))  # (a score that is alike for all is not counted)
        return agreement(self.model, rows.head, rows.tail, self.relations, relation)

    def together(self, rows: Three) -> dict[str, np.ndarray]:
        """Scores of a client that asks both its own relations and the targets."""
        agreed, standing = self.agreement(rows), self.standing(rows)
        return {"agreement": agreed, "agreement and among others": standard(agreed) + standard(standing) / 2}


class Attack(ABC):
    """One attacker."""

    name: ClassVar[str]
    sees: ClassVar[str]  # server or client

    def rounds(self, scene: Scene) -> list[int]:
        """The rounds it has something of."""
        return scene.rounds(self.sees)

    def blind(self, scene: Scene) -> str | None:
        """Why no statement can be scored from what this attacker sees under the federation's strategy; None if one can."""
        return None

    @abstractmethod
    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        """Several scores of the targets in a round, by name, larger for members; None if the transcript does not allow it."""
