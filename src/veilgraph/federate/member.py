"""A client without any network: a run folder that is trained round by round, with a ledger of its own.

What leaves it are rows after a flush: a function of noisy steps, of unrestricted statements and of what came from others.
Its vocabulary is public by contract (statements are what is protected), and the server sees it as tokens only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError, InputError, PrivacyError, RunError, UsageError
from veilgraph.federate.names import tokens
from veilgraph.federate.protocols import judge
from veilgraph.federate.strategies import strategy
from veilgraph.federate.terms import LARGEST, Terms
from veilgraph.files import write_json
from veilgraph.layout import CHECKPOINT, CONFIG, METRICS, VOCABULARY
from veilgraph.load import Graph, load
from veilgraph.models.parameters import Parameters
from veilgraph.run.facts import require_names, unbound
from veilgraph.run.run import Run
from veilgraph.run.vectors import write_vectors
from veilgraph.run.verify import certify
from veilgraph.train import begin
from veilgraph.train.loop import Listener, Validation, run_epochs
from veilgraph.train.plan import Plan
from veilgraph.train.session import Session

MEMBER = "member.json"  # the terms, and what the client said for itself


@dataclass
class Member:
    """One institution."""

    run: Run
    terms: Terms
    session: Session
    plan: Plan
    tokens: np.ndarray  # [rows, 16] of the shared rows, sorted: their order tells nothing about names
    order: np.ndarray  # [rows] where each of them is in the client's own table
    broken: bool = False  # something went wrong within a round: nothing leaves any more

    @classmethod
    def join(
        cls,
        folder: str | Path,
        graph: Graph | str | Path,
        terms: Terms,
        secret: bytes,
        own: dict[str, Any] | None,
    ) -> Member:
        """The client's run folder, new or as it was left; refuses terms or promises other than those it began with.

        Reads confidential data: how many units there are (private trainings), charged. Releases: nothing yet.
        """
        path, found = Path(folder), load(graph)
        if not (path / CONFIG).exists():
            run = begin(found, out=path, in_rounds=True, **terms.settings(own or {}))
            _write(path, terms, own or {})
        else:
            run = Run.open(path)
            run = replace(run, held=run.graph(found))
            _check_again(run, terms, own)
        config = run.config
        session = Session.open(run.graph(), config, path, float(run.facts.get("units", 0)))
        if config.order == "unrestricted-first":
            raise UsageError(
                "in a federation confidential and unrestricted steps are interleaved: leave --order out."
            )
        plan = session.plan()
        made = tokens(strategy(terms.strategy).names(run.graph(), config), secret)
        order = np.lexsort(made.T[::-1])
        return cls(run, terms, session, plan, made[order], order)

    @classmethod
    def open(cls, folder: str | Path, graph: Graph | str | Path, secret: bytes) -> Member:
        """A client that joined before."""
        return cls.join(folder, graph, _read(Path(folder))[0], secret, None)

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Where rows of the client's own table are among those it shares."""
        return np.argsort(self.order)[ids]

    def rows(self) -> np.ndarray:
        """The shared rows, in the order of their tokens."""
        return self._table.numpy()[self.order]

    @property
    def _table(self) -> torch.Tensor:
        return strategy(self.terms.strategy).table(self.session.state.parameters)

    def take(self, rows: np.ndarray) -> None:
        """Put the federation's rows where one's own were; refuses rows that are not as many, or no numbers to learn from.

        A client that takes no step keeps its own: others' rows would disturb its counts, and its relations could not follow them.
        """
        wanted = (len(self.order), self._table.shape[1])
        check_rows(rows, wanted)
        if not self.session.learns:
            return
        self._table[torch.from_numpy(self.order)] = torch.from_numpy(rows)
        self.session.rows.anchor = self._table.clone()
        self.session.rows.flush(self.session.state.parameters)

    def train(self, number: int, rows: np.ndarray, listener: Listener | None = None) -> np.ndarray | None:
        """The shared rows after this round's local epochs; None if the budget is spent. A round that was trained is not again.

        Reads confidential data: through the plan. Releases: the rows, with the guarantee of the regime, charged before any
        step is taken.
        """
        state, epochs = self.session.state, self.session.settings.steps.epochs
        if self.idle:
            raise InputError(f"{self.run.folder} takes no step, so it has nothing to send.")
        if self.broken:
            raise RunError(f"{self.run.folder}: a round was not finished. Start the client again.")
        if self.run.finished:
            return None
        if number < state.round:
            raise InputError(f"the server asks for round {number}, and {state.round} is done.")
        if number > self.terms.rounds:  # own epochs come after them, and are never sent
            raise InputError(f"the server asks for round {number} of {self.terms.rounds}.")
        if number > state.round:
            last = epochs - self.terms.own_epochs
            if state.epoch >= last or not self._advance(rows, number, self.terms.local_epochs, listener):
                return None
        return self.rows()

    def _advance(self, rows: np.ndarray, number: int, epochs: int, listener: Listener | None) -> bool:
        """Take rows, and so many epochs from there; False, with the rows taken, if the budget allows none."""
        state, settings = self.session.state, self.session.settings
        self.take(rows)
        until = min(state.epoch + epochs, settings.steps.epochs)
        if not self.plan.pay(state.epoch, until):
            return False
        self.broken, state.round = True, number
        run_epochs(
            self.plan,
            state,
            Validation(self.session.public, self.session.model, settings, self.session.streams),
            settings,
            self.run.folder,
            epochs=settings.steps.epochs,
            until=until,
            listener=listener,
            checkpoint_seconds=float("inf"),
        )
        state.finished, state.ledger = False, self.plan.ledger_mark()
        state.save(self.run.folder)  # the round and its rows, in one step
        self.broken = False
        return True

    def validate(self, rows: np.ndarray, others: np.ndarray | None = None) -> dict[str, float] | None:
        """mrr and queries on unrestricted statements of the validation split, with these rows; None if there are none."""
        public = self.session.public
        if self.run.finished or not len(public.splits.get("valid", ())) or self._figures is not None:
            return None
        with self.wearing(rows):
            found = self._judge(public, others, "valid", self.session.settings.judging.queries)["shared"]
        return {"mrr": found["mrr"], "queries": found["queries"]}

    @property
    def idle(self) -> bool:
        """Whether it takes no step and has nothing to send: all it promises is in noisy counts. By public settings alone."""
        return not self.session.learns

    @contextmanager
    def wearing(self, rows: np.ndarray) -> Iterator[Parameters]:
        """The client's tables with these shared rows where its own are, for as long as somebody looks."""
        state = self.session.state.parameters
        kept = (self._table.clone(), state.entities.clone())
        anchor = self.session.rows.anchor
        try:
            self.take(rows)
            yield state
        finally:
            self._table.copy_(kept[0])
            state.entities.copy_(kept[1])
            self.session.rows.anchor = anchor

    def finish(self, rows: np.ndarray, others: np.ndarray | None = None) -> dict[str, Any]:
        """Write the vectors and the certificate, and measure; figures stay in the folder, and are returned. Once: it is over then.

        Reads confidential data: the test split. Releases: nothing; what is returned is the client's.
        """
        if self.broken:
            raise RunError(f"{self.run.folder}: a round was not finished. Start the client again.")
        metrics: dict[str, Any] = {}
        graph = self.run.graph()
        if not self.run.finished:
            self._make_own(rows)
            if self._figures is not None:
                metrics = {"labels": self._figures}
            elif len(graph.splits.get("test", ())):
                metrics = self._judge(graph, others, "test", None)
            self.plan.end(self.session.state.epoch, "rounds are over")
            if metrics:
                write_json(self.run.folder / METRICS, metrics)
            write_vectors(self.run, self.session.state.result, self.session.model)
        certify(self.run)
        path = self.run.folder / METRICS
        if not metrics and path.exists():
            metrics = json.loads(path.read_text(encoding="utf-8"))
        return {"epsilon": self.run.epsilon, "guarantee": self.run.guarantee, **metrics}

    @property
    def _figures(self) -> dict[str, float] | None:
        """How good what was learnt is, where the task itself says so."""
        return self.plan.figures(self.session.state.parameters)

    def _make_own(self, rows: np.ndarray) -> None:
        """The federation's rows, and the epochs after them that are the client's alone."""
        state, last = self.session.state, self.terms.rounds + 1
        if state.round == last:
            return  # they were taken before a crash
        if not self.terms.own_epochs or not self._advance(rows, last, self.terms.own_epochs, None):
            self.take(rows)

    def _judge(self, graph: Graph, others: np.ndarray | None, split: str, most: int | None) -> dict[str, Any]:
        if others is not None:
            check_rows(others, (len(others), self._table.shape[1]))
            others = np.zeros_like(others) if self.idle else others  # (beside tables of zeros)
        return judge(
            self.session.model,
            self.session.state.parameters,
            graph,
            reciprocal=self.session.settings.scorer.reciprocal,
            others=torch.from_numpy(others) if others is not None else None,
            split=split,
            most=most,
        )

    @property
    def open_data(self) -> bool:
        """Whether nothing is promised, so that figures may be told."""
        return self.session.settings.open_data


