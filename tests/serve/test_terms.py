"""On what terms a service starts, and on which it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.serve.shop import ITEMS, items_of, make_shop
from veilgraph.errors import ConfigError, InputError, PrivacyError, UsageError, VeilError
from veilgraph.run.run import Run
from veilgraph.serve.service import Service, Terms
from veilgraph.serve.store import open_store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_shop(tmp_path_factory.mktemp("shop"))


def test_terms_that_cannot_be_kept_are_refused_before_anybody_asks(run: Run, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], type[VeilError]]] = [
        (
            {"sanitise": "exponential:budget=2", "catalogue": items_of(run)},
            PrivacyError,
        ),  # new items only: leaving out tells
        ({"sanitise": "exponential:budget=2", "known": True}, PrivacyError),  # items read off histories
        (
            {"sanitise": "exponential:budget=2", "known": True, "catalogue": "item/"},
            PrivacyError,
        ),  # … and so are names
        ({"sanitise": "random", "catalogue": "absent/"}, InputError),
        (
            {"sanitise": "exponential:budget=20", "catalogue": items_of(run), "known": True},
            PrivacyError,
        ),  # dearer than the budget
        ({"user_budget": 0}, ConfigError),
        ({"user_budget": float("nan")}, ConfigError),
        ({"top": ITEMS + 1}, ConfigError),
        ({"sanitise": "exponential:budget=nan", "catalogue": items_of(run), "known": True}, InputError),
        (
            {
                "sanitise": "exponential:budget=inf",
                "catalogue": items_of(run),
                "known": True,
                "user_budget": float("inf"),
            },
            InputError,
        ),
        (
            {
                "sanitise": "exponential:budget=1e300",
                "catalogue": items_of(run),
                "known": True,
                "user_budget": float("inf"),
            },
            PrivacyError,
        ),
        (
            {
                "sanitise": "exponential:budget=1.5e-6",
                "catalogue": items_of(run),
                "known": True,
                "user_budget": 1.5e-6,
            },
            PrivacyError,
        ),
        ({"sanitise": "random", "attribute": "is"}, UsageError),
        ({"sanitise": "nonsense"}, InputError),
    ]
    for terms, error in cases:
        with pytest.raises(error):
            Service.open(run.folder, open_store(str(tmp_path / "store.sqlite")), Terms(**terms))
