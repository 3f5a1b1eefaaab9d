"""What may be shown on a terminal: names come from strangers, and a terminal obeys some of the characters that are in them."""

from __future__ import annotations

import json
import re
from typing import Any

HIDDEN = (  # control characters but tab and line break, changes of direction, what has no width, what is half a character
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\U000e0000-\\U000e007f"
)
OBEYED = re.compile(f"[{HIDDEN}]")


def visible(text: str, *, line: bool = False) -> str:
    """The text with such characters spelt out, as «\\x1b»; with ``line`` also what would begin another line."""
    found = OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return found.replace("\n", "\\n").replace("\t", "\\t") if line else found


def as_json(value: Any) -> str:
    """One line of JSON that can be shown and written: what a terminal obeys is escaped, and reads as it was."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return OBEYED.sub(lambda found: json.dumps(found[0])[1:-1], text)
