"""The labelling page in a real browser: goals, many classes, long texts, notes, missing images, grades, pairs, axe."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import altmas
from session_world import create, pool
from web_world import NO_FAULT, Page, axe_in_both_schemes, axe_violations, eventually, threaded

pytest.importorskip("selenium", reason="browser tests need selenium")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from test_browser import Browser, browsing, labels, pytestmark  # noqa: E402, F401

# Names of the classes of banking77 (Casanueva et al. 2020).
INTENTS = """Refund_not_showing_up activate_my_card age_limit apple_pay_or_google_pay atm_support automatic_top_up
balance_not_updated_after_bank_transfer balance_not_updated_after_cheque_or_cash_deposit beneficiary_not_allowed
cancel_transfer card_about_to_expire card_acceptance card_arrival card_delivery_estimate card_linking card_not_working
card_payment_fee_charged card_payment_not_recognised card_payment_wrong_exchange_rate card_swallowed
cash_withdrawal_charge cash_withdrawal_not_recognised change_pin compromised_card contactless_not_working
country_support declined_card_payment declined_cash_withdrawal declined_transfer direct_debit_payment_not_recognised
disposable_card_limits edit_personal_details exchange_charge exchange_rate exchange_via_app extra_charge_on_statement
failed_transfer fiat_currency_support get_disposable_virtual_card get_physical_card getting_spare_card
getting_virtual_card lost_or_stolen_card lost_or_stolen_phone order_physical_card passcode_forgotten
pending_card_payment pending_cash_withdrawal pending_top_up pending_transfer pin_blocked receiving_money
request_refund reverted_card_payment? supported_cards_and_currencies terminate_account top_up_by_bank_transfer_charge
top_up_by_card_charge top_up_by_cash_or_cheque top_up_failed top_up_limits top_up_reverted topping_up_by_card
transaction_charged_twice transfer_fee_charged transfer_into_account transfer_not_received_by_recipient
transfer_timing unable_to_verify_identity verify_my_identity verify_source_of_funds verify_top_up
virtual_card_not_working visa_or_mastercard why_verify_identity wrong_amount_of_cash_received
wrong_exchange_rate_for_cash_withdrawal""".split()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as made:
        yield made


@pytest.fixture
def page_of(chromium: Browser) -> Iterator[Any]:
    """Opens the page of a session as Ana; everything is as it was at the end."""
    serving: list[Any] = []

    def opened(session: altmas.Session, **options: Any) -> Browser:
        made = threaded(Page(session, annotator="ana", **options))
        serving.append(made)
        chromium.driver.get(made.__enter__())
        chromium.until(lambda: chromium.ready or asked(chromium))
        return chromium

    yield opened
    chromium.driver.get("about:blank")
    chromium.size(1280, 800)
    chromium.prefer()
    complaints = chromium.complaints()
    for one in serving:
        one.__exit__(None, None, None)
    assert [one for one in complaints if " 404 " not in one] == []  # an image that is missing is one


def many(names: list[str], items: list[Any] | None = None, **options: Any) -> altmas.Session:
    n = max(90, len(names))
    given = altmas.Pool(None, [names[row % len(names)] for row in range(n)], classes=names, items=items or ["text"] * n)
    return create(pool=given, budget=80, **options)


def asked(browser: Browser) -> bool:
    """Whether the page asks to stop or go on."""
    return bool(browser.js("return document.getElementById('stop-here')?.checkVisibility()"))


def labelled_to_the_goal() -> altmas.Session:
    session = create(budget=60, targets={"accuracy": 0.3})
    for query in session.ask(25):
        session.tell(query, "cat", annotator="ben")
    assert session.goals()[0].reached
    return session


def go_on_until_asked(browser: Browser) -> None:
    """The goal is looked at in the background: the page may show an item or two before it asks."""
    for _ in range(10):
        if asked(browser):
            return
        browser.press("1")
        browser.saved()
    raise AssertionError("the page never asked")


def shown(browser: Browser, id: str) -> bool:
    return not browser.js("return document.getElementById(arguments[0]).hidden", id)


# ---------------------------------------------------------------- the goal


def test_it_asks_to_stop_at_the_goal_and_going_on_is_in_the_log(page_of: Any) -> None:
    session = labelled_to_the_goal()
    browser = page_of(session)
    go_on_until_asked(browser)
    assert browser.text("nothing-title") == "Goal reached"
    before = session.status().labels
    browser.press("1")  # the key of a class means nothing here
    time.sleep(0.6)
    assert session.status().labels == before
    browser.driver.find_element(By.ID, "go-on").click()
    browser.until(lambda: browser.ready)
    assert [(one.stop, one.annotator) for one in session.choices()] == [(False, "ana")]
    browser.label("2")  # it is not asked again
    browser.saved()
    assert not asked(browser)


def test_whoever_stops_sees_it_also_after_a_reload_and_can_go_on(page_of: Any) -> None:
    session = labelled_to_the_goal()
    browser = page_of(session)
    go_on_until_asked(browser)
    assert "accuracy: ±0." in browser.text("nothing-text") and "wanted ±0.3" in browser.text("nothing-text")
    assert axe_violations(browser.driver) == []
    time.sleep(0.6)
    browser.driver.find_element(By.ID, "stop-here").click()
    browser.until(lambda: browser.text("nothing-title") == "Stopped at the goal")
    assert session.status().leased == 0
    browser.driver.refresh()
    browser.until(lambda: "ana stopped here" in browser.text("nothing-text"))
    (choice,) = session.choices()
    assert choice.stop and 0 < choice.goals[0]["have"] <= 0.3
    time.sleep(0.6)
    browser.driver.find_element(By.ID, "go-on").click()
    browser.until(lambda: browser.ready)
    browser.label("1")


@pytest.mark.parametrize("target, title", [(0.05, "The goal is not reached"), (0.4, "Goal reached")])
def test_at_the_end_of_the_budget_it_says_whether_the_goal_was_reached(page_of: Any, target: float, title: str) -> None:
    session = create(budget=24, targets={"accuracy": target})
    for query in session.ask(23):
        session.tell(query, "cat", annotator="ben")
    session.choose(False, "ben")
    browser = page_of(session)
    browser.press("2")
    browser.until(lambda: browser.text("nothing-title") == title)
    assert "The budget of 24 labels is spent" in browser.text("nothing-text")
    assert f"wanted ±{target:g}" in browser.text("nothing-text")


def test_without_a_goal_the_end_is_the_end_of_the_budget(page_of: Any) -> None:
    session = create(budget=2)
    session.tell({query.id: "cat" for query in session.ask(1)})
    browser = page_of(session)
    browser.press("1")
    browser.until(lambda: browser.text("nothing-title") == "All done")
    assert "The budget of 2 labels is spent" in browser.text("nothing-text")
    assert "s each" in browser.text("pace") and "left" not in browser.text("pace")
    assert not any(browser.driver.find_element(By.ID, name).is_enabled() for name in ("unsure", "skip"))


# ---------------------------------------------------------------- many classes

SPILLED = """
    return [...document.querySelectorAll("#choices button")].filter((button) => {
        const [box, name] = [button, button.querySelector("span")].map((one) => one.getBoundingClientRect());
        return name.top < box.top - 1 || name.bottom > box.bottom + 1 || name.left < box.left || name.right > box.right;
    }).length + (document.documentElement.scrollWidth > innerWidth ? 1000 : 0);"""


def test_77_intents_stay_inside_their_buttons_and_get_the_space(page_of: Any) -> None:
    session = many(INTENTS)
    browser = page_of(session)
    assert browser.js("return document.querySelectorAll('#choices button').length") == 77
    groups = browser.js("return [...document.querySelectorAll('#choices h2')].map((one) => one.textContent)")
    assert {"card", "top", "transfer", "pending"} <= set(groups) and groups[-1] == "other"
    for width, height in ((390, 780), (820, 1180), (1440, 900)):
        browser.size(width, height)
        assert browser.js(SPILLED) == 0, width
    item, classes = browser.js(
        "return ['.item', '.classes'].map((one) => document.querySelector(one).getBoundingClientRect().height)"
    )
    assert item < 200 and classes > 500  # on the wide screen one line of text leaves the rest to the classes


TYPICAL = [  # class, what somebody who looks for it types
    ("card_arrival", "card arrival"),
    ("lost_or_stolen_card", "stolen card"),
    ("change_pin", "pin"),
    ("exchange_rate", "exchange"),
    ("top_up_failed", "top up failed"),
    ("Refund_not_showing_up", "refund"),
    ("pending_transfer", "pending transfer"),
    ("cash_withdrawal_charge", "withdrawal fee"),
    ("transfer_timing", "transfer time"),
    ("card_not_working", "card not work"),
    ("passcode_forgotten", "passcode"),
    ("terminate_account", "close account"),
    ("edit_personal_details", "edit details"),
    ("country_support", "country"),
    ("why_verify_identity", "why identity"),
    ("wrong_amount_of_cash_received", "wrong cash"),
    ("declined_card_payment", "declined card"),
    ("age_limit", "age"),
    ("virtual_card_not_working", "virtual not working"),
    ("top_up_limits", "limit"),
    ("request_refund", "refund"),
    ("transaction_charged_twice", "twice"),
    ("apple_pay_or_google_pay", "apple"),
    ("beneficiary_not_allowed", "beneficiary"),
    ("card_swallowed", "swallowed"),
]


def test_an_intent_of_77_costs_at_most_four_keys_on_average(page_of: Any) -> None:
    """One who types on until the class has a number, looking at the list from the second letter on."""
    session = many(INTENTS)
    browser = page_of(session)
    numbered = (
        "return [...document.querySelectorAll('.numbered button')].slice(0, 9).map((one) => "
        "one.querySelector('span').textContent)"
    )
    spent, wanted = [], []
    for name, query in TYPICAL[::3]:
        typed = ""
        while name not in (found := browser.js(numbered)) or len(typed) == 1:
            if len(typed) == len(query):  # the word was not the class's: another one, all of it paid for
                browser.press(Keys.ESCAPE)
                query, typed = typed + "|" + name.split("_")[0], typed + "|"
            browser.driver.switch_to.active_element.send_keys(query[len(typed)])
            typed += query[len(typed)]
        spent.append(len(typed) + 1)
        wanted.append(name)
        browser.label(str(found.index(name) + 1))
    browser.saved()
    assert list(labels(session).values()) == wanted
    assert np.mean(spent) <= 4, list(zip(wanted, spent, strict=True))


def test_arrows_and_enter_choose_and_the_last_classes_keep_their_numbers(page_of: Any) -> None:
    session = many(INTENTS)
    browser = page_of(session)
    assert browser.js("return document.activeElement.id") == "search"
    browser.press("pend")
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    assert browser.js("return document.querySelector('#choices .first').textContent") == "2pending_cash_withdrawal"
    browser.label(Keys.ENTER)
    browser.press("swall")
    browser.label(Keys.ENTER)
    for key in ("1", "2", "1"):
        browser.label(key)
    last = "return [...document.querySelectorAll('.numbered button')].map((one) => one.textContent)"
    assert browser.js(last) == ["1pending_cash_withdrawal", "2card_swallowed"]
    browser.press("zzzz")
    assert browser.text("choices") == "No class of that name"
    browser.press(Keys.ESCAPE)
    browser.driver.refresh()
    browser.until(lambda: browser.ready)
    assert browser.js(last) == ["1pending_cash_withdrawal", "2card_swallowed"]  # also after a reload
    browser.saved()
    said = list(labels(session).values())
    assert said == ["pending_cash_withdrawal", "card_swallowed", "pending_cash_withdrawal"] + said[3:]
    assert said[3:] == ["card_swallowed", "pending_cash_withdrawal"]


def test_where_letters_search_shift_and_a_letter_command(page_of: Any) -> None:
    session = many(INTENTS)
    browser = page_of(session)
    browser.press("u")
    assert browser.js("return document.getElementById('search').value") == "u"
    browser.press(Keys.ESCAPE)
    browser.label("U")
    browser.saved()
    assert session.status().unsure == 1
    browser.press("Z")
    browser.until(lambda: session.status().unsure == 0)
    browser.press("/", "9")  # digits are typed after a slash
    assert browser.js("return document.getElementById('search').value") == "9"


def test_key_to_next_item_with_999_classes(page_of: Any) -> None:
    names = [f"{word} intent {number}" for number in range(333) for word in ("card", "cash", "transfer")]
    session = many(names, items=[f"text {row}" for row in range(999)])
    browser = page_of(session)
    browser.press("/", "card intent 7")
    browser.label(Keys.ENTER)
    measure = """
        const done = arguments[arguments.length - 1], took = [];
        const next = () => {
            if (took.length === 9) return done(took.sort((a, b) => a - b));
            const before = document.getElementById("item").dataset.handle, begun = performance.now();
            const one = new KeyboardEvent("keydown", { key: "1", code: "Digit1", bubbles: true });
            document.getElementById("search").dispatchEvent(one);
            const look = () => {
                const changed = document.getElementById("item").dataset.handle !== before;
                if (!changed) return requestAnimationFrame(look);
                requestAnimationFrame(() => { took.push(performance.now() - begun); setTimeout(next, 220); });
            };
            look();
        };
        setTimeout(next, 400);  // a second key at once would be taken for a double one"""
    browser.driver.set_script_timeout(60)
    took = browser.driver.execute_async_script(measure)
    assert took[0] < 60, took  # the fastest, since other tests share the cores; alone all but one are below it


