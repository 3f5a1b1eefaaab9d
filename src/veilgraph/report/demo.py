"""The demo's story: a hospital graph, an ordinary training, what it can answer, and a page about it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from veilgraph import models
from veilgraph.errors import UsageError
from veilgraph.evaluate.popularity import popularity
from veilgraph.files import write_text
from veilgraph.load import Graph, check, load, save, split
from veilgraph.report.page import bars, curve, page, paragraph, table
from veilgraph.runs import Run
from veilgraph.train import complete_config, train

QUESTIONS = ("hasDiagnosis", "mayBenefitFrom", "treatedBy")
WARNING = (
    "This run was trained without privacy: whoever has the vectors may recover statements about patients from them. "
    "Its ledger records ε = ∞. Do not publish it."
)
MARKER = ".veil-demo"


def tell(
    out: str | Path,
    *,
    patients: int = 2000,
    model: str = "complex",
    epochs: int | None = None,
    force: bool = False,
    seed: int = 0,
    note: Callable[[str], None] = print,
    listener: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """Generate, check, split, train, evaluate, predict, and write report.html; returns the figures."""
    folder = Path(out)
    replaced = folder.exists() and any(folder.iterdir())
    if replaced and not (force and (folder / MARKER).exists()):
        raise UsageError(
            f"{out} exists already. Choose another --out, or add --force to replace an earlier demo."
        )
    models.model_class(model)
    began = time.perf_counter()
    note(f"1/5  A hospital of {patients:,} patients is made up.")
    whole = load("builtin:hospital", patients=patients, seed=seed)
    if replaced:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    note(f"     {whole}; integrity: {len(check(whole))} findings.")
    save(split(whole, valid=0.05, test=0.05, seed=seed), folder / "graph")
    graph = load(folder / "graph")
    settings: dict[str, Any] = {"model": model, "epochs": epochs, "seed": seed}
    _, explanation = complete_config(graph, {k: v for k, v in settings.items() if v is not None})
    note(f"2/5  Training. {explanation}")
    run = train(
        graph, out=folder / "run", listener=listener, **{k: v for k, v in settings.items() if v is not None}
    )
    note("3/5  Ranking held-out facts among all entities.")
    result = run.evaluate("test", details=True)
    chance = popularity(graph, "test")
    note("4/5  Asking about one patient.")
    head = f"patient/{min(17, patients - 1)}"
    answers = {f"{head} {relation} ?": run.predict(head, relation, top=3) for relation in QUESTIONS}
    note("5/5  Writing the report.")
    seconds = time.perf_counter() - began
    report = folder / "report.html"
    write_text(report, _report(graph, run, result, chance, answers, explanation, seconds))
    return {
        "run": str(run.folder),
        "graph": str(folder / "graph"),
        "report": str(report),
        "quality": {
            "popular answers": chance,
            model: {k: result[k] for k in ("mrr", "mr", "hits@1", "hits@3", "hits@10")},
        },
        "answers": answers,
        "epsilon": None,
        "guarantee": "none",
        "seconds": round(seconds, 1),
    }


def _report(
    graph: Graph,
    run: Run,
    result: dict[str, Any],
    chance: dict[str, float],
    answers: dict[str, list[dict[str, Any]]],
    explanation: str,
    seconds: float,
) -> str:
    trace = run.trace
    lines = {"training loss": [(line["epoch"], line["loss"]) for line in trace]}
    judged = [(line["epoch"], line["valid_mrr"]) for line in trace if "valid_mrr" in line]
    if judged:
        lines["validation MRR"] = judged
    measures = ("mrr", "hits@1", "hits@3", "hits@10", "mr")
    relations = sorted(result["relations"].items(), key=lambda item: -item[1]["mrr"])
    sections = [
        (
            "How good it is",
            paragraph(
                f"Of every held-out fact one end is hidden and all {len(graph.entities):,} entities are ranked. "
                "MRR is the mean of 1/rank; Hits@10 is how often the hidden end is among the first ten."
            )
            + table(
                ("", *measures),
                [
                    ("popular answers", *(chance[m] for m in measures)),
                    (run.config.model, *(result[m] for m in measures)),
                ],
            ),
        ),
        ("By relation", bars({name: m["mrr"] for name, m in relations}, "MRR of each relation, best first")),
        (
            "How it learnt",
            paragraph(explanation) + curve(lines, "epochs", "Training loss and validation MRR by epoch"),
        ),
        (
            "What it answers",
            "".join(
                paragraph(question) + table(("answer", "score"), [(a["entity"], a["score"]) for a in found])
                for question, found in answers.items()
            ),
        ),
        (
            "The graph",
            table(("split", "statements"), [(name, len(array)) for name, array in graph.splits.items()])
            + paragraph(f"{len(graph.entities):,} entities, {len(graph.relations)} relations, all made up."),
        ),
    ]
    return page(
        "What a hospital graph can answer",
        f"{run.config.model} finds the hidden end of a fact with MRR {result['mrr']:.3f}; "
        f"guessing popular answers gives {chance['mrr']:.3f}.",
        WARNING,
        sections,
        f"Written by veil demo in {seconds:.0f} s. Graph fingerprint {graph.fingerprint[:16]}… Seed {run.config.seed}.",
    )
