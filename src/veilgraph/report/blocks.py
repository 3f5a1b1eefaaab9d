"""What a report is made of, written as HTML or as Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veilgraph.report.page import paragraph, table


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str

    def as_html(self) -> str:
        """For the page."""
        return paragraph(self.text)

    def as_markdown(self) -> str:
        """For a text file."""
        return self.text + "\n"


@dataclass(frozen=True)
class Grid:
    """A table."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def as_html(self) -> str:
        """For the page."""
        return table(self.columns, self.rows)

    def as_markdown(self) -> str:
        """For a text file."""
        lines = ["| " + " | ".join(self.columns) + " |", "|" + "---|" * len(self.columns)]
        lines += ["| " + " | ".join(_shown(value) for value in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Picture:
    """An SVG with its alternative text."""

    svg: str
    alternative: str

    def as_html(self) -> str:
        """For the page."""
        return f"<figure>{self.svg}<figcaption>{html.escape(self.alternative)}</figcaption></figure>"

    def as_markdown(self) -> str:
        """For a text file: pictures are described."""
        return f"*Picture: {self.alternative}*\n"


Block = Words | Grid | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: Sequence[Block]

    def as_html(self) -> str:
        """Without the heading."""
        return "".join(block.as_html() for block in self.blocks)

    def as_markdown(self) -> str:
        """With the heading."""
        return f"## {self.title}\n\n" + "\n".join(block.as_markdown() for block in self.blocks)


def _shown(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
    return str(value).replace("|", "\\|").replace("\n", " ")
