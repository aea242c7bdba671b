"""Pools that come in waves of different accuracy, and sessions that are extended by them."""

from typing import Any

import numpy as np

import altmas

NAMES = ("a", "b", "c")


def truth_and_pool(
    seed: int, sizes: tuple[int, ...] = (300, 300), accuracies: tuple[float, ...] = (0.9, 0.7), **changes: Any
) -> tuple[list[str], list[altmas.Pool]]:
    """(the truth of all items, the pool of each wave); scores know part of what goes wrong."""
    rng = np.random.default_rng(seed)
    truth, pools = [], []
    for wave, (n, accuracy) in enumerate(zip(sizes, accuracies, strict=True)):
        code = rng.integers(0, 3, n)
        hard = rng.beta(1, 3, n)
        wrong = rng.random(n) < np.minimum(hard * 4 * (1 - accuracy), 1)
        answer = np.where(wrong, (code + rng.integers(1, 3, n)) % 3, code)
        scores = np.full((n, 3), 0.0)
        top = np.clip(1 - hard * 0.6, 0.34, 0.999)
        scores += ((1 - top) / 2)[:, None]
        scores[np.arange(n), answer] = top
        parts = {"features": np.column_stack([hard, rng.normal(size=n)]), "scores": scores} | changes
        pools.append(
            altmas.Pool(
                parts.pop("features"),
                [NAMES[one] for one in answer],
                classes=NAMES,
                ids=[f"{wave}-{row}" for row in range(n)],
                **parts,
            )
        )
        truth += [NAMES[one] for one in code]
    return truth, pools


def together(pools: list[altmas.Pool]) -> altmas.Pool:
    """All items as one pool, the waves as a slice."""
    columns = {part: np.concatenate([getattr(pool, part) for pool in pools]) for part in ("features", "scores")}
    waves = np.repeat([f"w{wave}" for wave in range(len(pools))], [len(pool) for pool in pools])
    answers = np.concatenate([np.array(NAMES)[pool.predictions] for pool in pools])
    ids = [name for pool in pools for name in pool.ids]
    return altmas.Pool(
        columns["features"], answers, scores=columns["scores"], classes=NAMES, ids=ids, slices={"wave": waves}
    )


def label(session: altmas.Session, truth: list[str], n: int, keep_waiting: int = 0) -> None:
    """Tell the next n points; some more are drawn and wait."""
    for query in session.ask(n + keep_waiting)[:n]:
        session.tell(query.id, truth[query.index])


METRICS = ("accuracy", "accuracy@wave=w0", "accuracy@wave=w1", "accuracy@wave=w1 - accuracy@wave=w0", "recall[a]")


def extended_run(seed: int, method: str, labels: tuple[int, int] = (60, 60), waiting: int = 5, **options: Any) -> Any:
    """[(value, low, high, true value)] of METRICS after labels before and after an extension."""
    truth, pools = truth_and_pool(seed)
    session = altmas.Session.create(None, pools[0], method=method, seed=seed, budget=sum(labels))
    label(session, truth, labels[0], waiting)
    session.extend(pools[1], wave="w1", first_wave="w0", **options)
    label(session, truth, labels[1])
    return answers(session, truth)


def created_run(seed: int, method: str, labels: int = 120) -> Any:
    """The same of a session that was created with all items."""
    truth, pools = truth_and_pool(seed)
    session = altmas.Session.create(None, together(pools), method=method, seed=seed, budget=labels)
    label(session, truth, labels)
    return answers(session, truth)


def answers(session: altmas.Session, truth: list[str]) -> Any:
    found = session.estimate(metrics=METRICS)
    y, pool = np.array(truth), session.pool
    right = np.array(NAMES)[pool.predictions] == y
    first, second = (pool.slices["wave"] == wave for wave in ("w0", "w1"))
    true = [right.mean(), right[first].mean(), right[second].mean(), right[second].mean() - right[first].mean()]
    true.append(right[y == "a"].mean())
    return [(one.value, one.low, one.high, value) for one, value in zip(found, true, strict=True)]