# ---------------------------------------------------------------- what is shown


def test_long_texts_scroll_by_keyboard_and_the_question_stays(page_of: Any) -> None:
    texts = [f"{row}: " + "a long report\n" * 400 for row in range(60)]
    session = create(pool=pool(items=texts), budget=30, instructions="Is it a cat?\nLook at the ears.")
    browser = page_of(session)
    browser.press(Keys.ENTER)  # the instructions, shown once
    at = "return document.getElementById('item').scrollTop"
    assert browser.text("question") == "Is it a cat?"
    places = []
    for key in (Keys.PAGE_DOWN, " ", Keys.ARROW_DOWN, Keys.PAGE_UP, Keys.END, Keys.HOME):
        browser.press(key)
        places.append(browser.js(at))
    down, further, line, up, end, home = places
    assert 0 < down < further < line < end and up < line and home == 0
    top = browser.js("return document.getElementById('question').getBoundingClientRect().top")
    assert 0 <= top < 200
    browser.press(Keys.END)
    browser.label("1")
    assert browser.js(at) == 0  # the next one begins at its beginning


def test_on_a_narrow_screen_the_classes_of_a_long_row_stay_in_sight(page_of: Any) -> None:
    rows = [{f"column {one}": f"value {one}" for one in range(16)}] * 60
    browser = page_of(create(pool=pool(items=rows), budget=30))
    inside = """
        return [...document.querySelectorAll("#choices button")].every((one) => {
            const box = one.getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight;
        }) && document.documentElement.scrollHeight > innerHeight;"""
    for width in (390, 820):
        browser.size(width, 700)
        for top in (0, 200):
            browser.js("window.scrollTo(0, arguments[0])", top)
            assert browser.js(inside), (width, top)


