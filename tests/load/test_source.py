"""What a source is, in one place: seen from a folder and back, and found again by runs that were trained straight from it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from veilgraph.load.source import as_seen_from, may_be_there, seen_from
from veilgraph.run import open_run
from veilgraph.run.verify import verify
from veilgraph.train import train


@pytest.mark.parametrize("scheme", ["", "movielens:", "tables:", "interactions:"])
def test_a_path_is_seen_from_a_folder_and_back(scheme: str, tmp_path: Path) -> None:
    source, folder = f"{scheme}{tmp_path / 'data' / 'x'}", tmp_path / "runs" / "run"
    seen = seen_from(source, folder)
    assert seen == f"{scheme}{os.path.join('..', '..', 'data', 'x')}"
    assert as_seen_from(seen, folder) == source
    assert as_seen_from(f"../../data/{scheme}x", folder) == source, (
        "as 0.1 stored it, trained in the data's folder"
    )
    assert not may_be_there(source)
    (tmp_path / "data" / "x").mkdir(parents=True)
    assert may_be_there(source)


@pytest.mark.parametrize(
    "source", ["", "builtin:hospital", "postgresql://me@host/db", "https://example.org/q", "sqlite:///a.db"]
)
def test_what_is_no_path_stays_as_it_is(source: str, tmp_path: Path) -> None:
    assert seen_from(source, tmp_path) == source
    assert as_seen_from(source, tmp_path) == source
    assert may_be_there(source) == bool(source)


def test_a_run_straight_from_a_scheme_finds_its_graph_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored as «../interactions:ratings.csv» it was lost; and run and file may move together."""
    here = tmp_path / "here"
    here.mkdir()
    lines = "".join(
        f"u{user},m{(user * 7 + turn * 3) % 20},{turn}\n" for user in range(30) for turn in range(6)
    )
    (here / "ratings.csv").write_text("user,item,timestamp\n" + lines)
    monkeypatch.chdir(here)
    run = train("interactions:ratings.csv", model="distmult", dimension=4, epochs=1, threads=1, out="run")
    assert run.facts["graph"] == "interactions:../ratings.csv"
    monkeypatch.chdir(tmp_path)
    shutil.move(here, tmp_path / "there")
    opened = open_run(tmp_path / "there" / "run")
    assert len(opened.graph().train) == 180
    assert opened.known is not None
    assert verify(opened)["valid"]
