"""A report about one run or several: what is promised first, then what it is good for, then how it was attacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.account.statement import rounded_up, spending
from veilgraph.errors import ConfigError
from veilgraph.files import check_new, write_text
from veilgraph.layout import PRIVATE, REPORT_PAGE, REPORT_TEXT
from veilgraph.load import Graph
from veilgraph.mark import may_be_confidential, summarise
from veilgraph.pictures import bars, lines, scatter
from veilgraph.report.blocks import Block, Grid, Picture, Section, Words
from veilgraph.report.findings import Findings, find
from veilgraph.report.page import page
from veilgraph.run.run import Run
from veilgraph.train.loop import judged

WARNING = (
    "For the curator. Figures about confidential statements, losses and attacks depend on them without noise and are not "
    "covered by the promise: publish the folder that «veil export --format run» makes, not this page."
)
TITLE = "What these vectors promise, and what they are good for"
MEASURES = ("mrr", "hits@1", "hits@10", "mr")
POINTS = 1500  # entities on the map
MOST_RELATIONS = 30  # in a picture


def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    out: str | Path | None = None,
    force: bool = False,
    graph: Graph | str | Path | None = None,
    canaries: int = 0,
    format: str = "html",
    note: Callable[[str], None] | None = None,
) -> Path:
    """Write a report about runs on one graph; returns its path (report.html or report.md in the first run's folder). A file named by
    ``out`` that is there already is replaced only with ``force``.

    The first private run is the one the promise is about; the others are compared with it. With ``canaries`` it is
    audited, which trains it once more.

    Reads confidential data: the graph, to rank, attack and count. Releases: nothing; the report is for the curator.
    """
    if format not in ("html", "md"):
        raise ConfigError(f"a report is html or md, found {format!r}.")
    check_new(out, force=force)
    found = find(runs, graph=graph, canaries=canaries, note=note)
    first = next(iter(found.runs.values()))
    usual = first.folder / (REPORT_TEXT if format == "md" else REPORT_PAGE)
    return write(found, Path(out) if out is not None else usual, format)


def write(found: Findings, path: Path, format: str = "html", more: Sequence[Section] = ()) -> Path:
    """Write findings down, for the curator alone to read, wherever that is."""
    sections = [
        _promise(found.run),
        _short(found),
        _confidential(found.graph),
        _utility(found),
        _curves(found),
        _attacks(found),
        *more,
        _map(found.run, found.graph),
        _details(found.run),
    ]
    lead, footer = found.run.certificate["statement"], f"Written about {', '.join(found.runs)}."
    if format == "md":
        body = "\n".join(section.as_markdown() for section in sections)
        write_text(path, f"# {TITLE}\n\n{lead}\n\n> {WARNING}\n\n{body}\n{footer}\n", mode=PRIVATE)
    else:
        parts = [(section.title, section.as_html()) for section in sections]
        write_text(path, page(TITLE, lead, WARNING, parts, footer), mode=PRIVATE)
    return path


def _promise(run: Run) -> Section:
    document = run.certificate
    row = (
        "∞" if document["epsilon"] is None else rounded_up(document["epsilon"], 3),
        f"{document['delta']:g}",
        document["accountant"],
        document["unit"],
        document["per_unit"],
        document["mechanism"],
    )
    return Section(
        "What is promised",
        [
            Grid(("ε", "δ", "ε computed by", "unit", "statements of a unit", "mechanism"), [row]),
            Words(
                "ε bounds how much any one unit can change what comes out, δ the chance that the bound does not hold; smaller is safer. "
                "PLD and RDP are two ways of adding up what every step may tell (privacy-loss distributions, Rényi divergence): both "
                "are upper bounds, and the smaller counts."
            ),
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
    most = f" and reads at most {found['per_unit']} statements of each"
    cap = "" if found["unit"] == "statement" else most
    rows = [(name, c["confidential"], c["unrestricted"]) for name, c in found["relations"].items()]
    return Section(
        "What is confidential, and for whom",
        [
            Words(
                f"{found['confidential']:,} statements are confidential, {found['unrestricted']:,} are not (of all splits). What is "
                f"protected is one {found['unit']}; the training has {found['units']:,} of them{cap}."
            ),
            Grid(("relation", "confidential", "unrestricted"), rows),
            Words(
                f"An outsider still sees {sees['entity_names']:,} names and {sees['statements']:,} unrestricted statements; "
                f"{sees['of_them_known_by_name_only']:,} of the entities with secrets are known by name only."
            ),
        ],
    )


def _short(found: Findings) -> Section:
    """For whoever reads one table."""
    secret = any("confidential" in measured for measured in found.quality.values())

    def of(measured: dict[str, Any]) -> tuple[Any, ...]:
        own = measured.get("confidential", {}).get("mrr", "—")
        return (measured["mrr"], own) if secret else (measured["mrr"],)

    missing = ("not measured",) * (1 + secret)
    rows: list[tuple[Any, ...]] = [
        (
            name,
            *(of(found.quality[name]) if found.quality else missing),
            found.attacks[name]["auc"] if found.attacks else "not measured",
        )
        for name in found.runs
    ]
    if found.popular is not None:
        rows.append(("guessing popular answers", *of(found.popular), "—"))
    if found.quality:
        rows.append(("guessing at random", *of(_by_chance(found.quality[found.main])), 0.5))
    columns = (
        "",
        "use: finds the hidden end of a fact (MRR; 1 is perfect)",
        *(("of confidential facts alone",) if secret else ()),
        "harm: attacker tells members (AUC; 0.5 is a coin)",
    )
    blocks: list[Block] = [Grid(columns, rows)]
    if found.audited is not None:
        blocks.append(Words(_audit_words(found.audited)))
    return Section("In short", blocks)


def _audit_words(audited: dict[str, Any]) -> str:
    claimed, count = audited["epsilon_claimed"], audited["canaries"]
    return (
        f"Audit: {count} canaries (made-up statements about entities nobody else speaks of), each in by fair coins, "
        f"{'step by step' if audited['mechanism_level'] == 'steps' else 'in one more training'}. "
        f"The best guess who was in refutes every ε below {audited['epsilon_lower_bound']:.2f}; claimed is "
        f"{'∞' if claimed is None else rounded_up(claimed, 3)}: {audited['verdict']}. So many canaries could refute no ε above "
        f"{audited['power']:.1f}, and a bound near 0 says that nothing was found, not that nothing is there."
    )


def _by_kind(name: str, measured: dict[str, Any]) -> list[tuple[Any, ...]]:
    """A row for all statements, and one for each kind that was measured apart."""
    kinds = {"all": measured} | {k: measured[k] for k in ("confidential", "unrestricted") if k in measured}
    return [(name, kind, *(own.get(m, "—") for m in MEASURES)) for kind, own in kinds.items()]


def _by_chance(measured: dict[str, Any]) -> dict[str, Any]:
    """The MRR of guessing at random, of all statements and of each kind."""
    kinds = {k: measured[k] for k in ("confidential", "unrestricted") if k in measured}
    return {"mrr": measured["chance_mrr"], **{k: {"mrr": own["chance_mrr"]} for k, own in kinds.items()}}


def _utility(found: Findings) -> Section:
    title = "What they are good for"
    if not found.quality:
        return Section(title, [Words("The graph has no test split: nothing can be ranked.")])
    rows: list[tuple[Any, ...]] = []
    for name, measured in found.quality.items():
        rows += _by_kind(name, measured)
    if found.popular is not None:
        rows += _by_kind("guessing popular answers", found.popular)
    rows += _by_kind("guessing at random", _by_chance(found.quality[found.main]))
    possible = may_be_confidential(found.graph)
    relations = found.quality[found.main]["relations"]
    names = list(found.graph.relations)
    shown = sorted(relations, key=lambda name: -relations[name]["queries"])[:MOST_RELATIONS]
    heights = {
        f"{name}{' (may be confidential)' if possible[names.index(name)] else ''}": relations[name]["mrr"]
        for name in sorted(shown, key=lambda name: -relations[name]["mrr"])
    }
    text = f"MRR of each relation, best first: {found.main}"
    return Section(
        title,
        [
            Words(
                "Of every held-out fact one end is hidden and all entities are ranked. MRR is the mean of 1/rank; Hits@10 is how "
                "often the hidden end is among the first ten; MR is the mean rank."
            ),
            Grid(("run", "statements", *MEASURES), rows),
            Picture(bars(heights, text), text),
        ],
    )


def _curves(found: Findings) -> Section:
    blocks: list[Block] = []
    bases = {name: judged(run.config) for name, run in found.runs.items()}
    pictures = [  # losses of other statements are no comparison: each kind has a picture of its own
        *(("loss", f"mean loss of batches of {base}", base) for base in dict.fromkeys(bases.values())),
        ("private_loss", "mean loss of private batches", None),
        *(("valid_mrr", f"validation MRR of {base}", base) for base in dict.fromkeys(bases.values())),
        ("epsilon", "ε", None),
    ]
    for key, label, base in pictures:
        series = {
            name: [
                (number, line[key]) for number, line in enumerate(run.trace, 1) if line.get(key) is not None
            ]
            for name, run in found.runs.items()
            if base in (None, bases[name])
        }
        series = {name: points for name, points in series.items() if len(points) > 1}
        if series:
            text = f"{label} by epoch"
            blocks.append(Picture(lines(series, "epochs", label, text), text))
    return Section("How they learnt", blocks or [Words("No epochs: the counts alone answer.")])


def _attacks(found: Findings) -> Section:
    title = "What an attacker learns"
    if not found.attacks:
        return Section(title, [Words(found.no_attack)])
    rows = []
    for name, attacked in found.attacks.items():
        (low, high), (least, most) = attacked["interval"], attacked["control_interval"]
        beside = f"{attacked['control']:.3f} ({least:.3f} – {most:.3f})"
        found_at = attacked["tpr@fpr=0.01"]
        rows.append((name, attacked["auc"], f"{low:.3f} – {high:.3f}", beside, found_at, attacked["members"]))
    text = "members found by false alarms; the diagonal is a coin"
    curves = {name: [(x, y) for x, y in attacked["roc"]] for name, attacked in found.attacks.items()}
    curves["a coin"] = [(0.0, 0.0), (1.0, 1.0)]
    blocks: list[Block] = [
        Words(
            "Membership: confidential statements that were in the training against held-out ones that were not, each matched with one "
            "like it. AUC 0.5 is a coin. The control is the same attack on a model that never read a confidential statement: it must be "
            "a coin, and what is above it was learnt from them. The last but one column says how many members are found at 1 % false "
            "alarms."
        ),
        Grid(
            (
                "run",
                "AUC",
                "95 % interval",
                "control",
                "found at 1 % false alarms (by chance: 0.01)",
                "members tried",
            ),
            rows,
        ),
        Picture(lines(curves, "false alarms", "members found", text, pale=("a coin",)), text),
    ]
    audited = found.audited
    if audited is not None:
        blocks.append(Words(_audit_words(audited)))
        if audited["epsilon_claimed"] is not None:
            text = "the audit's lower bound must stay under the ε that is claimed"
            heights = {
                "ε claimed": audited["epsilon_claimed"],
                "ε refuted below": audited["epsilon_lower_bound"],
            }
            blocks.append(Picture(bars(heights, text), text))
    return Section(title, blocks)


def _map(run: Run, graph: Graph) -> Section:
    p = run.parameters
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(p.entities))[:POINTS])
    kinds = [
        run.entities[int(i)].split("/")[0].split(":")[-1] if "/" in run.entities[int(i)] else ""
        for i in chosen
    ]
    common = sorted(set(kinds), key=lambda kind: (-kinds.count(kind), kind))[:7]
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
            Grid(("what was spent", "charge"), spending(document["events"])),
            Grid(("file", "SHA-256"), list(document["hashes"].items())),
        ],
    )