def test_the_history_strip_lists_what_was_said_and_leads_back(page_of: Any) -> None:
    session = create(budget=60)
    browser = page_of(session)
    first = browser.handle
    for key in ("1", "2", "3"):
        browser.label(key)
    browser.saved()
    strip = "return [...document.querySelectorAll('#strip button')].map((one) => one.textContent)"
    assert browser.js(strip) == ["owl", "dog", "cat"]
    browser.driver.refresh()
    browser.until(lambda: browser.ready and browser.js(strip) == ["owl", "dog", "cat"])
    browser.driver.find_elements(By.CSS_SELECTOR, "#strip button")[2].click()
    browser.until(lambda: browser.handle == first and "You said: cat" in browser.text("editing"))
    browser.label("2")
    browser.saved()
    assert browser.js(strip)[0] == "dog" and len(browser.js(strip)) == 3
    assert list(labels(session).values()) == ["dog", "dog", "owl"]


def test_a_missing_image_is_not_labelled_by_reflex_and_the_owner_is_told(page_of: Any, tmp_path: Path) -> None:
    table = "id,guess,picture\n" + "".join(f"r{n},{'ab'[n % 2]},gone{n}.png\n" for n in range(30))
    (tmp_path / "table.csv").write_text(table)
    given = altmas.Pool.from_table(tmp_path / "table.csv", prediction="guess", id="id", show="picture")
    session = create(pool=given, budget=20)
    browser = page_of(session)
    browser.until(lambda: shown(browser, "missing"))
    browser.press("1")
    assert "Not labelled" in browser.text("say") and session.status().labels == 0
    eventually(lambda: session.status().unshown >= 1)
    assert axe_violations(browser.driver) == []
    browser.driver.find_element(By.ID, "anyway").click()
    browser.label("1")
    browser.saved()
    assert session.status().labels == 1
    browser.until(lambda: shown(browser, "missing"))  # the next one asks again
    browser.until(lambda: session.status().unshown == 2)


