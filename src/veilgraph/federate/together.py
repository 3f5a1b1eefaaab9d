"""All data in one place: what a federation would learn if nobody had anything to hide. A baseline, for rehearsals only."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veilgraph.config import TrainConfig
from veilgraph.errors import RunError, UsageError
from veilgraph.federate.protocols import judge
from veilgraph.federate.terms import Terms
from veilgraph.layout import CONFIG
from veilgraph.load import Graph, load
from veilgraph.load.graph import SPLITS
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.models.parameters import Parameters
from veilgraph.run.run import Run
from veilgraph.train import resume, train


def together(
    graphs: Mapping[str, str | Path], out: str | Path, terms: Terms, own: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Every client's figures, under both protocols, of one training on all clients' statements.

    It takes as many epochs as each client would, with the same settings; every client's test statements are ranked as they
    are in a federation, among the same candidates and leaving out what that client knows.

    Reads confidential data: every client's. Releases: nothing; the figures are for who rehearses.
    """
    promised = set(own) - {"seed", "threads"}
    if promised:
        raise UsageError(f"with all data in one place nothing is promised: leave {', '.join(promised)} out.")
    parts = {name: load(path) for name, path in graphs.items()}
    whole = union(parts)
    run = _trained(Path(out) / "together", whole, terms.settings(dict(own)))
    return {name: _judged(run, whole, part) for name, part in parts.items()}


def _trained(path: Path, whole: Graph, settings: dict[str, Any]) -> Run:
    """The training of all, new, gone on with, or as it ended before."""
    if not (path / CONFIG).is_file():
        return train(whole, out=path, **settings)
    run = Run.open(path)
    wanted = {key: value for key, value in TrainConfig.of(settings).as_dict().items() if value is not None}
    if not run.is_of(whole) or any(getattr(run.config, key) != value for key, value in wanted.items()):
        raise RunError(f"{path} is of other clients or other terms. Choose another --out.")
    return run if run.finished else resume(path, graph=whole)


def union(parts: Mapping[str, Graph]) -> Graph:
    """One graph of all clients' statements, each once; what one client trains on is no other's test."""
    entities = Vocabulary(sorted({name for part in parts.values() for name in part.entities}))
    relations = Vocabulary(sorted({name for part in parts.values() for name in part.relations}), "relation")
    rows: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for part in parts.values():
        at, kind = entities.ids(part.entities), relations.ids(part.relations)
        for split, own in part.splits.items():
            rows[split].append(np.stack([at[own[:, 0]], kind[own[:, 1]], at[own[:, 2]]], 1))
    made = Graph(
        entities, relations, {split: np.unique(np.concatenate(r), axis=0) for split, r in rows.items() if r}
    )
    taken = made.keys(made.train)
    others = {
        name: own[~np.isin(made.keys(own), taken)] for name, own in made.splits.items() if name != "train"
    }
    return made.with_splits({"train": made.train, **others})


def _judged(run: Run, whole: Graph, part: Graph) -> dict[str, Any]:
    """A client's test statements, ranked by the vectors of all."""
    p, model, count = run.parameters, copy.copy(run.model), len(whole.relations)
    at, kind = whole.entities.ids(part.entities), whole.relations.ids(part.relations)
    if len(p.relations) == 2 * count:
        kind = np.concatenate([kind, kind + count])
    if model.relation_scale is not None:
        model.relation_scale = model.relation_scale[torch.from_numpy(kind)]
    absent = np.setdiff1d(np.arange(len(whole.entities)), at)
    own = Parameters(p.entities[torch.from_numpy(at)], p.relations[torch.from_numpy(kind)], p.weights)
    return judge(
        model,
        own,
        part,
        reciprocal=bool(run.config.reciprocal),
        others=p.entities[torch.from_numpy(absent)],
    )
