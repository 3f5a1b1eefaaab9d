"""Names as tokens: who knows the federation's secret can align names, the server cannot read them."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from veilgraph.errors import InputError

WIDTH = 16  # bytes of a token
LONG_ENOUGH = 16  # bytes of a secret


def tokens(names: Iterable[str], secret: bytes) -> np.ndarray:
    """``[n, 16]`` bytes, the same for the same name and secret (keyed BLAKE2b); names differ, so tokens do (2⁻¹²⁸)."""
    key = hashlib.sha256(secret).digest()
    joined = b"".join(hashlib.blake2b(n.encode(), digest_size=WIDTH, key=key).digest() for n in names)
    return np.frombuffer(joined, np.uint8).reshape(-1, WIDTH)


def new_secret(path: str | Path, seed: int | None = None) -> bytes:
    """A fresh secret in a file that only its owner may read; for every client, and for no server.

    With a ``seed`` it is no secret: for rehearsals in one process, where nobody is to be kept from names, and the same seed should
    give the same rows.
    """
    found = (
        secrets.token_hex(32) if seed is None else hashlib.sha256(f"rehearsal {seed}".encode()).hexdigest()
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(found + "\n")
    return found.encode()


def read_secret(path: str | Path) -> bytes:
    """The secret in a file."""
    try:
        found = Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(f"the federation's secret cannot be read: {error}.") from None
    if len(found) < LONG_ENOUGH:
        raise InputError(
            f"{path} holds {len(found)} bytes: a secret that can be guessed lets the server read names. Make one with: "
            "veil federate secret FILE"
        )
    return found