def test_notes_are_confirmed_stay_and_can_be_edited_and_taken_back(page_of: Any) -> None:
    session = create(budget=60)
    browser = page_of(session)
    first = browser.handle
    browser.press("n")
    browser.press("odd one", Keys.CONTROL, Keys.ENTER, Keys.NULL)
    browser.until(lambda: browser.text("say") == "Note saved.")
    assert shown(browser, "note-shown") and browser.text("note-text") == "odd one"
    browser.label("1")
    assert not shown(browser, "note-shown")
    browser.press(Keys.ARROW_LEFT)
    browser.until(lambda: browser.handle == first and browser.text("note-text") == "odd one")
    browser.driver.find_element(By.ID, "note-edit").click()
    browser.press(Keys.END, " indeed", Keys.CONTROL, Keys.ENTER, Keys.NULL)
    browser.until(lambda: browser.text("note-text") == "odd one indeed")
    (note,) = session.notes()
    assert (note.text, note.annotator, note.edited) == ("odd one indeed", "ana", True)
    browser.press("n")
    browser.press(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
    browser.press(Keys.CONTROL, Keys.ENTER, Keys.NULL)
    browser.until(lambda: session.notes() == [] and not shown(browser, "note-shown"), 10)


def test_what_was_revealed_stays_so_after_a_reload(page_of: Any) -> None:
    session = create(budget=60)
    browser = page_of(session)
    browser.press("r")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.text("blind").startswith("model predicts: "))
    told = browser.text("blind")
    browser.driver.refresh()
    browser.until(lambda: browser.ready)
    assert browser.text("blind") == told and session.status().reveals == 1
    browser.label("1")
    assert browser.text("blind") == "prediction hidden"


