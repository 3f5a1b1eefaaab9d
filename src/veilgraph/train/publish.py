"""The graph itself, made public: every statement with its probability, a ledger and a certificate, in a folder that anybody can read.

Confidential statements answer once (release/response.py); what is published are unrestricted statements and those that are probable after
the answers. It is a graph folder, so ``veil train`` learns from it as from any other, at full speed and without a promise of its own: what
is computed from a release is covered by the release.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.account import certificate
from veilgraph.account.ceiling import ceiling
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import RESPOND, Promise
from veilgraph.config import TrainConfig
from veilgraph.disk import digest
from veilgraph.errors import InputError, RunError, UsageError, VerificationError
from veilgraph.files import as_json, read_json, read_yaml, write_json, write_text
from veilgraph.folders import made
from veilgraph.layout import CERTIFICATE, CONFIG, LEDGER, OPEN, RELEASED
from veilgraph.load.graph import Graph
from veilgraph.load.marks import Marks
from veilgraph.load.source import load
from veilgraph.load.store import write_graph
from veilgraph.mark.rules import unrestricted
from veilgraph.release.belief import Believed
from veilgraph.run.facts import unbound
from veilgraph.run.run import Run
from veilgraph.train.answers import worth
from veilgraph.train.begin import Explain, begin
from veilgraph.train.loop import Listener
from veilgraph.train.session import weighed

FORMATS = ("tsv", "nt")


def release(
    graph: Graph | str | Path,
    marks: Marks | None = None,
    *,
    epsilon: float,
    out: str | Path,
    formats: tuple[str, ...] = ("tsv",),
    listener: Listener | None = None,
    explain: Explain | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Write a graph folder that may be published; returns what it promises and how many statements are in it.

    ``settings`` are those of the model that says how probable a statement was before it was asked about (``veil train``'s).

    Reads confidential data: which cells hold a confidential training statement; not what is held out. Releases: the answers, and all
    that is computed from them, under the certificate in the folder.
    """
    target = Path(out)
    if target.exists() and any(target.iterdir()):
        raise UsageError(f"{out} exists already. Choose another name.")
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UsageError(f"formats of a released graph are {', '.join(FORMATS)}; found {', '.join(unknown)}.")
    found = load(graph)
    found = found if marks is None else found.with_marks(marks)
    if found.marks is None:
        raise InputError(
            "nothing is marked as confidential, so there is nothing to protect. Say what is: veil mark GRAPH --relation …"
        )
    with tempfile.TemporaryDirectory(dir=target.resolve().parent, prefix=".release-") as place:
        given = {"epsilon": epsilon, "mechanism": RESPOND, **settings}
        run = begin(found, out=Path(place) / "run", explain=explain, **given)
        believed = weighed(run, run.graph(), listener).believed()
        _write(target, run, unrestricted(found), believed, formats)
    return summary(target) | {
        "released": len(believed.statements),
        "expected_true": float(believed.probability.sum()),
    }


def _write(target: Path, run: Run, known: Graph, believed: Believed, formats: tuple[str, ...]) -> None:
    """The folder, which appears whole."""
    public = _published(known, believed)
    with made(target, mode=OPEN) as draft:
        shutil.copyfile(run.folder / LEDGER, draft / LEDGER)
        shutil.copyfile(run.folder / CONFIG, draft / RELEASED)
        write_graph(public, draft)
        _write_statements(public, believed, draft, formats)
        for path in draft.iterdir():
            path.chmod(0o644)
        write_json(draft / CERTIFICATE, _build(draft), mode=0o644)


def summary(folder: str | Path) -> dict[str, Any]:
    """What a released graph promises."""
    document = read_certificate(folder)
    reached = ceiling(Ledger(Path(folder) / LEDGER).events, float(document["delta"]))
    return {
        "out": str(folder),
        "epsilon": document["epsilon"],
        "delta": document["delta"],
        "attack_accuracy": reached.attack_accuracy,
        "bound": "reached",
        "statement": document["statement"],
    }


def _published(public: Graph, believed: Believed) -> Graph:
    """Unrestricted statements of every split, and in the training split what is probable."""
    splits = {**public.splits, "train": np.concatenate([public.train, believed.statements])}
    weights = {name: np.ones(len(array), np.float32) for name, array in splits.items()}
    weights["train"][len(public.train) :] = worth(believed)
    return replace(public, splits=splits, source="", weights=weights, descriptions=None)


