"""The page in a real Chromium: what it shows, that it stays up to date, on three widths, light and dark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from page_lab import Clock, shop

from headwater.control.monitor import Monitor
from headwater.execution.job import Job
from headwater.ui.server import PageServer

# set to a directory to keep the pictures
PICTURES = os.environ.get("HEADWATER_TEST_PICTURES", "")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    running = Browser(tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()


@pytest.fixture
def jobs() -> tuple[Monitor, list[Job]]:
    return shop()


@pytest.fixture
def server(jobs: tuple[Monitor, list[Job]], browser: Browser, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    running = PageServer(jobs[0], 0)
    yield running
    browser.open("about:blank")  # a page without its server complains
    monkeypatch.setattr("headwater.ui.server._LAST_LOOK_SECONDS", 0)  # the page that it would wait for is gone
    running.close()


def choose(browser: Browser, name: str) -> None:
    browser.until("document.querySelectorAll('.job-card').length === 3")
    browser.run(f"[...document.querySelectorAll('.job-card')].find((c) => c.innerText.startsWith('{name}')).click()")
    browser.until(f"document.getElementById('job-name').textContent === '{name}'")
    browser.until("document.querySelectorAll('.box').length > 2")


def picture(browser: Browser, name: str, tmp_path: Path) -> bytes:
    path = Path(PICTURES or tmp_path) / f"{name}.png"
    browser.screenshot(path)
    return path.read_bytes()


FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (820, True), (390, False)])
def test_everything_is_there_at_every_width(
    browser: Browser, server: PageServer, tmp_path: Path, width: int, dark: bool
) -> None:
    browser.complaints.clear()
    browser.size(width, 900, dark=dark)
    browser.open(server.address)
    assert browser.run("location.search") == "", "the token is not in the address any more"
    choose(browser, "totals")
    browser.until("document.querySelectorAll('.chart .line').length >= 5")
    text = browser.text()
    shown = (
        "Rows in",
        "Lag",
        "Latency",
        "Throughput",
        "Normalize",
        "last row per (id)",
        "Trying again in 4 s",
        "twelve",
    )
    assert [words for words in shown if words not in text] == []
    assert browser.run(FITS), "nothing sticks out at the side"
    messages = "document.getElementById('messages')"
    assert browser.run(f"{messages}.scrollWidth <= {messages}.clientWidth"), "bad messages are read without scrolling"
    cut = "[...document.querySelectorAll('.box')].filter((box) => box.scrollHeight > box.clientHeight + 1).length"
    assert browser.run(cut) == 0, "all of a box can be read"
    theme = browser.run("document.documentElement.dataset.theme")
    assert theme == ("dark" if dark else "light")
    assert len(picture(browser, f"page-{width}", tmp_path)) > 20_000
    assert browser.complaints == []


def test_an_idle_job_and_a_failing_one(browser: Browser, server: PageServer, tmp_path: Path) -> None:
    browser.complaints.clear()
    browser.size(1440, 900)
    browser.open(server.address)
    choose(browser, "visits")
    assert browser.run("document.getElementById('job-error').hidden")
    assert browser.text().count("no batch in this time") == 2, "an empty chart says why"
    assert "no batch yet" in browser.run("document.getElementById('numbers').innerText")
    assert "–" not in browser.run("document.getElementById('plan').innerText"), "no rows are 0, not unknown"
    picture(browser, "page-idle", tmp_path)
    choose(browser, "everything")
    assert "offset 88123" in browser.run("document.getElementById('job-error').textContent")
    assert "<b>ann</b>" in browser.run("document.getElementById('job-error').textContent"), "text, never HTML"
    assert browser.run("document.getElementById('stop').hidden")
    assert browser.run("document.querySelectorAll('.box').length") >= 20
    assert browser.run(FITS)
    picture(browser, "page-failing", tmp_path)
    assert browser.complaints == []


def test_a_job_that_has_become_idle_says_since_when(
    browser: Browser, server: PageServer, jobs: tuple[Monitor, list[Job]]
) -> None:
    browser.size(1280, 900)
    browser.open(server.address)
    choose(browser, "totals")
    browser.until("/last 1:\\d\\d ago/.test(document.getElementById('numbers').innerText)")
    busy = jobs[1][0]
    busy.report(batches=busy.reported.batches + 1, batch=9999)
    browser.until("document.getElementById('numbers').innerText.includes('batch 9,999')")


def test_a_chain_that_is_too_long_for_a_row_is_folded(browser: Browser, server: PageServer) -> None:
    browser.size(1280, 900)
    browser.open(server.address)
    choose(browser, "totals")
    corners = "[...document.querySelectorAll('.box')].map((box) => [box.offsetLeft, box.offsetTop])"
    places = browser.run(corners)
    assert len({left for left, _ in places}) == 4, "seven boxes in two rows"
    assert browser.run("document.getElementById('plan').offsetHeight") < 500
    assert browser.run(FITS)


def luminance(colour: str) -> float:
    """Of '#rrggbb', as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("ink", ["text", "muted", "faint"])
@pytest.mark.parametrize("ground", ["panel", "ground"])
def test_text_has_enough_contrast(browser: Browser, server: PageServer, dark: bool, ink: str, ground: str) -> None:
    browser.size(1280, 900, dark=dark)
    browser.open(server.address)
    colour = "getComputedStyle(document.documentElement).getPropertyValue('--{}').trim()"
    low, high = sorted(luminance(browser.run(colour.format(name))) for name in (ink, ground))
    assert (high + 0.05) / (low + 0.05) >= 4.5, "what WCAG asks for small text"


def test_it_is_live_and_stops_a_job(browser: Browser, server: PageServer, jobs: tuple[Monitor, list[Job]]) -> None:
    monitor, (busy, *_) = jobs
    assert isinstance(monitor._clock, Clock)
    browser.size(1440, 900)
    browser.open(server.address)
    choose(browser, "totals")
    monitor._clock.now = time.time()
    busy.report(batches=busy.reported.batches + 1, batch=9999, lag=4711, status="retrying", note="The broker is away.")
    browser.until("document.body.innerText.includes('batch 9,999') && document.body.innerText.includes('4,711')")
    browser.until("document.getElementById('job-note').textContent === 'The broker is away.'")
    browser.run("document.getElementById('stop').click()")
    assert not busy.stopping.is_set(), "one click is not enough"
    browser.run("document.getElementById('stop').click()")
    assert busy.stopping.wait(10)
    busy.report(status="stopped", note="")
    browser.until("document.getElementById('stop').hidden")
    server.close()
    browser.until("!document.getElementById('away').hidden")


def test_a_moment_of_a_chart_can_be_read(browser: Browser, server: PageServer) -> None:
    browser.size(1440, 900)
    browser.open(server.address)
    choose(browser, "totals")
    browser.until("document.querySelectorAll('.chart .line').length >= 5")
    browser.run(
        "(() => { const chart = document.querySelector('.chart svg'), box = chart.getBoundingClientRect();"
        "const where = {clientX: box.left + box.width / 2, clientY: box.top + 9};"
        "chart.dispatchEvent(new PointerEvent('pointermove', where)) })()"
    )
    assert browser.run("document.querySelectorAll('.chart .cursor').length") == 1
    assert browser.run("/\\d\\d:\\d\\d:\\d\\d/.test(document.querySelector('.chart .legend').textContent)")


def test_without_the_token_there_is_nothing(browser: Browser, server: PageServer, tmp_path: Path) -> None:
    fresh = Browser(tmp_path / "profile")
    fresh.open(f"http://127.0.0.1:{server.port}/")
    assert "Open the address" in fresh.text()
    fresh.close()
