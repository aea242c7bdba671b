"""What the guarantee costs, and how often it is broken: `python -m benchmarks.guarantee` (docs/guarantee.md reads it).

boundary  sessions on six real pools with the threshold at the true value, so that every decision is a false one, looked
          at after every label; with the widths of intervals at 400 labels against normal ones from the same draws
widths    uniform draws against Clopper-Pearson and Wilson
default   sessions of the default method to 400 labels on the same pools: intervals with a proof and its own ones
bets      other ways to bet on the same terms

Sessions that are done are kept in a cache and not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest import mock

import numpy as np
from scipy.special import betaln
from scipy.stats import beta

from altmas import guarantee
from altmas.guarantee import Stage, Terms, horizons, interval, log_capital, terms
from altmas.guaranteed import with_guarantee
from altmas.history import History
from altmas.intervals import wilson
from altmas.methods import Assured, Task
from altmas.methods.assured.recipe import EDITION
from altmas.metrics import metric_set, truth_values
from altmas.pool import Pool
from altmas.ratios import OPEN, Ratio, TableRatio, linear_tables, table_ratio
from altmas.simulate import label_until
from altmas.types import Array
from benchmarks.data import NamedPool, cache_folder, load
from benchmarks.store import RESULTS, RUNS, Runs, keep_csv, write_csv

POOLS: Final = ("20news", "abt-buy-svm", "employment-ma", "banking77", "tweet-emotion-llm", "mnist-labelerrors")
METRICS: Final = ("accuracy", "recall", "precision", "f1")
ENDS: Final = (40, 130, 400)
"""Labels at which the stages of a session end."""
UNIFORM_SHARE: Final = 0.5
ERROR: Final = 0.05


# ---------------------------------------------------------------- sessions with a cheap belief


def class_asked_for(named: NamedPool) -> int:
    """The class of recall, precision and F1: the second of two, else the one that is predicted most often."""
    return 1 if len(named.classes) == 2 else int(np.bincount(named.predictions).argmax())


@dataclass(frozen=True)
class World:
    """A pool with its metrics as ratios, and what is known of its points before any label."""

    named: NamedPool
    metrics: dict[str, TableRatio]
    bins: Array  # (N,) confidence of the model, in eight classes of equal size
    class_share: Array  # (N,) share of class k in what the model leaves to other classes than its own
    in_class: Array  # (N,) whether the model says k

    @classmethod
    def of(cls, named: NamedPool) -> World:
        n_classes = len(named.classes)
        k = class_asked_for(named)
        metrics = {
            kind: table_ratio(*linear_tables(kind, n_classes, () if kind == "accuracy" else (k,)), named.predictions)
            for kind in METRICS
        }
        points = np.arange(len(named))
        if named.scores is None:
            return cls(named, metrics, points * 0, np.full(len(named), 1 / (n_classes - 1)), named.predictions == k)
        own = named.scores[points, named.predictions].astype(np.float64)
        order = np.argsort(np.argsort(own, kind="stable"), kind="stable")
        share = np.clip(named.scores[:, k] / np.maximum(1 - own, 1e-6), 0, 1)
        return cls(named, metrics, order * 8 // len(own), share, named.predictions == k)

    def probabilities(self, known: Array) -> tuple[Array, Array]:
        """Believed P(right) and P(y = k), from the shares of right answers by confidence, shrunk to the overall one."""
        labelled = known >= 0
        right = labelled & (known == self.named.predictions)
        overall = (right.sum() + 1) / (labelled.sum() + 2)
        counts, hits = (np.bincount(self.bins[of], minlength=8) for of in (labelled, right))
        p_right = ((hits + 4 * overall) / (counts + 4))[self.bins]
        return p_right, np.where(self.in_class, p_right, (1 - p_right) * self.class_share)

    def belief(self, metric: TableRatio, p_right: Array, p_class: Array, about_right: bool) -> Array:
        """(N, 2): every metric here has two outcomes a point, by right or wrong, or by k or not k."""
        code = metric.outcomes(self.named.predictions) if about_right else metric.outcomes(self._all_in_class())
        p = p_right if about_right else p_class
        return np.where(code[:, None] == np.arange(metric.ratio.num.shape[1]), p[:, None], 1 - p[:, None])

    def _all_in_class(self) -> Array:
        k = int(self.named.predictions[self.in_class][0])
        return np.full(len(self.named), k)


def sizes_of(p_right: Array, p_class: Array, open_: Array) -> Array:
    """Half uniform, the rest by the believed standard deviations of "right" and of "is k"."""
    sizes = np.full(len(open_), UNIFORM_SHARE / open_.sum())
    for p in (p_right, p_class):
        spread = np.sqrt(p * (1 - p)) * open_
        sizes += (1 - UNIFORM_SHARE) / 2 * spread / spread.sum()
    return np.where(open_, sizes, 1.0)


def run(world: World, seed: int) -> dict[str, list[Stage]]:
    """The stages of one session, for each metric: the same draws, the metric's own outcomes and beliefs."""
    rng = np.random.default_rng([seed, len(world.named)])
    known = np.full(len(world.named), OPEN)
    stages: dict[str, list[Stage]] = {kind: [] for kind in METRICS}
    done = 0
    for end in ENDS:
        p_right, p_class = world.probabilities(known)
        open_ = known == OPEN
        sizes = sizes_of(p_right, p_class, open_) if done else np.ones(len(known))
        times = np.where(open_, rng.exponential(size=len(known)) / sizes, np.inf)
        drawn = np.argsort(times)[: end - done]
        for kind, metric in world.metrics.items():
            believed = world.belief(metric, p_right, p_class, kind == "accuracy")
            outcomes = metric.outcomes(np.where(np.isin(np.arange(len(known)), drawn), world.named.truth, known))
            stages[kind].append(Stage(metric.outcomes(known), sizes, believed, drawn, outcomes[drawn]))
        known[drawn] = world.named.truth[drawn]
        done = end
    return stages


