"""The run folder is the product: it can be resumed, evaluated, queried by name, exported and served. Its files: ``files.py``.

A hash of confidential data is confidential (whoever guesses a statement can test the guess), so config.yaml holds a
commitment: a keyed hash under a salt that stays with the curator. No statement is in the folder; nothing is pickled.
What needs PyTorch is in ``vectors.py``: a service opens a run without it.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from veilgraph.account.certificate import seal
from veilgraph.account.epsilon import DELTA
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import guarantee_of
from veilgraph.config import TrainConfig
from veilgraph.errors import RunError, VerificationError
from veilgraph.files import (
    as_json,
    line_of,
    read_lines,
    read_parquet,
    read_yaml,
    require_hash,
    write_text,
)
from veilgraph.folders import recover
from veilgraph.layout import CERTIFICATE, CONFIG, CURATOR, ENTITIES, LEDGER, RELATIONS, TRACE, VOCABULARY
from veilgraph.load.graph import Graph
from veilgraph.load.source import as_seen_from, is_address, load
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.mark.rules import mark
from veilgraph.run.commitment import commitment
from veilgraph.run.curator import only_one, place_of, read_curator, write_curator
from veilgraph.run.files import instead, require_unchanged

if TYPE_CHECKING:
    from veilgraph.models.base import Model
    from veilgraph.models.parameters import Parameters
    from veilgraph.models.prior import Prior
    from veilgraph.rank.ranking import Ranker


MOST = 1 << 53  # of a number among facts
FACTS: Mapping[str, Any] = {  # that are read, and what they are; names are a list of them, or one word
    "graph": str, "commitment": str, "unit": str, "per_unit": int, "entities": int, "relations": int, "statements": int,
    "units": (int, float), "may_be_confidential": list, "decided_from": list, "training": str, "held_out": int,
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One training and what came of it."""

    folder: Path
    config: TrainConfig
    facts: dict[str, Any]  # graph, fingerprint, sizes
    held: Graph | None = None  # the graph in memory, right after training

    def __repr__(self) -> str:
        state = "finished" if self.finished else "unfinished"
        return f"Run({str(self.folder)!r}, {self.config.model}, {state})"

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """A run folder that exists."""
        path = Path(folder)
        recover(path)
        if not (path / CONFIG).is_file():
            raise RunError(f"{folder} is not a run folder: {instead(path)}.")
        document = read_yaml(path / CONFIG)
        settings = document.pop("settings", None)
        if not isinstance(settings, dict):
            raise RunError(f"{path / CONFIG} has no settings: it was not written by veil train.")
        if not {"graph", "commitment", "statements"} <= document.keys():
            raise RunError(f"{path / CONFIG} does not say which graph it belongs to: it is damaged.")
        _check_facts(path / CONFIG, document)
        return cls(path, TrainConfig.of(settings), document)

    @property
    def finished(self) -> bool:
        """Whether the vectors are there."""
        return (self.folder / ENTITIES).is_file() and (self.folder / RELATIONS).is_file()

    @property
    def ledger(self) -> Ledger:
        """What was spent; a run without a ledger is an error, not a run that spent nothing."""
        found = Ledger(self.folder / LEDGER)
        if not found.lines:
            raise VerificationError(f"{self.folder} has no {LEDGER}: what was spent is not known.")
        return found

    @property
    def guarantee(self) -> str:
        """dp, none, or «as published, not differentially private»."""
        if not self.config.private:
            return "dp" if self.config.drop_confidential else "none"
        promised = guarantee_of(self.config.mechanism or "lazy")
        return "none" if promised == "dp" and not self.ledger.private else promised

    @property
    def epsilon(self) -> float | None:
        """ε at the run's δ; None (infinite) where nothing is promised."""
        if self.guarantee == "none":
            return None
        self.require_certified()
        found = self.ledger.spent(self.delta).epsilon
        return found if found < math.inf else None

    @property
    def delta(self) -> float:
        """The probability that the promise may fail."""
        return DELTA if self.config.delta is None else self.config.delta

    @property
    def clip_norm(self) -> float | None:
        """What private steps clipped a unit's gradient to: as found privately, or as set."""
        return (self.ledger.found("clip") or self.config.clip) if self.config.private else None

    # --- what it promises ------------------------------------------------------------------------------------------
    @property
    def certificate(self) -> dict[str, Any]:
        """What certificate.json says; ``print(run.certificate["statement"])`` says it in words.

        Refused where its seal, the settings or the ledger are not as they were: what it says would be of something else.
        """
        found = self.certificate_as_it_is
        text = (self.folder / CERTIFICATE).read_text(encoding="utf-8")
        if found.get("seal") != seal(found) or text != as_json(found):
            raise VerificationError(
                f"{self.folder / CERTIFICATE} is damaged or was edited: its seal does not fit its content."
            )
        require_unchanged(self.folder, found["hashes"])
        return found

    @property
    def certificate_as_it_is(self) -> dict[str, Any]:
        """The same, unchecked: for whoever verifies it."""
        self.require_finished()
        try:
            found = json.loads((self.folder / CERTIFICATE).read_text(encoding="utf-8"))
            if (
                not isinstance(found, dict)
                or not {"hashes", "guarantee", "epsilon", "statement", "events"} <= found.keys()
                or not isinstance(found["hashes"], dict)
            ):
                raise ValueError("it does not say what a certificate says")
            json.dumps(found, ensure_ascii=False).encode()  # (half a character is none)
            return found
        except FileNotFoundError:
            raise RunError(f"{self.folder} has no {CERTIFICATE}: it was deleted.") from None
        except (ValueError, RecursionError) as error:
            raise VerificationError(f"{self.folder / CERTIFICATE} is damaged: {error}") from None

    @property
    def hashes(self) -> dict[str, str]:
        """What is certified of each file; nothing where there is no certificate yet."""
        there = self.finished and (self.folder / CERTIFICATE).is_file()
        return dict(self.certificate_as_it_is["hashes"]) if there else {}

    @property
    def trace(self) -> list[dict[str, Any]]:
        """One line per epoch."""
        return read_lines(self.folder / TRACE)

    def require_finished(self) -> None:
        """Raise unless the vectors are there."""
        if not self.finished:
            raise RunError(f"{self.folder} is not finished. Continue it with: veil resume {self.folder}")

    def require_certified(self) -> None:
        """Raise if settings or ledger are not those of the certificate, or a file is gone: figures would be of something else."""
        if self.finished and (self.folder / CERTIFICATE).is_file():
            _ = self.certificate

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process: two trainings must not write the same folder."""
        with (self.folder / CONFIG).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunError(
                    f"{self.folder} is being trained by another process. Wait for it, or stop it."
                ) from None
            yield

    # --- what was learnt ----------------------------------------------------------------------------------------
    @cached_property
    def parameters(self) -> Parameters:
        """The learnt tables."""
        from veilgraph.run.vectors import parameters_of

        return parameters_of(self)

    @property
    def prior(self) -> Prior | None:
        """The noisy counts that are added to every score, if there are any."""
        from veilgraph.run.vectors import prior_of

        return prior_of(self)

    @cached_property
    def model(self) -> Model:
        """The scorer, ready to score."""
        from veilgraph.run.vectors import model_of

        return model_of(self)

    @cached_property
    def _vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        try:
            if (known := self.hashes.get(VOCABULARY)) is not None:
                require_hash(self.folder / VOCABULARY, known)
            table = read_parquet(self.folder / VOCABULARY, ["kind", "name"])
        except (OSError, KeyError, pa.ArrowException) as error:
            raise RunError(f"{self.folder}: {VOCABULARY} cannot be read ({error}).") from None
        entity = pc.equal(table["kind"], "entity")
        return (
            Vocabulary(table.filter(entity)["name"].combine_chunks(), "entity"),
            Vocabulary(table.filter(pc.invert(entity))["name"].combine_chunks(), "relation"),
        )

    @property
    def entities(self) -> Vocabulary:
        """The names of the entity rows."""
        return self._vocabularies[0]

    @property
    def relations(self) -> Vocabulary:
        """The names of the relation rows."""
        return self._vocabularies[1]

    def graph(self, source: str | Path | Graph | None = None) -> Graph:
        """The graph of this run, checked to be the same one."""
        if source is None and self.held is not None:
            return self.held
        if source is None and is_address(self.graph_source):
            raise RunError(
                f"{self.folder} says that its graph is at {self.graph_source}. An address in a folder is not called, because anybody may "
                "have written it there: name it with --graph (graph=)."
            )
        found = self.as_trained(load(source if source is not None else self.graph_source))
        if not self.is_of(found):
            raise RunError(
                f"{found.source or 'this graph'} is not the graph of {self.folder}: names, statements or marks differ. "
                "Name the right one with --graph."
            )
        return found

    def as_trained(self, graph: Graph) -> Graph:
        """The graph with the marks this run gave it: a private run takes an unmarked graph as confidential throughout.

        Runs of 0.1 took a source with a mapping so too, whose rules are applied today.
        """
        if not self.config.private:
            return graph
        if graph.marks is None:
            return graph.with_marks(mark(graph, everything=True))
        if "mapping" not in graph.extra or self.is_of(graph):
            return graph
        bare = graph.with_marks(None)
        before = bare.with_marks(mark(bare, everything=True))
        return before if self.is_of(before) else graph

    def is_of(self, graph: Graph) -> bool:
        """Whether this run was trained on that graph; without the curator's salt only the sizes can be compared."""
        promised = str(self.facts["commitment"])
        if not (self.folder / CURATOR).is_file():
            return (len(graph.entities), len(graph.relations)) == (
                self.facts["entities"],
                self.facts["relations"],
            )
        salt = self.salt
        return (graph.fingerprint if salt is None else commitment(graph, salt)) == promised

    @property
    def salt(self) -> str | None:
        """Of the commitment, where something is promised; the curator's."""
        if not (self.folder / CURATOR).is_file():
            return None
        try:
            found = read_curator(self.folder, self.facts)["salt"]
            if found is not None and bytes.fromhex(found).hex() != found:
                raise ValueError("it is written in other letters")
            return found if found is None else str(found)
        except (ValueError, TypeError, KeyError, RunError):
            raise RunError(
                f"{self.folder / CURATOR} is damaged: which graph this run is of cannot be told."
            ) from None

    @property
    def in_place(self) -> bool:
        """Whether it lies where the training began; always, where nothing is promised."""
        if self.config.regime == "none" or not (self.folder / CURATOR).is_file():
            return True
        here = place_of(self.folder)
        return bool(read_curator(self.folder, self.facts).get("place", here) == here)

    def require_in_place(self, *, moved: bool = False) -> None:
        """Raise if an unfinished folder that promises something is a copy: the original may go on too, and each would be certified for
        what one of them spent. ``moved`` says that it is the only one; the ledger, and so the certificate, repeat it."""
        if self.in_place:
            return
        only_one(self.ledger, self.folder, "training", f"veil resume {self.folder} --moved", moved=moved)
        write_curator(self.folder, {**read_curator(self.folder, self.facts), "place": place_of(self.folder)})

    @property
    def graph_source(self) -> str:
        """Where the graph was read from."""
        source = str(self.facts["graph"])
        if not source:
            raise RunError(f"{self.folder} was trained on a graph in memory. Name it with graph= or --graph.")
        return as_seen_from(source, self.folder)

    @property
    def graph_here(self) -> str | None:
        """The same, where there is one and reading it calls nobody."""
        return None if not self.facts["graph"] or is_address(self.graph_source) else self.graph_source

    @cached_property
    def known(self) -> Ranker | None:
        """The known statements, to leave them out of answers; None if the graph is not at hand.

        In a run with a guarantee only unrestricted ones: an answer that is missing would betray a confidential one.
        """
        from veilgraph.run.vectors import known_to

        return known_to(self)

    # --- writing ------------------------------------------------------------------------------------------------
    def forget_after(self, epoch: int) -> None:
        """Drop trace lines later than the checkpoint: those epochs are run again."""
        kept = (line for line in self.trace if line.get("epoch", 0) <= epoch)
        write_text(self.folder / TRACE, "".join(line_of(line)[0].decode() for line in kept))

    def evaluate(self, split: str = "test", **options: Any) -> dict[str, Any]:
        """Filtered link-prediction metrics on a split of the run's graph (see evaluate.evaluate)."""
        from veilgraph.run.evaluate import evaluate

        return evaluate(self, split, **options)

    def predict(
        self,
        head: str | None = None,
        relation: str = "",
        tail: str | None = None,
        *,
        describe: str | None = None,
        top: int = 10,
        known: bool = False,
    ) -> list[dict[str, Any]]:
        """The best answers to (head, relation, ?) or (?, relation, tail), also about what a text describes (see evaluate.predict)."""
        from veilgraph.run.predict import DESCRIBED, predict

        if describe is not None and head is None and tail is None:
            head = DESCRIBED
        return predict(self, head, relation, tail, describe=describe, top=top, known=known)


def _check_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Raise where a fact is of another kind than facts are."""
    for name, kind in FACTS.items():
        value = facts.get(name)
        if value is None:
            continue
        several = isinstance(value, list) and all(isinstance(one, str) for one in value)
        fits = several or isinstance(value, str) if kind is list else isinstance(value, kind)
        if not fits or isinstance(value, bool) or (isinstance(value, (int, float)) and not 0 <= value < MOST):
            raise RunError(f"{path} is damaged: {name} is {str(value)[:60]!r}.")


def open_run(folder: str | Path) -> Run:
    """A run folder that exists, to evaluate, query or export."""
    return Run.open(folder)
