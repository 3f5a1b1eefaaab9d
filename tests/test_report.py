"""Reports: one page that needs no network, readable as text too; seen in a real browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from tests.privacy import private_run
from veilgraph.account.statement import rounded_up
from veilgraph.cli import main
from veilgraph.errors import ConfigError, UsageError
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.report.health import examine, mend
from veilgraph.report.runs import report
from veilgraph.run.run import Run
from veilgraph.train import train

SECTIONS = (
    "What is promised",
    "In short",
    "What is confidential, and for whom",
    "What they are good for",
    "How they learnt",
    "What an attacker learns",
    "A map of the vectors",
    "Settings, ledger and hashes",
)


@pytest.fixture(scope="module")
def runs(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("report")
    save(hospital.with_marks(mark(hospital, relations=["has*", "takes"])), folder / "graph")
    plain = train(folder / "graph", out=folder / "plain", model="distmult", dimension=8, epochs=3, threads=1)
    return plain, private_run(folder / "graph", folder / "private", order="interleaved")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def written(runs: tuple[Run, Run]) -> Path:
    return report(list(runs), canaries=20)


def test_a_page_has_every_section_and_needs_no_network(runs: tuple[Run, Run], written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert re.findall(r"<h2>(.*?)</h2>", text) == list(SECTIONS)
    assert not re.search(r"(src|href)=|url\(|<script|@import", text)
    assert text.count("<svg") == text.count("<title>") - 1
    assert text.count("<svg") >= 5
    assert runs[1].certificate["statement"].split(".")[0] in text
    assert "For the curator" in text
    assert "Audit: 20 canaries" in text
    assert text.index("What is promised") < text.index("What they are good for")


def test_the_same_as_text(runs: tuple[Run, Run], tmp_path: Path) -> None:
    path = report([run.folder for run in runs], out=tmp_path / "r.md", format="md")
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == list(SECTIONS)
    assert "| distmult, no privacy | all |" in text
    with pytest.raises(ConfigError, match="html or md"):
        report(list(runs), format="pdf")
    with pytest.raises(UsageError, match="at least one"):
        report([])


def test_a_run_of_counts_alone_has_a_report(hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = train(marked, out=tmp_path / "run", model="marginals", epsilon=2.0, threads=1)
    text = report(run, graph=marked).read_text(encoding="utf-8")
    assert "No epochs" in text or "by epoch" in text


def test_in_a_real_browser(written: Path) -> None:
    """No console error, all sections visible, charts drawn, nothing wider than a phone."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_path is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    problems: list[str] = []
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        try:
            for width in (1200, 380):
                view = browser.new_page(viewport={"width": width, "height": 900})
                view.on(
                    "console",
                    lambda message: problems.append(message.text) if message.type == "error" else None,
                )
                view.on("pageerror", lambda error: problems.append(str(error)))
                view.on(
                    "request",
                    lambda request: None if request.url.startswith("file:") else problems.append(request.url),
                )
                view.goto(written.absolute().as_uri())
                assert view.locator("h2").all_inner_texts() == list(SECTIONS)
                for picture in view.locator("svg").all():
                    box = picture.bounding_box()
                    assert box is not None
                    assert box["width"] > 100
                    assert box["height"] > 50
                assert view.evaluate("document.documentElement.scrollWidth") <= width
                assert problems == []
        finally:
            browser.close()


def test_a_report_is_the_curators_alone(runs: tuple[Run, Run], tmp_path: Path) -> None:
    """It holds exact numbers of confidential statements; a private run's folder is open to everybody on the machine."""
    before = os.umask(0o022)
    try:
        for format in ("html", "md"):
            inside = report(runs[1], format=format)
            elsewhere = report(runs[1], out=tmp_path / f"page.{format}", format=format)
            assert [stat.S_IMODE(path.stat().st_mode) for path in (inside, elsewhere)] == [0o600, 0o600]
            found = [one["what"] for one in examine(runs[1].folder)["findings"]]
            assert not any(inside.name in what for what in found)
            inside.chmod(0o644)  # (as 0.3.0 left it)
            assert any(inside.name in one for one in mend(runs[1].folder)["mended"])
            assert stat.S_IMODE(inside.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_promise_is_never_shown_smaller_than_it_is(
    hospital: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the page, by the doctor and on the command line, as in the certificate's words."""
    marked = hospital.with_marks(mark(hospital, relations=["has*"]))
    run = train(marked, out=tmp_path / "run", model="marginals", epsilon=1.00444, threads=1)
    assert run.epsilon is not None
    assert 1.004 < run.epsilon < 1.0045
    promised = rounded_up(run.epsilon, 3)
    assert promised == "1.005"
    text = report(run, graph=marked, format="md").read_text(encoding="utf-8")
    assert f"| marginals, ε = {promised} |" in text
    assert f"| {promised} | {run.certificate['delta']:g} |" in text
    assert any(f"ε = {promised}" in one["what"] for one in examine(run.folder)["findings"])
    for words in (["certificate", str(run.folder)], ["certificate", "verify", str(run.folder)]):
        capsys.readouterr()
        assert main(words) == 0
        found = re.search(r"^  epsilon +([0-9.]+)", capsys.readouterr().out, re.M)
        assert found is not None
        assert float(found[1]) >= run.epsilon