def true_value(world: World, kind: str) -> float:
    metric = world.metrics[kind]
    num, den = metric.ratio.totals(metric.outcomes(world.named.truth))
    return num / den


def normal_interval(ratio: Ratio, stages: list[Stage]) -> tuple[float, float]:
    """value +- 1.96 se from the same draws and beliefs: mean of (known + believed + weighted residual) over draws."""
    parts = []
    for stage in stages:
        open_ = stage.known == OPEN
        believed = [(stage.belief * values[ratio.kind]).sum(1) for values in (ratio.num, ratio.den)]
        totals = [known + b[open_].sum() for known, b in zip(ratio.totals(stage.known), believed, strict=True)]
        left = stage.sizes[open_].sum()
        for i, outcome in zip(stage.drawn, stage.outcomes, strict=True):
            gaps = [
                values[ratio.kind[i], outcome] - b[i]
                for values, b in zip((ratio.num, ratio.den), believed, strict=True)
            ]
            parts.append([total + gap * left / stage.sizes[i] for total, gap in zip(totals, gaps, strict=True)])
            totals = [total + gap for total, gap in zip(totals, gaps, strict=True)]
            left -= stage.sizes[i]
    num, den = np.array(parts).T
    value = num.sum() / den.sum()
    half = 1.96 * np.sqrt(((num - value * den) ** 2).sum()) / den.sum()
    return float(value - half), float(value + half)


# ---------------------------------------------------------------- false decisions, and widths of the same sessions


def boundary(names: list[str], sessions: int, intervals: int) -> None:
    """Runs what is missing, in rounds so that all pools grow together, and writes guarantee_boundary.csv."""
    worlds = {name: World.of(load(name)) for name in names}
    for first in range(0, sessions, CHUNK):
        for name, world in worlds.items():
            runs, seeds = runs_of(name), range(first, min(first + CHUNK, sessions))
            if missing := sorted(set(seeds) - runs.done()):
                runs.add(*chunk(world, missing, intervals))
                print(f"{name}: sessions {seeds[0]} to {seeds[-1]}", flush=True)
        rows = [row for name in names for row in boundary_rows(name, worlds[name])]
        write_csv(RESULTS / "guarantee_boundary.csv", rows)


CHUNK: Final = 25


def runs_of(pool: str) -> Runs:
    """The finished sessions on a pool, told apart by their seed."""
    return Runs(cache_folder() / "guarantee" / f"{pool}.jsonl", "seed")


def chunk(world: World, seeds: Sequence[int], intervals: int) -> list[dict[str, Any]]:
    """[{seed, metric: [largest capital above, below]}], the capitals of all sessions played side by side."""
    sessions = [run(world, seed) for seed in seeds]
    rows: list[dict[str, Any]] = [{"seed": seed} for seed in seeds]
    for kind, metric in world.metrics.items():
        at = np.array([true_value(world, kind)])
        games = [terms(metric.ratio, stages[kind], at) for stages in sessions]
        together = Terms(*(np.concatenate(parts, axis=-1) for parts in zip(*(game[:4] for game in games), strict=True)))
        capital = log_capital(together, ERROR, *horizons(ENDS[-1], len(world.named))).max(0)  # (2, sessions)
        for row, pair, stages in zip(rows, np.exp(capital).T, sessions, strict=True):
            row[kind] = pair.round(4).tolist()
            if row["seed"] < intervals:
                row[kind] += interval(metric.ratio, stages[kind], budget=ENDS[-1])
                row[kind] += normal_interval(metric.ratio, stages[kind])
    return rows


