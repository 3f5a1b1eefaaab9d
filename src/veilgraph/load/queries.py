"""Whether a mapping's SQL may be run: one SELECT that calls nothing but what computes.

A mapping is a file from somewhere. Its queries are run in connections that cannot write and take one statement at a time
(``readers/database.py``); this looks at the words before any of them reaches the database. What databases read differently (backslashes,
backticks, brackets, dollar quotes, nested comments) is refused, and so is every function that is not known to be harmless.
"""

from __future__ import annotations

import re
from bisect import bisect_right

WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "INTO", "TRUNCATE", "RECURSIVE"})
# words of SQL, which call nothing, and functions that only compute
BEFORE_BRACKETS_WORDS = """
ALL AND ANY AS BETWEEN BY CASE DISTINCT ELSE EXCEPT EXISTS FILTER FROM GROUP HAVING IN INTERSECT IS JOIN LIKE ILIKE LIMIT NOT
OFFSET ON OR ORDER OVER PARTITION SELECT SOME THEN UNION USING VALUES WHEN WHERE WITH WITHIN LATERAL MATERIALIZED CROSS INNER LEFT
RIGHT FULL OUTER VARCHAR CHAR CHARACTER DECIMAL NUMERIC TIMESTAMP TIME FLOAT PRECISION VARYING
"""
BEFORE_BRACKETS = frozenset(BEFORE_BRACKETS_WORDS.split())
HARMLESS_WORDS = """
ABS AGE AVG CAST CEIL CEILING CHAR_LENGTH CHARACTER_LENGTH COALESCE CONCAT CONCAT_WS COUNT CURRENT_DATE DATE DATE_DIFF DATE_PART
DATE_TRUNC DATEDIFF DATETIME DAY DENSE_RANK EXTRACT FIRST_VALUE FLOOR GREATEST GROUP_CONCAT HASH HOUR IFNULL IIF INSTR
JSON_EXTRACT JULIANDAY LAG LAST_VALUE LEAD LEAST LEFT LENGTH LISTAGG LN LOG LOWER LTRIM MAKE_DATE MAX MD5 MEDIAN MIN MINUTE MOD
MONTH NTILE NULLIF PERCENTILE_CONT PERCENTILE_DISC POSITION POW POWER QUARTER RANK REGEXP_REPLACE REPLACE REVERSE RIGHT ROUND
ROW_NUMBER RTRIM SECOND SHA256 SIGN SPLIT_PART SQRT STRFTIME STRING_AGG STRPOS SUBSTR SUBSTRING SUM TO_CHAR TO_DATE TO_NUMBER
TO_TIMESTAMP TRANSLATE TRIM TRUNC TRY_CAST TYPEOF UPPER WEEK YEAR
"""
HARMLESS = frozenset(HARMLESS_WORDS.split())
ENDS_FROM = frozenset(
    {
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "SELECT",
        "WINDOW",
    }
)
NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])"
TOKEN = re.compile(
    rf"(?P<text>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")*\")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>{NUMBER})|(?P<sign>[^ \t\n])",
    re.DOTALL,
)
LONGEST, DEEPEST = 1 << 16, 100  # characters of a query, brackets in brackets
SIGNS = frozenset("(),.*+-/%<>=|;!~^&:")
DIFFERENTLY = "which databases read differently"


def why_not(query: str) -> str | None:
    """Why a query is not run; None where it only reads and computes."""
    for sign, said in (
        ("`", "a backtick"),
        ("\\", "a backslash"),
        ("$", "a dollar"),
        ("--", "a comment"),
        ("/*", "a comment"),
    ):
        if sign in query:
            return f"it holds {said}, {DIFFERENTLY}"
    if any(not one.isprintable() for one in query if one not in "\t\n"):
        return f"it holds a character that is not seen, {DIFFERENTLY}"
    if len(query) > LONGEST:
        return f"it has {len(query):,} characters, and {LONGEST:,} are read at most: make a view of it"
    tokens = list(TOKEN.finditer(query))
    if tokens and tokens[-1]["sign"] == ";":
        tokens.pop()
    for place, one in enumerate(tokens):
        why = _wrong(one, tokens[place + 1] if place + 1 < len(tokens) else None)
        if why is not None:
            return why
    if not tokens or (tokens[0]["word"] or "").upper() not in ("SELECT", "WITH"):
        return "it does not begin with SELECT"
    return _files(tokens) or _endless(tokens)


