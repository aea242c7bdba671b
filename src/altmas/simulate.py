"""Many runs against known truth: what would each method have said at n labels?"""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.compute import in_processes
from altmas.errors import AltmasError, FileError, PlanError
from altmas.frames import frame_of
from altmas.history import History
from altmas.intervals import normal_quantile
from altmas.memo import ArrayFile, Memo
from altmas.methods import Method, check, check_ahead, check_draw, method_named
from altmas.methods.assured.contest import comparing, metrics_to_rank
from altmas.methods.assured.recipe import EDITION
from altmas.metrics import MetricLike, metric_set, truth_values
from altmas.outputs import NOTHING, Kept, kept_by, writable, write_whole
from altmas.pool import Pool
from altmas.pool.first_phase import refuse_sample, sampled_rows
from altmas.progress import progress_bar
from altmas.ranking import WORSE
from altmas.ranking import rank as rank_models
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS, About, Draw, Task
from altmas.version import __version__

Row = dict[str, Any]


@dataclass(frozen=True)
class Simulation:
    """The rows of a simulation, one for each method, metric, number of labels and repeat."""

    rows: list[Row]

    def summary(self) -> list[Row]:
        """One row for each method, metric and number of labels: bias, rmse, coverage, width and label value.

        label_value = (rmse of tradition / rmse)^2: how many random labels one label is worth, with a 90 % interval
        (delta method on the logarithm); nan where tradition was not run or a value is undefined in every repeat.
        Coverage and width are of the repeats with an interval: `without_interval` counts those with a value and none.
        """
        groups: dict[tuple[str, str, int], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row["method"], row["metric"], row["labels"]), []).append(row)
        random = {key[1:]: _squared_errors(rows) for key, rows in groups.items() if key[0] == "tradition"}
        return [_summarise(key, rows, random.get(key[1:])) for key, rows in groups.items()]

    def to_frame(self) -> Any:
        """The summary as a pandas frame if pandas is installed, else as a pyarrow table."""
        return frame_of(self.summary())

    def __str__(self) -> str:
        lines = [
            f"{'method':<12}{'metric':<24}{'labels':>7}{'bias':>9}{'rmse':>8}{'cover':>7}{'width':>8}  label value"
        ]
        for s in self.summary():
            figures = (_figure(s[name], text) for name, text in COLUMNS.items())
            lines.append(f"{s['method']:<12}{s['metric']:<24}{s['labels']:>7}{''.join(figures)}  {_worth(s)}")
        return "\n".join(lines)


COLUMNS = {"bias": ">+9.4f", "rmse": ">8.4f", "coverage": ">7.2f", "width": ">8.4f"}


def _figure(value: float, text: str) -> str:
    return format(value, text) if math.isfinite(value) else format("-", text[: text.index(".")].replace("+", ""))


def _worth(row: Row) -> str:
    if not math.isfinite(row["label_value"]):
        return "-"
    return f"{row['label_value']:.2f} [{row['label_value_low']:.2f}, {row['label_value_high']:.2f}]"