def test_the_owner_can_switch_reveal_off_and_choose_keys(page_of: Any) -> None:
    session = create(budget=60)
    browser = page_of(session, reveal=False, keys={"owl": "o", "cat": "k"}, question="Which animal?")
    assert browser.text("question") == "Which animal?"
    assert not shown(browser, "reveal") and not shown(browser, "blind")
    assert browser.js("return [...document.querySelectorAll('#choices kbd')].map((one) => one.textContent)") == [
        *("K", "1", "O")
    ]
    browser.press("r")
    assert not browser.js("return document.getElementById('dialog').open")
    for key in ("o", "k", "1"):
        browser.label(key)
    browser.saved()
    assert list(labels(session).values()) == ["owl", "cat", "dog"]


# ---------------------------------------------------------------- grades and pairs


def test_grades_stand_in_order_and_their_digits_are_the_keys(page_of: Any) -> None:
    names = ["5", "1", "3", "2", "4"]
    session = many(names, definitions={"1": "useless", "5": "perfect"})
    browser = page_of(session)
    shown_grades = browser.js("return [...document.querySelectorAll('#choices button')].map((one) => one.textContent)")
    assert shown_grades == ["1useless", "2", "3", "4", "5perfect"]
    lefts = browser.js(
        "return [...document.querySelectorAll('#choices button')].map((one) => one.getBoundingClientRect().left)"
    )
    assert lefts == sorted(lefts) and len(set(lefts)) == 5
    for key in "514":
        browser.label(key)
    browser.saved()
    assert list(labels(session).values()) == ["5", "1", "4"]


def test_two_answers_stand_side_by_side_in_shuffled_order_that_is_recorded(page_of: Any) -> None:
    rows = [{"prompt": f"question {row}", "answer_a": f"first {row}", "answer_b": f"second {row}"} for row in range(90)]
    session = many(["a", "b", "tie"], items=rows)
    browser = page_of(session)
    assert browser.text("question") == "Which answer is better?"
    assert "answer_a" not in browser.text("item")
    expected = []
    for number in range(6):
        left, right = browser.js(
            "return [...document.querySelectorAll('.side-by-side .text')].map((one) => one.textContent.split(' ')[0])"
        )
        assert {left, right} == {"first", "second"}
        side = {"first": "a", "second": "b"}
        key = number % 3
        expected.append(((side[left], side[right], "tie")[key], side[left]))
        browser.label("123"[key])
        assert browser.text("echo-text") == ("Left", "Right", "tie")[key]
    browser.saved()
    told = [(event["label"], event["body"]["left"]) for event in session.events() if event["kind"] == "label"]
    assert told == expected and {left for _, left in told} == {"a", "b"}
    browser.press(Keys.ARROW_LEFT)
    browser.until(lambda: "You said: tie" in browser.text("editing"))
    browser.press(Keys.ARROW_LEFT)
    browser.until(lambda: "You said: Right" in browser.text("editing"))
    assert browser.js("return document.querySelector('#choices .chosen').textContent") == "2Right"


