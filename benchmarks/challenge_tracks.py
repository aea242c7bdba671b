"""The other two tracks of `python -m benchmarks.challenge`: which of many models is best, and grades with judges.

    python -m benchmarks.challenge --track models --method mine:most_agreed --pool six_models.npz --out mine.csv
    python -m benchmarks.challenge --track judges --method mine:corrected --pool grades.npz --out mine.csv

A method is one function. It sees what the models or judges say and buys labels:

    models   most_agreed(answers, ask, labels, rng) -> column of the model that it calls the best
    judges   corrected(judges, ask, labels, rng) -> (value, low, high) of the mean grade, 95 %; nan for no interval

    answers (N, K) codes that K models give;  judges (N, K) grades that K judges give, as numbers
    ask(row) is the true label of a row; `labels` different rows may be asked for in a run; rng is a numpy Generator

It is run from the start for each number of labels, beside `assured` and a random sample. A pool is an .npz file:

    models   predictions (N, K) codes 0 to C - 1, y (N,) codes of the truth
    judges   judges (N, K) numbers, y (N,) numbers: grades, or 0 and 1 for verdicts
"""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from altmas.compute import in_processes
from altmas.progress import progress_bar
from altmas.types import Array
from benchmarks import judges, ranking
from benchmarks.data import DataDamaged, read_npz
from benchmarks.judges import Judged
from benchmarks.ranking import Models
from benchmarks.store import Row, Runs, version_of

Way = Callable[[Array, "Labels", int, np.random.Generator], Any]


class NotInProtocol(ValueError):
    """What was named as a method is none, or does not keep to its protocol."""


class Labels:
    """The true labels of a pool, as many different ones as were bought; others are refused."""

    def __init__(self, truth: Array, most: int) -> None:
        self._truth, self._most, self._bought = truth, most, set[int]()

    def __call__(self, row: int) -> Any:
        row = int(row)
        if not 0 <= row < len(self._truth):
            raise NotInProtocol(f"ask({row}): the rows are 0 to {len(self._truth) - 1}")
        self._bought.add(row)
        if len(self._bought) > self._most:
            raise NotInProtocol(f"ask({row}) is one label too many: {self._most} may be asked for in this run")
        return self._truth[row].item()


