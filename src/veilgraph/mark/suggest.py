"""What unrestricted statements give away: predicates, and paths of two, from which confidential ones can be guessed.

Differential privacy says nothing about statements nobody marked. If everyone on ward 3 has the same disease, naming the
ward names the disease. For every confidential relation and every unrestricted way from a person to a value, a guesser is
built: among the others with that value (the person is left out), which confidential value is commonest? People whose
secret is guessed right, with enough confidence and better than the commonest secret of all would be, are *exposed*.

Many ways are tried, and on few people some guess well by luck. So guesses are also learnt from one half of the people and
tried on the other: if a value had nothing to do with the secret, they would be right as often as the secret is common. The
chance of as many right ones (binomial; times two for the halves, times the number of ways) is reported, and ways for
which it is not small are left out.

Reads confidential data: all of it, without noise. For the curator; nothing of it is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from veilgraph.errors import ConfigError, UsageError
from veilgraph.load import Graph, load
from veilgraph.mark.rules import matching, unrestricted

LARGEST = 20_000_000  # entries of a product of two steps; larger ones are not followed
PROPOSED = (
    "that {relation} is confidential: proposed by veil mark suggest, which reads confidential statements"
)
PATHS = 400  # of two steps, those over most people first


@dataclass(frozen=True)
class Suggestion:
    """One way to guess one confidential relation."""

    confidential: str
    path: tuple[str, ...]  # relations from the person on; ^ means against its direction
    exposed: int  # people whose secret is guessed right
    by_chance: int  # of them, by the commonest secret of all
    people: int  # with this kind of secret
    confidence: float  # share of right guesses among those made
    lift: float  # of the guesses: how many times likelier than for anybody
    luck: float  # the chance that any of the ways would do as well if none told anything (at most)
    example: str

    @property
    def rule(self) -> dict[str, str]:
        """The marking that closes this way: its first step."""
        return {"relation": self.path[0].removeprefix("^")}

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "path": list(self.path), "rule": self.rule}


def suggest(
    graph: Graph | str | Path,
    relations: Sequence[str] = (),
    *,
    confidence: float = 0.5,
    lift: float = 2.0,
    support: int = 5,
    steps: int = 2,
    luck: float = 0.05,
) -> list[Suggestion]:
    """Ways from a person to a secret, the most dangerous first; those that may be ``luck`` are left out.

    Secrets are the confidential statements of a marked graph, or those of ``relations``. A guess is made where at least
    ``support`` others share the value and ``confidence`` of them share the secret, ``lift`` times more than of all people.
    """
    graph = load(graph)
    if relations:
        secret = np.isin(graph.train[:, 1], matching(graph, relations))
        hidden, seen = graph.train[secret], graph.train[~secret]
    elif graph.marks is not None:
        hidden, seen = graph.train[graph.secret("train")], unrestricted(graph).train
    else:
        raise UsageError(
            "nothing is marked: mark the graph first, or name confidential relations with --relation."
        )
    if not 0 <= confidence <= 1 or not 0 <= luck <= 1 or not lift >= 0 or support < 0:
        raise ConfigError(
            f"confidence and luck are shares between 0 and 1, lift and support 0 or more; found {confidence}, {luck}, {lift} and {support}."
        )
    if steps not in (1, 2):
        raise ConfigError(f"paths have one or two steps, found {steps}")
    names, found, tried = list(graph.relations), [], 0
    demands = _Demands(confidence, lift, support)
    ways = _Ways(seen, len(graph.entities), names)
    for relation in np.unique(hidden[:, 1]):
        target = _matrix(hidden[hidden[:, 1] == relation][:, [0, 2]], len(graph.entities))
        people = np.flatnonzero(np.diff(target.indptr))
        for path, values in ways.all(people, steps):
            guess = _Guess(target, values, people, demands)
            tried += 1
            if guess.exposed > guess.by_chance:
                found.append(
                    Suggestion(
                        names[relation],
                        path,
                        guess.exposed,
                        guess.by_chance,
                        len(people),
                        guess.exposed / guess.made,
                        guess.mean_lift,
                        _luck(target, values, people, demands),
                        guess.example(graph, names[relation], path),
                    )
                )
    found = [replace(way, luck=min(1.0, tried * way.luck)) for way in found]
    found = [way for way in found if way.luck <= luck]
    return sorted(found, key=lambda s: (s.by_chance - s.exposed, len(s.path), s.path))


def proposal(graph: Graph, suggestions: Sequence[Suggestion], exposed: int = 1) -> dict[str, Any]:
    """The marks as they are plus the rules that close every way which exposes at least so many people."""
    marks = graph.marks
    rules = [dict(rule) for rule in marks.rules] if marks is not None else []
    decided = list(marks.decided_from) if marks is not None else []
    for suggestion in suggestions:
        if suggestion.exposed - suggestion.by_chance >= exposed and suggestion.rule not in rules:
            rules.append(suggestion.rule)
            decided.append(PROPOSED.format(**suggestion.rule))
    return {
        "unit": marks.unit if marks is not None else "statement",
        "per_unit": marks.per_unit if marks is not None else 1,
        "rules": rules,
        **({"decided_from": decided} if decided else {}),
    }


def _matrix(pairs: np.ndarray, entities: int) -> sparse.csr_matrix:
    found = sparse.csr_matrix(
        (np.ones(len(pairs), np.int32), (pairs[:, 0], pairs[:, 1])), shape=(entities, entities)
    )
    found.data[:] = 1
    return found


class _Ways:
    """Unrestricted ways from entities to values, one or two steps long, in either direction."""

    def __init__(self, statements: np.ndarray, entities: int, names: list[str]) -> None:
        self.single: dict[tuple[int, bool], sparse.csr_matrix] = {}
        self.names = names
        for relation in np.unique(statements[:, 1]):
            pairs = statements[statements[:, 1] == relation]
            self.single[(int(relation), False)] = _matrix(pairs[:, [0, 2]], entities)
            self.single[(int(relation), True)] = _matrix(pairs[:, [2, 0]], entities)

    def all(self, people: np.ndarray, steps: int) -> Iterator[tuple[tuple[str, ...], sparse.csr_matrix]]:
        """Paths and, for every person, the values at their end."""
        first = {}
        for way, matrix in self.single.items():
            own = matrix[people]
            if own.nnz:
                first[way] = own
                yield (self._name(way),), matrix
        if steps == 1:
            return
        pairs = [(a, b) for a in first for b in self.single if b != (a[0], not a[1])]
        pairs.sort(key=lambda pair: -int((np.diff(first[pair[0]].indptr) > 0).sum()))
        followed = 0
        for a, b in pairs:
            if followed == PATHS:
                return
            ends = np.diff(self.single[b].indptr)
            reach = int(ends[self.single[a].indices].sum())
            if not int(ends[first[a].indices].sum()) or reach > LARGEST:
                continue
            product = self.single[a] @ self.single[b]
            product.data[:] = 1
            followed += 1
            yield (self._name(a), self._name(b)), product

    def _name(self, way: tuple[int, bool]) -> str:
        return ("^" if way[1] else "") + self.names[way[0]]


def _largest(table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """For each row where its largest entry is, and how large."""
    return np.asarray(table.argmax(1)).ravel(), np.asarray(table.max(1).todense()).ravel()


class _Demands(NamedTuple):
    """Which guesses count."""

    confidence: float
    lift: float
    support: int

    def met(self, share: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """The share of right others, or 0 where it does not suffice."""
        return np.where((share >= self.confidence) & (gain >= self.lift), share, 0.0)


def _best_of_each(rows: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """Of every person's values the place of the most telling one, if it tells anything."""
    order = np.lexsort((-worth, rows))
    first = np.r_[True, np.diff(rows[order]) > 0] if len(rows) else np.zeros(0, bool)
    chosen = order[first]
    return np.asarray(chosen[worth[chosen] > 0])