def boundary_rows(name: str, world: World) -> Iterator[dict[str, Any]]:
    """False decisions of each metric, and mean widths against normal ones."""
    runs = runs_of(name).read()
    for kind in METRICS:
        truth = true_value(world, kind)
        largest = np.array([row[kind][:2] for row in runs])
        ends = np.array([row[kind][2:] for row in runs if len(row[kind]) > 2])
        low, high, normal_low, normal_high = ends.T
        width, normal = (
            (high - low).mean(),
            np.maximum(np.minimum(normal_high, 1) - np.maximum(normal_low, 0), 0).mean(),
        )
        yield {
            "pool": name,
            "metric": kind,
            "value": round(truth, 4),
            "sessions": len(runs),
            "false_above": int((largest[:, 0] >= 1 / ERROR).sum()),
            "false_below": int((largest[:, 1] >= 1 / ERROR).sum()),
            "intervals": len(ends),
            "covered": round(float(((low <= truth) & (truth <= high)).mean()), 3),
            "width": round(float(width), 4),
            "normal_width": round(float(normal), 4),
            "normal_covered": round(float(((normal_low <= truth) & (truth <= normal_high)).mean()), 3),
            "ratio": round(float(width / normal), 3) if normal > 0 else "",
        }


# ---------------------------------------------------------------- sessions of the default method


def default(names: list[str], runs: int) -> None:
    """Writes guarantee_default.csv: widths of both intervals of `assured`, from the same labels."""
    rows: list[dict[str, Any]] = []
    for name in names:
        named = load(name)
        done = Runs(RUNS / f"guarantee.{EDITION}.{name}.jsonl", "seed")
        done.add(*(default_run(named, seed) for seed in sorted(set(range(runs)) - done.done())))
        rows += default_rows(name, [run for run in done.read() if run["seed"] < runs])
        print(name, flush=True)
    keep_csv(RESULTS / "guarantee_default.csv", rows, "pool", "metric", count="runs")


def default_run(named: NamedPool, seed: int) -> dict[str, Any]:
    """{seed, metric: [estimate, ends of the usual interval, ends of the one with a proof, truth]}."""
    pool = Pool(named.features, named.predictions, scores=named.scores, classes=named.classes)
    name = pool.classes[class_asked_for(named)]
    metrics = metric_set(["accuracy", *(f"{kind}[{name}]" for kind in METRICS[1:])], pool)
    method, task = Assured(), Task(pool, metrics, seed=seed, budget=ENDS[-1])
    history = label_until(method, task, History(len(pool)), ENDS[-1], 10, named.truth.__getitem__)
    usual = method.estimate(task, history)
    proven = with_guarantee(method, replace(task, guarantee=True), history, usual)
    truth = truth_values(pool, named.truth, metrics)
    line: dict[str, Any] = {"seed": seed}
    for kind, metric in zip(METRICS, metrics, strict=True):
        one, other = usual[metric.name], proven[metric.name]
        line[kind] = [one.value, one.low, one.high, other.low, other.high, truth[metric.name]]
    return line


