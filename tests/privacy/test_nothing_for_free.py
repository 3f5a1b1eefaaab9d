"""What a private training must not read for free, and what it must not give away beside its vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import random_graph
from tests.privacy import QUICK, private_run
from veilgraph import models
from veilgraph.errors import InputError, VerificationError
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.run.export import export
from veilgraph.run.run import Run
from veilgraph.run.verify import verify
from veilgraph.train import train
from veilgraph.tune.search import tune


def test_free_things_read_unrestricted_statements_only(
    hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TransM's weights, the ordinary plan and validation never see a confidential statement."""
    from veilgraph.train import loop
    from veilgraph.train.tasks import links

    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    secret = {tuple(t) for s, a in graph.splits.items() for t in a[graph.secret(s)].tolist()}
    seen: list[np.ndarray] = []
    transm = models.model_class("transm")
    for owner, method, place in (
        (transm, "prepare", 1),
        (links.Links, "__init__", 1),
        (loop.Validation, "__init__", 1),
    ):
        real = getattr(owner, method)

        def spy(*given: object, real: object = real, place: int = place, **named: object) -> object:
            what = given[place]
            seen.append(what.triples if isinstance(what, Graph) else what)  # type: ignore[arg-type]
            return real(*given, **named)  # type: ignore[operator]

        monkeypatch.setattr(owner, method, spy)
    private_run(graph, tmp_path / "run", model="transm")
    assert len(seen) == 3
    assert all(secret.isdisjoint(map(tuple, array.tolist())) for array in seen)


def test_free_tuning_reads_unrestricted_statements_only(hospital: Graph, tmp_path: Path) -> None:
    """Where everything is confidential nothing is left to tune on for free."""
    everything = hospital.with_marks(mark(hospital, everything=True))
    with pytest.raises(InputError, match="validation split"):
        tune(everything, out=tmp_path / "study", model="distmult", trials=1)


def test_metrics_of_confidential_statements_stay_with_the_curator(hospital: Graph, tmp_path: Path) -> None:
    """The folder made for publication has none of the curator's files, verifies and answers."""
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    run = private_run(graph, tmp_path / "run")
    run.evaluate("test", graph=graph)
    export(run, tmp_path / "published", format="run")
    kept = {path.name for path in run.folder.iterdir()} - {p.name for p in (tmp_path / "published").iterdir()}
    assert {"metrics.json", "trace.jsonl", "curator.json"} <= kept
    published = Run.open(tmp_path / "published")
    assert verify(published)["valid"]
    assert published.predict(graph.entities[0], graph.relations[0], top=3)


def test_dropped_statements_are_never_read(hospital: Graph, tmp_path: Path) -> None:
    """Two graphs that differ in confidential statements alone give the same vectors; ε is 0."""
    marks = mark(hospital, random_share=0.5)
    graph = hospital.with_marks(marks)
    open_only = unrestricted(graph)
    other = open_only.with_marks(mark(open_only, statements=open_only.train[:0]))
    settings = {k: v for k, v in QUICK.items() if k not in ("private_steps", "sample_rate")}
    runs = [
        train(g, out=tmp_path / str(i), model="distmult", drop_confidential=True, **settings)
        for i, g in enumerate((graph, other))
    ]
    assert torch.equal(runs[0].parameters.entities, runs[1].parameters.entities)
    assert (runs[0].guarantee, runs[0].epsilon) == ("dp", 0.0)
    (runs[1].folder / "ledger.jsonl").unlink()
    with pytest.raises(VerificationError, match="not known"):
        _ = runs[1].epsilon
    assert "no confidential statement was read" in runs[0].certificate["statement"]


def test_answers_do_not_betray_what_was_left_out(hospital: Graph, tmp_path: Path) -> None:
    """predict() leaves known unrestricted facts out of its answers, never confidential ones."""
    graph = hospital.with_marks(mark(hospital, everything=True))
    run = private_run(graph, tmp_path / "run")
    h, r, t = graph.train[0]
    answers = run.predict(graph.entities[h], graph.relations[r], top=len(graph.entities))
    assert graph.entities[t] in {answer["entity"] for answer in answers}


def test_unknown_graph_is_all_confidential(tmp_path: Path) -> None:
    graph = random_graph(statements=300)
    run = private_run(graph, tmp_path / "run")
    assert run.facts["statements"] == 0
    assert run.guarantee == "dp"