def check_rows(rows: np.ndarray, wanted: tuple[int, int]) -> None:
    """Raise for rows that are not as many as they should be, or no numbers to learn from."""
    fits = rows.shape == wanted and rows.dtype == np.float32
    if not fits or not np.isfinite(rows).all() or (rows.size and float(np.abs(rows).max()) > LARGEST):
        raise InputError(
            f"the server sent rows {rows.dtype} {rows.shape}: expected float32 {wanted}, of numbers up to {LARGEST:g}."
        )


def _check_again(run: Run, terms: Terms, own: dict[str, Any] | None) -> None:
    """Raise if the folder is not of a client on these terms and promises."""
    folder = run.folder
    if not (folder / MEMBER).exists() and not (folder / CHECKPOINT).exists() and own is not None:
        wanted = TrainConfig.of(terms.settings(own)).as_dict()  # interrupted as it was made
        if any(value is not None and getattr(run.config, key) != value for key, value in wanted.items()):
            raise RunError(f"{folder} was begun on other terms. Join this one with another folder.")
        _write(folder, terms, own)
    before, said = _read(folder)
    if before != terms:
        raise RunError(f"{folder} belongs to a federation on other terms. Join this one with another folder.")
    if own is not None and own != said:
        raise RunError(
            f"{folder} was begun with {said or 'no promise'}, and now {own or 'no promise'} is asked for: what a client promises "
            "does not change. Join with another folder."
        )
    changed = unbound(run.ledger, run.config, run.facts, file=run.folder / CONFIG)
    if changed:
        raise RunError(f"{folder}: {'; '.join(changed)}. Undo the change, or join anew.")
    require_names(run.ledger, run.folder / VOCABULARY)
    if not run.in_place:
        raise PrivacyError(
            f"{folder} is a copy of the folder this client began in, or was moved or restored: what was spent there and here would add up. "
            "Go on where it began, or join anew with another folder."
        )


def terms_of(folder: Path) -> Terms:
    """What the federation agreed on that a client's folder belongs to."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[Terms, dict[str, Any]]:
    try:
        found = json.loads((folder / MEMBER).read_text(encoding="utf-8"))
        return Terms.of(str(found["terms"])), dict(found["own"])
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        raise RunError(
            f"{folder} is not the folder of a client of a federation: {MEMBER} is missing or damaged."
        ) from None


def _write(folder: Path, terms: Terms, own: dict[str, Any]) -> None:
    write_json(folder / MEMBER, {"terms": terms.text(), "own": own}, mode=0o600)
