"""What every attack on a federation is: a score for each target, from what its attacker sees in a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from veilgraph.attack.federated.agreement import agreement, standard
from veilgraph.attack.federated.targets import Targets
from veilgraph.files import read_arrays
from veilgraph.models.base import Model

CONTROLS = 40  # other targets a target is compared with, on each side


@dataclass(frozen=True)
class Scene:
    """What is known to any attacker: the model, the targets (no attack looks at the truth in them), where the transcript is."""

    folder: Path  # of the transcript
    model: Model
    targets: Targets
    relations: np.ndarray  # [n] the targets' relations, by the rows of the client's own table
    places: np.ndarray  # [n, 2] where targets' heads and tails are among the victim's rows
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

    def score(self, head: np.ndarray, relations: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """``[n]`` how plausible the targets are with these rows."""
        with torch.no_grad():
            rows = torch.from_numpy(relations)
            query = self.model.query(torch.from_numpy(head), rows, torch.from_numpy(self.relations), False)
            return self.model.similarity.pairs(query, torch.from_numpy(tail)).numpy()

    def standing(self, head: np.ndarray, relations: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """``[n]`` the same, compared with the targets' relation and tail under other heads, and with other tails.

        What an entity does in all its statements is in both, and leaves the difference: what head and tail have with each other.
        """
        own = self.score(head, relations, tail)
        others = [
            score
            for shift in range(1, min(CONTROLS, len(head) - 1) + 1)
            for score in (
                self.score(np.roll(head, shift, 0), relations, tail),
                self.score(head, relations, np.roll(tail, shift, 0)),
            )
        ]
        usual, spread = np.mean(others, 0), np.std(others, 0)
        return np.asarray((own - usual) / np.maximum(spread, 1e-12))

    def agreement(
        self, head: np.ndarray, tail: np.ndarray, relations: np.ndarray | None = None
    ) -> np.ndarray:
        """``[n]`` how well each target agrees with the others of its relation; ``relations``: the attacker's own rows of them."""
        own = None if relations is None else relations[self.relations]
        return agreement(self.model, head, tail, self.relations, own)

    def together(self, head: np.ndarray, relations: np.ndarray, tail: np.ndarray) -> dict[str, np.ndarray]:
        """Scores of a client that asks both its own relations and the targets."""
        agreed, standing = self.agreement(head, tail, relations), self.standing(head, relations, tail)
        return {"agreement": agreed, "agreement and among others": standard(agreed) + standard(standing) / 2}


class Attack(ABC):
    """One attacker."""

    name: ClassVar[str]
    sees: ClassVar[str]  # server or client

    @abstractmethod
    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        """Several scores of the targets in a round, by name, larger for members; None if the transcript does not allow it."""


def others(broadcast: np.ndarray, own: np.ndarray, holders: np.ndarray) -> np.ndarray:
    """The mean of the other holders' rows, from the mean of all and one's own; zero where there is nobody else."""
    count = holders[:, None].astype(np.float32)
    return np.where(count > 1, (count * broadcast - own) / np.maximum(count - 1, 1), 0).astype(np.float32)
