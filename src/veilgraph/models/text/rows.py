"""An entity's row: gate · structure + (1 − gate) · description, the gate told by its text and by how much is known about it.

What is learnt is among the parameters' weights, under names that begin with ``text.``:

text.projection (text.hidden, …)   from features to rows (TextEncoder.rows)
text.gate                          features, log(1 + statements) and a bias → how much of the row is structure
text.structure                     a row for each entity
text.center, text.state.…          never moved: what features are measured from, and what the encoder learnt from texts alone

Statements are counted among those that may be read as they are. An entity without any is its description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from veilgraph.models.text.cache import STATE, encoded
from veilgraph.models.text.encoders.base import TextEncoder

PREFIX = "text."
GATE, STRUCTURE, CENTER = "text.gate", "text.structure", "text.center"
FROZEN = (CENTER, PREFIX + STATE)
MIXES = ("learnt", "average", "text")
CHUNK = 1 << 14  # entities whose rows are made at a time


@dataclass(frozen=True)
class Described:
    """The features of a graph's entities, and how rows are made from them."""

    encoder: TextEncoder
    features: Tensor  # [entities, width], measured from the center; or [entities, tokens, width]
    known: Tensor  # [entities] statements about each that may be read as they are
    mix: str

    def start(
        self, center: Tensor, state: Mapping[str, Tensor], out: int, hidden: int, rng: np.random.Generator
    ) -> dict[str, Tensor]:
        """Weights before the first step."""
        made = {
            PREFIX + name: tensor
            for name, tensor in self.encoder.start(self.features, out, hidden, rng).items()
        }
        made |= {CENTER: center, **{PREFIX + STATE + name: tensor for name, tensor in state.items()}}
        if self.mix != "text":
            drawn = rng.standard_normal((len(self.features), out), dtype=np.float32)
            made[STRUCTURE] = torch.from_numpy(drawn).mul_(1e-3)
        if self.mix == "learnt":
            made[GATE] = torch.zeros(self.features.shape[-1] + 2, 1)
        return made

    def described(self, ids: Tensor | slice, weights: Mapping[str, Tensor]) -> Tensor:
        """``[n, out]``: rows by text alone."""
        return self.encoder.rows(self.features[ids], learnt(weights))

    def gate(self, ids: Tensor | slice, weights: Mapping[str, Tensor]) -> Tensor:
        """``[n, 1]``: how much of a row is structure."""
        known = self.known[ids].unsqueeze(1)
        if self.mix == "text":
            return torch.zeros_like(known)
        if self.mix == "average":
            return (known > 0) * 0.5
        features = self.features[ids].float()
        mean = features if features.dim() == 2 else features.mean(1)
        inputs = torch.cat([mean, torch.log1p(known), torch.ones_like(known)], 1)
        return torch.sigmoid(inputs @ weights[GATE]) * (known > 0)

    def rows(self, ids: Tensor | slice, weights: Mapping[str, Tensor], shown: Tensor | None = None) -> Tensor:
        """``[n, out]``, differentiable; where ``shown`` is 0 an entity is its description, as if it were new."""
        described = self.described(ids, weights)
        if self.mix == "text":
            return described
        gate = self.gate(ids, weights) if shown is None else self.gate(ids, weights) * shown.unsqueeze(1)
        return gate * weights[STRUCTURE][ids] + (1 - gate) * described

    def every_row(self, weights: Mapping[str, Tensor]) -> Tensor:
        """``[entities, out]``"""
        with torch.no_grad():
            count = len(self.features)
            parts = [self.rows(slice(i, min(i + CHUNK, count)), weights) for i in range(0, count, CHUNK)]
            return torch.cat(parts)


def learnt(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights an encoder's rows are made with, by its own names for them."""
    return {name.removeprefix(PREFIX): tensor for name, tensor in weights.items() if name.startswith(PREFIX)}


def read(
    encoder: TextEncoder, texts: Sequence[str], most: int | None = None
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Features measured from a center, that center, and what the encoder learnt from the texts alone.

    ``most`` keeps so many principal directions: fewer numbers to learn, which under privacy is less noise. All is a function of texts.
    """
    features, state = encoded(encoder, texts)
    if encoder.layers:
        return features, torch.zeros(1), state
    mean = features.mean(0)
    middle = features - mean
    width = min(most or features.shape[1], features.shape[1])
    turn = torch.eye(features.shape[1])
    if width < features.shape[1]:
        turn = torch.linalg.svd(middle.T @ middle)[2][:width].T
    scale = torch.linalg.vector_norm(middle @ turn, dim=1).mean().clamp(min=1e-6)
    center = torch.cat([mean.unsqueeze(1), turn / scale], 1)  # [width before, 1 + width after]
    return measured(features, center), center, state


def measured(features: Tensor, center: Tensor) -> Tensor:
    """Features as they were measured in training."""
    return features if center.dim() == 1 else (features - center[:, 0]) @ center[:, 1:]


def new_rows(encoder: TextEncoder, texts: Sequence[str], weights: Mapping[str, Tensor]) -> Tensor:
    """``[texts, out]``: rows of entities that were never in the graph."""
    state = {
        name.removeprefix(PREFIX + STATE): tensor
        for name, tensor in weights.items()
        if name.startswith(PREFIX + STATE)
    }
    with torch.no_grad():
        features = measured(encoder.features(texts, state), weights[CENTER])
        return encoder.rows(features, learnt(weights))
