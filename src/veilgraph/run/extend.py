"""New entities in a finished run, without training: their rows follow from their descriptions.

Post-processing: a row is a function of what was released and of the new entity's description. Where that description is public, whatever
the run promised holds for the extended one, at no cost; the ledger says so in a line of its own.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from veilgraph import folders
from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.errors import InputError, PrivacyError, VerificationError
from veilgraph.files import write_tensors
from veilgraph.layout import CERTIFICATE, CURATOR, ENTITIES, LEDGER, PUBLISHED, VOCABULARY
from veilgraph.load.descriptions import read_descriptions
from veilgraph.load.vocabulary import write_names
from veilgraph.run.describe import describe
from veilgraph.run.files import check_target
from veilgraph.run.run import Run
from veilgraph.run.verify import certify, verify


def extend(
    run: Run | str | Path, entities: str | Path | Mapping[str, str], *, out: str | Path, public: bool = False
) -> dict[str, Any]:
    """added, run, epsilon: a new run folder that knows more entities, each by «name, description».

    ``public`` says that their descriptions are; a run with a guarantee is extended by no others. The old folder stays as it is.

    Reads confidential data: nothing. Releases: rows made from the released projection and the descriptions.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    opened.require_finished()
    target = Path(out)
    check_target(target)
    texts = dict(entities) if isinstance(entities, Mapping) else read_descriptions(entities, once=True)
    _refuse(opened, texts, entities, public=public)
    rows = describe(opened, list(texts.values()))
    with folders.made(target, mode=stat.S_IMODE(opened.folder.stat().st_mode)) as draft:
        for name in (*PUBLISHED, CURATOR):
            if name != CERTIFICATE and (opened.folder / name).is_file():
                shutil.copy2(opened.folder / name, draft / name)
        said = (
            "entities added from descriptions that are public: post-processing"
            if public
            else "entities added from descriptions"
        )
        Ledger(draft / LEDGER).charge(nothing(), said, added=len(texts))
        write_tensors(draft / ENTITIES, {"rows": torch.cat([opened.parameters.entities, rows])})
        write_names(
            draft / VOCABULARY,
            pa.concat_arrays([opened.entities.array, pa.array(list(texts), pa.large_string())]),
            opened.relations.array,
        )
    made = Run.open(target)
    certify(made)
    return {"added": len(texts), "run": str(target), "epsilon": made.epsilon}


def _refuse(opened: Run, texts: Mapping[str, str], given: object, *, public: bool) -> None:
    """Raise for names that are none, for entities that are there, and where the promise would not hold."""
    if not texts:
        raise InputError(
            f"{given} describes no entity: expected «entity, text» lines with a tab between them."
        )
    strange = [
        name for name in texts if not isinstance(name, str) or not name.isprintable() or not name.strip()
    ]
    if strange:
        raise InputError(
            f"{strange[0]!r} is no name of an entity: names are words without tabs or line breaks."
        )
    there = [name for name, place in zip(texts, opened.entities.places(texts)) if place >= 0]
    if there:
        raise InputError(
            f"{len(there):,} of these entities are in the run already, e.g. {there[0]!r}: their rows were learnt, and stay. Leave them out."
        )
    if opened.guarantee != "none" and not public:
        raise PrivacyError(
            "new rows follow from descriptions as they are, without noise, and this run promises something. If the descriptions are "
            "public, say so (--public): then nothing more is spent. If they are not, do not add them to a run that is published."
        )
    held = verify(opened)
    if not held["valid"]:
        raise VerificationError(
            f"{opened.folder} does not verify, and is not extended: {'; '.join(held['reasons'])}."
        )
