"""Folders appear whole, for whom they are meant; what is not ours stays; what the killed left is found."""

from __future__ import annotations

import logging
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from veilgraph import folders
from veilgraph.cli import main
from veilgraph.errors import PrivacyError, RunError, UsageError
from veilgraph.files import append_line, read_lines, write_json, written
from veilgraph.layout import KINDS, mode_of
from veilgraph.load import Graph, load, save
from veilgraph.mark import mark
from veilgraph.run import open_run
from veilgraph.run.export import export
from veilgraph.run.verify import verify
from veilgraph.train import resume, train

QUICK: dict[str, Any] = {"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1}


@pytest.fixture
def graph(hospital: Graph, tmp_path: Path) -> Path:
    return save(hospital.with_marks(mark(hospital, relations=["has*", "takes"])), tmp_path / "graph")


# --- what was not written here --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "stranger", ["notes.txt", "run", "train.parquet.bak", ".git", "analysis.parquet", ".x.1-deadbeef.tmp"]
)
def test_nothing_is_replaced_that_is_not_ours(
    stranger: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "." in stranger[1:]:
        (graph / stranger).write_text("mine")
    else:
        (graph / stranger).mkdir()
    before = sorted(path.name for path in graph.iterdir())
    for words in (
        ["load", "builtin:hospital", "--out", str(graph), "--force"],
        ["mark", str(graph), "--everything"],
    ):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert stranger in said
        assert "Nothing was replaced" in said
    assert sorted(path.name for path in graph.iterdir()) == before


def test_labels_beside_a_graph_stay(graph: Path) -> None:
    (graph / "labels.tsv").write_text("a\tb\n")
    assert main(["mark", str(graph), "--everything"]) == 0
    assert (graph / "labels.tsv").read_text() == "a\tb\n"


def test_where_somebody_stands_is_not_replaced(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(graph)
    with pytest.raises(UsageError, match="where you are"):
        save(load("builtin:hospital", patients=20), ".", force=True)
    assert load(graph)


def test_a_link_is_followed_not_replaced(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(graph)
    assert main(["mark", str(tmp_path / "link"), "--everything"]) == 0
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "link").secret("train").all()


# --- who may read it ---------------------------------------------------------------------------------------------------
def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_what_is_confidential_is_its_owners_alone(graph: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        save(load(graph), tmp_path / "again")
        private = train(graph, out=tmp_path / "private", epsilon=4.0, **QUICK)
        plain = train(graph, out=tmp_path / "plain", **QUICK)
        private.evaluate("test")
    finally:
        os.umask(before)
    assert not any(mode & 0o077 for mode in modes(tmp_path / "again").values())
    assert stat.S_IMODE(plain.folder.stat().st_mode) == 0o700, "it promises nothing"
    found = modes(private.folder)
    for file in KINDS["run"][1]:
        if file.name in found:
            assert bool(found[file.name] & 0o077) == file.public, file.name
    assert found["private"] == 0o755


def test_drafts_are_closed_from_their_first_byte(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with folders.made(tmp_path / "new") as draft:
            assert stat.S_IMODE(draft.stat().st_mode) == 0o700
            with written(draft / "trace.jsonl") as file:
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert mode_of("metrics.json") == mode_of("train.parquet") == 0o600
        assert mode_of("vocabulary.parquet") == mode_of("page.html") == 0o666
    finally:
        os.umask(before)


def test_what_is_exported_is_for_others(graph: Path, tmp_path: Path) -> None:
    """Whatever a file of that name would be in a graph; and noise that can be made again closes the run."""
    before = os.umask(0o022)
    try:
        run = train(graph, out=tmp_path / "run", epsilon=4.0, **QUICK)
        for format in ("parquet", "npy", "tsv", "run"):
            export(run, tmp_path / f"as-{format}", format)
        seeded = train(graph, out=tmp_path / "seeded", epsilon=4.0, insecure_noise_seed=1, **QUICK)
    finally:
        os.umask(before)
    for format in ("parquet", "npy", "tsv", "run"):
        assert all(mode & 0o044 == 0o044 for mode in modes(tmp_path / f"as-{format}").values()), format
    assert stat.S_IMODE(seeded.folder.stat().st_mode) == 0o700


def test_a_strict_umask_is_kept(graph: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        run = train(graph, out=tmp_path / "run", epsilon=4.0, **QUICK)
    finally:
        os.umask(before)
    assert not any(mode & 0o077 for mode in modes(run.folder).values())


# --- what the killed left ------------------------------------------------------------------------------------------
def test_what_was_left_is_told_and_removed(graph: Path, caplog: pytest.LogCaptureFixture) -> None:
    left = graph.parent / ".graph.veil-draft-abcd1234"
    left.mkdir()
    (left / "train.parquet").write_text("half")
    assert folders.left_beside(graph) == [left.name]
    with caplog.at_level(logging.WARNING):
        load(graph)
    assert "left behind" in caplog.text
    assert not left.exists()


@pytest.mark.parametrize(
    "name", [".graph.veil-backup", ".graph.veil-notes", ".graph.veil-draft-", ".graph.veil-draft-ABCDEFGH"]
)
def test_folders_of_others_are_left_alone(name: str, graph: Path) -> None:
    (graph.parent / name).mkdir()
    (graph.parent / name / "thesis").write_text("mine")
    load(graph)
    assert main(["mark", str(graph), "--everything"]) == 0
    assert (graph.parent / name / "thesis").exists()


def test_a_graph_that_was_saved_meanwhile_is_not_lost(graph: Path) -> None:
    """To a slower command that read the earlier one."""
    from veilgraph.load.store import seen

    before, old = seen(graph), load(graph)
    save(load("builtin:hospital", patients=33), graph, force=True)
    with pytest.raises(UsageError, match="meanwhile"):
        save(old, graph, force=True, instead_of=before)
    assert load(graph).fingerprint == load("builtin:hospital", patients=33).fingerprint


def test_a_run_goes_where_a_link_leads(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    train(graph, out=tmp_path / "link", epsilon=4.0, **QUICK)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "certificate.json").exists()


def test_a_draft_in_use_is_left_alone(graph: Path) -> None:
    with folders.made(graph.parent / "other") as draft:
        assert folders.recover(graph.parent / "other") == []
        assert draft.exists()


def test_a_folder_moved_away_by_the_killed_is_put_back(graph: Path) -> None:
    """Where folders cannot be exchanged in one step, between two."""
    graph.rename(graph.parent / ".graph.veil-before-abcd1234")
    assert load(graph).entities
    assert graph.is_dir()


def test_a_draft_of_a_file_is_removed_once_its_writer_is_gone(tmp_path: Path) -> None:
    (tmp_path / ".a.json.999999999-0123abcd.tmp").write_text("half")
    (tmp_path / f".a.json.{os.getpid()}-0123abcd.tmp").write_text("somebody's")
    write_json(tmp_path / "a.json", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f".a.json.{os.getpid()}-0123abcd.tmp",
        "a.json",
    ]


# --- runs ---------------------------------------------------------------------------------------------------------------
class Stop(Exception):
    pass


def stopped(graph: Path, out: Path) -> Path:
    def stop(progress: Any) -> None:
        if progress.epoch == 2:
            raise Stop

    steps: dict[str, Any] = {
        "epsilon": 4.0,
        "private_steps": 20,
        "order": "interleaved",
        "checkpoint_seconds": 0,
    }
    with pytest.raises(Stop):
        train(graph, out=out, listener=stop, **steps, **{**QUICK, "epochs": 4})
    return out


def test_a_copy_of_an_unfinished_run_does_not_go_on(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two releases, each certified for what one of them spent."""
    run = stopped(graph, tmp_path / "run")
    copy = shutil.copytree(run, tmp_path / "copy")
    first = resume(run)
    with pytest.raises(PrivacyError, match="--moved"):
        resume(copy)
    assert main(["resume", str(copy), "--moved"]) == 0
    second = open_run(copy)
    assert verify(second, graph)["valid"]
    assert any(line.get("moved") for line in second.ledger.lines)
    assert first.certificate["training"] == second.certificate["training"], (
        "whoever sees both sees that they add up"
    )
    assert first.certificate["training"] in second.certificate["statement"]
    back = stopped(graph, tmp_path / "second")
    shutil.copytree(back, tmp_path / "backup")
    resume(back)
    for path in back.iterdir():  # put back into its own place, where it would go on again
        path.unlink()
    shutil.copytree(tmp_path / "backup", back, dirs_exist_ok=True)
    with pytest.raises(PrivacyError, match="--moved"):
        resume(back)
    (back / "curator.json").write_text('{"salt": "00"}\n')
    with pytest.raises(RunError, match="damaged"):
        resume(back)
    moved = stopped(graph, tmp_path / "third")
    moved.rename(tmp_path / "renamed")
    resume(tmp_path / "renamed")  # the same folder, under another name


def test_a_finished_run_without_its_vectors_is_not_trained_again(graph: Path, tmp_path: Path) -> None:
    run = train(graph, out=tmp_path / "run", epsilon=4.0, **QUICK)
    certificate = (run.folder / "certificate.json").read_bytes()
    for name in ("entities", "relations"):
        (run.folder / f"{name}.safetensors").unlink()
    with pytest.raises(RunError, match="vectors are gone"):
        resume(run.folder)
    assert (run.folder / "certificate.json").read_bytes() == certificate


def test_no_epsilon_is_shown_without_its_ledger(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(graph, out=tmp_path / "run", epsilon=4.0, **QUICK)
    (run.folder / "ledger.jsonl").unlink()
    assert main(["certificate", str(run.folder)]) == 5
    assert "ε" not in capsys.readouterr().out


def test_nothing_is_shown_before_it_is_kept(graph: Path, tmp_path: Path) -> None:
    """A count that was shown and then forgotten would be drawn again: several answers for one charge."""
    seen: list[bool] = []

    def explain(line: str) -> None:
        seen.append((tmp_path / "run" / "ledger.jsonl").exists())

    train(graph, out=tmp_path / "run", epsilon=4.0, explain=explain, **QUICK)
    assert seen == [True]


def test_a_line_is_known_by_its_sum_whatever_that_is_called(tmp_path: Path) -> None:
    append_line(tmp_path / "a.jsonl", {"epoch": 1})
    whole = (tmp_path / "a.jsonl").read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / "a.jsonl").write_bytes(damaged)
        with pytest.raises(RunError, match="is damaged"):
            read_lines(tmp_path / "a.jsonl")


# --- doctor -----------------------------------------------------------------------------------------------------------
def test_the_doctor_says_what_is_whole_and_mends(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(graph, out=tmp_path / "run", epsilon=4.0, **QUICK)
    run.evaluate("test")
    assert main(["doctor", str(graph)]) == 0
    assert main(["doctor", str(run.folder)]) == 0
    assert "certified: ε = " in capsys.readouterr().out
    (tmp_path / ".run.veil-draft-abcd1234").mkdir()
    (run.folder / ".diary.tmp").write_text("mine")
    (run.folder / ".folder.tmp").mkdir()
    (run.folder / f".trace.jsonl.{os.getpid()}-0123abcd.tmp").write_text("somebody is writing")
    (run.folder / ".config.yaml.999999999-0123abcd.tmp").touch()
    (run.folder / "curator.json").chmod(0o644)
    for name, old, new in (("metrics.json", "0.", "9."), ("trace.jsonl", "epoch", "epocj")):
        text = (run.folder / name).read_text()
        (run.folder / name).write_text(text.replace(old, new, 1))
    assert main(["doctor", str(run.folder)]) == 5
    assert main(["doctor", str(run.folder), "--recover"]) == 0
    assert (run.folder / "metrics.json.damaged").exists()
    assert {".diary.tmp", ".folder.tmp", f".trace.jsonl.{os.getpid()}-0123abcd.tmp"} <= {
        one.name for one in run.folder.iterdir()
    }
    assert not (run.folder / ".config.yaml.999999999-0123abcd.tmp").exists()
    assert stat.S_IMODE((run.folder / "curator.json").stat().st_mode) == 0o600
    assert not (tmp_path / ".run.veil-draft-abcd1234").exists()
    data = bytearray((graph / "train.parquet").read_bytes())
    data[100] ^= 1
    (graph / "train.parquet").write_bytes(data)
    capsys.readouterr()
    assert main(["doctor", str(graph)]) == 5
    assert "train.parquet is not what was written" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "nothing")]) == 3


def test_a_study_goes_on_that_was_stopped_while_it_was_written_down(graph: Path, tmp_path: Path) -> None:
    """Found by a kill: the draft of its first file made the folder somebody else's."""
    from veilgraph.tune.search import tune

    (tmp_path / "study").mkdir()
    (tmp_path / "study" / ".study.json.999999999-0123abcd.tmp").write_text("half")
    settings = {**QUICK, "epsilon": 4.0, "private_steps": 2, "validate_every": 1}
    assert tune(graph, out=tmp_path / "study", trials=1, **settings)["epsilon"] <= 4
    now = os.umask(0)
    os.umask(now)
    assert stat.S_IMODE((tmp_path / "study" / "run").stat().st_mode) == 0o755 & ~now
