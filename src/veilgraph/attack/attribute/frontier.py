"""The frontier: what an attacker reaches against what lists are still worth, for every sanitiser at several strengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.attack.attribute import REGIMES, attack, scene
from veilgraph.attack.attribute.knowledge import Knowledge
from veilgraph.load.graph import Graph
from veilgraph.pictures import lines
from veilgraph.recommend.offers import Offers
from veilgraph.run.run import Run
from veilgraph.sanitise import epsilon, sanitisers
from veilgraph.sanitise.people import Attribute

STRENGTHS: Mapping[bool, Mapping[str, tuple[str, ...]]] = {
    True: {
        "the same for everybody": ("everybody",),
        "random": tuple(f"random:keep={keep}" for keep in (9, 7, 5, 3, 0)),
        "shuffled, then random": tuple(f"shuffle,random:keep={keep}" for keep in (10, 7, 5, 3)),
        "popular": tuple(f"popular:keep={keep}" for keep in (9, 7, 5, 3)),
        "exponential": tuple(f"exponential:budget={budget}" for budget in (600, 200, 100, 40, 10)),
        "balanced": tuple(f"balanced:blend={blend}" for blend in (0, 0.2, 0.3, 0.4, 0.5, 0.6)),
        "balanced, flattened": tuple(
            f"balanced:blend={blend};flatten=0.4" for blend in (0, 0.2, 0.3, 0.4, 0.5)
        ),
    },
    False: {
        "the same for everybody": ("everybody",),
        "random": tuple(f"random:keep={keep}" for keep in (9, 8, 7, 5, 3, 0)),
        "shuffled, then random": tuple(f"shuffle,random:keep={keep}" for keep in (10, 7, 5, 3)),
        "popular": tuple(f"popular:keep={keep}" for keep in (9, 7, 5, 3)),
        "balanced": ("balanced", *(f"balanced:blend={blend}" for blend in (0.1, 0.3))),
        "balanced, then random": tuple(f"balanced,random:keep={keep}" for keep in (9, 8, 7, 5, 3)),
    },
}


def points(
    offers: Offers,
    secret: Attribute,
    extra: Knowledge,
    later: np.ndarray,
    chains: Mapping[str, Sequence[str]],
    *,
    repeat: bool,
    attacker: str = "best",
    top: int = 10,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """One row per chain of sanitisers, the lists as they are first; ``strongest`` is the best of all attackers on the targets."""
    rows = []
    for family, words in {"none": ("none",), **chains}.items():
        for chain in words:
            found = attack(
                offers,
                secret,
                sanitisers(chain) if chain != "none" else [],
                extra,
                later,
                attacker=attacker,
                top=top,
                repeat=repeat,
                seed=seed,
            )
            strongest = found.pop("strongest")
            each = found.pop("attackers")
            rows.append(
                {
                    "family": family,
                    "sanitiser": chain,
                    "lists": REGIMES[repeat],
                    **found,
                    "strongest": strongest["balanced_accuracy"],
                    "strongest_interval": strongest["interval"],
                    "strongest_attacker": strongest["attacker"],
                    **{
                        f"by {name}": one["balanced_accuracy"] for name, one in each.items() if name != "best"
                    },
                }
            )
            tell(f"{chain}: {rows[-1]['strongest']:.3f} at Q {rows[-1]['q_u']:.3f}")
    return rows


def frontier(
    run: Run,
    name: str,
    *,
    graph: Graph | str | Path | None = None,
    relation: str | None = None,
    listed: str | None = None,
    attacker: str = "best",
    knowledge: str = "lists",
    top: int = 10,
    repeat: bool = False,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[list[dict[str, Any]], str]:
    """The rows, and a picture, for the lists of a run; sanitisers with an ε only where a public list of items is named by a file.

    Reads confidential data: the attribute of everybody. Releases: nothing; for the curator.
    """
    offers, secret, extra, later = scene(run, name, graph, relation, knowledge, listed)
    keeps = {
        family: [words for words in chains if _fits(words, top)]
        for family, chains in STRENGTHS[repeat].items()
        if offers.public or epsilon(sanitisers(chains[0])) is None
    }
    if keeps.keys() != STRENGTHS[repeat].keys():
        tell(
            "exponential is left out: its ε needs the public list of all items in a file (--catalogue items.txt)."
        )
    rows = points(
        offers, secret, extra, later, keeps, repeat=repeat, attacker=attacker, top=top, seed=seed, tell=tell
    )
    return rows, picture(rows)


def _fits(words: str, top: int) -> bool:
    return all(
        int(part.partition("keep=")[2].split(";")[0]) <= top for part in words.split(",") if "keep=" in part
    )


def picture(rows: Sequence[Mapping[str, Any]], against: str = "q_u") -> str:
    """The strongest attacker's balanced accuracy by what is left of the lists, a line per family."""
    start = [(row[against], row["strongest"]) for row in rows if row["family"] == "none"]
    series = {}
    for family in dict.fromkeys(row["family"] for row in rows):
        if family != "none":
            own = [(row[against], row["strongest"]) for row in rows if row["family"] == family]
            series[family] = [*start, *own]
    label = {"q_u": "Q: scores of the lists, as a share of the best lists'", "ndcg": "NDCG of the lists"}[
        against
    ]
    name = str(rows[0]["attribute"])
    return lines(
        series,
        label,
        f"strongest attacker, balanced accuracy ({name}; {rows[0]['lists']})",
        f"What the strongest attacker learns about {name} against the utility of lists, for every sanitiser",
        across={"a coin": rows[0]["coin"]},
        bottom=min(rows[0]["coin"], *(row["strongest"] for row in rows)) - 0.02,
    )