def simulate(
    pool: Pool,
    truth: ArrayLike,
    *,
    methods: str | Sequence[str | Method] = ("tradition",),
    metrics: Iterable[MetricLike] = DEFAULT_METRICS,
    budgets: int | Sequence[int] = (100, 200, 400),
    repeats: int = 20,
    seed: int = 0,
    n_jobs: int | None = None,
    batch: int = 10,
    confidence: float = DEFAULT_CONFIDENCE,
    rank: str = "",
    about: About = "pool",
    draw: Draw = "items",
    sample: int | None = None,
    results: str | Path | None = None,
    progress: bool = True,
) -> Simulation:
    """Every method run `repeats` times to the largest budget, its estimates taken at each budget.

    truth    (N,) the true class names (or codes) of the pool, in its order
    n_jobs   processes at once; by default what an outer `joblib.parallel_config` says (a Dask or Ray cluster, for
             instance), else 2; the rows are the same
    batch    labels told between two proposals
    rank     a metric by which several models are ranked: draws go where contenders differ; a further row, "metric of
             the model ranked best", has the true value of the chosen model beside that of the truly best one
    about    "future": the given pool stands for all data; every run takes a sample of it, of whole groups and with
             replacement, as its pool, and intervals are to cover the value on all data
    draw     "groups": whole groups are drawn, all of whose points are labelled
    sample   every run takes a random sample of so many points as its pool (`Pool.sample_from`), and intervals are to
             cover the value on all points
    results  a .jsonl file: finished runs are kept there and not repeated when the same call is made again

    Raises PlanError, UnknownLabel, MetricError or MethodError before anything runs.
    """
    ranked = metrics_to_rank(rank, pool) if rank else ()
    task = Task(pool, metric_set(metrics, pool), confidence, seed, rank=ranked, about=about, draw=draw)
    labels = truth_codes(pool, truth)
    steps = steps_of([budgets] if isinstance(budgets, int) else budgets, len(pool) if sample is None else sample)
    if repeats < 1 or batch < 1:
        raise PlanError(f"repeats ({repeats}) and batch ({batch}) must be at least 1")
    _refuse_sample(pool, sample, about)
    named = [methods] if isinstance(methods, str) else methods
    chosen = [method_named(method) for method in named]
    for method in chosen:
        check(method, pool if sample is None else _as_sample(pool), task.metrics)
        check_draw(method, draw, pool if sample is None else _as_sample(pool))
        if task.ahead:
            check_ahead(method, pool)
        if rank:
            comparing(method)
    cells = [(method, repeat) for repeat in range(repeats) for method in chosen]
    settings = _settings(task, steps, batch, seed) | ({} if sample is None else {"sample": sample})
    journal = Journal(results, settings, kept=kept_by(pool))
    waiting = [cell for cell in cells if _key(*cell) not in journal.done]
    calls = ((method, task, labels, steps, batch, repeat, sample) for method, repeat in waiting)
    # Processes, not threads: each run owns its own compiled surrogate and its own thread cap.
    jobs = None if n_jobs is None else min(n_jobs, max(len(waiting), 1))
    with _shared(pool.memo), progress_bar("simulating", len(cells), shown=progress) as bar:
        bar.advance(len(cells) - len(waiting))
        for (method, repeat), rows in zip(waiting, in_processes(_run, calls, jobs), strict=True):
            journal.append(_key(method, repeat), rows)
            bar.advance(1)
    return Simulation([row for cell in cells for row in journal.done[_key(*cell)]])


@contextmanager
def _shared(memo: Memo) -> Iterator[None]:
    """While it lasts, arrays that take long to make are kept in a temporary file: processes make them once."""
    if memo.file is not None:
        yield
        return
    with TemporaryDirectory(prefix="altmas-") as folder:
        memo.file = ArrayFile(Path(folder) / "description")
        try:
            yield
        finally:
            memo.file = None


def _as_sample(pool: Pool) -> Pool:
    """The pool as methods see a sample of it, for what they can do and cannot."""
    sample = copy(pool)
    sample.sampled_from = len(pool) + 1
    return sample


def _refuse_sample(pool: Pool, sample: int | None, about: About) -> None:
    """PoolError or PlanError if runs cannot be made of samples of the pool, or the pool is one itself."""
    if pool.sampled_from is not None:
        raise PlanError(
            f"this pool is a random sample of {pool.sampled_from:,} rows, and the truth of its points does not tell "
            "the value on all rows; read the whole table (a sample of 0), and let each run take a sample of it"
        )
    if sample is not None:
        refuse_sample(sample, len(pool), weighted=pool.weights is not None)
        if about == "future":
            raise PlanError(
                "a sample for each run and about='future': every run is a sample already; leave one of the two out"
            )


def truth_codes(pool: Pool, truth: ArrayLike) -> NDArray[np.int64]:
    """(N,) codes of the true labels; UnknownLabel on a name that is not a class, PlanError on a wrong length."""
    codes = pool.codes(truth, what="truth")
    if len(codes) != len(pool):
        raise PlanError(f"truth has {len(codes)} labels, the pool has {len(pool)} points; one label per point")
    return codes


def steps_of(budgets: Sequence[int], n_points: int) -> list[int]:
    """Different numbers of labels to look at, in order; PlanError on one that the pool has not."""
    steps = sorted(set(budgets))
    if not steps or steps[0] < 1 or steps[-1] > n_points:
        raise PlanError(f"budgets {list(budgets)} must lie between 1 and the pool's {n_points} points")
    return steps


