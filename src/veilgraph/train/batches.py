"""What a step is about: statements held against wrong answers, questions held against everybody, or entities with labels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Keep(NamedTuple):
    """Dropout: what the rows asked about, and the query vectors made from them, are multiplied with (0 or 1/kept)."""

    source: Tensor  # [questions, d]
    query: Tensor  # [questions, d]


class TripleBatch(NamedTuple):
    """Statements ``[b, 3]`` (head, relation, tail) and negatives ``[2·chunks, k]``, tail side first; b = chunks · size.

    ``weight[b]`` is how probable each statement is, and 0 for those that only fill the last chunk.
    """

    triples: Tensor
    negatives: Tensor
    weight: Tensor | None = None
    keep: Keep | None = None


class QueryBatch(NamedTuple):
    """Distinct questions (source, relation, ?) and their answers, ``answers[i]`` belonging to question ``owner[i]``.

    ``backward`` tells which questions ask for a head, ``inverse`` which do so through ``compose_inverse`` (none, if
    relations are reciprocal). ``weight`` is how probable each answer's statement is; None: all are certain.
    """

    source: Tensor
    relation: Tensor
    inverse: Tensor
    owner: Tensor
    answers: Tensor
    keep: Keep | None = None
    backward: Tensor = torch.empty(0, dtype=torch.bool)
    weight: Tensor | None = None


class LabelBatch(NamedTuple):
    """Entities whose labels are asked for."""

    entities: Tensor  # [n]


Batch = TripleBatch | QueryBatch
