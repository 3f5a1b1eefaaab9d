"""What is believed of answers: right on average, for confidential statements, whatever they are like."""

from __future__ import annotations

import numpy as np
import pytest

from tests.privacy.meters import OpenMeter
from veilgraph.account.promise import Promise
from veilgraph.load import load, split
from veilgraph.mark import mark, unrestricted
from veilgraph.noise.gauss import source
from veilgraph.release.belief import SMALLEST, believe
from veilgraph.release.response import Questions, respond


def asked(epsilon: float, share: float = 0.5):  # type: ignore[no-untyped-def]
    graph = split(load("builtin:hospital", patients=800), valid=0.05, test=0.05)
    graph = graph.with_marks(mark(graph, random_share=share))
    public = unrestricted(graph)
    questions = Questions.about(public, np.ones(len(graph.relations), bool), epsilon)
    promise = Promise(
        1000.0,
        1,
        len(graph.entities),
        len(graph.relations),
        epsilon,
        mechanism="respond",
        answer_epsilon=epsilon,
    )
    yes = respond(graph, questions, promise, OpenMeter(source(insecure_seed=3)))
    return graph, questions, yes


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_probabilities_are_right_on_average(epsilon: float) -> None:
    graph, questions, yes = asked(epsilon)
    found = believe(questions, yes, epsilon, [], np.random.default_rng(0))
    secret = graph.keys(graph.train[graph.secret("train")])
    true = np.isin(graph.keys(found.statements), secret)
    assert (found.probability >= SMALLEST).all()
    assert found.probability.sum() == pytest.approx(true.sum(), rel=0.15)
    for low, high in ((0.05, 0.3), (0.3, 0.7), (0.7, 1.0)):
        within = (found.probability >= low) & (found.probability < high)
        if within.sum() > 200:
            assert found.probability[within].mean() == pytest.approx(true[within].mean(), abs=0.12)
    assert (found.learnt <= found.probability + 1e-6).all()


def test_unrestricted_statements_are_not_believed_again() -> None:
    graph, questions, yes = asked(2.0)
    found = believe(questions, yes, 2.0, [], np.random.default_rng(0))
    known = graph.keys(graph.train[~graph.secret("train")])
    assert not np.isin(graph.keys(found.statements), known).any()
    assert len(np.unique(graph.keys(found.statements))) == len(found.statements)


def test_nothing_asked_is_nothing_believed() -> None:
    graph, _, _ = asked(2.0)
    questions = Questions.about(unrestricted(graph), np.zeros(len(graph.relations), bool), 2.0)
    assert len(questions.cells) == 0
    found = believe(questions, np.empty(0, np.int64), 2.0, [], np.random.default_rng(0))
    assert len(found.statements) == 0
