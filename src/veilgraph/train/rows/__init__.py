"""Where entity rows come from, one small file each: a table, descriptions, a graph convolution. A plan takes any of them."""

from __future__ import annotations

from veilgraph.train.rows.base import Made, Place, Rows
from veilgraph.train.rows.graph import GraphRows
from veilgraph.train.rows.table import TableRows
from veilgraph.train.rows.text import TextRows

__all__ = ["GraphRows", "Made", "Place", "Rows", "TableRows", "TextRows"]
