"""Folders: a saved graph, or a benchmark with train, valid and test files."""

from __future__ import annotations

from pathlib import Path

from veilgraph.errors import ReadError
from veilgraph.load import delimited, parquet
from veilgraph.load.frames import pl
from veilgraph.load.rdf import MEDIA_TYPES, read_file
from veilgraph.load.reader import Names, Parts, Reader, ReadOptions

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
TEXT_NAMES = ("descriptions", "definitions", "entity_descriptions")


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
        return Parts(splits, texts or None)


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


def _descriptions(folder: Path) -> dict[str, str]:
    """Entity → text from a two-column file beside the splits."""
    for path in sorted(folder.iterdir()):
        if path.name.split(".")[0] in TEXT_NAMES and ".tsv" in path.suffixes and path.stat().st_size:
            try:
                frame = pl.read_csv(
                    path,
                    separator="\t",
                    has_header=False,
                    quote_char=None,
                    infer_schema=False,
                    truncate_ragged_lines=True,
                    glob=False,
                )
            except (pl.exceptions.PolarsError, OSError) as error:
                raise ReadError(
                    path, f"cannot be read as «entity, text» lines: {str(error).splitlines()[0]}"
                ) from None
            if frame.width >= 2:
                return dict(frame.drop_nulls().select(frame.columns[:2]).iter_rows())
    return {}
