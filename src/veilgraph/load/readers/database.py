"""A relational database through an R2RML mapping: SQLite, DuckDB and PostgreSQL, by morph-kgc."""

from __future__ import annotations

import io
import logging
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from veilgraph.errors import MissingExtraError, ReadError
from veilgraph.load.mapping import find_mapping, fit, shipped
from veilgraph.load.readers.base import Names, Parts, Reader, ReadOptions
from veilgraph.load.readers.rdf import parse

INFORMATION = "SELECT table_name, column_name FROM information_schema.columns"
COLUMNS_OF = {
    "sqlite": "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')",
    "duckdb": INFORMATION,
    "postgresql": INFORMATION,
}
CAREFUL = {"prepare_threshold": 0}
LOG = logging.getLogger("veilgraph.load")


class DatabaseReader(Reader):
    """``postgresql://user@host/hospital`` with ``--mapping``; what the mapping names and the database lacks is left out."""

    name = "database"
    turn = 0
    example = "postgresql://user@host/hospital"

    def reads(self, source: str) -> bool:
        return re.split(r"[:+]", source, maxsplit=1)[0] in COLUMNS_OF and "://" in source

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        shown = hide_password(source)
        if options.mapping is None:
            raise ReadError(
                shown,
                "a database needs a mapping that says which columns become statements: add --mapping FILE (R2RML), "
                f"or one that comes with veilgraph: {', '.join(shipped())}.",
            )
        return materialise(source, shown, find_mapping(options.mapping), options, names)


def materialise(source: str, shown: str, mapping: Path, options: ReadOptions, names: Names) -> Parts:
    """The statements of a database, in a fixed order."""
    try:
        import morph_kgc
        import sqlalchemy
    except ImportError:
        raise MissingExtraError("Reading a database", "database") from None
    url = address(source)
    fitted = fit(mapping, tables_of(source, shown))
    if not fitted.maps:
        raise ReadError(
            shown,
            f"has none of the tables that {mapping.name} maps ({', '.join(fitted.left_out[:5])} …). Is it the right mapping?",
        )
    if fitted.left_out:
        LOG.warning("%s: %s leaves out %s", shown, mapping.name, ", ".join(fitted.left_out))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mapping.nt"
        path.write_text(fitted.text, encoding="utf-8")
        config = (
            "[CONFIGURATION]\nnumber_of_processes: 1\nlogging_level: ERROR\n"
            f"[database]\nmappings: {path}\ndb_url: {url.replace('$', '$$')}\n"
        )
        if url.startswith("postgresql"):  # prepared: of several statements in one string none is run
            config += f"connect_args: {CAREFUL!r}\n"
        try:
            lines = sorted(morph_kgc.materialize_set(config))
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise ReadError(shown, f"cannot be queried: {_first_line(error)}") from None
        except (Exception, SystemExit) as error:  # (it raises bare exceptions, and leaves)
            raise ReadError(mapping, f"cannot be carried out: {_first_line(error)}") from None
    text = "".join(f"{line} .\n" for line in lines)
    kept = "_:" in text  # (labels that the mapping's templates make)
    parts = parse(io.BytesIO(text.encode()), "application/n-triples", shown, options, names, labels=kept)
    parts.extra = {**parts.extra, "mapping": mapping.stem, "left_out": list(fitted.left_out)}
    return parts


def tables_of(source: str, shown: str) -> dict[str, set[str]]:
    """Every table and view of a database with its columns, in small letters."""
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    kind, path = _file(source)
    if kind in ("sqlite", "duckdb") and not Path(path).is_file():
        raise ReadError(shown, "there is no such file. Check the path.")
    url = address(source)
    try:
        given = CAREFUL if url.startswith("postgresql") else {}
        with sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=given).connect() as connection:
            pairs: Any = connection.execute(sqlalchemy.text(COLUMNS_OF[url.split(":")[0].split("+")[0]]))
            found: dict[str, set[str]] = {}
            for table, column in pairs:
                found.setdefault(table.lower(), set()).add(column.lower())
            return found
    except (sqlalchemy.exc.NoSuchModuleError, ImportError):
        raise MissingExtraError(f"Reading {shown.split(':')[0]}", "database") from None
    except (
        sqlalchemy.exc.SQLAlchemyError,
        OSError,
        AttributeError,
        ValueError,
    ) as error:  # (a driver's, of a file that is no database)
        raise ReadError(
            shown, f"cannot be opened: {_first_line(error)}. Check address, name and password."
        ) from None


def address(source: str) -> str:
    """The address with the driver that is installed, of connections that can read and nothing else.

    A mapping may come from anywhere: SQLite and DuckDB files are opened read-only (DuckDB without files beside), PostgreSQL's
    transactions are read-only. Whoever wants more names a role of the database that has no other rights.
    """
    kind, path = _file(source)
    if kind == "sqlite" and path:
        still = "&immutable=1" if _closed_log(Path(path)) else ""
        return f"sqlite:///file:{quote(quote(str(Path(path).absolute())))}?mode=ro{still}&uri=true"
    if kind == "duckdb" and path:
        return f"duckdb:///{quote(path)}?access_mode=read_only&enable_external_access=false&lock_configuration=true"
    source = re.sub(r"^postgresql(\+\w+)?:", "postgresql+psycopg:", source)
    given = (
        "-c default_transaction_read_only=on -c standard_conforming_strings=on -c statement_timeout=3600000"
    )
    return f"{source}{'&' if '?' in source else '?'}options={quote(given)}"


def _closed_log(path: Path) -> bool:
    """Whether a database has a write-ahead log that nobody has open: reading it the usual way would make files beside it."""
    try:
        with path.open("rb") as file:
            ahead = file.read(20)[18:20] == b"\x02\x02"
    except OSError:
        return False
    return ahead and not any(Path(f"{path}{end}").exists() for end in ("-wal", "-shm", "-journal"))


def _file(source: str) -> tuple[str, str]:
    """The kind of database without its driver, and the path of one that is a file."""
    kind, _, path = source.partition(":///")
    return kind.partition("+")[0], path.partition("?")[0]


def hide_password(source: str) -> str:
    """The address as it may be shown: without a password."""
    shown = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:…@", source)
    return re.sub(r"(password=)[^&]*", r"\1…", shown)


def _first_line(error: BaseException) -> str:
    text = hide_password(str(getattr(error, "orig", None) or error)).strip()
    return text.splitlines()[0] if text else type(error).__name__
