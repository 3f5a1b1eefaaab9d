"""Graph convolutions: every score, weight and recipe against a loop over edges, and R-GCN against PyTorch Geometric."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from veilgraph import registry
from veilgraph.errors import UnknownNameError
from veilgraph.models.gcn import SCORES, Edges, Network, Recipe, recipe_of, score
from veilgraph.models.gcn.layer import WEIGHTS, Convolution
from veilgraph.models.gcn.scores import Score

NODES, RELATIONS, WIDTH, OUT = 7, 3, 4, 5


def some_edges(count: int = 12, seed: int = 0) -> np.ndarray:
    """With loops, a repeated edge, and a node and a relation nobody speaks of."""
    rng = np.random.default_rng(seed)
    triples = np.stack(
        [
            rng.integers(NODES - 1, size=count),
            rng.integers(RELATIONS - 1, size=count),
            rng.integers(NODES - 1, size=count),
        ],
        1,
    )
    return np.concatenate([triples, triples[:1], [[2, 0, 2]]]) if count else triples


@pytest.mark.parametrize("name", SCORES)
def test_closed_forms_are_derivatives(name: str) -> None:
    torch.manual_seed(0)
    three = [torch.randn(6, 8, dtype=torch.float64) for _ in range(3)]
    found = score(name).gradients(*three)
    wanted = Score.gradients(score(name), *three)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_an_unknown_score_says_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="transe"):
        score("transx")


def naive(
    layer: Convolution, nodes: torch.Tensor, relations: torch.Tensor, triples: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """The formula, edge by edge."""
    into, back = layer.into.of_relations, layer.back.of_relations
    sums, moved = torch.zeros(NODES, OUT), torch.zeros(RELATIONS, WIDTH)
    degree, count = torch.zeros(NODES), torch.zeros(RELATIONS)
    for h, r, t in triples.tolist():
        row = relations[r] if layer.uses_relations else torch.zeros(WIDTH)
        at_head, at_relation, at_tail = layer.score.gradients(nodes[h][None], row[None], nodes[t][None])
        sums[t] += at_tail[0] @ into[r]
        sums[h] += at_head[0] @ back[r]
        moved[r] += at_relation[0]
        degree[t] += 1
        degree[h] += 1
        count[r] += 1
    out = layer.alpha * sums / degree.clamp(min=1)[:, None] + nodes @ layer.own
    if layer.relation is None:
        return out, torch.zeros(RELATIONS, OUT)
    if layer.moves_relations:
        relations = relations + layer.alpha * moved / count.clamp(min=1)[:, None]
    return out, relations @ layer.relation


@pytest.mark.parametrize(("name", "weights"), list(itertools.product(SCORES, WEIGHTS)))
@pytest.mark.parametrize("chunk", [None, 5])
def test_a_convolution_equals_a_loop_over_edges(name: str, weights: str, chunk: int | None) -> None:
    torch.manual_seed(1)
    triples = some_edges()
    layer = Convolution(
        score(name),
        WIDTH,
        OUT,
        RELATIONS,
        weights=weights,
        bases=2,
        both_ways=weights != "bases",
        chunk=chunk,
    )
    nodes, relations = torch.randn(NODES, WIDTH), torch.randn(RELATIONS, WIDTH)
    found = layer(nodes, relations, Edges(triples, NODES, RELATIONS))
    for one, other in zip(found, naive(layer, nodes, relations, triples), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("weights", ["relation", "bases", "scaled"])
@pytest.mark.parametrize(("name", "uses"), [("rotate", True), ("dot", False)])
@pytest.mark.parametrize("chunk", [None, 5])
def test_gradients_of_a_convolution_equal_those_of_the_loop(
    name: str, uses: bool, weights: str, chunk: int | None
) -> None:
    triples, found = some_edges(), []
    kind = {"weights": weights, "bases": 2, "both_ways": True, "uses_relations": uses}
    for loop in (False, True):
        torch.manual_seed(2)
        layer = Convolution(score(name), WIDTH, OUT, RELATIONS, chunk=chunk, **kind)
        nodes, relations = (torch.randn(n, WIDTH, requires_grad=True) for n in (NODES, RELATIONS))
        out = (
            naive(layer, nodes, relations, triples)
            if loop
            else layer(nodes, relations, Edges(triples, NODES, RELATIONS))
        )
        (out[0].square().sum() + out[1].square().sum()).backward()
        on_relations = relations.grad if uses else torch.zeros(0)
        found.append([out[0], nodes.grad, on_relations, *(p.grad for p in layer.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", registry.names("convolutions"))
def test_every_recipe_runs_without_edges(name: str) -> None:
    network = Network(recipe_of(name), NODES, RELATIONS, [WIDTH, WIDTH, OUT])
    assert network(Edges(some_edges(0), NODES, RELATIONS)).shape == (NODES, OUT)


def test_bases_mix_into_relation_matrices() -> None:
    network = Network(Recipe("transe").with_bases(2), NODES, RELATIONS, [WIDTH, OUT])
    carry = network.layers[0].into
    assert carry.matrices.shape == (2, WIDTH, OUT)
    wanted = sum(carry.mix[1, b] * carry.matrices[b] for b in range(2))
    torch.testing.assert_close(carry.of_relations[1], wanted)


def test_a_node_told_by_others_does_not_hear_itself() -> None:
    """Its own row changes, its new one does not; its neighbours' do."""
    edges = Edges(np.array([[0, 0, 1], [1, 1, 2]]), 3, 2)
    for name in SCORES:
        torch.manual_seed(4)
        layer = Convolution(score(name), WIDTH, OUT, 2, by_others=True)
        nodes, relations = torch.randn(3, WIDTH), torch.randn(2, WIDTH)
        before = layer(nodes, relations, edges)[0]
        nodes[1] += 1
        after = layer(nodes, relations, edges)[0]
        torch.testing.assert_close(after[1], before[1])
        assert not torch.allclose(after[0], before[0])


def test_rgcn_is_that_of_pytorch_geometric() -> None:
    """RGCNConv with relations both ways; sums, so that both divide by nothing."""
    geometric = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(3)
    triples = some_edges()
    layer = Convolution(
        score("dot"),
        WIDTH,
        OUT,
        RELATIONS,
        weights="relation",
        both_ways=True,
        uses_relations=False,
        alpha=1.0,
    )
    peer = geometric.RGCNConv(WIDTH, OUT, 2 * RELATIONS, aggr="add", bias=False)
    with torch.no_grad():
        peer.weight.copy_(torch.cat([layer.into.matrices, layer.back.matrices]))
        peer.root.copy_(layer.own)
    nodes = torch.randn(NODES, WIDTH)
    head, relation, tail = torch.from_numpy(triples.T.copy())
    index = torch.cat([torch.stack([head, tail]), torch.stack([tail, head])], 1)
    wanted = peer(nodes, index, torch.cat([relation, relation + RELATIONS]))
    edges = Edges(triples, NODES, RELATIONS)
    edges.degree = torch.ones(NODES)
    torch.testing.assert_close(
        layer(nodes, torch.zeros(RELATIONS, WIDTH), edges)[0], wanted, atol=1e-5, rtol=1e-4
    )
