"""What was decided by looking at statements before any noise is named, or refused."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.privacy.test_pipeline_of_neighbours import RULES, _tsv, world
from veilgraph.config import TrainConfig
from veilgraph.errors import PrivacyError
from veilgraph.load import fix, load, save, split
from veilgraph.mark import mark_by_rules
from veilgraph.run.facts import decided_from
from veilgraph.train.tuned import tuned_on


def test_decisions_that_look_at_any_statement_are_named(tmp_path: Path) -> None:
    """Rules by type statements and by query, and whatever was done before anything was marked."""
    graph = load(_tsv(tmp_path, world()))
    for rule in ("type", "query"):
        marked = graph.with_marks(mark_by_rules(graph, RULES[rule](tmp_path, graph, "has")))
        assert any(rule in line for line in decided_from(marked))
    for before, word in (
        (fix(graph), "--fix"),
        *((split(graph, mode=m), m) for m in ("random", "latest", "entities")),
    ):
        marked = before.with_marks(mark_by_rules(before, {"rules": [{"relation": "has"}]}))
        assert any(word in line for line in decided_from(marked))
        save(marked, tmp_path / word)
        assert decided_from(load(tmp_path / word)) == decided_from(marked)
    clean = graph.with_marks(mark_by_rules(graph, {"rules": [{"relation": "has"}]}))
    assert decided_from(split(fix(clean), mode="latest")) == []


def test_what_was_decided_before_something_became_confidential_is_named(tmp_path: Path) -> None:
    """Marked, split, marked again: the split read as unrestricted what is confidential now."""
    graph = load(_tsv(tmp_path, world()))
    few = {"rules": [{"relation": "has"}]}
    more = {"rules": [{"relation": "has"}, {"relation": "knows"}]}
    marked = graph.with_marks(mark_by_rules(graph, few))
    for decided, word in ((split(marked, mode="latest"), "latest"), (fix(marked), "--fix")):
        assert decided_from(decided) == []
        save(decided, tmp_path / word)
        again = load(tmp_path / word)
        assert decided_from(again) == []
        assert any(word in line for line in decided_from(again.with_marks(mark_by_rules(again, more))))
        other = again.with_marks(mark_by_rules(again, {**few, "unit": "head"}))
        assert any(word in line for line in decided_from(other))
        assert decided_from(again.with_marks(mark_by_rules(again, few))) == []


def test_a_clients_graph_remembers_what_was_decided_before_it_was_divided(tmp_path: Path) -> None:
    from veilgraph.federate.divide import divide

    graph = split(load(_tsv(tmp_path, world())), mode="entities", seed=1)
    for part in divide(graph, 2).values():
        told = decided_from(part.with_marks(mark_by_rules(part, {"rules": [{"random_share": 0.5}]})))
        assert any("entities" in line for line in told)
        assert any("divided among clients" in line for line in told)
        held = {part.entities[int(i)] for i in np.flatnonzero(part.held_out)}
        assert held <= {graph.entities[int(i)] for i in np.flatnonzero(graph.held_out)}


def test_settings_tuned_on_what_became_confidential_are_refused(tmp_path: Path) -> None:
    from veilgraph.train import train
    from veilgraph.train.tuned import EVERYTHING, carried

    graph = split(load(_tsv(tmp_path, world())), valid=0.1, test=0.1)
    marked = graph.with_marks(mark_by_rules(graph, {"rules": [{"relation": "has"}]}))
    told = tuned_on(marked)
    quick = {"model": "marginals", "threads": 1}
    with pytest.raises(PrivacyError, match="had a part in them"):
        train(marked, out=tmp_path / "a", epsilon=1.0, tuned_on=EVERYTHING, **quick)
    with pytest.raises(PrivacyError, match="had a part in them"):
        train(marked, out=tmp_path / "b", drop_confidential=True, tuned_on=EVERYTHING, model="distmult")
    other = graph.with_marks(mark_by_rules(graph, {"rules": [{"relation": "livesIn"}]}))
    with pytest.raises(PrivacyError, match="other unrestricted statements"):
        train(other, out=tmp_path / "c", epsilon=1.0, tuned_on=told, **quick)
    run = train(marked, out=tmp_path / "d", epsilon=1.0, tuned_on=told, **quick)
    assert not any("tuned" in line for line in run.certificate["decided_from"])
    run = train(marked, out=tmp_path / "e", epsilon=1.0, tuned_on="public", **quick)
    assert any("tuned on public" in line for line in run.certificate["decided_from"])
    assert carried(TrainConfig.of({"tuned_on": EVERYTHING}), marked) == EVERYTHING


def test_settings_of_an_ordinary_run_are_no_public_choice(tmp_path: Path) -> None:
    """Its defaults follow from exact numbers of statements: one more, and the batch is twice as large."""
    from veilgraph.cli.flags import add_settings, chosen_settings
    from veilgraph.train import train

    def taken(run: Path, *words: str) -> dict[str, Any]:
        parser = argparse.ArgumentParser()
        add_settings(parser)
        return chosen_settings(parser.parse_args(["--config", str(run / "config.yaml"), *words]))

    graph = split(load(_tsv(tmp_path, world())), valid=0.1, test=0.1)
    marked = graph.with_marks(mark_by_rules(graph, {"rules": [{"relation": "has"}]}))
    quick = {"model": "distmult", "dimension": 4, "epochs": 1, "threads": 1}
    for name, read in (("unmarked", graph), ("marked", marked)):
        train(read, out=tmp_path / name, **quick)
        with pytest.raises(PrivacyError, match=r"without a promise.*--tuned-on public"):
            train(marked, out=tmp_path / "a", **{**taken(tmp_path / name), "epsilon": 1.0})
        with pytest.raises(PrivacyError, match="without a promise"):
            train(marked, out=tmp_path / "a", **{**taken(tmp_path / name), "drop_confidential": True})
        train(marked, out=tmp_path / f"again {name}", **taken(tmp_path / name))
    vouched = taken(tmp_path / "marked", "--tuned-on", "public", "--private-steps", "1")
    run = train(marked, out=tmp_path / "b", **{**vouched, "epsilon": 1.0})
    assert any("tuned on public" in line for line in run.certificate["decided_from"])
    train(marked, out=tmp_path / "dropped", drop_confidential=True, **quick)
    assert "tuned_on" not in taken(tmp_path / "dropped")  # it read unrestricted statements alone


def test_a_study_returns_what_its_settings_were_found_on(tmp_path: Path) -> None:
    """From Python too; and «public», said before, is not forgotten by a study in between."""
    from veilgraph.train import train
    from veilgraph.tune.search import tune

    graph = split(load(_tsv(tmp_path, world())), valid=0.3, test=0.1)
    marked = graph.with_marks(mark_by_rules(graph, {"rules": [{"relation": "has"}]}))
    quick = {"model": "distmult", "dimension": 4, "epochs": 1, "threads": 1}
    found = tune(graph, out=tmp_path / "unmarked", trials=1, **quick)
    with pytest.raises(PrivacyError, match="had a part in them"):
        train(marked, out=tmp_path / "a", **{**quick, **found["settings"]}, epsilon=1.0)
    steps = {"epsilon": 1.0, "private_steps": 1}
    found = tune(marked, out=tmp_path / "marked", trials=1, **quick)
    run = train(marked, out=tmp_path / "b", **{**quick, **found["settings"], **steps})
    assert not any("tuned" in line for line in run.certificate["decided_from"])
    found = tune(marked, out=tmp_path / "vouched", trials=1, tuned_on="public", **quick)
    again = tune(marked, out=tmp_path / "twice", trials=1, tuned_on=found["settings"]["tuned_on"], **quick)
    for study in (found, again):
        run = train(marked, out=Path(study["best"]).parent / "run", **{**quick, **study["settings"], **steps})
        assert any("tuned on public" in line for line in run.certificate["decided_from"])
    other = graph.with_marks(mark_by_rules(graph, {"rules": [{"relation": "livesIn"}]}))
    with pytest.raises(PrivacyError, match="other unrestricted statements"):
        train(other, out=tmp_path / "c", **{**quick, **found["settings"], **steps})
