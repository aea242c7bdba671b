"""What every method in the table promises, whoever wrote it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import altmas
from altmas.history import History
from altmas.methods import METHODS, Task, check, method_named, options_of, unsupported
from altmas.methods.protocol import Method
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until

N, C = 160, 3
METRICS = ["accuracy", "per_class", "macro_f1", "accuracy@site=a"]


def world(order: tuple[int, ...] = (0, 1, 2)) -> tuple[altmas.Pool, np.ndarray]:
    """A small pool with everything a method could need; `order` lists the classes in another order."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, C, N)
    features = np.eye(C)[truth] + rng.normal(0, 0.6, (N, C))
    scores = np.exp(2 * features) / np.exp(2 * features).sum(1, keepdims=True)
    predictions = scores.argmax(1)
    names = np.array(["ant", "bee", "cow"])
    listed = list(order)
    pool = altmas.Pool(
        features.astype(np.float32),
        names[predictions],
        scores=scores[:, listed],
        classes=names[listed].tolist(),
        slices={"site": np.where(np.arange(N) % 2, "a", "b")},
    )
    return pool, np.array([pool.code(name) for name in names[truth]])


QUICK = {"spe": {"families": ("normal",), "chains": 2, "steps": 200, "draws": 80}}
"""Options that make a method cheaper and change nothing of what it promises here."""


def made(name: str) -> Method:
    return replace(method_named(name), **QUICK.get(name, {}))


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.paper] if make().traits.extra else []) for name, make in METHODS.items()
    ]
)
def method(request) -> Method:
    return made(request.param)


def task_on(pool: altmas.Pool, method: Method) -> Task:
    """Every metric of the list that the method can estimate together with those before it."""
    chosen: tuple[altmas.metrics.Metric, ...] = ()
    for metric in metric_set(METRICS, pool):
        if not unsupported(method, (*chosen, metric)):
            chosen = (*chosen, metric)
    return Task(pool, chosen, seed=3)


@cache
def labelled(name: str) -> tuple[Task, History]:
    """The task of a method after three rounds of 15 labels; made once, because networks take their time."""
    pool, truth = world()
    method = made(name)
    task = task_on(pool, method)
    return task, label_until(method, task, History(N), 45, 15, truth.__getitem__)


def test_it_says_what_it_is(method):
    assert isinstance(method, Method)
    assert METHODS[method.name] is type(method)
    assert type(method)(**options_of(method)) == method
    assert method.traits.interval in ("fixed-n", "credible", "none")


def test_inclusion_is_a_probability_of_every_point_or_none_at_all(method):
    task, history = labelled(method.name)
    inclusion = method.inclusion(task.pool, history)
    assert inclusion is None or (inclusion.shape == (N,) and (inclusion > 0).all() and (inclusion <= 1).all())
    assert inclusion is not None or method.name != "assured"


def test_proposals_are_distinct_open_points_and_the_same_each_time(method):
    task, history = labelled(method.name)
    first, second = method.propose(task, history, 7), method.propose(task, history, 7)
    assert len(set(first.indices.tolist())) == 7
    assert history.open[first.indices].all()
    np.testing.assert_array_equal(first.indices, second.indices)
    if first.probabilities is not None:
        assert ((first.probabilities > 0) & (first.probabilities <= 1)).all()


def test_near_the_end_of_the_pool_it_proposes_what_is_left_and_then_nothing(method):
    pool, truth = world()
    task = task_on(pool, method)
    told = {i: int(truth[i]) for i in range(N - 2)}
    left = method.propose(task, History(N, (), told), 5)
    assert sorted(left.indices.tolist()) == [N - 2, N - 1]
    done = History(N, (), {i: int(truth[i]) for i in range(N)})
    assert len(method.propose(task, done, 5).indices) == 0


def test_a_label_that_was_volunteered_and_taken_back_can_be_drawn_later(method):
    """Its point had a label when the last stage began: it must not be the one that nobody is ever asked about."""
    pool, truth = world()
    task = task_on(pool, method)
    history = label_until(method, task, History(N, labels={7: int(truth[7])}), N - 20, 40, truth.__getitem__)
    left = replace(history, labels={row: code for row, code in history.labels.items() if row != 7})
    assert left.open[7]
    assert len(label_until(method, task, left, N, 40, truth.__getitem__).labels) == N


def test_everything_labelled_is_the_truth(method):
    pool, truth = world()
    task = task_on(pool, method)
    history = label_until(method, task, History(N), N, 80, truth.__getitem__)
    exact = truth_values(pool, truth, task.metrics)
    for one in method.estimate(task, history):
        assert one.value == pytest.approx(exact[one.metric], abs=1e-9), one.metric
        if one.interval != "none":
            assert one.low == pytest.approx(one.value, abs=1e-9) and one.high == pytest.approx(one.value, abs=1e-9)