def _write_statements(graph: Graph, believed: Believed, folder: Path, formats: tuple[str, ...]) -> None:
    """By name, for those who do not read Parquet."""
    known = len(graph.train) - len(believed.statements)
    sure = np.concatenate([np.ones(known, np.float32), believed.probability])
    entities, relations = np.array(list(graph.entities), object), np.array(list(graph.relations), object)
    head, relation, tail = graph.train.T
    rows = zip(entities[head], relations[relation], entities[tail], sure)
    if "tsv" in formats:
        lines = ("\t".join((_flat(h), _flat(r), _flat(t), f"{p:.4f}")) for h, r, t, p in rows)
        write_text(folder / "statements.tsv", "head\trelation\ttail\tprobability\n" + "\n".join(lines) + "\n")
    rows = zip(entities[head], relations[relation], entities[tail], sure)
    if "nt" in formats:
        kind = "<http://www.w3.org/2001/XMLSchema#decimal>"
        lines = (
            f'<< {_iri(h)} {_iri(r)} {_iri(t)} >> <urn:veilgraph:probability> "{p:.4f}"^^{kind} .'
            for h, r, t, p in rows
        )
        write_text(folder / "statements.nt", "\n".join(lines) + "\n")


def _flat(name: str) -> str:
    """A name without what would end a cell."""
    return " ".join(name.split())


def _iri(name: str) -> str:
    """A name as an IRI: as it is, or in a namespace of ours with what IRIs do not have written in percent."""
    from urllib.parse import quote

    whole = "://" in name and not set(name) & set(' <>"{}|\\^`')
    return f"<{name}>" if whole else f"<urn:veilgraph:{quote(name, safe='/:@!$&()*+,;=-._~')}>"


# --- what it promises ---------------------------------------------------------------------------------------------


def read_certificate(folder: str | Path) -> dict[str, Any]:
    """What the certificate of a released graph says; refused where it, or a file it is of, is not as it was."""
    path = Path(folder)
    found = read_json(path / CERTIFICATE)
    text = (path / CERTIFICATE).read_text(encoding="utf-8")
    if found.get("seal") != certificate.seal(found) or text != as_json(found):
        raise VerificationError(
            f"{path / CERTIFICATE} is damaged or was edited: its seal does not fit its content."
        )
    known = found.get("hashes")
    if not isinstance(known, dict):
        raise VerificationError(f"{path / CERTIFICATE} does not say which files it is about.")
    there = {one.name for one in path.iterdir()} - {CERTIFICATE}
    changed = sorted(
        name for name in there | set(known) if name not in there or known.get(name) != digest(path / name)
    )
    if changed:
        raise VerificationError(
            f"{folder}: {', '.join(changed)} was changed, added or removed since it was certified."
        )
    return found


def verify_release(folder: str | Path) -> dict[str, Any]:
    """valid, epsilon, delta, reasons: the certificate of a released graph recomputed from ledger and files."""
    path, reasons = Path(folder), list[str]()
    epsilon = delta = None
    try:
        given = read_json(path / CERTIFICATE)
        again = _build(path, certificate.version_of(given))
        epsilon, delta = again["epsilon"], again["delta"]
        reasons += [*certificate.differences(given, again), *_uncharged(path)]
        if not reasons and (path / CERTIFICATE).read_text(encoding="utf-8") != as_json(given):
            reasons.append("certificate.json was edited: it is not written the way it was")
    except (VerificationError, RunError, InputError) as error:
        reasons.append(str(error))
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        reasons.append(f"a file is damaged ({type(error).__name__})")
    return {"valid": not reasons, "epsilon": epsilon, "delta": delta, "reasons": reasons}


def _read(folder: Path) -> tuple[TrainConfig, Mapping[str, Any]]:
    facts = read_yaml(folder / RELEASED)
    settings = facts.pop("settings", None)
    if not isinstance(settings, dict):
        raise RunError(f"{folder / RELEASED} has no settings: it is not what veil release wrote.")
    return TrainConfig.of(settings), facts


def _uncharged(folder: Path) -> list[str]:
    config, facts = _read(folder)
    ledger = Ledger(folder / LEDGER)
    promise = Promise.of(config.as_dict(), facts)
    charged = promise.missing(ledger.events, counts_are_there=False, due=None, ended=False)
    return [*unbound(ledger, config, facts, file=folder / RELEASED), *charged]


def _build(folder: Path, version: int = certificate.VERSION) -> dict[str, Any]:
    config, facts = _read(folder)
    ledger = Ledger(folder / LEDGER)
    delta = Promise.of(config.as_dict(), facts).delta
    promise = {
        "guarantee": "dp" if ledger.private else "none",
        "mechanism": RESPOND,
        "settings": f"settings in {RELEASED}",
        **{key: facts[key] for key in ("unit", "per_unit", "commitment", "may_be_confidential", "training")},
        **({"decided_from": list(facts["decided_from"])} if "decided_from" in facts else {}),
    }
    files = sorted(path.name for path in folder.iterdir() if path.name not in (CERTIFICATE, LEDGER))
    return certificate.build(folder, ledger, promise, delta, files, version)
