"""Two games in one: the same by loops, false alarms are rare, and fewer labels than intervals that must not overlap."""

import math
from dataclasses import replace

import numpy as np
import pytest

import altmas
from altmas.guarantee import Stage, horizons, interval, log_capital, terms
from altmas.guarantee_pair import AIM, Game, _Pair, shown_apart
from altmas.monitoring import error_against, error_of_wave
from altmas.ratios import OPEN, table_ratio
from growing_world import label, truth_and_pool


def game(right, labels, rng, number=0):
    """A game about the share of right ones among N points, from a uniform random sample of them."""
    n = len(right)
    ratio = table_ratio(np.array([[0.0, 1.0]]), np.ones((1, 2)), np.zeros(n, np.int64))
    belief = ratio.belief(np.tile([0.2, 0.8], (n, 1)))
    drawn = rng.permutation(n)[:labels]
    stage = Stage(np.full(n, OPEN), np.ones(n), belief, drawn, ratio.outcomes(right.astype(np.int64))[drawn])
    return Game(ratio.ratio, [stage], (number,))


def world(accuracy, n=300):
    return np.arange(n) < round(accuracy * n)


def slow_evidence(first, second, q, margin, error, budget):
    """log E of (G12) at one candidate, moment by moment; the largest."""
    paths = []
    for one, at, side in ((first, q, 0), (second, q - margin, 1)):
        (stage,) = one.stages
        ends, shares = horizons(budget, len(one.ratio.kind))
        path = log_capital(terms(one.ratio, [stage], np.array([at])), AIM * error, ends, shares)[:, side, 0]
        paths.append([0.0, *path.tolist()])
    moments = [(one, 0) for one in range(len(paths[0]))] + [(len(paths[0]) - 1, two) for two in range(len(paths[1]))]
    found = []
    for one, two in moments:
        a, b = math.exp(paths[0][one]), math.exp(paths[1][two])
        found.append(math.log(a * b / 2 + (a + b) / 4))
    return max(found)


def test_the_evidence_is_that_of_a_loop_over_moments():
    rng = np.random.default_rng(0)
    first, second = game(world(0.9), 60, rng), game(world(0.6), 50, rng, 1)
    pair = _Pair(first, second, 0.05, 0.01, 60, 1.0)
    candidates = np.linspace(0.55, 0.95, 9)
    expected = [slow_evidence(first, second, q, 0.05, 0.01, 60) for q in candidates]
    found, cells = pair.evidence(candidates)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (cells <= np.minimum(found[:-1], found[1:]) + 1e-9).all()


@pytest.mark.parametrize("which", [0, 1])
def test_a_sequence_about_both_may_count_for_one_of_them_alone(which):
    """A label that had been volunteered in one wave is taken back: its draws count no more, those of the other do."""
    rng = np.random.default_rng(1)
    games = [game(world(0.9), 60, rng), game(world(0.3), 60, rng)]
    (stage,) = games[which].stages
    games[which] = replace(games[which], stages=[replace(stage, drawn=stage.drawn[:0], outcomes=stage.outcomes[:0])])
    pair = _Pair(*games, 0.0, 0.05, 60, 1.0)
    assert [steps[-1] for steps in pair._steps()] == [0 if place == which else 60 for place in (0, 1)]
    assert not shown_apart(*games, margin=0.0, error=0.05, budget=60)


def test_a_wave_of_which_a_label_was_taken_back_is_watched_all_the_same():
    truth, pools = truth_and_pool(3)
    session = altmas.Session.create(None, pools[0], seed=3)
    label(session, truth, 30)
    session.extend(pools[1], wave="w1", first_wave="w0")
    session.tell("1-7", truth[307])
    label(session, truth, 60)
    session.adjudicate("1-7", truth[307])
    session.undo()
    while session.history.known[307] >= 0:
        session.undo()
    label(session, truth, 60)
    assert session.monitor().answer in ("no drop", "cannot tell")


@pytest.mark.parametrize(
    ("better", "pairs"),
    [("higher", 30), *(pytest.param(better, 300, marks=pytest.mark.slow) for better in ("higher", "lower"))],
)
def test_alarms_are_seldom_false_where_both_are_alike(better, pairs):
    """At an error of 0.1; 0.1 and three standard errors."""
    false = 0
    for seed in range(pairs):
        rng = np.random.default_rng([seed, 7])
        games = game(world(0.8), 120, rng), game(world(0.8), 120, rng, 1)
        false += shown_apart(*games, margin=0.0, error=0.1, budget=120, better=better)
    assert false / pairs <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / pairs)


