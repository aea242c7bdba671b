"""What a sceptic is told, and when."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import altmas
from altmas.history import History
from altmas.methods import Task
from altmas.methods.assured import Assured
from altmas.methods.assured.diagnostics import CalibrationBin, _warnings, diagnose
from altmas.metrics import metric_set
from altmas.simulate import label_until
from assured_world import constant_belief, difference, world, wrong_belief


def diagnosed(belief, labels: int = 120, skipped: int = 0):
    pool, truth = world()
    task, method = Task(pool, metric_set(["accuracy"], pool)), Assured(belief=belief)
    history = label_until(method, task, History(len(pool)), labels, 20, truth.__getitem__)
    rows = list(history.labels)[:skipped]
    kept = {row: code for row, code in history.labels.items() if row not in rows}
    history = History(len(pool), history.batches, kept, {row: "blurred" for row in rows})
    estimates = method.estimate(task, history)
    return SimpleNamespace(**estimates.info["diagnostics"]), estimates


def test_a_calibrated_belief_raises_no_alarm():
    found, _ = diagnosed(constant_belief)
    assert found.warnings == () and abs(found.calibration_z) < 3
    assert found.effective_sample == pytest.approx(120, rel=0.3) and found.largest_share < 0.1
    assert abs(found.random_share - found.difference) < 3 * found.random_share_error
    assert sum(one["labels"] for one in found.calibration) == 120 and found.skipped_share == 0


def test_a_belief_that_is_always_wrong_is_named():
    found, estimates = diagnosed(wrong_belief)
    assert found.calibration_z > 3
    assert any("right on more of the drawn points than the belief expected" in words for words in found.warnings)
    assert estimates.info["diagnostics"]["warnings"] == found.warnings


def test_skipped_points_are_a_share_with_bounds():
    found, estimates = diagnosed(constant_belief, skipped=12)
    assert 0.05 < found.skipped_share < 0.2
    assert estimates[0].note.startswith("12 of 120 points had no answer (10%); if the model is always wrong or always")


def test_without_labels_nothing_is_claimed():
    pool, _ = world(n=100)
    task, method = Task(pool, metric_set(["accuracy", "recall[0]"], pool)), Assured()
    found = method.estimate(task, History(100))
    assert all(np.isnan([one.value, one.low, one.high]).all() and one.note for one in found)
    assert {one.interval for one in found} == {"none"}


# ---------------------------------------------------------------- every figure by hand


def chosen(n: int = 200, drawn: int = 50, accuracy: float = 0.8, agree=0.8, chances=None):
    """A pool of which the first points were drawn; (diagnostics, right answers, chances, belief) of these."""
    pool, truth = world(n=n, accuracy=accuracy)
    chances = np.full(n, drawn / n) if chances is None else chances
    believed = np.broadcast_to(np.asarray(agree, float), n).copy()
    estimator = difference(pool, truth, np.arange(drawn), chances, believed)
    right = (truth == pool.predictions)[:drawn].astype(float)
    return diagnose(estimator), right, chances[:drawn], believed[:drawn], estimator


def test_calibration_is_what_was_believed_against_what_was_found():
    found, right, _, agree, _ = chosen(agree=np.linspace(0.99, 0.5, 200))
    expected = [(10, agree[part].mean(), right[part].mean()) for part in np.split(np.arange(50), 5)[::-1]]
    assert [(one.labels, one.believed, one.found) for one in found.calibration] == [
        (n, pytest.approx(a), pytest.approx(b)) for n, a, b in expected
    ]
    z = (right.sum() - agree.sum()) / np.sqrt((agree * (1 - agree)).sum())
    assert found.calibration_z == pytest.approx(z)
    assert len(chosen(drawn=25)[0].calibration) == 5 and chosen(drawn=24)[0].calibration == ()
    assert np.isnan(chosen(agree=1.0)[0].calibration_z)


def test_weights_alone_give_hajeks_share_and_its_error():
    chances = np.where(np.arange(200) % 2, 0.1, 0.4)
    found, right, p, _, estimator = chosen(chances=chances)
    expansion = (1 - p) / p * 150 / ((1 - p) / p).sum()
    weights = 1 + expansion
    share = (weights * right).sum() / weights.sum()
    error = np.sqrt(((1 - p) * weights**2 * (right - share) ** 2).sum() * 50 / 49) / weights.sum()
    assert found.random_share == pytest.approx(share) and found.random_share_error == pytest.approx(error)
    assert found.largest_share == pytest.approx(weights.max() / weights.sum())
    assert found.effective_sample == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.difference == pytest.approx(np.trace(estimator.table) / 200)
    assert np.isnan(chosen(drawn=1)[0].random_share)
    two = chosen(drawn=2)[0]
    assert not np.isnan(two.random_share)


def test_the_hajek_error_is_that_of_the_textbook_for_equal_weights():
    found, right, *_ = chosen()
    assert found.random_share == pytest.approx(right.mean())
    assert found.random_share_error == pytest.approx(np.sqrt((1 - 50 / 200) * right.var(ddof=1) / 50))


@pytest.mark.parametrize("agree, direction", [(0.3, "more"), (0.99, "fewer")])
def test_the_warning_about_calibration_says_in_which_direction(agree, direction):
    found, *_ = chosen(agree=agree)
    (words,) = (one for one in found.warnings if "than the belief expected" in one)
    assert words.startswith(f"The model was right on {direction} of the drawn points than the belief expected (")
    assert f"({abs(found.calibration_z):.1f} standard deviations)" in words and abs(found.calibration_z) > 3


def test_no_warning_within_three_standard_deviations():
    calibrated, right, *_ = chosen()
    share = right.mean()
    for z, warned in ((2.9, False), (3.1, True)):
        # a belief with (right - agree) sqrt(n / (agree (1 - agree))) = z
        agree = min(np.linspace(0.01, share, 4000), key=lambda a: abs((share - a) * np.sqrt(50 / (a * (1 - a))) - z))
        found, *_ = chosen(agree=agree)
        assert found.calibration_z == pytest.approx(z, abs=0.02)
        assert any("than the belief expected" in one for one in found.warnings) == warned


def test_exactly_three_standard_deviations_are_no_alarm():
    """27 of 36 right where 18 were expected, with a standard deviation of 3."""
    pool, truth = world(n=200)
    right = np.arange(200) < 27
    truth = np.where(right, pool.predictions, (pool.predictions + 1) % 3)
    found = diagnose(difference(pool, truth, np.arange(36), np.full(200, 36 / 200), np.full(200, 0.5)))
    assert found.calibration_z == 3 and not any("than the belief expected" in one for one in found.warnings)


@pytest.mark.parametrize("drawn", [20, 30, 49, 50, 70])
def test_rounding_is_no_disagreement(drawn):
    """Every label is right, so both answers are 1 up to rounding and the error of the plainer one is 0."""
    pool, _ = world(n=200)
    for agree in (0.7, 0.9, 0.97):
        found = diagnose(
            difference(pool, pool.predictions, np.arange(drawn), np.full(200, drawn / 200), np.full(200, agree))
        )
        assert found.random_share_error == pytest.approx(0, abs=1e-12) and found.difference == pytest.approx(1)
        assert not any("sampling weights alone" in one for one in found.warnings)


def test_without_an_error_among_the_labels_small_differences_are_no_disagreement():
    """The plainer answer is exactly 1 with an error of 0, and the belief's differs in the third digit."""
    pool, _ = world(n=200)
    agree = np.linspace(0.9, 0.99, 200)
    found = diagnose(difference(pool, pool.predictions, np.arange(50), np.full(200, 0.25), agree))
    assert found.random_share_error == pytest.approx(0, abs=1e-12) and 0.001 < abs(found.difference - 1) < 3 / 50
    assert not any("sampling weights alone" in one for one in found.warnings)


