"""MovieLens-100K as a graph: who watched what (in the order of time), genres, and what is known about people."""

from __future__ import annotations

from pathlib import Path

from veilgraph.errors import ReadError
from veilgraph.limits import content
from veilgraph.load.frames import broken, first_line, pl
from veilgraph.load.readers.base import COLUMNS, Names, Parts, Reader, ReadOptions

GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
PLAIN = {  # the published files: separator, columns
    "ratings": ("u.data", "\t", ("user", "movie", "rating", "timestamp")),
    "users": ("u.user", "|", ("user", "age", "gender", "occupation", "zip")),
    "items": ("u.item", "|", ("movie", "title", "release_date", "video_date", "imdb_url", *GENRES)),
}
AGES = ((35, "under_35"), (46, "between_35_and_45"), (1000, "over_45"))


class MovielensReader(Reader):
    """``movielens:FOLDER`` with u.data, u.user and u.item, or ratings, users and items as TSV (also .gz) with headers."""

    name = "movielens"
    scheme = "movielens:"
    example = "movielens:ml-100k"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        folder = Path(source.removeprefix("movielens:"))
        try:
            ratings = _table(folder, "ratings").with_columns(pl.col("timestamp").cast(pl.Int64))
            users, items = _table(folder, "users"), _table(folder, "items")
            ages = users["age"].cast(pl.Int64)
            strange = users.filter(~ages.is_between(0, AGES[-1][0] - 1).fill_null(value=False))
            if len(strange):
                raise ReadError(
                    folder,
                    f"says that user {strange['user'][0]} is {strange['age'][0]} years old: is it the right table?",
                )
        except broken(UnicodeDecodeError) as error:
            raise ReadError(folder, f"is not MovieLens-100K: {first_line(error)}") from None
        ratings = ratings.sort("timestamp", maintain_order=True)
        user, movie = "user/" + users["user"], "movie/" + items["movie"]
        groups = pl.Series([next(name for limit, name in AGES if age < limit) for age in ages])
        genres = pl.DataFrame({"movie": movie, "genre": items["genres"].str.split("|")}).explode("genre")
        genres = genres.filter(pl.col("genre") != "")
        parts = [
            _statements("user/" + ratings["user"], "watched", "movie/" + ratings["movie"]),
            _statements(genres["movie"], "genre", "genre/" + genres["genre"]),
            _statements(user, "gender", "gender/" + users["gender"]),
            _statements(user, "age_group", "age_group/" + groups),
            _statements(user, "occupation", "occupation/" + users["occupation"]),
        ]
        titles = dict(zip(movie, items["title"]))
        return Parts({"train": pl.concat(parts).cast(names.schema)}, titles)  # type: ignore[arg-type]


def _statements(heads: pl.Series, relation: str, tails: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(dict(zip(COLUMNS, (heads, pl.Series([relation] * len(heads)), tails))))


def _table(folder: Path, name: str) -> pl.DataFrame:
    """One of the three tables, with the columns of the TSV files."""
    file, separator, columns = PLAIN[name]
    tidy = [path for ending in (".tsv", ".tsv.gz") if (path := folder / f"{name}{ending}").is_file()]
    if tidy:
        found = pl.read_csv(content(tidy[0]), separator="\t", infer_schema=False, quote_char=None)
        absent = {"movie", "title", "genres"} if name == "items" else set(columns) - {"zip"}
        if not absent <= set(found.columns):
            raise ReadError(
                tidy[0], f"has no column {', '.join(sorted(absent - set(found.columns)))}.", line=1
            )
        return found
    if not (folder / file).is_file():
        raise ReadError(
            folder,
            f"has neither {file} nor {name}.tsv. MovieLens-100K is at grouplens.org (files.grouplens.org/datasets/movielens); "
            "name the folder it was unpacked to.",
        )
    text = (folder / file).read_bytes().decode("latin-1")
    rows = [line.split(separator) for line in text.splitlines() if line]
    if any(len(row) != len(columns) for row in rows):
        raise ReadError(folder / file, f"expected {len(columns)} fields a line.")
    found = pl.DataFrame(rows, schema=list(columns), orient="row")
    if name == "items":
        flags = [[genre for genre, flag in zip(GENRES, row[5:]) if flag == "1"] for row in rows]
        found = found.with_columns(pl.Series("genres", ["|".join(flag) for flag in flags]))
    return found
