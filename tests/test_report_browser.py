"""The report in a real browser: figures are drawn, nothing leaves the file, names stay text, all widths and themes."""

import json
import time

import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")

from test_browser import Browser, pytestmark  # noqa: E402, F401
from test_report import EVIL, make_session  # noqa: E402


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    make_session(folder / "xray.altmas", thresholds={"accuracy": 0.5}).report(folder / "report.html", items=True)
    browser = Browser()
    browser.driver.get((folder / "report.html").as_uri())
    browser.until(lambda: browser.js("return document.querySelectorAll('.figure svg.main-svg').length") >= 3)
    yield browser
    browser.driver.quit()


def test_every_figure_is_drawn_without_a_complaint(opened):
    drawn = opened.js(
        "return [...document.querySelectorAll('.figure')].map(one => one.querySelectorAll('path').length)"
    )
    assert len(drawn) == 3 and all(paths > 3 for paths in drawn)
    assert [entry for entry in opened.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_no_request_leaves_the_file(opened):
    asked = []
    for entry in opened.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert all(address.startswith(("file:", "data:", "blob:")) for address in asked), asked


def test_markup_in_names_is_text_in_figures_and_tables(opened):
    assert opened.js("return document.scripts.length") == 3
    assert EVIL in opened.js("return document.body.innerText")
    assert opened.js(
        "return [...document.querySelectorAll('svg text')].some(one => one.textContent.includes('<script>'))"
    )


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_sticks_out_at_any_width(opened, width):
    opened.size(width, 900)
    opened.until(lambda: opened.js("return document.documentElement.scrollWidth") <= width)
    inside = "every(one => one.getBoundingClientRect().right <= innerWidth)"
    opened.until(lambda: opened.js(f"return [...document.querySelectorAll('.figure svg')].{inside}"))


def test_figures_follow_the_theme(opened):
    seen = {}
    for theme in ("light", "dark"):
        opened.prefer(prefers_color_scheme=theme)
        time.sleep(0.3)
        ink = "return getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"
        tick = "return document.querySelector('#figure-forest .ytick text').style.fill"
        seen[theme] = (
            opened.js(ink),
            opened.js(tick),
            opened.js("return getComputedStyle(document.body).backgroundColor"),
        )
    assert all(light != dark for light, dark in zip(seen["light"], seen["dark"], strict=True))