@pytest.mark.parametrize("classes", [INTENTS, [f"A{k:03} migraine with aura" for k in range(999)]], ids=["77", "999"])
def test_what_needs_height_stands_beside_many_classes_where_there_is_room(page_of: Any, classes: list[str]) -> None:
    """An image, or the fields of a row, get the height of a wide window; on a narrower one classes stand below."""
    row = {f"field {field}": "a value" for field in range(12)}
    for item, shown in ((np.zeros((60, 80), np.uint8), ".stage"), (row, ".fields")):
        browser = page_of(many(classes, items=[item] * max(90, len(classes))))
        browser.size(1440, 900)
        eventually(partial(browser.js, "return document.querySelector(arguments[0])", shown))
        left, right = (browser.js(BOX, one) for one in ("#item", ".classes"))
        assert left["right"] < right["left"] and left["height"] > 600 and right["height"] > 400
        assert browser.js("const item = document.getElementById('item'); return item.scrollHeight <= item.clientHeight")
        browser.size(1000, 800)
        assert browser.js(BOX, "#item")["bottom"] <= browser.js(BOX, ".classes")["top"]
        browser.driver.get("about:blank")


BOX = "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()"


# ---------------------------------------------------------------- accessibility and weight


@pytest.mark.parametrize("kind", ["few", "many", "image", "pair", "grades"])
def test_axe_finds_nothing(page_of: Any, kind: str) -> None:
    if kind == "many":
        browser = page_of(many(INTENTS, items=["a long text\n" * 200] * 90))
        browser.press("card")
        assert axe_in_both_schemes(browser) == NO_FAULT
        browser.label(Keys.ENTER)
    elif kind == "image":
        pictures = np.random.default_rng(0).integers(0, 256, (60, 28, 28), np.uint8)
        browser = page_of(create(pool=pool(items=pictures), budget=30, instructions="Is it a cat?\nLook at it."))
        assert axe_in_both_schemes(browser) == NO_FAULT  # with a dialog open
        browser.press(Keys.ENTER)
        browser.label("1")
    elif kind == "pair":
        rows = [{"prompt": "question", "a": "first", "b": "second"}] * 90
        browser = page_of(many(["a", "b", "tie"], items=rows))
    elif kind == "grades":
        browser = page_of(many(list("12345")))
        browser.size(390, 780)
    else:
        browser = page_of(create(budget=60))
        browser.label("1")
        browser.press(Keys.ARROW_LEFT)
        browser.until(lambda: "You said" in browser.text("editing"))
    assert axe_in_both_schemes(browser) == NO_FAULT


@pytest.mark.parametrize("classes", [2, 77, 999])
def test_axe_finds_nothing_with_any_number_of_classes(page_of: Any, classes: int) -> None:
    browser = page_of(many([f"class_{number}_of_many" for number in range(classes)]))
    assert axe_in_both_schemes(browser) == NO_FAULT


def test_axe_would_find_something(chromium: Browser) -> None:
    chromium.driver.get("data:text/html,<title>x</title><img src='x.png'><button></button>")
    found = axe_violations(chromium.driver)
    assert any(one.startswith("image-alt") for one in found) and any(one.startswith("button-name") for one in found)
    chromium.driver.get("data:text/html,<style>@media (prefers-color-scheme: dark) {p {color: %23eee}}</style><p>pale")
    assert any(one.startswith("color-contrast") for one in axe_in_both_schemes(chromium)["dark"])


def test_single_keys_can_be_switched_off_and_the_new_item_is_announced(page_of: Any) -> None:
    session = create(budget=60)
    browser = page_of(session)
    browser.press("?")
    browser.until(lambda: browser.js("return Boolean(document.getElementById('single'))"))
    browser.driver.find_element(By.ID, "single").click()
    browser.press(Keys.ESCAPE)
    browser.press("1")
    browser.press("u")
    assert session.status().labels == 0 and session.status().unsure == 0
    assert not browser.js("return document.querySelector('#choices kbd').checkVisibility()")
    browser.driver.refresh()
    browser.until(lambda: browser.ready)
    browser.press("1")  # also after a reload
    browser.driver.find_element(By.CSS_SELECTOR, "#choices button").click()
    browser.saved()
    assert session.status().labels == 1
    assert browser.text("say") == f"cat. Next item: {browser.item}"


