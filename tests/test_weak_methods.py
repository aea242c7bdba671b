"""The tables of docs/methods.md are those of the committed files, and what they are made of is right."""

import numpy as np
import pytest

from benchmarks import curve_bands, weak_methods
from benchmarks.store import read_csv


@pytest.mark.parametrize(
    ("file", "table"),
    [
        (weak_methods.TABLE, weak_methods.before_after),
        (weak_methods.EXACT, weak_methods.exact_table),
        (curve_bands.TABLE, curve_bands.table),
    ],
)
def test_the_page_shows_the_committed_tables(file, table):
    rows = read_csv(file)
    assert rows and table(rows) in weak_methods.PAGE.read_text(encoding="utf-8")


def test_a_summary_counts_what_is_defined():
    """Errors of 0.1 and -0.3; the first interval holds 0.5, the second does not; random sampling errs by 0.2."""
    found = np.array([[0.6, 0.4, 0.8], [0.2, 0.1, 0.3], [np.nan, np.nan, np.nan]])
    said = weak_methods.summary(found, 0.5, 0.2)
    assert (said["runs"], said["undefined"], said["coverage"]) == (3, 1, 0.5)
    assert said["bias"] == pytest.approx(-0.1) and said["rmse"] == pytest.approx(np.sqrt(0.05), abs=1e-6)
    assert said["label_value"] == pytest.approx(0.8) and said["width"] == pytest.approx(0.3)
    assert weak_methods.summary(found, 0.5, float("nan"))["label_value"] is None


def test_made_pools_are_what_their_names_say():
    normal, saturated = (weak_methods.made(name) for name in ("made-normal", "made-saturated"))
    assert (normal.truth == saturated.truth).all() and (normal.predictions == saturated.predictions).all()
    piled = np.isin(saturated.scores[:, 1], [0, 1]).mean()
    assert 0.3 < piled < 0.5 and not np.isin(normal.scores[:, 1], [0, 1]).any()
    hidden = weak_methods.made("made-hidden")
    assert hidden.truth.sum() == 60 and (hidden.truth & ~hidden.predictions & 1).sum() >= 23


def test_a_band_covers_where_the_truth_is_inside_it():
    found = np.array([[0.5, 0.4, 0.6], [0.9, 0.8, 1.0], [np.nan, np.nan, np.nan]])
    row = curve_bands._row("pool", "assured", "recall", "0.5", 0.55, found)
    assert (row["coverage"], row["undefined"], row["width"]) == (0.5, 1, pytest.approx(0.2))
