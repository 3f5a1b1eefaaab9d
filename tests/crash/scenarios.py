"""What is killed, and what must hold afterwards. Each scenario is a class: ``start`` makes what is there before, ``work`` is killed,
``check`` raises unless what is left is whole; it may go on with the work."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from veilgraph import resume, train
from veilgraph.federate import federate
from veilgraph.load import load, save, split
from veilgraph.mark import mark
from veilgraph.run import open_run
from veilgraph.run.export import export
from veilgraph.run.extend import extend
from veilgraph.run.verify import verify
from veilgraph.serve.store import Question, open_store
from veilgraph.tune.search import tune

QUICK: dict[str, Any] = {"model": "distmult", "dimension": 8, "epochs": 3, "threads": 1, "validate_every": 0}
PRIVATE: dict[str, Any] = {**QUICK, "epsilon": 4.0, "private_steps": 12, "order": "interleaved"}


def hospital(patients: int = 25, **marks: Any) -> Any:
    graph = split(load("builtin:hospital", patients=patients), valid=0.1, test=0.1)
    return graph.with_marks(mark(graph, relations=["has*"], unit="head", per_unit=5, **marks))


class Scenario:
    """Where it works is ``place``, a fresh folder."""

    def start(self, place: Path) -> None:
        save(hospital(), place / "graph")

    def work(self, place: Path) -> None:
        raise NotImplementedError

    def check(self, place: Path) -> None:
        raise NotImplementedError


class Load(Scenario):
    """A graph saved where none was, twice: the killed draft is gone when the next one is there."""

    def start(self, place: Path) -> None:
        pass

    def work(self, place: Path) -> None:
        save(hospital(), place / "graph")

    def check(self, place: Path) -> None:
        if (place / "graph").exists():
            assert load(place / "graph").fingerprint == hospital().fingerprint
        else:
            self.work(place)
        left_nothing(place, {"graph"})


class Replace(Scenario):
    """A graph saved over another: at any moment there is one of them."""

    def work(self, place: Path) -> None:
        save(hospital(30), place / "graph", force=True)

    def check(self, place: Path) -> None:
        found = load(place / "graph").fingerprint
        assert found in (hospital().fingerprint, hospital(30).fingerprint)
        left_nothing(place, {"graph"})


class ReplaceInTwo(Replace):
    """The same where the file system cannot exchange folders."""

    def work(self, place: Path) -> None:
        from veilgraph import folders

        folders._renameat2 = lambda *_: False
        super().work(place)


class Mark(Scenario):
    """Other marks in place: labels beside the graph stay."""

    def start(self, place: Path) -> None:
        super().start(place)
        (place / "graph" / "labels.tsv").write_text("a\tb\n")

    def work(self, place: Path) -> None:
        graph = load(place / "graph")
        save(graph.with_marks(mark(graph, everything=True)), place / "graph", force=True)

    def check(self, place: Path) -> None:
        graph = load(place / "graph")
        assert graph.marks is not None
        assert (place / "graph" / "labels.tsv").read_text() == "a\tb\n"
        left_nothing(place, {"graph"})


class Train(Scenario):
    """A private training: what was paid stays paid, what is certified verifies, and no more than was asked for is spent."""

    def work(self, place: Path) -> None:
        train(place / "graph", out=place / "run", checkpoint_seconds=0, **PRIVATE)

    def check(self, place: Path) -> None:
        before = (place / "run" / "ledger.jsonl").read_bytes() if (place / "run").exists() else b""
        if not (place / "run").exists():
            self.work(place)
        elif not (place / "run" / "certificate.json").exists():
            resume(place / "run")
        run = open_run(place / "run")
        found = verify(run, place / "graph")
        assert found["valid"], found["reasons"]
        assert found["epsilon"] <= PRIVATE["epsilon"]
        whole = before[: before.rfind(b"\n") + 1]
        assert (place / "run" / "ledger.jsonl").read_bytes().startswith(whole), "a charge was lost"
        run.predict(run.entities[0], run.relations[0])
        left_nothing(place, {"graph", "run"})


class Resume(Train):
    """One that was stopped before."""

    def start(self, place: Path) -> None:
        super().start(place)

        def stop(progress: Any) -> None:
            if progress.epoch == 2:
                raise Stop

        try:
            train(place / "graph", out=place / "run", checkpoint_seconds=0, listener=stop, **PRIVATE)
        except Stop:
            return
        raise AssertionError("it was not stopped")

    def work(self, place: Path) -> None:
        resume(place / "run", checkpoint_seconds=0)


class Stop(Exception):
    pass


class Ordinary(Train):
    """Without privacy."""

    def work(self, place: Path) -> None:
        train(place / "graph", out=place / "run", checkpoint_seconds=0, **QUICK)

    def check(self, place: Path) -> None:
        if not (place / "run").exists():
            self.work(place)
        elif not (place / "run" / "certificate.json").exists():
            resume(place / "run")
        assert verify(open_run(place / "run"))["valid"]
        left_nothing(place, {"graph", "run"})


class Tune(Scenario):
    """A charged study goes on, and is charged once."""

    def work(self, place: Path) -> None:
        tune(
            place / "graph",
            out=place / "study",
            trials=2,
            **{**PRIVATE, "private_steps": 4, "validate_every": 1},
        )

    def check(self, place: Path) -> None:
        if not (place / "study" / "run").exists():
            self.work(place)
        found = verify(open_run(place / "study" / "run"), place / "graph")
        assert found["valid"], found["reasons"]
        assert found["epsilon"] <= PRIVATE["epsilon"]


class Federate(Scenario):
    """Two clients, one with a promise of its own; run again, it goes on."""

    def start(self, place: Path) -> None:
        for name in ("one", "two"):
            save(hospital(20), place / "clients" / name)

    def work(self, place: Path) -> None:
        federate(
            place / "clients", out=place / "out", rounds=3, local_epochs=1, validate_every=1,
            training={"model": "distmult", "dimension": 8}, own={"epsilon": 4.0, "threads": 1},
        )  # fmt: skip

    def check(self, place: Path) -> None:
        self.work(place)
        for name in ("one", "two"):
            found = verify(open_run(place / "out" / "clients" / name), place / "clients" / name)
            assert found["valid"], found["reasons"]
            assert found["epsilon"] <= 4.0


class Serve(Scenario):
    """Answers and charges: what a person's answers cost is what they are charged."""

    def start(self, place: Path) -> None:
        pass

    def work(self, place: Path) -> None:
        store = open_store(str(place / "store.sqlite"))
        for number in range(12):
            store.settle([Question(f"p{number % 3}", f"q{number}", 1, [number], "key")], limit=3, key_limit=9)
        store.close()

    def check(self, place: Path) -> None:
        store = open_store(str(place / "store.sqlite"))
        for person in ("p0", "p1", "p2"):
            paid = store.run("SELECT COALESCE(SUM(cost), 0) FROM answers WHERE person = ?", (person,))[0][0]
            assert store.spent(person) * 1e6 == paid <= 3e6
        asked = store.run("SELECT COALESCE(SUM(spent), 0) FROM quotas")[0][0]
        assert asked == store.run("SELECT COALESCE(SUM(cost), 0) FROM answers")[0][0]
        store.close()
        self.work(place)


