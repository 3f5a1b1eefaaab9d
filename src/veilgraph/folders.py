"""How a folder of ours appears: whole, on disk, for whom it is meant; or not at all. What is not ours is never replaced."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from veilgraph.disk import allowed, explained, sync
from veilgraph.errors import StorageError, UsageError
from veilgraph.layout import OPEN, File, strangers

LOG = logging.getLogger("veilgraph.folders")


@contextmanager
def made(target: Path, *, mode: int = OPEN, replacing: tuple[File, ...] | None = None) -> Iterator[Path]:
    """A new folder in the making, which is its owner's alone; on disk and in its place when the block ends well, else gone.

    ``replacing`` is the table of what may lie there already: all of it is exchanged for the new folder in one step, so that at any
    moment there is the old one or the new one. What was left of somebody who was killed is removed, and said.
    """
    target = target.resolve()  # (what a link leads to is meant)
    if target.is_mount():
        raise UsageError(
            f"{target} is where a disk is mounted, which cannot be exchanged for a folder: name a folder inside it."
        )
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        recover(target)
        draft, held = _draft(target)
    try:
        yield draft
        with explained(target):
            for path in draft.rglob("*"):
                if not path.is_symlink():
                    sync(path)
            draft.chmod(allowed(mode))
            sync(draft)
            if target.exists() and (replacing is not None or not any(target.iterdir())):
                _refuse_strangers(target, replacing or ())
                _exchange(draft, target)
                for name in (
                    strangers(draft, replacing or ()) if draft.is_dir() else ()
                ):  # that came in this very moment
                    (draft / name).rename(target / name)
            else:
                draft.rename(target)
            sync(target.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # what was not finished, or what was replaced
        os.close(held)


def _draft(target: Path) -> tuple[Path, int]:
    """A hidden folder beside the target, held by a lock for as long as its maker lives."""
    while True:
        draft = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
        held = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
        if draft.exists():
            return draft, held
        os.close(held)  # (somebody took it for left behind, between the two lines above)


def _prefix(target: Path, what: str = "draft") -> str:
    return f".{target.name}.veil-{what}-"


def recover(target: Path) -> list[str]:
    """Remove what somebody who was killed left beside a folder, put back what he had moved away, and say so."""
    said: list[str] = []
    for path in _beside(target):
        with _if_left(path) as left:
            if not left:
                continue
            if path.name.startswith(_prefix(target, "before")) and not target.exists():
                path.rename(target)
                said.append(f"{target} is back as it was before a process was stopped while replacing it")
            else:
                shutil.rmtree(path, ignore_errors=True)
                said.append(
                    f"{path} was left behind by a process that was stopped while writing {target}; it is removed"
                )
    for line in said:
        LOG.warning("%s.", line)
    return said


def left_beside(target: Path) -> list[str]:
    """What ``recover`` would see to."""
    found = []
    for path in _beside(target):
        with _if_left(path) as left:
            if left:
                found.append(path.name)
    return found


def _beside(target: Path) -> list[Path]:
    if not target.parent.is_dir():
        return []
    ours = re.compile(rf"\.{re.escape(target.name)}\.veil-(draft|before)-[a-z0-9_]{{8}}")
    with os.scandir(target.parent) as entries:
        return sorted(
            Path(one.path)
            for one in entries
            if ours.fullmatch(one.name) and one.is_dir(follow_symlinks=False)
        )


@contextmanager
def _if_left(path: Path) -> Iterator[bool]:
    """Whether nobody holds a draft any more."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(held)


def _refuse_strangers(target: Path, files: tuple[File, ...]) -> None:
    found = strangers(target, files)
    if found:
        raise UsageError(
            f"{target} holds what this program did not write there: {', '.join(found[:5])}{' …' if len(found) > 5 else ''}. "
            "Nothing was replaced. Move it away, or save elsewhere with --out."
        )


def refuse_to_replace(target: Path, files: tuple[File, ...]) -> None:
    """Raise, before any work is done, where replacing a folder would delete what is not ours, or where the caller is."""
    _refuse_strangers(target, files)
    here = Path.cwd().resolve()
    if here == target.resolve() or target.resolve() in here.parents:
        raise UsageError(
            f"{target} is where you are: replacing it would leave you nowhere. Go elsewhere first."
        )


def _exchange(draft: Path, target: Path) -> None:
    """Let two folders change places: in one step where the file system can; else in two, which ``recover`` can undo."""
    if _renameat2(draft, target):
        return
    before = Path(tempfile.mkdtemp(prefix=_prefix(target, "before"), dir=target.parent))
    held = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # (follows the folder, not its name)
        target.rename(before)
        draft.rename(target)
        shutil.rmtree(before, ignore_errors=True)
    finally:
        os.close(held)


def _renameat2(draft: Path, target: Path) -> bool:
    """Linux's RENAME_EXCHANGE; False where it is not to be had."""
    call = getattr(_libc(), "renameat2", None)
    if call is None:
        return False
    here, exchange = -100, 2
    if call(here, os.fsencode(draft), here, os.fsencode(target), exchange) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise StorageError(target, os.strerror(number).lower())


@cache
def _libc() -> ctypes.CDLL | None:
    with suppress(OSError):
        return ctypes.CDLL(None, use_errno=True)
    return None
