"""Penalties on the rows of a batch, by their gradient."""

from __future__ import annotations

from torch import Tensor

from veilgraph.errors import UnknownNameError

NAMES = ("none", "n3", "l2")


def penalty_gradient(name: str, rows: Tensor, parts: int) -> Tensor:
    """The gradient of the penalty on each row.

    ``n3`` is the sum of cubed moduli (Lacroix et al. 2018), where a modulus joins the ``parts`` of a complex (2) or
    quaternion (4) coordinate; ``l2`` is half the squared norm. Example: n3 of the real row (2, −1) has gradient (12, −3).
    """
    if name == "l2":
        return rows
    if name == "n3":
        if parts == 1 or rows.shape[1] % parts:
            return 3 * rows.abs() * rows
        pieces = rows.chunk(parts, 1)
        squares = pieces[0] * pieces[0]
        for piece in pieces[1:]:
            squares.addcmul_(piece, piece)
        return rows * squares.sqrt_().mul_(3).repeat(1, parts)
    raise UnknownNameError("regulariser", name, NAMES)
