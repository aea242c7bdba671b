"""The report: one file, nothing outside it, nothing in it that was not asked for, and the same as JSON."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import NormalDist

import numpy as np
import pytest

import altmas
from altmas import Pool
from altmas.estimates import Estimate
from altmas.metrics import metric_set, table_of
from altmas.report import content
from altmas.report.content import content_of
from altmas.report.headline import headline_of, labels_needed, round_up
from altmas.report.html import breaks
from altmas.report.metrics import label_counts
from altmas.report.sensitivity import corrected, worst
from altmas.report.words import verdict_of
from altmas.session import Session
from altmas.session.plan import Plan

EVIL = '<script>alert("x")</script>'
CLASSES = ["healthy", EVIL, 'say "it\'s" & <b>bold</b>']


def make_session(path=None, *, labels=80, items=None, **options):
    rng = np.random.default_rng(5)
    n = 400
    truth = rng.integers(3, size=n)
    predicted = np.where(rng.random(n) < 0.8, truth, (truth + 1) % 3)
    sites = np.where(np.arange(n) < 4, "tiny site", rng.choice(["north", "</td><i>south"], n))
    pool = Pool(
        None,
        [CLASSES[code] for code in predicted],
        classes=CLASSES,
        ids=[f"patient-{k:04d}" for k in range(n)],
        slices={"site": sites},
        items=items if items is not None else [f"private text {k}" for k in range(n)],
    )
    chosen = {"metrics": ["accuracy", f"recall[{EVIL}]"], "method": "tradition", "seed": 2, "double_share": 0.3}
    session = Session.create(path, pool, **chosen | options)
    while len(session.history.labels) < labels:
        for who in ("ana", "bob " + EVIL):
            for query in session.ask(10, annotator=who):
                session.tell(query.id, CLASSES[truth[query.index]], who, seconds=4.0)
    return session


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    session = make_session(folder / "xray.altmas", thresholds={"accuracy": 0.5}, targets={f"recall[{EVIL}]": 0.01})
    session.skip(session.ask(1)[0].id, "blurred", "ana")
    session.reveal(session.ask(1)[0].id, "ana")
    report = session.report(folder / "report.html")
    return folder, session, report


class Page(HTMLParser):
    """What a browser would make of the page: elements, their attributes, the text outside scripts and styles."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.text, self._raw = [], [], None
        self.scripts = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._raw = tag if tag in ("script", "style") else self._raw
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._raw = None if tag == self._raw else self._raw

    def handle_data(self, data):
        if self._raw == "script":
            self.scripts[-1] += data
        elif self._raw is None:
            self.text.append(data)


@pytest.fixture(scope="module")
def page(written):
    return Page((written[0] / "report.html").read_text("utf-8"))


# ---------------------------------------------------------------- one file


def test_nothing_is_fetched_from_anywhere(page):
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base"), tag
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:")), (tag, address)
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy and "http" not in policy


def charts(page: Page) -> list[dict]:
    return [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("role") == "img"]


def test_every_chart_is_svg_with_a_title_and_a_description(page, written):
    found = charts(page)
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {one["id"] for one in found} == {
        *("chart-estimates", "chart-path-0", "chart-path-1", "chart-slice-0", "chart-choice", "chart-differences-0")
    }
    for one in found:
        assert {one["aria-labelledby"], one["aria-describedby"]} <= ids
    source = (written[0] / "report.html").read_text("utf-8")
    described = dict(re.findall(r'<desc id="([\w-]+)-desc">(.*?)</desc>', source))
    accuracy = written[1].estimate()["accuracy"]
    assert (
        f"accuracy {accuracy.value:.3f} ({accuracy.low:.3f} to {accuracy.high:.3f}), threshold 0.5"
        in (described["chart-estimates"])
    )
    assert f"{len(written[1].history.labels)}, interval" in described["chart-path-0"]


def test_it_reads_without_a_script(page):
    """The only script searches and sorts a table that is there already; its tools are hidden until it runs."""
    assert len(page.scripts) == 1 and "http" not in page.scripts[0]
    (tools,) = [attributes for tag, attributes in page.elements if attributes.get("class") == "tools"]
    assert "hidden" in tools
    assert sum(tag == "tr" for tag, _ in page.elements) > 3 * len(CLASSES)


