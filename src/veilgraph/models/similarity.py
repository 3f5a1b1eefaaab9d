"""How a query is compared with a candidate row: dot product, L1, L2, or complex modulus.

Each similarity gives the scores of a table of candidates and, in closed form, the gradient of any weighted sum of
those scores. Nothing of size queries × candidates × dimension is ever built.
Shapes: queries ``q[n, b, d]``, candidates ``c[n, k, d]``, scores and weights ``[n, b, k]``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veilgraph.models import score_kernels


class Similarity(ABC):
    """A comparison of query and candidate vectors; larger is more alike."""

    name: str

    @abstractmethod
    def pairs(self, q: Tensor, c: Tensor) -> Tensor:
        """The score of each query with its own candidate: ``[b, d], [b, d] → [b]`` (differentiable)."""

    @abstractmethod
    def table(self, q: Tensor, c: Tensor) -> Tensor:
        """The scores of every query with every candidate of its chunk: ``[n, b, d], [n, k, d] → [n, b, k]``."""

    @abstractmethod
    def pull_query(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        """The gradient of ``(w · table(q, c)).sum()`` on q; ``scores`` is what ``table`` returned."""

    @abstractmethod
    def pull_candidates(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        """The same on c."""

    @abstractmethod
    def reach(self, q: Tensor) -> Tensor:
        """The norm of a score's gradient on a candidate, or a bound on it, for each query: ``[…, d] → […]``."""

    @abstractmethod
    def pull_pairs(self, q: Tensor, c: Tensor, w: Tensor) -> Tensor:
        """The gradient of ``(w · pairs(q, c)).sum()`` on q."""

    def pull_pairs_candidate(self, q: Tensor, c: Tensor, w: Tensor) -> Tensor:
        """The gradient of ``(w · pairs(q, c)).sum()`` on c: all similarities here are symmetric."""
        return self.pull_pairs(c, q, w)


class Dot(Similarity):
    """⟨q, c⟩"""

    name = "dot"

    def pairs(self, q: Tensor, c: Tensor) -> Tensor:
        return (q * c).sum(-1)

    def table(self, q: Tensor, c: Tensor) -> Tensor:
        return torch.bmm(q, c.transpose(1, 2)) if len(q) > 1 else torch.mm(q[0], c[0].T).unsqueeze(0)

    def pull_query(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        return torch.bmm(w, c)

    def pull_candidates(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        return torch.bmm(w.transpose(1, 2), q)

    def reach(self, q: Tensor) -> Tensor:
        return torch.linalg.vector_norm(q, dim=-1)

    def pull_pairs(self, q: Tensor, c: Tensor, w: Tensor) -> Tensor:
        return w.unsqueeze(-1) * c


class L2(Similarity):
    """−‖q − c‖₂, by one matrix product: ‖q‖² + ‖c‖² − 2⟨q, c⟩."""

    name = "l2"

    def pairs(self, q: Tensor, c: Tensor) -> Tensor:
        return -torch.linalg.vector_norm(q - c, dim=-1)

    def table(self, q: Tensor, c: Tensor) -> Tensor:
        # The difference of large numbers is known to about d · 1.2e-7 of them: below d · 5e-7 of them it counts as
        # that, so that a gradient, which divides by the distance, keeps a norm of at most 1/√(1 − 0.24) = 1.15.
        sizes = (q * q).sum(-1, keepdim=True) + (c * c).sum(-1).unsqueeze(1)
        squares = torch.baddbmm(sizes, q, c.transpose(1, 2), alpha=-2)
        return torch.maximum(squares, sizes.mul_(5e-7 * q.shape[-1]).clamp_(min=1e-12)).sqrt_().neg_()

    # ∂(−|q−c|)/∂q = −(q−c)/|q−c|, and scores = −|q−c|, so the weight on (q − c) is w / scores.
    def pull_query(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        a = w / scores
        return a.sum(2, keepdim=True) * q - torch.bmm(a, c)

    def pull_candidates(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        a = w / scores
        return a.sum(1).unsqueeze(-1) * c - torch.bmm(a.transpose(1, 2), q)

    def reach(self, q: Tensor) -> Tensor:
        return torch.full(q.shape[:-1], 1.15)  # 1, and what rounding may add: see table

    def pull_pairs(self, q: Tensor, c: Tensor, w: Tensor) -> Tensor:
        difference = q - c
        norm = torch.linalg.vector_norm(difference, dim=-1, keepdim=True).clamp(min=1e-30)
        return -(w.unsqueeze(-1) * difference / norm)


class _Compiled(Similarity):
    """A sum over coordinates of a distance that is no matrix product."""

    _table: Callable[..., Any]
    _pull: Callable[..., Any]

    def table(self, q: Tensor, c: Tensor) -> Tensor:
        out = torch.empty(q.shape[0], q.shape[1], c.shape[1], dtype=torch.float32)
        type(self)._table(q.detach().contiguous().numpy(), c.detach().contiguous().numpy(), out.numpy())
        return out

    def pull_query(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        q, w, out = q.detach().contiguous(), w.contiguous(), torch.empty_like(q)
        type(self)._pull(
            q.numpy(), c.detach().transpose(1, 2).contiguous().numpy(), w.numpy(), out.detach().numpy()
        )
        return out.detach()

    def pull_candidates(self, q: Tensor, c: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        return self.pull_query(c, q, w.transpose(1, 2), scores)  # these distances are symmetric


class L1(_Compiled):
    """−‖q − c‖₁"""

    name = "l1"
    _table = staticmethod(score_kernels.l1_table)
    _pull = staticmethod(score_kernels.l1_pull)

    def pairs(self, q: Tensor, c: Tensor) -> Tensor:
        return -(q - c).abs().sum(-1)

    def reach(self, q: Tensor) -> Tensor:
        return torch.full(q.shape[:-1], q.shape[-1] ** 0.5)

    def pull_pairs(self, q: Tensor, c: Tensor, w: Tensor) -> Tensor:
        return -(w.unsqueeze(-1) * torch.sign(q - c))


class Modulus(_Compiled):
    """−Σ |q − c| over complex coordinates, stored as (real half, imaginary half)."""

    name = "modulus"
    _table = staticmethod(score_kernels.modulus_table)
    _pull = staticmethod(score_kernels.modulus_pull)

    def pairs(self, q: Tensor, c: Tensor) -> Tensor:
        re, im = (q - c).chunk(2, -1)
        return -(re * re + im * im + 1e-30).sqrt().sum(-1)

    def reach(self, q: Tensor) -> Tensor:
        return torch.full(q.shape[:-1], (q.shape[-1] / 2) ** 0.5)

    def pull_pairs(self, q: Tensor, c: Tensor, w: Tensor) -> Tensor:
        re, im = (q - c).chunk(2, -1)
        scale = -w.unsqueeze(-1) / (re * re + im * im + 1e-30).sqrt()
        return torch.cat([scale * re, scale * im], -1)


DOT, L1_DISTANCE, L2_DISTANCE, MODULUS = Dot(), L1(), L2(), Modulus()
