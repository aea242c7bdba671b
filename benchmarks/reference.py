"""Other people's packages beside ours, on the same labels in the same process: `python -m benchmarks.reference`.

Where the method is the same, the numbers have to be: each comparison says how close, and tests/test_reference.py holds
both to it. Where only the purpose is the same, the seconds are compared. Packages that are not installed are left out
and said so; `pip install --group reference` brings those that install side by side.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402  (thread caps come first)
from numpy.typing import NDArray  # noqa: E402

from altmas.history import Batch, History  # noqa: E402
from altmas.methods import ActiveInference, Druck, Oasis, Stratified, Task  # noqa: E402
from altmas.methods.paper.batch_information import batch_bald  # noqa: E402
from altmas.methods.paper.information import bald  # noqa: E402
from altmas.methods.related.active_inference import water_filled  # noqa: E402
from altmas.methods.related.ppi import power_of, powered_mean  # noqa: E402
from altmas.methods.related.sawade import f_chances  # noqa: E402
from altmas.methods.related.strata import root_frequency, stratified_variance  # noqa: E402
from altmas.metrics import metric_set  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from benchmarks.store import RESULTS, read_csv, write_csv  # noqa: E402

Array = NDArray[Any]

ROUGH = 1e-4
"""scikit-activeml cuts probabilities off below 1e-7."""


@dataclass(frozen=True)
class World:
    """A pool with scores and truth, a uniform sample of it, and a Bayesian belief about some of its points.

    rows   (n,) labelled points        right  (N,) whether the model is right      confidence (N,) its highest score
    probs  (M, B, C) draws of class probabilities
    """

    pool: Pool
    truth: Array
    rows: Array
    probs: Array

    @property
    def right(self) -> Array:
        return np.asarray(self.pool.predictions == self.truth, np.float64)

    @property
    def confidence(self) -> Array:
        assert self.pool.scores is not None
        return np.asarray(self.pool.scores.max(1), np.float64)

    def task(self, *metrics: str) -> Task:
        return Task(self.pool, metric_set(metrics, self.pool), seed=1)


def world(n_points: int = 2000, labels: int = 200, draws: int = 20, believed: int = 60, n_classes: int = 3) -> World:
    """A world with a model that is too sure of itself; the same for the same sizes."""
    rng = np.random.default_rng(7)
    truth = rng.choice(n_classes, n_points, p=np.arange(n_classes, 0, -1) / np.arange(1, n_classes + 1).sum())
    x = 1.6 * np.eye(n_classes)[truth] + rng.normal(size=(n_points, n_classes))
    values = np.exp(2.4 * x - (2.4 * x).max(1, keepdims=True))
    values /= values.sum(1, keepdims=True)
    pool = Pool(x.astype(np.float32), values.argmax(1), scores=values, classes=list(range(n_classes)))
    belief = rng.dirichlet(np.ones(n_classes), (draws, believed))
    return World(pool, truth, np.sort(rng.choice(n_points, labels, replace=False)), belief)


# ---------------------------------------------------------------- PPI++ and its relatives


def our_ppi(w: World) -> Array:
    f, z = w.confidence, w.right
    return np.array(powered_mean(z[w.rows], f[w.rows], float(f.mean()), len(f), 0.6)[:1])


def ppi_python(w: World) -> Array:
    from ppi_py import ppi_mean_pointestimate

    f = w.confidence
    return np.atleast_1d(ppi_mean_pointestimate(w.right[w.rows], f[w.rows], f, lam=0.6))


def our_tuned_ppi(w: World) -> Array:
    f, z = w.confidence, w.right[w.rows]
    return np.array(powered_mean(z, f[w.rows], float(f.mean()), len(f), power_of(z, f[w.rows])))


def ppi_python_tuned(w: World) -> Array:
    from ppi_py import ppi_mean_ci

    f = w.confidence
    low, high = (float(np.squeeze(x)) for x in ppi_mean_ci(w.right[w.rows], f[w.rows], f, alpha=0.05))
    return np.array([(low + high) / 2, ((high - low) / 2 / 1.959964) ** 2])


def our_difference(w: World) -> Array:
    f, z = w.confidence, w.right
    return np.array(powered_mean(z[w.rows], f[w.rows], float(f.mean()), len(f), 1.0))


def ssepy_difference(w: World) -> Array:
    from ssepy import ModelPerformanceEvaluator

    evaluator = ModelPerformanceEvaluator(Yh=w.confidence, budget=len(w.rows))
    evaluator.sampler.sampling_method, evaluator.sampler.sampled_indices = "srs", w.rows
    return np.concatenate(evaluator.compute_estimate(w.right[w.rows], estimator="df"))


def our_ppi_of_the_rest(w: World) -> Array:
    f, z = w.confidence, w.right
    rest = np.delete(f, w.rows)
    return np.array(powered_mean(z[w.rows], f[w.rows], float(rest.mean()), len(f), 1.0)[:1])


def glide_ppi(w: World) -> Array:
    from glide.estimators import PPIMeanEstimator

    labels = np.full(len(w.pool), np.nan)
    labels[w.rows] = w.right[w.rows]
    result = PPIMeanEstimator().estimate(labels, w.confidence, power_tuning=False)
    return np.array([result.confidence_interval.mean])


def included(w: World) -> tuple[Array, Batch]:
    """(pi, batch): inclusion probabilities that follow the expected error, and a batch of active inference by them."""
    u, uniform = np.sqrt(w.confidence * (1 - w.confidence)), len(w.rows) / len(w.pool)
    pi = 0.5 * water_filled(u, len(w.rows)) + 0.5 * uniform
    return pi, ActiveInference().propose(w.task("accuracy"), History(len(w.pool)), len(w.rows))


def our_active_inference(w: World) -> Array:
    _, batch = included(w)
    history = History(len(w.pool), (batch,), {int(i): int(w.truth[i]) for i in batch.indices})
    return np.array([ActiveInference(power=1.0).estimate(w.task("accuracy"), history)[0].value])


def glide_active_inference(w: World) -> Array:
    from glide.estimators import ASIMeanEstimator

    pi, batch = included(w)
    pi[batch.indices] = batch.record["inclusion"]
    labels = np.full(len(w.pool), np.nan)
    labels[batch.indices] = w.right[batch.indices]
    proxy = np.asarray(w.pool.scores, np.float64)[np.arange(len(w.pool)), w.pool.predictions]
    return np.array([ASIMeanEstimator().estimate(labels, proxy, pi, power_tuning=False).confidence_interval.mean])


# ---------------------------------------------------------------- strata


def stratified_draw(w: World) -> tuple[Stratified, Array, Batch]:
    method = Stratified(strata=5)
    batch = method.propose(w.task("accuracy"), History(len(w.pool)), len(w.rows))
    return method, method._strata(w.task("accuracy")), batch


def our_strata(w: World) -> Array:
    method, strata, batch = stratified_draw(w)
    history = History(len(w.pool), (batch,), {int(i): int(w.truth[i]) for i in batch.indices})
    value = method.estimate(w.task("accuracy"), history)[0].value
    mine, right = strata[batch.indices], w.right[batch.indices]
    spreads = np.array([right[mine == h].std(ddof=1) for h in range(strata.max() + 1)])
    return np.array([value, stratified_variance(np.bincount(strata), spreads, np.bincount(mine))])


def ssepy_strata(w: World) -> Array:
    from ssepy.model_performance_evaluator import Estimator

    _, strata, batch = stratified_draw(w)
    rows = np.sort(batch.indices)
    result = Estimator(w.confidence, strata, rows, "ssrs").compute(w.right[rows], estimator="ht")
    return np.concatenate(result)


def our_sawade(w: World) -> Array:
    assert w.pool.scores is not None
    q = f_chances(np.asarray(w.pool.scores[:, 2], np.float64), w.pool.predictions == 2, 0.5)[1]
    return np.asarray(0.999 * q + 0.001 / len(q))


def oasis_sawade(w: World) -> Array:
    from oasis import ImportanceSampler

    assert w.pool.scores is not None
    called = (w.pool.predictions == 2).astype(int)
    sampler = ImportanceSampler(0.5, called, np.asarray(w.pool.scores[:, 2], np.float64), lambda _: 0, proba=True)
    return np.asarray(sampler.inst_pmf_)


def our_oasis_start(w: World) -> Array:
    """The chances of the points at the first draw."""
    batch = Oasis().propose(w.task("f1[2]"), History(len(w.pool)), 200)
    return np.asarray(batch.record["chances"])


def oasis_start(w: World) -> Array:
    sampler = _oasis_sampler(w)
    sampler._calc_inst_pmf()
    within = sampler._inst_pmf / sampler.strata.sizes_
    strata = root_frequency(np.asarray(w.pool.scores)[:, 2], 30)
    batch = Oasis().propose(w.task("f1[2]"), History(len(w.pool)), 200)
    return np.asarray(within[strata[batch.record["sequence"]]])


def _oasis_sampler(w: World) -> Any:
    from oasis import OASISSampler, Strata

    score = np.asarray(w.pool.scores, np.float64)[:, 2]
    called = (w.pool.predictions == 2).astype(int)
    oracle = lambda i: int(w.truth[i] == 2)  # noqa: E731  (what the package calls an oracle)
    strata = Strata(root_frequency(score, 30))
    return OASISSampler(0.5, called, score, oracle, proba=True, strata=strata, record_inst_hist=False)


def our_oasis(w: World) -> Array:
    task, method = w.task("f1[2]"), Oasis()
    history = label_until(method, task, History(len(w.pool)), len(w.rows), 10, w.truth.__getitem__)
    return np.array([method.estimate(task, history)[0].value])


def oasis_oasis(w: World) -> Array:
    sampler = _oasis_sampler(w)
    np.random.seed(0)  # the package draws from the global generator
    sampler.sample_distinct(len(w.rows))
    return np.atleast_1d(sampler.estimate_[-1])


def our_druck(w: World) -> Array:
    task, method = w.task("f1[2]"), Druck(strata=30)
    history = label_until(method, task, History(len(w.pool)), len(w.rows), len(w.rows), w.truth.__getitem__)
    return np.array([method.estimate(task, history)[0].value])


def oasis_druck(w: World) -> Array:
    from oasis import DruckSampler, Strata

    score = np.asarray(w.pool.scores, np.float64)[:, 2]
    called = (w.pool.predictions == 2).astype(int)
    strata = Strata(root_frequency(score, 30))
    np.random.seed(0)
    sampler = DruckSampler(0.5, called, score, lambda i: int(w.truth[i] == 2), proba=True, strata=strata)
    sampler.sample_distinct(len(w.rows))
    return np.atleast_1d(sampler.estimate_[-1])


# ---------------------------------------------------------------- information


def our_bald(w: World) -> Array:
    return np.asarray(bald(w.probs))


def baal_bald(w: World) -> Array:
    from baal.active.heuristics import BALD

    return np.asarray(BALD().get_uncertainties(np.moveaxis(w.probs, 0, -1)))


def modal_bald(w: World) -> Array:
    """Consensus entropy of a committee minus the mean entropy of its members."""
    from modAL.disagreement import consensus_entropy
    from modAL.uncertainty import classifier_entropy

    points = np.arange(w.probs.shape[1])

    class Learner:
        def __init__(self, probabilities: Array) -> None:
            self.probabilities = probabilities

        def predict_proba(self, x: Array) -> Array:
            return self.probabilities[x]

    own = [classifier_entropy(Learner(probabilities), points) for probabilities in w.probs]
    return np.asarray(consensus_entropy(Learner(w.probs.mean(0)), points) - np.mean(own, axis=0))


def activeml_bald(w: World) -> Array:
    from skactiveml.pool import batch_bald as theirs

    return np.asarray(theirs(w.probs.copy(), 1)[0])


def redux_bald(w: World) -> Array:
    import torch
    from batchbald_redux.batchbald import compute_conditional_entropy, compute_entropy

    logs = torch.log(torch.from_numpy(np.moveaxis(w.probs, 0, 1).copy()))
    return np.asarray(compute_entropy(logs) - compute_conditional_entropy(logs))


BATCH = 4


def our_batch(w: World) -> Array:
    """(2, b) the points and the joint information of the batch up to each."""
    chosen = batch_bald(w.probs, BATCH, np.random.default_rng(0), states=10**4)
    return np.array([chosen.positions, np.cumsum(chosen.added)])


def redux_batch(w: World) -> Array:
    import torch
    from batchbald_redux.batchbald import get_batchbald_batch

    logs = torch.log(torch.from_numpy(np.moveaxis(w.probs, 0, 1).copy()))
    batch = get_batchbald_batch(logs, BATCH, 10**4, dtype=torch.double)
    return np.array([batch.indices, batch.scores])


def activeml_batch(w: World) -> Array:
    from skactiveml.pool import batch_bald as theirs

    utilities = theirs(w.probs.copy(), BATCH, n_MC_samples=10**4, random_state=0)
    chosen = np.nanargmax(utilities, axis=1)
    return np.array([chosen, utilities[np.arange(BATCH), chosen]])


def baal_batch(w: World) -> Array:
    from baal.active.heuristics import BatchBALD

    random.seed(0)
    ranks = BatchBALD(num_samples=BATCH, num_draw=500)(np.moveaxis(w.probs, 0, -1))
    return np.asarray(ranks[:BATCH], np.float64)


# ---------------------------------------------------------------- side by side


@dataclass(frozen=True)
class Comparison:
    """One thing that a package and we compute. `close` is the allowed difference; None where methods differ."""

    package: str
    what: str
    ours: Callable[[World], Array]
    theirs: Callable[[World], Array]
    close: float | None = 1e-9

    @property
    def version(self) -> str:
        """The version that is installed; empty if none is."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""