BORDERS = """
    const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92
        : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = light(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll("#choices button, #unsure, #search")].map((one) => {
        const [a, b] = [light(getComputedStyle(one).borderTopColor), ground].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }).reduce((least, one) => Math.min(least, one), 21);"""


def test_borders_of_controls_have_a_contrast_of_three(page_of: Any) -> None:
    browser = page_of(create(budget=60))
    for scheme in ("light", "dark"):
        browser.prefer(prefers_color_scheme=scheme)
        assert browser.js(BORDERS) >= 3, scheme


WEIGHT = """
    const fetched = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    const files = fetched.filter((one) => !/\\/api\\/|^blob:/.test(one.name));
    return files.map((one) => [one.name.split('/').at(-1).split('?')[0], one.decodedBodySize, one.startTime]);"""
LATER = {"past.js", "help.js", "help.css", "ends.js", "pairs.css", "grades.css", "scan.js"}


@pytest.mark.parametrize("kind", ["text", "image", "many", "image many"])
def test_the_page_weighs_at_most_59_kilobytes_uncompressed(chromium: Browser, kind: str) -> None:
    """What is fetched before somebody who comes for the first time can label, whatever is labelled."""
    rng = np.random.default_rng(0)
    pictures = list(rng.integers(0, 256, (90, 28, 28), np.uint8)) if "image" in kind else None
    session = many(INTENTS if "many" in kind else ["cat", "dog"], items=pictures)
    with threaded(Page(session)) as address:
        chromium.open(address, "ana")
        chromium.until(lambda: any(name == "forms.js" and size for name, size, _ in chromium.js(WEIGHT)))
        sizes = {name: (size, start) for name, size, start in chromium.js(WEIGHT)}
        _, ready = sizes.pop("forms.js")  # fetched when the first item can be labelled
        assert max(start for _, start in sizes.values()) < ready
        own = {"image": {"picture.js", "picture.css"}, "many": {"search.js", "search.css"}}
        wanted = set().union(*(own[word] for word in kind.split() if word in own))
        assert len(sizes) == 11 + len(wanted) and wanted < set(sizes) and not LATER & set(sizes)
        assert min(size for size, _ in sizes.values()) > 0
        assert sum(size for size, _ in sizes.values()) <= 59_000, sizes
        chromium.press(*(["card", Keys.ENTER] if "many" in kind else ["1"]))
        eventually(lambda: session.status().labels == 1)
    chromium.driver.get("about:blank")


def test_a_skip_and_a_note_can_be_written_while_the_server_is_away(page_of: Any) -> None:
    session = create(budget=60)
    browser = page_of(session)
    browser.until(lambda: any(name == "forms.js" and size for name, size, _ in browser.js(WEIGHT)))
    browser.driver.set_network_conditions(offline=True, latency=0, throughput=1e9)
    try:
        browser.press("n")
        browser.driver.switch_to.active_element.send_keys("odd", Keys.CONTROL, Keys.ENTER)
        browser.press("s")
        browser.driver.switch_to.active_element.send_keys("blurred", Keys.ENTER)
        browser.until(lambda: "not saved yet: 2" in browser.text("saved-text"))
    finally:
        browser.driver.delete_network_conditions()
    browser.until(lambda: session.status().skipped == 1 and bool(session.notes()))
    assert browser.complaints()  # of the browser, about the network


def test_level_and_window_of_a_scan_can_be_set_by_sliders(page_of: Any) -> None:
    from test_items import RAMP, dicom

    content = dicom(np.kron(RAMP, np.ones((8, 8), int)), WindowCenter=2000, WindowWidth=4000)
    given = altmas.Pool(None, ["a", "b"] * 20, items=[content] * 40)
    browser = page_of(create(pool=given, budget=30))
    source = "return document.querySelector('.stage img').src"
    first = browser.js(source)
    browser.driver.find_element(By.CSS_SELECTOR, "input[aria-label=window]").send_keys(Keys.ARROW_LEFT * 3)
    browser.until(lambda: browser.js(source) != first)
    assert float(browser.js("return document.querySelector('input[aria-label=window]').value")) < 4000
    assert axe_violations(browser.driver) == []
    browser.press(".")
    assert float(browser.js("return document.querySelector('input[aria-label=window]').value")) == pytest.approx(
        4000, 0.01
    )
