"""Rows of entities that were never in the graph, by what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from veilgraph.errors import InputError, RunError
from veilgraph.models import text
from veilgraph.models.text.rows import new_rows
from veilgraph.models.text.vectors import clean, source

if TYPE_CHECKING:
    from veilgraph.models.parameters import Parameters
    from veilgraph.run.run import Run


def describe(run: Run, texts: Sequence[str]) -> Tensor:
    """``[texts, width]``: what the run's projection makes of these texts. Post-processing of what was released."""
    if run.config.text is None:
        raise RunError(
            f"{run.folder} was not trained on descriptions: it knows only the entities of its graph. Train with --text."
        )
    if any(not isinstance(one, str) or not clean(one) for one in texts):
        raise InputError("a description is empty: there is nothing to tell an entity by.")
    encoder = text.encoder(run.config.text, run.config.text_vectors)
    now, then = source(encoder.vectors).identity, run.facts.get("vectors")
    if now != then:
        raise RunError(
            f"{run.folder} was trained on vectors of {then}, here are those of {now}: what was learnt does not fit them."
        )
    return new_rows(encoder, [clean(one) for one in texts], run.parameters.weights)


def with_described(run: Run, words: str) -> Parameters:
    """The learnt tables with one more entity, the last one: the one these words describe."""
    return replace(run.parameters, entities=torch.cat([run.parameters.entities, describe(run, [words])]))
