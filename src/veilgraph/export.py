"""A run's vectors in other tools' formats.

parquet   entities.parquet, relations.parquet: name + a list of numbers      npy        .npy matrices + names as text
tsv       name, then numbers, tab-separated                                  word2vec   the text format gensim reads
pykeen    a PyKEEN model's weights (safetensors) + how to build it; scores are the same
          (all four with counts.* beside, where noisy counts are part of the run's scores: export_counts.py)
run       the run folder itself without what is for the curator alone: to publish, with its ledger and certificate
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilgraph.errors import UnknownNameError, UsageError, VerificationError
from veilgraph.export_counts import write_counts
from veilgraph.files import write_json, write_tensors
from veilgraph.run_files import (
    CERTIFICATE,
    CONFIG,
    ENTITIES,
    LEDGER,
    MARGINALS,
    RELATIONS,
    VOCABULARY,
    WEIGHTS,
)

if TYPE_CHECKING:
    from veilgraph.load.vocabulary import Vocabulary
    from veilgraph.runs import Run


PUBLISHED = (
    CONFIG,
    LEDGER,
    CERTIFICATE,
    VOCABULARY,
    ENTITIES,
    RELATIONS,
    WEIGHTS,
    MARGINALS,
)  # and no other file


def export(run: Run, out: str | Path, format: str = "parquet") -> Path:
    """Write the vectors to a new folder; returns it. Post-processing: it costs nothing beyond the run's own guarantee."""
    if format not in FORMATS:
        raise UnknownNameError("export format", format, FORMATS, hint=f"There are: {', '.join(FORMATS)}.")
    target = Path(out)
    if target.exists():
        raise UsageError(f"{out} exists already. Choose another --out.")
    if format == "pykeen" and run.prior is not None:
        raise UsageError(
            "PyKEEN has no place for the noisy counts that are part of this run's scores: its answers would differ. "
            "Train with --prior none, or choose another format."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        FORMATS[format](run, draft)
        write_counts(run.prior, run.entities, run.relations, draft, format)
        draft.chmod(0o755)
        draft.replace(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target


def _tables(run: Run) -> list[tuple[str, Vocabulary, np.ndarray]]:
    """Entity and relation tables with their names; the backward rows of reciprocal relations get names of their own."""
    from veilgraph.load.vocabulary import Vocabulary

    p, relations = run.parameters, run.relations
    if len(p.relations) == 2 * len(relations):
        import pyarrow as pa

        both = [*relations, *(f"{name} (inverse)" for name in relations)]
        relations = Vocabulary(pa.array(both, pa.large_string()), "relation")
    return [("entities", run.entities, p.entities.numpy()), ("relations", relations, p.relations.numpy())]


def _parquet(run: Run, folder: Path) -> None:
    """A table of names and vectors for entities, and one for relations."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for kind, names, rows in _tables(run):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
        pq.write_table(pa.table({"name": names.array, "vector": vectors}), folder / f"{kind}.parquet")


def _npy(run: Run, folder: Path) -> None:
    """NumPy arrays, their names beside them in a text file."""
    for kind, names, rows in _tables(run):
        np.save(folder / f"{kind}.npy", rows, allow_pickle=False)
        (folder / f"{kind}.txt").write_text("".join(_one_line(n) + "\n" for n in names), encoding="utf-8")


def _tsv(run: Run, folder: Path) -> None:
    """A line per name, its numbers with tabs between them."""
    for kind, names, rows in _tables(run):
        _write_rows(folder / f"{kind}.tsv", names, rows, "\t", "")


def _word2vec(run: Run, folder: Path) -> None:
    """The text format of word2vec; blanks in names become underscores."""
    for kind, names, rows in _tables(run):
        _write_rows(folder / f"{kind}.txt", names, rows, " ", f"{rows.shape[0]} {rows.shape[1]}\n")


def _write_rows(path: Path, names: Vocabulary, rows: np.ndarray, separator: str, first: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(first)
        for name, row in zip(names, rows):
            shown = _one_line(name)
            file.write((shown.replace(" ", "_") if separator == " " else shown) + separator)
            file.write(separator.join(f"{value:.8g}" for value in row) + "\n")


def _one_line(name: str) -> str:
    return name.replace("\t", " ").replace("\n", " ")


PYKEEN = {  # our model → PyKEEN's class, its arguments, and how rows become its tensors
    "transe": "TransE",
    "distmult": "DistMult",
    "complex": "ComplEx",
    "rotate": "RotatE",
    "rescal": "RESCAL",
}


def _pykeen(run: Run, folder: Path) -> None:
    """Rows in PyKEEN's layout.

    With reciprocal relations PyKEEN's inverse triples are used: relation r is 2r, its inverse 2r + 1."""
    import torch

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
    from veilgraph.errors import MissingExtraError
    from veilgraph.files import read_tensors

    try:
        import pykeen.models
        import torch
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


def _run(run: Run, folder: Path) -> None:
    """The run itself, only files that may be published; nothing that was measured on confidential statements is among them."""
    from veilgraph.certify import verify

    run.require_finished()
    found = verify(run)
    if not found["valid"]:
        raise VerificationError(f"{run.folder} is not to be published: {'; '.join(found['reasons'])}")
    for name in PUBLISHED:
        if (run.folder / name).exists():
            shutil.copyfile(run.folder / name, folder / name)


FORMATS: dict[str, Callable[[Run, Path], None]] = {
    "parquet": _parquet,
    "npy": _npy,
    "tsv": _tsv,
    "word2vec": _word2vec,
    "pykeen": _pykeen,
    "run": _run,
}