def _run(
    method: Method,
    task: Task,
    truth: NDArray[np.int64],
    steps: list[int],
    batch: int,
    repeat: int,
    sample: int | None = None,
) -> list[Row]:
    """One run of one method: the estimates at each number of labels."""
    from threadpoolctl import threadpool_limits

    exact = truth_values(task.pool, truth, task.metrics)
    best = truth_values(task.pool, truth, task.rank)
    task = replace(task, seed=_seed(task.seed, repeat))
    if task.ahead:
        sampled = sample_of_groups(task.pool, np.random.default_rng([task.seed, 1]))
        task, truth = replace(task, pool=task.pool._taken(*sampled)), truth[sampled[0]]
    if sample is not None and sample < len(task.pool):
        chosen = sampled_rows(len(task.pool), sample, task.seed)
        task, truth = replace(task, pool=task.pool._sample(chosen)), truth[chosen]
    rows: list[Row] = []
    history, started = History(len(task.pool)), time.perf_counter()
    with threadpool_limits(1):
        for labels in steps:
            history = label_until(method, task, history, labels, batch, truth.__getitem__)
            estimates = method.estimate(task, history)
            seconds = time.perf_counter() - started
            rows += [
                {
                    "method": method.name,
                    "metric": estimate.metric,
                    "labels": labels,
                    "repeat": repeat,
                    "value": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "truth": exact[estimate.metric],
                    "effective_labels": estimate.effective_labels,
                    "seconds": seconds,
                }
                for estimate in estimates
            ]
            if task.rank:
                common = {"method": method.name, "labels": labels, "repeat": repeat, "seconds": seconds}
                rows.append(common | _choice(method, task, history, best))
    return rows


def sample_of_groups(pool: Pool, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """(rows, their groups) of as many groups as the pool has, drawn with replacement; of points where it has none."""
    if pool.group is None:
        return rng.integers(len(pool), size=len(pool)), None
    order = np.argsort(pool.group, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(pool.group[order])) + 1)
    drawn = [members[k] for k in rng.integers(len(members), size=len(members))]
    return np.concatenate(drawn), np.repeat(np.arange(len(drawn)), [len(group) for group in drawn])


def _choice(method: Method, task: Task, history: History, true: Mapping[str, float]) -> Row:
    """The true metric of the model that is ranked best, beside that of the truly best one, and who was excluded."""
    ranking = rank_models(method, task, history, task.rank, task.rank[0].name)
    values = {metric.model: true[metric.name] for metric in task.rank}
    best = (min if task.rank[0].lower_is_better else max)(values.values())
    base = task.rank[0].name.removeprefix(f"{task.rank[0].model}: ")
    return {
        "metric": f"{base} of the model ranked best",
        "value": values[ranking.best],
        "low": math.nan,
        "high": math.nan,
        "truth": best,
        "effective_labels": math.nan,
        "chosen": ranking.best,
        "worse": list(ranking.tier(WORSE)),
        "best_excluded": any(values[name] == best for name in ranking.tier(WORSE)),
    }


def label_until(
    method: Method, task: Task, history: History, labels: int, batch: int, oracle: Callable[[int], Any]
) -> History:
    """The history after the method has chosen, and the oracle has labelled, points up to that number of labels."""
    while len(history.labels) < labels and history.open.any():
        drawn = method.propose(task, history, min(batch, labels - len(history.labels)))
        if not len(drawn.indices):
            break
        history = history.told(drawn, {int(row): int(oracle(int(row))) for row in drawn.indices})
    return history


def _seed(seed: int, repeat: int) -> int:
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


# ---------------------------------------------------------------- resuming


def _key(method: Method, repeat: int) -> str:
    return f"{method!r}/{repeat}"


def _settings(task: Task, steps: list[int], batch: int, seed: int) -> Row:
    """What two calls must share for one to continue the other."""
    ranked: Row = {"rank": [metric.name for metric in task.rank]} if task.rank else {}
    ranked |= {"about": task.about} if task.ahead else {}
    ranked |= {"draw": task.draw} if task.draw != "items" else {}
    return ranked | {
        "version": f"{__version__}, assured {EDITION}",
        "pool": task.pool.fingerprint,
        "metrics": [metric.name for metric in task.metrics],
        "budgets": steps,
        "batch": batch,
        "seed": seed,
        "confidence": task.confidence,
    }


def finished_runs(path: Path) -> int:
    """How many finished runs a results file holds; 0 if there is none."""
    lines = path.read_bytes().count(b"\n") if path.exists() else 0
    return max(lines - 1, 0)  # the first has the settings