def default_rows(name: str, runs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Mean widths of each metric, and how often both intervals held."""
    for kind in METRICS:
        _, low, high, proven_low, proven_high, truth = np.array([run[kind] for run in runs], np.float64).T
        width, proven = float((high - low).mean()), float((proven_high - proven_low).mean())
        yield {
            "pool": name,
            "metric": kind,
            "edition": EDITION,
            "runs": len(runs),
            "width": round(width, 5),
            "covered": round(float(((low <= truth + 1e-6) & (truth - 1e-6 <= high)).mean()), 3),
            "proven_width": round(proven, 5),
            "proven_covered": round(float(((proven_low <= truth + 1e-6) & (truth - 1e-6 <= proven_high)).mean()), 3),
            "ratio": round(proven / width, 3) if width > 1e-9 else "",
        }


# ---------------------------------------------------------------- uniform draws


def uniform_session(accuracy: float, seed: int, n_points: int = 20_000, labels: int = 400) -> list[Stage]:
    """One stage of uniform draws with a constant belief."""
    rng = np.random.default_rng([seed, int(accuracy * 1000)])
    right = (rng.permutation(n_points) < accuracy * n_points).astype(int)
    drawn = rng.permutation(n_points)[:labels]
    return [Stage(np.full(n_points, OPEN), np.ones(n_points), np.full((n_points, 2), 0.5), drawn, right[drawn])]


def first_labels(stages: list[Stage], count: int) -> list[Stage]:
    (stage,) = stages
    return [Stage(stage.known, stage.sizes, stage.belief, stage.drawn[:count], stage.outcomes[:count])]


def right_or_wrong(n_points: int) -> Ratio:
    return Ratio.of_points(np.tile([0.0, 1.0], (n_points, 1)), np.ones((n_points, 2)))


def widths(runs: int) -> None:
    """Writes guarantee_widths.csv: mean widths of intervals at 100, 200 and 400 uniform labels."""
    ratio = right_or_wrong(20_000)
    rows = []
    for accuracy in (0.5, 0.85, 0.99):
        sessions = [uniform_session(accuracy, seed) for seed in range(runs)]
        for labels in (100, 200, 400):
            parts = [first_labels(stages, labels) for stages in sessions]
            right = np.array([part[0].outcomes.sum() for part in parts])
            row: dict[str, Any] = {"accuracy": accuracy, "labels": labels, "runs": runs}
            row["clopper_pearson"] = float(np.mean([np.diff(clopper_pearson(k, labels)) for k in right]))
            row["wilson"] = float(np.mean([np.diff(wilson(k / labels, labels, 1.96)) for k in right]))
            for name, budget in (("budget_400", 400), ("budget_is_labels", labels), ("no_budget", None)):
                ends = np.array([interval(ratio, part, budget=budget) for part in parts])
                row[name] = float(np.diff(ends).mean())
                row[f"{name}_covered"] = float(((ends[:, 0] <= accuracy) & (accuracy <= ends[:, 1])).mean())
            rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(rows[-1], flush=True)
    write_csv(RESULTS / "guarantee_widths.csv", rows)


def clopper_pearson(right: int, labels: int) -> tuple[float, float]:
    low = beta.ppf(0.025, right, labels - right + 1) if right else 0.0
    high = beta.ppf(0.975, right + 1, labels - right) if right < labels else 1.0
    return float(low), float(high)


# ---------------------------------------------------------------- other bets on the same terms

Capital = Callable[[Terms], Array]
"""(T, 2, G) log capital of a game."""


def with_horizons(*parts: float) -> Capital:
    """Capital spread evenly over these parts of the budget."""
    ends = np.array(parts) * ENDS[-1]
    return lambda game: log_capital(game, ERROR / 2, ends, np.full(len(ends), 1 / len(ends)))


def ours(game: Terms) -> Array:
    return log_capital(game, ERROR / 2, *horizons(ENDS[-1], 10_000))


def constant_fractions(game: Terms) -> Array:
    """Average of players who always stake the same part of what they could lose at most, 2^-10 to 0.98."""
    stakes = np.append(2.0 ** -np.arange(1, 11), 0.98)[:, None, None]
    log = np.zeros((len(stakes), 2, game.z.shape[1]))
    history = np.empty((len(game.z), *log.shape[1:]))
    sign = np.array([1.0, -1.0])[:, None]
    for m, z in enumerate(game.z):
        log += np.log1p(stakes / game.loss[m] * sign * z)
        history[m] = np.logaddexp.reduce(log, 0) - np.log(len(stakes))
    return history


def online_newton(game: Terms) -> Array:
    """Bets by the online Newton step (Cutkosky and Orabona 2018), on terms scaled to losses of at most 1."""
    log, stake, squares = (np.zeros((2, game.z.shape[1])) for _ in range(3))
    squares += 1
    history = np.empty((len(game.z), *log.shape))
    sign = np.array([1.0, -1.0])[:, None]
    for m, z in enumerate(game.z):
        scaled = sign * z / game.loss[m]
        log += np.log1p(stake * scaled)
        history[m] = log
        slope = scaled / (1 + stake * scaled)
        squares += slope**2
        stake = np.clip(stake + 2 / (2 - np.log(3)) * slope / squares, 0, 0.5)
    return history


BETS: Final[dict[str, tuple[dict[str, Any], Capital]]] = {
    "as it is": ({}, ours),
    "one horizon": ({}, with_horizons(1)),
    "horizons 1/2, 1, 2": ({}, with_horizons(0.5, 1, 2)),
    "belief not fitted to candidates": ({"_fit_tilt": lambda groups, g, before, start: 0 * start}, ours),
    "no doubt": ({"DOUBT": 0.0}, ours),
    "no surprise": ({"WARY": 1e12}, ours),
    "no skewness": ({}, lambda game: ours(game._replace(skew=0 * game.skew))),
    "constant fractions": ({}, constant_fractions),
    "online Newton": ({}, online_newton),
}


def bets(runs: int) -> None:
    """Writes guarantee_bets.csv: mean widths at 400 labels for other bets, on uniform draws and on three pools."""
    scenes = [*UNIFORM, "20news", "banking77", "abt-buy-svm"]
    table: dict[str, dict[str, Any]] = {name: {"bets": name} for name in [*BETS, "beta-binomial mixture"]}
    for scene in scenes:
        for kind in ("accuracy",) if scene in UNIFORM else ("accuracy", "f1"):
            for name, width in scene_widths(scene, kind, runs).items():
                table[name][f"{scene} {kind}" if scene not in UNIFORM else scene] = round(width, 4)
        print(scene, flush=True)
    write_csv(RESULTS / "guarantee_bets.csv", table.values())


UNIFORM: Final = {"uniform 0.5": 0.5, "uniform 0.85": 0.85, "uniform 0.99": 0.99}


def scene_widths(scene: str, kind: str, runs: int) -> dict[str, float]:
    """{bets: mean width}, on a grid of candidates around the truth."""
    if scene in UNIFORM:
        ratio, truth = right_or_wrong(20_000), UNIFORM[scene]
        sessions = [uniform_session(truth, seed) for seed in range(runs)]
    else:
        world = World.of(load(scene))
        ratio, truth = world.metrics[kind].ratio, true_value(world, kind)
        sessions = [run(world, seed)[kind] for seed in range(runs)]
    reach = {"f1": 1.0}.get(kind, 1.5 * (truth * (1 - truth)) ** 0.5)
    q = np.linspace(max(truth - reach, 0.0005), min(truth + reach, 0.9995), 301)
    by_bets: dict[str, list[float]] = {name: [] for name in BETS}
    for stages in sessions:
        for name, (patches, capital) in BETS.items():
            with ExitStack() as patched:
                for attribute, value in patches.items():
                    patched.enter_context(mock.patch.object(guarantee, attribute, value))
                largest = capital(terms(ratio, stages, q)).max(0)
            by_bets[name].append(width_on(q, *(largest >= np.log(2 / ERROR))))
    if scene in UNIFORM:
        by_bets["beta-binomial mixture"] = [width_on(q, *beta_binomial(stages[0].outcomes, q)) for stages in sessions]
    return {name: float(np.mean(values)) for name, values in by_bets.items()}


def width_on(q: Array, above: Array, below: Array) -> float:
    """Width between the candidates that are rejected in a row from either end."""
    low, high = int(np.argmin(np.append(above, False))), int(np.argmin(np.append(below[::-1], False)))
    bottom = q[low - 1] if low else 0.0
    top = q[len(q) - high] if high else 1.0
    return float(max(top - bottom, 0.0))


def beta_binomial(outcomes: Array, q: Array) -> tuple[Array, Array]:
    """Candidates rejected by the prior-posterior ratio with a uniform prior, below and above the share seen."""
    n, k = np.arange(1, len(outcomes) + 1)[:, None], np.cumsum(outcomes)[:, None]
    ratio = betaln(k + 1, n - k + 1) - k * np.log(q) - (n - k) * np.log1p(-q)
    rejected = ratio >= np.log(1 / ERROR)
    return (rejected & (q < k / n)).any(0), (rejected & (q > k / n)).any(0)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the guarantee costs, and how often it is broken.")
    parser.add_argument("part", nargs="?", choices=("boundary", "widths", "default", "bets", "all"), default="all")
    parser.add_argument("--pools", default=",".join(POOLS), help="comma-separated")
    parser.add_argument("--sessions", type=int, default=350, help="for each pool")
    parser.add_argument("--intervals", type=int, default=25, help="sessions of each pool whose intervals are computed")
    parser.add_argument("--runs", type=int, default=30, help="for widths, default and bets")
    options = parser.parse_args()
    if options.part in ("widths", "all"):
        widths(options.runs)
    if options.part in ("boundary", "all"):
        boundary(options.pools.split(","), options.sessions, options.intervals)
    if options.part in ("default", "all"):
        default(options.pools.split(","), options.runs)
    if options.part in ("bets", "all"):
        bets(options.runs)


if __name__ == "__main__":
    main()
