"""The demo's story: a hospital graph trained without and with privacy, attacked, audited, and a page about it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilgraph import models
from veilgraph.attack import audit, membership
from veilgraph.errors import UsageError
from veilgraph.evaluate.popularity import popularity
from veilgraph.files import write_text
from veilgraph.load import Graph, check, load, save, split
from veilgraph.mark import mark, summarise
from veilgraph.report.page import bars, curve, page, paragraph, table
from veilgraph.runs import Run
from veilgraph.train import train

CONFIDENTIAL = ("hasDiagnosis", "hasFinding", "hasSymptom", "takes", "mayBenefitFrom")
QUESTIONS = ("hasDiagnosis", "mayBenefitFrom", "treatedBy")
MEASURES = ("mrr", "hits@1", "hits@3", "hits@10", "mr")
WARNING = (
    "The first run was trained without privacy: whoever has its vectors may recover statements about patients from them. "
    "Its ledger records ε = ∞. Do not publish it."
)
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
    models.model_class(model)
    began = time.perf_counter()
    note(f"1/7  A hospital of {patients:,} patients is made up.")
    whole = load("builtin:hospital", patients=patients, seed=seed)
    if replaced:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    note(f"     {whole}; integrity: {len(check(whole))} findings.")
    whole = split(whole, valid=0.05, test=0.05, seed=seed)
    save(whole.with_marks(mark(whole, relations=CONFIDENTIAL)), folder / "graph")
    graph = load(folder / "graph")
    marked = summarise(graph)
    note(f"2/7  What patients have and take is confidential: {marked['confidential']:,} statements.")
    settings: dict[str, Any] = {
        "model": model,
        "seed": seed,
        **({"epochs": epochs} if epochs is not None else {}),
    }
    explained: list[str] = []
    note("3/7  Training without privacy.")
    plain = train(graph, out=folder / "run", listener=listener, explain=explained.append, **settings)
    note(f"4/7  Training with privacy, ε = {epsilon:g}.")
    private = train(
        graph,
        out=folder / "private-run",
        listener=listener,
        explain=explained.append,
        epsilon=epsilon,
        **settings,
    )
    note(f"     {private.certificate['statement']}")
    note("5/7  Ranking held-out facts among all entities, and asking about one patient.")
    results = {
        "no privacy": plain.evaluate("test", details=True),
        f"ε = {epsilon:g}": private.evaluate("test"),
    }
    chance = popularity(graph, "test")
    head = f"patient/{min(17, patients - 1)}"
    answers = {f"{head} {relation} ?": private.predict(head, relation, top=3) for relation in QUESTIONS}
    note("6/7  Attacking both: which confidential statements were in the graph?")
    attacks = {name: membership(run) for name, run in zip(results, (plain, private))}
    note(f"7/7  Auditing the private training with {canaries:,} canaries, and writing the report.")
    audited = audit(private, canaries=canaries)
    seconds = time.perf_counter() - began
    report = folder / "report.html"
    story = _Story(
        graph, marked, plain, private, results, chance, answers, attacks, audited, explained, seconds
    )
    write_text(report, story.page())
    return {
        "run": str(plain.folder),
        "private_run": str(private.folder),
        "graph": str(folder / "graph"),
        "report": str(report),
        "quality": {
            "popular answers": chance,
            **{name: {k: found[k] for k in MEASURES} for name, found in results.items()},
        },
        "attacks": {name: {k: found[k] for k in ("auc", "tpr@fpr=0.01")} for name, found in attacks.items()},
        "audit": audited,
        "answers": answers,
        "certificate": private.certificate["statement"],
        "epsilon": private.epsilon,
        "guarantee": private.guarantee,
        "seconds": round(seconds, 1),
    }


@dataclass(frozen=True)
class _Story:
    """What the report is about."""

    graph: Graph
    marked: dict[str, Any]
    plain: Run
    private: Run
    results: dict[str, dict[str, Any]]
    chance: dict[str, float]
    answers: dict[str, list[dict[str, Any]]]
    attacks: dict[str, dict[str, Any]]
    audited: dict[str, Any]
    explained: list[str]
    seconds: float

    def page(self) -> str:
        """The whole page."""
        best, private = self.results.values()
        caught = [found["auc"] for found in self.attacks.values()]
        return page(
            "What a hospital graph can answer, and what it gives away",
            f"Without privacy {self.plain.config.model} finds the hidden end of a fact with MRR {best['mrr']:.3f}, with "
            f"privacy {private['mrr']:.3f}; guessing popular answers gives {self.chance['mrr']:.3f}. An attacker tells "
            f"members from others with AUC {caught[0]:.2f} without privacy, {caught[1]:.2f} with it (0.5 is a coin).",
            WARNING,
            [
                ("What is promised", self._promise()),
                ("How good it is", self._quality()),
                ("What an attacker learns", self._attacks()),
                ("What the private run answers", self._answers()),
                ("By relation, without privacy", self._relations()),
                ("How it learnt", self._learning()),
                ("The graph", self._graph()),
            ],
            f"Written by veil demo in {self.seconds:.0f} s. Seed {self.plain.config.seed}.",
        )

    def _promise(self) -> str:
        document = self.private.certificate
        rows = [(line["what"], str(line["charge"]["event"])) for line in document["events"]]
        return (
            paragraph(document["statement"])
            + table(
                ("ε", "δ", "accountant", "unit", "mechanism"),
                [
                    (
                        document["epsilon"],
                        f"{document['delta']:g}",
                        document["accountant"],
                        document["unit"],
                        document["mechanism"],
                    )
                ],
            )
            + table(("what was spent", "charge"), rows)
        )

    def _quality(self) -> str:
        rows: list[tuple[Any, ...]] = [("popular answers", *(self.chance[m] for m in MEASURES))]
        for name, found in self.results.items():
            rows.append((name, *(found[m] for m in MEASURES)))
            for kind in ("confidential", "unrestricted"):
                if kind in found:
                    rows.append((f"{name}: {kind}", *(found[kind][m] for m in MEASURES)))
        return paragraph(
            f"Of every held-out fact one end is hidden and all {len(self.graph.entities):,} entities are ranked. "
            "MRR is the mean of 1/rank; Hits@10 is how often the hidden end is among the first ten."
        ) + table(("", *MEASURES), rows)

    def _attacks(self) -> str:
        rows = []
        for name, found in self.attacks.items():
            low, high = found["auc_interval"]
            rows.append((name, found["auc"], f"{low:.3f} – {high:.3f}", found["tpr@fpr=0.01"]))
        audited = self.audited
        return (
            paragraph(
                "Membership: confidential statements that were in the training against held-out ones that were not, by the "
                "vectors alone. AUC 0.5 is a coin; the last column is how many members are found at 1 % false alarms."
            )
            + table(("run", "AUC", "95 % interval", "found at 1 % false alarms"), rows)
            + paragraph(
                f"Audit: {audited['canaries']} canaries, each in the private training by a fair coin. The best guess refutes "
                f"every ε below {audited['epsilon_lower_bound']:.2f}; claimed is {audited['epsilon_claimed']:.2f}: "
                f"{audited['verdict']}."
            )
        )

    def _answers(self) -> str:
        return "".join(
            paragraph(question) + table(("answer", "score"), [(a["entity"], a["score"]) for a in found])
            for question, found in self.answers.items()
        )

    def _relations(self) -> str:
        best = next(iter(self.results.values()))["relations"]
        ordered = sorted(best.items(), key=lambda item: -item[1]["mrr"])
        return bars({name: m["mrr"] for name, m in ordered}, "MRR of each relation, best first")

    def _learning(self) -> str:
        trace = self.plain.trace
        lines = {"training loss": [(line["epoch"], line["loss"]) for line in trace]}
        judged = [(line["epoch"], line["valid_mrr"]) for line in trace if "valid_mrr" in line]
        if judged:
            lines["validation MRR"] = judged
        said = "".join(paragraph(line) for line in self.explained)
        return said + curve(lines, "epochs", "Training loss and validation MRR by epoch, without privacy")

    def _graph(self) -> str:
        relations = self.marked["relations"]
        return (
            table(("split", "statements"), [(name, len(array)) for name, array in self.graph.splits.items()])
            + table(
                ("confidential relation", "statements"),
                [(n, c["confidential"]) for n, c in relations.items()],
            )
            + paragraph(
                f"{len(self.graph.entities):,} entities, {len(self.graph.relations)} relations, all made up. "
                f"An outsider sees {self.marked['unrestricted']:,} unrestricted statements."
            )
        )
