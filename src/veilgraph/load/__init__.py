"""From a source to a Graph: ``load("hospital.ttl")``, ``load("builtin:hospital")``, ``load("fb15k-237/")``.

source: what a source is · readers: one file each · graph, vocabulary, labels, marks: what is read · check, split, store
"""

from __future__ import annotations

from veilgraph.load.check import Finding, check, fix
from veilgraph.load.graph import Graph
from veilgraph.load.readers.base import ReadOptions
from veilgraph.load.source import load
from veilgraph.load.split import split
from veilgraph.load.store import save
from veilgraph.load.vocabulary import Vocabulary

__all__ = ["Finding", "Graph", "ReadOptions", "Vocabulary", "check", "fix", "load", "save", "split"]