def _luck(
    target: sparse.csr_matrix,
    values: sparse.csr_matrix,
    people: np.ndarray,
    demands: _Demands,
) -> float:
    """The chance that guesses learnt from one half would be as often right on the other, if values told nothing."""
    from scipy import stats  # slow to import

    halves = np.array_split(np.random.default_rng(0).permutation(people), 2)
    usual = np.asarray(target.sum(0)).ravel() / len(people)
    found = 1.0
    for learnt, tried in (halves, halves[::-1]):
        if not len(learnt) or not len(tried):
            continue
        best, most = _largest((values[learnt].T @ target[learnt]).tocsr())
        with_value = np.asarray(values[learnt].sum(0)).ravel()
        own = values[tried]
        rows, value = np.repeat(np.arange(len(tried)), np.diff(own.indptr)), own.indices
        enough = with_value[value] >= max(1, demands.support // 2)
        share = np.where(enough, most[value] / np.maximum(with_value[value], 1), 0.0)
        gain = share / np.maximum(usual[best[value]], 1e-12)
        chosen = _best_of_each(rows, demands.met(share, gain))
        if len(chosen):
            guess = best[value[chosen]]
            right = int(np.asarray(target[tried[rows[chosen]], guess]).sum())
            found = min(found, float(stats.binom.sf(right - 1, len(chosen), min(1.0, usual[guess].mean()))))
    return 2 * found


class _Guess:
    """The commonest secret among others with the same value, for every person."""

    def __init__(
        self,
        target: sparse.csr_matrix,
        values: sparse.csr_matrix,
        people: np.ndarray,
        demands: _Demands,
    ) -> None:
        with_value = np.asarray(values.sum(0)).ravel()  # entities that share a value
        together = (values[people].T @ target[people]).tocsr()  # value × secret
        best, most = _largest(together)
        size = together.shape
        second, next_most = _largest(together - sparse.csr_matrix((most, (np.arange(size[0]), best)), size))
        usual = np.asarray(target.sum(0)).ravel() / len(people)  # how common a secret is
        own = values[people]
        rows = np.repeat(np.arange(len(people)), np.diff(own.indptr))
        value = own.indices
        # The person is left out of the counts: without it the second secret may lead (or draw level: then it is taken).
        has_best, has_second = (
            np.asarray(target[people[rows], secret[value]]).ravel().astype(np.int64)
            for secret in (best, second)
        )
        without, without_next = most[value] - has_best, next_most[value] - has_second
        turned = without_next >= np.maximum(without, 1)
        guess, right = np.where(turned, second[value], best[value]), np.where(turned, has_second, has_best)
        others = with_value[value] - 1
        share = np.where(
            others >= demands.support, np.maximum(without, without_next) / np.maximum(others, 1), 0.0
        )
        gain = share / np.maximum(usual[guess], 1e-12)
        chosen = _best_of_each(rows, demands.met(share, gain))
        self.made, self.exposed = len(chosen), int(right[chosen].sum())
        commonest = int(usual.argmax())
        whose = people[rows[chosen]]
        self.by_chance = int(target[:, [commonest]].toarray()[whose].sum())
        self.mean_lift = float(gain[chosen].mean()) if len(chosen) else 0.0
        hits = chosen[right[chosen] > 0]
        strongest = hits[np.argmax(share[hits] * others[hits])] if len(hits) else None
        self._found = (
            None
            if strongest is None
            else (value[strongest], guess[strongest], share[strongest], others[strongest], gain[strongest])
        )

    def example(self, graph: Graph, relation: str, path: tuple[str, ...]) -> str:
        """The strongest guess in words; names no person."""
        assert self._found is not None
        value, guess, share, others, gain = self._found
        return (
            f"of {int(others) + 1:,} entities that reach {graph.entities[value]} by {' / '.join(path)}, {share:.0%} have "
            f"{relation} {graph.entities[guess]} ({gain:.1f} × as many as of all)"
        )
