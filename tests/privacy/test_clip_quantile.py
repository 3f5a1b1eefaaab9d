"""The clip norm by a private quantile: right enough, charged before it is drawn, found once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ledgers import rewrite
from tests.privacy import private_run
from tests.privacy.meters import OpenMeter, whole
from veilgraph.errors import BudgetError, VerificationError
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.noise.gauss import source
from veilgraph.run.run import Run
from veilgraph.run.verify import certify, verify
from veilgraph.train.private import quantile


def test_quantiles_are_about_right() -> None:
    """Within two bins (25 %) of the true quantile, for any scale."""
    rng = np.random.default_rng(0)
    for scale in (1e-2, 1.0, 50.0):
        norms = scale * rng.lognormal(0, 0.7, 5000)
        for share in (0.2, 0.5, 0.8):
            found = quantile.quantile(norms, share, OpenMeter(source(insecure_seed=1)), whole())
            assert found == pytest.approx(np.quantile(norms, share), rel=0.3)
    meter = OpenMeter(source(insecure_seed=0))
    assert quantile.quantile(np.full(3, np.nan), 0.5, meter, whole()) == 1.0  # no bin stands out


def test_one_unit_changes_one_bin_by_one() -> None:
    """The histogram before noise has sensitivity 1: a unit, of any norm, is in exactly one bin."""

    class Silent:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def normal(self, count: int) -> np.ndarray:
            self.seen.append(count)
            return np.zeros(count)

    for value in (0.0, 1e-9, 1.0, 1e9):
        silent = Silent()
        many = np.concatenate([np.full(1000, 0.5), [value]])
        meter = OpenMeter(silent)  # type: ignore[arg-type]
        found = [quantile.quantile(norms, 0.5, meter, whole()) for norms in (many, many[:-1])]
        assert found[0] == found[1]
        assert set(silent.seen) == {len(quantile.EDGES) - 1}


def test_the_quantile_is_read_off_noisy_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the norms are, with the same noisy histogram the clip norm is the same."""
    given = np.r_[np.zeros(80), np.full(4, 100.0), np.zeros(len(quantile.EDGES) - 85)]
    meter, seen = OpenMeter(source(insecure_seed=1)), []
    monkeypatch.setattr(
        meter, "release", lambda exact, *rest, **more: (seen.append(exact.copy()), given.copy())[1]
    )
    found = {
        quantile.quantile(np.full(n, s), 0.5, meter, whole()) for n, s in ((9, 1e-3), (500, 1.0), (70, 1e3))
    }
    assert len(found) == 1
    first, *others = seen
    assert all((first != other).any() for other in others)
    counted = quantile.quantile(np.r_[1e-6, 1.0, 1e6], 0.5, meter, whole())
    assert counted in found
    assert [int(exact.sum()) for exact in seen] == [9, 500, 70, 3]  # each unit in one bin


def test_clip_quantile_is_charged_and_written_down(hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run", clip_quantile=0.2)
    what = [line["what"] for line in run.ledger.lines]
    assert what.index("clip norm: noisy histogram of gradient norms") < what.index("clip norm")
    assert next(i for i, w in enumerate(what) if "private steps" in w) > what.index("clip norm")
    assert run.clip_norm == run.ledger.found("clip") != 1.0
    assert run.epsilon is not None
    assert 1.9 < run.epsilon <= 2.0
    marked = hospital.with_marks(mark(hospital, everything=True))
    assert verify(run, marked)["valid"]
    path = run.folder / "ledger.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    rewrite(path, [line for line in lines if "histogram" not in line])
    with pytest.raises(VerificationError, match="histogram"):
        certify(Run.open(run.folder))
    assert any("histogram" in reason for reason in verify(Run.open(run.folder))["reasons"])


def test_clip_quantile_keeps_the_budget(hospital: Graph, tmp_path: Path) -> None:
    """With noise fixed by hand: steps are left out, or the histogram is refused, but ε is never exceeded."""
    run = private_run(
        hospital,
        tmp_path / "run",
        clip_quantile=0.5,
        noise_multiplier=4.0,
        epsilon=3.0,
        private_steps=40,
        prior="none",
    )
    assert run.epsilon is not None
    assert run.epsilon <= 3.0
    with pytest.raises(BudgetError, match="finding a clip norm"):
        private_run(
            hospital, tmp_path / "no", clip_quantile=0.5, noise_multiplier=4.0, epsilon=0.1, prior="none"
        )
