"""Every command that writes, on a disk of a few kilobytes: a sentence, exit code 3, and it goes on when there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from veilgraph.cli import main
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.run import open_run
from veilgraph.run.verify import verify

QUICK = ["--model", "distmult", "--dimension", "32", "--epochs", "2", "--threads", "1"]
Mount = Callable[[int], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Mount]:
    """A disk of so many kilobytes; called again, the same with more room."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(kilobytes: int) -> Path:
        options = f"size={kilobytes}k" + (",remount" if place.is_mount() else "")
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("a small disk cannot be mounted here (it takes root)")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.fixture(scope="module")
def graph(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    save(hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes"])), folder / "graph")
    assert main(["train", str(folder / "graph"), "--out", str(folder / "run"), "--epsilon", "4", *QUICK]) == 0
    return folder


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    code, said = main(words), capsys.readouterr().err
    assert code == 3, said
    assert "Traceback" not in said
    assert "foresaw" not in said, said
    assert "no space left" in said.lower() or "full" in said.lower(), said
    return said


@pytest.mark.parametrize("kilobytes", [20, 44])
@pytest.mark.parametrize(
    "words",
    [
        ["load", "builtin:hospital", "--patients", "200", "--out", "DISK/g"],
        ["mark", "GRAPH", "--everything", "--out", "DISK/g"],
        ["train", "GRAPH", "--out", "DISK/r", *QUICK],
        ["train", "GRAPH", "--out", "DISK/r", "--epsilon", "2", *QUICK],
        ["train", "GRAPH", "--out", "DISK/r", "--epsilon", "2", "--model", "marginals", "--threads", "1"],
        ["export", "RUN", "--out", "DISK/e", "--format", "parquet"],
        ["export", "RUN", "--out", "DISK/e", "--format", "tsv"],
        ["export", "RUN", "--out", "DISK/e", "--format", "npy"],
        ["export", "RUN", "--out", "DISK/e", "--format", "run"],
        ["tune", "GRAPH", "--out", "DISK/t", "--trials", "1", *QUICK],
        ["tune", "GRAPH", "--out", "DISK/t", "--trials", "1", "--epsilon", "4", *QUICK],
        ["report", "RUN", "--out", "DISK/page.html", "--canaries", "0"],
        ["serve", "key", "add", "anna", "--store", "DISK/store.sqlite"],
    ],
    ids=lambda words: "-".join(word for word in words[:4] if "/" not in word and not word.isupper()),
)
def test_a_full_disk_is_a_sentence(
    words: list[str], kilobytes: int, graph: Path, disk: Mount, capsys: pytest.CaptureFixture[str]
) -> None:
    place = disk(kilobytes)
    places = {"DISK": str(place), "GRAPH": str(graph / "graph"), "RUN": str(graph / "run")}
    for name, path in places.items():
        words = [word.replace(name, path) if word.startswith(name) else word for word in words]
    refused(words, capsys)
    left = [path.name for path in place.rglob("*") if path.name.endswith(".tmp") or ".veil-" in path.name]
    assert not left


def test_a_training_goes_on_when_there_is_room(
    graph: Path, disk: Mount, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what was paid stays paid, and is not paid again."""
    place = disk(60)
    words = [
        "train",
        str(graph / "graph"),
        "--out",
        str(place / "r"),
        "--epsilon",
        "4",
        "--private-steps",
        "20",
        *QUICK,
    ]
    said = refused([*words, "--prior", "none"], capsys)
    assert "veil resume" in said
    before = (place / "r" / "ledger.jsonl").read_bytes()
    disk(4000)
    assert main(["resume", str(place / "r")]) == 0
    found = verify(open_run(place / "r"), graph / "graph")
    assert found["valid"]
    assert found["epsilon"] <= 4
    assert (place / "r" / "ledger.jsonl").read_bytes().startswith(before)


def test_figures_that_cannot_be_kept_are_shown(
    graph: Path, disk: Mount, capsys: pytest.CaptureFixture[str]
) -> None:
    place = disk(4000)
    shutil.copytree(graph / "run", place / "run")
    descriptor = os.open(place / "filler", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while os.write(descriptor, b"\0" * 4096):
            pass
    os.close(descriptor)
    assert main(["evaluate", str(place / "run"), "--graph", str(graph / "graph")]) == 0
    assert "mrr" in capsys.readouterr().out.lower()
