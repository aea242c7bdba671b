"""Small pools with known truth for the tests of `assured` and its parts."""

import numpy as np

import altmas
from altmas.belief import Belief
from altmas.history import History
from altmas.methods import Task
from altmas.methods.assured import Assured
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.parts import StageSample
from altmas.methods.assured.stages import Stage
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until


def world(
    n: int = 1000, n_classes: int = 3, accuracy: float = 0.8, seed: int = 0, scores: bool = False, features: bool = True
) -> tuple[altmas.Pool, np.ndarray]:
    """A pool whose model errs more often where a visible difficulty is high; and its truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    difficulty = rng.random(n)
    wrong = rng.random(n) < 2 * (1 - accuracy) * difficulty
    predictions = np.where(wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    x = np.column_stack([difficulty, rng.normal(size=(n, 2))])
    sure = 1 - (1 - accuracy) * difficulty
    given = np.full((n, n_classes), 0.0) + ((1 - sure) / (n_classes - 1))[:, None]
    given[np.arange(n), predictions] = sure
    pool = altmas.Pool(
        x if features else None,
        predictions,
        scores=given if scores else None,
        classes=list(range(n_classes)),
        slices={"half": np.where(np.arange(n) % 2, "odd", "even")},
    )
    return pool, truth


def share_of(shares, folds, row) -> float:
    """c_s of one point, by its fold."""
    return float(shares[folds[row]] if len(shares) > 1 else shares[0])


def constant_belief(task: Task, labelled, codes, weights, folds) -> Belief:
    """The running share of right answers for every point: cheap, and centred."""
    pool, n_classes = task.pool, len(task.pool.classes)
    right = (codes == pool.predictions[labelled]).astype(float)
    share = (right.sum() + 0.5) / (len(right) + 1)
    return belief(pool, np.full(len(pool), share), n_classes)


def shuffled_belief(task: Task, labelled, codes, weights, folds) -> Belief:
    """Confident rows that belong to other points."""
    pool = task.pool
    agree = np.random.default_rng(11).permutation(np.linspace(0.02, 0.98, len(pool)))
    return belief(pool, agree, len(pool.classes))


def wrong_belief(task: Task, labelled, codes, weights, folds) -> Belief:
    """All mass on a class that the model did not predict."""
    pool, n_classes = task.pool, len(task.pool.classes)
    rivals = np.eye(n_classes)[(np.arange(n_classes) + 1) % n_classes]
    return Belief(pool.predictions, np.full(len(pool), 0.01), rivals, pool.predictions, {})


def belief(pool: altmas.Pool, agree: np.ndarray, n_classes: int) -> Belief:
    """A belief with these chances of being right and rivals equally likely."""
    rivals = (1 - np.eye(n_classes)) / (n_classes - 1)
    return Belief(pool.predictions, agree, rivals, pool.predictions, {})


def difference(pool, truth, drawn, chances, agree, volunteered=()) -> Difference:
    """One stage with these inclusion probabilities and this belief."""
    known = np.full(len(pool), -1)
    known[drawn] = truth[drawn]
    known[list(volunteered)] = truth[list(volunteered)]
    before = np.zeros(len(pool), bool)
    before[list(volunteered)] = True
    exposure = np.where(before, 0.0, -np.log1p(-chances))
    stage = Stage(
        np.ones(len(pool), bool), before, ~before, np.ones(len(pool)), np.zeros(len(pool)), np.asarray(drawn), exposure
    )
    sample = StageSample(stage, belief(pool, agree, len(pool.classes)), before, np.asarray(drawn))
    return Difference([sample], pool, known, np.ones(len(pool), bool), np.zeros(0, np.int64))


def runs(method: Assured, pool, truth, metrics: list[str], labels: int, repeats: int, batch: int = 20) -> np.ndarray:
    """(repeats, metrics, 4): value, low, high, truth."""
    chosen = metric_set(metrics, pool)
    exact = truth_values(pool, truth, chosen)
    found = []
    for seed in range(repeats):
        task = Task(pool, chosen, seed=seed)
        history = label_until(method, task, History(len(pool)), labels, batch, truth.__getitem__)
        estimates = method.estimate(task, history)
        found.append([[one.value, one.low, one.high, exact[one.metric]] for one in estimates])
    return np.array(found)
