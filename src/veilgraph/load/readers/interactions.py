"""Who took what: a CSV or TSV of users and items, perhaps with a time, as statements of one relation."""

from __future__ import annotations

from pathlib import Path

from veilgraph.errors import ReadError
from veilgraph.limits import content
from veilgraph.load.frames import broken, first_line, pl
from veilgraph.load.readers.base import COLUMNS, Names, Parts, Reader, ReadOptions, regular_file

USERS, ITEMS = ("user", "user_id", "userid", "customer"), ("item", "item_id", "itemid", "movie", "product")
TIMES = ("timestamp", "time", "date")
RELATION = "watched"


class InteractionsReader(Reader):
    """``interactions:FILE``: columns user and item (and timestamp, if there is one) by their names in the first line, or
    three by ``--columns user,item,time``. Statements keep the order of time."""

    name = "interactions"
    scheme = "interactions:"
    example = "interactions:ratings.csv"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        path = regular_file(source.removeprefix("interactions:"))
        separator = options.separator or ("," if ".csv" in Path(path).name.lower() else "\t")
        try:
            frame = pl.read_csv(content(path), separator=separator, infer_schema=False)
        except broken(UnicodeDecodeError) as error:
            raise ReadError(path, f"is not a readable table: {first_line(error)}") from None
        by_name = {column.lower(): column for column in frame.columns}
        asked = options.columns or (None, None, None)
        user, item, when = (
            _column(path, by_name, given, usual)
            for given, usual in zip(asked, (USERS, ITEMS, TIMES), strict=True)
        )
        if user is None or item is None:
            raise ReadError(
                path,
                f"has no column of users or of items; found {', '.join(frame.columns)}. Say which with --columns USER,ITEM,TIME.",
                line=1,
            )
        if when is not None:
            number = frame[when].cast(pl.Float64, strict=False)  # numbers first, then words: a row by itself
            frame = frame.with_columns(number.alias("order of time"))
            frame = frame.sort("order of time", when, nulls_last=True, maintain_order=True)
        frame = frame.filter(pl.col(user).is_not_null() & pl.col(item).is_not_null())
        if not len(frame):
            raise ReadError(path, "holds no row with a user and an item.")
        columns = ("user/" + frame[user], pl.Series([RELATION] * len(frame)), "item/" + frame[item])
        return Parts({"train": pl.DataFrame(dict(zip(COLUMNS, columns))).cast(names.schema)})  # type: ignore[arg-type]


def _column(path: Path, by_name: dict[str, str], asked: str | None, usual: tuple[str, ...]) -> str | None:
    """The column that was asked for, or one of a usual name."""
    if asked is not None:
        if asked.lower() not in by_name:
            raise ReadError(
                path, f"no column is called {asked!r}; the header has {', '.join(by_name.values())}", line=1
            )
        return by_name[asked.lower()]
    return next((by_name[name] for name in usual if name in by_name), None)
