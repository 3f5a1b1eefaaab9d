"""Every folder this program makes, and every file in it, in one table.

What a file is called, who may see it, whether a certificate is about it: writing, permissions, certifying, exporting, publishing,
replacing and ``veil doctor`` read this table. What is not in it was not written by us, and is never deleted or replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple


class File(NamedTuple):
    """One file (or a pattern, «*.parquet»): ``public`` ones may be published, ``certified`` ones are hashed in the certificate."""

    name: str
    public: bool
    certified: bool
    what: str


# a graph
MANIFEST, MARKS = "graph.yaml", "marks.yaml"
GRAPH = (
    File(MANIFEST, False, False, "what the graph is, and the hashes of its files"),
    File("*.parquet", False, False, "names, and the statements of each split"),
    File(MARKS, False, False, "which statements are confidential"),
)
LABELS = (File("labels*.tsv", False, False, "labels of entities, which a federation's division wrote"),)

# a run
CONFIG, TRACE, LEDGER = "config.yaml", "trace.jsonl", "ledger.jsonl"
ENTITIES, RELATIONS, WEIGHTS = "entities.safetensors", "relations.safetensors", "weights.safetensors"
VOCABULARY, CHECKPOINT = "vocabulary.parquet", "checkpoint.safetensors"
ANSWERED = "answered.safetensors"
METRICS, ATTACKS = "metrics.json", "attacks.json"
REPORT_PAGE, REPORT_TEXT = "report.html", "report.md"
CURATOR, CERTIFICATE, MARGINALS = "curator.json", "certificate.json", "marginals.safetensors"
RUN = (
    File(CONFIG, True, True, "every setting, as chosen, and what the run is of"),
    File(LEDGER, True, True, "what was spent"),
    File(CERTIFICATE, True, False, "what is promised"),
    File(VOCABULARY, True, True, "the names of the rows"),
    File(ENTITIES, True, True, "a row per entity"),
    File(RELATIONS, True, True, "a row per relation"),
    File(WEIGHTS, True, True, "what a model shares between rows, of models that have something"),
    File(MARGINALS, True, True, "noisy counts, if any"),
    File(ANSWERED, False, False, "answers of a randomised response, and what is believed of them"),
    File(CURATOR, False, False, "the salt of the commitment"),
    File(TRACE, False, False, "loss, ε and timings of every epoch"),
    File(METRICS, False, False, "evaluations"),
    File(ATTACKS, False, False, "what attackers reached"),
    File(REPORT_PAGE, False, False, "a report about it, with figures about confidential statements"),
    File(REPORT_TEXT, False, False, "the same as text"),
    File(CHECKPOINT, False, False, "where a training goes on, only while it trains"),
)

# a graph made public
RELEASED = "released.yaml"
PUBLIC_GRAPH = (
    File(RELEASED, True, True, "every setting, and what the graph was made from"),
    File(LEDGER, True, True, "what was spent"),
    File(CERTIFICATE, True, False, "what is promised"),
    File(MANIFEST, True, True, "what the graph is, and the hashes of its files"),
    File("*.parquet", True, True, "names and statements, with how much each counts in learning"),
    File("statements.tsv", True, True, "head, relation, tail, probability"),
    File("statements.nt", True, True, "the same as RDF, each statement quoted with its probability"),
)

# a classification
CLASSIFICATION, ANSWERS = "classification.json", "answers.tsv"
AGGREGATES, NETWORK = "aggregates.safetensors", "network.safetensors"
OF_CLASSIFICATION = (
    File(CLASSIFICATION, True, True, "every setting"),
    File(LEDGER, True, True, "what was spent"),
    File(CERTIFICATE, True, False, "what is promised"),
    File(AGGREGATES, True, True, "noisy sums of messages"),
    File(NETWORK, True, True, "what was learnt"),
    File(ANSWERS, True, True, "entity, label, score; kept from publication where answers are not covered"),
)

KINDS: Mapping[str, tuple[str, tuple[File, ...]]] = {
    "release": (RELEASED, PUBLIC_GRAPH),
    "graph": (MANIFEST, GRAPH),
    "run": (CONFIG, RUN),
    "classification": (CLASSIFICATION, OF_CLASSIFICATION),
}
CERTIFIED = tuple(
    dict.fromkeys(f.name for f in (*RUN, *OF_CLASSIFICATION) if f.certified and f.name != LEDGER)
)  # (the ledger has a hash of its own)
PUBLISHED = tuple(f.name for f in RUN if f.public)  # and no other file
OPEN, CLOSED = 0o755, 0o700  # of folders
PRIVATE = 0o600  # of files that are the curator's, whatever they are called


@cache
def mode_of(name: str) -> int:
    """Who may read a file of this name: its owner alone, or whom the umask lets."""
    every = [f for _, files in KINDS.values() for f in (*files, *LABELS)]
    return PRIVATE if any(_is(name, f) and not f.public for f in every) else 0o666


def _is(name: str, file: File) -> bool:
    exact = any(file.name == name for _, files in KINDS.values() for file in files)
    if "*" not in file.name or exact:
        return name == file.name
    first, last = file.name.split("*")
    return name.startswith(first) and name.endswith(last)


def kind_of(folder: Path) -> str | None:
    """What a folder is, by the file that every folder of its kind has."""
    return next((kind for kind, (sign, _) in KINDS.items() if (folder / sign).is_file()), None)


def strangers(folder: Path, files: tuple[File, ...]) -> list[str]:
    """What is in a folder that we did not write there."""
    return sorted(
        one.name
        for one in folder.iterdir()
        if not (one.is_file() and (any(_is(one.name, f) for f in files) or is_draft(one.name, files)))
    )


def is_draft(name: str, files: tuple[File, ...]) -> bool:
    """Whether a file is one that ``files.written`` was stopped at."""
    whose = draft_of(name)
    return whose is not None and any(_is(whose, file) for file in files)


def draft_of(name: str) -> str | None:
    """The file that one of this name would have become."""
    found = re.fullmatch(r"\.(.+)\.\d+-[0-9a-f]{8}\.tmp", name)
    return found[1] if found is not None else None
