"""Named random streams: each purpose has its own, so that changing one never shifts another.

A stream is found again from (seed, name, position) alone — no state is stored, which is what lets a killed run
continue bit for bit. Privacy noise is the exception (noise/gauss.py): it comes from fresh entropy, never from
the run's seed, because whoever knows the seed could subtract the noise.

>>> Streams(7).numpy("negatives", 3).integers(100) == Streams(7).numpy("negatives", 3).integers(100)
True
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from veilgraph.errors import ConfigError

NAMES = ("init", "sampling", "negatives", "split", "generate", "validation", "private", "messages", "answers")


def check_seed(seed: object) -> None:
    """Raise unless this is a seed."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ConfigError(f"a seed must be a whole number from 0 to 2^63 − 1, found {seed!r}")


@dataclass(frozen=True)
class Streams:
    """All the repeatable random streams of one seed."""

    seed: int

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def numpy(self, name: str, *position: int) -> np.random.Generator:
        """The generator of one purpose at one position (epoch, step, …)."""
        if name not in NAMES:
            raise ValueError(f"no random stream is called {name!r}; there are {', '.join(NAMES)}")
        return np.random.Generator(np.random.SFC64([self.seed, NAMES.index(name), *position]))


def uniform(keys: np.ndarray, seed: int, purpose: str = "") -> np.ndarray:
    """A number in [0, 1) for each key, from the key, the seed and the purpose alone (splitmix64)."""
    check_seed(seed)
    salt = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big") if purpose else 0
    with np.errstate(over="ignore"):
        z = (keys.astype(np.uint64) ^ np.uint64(salt)) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)).astype(np.float64) / 2**53)
