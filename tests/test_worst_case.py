"""Worst cases: the bandit to its printed digits, the process against theory, and known worst scenarios found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import altmas
from altmas.scenarios.bandit import exploration, play_probabilities, rewarded
from altmas.scenarios.gaussian_process import GaussianProcess, highest, kernel
from altmas.scenarios.worst_case import Range, TransformationSearch, embedding


def test_the_share_of_exploration_to_its_printed_digits():
    assert exploration(10, 500) == pytest.approx(0.20050, abs=5e-6)
    assert exploration(10, 100) == pytest.approx(0.44834, abs=5e-6)
    assert exploration(10, 20) == 1 > exploration(10, 21)  # below 1 from T = 20.1 on
    assert exploration(1, 10) == 0
    assert exploration(2, 0) == 1


def test_one_step_of_the_bandit_to_its_printed_digits():
    log_weights = np.zeros(3)
    p = play_probabilities(log_weights, 0.2)
    after = rewarded(log_weights, 1, 0.6, float(p[1]), 0.2)
    assert np.exp(after[1]) == pytest.approx(1.12750, abs=5e-6)
    assert_allclose(play_probabilities(after, 0.2), [0.32246, 0.35508, 0.32246], atol=5e-6)


def test_long_runs_do_not_overflow():
    log_weights = np.zeros(3)
    for _ in range(20_000):
        p = play_probabilities(log_weights, 0.3)
        log_weights = rewarded(log_weights, 2, 1.0, float(p[2]), 0.3)
    assert log_weights[2] > 710  # exp of this is more than a float can hold
    assert_allclose(play_probabilities(log_weights, 0.3), [0.1, 0.1, 0.8])


def test_the_process_passes_through_what_it_saw_and_doubts_the_rest():
    x = np.linspace(0, 1, 8)[:, None]
    process = GaussianProcess.fit(x, np.sin(4 * x[:, 0]))
    mean, sd = process(x)
    assert_allclose(mean, np.sin(4 * x[:, 0]), atol=0.02)
    assert sd.max() < 0.05 < process(np.array([[3.0]]))[1][0]
    between = np.array([[0.5]])
    assert process(between)[0] == pytest.approx(np.sin(2.0), abs=0.05)
    assert (process.upper(between) >= process(between)[0]).all()


def test_the_process_is_the_conditional_normal_distribution():
    x, y = np.array([[0.1], [0.5], [0.6]]), np.array([0.0, 1.0, 0.2])
    process = GaussianProcess.fit(x, y)
    noisy = process.factor @ process.factor.T
    across = kernel(x, np.array([[0.3]]), process.length)[:, 0]
    level = np.linalg.solve(noisy, y).sum() / np.linalg.inv(noisy).sum()
    mean, sd = process(np.array([[0.3]]))
    assert mean[0] == pytest.approx(level + across @ np.linalg.solve(noisy, y - level))
    assert sd[0] ** 2 == pytest.approx(process.variance * (1 - across @ np.linalg.solve(noisy, across)))


def test_equal_values_leave_doubt():
    process = GaussianProcess.fit(np.random.default_rng(0).random((5, 2)), np.zeros(5))
    assert process(np.array([[5.0, 5.0]]))[1][0] > 0.1


def test_the_highest_place_of_a_known_function_is_found():
    target = np.array([0.23, 0.77, 0.5])
    found = highest(lambda x: -((x - target) ** 2).sum(1), 3, np.random.default_rng(0))
    assert_allclose(found, target, atol=0.02)


# ---------------------------------------------------------------- transformations


def turned(x, angle):
    a = np.deg2rad(angle)
    return x @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def plane():
    """Class "right" lies around (2, 0), "left" around (-1, 0), so "left" errs first when points are pushed right."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 0.5, (200, 2)) + np.repeat([[2.0, 0.0], [-1.0, 0.0]], 100, axis=0)
    return x, np.repeat(["right", "left"], 100)


def says(x):
    return np.where(x[:, 0] > 0, "right", "left")


def test_a_half_turn_is_the_worst_rotation():
    x, y = plane()
    turns = altmas.Transformations(says, x, y, turned, {"angle": Range(0, 360, periodic=True)})
    found = altmas.worst_case(turns, budget=40, progress=False)
    assert found.worst.error > 0.97 and abs(found.worst.at["angle"] - 180) < 70
    assert len(found.looks) == 40 == sum(one.looked for one in found.scenarios)
    assert {one.of_class for one in found.scenarios} == {"left", "right"}
    assert found.worst.low <= found.worst.error <= found.worst.high + 0.1
    assert "error" in str(found) and "angle" in str(found)


def test_the_weaker_class_is_played_more_and_every_seed_gives_the_same_search():
    x, y = plane()
    pushes = altmas.Transformations(says, x, y, lambda x, by: x + [by, 0], {"by": (0, 3)})
    found = altmas.worst_case(pushes, budget=60, seed=1, progress=False)
    looked = {one.of_class: one.looked for one in found.scenarios}
    assert found.worst.of_class == "left" and found.worst.error == 1 and looked["left"] > looked["right"]
    assert found.worst.at["by"] > 2
    assert altmas.worst_case(pushes, budget=60, seed=1, progress=False).looks == found.looks


