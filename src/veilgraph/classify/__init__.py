"""Labels of entities learnt from the graph around them: ``classify(graph, labels, model="kegcn")``.

config      settings · folds: whose labels are learnt from · ordinary: a network over all edges, without noise
guarantees  what can be promised, one small file each · places, spread: public features (adjacency) · roles: entities as heads or tails
perceptron  the classifier behind them · private_steps: noisy clipped steps · folder: what is released, with its certificate
"""

from __future__ import annotations

from veilgraph.classify.classify import classify
from veilgraph.classify.config import ClassifyConfig
from veilgraph.load.folds import Folds, folds_of

__all__ = ["ClassifyConfig", "Folds", "classify", "folds_of"]