def imported(name: str) -> Any:
    """What `module:name` names."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as cause:
        raise NotInProtocol(
            f"--method {name}: {cause}; expected module:name of something that can be imported"
        ) from None


@dataclass(frozen=True)
class Track(ABC):
    """One question, asked of functions and of built-in ways.

    built_in  names of ways that come with it;  budgets  numbers of labels;  shown  columns for people
    """

    name: ClassVar[str]
    built_in: ClassVar[tuple[str, ...]]
    budgets: ClassVar[tuple[int, ...]]
    shown: ClassVar[tuple[str, ...]]

    @abstractmethod
    def pool(self, name: str) -> Any:
        """The pool of a name of the benchmark, or of a file."""

    @abstractmethod
    def built_in_run(self, way: str, pool: Any, seed: int) -> list[Row]:
        """What one built-in way found at each number of labels."""

    @abstractmethod
    def run_of(self, way: Way, pool: Any, labels: int, seed: int) -> Row:
        """What one function found with so many labels."""

    @abstractmethod
    def summed(self, pool: Any, rows: Sequence[Row]) -> Row:
        """The numbers of runs with the same number of labels."""

    def looks(self, method: str, pool: Any, seed: int) -> list[Row]:
        """One run: what a way found at each number of labels."""
        if method in self.built_in:
            return self.built_in_run(method, pool, seed)
        way = self.way(method)
        return [{"labels": labels} | self.run_of(way, pool, labels, seed) for labels in self.budgets]

    def way(self, method: str) -> Way:
        """The function of `module:name`."""
        if ":" not in method:
            raise NotInProtocol(
                f"--method {method}: expected module:function or one of {', '.join(self.built_in)} for this track"
            )
        function = imported(method)
        if not callable(function):
            raise NotInProtocol(f"--method {method} is no function; nothing was run")
        return function  # type: ignore[no-any-return]  # what it gives is checked when it is run


def randomness(seed: int, labels: int) -> np.random.Generator:
    """The random numbers of one run of a function."""
    return np.random.default_rng([seed, labels, 20_261_117])


def arrays_at(name: str, answers: str) -> dict[str, Array]:
    """The arrays of a file: answers (N, K) and y (N,), with at least as many rows as labels are asked for."""
    arrays = read_npz(Path(name), "expected the path of an .npz file, or a pool of this track", answers, "y")
    shape, rows = arrays[answers].shape, len(arrays["y"])
    if len(shape) != 2 or shape[0] != rows or arrays["y"].ndim != 1:
        raise DataDamaged(f"{name}: {answers} of shape {shape} for {rows} rows of y; expected (N, K) and (N,)")
    if rows <= 200:
        raise DataDamaged(f"{name} has {rows} rows; this track asks for up to 200 labels and needs more than that")
    return arrays


# ---------------------------------------------------------------- which of many models is best


@dataclass(frozen=True)
class ModelsTrack(Track):
    """Regret of the chosen model, and how often it is within one point of the best."""

    name: ClassVar = "models"
    built_in: ClassVar = ("random", "disagreement", "assured")
    budgets: ClassVar = ranking.LABELS
    shown: ClassVar = ("pool", "method", "labels", "repeats", "within_1_point", "regret")

    def pool(self, name: str) -> Models:
        if name in ranking.POOLS:
            return ranking.load(name)
        arrays = arrays_at(name, "predictions")
        for array in ("predictions", "y"):
            if arrays[array].dtype.kind not in "iu" or arrays[array].min() < 0:
                raise DataDamaged(f"{name}: {array} must be codes 0, 1, ... of classes, as whole numbers")
        return Models(Path(name).stem, arrays["predictions"].astype(np.int64), arrays["y"].astype(np.int64), None)

    def built_in_run(self, way: str, pool: Models, seed: int) -> list[Row]:
        return list(ranking.choices(pool, pool.pool(), way, seed))

    def run_of(self, way: Way, pool: Models, labels: int, seed: int) -> Row:
        chosen = way(pool.answers.copy(), Labels(pool.truth, labels), labels, randomness(seed, labels))
        models = pool.answers.shape[1]
        if not isinstance(chosen, int | np.integer) or not 0 <= chosen < models:
            raise NotInProtocol(f"it chose {chosen!r}; expected a column from 0 to {models - 1}")
        accuracy = pool.accuracy
        return {"regret": float(accuracy.max() - accuracy[chosen])}

    def summed(self, pool: Models, rows: Sequence[Row]) -> Row:
        regret = np.array([row["regret"] for row in rows])
        within = float((regret <= ranking.NEAR + 1e-12).mean())
        return {"within_1_point": within, "regret": float(regret.mean())}


# ---------------------------------------------------------------- grades with judges


@dataclass(frozen=True)
class JudgesTrack(Track):
    """The mean grade: error, coverage, width, and what a label is worth beside one of a random sample."""

    name: ClassVar = "judges"
    built_in: ClassVar = ("random", "assured", *judges.RIVALS)
    budgets: ClassVar = judges.BUDGETS
    shown: ClassVar = ("pool", "method", "labels", "repeats", "bias", "rmse", "coverage", "width", "label_value")

    def pool(self, name: str) -> Judged:
        if name in judges.POOLS and "mean" in judges.metrics_of(name):
            return judges.loaded(name)[0]
        arrays = arrays_at(name, "judges")
        answers = arrays["judges"]
        if not all(array.dtype.kind in "iuf" and np.isfinite(array).all() for array in (answers, arrays["y"])):
            raise DataDamaged(f"{name}: judges and y must be numbers, none of them missing")
        grades, codes = np.unique(np.concatenate([answers.ravel(), arrays["y"]]), return_inverse=True)
        said = codes[: answers.size].reshape(answers.shape)
        named = {f"judge {column + 1}": said[:, column] for column in range(answers.shape[1])}
        return Judged(tuple(f"{grade:g}" for grade in grades), named, codes[answers.size :])

    def built_in_run(self, way: str, pool: Judged, seed: int) -> list[Row]:
        values = values_of(pool)
        if way in ("random", "assured"):
            found = judges.of_sessions(pool.pool(), pool.truth, "mean", values, seed, way)
            return [{name: row[name] for name in ("labels", "value", "low", "high")} for row in found]
        order = np.random.default_rng([seed, 1]).permutation(len(pool.truth))
        rows, y = [], values[pool.truth]
        for labels in self.budgets:
            estimate = judges.RIVALS[way](grades_of(pool), y, order[:labels])
            value, low, high, _ = estimate or (math.nan,) * 4
            rows.append({"labels": labels, "value": value, "low": low, "high": high})
        return rows

    def run_of(self, way: Way, pool: Judged, labels: int, seed: int) -> Row:
        truth = values_of(pool)[pool.truth]
        found = way(grades_of(pool), Labels(truth, labels), labels, randomness(seed, labels))
        try:
            value, low, high = map(float, found)
        except (TypeError, ValueError):
            raise NotInProtocol(f"it gave {found!r}; expected (value, low, high)") from None
        return {"value": value, "low": low, "high": high}

    def summed(self, pool: Judged, rows: Sequence[Row]) -> Row:
        y, labels = values_of(pool)[pool.truth], rows[0]["labels"]
        value, low, high = (np.array([row[name] for row in rows]) for name in ("value", "low", "high"))
        error, given = value - y.mean(), np.isfinite(low) & np.isfinite(high)
        random = float(y.var() * (1 / labels - 1 / len(y)) * len(y) / (len(y) - 1))
        square = float((error**2).mean())
        covered = (low[given] <= y.mean()) & (y.mean() <= high[given])
        return {
            "bias": float(error.mean()),
            "rmse": math.sqrt(square),
            "coverage": float(covered.mean()) if given.any() else math.nan,
            "width": float((high - low)[given].mean()) if given.any() else math.nan,
            "label_value": random / square if square > 0 else math.nan,
        }


def values_of(pool: Judged) -> Array:
    """(C,) the classes as numbers."""
    return np.array([float(name) for name in pool.classes])


def grades_of(pool: Judged) -> Array:
    """(N, K) what the judges say, as numbers."""
    return np.column_stack([values_of(pool)[codes] for codes in pool.judges.values()])


TRACKS: Final[dict[str, Track]] = {track.name: track for track in (ModelsTrack(), JudgesTrack())}


# ---------------------------------------------------------------- runs


@cache
def pool_of(track: str, name: str) -> Any:
    """The pool, read once in a process."""
    return TRACKS[track].pool(name)


def one_run(track: str, method: str, pool: str, seed: int) -> Row:
    """One way on one pool."""
    looks = TRACKS[track].looks(method, pool_of(track, pool), seed)
    made_with = version_of("assured" if method == "assured" else "")
    return {"pool": pool, "method": method, "seed": seed, "version": made_with, "looks": looks}


def rows_on(
    track: Track, methods: Sequence[str], pools: Sequence[str], *, repeats: int, n_jobs: int, folder: Path | None
) -> Iterator[Row]:
    """The rows of every way on every pool at each number of labels."""
    for method in methods:
        if method not in track.built_in:
            track.way(method)
    for name in pools:
        pool_of(track.name, name)
    store = None if folder is None else Runs(folder / f"{track.name}.jsonl", "pool", "method", "seed")
    finished = {} if store is None else {store.key_of(run): run for run in store.read()}
    wanted = [(name, method, seed) for seed in range(repeats) for name in pools for method in methods]
    calls = [(track.name, method, name, seed) for name, method, seed in wanted if (name, method, seed) not in finished]
    with progress_bar(f"track {track.name}", len(calls)) as bar:
        for run in in_processes(one_run, calls, n_jobs):
            finished[run["pool"], run["method"], run["seed"]] = run
            if store is not None:
                store.add(run)
            bar.advance(1)
    for name in pools:
        for method in methods:
            runs = [finished[name, method, seed] for seed in range(repeats)]
            versions = " / ".join(sorted({run["version"] for run in runs}))
            key = {"version": versions, "track": track.name, "pool": Path(name).stem, "method": method}
            for looks in zip(*(run["looks"] for run in runs), strict=True):
                number = {"labels": looks[0]["labels"], "repeats": repeats}
                yield key | {"status": "run"} | number | track.summed(pool_of(track.name, name), looks)
