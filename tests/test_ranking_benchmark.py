"""The rival in the benchmark of rankings follows the published rule."""

import numpy as np
import pytest

from benchmarks.ranking import EPSILON, Models, expected_entropy, model_selector_order, with_earlier


def slow_entropy(p, odds, answers, n_classes):
    """Mean over the classes of the entropy of P(best) after that label, by loops."""
    found = []
    for row in answers:
        total = 0.0
        for label in range(n_classes):
            after = np.array([chance * (odds if said == label else 1.0) for chance, said in zip(p, row, strict=True)])
            after /= after.sum()
            total += -(after * np.log(after)).sum() / n_classes
        found.append(total)
    return np.array(found)


def test_the_expected_entropy_is_that_of_loops():
    rng = np.random.default_rng(0)
    answers, p = rng.integers(0, 3, (20, 5)), rng.dirichlet(np.ones(5))
    says = np.stack([answers == c for c in range(3)], axis=1).reshape(-1, 5).astype(np.float32)
    assert expected_entropy(p, 1.2, says, 3) == pytest.approx(slow_entropy(p, 1.2, answers, 3), abs=1e-5)


def test_points_on_which_all_models_agree_come_last():
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 2, (300, 4))
    answers[:250] = answers[:250, :1]
    differ = (answers != answers[:, :1]).any(1)
    order = model_selector_order(Models("emotion", answers, rng.integers(0, 2, 300), None), rng)
    assert len(order) == len(set(order.tolist())) == 200
    assert differ[order[: differ.sum()]].all() and not differ[order[differ.sum() :]].any()
    assert 0 < EPSILON["emotion"] < 0.5


def test_rows_whose_runs_are_not_at_hand_stay():
    row = {"pool": "pacs", "way": "random", "labels": 25, "runs": 3}
    other = row | {"way": "assured"}
    assert with_earlier([row], [row | {"runs": 9}, other]) == [row, other]