def test_labels_beyond_an_item_without_an_answer_are_pointed_out():
    pool, truth = world(n=300)
    session = altmas.Session.create(None, pool, seed=2)
    asked = session.ask(30)
    for query in asked[:12] + asked[13:]:
        session.tell(query.id, int(truth[query.index]))

    def words() -> list[str]:
        return [one for one in session.estimate().info["diagnostics"]["warnings"] if "have no answer" in one]

    assert "17 of 29 drawn labels" in words()[0]
    session.tell(asked[12].id, int(truth[asked[12].index]))
    session.ask(20)  # what merely waits is nothing to worry about
    assert words() == []


def test_answers_further_apart_than_chance_explains_are_pointed_out():
    """The belief is sure of labels that lie where nobody looked; weights alone say the opposite."""
    chances = np.full(200, 0.25)
    pool, truth = world(n=200)
    truth = np.where(np.arange(200) < 50, pool.predictions, truth)  # all drawn ones are right
    truth[0] = (truth[0] + 1) % 3  # but one
    agree = np.where(np.arange(200) < 50, 0.97, 0.05)
    found = diagnose(difference(pool, truth, np.arange(50), chances, agree))
    gap = abs(found.random_share - found.difference)
    assert gap > 3 * found.random_share_error
    (words,) = (one for one in found.warnings if "sampling weights alone" in one)
    assert f"alone is {found.random_share:.3f}, with the belief {found.difference:.3f}" in words
    assert not any("sampling weights alone" in one for one in chosen()[0].warnings)


