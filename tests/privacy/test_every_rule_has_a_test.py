"""docs/contract.md names a test for every rule; each of them exists, and none of the contract's tests is forgotten."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

ROW = re.compile(r"^\| (?P<rule>[^|]+) \| (?P<tests>`[^|]+) \|$", re.M)
ROWS = ROW.findall((REPOSITORY / "docs" / "contract.md").read_text(encoding="utf-8"))


def defined(folder: Path) -> set[str]:
    """Names of the test functions below a folder."""
    return {
        node.name
        for path in folder.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("rule", "tests"), ROWS, ids=[rule[:40] for rule, _ in ROWS])
def test_rule_has_a_test(rule: str, tests: str) -> None:
    named = re.findall(r"`(\w+)`", tests)
    assert named, rule
    assert set(named) <= defined(REPOSITORY / "tests")


def test_every_test_of_the_contract_is_named() -> None:
    named = set(
        re.findall(r"`(test_\w+)`", (REPOSITORY / "docs" / "contract.md").read_text(encoding="utf-8"))
    )
    written: set[str] = set()
    for name in ("test_contract.py", "test_nothing_for_free.py"):
        tree = ast.parse((REPOSITORY / "tests" / "privacy" / name).read_text(encoding="utf-8"))
        written |= {
            n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
        }
    assert len(ROWS) > 35
    assert written <= named
