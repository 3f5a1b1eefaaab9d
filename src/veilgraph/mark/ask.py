"""A program of its own, which ``query.py`` starts: asks one SPARQL query of the statements it is given, and can do nothing else.

Nothing of ours is imported. Before the query is looked at, the process gives up opening anything, files and connections alike, and all
but so much memory; whoever started it ends it when its time is over. In: a line of JSON (query, base, memory), then N-Triples. Out:
lines of JSON, [head, relation, tail] each once, or {"error": why}.
"""

from __future__ import annotations

import io
import json
import resource
import sys

import pyoxigraph

STATED = 3  # columns of an answer


def main() -> None:
    """From standard input to standard output."""
    asked = json.loads(sys.stdin.buffer.readline())
    store = pyoxigraph.Store()
    store.bulk_load(io.BytesIO(sys.stdin.buffer.read()), "application/n-triples")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))  # what is open stays: in, out, errors
    resource.setrlimit(resource.RLIMIT_AS, (asked["memory"], asked["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answers = store.query(asked["query"], base_iri=asked["base"])
        if isinstance(answers, bool):
            raise ValueError("shape")
        said = set()
        for row in answers:
            words = tuple(str(getattr(term, "value", term)) for term in tuple(row)[:STATED])
            if len(words) != STATED:
                raise ValueError("shape")
            if words not in said:
                said.add(words)
                print(json.dumps(words))
    except (SyntaxError, ValueError, OSError, MemoryError) as error:
        print(json.dumps({"error": str(error) or type(error).__name__}))


if __name__ == "__main__":
    main()
