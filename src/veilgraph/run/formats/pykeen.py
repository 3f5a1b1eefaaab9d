"""PyKEEN: weights in its layout, and how to build its model from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from veilgraph.errors import MissingExtraError, UsageError
from veilgraph.files import read_tensors, write_json, write_tensors
from veilgraph.run.formats.base import Format

if TYPE_CHECKING:
    from veilgraph.run.run import Run

PYKEEN = {  # our model → PyKEEN's class, its arguments, and how rows become its tensors
    "transe": "TransE",
    "distmult": "DistMult",
    "complex": "ComplEx",
    "rotate": "RotatE",
    "rescal": "RESCAL",
}


class Pykeen(Format):
    """Rows in PyKEEN's layout.

    With reciprocal relations PyKEEN's inverse triples are used: relation r is 2r, its inverse 2r + 1."""

    name = "pykeen"

    def refuse(self, run: Run) -> None:
        if run.prior is not None:
            raise UsageError(
                "PyKEEN has no place for the noisy counts that are part of this run's scores: its answers would differ. "
                "Train with --prior none, or choose another format."
            )

    def write(self, run: Run, folder: Path) -> None:
        name = run.config.model
        if name not in PYKEEN:
            raise UsageError(
                f"{name} has no counterpart in PyKEEN that gives the same scores; there are {', '.join(PYKEEN)}."
            )
        p, dimension = run.parameters, run.config.dimension or 1
        entities, relations = p.entities, p.relations
        arguments: dict[str, object] = {"embedding_dim": dimension}
        if name in ("complex", "rotate"):
            arguments["embedding_dim"] = dimension // 2
        if name == "transe":
            arguments["scoring_fct_norm"] = run.config.norm
        if name == "rotate":
            relations = torch.cat([relations.cos(), relations.sin()], 1)
        if name in ("complex", "rotate"):  # complex numbers: (real, imaginary) pairs
            entities, relations = (torch.stack(t.chunk(2, 1), -1).flatten(1) for t in (entities, relations))
        if run.config.reciprocal:
            relations = torch.stack(relations.chunk(2, 0), 1).flatten(0, 1)
        write_tensors(folder / "model.safetensors", {"entities": entities, "relations": relations})
        write_json(
            folder / "model.json",
            {
                "model": PYKEEN[name],
                "arguments": arguments,
                "create_inverse_triples": bool(run.config.reciprocal),
                "sum_of_moduli": name == "rotate" and run.config.norm == 1,
                "entity_to_id": {n: i for i, n in enumerate(run.entities)},
                "relation_to_id": {n: i for i, n in enumerate(run.relations)},
            },
        )


def load_pykeen(folder: str | Path) -> object:
    """The PyKEEN model of an exported folder (extra ``pykeen``)."""
    try:
        import pykeen.models
        from pykeen.triples import TriplesFactory
    except ImportError:
        raise MissingExtraError("Reading an exported PyKEEN model", "pykeen") from None
    facts = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
    tensors, _ = read_tensors(Path(folder) / "model.safetensors")
    relations = len(facts["relation_to_id"])
    factory = TriplesFactory(
        mapped_triples=torch.tensor([[0, r, 0] for r in range(relations)]),
        entity_to_id=facts["entity_to_id"],
        relation_to_id=facts["relation_to_id"],
        create_inverse_triples=facts["create_inverse_triples"],
    )
    arguments = {"entity_constrainer": None} if facts["model"] in ("TransE", "DistMult") else {}
    model = getattr(pykeen.models, facts["model"])(triples_factory=factory, **facts["arguments"], **arguments)
    for kind, representations in (
        ("entities", model.entity_representations),
        ("relations", model.relation_representations),
    ):
        weight = representations[0]._embeddings.weight
        weight.data.copy_(tensors[kind].view_as(weight))
    if facts["sum_of_moduli"]:
        model.interaction = _sum_of_moduli()
    return model


def _sum_of_moduli() -> object:
    """RotatE as published (the sum of moduli); PyKEEN's own compares by the Euclidean norm."""
    from pykeen.nn.modules import RotatEInteraction

    class SumOfModuli(RotatEInteraction):  # type: ignore[misc]
        def forward(self, h: Any, r: Any, t: Any) -> Any:
            return -(h * r - t).abs().sum(-1)

    return SumOfModuli()
