"""select-as-published: DP-FLames' choice of rows with the constants that were printed. Not differentially private.

A gap between row norms is taken to change by at most C between neighbours, where it may change by 2·C, and the costs that
were printed hold for replacing a statement, not for adding one (docs/contract.md). As printed the test passes about as
often as its failure probability, so that entities hardly ever move.
"""

from __future__ import annotations

from typing import ClassVar

from veilgraph.account.events import Event, non_private
from veilgraph.account.prices import StepTerms
from veilgraph.train.mechanisms.select import Select


class SelectAsPublished(Select):
    """DP-FLames' selection with its printed constants, which do not bound what a statement changes."""

    name = "select-as-published"
    guarantee = "as published, not differentially private"
    unsound: ClassVar[str | None] = (
        "selection of rows with constants that do not bound what a statement can change"
    )
    ratio = 1.0
    safe = 1.0

    @classmethod
    def event(cls, terms: StepTerms) -> Event:
        return non_private(cls.unsound or "")

    @classmethod
    def earlier(cls, terms: StepTerms) -> list[Event]:
        return []
