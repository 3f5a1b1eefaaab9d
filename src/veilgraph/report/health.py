"""What a folder is, whether it is whole, and what can be done where it is not: for ``veil doctor``.

Nothing is decided here that the readers do not decide: a folder is whole where they read it. Recovering never deletes what somebody may
want: what is damaged and can be made again is moved aside, under a name that ends with «.damaged».
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from veilgraph import folders
from veilgraph.account.statement import rounded_up
from veilgraph.classify import folder as labels
from veilgraph.errors import InputError, VeilError
from veilgraph.files import is_left, read_lines, read_tensors
from veilgraph.layout import (
    ATTACKS,
    CERTIFICATE,
    CHECKPOINT,
    CURATOR,
    KINDS,
    METRICS,
    TRACE,
    is_draft,
    kind_of,
    strangers,
)
from veilgraph.load.store import damaged, files_of, open_graph
from veilgraph.run.measured import is_whole
from veilgraph.run.run import Run
from veilgraph.run.verify import verify
from veilgraph.train.publish import verify_release

ASIDE = ".damaged"
OURS = re.compile(
    rf"served-[0-9a-f]{{16}}\.safetensors|frontier\.(json|svg)|member\.json|curator|.*{re.escape(ASIDE)}"
)


@dataclass(frozen=True)
class Finding:
    """Something about a folder: ``bad`` where it is not as it should be; ``mend`` where that can be helped."""

    what: str
    bad: bool = False
    remedy: str = ""
    mend: Callable[[], object] | None = None


def examine(path: str | Path) -> dict[str, Any]:
    """kind, whole, findings (what, bad, remedy, can_be_mended), mended: what a folder is, and what is wrong with it.

    Reads confidential data: what is in the folder. Releases: nothing.
    """
    return _report(Path(path), mend=False)


def mend(path: str | Path) -> dict[str, Any]:
    """The same after everything was mended that can be."""
    return _report(Path(path), mend=True)


def _report(path: Path, *, mend: bool) -> dict[str, Any]:
    beside = folders.left_beside(path)
    if not path.exists() and not beside:
        raise InputError(f"there is nothing at {path}, and nothing was left beside it.")
    mended: list[str] = []
    if mend:
        mended += folders.recover(path)
        for one in _findings(path):
            if one.mend is not None:
                one.mend()
                mended.append(f"{one.what}: {one.remedy}")
    found = _findings(path)
    return {
        "path": str(path),
        "kind": kind_of(path) if path.is_dir() else None,
        "whole": not any(one.bad for one in found),
        "findings": [
            {"what": one.what, "bad": one.bad, "remedy": one.remedy, "can_be_mended": one.mend is not None}
            for one in found
        ],
        "mended": mended,
    }


def _findings(path: Path) -> list[Finding]:
    found = [
        Finding(
            f"{name} was left by a process that was stopped",
            bad=not path.exists(),
            remedy=f"veil doctor {path} --recover removes it, or puts back what it replaced",
            mend=partial(folders.recover, path),
        )
        for name in folders.left_beside(path)
    ]
    if not path.is_dir():
        return found
    kind = kind_of(path)
    examined = {"graph": _graph, "run": _run, "classification": _classification, "release": _release}
    if kind is None:
        return [
            *found,
            Finding(
                "it is no folder of this program", bad=True, remedy="name a graph, a run or a classification"
            ),
        ]
    return [*found, *examined[kind](path), *_others(path, kind)]


def _graph(path: Path) -> list[Finding]:
    try:
        return [Finding(f"{open_graph(path)!r}: every file is what was written")]
    except VeilError as error:
        broken = [f"{name} is not what was written" for name in _or_none(lambda: damaged(path))]
        remedy = "put it back from a copy, or load the source again with veil load --force"
        return [Finding(what, bad=True, remedy=remedy) for what in broken or [str(error)]]


def _release(path: Path) -> list[Finding]:
    found = verify_release(path)
    if found["valid"]:
        return [Finding("a graph made public: every file is what was certified"), *_graph(path)]
    return [
        Finding(
            reason,
            bad=True,
            remedy="put the folder back from a copy, or release the graph again (which costs again)",
        )
        for reason in found["reasons"]
    ]


def _or_none(ask: Callable[[], list[str]]) -> list[str]:
    try:
        return ask()
    except (VeilError, OSError, ValueError):
        return []


def _run(path: Path) -> list[Finding]:
    found: list[Finding] = []
    try:
        run = Run.open(path)
        ledger = run.ledger
        found.append(Finding(f"{run!r}: settings and ledger ({len(ledger.lines)} lines) can be read"))
    except VeilError as error:
        return [
            Finding(
                str(error),
                bad=True,
                remedy="put the file back from a copy: what was spent, and on what, is nowhere else",
            )
        ]
    found += [*_traces(path), *_figures(run)]
    if run.finished and (path / CERTIFICATE).is_file():
        told = verify(run)
        remedy = "put the files back from a copy, or train again"
        found += [Finding(f"{CERTIFICATE}: {reason}", bad=True, remedy=remedy) for reason in told["reasons"]]
        if told["valid"]:
            promised = (
                "nothing is promised" if told["epsilon"] is None else f"ε = {rounded_up(told['epsilon'], 3)}"
            )
            found.append(
                Finding(f"finished and certified: {promised}, and every file is the one that was certified")
            )
    elif run.finished:
        found.append(
            Finding(
                "its vectors are there and no certificate",
                bad=True,
                remedy=f"veil resume {path} certifies it",
            )
        )
    elif (path / CERTIFICATE).is_file():
        found.append(
            Finding(
                "it was certified, and its vectors are gone",
                bad=True,
                remedy="put them back from a copy: they cannot be made again for what was paid",
            )
        )
    else:
        found += _unfinished(run)
    return found


def _unfinished(run: Run) -> list[Finding]:
    path = run.folder / CHECKPOINT
    said = Finding("it is not finished", remedy=f"veil resume {run.folder}")
    if not path.exists():
        return [said]
    try:
        read_tensors(path)
    except VeilError as error:
        remedy = "it is moved aside, and the training begins again; what was paid stays paid"
        return [Finding(str(error), bad=True, remedy=remedy, mend=partial(_aside, path)), said]
    return [said]


def _traces(path: Path) -> list[Finding]:
    try:
        read_lines(path / TRACE)
        return []
    except VeilError as error:
        return [
            Finding(
                str(error),
                bad=True,
                remedy="it is moved aside; it is needed for pictures alone",
                mend=partial(_aside, path / TRACE),
            )
        ]


def _figures(run: Run) -> list[Finding]:
    return [
        Finding(
            f"{name} is damaged",
            bad=True,
            remedy="it is moved aside; figures are measured again when they are asked for",
            mend=partial(_aside, run.folder / name),
        )
        for name in (METRICS, ATTACKS)
        if (run.folder / name).is_file() and not is_whole(run.folder / name)
    ]


def _classification(path: Path) -> list[Finding]:
    if not (path / CERTIFICATE).is_file():
        return [Finding("it is not finished", remedy="run the same veil classify again")]
    told = labels.verify(path)
    if told["valid"]:
        return [Finding("finished and certified, and every file is the one that was certified")]
    return [
        Finding(reason, bad=True, remedy="put the files back from a copy, or classify again")
        for reason in told["reasons"]
    ]


def _others(path: Path, kind: str) -> list[Finding]:
    """What the table of files does not know, what killed processes left, and whom a curator's file is open to."""
    files = files_of(path) if kind == "graph" else KINDS[kind][1]
    known = [name for name in strangers(path, files) if not OURS.fullmatch(name)]
    found = [Finding(f"{name} was not written by this program, and is never touched") for name in known]
    found += [
        Finding(f"{one.name} was left by a process that was stopped", remedy="it is removed", mend=one.unlink)
        for one in path.glob(".*.tmp")
        if one.is_file() and is_draft(one.name, files) and is_left(one)
    ]
    if not path.stat().st_mode & 0o077:
        return found
    closed = [path / one.name for one in files if not one.public and (path / one.name).is_file()]
    return found + [
        Finding(
            f"{one.name} can be read by others on this machine",
            bad=one.name == CURATOR,
            remedy="it is closed",
            mend=partial(one.chmod, 0o600),
        )
        for one in closed
        if one.stat().st_mode & 0o077
    ]


def _aside(path: Path) -> None:
    names = (path.with_name(f"{path.name}{number or ''}{ASIDE}") for number in count())
    path.rename(next(name for name in names if not name.exists()))