class Export(Scenario):
    """An export is there as a whole, or not."""

    formats = ("parquet", "npy", "tsv", "run")

    def start(self, place: Path) -> None:
        super().start(place)
        train(place / "graph", out=place / "run", **PRIVATE)

    def work(self, place: Path) -> None:
        for format in self.formats:
            if not (place / f"as-{format}").exists():
                export(open_run(place / "run"), place / f"as-{format}", format)
        open_run(place / "run").evaluate("test")

    def check(self, place: Path) -> None:
        there = {
            format: size(place / f"as-{format}")
            for format in self.formats
            if (place / f"as-{format}").exists()
        }
        self.work(place)
        for format, before in there.items():
            export(open_run(place / "run"), place / "again", format)
            assert before == size(place / "again"), f"{format} was not whole"
            shutil.rmtree(place / "again")
        assert verify(open_run(place / "run"))["valid"]
        assert verify(open_run(place / "as-run"))["valid"]
        left_nothing(place, {"graph", "run"})


def size(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


class Extend(Scenario):
    """New entities from descriptions: another run folder, whole and certified, or none."""

    def start(self, place: Path) -> None:
        graph = hospital()
        texts = place / "texts.tsv"
        texts.write_text("".join(f"{name}\tThe {name.replace('/', ' ')}.\n" for name in graph.entities))
        save(load(self._source(place, graph), descriptions=str(texts)), place / "graph")
        train(place / "graph", out=place / "run", text="pooled", text_vectors="wordllama", **QUICK)

    def _source(self, place: Path, graph: Any) -> Path:
        save(graph, place / "plain")
        return place / "plain"

    def work(self, place: Path) -> None:
        extend(open_run(place / "run"), {"drug/new": "A new drug."}, out=place / "more", public=True)

    def check(self, place: Path) -> None:
        if not (place / "more").exists():
            self.work(place)
        elif not (place / "more" / "certificate.json").exists():
            resume(place / "more")
        assert verify(open_run(place / "more"))["valid"]


def left_nothing(place: Path, wanted: set[str]) -> None:
    """No draft stays behind once somebody looked."""
    found = {path.name for path in place.iterdir() if path.name.startswith(".")}
    assert not found, f"left behind: {found}"
    for name in wanted:
        if (place / name).is_dir():
            stale = [path.name for path in (place / name).iterdir() if path.name.endswith(".tmp")]
            assert len(stale) <= 1, stale


SCENARIOS = {
    one.__name__.lower(): one
    for one in (
        Load,
        Replace,
        ReplaceInTwo,
        Mark,
        Train,
        Resume,
        Ordinary,
        Tune,
        Federate,
        Serve,
        Export,
        Extend,
    )
}