def test_names_given_by_users_are_shown_as_text_never_as_markup(page, written):
    assert not [attributes for tag, attributes in page.elements if tag == "i" and not attributes]
    shown = "".join(page.text)
    assert EVIL in shown and "bob " + EVIL in shown and "</td><i>south" in shown
    source = (written[0] / "report.html").read_text("utf-8")
    assert EVIL not in source


def test_no_item_and_no_id_is_in_it_unless_asked_for(written):
    folder, session, _ = written
    for name in ("report.html", "report.json"):
        content = (folder / name).read_text("utf-8")
        assert "private text" not in content and "patient-0" not in content
    asked = session.report(items=True)
    row = next(iter(session.history.labels))
    assert f"private text {row}" in asked.to_html() and f"patient-{row:04d}" in asked.to_json()


def test_images_are_put_inside_when_items_are_asked_for():
    session = make_session(items=[np.full((4, 4), k % 255, np.uint8) for k in range(400)], labels=20)
    shown = Page(session.report(items=True).to_html())
    pictures = [attributes["src"] for tag, attributes in shown.elements if tag == "img"]
    assert len(pictures) == len(session.history.labels)
    assert all(address.startswith("data:image/png;base64,") for address in pictures)


def test_it_can_be_printed_and_read_in_the_dark(page, written):
    source = (written[0] / "report.html").read_text("utf-8")
    assert "@media print" in source and "prefers-color-scheme: dark" in source


# ---------------------------------------------------------------- what it says


def test_the_json_says_the_same_as_the_session(written):
    folder, session, report = written
    content = json.loads((folder / "report.json").read_text("utf-8"))
    assert content == report.content
    for one, estimate in zip(content["metrics"], session.estimate(), strict=True):
        assert (one["value"], one["low"], one["high"]) == (estimate.value, estimate.low, estimate.high)
        assert one["gain"] == pytest.approx(estimate.effective_labels / estimate.labels)
    assert content["reproducibility"]["log_hash"] == session.status().digest
    assert content["reproducibility"]["fingerprint"] == session.pool.fingerprint
    assert content["labels"] == len(session.history.labels)


def test_the_path_ends_where_the_estimate_is_and_replays_the_past(written):
    _, session, report = written
    path = [row for row in report.content["path"] if row["metric"] == "accuracy"]
    assert [row["labels"] for row in path] == label_counts(len(session.history.labels))
    assert path[-1]["value"] == session.estimate()["accuracy"].value
    early = session.at(path[1]["labels"]).estimate()["accuracy"]
    assert (path[1]["value"], path[1]["low"]) == (early.value, early.low)


def test_the_cells_of_the_matrix_add_up_to_the_pool(written):
    _, session, report = written
    cells = report.content["confusion"]["cells"]
    assert sum(cell["value"] for cell in cells) == pytest.approx(len(session.pool))
    assert all(cell["low"] <= cell["value"] <= cell["high"] for cell in cells)


def test_slices_have_counts_and_small_ones_claim_nothing(written):
    _, session, report = written
    (slice_,) = report.content["slices"]
    rows = {row["value"]: row for row in slice_["rows"]}
    assert sum(row["points"] for row in rows.values()) == 400
    assert sum(row["labels"] for row in rows.values()) == len(session.history.labels)
    if rows["tiny site"]["labels"] < 4:
        assert all(cell["insufficient"] and cell["value"] is None for cell in rows["tiny site"]["metrics"])
    assert not rows["north"]["metrics"][0]["insufficient"]


def test_a_slice_without_an_interval_says_why():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 400)
    said = np.where(rng.random(400) < 0.8, truth, (truth + 1) % 4)
    pool = altmas.Pool(None, said, slices={"site": np.where(np.arange(400) % 2, "north", "south")})
    session = altmas.Session.create(None, pool, metrics=["macro_f1"], targets={"macro_f1": 0.1}, budget=100)
    session.tell({query.id: int(truth[query.index]) for query in session.ask(60)})
    report = session.report()
    cells = [row["metrics"][0] for row in report.content["slices"][0]["rows"]]
    assert all(cell["low"] is None and cell["note"].startswith("no interval: fewer than 40") for cell in cells)
    assert report.to_html().count("No interval: fewer than 40 labels count so far") == 1


