"""The demonstration: real digits, a real model that errs, labels by a truth that only the demonstration knows.

scikit-learn's digits are split into halves. A small random forest learns on the first; the second is the pool.
"""

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from altmas.estimates import Estimates
from altmas.extras import missing
from altmas.methods import DEFAULT_METHOD, method_named
from altmas.metrics import metric_set, truth_values
from altmas.pool import Pool
from altmas.progress import progress_bar
from altmas.session import Session

BUDGET, BATCH = 150, 15
METRICS = ("accuracy", "recall[8]", "precision[8]")
COMPARED = ("assured", "altmas", "bald", "tradition")


@dataclass(frozen=True)
class Outcome:
    """What one method said after all labels, and how long choosing and estimating took."""

    method: str
    estimates: Estimates
    seconds: float


def digits() -> tuple[Pool, NDArray[np.int64]]:
    """(pool, truth): half of the digits as classified by a forest of eight shallow trees that saw the other half."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    images, truth = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    half = len(images) // 2
    model = RandomForestClassifier(n_estimators=8, max_depth=8, random_state=0).fit(images[:half], truth[:half])
    pool = Pool(
        images[half:],
        model.predict(images[half:]),
        scores=model.predict_proba(images[half:]),
        classes=list(range(10)),
        items=list(images[half:].reshape(-1, 8, 8)),
    )
    return pool, np.asarray(truth[half:], np.int64)


def compared_methods() -> list[str]:
    """The methods that are run: those that are installed, the session's own first."""
    able = (name for name in COMPARED if name not in left_out_methods())
    return sorted(able, key=lambda name: name != DEFAULT_METHOD)


def left_out_methods() -> list[str]:
    """The methods whose extra is not installed."""
    return [name for name in COMPARED if missing(method_named(name).traits.extra)]


def free_names(folder: Path) -> tuple[Path, Path]:
    """(session, report) in the folder, numbered from the second demonstration on: nothing is ever replaced."""
    names = itertools.chain(["demo"], (f"demo-{number}" for number in itertools.count(2)))
    taken = {file.name for file in folder.iterdir()}
    name = next(name for name in names if not taken & {f"{name}.altmas", f"{name}-report.html", f"{name}-report.json"})
    return folder / f"{name}.altmas", folder / f"{name}-report.html"


def run_method(session: Session, truth: NDArray[np.int64], *, progress: bool) -> Outcome:
    """Ask and tell until the budget is spent, showing the estimate of the first metric as it moves."""
    name, started = session.method.name, time.perf_counter()
    with progress_bar(name, BUDGET, shown=progress) as bar:
        while not session.should_stop():
            labels = {query.id: int(truth[query.index]) for query in session.ask(BATCH)}
            session.tell(labels)
            first = session.estimate()[0]
            bar.advance(len(labels))
            bar.say(f"{name:<10} {first.metric} {first.value:.3f}")
    return Outcome(name, session.estimate(), time.perf_counter() - started)


def run_demo(path: Path, pool: Pool, truth: NDArray[np.int64], *, progress: bool = True) -> list[Outcome]:
    """Every method on the same pool: the default one in the session file, the others in memory."""
    outcomes = []
    for name in compared_methods():
        created = (
            Session.create(path, pool, metrics=METRICS, budget=BUDGET)
            if name == DEFAULT_METHOD
            else Session.create(None, pool, metrics=METRICS, method=name, budget=BUDGET)
        )
        with created as session:
            outcomes.append(run_method(session, truth, progress=progress))
    return outcomes


def true_values(pool: Pool, truth: NDArray[np.int64]) -> Mapping[str, float]:
    """The metrics as they are when every label is known."""
    return truth_values(pool, truth, metric_set(METRICS, pool))


def hits(outcomes: Sequence[Outcome], exact: Mapping[str, float]) -> tuple[int, int]:
    """(intervals that hold the truth, intervals)."""
    intervals = [estimate for outcome in outcomes for estimate in outcome.estimates if estimate.low == estimate.low]
    return sum(estimate.low <= exact[estimate.metric] <= estimate.high for estimate in intervals), len(intervals)
