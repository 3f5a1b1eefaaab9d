"""Knowledge-graph embeddings that can be shared without betraying the people in the graph.

import veilgraph as vg

graph = vg.load("builtin:hospital")
graph = vg.split(graph, valid=0.05, test=0.05)
run = vg.train(graph, model="complex", out="run/")
print(run.evaluate("test", graph=graph))
print(run.predict(head="patient/17", relation="mayBenefitFrom", top=5))
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import veilgraph.waiting  # noqa: F401  (before anything that has threads)

__version__ = "0.4.0"

__all__ = [
    "Graph",
    "Run",
    "VeilError",
    "__version__",
    "attribute",
    "audit",
    "check",
    "classify",
    "evaluate",
    "export",
    "extend",
    "federate",
    "fix",
    "load",
    "mark",
    "membership",
    "open_run",
    "predict",
    "recommend",
    "rehearse",
    "release",
    "report",
    "resume",
    "sanitised",
    "save",
    "split",
    "suggest",
    "train",
    "tune",
    "verify",
]

_HOMES = {
    "Graph": ("veilgraph.load.graph", "Graph"),
    "Run": ("veilgraph.run.run", "Run"),
    "VeilError": ("veilgraph.errors", "VeilError"),
    "attribute": ("veilgraph.attack.attribute", "attribute"),
    "audit": ("veilgraph.attack.audit", "audit"),
    "check": ("veilgraph.load.check", "check"),
    "classify": ("veilgraph.classify", "classify"),
    "evaluate": ("veilgraph.run.evaluate", "evaluate"),
    "export": ("veilgraph.run.export", "export"),
    "extend": ("veilgraph.run.extend", "extend"),
    "federate": ("veilgraph.federate", "federate"),
    "fix": ("veilgraph.load.check", "fix"),
    "load": ("veilgraph.load", "load"),
    "mark": ("veilgraph.mark.rules", "mark"),
    "membership": ("veilgraph.attack.membership", "membership"),
    "open_run": ("veilgraph.run.run", "open_run"),
    "predict": ("veilgraph.run.predict", "predict"),
    "recommend": ("veilgraph.recommend", "recommend"),
    "rehearse": ("veilgraph.tune.rehearse", "rehearse"),
    "release": ("veilgraph.train.publish", "release"),
    "report": ("veilgraph.report.runs", "report"),
    "resume": ("veilgraph.train", "resume"),
    "sanitised": ("veilgraph.sanitise.lists", "sanitised"),
    "save": ("veilgraph.load.store", "save"),
    "split": ("veilgraph.load.split", "split"),
    "suggest": ("veilgraph.mark.suggest", "suggest"),
    "train": ("veilgraph.train", "train"),
    "tune": ("veilgraph.tune.search", "tune"),
    "verify": ("veilgraph.run.verify", "verify"),
}


def __getattr__(name: str) -> Any:
    """Import a function when it is first used: ``veil --help`` must not wait for Torch."""
    if name not in _HOMES:
        raise AttributeError(f"veilgraph has no {name!r}; it has {', '.join(__all__)}")
    module, attribute = _HOMES[name]
    found = getattr(importlib.import_module(module), attribute)
    globals()[name] = found
    return found


class _Session(ModuleType):
    """Importing the folder ``veilgraph.load`` must not hide the function ``veilgraph.load`` behind it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Session

if TYPE_CHECKING:
    from veilgraph.attack.attribute import attribute as attribute
    from veilgraph.attack.audit import audit as audit
    from veilgraph.attack.membership import membership as membership
    from veilgraph.classify.classify import classify as classify
    from veilgraph.errors import VeilError
    from veilgraph.federate import federate as federate
    from veilgraph.load import load
    from veilgraph.load.check import check, fix
    from veilgraph.load.graph import Graph
    from veilgraph.load.split import split
    from veilgraph.load.store import save
    from veilgraph.mark.rules import mark as mark
    from veilgraph.mark.suggest import suggest as suggest
    from veilgraph.report.runs import report as report
    from veilgraph.run.evaluate import evaluate as evaluate
    from veilgraph.run.export import export as export
    from veilgraph.run.extend import extend as extend
    from veilgraph.run.predict import predict as predict
    from veilgraph.run.run import Run, open_run
    from veilgraph.run.verify import verify as verify
    from veilgraph.train.publish import release as release
    from veilgraph.train.train import resume as resume
    from veilgraph.train.train import train as train
    from veilgraph.tune.rehearse import rehearse as rehearse
    from veilgraph.tune.search import tune
