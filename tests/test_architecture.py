"""The house rules that can be checked by a machine."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import veilgraph
from tests.conftest import REPOSITORY

SOURCE = REPOSITORY / "src" / "veilgraph"
ROOMS = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
ALONE = {"load", "models", "account"}  # these import no sibling
MAY_NOT = {"evaluate": {"train", "cli", "report"}, "train": {"cli", "report"}, "report": {"cli"}}


def imported_rooms(path: Path) -> set[str]:
    """The rooms a file imports from, at the top or inside functions (type-checking blocks aside)."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veilgraph."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "veilgraph":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("veilgraph.")}
    return found & ROOMS


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_import_rule(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        others = imported_rooms(path) - {room}
        if room in ALONE:
            assert not others, f"{path} imports {others}"
        assert not others & MAY_NOT.get(room, set()), f"{path} imports {others}"
        if room != "cli":
            assert "cli" not in others, f"{path} imports the command line"


def test_exported_names_exist_and_are_lazy() -> None:
    assert veilgraph.__all__ == sorted(veilgraph.__all__, key=str)
    for name in veilgraph.__all__:
        assert getattr(veilgraph, name) is not None
        assert type(getattr(veilgraph, name)).__name__ != "module"
    with pytest.raises(AttributeError, match="has no 'lod'"):
        _ = veilgraph.lod


def test_folder_and_function_share_a_name() -> None:
    from veilgraph.load.graph import Graph

    assert callable(veilgraph.load)
    assert isinstance(veilgraph.load("builtin:hospital", patients=10), Graph)


def test_help_imports_nothing_heavy() -> None:
    """The time itself is in docs/benchmarks.md; here only its cause: heavy libraries that must not be loaded."""
    code = (
        "import sys, contextlib\nfrom veilgraph.cli import main\n"
        "with contextlib.suppress(SystemExit):\n    main(['--help'])\n"
        "print(sorted({'torch', 'numba', 'polars', 'rich', 'numpy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "VERB" in out.stdout
    assert out.stdout.strip().splitlines()[-1] == "[]"


def test_nothing_is_pickled() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for banned in ("import pickle", "torch.load(", "torch.save(", "allow_pickle=True", "yaml.load("):
            assert banned not in text, f"{path} has {banned}"


def test_files_stay_small() -> None:
    for path in [
        *SOURCE.rglob("*.py"),
        *(REPOSITORY / "tests").rglob("*.py"),
        *(REPOSITORY / "bench").rglob("*.py"),
    ]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path


def test_every_public_function_says_what_the_caller_gets() -> None:
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree) is not None, path
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path}: {node.name}"
