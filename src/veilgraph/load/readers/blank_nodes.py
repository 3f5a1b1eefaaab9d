r"""Labels of blank nodes, as a source gives them: the parser renames them all.

pyoxigraph hands out random names. Numbering these in the order of mention lets a confidential statement rename everybody after it. So every
label is written as an address of our own before the parser sees it, and read back from there: ``_:stay07`` stays ``_:stay07``. What
has no label (``[]``, lists) or one the parser hides (RDF/XML) is numbered, and whoever reads such a source says so.
"""

from __future__ import annotations

import io
import re
import secrets
from typing import Any, BinaryIO

from veilgraph.load.graph import BLANK_NODES

NUMBERED = "names of blank nodes: numbered in the order the source mentions them, confidential statements too"
OF_LINES = ("application/n-triples", "application/n-quads")
OF_LABELS = (*OF_LINES, "text/turtle", "application/trig")
BLOCK = 1 << 20
UNNAMED = "unnamed-"  # how names of our own begin, and no label's does
KEPT = "label-"
TOKENS = re.compile(
    rb"""
    _:(?P<label>[0-9A-Za-z_\x80-\xff](?:[-.0-9A-Za-z_\x80-\xff]*[-0-9A-Za-z_\x80-\xff])?)
  | \"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*\"""
  | '''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''
  | "(?!"")[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"
  | '(?!'')[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*'
  | <[^<>\s]*>
  | \#[^\r\n]*
  | @[A-Za-z]+(?:-[A-Za-z0-9]+)*-?
  | [0-9]+(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_:\x80-\xff-])
  | \^\^[ \t\r\n]*(?:_:?)?
  | (?:[0-9A-Za-z_:%\x80-\xff]|\\(?:.|\Z))(?:[-0-9A-Za-z_:.%\x80-\xff]|\\(?:.|\Z))*
  | (?P<open>\"""|'''|["'][^\r\n]*\Z|<[^<>\s]*\Z)
""",
    re.VERBOSE | re.DOTALL,
)  # labels; strings, addresses, comments, language tags, numbers, datatypes, names; and what has no end in this block


class Labelled(io.RawIOBase):
    """A stream of RDF whose labels of blank nodes are addresses, for the parser; ``Naming`` reads them back."""

    def __init__(self, file: BinaryIO, media_type: str) -> None:
        self.file, self.lines = file, media_type in OF_LINES
        self.address = f"urn:label:{secrets.token_hex(8)}:"  # (a source cannot know it)
        self.held, self.ready, self.ended = b"", b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready and not self.ended:
            self._next()
        count = min(len(buffer), len(self.ready))
        buffer[:count], self.ready = self.ready[:count], self.ready[count:]
        return count

    def _next(self) -> None:
        """Translate another block; what may go on in the next one is held back (all of a long string, twice as much each time)."""
        block = self.file.read(max(BLOCK, len(self.held)))
        self.ended, text = not block, self.held + block
        if self.lines and not self.ended and b"_:" not in text:
            cut = text.rfind(b"\n") + 1
            self.ready, self.held = text[:cut], text[cut:]
            return
        done, place = [], 0
        cut, end = len(text), len(text.rstrip(b"."))  # (a name may go on behind dots)
        for found in TOKENS.finditer(text):
            if not self.ended and (found["open"] is not None or found.end() >= end):
                cut = found.start()
                break
            if found["label"] is not None:
                address = b"<%b%b>" % (self.address.encode(), found["label"].hex().encode())
                done += [text[place : found.start()], address]
                place = found.end()
        self.ready, self.held = b"".join([*done, text[place:cut]]), text[cut:]


class Naming:
    """What the nodes of one stream are called: addresses by themselves, blank nodes by their labels, those without one by numbers."""

    def __init__(self, stream: BinaryIO | Labelled, scope: str) -> None:
        self.stream, self.scope = stream, scope
        self.address = stream.address if isinstance(stream, Labelled) else None
        self.numbered: dict[str, str] = {}  # names, by the parser's
        self.labelled: dict[str, str] = {}  # names, by our addresses

    def name(self, term: Any) -> str:
        """The name of a subject, a relation or an object."""
        import pyoxigraph

        if isinstance(term, pyoxigraph.NamedNode):
            address = str(term.value)
            if self.address is None or not address.startswith(self.address):
                return address
            if address not in self.labelled:
                self.labelled[address] = f"_:{self.scope}{_label(address.removeprefix(self.address))}"
            return self.labelled[address]
        if isinstance(term, pyoxigraph.BlankNode):
            return self.numbered.setdefault(term.value, f"_:{self.scope}{UNNAMED}{len(self.numbered)}")
        if isinstance(term, pyoxigraph.Triple):  # (a statement about a statement)
            return " ".join(self._within(part) for part in (term.subject, term.predicate, term.object))
        return str(term)

    def _within(self, part: Any) -> str:
        import pyoxigraph

        name = self.name(part)
        if isinstance(part, pyoxigraph.Triple):
            return f"<<{name}>>"
        return f"<{name}>" if isinstance(part, pyoxigraph.NamedNode) and not name.startswith("_:") else name

    @property
    def said(self) -> dict[str, str]:
        """For a graph's ``extra``: whether blank nodes have their labels, or any is numbered."""
        if not self.numbered and not self.labelled:
            return {}
        return {BLANK_NODES: "numbered" if self.numbered else "labels"}


def _label(code: str) -> str:
    """The label that an address of ours stands for; none begins as our own names do."""
    text = bytes.fromhex(code).decode()
    return KEPT + text if text.startswith((UNNAMED, KEPT)) else text


def mentioned(file: BinaryIO) -> bool:
    """Whether a stream may hold a label; it is read to its end, or to the first."""
    before = b""
    while block := file.read(BLOCK):
        if b"_:" in before + block:
            return True
        before = block[-1:]
    return False
