"""The demo's story: a hospital graph trained without and with privacy, attacked, audited, and a page about it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from veilgraph import models
from veilgraph.config import TrainConfig
from veilgraph.errors import UsageError
from veilgraph.load import check, load, save, split
from veilgraph.mark import mark, summarise
from veilgraph.report.findings import find
from veilgraph.report.newcomers import introduce, section
from veilgraph.report.runs import write
from veilgraph.run.run import Run
from veilgraph.train import train

CONFIDENTIAL = ("hasDiagnosis", "hasFinding", "hasSymptom", "takes", "mayBenefitFrom")
QUESTIONS = ("hasDiagnosis", "mayBenefitFrom", "treatedBy")
MEASURES = ("mrr", "chance_mrr", "hits@1", "hits@3", "hits@10", "mr")
MARKER = ".veil-demo"


def tell(
    out: str | Path,
    *,
    patients: int = 2000,
    model: str = "complex",
    epochs: int | None = None,
    epsilon: float = 2.0,
    canaries: int = 300,
    force: bool = False,
    seed: int = 0,
    note: Callable[[str], None] = print,
    listener: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """Generate, mark, train twice, evaluate, predict, attack, audit, and write report.html; returns the figures."""
    folder = Path(out)
    replaced = folder.exists() and any(folder.iterdir())
    if replaced and not (force and (folder / MARKER).exists()):
        raise UsageError(
            f"{out} exists already. Choose another --out, or add --force to replace an earlier demo."
        )
    TrainConfig.of(
        {"model": model, "epochs": epochs, "epsilon": epsilon, "seed": seed}
    )  # before any work is done
    models.model_class(model)
    began = time.perf_counter()
    note(f"1/8  A hospital of {patients:,} patients is made up.")
    whole = load("builtin:hospital", patients=patients, seed=seed)
    if replaced:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    note(f"     {whole}; integrity: {len(check(whole))} findings.")
    whole = whole.with_marks(
        mark(whole, relations=CONFIDENTIAL)
    )  # first: what is held out must not depend on it
    save(split(whole, valid=0.05, test=0.05, seed=seed), folder / "graph")
    graph = load(folder / "graph")
    marked = summarise(graph)
    note(f"2/8  What patients have and take is confidential: {marked['confidential']:,} statements.")
    settings: dict[str, Any] = {
        "model": model,
        "seed": seed,
        **({"epochs": epochs} if epochs is not None else {}),
    }
    note("3/8  Training without privacy.")
    plain = train(graph, out=folder / "run", listener=listener, **settings)
    note(f"4/8  Training with privacy, ε = {epsilon:g}.")
    private = train(
        graph,
        out=folder / "private-run",
        listener=listener,
        epsilon=epsilon,
        **settings,
    )
    note(f"     {private.certificate['statement']}")
    note("5/8  Asking the private run about one patient.")
    head = f"patient/{min(17, patients - 1)}"
    answers = {f"{head} {relation} ?": private.predict(head, relation, top=3) for relation in QUESTIONS}
    note(
        f"6/8  Ranking held-out facts, attacking both runs, auditing the private one with {canaries:,} canaries."
    )
    found = find([private, plain], graph=graph, canaries=canaries, note=lambda text: note(f"     {text}"))
    note(
        "7/8  Keeping a tenth of the diseases from a private training on descriptions, and asking about them."
    )
    new = introduce(
        graph,
        folder / "described-run",
        kind="disease/",
        relations=("belongsTo", "treatedWith"),
        listener=listener,
        epsilon=epsilon,
        seed=seed,
    )
    note("8/8  Writing the report.")
    report = write(found, folder / "report.html", more=[section(new, Run.open(folder / "described-run"))])
    return {
        "run": str(plain.folder),
        "private_run": str(private.folder),
        "graph": str(folder / "graph"),
        "report": str(report),
        "quality": {
            "popular answers": found.popular,
            **{
                name: {
                    **{k: measured[k] for k in MEASURES},
                    "confidential_mrr": measured["confidential"]["mrr"],
                }
                for name, measured in found.quality.items()
            },
        },
        "attacks": {
            name: {k: attacked[k] for k in ("auc", "interval", "control", "control_interval", "tpr@fpr=0.01")}
            for name, attacked in found.attacks.items()
        },
        "audit": found.audited,
        "newcomers": new,
        "answers": answers,
        "certificate": private.certificate["statement"],
        "epsilon": private.epsilon,
        "guarantee": private.guarantee,
        "seconds": round(time.perf_counter() - began, 1),
    }
