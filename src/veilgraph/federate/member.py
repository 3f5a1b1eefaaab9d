"""A client without any network: a run folder that is trained round by round, with a ledger of its own.

What leaves it are rows after a flush: a function of noisy steps, of unrestricted statements and of what came from others.
Its vocabulary is public by contract (statements are what is protected), and the server sees it as tokens only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veilgraph.certify import certify
from veilgraph.errors import ConfigError, InputError, RunError, UsageError
from veilgraph.federate.names import tokens
from veilgraph.federate.protocols import judge
from veilgraph.federate.strategies import strategy
from veilgraph.federate.terms import Terms
from veilgraph.files import write_json
from veilgraph.load import Graph, load
from veilgraph.runs import CONFIG, METRICS, Run
from veilgraph.train import begin
from veilgraph.train.loop import Listener, Validation, run_epochs
from veilgraph.train.plan import OrdinaryPlan
from veilgraph.train.private.plan import PrivatePlan
from veilgraph.train.session import Session, regime

MEMBER = "member.json"  # the terms, and the last round that was trained


@dataclass
class Member:
    """One institution."""

    run: Run
    terms: Terms
    session: Session
    plan: OrdinaryPlan | PrivatePlan
    tokens: np.ndarray  # [rows, 16] of the shared rows
    last: int  # the last round that was trained

    @classmethod
    def join(
        cls, folder: str | Path, graph: Graph | str | Path, terms: Terms, secret: bytes, own: dict[str, Any]
    ) -> Member:
        """The client's run folder, new or as it was left; refuses terms other than those it began with.

        Reads confidential data: how many units there are (private trainings), charged. Releases: nothing yet.
        """
        path, found = Path(folder), load(graph)
        if (path / CONFIG).exists():
            run, (before, last) = Run.open(path), _read(path)
            if before != terms:
                raise RunError(
                    f"{folder} belongs to a federation on other terms. Join this one with another folder."
                )
            run = replace(run, held=run.graph(found))
        else:
            run, last = begin(found, out=path, **terms.settings(own)), 0
            _write(path, terms, 0)
        config = run.config
        units = float(run.facts.get("units", 0))
        session = Session.open(run.graph(), config, path, units)
        if config.order == "unrestricted-first":
            raise UsageError(
                "in a federation confidential and unrestricted steps are interleaved: leave --order out."
            )
        plan = (
            session.private_plan(session.public, config.epochs or 1)
            if session.private
            else session.ordinary_plan()
        )
        names = strategy(terms.strategy).names(run.graph(), reciprocal=bool(config.reciprocal))
        return cls(run, terms, session, plan, tokens(names, secret), last)

    @classmethod
    def open(cls, folder: str | Path, graph: Graph | str | Path, secret: bytes) -> Member:
        """A client that joined before."""
        return cls.join(folder, graph, _read(Path(folder))[0], secret, {})

    @property
    def shared(self) -> torch.Tensor:
        """The rows that are shared, in their table."""
        return strategy(self.terms.strategy).table(self.session.state.parameters)

    @property
    def spent(self) -> bool:
        """Whether the budget allows no further step."""
        return isinstance(self.plan, PrivatePlan) and self.plan.left == 0 and self.plan.paid == 0

    def take(self, rows: np.ndarray) -> None:
        """Put the federation's rows where one's own were; refuses rows that are not numbers or not as many."""
        table = self.shared
        if rows.shape != tuple(table.shape) or rows.dtype != np.float32 or not np.isfinite(rows).all():
            raise InputError(
                f"the server sent rows {rows.dtype} {rows.shape}, or some that are no numbers: expected float32 {tuple(table.shape)}."
            )
        table.copy_(torch.from_numpy(rows))

    def train(self, number: int, rows: np.ndarray, listener: Listener | None = None) -> np.ndarray | None:
        """The shared rows after this round's local epochs; None if the budget is spent. A round that was trained is not again.

        Reads confidential data: through the plan. Releases: the rows, with the guarantee of the regime, charged before any
        step is taken.
        """
        state, config = self.session.state, self.run.config
        if number < self.last:
            raise InputError(f"the server asks for round {number}, and {self.last} is done.")
        if number > self.last:
            if state.epoch >= (config.epochs or 0):
                return None
            self.take(rows)
            until = min(state.epoch + self.terms.local_epochs, config.epochs or 0)
            if isinstance(self.plan, PrivatePlan) and not self.plan.pay_epochs(state.epoch, until):
                return None
            run_epochs(
                self.plan,
                state,
                Validation(self.session.public, self.session.model, config, self.session.streams),
                config,
                self.run.folder,
                epochs=config.epochs or 0,
                until=until,
                listener=listener,
                checkpoint_seconds=float("inf"),
            )
            state.finished, self.last = False, number
            self._save()
        return self.shared.numpy().copy()

    def _save(self) -> None:
        state = self.session.state
        state.ledger = self.plan.ledger_mark()
        state.save(self.run.folder)
        _write(self.run.folder, self.terms, self.last)

    def validate(self, rows: np.ndarray, others: np.ndarray | None = None) -> dict[str, float] | None:
        """mrr and queries on unrestricted statements of the validation split, with these rows; None if there are none."""
        public = self.session.public
        if not len(public.splits.get("valid", ())):
            return None
        kept = self.shared.clone()
        try:
            self.take(rows)
            found = self._judge(public, others, "valid", self.run.config.validation_queries)["shared"]
        finally:
            self.shared.copy_(kept)
        return {"mrr": found["mrr"], "queries": found["queries"]}

    def finish(self, rows: np.ndarray, others: np.ndarray | None = None) -> dict[str, Any]:
        """Write the vectors and the certificate, and measure; figures stay in the folder, and are returned.

        Reads confidential data: the test split. Releases: nothing; what is returned is the client's.
        """
        self.take(rows)
        self.run.write_vectors(self.session.state, self.session.model)
        certify(self.run)
        graph, metrics = self.run.graph(), {}
        if len(graph.splits.get("test", ())):
            metrics = self._judge(graph, others, "test", None)
            write_json(self.run.folder / METRICS, metrics)
        return {"epsilon": self.run.epsilon, "guarantee": self.run.guarantee, **metrics}

    def _judge(self, graph: Graph, others: np.ndarray | None, split: str, most: int | None) -> dict[str, Any]:
        foreign = torch.from_numpy(others) if others is not None else None
        return judge(
            self.session.model,
            self.session.state.parameters,
            graph,
            reciprocal=bool(self.run.config.reciprocal),
            others=foreign,
            split=split,
            most=most,
        )

    @property
    def open_data(self) -> bool:
        """Whether nothing is promised, so that figures may be told."""
        return regime(self.run.config) == "none"


def _read(folder: Path) -> tuple[Terms, int]:
    try:
        found = json.loads((folder / MEMBER).read_text(encoding="utf-8"))
        return Terms.of(str(found["terms"])), int(found["round"])
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        raise RunError(
            f"{folder} is not the folder of a client of a federation: {MEMBER} is missing or damaged."
        ) from None


def _write(folder: Path, terms: Terms, last: int) -> None:
    write_json(folder / MEMBER, {"terms": terms.text(), "round": last}, mode=0o600)
