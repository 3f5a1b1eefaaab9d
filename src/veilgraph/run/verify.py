"""The certificate of a run folder: written when training ends, verified whenever somebody asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph.account import certificate
from veilgraph.account.events import non_private
from veilgraph.account.promise import ONE_OF_SEVERAL, RESPOND, Promise, best_of_is_paid
from veilgraph.errors import InputError, RunError, VerificationError
from veilgraph.files import as_json, write_json
from veilgraph.layout import CERTIFICATE, CERTIFIED, CONFIG, CURATOR, MARGINALS
from veilgraph.load.source import load, may_be_there
from veilgraph.run.facts import differing, unbound
from veilgraph.run.run import Run

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph


def certify(run: Run, graph: Graph | None = None) -> dict[str, Any]:
    """Write certificate.json for the vectors as they are; refused where the folder shows more than the ledger charges, or says something
    else about the graph than the graph does."""
    reasons = [*_uncharged(run), *(differing(run.facts, graph) if graph is not None else [])]
    if reasons:
        raise VerificationError(f"{run.folder} cannot be certified: {'; '.join(reasons)}.")
    document = _build(run)
    write_json(run.folder / CERTIFICATE, document)
    return document


def verify(run: Run, graph: str | Path | Graph | None = None) -> dict[str, Any]:
    """valid, epsilon, delta, reasons: the certificate recomputed from ledger and files.

    Where the graph and the curator's salt are at hand, statements and marks are compared with the commitment too.
    """
    reasons: list[str] = []
    epsilon: float | None = None
    try:
        given = run.certificate_as_it_is
        again = _build(run, certificate.version_of(given))
        epsilon = again["epsilon"]
        reasons += [*certificate.differences(given, again), *_uncharged(run, certificate.version_of(given))]
        if certificate.version_of(given) < 3 and "training" in run.facts:
            reasons.append("certificate.json is of an earlier version than the run it is about")
        if not reasons and (run.folder / CERTIFICATE).read_text(encoding="utf-8") != as_json(given):
            reasons.append("certificate.json was edited: it is not written the way it was")
    except (VerificationError, RunError) as error:
        reasons.append(str(error))
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        reasons.append(f"a file is damaged ({type(error).__name__})")
    named = graph if graph is not None else run.graph_here
    if named is not None and (run.folder / CURATOR).is_file():
        try:
            found = run.as_trained(load(named))
            if not run.is_of(found):
                reasons.append("the graph or its marks are not those the run was trained on")
            reasons += differing(run.facts, found)
        except InputError as error:
            if graph is not None or may_be_there(str(named)):
                reasons.append(str(error))
    return {"valid": not reasons, "epsilon": epsilon, "delta": run.delta, "reasons": reasons}


def _uncharged(run: Run, version: int = certificate.VERSION) -> list[str]:
    """What the folder shows was done but the ledger does not charge, or does not say."""
    said = int(run.facts["entities"]) + _added(run)
    if len(run.entities) != said:
        return [f"there are {len(run.entities):,} entities, but training and ledger speak of {said:,}"]
    reasons = unbound(run.ledger, run.config, run.facts, file=run.folder / CONFIG, facts_needed=version > 1)
    if not run.config.private:
        return reasons
    reasons += _trials(run)
    there, ledger = (run.folder / MARGINALS).exists(), run.ledger
    if (
        run.facts.get("one_of_several")
        and "best_of" not in run.facts
        and non_private(ONE_OF_SEVERAL) not in ledger.events
    ):
        reasons.append("it is one of several trainings, and the ledger does not say so")
    if run.config.prior in ("marginals", "public") and not there:
        reasons.append(f"{MARGINALS} is missing")
    try:
        promise = Promise.of(run.config.as_dict(), run.facts)
    except (KeyError, TypeError, ValueError):
        return [*reasons, "config.yaml does not say how many units there are"]
    return reasons + promise.missing(
        ledger.events,
        counts_are_there=there and run.config.prior != "public",  # (which are made from answers, or public)
        due=_due(run),
        ended=ledger.found("spent") is not None,
    )


def _due(run: Run) -> int | None:
    """How many steps were due where a training ended early, if public settings allow it to have ended there; None: all of them."""
    config, said = run.config, run.ledger.found("steps")
    epochs, steps = max(config.epochs or 1, 1), config.private_steps or 0
    first = 0
    if not run.facts.get(
        "in_rounds"
    ):  # validation stalls after so many looks without a better one, beside the first
        stalls = bool(config.patience and config.validate_every) and config.order == "interleaved"
        first = ((config.patience or 0) + 1) * (config.validate_every or 0) if stalls else epochs
    reachable = {steps * epoch // epochs for epoch in range(first, epochs)}
    return said if isinstance(said, int) and said in reachable else None


def _trials(run: Run) -> list[str]:
    """What is wrong with the charge for the trials a run is the best of."""
    if "best_of" not in run.facts:
        chosen = any(event["event"] == "selected" for event in run.ledger.events)
        return ["the ledger charges trials, and config.yaml does not speak of any"] if chosen else []
    mean, noise = float(run.facts["best_of"]), float(run.facts.get("score_noise", 0.0))
    paid = best_of_is_paid(run.ledger.events, mean, noise)
    return [] if paid else ["the ledger does not charge the trials this run is the best of"]


def _added(run: Run) -> int:
    """How many entities were added after training, by the ledger."""
    found = [line["added"] for line in run.ledger.lines if "added" in line]
    return sum(n for n in found if isinstance(n, int) and n > 0)


def _also_public(run: Run) -> list[str]:
    """What a run on descriptions takes as public beside what every run does."""
    starts = run.config.public_names
    whose = (
        "all entities"
        if starts is None
        else f"entities whose names begin with {', '.join(starts) or 'nothing'}"
    )
    added, held = _added(run), int(run.facts.get("held_out", 0))
    return [
        f"at most {run.facts['per_unit']} statements of a unit are read in a step",
        f"descriptions of {whose}, read as they are",
        *([f"which {held} entities the split kept from training"] if held else []),
        *([f"descriptions of {added} entities that were added after training"] if added else []),
    ]


def _build(run: Run, version: int = certificate.VERSION) -> dict[str, Any]:
    run.require_finished()
    read = "none" if run.guarantee == "none" else "confidential statements were not read"
    promise = {
        "guarantee": run.guarantee,
        "mechanism": (
            run.config.mechanism
            if run.config.private_steps or run.config.mechanism == RESPOND
            else "marginals"
        )
        if run.config.private
        else read,
        **{key: run.facts[key] for key in ("unit", "per_unit", "commitment", "may_be_confidential")},
    }
    if "training" in run.facts and version > 2:
        promise["training"] = str(run.facts["training"])
    if "decided_from" in run.facts:
        promise["decided_from"] = list(run.facts["decided_from"])
    if run.config.text is not None:
        promise["also_public"] = _also_public(run)
    return certificate.build(run.folder, run.ledger, promise, run.delta, CERTIFIED, version)
