"""The service as a process of its own: many clients at once, a kill under load, and its page in a real browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
import urllib.error
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from tests.serve.shop import USERS, items_of, make_shop, post, serving
from veilgraph.run.run import Run
from veilgraph.serve.store import open_store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


def new_key(store: str, role: str = "reader") -> str:
    opened = open_store(store)
    try:
        return opened.add_key(role, role)
    finally:
        opened.close()


def test_sixty_four_clients_at_two_servers_never_overspend(run: Run, store: str) -> None:
    """Everybody asks for another list of the same person; ten may be given, whichever server is asked."""
    key = new_key(store)
    words = (
        "--store",
        store,
        "--sanitise",
        "exponential:budget=1",
        "--catalogue",
        items_of(run),
        "--known",
        "--user-budget",
        "10",
    )
    with (
        serving(run.folder, *words) as (one, _),
        serving(run.folder, *words) as (other, _),
        ThreadPoolExecutor(64) as pool,
    ):
        asked = [((one, other)[i % 2], {"user": "user/03", "draw": i + 1}) for i in range(64)]
        found = list(pool.map(lambda ask: post(ask[0], "/v1/recommend", key, ask[1])[0], asked))
        assert Counter(found) == {200: 10, 429: 54}
        assert post(one, "/v1/budget", key, {"user": "user/03"})[1]["spent"] == 10
        same = list(
            pool.map(
                lambda i: post((one, other)[i % 2], "/v1/recommend", key, {"user": "user/04"}), range(64)
            )
        )
        assert len({str(answer["items"]) for _, answer in same}) == 1
        assert sum(not answer["again"] for _, answer in same) == 1


def test_a_kill_under_load_loses_no_spend(run: Run, store: str) -> None:
    key = new_key(store)
    words = (
        "--store",
        store,
        "--sanitise",
        "exponential:budget=1",
        "--catalogue",
        items_of(run),
        "--known",
        "--user-budget",
        "1000000",
    )
    got: list[tuple[str, int, str]] = []
    with serving(run.folder, *words) as (address, process):

        def keep_asking(client: int) -> None:
            for draw in range(1, 100_000):
                user = f"user/{client:02d}"
                try:
                    status, answer = post(address, "/v1/recommend", key, {"user": user, "draw": draw})
                except (urllib.error.URLError, OSError, HTTPException):
                    return
                if status == 200:
                    got.append((user, draw, str(answer["items"])))

        with ThreadPoolExecutor(16) as pool:
            tasks = [pool.submit(keep_asking, client) for client in range(16)]
            time.sleep(1.5)
            os.kill(process.pid, signal.SIGKILL)
            for task in tasks:
                task.result()
    assert len(got) > 50
    with sqlite3.connect(store) as connection:
        spent = dict(connection.execute("SELECT person, spent FROM people"))
        charged = dict(connection.execute("SELECT person, SUM(cost) FROM answers GROUP BY person"))
    connection.close()
    assert spent == charged
    spent = {json.loads(account)[1]: amount for account, amount in spent.items()}
    received = Counter(user for user, _, _ in got)
    assert all(spent[user] / 1e6 >= count for user, count in received.items())
    assert sum(spent.values()) / 1e6 <= len(got) + 16  # what was under way, at most
    with serving(run.folder, *words) as (address, _):  # and what was given is given again
        for user, draw, items in got[:: max(1, len(got) // 10)]:
            answer = post(address, "/v1/recommend", key, {"user": user, "draw": draw})[1]
            assert (str(answer["items"]), answer["again"]) == (items, True)


def test_the_page_works_in_a_browser(run: Run, store: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_path is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    reader, curator = new_key(store), new_key(store, "curator")
    picture = run.folder / "frontier.svg"
    picture.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 200"><rect width="9" height="9"/></svg>'
    )
    words = ("--store", store, "--sanitise", "random:keep=3", "--user-budget", "2")
    problems: list[str] = []
    with serving(run.folder, *words) as (address, _), playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        try:
            for key, role, width in ((reader, "reader", 380), (curator, "curator", 1200)):
                view = browser.new_context(viewport={"width": width, "height": 900}).new_page()
                view.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
                view.on("pageerror", lambda error: problems.append(str(error)))
                view.on(
                    "request",
                    lambda asked: (
                        None if asked.url.startswith((address, "blob:")) else problems.append(asked.url)
                    ),
                )
                view.goto(address)
                view.fill("#key", key)
                view.click("#key-form button")
                view.locator("#user-form").wait_for(state="visible")
                assert role in view.locator("#who").inner_text()
                assert "nothing formal" in view.locator("#promise").inner_text()
                view.fill("#user", "user/11")
                view.click("#user-form button")
                view.locator("#sanitised li").first.wait_for()
                assert view.locator("#sanitised li").count() == 10
                assert "1 of 2 lists spent, 1 left" in view.locator("#budget").inner_text()
                assert view.locator("#original li").count() == (10 if role == "curator" else 0)
                assert view.locator("#frontier-box").is_visible() == (role == "curator")
                assert view.evaluate("document.documentElement.scrollWidth") <= width
                assert problems == []
            assert view.evaluate("document.getElementById('frontier').naturalWidth") > 0
            for draw in (2, 3):
                view.fill("#draw", str(draw))
                view.click("#user-form button")
                view.wait_for_function(
                    "() => document.getElementById('budget').textContent.startsWith('2 of 2')"
                )
            view.locator("#problem").wait_for(state="visible")
            assert "budget is spent" in view.locator("#problem").inner_text()
            problems.clear()  # the browser itself reports the 429
            view.goto(address + "/docs")
            view.locator(".opblock").first.wait_for()
            assert problems == []
        finally:
            browser.close()
            picture.unlink()
    assert USERS > 11
