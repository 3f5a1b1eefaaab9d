"""The certificate: what a run promises, in words and numbers, tied to the very files it is about.

``build`` makes it from the ledger, the public facts and the files; verifying makes it again from the same and compares.
That shows that the parts belong together; who made them only a signature could show.
Nothing in it depends on confidential statements other than through the noisy vectors and the salted commitment.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from veilgraph.account.ceiling import Ceiling, ceiling
from veilgraph.account.epsilon import Spent
from veilgraph.account.ledger import Ledger
from veilgraph.account.statement import statement
from veilgraph.disk import digest
from veilgraph.errors import VerificationError

# 2: what an attacker reaches at most (mu, attack_accuracy); 3: which training it is of; 4: units in words that say «as head»
VERSION = 4
DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
SOFTWARE = ("veilgraph", "torch", "numpy", "dp-accounting")
NOT_COVERED = (
    "what unrestricted statements reveal by themselves",
    "files of the run that are not listed under hashes: trace, metrics, checkpoint, curator.json",
    "who is in the vocabulary",
)


def build(
    folder: Path,
    ledger: Ledger,
    promise: Mapping[str, Any],
    delta: float,
    files: Iterable[str],
    version: int = VERSION,
) -> dict[str, Any]:
    """The certificate of a finished folder, about those of the ``files`` that are there.

    ``promise`` holds guarantee, mechanism, unit, per_unit and commitment.

    An earlier ``version`` is built to verify what was written then.
    """
    if version > VERSION:
        raise VerificationError(
            f"certificate.json is of version {version}, and this program knows {VERSION} at most: verify it with a newer one."
        )
    dp = promise["guarantee"] == "dp"
    spent = ledger.spent(delta) if dp else Spent(math.inf, delta, None, math.inf)
    document: dict[str, Any] = {
        **{"kind": "veilgraph certificate", "version": version},
        "guarantee": promise["guarantee"],
        "epsilon": _finite(spent.epsilon),
        "delta": delta,
        "accountant": spent.method,
        "epsilon_by_pld": _finite(spent.pld),
        "epsilon_by_rdp": _finite(spent.rdp),
        **_ceiling(ledger, delta, dp=dp, version=version),
        "epsilon_at": {f"{d:g}": _finite(ledger.spent(d).epsilon) if dp else None for d in DELTAS},
        "neighbouring": "add or remove one unit",
        "unit": promise["unit"],
        "per_unit": promise["per_unit"],
        "mechanism": promise["mechanism"],
        **({"training": promise["training"]} if "training" in promise else {}),
        "public": _public(promise),
        **({"decided_from": list(promise["decided_from"])} if "decided_from" in promise else {}),
        "not_covered": list(NOT_COVERED),
        "commitment": promise["commitment"],
        "events": ledger.lines,
        "hashes": {ledger.path.name: ledger.digest, **_hashes(folder, files)},
        "software": {"python": platform.python_version(), **{name: _version(name) for name in SOFTWARE}},
    }
    document["statement"] = statement(document)
    return {**document, "seal": seal(document)}


def _hashes(folder: Path, files: Iterable[str]) -> dict[str, str]:
    return {name: digest(folder / name) for name in files if (folder / name).is_file()}


def _public(promise: Mapping[str, Any]) -> list[str]:
    """What everybody may know, and the promise is not about."""
    most = f"at most {promise['per_unit']} statements of a unit are read in a step"
    return [
        "names of entities and relations",
        "unrestricted statements",
        promise.get("settings", "settings in config.yaml"),
        f"relations whose statements may be confidential: {_list(promise['may_be_confidential'])}",
        *promise.get("also_public", [most]),
    ]


def _ceiling(ledger: Ledger, delta: float, *, dp: bool, version: int) -> dict[str, float | None]:
    """What an attacker reaches at most, since version 2."""
    if version < 2:
        return {}
    found = ceiling(ledger.events, delta) if dp else Ceiling(None, None)
    return {"mu": found.mu, "attack_accuracy": found.attack_accuracy}


def seal(document: Mapping[str, Any]) -> str:
    """SHA-256 of everything else in a certificate."""
    rest = {key: value for key, value in document.items() if key != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def version_of(document: Mapping[str, Any]) -> int:
    """By which rules it was written."""
    found = document.get("version", 1)
    return found if isinstance(found, int) and found > 0 else 1


def differences(given: Mapping[str, Any], again: Mapping[str, Any]) -> Sequence[str]:
    """Why a certificate does not hold; nothing if it does. ``again`` was built anew from ledger, facts and files."""
    reasons = []
    if given.get("seal") != seal(given):
        reasons.append("certificate.json was edited: its seal does not fit its content")
    for name in sorted({*given.get("hashes", {}), *again["hashes"]}):
        was, now = given.get("hashes", {}).get(name), again["hashes"].get(name)
        if was != now:
            reasons.append(
                f"{name} {'is missing' if now is None else 'was changed or added'} since it was certified"
            )
    for key in sorted({*again, *given}):
        if key not in ("seal", "hashes", "software", "statement") and given.get(key) != again.get(key):
            reasons.append(
                f"{key} is {given.get(key)!r} in the certificate, {again.get(key)!r} recomputed"[:300]
            )
    if given.get("statement") != _words(given):
        reasons.append("the statement in words does not say what the numbers say")
    return reasons


def _words(given: Mapping[str, Any]) -> str | None:
    """What the numbers of a certificate say; None where they are not there, or none."""
    try:
        return statement(given)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        return None


def _list(names: Sequence[str] | str) -> str:
    return names if isinstance(names, str) else ", ".join(names) or "none"


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
