"""The noisy counts of a run beside its exported vectors: without them a stranger's answers are not the run's.

    score of (head, relation, ?) for a candidate = what the vectors say + counts[relation, tail][candidate]
    score of (?, relation, tail) for a candidate = what the vectors say + counts[relation, head][candidate]

counts.parquet   relation, side, entities (names; null: all, in the order of the entity file), values
counts.npy       a row for each line of counts.txt («relation<TAB>side»), a column for each entity; large tables, where most cells
                 count nothing: counts-starts.npy, counts-entities.npy, counts-values.npy, row i from starts[i] to starts[i + 1]
counts.tsv       relation, side, then a number for each entity; large tables: relation, side, entity, value
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veilgraph.files import write_table
from veilgraph.run.formats.base import PUBLISHED, one_line

if TYPE_CHECKING:
    from veilgraph.load.vocabulary import Vocabulary
    from veilgraph.models.prior import Prior

SIDES = ("tail", "head")  # rows 0 … R − 1, and R … 2R − 1
EXPLAINED = "counts-README.txt"
WORDS = """These vectors are not all there is of the run: its scores are

    score(head, relation, ?) of a candidate = what the model says of the vectors + counts[relation, tail][candidate]
    score(?, relation, tail) of a candidate = what the model says of the vectors + counts[relation, head][candidate]

counts.* holds a row for each relation and side, a number for each entity (in the order of the entity file). The counts are noisy: they
are part of what the run's certificate covers. Without them answers differ, mostly for the worse.
"""


def rows_of(prior: Prior, relations: Vocabulary) -> Iterator[tuple[str, str]]:
    """The name of each row: relation and side."""
    return ((relation, side) for side in SIDES for relation in relations)


def _sparse(prior: Prior) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    if prior.table is not None or prior.starts is None or prior.ids is None or prior.values is None:
        return None
    return prior.starts.numpy(), prior.ids.numpy(), prior.values.numpy()


def _parquet(prior: Prior, entities: Vocabulary, relations: Vocabulary, folder: Path) -> None:
    import pyarrow as pa

    names = list(rows_of(prior, relations))
    columns = {"relation": pa.array([n for n, _ in names]), "side": pa.array([side for _, side in names])}
    sparse = _sparse(prior)
    if sparse is None:
        assert prior.table is not None
        table = prior.table.numpy()
        values = pa.FixedSizeListArray.from_arrays(pa.array(table.ravel()), table.shape[1])
        every = pa.nulls(len(names), pa.list_(pa.string()))
        columns |= {"entities": every, "values": values}
    else:
        starts, ids, found = sparse
        at = pa.array(starts.astype(np.int32))
        whose = pa.ListArray.from_arrays(at, entities.array.take(pa.array(ids)))
        columns |= {"entities": whose, "values": pa.ListArray.from_arrays(at, pa.array(found))}
    write_table(folder / "counts.parquet", pa.table(columns), mode=PUBLISHED)


def _npy(prior: Prior, entities: Vocabulary, relations: Vocabulary, folder: Path) -> None:
    lines = (f"{one_line(relation)}\t{side}\n" for relation, side in rows_of(prior, relations))
    (folder / "counts.txt").write_text("".join(lines), encoding="utf-8")
    sparse = _sparse(prior)
    if sparse is None:
        assert prior.table is not None
        np.save(folder / "counts.npy", prior.table.numpy(), allow_pickle=False)
        return
    for name, array in zip(("starts", "entities", "values"), sparse):
        np.save(folder / f"counts-{name}.npy", array, allow_pickle=False)


def _tsv(prior: Prior, entities: Vocabulary, relations: Vocabulary, folder: Path) -> None:
    sparse = _sparse(prior)
    with (folder / "counts.tsv").open("w", encoding="utf-8") as file:
        for row, (relation, side) in enumerate(rows_of(prior, relations)):
            first = f"{one_line(relation)}\t{side}"
            if sparse is None:
                assert prior.table is not None
                file.write(
                    "\t".join([first, *(f"{value:.8g}" for value in prior.table[row].tolist())]) + "\n"
                )
                continue
            starts, ids, values = sparse
            part = slice(int(starts[row]), int(starts[row + 1]))
            for name, value in zip(entities.names(ids[part]), values[part].tolist()):
                file.write(f"{first}\t{one_line(name)}\t{value:.8g}\n")


WRITERS: Mapping[str, Callable[[Prior, Vocabulary, Vocabulary, Path], None]] = {
    "parquet": _parquet,
    "npy": _npy,
    "tsv": _tsv,
}


def write_counts(
    prior: Prior | None, entities: Vocabulary, relations: Vocabulary, folder: Path, format: str
) -> None:
    """Write the counts that are part of a run's scores, and how they are used; nothing where there are none.

    Releases: the noisy counts, which the run's certificate covers.
    """
    if prior is None or format not in WRITERS:
        return
    WRITERS[format](prior, entities, relations, folder)
    (folder / EXPLAINED).write_text(WORDS, encoding="utf-8")
