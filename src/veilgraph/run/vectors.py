"""What was learnt: read from a run folder, and written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from veilgraph import models
from veilgraph.errors import RunError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.layout import CHECKPOINT, ENTITIES, MARGINALS, RELATIONS, WEIGHTS
from veilgraph.load.source import may_be_there
from veilgraph.mark.rules import unrestricted
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.prior import Prior
from veilgraph.rank.ranking import Ranker

if TYPE_CHECKING:
    from veilgraph.run.run import Run


def parameters_of(run: Run) -> Parameters:
    """The tables of a finished run, its counts with them; refused where files are not those that were certified."""
    run.require_finished()
    run.require_certified()
    entities = tensors_of(run, ENTITIES)["rows"]
    relations = tensors_of(run, RELATIONS)["rows"]
    weights = tensors_of(run, WEIGHTS) if (run.folder / WEIGHTS).exists() else {}
    model = models.scorer_of(run.config)
    tables = {ENTITIES: (entities, model.entity_width), RELATIONS: (relations, model.relation_width)}
    for name, (table, width) in tables.items():
        if table.dim() != 2:
            raise RunError(f"{run.folder}: the vectors are no tables.")
        if table.dtype != torch.float32 or table.shape[1] != width:
            raise RunError(
                f"{run.folder / name} holds rows of {table.shape[1]:,} numbers ({str(table.dtype).removeprefix('torch.')}), and "
                f"{model.name} has {width:,} (float32): it is not what training wrote."
            )
    if len(relations) not in (len(run.relations), 2 * len(run.relations)):
        raise RunError(
            f"{run.folder}: {len(relations)} relation rows, but {len(run.relations)} names (or twice as many)."
        )
    if len(entities) != len(run.entities):
        raise RunError(f"{run.folder}: {len(entities)} entity rows, but {len(run.entities)} names.")
    return Parameters(entities, relations, weights, prior_of(run))


def tensors_of(run: Run, name: str) -> dict[str, Any]:
    """One file of a finished run, compared with its certificate (or its own sum, where there is none yet)."""
    run.require_finished()
    known = run.hashes.get(name)
    try:
        found = read_tensors(run.folder / name, known)[0]
    except OSError as error:
        raise RunError(f"{run.folder / name} cannot be read ({error}).") from None
    if name in (ENTITIES, RELATIONS) and "rows" not in found:
        raise RunError(f"{run.folder / name} holds no rows: it is no file of a run.")
    return found


def prior_of(run: Run) -> Prior | None:
    """The noisy counts that are added to every score, if there are any."""
    if not (run.folder / MARGINALS).exists():
        return None
    try:
        found = Prior.of(
            tensors_of(run, MARGINALS) if run.finished else read_tensors(run.folder / MARGINALS)[0]
        )
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise RunError(f"{run.folder / MARGINALS} holds no counts ({error}).") from None
    if found.relations != len(run.relations) or found.entities > len(run.entities):
        raise RunError(f"{run.folder / MARGINALS} holds counts of other names than the run's.")
    return found


def model_of(run: Run) -> Model:
    """The scorer of a finished run, ready to score."""
    model = models.scorer_of(run.config)
    tensors = tensors_of(run, RELATIONS)
    scale = tensors.get("scale")
    if scale is not None and (scale.dtype != torch.float32 or scale.shape != tensors["rows"].shape[:1]):
        raise RunError(f"{run.folder / RELATIONS} holds weights that are not one for each relation.")
    model.relation_scale = scale
    return model


def known_to(run: Run) -> Ranker | None:
    """The known statements, to leave them out of answers; None if the graph is not at hand.

    In a run with a guarantee only unrestricted ones: an answer that is missing would betray a confidential one.
    """
    if run.held is None and not may_be_there(run.graph_here or ""):
        return None
    graph = run.graph()
    if run.guarantee != "none" and graph.marks is None:
        return None
    open_ = graph if run.guarantee == "none" else unrestricted(graph)
    return Ranker(open_.triples, len(graph.relations))


def write_vectors(run: Run, best: Parameters, model: Model) -> None:
    """Write what was learnt (relations last: the run is finished when they are there)."""
    write_tensors(run.folder / ENTITIES, {"rows": best.entities})
    weights = {name: w for name, w in best.weights.items() if name != "text.structure"}  # is in the rows
    if weights:
        write_tensors(run.folder / WEIGHTS, weights)
    relations = {"rows": best.relations}
    if model.relation_scale is not None:
        relations["scale"] = model.relation_scale
    write_tensors(run.folder / RELATIONS, relations)
    (run.folder / CHECKPOINT).unlink(missing_ok=True)