def test_people_skips_reveals_and_agreement_are_told(written):
    _, session, report = written
    people = report.content["people"]
    assert {one["name"] for one in people["annotators"]} == {"ana", "bob " + EVIL}
    assert (people["skipped"], people["reveals"], people["reasons"]) == (1, 1, {"blurred": 1})
    assert people["agreement"]["points"] > 5 and people["agreement"]["share"] == 1.0
    assert people["seconds_per_label"] == 4.0
    states = {one["title"]: one["state"] for one in report.content["assumptions"]}
    assert states["Labels were given without seeing the prediction"] == "warning"
    assert states["The labels are right"] == "warning"  # so few second opinions leave much room, though all agree


def test_a_session_without_labels_has_a_report_too(tmp_path):
    session = make_session(labels=0)
    report = session.report(tmp_path / "empty.html")
    assert "cannot be given yet" in str(report)
    assert json.loads((tmp_path / "empty.json").read_text("utf-8"))["path"] == []


def test_a_fully_labelled_session_is_exact(tmp_path):
    session = make_session(labels=400)
    assert "exactly" in str(session.report())


@pytest.mark.parametrize(("errors", "told"), [(2.5, False), (3.5, True)])
def test_a_cross_check_that_is_three_standard_errors_away_is_told(tmp_path, monkeypatch, errors, told):
    session = make_session(labels=40)
    values = {one.metric: one.value for one in session.estimate()}

    def far_off(_pool, _history, metric, confidence, _sample):
        centre, half = values[metric.name] - 0.1 * errors, 0.1 * NormalDist().inv_cdf((1 + confidence) / 2)
        return centre, centre - half, centre + half

    monkeypatch.setattr("altmas.report.metrics.weighted_interval", far_off)
    session.report(tmp_path / "far.html")
    checks = [one["check"]["apart"] for one in json.loads((tmp_path / "far.json").read_text("utf-8"))["metrics"]]
    assert checks == [told, told]
    assert ("does not agree with the" in (tmp_path / "far.html").read_text("utf-8")) is told


def test_metrics_with_other_bounds_have_an_axis_of_their_own():
    rng = np.random.default_rng(0)
    grades = rng.integers(1, 6, 300)
    judge = np.clip(grades + rng.integers(-1, 2, 300), 1, 5)
    pool = Pool(None, judge.astype(str), classes=list("12345"), values={name: int(name) for name in "12345"})
    session = Session.create(None, pool, metrics=["mean", "share[5]", "kappa"], seed=0)
    for query in session.ask(40):
        session.tell(query.id, str(grades[query.index]))
    page = session.report().to_html()
    charts = {name: page.partition(f'id="{name}"')[2].partition("</svg>")[0] for name in CHARTS}
    assert "mean " in charts["chart-estimates"] and "share[5]" not in charts["chart-estimates"]
    assert all(name in charts["chart-estimates-1"] for name in ("share[5]", "kappa"))
    assert "chart-estimates-2" not in page and "move accuracy" not in page


CHARTS = ("chart-estimates", "chart-estimates-1")


def test_classes_with_hardly_a_label_raise_no_alarm():
    rng = np.random.default_rng(0)
    classes = [f"c{k:02}" for k in range(40)]
    truth = rng.choice(classes, 2000)
    answers = np.where(rng.random(2000) < 0.85, truth, rng.choice(classes, 2000))
    scores = np.full((2000, 40), 0.2 / 39)
    scores[np.arange(2000), [classes.index(one) for one in answers]] = 0.8
    pool = altmas.Pool(None, answers, scores=scores, classes=classes)
    names = ["accuracy", "macro_f1", *(f"recall[{name}]" for name in classes)]
    session = altmas.Session.create(None, pool, metrics=names, seed=1)
    for query in session.ask(60):
        session.tell(query.id, truth[query.index])
    accuracy, macro, *recalls = content_of(session)["metrics"]
    assert accuracy["check"]["value"] is not None and macro["check"]["value"] is None
    assert not any(one["check"]["apart"] for one in (accuracy, macro, *recalls))


def test_a_path_that_ends_in_json_writes_that_alone(tmp_path):
    make_session(labels=20).report(tmp_path / "only.json")
    assert [one.name for one in tmp_path.iterdir()] == ["only.json"]


