"""A folder of CSV files as a database: the clinical demo sets, or any tables a mapping speaks of."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from veilgraph.errors import ReadError
from veilgraph.limits import content
from veilgraph.load.frames import broken, first_line, pl
from veilgraph.load.mapping import SHIPPED, find_mapping, fit, shipped
from veilgraph.load.readers.base import Names, Parts, Reader, ReadOptions
from veilgraph.load.readers.database import materialise

ENDINGS = (".csv", ".csv.gz")


class TablesReader(Reader):
    """``tables:FOLDER``: every CSV file becomes a table of a SQLite database, which is mapped and thrown away.

    Without ``--mapping`` the one that knows most of the files is taken.
    """

    name = "tables"
    scheme = "tables:"
    example = "tables:mimic-iii-demo"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        folder = Path(source.removeprefix("tables:"))
        with tempfile.TemporaryDirectory() as scratch:
            database = Path(scratch) / "tables.sqlite"
            tables = build_database(folder, database)
            mapping = find_mapping(options.mapping) if options.mapping else best_mapping(folder, tables)
            return materialise(f"sqlite:///{database}", str(folder), mapping, options, names)


def build_database(folder: Path, database: Path) -> dict[str, set[str]]:
    """Write every CSV file of a folder to a SQLite file; names in small letters, empty cells as NULL."""
    files = sorted(path for path in folder.glob("*") if path.name.lower().endswith(ENDINGS))
    if not files:
        raise ReadError(folder, "holds no CSV file (.csv or .csv.gz); expected one per table.")
    found: dict[str, set[str]] = {}
    connection = sqlite3.connect(database)
    try:
        for path in files:
            table = path.name.lower().removesuffix(".gz").removesuffix(".csv")
            try:
                frame = pl.read_csv(content(path), infer_schema=False)
            except broken(ValueError) as error:
                raise ReadError(path, f"is not a readable table: {first_line(error)}") from None
            columns = [name.lower() for name in frame.columns]
            fields, marks = (
                ", ".join(f"{_quoted(name)} TEXT" for name in columns),
                ", ".join("?" * len(columns)),
            )
            try:
                connection.execute(f"CREATE TABLE {_quoted(table)} ({fields})")
                connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({marks})", frame.iter_rows())
            except sqlite3.Error as error:
                raise ReadError(
                    path,
                    f"cannot become a table: {error}. Names of tables and columns count without case, and .csv and "
                    ".csv.gz of one name are one table.",
                ) from None
            found[table] = set(columns)
        connection.commit()
    finally:
        connection.close()
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def best_mapping(folder: Path, tables: dict[str, set[str]]) -> Path:
    """The shipped mapping with the most maps these tables can answer."""
    fitted = {name: fit(SHIPPED / f"{name}.ttl", tables).maps for name in shipped()}
    best = max(fitted, key=lambda name: fitted[name])
    if fitted[best] < 2:
        raise ReadError(
            folder,
            f"its tables ({', '.join(sorted(tables)[:6])} …) are none that a shipped mapping knows. "
            "Write one in R2RML and name it with --mapping.",
        )
    return SHIPPED / f"{best}.ttl"
