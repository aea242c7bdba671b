"""The owner's pages in a real browser: the overview decides, the adjudication settles; axe-core finds no fault."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import altmas
from session_world import create, pool, truth
from test_browser import CHROMIUM, DRIVER, Browser, browsing
from web_world import NO_FAULT, OWNER, Page, axe_in_both_schemes, threaded

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="browser tests need chromium and chromedriver"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as made:
        yield made


@pytest.fixture(autouse=True)
def as_it_was(browser: Browser) -> Iterator[None]:
    yield
    browser.driver.get("about:blank")
    browser.size(1280, 800)
    browser.prefer()
    browser.complaints()


def labelled(labels: int = 24, **options: Any) -> altmas.Session:
    """A session with labels of two people, one of them too fast once, and a note."""
    session = create(**{"budget": 40, "targets": {"accuracy": 0.1}, **options})
    for number, query in enumerate(session.ask(labels)):
        name = ("ana", "ben")[number % 2]
        session.tell(query.id, truth(query), name, 0.1 if number == 3 else 4.0)
        if number == 0:
            session.note("half of it is cut off", query.id, "ana")
    return session


def disputed(classes: int = 3, points: int = 3, **options: Any) -> altmas.Session:
    names = (
        ["cat", "dog", "owl"][:classes] if classes <= 3 else [f"class_{number}_of_many" for number in range(classes)]
    )
    made = pool(classes=names, predictions=np.array(names)[np.arange(60) % classes], scores=None)
    session = create(pool=made, budget=40, double_share=1.0, **options)
    for who, label in (("ana", names[0]), ("ben", names[1])):
        for query in session.ask(points, annotator=who):
            session.tell(query.id, label, annotator=who, seconds=2.0)
    return session


@contextmanager
def overview(browser: Browser, session: altmas.Session) -> Iterator[str]:
    with threaded(Page(session)) as address:
        browser.driver.get(f"{address}/overview?key={OWNER}")
        browser.until(lambda: browser.driver.find_elements("css selector", "#width svg polyline"))
        yield address
        assert browser.complaints() == []


@contextmanager
def adjudication(browser: Browser, session: altmas.Session) -> Iterator[str]:
    with threaded(Page(session)) as address:
        browser.driver.get(f"{address}/adjudicate?key={OWNER}")
        browser.until(lambda: browser.text("votes"))
        browser.until(lambda: browser.text("item"))
        yield address


def click(browser: Browser, id: str) -> None:
    browser.js("document.getElementById(arguments[0]).click()", id)


def test_the_overview_says_what_holds_now_and_what_is_likely_ahead(browser: Browser) -> None:
    session = labelled()
    with overview(browser, session):
        browser.until(lambda: "chance to settle" in browser.text("ahead"))
        value = 100 * session.estimate()["accuracy"].value
        assert f"accuracy is {value:.1f} %" in browser.text("now") and "± 0.1 was wanted and is missed" in browser.text(
            "now"
        )
        browser.until(lambda: browser.driver.find_elements("css selector", "#width svg .ahead"))
        people = browser.text("people")
        assert "ana" in people and "ben" in people and "half of it is cut off" in browser.text("notes")
        rows = browser.js(
            "return [...document.querySelectorAll('#people tbody tr')].map((r) => r.cells[5].textContent)"
        )
        assert rows == ["0", "1"]
        assert "cat" in browser.text("cover") and "Slice site" in browser.text("cover")
        assert axe_in_both_schemes(browser) == NO_FAULT


def test_a_missed_goal_is_never_called_done(browser: Browser) -> None:
    with overview(browser, labelled(24, budget=24)):
        browser.until(lambda: "The goal was missed" in browser.text("ahead"))
        assert "none" not in browser.text("tiles") and "more than the budget" in browser.text("tiles")


def test_a_reached_goal_is_said(browser: Browser) -> None:
    with overview(browser, labelled(24, targets={"accuracy": 0.4})):
        browser.until(lambda: "The goal is reached" in browser.text("ahead"))
        assert "is reached" in browser.text("now") and "none" in browser.text("tiles")


def test_the_owner_raises_the_budget_and_closes_what_waits(browser: Browser) -> None:
    session = labelled(24, budget=40)
    asked = session.ask(7)
    session.tell(asked[6].id, truth(asked[6]), "ana", 4.0)  # six are passed over
    with overview(browser, session) as address:
        browser.until(lambda: "Close 6 unanswered items" in browser.text("close"))
        browser.js("window.confirm = () => true")
        click(browser, "close")
        browser.until(lambda: "6 items were closed" in browser.text("done"))
        assert set(session.history.skipped) == {query.index for query in asked[:6]}
        assert set(session.history.skipped.values()) == {"closed by the owner: no answer"}
        field = browser.driver.find_element("id", "budget")
        browser.js("arguments[0].select()", field)
        field.send_keys("55", "\ue007")
        browser.until(lambda: session.plan.budget == 55)
        browser.until(lambda: "25 of 55" in browser.text("tiles"))
        for path, begins in (("report", "<!doctype html>"), ("labels", "id,label,annotator")):
            got = browser.driver.execute_async_script(
                "fetch(arguments[0]).then((r) => r.text()).then(arguments[1])", f"{address}/api/owner/{path}"
            )
            assert got.lower().lstrip("\ufeff").startswith(begins)


def test_selected_text_stays_selected_while_the_overview_is_renewed(browser: Browser) -> None:
    session = labelled()
    with overview(browser, session):
        browser.until(lambda: "chance" in browser.text("ahead"))
        browser.js("getSelection().selectAllChildren(document.querySelector('#people tbody th'))")
        (query,) = session.ask(1)
        session.tell(query.id, truth(query), "ana", 4.0)
        browser.until(lambda: "25 of 40" in browser.text("tiles"))
        assert browser.js("return getSelection().toString()") == "ana"


@pytest.mark.parametrize("classes", [2, 77, 999])
def test_the_overview_stays_inside_the_screen(browser: Browser, classes: int) -> None:
    names = [f"a_rather_long_name_of_class_{number}" for number in range(classes)]
    rng = np.random.default_rng(0)
    said = np.array(names)[rng.integers(0, classes, 300)]
    metrics = ["accuracy", *(f"recall[{name}]" for name in names[:20])]
    session = create(pool=pool(300, classes=names, predictions=said, scores=None), budget=60, metrics=metrics)
    session.tell({query.id: said[query.index] for query in session.ask(10)})
    with overview(browser, session):
        for width in (390, 820, 1440):
            browser.size(width, 900)
            assert browser.js("return document.documentElement.scrollWidth") <= width, width
        assert browser.js("return document.getElementById('find').hidden") == (classes == 2)
        assert axe_in_both_schemes(browser) == NO_FAULT
    browser.size(1280, 800)


def test_the_owner_settles_undoes_and_leaves_open_by_keyboard(browser: Browser) -> None:
    session = disputed()
    before = session.status().disagreements
    assert before == 3
    with adjudication(browser, session):
        first = browser.text("editing")
        browser.press("3")
        browser.until(lambda: session.status().disagreements == 2)
        browser.until(lambda: browser.text("to-settle") == "2" and browser.text("editing") != first)
        browser.press("z")
        browser.until(lambda: session.status().disagreements == 3)
        browser.until(lambda: browser.text("editing") == first)
        browser.js("document.getElementById('note').value = 'both can be seen'")
        browser.press("u")
        browser.until(lambda: session.status().disagreements == 2)
        (reason,) = session.history.skipped.values()
        assert reason == "both can be seen" and session.status().labels == 2
        assert [note.text for note in session.notes()] == ["both can be seen"]
        assert browser.complaints() == []


def test_voted_classes_come_first_and_names_can_be_hidden(browser: Browser) -> None:
    session = disputed(77, definitions={"class_1_of_many": "the second of many"})
    session.note("looks like both", session.disagreements()[0].id, "ben")
    with adjudication(browser, session):
        voted = browser.js("return [...document.querySelectorAll('#voted button span')].map((one) => one.textContent)")
        assert voted == ["class_0_of_many", "class_1_of_many"] and "the second of many" in browser.text("voted")
        assert "ana" in browser.text("votes") and "ben: looks like both" in browser.text("votes")
        click(browser, "blind")
        assert "ana" not in browser.text("votes") and "B: looks like both" in browser.text("votes")
        click(browser, "blind")
        browser.press("/")
        browser.press("63")
        browser.press("\ue007")
        browser.until(lambda: session.status().disagreements == 2)
        assert "class_63_of_many" in [session.pool.classes[code] for code in session.history.labels.values()]


OVERLAPS = """
    const parts = ["item", "votes", "voted", "search", "choices", "note", "unsettled", "previous", "undo"];
    const boxes = parts.map((id) => [id, document.getElementById(id)]).filter(([, one]) => one.checkVisibility());
    const placed = boxes.map(([id, one]) => [id, one.getBoundingClientRect()]);
    const before = (a, b) => a.right <= b.left + 2 || a.bottom <= b.top + 2;
    const crossed = ([, a], [, b]) => !before(a, b) && !before(b, a);
    const pairs = placed.flatMap((one, at) => placed.slice(at + 1).map((other) => [one, other]));
    return pairs.filter(([one, other]) => crossed(one, other)).map(([[one], [other]]) => [one, other]);"""


@pytest.mark.parametrize("classes", [2, 77, 999])
def test_the_adjudication_page_has_no_faults(browser: Browser, classes: int) -> None:
    with adjudication(browser, disputed(classes)):
        assert axe_in_both_schemes(browser) == NO_FAULT
        for width in (390, 820, 1440):
            browser.size(width, 900)
            assert browser.js("return document.documentElement.scrollWidth") <= width, width
            assert browser.js(OVERLAPS) == [], width
    browser.size(1280, 800)
