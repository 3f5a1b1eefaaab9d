"""The run folder is the product: it can be resumed, evaluated, queried by name, exported and served.

    may be published                                     for the curator only
    config.yaml              every setting, as chosen    curator.json             which graph it was, and the salt
    ledger.jsonl             what was spent              trace.jsonl              loss, ε, timings per epoch
    certificate.json         what it promises            metrics.json             evaluations
    entities.safetensors     a row per entity            checkpoint.safetensors   only while training
    relations.safetensors    a row per relation
    vocabulary.parquet       the names of the rows
    marginals.safetensors    noisy counts, if any (and weights.safetensors, of models that have some)

A hash of confidential data is confidential (whoever guesses a statement can test the guess), so config.yaml holds a
commitment: a keyed hash under a salt that stays with the curator. No statement is in the folder; nothing is pickled.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from veilgraph.account.ledger import Ledger
from veilgraph.commitment import commitment
from veilgraph.config import TrainConfig, read_yaml
from veilgraph.errors import RunError, VerificationError
from veilgraph.files import read_lines, read_parquet, read_tensors, write_json, write_tensors, write_text
from veilgraph.run_facts import bind, facts_of
from veilgraph.run_files import (
    CERTIFICATE,
    CONFIG,
    CURATOR,
    ENTITIES,
    LEDGER,
    MARGINALS,
    RELATIONS,
    TRACE,
    VOCABULARY,
    WEIGHTS,
    check_target,
    instead,
    require_unchanged,
)

if TYPE_CHECKING:
    from veilgraph.evaluate.ranking import Ranker
    from veilgraph.load.graph import Graph
    from veilgraph.load.vocabulary import Vocabulary
    from veilgraph.models.base import Model
    from veilgraph.models.parameters import Parameters
    from veilgraph.models.prior import Prior
    from veilgraph.train.state import TrainingState

DELTA = 1e-6

Settle = Callable[[Ledger], tuple[TrainConfig, dict[str, Any]]]


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
    def create(cls, folder: str | Path, graph: Graph, settle: Settle, *, open_data: bool) -> Run:
        """A new run folder; refuses a folder that is in use. ``settle`` is called with the ledger, to charge and choose.

        ``open_data`` says that nothing is promised about the graph: its plain fingerprint may then be stored.
        """
        from veilgraph.load.vocabulary import write_names

        path = Path(folder)
        check_target(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            config, chosen = settle(Ledger(draft / LEDGER))
            salt = secrets.token_hex(32)
            facts = facts_of(graph, path, None if open_data else salt) | chosen
            bind(Ledger(draft / LEDGER), config, facts)
            write_names(draft / VOCABULARY, graph.entities.array, graph.relations.array)
            write_json(draft / CURATOR, {"salt": None if open_data else salt})
            (draft / CURATOR).chmod(0o600)
            document = {**facts, "settings": config.as_dict()}
            write_text(draft / CONFIG, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
            draft.chmod(0o755)
            draft.replace(path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return cls(path, config, facts)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """A run folder that exists."""
        path = Path(folder)
        if not (path / CONFIG).is_file():
            raise RunError(f"{folder} is not a run folder: {instead(path)}.")
        document = read_yaml(path / CONFIG)
        settings = document.pop("settings", None)
        if not isinstance(settings, dict):
            raise RunError(f"{path / CONFIG} has no settings: it was not written by veil train.")
        if not {"graph", "commitment", "statements"} <= document.keys():
            raise RunError(f"{path / CONFIG} does not say which graph it belongs to: it is damaged.")
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
        from veilgraph.train.private.mechanisms import mechanism_class

        promised = mechanism_class(self.config.mechanism or "lazy").guarantee
        return "none" if promised == "dp" and not self.ledger.private else promised

    @property
    def epsilon(self) -> float | None:
        """ε at the run's δ; None (infinite) where nothing is promised."""
        if self.guarantee == "none":
            return None
        self.require_certified()
        found = self.ledger.spent(self.config.delta or DELTA).epsilon
        return found if found < math.inf else None

    @property
    def clip_norm(self) -> float | None:
        """What private steps clipped a unit's gradient to: as found privately, or as set."""
        return (self.ledger.found("clip") or self.config.clip) if self.config.private else None

    # --- what it promises ------------------------------------------------------------------------------------------
    @property
    def certificate(self) -> dict[str, Any]:
        """What certificate.json says; ``print(run.certificate["statement"])`` says it in words."""
        self.require_finished()
        try:
            found = json.loads((self.folder / CERTIFICATE).read_text(encoding="utf-8"))
            if (
                not isinstance(found, dict)
                or not {"hashes", "guarantee", "epsilon", "statement", "events"} <= found.keys()
            ):
                raise ValueError("it does not say what a certificate says")
            return found
        except FileNotFoundError:
            raise RunError(f"{self.folder} has no {CERTIFICATE}: it was deleted.") from None
        except ValueError as error:
            raise VerificationError(f"{self.folder / CERTIFICATE} is damaged: {error}") from None

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
            require_unchanged(self.folder, self.certificate["hashes"])

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
        from veilgraph.models.parameters import Parameters

        self.require_finished()
        self.require_certified()
        try:
            entities = read_tensors(self.folder / ENTITIES)[0]["rows"]
            relations = read_tensors(self.folder / RELATIONS)[0]["rows"]
            weights = read_tensors(self.folder / WEIGHTS)[0] if (self.folder / WEIGHTS).exists() else {}
        except (OSError, KeyError) as error:
            raise RunError(f"{self.folder}: the vectors cannot be read ({error}).") from None
        if len(entities) != len(self.entities):
            raise RunError(f"{self.folder}: {len(entities)} entity rows, but {len(self.entities)} names.")
        return Parameters(entities, relations, weights, self.prior)

    @property
    def prior(self) -> Prior | None:
        """The noisy counts that are added to every score, if there are any."""
        from veilgraph.models.prior import Prior

        path = self.folder / MARGINALS
        return Prior.of(read_tensors(path)[0]) if path.exists() else None

    @cached_property
    def model(self) -> Model:
        """The scorer, ready to score."""
        from veilgraph import models

        self.require_finished()
        model = models.create(self.config.model, self.config.dimension or 1, norm=self.config.norm)
        tensors = read_tensors(self.folder / RELATIONS)[0]
        model.relation_scale = tensors.get("scale")
        return model

    @cached_property
    def _vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        import pyarrow as pa
        import pyarrow.compute as pc

        from veilgraph.load.vocabulary import Vocabulary

        try:
            table = read_parquet(self.folder / VOCABULARY)
        except (OSError, pa.ArrowException) as error:
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
        from veilgraph.load import load

        if source is None and self.held is not None:
            return self.held
        found = self.as_trained(load(source if source is not None else self.graph_source))
        if not self.is_of(found):
            raise RunError(
                f"{found.source or 'this graph'} is not the graph of {self.folder}: names, statements or marks differ. "
                "Name the right one with --graph."
            )
        return found

    def as_trained(self, graph: Graph) -> Graph:
        """The graph with the marks this run gave it: a private run takes an unmarked graph as confidential throughout."""
        from veilgraph.mark import mark

        if graph.marks is not None or not self.config.private:
            return graph
        return graph.with_marks(mark(graph, everything=True))

    def is_of(self, graph: Graph) -> bool:
        """Whether this run was trained on that graph; without the curator's salt only the sizes can be compared."""
        promised = str(self.facts["commitment"])
        if not (self.folder / CURATOR).is_file():
            return (len(graph.entities), len(graph.relations)) == (
                self.facts["entities"],
                self.facts["relations"],
            )
        try:
            salt = json.loads((self.folder / CURATOR).read_text(encoding="utf-8")).get("salt")
            return (graph.fingerprint if salt is None else commitment(graph, salt)) == promised
        except (ValueError, TypeError, AttributeError):
            raise RunError(
                f"{self.folder / CURATOR} is damaged: which graph this run is of cannot be told."
            ) from None

    @property
    def graph_source(self) -> str:
        """Where the graph was read from."""
        source = str(self.facts["graph"])
        if not source:
            raise RunError(f"{self.folder} was trained on a graph in memory. Name it with graph= or --graph.")
        if "://" in source or source.startswith("builtin:"):
            return source
        return os.path.normpath(self.folder.resolve() / source)

    @cached_property
    def known(self) -> Ranker | None:
        """The known statements, to leave them out of answers; None if the graph is not at hand.

        In a run with a guarantee only unrestricted ones: an answer that is missing would betray a confidential one.
        """
        from veilgraph.evaluate.ranking import Ranker

        if self.held is None:
            if not self.facts["graph"]:
                return None
            if (
                "://" not in self.graph_source
                and ":" not in self.graph_source
                and not Path(self.graph_source).exists()
            ):
                return None
        from veilgraph.mark import unrestricted

        graph = self.graph()
        if self.guarantee != "none" and graph.marks is None:
            return None
        return Ranker(
            (graph if self.guarantee == "none" else unrestricted(graph)).triples, len(graph.relations)
        )

    # --- writing ------------------------------------------------------------------------------------------------
    def write_vectors(self, state: TrainingState, model: Model) -> None:
        """Write what was learnt (relations last: the run is finished when they are there)."""
        best = state.result
        write_tensors(self.folder / ENTITIES, {"rows": best.entities})
        weights = {name: w for name, w in best.weights.items() if name != "text.structure"}  # is in the rows
        if weights:
            write_tensors(self.folder / WEIGHTS, weights)
        relations = {"rows": best.relations}
        if model.relation_scale is not None:
            relations["scale"] = model.relation_scale
        write_tensors(self.folder / RELATIONS, relations)
        (self.folder / "checkpoint.safetensors").unlink(missing_ok=True)

    def forget_after(self, epoch: int) -> None:
        """Drop trace lines later than the checkpoint: those epochs are run again."""
        kept = (line for line in self.trace if line.get("epoch", 0) <= epoch)
        write_text(self.folder / TRACE, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))

    def evaluate(self, split: str = "test", **options: Any) -> dict[str, Any]:
        """Filtered link-prediction metrics on a split of the run's graph (see evaluate.evaluate)."""
        from veilgraph.evaluate import evaluate

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
        from veilgraph.evaluate.predict import DESCRIBED, predict

        if describe is not None and head is None and tail is None:
            head = DESCRIBED
        return predict(self, head, relation, tail, describe=describe, top=top, known=known)


def open_run(folder: str | Path) -> Run:
    """A run folder that exists, to evaluate, query or export."""
    return Run.open(folder)
