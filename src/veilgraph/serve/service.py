"""What the service knows and answers, without any network: everything is read once, lists are made for a batch at a time."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.errors import PrivacyError, UsageError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.recommend import Shelf, readable
from veilgraph.runs import CONFIG, ENTITIES, MARGINALS, RELATIONS, VOCABULARY, WEIGHTS, Run
from veilgraph.sanitise import epsilon, sanitisers
from veilgraph.sanitise.lists import learnt
from veilgraph.sanitise.people import Policy
from veilgraph.serve.store import Question, Settled, Store


@dataclass(frozen=True)
class Terms:
    """On what terms lists are shown. A list is made of these and of nothing a client says but the person and the draw."""

    sanitise: str = ""  # as in veil sanitise --with; nothing: lists as the model makes them
    attribute: str | None = None
    everyone_told: bool = False
    relation: str | None = None
    top: int = 10
    known: bool = False
    user_budget: float = 10.0  # in ε, or in lists where there is no ε


@dataclass(frozen=True)
class Service:
    """A run, its shelf, the policy of its lists, and the store that remembers what was said about whom."""

    run: Run
    shelf: Shelf
    policy: Policy
    store: Store
    terms: Terms
    digest: str  # changes with the model, the graph and the terms: answers are stored under it

    @classmethod
    def open(
        cls, folder: str | Path, store: Store, terms: Terms, *, graph: str | Path | None = None
    ) -> Service:
        """Read a finished run and its graph; refuses, before anybody asks, terms that cannot be kept.

        Reads confidential data: none in a run that promises something (see recommend.readable), but for an attribute with
        ``everyone_told``. Releases: nothing yet.
        """
        opened = Run.open(folder)
        opened.require_finished()
        run = replace(opened, held=opened.graph(graph))
        if not terms.user_budget > 0:
            raise UsageError(f"a budget is a positive number, found {terms.user_budget:g}.")
        whole = run.graph()
        open_ = readable(run, whole)
        shelf = Shelf.of(run, open_, relation=terms.relation, splits=tuple(open_.splits))
        if terms.top < 1 or terms.top > len(shelf.items):
            raise UsageError(f"a list has between 1 and {len(shelf.items):,} items, found {terms.top}.")
        chain = sanitisers(terms.sanitise) if terms.sanitise else []
        cost = epsilon(chain)
        if (1.0 if cost is None else cost) > terms.user_budget:
            raise PrivacyError(
                f"one list costs {cost or 1:g}, more than the whole budget of {terms.user_budget:g}: nobody would get one."
            )
        plain = Policy(tuple(chain), np.full(len(shelf.users), -1), {})
        service = cls(run, shelf, plain, store, terms, _digest(run, terms))
        if any(one.needs_eraser for one in chain):
            service = replace(service, policy=service._learn(whole))
        service._make(np.array([0]))  # what cannot be made is refused now
        return service

    def _learn(self, whole: Any) -> Policy:
        """What sanitisers learn is learnt once and kept with the run, for the curator."""
        path = self.run.folder / f"policy-{self.digest[:16]}.safetensors"
        if path.is_file():
            tensors = {name: tensor.numpy() for name, tensor in read_tensors(path)[0].items()}
            return Policy.of(self.policy.chain, tensors)
        import torch

        made = learnt(
            self.shelf,
            self.policy.chain,
            whole,
            self.terms.attribute,
            everyone_told=self.terms.everyone_told,
        )
        write_tensors(
            path,
            {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in made.tensors().items()},
        )
        path.chmod(0o600)
        return made

    # --- facts --------------------------------------------------------------------------------------------------
    @property
    def epsilon(self) -> float | None:
        """ε of one list."""
        return epsilon(self.policy.chain)

    @property
    def cost(self) -> float:
        """What one list costs."""
        return 1.0 if self.epsilon is None else self.epsilon

    @property
    def unit(self) -> str:
        """What budgets are counted in."""
        return "lists" if self.epsilon is None else "ε"

    @property
    def promise(self) -> str:
        """Of one list, in words."""
        chain = self.policy.chain
        return (
            "; ".join(one.promise for one in chain) if chain else "nothing: lists are as the model makes them"
        )

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each user is, by name."""
        return {name: place for place, name in enumerate(self.run.entities.names(self.shelf.users))}

    # --- answers ------------------------------------------------------------------------------------------------
    def _make(self, places: np.ndarray) -> list[list[str]]:
        offers = self.shelf.part(places)
        free = int(offers.allowed(repeat=self.terms.known).sum(1).min())
        if free < self.terms.top:
            raise UsageError(
                f"somebody has only {free} items that a list could have, and lists are of {self.terms.top}. Lower --top."
            )
        lists = self.policy.lists(offers, places, top=self.terms.top, repeat=self.terms.known)
        names = self.run.entities.names(self.shelf.items[lists].ravel())
        return [names[i : i + self.terms.top] for i in range(0, len(names), self.terms.top)]

    def recommend(self, asked: Sequence[tuple[str, int]]) -> list[Settled]:
        """Lists for (user, draw), charged and stored before they are returned; what was answered is repeated.

        Releases: lists with the promise that is stated, each charged to its person.
        """
        digests = [
            hashlib.sha256(json.dumps([self.digest, user, draw]).encode()).hexdigest() for user, draw in asked
        ]
        there = self.store.answered(digests)
        new = [i for i, digest in enumerate(digests) if digest not in there]
        made = dict(zip(new, self._make(np.array([self.places[asked[i][0]] for i in new])))) if new else {}
        questions = [
            Question(user, digest, self.cost, made.get(i))
            for i, ((user, _), digest) in enumerate(zip(asked, digests))
        ]
        return self.store.settle(questions, self.terms.user_budget)

    def original(self, user: str) -> list[dict[str, Any]]:
        """The list as the model makes it, for curators. Nothing is charged: it must not be shown to others."""
        offers = self.shelf.part(np.array([self.places[user]]))
        columns = offers.best(self.terms.top, repeat=self.terms.known)[0]
        names = self.run.entities.names(self.shelf.items[columns])
        return [
            {"item": name, "rank": rank, "score": float(offers.scores[0, column])}
            for rank, (name, column) in enumerate(zip(names, columns), 1)
        ]

    def predict(
        self, head: str | None, relation: str, tail: str | None, top: int, *, curator: bool
    ) -> list[dict[str, Any]]:
        """Answers to (head, relation, ?) or (?, relation, tail).

        Confidential relations are refused to everybody. Readers cannot ask about people, nor are people among their
        answers: what the model says about a person is what the sanitised list is there to hide.
        """
        hidden = self.run.facts["may_be_confidential"]
        if self.run.relations.id(relation) >= 0 and (hidden == "any" or relation in hidden):
            raise PrivacyError(
                f"{relation} is confidential in this graph, so the service does not answer about it."
            )
        given = head if head is not None else tail
        if curator:
            return self.run.predict(head, relation, tail, top=top)
        if given in self.places:
            raise PrivacyError("what is said about a person is the sanitised list: ask /v1/recommend.")
        found = self.run.predict(
            head, relation, tail, top=min(len(self.run.entities), top + len(self.places))
        )
        kept = [row for row in found if row["entity"] not in self.places][:top]
        return [{**row, "rank": rank} for rank, row in enumerate(kept, 1)]

    def budget(self, user: str) -> dict[str, Any]:
        """What a person's lists have cost, and what is left."""
        return self.account(self.store.spent(user))

    def account(self, spent: float) -> dict[str, Any]:
        """The same for an amount; a budget without limit is null."""
        limit = None if math.isinf(self.terms.user_budget) else self.terms.user_budget
        left = None if limit is None else round(max(0.0, limit - spent), 6)
        return {"unit": self.unit, "cost": self.cost, "spent": spent, "budget": limit, "remaining": left}

    def statement(self) -> dict[str, Any]:
        """The run's certificate and the promise of its lists."""
        return {
            **self.run.certificate,
            "lists": {
                "sanitiser": self.terms.sanitise or "none",
                "promise": self.promise,
                "epsilon": self.epsilon,
                "may repeat known items": self.terms.known,
                **{
                    key: value
                    for key, value in self.account(0.0).items()
                    if key in ("unit", "cost", "budget")
                },
            },
        }


def _digest(run: Run, terms: Terms) -> str:
    """Of everything a list depends on; the size of the budget is not among it."""
    words = {key: value for key, value in sorted(vars(terms).items()) if key != "user_budget"}
    total = hashlib.sha256(json.dumps(words).encode())
    for name in (CONFIG, ENTITIES, RELATIONS, WEIGHTS, MARGINALS, VOCABULARY):
        path = run.folder / name
        if path.is_file():
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()