def _wrong(one: re.Match[str], after: re.Match[str] | None) -> str | None:
    """What is wrong with a token, in the light of the next."""
    calls = after is not None and after["sign"] == "("
    quoted = after is not None and bool(after["text"] or after["name"])
    if one["sign"] == ";":
        return "it holds more than one statement"
    if one["sign"] in ("'", '"'):
        return "a quotation in it has no end"
    if one["sign"] and (one["sign"] not in SIGNS or (one["sign"] == "&" and quoted)):
        return f"it holds {one['sign']}, {DIFFERENTLY}"
    if (one["name"] or one["text"]) and calls:
        return f"it calls {one[0]}, a function in quotation marks"
    if not one["word"]:
        return None
    word = one["word"].upper()
    if quoted and after is not None and after.start() == one.end():
        return f"{one['word']} stands before a quotation mark, {DIFFERENTLY}"
    if word == "UESCAPE":
        return f"it holds UESCAPE, {DIFFERENTLY}"
    if word in WRITES and not (word == "REPLACE" and calls):
        return f"{word} may change something, or never end (a column of that name goes in quotation marks)"
    if calls and word not in BEFORE_BRACKETS | HARMLESS:
        return f"{one['word'].lower()}() is not among the functions a mapping may call: make a view of it, and read that"
    return None


def _files(tokens: list[re.Match[str]]) -> str | None:
    """Whether a string stands where a table should: DuckDB reads a file of that name."""
    depth, within = 0, set()
    for before, one in zip([None, *tokens], tokens):
        word = (one["word"] or "").upper()
        if one["sign"] == "(":
            depth += 1
        elif one["sign"] == ")":
            within.discard(depth)
            depth -= 1
        elif word in ("FROM", "JOIN"):
            within.add(depth)
        elif word in ENDS_FROM:
            within.discard(depth)
        begins = before is not None and (
            (before["word"] or "").upper() in ("FROM", "JOIN") or before["sign"] in (",", "(")
        )
        if (
            one["text"]
            and begins
            and (depth in within or (before is not None and before["sign"] == "(" and depth - 1 in within))
        ):
            return "it reads a file instead of a table"
    return None


def _endless(tokens: list[re.Match[str]]) -> str | None:
    """Whether something that is named by WITH reads itself, which may go on for ever; or whether brackets are no pairs."""
    words = [(one["word"] or one["name"] or one["sign"] or "").strip('"').upper() for one in tokens]
    closing: dict[int, int] = {}
    opened: list[int] = []
    for place, one in enumerate(tokens):
        if one["sign"] == "(":
            opened.append(place)
            if len(opened) > DEEPEST:
                return f"its brackets are nested deeper than {DEEPEST}"
        elif one["sign"] == ")":
            if not opened:
                return "its brackets are no pairs"
            closing[opened.pop()] = place
    if opened:
        return "its brackets are no pairs"
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    for place, word in enumerate(words):
        if not place or words[place - 1] not in ("WITH", ","):
            continue
        then = closing.get(place + 1, place) + 1  # behind the names of columns, if there are any
        if words[then : then + 1] != ["AS"]:
            continue
        then += 1
        while words[then : then + 1] in (["NOT"], ["MATERIALIZED"]):
            then += 1
        if then not in closing:
            continue
        after = bisect_right(places[word], then)  # the next time it is named
        if after < len(places[word]) and places[word][after] < closing[then]:
            return f"{word} reads itself, which may never end"
    return None
