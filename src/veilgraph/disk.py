"""What a disk answers: whether something is on it, and why it could not be written."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veilgraph.errors import StorageError

SEAL = "# sha256 of the lines above: "
# what libraries say that lose the number of the error
SIGNS = ("No space left", "requested and", "disk is full", "disk I/O error")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def sync(path: Path) -> None:
    """See a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (
            errno.EINVAL,
            errno.ENOTSUP,
        ):  # (a folder of a file system that knows no such thing)
            raise
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in a sentence why something could not be written, whichever library was writing."""
    try:
        yield
    except OSError as error:
        raise StorageError(path, _why(error)) from error
    except Exception as error:
        if type(error).__name__ not in (
            "SafetensorError",
            "ArrowException",
            "ArrowInvalid",
            "OperationalError",
        ):
            raise
        raise StorageError(path, _why(OSError(str(getattr(error, "orig", error))))) from error


def _why(error: OSError) -> str:
    if error.errno in FULL or any(sign in str(error) for sign in SIGNS):
        return "there is no space left on the device"
    return (error.strerror or str(error)).lower()


def allowed(mode: int) -> int:
    """A mode less what the umask takes away (which cannot be asked for without changing it, but where the system tells it)."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            taken = next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))
    except (OSError, StopIteration, ValueError):
        taken = os.umask(0o077)
        os.umask(taken)
    return mode & ~taken


# --- whether something is what was written ------------------------------------------------------------------------------
def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sealed(text: str) -> str:
    """A text of whole lines with a last one that holds the SHA-256 of the others."""
    return f"{text}{SEAL}{hashlib.sha256(text.encode()).hexdigest()}\n"


def is_sealed(text: str) -> bool:
    """Whether a text is, to the byte, what was sealed."""
    body, found, _ = text.rpartition(SEAL)
    return bool(found) and text == sealed(body)
