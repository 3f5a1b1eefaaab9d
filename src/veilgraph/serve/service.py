"""What the service knows and answers, without any network: everything is read once, lists are made for a batch at a time."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph import machine
from veilgraph.disk import digest as digest_of
from veilgraph.errors import ConfigError, PrivacyError, RunError, StorageError, UsageError, VerificationError
from veilgraph.files import read_arrays, write_arrays
from veilgraph.load.graph import Graph
from veilgraph.recommend import Shelf, readable
from veilgraph.recommend.catalogue import catalogue
from veilgraph.recommend.shelf import Queries
from veilgraph.run.run import Run
from veilgraph.sanitise import epsilon, promise, sanitisers
from veilgraph.sanitise.lists import decided_from, learnt
from veilgraph.sanitise.people import Policy
from veilgraph.serve.store import Question, Settled, Store, millionths

FIRST = 50  # answers beside those that are wanted, which may be people
KEPT = "2"  # the version of what a service keeps
SHARE, FEWEST = 0.1, 100  # of all budgets, and in lists: what a key may spend in a day where nobody says


@dataclass(frozen=True)
class Terms:
    """On what terms lists are shown. A list is made of these and of nothing a client says but the person and the draw."""

    sanitise: str = ""  # as in veil sanitise --with; nothing: lists as the model makes them
    attribute: str | None = None
    everyone_told: bool = False
    relation: str | None = None
    catalogue: str | None = None  # the public list of all items (recommend/catalogue.py)
    top: int = 10
    known: bool = False
    user_budget: float = 10.0  # in ε, or in lists where there is no ε
    key_budget: float | None = (
        None  # of all people's together, what one key may spend in a day; None: a tenth of all there is
    )


@dataclass(frozen=True)
class Service:
    """A run, its shelf, the policy of its lists, and the store that remembers what was said about whom."""

    run: Run
    shelf: Shelf
    policy: Policy
    store: Store
    terms: Terms
    digest: str  # changes with the model, the graph and the terms: answers are stored under it
    certificate: dict[str, Any]
    places: dict[str, int]  # where each user is who has enough left to offer, by name
    people: np.ndarray  # [entities] bool: users, and whatever stands where users stand
    about_people: np.ndarray  # [relations] bool: people stand on a side of it

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
        for budget in (terms.user_budget, terms.key_budget):
            if budget is not None and not budget > 0:
                raise ConfigError(f"a budget is a positive number, found {budget:g}.")
        whole, digest = run.graph(), _digest(run, terms)
        open_ = readable(run, whole)
        kept = _read_kept(_kept(run, digest))
        queries = Queries(kept["queries"], kept["counts"]) if kept is not None else None
        shelf = Shelf.of(
            run,
            open_,
            relation=terms.relation,
            splits=tuple(open_.splits),
            queries=queries,
            listed=terms.catalogue,
        )
        if terms.top < 1 or terms.top > len(shelf.items):
            raise ConfigError(f"a list has between 1 and {len(shelf.items):,} items, found {terms.top}.")
        chain = sanitisers(terms.sanitise) if terms.sanitise else []
        cost = 1.0 if epsilon(chain) is None else float(epsilon(chain) or 0)
        if millionths(cost, ROUND_CEILING) > millionths(terms.user_budget, ROUND_FLOOR):
            raise PrivacyError(
                f"one list costs {cost:g}, more than the whole budget of {terms.user_budget:g}: nobody would get one."
            )
        learns = any(one.needs_eraser for one in chain)
        if terms.attribute is not None and not learns:
            raise UsageError(
                f"no sanitiser of {terms.sanitise or 'none'!r} learns from an attribute: leave --attribute out."
            )
        needed = terms.top * max((one.needs for one in chain), default=1)
        enough = shelf.free(repeat=terms.known) >= needed
        if not enough.any():
            raise UsageError(f"nobody has {needed} items left that a list could have. Lower --top.")
        names = run.entities.names(shelf.users)
        people, about_people = people_of(open_, shelf.relation)
        if kept is not None:
            policy = Policy.of(chain, kept)
        else:
            policy = learnt(shelf, chain, whole, terms.attribute, everyone_told=terms.everyone_told)
            _write_kept(_kept(run, digest), shelf, policy)
        service = cls(
            run=run,
            shelf=shelf,
            policy=policy,
            store=store,
            terms=terms,
            digest=digest,
            certificate=run.certificate,
            places={name: place for place, name in enumerate(names) if enough[place]},
            people=people,
            about_people=about_people,
        )
        if not shelf.blocks:
            machine.prepare(1)  # the other cores are for the network and for other servers
        service._make(np.flatnonzero(enough)[:1])  # what cannot be made is refused now
        return service

    # --- facts --------------------------------------------------------------------------------------------------
    @cached_property
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

    @cached_property
    def promise(self) -> str:
        """Of one list, in words."""
        return promise(self.policy.chain)

    # --- answers ------------------------------------------------------------------------------------------------
    def _make(self, places: np.ndarray) -> list[list[str]]:
        offers = self.shelf.part(places)
        lists = self.policy.lists(offers, places, top=self.terms.top, repeat=self.terms.known)
        return [[self.names[column] for column in row] for row in lists.tolist()]

    @cached_property
    def names(self) -> list[str]:
        """Of the items."""
        return self.run.entities.names(self.shelf.items)

    @property
    def key_budget(self) -> float:
        """What new lists may cost that are asked for with one key in a day."""
        if self.terms.key_budget is not None:
            return self.terms.key_budget
        return max(FEWEST * self.cost, len(self.places) * self.terms.user_budget * SHARE)

    def recommend(self, asked: Sequence[tuple[str, int, str]]) -> list[Settled]:
        """Lists for (user, draw, name of the key), charged and stored before they are returned; what was answered is repeated.

        Where chance has no part in a list another draw is the same list, and is answered, and charged, as such.

        Releases: lists with the promise that is stated, each charged to its person.
        """
        chance = any(one.draws for one in self.policy.chain)
        digests = [
            hashlib.sha256(json.dumps([self.digest, user, draw if chance else 1]).encode()).hexdigest()
            for user, draw, _ in asked
        ]
        there = self.store.answered(digests)
        new = [i for i, digest in enumerate(digests) if digest not in there]
        made = dict(zip(new, self._make(np.array([self.places[asked[i][0]] for i in new])))) if new else {}
        questions = [
            Question(self._account(user), digest, self.cost, made.get(i), key)
            for i, ((user, _, key), digest) in enumerate(zip(asked, digests))
        ]
        return self.store.settle(questions, self.terms.user_budget, self.key_budget)

    def original(self, user: str) -> list[dict[str, Any]]:
        """The list as the model makes it, for curators. Nothing is charged: it must not be shown to others."""
        offers = self.shelf.part(np.array([self.places[user]]))
        columns = offers.best(self.terms.top, repeat=self.terms.known)[0]
        return [
            {"item": self.names[column], "rank": rank, "score": float(offers.scores[0, column])}
            for rank, column in enumerate(columns, 1)
        ]

    def predict(
        self, head: str | None, relation: str, tail: str | None, top: int, *, curator: bool
    ) -> list[dict[str, Any]]:
        """Answers to (head, relation, ?) or (?, relation, tail).

        Confidential relations are refused to everybody. Readers cannot ask about people, nor are people among their
        answers: what the model says about a person is what the sanitised list is there to hide.
        """
        machine.prepare(1)
        hidden, number = self.run.facts["may_be_confidential"], self.run.relations.id(relation)
        if hidden == "any" or relation in hidden:
            raise PrivacyError(
                f"{relation} is confidential in this graph, so the service does not answer about it."
            )
        if curator or (head is None) == (tail is None):
            return self.run.predict(head, relation, tail, top=top)
        given = self.run.entities.id(str(head if head is not None else tail))
        if self.people[given] or self.about_people[number]:
            raise PrivacyError("what is said about a person is the sanitised list: ask /v1/recommend.")
        kept: list[dict[str, Any]] = []
        asked, every = top + FIRST, len(self.run.entities)
        while len(kept) < top:
            found = self.run.predict(head, relation, tail, top=min(asked, every))
            ids = self.run.entities.ids(row["entity"] for row in found)
            kept = [row for row, person in zip(found, self.people[ids]) if not person][:top]
            if len(found) < asked:  # there are no more
                break
            asked *= 8
        return [{**row, "rank": rank} for rank, row in enumerate(kept, 1)]

    def _account(self, user: str) -> str:
        """What a person's charges are kept under: ε and lists are not added up."""
        return json.dumps([self.unit, user])

    def budget(self, user: str) -> dict[str, Any]:
        """What a person's lists have cost, and what is left."""
        return self.account(self.store.spent(self._account(user)))

    def account(self, spent: float) -> dict[str, Any]:
        """The same for an amount; a budget without limit is null."""
        limit = None if math.isinf(self.terms.user_budget) else self.terms.user_budget
        left = None if limit is None else round(max(0.0, limit - spent), 6)
        return {"unit": self.unit, "cost": self.cost, "spent": spent, "budget": limit, "remaining": left}

    def statement(self) -> dict[str, Any]:
        """The run's certificate and the promise of its lists."""
        return {
            **self.certificate,
            "lists": {
                "sanitiser": self.terms.sanitise or "none",
                "promise": self.promise,
                "epsilon": self.epsilon,
                "decided_from": decided_from(self.shelf, self.policy.chain, self.terms.relation),
                "may repeat known items": self.terms.known,
                **{
                    key: value
                    for key, value in self.account(0.0).items()
                    if key in ("unit", "cost", "budget")
                },
            },
        }


