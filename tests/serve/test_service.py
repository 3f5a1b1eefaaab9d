"""The service over its real application: roles, refusals, budgets, limits, and what is written down."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from starlette.testclient import TestClient

from tests.serve.shop import ITEMS, USERS, items_of, make_shop
from veilgraph.cli import main
from veilgraph.errors import PrivacyError, UsageError, VerificationError
from veilgraph.run.run import Run
from veilgraph.sanitise.lists import sanitised
from veilgraph.serve import app, prepare
from veilgraph.serve.access import Doorkeeper
from veilgraph.serve.desk import Desk
from veilgraph.serve.service import Service, Terms
from veilgraph.serve.store import open_store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_shop(tmp_path_factory.mktemp("shop"))


class Shop:
    """A service with two keys, and what it logged."""

    def __init__(self, run: Run, path: Path, **terms: Any) -> None:
        rate = terms.pop("rate", 1e6)
        store = open_store(str(path / "store.sqlite"))
        names = {name for name, _ in store.keys().values()}
        for name, role in (("reader", "reader"), ("curator", "curator")):
            if name in names:
                store.remove_key(name)
            setattr(self, name, {"Authorization": f"Bearer {store.add_key(name, role)}"})
        self.log: list[str] = []
        self.service = Service.open(run.folder, store, Terms(**terms))
        self.client = TestClient(app.create(self.service, rate=rate, tell=self.log.append))

    reader: dict[str, str]
    curator: dict[str, str]

    def ask(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        return self.client.post(path, json=body, headers=self.reader if headers is None else headers)


@pytest.fixture
def shop(run: Run, tmp_path: Path) -> Iterator[Shop]:
    terms = {"sanitise": "exponential:budget=2", "catalogue": items_of(run), "known": True}
    made = Shop(run, tmp_path, user_budget=5, top=5, **terms)
    with made.client:
        yield made


def test_lists_are_charged_repeated_and_refused(shop: Shop) -> None:
    first = shop.ask("/v1/recommend", {"user": "user/03"}).json()
    assert [row["rank"] for row in first["items"]] == [1, 2, 3, 4, 5]
    assert set(first["items"][0]) == {"item", "rank"}  # scores would tell more than the list
    assert (first["spent"], first["remaining"], first["unit"], first["epsilon"]) == (2, 3, "ε", 2)
    for _ in range(5):  # a repeated question gets the same answer, whoever asks, in whatever way
        again = shop.ask("/v1/recommend", {"user": "user/03"}).json()
        assert (again["items"], again["spent"], again["again"]) == (first["items"], 2, True)
    part = shop.client.get("/v1/recommend", params={"user": "user/03", "top": 2}, headers=shop.curator).json()
    assert part["items"] == first["items"][:2]
    second = shop.ask("/v1/recommend", {"user": "user/03", "draw": 2}).json()
    assert second["spent"] == 4
    refused = shop.ask("/v1/recommend", {"user": "user/03", "draw": 3})
    assert refused.status_code == 429
    assert "budget is spent: 4 of 5 ε" in refused.json()["detail"]
    assert shop.ask("/v1/budget", {"user": "user/03"}).json()["remaining"] == 1
    assert shop.ask("/v1/recommend", {"user": "user/04"}).json()["spent"] == 2  # others have their own


def test_answers_last_until_the_policy_changes_and_budgets_beyond(run: Run, tmp_path: Path) -> None:
    def lists(**terms: Any) -> tuple[list[str], float]:
        made = Shop(run, tmp_path, known=True, catalogue=items_of(run), user_budget=5, top=5, **terms)
        with made.client:
            found = made.ask("/v1/recommend", {"user": "user/07"}).json()
            return [row["item"] for row in found["items"]], found["spent"]

    first, spent = lists(sanitise="exponential:budget=2")
    assert spent == 2
    assert lists(sanitise="exponential:budget=2") == (first, 2)  # another process, the same answer
    assert lists(sanitise="exponential:budget=1")[1] == 3  # another policy: a new list, on the same budget


def test_roles_and_keys(shop: Shop) -> None:
    body = {"user": "user/03"}
    for headers in ({}, {"Authorization": "Bearer veil_wrong"}, {"Authorization": "Basic abc"}):
        assert shop.ask("/v1/recommend", body, headers).status_code == 401
    assert shop.ask("/v1/original", body).status_code == 403
    items = shop.ask("/v1/original", body, shop.curator).json()["items"]
    assert [row["score"] for row in items] == sorted((row["score"] for row in items), reverse=True)
    assert shop.ask("/v1/budget", body).json()["spent"] == 0  # looking at originals is not charged
    assert shop.client.get("/v1/users", headers=shop.reader).status_code == 403
    found = shop.client.get("/v1/users", params={"begins": "user/1"}, headers=shop.curator).json()
    assert found["users"] == [f"user/1{i}" for i in range(10)]
    assert shop.client.get("/v1/me", headers=shop.curator).json()["role"] == "curator"
    assert shop.client.get("/v1/frontier", headers=shop.reader).status_code == 403
    assert shop.client.get("/v1/frontier", headers=shop.curator).status_code == 404
    document = shop.client.get("/v1/certificate", headers=shop.reader).json()
    assert document["lists"]["promise"].startswith("ε for a list")
    assert document["guarantee"] == "dp"
    shop.service.store.remove_key("reader")
    from veilgraph.serve import access

    before, access.FRESH = access.FRESH, -1.0
    try:
        assert shop.ask("/v1/recommend", body).status_code == 401
    finally:
        access.FRESH = before


def test_questions_about_confidential_things_and_people_are_refused(shop: Shop) -> None:
    def asked(headers: dict[str, str], **body: Any) -> Any:
        return shop.ask("/v1/predict", body, headers)

    for headers in (shop.reader, shop.curator):
        for side in ({"head": "user/03"}, {"tail": "kind/0"}):
            refused = asked(headers, relation="is", **side)
            assert refused.status_code == 403
            assert "confidential" in refused.json()["detail"]
    for relation, tail in (("took", "item/03"), ("wohnt", "town/0")):
        for side in (
            {"head": "user/03"},
            {"head": "user/99"},
            {"tail": tail},
        ):  # user/99 has no list, but lives somewhere
            refused = asked(shop.reader, relation=relation, **side)
            assert refused.status_code == 403  # what the model says about a person is what the list hides
            assert "user/" not in refused.text
            assert asked(shop.curator, relation=relation, **side).status_code == 200
    assert asked(shop.reader, relation="stands", head="user/03").status_code == 403
    assert asked(shop.reader, relation="stands", head="user/99").status_code == 403
    assert asked(shop.reader, relation="stands", head="item/03").status_code == 200
    every = asked(shop.reader, relation="stands", tail="shelf/0", top=100).json()["answers"]
    assert not any(row["entity"].startswith("user/") for row in every)
    assert len(asked(shop.reader, relation="stands", tail="shelf/0", top=7).json()["answers"]) == 7
    missing = asked(shop.reader, relation="stands", head="user/0")
    assert missing.status_code == 404
    assert "user/0" not in missing.text  # no name of anybody is suggested
    assert shop.ask("/v1/recommend", {"user": "user/0"}).text.count("user/") == 0
    assert asked(shop.reader, relation="stands").status_code == 422


def test_hostile_requests_are_refused(shop: Shop) -> None:
    good = {"user": "user/03"}
    for body in (
        {},
        {"user": 3},
        {**good, "x": 1},
        {**good, "draw": 0},
        {**good, "top": 0},
        {**good, "top": 6},
        [],
    ):
        assert shop.ask("/v1/recommend", body).status_code == 422
    key = {**shop.reader, "Content-Type": "application/json"}
    for text in (
        '{"user":"user/03","draw":NaN}', '{"user":"user/03","draw":1e999}', '{"user":NaN}', '{"user":"\\ud800"}',
        '{"user":"user/03","\\ud800":1}', "{", "nonsense", "",
    ):  # fmt: skip
        refused = shop.client.post("/v1/recommend", content=text, headers=key)
        assert refused.status_code in (404, 422), text
        assert "user/03" not in refused.text
    zeros = {**key, "Content-Length": "0" * 5000}
    assert shop.client.post("/v1/recommend", content="{}", headers=zeros).status_code == 413
    big = {"user": "x" * 5000}
    assert shop.ask("/v1/recommend", big).status_code == 413
    assert shop.ask("/v1/recommend", big, {}).status_code in (401, 413)
    streamed = shop.client.post(
        "/v1/recommend", content=(b"x" * 1000 for _ in range(10)), headers=shop.reader
    )
    assert streamed.status_code == 413
    assert shop.client.get("/v1/recommend?user=" + "y" * 5000, headers=shop.reader).status_code == 414
    assert shop.client.get("/page/../service.py").status_code == 404
    assert shop.client.get("/page/%2e%2e/service.py").status_code == 404
    answer = shop.ask("/v1/recommend", good)
    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_what_goes_wrong_for_one_goes_wrong_for_nobody_else(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that cannot be answered fails alone, with a status, and is logged without its words."""
    whole = Service.recommend

    def sometimes(self: Service, asked: Any) -> Any:
        if any(user == "user/05" for user, *_ in asked):
            raise RuntimeError("user/05 is the reason")
        return whole(self, asked)

    monkeypatch.setattr(Service, "recommend", sometimes)
    app_desk = Desk(shop.service)

    async def together() -> list[Any]:
        names = ("user/01", "user/05", "user/02")
        return await asyncio.gather(*(app_desk.recommend(name, 1) for name in names), return_exceptions=True)

    found = asyncio.run(together())
    assert [isinstance(one, RuntimeError) for one in found] == [False, True, False]
    failed = shop.ask("/v1/recommend", {"user": "user/05"})
    assert failed.status_code == 500
    assert "content-security-policy" in failed.headers
    line = json.loads(shop.log[-1])
    assert (line["status"], line["error"].split(" at ")[0]) == (500, "RuntimeError")
    assert "user/05" not in failed.text + shop.log[-1]


