"""Pictures of a report for these pages: ``python docs/take_screenshots.py demo/report.html`` (needs Chromium)."""

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


if __name__ == "__main__":
    for path in take(Path(sys.argv[1]), Path(__file__).parent / "pictures"):
        print(path)
