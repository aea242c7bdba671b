"""How long one ALT-MAS round takes at the paper's sizes, and what of it could not be avoided.

    python -m benchmarks.speed                  # N = 10,000 and N = 100,000
    python -m benchmarks.speed --n 10000
    python -m benchmarks.speed --n 10000 --preset paper --rounds 5
    python -m benchmarks.speed --torch          # beside torch in the plain way, where it is installed

D = 784, C = 10, M = 50, the 21 metrics of the paper, 200 labels. Each size runs in a fresh process without compiled
programs on disk, so that its peak memory and its first round, compilation included, are its own. Times are the best
of three, and at N = 10,000 the median of 20 rounds (`--rounds`) is told as well. Limits are on processor seconds,
which other work on the machine disturbs least; on idle cores a round takes at most as long by the clock. Prints a
table and replaces the rows of the same edition, preset and size in benchmarks/results/speed.csv; the edition is a word
for the state of the code (`--edition`).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.compute import in_order, threads
from altmas.history import History
from altmas.methods import AltMas, Task
from altmas.methods.paper.acquisition import believe, best, total_information
from altmas.methods.paper.posterior import Posterior
from altmas.methods.paper.rounds import pseudo_labels
from altmas.methods.paper.surrogates.mc_dropout import DropoutDraws, DropoutNetwork, MCDropout
from altmas.metrics import metric_set
from altmas.pool import Pool
from altmas.pool.features import Features
from benchmarks import store

COLUMNS, CLASSES, LABELS, REPEATS, ROUNDS = 784, 10, 200, 3, 20
MEDIAN = "whole round, median"
RESULTS = store.RESULTS / "speed.csv"
STAGES = ("pseudo-labels", "surrogate fit", "bare products", "posterior pass", "scoring", "whole round", "first round")
LIMITS = {
    "posterior pass / bare products": 2.5,
    "scoring / posterior pass": 0.5,
    "processor seconds of a round": 6.0,
    "processor seconds of the first round": 10.0,
    "round at 100,000 / round at 10,000": 12.0,
    "peak memory in GB": 1.5,
}


def made_up_pool(n: int, seed: int = 0) -> tuple[Pool, NDArray[np.int64]]:
    """A pool of n points of ten overlapping classes, of which the model gets 93 % right; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, CLASSES, n)
    centres = rng.normal(0, 0.12, (CLASSES, COLUMNS)).astype(np.float32)
    features = np.empty((n, COLUMNS), np.float32)
    for start in range(0, n, 10_000):
        rows = slice(start, min(start + 10_000, n))
        rng.standard_normal(dtype=np.float32, out=features[rows])
        features[rows] += centres[truth[rows]]
    wrong = rng.random(n) < 0.07
    predictions = np.where(wrong, (truth + rng.integers(1, CLASSES, n)) % CLASSES, truth)
    return Pool(features, predictions, classes=range(CLASSES)), truth


def labelled(truth: NDArray[np.int64], n: int, seed: int) -> History:
    """A history in which n random points are labelled."""
    rows = np.random.default_rng(seed).permutation(len(truth))[:n]
    return History(len(truth), (), {int(row): int(truth[row]) for row in rows})


class Spent(NamedTuple):
    """Seconds by the clock and seconds of all processors together."""

    clock: float
    processors: float