def test_a_few_heavy_labels_are_pointed_out():
    heavy = np.where(np.arange(200) < 3, 0.002, 0.95)
    found, *_ = chosen(chances=heavy)
    assert found.effective_sample < 50 / 4
    (words,) = (one for one in found.warnings if "carry most of the weight" in one)
    assert f"(50 labels weigh like {found.effective_sample:.0f} equal ones)" in words
    assert not any("carry most" in one for one in chosen()[0].warnings)
    for count, warned in ((7, True), (8, False), (16, False)):  # worth 11.4, 12.8 and 22.8 of 50: a quarter is 12.5
        several, *_ = chosen(chances=np.where(np.arange(200) < count, 0.01, 0.9))
        assert any("carry most" in one for one in several.warnings) == warned == (several.effective_sample < 50 / 4)


def test_the_skipped_share_is_weighted_as_labels_are():
    pool, truth = world(n=200)
    chances = np.where(np.arange(200) % 2, 0.1, 0.4)
    whole = difference(pool, truth, np.arange(50), chances, np.full(200, 0.8))
    skipped = np.array([0, 1, 3])
    found = diagnose(replace(whole, skipped=skipped))
    weights = 1 / chances[:50]
    assert found.skipped_share == pytest.approx(weights[skipped].sum() / weights.sum())
    assert diagnose(whole).skipped_share == 0


def test_a_set_of_one_point_has_its_own_share():
    pool, truth = world(n=200)
    whole = difference(pool, truth, np.arange(50), np.full(200, 0.25), np.full(200, 0.8))
    one = replace(whole, inside=np.arange(200) == 3)
    assert diagnose(one).difference == pytest.approx(float(truth[3] == pool.predictions[3]))


def test_figures_are_plain_values():
    found, *_ = chosen()
    values = found.to_dict()
    assert values["random_share"] == found.random_share and values["calibration"][0]["labels"] == 10


def test_one_fifth_of_the_labels_that_the_belief_gets_wrong_is_pointed_out():
    """Errors in both directions cancel in the sum over all labels; the least and the most trusted fifth show them."""
    believed, found = [0.2, 0.5, 0.5, 0.5, 0.8], [0.5, 0.5, 0.5, 0.5, 0.3]
    bins = tuple(CalibrationBin(10, b, f) for b, f in zip(believed, found, strict=True))
    assert bins[-1].z == pytest.approx(-0.5 / np.sqrt(0.8 * 0.2 / 10)) and bins[1].z == 0
    figures = {"calibration": bins, "calibration_z": -1.0, "random_share": 0.5, "difference": 0.5}
    figures |= {"random_share_error": 0.1, "effective_sample": 50.0}
    (words,) = _warnings(figures, 50, 0, 50, "labels")
    assert words.startswith("Of 10 drawn points for which the belief expected 80% right, 30% were")
    assert _warnings(figures | {"calibration": bins[1:4]}, 50, 0, 50, "labels") == []
    assert _warnings(figures | {"calibration": ()}, 50, 0, 50, "labels") == []
