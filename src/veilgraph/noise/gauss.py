"""Gaussian noise that is really Gaussian.

Torch's float32 generator stops at 5.77 standard deviations, which is not the Gaussian mechanism. Here numbers come in
float64: by default from a ziggurat with exact tails on SFC64 streams keyed with fresh entropy of the operating system;
with ``secure`` from AES-256 in counter mode under a fresh key, by Box–Muller on 53-bit uniforms (up to 8.6 standard
deviations; what lies beyond has probability 1e-17). Neither state is ever written down.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

import numpy as np

from veilgraph.noise import ziggurat


class Noise(ABC):
    """A source of standard normal numbers, and of the coins that choose private batches."""

    @abstractmethod
    def normal(self, *shape: int) -> np.ndarray:
        """Standard normal float64 numbers."""

    @abstractmethod
    def coins(self) -> np.random.Generator:
        """A generator for sampling, keyed like the noise."""


class FreshNoise(Noise):
    """Fresh entropy; an independent stream for every thread."""

    def __init__(self, threads: int = 2, seed: int | None = None) -> None:
        coins, noise = np.random.SeedSequence(seed).spawn(2)
        self.sampling = np.random.Generator(np.random.SFC64(coins))
        self.states = ziggurat.states(noise, threads)

    def normal(self, *shape: int) -> np.ndarray:
        out = np.empty(shape)
        ziggurat.normal(out.reshape(-1), self.states)
        return out

    def coins(self) -> np.random.Generator:
        return self.sampling


class SecureNoise(Noise):
    """AES-256-CTR under a key that only this process ever knows."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self.stream = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()

    def _bits(self, count: int) -> np.ndarray:
        return np.frombuffer(self.stream.update(bytes(8 * count)), np.uint64)

    def normal(self, *shape: int) -> np.ndarray:
        count = int(np.prod(shape))
        half = (count + 1) // 2
        bits = self._bits(2 * half) >> np.uint64(11)
        radius = np.sqrt(-2 * np.log((bits[:half].astype(np.float64) + 1) * 2.0**-53))  # (0, 1]
        angle = 2 * np.pi * (bits[half:].astype(np.float64) * 2.0**-53)
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return both[:count].reshape(shape)

    def coins(self) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([int(b) for b in self._bits(8)]))


def source(*, secure: bool = False, insecure_seed: int | None = None, threads: int = 2) -> Noise:
    """The noise of a run; an ``insecure_seed`` is for tests and must be charged as non-private."""
    if insecure_seed is not None:
        return FreshNoise(1, insecure_seed)
    return SecureNoise() if secure else FreshNoise(threads)
