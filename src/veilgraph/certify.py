"""The certificate of a run folder: written when training ends, verified whenever somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph.account import certificate
from veilgraph.errors import InputError, RunError, VerificationError
from veilgraph.files import as_json, write_json
from veilgraph.run_facts import differing, unbound
from veilgraph.run_files import CERTIFICATE, CURATOR, MARGINALS
from veilgraph.runs import DELTA, Run

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
    from veilgraph.load import load

    reasons: list[str] = []
    epsilon: float | None = None
    try:
        given = run.certificate
        again = _build(run, certificate.version_of(given))
        epsilon = again["epsilon"]
        reasons += [*certificate.differences(given, again), *_uncharged(run)]
        if not reasons and (run.folder / CERTIFICATE).read_text(encoding="utf-8") != as_json(given):
            reasons.append("certificate.json was edited: it is not written the way it was")
    except (VerificationError, RunError) as error:
        reasons.append(str(error))
    named = graph if graph is not None else (run.graph_source if run.facts["graph"] else None)
    if named is not None and (run.folder / CURATOR).is_file():
        try:
            found = run.as_trained(load(named))
            if not run.is_of(found):
                reasons.append("the graph or its marks are not those the run was trained on")
            reasons += differing(run.facts, found)
        except InputError as error:
            if graph is not None or Path(str(named)).exists():
                reasons.append(str(error))
    return {"valid": not reasons, "epsilon": epsilon, "delta": run.config.delta or DELTA, "reasons": reasons}


def _uncharged(run: Run) -> list[str]:
    """What the folder shows was done but the ledger does not charge, or does not say."""
    said = int(run.facts["entities"]) + _added(run)
    if len(run.entities) != said:
        return [f"there are {len(run.entities):,} entities, but training and ledger speak of {said:,}"]
    changed = unbound(run.ledger, run.config, run.facts)
    if not run.config.private:
        return changed
    from veilgraph.account.epsilon import COARSE, spent
    from veilgraph.account.events import gaussian
    from veilgraph.train.private import quantile
    from veilgraph.train.private.plan import all_steps
    from veilgraph.train.private.setup import COUNT_NOISE, terms_of_facts

    config, reasons = run.config, changed
    charged = run.ledger.events
    reasons += _trials(run)
    events = [part for event in charged for part in _each(event)]
    if gaussian(COUNT_NOISE) not in events:
        reasons.append("the ledger does not charge the noisy number of units")
    there = (run.folder / MARGINALS).exists()
    if (there or config.prior == "marginals") and not any(
        _pays(e, config.prior_noise or 0.0) for e in events
    ):
        reasons.append("the ledger does not charge the noisy marginals")
    if config.prior == "marginals" and not there:
        reasons.append(f"{MARGINALS} is missing")
    try:
        terms = terms_of_facts(run.facts, config)
    except (KeyError, TypeError, ValueError):
        return [*reasons, "config.yaml does not say how many units there are"]
    taken = [event for event in events if event["event"] == "repeated"]
    histogram = quantile.event(terms.expected / terms.rate)
    if config.clip_quantile is not None and taken and histogram not in events:
        reasons.append("the ledger does not charge the histogram its clip norm was found by")
    stages = [stage["of"] for stage in all_steps(config, terms)]
    if any(event["of"] not in stages for event in taken):
        reasons.append("the ledger's private steps are not those of config.yaml")
    due = run.ledger.found("steps") if _may_end_early(run) else None
    wanted = all_steps(config, terms, int(due) if isinstance(due, int) else None)
    for step in stages:  # (stages with little between them may cost the same)
        paid, asked = (sum(int(e["times"]) for e in events if e["of"] == step) for events in (taken, wanted))
        if paid >= asked:
            continue
        more = spent([*charged, step], config.delta or DELTA, grid=COARSE).epsilon
        if config.epsilon is not None and more > config.epsilon and run.ledger.found("spent") is not None:
            break  # the budget was spent before
        reasons.append(
            "the ledger charges fewer private steps than config.yaml says, and the budget allowed more"
        )
        break
    return reasons


def _may_end_early(run: Run) -> bool:
    """Whether public settings allow an end before all private steps are taken: rounds that are over, validation that stalls."""
    config = run.config
    stalls = bool(config.patience and config.validate_every) and config.order == "interleaved"
    return bool(run.facts.get("in_rounds")) or stalls


def _trials(run: Run) -> list[str]:
    """What is wrong with the charge for the trials a run is the best of: all of it was done by each of them."""
    from veilgraph.account.events import gaussian
    from veilgraph.train.private.setup import COUNT_NOISE

    chosen = [event for event in run.ledger.events if event["event"] == "selected"]
    if "best_of" not in run.facts:
        return ["the ledger charges trials, and config.yaml does not speak of any"] if chosen else []
    count = gaussian(COUNT_NOISE)
    outside = [event for event in run.ledger.events if event["event"] not in ("selected", "nothing")]
    inside = _each(chosen[0]) if len(chosen) == 1 and chosen[0]["mean"] == run.facts["best_of"] else []
    whole = count in inside and gaussian(run.facts.get("score_noise", 0.0)) in inside
    counted = len(outside) > 0 and all(event == count for event in outside)  # more than once after a crash
    return [] if whole and counted else ["the ledger does not charge the trials this run is the best of"]


def _each(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What an event paid for: the best of several trainings paid for what each of them did."""
    return list(event["of"].get("all", [])) if event["event"] == "selected" else [event]


def _pays(event: Mapping[str, Any], multiplier: float) -> bool:
    """Whether an event is several Gaussian releases that together cost as much as one of this multiplier."""
    parts = event["all"] if event["event"] == "together" else []  # a single one is another release's charge
    if not multiplier or not parts or any(part["event"] != "gaussian" for part in parts):
        return False
    return bool(sum(part["noise_multiplier"] ** -2 for part in parts) >= (1 - 1e-9) * multiplier**-2)


def _added(run: Run) -> int:
    """How many entities were added after training, by the ledger."""
    found = [line["added"] for line in run.ledger.lines if "added" in line]
    return sum(n for n in found if isinstance(n, int) and n > 0)


def _also_public(run: Run) -> list[str]:
    """What a run on descriptions takes as public beside what every run does."""
    from veilgraph.train.text import public_names

    starts = public_names(run.config)
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
        "mechanism": (run.config.mechanism if run.config.private_steps else "marginals")
        if run.config.private
        else read,
        **{key: run.facts[key] for key in ("unit", "per_unit", "commitment", "may_be_confidential")},
    }
    if "decided_from" in run.facts:
        promise["decided_from"] = list(run.facts["decided_from"])
    if run.config.text is not None:
        promise["also_public"] = _also_public(run)
    return certificate.build(run.folder, run.ledger, promise, run.config.delta or DELTA, version)
