"""Charts as SVG text: scales, ticks, marks where they belong, and nothing that a name could break."""

import re
from xml.etree import ElementTree

import pytest

from altmas.svg import (
    Interval,
    Scale,
    Step,
    around,
    cell,
    dots,
    element,
    intervals,
    log_ticks,
    path,
    shares,
    short,
    shortened,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart):
    """The chart as a browser's parser would see it: well formed, with a title and a description that it names."""
    root = ElementTree.fromstring(str(chart))
    ids = {one.get("id"): one for one in root.iter()}
    assert ids[root.get("aria-labelledby")].text and ids[root.get("aria-describedby")].text
    return root


def classes(root, kind):
    return [one for one in root.iter() if kind in (one.get("class") or "").split()]


@pytest.mark.parametrize(
    "low, high, most, expected",
    [
        (0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.78, 0.93, 5, [0.8, 0.85, 0.9]),
        (0, 306, 5, [0, 100, 200, 300]),
        (-0.01, 0.04, 5, [-0.01, 0, 0.01, 0.02, 0.03, 0.04]),
        (3, 3, 5, [3]),
    ],
)
def test_ticks_are_round_and_inside(low, high, most, expected):
    assert ticks(low, high, most) == pytest.approx(expected)


def test_ticks_of_a_log_scale():
    assert log_ticks(1e-4, 1e-2) == pytest.approx([1e-4, 1e-3, 1e-2])
    assert log_ticks(20, 300) == [20, 50, 100, 200]


def test_a_scale_maps_its_ends_and_holds_what_lies_beyond():
    scale = Scale(0.5, 1.0, 10, 110)
    assert (scale(0.5), scale(0.75), scale(1.0)) == (10, 60, 110)
    assert (scale.inside(0.2), scale.inside(1.5)) == (10, 110)
    assert Scale(1, 100, 0, 2, log=True)(10) == pytest.approx(1)


def test_limits_leave_a_margin_inside_what_is_possible():
    low, high = around([0.8, None, 0.9, float("nan")])
    assert low == pytest.approx(0.79) and high == pytest.approx(0.91)
    assert around([0.5, 1.0], within=(0.0, 1.0)) == pytest.approx((0.47, 1.01))
    assert around([]) == (0.0, 1.0)


def test_values_are_written_short():
    assert [short(one) for one in (0, 0.85, 1234, 0.0001)] == ["0", "0.85", "1,234", "0.0001"]
    assert shortened("x" * 50, 10) == "x" * 9 + "…" and shortened("x") == "x"


def test_names_are_text():
    name = '<b onload="x">&'
    for chart in (
        intervals("a", name, [Interval(name, 0.5, 0.4, 0.6, limit=0.5)]),
        path("b", name, [Step(10, 0.5, 0.4, 0.6)], across=name),
        shares("c", name, [(name, 3, "k0")]),
    ):
        root = drawn(chart)
        assert name in "".join(root.itertext()) and "<b" not in str(chart)
    assert element("g", a_b='"<') == '<g a-b="&quot;&lt;"/>'


def test_an_interval_lies_where_its_numbers_are():
    rows = [Interval("low", 0.2, 0.1, 0.3, "bad"), Interval("high", 0.8, 0.7, 0.9, "good", (0.7, 0.6, 0.8), 0.75)]
    root = drawn(intervals("chart", "two", rows, (0.0, 1.0)))
    (bad,) = [one for one in classes(root, "bad") if one.tag == f"{SVG}line"]
    (good,) = [one for one in classes(root, "good") if one.tag == f"{SVG}line"]
    at = [float(one.get(end).rstrip("%")) for one in (bad, good) for end in ("x1", "x2")]
    assert at == sorted(at)
    per_unit = (at[1] - at[0]) / 0.2
    assert at[2] - at[0] == pytest.approx(0.6 * per_unit, abs=0.05)
    (mark,) = classes(root, "tick")
    assert float(mark.get("x1").rstrip("%")) == pytest.approx(at[2] + 0.05 * per_unit, abs=0.05)
    assert len(classes(root, "hollow")) == 1
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert "high 0.800 (0.700 to 0.900), threshold 0.75; cross-check 0.700" in titles


def test_a_row_without_an_interval_is_a_dot():
    root = drawn(intervals("chart", "one", [Interval("only", 0.5)]))
    assert not classes(root, "bar") and len(classes(root, "plain")) == 1


def test_a_path_has_its_line_its_band_and_its_limit():
    steps = [Step(10, 0.6), Step(40, 0.7, 0.5, 0.9), Step(90, 0.8, 0.7, 0.9)]
    root = drawn(path("chart", "accuracy", steps, across="labels", limit=0.75))
    (line,), (band,) = classes(root, "line"), classes(root, "band")
    points = [tuple(map(float, one.split(","))) for one in line.get("points").split()]
    assert len(points) == 3 and [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)  # larger values lie higher
    assert len(band.get("points").split()) == 4 and len(classes(root, "limit")) == 1
    assert re.search(r"to 0\.800 at 90, interval 0\.700 to 0\.900", next(root.iter(f"{SVG}desc")).text)


def test_the_best_so_far_is_a_staircase():
    points = [(1.0, 3.0, "other", "a"), (2.0, 4.0, "other", "b"), (3.0, 2.0, "plain", "c")]
    root = drawn(dots("chart", "loss", points, across="trial", best=[(1.0, 3.0), (2.0, 3.0), (3.0, 2.0)]))
    (line,) = classes(root, "best")
    corners = [tuple(map(float, one.split(","))) for one in line.get("points").split()]
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in zip(corners, corners[1:], strict=False))
    assert len(list(root.iter(f"{SVG}circle"))) == 3


def test_shares_fill_the_bar():
    root = drawn(shares("chart", "kinds", [("one", 1, "k0"), ("three", 3, "k1")]))
    boxes = [(one.get("x"), one.get("width")) for one in root.iter(f"{SVG}rect")]
    assert boxes == [("0%", "25%"), ("25%", "75%")]


def test_a_bar_in_a_table_is_hidden_from_readers():
    assert 'aria-hidden="true"' in cell(0.4, 0.5, 0.6) and cell(None, None, None) == ""