class Journal:
    """Finished runs by key, kept in a .jsonl file (or only in memory): the settings first, then a line for each run."""

    def __init__(
        self, path: str | Path | None, settings: Row, what: str = "simulation", *, kept: Kept = NOTHING
    ) -> None:
        self.path, self.what = None if path is None else Path(path), what
        self.done: dict[str, list[Row]] = {}
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            writable(self.path, force=True, kept=kept)  # it is only ever added to
            if self.path.exists() and self.path.stat().st_size:
                self._read(settings)
            else:
                self._write(settings)
        except AltmasError:
            raise
        except OSError as cause:
            raise FileError(f"{self.path} cannot be written: {cause.strerror}; nothing was run") from cause

    def append(self, key: str, rows: list[Row]) -> None:
        self.done[key] = rows
        if self.path is not None:
            self._write({"key": key, "rows": rows})

    def _write(self, line: Row) -> None:
        assert self.path is not None
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _read(self, settings: Row) -> None:
        assert self.path is not None
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            head = json.loads(lines[0])
        except (ValueError, RecursionError) as cause:
            raise FileError(f"{self.path} is not a {self.what}'s results file; nothing was written to it") from cause
        differing = [name for name, value in settings.items() if not isinstance(head, dict) or head.get(name) != value]
        if differing:
            raise FileError(
                f"{self.path} holds results of another {self.what} (other {', '.join(differing)}); "
                "give another file, or the same settings to continue"
            )
        for number, line in enumerate(lines[1:], 2):
            if line.endswith("\n"):  # a line that was cut short by a crash is run again
                try:
                    entry = json.loads(line)
                    self.done[entry["key"]] = entry["rows"]
                except (ValueError, RecursionError, KeyError, TypeError) as cause:
                    raise FileError(f"{self.path} is damaged in line {number}; nothing was written to it") from cause
        if lines and not lines[-1].endswith("\n"):
            write_whole(self.path, "".join(lines[:-1]).encode(), force=True)


# ---------------------------------------------------------------- summary


def _squared_errors(rows: list[Row]) -> NDArray[np.float64]:
    """Squared errors of the repeats in which the estimate is defined."""
    errors = np.array([row["value"] - row["truth"] for row in rows], np.float64)
    return errors[np.isfinite(errors)] ** 2


def _summarise(key: tuple[str, str, int], rows: list[Row], random: NDArray[np.float64] | None) -> Row:
    values = np.array([[row["value"], row["low"], row["high"], row["truth"]] for row in rows], np.float64)
    defined = values[np.isfinite(values[:, 0])]
    value, low, high, truth = defined.T
    given = np.isfinite(low)
    covered = ((low - 1e-12 <= truth) & (truth <= high + 1e-12))[given]
    worth = (1.0, 1.0, 1.0) if key[0] == "tradition" else label_value(_squared_errors(rows), random)
    return {
        "method": key[0],
        "metric": key[1],
        "labels": key[2],
        "repeats": len(rows),
        "undefined": len(rows) - len(defined),
        "truth": float(rows[0]["truth"]),
        "bias": float((value - truth).mean()) if len(defined) else math.nan,
        "rmse": float(np.sqrt(((value - truth) ** 2).mean())) if len(defined) else math.nan,
        "without_interval": len(defined) - int(given.sum()),
        "coverage": float(covered.mean()) if given.any() else math.nan,
        "width": float((high - low)[given].mean()) if given.any() else math.nan,
        "label_value": worth[0],
        "label_value_low": worth[1],
        "label_value_high": worth[2],
        "seconds": float(np.median([row["seconds"] for row in rows])),
    }


def label_value(
    squared: NDArray[np.float64], random: NDArray[np.float64] | None, confidence: float = 0.9
) -> tuple[float, float, float]:
    """(value, low, high): mean squared error of random sampling over that of a method, with its interval."""
    if random is None or min(len(squared), len(random)) < 2 or squared.mean() == 0 or random.mean() == 0:
        return math.nan, math.nan, math.nan
    ratio = float(random.mean() / squared.mean())
    relative = [values.var(ddof=1) / len(values) / values.mean() ** 2 for values in (squared, random)]
    spread = normal_quantile(confidence) * math.sqrt(float(sum(relative)))
    return ratio, ratio * math.exp(-spread), ratio * math.exp(spread)
