"""Published: the victim's finished run, as anybody has it whom it is given to: vectors, relations, noisy counts."""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.attack.federated.base import Attack, Scene, Three
from veilgraph.attack.standing import standing


class Published(Attack):
    """No message is needed: what the federation leaves in the victim's folder is asked about the targets.

    ``score`` and ``rank`` are by the run's own answers, counts included; ``counts`` by what the counts alone say about head and tail of a
    target; the others as attackers on messages ask, with the victim's own relations.
    """

    name = "published"
    sees = "published"

    def rounds(self, scene: Scene) -> list[int]:
        return [0]

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        run = scene.victim
        if not run.finished:
            return None
        p, (heads, names, tails) = run.parameters, zip(*scene.targets.statements)
        head, relation, tail = run.entities.ids(heads), run.relations.ids(names), run.entities.ids(tails)
        ids = torch.from_numpy(np.stack([head, relation, tail], 1).astype(np.int64))
        sides = [standing(run.model, p, ids, side, bool(run.config.reciprocal)) for side in ("tail", "head")]
        scores = {
            "score": sum(log for log, _ in sides).double().numpy(),  # type: ignore[union-attr]
            "rank": -sum(rank.log() for _, rank in sides).double().numpy(),  # type: ignore[union-attr]
        }
        if p.prior is not None:
            cells = [p.prior.gather(ids[:, 1], side, ids[:, [at]]) for side, at in (("tail", 2), ("head", 0))]
            scores["counts"] = (cells[0] + cells[1]).squeeze(1).double().numpy()
        rows = Three(
            *(table[ids[:, i]].numpy() for i, table in enumerate((p.entities, p.relations, p.entities)))
        )
        return {**scores, **scene.together(rows)}
