"""A report about one run or several: what is promised first, then what it is good for, then how it was attacked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.attack import audit, membership
from veilgraph.errors import InputError, UsageError
from veilgraph.files import write_text
from veilgraph.load import Graph, load
from veilgraph.mark import may_be_confidential, summarise
from veilgraph.report.blocks import Grid, Picture, Section, Words
from veilgraph.report.page import lines, page, scatter
from veilgraph.runs import METRICS, Run

WARNING = (
    "For the curator. Figures about confidential statements, losses and attacks depend on them without noise and are not "
    "covered by the promise: publish the folder that «veil export --format run» makes, not this page."
)
MEASURES = ("mrr", "hits@1", "hits@10", "mr")
POINTS = 1500  # entities on the map


def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    out: str | Path | None = None,
    graph: Graph | str | Path | None = None,
    canaries: int = 0,
    format: str = "html",
    note: Callable[[str], None] | None = None,
) -> Path:
    """Write a report about runs on one graph; returns its path (report.html or report.md in the first run's folder).

    The first private run is the one the promise is about; the others are compared with it. With ``canaries`` it is
    audited, which trains it once more.

    Reads confidential data: the graph, to rank, attack and count. Releases: nothing; the report is for the curator.
    """
    if format not in ("html", "md"):
        raise UsageError(f"a report is html or md, found {format!r}.")
    many = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [run if isinstance(run, Run) else Run.open(run) for run in many]
    if not opened:
        raise UsageError("a report needs at least one run.")
    for run in opened:
        run.require_finished()
    source = load(graph) if graph is not None else opened[0].graph()
    told = note or (lambda text: None)
    names = _names(opened)
    main = next((run for run in opened if run.guarantee == "dp" and run.config.private), opened[0])
    sections = [
        _promise(main),
        _confidential(source),
        _utility(opened, names, source, told),
        _curves(opened, names),
        _attacks(opened, names, source, main, canaries, told),
        _map(main, source),
        _details(main),
    ]
    path = Path(out) if out is not None else opened[0].folder / f"report.{format}"
    title, lead = "What these vectors promise, and what they are good for", main.certificate["statement"]
    if format == "md":
        write_text(
            path, f"# {title}\n\n> {WARNING}\n\n" + "\n".join(section.as_markdown() for section in sections)
        )
    else:
        body = [(section.title, section.as_html()) for section in sections]
        write_text(
            path, page(title, lead, WARNING, body, f"Written by veil report about {', '.join(names)}.")
        )
    return path


def _names(runs: Sequence[Run]) -> list[str]:
    names = []
    for run in runs:
        kind = (
            f"ε = {run.epsilon:.3g}"
            if run.epsilon
            else {"dp": "confidential dropped"}.get(run.guarantee, run.guarantee)
        )
        name = f"{run.config.model}, {'no privacy' if kind == 'none' else kind}"
        names.append(name if name not in names else f"{name} ({run.folder.name})")
    return names


def _promise(run: Run) -> Section:
    document = run.certificate
    row = (
        "∞" if document["epsilon"] is None else document["epsilon"],
        f"{document['delta']:g}",
        document["accountant"],
        document["unit"],
        document["per_unit"],
        document["mechanism"],
    )
    return Section(
        "What is promised",
        [
            Words(document["statement"]),
            Grid(("ε", "δ", "accountant", "unit", "statements of a unit", "mechanism"), [row]),
            Grid(("not covered",), [(line,) for line in document["not_covered"]]),
        ],
    )


def _confidential(graph: Graph) -> Section:
    if graph.marks is None:
        return Section(
            "What is confidential",
            [Words("Nothing is marked: a private run takes everything for confidential.")],
        )
    found = summarise(graph)
    sees = found["outsider_sees"]
    rows = [(name, c["confidential"], c["unrestricted"]) for name, c in found["relations"].items()]
    return Section(
        "What is confidential, and for whom",
        [
            Words(
                f"{found['confidential']:,} statements are confidential, {found['unrestricted']:,} are not. What is protected is "
                f"one {found['unit']}: there are {found['units']:,}, of which a training reads at most {found['per_unit']} "
                f"statements each."
            ),
            Grid(("relation", "confidential", "unrestricted"), rows),
            Words(
                f"An outsider still sees {sees['entity_names']:,} names and {sees['statements']:,} unrestricted statements; "
                f"{sees['of_them_known_by_name_only']:,} of the entities with secrets are known by name only."
            ),
        ],
    )


def _utility(runs: Sequence[Run], names: Sequence[str], graph: Graph, told: Callable[[str], None]) -> Section:
    rows: list[tuple[Any, ...]] = []
    if not len(graph.splits.get("test", ())):
        return Section(
            "What they are good for", [Words("The graph has no test split: nothing can be ranked.")]
        )
    for run, name in zip(runs, names):
        found = _metrics(run)
        if found is None:
            told(f"ranking the test split: {name}")
            found = run.evaluate("test", graph=graph)
        rows.append((name, "all", *(found[m] for m in MEASURES)))
        for kind in ("confidential", "unrestricted"):
            if kind in found:
                rows.append((name, kind, *(found[kind][m] for m in MEASURES)))
    return Section(
        "What they are good for",
        [
            Words(
                "Of every held-out fact one end is hidden and all entities are ranked. MRR is the mean of 1/rank; Hits@10 is how "
                "often the hidden end is among the first ten; MR is the mean rank."
            ),
            Grid(("run", "statements", *MEASURES), rows),
        ],
    )


def _metrics(run: Run) -> dict[str, Any] | None:
    """What was measured before, if it was the test split."""
    try:
        found = json.loads((run.folder / METRICS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return dict(found) if found.get("split") == "test" else None


def _curves(runs: Sequence[Run], names: Sequence[str]) -> Section:
    blocks: list[Words | Grid | Picture] = []
    for key, label in (
        ("loss", "mean loss of ordinary batches"),
        ("private_loss", "mean loss of private batches"),
        ("epsilon", "ε"),
    ):
        series = {
            name: [(line["epoch"], line[key]) for line in run.trace if line.get(key) is not None]
            for run, name in zip(runs, names)
        }
        series = {name: points for name, points in series.items() if len(points) > 1}
        if series:
            text = f"{label} by epoch"
            blocks.append(Picture(lines(series, "epochs", label, text), text))
    return Section("How they learnt", blocks or [Words("No epochs: the counts alone answer.")])


def _attacks(
    runs: Sequence[Run],
    names: Sequence[str],
    graph: Graph,
    main: Run,
    canaries: int,
    told: Callable[[str], None],
) -> Section:
    blocks: list[Words | Grid | Picture] = []
    rows, curves = [], {}
    for run, name in zip(runs, names):
        told(f"attacking: {name}")
        try:
            found = membership(run, graph=graph)
        except InputError as error:
            return Section("What an attacker learns", [Words(str(error))])
        low, high = found["auc_interval"]
        rows.append((name, found["auc"], f"{low:.3f} – {high:.3f}", found["tpr@fpr=0.01"], found["members"]))
        curves[name] = [(x, y) for x, y in found["roc"]]
    blocks += [
        Words(
            "Membership: confidential statements that were in the training against held-out ones that were not. AUC 0.5 is a "
            "coin; the last but one column says how many members are found at 1 % false alarms."
        ),
        Grid(("run", "AUC", "95 % interval", "found at 1 % false alarms", "members tried"), rows),
    ]
    text = "members found by false alarms; the diagonal is a coin"
    curves["a coin"] = [(0.0, 0.0), (1.0, 1.0)]
    blocks.append(Picture(lines(curves, "false alarms", "members found", text), text))
    if canaries and main.config.private:
        told(f"auditing with {canaries} canaries")
        found = audit(main, graph=graph, canaries=canaries)
        blocks.append(
            Words(
                f"Audit: {found['canaries']} canaries, each in by a fair coin, in one more training. The best guess refutes every "
                f"ε below {found['epsilon_lower_bound']:.2f}; claimed is {found['epsilon_claimed'] or float('inf'):.2f}: "
                f"{found['verdict']}."
            )
        )
    return Section("What an attacker learns", blocks)


def _map(run: Run, graph: Graph) -> Section:
    p = run.parameters
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(p.entities))[:POINTS])
    kinds = [
        run.entities[int(i)].split("/")[0].split(":")[-1] if "/" in run.entities[int(i)] else ""
        for i in chosen
    ]
    common = [
        kind for kind, _ in sorted(((k, kinds.count(k)) for k in set(kinds)), key=lambda item: -item[1])[:7]
    ]
    groups = [kind if kind in common else "others" for kind in kinds]
    entities = scatter(
        _flat(p.entities[chosen].numpy()),
        groups,
        "Entities in the two main directions of their vectors, by kind",
    )
    possible = may_be_confidential(graph)[np.arange(len(p.relations)) % len(graph.relations)]
    which = np.where(possible, "may be confidential", "unrestricted").tolist()
    relations = scatter(
        _flat(p.relations.numpy().reshape(len(p.relations), -1)),
        which,
        "Relations, those that may be confidential apart",
    )
    return Section(
        "A map of the vectors",
        [
            Picture(entities, "entities in the two main directions of their vectors, coloured by kind"),
            Picture(
                relations,
                "relations in the two main directions of their vectors; which may be confidential is public",
            ),
        ],
    )


def _flat(rows: np.ndarray) -> np.ndarray:
    """The two main directions."""
    centred = rows - rows.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    flat = centred @ directions[:2].T
    return flat if flat.shape[1] == 2 else np.column_stack([flat, np.zeros(len(flat))])


def _details(run: Run) -> Section:
    document = run.certificate
    settings = [(key, str(value)) for key, value in run.config.as_dict().items() if value is not None]
    return Section(
        "Settings, ledger and hashes",
        [
            Grid(("setting", "value"), settings),
            Grid(
                ("what was spent", "charge"),
                [(line["what"], json.dumps(line["charge"])) for line in document["events"]],
            ),
            Grid(("file", "SHA-256"), list(document["hashes"].items())),
        ],
    )