def test_one_class_alone_is_plain_optimisation_that_beats_random_looks():
    """Mean over 5 seeds of the highest value of a narrow bump after 30 looks."""
    x, y = np.zeros((100, 1)), np.zeros(100, int)

    def bumped(inputs, a, b):
        rate = np.exp(-((a - 0.3) ** 2 + (b - 0.8) ** 2) / 0.02)
        return np.where(np.arange(100) < 100 * rate, 1.0, 0.0)[:, None]

    best, random = [], []
    for seed in range(5):
        bump = altmas.Transformations(lambda z: z[:, 0].astype(int), x, y, bumped, {"a": (0, 1), "b": (0, 1)})
        found = altmas.worst_case(bump, budget=30, seed=seed, progress=False)
        best.append(found.worst.error)
        assert found.worst.error == max(error for _, _, error in found.looks)
        places = np.random.default_rng(seed).random((30, 2))
        random.append(max(float(bumped(x, *place).mean()) for place in places))
    assert np.mean(best) > 0.9 > np.mean(random)


def test_an_angle_closes_its_circle():
    x, y = plane()
    turns = altmas.Transformations(says, x, y, turned, {"angle": Range(0, 360, periodic=True), "by": (0, 1)})
    search = TransformationSearch(turns, np.random.default_rng(0))
    ends = search.coordinates(np.array([[0.0, 0.5], [1.0, 0.5], [0.01, 0.5]]))
    assert_allclose(ends[0], ends[1], atol=1e-12)
    assert np.linalg.norm(ends[2] - ends[0]) == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"space": {}}, "space is empty"),
        ({"space": {"angle": (3, 1)}}, r"space\['angle'\]: 3 to 1 is no range"),
        ({"classes": ["up"]}, "classes 'up' have no input; labels hold 'left', 'right'"),
        ({"labels": ["left"]}, "labels has 1 entries, inputs has 200"),
        ({"predict": lambda x: says(x)[:1]}, r"predict gave shape \(1,\)"),
    ],
)
def test_what_cannot_be_searched_is_refused(change, message):
    x, y = plane()
    given = {"predict": says, "inputs": x, "labels": y, "transform": turned, "space": {"angle": (0, 360)}} | change
    with pytest.raises(altmas.AltmasError, match=message):
        altmas.worst_case(altmas.Transformations(**given), budget=5, progress=False)


# ---------------------------------------------------------------- regions of a pool


def pool_with_a_bad_corner():
    rng = np.random.default_rng(1)
    x = rng.random((600, 2)) * [1.5, 1.0]
    truth = (rng.random(600) < 0.5).astype(int)
    bad = (x[:, 0] > 1.1) & (x[:, 1] > 0.6)
    truth[bad] = rng.random(bad.sum()) < 0.1
    predictions = np.where(bad, 1, truth)  # calls everything 1 in the corner, where nearly all is 0
    names = [f"p{i}" for i in range(600)]
    return altmas.Pool(x, predictions, classes=[0, 1], ids=names), truth, bad


def test_the_bad_corner_of_a_pool_is_found_with_few_labels():
    pool, truth, bad = pool_with_a_bad_corner()
    asked = []

    def oracle(name):
        asked.append(name)
        return None if name == asked[0] else int(truth[pool.index(name)])

    found = altmas.worst_case(pool, oracle=oracle, budget=100, progress=False)
    assert len(asked) == len(set(asked)) == 100
    rows = [pool.index(name) for name in found.worst.points]
    assert found.worst.of_class == 1 and found.worst.error > 0.4
    assert bad[rows].mean() > 0.8 > 0.2 > bad.mean()
    assert found.worst.low < found.worst.error <= found.worst.high
    assert "points" in str(found.worst)


def test_a_small_pool_is_asked_to_its_end_and_no_further():
    pool = altmas.Pool(np.arange(12.0)[:, None], [0, 1] * 6, classes=[0, 1])
    asked = []
    found = altmas.worst_case(pool, oracle=lambda id: asked.append(id) or 0, budget=50, progress=False)
    assert sorted(asked) == list(range(12))
    assert found.worst.of_class == 1 and found.worst.error > 0.9


def test_a_pool_needs_features_an_oracle_and_few_dimensions():
    pool, _, _ = pool_with_a_bad_corner()
    for where, options, message in (
        (altmas.Pool(None, [0, 1]), {"oracle": str}, "has no features"),
        (pool, {}, "needs an oracle"),
        (pool, {"oracle": str, "dimensions": 9}, "dimensions 9 is out of range"),
        (pool, {"oracle": str, "budget": 0}, "budget 0 is out of range"),
        (pool, {"oracle": lambda id: None, "budget": 3}, "gave no label for any point"),
    ):
        with pytest.raises(altmas.AltmasError, match=message):
            altmas.worst_case(where, **options, progress=False)


def test_an_embedding_is_uniform_in_every_direction():
    x = np.random.default_rng(0).normal(size=(500, 6)) ** 3
    places = embedding(x, 3)
    assert places.shape == (500, 3)
    assert_allclose(np.sort(places, axis=0), np.tile((np.arange(500) + 0.5) / 500, (3, 1)).T)
