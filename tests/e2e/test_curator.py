"""docs/curator.md, followed word for word against a real PostgreSQL server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from veilgraph.load import load

pytest.importorskip("morph_kgc")
pytest.importorskip("psycopg")

PAGE = REPOSITORY / "docs" / "curator.md"
COLUMNS = {
    "patient": ("id", "ward", "doctor"),
    "diagnosis": ("patient", "disease"),
    "prescription": ("patient", "drug"),
    "treatment": ("drug", "disease"),
}


def tables() -> dict[str, list[tuple[str, ...]]]:
    """The made-up hospital as rows."""
    graph = load("builtin:hospital", patients=1000)
    said: dict[str, list[tuple[str, str]]] = {}
    for h, r, t in graph.triples:
        names = (graph.entities[h].split("/")[1], graph.entities[t].split("/")[1])
        said.setdefault(graph.relations[r], []).append(names)
    doctor = dict(said["treatedBy"])
    return {
        "patient": [(patient, ward, doctor[patient]) for patient, ward in said["admittedTo"]],
        "diagnosis": list(said["hasDiagnosis"]),
        "prescription": list(said["takes"]),
        "treatment": [(drug, disease) for disease, drug in said["treatedWith"]],
    }


def test_the_curators_page_works_from_a_database_to_what_is_published(postgres: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        for name, rows in tables().items():
            columns = COLUMNS[name]
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{column} TEXT' for column in columns)})")  # type: ignore[arg-type]
            with connection.cursor() as cursor:
                marks = ", ".join(["%s"] * len(columns))
                cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # type: ignore[arg-type]
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M)
    for kind, name in (("turtle", "hospital.ttl"), ("yaml", "hospital.marks.yaml")):
        (tmp_path / name).write_text(next(code for k, code in blocks if k == kind), encoding="utf-8")
    commands = [line[2:] for kind, code in blocks if kind == "console" for line in code.splitlines()]
    assert len(commands) == 8
    for line in commands:
        words = shlex.split(line.replace("postgresql://curator@localhost/hospital", postgres))
        done = subprocess.run(
            [sys.executable, "-m", "veilgraph.cli", *words[1:]],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert "What is promised" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "plan.html").is_file()
    assert not (tmp_path / "published" / "curator.json").exists()
    assert "secret" not in (tmp_path / "published" / "config.yaml").read_text(encoding="utf-8")
