"""Vectors of texts, made once: kept on disk under a hash of everything they are made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from veilgraph.errors import RunError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.models.text.encoders.base import TextEncoder
from veilgraph.models.text.vectors import source

STATE = "state."


def cache_folder() -> Path:
    """``$VEILGRAPH_CACHE``, or a folder in the user's cache; only its owner may read it, for texts may be told from vectors."""
    home = os.environ.get("VEILGRAPH_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "veilgraph"
    )
    return Path(home) / "text"


def encoded(encoder: TextEncoder, texts: Sequence[str]) -> tuple[Tensor, dict[str, Tensor]]:
    """The features of texts, and what the encoder learnt from them alone; from the cache, if they are there.

    Token vectors of encoders with layers are looked up anew: that takes less time than reading them from disk.
    """
    if encoder.layers:
        state = encoder.fit(texts)
        return encoder.features(texts, state), state
    path = cache_folder() / f"{_key(encoder, texts)}.safetensors"
    try:
        found = read_tensors(path)[0]
        return found["features"], {n.removeprefix(STATE): t for n, t in found.items() if n.startswith(STATE)}
    except (OSError, RunError, KeyError):  # not there, or damaged: made again
        state = encoder.fit(texts)
        features = encoder.features(texts, state)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_tensors(
            path, {"features": features, **{STATE + name: tensor for name, tensor in state.items()}}
        )
        return features, state


def _key(encoder: TextEncoder, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"1 {encoder.name} {source(encoder.vectors).identity} {len(texts)}".encode())
    for text in texts:
        raw = text.encode("utf-8", errors="replace")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()
