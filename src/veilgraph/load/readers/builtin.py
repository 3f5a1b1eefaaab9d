"""Built-in graphs: ``builtin:hospital``."""

from __future__ import annotations

from veilgraph.errors import UnknownNameError
from veilgraph.load.frames import pl
from veilgraph.load.hospital import generate
from veilgraph.load.readers.base import COLUMNS, Names, Parts, Reader, ReadOptions

BUILTIN = ("hospital",)


class BuiltinReader(Reader):
    """Graphs that are generated, so that nothing has to be downloaded."""

    name = "builtin"
    scheme = "builtin:"
    of_files = False
    example = "builtin:hospital"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        name = source.removeprefix("builtin:")
        if name not in BUILTIN:
            raise UnknownNameError("built-in graph", name, BUILTIN)
        hospital = generate(options.patients, options.seed)
        frame = pl.DataFrame(dict(zip(COLUMNS, hospital.columns))).cast(names.schema)  # type: ignore[arg-type]
        return Parts({"train": frame}, hospital.descriptions)
