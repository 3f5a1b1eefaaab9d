"""Folders: a saved graph, or a benchmark with train, valid and test files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from veilgraph.errors import ReadError
from veilgraph.load.descriptions import read_descriptions
from veilgraph.load.frames import pl
from veilgraph.load.graph import BLANK_NODES
from veilgraph.load.readers import delimited, parquet
from veilgraph.load.readers.base import Names, Parts, Reader, ReadOptions
from veilgraph.load.readers.rdf import MEDIA_TYPES, read_file

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
TEXT_NAMES = ("descriptions", "definitions", "entity_descriptions")
GRAIL = ("transductive", "inductive")
HELD = "who is held out: everybody whom any statement of the second graph (test, known) speaks of"


class FolderReader(Reader):
    """``train.*``, ``valid.*`` and ``test.*`` of any format that can be read; ``descriptions.tsv`` if there is one."""

    name = "folder"
    example = "fb15k-237/"

    def reads(self, source: str) -> bool:
        return bool(split_files(Path(source)))

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        parts = {
            split: _read_file(path, split, options, names)
            for split, path in split_files(Path(source)).items()
        }
        splits = {split: part.splits["train"] for split, part in parts.items()}
        if "train" not in splits:
            raise ReadError(
                source, f"has {', '.join(splits)} but no train file; there is nothing to learn from."
            )
        texts = _descriptions(Path(source))
        for part in parts.values():
            texts = {**(part.descriptions or {}), **texts}
        extra, decided = _told(parts.values())
        return Parts(splits, texts or None, extra, decided=decided)


class GrailReader(Reader):
    """A graph to learn from and another one of other entities to be asked about (Teru et al. 2020), side by side.

    Train and valid are the first graph's, test is the second one's; what else is known about the second one's entities is a split of
    its own, ``known``, which is only left out of answers.
    """

    name = "grail"
    example = "fb15k-237-inductive/v1/"

    def reads(self, source: str) -> bool:
        return all("train" in split_files(Path(source) / part) for part in GRAIL)

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        first, second = (
            {
                split: _read_file(path, f"{part}-{split}", options, names)
                for split, path in split_files(Path(source) / part).items()
            }
            for part in GRAIL
        )
        splits = {name: one.splits["train"] for name, one in first.items() if name != "test"}
        known = pl.concat([one.splits["train"] for name, one in second.items() if name != "test"])
        test = second["test"].splits["train"] if "test" in second else known.clear()
        extra, decided = _told([*first.values(), *second.values()])
        found = {**splits, "test": test, "known": known}
        return Parts(found, None, extra, apart=("test", "known"), decided=(HELD, *decided))


def split_files(folder: Path) -> dict[str, Path]:
    """Which file is which split; two files for one split are an error."""
    found: dict[str, Path] = {}
    if not folder.is_dir():
        return found
    for path in sorted(folder.iterdir()):
        split = SPLIT_NAMES.get(path.name.split(".")[0].lower())
        ending = Path(path.name.removesuffix(".gz")).suffix.lower()
        readable = (*delimited.DelimitedReader.endings, *parquet.ParquetReader.endings, *MEDIA_TYPES)
        if split and path.is_file() and ending in readable:
            if split in found:
                raise ReadError(
                    folder, f"both {found[split].name} and {path.name} look like the {split} split."
                )
            found[split] = path
    return dict(sorted(found.items(), key=lambda item: ("train", "valid", "test").index(item[0])))


def _read_file(path: Path, split: str, options: ReadOptions, names: Names) -> Parts:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in MEDIA_TYPES:
        return read_file(str(path), options, names, scope=f"{split}-")
    module = parquet if ending in parquet.ParquetReader.endings else delimited
    return Parts({"train": module.read_frame(str(path), options, names)})


def _told(parts: Iterable[Parts]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What reading the files said of blank nodes, and what it decided, together."""
    files = list(parts)
    said = {str(one.extra[BLANK_NODES]) for one in files if BLANK_NODES in one.extra}
    decided = tuple(dict.fromkeys(line for one in files for line in one.decided))
    return ({BLANK_NODES: max(said)} if said else {}), decided  # («numbered» where any file is)


def _descriptions(folder: Path) -> dict[str, str]:
    """Entity → text from a two-column file beside the splits."""
    for path in sorted(folder.iterdir()):
        if path.name.split(".")[0] in TEXT_NAMES and ".tsv" in path.suffixes and path.stat().st_size:
            return read_descriptions(path)
    return {}
