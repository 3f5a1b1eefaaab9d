"""The folder of a classification with a guarantee: what is released, what it cost, and a certificate over both.

config.json         settings, all of them              ledger.jsonl    every charge
aggregates, network the released tensors               answers.tsv     entity, label, score; in curator/ where answers are not covered
certificate.json    what is promised, tied to the files
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.account import certificate
from veilgraph.account.events import gaussian, nothing, repeated, sampled
from veilgraph.account.ledger import Ledger
from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees.base import CURATOR, Outcome, guarantee
from veilgraph.classify.private_steps import COUNT_NOISE, STATE
from veilgraph.errors import RunError, UsageError, VerificationError
from veilgraph.files import as_json, read_arrays, read_tensors, write_json, write_tensors, write_text
from veilgraph.layout import AGGREGATES as SUMS
from veilgraph.layout import ANSWERS, CERTIFICATE, CERTIFIED, LEDGER, NETWORK, draft_of
from veilgraph.layout import CLASSIFICATION as CONFIG
from veilgraph.load import Graph
from veilgraph.load.labels import Labels
from veilgraph.run.commitment import commitment, confidential_relations
from veilgraph.run.facts import decided_from, digest_of


def begin(folder: Path, graph: Graph, labels: Labels, config: ClassifyConfig, told: dict[str, Any]) -> None:
    """A new folder, or one that was begun with the same settings on the same graph and labels."""
    path = folder / CONFIG
    if (
        folder.exists()
        and not path.exists()
        and [one for one in folder.iterdir() if one.name != CURATOR and draft_of(one.name) != CONFIG]
    ):
        raise UsageError(f"{folder} exists already and is not a classification. Choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    document = {"settings": {**asdict(config), **told}, **_facts(graph, labels, folder)}
    if path.exists():
        before = _read(folder)
        if any(before.get(key) != document[key] for key in ("settings", "commitment", "labels")):
            raise RunError(
                f"{folder} was begun with other settings, another graph or other labels. Choose another --out."
            )
    else:
        write_json(path, document)
    ledger = Ledger(folder / LEDGER)
    if not ledger.lines:
        ledger.charge(nothing(), "settings", facts=digest_of(document))


def _facts(graph: Graph, labels: Labels, folder: Path) -> dict[str, Any]:
    salt = folder / CURATOR / "salt"
    if not salt.exists():
        salt.parent.mkdir(parents=True, exist_ok=True)
        write_text(salt, secrets.token_hex(32), mode=0o600)
    try:
        key = bytes.fromhex(salt.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{salt} is damaged: whether this is the right graph cannot be told.") from None
    pairs = np.stack([labels.entity, labels.label]).astype(np.int64).tobytes()
    return {
        "commitment": commitment(graph, key.hex()),
        "labels": hmac.new(key, pairs + "\n".join(labels.names).encode(), hashlib.sha256).hexdigest(),
        "may_be_confidential": confidential_relations(graph),
        "decided_from": decided_from(graph),
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
    except (OSError, ValueError, TypeError, RecursionError):
        raise RunError(f"{folder} has no certificate: veil classify was not finished there.") from None


def verify(folder: Path) -> dict[str, Any]:
    """valid, epsilon, delta, reasons: the certificate recomputed from ledger and files."""
    reasons: list[str] = []
    epsilon, delta = None, None
    try:
        given = read_certificate(folder)
        again = _build(folder, certificate.version_of(given))
        epsilon, delta = again["epsilon"], again["delta"]
        reasons += certificate.differences(given, again)
        if not reasons and (folder / CERTIFICATE).read_text(encoding="utf-8") != as_json(given):
            reasons.append("certificate.json was edited: it is not written the way it was")
        reasons += _uncharged(folder)
    except (VerificationError, RunError) as error:
        reasons.append(str(error))
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        reasons.append(f"a file is damaged ({type(error).__name__})")
    return {"valid": not reasons, "epsilon": epsilon, "delta": delta, "reasons": reasons}


def _build(folder: Path, version: int = certificate.VERSION) -> dict[str, Any]:
    about = _read(folder)
    settings = about["settings"]
    kind, ledger = guarantee(str(settings["guarantee"])), Ledger(folder / LEDGER)
    if any(line["facts"] != digest_of(about) for line in ledger.lines if "facts" in line):
        raise VerificationError(f"{folder / CONFIG} was changed: it is not what the training began with.")
    promise = {
        "guarantee": "dp" if ledger.private else "none",
        "mechanism": kind.mechanism,
        "unit": kind.unit,
        "per_unit": 1,
        "also_public": kind.public,
        "settings": f"settings in {CONFIG}",
        "commitment": about["commitment"],
        "may_be_confidential": about["may_be_confidential"],
        **({"decided_from": about["decided_from"]} if "decided_from" in about else {}),
    }
    return certificate.build(folder, ledger, promise, float(settings["delta"]), CERTIFIED, version)


def _uncharged(folder: Path) -> list[str]:
    """What the folder shows was done and the ledger does not charge."""
    settings, ledger = _read(folder)["settings"], Ledger(folder / LEDGER)
    repeats = [event for event in ledger.events if event["event"] == "repeated"]
    if settings["guarantee"] == "edge":
        facts = read_arrays(folder / SUMS)[1]
        wanted = repeated(len(str(settings["into"]).split(",")), gaussian(float(facts["noise_multiplier"])))
        fits = wanted in repeats and ledger.continues(facts["ledger"])
        return [] if fits else ["the ledger does not charge the sums that were released"]
    reasons = []
    if gaussian(COUNT_NOISE) not in ledger.events:
        reasons.append("the ledger does not charge the noisy number of examples")
    step = sampled(float(settings["sample_rate"]), gaussian(float(ledger.found("noise_multiplier"))))
    if not repeats or any(event["of"] != step for event in repeats):
        reasons.append("the ledger's private steps are not those of the settings")
    state = folder / CURATOR / STATE
    if state.exists():  # with the curator
        facts = read_tensors(state)[1]
        if sum(int(event["times"]) for event in repeats) < int(facts["steps"]):
            reasons.append("the ledger charges fewer steps than were taken")
        if not ledger.continues(facts["ledger"]):
            reasons.append("the ledger is not the one that paid for the steps")
    return reasons


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return {
            **found,
            "settings": dict(found["settings"]),
            "commitment": str(found["commitment"]),
            "may_be_confidential": found["may_be_confidential"],
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{folder} is not the folder of a classification.") from None
