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

if TYPE_CHECKING:
    from veilgraph.models.parameters import Parameters
    from veilgraph.runs import Run


def describe(run: Run, texts: Sequence[str]) -> Tensor:
    """``[texts, width]``: what the run's projection makes of these texts. Post-processing of what was released."""
    if run.config.text is None:
        raise RunError(
            f"{run.folder} was not trained on descriptions: it knows only the entities of its graph. Train with --text."
        )
    if any(not one.strip() for one in texts):
        raise InputError("a description is empty: there is nothing to tell an entity by.")
    return new_rows(text.encoder(run.config.text, run.config.text_vectors), texts, run.parameters.weights)


def with_described(run: Run, words: str) -> Parameters:
    """The learnt tables with one more entity, the last one: the one these words describe."""
    return replace(run.parameters, entities=torch.cat([run.parameters.entities, describe(run, [words])]))
