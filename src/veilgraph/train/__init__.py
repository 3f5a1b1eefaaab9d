"""From a graph to a run: ``train(graph, marks, model="complex", epsilon=1, out="run/")`` and ``resume("run/")``.

train, begin: the two of them · defaults: what is left open · loop, session, state: how a training goes · gradients, losses, optim
private: sampling, clipping, noise · mechanisms: one file each
"""

from __future__ import annotations

from veilgraph.train.begin import begin, complete_config
from veilgraph.train.train import resume, train

__all__ = ["begin", "complete_config", "resume", "train"]