def test_people_who_have_nearly_everything_get_no_list(run: Run, tmp_path: Path) -> None:
    shop = Shop(run, tmp_path, sanitise="random:keep=3", top=16)  # replacing needs twice as many
    assert set(shop.service.shelf.free(repeat=False)) == {ITEMS - 30, ITEMS - 15}
    assert len(shop.service.places) == USERS - 1
    with shop.client:
        assert shop.ask("/v1/recommend", {"user": "user/00"}).status_code == 404
    with pytest.raises(UsageError, match="Lower --top"):
        Shop(run, tmp_path, top=ITEMS)


def test_first_requests_may_come_together(shop: Shop) -> None:
    door = Doorkeeper(Desk(shop.service), 100.0)
    key = shop.reader["Authorization"].removeprefix("Bearer ")

    async def together() -> list[Any]:
        return await asyncio.gather(*(door.client(key) for _ in range(8)))

    assert all(asyncio.run(together()))


def test_what_was_learnt_is_checked_and_learnt_again(run: Run, tmp_path: Path) -> None:
    terms = {"sanitise": "balanced:blend=0.1", "attribute": "is", "everyone_told": True, "top": 5}
    first = Shop(run, tmp_path, **terms).service
    path = run.folder / f"served-{first.digest[:16]}.safetensors"
    whole = path.read_bytes()
    everybody = np.arange(USERS)
    for damaged in (b"", whole[:100], whole[:-8] + b"\0" * 8):
        path.write_bytes(damaged)
        assert Shop(run, tmp_path, **terms).service._make(everybody) == first._make(everybody)
        assert path.read_bytes() == whole


