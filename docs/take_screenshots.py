"""Pictures for these pages (needs Chromium): of a report, ``python docs/take_screenshots.py demo/report.html``, or of a
running service as a curator sees it, ``python docs/take_screenshots.py http://127.0.0.1:8080 KEY USER``.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

VIEWS = {"report": (1000, 1300), "report-phone": (390, 900)}


def take(page: Path, folder: Path) -> list[Path]:
    """One picture of the top of the page per width, and one of the attack's section."""
    taken = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, height) in VIEWS.items():
            view = browser.new_page(viewport={"width": width, "height": height})
            view.goto(page.absolute().as_uri())
            taken.append(folder / f"{name}.png")
            view.screenshot(path=taken[-1])
        view = browser.new_page(viewport={"width": 1000, "height": 1100})
        view.goto(page.absolute().as_uri())
        view.get_by_role("heading", name="What an attacker learns").evaluate("node => node.scrollIntoView()")
        taken.append(folder / "report-attack.png")
        view.screenshot(path=taken[-1])
        browser.close()
    return taken


def take_service(address: str, key: str, user: str, folder: Path) -> list[Path]:
    """The page after a list was asked for, wide and on a phone."""
    taken = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, height) in {"serve": (1000, 1020), "serve-phone": (390, 900)}.items():
            view = browser.new_page(viewport={"width": width, "height": height})
            view.goto(address)
            view.fill("#key", key)
            view.click("#key-form button")
            view.locator("#user-form").wait_for(state="visible")
            view.fill("#user", user)
            view.click("#user-form button")
            view.locator("#sanitised li").first.wait_for()
            view.wait_for_timeout(500)
            taken.append(folder / f"{name}.png")
            view.screenshot(path=taken[-1])
        browser.close()
    return taken


if __name__ == "__main__":
    pictures = Path(__file__).parent / "pictures"
    given = sys.argv[1:]
    found = take_service(*given, pictures) if len(given) == 3 else take(Path(given[0]), pictures)
    for path in found:
        print(path)