def test_estimates_are_complete_inside_their_bounds_and_repeatable(method):
    pool, truth = world()
    task = task_on(pool, method)
    history = label_until(method, task, History(N), 60, 30, truth.__getitem__)
    first, second = method.estimate(task, history), made(method.name).estimate(task, history)
    assert [one.metric for one in first] == [metric.name for metric in task.metrics]
    for one, again in zip(first, second, strict=True):
        assert (one.value, one.low, one.high) == pytest.approx((again.value, again.low, again.high), nan_ok=True, abs=0)
        assert one.interval == method.traits.interval or one.interval == "none"
        if not np.isnan(one.value):
            assert 0 <= one.value <= 1
        if not np.isnan(one.low):
            assert 0 <= one.low <= one.value <= one.high <= 1


def numbers(estimates) -> list[float]:
    return [x for one in estimates for x in (one.value, one.low, one.high, one.effective_labels, one.labels)]


def test_points_that_merely_wait_change_nothing(method):
    """Asked for once more, in a small and in a large batch: the same values, intervals and worth."""
    task, history = labelled(method.name)
    before = method.estimate(task, history)
    for count in (1, 60):
        waiting = replace(history, batches=(*history.batches, method.propose(task, history, count)))
        assert numbers(method.estimate(task, waiting)) == pytest.approx(numbers(before), abs=0, nan_ok=True)


def test_points_that_are_asked_for_while_others_wait_change_nothing(method):
    """Also where a new stage begins with them: an earlier point is left behind once later ones have answers."""
    pool, truth = world()
    task, history = task_on(pool, method), History(len(pool))
    for _ in range(6):
        history = replace(history, batches=(*history.batches, method.propose(task, history, 10)))
        left = history.batches[-1].indices[-1]
        told = {int(row): int(truth[row]) for row in history.outstanding if row != left}
        history = replace(history, labels={**history.labels, **told})
        before = numbers(method.estimate(task, history))
        further = method.propose(task, history, 20)
        waiting = replace(history, batches=(*history.batches, further))
        assert numbers(method.estimate(task, waiting)) == pytest.approx(before, abs=0, nan_ok=True)


def test_labels_behind_an_open_point_count_unless_it_says_otherwise(method):
    """`traits.in_order`: values with the label of a later point changed are the same, or else they are not."""
    pool, truth = world()
    task = task_on(pool, method)
    batch = method.propose(task, History(N), 40)
    rows, told = batch.indices.tolist(), dict[bool, list[float]]()
    for changed in (False, True):
        labels = {row: int((truth[row] + (changed and at > 10)) % C) for at, row in enumerate(rows) if at != 10}
        found = method.estimate(task, History(N, (batch,), labels))
        told[changed] = [one.value for one in found if "@" not in one.metric]
    same = told[True] == pytest.approx(told[False], abs=1e-12, nan_ok=True)
    assert same == method.traits.in_order


def test_labels_told_out_of_order_give_the_same_in_the_end(method):
    task, history = labelled(method.name)
    shuffled = replace(history, labels=dict(reversed(history.labels.items())))
    first, second = method.estimate(task, history), method.estimate(task, shuffled)
    if method.name in ("assured", "tradition", "sawade", "stratified", "trust"):  # others learn in the order of telling
        assert numbers(second) == pytest.approx(numbers(first), abs=1e-9, nan_ok=True)
    assert [one.metric for one in second] == [one.metric for one in first]


def test_without_a_label_nothing_is_claimed(method):
    """Forty points asked for and none told: no value and no interval (`trust` believes the model and gives none)."""
    pool, _ = world()
    task = task_on(pool, method)
    asked = History(N, (method.propose(task, History(N), 40),))
    for one in [*method.estimate(task, History(N)), *method.estimate(task, asked)]:
        assert np.isnan(one.low) and np.isnan(one.high), one.metric
        assert np.isnan(one.value) or one.interval == "none", one.metric


def test_skipped_points_are_not_proposed_again(method):
    task, history = labelled(method.name)
    batch = method.propose(task, history, 5)
    skipped = {int(row): "blurred" for row in batch.indices}
    after = History(N, (*history.batches, batch), history.labels, skipped)
    assert not set(method.propose(task, after, 20).indices.tolist()) & set(skipped)
    assert len(method.estimate(task, after)) == len(task.metrics)


def test_a_pool_without_what_it_needs_is_refused_by_name(method):
    bare = altmas.Pool(None, [0, 1, 0, 1])
    if method.traits.requires:
        with pytest.raises(
            altmas.errors.MethodError, match=f"'{method.name}' needs .* methods that work without: .*tradition"
        ):
            check(method, bare)
    else:
        check(method, bare)


def test_permuting_the_classes_permutes_the_results():
    """Exact for methods that train nothing; networks start from other random numbers."""
    weighted = ("stratified", "druck", "sawade", "lure", "ppi", "active-inference", "paula", "adastrat")
    for name in ("tradition", "trust", *weighted):
        if name not in METHODS:
            continue
        values = []
        for order in [(0, 1, 2), (2, 0, 1)]:
            pool, truth = world(order)
            method = method_named(name)
            task = task_on(pool, method)
            history = label_until(method, task, History(N), 60, 20, truth.__getitem__)
            values.append({one.metric: one.value for one in method.estimate(task, history)})
        assert values[0] == pytest.approx(values[1])