COMPARISONS = (
    Comparison("ppi-python", "PPI at a given lambda", our_ppi, ppi_python),
    Comparison("ppi-python", "PPI++: value and variance", our_tuned_ppi, ppi_python_tuned, None),
    Comparison("ssepy", "difference estimator and its variance", our_difference, ssepy_difference),
    Comparison("ssepy", "stratified estimate and its variance (C5)", our_strata, ssepy_strata),
    Comparison("glide-py", "PPI", our_ppi_of_the_rest, glide_ppi),
    Comparison("glide-py", "active inference", our_active_inference, glide_active_inference),
    Comparison("oasis", "sampling probabilities for F (C10)", our_sawade, oasis_sawade),
    Comparison("oasis", "OASIS: probabilities at the start", our_oasis_start, oasis_start),
    Comparison("oasis", "OASIS: a whole run", our_oasis, oasis_oasis, None),
    Comparison("oasis", "Druck and McCallum: a whole run", our_druck, oasis_druck, None),
    Comparison("baal", "BALD", our_bald, baal_bald),
    Comparison("modAL-python", "BALD", our_bald, modal_bald),
    Comparison("scikit-activeml", "BALD", our_bald, activeml_bald, ROUGH),
    Comparison("batchbald-redux", "BALD", our_bald, redux_bald),
    Comparison("batchbald-redux", "BatchBALD, exact", our_batch, redux_batch),
    Comparison("scikit-activeml", "BatchBALD, exact", our_batch, activeml_batch, ROUGH),
    Comparison("baal", "BatchBALD, sampled there, exact here", our_batch, baal_batch, None),
)


