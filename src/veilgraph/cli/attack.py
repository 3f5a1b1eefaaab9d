"""veil attack membership RUN  ·  veil attack attribute RUN --attribute gender  ·  veil attack federated DIR --kind passive"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("attack", choices=["membership", "attribute", "federated"], help="which attack")
    parser.add_argument("run", help="a finished run folder; of a federation: its folder, with a transcript")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument("--seed", type=int, default=0, help="of whatever the attack draws")
    member = parser.add_argument_group("membership", "was this statement in the graph?")
    member.add_argument(
        "--count", type=int, default=2000, help="most members and non-members (default 2000 each)"
    )
    member.add_argument(
        "--shadows", type=int, default=0, help="also train so many shadow runs and decide by likelihood ratio"
    )
    member.add_argument(
        "--withhold",
        action="store_true",
        help="attack a twin of the run, trained without statements that a fair coin took out (default: the run itself; held-out "
        "statements, each matched with a member)",
    )
    secret = parser.add_argument_group("attribute", "what do lists of recommendations tell about a user?")
    secret.add_argument("--attribute", help="the relation from users to what is guessed, e.g. gender")
    secret.add_argument("--sanitise", help="how lists are made safer: see veil sanitise")
    secret.add_argument(
        "--attacker",
        default="best",
        help="best (default: of the quick ones, by a rehearsal), all (slow ones too), or one by name",
    )
    secret.add_argument(
        "--knowledge",
        default="lists",
        help="lists, items (and facts about them), people (and what else is known), history",
    )
    secret.add_argument("--relation", help="from users to items (default: the commonest)")
    secret.add_argument(
        "--catalogue",
        help="the public list of all items: a file (exponential needs one), or how their names begin",
    )
    secret.add_argument("--top", type=int, default=10, help="items in a list (default 10)")
    secret.add_argument("--known", action="store_true", help="lists may repeat what the user has")
    secret.add_argument(
        "--frontier",
        action="store_true",
        help="every sanitiser at several strengths: a table, and RUN/frontier.svg for the service's page",
    )

    federation = parser.add_argument_group(
        "federated", "what do messages of a federation tell about a client?"
    )
    federation.add_argument(
        "--kind",
        default="passive",
        help="server, passive (default), active or collusion; published: whoever is given the victim's finished run",
    )
    federation.add_argument(
        "--auxiliary", help="true statements for the server (default: the victim's validation split)"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Attack."""
    from veilgraph.errors import UsageError
    from veilgraph.run.run import Run

    if options.attack == "federated":
        from veilgraph.attack.federated import federated

        return federated(options.run, options.kind, auxiliary=options.auxiliary, seed=options.seed)
    if options.attack == "attribute":
        from veilgraph.attack.attribute import attribute

        if not options.attribute:
            raise UsageError("say what is to be guessed, e.g. --attribute gender.")
        chosen = {
            "graph": options.graph,
            "relation": options.relation,
            "listed": options.catalogue,
            "attacker": options.attacker,
            "knowledge": options.knowledge,
            "top": options.top,
            "repeat": options.known,
            "seed": options.seed,
        }
        if options.frontier:
            return _frontier(Run.open(options.run), options.attribute, chosen)
        return attribute(Run.open(options.run), options.attribute, sanitise=options.sanitise, **chosen)
    from veilgraph.attack.membership import membership
    from veilgraph.cli.terminal import TrainingProgress, note

    note(
        "A control is trained that never reads a confidential statement: the same attack on it must find nothing."
    )
    progress = TrainingProgress()
    found = membership(
        Run.open(options.run),
        graph=options.graph,
        count=options.count,
        shadows=options.shadows,
        seed=options.seed,
        withhold=options.withhold,
        listener=progress,
    )
    progress.close()
    return found