def test_notebooks_show_verdicts_escaped():
    session = make_session(labels=30, thresholds={"accuracy": 0.99})
    for shown in (session.report()._repr_html_(), session._repr_html_()):
        assert "accuracy" in shown and EVIL not in shown and "&lt;script&gt;" in shown
    report = session.report()
    assert report.content["headline"]["verdict"] in report._repr_html_()
    assert str(report).startswith(report.content["headline"]["verdict"])
    assert report._repr_html_().count("interval 0.") == 1  # one verdict, where something was wanted


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("name", "bounds", "plan", "tone", "words"),
    [
        ("accuracy", (0.91, 0.95), {"thresholds": {"accuracy": 0.9}}, "good", "is at least 0.9"),
        ("accuracy", (0.81, 0.85), {"thresholds": {"accuracy": 0.9}}, "bad", "is below 0.9"),
        ("accuracy", (0.88, 0.92), {"thresholds": {"accuracy": 0.9}}, "open", "undecided"),
        ("error", (0.11, 0.15), {"thresholds": {"error": 0.1}}, "bad", "is at least 0.1"),
        ("accuracy", (0.88, 0.92), {"targets": {"accuracy": 0.03}}, "good", "reached (± 0.020)"),
        ("accuracy", (0.80, 0.92), {"targets": {"accuracy": 0.03}}, "open", "not reached yet (± 0.060)"),
        ("accuracy", (0.88, 0.92), {}, "plain", "between 0.880 and 0.920 with 95 % confidence"),
        ("accuracy", (np.nan, np.nan), {}, "open", "no interval"),
    ],
)
def test_verdicts_say_what_the_interval_allows(name, bounds, plan, tone, words):
    pool = Pool(None, ["a", "b"] * 5)
    (metric,) = metric_set([name], pool)
    estimate = Estimate(name, 0.9, *bounds, 0.95, 100)
    found = verdict_of(estimate, metric, Plan.of(pool, metrics=[name], method="tradition", **plan))
    assert (found.tone, words in found.sentence) == (tone, True), found.sentence


def test_a_report_says_how_many_labels_were_not_asked_for():
    with make_session(labels=12, method="assured", double_share=0) as session:
        plain = session.report().to_html()
        assert " labels chosen by the method" in plain and "told without being asked" not in plain
        drawn = len(session.history.labels)
        session.tell(session.pool.ids[int(np.flatnonzero(session.history.open)[-1])], "healthy")
        said = session.report().to_html()
    assert f"{drawn + 1} labels, 1 of them told without being asked for, the others chosen by the method" in said


def test_a_report_on_volunteered_labels_alone_says_that_none_was_drawn():
    with make_session(labels=0, method="assured") as session:
        session.tell("patient-0003", "healthy")
        report = session.report()
    said = report.to_html()
    assert "The method gives no interval" not in said and "0 intervals" not in said and "gave no interval" not in said
    assert "No drawn label is there yet, so there is no interval." in said and "No estimate yet." in said
    assert "1 label, told without being asked for; method" in said and "chosen by the method" not in said
    assert "There is none yet: no drawn label counts." in said and "gives no interval" not in str(report)


# ---------------------------------------------------------------- the first screen


def content_with(*metrics, labels=100, points=10_000, budget=None, forecast=None):
    return {
        "forecast": forecast,
        **{"metrics": list(metrics), "labels": labels, "drawn_labels": labels, "pool": {"points": points}},
        **{"plan": {"budget": budget, "rank": ""}, "method": "assured", "waves": None, "ranking": None},
    }


def side_of(low, threshold):
    return "" if threshold is None else "above" if low >= threshold else "below"


def aim(value=0.81, low=0.76, high=0.86, tone="open", threshold=None, target=None, **more):
    return {
        **{"metric": "accuracy", "value": value, "low": low, "high": high, "confidence": 0.95, "note": ""},
        **{"threshold": threshold, "target": target, "verdict": {"tone": tone, "side": side_of(low, threshold)}},
        **{"bounds": [0.0, 1.0], "unit": "a share", "lower_is_better": False},
    } | more


def said(content):
    found = headline_of(content)
    return f"{found['verdict']} {found['next']}"


