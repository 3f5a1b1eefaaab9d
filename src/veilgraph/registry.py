"""What there is: every kind of component by name, from the files of one place and from other packages.

A component is a class with a ``name`` in a file of its kind's place; the file is found by itself. Another package adds one by an entry
point, e.g. in its pyproject.toml

    [project.entry-points."veilgraph.mechanisms"]
    mine = "my_package.mine:Mine"

or, for one session, by ``add``. ``names`` reads names off files without importing them, so that a command's help need not wait for
PyTorch; ``available`` and ``find`` import.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from veilgraph.errors import InputError, MissingExtraError, UnknownNameError

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Kind:
    """Where components of one kind are, what they are subclasses of, and how errors call one."""

    place: str  # a folder or a file, from here
    base: str  # «module:Class», from here
    word: str
    extra: tuple[str, str] | None = None  # what needs an optional library, and which
    more: str = ""  # what may be named beside those that are found


KINDS = {
    "readers": Kind("load.readers", "load.readers.base:Reader", "reader"),
    "units": Kind("mark.units", "mark.units:Unit", "unit"),
    "markers": Kind("mark.rules", "load.marks:Marker", "way of marking"),
    "models": Kind("models", "models.base:Model", "model", more=", and pykeen:NAME (veil list models)"),
    "encoders": Kind("models.text.encoders", "models.text.encoders.base:TextEncoder", "text encoder"),
    "convolutions": Kind("models.gcn.network", "models.gcn.network:Published", "graph convolution"),
    "transports": Kind("models.gcn.transport", "models.gcn.transport:Transport", "transport"),
    "losses": Kind("train.losses", "train.losses:Loss", "loss"),
    "optimisers": Kind("train.optim", "train.optim:Optimiser", "optimiser"),
    "mechanisms": Kind("train.mechanisms", "train.mechanisms.base:Mechanism", "mechanism"),
    "guarantees": Kind("classify.guarantees", "classify.guarantees.base:Guarantee", "guarantee"),
    "formats": Kind("run.formats", "run.formats.base:Format", "export format"),
    "sanitisers": Kind("sanitise", "sanitise.base:Sanitiser", "sanitiser"),
    "strategies": Kind("federate.strategies", "federate.strategies.base:Strategy", "strategy"),
    "attacks": Kind("attack.federated", "attack.federated.base:Attack", "attack on a federation"),
    "attackers": Kind(
        "attack.attribute.attackers",
        "attack.attribute.attackers.base:Attacker",
        "attacker",
        ("veil attack attribute", "attack"),
    ),
}


_added: dict[str, dict[str, Any]] = {}


def add(kind: str, component: type[Any]) -> None:
    """Have a class for this session, e.g. in a notebook: what stays goes into a file of its kind's place, or behind an entry point."""
    base = _base(KINDS[kind])
    if not issubclass(component, base) or not isinstance(getattr(component, "name", None), str):
        raise InputError(
            f"a {KINDS[kind].word} is a subclass of {base.__name__} with a name; found {component!r}."
        )
    _refuse_a_name_of_ours(kind, component.name)
    _added.setdefault(kind, {})[component.name] = component


def _refuse_a_name_of_ours(kind: str, name: str) -> None:
    """What bears a built-in's name would be charged, certified and believed as that."""
    if name in _own_names(kind):
        raise InputError(
            f"{name!r} is the name of a {KINDS[kind].word} of veilgraph's own: give yours another one."
        )


def foreign(kind: str, name: str) -> str | None:
    """Whose code a component is, if it is not this package's: what it does was argued nowhere here."""
    module = str(available(kind)[name].__module__) if name in available(kind) else "veilgraph."
    return None if module.startswith("veilgraph.") else module


def available(kind: str) -> dict[str, Any]:
    """Every component of a kind by its name, sorted; abstract classes and those without a name are none."""
    return dict(sorted({**_found(kind), **_added.get(kind, {})}.items()))


@cache
def _found(kind: str) -> dict[str, Any]:
    asked = KINDS[kind]
    base = _base(asked)
    found: dict[str, Any] = {}
    try:
        for module in _modules(asked.place):
            for item in vars(module).values():
                own = isinstance(item, type) and item.__module__ == module.__name__
                if own and issubclass(item, base) and "name" in vars(item) and not inspect.isabstract(item):
                    found[item.name] = item
    except ImportError:
        if asked.extra is None:
            raise
        raise MissingExtraError(*asked.extra) from None
    for point in entry_points(group=f"veilgraph.{kind}"):
        item = point.load()
        if not (
            isinstance(item, type) and issubclass(item, base) and getattr(item, "name", None) == point.name
        ):
            raise InputError(
                f"the package that offers {point.name!r} as a {asked.word} ({point.value}) is wrong: a subclass of {base.__name__} "
                f"whose name is {point.name!r} was expected. Mend or remove that package."
            )
        _refuse_a_name_of_ours(kind, point.name)
        found[point.name] = item
    return found


def names(kind: str) -> tuple[str, ...]:
    """The names of a kind, sorted, without importing anything of it."""
    return tuple(sorted({*_written(kind), *_added.get(kind, {})}))


@cache
def _written(kind: str) -> frozenset[str]:
    return _own_names(kind) | {point.name for point in entry_points(group=f"veilgraph.{kind}")}


@cache
def _own_names(kind: str) -> frozenset[str]:
    asked = KINDS[kind]
    classes = {node.name: node for path in _files(asked.place) for node in _classes(path)}
    base = asked.base.rpartition(":")[2]

    def belongs(name: str) -> bool:
        above = (
            [part.id for part in classes[name].bases if isinstance(part, ast.Name)] if name in classes else []
        )
        return base in above or any(belongs(one) for one in above if one != name)

    written = {_name_in(node) for name, node in classes.items() if belongs(name)} - {None}
    return frozenset(name for name in written if name is not None)


def find(kind: str, name: str) -> Any:
    """The component of that name; an unknown one is an error that says which there are."""
    known = available(kind)
    if name not in known:
        raise UnknownNameError(
            KINDS[kind].word, name, known, hint=f"There are: {', '.join(known)}{KINDS[kind].more}."
        )
    return known[name]


def _base(kind: Kind) -> type[Any]:
    module, _, name = kind.base.partition(":")
    found: type[Any] = getattr(importlib.import_module(f"veilgraph.{module}"), name)
    return found


def _modules(place: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"veilgraph.{place}")
    yield package
    for info in pkgutil.iter_modules(getattr(package, "__path__", [])):
        if not info.ispkg:
            yield importlib.import_module(f"{package.__name__}.{info.name}")


def _files(place: str) -> list[Path]:
    path = HERE.joinpath(*place.split("."))
    return sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def _classes(path: Path) -> list[ast.ClassDef]:
    return [
        node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)
    ]


def _name_in(node: ast.ClassDef) -> str | None:
    """The word a class has for a name."""
    for line in node.body:
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        value = getattr(line, "value", None)
        if isinstance(target, ast.Name) and target.id == "name" and isinstance(value, ast.Constant):
            return str(value.value)
    return None
