"""The list of faults is true to the program: each can be planted, names a test that is there, and every mechanism has one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.privacy.mutants.mutant import ROOT, Mutant, everything
from tests.privacy.mutants.plant import killed
from veilgraph import registry
from veilgraph.train.mechanisms import mechanism_class

ALL = everything()


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_it_can_be_planted(mutant: Mutant) -> None:
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    ast.parse(source.replace(mutant.old, mutant.new))
    file, _, test = mutant.test.partition("::")
    assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in ALL}) == len(ALL)


@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_every_mechanism_brings_its_own(name: str) -> None:
    """A new mechanism is one file, and a fault in it that a test sees."""
    module = mechanism_class(name).__module__.rpartition(".")[2]
    if name == "select-as-published":
        return  # (two constants of select, which promise nothing)
    assert any(Path(mutant.file).stem == module for mutant in ALL)


def test_a_fault_that_changes_nothing_survives(tmp_path: Path) -> None:
    """The planter itself can say no: what is no fault is killed by no test."""
    from tests.privacy.mutants.plant import copied

    harmless = Mutant(
        "nothing",
        "run/facts.py",
        '"""A SHA-256 of every fact."""',
        '"""A digest of every fact."""',
        "test_rng.py",
    )
    assert killed(harmless, copied(tmp_path / "tree"))[0] == "SURVIVES"