def timed(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[Spent, Any]:
    """(time, result), the best time of three."""
    result, clock, processors = None, np.inf, np.inf
    for _ in range(repeats):
        result = None
        start = time.perf_counter(), time.process_time()
        result = work()
        clock = min(clock, time.perf_counter() - start[0])
        processors = min(processors, time.process_time() - start[1])
    return Spent(clock, processors), result


def bare_products(draws: DropoutDraws, features: Features, n: int) -> None:
    """The products of a posterior pass and nothing else: same shapes and threads, operands ready, results dropped."""
    step = 2048
    w1 = draws.trained.weights.w1
    x = features[:step]
    hidden = np.maximum(w1.T @ x.T, 0)
    operands = [(np.ascontiguousarray(hidden[network.units]), network.w2, network.w3) for network in draws.networks]

    def of_chunk(size: int) -> None:
        _ = w1.T @ x[:size].T
        for ready, w2, w3 in operands:
            _ = w3 @ (w2 @ ready[:, :size])

    sizes = [step] * (n // step) + ([n % step] if n % step else [])
    for _ in in_order(of_chunk, sizes):
        pass


def measure(n: int, preset: str, rounds: int) -> dict[str, Any]:
    """The time of each stage at n points, how many pseudo-labels there were, and the peak memory in GB."""
    pool, truth = made_up_pool(n)
    method = AltMas(preset=preset)
    task = Task(pool, metric_set(["paper"], pool))
    assert len(task.metrics) == 21
    seeds = iter(range(1, 100))

    def whole_round() -> None:
        method.propose(task, labelled(truth, LABELS, next(seeds)), 1)

    spent = {"first round": timed(whole_round, 1)[0]}
    history, settings = labelled(truth, LABELS, 0), method.settings
    surrogate = settings.make()
    assert isinstance(surrogate, MCDropout)
    known, features = history.known, Features.of(pool)
    spent["pseudo-labels"], pseudo = timed(
        lambda: pseudo_labels(task, history, settings, surrogate, np.random.default_rng(0))
    )
    rows = np.concatenate([history.labelled, pseudo.rows])
    y = np.concatenate([history.codes, pool.predictions[pseudo.rows]])
    fitted: DropoutNetwork
    spent["surrogate fit"], fitted = timed(
        lambda: surrogate.fit(features.subset(rows), y, CLASSES, np.random.default_rng(0))
    )
    draws = fitted.draws(method.draws, np.random.default_rng(0))
    spent["bare products"], _ = timed(lambda: bare_products(draws, features, n))

    def fresh() -> Posterior:
        return Posterior(lambda chunk: draws(features[chunk]), known, draws.count, CLASSES, keep=0)

    def look() -> None:
        for _ in fresh():
            pass

    def look_and_score() -> None:
        belief = believe(pool, fresh(), task.metrics)
        best(total_information(task.metrics, belief, history.open), history.open, 1, np.random.default_rng(0))

    spent["posterior pass"], _ = timed(look)
    both, _ = timed(look_and_score)
    spent["scoring"] = Spent(*np.maximum(np.subtract(both, spent["posterior pass"]), 0).tolist())
    spent["whole round"], _ = timed(whole_round)
    if n == 10_000:
        each = [timed(whole_round, 1)[0] for _ in range(rounds)]
        spent[MEDIAN] = Spent(*np.median(each, axis=0).tolist())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"spent": spent, "pseudo-labels": len(pseudo.rows), "peak memory": memory, "load": os.getloadavg()[0]}


def measure_elsewhere(n: int, preset: str = AltMas().preset, rounds: int = ROUNDS) -> dict[str, Any]:
    """The same in a fresh process that finds no compiled program on disk."""
    command = [sys.executable, "-m", "benchmarks.speed", "--here", "--preset", preset, "--rounds", str(rounds)]
    with tempfile.TemporaryDirectory() as empty:
        run = subprocess.run(
            [*command, "--n", str(n)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ | {"JAX_COMPILATION_CACHE_DIR": empty},
        )
    measured: dict[str, Any] = json.loads(run.stdout)
    measured["spent"] = {stage: Spent(*seconds) for stage, seconds in measured["spent"].items()}
    return measured


Line = tuple[str, str, float, float | None]
"""What, at how many points, its value, its limit."""


def report(measured: dict[int, dict[str, Any]]) -> list[Line]:
    """Every figure."""
    lines: list[Line] = []
    for n, figures in measured.items():
        size, spent = str(n), figures["spent"]
        for stage in (*STAGES, *(name for name in (MEDIAN,) if name in spent)):
            lines.append((f"seconds, {stage}", size, spent[stage].clock, None))
            lines.append((f"processor seconds, {stage}", size, spent[stage].processors, None))
        looked = spent["posterior pass"].processors
        lines += [
            ("pseudo-labels", size, figures["pseudo-labels"], None),
            ("load average meanwhile", size, figures["load"], None),
            _held("posterior pass / bare products", size, looked / spent["bare products"].processors),
            _held("scoring / posterior pass", size, spent["scoring"].processors / looked),
            _held("peak memory in GB", size, figures["peak memory"]),
        ]
        if n == 10_000:
            lines.append(_held("processor seconds of a round", size, spent[MEDIAN].processors))
            lines.append(_held("processor seconds of the first round", size, spent["first round"].processors))
    if 10_000 in measured and 100_000 in measured:
        small, large = (measured[n]["spent"]["whole round"].processors for n in (10_000, 100_000))
        lines.append(_held("round at 100,000 / round at 10,000", "", large / small))
    return lines


def _held(what: str, size: str, value: float) -> Line:
    return what, size, value, LIMITS[what]


def save(edition: str, preset: str, lines: list[Line]) -> None:
    """Put the figures into the CSV file in place of those of the same edition, preset and size."""
    new = [
        {"edition": edition, "preset": preset, "what": what, "points": size, "value": f"{value:.4g}", "limit": limit}
        for what, size, value, limit in lines
    ]
    store.keep_csv(RESULTS, new, "edition", "preset", "what", "points")


def main() -> None:
    """Measure, print, write; exit 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--here", action="store_true", help="measure in this process and print JSON")
    parser.add_argument("--preset", default=AltMas().preset, help="of altmas")
    parser.add_argument("--edition", default="now", help="what the rows are called")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds whose median is told")
    parser.add_argument("--torch", action="store_true", help="rounds of altmas and of torch in turn, at 10,000 points")
    options = parser.parse_args()
    if options.torch:
        from benchmarks.speed_torch import torch_lines

        beside = [*torch_lines(), ("load average meanwhile", "10000", os.getloadavg()[0], None)]
        for what, _, value, _ in beside:
            print(f"{what:<64}{value:>10.3f}")
        save(f"{options.edition}, beside torch", "paper", beside)
        return
    if options.here:
        print(json.dumps(measure(options.n[0], options.preset, options.rounds)))
        return
    lines = report({n: measure_elsewhere(n, options.preset, options.rounds) for n in options.n})
    print(
        f"D = {COLUMNS}, C = {CLASSES}, M = {AltMas().draws}, 21 metrics, {LABELS} labels, {threads()} threads, "
        f"preset {options.preset}, median of {options.rounds} rounds\n"
    )
    for what, size, value, limit in lines:
        verdict = "" if limit is None else f"   limit {limit:g}: {'held' if value <= limit else 'BROKEN'}"
        print(f"{what:<38}{size:>9}{value:>12.3f}{verdict}")
    save(options.edition, options.preset, lines)
    sys.exit(any(limit is not None and value > limit for *_, value, limit in lines))


if __name__ == "__main__":
    main()