def _frontier(run: Any, name: str, chosen: dict[str, Any]) -> dict[str, Any]:
    from veilgraph.attack.attribute.frontier import frontier
    from veilgraph.cli.terminal import note
    from veilgraph.files import write_json, write_text

    rows, picture = frontier(run, name, tell=note, **chosen)
    write_json(run.folder / "frontier.json", rows, mode=0o600)
    write_text(run.folder / "frontier.svg", picture, mode=0o600)
    return {"attribute": name, "rows": rows, "out": str(run.folder / "frontier.svg")}


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note, table

    if "rows" in result:
        shown = ("sanitiser", "strongest", "strongest_attacker", "balanced_accuracy", "q_u", "ndcg")
        table(shown, [[row[column] for column in shown] for row in result["rows"]], result["attribute"])
        note(f"the picture: {result['out']}")
        return
    if "kind" in result:
        _show_federated(result)
        return
    if "attribute" in result:
        _show_attribute(result)
        return
    keys = ("guarantee", "epsilon", "members", "non_members", "non_members_are", "attack")
    facts({key: result[key] for key in keys}, "membership: 0.5 is a coin")
    columns = ("auc", "tpr@fpr=0.01", "tpr@fpr=0.001")
    rows = []
    for name, found in result["attacks"].items():
        cells = []
        for column in columns:
            low, high = found[f"{column}_interval"]
            cells.append(f"{found[column]:.3f} [{low:.3f}, {high:.3f}]")
        low, high = found["control_interval"]
        rows.append((name, *cells, f"{found['control']:.3f} [{low:.3f}, {high:.3f}]"))
    table(("attack", *columns, "control: auc"), rows)
    note(control_words(result))


def control_words(result: dict[str, Any]) -> str:
    """What the control says about the pool."""
    low, high = result["control_interval"]
    if low <= 0.5 <= high:
        return "The control never read a confidential statement, and nobody can tell members by it: what is above it was learnt from them."
    return (
        f"The control never read a confidential statement, and yet its AUC is {result['control']:.3f} [{low:.3f}, {high:.3f}]: members "
        "and non-members differ in something else too, and the attack may see that. Compare with the control, or use --withhold."
    )


def _show_federated(result: dict[str, Any]) -> None:
    from veilgraph.cli.terminal import facts, note, table

    if result["nothing_sent"]:
        facts(
            {key: result[key] for key in ("strategy", "members", "non_members")}, f"{result['kind']} attack"
        )
        note(f"Nothing was sent that an attack could use: {result['why']}")
        return
    keys = ("round", "score", "members", "non_members", "best f1 over rounds")
    facts(
        {key: result[key] for key in keys},
        f"{result['kind']} attack: an AUC of 0.5 is a coin, an F1 of 0.667 «all are members»",
    )
    rows = [
        (
            row["round"],
            *(f"{row['auc']:.3f} [{row['auc_interval'][0]:.3f}, {row['auc_interval'][1]:.3f}]",),
            row["f1"],
            row["tpr@fpr=0.01"],
        )
        for row in (*result["rounds"], {**result, "round": "chosen"})
    ]
    table(("round", "auc", "f1", "tpr@fpr=0.01"), rows)


def _show_attribute(result: dict[str, Any]) -> None:
    from veilgraph.cli.terminal import facts, note, table

    keys = ("sanitiser", "lists", "knowledge", "targets", "majority", "coin", "q_u", "ndcg", "ndcg_original")
    facts({key: result[key] for key in keys if result[key] is not None}, f"guessing {result['attribute']}")
    rows = []
    for name, found in result["attackers"].items():
        low, high = found["interval"]
        rows.append(
            (
                name,
                f"{found['balanced_accuracy']:.3f} [{low:.3f}, {high:.3f}]",
                found["accuracy"],
                found["auc"],
            )
        )
    table(("attacker", "balanced accuracy", "accuracy", "auc"), rows)
    note(
        f"«best» was chosen by a rehearsal; the strongest on the targets themselves is {result['strongest']['attacker']} with "
        f"{result['strongest']['balanced_accuracy']:.3f}: judge a defence by it."
    )
