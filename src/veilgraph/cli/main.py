"""The command line: one file per verb, no logic. ``main`` imports only the verb that was asked for."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from veilgraph.cli.shown import as_json, visible

VERBS = {
    "demo": "The whole story on a built-in hospital graph.",
    "load": "Read a graph from any source, check it, and save it as a folder.",
    "mark": "Say which statements are confidential, and whose they are.",
    "plan": "Rehearse on unrestricted statements what privacy would cost at several ε.",
    "train": "Learn embeddings of a graph.",
    "release": "Make a graph public: every statement with its probability, under a promise.",
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
    "doctor": "What a folder is, whether it is whole, and what can be recovered.",
    "list": "What there is: models, losses, optimisers, readers, formats, datasets.",
    "bench": "Measure speed and quality beside other libraries.",
}
EXIT_CODES = (
    "exit codes: 0 ok · 2 usage (a command that cannot be read, or contradicts itself) · 3 bad input (a file, a name or a number that "
    "cannot be used) · 4 budget exceeded · 5 audit or verification failed"
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"veil: {visible(message)}\n")


class _Shown(logging.Handler):
    """Warnings on standard error, whatever it is by then, with nothing in them that a terminal obeys."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError, AttributeError):
            print(visible(record.getMessage()), file=sys.stderr)


def _prepare() -> None:
    """Streams that show what they cannot write instead of failing, or none; warnings that are safe to look at."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    logging.captureWarnings(True)
    for name in ("veilgraph", "py.warnings"):
        log = logging.getLogger(name)
        if not any(isinstance(one, _Shown) for one in log.handlers):
            log.addHandler(_Shown())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _prepare()
    given = [*(sys.argv[1:] if arguments is None else arguments)]  # (list is one of the verbs here)
    try:
        return _command(given)
    except BrokenPipeError:
        _to_nowhere()
        return 0
    except OSError as error:  # (a full disk behind what is printed)
        _to_nowhere()
        _say("", f"{error.strerror or error}")
        return 3


def _to_nowhere() -> None:
    """What is still to be printed is lost: there is nobody who reads it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(given: list[str]) -> int:
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
    if options.version or options.verb is None:
        print(f"veilgraph {_version()}" if options.version else parser.format_help(), flush=True)
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
            print(as_json(result))
        else:
            module.show(result)
        sys.stdout.flush()
        getattr(module, "finish", lambda _: None)(result)
        return int(getattr(module, "exit_code", lambda _: 0)(result))
    except VeilError as error:
        _say(options.verb, str(error))
        return error.exit_code
    except KeyboardInterrupt:
        folder = getattr(options, "out", None) or getattr(options, "run", None)
        begun = (
            options.verb in ("train", "resume")
            and folder
            and os.path.isfile(os.path.join(folder, "config.yaml"))
        )
        hint = f" Continue with: veil resume {folder}" if begun else ""
        print(file=sys.stderr)
        _say(options.verb, f"stopped. What is on disk is whole.{hint}")
        return 130
    except BrokenPipeError:
        _to_nowhere()
        return 0
    except OSError as error:
        _say(options.verb, f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        return 3
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # (a panic of a library is no Exception)
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "alloc" in str(error)):
            _say(options.verb, "out of memory. Lower --dimension or --batch, or --memory.")
        else:
            _unforeseen(options.verb, error)
        return 3


def _say(verb: str, words: str) -> None:
    with suppress(OSError):  # (a terminal that is gone)
        print(f"veil {verb}".strip() + f": {visible(words)}", file=sys.stderr)


def _unforeseen(verb: str, error: BaseException) -> None:
    """What nobody foresaw: where, and how to tell, but none of the words, which may be somebody's."""
    import traceback

    if os.environ.get("VEILGRAPH_DEBUG"):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    way = " → ".join(f"{os.path.basename(one.filename)}:{one.lineno} {one.name}" for one in frames)
    _say(
        verb,
        f"something went wrong that nobody foresaw, while «veil {verb}» was at work. What is on disk is whole; a training that had begun "
        f"goes on with veil resume. Please report these two lines, which hold nothing of your data:\n  {type(error).__name__} of "
        f"veilgraph {_version()}, Python {sys.version.split()[0]}\n  {way}\n(VEILGRAPH_DEBUG=1 shows everything, which may hold names.)",
    )


def _version() -> str:
    from veilgraph import __version__

    return __version__
