"""An epoch of R-GCN on WN18, ours against PyTorch Geometric's: forward, backward and a step over all edges, alternating.

The same network: two layers, a matrix for each relation and direction, the same sizes, the same loss on a tenth of the labelled
entities. PyTorch Geometric's is RGCNConv (one product per relation on gathered rows); its outputs equal ours in the tests.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import torch
from torch.nn import functional
from torch_geometric.nn import RGCNConv

from common import alternate, arguments, benchmark, finish, median, say, settings
from veilgraph.load.folds import folds_of, truth_of
from veilgraph.load.labels import read_labels
from veilgraph.models.gcn import Edges, Network, recipe_of


class Theirs(torch.nn.Module):
    """Two RGCNConv layers over learnt rows; every edge also backwards, as a relation of its own."""

    def __init__(self, nodes: int, relations: int, width: int, labels: int) -> None:
        super().__init__()
        self.rows = torch.nn.Parameter(torch.randn(nodes, width) * width**-0.5)
        self.first = RGCNConv(width, width, 2 * relations)
        self.second = RGCNConv(width, labels, 2 * relations)

    def forward(self, index: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(self.rows, index, kind)), index, kind)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure, print, return."""
    options = arguments(__doc__, repeats=5, dimension=32).parse_args(argv)
    about = settings(repeats=options.repeats, dimension=options.dimension)
    graph = benchmark("wn18-nodeclass")
    labels = read_labels(graph)
    nodes, relations, kinds = len(graph.entities), len(graph.relations), len(labels.names)
    train = torch.from_numpy(folds_of(labels, nodes, 0.1, 0).train)
    wanted = torch.from_numpy(truth_of(labels, nodes))[train]
    triples = torch.from_numpy(graph.triples.astype("int64"))
    head, relation, tail = triples.T
    index = torch.stack([torch.cat([head, tail]), torch.cat([tail, head])])
    kind = torch.cat([relation, relation + relations])
    edges = Edges(graph.triples, nodes, relations)
    ours = Network(recipe_of("rgcn"), nodes, relations, [options.dimension] * 2 + [kinds])
    theirs = Theirs(nodes, relations, options.dimension, kinds)

    def epoch(module: torch.nn.Module, *given: object) -> float:
        began = time.perf_counter()
        optimiser = optimisers[module]
        optimiser.zero_grad()
        functional.cross_entropy(module(*given)[train], wanted).backward()
        optimiser.step()
        return time.perf_counter() - began

    optimisers = {module: torch.optim.Adam(module.parameters(), lr=0.01) for module in (ours, theirs)}
    for module, given in ((ours, (edges,)), (theirs, (index, kind))):
        epoch(module, *given)  # first use
        say(
            f"{type(module).__name__}: peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
        )
    mine, peer = alternate(lambda: epoch(ours, edges), lambda: epoch(theirs, index, kind), options.repeats)
    return finish(
        {
            **about,
            "graph": "wn18-nodeclass",
            "edges": len(graph.triples),
            "our_seconds": median(mine),
            "pyg_seconds": median(peer),
            "ratio": median(peer) / median(mine),
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )


if __name__ == "__main__":
    main()
