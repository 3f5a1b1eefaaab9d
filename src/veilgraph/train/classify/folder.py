"""The folder of a classification with a guarantee: what is released, what it cost, and a certificate over both.

config.json         settings, all of them              ledger.jsonl    every charge
aggregates, network the released tensors               answers.tsv     entity, label, score; in curator/ where answers are not covered
certificate.json    what is promised, tied to the files
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.account import certificate
from veilgraph.account.ledger import Ledger
from veilgraph.commitment import commitment, confidential_relations
from veilgraph.errors import RunError, UsageError, VerificationError
from veilgraph.files import as_json, write_json, write_tensors, write_text
from veilgraph.load import Graph
from veilgraph.load.labels import Labels
from veilgraph.train.classify.config import ClassifyConfig
from veilgraph.train.classify.guarantees import Outcome, guarantee

CONFIG, CERTIFICATE, LEDGER = "classification.json", "certificate.json", "ledger.jsonl"
ANSWERS, NETWORK, CURATOR = "answers.tsv", "network.safetensors", "curator"


def begin(folder: Path, graph: Graph, config: ClassifyConfig) -> None:
    """A new folder, or one that was begun with the same settings."""
    document = {"settings": asdict(config), **_facts(graph, folder)}
    path = folder / CONFIG
    if path.exists():
        before = _read(folder)
        if before["settings"] != document["settings"] or before["commitment"] != document["commitment"]:
            raise RunError(f"{folder} was begun with other settings or another graph. Choose another --out.")
        return
    if folder.exists() and [path for path in folder.iterdir() if path.name != CURATOR]:
        raise UsageError(f"{folder} exists already and is not a classification. Choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, document)


def _facts(graph: Graph, folder: Path) -> dict[str, Any]:
    salt = folder / CURATOR / "salt"
    if not salt.exists():
        salt.parent.mkdir(parents=True, exist_ok=True)
        write_text(salt, secrets.token_hex(32), mode=0o600)
    return {
        "commitment": commitment(graph, salt.read_text(encoding="utf-8")),
        "may_be_confidential": confidential_relations(graph),
    }


def finish(
    folder: Path, graph: Graph, labels: Labels, config: ClassifyConfig, outcome: Outcome
) -> dict[str, Any]:
    """Write what is released, and the certificate over it."""
    write_tensors(folder / NETWORK, dict(outcome.tensors))
    best = outcome.scores.argmax(1)
    target = folder / (ANSWERS if outcome.open_scores else f"{CURATOR}/{ANSWERS}")
    names, chance = graph.entities, outcome.scores[np.arange(len(best)), best]
    lines = [
        f"{name}\t{labels.names[label]}\t{score:.4f}\n"
        for name, label, score in zip(names, best, chance, strict=True)
    ]
    write_text(target, "".join(lines), mode=0o666 if outcome.open_scores else 0o600)
    document = _build(folder)
    write_json(folder / CERTIFICATE, document)
    return document


def is_one(folder: Path) -> bool:
    """Whether a folder is a classification's."""
    return (folder / CONFIG).is_file()


def read_certificate(folder: Path) -> dict[str, Any]:
    """As it was written."""
    try:
        return dict(json.loads((folder / CERTIFICATE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise RunError(f"{folder} has no certificate: veil classify was not finished there.") from None


def verify(folder: Path) -> dict[str, Any]:
    """valid, epsilon, delta, reasons: the certificate recomputed from ledger and files."""
    reasons: list[str] = []
    epsilon, delta = None, None
    try:
        again = _build(folder)
        epsilon, delta = again["epsilon"], again["delta"]
        given = read_certificate(folder)
        reasons += certificate.differences(given, again)
        if not reasons and (folder / CERTIFICATE).read_text(encoding="utf-8") != as_json(given):
            reasons.append("certificate.json was edited: it is not written the way it was")
        reasons += _uncharged(folder)
    except (VerificationError, RunError) as error:
        reasons.append(str(error))
    return {"valid": not reasons, "epsilon": epsilon, "delta": delta, "reasons": reasons}


def _build(folder: Path) -> dict[str, Any]:
    about = _read(folder)
    settings = about["settings"]
    kind, ledger = guarantee(str(settings["guarantee"])), Ledger(folder / LEDGER)
    promise = {
        "guarantee": "dp" if ledger.private else "as-published",
        "mechanism": kind.mechanism,
        "unit": kind.unit,
        "per_unit": 1,
        "also_public": kind.public,
        "commitment": about["commitment"],
        "may_be_confidential": about["may_be_confidential"],
    }
    return certificate.build(folder, ledger, promise, float(settings["delta"]))


def _uncharged(folder: Path) -> list[str]:
    """What the folder shows was done and the ledger does not charge."""
    settings, ledger = _read(folder)["settings"], Ledger(folder / LEDGER)
    if settings["guarantee"] == "edge":
        paid = sum(int(event.get("times", 0)) for event in ledger.events if event["event"] == "repeated")
        wanted = len(str(settings["into"]).split(","))
        return [] if paid >= wanted else ["the ledger does not charge every sum that was released"]
    steps = [event for event in ledger.events if event["event"] == "repeated"]
    noise = ledger.found("noise_multiplier")
    reasons = []
    if not any(event == {"event": "gaussian", "noise_multiplier": 20.0} for event in ledger.events):
        reasons.append("the ledger does not charge the noisy number of examples")
    if not steps or any(_multiplier(event["of"]) != noise for event in steps):
        reasons.append("the ledger's private steps are not those of the settings")
    return reasons


def _multiplier(step: dict[str, Any]) -> Any:
    inner = step["of"] if step["event"] == "sampled" else step
    return inner.get("noise_multiplier")


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return {
            **found,
            "settings": dict(found["settings"]),
            "commitment": str(found["commitment"]),
            "may_be_confidential": found["may_be_confidential"],
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise RunError(f"{folder} is not the folder of a classification.") from None
