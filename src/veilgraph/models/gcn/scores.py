"""Triple scores as messages: what a convolution sends along an edge is the score's gradient on the rows at its ends.

A score is written as ``value``; its ``gradients`` come from it by automatic differentiation, or in closed form where there is one
(the tests hold both against each other). Distances are −½‖·‖², so that their gradients are differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from veilgraph.errors import UnknownNameError

Three = tuple[Tensor, Tensor, Tensor]


class Score(ABC):
    """``[e, d]`` heads, relations and tails → ``[e]``."""

    name: ClassVar[str]
    multiple_of: ClassVar[int] = 1  # of the dimension

    @abstractmethod
    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """``[e]`` the scores."""

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        """The derivatives by head, relation and tail, each ``[e, d]``; they can be differentiated again."""
        with torch.enable_grad():
            three = [x if x.requires_grad else x.detach().requires_grad_() for x in (head, relation, tail)]
            total = self.value(*three).sum()
            found = torch.autograd.grad(total, three, create_graph=True, allow_unused=True)
        return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(three, found))  # type: ignore[return-value]


class Dot(Score):
    """The product of head and tail, whatever the relation: the messages of R-GCN and W-GCN are the neighbours themselves."""

    name = "dot"

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head * tail).sum(1)

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        return tail, relation.new_zeros(1, 1).expand_as(relation), head


class TransE(Score):
    """−½‖h + r − t‖² (Bordes et al. 2013)."""

    name = "transe"

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return -0.5 * (head + relation - tail).square().sum(1)

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        missing = tail - head - relation
        return missing, missing, -missing


class DistMult(Score):
    """Σ h·r·t (Yang et al. 2015)."""

    name = "distmult"

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head * relation * tail).sum(1)

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        return relation * tail, head * tail, head * relation


class RotatE(Score):
    """−½‖h∘r − t‖² over complex numbers, real parts first (Sun et al. 2019); the relation need not have modulus one."""

    name = "rotate"
    multiple_of = 2

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return -0.5 * (_product(head, relation) - tail).square().sum(1)

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        missing = tail - _product(head, relation)
        return _product(missing, _mirror(relation)), _product(missing, _mirror(head)), -missing


class QuatE(Score):
    """(h ⊗ r) · t over quaternions, a quarter of the row each part (Zhang et al. 2019)."""

    name = "quate"
    multiple_of = 4

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (_hamilton(head, relation) * tail).sum(1)

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        return (
            _hamilton(tail, _conjugate(relation)),
            _hamilton(_conjugate(head), tail),
            _hamilton(head, relation),
        )


class TransH(Score):
    """−½‖h⊥ + d − t⊥‖² on the plane of the relation (Wang et al. 2014): the relation's row is d and the plane's normal."""

    name = "transh"
    multiple_of = 2

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        between = head - tail
        half = relation.shape[1] // 2
        shift = torch.cat([relation[:, :half], relation[:, :half]], 1)
        normal = torch.nn.functional.normalize(torch.cat([relation[:, half:], relation[:, half:]], 1), dim=1)
        on_plane = between - (between * normal).sum(1, keepdim=True) * normal
        return -0.5 * (on_plane + shift).square().sum(1)


class TransD(Score):
    """−½‖h⊥ + r − t⊥‖² with projections from both rows (Ji et al. 2015): halves of a row are the vector and its projection."""

    name = "transd"
    multiple_of = 2

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        half = head.shape[1] // 2
        r, plane = relation[:, :half], relation[:, half:]

        def projected(row: Tensor) -> Tensor:
            e, own = row[:, :half], row[:, half:]
            return e + (own * e).sum(1, keepdim=True) * plane

        return -0.5 * (projected(head) + r - projected(tail)).square().sum(1)


class Subtraction(Score):
    """(h − r) · t: CompGCN's composition by subtraction (Vashishth et al. 2020)."""

    name = "subtraction"

    def value(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return ((head - relation) * tail).sum(1)

    def gradients(self, head: Tensor, relation: Tensor, tail: Tensor) -> Three:
        return tail, -tail, head - relation


def _product(a: Tensor, b: Tensor) -> Tensor:
    half = a.shape[1] // 2
    x, y, u, v = a[:, :half], a[:, half:], b[:, :half], b[:, half:]
    return torch.cat([x * u - y * v, x * v + y * u], 1)


def _mirror(a: Tensor) -> Tensor:
    half = a.shape[1] // 2
    return torch.cat([a[:, :half], -a[:, half:]], 1)


def _hamilton(a: Tensor, b: Tensor) -> Tensor:
    (w, x, y, z), (q, i, j, k) = a.chunk(4, 1), b.chunk(4, 1)
    return torch.cat(
        [
            w * q - x * i - y * j - z * k,
            w * i + x * q + y * k - z * j,
            w * j - x * k + y * q + z * i,
            w * k + x * j - y * i + z * q,
        ],
        1,
    )


def _conjugate(a: Tensor) -> Tensor:
    real, rest = a[:, : a.shape[1] // 4], a[:, a.shape[1] // 4 :]
    return torch.cat([real, -rest], 1)


SCORES: dict[str, type[Score]] = {
    one.name: one for one in (Dot, TransE, DistMult, RotatE, QuatE, TransH, TransD, Subtraction)
}


def score(name: str) -> Score:
    """The score of that name."""
    if name not in SCORES:
        raise UnknownNameError("score", name, SCORES, hint=f"There are: {', '.join(SCORES)}.")
    return SCORES[name]()
