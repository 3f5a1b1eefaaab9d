"""A certificate in plain words, for whoever must sign."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from veilgraph import registry
from veilgraph.account.events import is_pure

BY_HEAD = 4  # the first version whose words say that a statement belongs to its head alone


def protected(unit: str, version: int = BY_HEAD) -> str:
    """Who or what a unit is, in words (of a version); units of marks say so themselves, and so do guarantees about labels."""
    name, _, key = unit.partition(":")
    for kind in ("units", "guarantees"):
        if name in registry.names(kind):
            one = registry.find(kind, name)
            before = getattr(one, "words_before", "") if version < BY_HEAD else ""
            return str(before or one.words).format(key=key)
    return f"all confidential statements of one {unit} are"


def asked_about(unit: str) -> str:
    """What somebody who knows everything else is not sure of."""
    return (
        str(registry.find("guarantees", unit).asked)
        if unit in registry.names("guarantees")
        else "a statement"
    )


def statement(document: Mapping[str, Any]) -> str:
    """What the numbers of a certificate mean."""
    if document["guarantee"] == "none":
        return (
            "No privacy is promised. These vectors were learnt from every statement without protection: whoever has them "
            "may be able to tell which statements were in the graph. Treat them as you would treat the graph itself."
        )
    if document["guarantee"] != "dp":
        return (
            "As published, not differentially private. Noise was added the way a paper describes, but which rows it was "
            "added to reveals the statements. No ε is claimed. Treat the vectors as you would treat the graph itself."
        )
    unit, version = str(document["unit"]), int(document.get("version", 1))
    who = protected(unit, version)
    epsilon, delta = document["epsilon"], document["delta"]
    if epsilon is None:
        return f"No privacy is promised: at δ = {delta:g} no ε can be given. Treat the vectors as you would treat the graph."
    if epsilon == 0:
        return (
            "These vectors were learnt from unrestricted statements alone; no confidential statement was read. They "
            f"reveal nothing about {who.rpartition(' ')[0]} beyond what the unrestricted statements and the public names reveal."
            f"{_decided(document)}"
        )
    odds = math.exp(min(epsilon, 700))
    asked = asked_about(unit) if version > 1 else "a statement"
    return (
        f"Whether {who} in the graph changes the probability of any outcome of this training by a factor of at most "
        f"{rounded_up(odds, 2)} (ε = {rounded_up(epsilon, 3)}), except with probability {delta:g} (δ). Someone who knows everything else "
        f"in the graph and thinks {asked} as likely as not cannot become more than {_sure(epsilon)} % sure of it."
        f"{_reached(document)}{_margin(document)} "
        f"This holds for what is released here, and for everything that is computed from it and public facts. It does not cover "
        f"what unrestricted statements reveal, nor the names of entities and relations, which are public. It is about this "
        f"run alone: several runs on one graph add up{_forks(document)}.{_decided(document)}"
    )


def _reached(document: Mapping[str, Any]) -> str:
    """How often somebody who guesses is right, which is less: nobody is lucky every time."""
    accuracy = document.get("attack_accuracy")
    if accuracy is None:
        return ""
    return f" Guessing every time, they are right in at most {rounded_up(100 * accuracy, 1)} % of cases (a coin: 50 %)."


def _margin(document: Mapping[str, Any]) -> str:
    """Whether what was released stays below its bound or reaches it, since version 4."""
    charged = [
        line["charge"]
        for line in document.get("events", [])
        if isinstance(line, Mapping) and "charge" in line
    ]
    told = [event for event in charged if event["event"] not in ("nothing", "non-private")]
    if int(document.get("version", 1)) < 4 or not told or not all(map(is_pure, told)):
        return ""
    return (
        " This bound is reached, not only kept: whoever saw the noisy answers or counts themselves would be right that often. (Noisy "
        "training steps with the same ε stay far below it.)"
    )


def _forks(document: Mapping[str, Any]) -> str:
    """What a copy of an unfinished folder would be."""
    found = document.get("training")
    return (
        f", also where two certificates name the same training ({found}) and other charges" if found else ""
    )


def _decided(document: Mapping[str, Any]) -> str:
    """What the promise takes to be public although statements decided it."""
    found = document.get("decided_from", [])
    return (
        f" It takes to be public, though confidential statements had a part in it: {'; '.join(found)}."
        if found
        else ""
    )


def spending(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A ledger for people: what was spent, and how; lines that repeat each other are one."""
    rows = [(str(line["what"]), _brief(line["charge"])) for line in lines]
    grouped = [(row, len(list(same))) for row, same in groupby(rows)]
    return [(f"{what} ({count} times)" if count > 1 else what, charge) for (what, charge), count in grouped]


def _brief(event: Mapping[str, Any]) -> str:
    kind = event["event"]
    if kind == "repeated":
        return f"{event['times']} × {_brief(event['of'])}"
    if kind == "sampled":
        return f"{_brief(event['of'])}, sampled at {event['rate']:.4g}"
    if kind == "together":
        return " + ".join(_brief(part) for part in event["all"])
    numbers = (f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in event.items() if k != "event")
    return f"{kind} {' '.join(numbers)}".strip()


def rounded_up(value: float, digits: int) -> str:
    """A number rounded up: a promise may be printed larger than it is, never smaller."""
    scale = 10**digits
    return f"{math.ceil(value * scale - 1e-9) / scale:,.{digits}f}"


def _sure(epsilon: float) -> str:
    """How sure somebody can become who thought it as likely as not, in percent; with as many digits as tell it from 100."""
    chance = 100 / (1 + math.exp(-min(epsilon, 700)))
    digits = next((n for n in range(1, 12) if float(rounded_up(chance, n)) < 100), None)
    return "100" if digits is None else rounded_up(chance, digits)
