"""Sessions as people make them: answers out of order, skips, labels that nobody asked for, looked at all the time."""

import numpy as np

import altmas
from altmas.guaranteed import NotOffered, guaranteed_decision
from altmas.methods.assured import Assured
from altmas.methods.protocol import Method
from altmas.metrics import metric_set
from assured_world import constant_belief

SKIPPED = 0.15
"""Share of the points that nobody can label; of the wrong answers it is twice that."""


def judged_pool(seed: int, n: int = 400, accuracy: float = 0.85) -> tuple[altmas.Pool, np.ndarray, np.ndarray]:
    """(pool of two models, truth, which points can be labelled); the second model differs on a tenth of them."""
    rng = np.random.default_rng(seed)
    predicted = rng.integers(0, 2, n)
    wrong = rng.permutation(n) < round((1 - accuracy) * n)
    truth = np.where(wrong, 1 - predicted, predicted)
    other = np.where(rng.random(n) < 0.1, 1 - predicted, predicted)
    able = rng.random(n) >= np.where(wrong, 2 * SKIPPED, SKIPPED)
    return altmas.Pool(None, {"v1": predicted, "v2": other}, classes=[0, 1]), truth, able


METRICS = {"v1: accuracy": ("v1",), "v2: accuracy - v1: accuracy": ("v2", "v1"), "v1: recall[1]": ("v1",)}


def true_value(name: str, pool: altmas.Pool, truth: np.ndarray, able: np.ndarray) -> float:
    """The metric of the points that can be labelled."""
    first, second = (pool.model(model).predictions == truth for model in ("v1", "v2"))
    if " - " in name:
        return float(second[able].mean() - first[able].mean())
    return float(first[able].mean() if "accuracy" in name else first[able & (truth == 1)].mean())


def false_decisions(
    method: str, name: str, sessions: int, *, draws: int = 100, volunteered: float = 0.1, step: int = 1, seed: int = 0
) -> dict[str, int]:
    """How many sessions ever say "above" or "below" of a metric against its true value, looked at every `step` answers.

    Up to 12 points wait at any time, and a random one of them is answered; now and then somebody volunteers an error.
    Budgets are 5 to 20, and are raised whenever they are spent: sessions go on for much longer than was planned.
    """
    found = {"above": 0, "below": 0}
    for number in range(seed, seed + sessions):
        pool, truth, able = judged_pool(number)
        threshold, rng = true_value(name, pool, truth, able), np.random.default_rng([number, 1])
        chosen: Method | str = Assured(belief=constant_belief) if method == "assured" else method
        (metric,) = metric_set(name, pool)
        settings = {"metrics": [name], "method": chosen, "seed": number, "budget": int(rng.integers(5, 21))}
        session, said = altmas.Session.create(None, pool, guarantee=True, **settings), set()
        errors = rng.permutation(np.flatnonzero((pool.predictions != truth) & able)).tolist()
        for answers in range(1, draws + 1):
            waiting = session.ask(12) or _more(session)
            query = waiting[int(len(waiting) * rng.random() ** 2)]
            if able[query.index]:
                session.tell(query.id, int(truth[query.index]))
            else:
                session.skip(query.id, "cannot be read")
            if rng.random() < volunteered:
                _volunteer(session, errors, truth)
            if answers % step == 0:
                proof = guaranteed_decision(session.method, session.task, session.history, metric, threshold)
                assert not isinstance(proof, NotOffered)
                said.add(proof.answer)
        for side in found:
            found[side] += side in said
    return found


def _more(session: altmas.Session) -> list[altmas.Query]:
    """The next points to label once the budget is spent and raised."""
    session.extend(budget=len(session.history.labels) + 10)
    return session.ask(12)


def _volunteer(session: altmas.Session, errors: list[int], truth: np.ndarray) -> None:
    """Tell one more error of the model that nobody asked for."""
    history = session.history
    asked = set(history.drawn.tolist()) | set(history.labels)
    while errors:
        row = errors.pop()
        if row not in asked:
            session.tell(session.pool.ids[row], int(truth[row]))
            return
