"""What scorers say to attackers: statements of a relation that were learnt lead the same way, and the relation's own row too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilgraph import models, registry
from veilgraph.attack.federated.places import UnknownLink, link, says_how_it_links
from veilgraph.models.base import GenericModel

SILENT = ("marginals",)  # learns nothing that could lead anywhere


def cosines(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(rows, dim=1) @ torch.nn.functional.normalize(others, dim=1).T


@pytest.mark.parametrize("name", [name for name in registry.names("models") if name not in SILENT])
def test_what_leads_from_head_to_tail_is_alike_in_a_relation(name: str) -> None:
    """Perfect statements of five relations: the nearest relation of each is its own, and so is the row that leads so."""
    drawing = torch.Generator().manual_seed(0)
    model = models.create(name, 32)
    relations = torch.randn(5, model.relation_width, generator=drawing, dtype=torch.float64)
    kind = torch.arange(5).repeat(40)
    head = torch.randn(len(kind), model.entity_width, generator=drawing, dtype=torch.float64)
    if isinstance(model, GenericModel):  # (a translation on a hyperplane)
        tail = head + relations[kind].chunk(2, -1)[0]
    else:
        tail = model.compose(head.float(), relations[kind].float()).double()
    shown = model.link(head, tail)
    assert shown is not None
    centres = torch.stack([shown[kind == one].mean(0) for one in range(5)])
    right = (cosines(shown, centres).argmax(1) == kind).double().mean()
    assert right > 0.9
    led = model.leads(relations)
    assert led is not None
    assert (cosines(centres, led).argmax(1) == torch.arange(5)).all()


def test_a_scorer_that_does_not_say_makes_attacks_blind_and_not_weak() -> None:
    marginals = models.create("marginals", 1)
    assert not says_how_it_links(marginals)
    with pytest.raises(UnknownLink, match=r"Model\.link"):
        link(marginals, np.zeros((3, 1)), np.zeros((3, 1)))
