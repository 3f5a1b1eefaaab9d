"""Institutions learn together: ``federate("clients/", out="federation/", rounds=40)``.

terms        what is agreed on · names: names as tokens under a secret · divide, groups: a graph for several clients · places: the folder
member       a client without any network · protocols: how its test statements are ranked
coordinator  the server without any network · strategies: which rows are shared, one file each
together     all data in one place, the baseline · federation: all of it in one process
messages     what goes over the wire · client_app, server: both sides on Flower · grid: all in one process
"""

from __future__ import annotations

from veilgraph.federate.federation import federate

__all__ = ["federate"]