def test_a_second_start_needs_no_pytorch(run: Run, tmp_path: Path) -> None:
    """Importing it takes longer than all the rest; questions about facts import it when they come."""
    terms = {"sanitise": "balanced", "attribute": "is", "everyone_told": True, "top": 5}
    first = Shop(run, tmp_path, **terms).service
    script = (
        "import json, sys; from veilgraph.serve.service import Service, Terms; from veilgraph.serve.store import open_store\n"
        "service = Service.open(sys.argv[1], open_store(sys.argv[2]), Terms(**json.loads(sys.argv[3])))\n"
        "print([service._make([0]), sorted({'torch', 'numba'} & set(sys.modules))])"
    )
    words = [sys.executable, "-c", script, run.folder, tmp_path / "warm.sqlite", json.dumps(terms)]
    told = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    assert told == f"{[first._make(np.array([0])), []]}\n"


def test_a_run_that_was_changed_is_not_served(run: Run, tmp_path: Path) -> None:
    config = run.folder / "config.yaml"
    before = config.read_text(encoding="utf-8")
    config.write_text(before.replace("- is\n", ""), encoding="utf-8")
    try:
        assert config.read_text(encoding="utf-8") != before
        with pytest.raises(VerificationError, match="was changed"):
            Shop(run, tmp_path)
    finally:
        config.write_text(before, encoding="utf-8")


def test_lists_and_epsilon_are_not_added_up(run: Run, tmp_path: Path) -> None:
    for terms, spent in (
        ({}, 1),
        ({"sanitise": "exponential:budget=2", "known": True, "catalogue": items_of(run)}, 2),
        ({"top": 4}, 2),
    ):
        shop = Shop(run, tmp_path, **{"top": 5, **terms})
        with shop.client:
            assert shop.ask("/v1/recommend", {"user": "user/09"}).json()["spent"] == spent


