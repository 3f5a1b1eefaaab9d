"""Protects one statement: bounded messages along confidential statements are summed once, with noise, and used ever after.

(The idea is GAP's: Sajadmanesh et al. 2023, arXiv 2203.00949.) Labels and unrestricted statements may be read freely. From them every
entity gets a message of norm at most one: the labels that reach it over unrestricted statements or, where labelled entities have no
unrestricted statement, its place among them. A release sums the messages of the tails at the heads of confidential statements
(or of heads at tails, or both), for every entity, and adds Gaussian noise to every number: a statement changes one row of the sum by
at most one (both: two rows), so the noise has the multiplier that is charged times 1 (both: √2). Later releases send what earlier ones
found. Where labels are sent, entities may be taken apart by their role (``roles``): how is chosen from labels and unrestricted
statements alone, and a statement is still one between two entities. The classifier reads releases, unrestricted statements and labels
alone, so it costs nothing more, and neither do its answers for all entities.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from veilgraph.account.calibrate import calibrate
from veilgraph.account.events import gaussian, repeated
from veilgraph.account.prices import Asked
from veilgraph.classify.adjacency import along
from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees.base import Book, Guarantee, Outcome, Task
from veilgraph.classify.perceptron import fit, standardised
from veilgraph.classify.places import places, unit
from veilgraph.classify.roles import best_view
from veilgraph.classify.spread import Spread
from veilgraph.errors import BudgetError, VerificationError
from veilgraph.files import read_arrays, write_arrays
from veilgraph.layout import AGGREGATES as SUMS

SENSITIVITY = {"heads": 1.0, "tails": 1.0, "both": math.sqrt(2)}
TOLD = 0.5  # share of labelled entities with unrestricted statements from which on labels are what is sent
FEWEST, MOST = 8, 32  # numbers of a place that is sent: as many as labels, within these
SURE = 3.0  # messages about labels are this much longer before they are cut to norm one


class Edge(Guarantee):
    """One confidential statement."""

    name = "edge"
    unit = "statement"
    words = "one confidential statement is"
    mechanism = "sums of bounded messages, perturbed once"
    units = ("statement",)
    reads = ("into", "hops")
    public = ("labels of entities",)

    def learn(self, task: Task, config: ClassifyConfig, book: Book) -> Outcome:
        """Reads confidential data: statements, through noisy sums. Releases: the sums, the classifier and its answers."""
        known, entities = task.folds.train, task.nodes
        told = np.isin(known, task.unrestricted[:, [0, 2]]).mean() >= TOLD
        if told:
            view = best_view(task, config.seed)
            task, spread, free = view.task, view.spread, view.told
            sent = messages(np.exp(spread.labels(task.truth, known)), task)
        else:
            spread = Spread(task.unrestricted, task.nodes)
            width = min(max(len(task.labels.names), FEWEST), MOST)
            sent = free = places(task.unrestricted, task.nodes, width, config.hops, config.seed)
        sums = self._released(sent, task, config, book)
        rows = standardised(np.concatenate([free, *sums], 1))
        at = torch.from_numpy(known)
        head = fit(
            rows[at],
            torch.from_numpy(task.truth)[at],
            several=task.labels.several,
            between=64 if told else 0,
            epochs=150,
            rate=0.01,
            decay=1e-3 if told else 1e-2,
            dropout=0.3,
            seed=config.seed,
        )
        chances = head.chances(rows).numpy()
        answers = spread.smooth(chances, task.truth, known)[:entities]
        return Outcome(answers, head.tensors, open_scores=True)

    def _released(self, sent: np.ndarray, task: Task, config: ClassifyConfig, book: Book) -> list[np.ndarray]:
        """The noisy sums, from the folder if they were released before."""
        path, wanted = book.folder / SUMS, len(config.ways)
        if path.exists():
            arrays, facts = read_arrays(path)
            book.check(facts, path)
            found = [arrays.get(f"sum{number}", np.empty(0)) for number in range(wanted)]
            if any(len(rows) != len(sent) for rows in found):
                raise VerificationError(
                    f"{path} has sums of other entities than are asked for, so another version wrote it: choose another --out "
                    "(what was spent here adds to what is spent there)."
                )
            return found
        if book.ledger.found("sums") is not None:
            raise BudgetError(
                f"{book.folder} paid for its sums and was stopped before they were written: ε is spent. Choose another --out (what was "
                "spent here adds to what is spent there)."
            )
        before = book.spent
        multiplier = calibrate(
            lambda noise: [*before, repeated(wanted, gaussian(noise))], config.epsilon or 0.0, config.delta
        )
        charge = repeated(wanted, gaussian(multiplier))
        book.meter.pay(charge, f"{wanted} noisy sums of messages", sums=wanted)
        out: list[np.ndarray] = []
        for way in config.ways:
            exact = sums_of(sent, task.confidential, task.nodes, way)
            noise = book.meter.measure(Asked(SENSITIVITY[way], multiplier))[0]
            out.append(noise.on(exact).astype(np.float32))
            heard = unit(out[-1][:, : sent.shape[1]])
            sent = np.where(np.linalg.norm(sent, axis=1, keepdims=True) > 0, sent, heard)
        facts = {"noise_multiplier": repr(multiplier), **book.mark}
        write_arrays(path, {f"sum{number}": rows for number, rows in enumerate(out)}, facts)
        return out


def messages(chances: np.ndarray, task: Task) -> np.ndarray:
    """``[nodes, labels]`` of norm at most one: what is thought of a node's label beyond what is thought of everybody's."""
    away = SURE * (chances - task.truth[task.folds.train].mean(0))
    return away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1)


def sums_of(sent: np.ndarray, statements: np.ndarray, nodes: int, way: str) -> np.ndarray:
    """``[nodes, width]`` float64 (both: twice as wide), the sums of rows of norm at most one over these statements.

    Norms are bounded again here, on the very numbers that are summed: what is charged must not rest on a caller.
    """
    wide = sent.astype(np.float64)
    wide[~np.isfinite(wide).all(1)] = 0  # noise does not hide what is no number
    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1)
    ends = {"heads": [(2, 0)], "tails": [(0, 2)], "both": [(2, 0), (0, 2)]}[way]
    return np.concatenate([along(statements[:, a], statements[:, b], nodes) @ wide for a, b in ends], 1)
