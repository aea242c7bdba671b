"""Labels, tables and metrics under the belief of a surrogate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altmas.methods.paper.posterior import (
    Posterior,
    expected_counts,
    hard_labels,
    mean_over_draws,
    sampled_labels,
    small_integers,
    tables_of_labels,
)
from altmas.metrics import metric_set, table_of
from altmas.pool import Pool


def random_probs(seed=0, draws=5, n=40, n_classes=4):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.5), (draws, n)).astype(np.float32)


def counted(probs):
    """A source of probabilities and the list of the rows it was asked for."""
    asked = []

    def probabilities(rows):
        asked.append((rows.start, rows.stop))
        return probs[:, rows].copy()

    return probabilities, asked


def test_chunks_cover_the_pool_in_order_and_pin_what_is_known():
    probs = random_probs(n=20_000, draws=3)
    known = np.full(20_000, -1)
    known[[0, 4095, 4096, 19_999]] = [3, 1, 0, 2]
    source, asked = counted(probs)
    found = np.concatenate([chunk for _, chunk in Posterior(source, known, 3, 4)], axis=1)
    expected = probs.copy()
    expected[:, known >= 0] = np.eye(4)[known[known >= 0]]
    assert_array_equal(found, expected)
    assert len(asked) > 3


@pytest.mark.parametrize("keep, looks", [(10**9, 1), (0, 2)])
def test_a_second_look_is_free_for_small_pools_and_repeats_the_work_for_large_ones(keep, looks):
    probs = random_probs(n=3000)
    source, asked = counted(probs)
    posterior = Posterior(source, np.full(3000, -1), 5, 4, keep)
    first, second = (np.concatenate([chunk for _, chunk in posterior], axis=1) for _ in range(2))
    assert_array_equal(first, second)
    assert len(asked) == looks * len(set(asked))


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    probs = random_probs(n=30_000)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("ALTMAS_THREADS", threads)
        source, _ = counted(probs)
        posterior = Posterior(source, np.full(30_000, -1), 5, 4)
        found.append([chunk.sum() for _, chunk in posterior])
    assert found[0] == found[1]


def test_a_failing_source_is_heard():
    def broken(rows):
        raise RuntimeError("no such features")

    with pytest.raises(RuntimeError, match="no such features"):
        list(Posterior(broken, np.full(10, -1), 2, 2))


@pytest.mark.parametrize("n_classes, kind", [(2, np.uint8), (256, np.uint8), (257, np.uint16), (70_000, np.uint32)])
def test_labels_take_the_smallest_integers_that_hold_them(n_classes, kind):
    assert small_integers(n_classes) is kind


def test_hard_labels_are_the_first_most_probable_ones():
    probs = random_probs()
    probs[0, 0] = [0.1, 0.4, 0.4, 0.1]
    assert_array_equal(hard_labels(probs), probs.argmax(-1))
    transposed = np.ascontiguousarray(probs.transpose(0, 2, 1)).transpose(0, 2, 1)  # as the networks deliver it
    assert_array_equal(hard_labels(transposed), probs.argmax(-1))


def test_sampled_labels_follow_the_probabilities_and_leave_known_labels_alone():
    probs = np.broadcast_to(np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]], np.float32), (20_000, 2, 3))
    labels = sampled_labels(probs, np.random.default_rng(0))
    shares = np.bincount(labels[:, 0], minlength=3) / 20_000
    assert_allclose(shares, [0.2, 0.5, 0.3], atol=5 * np.sqrt(0.25 / 20_000))
    assert (labels[:, 1] == 2).all()


def test_tables_count_predictions_against_labels():
    rng = np.random.default_rng(1)
    a, labels = rng.integers(0, 3, 30), rng.integers(0, 3, (4, 30)).astype(np.uint8)
    members = rng.random(30) < 0.5
    for where in (None, members):
        chosen = slice(None) if where is None else where
        expected = [table_of(a[chosen], one[chosen].astype(int), 3) for one in labels]
        assert_array_equal(tables_of_labels(labels, a, 3, where), expected)


def test_expected_counts_are_the_mean_of_sampled_tables():
    probs, rng = random_probs(n=25, draws=1, n_classes=3), np.random.default_rng(2)
    a = rng.integers(0, 2, 25)  # class 2 is never predicted
    members = rng.random(25) < 0.7
    many = sampled_labels(np.broadcast_to(probs, (20_000, 25, 3)), rng)
    for where in (None, members):
        expected = expected_counts(probs, a, where)
        assert_allclose(expected[0].sum(), 25 if where is None else members.sum(), rtol=1e-6)
        assert_allclose(tables_of_labels(many, a, 3, where).mean(0), expected[0], atol=0.1)
    assert_array_equal(expected_counts(probs, a, np.zeros(25, bool)), np.zeros((1, 3, 3)))


def test_fixture_2_to_its_printed_digits():
    """A.11, item 7: estimates over two draws."""
    a = np.array([0, 0, 1, 1, 0, 1])
    labels = np.array([[0, 1, 1, 1, 0, 1], [0, 0, 1, 0, 0, 1]])
    pool = Pool(None, a, classes=[0, 1])
    tables = tables_of_labels(labels, a, 2)
    found = [
        mean_over_draws(metric, tables).value
        for metric in metric_set(["accuracy", "precision[1]", "recall[1]", "f1[1]"], pool)
    ]
    assert_allclose(found, [0.833333, 0.833333, 0.875, 0.828571], atol=5e-7)


def test_draws_that_leave_a_metric_undefined_are_left_out_and_counted():
    pool = Pool(None, [0, 1, 0, 1], classes=[0, 1])
    (recall,) = metric_set(["recall[1]"], pool)
    tables = tables_of_labels(np.array([[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]]), pool.predictions, 2)
    value, undefined = mean_over_draws(recall, tables)
    assert value == pytest.approx((1 + 2 / 3) / 2)
    assert undefined == 1
    value, undefined = mean_over_draws(recall, tables[1:2])
    assert np.isnan(value) and undefined == 1


def test_hard_labels_are_biased_where_soft_counts_are_not():
    """A.5: every point has P = (0.6, 0.4) and a = 0."""
    probs = np.broadcast_to(np.array([0.6, 0.4]), (3, 100, 2))
    pool = Pool(None, np.zeros(100, int), classes=[0, 1])
    (accuracy,) = metric_set(["accuracy"], pool)
    assert mean_over_draws(accuracy, tables_of_labels(hard_labels(probs), pool.predictions, 2)).value == 1
    assert mean_over_draws(accuracy, expected_counts(probs, pool.predictions)).value == pytest.approx(0.6)


def test_a_draw_is_one_network_for_the_whole_pool():
    """A.9, item 1: draws that label only the first or only the second group k have mean recall 1/2, not 1/5."""
    a = np.array([1] * 5 + [0] * 20)
    first, second = np.where(a == 1, 1, 0), np.where(a == 1, 0, 1)
    pool = Pool(None, a, classes=[0, 1])
    (recall,) = metric_set(["recall[1]"], pool)
    tables = tables_of_labels(np.stack([first, second]), a, 2)
    assert mean_over_draws(recall, tables).value == 0.5


def test_looking_from_several_threads_leaves_numpys_own_threads_as_they_were():
    from threading import Barrier, Thread

    from threadpoolctl import threadpool_info

    def counts():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    both_inside, looked, before = Barrier(2, timeout=20), [], counts()

    def probabilities(rows):
        both_inside.wait()
        looked.append(set(counts()))
        both_inside.wait()
        return random_probs(n=rows.stop - rows.start)

    threads = [Thread(target=lambda: list(Posterior(probabilities, np.full(200, -1), 5, 4))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert looked == [{1}, {1}]
    assert counts() == before