@pytest.mark.slow
def test_a_difference_is_shown_with_fewer_labels_than_by_intervals_that_do_not_overlap():
    error, together, apart = error_against(0.05, 2, 1), [], []
    for seed in range(2):
        needed = {}
        for labels in range(60, 301, 40):
            rng = np.random.default_rng([seed, 8])
            games = game(world(0.85), 200, rng), game(world(0.65), labels, rng, 1)
            if "pair" not in needed and shown_apart(*games, margin=0.0, error=error, budget=200):
                needed["pair"] = labels
            ends = [
                interval(one.ratio, one.stages, confidence=1 - error_of_wave(0.05, wave), budget=200)
                for wave, one in enumerate(games, start=1)
            ]
            if "intervals" not in needed and ends[1][1] < ends[0][0]:
                needed["intervals"] = labels
        together.append(needed.get("pair", 320))
        apart.append(needed.get("intervals", 320))
    assert np.mean(together) < 0.9 * np.mean(apart)


def test_margin_and_direction():
    rng = np.random.default_rng(1)
    first, second = game(world(0.9), 250, rng), game(world(0.5), 250, rng, 1)
    told = {"error": 0.01, "budget": 250}
    assert shown_apart(first, second, margin=0.2, **told) and not shown_apart(first, second, margin=0.45, **told)
    assert not shown_apart(second, first, margin=0.0, **told)
    assert shown_apart(second, first, margin=0.2, better="lower", **told)
    assert not shown_apart(first, second, margin=0.0, better="lower", **told)


def test_draws_that_are_about_both_are_averaged():
    rng = np.random.default_rng(2)
    first, second = game(world(0.9), 60, rng), game(world(0.5), 60, rng)
    q = np.array([0.7])
    pair = _Pair(first, second, 0.0, 0.01, 60, 1.0)
    paths = [pair._paths(one, q, side)[:, 0] for side, one in enumerate((first, second))]
    expected = (np.logaddexp(*paths) - math.log(2)).max()
    assert not pair.apart and pair.evidence(np.array([0.7, 0.7]))[0][0] == pytest.approx(expected)


def test_the_errors_of_all_comparisons_of_a_wave_add_up_to_its_own():
    for wave in (3, 4, 9):
        pairs = [(wave, other) for other in range(1, wave)]
        both_ways = [*pairs, *((other, wave) for wave, other in pairs)]
        assert sum(error_against(0.05, *pair) for pair in both_ways) <= error_of_wave(0.05, wave) * (1 + 1e-12)
    there, back = error_against(0.05, 2, 1), error_against(0.05, 1, 2)
    assert there + back == pytest.approx(error_of_wave(0.05, 2) / 2) and there == pytest.approx(9 * back)


def test_a_session_without_a_budget_of_waves_is_monitored_too():
    """Draws of `tradition` are about all waves at once."""
    truth, pools = truth_and_pool(5, (80, 80), (0.95, 0.2))
    session = altmas.Session.create(None, pools[0], method="tradition")
    label(session, truth, 60)
    session.extend(pools[1], wave="w1", first_wave="w0")
    label(session, truth, 90)
    assert session.monitor().answer == "drop" and session.monitor(against="w1")[0].answer == "no drop"


@pytest.mark.filterwarnings("error")
def test_a_class_that_nobody_met_shows_nothing():
    """Recall of a class that is believed impossible and was never seen: its terms are all 0."""
    n, rng = 100, np.random.default_rng(3)
    ratio = table_ratio(np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 1.0]]), np.zeros(n, np.int64))
    belief, drawn = ratio.belief(np.tile([1.0, 0.0], (n, 1))), rng.permutation(n)[:40]
    stage = Stage(np.full(n, OPEN), np.ones(n), belief, drawn, ratio.outcomes(np.zeros(n, np.int64))[drawn])
    unseen, seen = Game(ratio.ratio, [stage], (0,)), game(world(0.2, n), 60, rng, 1)
    for better in ("higher", "lower"):
        assert not shown_apart(unseen, unseen, margin=0.0, error=0.01, budget=40, better=better)
    assert not shown_apart(unseen, seen, margin=0.0, error=0.01, budget=40)
