"""The public list of what may be recommended: what a shop sells does not depend on who bought it.

Without one, the items of lists are those somebody is known to have: an item only one person has would vanish with him from
everybody's lists. So no ε holds for such lists, and the exponential mechanism refuses them. How the names of items begin is no
public list either: which names a graph has may be read off the histories (in a file of interactions it is), so for an ε it takes a file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load.vocabulary import Vocabulary


def catalogue(entities: Vocabulary, words: str) -> np.ndarray:
    """The ids of a public list, sorted: a file with a name on each line, or beginnings of names with commas («item/»).

    Reads confidential data: none; the names of entities are public.
    """
    path = Path(words)
    if path.is_file():
        return _listed(entities, path)
    starts = tuple(part.strip() for part in words.split(",") if part.strip())
    every = list(entities)
    silent = [start for start in starts if not any(name.startswith(start) for name in every)]
    if not starts or silent:
        asked = ", ".join(silent) or "nothing"
        raise InputError(
            f"a catalogue is a file with a name on each line, or how the names of all items begin, such as item/; found {words!r}, and "
            f"no name begins with {asked}."
        )
    return np.array([place for place, name in enumerate(every) if name.startswith(starts)], np.int64)


def names_itself(words: str | None) -> bool:
    """Whether a catalogue is a list of its own, a file; beginnings of names choose among those a graph happens to have."""
    return words is not None and Path(words).is_file()


def _listed(entities: Vocabulary, path: Path) -> np.ndarray:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    names = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    places = entities.places(names)
    if not len(places) or places.min() < 0:
        unknown = names[int(places.argmin())] if len(places) else "no name at all"
        raise InputError(
            f"{path} holds {unknown!r}, which is not in the graph: nothing was learnt about it, so it cannot be in a list. "
            "Leave it out of the catalogue."
        )
    return np.sort(places)