def people_of(graph: Graph, relation: int) -> tuple[np.ndarray, np.ndarray]:
    """``[entities]`` bool: heads of the relation from users to items, and all that stand on a side of any relation where
    one of them stands; ``[relations]`` bool: such relations.

    Rather too many than too few: what the model says about them is not for readers.
    """
    heads, relations, tails = graph.triples[:, 0], graph.triples[:, 1], graph.triples[:, 2]
    people = np.zeros(len(graph.entities), bool)
    people[heads[relations == relation]] = True
    about = np.zeros(len(graph.relations), bool)
    while True:
        before = int(people.sum())
        for side in (heads, tails):
            with_people = np.bincount(relations[people[side]], minlength=len(about)) > 0
            people[side[with_people[relations]]] = True
            about |= with_people
        if int(people.sum()) == before:
            return people, about


def _digest(run: Run, terms: Terms) -> str:
    """Of everything a list depends on (the size of budgets is not among it); raises if a file is not the certified one."""
    words = {
        key: value for key, value in sorted(vars(terms).items()) if key not in ("user_budget", "key_budget")
    }
    if terms.catalogue is None:  # (so that answers given before there were catalogues stay what they are)
        del words["catalogue"]
    else:
        words["catalogue"] = hashlib.sha256(catalogue(run.entities, terms.catalogue).tobytes()).hexdigest()
    hashes = dict(run.certificate.get("hashes", {}))
    for name, promised in hashes.items():
        try:
            found = digest_of(run.folder / name)
        except OSError:
            found = "nothing"
        if found != promised:
            raise VerificationError(
                f"{run.folder / name} is not the file the certificate speaks of: it was changed."
            )
    return hashlib.sha256(json.dumps([words, hashes], sort_keys=True).encode()).hexdigest()


def _kept(run: Run, digest: str) -> Path:
    """Where a service keeps what it made at its first start."""
    return run.folder / f"served-{digest[:16]}.safetensors"


def _read_kept(path: Path) -> dict[str, np.ndarray] | None:
    """Query vectors and what sanitisers learnt; None if there is no such file, or a damaged one (its sum is against damage: who can
    write into the run folder could change the model as well), or one of an earlier version."""
    with suppress(OSError, RunError):
        arrays, about = read_arrays(path)
        if about.get("kept") == KEPT:
            return arrays
    return None


def _write_kept(path: Path, shelf: Shelf, policy: Policy) -> None:
    """For the curator only; a folder that cannot be written to only makes starting slower."""
    arrays = {"queries": shelf.queries.users, "counts": shelf.queries.items, **policy.tensors()}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with suppress(StorageError):
        write_arrays(path, arrays, {"kept": KEPT})
