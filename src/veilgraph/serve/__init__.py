"""The service in front of a run: sanitised lists over HTTP, each charged before it leaves.

store      who spent what, which answers were given, who may ask: sqlite, postgres · ready: from a run to a service
service    what is answered, without any network
desk       requests that arrive together are answered together
app        routes, roles and refusals · access: keys and rates · guard: limits, headers, metrics, log · page: for people
"""

from __future__ import annotations

from veilgraph.serve.ready import STORE, Ready, prepare

__all__ = ["STORE", "Ready", "prepare"]
