"""What was learnt: read from a run folder, and written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    if entities.dim() != 2 or relations.dim() != 2:
        raise RunError(f"{run.folder}: the vectors are no tables.")
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
        return Prior.of(
            tensors_of(run, MARGINALS) if run.finished else read_tensors(run.folder / MARGINALS)[0]
        )
    except KeyError as error:
        raise RunError(f"{run.folder / MARGINALS} holds no counts ({error} is missing).") from None


def model_of(run: Run) -> Model:
    """The scorer of a finished run, ready to score."""
    model = models.scorer_of(run.config)
    model.relation_scale = tensors_of(run, RELATIONS).get("scale")
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
