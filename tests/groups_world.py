"""Pools whose items come in groups, with errors that come as whole groups or alone."""

from dataclasses import replace

import numpy as np

import altmas
from altmas.history import History
from altmas.methods import Method
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until
from altmas.task import Task


def grouped_world(
    groups: int = 150,
    largest: int = 20,
    accuracy: float = 0.9,
    together: float = 1.0,
    seed: int = 0,
    features: bool = False,
    by_size: bool = False,
    classes: int = 2,
) -> tuple[altmas.Pool, np.ndarray]:
    """A pool in groups of 1 to `largest` items, and its truth.

    together  share of the groups whose items are all right or all wrong; in the others items err alone
    by_size   errors are only in the larger half of the groups
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, largest + 1, groups)
    group = np.repeat(np.arange(groups), counts)
    order = rng.permutation(len(group))  # items of a group need not stand together
    rate = np.full(groups, 1 - accuracy)
    if by_size:
        large = counts > np.median(counts)
        rate = np.where(large, (1 - accuracy) * counts.sum() / counts[large].sum(), 0.0)
    whole = rng.random(groups) < together
    hard = rng.random(groups)
    wrong_groups = hard < rate
    alone = rng.random(len(group)) < rate[group]
    wrong = np.where(whole[group], wrong_groups[group], alone)
    truth = rng.integers(0, classes, len(group))
    predictions = np.where(wrong, (truth + 1) % classes, truth)
    x = np.column_stack([hard[group] + 0.2 * rng.normal(size=len(group)), rng.normal(size=(len(group), 2))])
    half = np.where(rng.random(len(group)) < 0.5, "a", "b")
    pool = altmas.Pool(
        x[order] if features else None,
        predictions[order],
        classes=list(range(classes)),
        group=group[order],
        slices={"half": half[order]},
    )
    return pool, truth[order]


def runs(
    pool: altmas.Pool,
    truth: np.ndarray,
    method: Method,
    *,
    n: int,
    repeats: int,
    draw: str = "groups",
    metrics: tuple[str, ...] = ("accuracy",),
    batch: int = 10,
    about: str = "pool",
) -> dict[str, dict[str, float]]:
    """Coverage, bias over RMSE, RMSE and mean half-width of each metric over repeated sessions with n labels."""
    chosen = metric_set(list(metrics), pool)
    exact = truth_values(pool, truth, chosen)
    rows: dict[str, list[tuple[float, float, float]]] = {metric.name: [] for metric in chosen}
    task = Task(pool, chosen, draw=draw, about=about)
    for seed in range(repeats):
        now = replace(task, seed=seed)
        history = label_until(method, now, History(len(pool)), n, batch, truth.__getitem__)
        for estimate in method.estimate(now, history):
            rows[estimate.metric].append((estimate.value, estimate.low, estimate.high))
    return {name: _figures(np.array(values), exact[name]) for name, values in rows.items()}


def _figures(values: np.ndarray, truth: float) -> dict[str, float]:
    """Of the runs with an interval."""
    defined = values[np.isfinite(values).all(1)]
    if not len(defined):
        return {"truth": truth, "defined": 0.0}
    value, low, high = defined.T
    error = value - truth
    rmse = float(np.sqrt((error**2).mean()))
    return {
        "truth": truth,
        "coverage": float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean()),
        "bias": float(error.mean()),
        "bias_error": float(error.std() / np.sqrt(len(error))),
        "rmse": rmse,
        "half_width": float((high - low).mean() / 2),
        "defined": len(defined) / len(values),
    }