def seconds_of(function: Callable[[World], Array], w: World, repeats: int = 5) -> tuple[Array, float]:
    """(result, least seconds): the first call is not timed, since it may import or compile."""
    result, least = function(w), np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        function(w)
        least = min(least, time.perf_counter() - started)
    return result, least


def compare(comparison: Comparison, w: World) -> dict[str, Any]:
    """The row of a comparison: largest difference where the method is the same, and seconds."""
    ours, our_seconds = seconds_of(comparison.ours, w)
    theirs, their_seconds = seconds_of(comparison.theirs, w)
    same = ours.shape == theirs.shape
    return {
        "package": comparison.package,
        "version": comparison.version,
        "what": comparison.what,
        "same method": comparison.close is not None,
        "ours": float(f"{ours.ravel()[0]:.6g}"),
        "theirs": float(f"{theirs.ravel()[0]:.6g}"),
        "largest difference": float(f"{np.abs(ours - theirs).max():.2g}") if same else "",
        "our seconds": float(f"{our_seconds:.3g}"),
        "their seconds": float(f"{their_seconds:.3g}"),
        "theirs / ours": float(f"{their_seconds / our_seconds:.3g}"),
    }


def main() -> None:
    import warnings

    warnings.simplefilter("ignore")
    path = RESULTS / "reference.csv"
    rows: dict[tuple[str, str], dict[str, Any]] = {(row["package"], row["what"]): row for row in read_csv(path)}
    sizes = world(n_points=10_000, labels=400, draws=50, believed=1000, n_classes=3)
    for comparison in COMPARISONS:
        if not comparison.version:
            print(f"left out: {comparison.package} is not installed ({comparison.what})")
            continue
        rows[comparison.package, comparison.what] = row = compare(comparison, sizes)
        print(" | ".join(f"{value}" for value in row.values()))
    order = [(comparison.package, comparison.what) for comparison in COMPARISONS]
    write_csv(path, [rows[key] for key in order if key in rows])


if __name__ == "__main__":
    main()
