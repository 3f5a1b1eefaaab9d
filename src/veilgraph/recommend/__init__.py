"""Items for users from a run: ``recommend(run, "user/17", top=10)``, and how good such lists are beside simple recommenders."""

from __future__ import annotations

from veilgraph.recommend.lists import judge, readable, recommend
from veilgraph.recommend.offers import Offers
from veilgraph.recommend.shelf import Shelf, offers_of

__all__ = ["Offers", "Shelf", "judge", "offers_of", "readable", "recommend"]
