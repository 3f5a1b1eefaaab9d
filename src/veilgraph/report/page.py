"""One self-contained HTML page about a run."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733 }
h1 { font-size: 1.7rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #d7dee6 }
.lead { font-size: 1.1rem } .warn { background: #fff4e0; border-left: 4px solid #e09b1a; padding: .7rem 1rem }
table { border-collapse: collapse; width: 100%; font-size: .92rem } th, td { padding: .3rem .6rem; border-bottom: 1px solid #e6ebf0 }
th { text-align: left } .number { text-align: right; font-variant-numeric: tabular-nums } svg { max-width: 100%; height: auto }
.wide { overflow-x: auto } td { overflow-wrap: anywhere }
figure { margin: 1rem 0; overflow-x: auto } figure svg { min-width: 35rem } figcaption { color: #5b6b7b; font-size: .85rem }
footer { margin-top: 3rem; color: #5b6b7b; font-size: .85rem }
@media print { body { margin: 0 } figure svg { min-width: 0 } .warn { border: 1px solid #e09b1a } }
"""


def page(title: str, lead: str, warning: str, sections: Sequence[tuple[str, str]], footer: str) -> str:
    """The whole document."""
    body = "".join(f"<section><h2>{html.escape(name)}</h2>{content}</section>" for name, content in sections)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p class='lead'>{html.escape(lead)}</p>"
        f"<p class='warn'>{html.escape(warning)}</p>{body}<footer>{html.escape(footer)}</footer></body></html>\n"
    )


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(text)}</p>"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table; numbers to the right."""
    numbers = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    head = "".join(
        f"<th scope='col'{' class=number' if right else ''}>{html.escape(c)}</th>"
        for c, right in zip(columns, numbers)
    )
    lines = "".join("<tr>" + "".join(_cell(v) for v in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return (
            f"<td class='number'>{value:.3f}</td>"
            if abs(value) < 10
            else f"<td class='number'>{value:,.1f}</td>"
        )
    if isinstance(value, int):
        return f"<td class='number'>{value:,}</td>"
    return f"<td>{html.escape(str(value))}</td>"
