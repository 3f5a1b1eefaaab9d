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
LEAVES = (
    "errors", "rng", "waiting", "limits", "parquet", "layout", "disk", "folders", "files", "registry", "machine", "pictures",
)  # fmt: skip
ROOMS = (  # from what knows nobody to what knows everybody: imports go one way, from later to earlier
    *LEAVES, "load", "mark", "account", "noise", "config", "models", "rank", "run", "release", "train", "classify", "tune", "recommend",
    "sanitise", "federate", "attack", "serve", "report", "cli",
)  # fmt: skip
LAZY = {  # imports inside functions that cross rooms, and why; the command line's are all: it imports the verb that was asked for
    ("recommend.shelf", "rank"): "a service that kept its query vectors starts without PyTorch",
    ("recommend.shelf", "models"): "the same",
}


def imports(path: Path) -> list[tuple[str, bool]]:
    """What a file imports of ours, as «room.module…», and whether inside a function (type-checking blocks aside)."""
    found: list[tuple[str, bool]] = []
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found += [
            (name.removeprefix("veilgraph."), inside) for name in names if name.startswith("veilgraph.")
        ]
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
    if path.parent != SOURCE or path.stem != "__init__"
}


def test_every_room_has_its_place() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(ROOMS)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_go_one_way(name: str) -> None:
    """Every module, at its top and inside functions."""
    room = name.split(".")[0]
    for imported, inside in imports(MODULES[name]):
        other = imported.split(".")[0]
        if other in (room, "__version__"):
            continue
        assert ROOMS.index(other) < ROOMS.index(room), f"{name} imports {imported}, which is above it"
        if inside and room != "cli":
            assert (name, other) in LAZY, (
                f"{name} imports {imported} inside a function: say why in LAZY, or do it at the top"
            )


def test_every_exception_is_still_one() -> None:
    assert len(LAZY) <= 15
    for (name, other), why in LAZY.items():
        assert why
        assert any(inside and imported.split(".")[0] == other for imported, inside in imports(MODULES[name]))


def test_the_package_imports_no_experiment_but_by_the_command_line() -> None:
    for name, path in MODULES.items():
        if not name.startswith("cli"):
            assert "veilgraph_experiments" not in path.read_text(encoding="utf-8"), name


def test_packages_hold_no_logic() -> None:
    """An __init__ holds its promise and what it hands on; the package's own makes imports late."""
    for path in SOURCE.rglob("__init__.py"):
        kinds = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.Try)
        if path.parent != SOURCE:
            assert not any(isinstance(node, kinds) for node in ast.parse(path.read_text("utf-8")).body), path


def test_functions_of_the_middle_stay_short() -> None:
    for room in ("train", "run", "account", "config"):
        for path in (SOURCE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or 0) - node.lineno + 1
                    assert lines <= 45, f"{path}: {node.name} has {lines} lines"


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
