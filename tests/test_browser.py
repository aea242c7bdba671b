"""The page in a real browser: Chromium without a window, driven by its own keyboard events."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

import altmas
from altmas.web.access import Access
from session_world import create, pool
from web_world import OWNER, Page, eventually, served, threaded

selenium = pytest.importorskip("selenium", reason="browser tests need selenium")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="browser tests need chromium and chromedriver"),
]


FEW_PROCESSES = (
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
)
"""Every page has an origin of its own, a port: without these each would start one process, and one more in advance."""


class Browser:
    """One browser with a profile of its own."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", *FEW_PROCESSES):
            options.add_argument(flag)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
        self.size(1280, 800)

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, **features: str) -> None:
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})

    def js(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def open(self, address: str, name: str | None = None) -> "Browser":
        """The labelling page, with an item on it; the name is typed where the page asks for one."""
        self.driver.get(address)
        if name is not None:
            self.until(lambda: self.js("return document.getElementById('dialog').open"))
            self.driver.switch_to.active_element.send_keys(name, Keys.ENTER)
        self.until(lambda: self.ready)
        return self

    def until(self, true: Callable[[], object], seconds: float = 45.0) -> None:
        eventually(true, seconds)

    @property
    def ready(self) -> bool:
        return bool(self.js("return document.querySelector('.item')?.getAttribute('aria-busy') === 'false'"))

    def text(self, id: str) -> str:
        return str(self.js("return document.getElementById(arguments[0]).textContent", id))

    @property
    def handle(self) -> str:
        return str(self.js("return document.getElementById('item').dataset.handle"))

    @property
    def item(self) -> str:
        return self.text("item")

    @property
    def state(self) -> str:
        return str(self.js("return document.getElementById('saved').dataset.state"))

    def press(self, *keys: str) -> None:
        """Keys to whatever has the focus, as a person would press them: not within 150 ms of the last."""
        time.sleep(0.2)
        self.driver.switch_to.active_element.send_keys(*keys)

    def label(self, key: str) -> None:
        """Press a key and wait for the next item."""
        before = self.handle
        self.press(key)
        self.until(lambda: self.handle != before and self.ready)

    def saved(self) -> None:
        self.until(lambda: self.state == "saved")

    def hosts(self) -> set[str]:
        """Where every request since the last look went."""
        sent = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        addresses = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
        return {urlsplit(address).hostname or urlsplit(address).scheme for address in addresses}

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def browsing() -> Iterator[Browser]:
    made = Browser()
    try:
        yield made
    finally:
        made.driver.quit()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as made:
        yield made


@pytest.fixture(autouse=True)
def as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "browser" in request.fixturenames:
        made = request.getfixturevalue("browser")
        made.driver.get("about:blank")
        made.size(1280, 800)
        made.prefer()
        made.complaints()


def labels(session: altmas.Session) -> dict[str, str]:
    return {event["point"]: event["label"] for event in session.events() if event["kind"] == "label"}


def test_twelve_items_by_keyboard_and_no_request_leaves_this_machine(browser: Browser) -> None:
    session = create(budget=60)
    page = Page(session)
    browser.hosts()
    with threaded(page) as address:
        browser.open(address, "Ana")
        said = {}
        for number in range(12):
            said[page.id_of(browser.handle)] = session.pool.classes[number % 3]
            browser.label("123"[number % 3])
        browser.saved()
        assert labels(session) == said
        assert {event["annotator"] for event in session.events() if event["kind"] == "label"} == {"Ana"}
        browser.until(lambda: browser.text("count") == "12 of 60 labels")
        assert "ready" in browser.text("supply") and "last fit" in browser.text("supply")
        assert browser.text("blind") == "prediction hidden"
        assert browser.hosts() == {"127.0.0.1"}
        assert browser.complaints() == []


def test_undo_skip_unsure_back_note_and_reload(browser: Browser) -> None:
    session = create(budget=60)
    page = Page(session)
    with threaded(page) as address:
        browser.open(address, "Ana")
        first = browser.handle
        browser.label("1")
        browser.press("z")
        browser.until(lambda: browser.handle == first)
        assert session.status().labels == 0
        browser.label("2")  # once more, and undo with the other keys
        browser.press(Keys.CONTROL, "z", Keys.NULL)
        browser.until(lambda: browser.handle == first)
        browser.label("3")
        second = browser.handle
        browser.press("s")
        browser.press("too dark")
        browser.label(Keys.ENTER)
        third = browser.handle
        browser.label("u")
        browser.saved()
        status = session.status()
        assert (status.labels, status.skipped, status.unsure, status.undone) == (1, 1, 1, 2)
        assert session.history.skipped[session.pool.index(page.id_of(second))] == "too dark"
        fourth = browser.handle
        browser.press("n")
        browser.press("odd one", Keys.CONTROL, Keys.ENTER, Keys.NULL)
        browser.until(lambda: any(event["kind"] == "note" for event in session.events()))
        browser.driver.refresh()
        browser.until(lambda: browser.ready)
        assert browser.handle == fourth  # a reload loses nothing and asks for no name
        for wanted in (third, second, first):
            browser.press(Keys.ARROW_LEFT)
            browser.until(lambda wanted=wanted: browser.handle == wanted)
        assert "You said: owl" in browser.text("editing")
        browser.label("1")  # edit
        browser.saved()
        assert session.votes(page.id_of(first)) == {"Ana": "cat"}
        assert browser.handle == fourth


def test_a_second_annotator_in_a_second_browser_gets_other_items(browser: Browser) -> None:
    session = create(budget=60)
    page = Page(session)
    with threaded(page) as address, browsing() as other:
        browser.open(address, "Ana")
        other.open(address, "Ben")
        for number in range(6):
            assert browser.handle != other.handle
            (browser if number % 2 else other).label("1")
        browser.saved()
        other.saved()
        assert {one.name: one.labels for one in session.status().annotators} == {"Ana": 3, "Ben": 3}
        assert len(labels(session)) == 6


def test_a_killed_server_loses_no_label_and_the_page_goes_on(browser: Browser, tmp_path: Path) -> None:
    create(tmp_path / "s.altmas", budget=60).close()
    with served(tmp_path / "s.altmas", annotator="ana") as server:
        browser.open(server.base)
        browser.label("1")
        browser.saved()
        server.kill()
        browser.label("2")
        browser.until(lambda: browser.state == "away")
        assert "not saved yet: 1" in browser.text("saved-text")
        assert "kept in this browser" in browser.text("banner-text")
        browser.label("3")
        browser.until(lambda: "2 answers are kept" in browser.text("banner-text"))
        browser.press("2")  # the last item that the page holds
        browser.until(lambda: "when the server is back" in browser.text("nothing-text"))
        assert len(told(tmp_path)) == 1
        server.start()
        browser.saved()
        browser.until(lambda: browser.ready and browser.js("return document.getElementById('banner').hidden"))
        browser.label("1")
        browser.saved()
        assert told(tmp_path) == ["cat", "dog", "owl", "dog", "cat"]


def test_what_waits_in_a_closed_tab_is_sent_when_the_page_is_opened_again(browser: Browser, tmp_path: Path) -> None:
    create(tmp_path / "s.altmas", budget=60).close()
    with served(tmp_path / "s.altmas", annotator="ana") as server:
        browser.open(server.base)
        server.kill()
        browser.label("2")
        browser.until(lambda: browser.state == "away")
        browser.js("window.addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), true)")
        browser.driver.get("about:blank")
        server.start()
        browser.open(server.base)
        browser.until(lambda: told(tmp_path) == ["dog"])


def told(folder: Path) -> list[str]:
    with altmas.Session.open(folder / "s.altmas", read_only=True) as session:
        return [event["label"] for event in session.events() if event["kind"] == "label"]


def test_an_expired_lease_gives_the_item_to_somebody_else_and_says_so(browser: Browser) -> None:
    session = create(pool=pool(3), budget=3)
    page = Page(session, lease=0.5)
    with threaded(page) as address:
        browser.open(address, "Ana")
        lost = browser.handle
        ben = {"annotator": "Ben"}
        with httpx.Client(base_url=address) as client:
            eventually(lambda: lost in client.post("/api/next", json=ben).json()["hand"])
            assert client.post("/api/vote", json={**ben, "item": lost, "label": 2}).status_code == 200
        browser.press("1")
        browser.until(lambda: "Not recorded" in browser.text("banner-text"))
        assert session.votes(page.id_of(lost)) == {"Ben": "owl"}


def test_the_older_of_two_tabs_pauses_and_can_go_on(browser: Browser) -> None:
    page = Page(create(budget=60), annotator="ana")
    with threaded(page) as address:
        browser.open(address)
        old = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("tab")
        new = browser.driver.current_window_handle
        browser.open(address)
        browser.driver.switch_to.window(old)
        browser.until(lambda: "another tab" in browser.text("nothing-title"))
        browser.press("1")
        assert page.session.status().labels == 0
        browser.driver.find_element(By.ID, "here").click()
        browser.until(lambda: browser.ready)
        browser.label("1")
        browser.saved()
        browser.driver.switch_to.window(new)
        browser.until(lambda: "another tab" in browser.text("nothing-title"))
        browser.driver.close()
        browser.driver.switch_to.window(old)
        assert page.session.status().labels == 1


NASTY = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script><b>bold</b>"


def test_html_and_scripts_in_texts_and_names_are_shown_as_text(browser: Browser) -> None:
    classes = [NASTY, "</button><i>two"]
    given = altmas.Pool(None, classes * 20, classes=classes, items=[{NASTY: NASTY, "plain": "x"}] * 40)
    page = Page(create(pool=given, budget=20, definitions={NASTY: NASTY}), title=NASTY)
    with threaded(page) as address:
        browser.open(address, NASTY[:60])
        assert browser.item == NASTY + NASTY + "plainx"
        assert browser.js("return document.querySelectorAll('#choices span')[0].textContent") == NASTY
        browser.press("c")
        browser.until(lambda: NASTY in browser.text("dialog-body"))
        assert (
            browser.js("return document.querySelectorAll('main img, main b, main i, dialog img, header b').length") == 0
        )
        assert "owned" not in browser.driver.title[:10]


def test_images_can_be_zoomed_moved_and_brightened(browser: Browser) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (60, 28, 28), np.uint8)
    page = Page(create(pool=pool(items=pictures), budget=30), annotator="ana")
    look = "const image = document.querySelector('.stage img'); return [image.style.transform, image.style.filter]"
    with threaded(page) as address:
        browser.open(address)
        assert browser.js("return document.querySelector('.stage img').naturalWidth") == 28
        fitted, _ = browser.js(look)
        browser.press("+")
        zoomed, _ = browser.js(look)
        assert zoomed != fitted
        browser.press(Keys.SHIFT, Keys.ARROW_RIGHT, Keys.NULL)
        assert browser.js(look)[0] != zoomed
        slider = browser.driver.find_element(By.CSS_SELECTOR, "input[aria-label=contrast]")
        slider.send_keys(Keys.ARROW_RIGHT)
        assert "contrast(105%)" in browser.js(look)[1]
        slider.send_keys("1")  # the keys of the classes work wherever the focus is, except in texts
        browser.until(lambda: page.session.status().labels == 1 and browser.ready)
        assert "contrast(105%)" in browser.js(look)[1]  # kept for the next image
        browser.press(".")
        assert browser.js(look)[1] == "none"
        assert browser.complaints() == []


CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (node) => {
  for (; node; node = node.parentElement) {
    const colour = parse(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const worst = {};
for (const node of document.querySelectorAll("body *")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  if (!own || !node.checkVisibility() || node.closest(".unseen, .jump, noscript, svg") || node.disabled) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) worst[node.tagName + "#" + node.id + "." + node.className] = ratio;
}
return worst;
"""


def test_text_has_enough_contrast_in_both_schemes(browser: Browser) -> None:
    page = Page(create(budget=60), annotator="ana")

    def contrasts() -> None:
        for scheme in ("light", "dark"):
            browser.prefer(prefers_color_scheme=scheme)
            ground = browser.js("return getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, ground[4:-1].split(","))) < 150) == (scheme == "dark")
            assert browser.js(CONTRAST) == {}, scheme

    with threaded(page) as address:
        browser.open(address)
        browser.label("1")
        browser.press(Keys.ARROW_LEFT)
        browser.until(lambda: "You said" in browser.text("editing"))
        contrasts()
        browser.driver.get(f"{address}/overview?key={OWNER}")
        browser.until(lambda: browser.driver.find_elements(By.CSS_SELECTOR, "#estimates td"))
        contrasts()


def test_a_narrow_screen_needs_no_sideways_scrolling_and_has_large_targets(browser: Browser) -> None:
    page = Page(create(budget=60), annotator="ana")
    with threaded(page) as address:
        for width, height in ((360, 740), (820, 1180)):
            browser.size(width, height)
            browser.open(address)
            assert browser.js("return document.documentElement.scrollWidth <= innerWidth")
            small = browser.js(
                "return [...document.querySelectorAll('button')].filter((one) => one.checkVisibility() && "
                "one.getBoundingClientRect().height < 44).map((one) => one.id || one.textContent)"
            )
            assert small == []
            browser.driver.find_element(By.CSS_SELECTOR, "#choices button").click()
            browser.saved()
        assert page.session.status().labels == 2


def test_everything_has_a_name_a_visible_focus_and_is_announced(browser: Browser) -> None:
    page = Page(create(budget=60), annotator="ana")
    with threaded(page) as address:
        browser.open(address)
        tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        roles = ("button", "slider", "textbox", "searchbox", "progressbar", "img")
        nameless = [
            node["role"]["value"]
            for node in tree
            if not node.get("ignored") and node["role"]["value"] in roles and not node.get("name", {}).get("value")
        ]
        assert nameless == []
        browser.press(Keys.TAB, Keys.TAB, Keys.TAB)
        outline = "return getComputedStyle(document.activeElement).outlineStyle"
        assert browser.js("return document.activeElement.matches('button')") and browser.js(outline) == "solid"
        browser.label("2")
        assert browser.text("say").startswith("dog.")
        browser.press("?")
        browser.until(lambda: "unsure: an expert will see it" in browser.text("dialog-body"))
        browser.press(Keys.ESCAPE)
        assert not browser.js("return document.getElementById('dialog').open")


def test_many_classes_are_found_by_typing(browser: Browser) -> None:
    classes = [f"intent {number:02d}" for number in range(77)]
    given = altmas.Pool(None, classes, classes=classes, items=[f"text {number}" for number in range(77)])
    page = Page(create(pool=given, budget=20), annotator="ana")
    with threaded(page) as address:
        browser.open(address)
        browser.press("/")
        browser.press("63")
        browser.label(Keys.ENTER)
        browser.saved()
        assert list(labels(page.session).values()) == ["intent 63"]


def test_the_owner_sees_the_overview_and_settles_by_keyboard(browser: Browser) -> None:
    session = create(budget=40, double_share=1.0, targets={"accuracy": 0.1})
    for who, label in (("ana", "cat"), ("ben", "dog")):
        for query in session.ask(3, annotator=who):
            session.tell(query.id, label, annotator=who, seconds=2.0)
    page = Page(session)
    with threaded(page) as address:
        browser.driver.get(f"{address}/overview")
        assert "owner" in browser.js("return document.body.textContent")
        browser.complaints()  # that it was forbidden is what the browser has to complain of here
        browser.driver.get(f"{address}/overview?key={OWNER}")
        browser.until(lambda: browser.driver.find_elements(By.CSS_SELECTOR, "#path svg polyline"))
        assert browser.driver.current_url == f"{address}/overview"  # the key is out of the address
        assert "accuracy" in browser.text("estimates") and "ana" in browser.text("people")
        assert "kappa" in browser.text("agreement")
        disagreements = session.status().disagreements
        assert browser.text("to-settle") == str(disagreements) and disagreements > 0
        browser.driver.get(f"{address}/adjudicate")
        browser.until(lambda: "ben" in browser.text("votes"))
        browser.press("3")
        browser.until(lambda: session.status().disagreements == disagreements - 1)
        assert browser.complaints() == []


def test_two_people_with_links_of_their_own_in_one_browser(browser: Browser) -> None:
    """The page asks for no name, cannot change it, and what Ana left unsent is not sent as Ben."""
    people = {"Ana": "secret-of-ana-0123456789", "Ben": "secret-of-ben-9876543210"}
    session = create(budget=60)
    page = Page(session, Access(owner=OWNER, people=people, root="/labels"))
    with threaded(page) as address:
        for name, secret in people.items():
            browser.open(f"{address}/labels/?person={secret}")
            assert browser.js("return location.pathname + location.search") == "/labels/"
            assert browser.text("person") == name and browser.js("return document.getElementById('person').disabled")
            assert browser.text("names") == "your own link"
            browser.label("1")
            browser.saved()
        assert browser.js("return document.cookie") == ""  # no script can read it
        assert browser.js("return Object.keys(localStorage).some((key) => key.includes('secret'))") is False
    said = [event for event in session.events() if event["kind"] == "label"]
    assert [(event["annotator"], event["body"]["authenticated"]) for event in said] == [("Ana", True), ("Ben", True)]


def test_a_claimed_name_is_said_to_be_one(browser: Browser) -> None:
    with threaded(Page(create(budget=60))) as address:
        browser.driver.get(address)
        browser.until(lambda: browser.js("return document.getElementById('dialog').open"))
        assert "not authenticated" in browser.text("dialog-body")
        browser.press("Ana", Keys.ENTER)
        browser.until(lambda: browser.ready)
        assert browser.text("names") == "names are not authenticated"


def test_a_key_that_is_hit_twice_labels_once_and_the_echo_takes_back(browser: Browser) -> None:
    session = create(budget=60)
    hit = """
        for (const key of ["1", "2"]) document.body.dispatchEvent(
            new KeyboardEvent("keydown", { key, code: `Digit${key}`, bubbles: true }));
        return document.getElementById("echo-text").textContent;"""
    with threaded(Page(session)) as address:
        browser.open(address, "Ana")
        assert browser.js("return document.getElementById('echo').hidden")
        first = browser.handle
        assert browser.js(hit) == "cat"
        browser.until(lambda: browser.handle != first and browser.ready)
        browser.saved()
        assert list(labels(session).values()) == ["cat"]
        browser.js("document.getElementById('echo-undo').click()")
        browser.until(lambda: browser.handle == first and browser.ready)
        assert session.status().labels == 0 and browser.js("return document.getElementById('echo').hidden")
        browser.label("2")  # at once after an undo
        browser.saved()
        assert session.status().labels == 1 and browser.text("echo-text") == "dog"


def test_the_names_of_77_classes_stay_inside_their_buttons(browser: Browser) -> None:
    names = [f"{first}_{second}_transfer_not_received" for first in "abcdefg" for second in range(9, 20)]
    session = create(pool=altmas.Pool(None, names * 2, classes=names, items=["text"] * 154), budget=60)
    spilled = """
        return [...document.querySelectorAll("#choices button")].filter((button) => {
            const [box, name] = [button, button.querySelector("span")].map((one) => one.getBoundingClientRect());
            return name.top < box.top || name.bottom > box.bottom || name.left < box.left || name.right > box.right;
        }).length + (document.documentElement.scrollWidth > innerWidth ? 1000 : 0);"""
    with threaded(Page(session)) as address:
        browser.open(address, "Ana")
        assert browser.js("return document.querySelectorAll('#choices button').length") == 77
        for width in (390, 820, 1440):
            browser.size(width, 900)
            assert browser.js(spilled) == 0, width
        assert browser.js("return document.querySelector('#choices button span').textContent") == names[0]


def test_classes_are_found_by_words_in_any_order_initials_and_despite_typing_errors(browser: Browser) -> None:
    names = [
        "card_payment_fee",
        "cash_withdrawal",
        "top_up_failed",
        "transfer_not_received",
        "wrong_amount",
        "Übergröße",
    ]
    names += [f"class {number}" for number in range(30)]
    session = create(pool=altmas.Pool(None, names, classes=names, items=["text"] * 36), budget=36)
    found = """
        const box = document.getElementById("search");
        box.value = arguments[0];
        box.dispatchEvent(new Event("input"));
        return [...document.querySelectorAll("#choices button span")].map((one) => one.textContent);"""
    typed = {
        "fee card": "card_payment_fee",
        "top up": "top_up_failed",
        "tnr": "transfer_not_received",
        "recieved": "transfer_not_received",
        "withdrawl": "cash_withdrawal",
        "amuont": "wrong_amount",
        "ubergr": "Übergröße",
        "thdraw": "cash_withdrawal",
        "class 7": "class 7",
    }
    with threaded(Page(session)) as address:
        browser.open(address, "Ana")
        assert {text: (browser.js(found, text) or [""])[0] for text in typed} == typed
        assert browser.js(found, "zebra") == []
