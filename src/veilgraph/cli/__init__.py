"""The command line: one file per verb, no logic. ``main`` imports only the verb that was asked for."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

VERBS = {
    "demo": "The whole story on a built-in hospital graph.",
    "load": "Read a graph from any source, check it, and save it as a folder.",
    "mark": "Say which statements are confidential, and whose they are.",
    "plan": "Rehearse on unrestricted statements what privacy would cost at several ε.",
    "train": "Learn embeddings of a graph.",
    "resume": "Continue a training that was stopped.",
    "evaluate": "Rank held-out statements among all entities.",
    "predict": "Answer (head, relation, ?) or (?, relation, tail) by name, or about what a text describes.",
    "extend": "Add new entities to a run by their descriptions, without training.",
    "classify": "Tell labels of entities by a graph convolution.",
    "recommend": "Items for a user; or how good such lists are, beside simple recommenders.",
    "certificate": "What a run promises, in words and numbers; verify checks it.",
    "audit": "Train with canaries and test whether the claimed ε holds.",
    "attack": "Attack a run or a federation: membership of statements, attributes from recommendations.",
    "sanitise": "Lists of recommendations that tell less about a hidden attribute.",
    "serve": "Sanitised lists over HTTP, with keys and a budget for every person.",
    "federate": "Institutions learn together; nobody's statements leave them.",
    "report": "One page about runs: the promise in words, utility, attacks, a map.",
    "tune": "Search for good settings.",
    "export": "Write the vectors for other tools.",
    "experiment": "Repeat a published table or figure, the paper's numbers beside ours.",
    "list": "What there is: models, losses, optimisers, readers, formats, datasets.",
    "bench": "Measure speed and quality beside other libraries.",
}
EXIT_CODES = "exit codes: 0 ok · 2 usage · 3 bad input · 4 budget exceeded · 5 audit or verification failed"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"veil: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = [*(sys.argv[1:] if arguments is None else arguments)]  # (list is one of the verbs here)
    parser = _Parser(
        prog="veil",
        description="Knowledge-graph embeddings that can be shared without betraying the people in the graph.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="store_true", help="show the version")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    asked = next((word for word in given if not word.startswith("-")), None)
    for verb, help_text in VERBS.items():
        sub = verbs.add_parser(verb, help=help_text, description=help_text, epilog=EXIT_CODES)
        if verb == asked:
            module = importlib.import_module(f"veilgraph.cli.{verb}")
            module.arguments(sub)
            sub.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = _parsed(parser, given)
    if options.version:
        from veilgraph import __version__

        print(f"veilgraph {__version__}")
        return 0
    if options.verb is None:
        parser.print_help()
        return 0
    return _run(options)


def _parsed(parser: argparse.ArgumentParser, given: list[str]) -> argparse.Namespace:
    """The options; words may also come after flags, as in «predict RUN --top 3 HEAD RELATION»."""
    options, rest = parser.parse_known_args(given)
    free = [name for name in ("head", "relation", "tail") if getattr(options, name, "") is None]
    if any(word.startswith("-") for word in rest):
        free = []
    elif getattr(options, "words", None):
        options.words, rest = [*options.words, *rest], []
    if len(rest) > len(free):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    for name, word in zip(free, rest):
        setattr(options, name, word)
    return options


def _run(options: argparse.Namespace) -> int:
    from veilgraph.errors import VeilError

    module = importlib.import_module(f"veilgraph.cli.{options.verb}")
    try:
        result = module.run(options)
        if options.json:
            print(json.dumps(result, ensure_ascii=False, allow_nan=False))
        else:
            module.show(result)
        sys.stdout.flush()
        getattr(module, "finish", lambda _: None)(result)
        return int(getattr(module, "exit_code", lambda _: 0)(result))
    except VeilError as error:
        print(f"veil {options.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        folder = getattr(options, "out", None) or getattr(options, "run", None)
        begun = (
            options.verb in ("train", "resume")
            and folder
            and os.path.isfile(os.path.join(folder, "config.yaml"))
        )
        hint = f" Continue with: veil resume {folder}" if begun else ""
        print(f"\nveil {options.verb}: stopped. What is on disk is whole.{hint}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "alloc" not in str(error):
            raise
        print(
            f"veil {options.verb}: out of memory. Lower --dimension or --batch, or --memory.", file=sys.stderr
        )
        return 3
    except OSError as error:
        print(
            f"veil {options.verb}: {error.strerror or error}: {error.filename or ''}".rstrip(": "),
            file=sys.stderr,
        )
        return 3
