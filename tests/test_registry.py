"""One registry: components of this package, of a session, and of other packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from veilgraph import registry
from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError, InputError, UnknownNameError
from veilgraph.train.mechanisms.dense import Dense

OTHER = """
from veilgraph.models.distmult import DistMult
from veilgraph.train.mechanisms.dense import Dense

class Mine(DistMult):
    \"\"\"A product that somebody else wrote.\"\"\"
    name = "mine"

class Loud(Dense):
    \"\"\"Dense under another name.\"\"\"
    name = "loud"
"""
POINTS = """[veilgraph.models]
mine = other_package:Mine
[veilgraph.mechanisms]
loud = other_package:Loud
"""
USE = """
import veilgraph as vg
from veilgraph import registry
assert "mine" in registry.names("models") and "loud" in registry.names("mechanisms")
graph = vg.load("builtin:hospital", patients=30)
run = vg.train(graph, model="mine", dimension=4, epochs=1, threads=1, mechanism="loud", epsilon=4.0, private_steps=2,
               sample_rate=0.5, prior="none", out="run")
assert vg.verify(run, graph)["valid"]
print(run.certificate["mechanism"])
"""


def test_unknown_names_are_told() -> None:
    with pytest.raises(UnknownNameError, match=r"no mechanism is called 'lasy'\. Nearest: lazy"):
        registry.find("mechanisms", "lasy")
    with pytest.raises(ConfigError, match="mechanism must be one of"):
        TrainConfig.of({"mechanism": "lasy"})


def test_a_component_of_a_session_is_found_everywhere() -> None:
    class Still(Dense):
        """Dense."""

        name = "still"

    registry.add("mechanisms", Still)
    try:
        assert "still" in registry.names("mechanisms")
        assert registry.find("mechanisms", "still") is Still
        assert TrainConfig.of({"mechanism": "still"}).mechanism == "still"
    finally:
        del registry._added["mechanisms"]["still"]
    with pytest.raises(InputError, match="subclass of Mechanism"):
        registry.add("mechanisms", dict)


def test_other_packages_bring_components(tmp_path: Path) -> None:
    """A scorer and a mechanism from entry points train, are charged, certified and verified like ours."""
    (tmp_path / "other_package.py").write_text(OTHER, encoding="utf-8")
    info = tmp_path / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    path = [str(tmp_path), *sys.path]
    code = f"import sys\nsys.path[:] = {path!r}\n{USE}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "loud"
