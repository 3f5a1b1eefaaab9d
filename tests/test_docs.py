"""Every code block of README and docs runs: python blocks as they are, console blocks line by line.

A block after the comment ``<!-- not run: reason -->`` is left out. All blocks of a page share one folder and one
Python session, in order.
"""

from __future__ import annotations

import gc
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
BLOCK = re.compile(r"(<!-- not run[^>]*-->\s*)?^```(python|console)\n(.*?)^```", re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run(page: Path, tmp_path: Path) -> None:
    blocks = [
        (kind, code) for skip, kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if not skip
    ]
    session: dict[str, object] = {"__name__": "docs"}
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        for kind, code in blocks:
            if kind == "python":
                exec(compile(code, str(page), "exec", dont_inherit=True), session)
            else:
                for line in code.replace("\\\n", " ").splitlines():
                    if line.startswith("$ "):
                        _command(line[2:])
    finally:
        os.chdir(before)
        session.clear()
        gc.collect()  # classes of the examples are not among the attackers of other tests


def _command(line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0] == "veil":
        words = [sys.executable, "-m", "veilgraph.cli", *words[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_every_page_is_linked() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for page in (REPOSITORY / "docs").glob("*.md"):
        assert f"docs/{page.name}" in readme, f"README does not link {page.name}"


PATH = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py|(?:[a-z_]+/)+)`")
ROOTS = ("src/veilgraph", "tests", "tests/privacy", "src", "bench", ".", "src/veilgraph/train/private")


@pytest.mark.parametrize(
    "page", ["architecture.md", "privacy.md", "contract.md", "experiments.md", "text.md"]
)
def test_files_that_pages_name_are_there(page: str) -> None:
    named = PATH.findall((REPOSITORY / "docs" / page).read_text(encoding="utf-8"))
    gone = [name for name in named if not any((REPOSITORY / root / name).exists() for root in ROOTS)]
    assert not gone, f"docs/{page} names what is not there: {gone}"
