"""Any PyKEEN interaction as a scorer (``--model pykeen:TransD``), trained on the generic path.

One row per entity holds all of the interaction's entity tensors, flattened; likewise for relations. Parameters of the
interaction itself (ConvE's filters, TuckER's core) are shared weights. Layers that mix the examples of a batch
(batch normalisation) are left out or run in evaluation mode, so that one statement's gradient depends on it alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.errors import ConfigError, MissingExtraError, UnknownNameError
from veilgraph.models.base import DISTANCE_SPACE, GenericModel, Model, normal


def interaction_model(name: str) -> type[Model]:
    """A scorer class for one interaction."""
    try:
        from pykeen.nn.modules import interaction_resolver
    except ImportError:
        raise MissingExtraError(f"pykeen:{name}", "pykeen") from None
    known = {
        cls.__name__.removesuffix("Interaction"): cls for cls in interaction_resolver.lookup_dict.values()
    }
    found = {n.lower(): cls for n, cls in known.items()}.get(name.lower())
    if found is None:
        raise UnknownNameError("PyKEEN interaction", name, known)
    return type(
        f"PyKEEN{name}",
        (PykeenModel,),
        {
            "name": f"pykeen:{name}",
            "interaction_class": found,
            "formula": str(found.__doc__ or "").split("\n")[0],
        },
    )


class PykeenModel(GenericModel):
    """A PyKEEN interaction on flattened rows."""

    formula = "any PyKEEN interaction"
    citation = "Ali et al. 2021, PyKEEN 1.0 (JMLR 22)"
    multiple_of = 1
    interaction_class: Any
    defaults = {"loss": "self-adversarial", "optimiser": "adam", "reciprocal": False}
    search_space = DISTANCE_SPACE

    def __init__(self, dimension: int, *, norm: int = 1) -> None:
        super().__init__(dimension, norm=norm)
        try:
            self.interaction = _build(self.interaction_class, dimension).eval()
            symbols = {"s": 1, "k": 4}  # all other letters stand for the dimension
            self.entity_shapes = [_size(shape, symbols, dimension) for shape in self.interaction.entity_shape]
            self.relation_shapes = [
                _size(shape, symbols, dimension) for shape in self.interaction.relation_shape
            ]
            self.complex = bool(getattr(self.interaction, "is_complex", False))
            rng = np.random.default_rng(0)
            rows = [
                normal(rng, 1, width, 0.1).unsqueeze(1) for width in (self.entity_width, self.relation_width)
            ]
            self.score(rows[0], rows[1], rows[0], self.weights(rng))
        except (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError) as error:
            reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
            raise ConfigError(
                f"{self.name} cannot be run on plain rows of dimension {dimension}: {reason}"
            ) from None

    @property
    def entity_width(self) -> int:
        return sum(math.prod(s) for s in self.entity_shapes) * (2 if self.complex else 1)

    @property
    def relation_width(self) -> int:
        return sum(math.prod(s) for s in self.relation_shapes) * (2 if self.complex else 1)

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        scale = self.dimension**-0.5
        return normal(rng, entities, self.entity_width, scale), normal(
            rng, relations, self.relation_width, scale
        )

    def weights(self, rng: np.random.Generator) -> dict[str, Tensor]:
        fresh = _build(self.interaction_class, self.dimension, int(rng.integers(1 << 31)))
        return {name: p.detach().clone() for name, p in fresh.named_parameters()}

    def score(self, head: Tensor, relation: Tensor, tail: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        arguments = (
            self._unpack(head, self.entity_shapes, self.interaction.head_indices),
            self._unpack(relation, self.relation_shapes, range(len(self.relation_shapes))),
            self._unpack(tail, self.entity_shapes, self.interaction.tail_indices),
        )
        shaped = {name: w.view(self.interaction.get_parameter(name).shape) for name, w in weights.items()}
        scores = torch.func.functional_call(self.interaction, shaped, arguments)  # type: ignore[no-untyped-call]
        wanted = torch.broadcast_shapes(head.shape[:-1], relation.shape[:-1], tail.shape[:-1])  # type: ignore[no-untyped-call]
        return scores.expand(wanted) if scores.shape != wanted else scores  # type: ignore[no-any-return]

    def _unpack(self, rows: Tensor, shapes: list[tuple[int, ...]], used: Any) -> Any:
        """The tensors of a row that this side of the interaction looks at."""
        indices = list(used() if callable(used) else used)
        parts, start = [], 0
        for shape in shapes:
            width = math.prod(shape) * (2 if self.complex else 1)
            part = rows[..., start : start + width]
            start += width
            if self.complex:
                part = torch.complex(*part.chunk(2, -1))
            parts.append(part.reshape(*rows.shape[:-1], *shape))
        chosen = [parts[i] for i in indices]
        return chosen[0] if len(chosen) == 1 else tuple(chosen)


def _size(shape: str, symbols: Mapping[str, int], dimension: int) -> tuple[int, ...]:
    """The shape behind PyKEEN's letters. Example: "kd" with dimension 16 is (4, 16); "" is a single number, ()."""
    return tuple(symbols.get(letter, dimension) for letter in shape)


def _build(interaction: Any, dimension: int, seed: int = 0) -> Any:
    """An instance, with the dimension where the class asks for one."""
    import inspect

    wanted = inspect.signature(interaction.__init__).parameters
    arguments: dict[str, Any] = {}
    for key in ("embedding_dim", "input_dim", "head_dim"):
        if key in wanted:
            arguments[key] = dimension
    if "p" in wanted and wanted["p"].default is inspect.Parameter.empty:
        arguments["p"] = 2
    if "apply_batch_normalization" in wanted:
        arguments["apply_batch_normalization"] = False
    if "coefficients" in wanted:  # AutoSF without a search: the block-diagonal bilinear form
        arguments["coefficients"] = tuple((i, i, i, 1) for i in range(4))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return interaction(**arguments)