def test_the_headline_is_a_verdict_and_the_next_step():
    undecided = aim(0.83, 0.76, 0.90, threshold=0.78)
    more = labels_needed(undecided, 100, 10_000)
    assert said(content_with(undecided)) == (
        "Not decided yet: accuracy is 83 % (76–90), you need 78 %. "
        f"About {round_up(more)} more labels would probably settle it."
    )
    assert said(content_with(undecided, budget=150)).endswith("settle it, and 50 of the budget are left.")
    assert said(content_with(undecided, budget=100)).endswith("settle it, and the budget is spent.")
    near = aim(0.801, 0.77, 0.83, threshold=0.8)
    assert said(content_with(near)).endswith("Only labelling nearly all 10,000 points would settle it.")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (
            aim(0.91, 0.88, 0.94, "good", 0.8),
            "Good enough: accuracy is 91 % (88–94), at least the 80 % you need. You can",
        ),
        (aim(0.62, 0.55, 0.7, "bad", 0.8), "Not good enough: accuracy is 62 % (55–70), below the 80 % you need."),
        (aim(target=0.03), "Not precise enough yet: accuracy is 81 % ± 5.0, you want ± 3. About "),
        (aim(1.0, 0.81, 1.0, target=0.06), "Not precise enough yet: accuracy is 100 % (81–100), ± 9.5, you want ± 6."),
        (
            aim(0.81, 0.785, 0.835, "good", target=0.025),
            "Precise enough: accuracy is 81 % ± 2.5, and ± 2.5 was wanted.",
        ),
        (aim(), "accuracy is 81 % (76–86), with 95 % confidence. No target or threshold was set"),
        (aim(0.9942, 0.9921, 0.9963), "accuracy is 99.4 % (99.2–99.6)"),
        (
            aim(low=None, high=None, note="a belief"),
            "accuracy is about 81 %; method assured gave no interval. A belief.",
        ),
        (aim(None, None, None), "Nothing can be said about accuracy yet. 100 labels so far do not tell about it"),
        (aim(0.91, 0.88, 0.94, unit="an area"), "accuracy is 0.910 (0.880–0.940), with 95 % confidence."),
        (aim(0.8, 0.8, 0.8), "accuracy is exactly 80 %. Every label that decides it is known."),
        (aim(0.03, 0.01, 0.05, "good", 0.1, lower_is_better=True), "(1–5), below the 10 % you allow."),
        (aim(0.12, 0.05, 0.2, threshold=0.1, lower_is_better=True), "(5–20), you need at most 10 %. "),
        (
            aim(2.5, 1.5, 3.5, threshold=3.0, bounds=[0.0, 9.0]),
            "Not decided yet: accuracy is 2.500 (1.500–3.500), you need 3.",
        ),
    ],
)
def test_the_headline_says_what_holds(metric, words):
    assert words in said(content_with(metric))


def test_names_are_broken_between_their_parts():
    assert breaks("recall[cat]@site=A") == "recall<wbr>[cat]@<wbr>site=<wbr>A"
    assert breaks("macro_f1") == "macro_<wbr>f1" and breaks("<b>") == "&lt;b&gt;"


def test_one_label_is_spoken_of_as_one():
    assert "1 label so far does not tell about it" in said(content_with(aim(None, None, None), labels=1))


def test_nothing_is_decided_by_a_handful_of_labels():
    session = make_session(labels=0, thresholds={"accuracy": 0.1}, targets={f"recall[{EVIL}]": 0.9})
    session.tell({query.id: CLASSES[session.pool.predictions[query.index]] for query in session.ask(12)})
    report = session.report()
    drawn = session.history.drawn_labels
    assert drawn < 20 and session.estimate()["accuracy"].low > 0.1
    assert [one["verdict"]["badge"] for one in report.content["metrics"]] == ["too early"] * 2
    assert report.content["headline"]["tone"] == "open"
    assert report.content["headline"]["verdict"].startswith("Not decided yet: accuracy is ")
    assert f"at least {20 - drawn} more label" in report.content["headline"]["next"]
    session.tell({query.id: CLASSES[session.pool.predictions[query.index]] for query in session.ask(8)})
    later = session.report()
    assert later.content["headline"]["tone"] == "good"