def test_a_key_has_a_rate(run: Run, tmp_path: Path) -> None:
    shop = Shop(run, tmp_path, top=3, rate=5)
    with shop.client:
        codes = [shop.ask("/v1/recommend", {"user": "user/03"}).status_code for _ in range(12)]
        assert codes[0] == 200
        assert codes.count(429) >= 5
        assert shop.client.get("/v1/me", headers=shop.curator).status_code == 200  # others are not concerned


def test_what_is_written_down_names_nobody(shop: Shop) -> None:
    shop.ask("/v1/recommend", {"user": "user/05"})
    shop.client.get("/v1/recommend", params={"user": "user/06"}, headers=shop.reader)
    shop.client.get("/secret/user/06")
    counts = shop.client.get("/metrics").text
    assert 'veil_requests_total{route="/v1/recommend",status="200"} 2.0' in counts
    assert "veil_charged_total 4.0" in counts
    written = "\n".join(shop.log) + counts
    assert "user/0" not in written
    lines = [json.loads(line) for line in shop.log]
    assert [line["route"] for line in lines] == ["/v1/recommend", "/v1/recommend", "other", "/metrics"]
    assert {"time", "method", "route", "status", "ms", "key"} == set(lines[0])
    assert lines[0]["key"] == "reader"
    assert shop.client.get("/healthz").json()["status"] == "ok"


def test_the_documentation_needs_no_other_host(shop: Shop) -> None:
    import re

    page = shop.client.get("/docs").text
    assert "swagger-ui" in page
    assert not re.search(r"(src|href)=.(https?:)?//", page)
    for found in re.findall(r"(?:src|href)=[\"'](/[^\"']+)", page):
        assert shop.client.get(found).status_code == 200
    paths = shop.client.get("/openapi.json").json()["paths"]
    assert {"/v1/recommend", "/v1/predict", "/v1/certificate", "/healthz", "/metrics"} <= set(paths)


def test_lists_that_learn_are_learnt_once(run: Run, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="everyone-told"):
        Shop(run, tmp_path, sanitise="balanced", attribute="is", top=5)
    first = Shop(run, tmp_path, sanitise="balanced", attribute="is", everyone_told=True, top=5)
    kept = run.folder / f"served-{first.service.digest[:16]}.safetensors"
    assert kept.stat().st_mode & 0o077 == 0
    before = kept.stat().st_mtime_ns
    second = Shop(run, tmp_path, sanitise="balanced", attribute="is", everyone_told=True, top=5)
    assert kept.stat().st_mtime_ns == before
    everybody = np.arange(USERS)
    assert first.service._make(everybody) == second.service._make(everybody)


def test_the_service_shows_what_veil_sanitise_writes(run: Run, tmp_path: Path) -> None:
    terms = {"attribute": "is", "everyone_told": True, "top": 5}
    shop = Shop(run, tmp_path, sanitise="balanced", known=True, **terms)
    offline = sanitised(run, "balanced", repeat=True, **terms)["lists"]
    people = list(offline)
    assert [one.answer for one in shop.service.recommend([(user, 1, "") for user in people])] == list(
        offline.values()
    )


def test_the_command_line(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "keys.sqlite")
    assert main(["serve", str(run.folder), "--store", store, "--port", "0"]) == 3
    assert "veil serve key add" in capsys.readouterr().err
    assert main(["serve", "key", "add", "shop", "--store", store, "--json"]) == 0
    key = json.loads(capsys.readouterr().out)["key"]
    assert key.startswith("veil_")
    assert main(["serve", "key", "list", "--store", store]) == 0
    shown = capsys.readouterr().out
    assert "shop" in shown
    assert key not in shown
    assert key.encode() not in (tmp_path / "keys.sqlite").read_bytes()
    assert main(["serve", "key", "burn", "--store", store]) == 2
    assert main(["serve", "key", "remove", "shop", "--store", store]) == 0
    assert main(["serve", "key", "add", "shop", "--role", "king", "--store", store]) == 3
    assert main(["serve", "key", "add", "shop", "--role", "curator", "--store", store]) == 0
    for rate in ("0", "nan", "-1"):
        assert main(["serve", str(run.folder), "--store", store, "--port", "0", "--rate", rate]) == 3
    assert main(["serve", "key", "remove", "\udcff", "--store", store]) == 3
    capsys.readouterr()
    taken = prepare(run.folder, store=store, port=0, log=None)
    port = taken.facts["address"].rpartition(":")[2]
    assert taken.facts["keys"] == "0 of readers, 1 of curators"
    assert main(["serve", str(run.folder), "--store", store, "--port", port]) == 3
    assert "another --port" in capsys.readouterr().err
    taken.socket.close()
