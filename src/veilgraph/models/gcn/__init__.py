"""Graph convolutions whose messages are gradients of a triple score; R-GCN, W-GCN and CompGCN fall out by configuration.

edges     an edge list, and sums over it forwards and backwards · scores: triple scores with their gradients, one class each
layer     one convolution · network: several, and the recipes that make it a published model
"""

from __future__ import annotations

from veilgraph.models.gcn.edges import Edges
from veilgraph.models.gcn.network import Network, Recipe, recipe_of
from veilgraph.models.gcn.scores import SCORES, Score, score

__all__ = ["SCORES", "Edges", "Network", "Recipe", "Score", "recipe_of", "score"]
