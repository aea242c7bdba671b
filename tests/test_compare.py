"""A second model on the same labels: the paired difference is right on average and its interval covers."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from altmas import Pool
from altmas.compare import compare_predictions, second_predictions, verdict_of
from altmas.errors import PoolError, UnknownLabel
from altmas.history import Batch, History
from altmas.methods import Assured, Task, Tradition
from altmas.metrics import metric_set, truth_values
from altmas.session import Session
from altmas.weighted import Inclusions, draws_of, sample_of, weighted_interval

METRICS = ("accuracy", "recall[0]", "f1[0]", "kappa")


class World:
    """A pool with known truth and two models whose errors fall on partly the same hard points."""

    def __init__(self, seed, n=2000, classes=3, first=0.85, second=0.9, shared=0.7, shares=None):
        self.rng = rng = np.random.default_rng(seed)
        self.truth = rng.choice(classes, n, p=shares)
        self.hardness = rng.random(n)
        self.first, self.second = (self._model(right, shared, classes) for right in (first, second))
        self.pool = Pool(None, self.first, classes=list(range(classes)))
        self.other = Pool(None, self.second, classes=list(range(classes)))

    def _model(self, right, shared, classes):
        n = len(self.truth)
        luck = np.where(self.rng.random(n) < shared, self.hardness, self.rng.random(n))
        return np.where(luck < right, self.truth, (self.truth + self.rng.integers(1, classes, n)) % classes)

    def difference(self, metrics):
        one, two = (truth_values(pool, self.truth, metrics) for pool in (self.pool, self.other))
        return {name: two[name] - one[name] for name in one}

    def history(self, labels, weights=None):
        """Successive draws without replacement with chances proportional to the weights (uniform by default)."""
        n = len(self.truth)
        weights = np.ones(n) if weights is None else weights
        rows = np.argsort(-(np.log(weights) + self.rng.gumbel(size=n)))[:labels]
        left = weights.sum() - np.concatenate([[0.0], np.cumsum(weights[rows])[:-1]])
        return History(n, (Batch(rows, weights[rows] / left),), {int(row): int(self.truth[row]) for row in rows})

    def towards_hard_points(self):
        return 0.5 + 2.5 * self.hardness**4


@pytest.mark.parametrize("tilted", [False, True])
@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"seed": 1}, 200),
        ({"seed": 2, "first": 0.97, "second": 0.98}, 150),
        ({"seed": 3, "classes": 2, "first": 0.95, "second": 0.9, "shares": [0.1, 0.9], "n": 3000}, 200),
        ({"seed": 4, "n": 800, "first": 0.7, "second": 0.85}, 480),
    ],
)
def test_the_interval_covers_the_true_difference(options, labels, tilted):
    """60 sessions: mean error within 3.5 standard errors of 0, coverage of 95 % intervals at least 0.95 - 3 se."""
    world = World(**options)
    metrics = metric_set(METRICS, world.pool)
    true = world.difference(metrics)
    weights = world.towards_hard_points() if tilted else None
    errors, inside = {name: [] for name in true}, {name: [] for name in true}
    for _ in range(60):
        for one in compare_predictions(world.pool, world.history(labels, weights), world.second, metrics, 0.95):
            errors[one.metric].append(one.value - true[one.metric])
            inside[one.metric].append(one.low <= true[one.metric] <= one.high)
    for name in true:
        error = np.array(errors[name])
        assert abs(error.mean()) < 3.5 * error.std() / len(error) ** 0.5 + 0.002, name
        assert np.mean(inside[name]) >= 0.95 - 3 * (0.95 * 0.05 / 60) ** 0.5, name


@dataclass(frozen=True)
class Poisson(Tradition):
    """Each point is in the sample by its own coin, and the coins are known."""

    coins: np.ndarray = None

    def inclusion(self, pool, history):
        return self.coins


def test_known_inclusion_probabilities_cover_and_need_no_single_draws():
    """200 samples by independent coins: unbiased within 3.5 se, coverage at least 0.95 - 3 se."""
    world = World(15)
    metrics = metric_set(METRICS, world.pool)
    true, coins = world.difference(metrics), 0.1 * world.towards_hard_points() / world.towards_hard_points().mean()
    errors, inside = {name: [] for name in true}, {name: [] for name in true}
    for _ in range(200):
        rows = np.flatnonzero(world.rng.random(2000) < coins)
        labels = {int(row): int(world.truth[row]) for row in rows}
        history = History(2000, (Batch(rows, np.full(len(rows), 1 / 2000)),), labels)
        for one in compare_predictions(world.pool, history, world.second, metrics, 0.95, Poisson(coins=coins)):
            errors[one.metric].append(one.value - true[one.metric])
            inside[one.metric].append(one.low <= true[one.metric] <= one.high)
    for name in true:
        assert abs(np.mean(errors[name])) < 3.5 * np.std(errors[name]) / 200**0.5 + 0.002, name
        assert np.mean(inside[name]) >= 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5, name
    shares = sample_of(world.pool, history, coins).shares(np.ones(2000, bool))
    assert shares.sum() == pytest.approx(2000) and shares.min() >= 1


def test_the_default_method_knows_its_inclusion_probabilities():
    rng = np.random.default_rng(16)
    truth = rng.integers(2, size=500)
    predicted = np.where(rng.random(500) < 0.8, truth, 1 - truth)
    session = Session.create(None, Pool(rng.normal(size=(500, 2)), predicted), method="assured")
    for _ in range(3):
        session.tell({query.id: int(truth[query.index]) for query in session.ask(40)})
    sample = sample_of(session.pool, session.history, session.method.inclusion(session.pool, session.history))
    assert isinstance(sample, Inclusions)
    assert sample.chances.sum() == pytest.approx(120, rel=0.1)
    assert session.compare(truth)["accuracy"].verdict == "better"


@pytest.mark.slow
def test_the_interval_covers_when_the_default_method_chose_the_points():
    """250 sessions of `assured` with 200 labels: bias within 3.5 se, coverage at least 0.95 - 3 se."""
    world = World(17, n=1500, first=0.88, second=0.92)
    features = world.rng.normal(size=(1500, 6))
    features[:, :3] += 1.6 * np.eye(3)[world.truth]
    features[:, 3] += 2 * world.hardness
    pool = Pool(features, world.first, classes=[0, 1, 2])
    metrics, method = metric_set(METRICS, pool), Assured()
    true = world.difference(metrics)
    errors, inside = {name: [] for name in true}, {name: [] for name in true}
    for seed in range(250):
        history, task = History(1500), Task(pool, metrics, 0.95, seed)
        while len(history.labels) < 200:
            batch = method.propose(task, history, 40)
            told = {int(row): int(world.truth[row]) for row in batch.indices}
            history = History(1500, (*history.batches, batch), {**history.labels, **told})
        for one in compare_predictions(pool, history, world.second, metrics, 0.95, method):
            errors[one.metric].append(one.value - true[one.metric])
            inside[one.metric].append(one.low <= true[one.metric] <= one.high)
    for name in true:
        assert abs(np.mean(errors[name])) < 3.5 * np.std(errors[name]) / 250**0.5 + 0.002, name
        assert np.mean(inside[name]) >= 0.95 - 3 * (0.95 * 0.05 / 250) ** 0.5, name


def test_pairing_is_worth_more_than_two_separate_samples():
    world = World(5, first=0.85, second=0.87, shared=0.95)
    (metric,) = metric_set(["accuracy"], world.pool)
    (one,) = compare_predictions(world.pool, world.history(300), world.second, [metric], 0.95)
    apart = 2 * 1.96 * (0.85 * 0.15 / 300 + 0.87 * 0.13 / 300) ** 0.5
    assert one.high - one.low < 0.8 * apart


def test_the_cross_check_from_weighted_labels_covers():
    """The same weights on one model: coverage over 200 sessions at least 0.95 - 3 se, uniform and tilted."""
    world = World(6)
    metrics = metric_set(["accuracy", "recall[0]"], world.pool)
    true = truth_values(world.pool, world.truth, metrics)
    for weights in (None, world.towards_hard_points()):
        inside = {metric.name: [] for metric in metrics}
        for _ in range(200):
            history = world.history(150, weights)
            for metric in metrics:
                _, low, high = weighted_interval(world.pool, history, metric, 0.95, draws_of(history))
                inside[metric.name].append(low <= true[metric.name] <= high)
        assert min(map(np.mean, inside.values())) >= 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5


# ---------------------------------------------------------------- exact cases


def test_with_every_label_the_difference_is_exact():
    world = World(7, n=400)
    metrics = metric_set(METRICS, world.pool)
    history = world.history(400, world.towards_hard_points())
    for one in compare_predictions(world.pool, history, world.second, metrics, 0.95):
        assert one.value == pytest.approx(world.difference(metrics)[one.metric], abs=1e-12)
        assert one.low == one.value == one.high
        assert one.verdict == "better"


def test_a_model_against_itself_is_equal_once_everything_is_labelled():
    world = World(8, n=300)
    metrics = metric_set(["accuracy"], world.pool)
    (part,) = compare_predictions(world.pool, world.history(100), world.first, metrics, 0.95)
    (whole,) = compare_predictions(world.pool, world.history(300), world.first, metrics, 0.95)
    assert (part.value, part.low, part.high, part.verdict) == (0, 0, 0, "undecided")
    assert whole.verdict == "equal"


def test_uniform_draws_all_weigh_the_same():
    world = World(9)
    draws = draws_of(world.history(120))
    np.testing.assert_allclose(draws.weights, 1.0, atol=1e-9)
    np.testing.assert_allclose(draws.shares(np.ones(2000, bool)), 2000 / 120)


def test_no_labelled_disagreement_is_not_certainty():
    world = World(10, n=1000)
    second = world.first.copy()
    second[:5] = (second[:5] + 1) % 3
    history = world.history(100)
    history = History(1000, history.batches, {row: code for row, code in history.labels.items() if row >= 5})
    (one,) = compare_predictions(world.pool, history, second, metric_set(["accuracy"], world.pool), 0.95)
    assert one.value == 0 and one.low < -0.01 and one.high > 0.01 and one.verdict == "undecided"


def test_volunteered_labels_are_exact_where_they_are():
    """Volunteered labels that all speak for the second model must not be taken for the whole pool."""
    world = World(11, n=1000, first=0.85, second=0.85)
    metrics = metric_set(["accuracy"], world.pool)
    for_second = np.flatnonzero((world.second == world.truth) & (world.first != world.truth))[:40]
    true, errors = world.difference(metrics)["accuracy"], []
    open_points = np.setdiff1d(np.arange(1000), for_second)
    for _ in range(200):
        rows = world.rng.choice(open_points, 150, replace=False)
        chances = 1 / (len(open_points) - np.arange(150))
        labels = {int(row): int(world.truth[row]) for row in [*for_second, *rows]}
        history = History(1000, (Batch(rows, chances, labels_before=40),), labels)
        (one,) = compare_predictions(world.pool, history, world.second, metrics, 0.95)
        errors.append(one.value - true)
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / 200**0.5
    (naive,) = compare_predictions(world.pool, History(1000, (), labels), world.second, metrics, 0.95)
    assert np.isnan(naive.low) and "no label of a point that the session drew" in naive.note


def test_slices_and_callables_are_compared_too():
    world = World(12)
    side = world.rng.choice(["a", "b"], 2000)
    pool = Pool(None, world.first, classes=[0, 1, 2], slices={"side": side})
    other = Pool(None, world.second, classes=[0, 1, 2], slices={"side": side})

    def mine(y_true, y_pred, sample_weight=None):
        return f1_score(y_true, y_pred, average="macro", sample_weight=sample_weight)

    metrics = metric_set(["accuracy@side=a", mine], pool)
    one, two = (truth_values(which, world.truth, metrics) for which in (pool, other))
    for found in compare_predictions(pool, world.history(600), world.second, metrics, 0.999):
        assert found.low <= two[found.metric] - one[found.metric] <= found.high
    assert accuracy_score(world.truth, world.second) > accuracy_score(world.truth, world.first)


@pytest.mark.parametrize(
    ("name", "low", "high", "verdict"),
    [
        ("accuracy", 0.01, 0.1, "better"),
        ("accuracy", -0.1, -0.01, "worse"),
        ("accuracy", -0.1, 0.1, "undecided"),
        ("error", 0.01, 0.1, "worse"),
        ("error", -0.1, -0.01, "better"),
        ("confusion[0,1]", 0.01, 0.1, "worse"),
        ("confusion[0,0]", 0.01, 0.1, "better"),
    ],
)
def test_the_verdict_knows_which_way_is_better(name, low, high, verdict):
    (metric,) = metric_set([name], World(13, n=50).pool)
    assert verdict_of(metric, low, high) == verdict


# ---------------------------------------------------------------- from a session


@dataclass(frozen=True)
class FirstInLine(Tradition):
    """Points in the order of the pool: chosen, not drawn."""

    name = "first in line"

    def propose(self, task, history, n):
        return replace(super().propose(task, history, n), indices=np.flatnonzero(history.open)[:n], probabilities=None)


def make_session(method="tradition", labels=60):
    rng = np.random.default_rng(14)
    truth = rng.choice(["cat", "dog"], 300)
    features = rng.normal(size=(300, 3)) + (truth == "cat")[:, None]
    first = np.where(rng.random(300) < 0.8, truth, "cat")
    ids = [f"p{k}" for k in range(300)]
    session = Session.create(
        None, Pool(features, first, classes=["cat", "dog"], ids=ids), metrics=["accuracy", "recall[dog]"],
        method=method, seed=1,
    )  # fmt: skip
    while len(session.history.labels) < labels:
        session.tell({query.id: truth[query.index] for query in session.ask(20)})
    return session, truth, ids


def test_a_session_compares_by_row_and_by_id():
    session, truth, ids = make_session()
    by_row = session.compare(truth)
    shuffled = np.random.default_rng(1).permutation(300)
    by_id = session.compare({ids[row]: truth[row] for row in shuffled})
    assert by_row.to_dict() == by_id.to_dict()
    assert by_row["accuracy"].verdict == "better" and by_row["accuracy"].second == 1.0
    assert json.loads(json.dumps(by_row.to_dict()))["differences"][0]["metric"] == "accuracy"
    assert len(by_row.to_frame()) == 2 and "better" in by_row._repr_html_() and "better" in str(by_row)
    assert [one.metric for one in session.compare(truth, ["kappa"])] == ["kappa"]


def test_a_method_without_probabilities_gives_values_but_no_interval():
    session, truth, _ = make_session(FirstInLine(), 40)
    found = session.compare(truth)["accuracy"]
    assert np.isfinite(found.value) and np.isnan(found.low) and found.verdict == "undecided"
    assert "no interval" in found.note


def test_predictions_that_do_not_fit_are_refused_by_name():
    session, truth, ids = make_session(labels=20)
    with pytest.raises(PoolError, match="has 299 predictions, the pool has 300"):
        session.compare(truth[:-1])
    with pytest.raises(UnknownLabel, match="row 3: 'Cat' is not one of the classes .* did you mean 'cat'"):
        session.compare([*truth[:3], "Cat", *truth[4:]])
    with pytest.raises(PoolError, match="no prediction for 1 of 300 points .*'p0'"):
        session.compare({id: "cat" for id in ids[1:]})
    with pytest.raises(KeyError, match="'p999' is not in this pool"):
        session.compare({"p999": "cat"})


def test_codes_of_the_second_model_are_read_like_those_of_the_first():
    pool = Pool(None, ["a", "b", "a"], classes=["a", "b"])
    assert second_predictions(pool, [0, 1, 1]).tolist() == [0, 1, 1]
    assert second_predictions(pool, {0: "b", 1: "a", 2: "b"}).tolist() == [1, 0, 1]


# ---------------------------------------------------------------- with the belief of the default method


def told_session(world, labels, **options):
    session = Session.create(None, world.pool, metrics=["accuracy", "recall[0]"], **options)
    for _ in range(labels // 20):
        session.tell({query.id: int(world.truth[query.index]) for query in session.ask(20)})
    return session


def test_the_default_method_compares_by_its_belief_with_values_of_its_estimates():
    world = World(5)
    session = told_session(world, 120)
    found = session.compare(world.second)
    both = session.pool.with_models(
        *session.pool.models, replace(session.pool.models[0], name="v2", predictions=world.second)
    )
    metrics = metric_set(["accuracy"], both)
    by_hand = session.method.estimate(replace(session.task, pool=both, metrics=metrics), session.history)
    assert found["accuracy"].first == pytest.approx(by_hand[0].value)
    assert found["accuracy"].second == pytest.approx(by_hand[1].value)
    assert found["accuracy"].low < found["accuracy"].value < found["accuracy"].high


def test_no_verdict_on_fewer_than_20_drawn_labels():
    world = World(6, n=400, first=0.05, second=0.99)
    session = Session.create(None, world.pool)
    session.tell({query.id: int(world.truth[query.index]) for query in session.ask(15)})
    (found,) = session.compare(world.second)
    assert found.verdict == "undecided" and "fewer than 20" in found.note


def test_a_comparison_leaves_the_session_as_it_was():
    world = World(7, n=300)
    session = told_session(world, 40)
    before = session.status().seq, len(session.pool.models)
    session.compare(world.second)
    assert (session.status().seq, len(session.pool.models)) == before


@pytest.mark.slow
def test_differences_by_the_belief_cover_and_are_no_wider_than_by_weights_alone():
    hits, widths = [], []
    for seed in range(60):
        world = World(100 + seed)
        session = told_session(world, 160, seed=seed)
        metrics = metric_set(["accuracy"], world.pool)
        true = world.difference(metrics)["accuracy"]
        (by_weights,) = compare_predictions(world.pool, session.history, world.second, metrics, 0.95, session.method)
        found = session.compare(world.second)["accuracy"]
        hits.append(found.low <= true <= found.high)
        widths.append((found.high - found.low, by_weights.high - by_weights.low))
    assert np.mean(hits) >= 0.90
    assert np.mean(widths, axis=0)[0] <= 1.1 * np.mean(widths, axis=0)[1]


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_in_a_session_of_several_models_the_first_is_named_and_can_be_chosen(method):
    world = World(3, n=400)
    third = np.where(np.arange(400) % 5 == 0, (world.truth + 1) % 3, world.truth)
    pool = world.pool.with_models(
        replace(world.pool.models[0], name="v1"), replace(world.pool.models[0], name="v2", predictions=world.second)
    )
    session = Session.create(None, pool, metrics=["v1: accuracy", "v2: accuracy"], method=method)
    session.tell({query.id: int(world.truth[query.index]) for query in session.ask(60)})
    by_default, chosen = (session.compare(third, ["accuracy"], model=name) for name in (None, "v2"))
    assert by_default.first_model == "v1" and "second minus first (v1), " in by_default.summary
    assert chosen.first_model == "v2" and chosen.to_dict()["first_model"] == "v2"
    assert chosen.disagreements == (third != world.second).sum() != by_default.disagreements
    assert chosen[0].first == pytest.approx(session.estimate()["v2: accuracy"].value, abs=0.02)
    same = session.compare(world.second, ["accuracy"], model="v2")
    assert same.disagreements == 0 and same[0].value == 0
    with pytest.raises(PoolError, match="model 'v3' is not in this pool"):
        session.compare(third, model="v3")
    alone = Session.create(None, world.pool, method=method)
    assert alone.compare(third).first_model == "" and "minus first, on" in alone.compare(third).summary
