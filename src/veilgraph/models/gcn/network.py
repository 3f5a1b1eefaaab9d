"""Several convolutions over learnt rows, and the recipes under which they are a published model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from veilgraph import registry
from veilgraph.models.gcn.edges import Edges
from veilgraph.models.gcn.layer import BASES, PER_RELATION, SCALED, SHARED, Convolution
from veilgraph.models.gcn.scores import score


@dataclass(frozen=True)
class Recipe:
    """Which model a network is."""

    score: str = "transe"
    weights: str = SHARED
    bases: int = 0
    both_ways: bool = True
    uses_relations: bool = True
    moves_relations: bool = True
    alpha: float = 1.0  # weight of messages beside a node's own row

    def with_bases(self, count: int) -> Recipe:
        """The same with relation matrices that are mixtures of so many."""
        return replace(self, weights=BASES, bases=count) if count else self


class Published:
    """A network that was published, by its name."""

    name: ClassVar[str]
    recipe: ClassVar[Recipe]


class KEGCN(Published):
    """Messages are gradients of a triple score, with respect to the node and to the relation (Yu et al. 2021)."""

    name = "kegcn"
    recipe = Recipe()


class RGCN(Published):
    """A matrix for each relation (Schlichtkrull et al. 2018)."""

    name = "rgcn"
    recipe = Recipe("dot", PER_RELATION, uses_relations=False)


class WGCN(Published):
    """A number for each relation (Shang et al. 2019)."""

    name = "wgcn"
    recipe = Recipe("dot", SCALED, uses_relations=False)


class CompGCN(Published):
    """Nodes and relations composed before they are sent (Vashishth et al. 2020)."""

    name = "compgcn"
    recipe = Recipe("subtraction", moves_relations=False)


def recipe_of(name: str) -> Recipe:
    """The recipe of a published network."""
    found: Recipe = registry.find("convolutions", name).recipe
    return found


class Network(nn.Module):
    """Learnt rows for nodes and relations, convolutions between the ``widths``; the last one ends without an activation.

    A labelled node's row can memorise its label, which helps nobody else. Two remedies: with ``by_others`` a node's own row has no
    part in its first layer, and while training a share ``hidden`` of all rows is zero. With ``skip`` the learnt rows are added to what
    is made of them.
    """

    def __init__(
        self,
        recipe: Recipe,
        nodes: int,
        relations: int,
        widths: Sequence[int],
        *,
        by_others: bool = False,
        hidden: float = 0.0,
        dropout: float = 0.0,
        skip: bool = False,
        chunk: int | None = None,
    ) -> None:
        super().__init__()
        self.recipe, self.hidden, self.skip = recipe, hidden, skip
        scale = widths[0] ** -0.5
        self.nodes = nn.Parameter(torch.empty(nodes, widths[0]).normal_(std=scale))
        self.relations = nn.Parameter(torch.empty(relations, widths[0]).normal_(std=scale))
        self.layers = nn.ModuleList(
            Convolution(
                score(recipe.score),
                width,
                out,
                relations,
                weights=recipe.weights,
                bases=recipe.bases,
                alpha=recipe.alpha,
                both_ways=recipe.both_ways,
                uses_relations=recipe.uses_relations,
                moves_relations=recipe.moves_relations,
                by_others=by_others and number == 0,
                chunk=chunk,
            )
            for number, (width, out) in enumerate(pairwise(widths))
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, edges: Edges) -> Tensor:
        """``[nodes, widths[-1]]``"""
        nodes: Tensor = self.nodes
        relations: Tensor = self.relations
        if self.training and self.hidden:
            kept = torch.rand(len(nodes), 1) >= self.hidden
            nodes = nodes * kept / (1 - self.hidden)
        for number, layer in enumerate(self.layers):
            if number:
                nodes, relations = self.dropout(torch.tanh(nodes)), torch.tanh(relations)
            nodes, relations = layer(nodes, relations, edges)
        return nodes + self.nodes if self.skip else nodes
