"""Estimates: what they say in words, as values, as a frame and as a page."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from altmas.estimates import Estimate, Estimates, about_in_words, shown_worth

GOOD = Estimate("accuracy", 0.8125, 0.75, 0.875, 0.95, 160, 200.4, "fixed-n")
NONE = Estimate("recall[<cat>]", math.nan, math.nan, math.nan, 0.95, 0, note="undefined: no label yet")
BOTH = Estimates((GOOD, NONE), "tradition", {"why": "a test"})


def test_half_of_the_width():
    assert GOOD.half_width == 0.0625 and math.isnan(NONE.half_width)


def test_an_estimate_in_a_line():
    assert str(GOOD) == "accuracy                 0.8125  [0.7500, 0.8750]"
    assert str(NONE) == "recall[<cat>]            -  undefined: no label yet"
    assert str(BOTH) == f"{GOOD}\n{NONE}\nintervals are about the items of this pool"


def test_estimates_are_found_by_place_and_by_name():
    assert len(BOTH) == 2 and list(BOTH) == [GOOD, NONE]
    assert BOTH[0] is GOOD and BOTH["recall[<cat>]"] is NONE and BOTH[:1] == (GOOD,)
    with pytest.raises(KeyError, match="was not estimated; there are"):
        BOTH["recall[dog]"]


def test_json_has_null_where_nothing_is_known():
    whole = json.loads(json.dumps(BOTH.to_dict(), allow_nan=False))
    assert whole["method"] == "tradition" and whole["info"] == {"why": "a test"}
    first, second = whole["estimates"]
    assert first["value"] == 0.8125 and first["low"] == 0.75 and first["labels"] == 160
    assert second["value"] is None and second["effective_labels"] is None


def test_one_estimate_is_shown_in_a_notebook_as_a_row_of_the_table():
    assert GOOD._repr_html_().count("<tr>") == 2 and "0.8125" in GOOD._repr_html_()
    assert "<cat>" not in NONE._repr_html_() and "recall[&lt;cat&gt;]" in NONE._repr_html_()


def test_a_handful_of_labels_does_not_tell_what_they_are_worth():
    few = Estimates((replace(GOOD, labels=19),), "tradition")
    assert "<td>200</td>" in BOTH._repr_html_() and "<td>200</td>" not in few._repr_html_()
    assert shown_worth(200.4, 20) == 200.4 and math.isnan(shown_worth(200.4, 19))
    assert few[0].effective_labels == 200.4  # display alone


def test_a_frame_has_a_row_for_each_metric():
    pytest.importorskip("pandas")
    frame = BOTH.to_frame()
    assert frame["metric"].tolist() == ["accuracy", "recall[<cat>]"] and frame["high"][0] == 0.875


def test_a_notebook_shows_a_table_with_every_name_escaped():
    page = BOTH._repr_html_()
    assert page.startswith("<table><caption>intervals are about the items of this pool</caption><thead>")
    assert page.endswith("</tbody></table>")
    good = ("accuracy", "0.8125", "[0.7500, 0.8750] 95 % fixed-n", "160", "200", "")
    none = ("recall[&lt;cat&gt;]", "-", "", "0", "", "undefined: no label yet")
    for cells in (good, none):
        assert "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>" in page


@pytest.mark.parametrize(
    ("about", "words"),
    [("pool", "items of this pool"), ("future", "data like this pool"), ("source", "all rows that this pool is")],
)
def test_what_intervals_are_about_is_a_sentence(about, words):
    assert about_in_words(about).startswith("intervals are about") and words in about_in_words(about)


def test_values_stand_below_each_other_also_beside_a_long_name():
    values = [Estimate(name, 0.5, 0.4, 0.6, 0.95, 30) for name in ("accuracy", "accuracy@scanner=Philips Mobile")]
    first, second, _ = str(Estimates(tuple(values), "assured")).splitlines()
    assert first.index("0.5000") == second.index("0.5000") == len("accuracy@scanner=Philips Mobile") + 1
    assert str(values[0]) == f"{'accuracy':<24} 0.5000  [0.4000, 0.6000]"


def test_what_a_method_adds_is_ready_for_json_too():
    told = replace(BOTH, info={"share": math.nan, "count": np.int64(3), "rows": np.arange(2)})
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["info"] == {
        "share": None,
        "count": 3,
        "rows": [0, 1],
    }
