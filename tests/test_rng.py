"""Random streams: repeatable, independent, and never for noise."""

from __future__ import annotations

import pytest

from veilgraph.noise.gauss import source
from veilgraph.rng import NAMES, Streams


def test_streams_are_repeatable_and_distinct() -> None:
    draws = {name: Streams(7).numpy(name).integers(1 << 60) for name in NAMES}
    assert len(set(draws.values())) == len(NAMES)
    assert draws["init"] == Streams(7).numpy("init").integers(1 << 60)
    assert Streams(7).numpy("negatives", 1).integers(1 << 60) != Streams(7).numpy("negatives", 2).integers(
        1 << 60
    )
    assert Streams(8).numpy("init").integers(1 << 60) != draws["init"]


def test_noise_has_no_seed() -> None:
    with pytest.raises(ValueError, match="no random stream"):
        Streams(7).numpy("noise")
    assert source().normal(1)[0] != source().normal(1)[0]
    assert source(secure=True).normal(1)[0] != source(secure=True).normal(1)[0]
