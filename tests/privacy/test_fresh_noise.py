"""Noise and private batches come from fresh entropy, whatever the seed of a run says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.privacy import private_run
from veilgraph.load import Graph
from veilgraph.train import train


def test_seed_does_not_fix_noise_or_private_batches(
    hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainings with one seed share no number of noise (the number of units is one of them), and not their batches."""
    from veilgraph.noise.gauss import FreshNoise
    from veilgraph.noise.sample import Drawn, PoissonSampler

    noise: list[np.ndarray] = []
    batches: list[np.ndarray] = []
    normal, draw = FreshNoise.normal, PoissonSampler.draw

    def drawing(self: PoissonSampler, coins: np.random.Generator) -> Drawn:
        found = draw(self, coins)
        batches.append(np.sort(found.chosen))
        return found

    def noising(self: FreshNoise, *shape: int) -> np.ndarray:
        noise.append(normal(self, *shape).ravel())
        return noise[-1].reshape(shape).copy()

    monkeypatch.setattr(PoissonSampler, "draw", drawing)
    monkeypatch.setattr(FreshNoise, "normal", noising)
    found = []
    for name in ("one", "two"):
        run = private_run(hospital, tmp_path / name)
        found.append((run, np.concatenate(noise), [batch.tolist() for batch in batches]))
        noise.clear()
        batches.clear()
    (one, noise_one, batches_one), (two, noise_two, batches_two) = found
    assert len(noise_one) > 1000
    assert not np.isin(noise_one, noise_two).any()
    assert not any(batch in batches_two for batch in batches_one)
    assert one.facts["units"] != two.facts["units"]
    assert not torch.equal(one.parameters.entities, two.parameters.entities)


def test_seed_does_not_fix_noisy_counts(hospital: Graph, tmp_path: Path) -> None:
    given = {"model": "marginals", "epsilon": 1.0, "prior_noise": 6.0, "threads": 1, "seed": 0}
    priors = [train(hospital, out=tmp_path / name, **given).prior for name in ("one", "two")]
    assert priors[0] is not None
    assert priors[1] is not None
    assert not torch.equal(priors[0].tensors()["table"], priors[1].tensors()["table"])