def test_the_next_step_is_the_forecast_of_the_session_where_one_aim_is_open():
    open_, good = aim(0.83, 0.76, 0.90, threshold=0.78), aim(0.91, 0.88, 0.94, "good", 0.8)
    words = "about 60 % chance to settle it with 200 labels, as likely as not within about 16 more"
    ahead = {"labels": 100, "until": 200, "chance": 0.6, "more": 16.0, "words": words}
    assert said(content_with(open_, good, forecast=ahead)).endswith(f"A{words[1:]}. Aims: 1 met, 1 open.")
    ahead |= {"chance": 0.0, "more": None, "words": "under 5 % chance to settle it with 200 labels"}
    beyond = "Under 5 % chance to settle it with 200 labels; altmas plan says about how many it would take."
    assert said(content_with(open_, forecast=ahead)).endswith(beyond)
    assert "would probably settle it" in said(content_with(open_, open_, forecast=ahead))
    assert "would probably settle it" in said(content_with(open_))


def test_report_check_goals_and_stop_rule_say_the_same_of_a_threshold(tmp_path):
    """The test for every look decides all of them, also where the interval for many looks is still open."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["x", "y"], 1000)
    answers = np.where(rng.random(1000) < 0.85, truth, np.where(truth == "x", "y", "x"))
    session = altmas.Session.create(
        tmp_path / "one.altmas", altmas.Pool(None, answers), budget=200, thresholds={"accuracy": 0.75}
    )
    while not session.should_stop():
        for query in session.ask(5):
            session.tell(query, truth[query.index])
    assert len(session.history.labels) < 200 and session.estimate()["accuracy"].low < 0.75
    (goal,), content, verdict = session.goals(), content_of(session), session.check("accuracy >= 0.75")
    assert goal.reached and verdict.answer == "shown"
    assert content["metrics"][0]["verdict"]["tone"] == "good" and content["metrics"][0]["verdict"]["side"] == "above"
    assert content["headline"]["verdict"].endswith("%, shown to be at least the 75 % you need.")
    assert content["forecast"] is None
    assert "the interval would be open" in content["metrics"][0]["verdict"]["sentence"]
    assert "sharper there than the interval" in str(verdict) or verdict.estimate.low >= 0.75


def test_judges_that_nobody_asked_to_rank_come_after_what_people_would_say():
    ranking = {"models": [{"tier": "best"}, {"tier": "worse"}], "finding": "a is best", "outlook": ""}
    of_truth, of_judge = aim(metric="share[pass]", model=None), aim(metric="a: accuracy", model="a")
    judges = content_with(of_truth, of_judge) | {"ranking": ranking}
    assert said(judges).startswith("share[pass] is 81 % (76–86)")
    judges["plan"]["rank"] = "accuracy"
    assert said(judges).startswith("A is best.")
    assert said(content_with(of_judge, of_truth) | {"ranking": ranking}).startswith("A is best.")


def test_where_labels_wait_for_one_item_the_next_step_is_to_answer_it():
    nothing = content_with(aim(None, None, None)) | {"waiting": "labels that do not count yet: 34 of 39, until"}
    assert said(nothing).endswith(" yet. Labels that do not count yet: 34 of 39, until.")


def test_a_missed_aim_comes_first_then_an_open_one():
    good, open_ = aim(0.91, 0.88, 0.94, "good", 0.8), aim(0.81, 0.76, 0.86, "open", 0.8)
    bad = aim(0.62, 0.55, 0.7, "bad", 0.8)
    assert headline_of(content_with(good, open_, bad))["tone"] == "bad"
    assert headline_of(content_with(good, open_))["tone"] == "open"
    assert said(content_with(good, open_)).endswith("Aims: 1 met, 1 open.")


def test_no_line_of_the_headline_ends_before_a_number():
    report = make_session(labels=40, targets={"accuracy": 0.001}).report()
    assert "you want ± 0.1." in report.content["headline"]["verdict"]
    headline = report.to_html().partition('<h1 class="headline')[2].partition("</h1>")[0]
    assert "you want ±\u00a00.1." in headline and "± " not in headline


def test_the_forecast_is_that_of_a_random_sample():
    """A simulation: with the labels that are forecast, about four of five intervals are clear of the threshold."""
    rng = np.random.default_rng(0)
    truth, threshold, labels = 0.85, 0.80, 60
    half = 1.96 * (truth * (1 - truth) / labels) ** 0.5
    more = labels_needed(aim(truth, truth - half, truth + half, threshold=threshold), labels, 10**9)
    n = round(labels + more)
    shares = rng.binomial(n, truth, 4000) / n
    clear = shares - 1.96 * (shares * (1 - shares) / n) ** 0.5 >= threshold
    assert clear.mean() == pytest.approx(0.8, abs=0.04)
    assert labels_needed(aim(target=0.025), 100, 10**9) == pytest.approx(300)
    assert labels_needed(aim(target=0.025), 100, 200) == pytest.approx(60)  # a finite pool needs fewer
    assert np.isnan(labels_needed(aim(0.8, 0.8, 0.8, target=0.1), 100, 200))
    assert [round_up(one) for one in (1, 7.2, 21, 58, 101, 1234)] == [1, 8, 25, 60, 110, 1300]


def test_verdicts_are_only_given_where_something_was_wanted():
    shown = make_session(labels=30).report()
    source = shown.to_html()
    assert 'id="verdict"' not in source and 'class="badge plain"' not in source
    assert shown.content["headline"]["verdict"] in source.replace("\u2060", "").replace("\u00a0", " ")


# ---------------------------------------------------------------- many classes


@pytest.fixture(scope="module")
def many():
    """A session with 77 classes and every metric of each."""
    rng = np.random.default_rng(3)
    names = [f"topic_{k:02d}_{'with_a_long_name_' * (k % 3)}x" for k in range(77)]
    truth = rng.integers(77, size=3000)
    predicted = np.where((rng.random(3000) < 0.85) & (truth != 5), truth, (truth + 1) % 77)
    pool = Pool(None, [names[k] for k in predicted], classes=names, slices={"site": rng.choice(["a", "b"], 3000)})
    session = Session.create(
        None, pool, metrics=["accuracy", "macro_f1", "per_class"], method="tradition", thresholds={"accuracy": 0.9}
    )
    while len(session.history.labels) < 600:
        session.tell({query.id: names[truth[query.index]] for query in session.ask(100)})
    return session, session.report(), names


def test_a_report_on_77_classes_stays_below_150_kb(many):
    assert len(many[1].to_html().encode()) < 150_000


def test_every_class_is_listed_and_the_worst_are_named(many):
    session, report, names = many
    rows = report.content["classes"]["rows"]
    assert [row["name"] for row in rows] == names
    estimate = session.estimate()[f"recall[{names[7]}]"]
    assert rows[7]["recall"] == {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    worst = report.content["classes"]["worst"]
    assert len(worst) == 10 and worst[0] == 5  # never found
    values = [rows[place]["f1"]["value"] for place in worst]
    assert values == sorted(values)


def test_the_largest_confusions_are_those_that_labels_met(many):
    session, report, names = many
    found = report.content["confusions"]
    assert len(found) == 10 and report.content["confusion"]["cells"] == []
    assert (found[0]["predicted"], found[0]["true"]) == (names[6], names[5])
    sizes = [one["value"] for one in found]
    assert sizes == sorted(sizes, reverse=True)
    met = sum(
        int(code) == 5 and int(session.pool.predictions[row]) == 6 for row, code in session.history.labels.items()
    )
    assert found[0]["labels"] == met
    assert found[0]["value"] == pytest.approx(met / 600 * 3000)  # a random sample's share of the pool
    assert found[0]["low"] <= found[0]["value"] <= found[0]["high"]


def test_metrics_of_single_classes_are_in_the_table_of_classes_alone(many):
    source = many[1].to_html()
    assert "154 more, of single" in source
    assert {row["metric"] for row in many[1].content["path"]} == {"accuracy", "macro_f1"}
    assert "of\n    231, 12 miss their truth on average" in source


def test_a_method_that_cannot_estimate_classes_says_so():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    scores = np.clip(np.eye(2)[truth] * 0.8 + 0.1 + rng.normal(0, 0.1, (300, 1)) * [1, -1], 0.01, 0.99)
    pool = Pool(None, scores.argmax(1), scores=scores / scores.sum(1, keepdims=True), classes=[0, 1])
    session = Session.create(None, pool, metrics=["f1[1]"], method="oasis", budget=60)
    session.run(lambda query: int(truth[query.index]), progress=False)
    content = session.report().content
    assert content["classes"]["rows"] == [] and "method oasis" in content["classes"]["note"]
    assert "does not estimate single cells" in content["confusion"]["note"]


# ---------------------------------------------------------------- wrong labels


def test_random_label_errors_are_undone_exactly():
    rng = np.random.default_rng(1)
    true = rng.integers(50, 200, (4, 4)).astype(float)
    noise = np.full((4, 4), 0.05 / 3)
    np.fill_diagonal(noise, 0.95)
    np.testing.assert_allclose(corrected(true @ noise, 0.05), true, rtol=1e-9)


def test_the_worst_errors_move_accuracy_by_exactly_their_share():
    pool = Pool(None, [0, 1] * 50)
    (accuracy,) = metric_set(["accuracy"], pool)
    table = np.array([[40.0, 10.0], [10.0, 40.0]])
    assert worst(table, accuracy, 0.05, -1) == pytest.approx(0.75)
    assert worst(table, accuracy, 0.05, 1) == pytest.approx(0.85)
    assert worst(table, accuracy, 0.5, 1) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["recall[0]", "f1[0]", "kappa"])
def test_no_relabelling_of_that_share_is_worse_than_the_worst(name):
    rng = np.random.default_rng(2)
    predicted, truth = rng.integers(3, size=(2, 200))
    truth = np.where(rng.random(200) < 0.6, predicted, truth)
    pool = Pool(None, predicted, classes=[0, 1, 2])
    (metric,) = metric_set([name], pool)
    table = table_of(predicted, truth, 3)
    least, most = worst(table, metric, 0.05, -1), worst(table, metric, 0.05, 1)
    for _ in range(300):
        wrong = truth.copy()
        rows = rng.choice(200, 10, replace=False)
        wrong[rows] = rng.integers(3, size=10)
        assert least - 1e-9 <= float(metric.of_table(table_of(predicted, wrong, 3))) <= most + 1e-9


def test_label_counts_are_few_and_end_now():
    assert label_counts(0) == [] and label_counts(3) == [3]
    assert label_counts(1000)[-1] == 1000 and len(label_counts(1000)) == 8


def test_the_price_of_a_guarantee_is_said():
    session = Session.create(None, Pool(None, [0, 1] * 100), metrics=["accuracy"], guarantee=True)
    for query in session.ask(40):
        session.tell(query.id, (query.index + (query.index % 7 == 0)) % 2)
    words = " ".join(one["words"] for one in content.content_of(session)["assumptions"])
    own = session.method.estimate(replace(session.task, guarantee=False), session.history)["accuracy"]
    assert session.estimate()["accuracy"].half_width > own.half_width
    assert f"times the \u00b1{own.half_width:.3f} of the interval for one look" in words


def test_notes_are_shown_as_text_with_their_author_and_ids_only_with_items():
    session = make_session(labels=20)
    row = next(iter(session.history.labels))
    session.note("<b>looks</b> odd", id=session.pool.ids[row], annotator="Ann <i>")
    told = Page(session.report().to_html())
    assert "<b>looks</b> odd" in "".join(told.text) and "Ann <i>" in "".join(told.text)
    assert not [tag for tag, attributes in told.elements if tag == "i" and not attributes]
    assert f"patient-{row:04d}" not in session.report().to_html()
    notes = session.report(items=True).content["notes"]
    assert notes["shown"][0]["id"] == f"patient-{row:04d}" and notes["count"] == 1
    assert "notes" not in session.report(notes=False).content and "odd" not in session.report(notes=False).to_html()


def test_many_and_long_notes_are_limited_and_it_is_said():
    session = make_session(labels=20)
    for number in range(53):
        session.note(f"note {number} " + "x" * 600)
    told = session.report()
    assert len(told.content["notes"]["shown"]) == 50 and told.content["notes"]["shown"][0]["text"].startswith("note 52")
    assert "50 of 53" in told.to_html() and "x" * 501 not in told.to_html()


def test_without_aims_the_headline_of_several_models_says_which_is_best():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    answers = {name: np.where(rng.random(400) < right, truth, 1 - truth) for name, right in (("v1", 0.7), ("v2", 0.95))}
    session = altmas.Session.create(None, altmas.Pool(None, answers), metrics=["accuracy"], seed=1)
    for _ in range(8):
        points = session.ask(10)
        session.tell({point.id: int(truth[point.index]) for point in points})
    report = session.report()
    headline = report.content["headline"]
    assert headline["verdict"] == "By accuracy on this pool, v2 looks best after 80 labels; v1 is shown to be worse."
    assert headline["tone"] == "good" and '<a href="#ranking">' in report.to_html()
