"""Performance without labels: features, corruptions, and a drop that is seen before anybody labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import altmas
from altmas.scenarios.corruptions import KINDS, SHARES, affected, kind_of, mixed
from altmas.scenarios.predict_performance import (
    Outputs,
    PerformancePredictor,
    Seen,
    Validator,
    checks_of,
    features,
    relative_drop,
    rows_of,
)


def probabilities(x):
    """A model that was made for three clouds on a line, and looks at the first of its two columns."""
    z = -((x[:, :1] - [-2.0, 0.0, 2.0]) ** 2)
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def clouds(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])  # a mirror image must not look the same
    return np.column_stack([2.0 * y - 2 + rng.normal(0, 0.7, n), rng.normal(0, 1, n)]), y


@pytest.fixture(scope="module")
def learned():
    return PerformancePredictor.fit(
        probabilities, *clouds(800, 0), metrics=["accuracy", "recall[1]"], repeats=8, progress=False
    )


# ---------------------------------------------------------------- features and checks


def test_features_are_21_percentiles_of_each_class_whatever_the_order_of_rows():
    scores = np.random.default_rng(0).dirichlet(np.ones(4), 300)
    seen = Seen(scores.argmax(1), scores, 4)
    row = features(seen)
    assert row.shape == (84,)
    assert (np.diff(row.reshape(4, 21), axis=1) >= 0).all()
    assert_allclose(features(seen.at(np.random.default_rng(1).permutation(300))), row)
    assert_allclose(row.reshape(4, 21)[:, [0, 10, 20]], np.quantile(scores, [0, 0.5, 1], axis=0).T)
    assert_allclose(features(Seen(np.array([0, 0, 2, 1]), None, 3)), [0.5, 0.25, 0.25])


def test_checks_compare_predictions_with_predictions():
    scores = np.random.default_rng(2).dirichlet(np.ones(3), 400)
    seen = Seen(scores.argmax(1), scores, 3)
    same, other = checks_of(seen, seen), checks_of(seen, seen.at(np.flatnonzero(scores[:, 0] > 0.3)))
    assert same.shape == (101 + 3 + 1,)
    assert_allclose(same[101:], 1)
    assert (other[[101, 104]] < 1e-6).all()
    one = Seen(np.zeros(9, int), None, 3)
    assert_allclose(checks_of(one, one)[101:], 1)


def test_relative_drops_of_undefined_and_zero_scores():
    assert relative_drop(0.6, 0.8) == pytest.approx(0.25)
    assert (relative_drop(np.nan, 0.8), relative_drop(0.3, 0.0), relative_drop(0.9, 0.8)) == (
        1,
        0,
        pytest.approx(-0.125),
    )


# ---------------------------------------------------------------- corruptions

DATA = {
    "table": np.random.default_rng(3).normal(5, 1, (200, 4)),
    "text": [f"the quick brown fox number {i} jumps over the lazy dog" for i in range(200)],
    "image": np.random.default_rng(4).integers(0, 256, (60, 8, 8)).astype(np.uint8),
}


@pytest.mark.parametrize("kind, corrupt", [(kind, one) for kind, group in KINDS.items() for one in group])
def test_a_corruption_changes_a_copy_of_about_the_share_of_rows(kind, corrupt):
    data = DATA[kind]
    before = np.array(data, copy=True)
    for share in SHARES:
        changed = np.asarray(corrupt(data, share, np.random.default_rng(1)))
        assert changed.shape == before.shape
        different = np.array([not np.array_equal(a, b) for a, b in zip(before, changed, strict=True)]).mean()
        assert share - 0.15 <= different <= share + 0.01 if share else different == 0
    assert_array_equal(np.asarray(data), before)


def test_each_kind_of_data_is_recognised_and_other_data_is_refused():
    pandas = pytest.importorskip("pandas")
    assert [kind_of(DATA[kind]) for kind in KINDS] == list(KINDS)
    assert kind_of(np.array(["a", "b"])) == "text" and kind_of(np.zeros((2, 4, 4, 3))) == "image"
    for other in (np.zeros(3), pandas.DataFrame({"a": [1.0], "b": ["x"]}), np.array([[{}]])):
        with pytest.raises(altmas.errors.PoolError, match="pass corruptions="):
            kind_of(other)


def test_missing_values_are_nan_only_where_the_data_has_some():
    data, rng = DATA["table"].copy(), np.random.default_rng(0)
    assert not np.isnan(KINDS["table"][0](data, 0.5, rng)).any()
    data[0, 0] = np.nan
    assert np.isnan(KINDS["table"][0](data, 0.5, rng)).sum() > 50


def test_a_mixture_takes_at_least_two():
    calls = []
    parts = [lambda data, share, rng, name=name: calls.append(name) or data for name in "abc"]
    for seed in range(10):
        calls.clear()
        mixed(parts)([1], 0.5, np.random.default_rng(seed))
        assert len(set(calls)) == len(calls) >= 2
    assert len(affected(200, 0.25, np.random.default_rng(0))) == 50


# ---------------------------------------------------------------- predictions


def test_unharmed_data_is_predicted_as_good_as_the_source_and_raises_no_alarm(learned):
    x, y = clouds(600, 7)
    found = learned(x)
    true = (probabilities(x).argmax(1) == y).mean()
    assert found["accuracy"].value == pytest.approx(true, abs=0.05)
    assert found["accuracy"].clean == pytest.approx(
        (probabilities(clouds(800, 0)[0]).argmax(1) == clouds(800, 0)[1]).mean()
    )
    assert not found.alarm and found.all_well > 0.5
    assert "no alarm" in str(found) and "recall[1]" in str(found)


@pytest.mark.parametrize("harm", [lambda x: x * [-1, 1], lambda x: x + np.random.default_rng(9).normal(0, 3, x.shape)])
def test_a_large_drop_is_predicted_and_raises_the_alarm(learned, harm):
    x, y = clouds(600, 8)
    x = np.where(np.arange(600)[:, None] < 420, harm(x), x)
    true = (probabilities(x).argmax(1) == y).mean()
    found = learned(x)
    assert found.alarm and found["accuracy"].value < found["accuracy"].clean - 0.1
    assert found["accuracy"].low <= true <= found["accuracy"].high


def test_it_cannot_leave_the_range_of_what_it_learned(learned):
    nonsense = learned.of_outputs(np.tile([0.0, 0.0, 1.0], (50, 1)))
    assert 0 <= nonsense["accuracy"].value <= learned.clean[0] + 0.06


def test_shares_of_zero_reproduce_the_clean_score_when_nothing_is_resampled():
    x, y = clouds(300, 1)
    still = PerformancePredictor.fit(
        probabilities, x, y, corruptions=[lambda data, share, rng: data], repeats=2, resample=False, progress=False
    )
    assert still.regressors[0].residuals == pytest.approx((0, 0), abs=1e-12)
    found = still(x)
    assert found["accuracy"].clean == (probabilities(x).argmax(1) == y).mean()
    assert found["accuracy"].value == pytest.approx(found["accuracy"].clean, abs=1e-12)
    assert found.all_well == 1  # every copy was well, so nothing else can be said


def test_hard_labels_are_enough_for_a_weak_prediction():
    names = np.array(["a", "b", "c"])
    x, y = clouds(500, 2)
    found = altmas.predict_performance(
        lambda x: names[probabilities(x).argmax(1)], x, names[y], np.zeros((50, 2)), repeats=3, progress=False
    )
    assert found["accuracy"].value < found["accuracy"].clean  # all answers are "b": the shares moved


def test_texts_go_through_a_model_of_texts():
    def model(texts):
        good = np.array([text.count("good") for text in texts])
        return np.column_stack([np.exp(-good), 1 - np.exp(-good)])

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    texts = ["a good and very good day" if one else "a plain day like any other" for one in y]
    found = altmas.predict_performance(
        model, texts, y, [text.replace("good", "g00d") for text in texts], progress=False
    )
    assert found["accuracy"].clean == 1
    assert found.alarm and found["accuracy"].value < 0.85


@pytest.mark.parametrize(
    "change, message",
    [
        ({"repeats": 0}, "repeats 0 is out of range"),
        ({"threshold": 1.0}, "threshold 1.0 is out of range"),
        ({"confidence": 2}, "confidence 2 is out of range"),
        ({"corruptions": []}, "corruptions is empty"),
        ({"classes": [0, 1]}, "3 scores for each input, and there are 2 classes"),
        ({"labels": [0, 1, 2]}, "labels has 3 entries, the model answered for 60"),
        ({"target": np.zeros((0, 2))}, "the model gave shape"),
        ({"corruptions": [lambda data, share, rng: data[:1]]}, "the model gave shape"),
        ({"corruptions": [lambda data, share, rng: data * np.nan]}, "not finite"),
        ({"metrics": "recal[1]"}, "did you mean 'recall\\[1\\]'"),
    ],
)
def test_what_cannot_be_predicted_is_refused(change, message):
    x, y = clouds(60, 3)
    given = {"model": probabilities, "source": x, "labels": y, "target": x, "repeats": 1, "progress": False} | change
    with pytest.raises(altmas.AltmasError, match=message):
        altmas.predict_performance(**given)


def test_rows_of_lists_arrays_and_frames():
    pandas = pytest.importorskip("pandas")
    rows = np.array([2, 0])
    assert rows_of(["a", "b", "c"], rows) == ["c", "a"]
    assert rows_of(np.arange(3), rows).tolist() == [2, 0]
    assert rows_of(pandas.DataFrame({"x": [5, 6, 7]}, index=list("abc")), rows)["x"].tolist() == [7, 5]


def test_outputs_know_their_classes_and_a_validator_of_one_kind_is_constant():
    outputs = Outputs.of(np.array(["x", "y"]), np.array(["x", "z"]), None)
    assert outputs.pool.classes == ("x", "y", "z")
    assert Validator.fit(np.zeros((4, 2)), np.zeros(4, bool), 0)(np.zeros(2)) == 0.0
