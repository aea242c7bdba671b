"""Which of many models is best? How soon the choice is a good one, and how often a truly best model is excluded.

    python -m benchmarks.ranking run --way random --runs 200    # resumable; each of the ways below
    python -m benchmarks.ranking run --way tiers --runs 200     # assured with a constant belief: is the best excluded?
    python -m benchmarks.ranking belief --runs 8                # what all models say about the truth: docs/models.md
    python -m benchmarks.ranking page                           # the tables, the figure and the pages

Pools: real predictions of 8 to 97 models on the same rows (models-* in the folder that ALTMAS_DATA names), exact
duplicates among the models left out. Ways to choose after n labels:

    random          n labels at random; the model with most right answers among them
    disagreement    labels in proportion to how much the models disagree; most right answers among them
    model-selector  the rule of Model Selector (Okanovic et al., AISTATS 2025): P(model is best) in proportion to
                    ((1 - e) / e)^(right answers); the next label is that with the least expected entropy of it, mean
                    over the classes, points on which all models agree left out; e as published for the pool where
                    it is; most right answers among the labels
    assured         altmas with rank="accuracy"; the model that the ranking calls best

Regret is the accuracy of the truly best model minus that of the chosen one.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from altmas import Pool
from altmas.belief import Belief
from altmas.history import History
from altmas.methods import Assured, Task
from altmas.methods.assured.belief import belief_of, folds_of
from altmas.methods.assured.contest import Contest, disagreement
from altmas.methods.assured.views import describe
from altmas.metrics import metric_set
from altmas.ranking import LEAST_RANKED, WORSE, rank
from altmas.streams import stream
from benchmarks.store import BEFORE, RESULTS, RUNS, Runs, read_numbers, version_of, write_csv
from benchmarks.tables import DOCS, markdown, with_table

Ints = NDArray[np.int64]

POOLS: Final = ("emotion", "pacs", "cola", "qnli", "civilcomments")
EPSILON: Final = {"emotion": 0.46, "pacs": 0.45, "cola": 0.45, "qnli": 0.44, "civilcomments": 0.43}
"""e of Model Selector: as public code states it for pacs, cola and qnli; a grid-search value and a default else."""
LABELS: Final = (25, 50, 100, 200)
STOPS: Final = (20, 25, 40, 50, 80, 100, 160, 200)
"""Where a stage of `assured` may begin, or a choice is looked at."""
NEAR: Final = 0.01
FIRST: Final = 1000
"""The first seed: rules for choosing were compared on others."""
COUNTED: Final = 20
"""Runs of `assured` in which models that are shown to be worse are counted, which takes every interval."""
TABLE: Final = RESULTS / "ranking.csv"
BELIEF: Final = RESULTS / "ranking_belief.csv"
FIGURE: Final = RESULTS / "ranking.png"
CHOOSERS: Final = ("random", "disagreement", "model-selector", "assured")


@dataclass(frozen=True)
class Models:
    """answers (N, K) of K models, truth (N,), probabilities (N, K) of the second class where a model gives them."""

    name: str
    answers: Ints
    truth: Ints
    scores: NDArray[np.float64] | None

    @property
    def n_classes(self) -> int:
        return int(max(self.answers.max(), self.truth.max())) + 1

    @property
    def accuracy(self) -> NDArray[np.float64]:
        return np.asarray((self.answers == self.truth[:, None]).mean(0))

    def pool(self) -> Pool:
        """The same as a pool of named models."""
        classes = np.array([f"c{code}" for code in range(self.n_classes)])
        names = [f"m{k}" for k in range(self.answers.shape[1])]
        scores = None if self.scores is None else {name: self.scores[:, k] for k, name in enumerate(names)}
        answers = {name: classes[self.answers[:, k]] for k, name in enumerate(names)}
        return Pool(None, answers, scores=scores, classes=classes.tolist())


@cache
def load(name: str) -> Models:
    """The models of one pool, each different set of answers once."""
    with np.load(Path(os.environ["ALTMAS_DATA"]) / f"models-{name}" / "pool.npz") as file:
        truth = file["y"].astype(np.int64)
        if "model_scores" in file:
            scores = file["model_scores"].astype(np.float64)
            return Models(name, (scores >= 0.5).astype(np.int64), truth, scores)
        answers = file["predictions"].astype(np.int64)
    first = np.sort(np.unique(answers, axis=1, return_index=True)[1])
    return Models(name, answers[:, first], truth, None)


# ---------------------------------------------------------------- ways to choose


def most_right(models: Models, rows: Ints, rng: np.random.Generator) -> int:
    """The model with most right answers among these rows; one of several at random."""
    right = (models.answers[rows] == models.truth[rows][:, None]).sum(0)
    return int(rng.choice(np.flatnonzero(right == right.max())))


def random_order(models: Models, rng: np.random.Generator) -> Ints:
    return rng.permutation(len(models.truth))[: max(LABELS)]


def disagreement_order(models: Models, rng: np.random.Generator) -> Ints:
    sizes = disagreement(list(models.answers.T), models.n_classes) + 1e-9
    return np.argsort(rng.standard_exponential(len(sizes)) / sizes)[: max(LABELS)]


def model_selector_order(models: Models, rng: np.random.Generator) -> Ints:
    """Points in the order in which Model Selector asks for them: those on which all models agree come last."""
    odds = (1 - EPSILON[models.name]) / EPSILON[models.name]
    n, k = models.answers.shape
    says = np.stack([models.answers == c for c in range(models.n_classes)], axis=1).reshape(-1, k).astype(np.float32)
    right, left, order = np.zeros(k), (models.answers != models.answers[:, :1]).any(1), []
    for _ in range(min(max(LABELS), int(left.sum()))):
        logs = right * np.log(odds)
        p = np.exp(logs - logs.max())
        p /= p.sum()
        entropy = expected_entropy(p, odds, says, models.n_classes)
        entropy[~left] = np.inf
        ties = np.flatnonzero(entropy <= entropy.min() + 1e-9)
        row = int(rng.choice(ties))
        order.append(row)
        left[row] = False
        right += models.answers[row] == models.truth[row]
    rest = rng.permutation(np.setdiff1d(np.arange(n), order))[: max(LABELS) - len(order)]
    return np.concatenate([order, rest]).astype(np.int64)


def expected_entropy(p: NDArray[Any], odds: float, says: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """(N,) mean over the classes c of the entropy of P(best) after the label c: models that say c gain the odds."""

    def log(x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.log(np.maximum(x, 1e-300)))

    plain, gained = p * log(p), odds * p * log(odds * p)
    columns = np.column_stack([(odds - 1) * p, gained - plain]).astype(np.float32)
    sums = says @ columns
    total, weighted = 1 + sums[:, 0], float(plain.sum()) + sums[:, 1]
    return np.asarray((np.log(total) - weighted / total).reshape(-1, n_classes).mean(1), np.float64)


ORDERS: Final[dict[str, Callable[[Models, np.random.Generator], Ints]]] = {
    "random": random_order,
    "disagreement": disagreement_order,
    "model-selector": model_selector_order,
}


def constant_belief(task: Task, labelled: Any, codes: Any, weights: Any, folds: Any) -> Belief:
    """Every point right with the same chance, rivals alike: a belief that costs nothing."""
    n_classes, n = len(task.pool.classes), len(task.pool)
    right = (float((codes == task.pool.anchor[labelled]).sum()) + 1) / (len(codes) + 2)
    rivals = (1 - np.eye(n_classes)) / (n_classes - 1)
    return Belief(task.pool.anchor, np.full(n, right), rivals, task.pool.anchor, {"constant": 1.0})


def contests(models: Models, pool: Pool, method: Assured, seed: int, *, tiers: bool) -> Iterator[dict[str, Any]]:
    """What the ranking says after each number of labels; how many are shown to be worse after the last if `tiers`."""
    metrics = metric_set(["accuracy"], pool)
    task, history = Task(pool, metrics, seed=seed, rank=metrics), History(len(pool))
    accuracy = models.accuracy
    for stop in STOPS:
        batch = method.propose(task, history, stop - len(history.labels))
        labels = dict(history.labels) | {int(row): int(models.truth[row]) for row in batch.indices}
        batch = replace(batch, labels_before=len(history.labels))
        history = History(len(pool), (*history.batches, batch), labels)
        if stop not in LABELS:
            continue
        contest = method.contest(task, history, metrics)
        assert contest is not None
        regret = float(accuracy.max() - accuracy[contest.best])
        look = {"labels": stop, "regret": regret, "excluded_best": best_excluded(contest, accuracy, task)}
        if tiers and stop == LABELS[-1]:
            look["excluded"] = len(rank(method, task, history, metrics, "accuracy").tier(WORSE))
        yield look


def best_excluded(contest: Contest, accuracy: NDArray[np.float64], task: Task) -> bool:
    """Whether the ranking would call a truly best model worse: as in `altmas.ranking`, for these models alone."""
    rivals = [int(k) for k in np.flatnonzero(accuracy == accuracy.max()) if k != contest.best]
    if not rivals or contest.drawn < LEAST_RANKED:
        return False
    factors = contest.critical(task.confidence, stream(task.seed, "ranking", contest.labels), rivals)
    return any(contest.interval(contest.best, k, float(factors[k]))[0] > 0 for k in rivals)


def choices(models: Models, pool: Pool, way: str, seed: int, *, tiers: bool = False) -> Iterator[dict[str, Any]]:
    """What one way would have chosen after each number of labels; how many are shown to be worse if `tiers`."""
    if way in ("assured", "tiers"):
        own = way == "assured"
        method = Assured(belief=None if own else constant_belief)
        yield from contests(models, pool, method, seed, tiers=own and tiers)
        return
    rng = np.random.default_rng([seed, 20_261_117])
    order = ORDERS[way](models, rng)
    accuracy = models.accuracy
    for labels in LABELS:
        chosen = most_right(models, order[:labels], rng)
        yield {"labels": labels, "regret": float(accuracy.max() - accuracy[chosen])}


# ---------------------------------------------------------------- runs, table, page


def run(way: str, runs: int, pools: tuple[str, ...]) -> None:
    """Do the runs that are missing."""
    store = Runs(RUNS / f"ranking_{way}.jsonl", "pool", "seed")
    done = store.done()
    made = {name: load(name).pool() for name in pools} if way in ("assured", "tiers") else {}
    for seed in range(FIRST, FIRST + runs):
        for name in pools:
            if (name, seed) not in done:
                started, models = time.process_time(), load(name)
                pool, tiers = made.get(name) or Pool(None, ["a", "b"]), seed < FIRST + COUNTED
                looks = list(choices(models, pool, way, seed, tiers=tiers))
                seconds = time.process_time() - started
                made_with = {"version": version_of("assured" if way == "tiers" else way)}
                store.add({"pool": name, "seed": seed, "looks": looks, "seconds": seconds} | made_with)


def summary() -> list[dict[str, Any]]:
    """Rows of the table: one for each pool, way and number of labels."""
    rows = []
    for way in (*CHOOSERS, "tiers"):
        runs = Runs(RUNS / f"ranking_{way}.jsonl", "pool", "seed").read()
        for name in POOLS:
            own = [run for run in runs if run["pool"] == name]
            for index, labels in enumerate(LABELS if own else ()):
                looks = [run["looks"][index] for run in own]
                regret = np.array([look["regret"] for look in looks])
                ever = [any(look.get("excluded_best", False) for look in run["looks"][: index + 1]) for run in own]
                rows.append(
                    {
                        "pool": name,
                        "way": way,
                        "labels": labels,
                        "version": " / ".join(sorted({run.get("version", BEFORE) for run in own})),
                        "runs": len(own),
                        "regret": round(float(regret.mean()), 5),
                        "within_1_point": round(float((regret <= NEAR + 1e-12).mean()), 3),
                        "excluded": mean_of([look["excluded"] for look in looks if "excluded" in look]),
                        "best_ever_excluded": round(float(np.mean(ever)), 4),
                        "seconds": round(float(np.mean([run["seconds"] for run in own])), 2),
                    }
                )
    return rows


def mean_of(numbers: list[float]) -> float:
    """Their mean, rounded; nan of none."""
    return round(float(np.mean(numbers)), 2) if numbers else float("nan")


def with_earlier(rows: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """These rows, and those of the table for pools and ways whose runs are not at hand."""
    new = {(row["pool"], row["way"]) for row in rows}
    together = [*rows, *(row for row in earlier if (row["pool"], row["way"]) not in new)]
    ways = (*CHOOSERS, "tiers")
    return sorted(together, key=lambda row: (ways.index(row["way"]), POOLS.index(row["pool"]), row["labels"]))


def labels_to_match(rows: list[dict[str, Any]], name: str, way: str) -> str:
    """Least number of labels at which a way chooses as well as random labels do at 200."""
    of = {(row["way"], row["labels"]): row["within_1_point"] for row in rows if row["pool"] == name}
    aim = of[("random", 200)]
    able = [labels for labels in LABELS if (way, labels) in of and of[(way, labels)] >= aim]
    return str(min(able)) if able else "more than 200"


def page() -> None:
    """The tables of docs/ranking.md and the figure, from the table of results."""
    rows = read_numbers(TABLE)
    of = {(row["pool"], row["way"], row["labels"]): row for row in rows}
    lines = []
    for name in POOLS:
        for way in CHOOSERS:
            own = [of.get((name, way, labels)) for labels in LABELS]
            if all(own):
                cells = [f"{row['within_1_point']:.2f} ({100 * row['regret']:.2f})" for row in own if row]
                runs = str(own[0]["runs"] if own[0] else 0)
                lines.append([name, way, *cells, labels_to_match(rows, name, way), runs])
    head = ["pool", "way", *(f"{labels} labels" for labels in LABELS), "as good as random at 200", "runs"]
    tiers = []
    for name in POOLS:
        for way in ("assured", "tiers"):
            last = of.get((name, way, 200))
            if last is not None:
                belief = "its own" if way == "assured" else "constant"
                ever = f"{100 * last['best_ever_excluded']:.1f} %"
                shown = "-" if last["excluded"] is None or np.isnan(last["excluded"]) else f"{last['excluded']:.1f}"
                models = str(load(name).answers.shape[1])
                tiers.append([name, models, belief, shown, ever, str(last["runs"])])
    tier_head = ["pool", "models", "belief", "shown to be worse at 200", "best ever excluded", "runs"]
    text = (DOCS / "ranking.md").read_text(encoding="utf-8")
    text = with_table(text, "choices", markdown(head, lines))
    text = with_table(text, "tiers", markdown(tier_head, tiers))
    (DOCS / "ranking.md").write_text(text, encoding="utf-8")
    models = (DOCS / "models.md").read_text(encoding="utf-8")
    (DOCS / "models.md").write_text(with_table(models, "belief", belief_table(read_numbers(BELIEF))), encoding="utf-8")
    draw(rows)


def draw(rows: list[dict[str, Any]]) -> None:
    """P(within one point of the best) against labels, one panel for each pool."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(POOLS), figsize=(13, 2.8), sharey=True)
    for axis, name in zip(axes, POOLS, strict=True):
        for way, marker in zip(CHOOSERS, "os^D", strict=True):
            own = [row for row in rows if row["pool"] == name and row["way"] == way]
            axis.plot(
                [row["labels"] for row in own], [row["within_1_point"] for row in own], marker=marker, ms=4, label=way
            )
        axis.set(title=name, xscale="log", xlabel="labels", ylim=(0, 1.03))
        axis.set_xticks(LABELS, [str(labels) for labels in LABELS], minor=False)
        axis.minorticks_off()
    axes[0].set_ylabel("within 1 point of the best")
    axes[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)


# ---------------------------------------------------------------- what all models say about the truth

TRAINED: Final = (30, 100, 300)


def losses(pool: Pool, truth: Ints, seed: int) -> list[float]:
    """Mean -ln P(truth) of the points without a label, after each number of random labels."""
    order = np.random.default_rng([seed, 7]).permutation(len(pool))
    means = []
    for n in TRAINED:
        rows, rest = order[:n], order[n:]
        belief = belief_of(pool, describe(pool), rows, truth[rows], np.ones(n), folds_of(len(pool), seed))
        chance = belief.rows(rest)[np.arange(len(rest)), truth[rest]]
        means.append(float(-np.log(np.maximum(chance, 1e-5)).mean()))
    return means


def run_belief(runs: int, pools: tuple[str, ...]) -> None:
    """Do the runs that are missing, with the first model alone and with all of them."""
    store = Runs(RUNS / "ranking_belief.jsonl", "pool", "seed")
    done = store.done()
    for name in pools:
        models = load(name)
        every = models.pool()
        first = every.with_models(every.models[0])
        for seed in range(runs):
            if (name, seed) not in done:
                means = {"first": losses(first, models.truth, seed), "all": losses(every, models.truth, seed)}
                store.add({"pool": name, "seed": seed, **means})


def belief_rows() -> list[dict[str, Any]]:
    runs = Runs(RUNS / "ranking_belief.jsonl", "pool", "seed").read()
    rows = []
    for name in POOLS:
        own = [run for run in runs if run["pool"] == name]
        for index, n in enumerate(TRAINED if own else ()):
            first, every = (round(float(np.mean([run[key][index] for run in own])), 4) for key in ("first", "all"))
            rows.append({"pool": name, "labels": n, "runs": len(own), "first": first, "all": every})
    return rows


def belief_table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for name in POOLS:
        own = [row for row in rows if row["pool"] == name]
        if own:
            first, every = (" / ".join(f"{row[key]:.3f}" for row in own) for key in ("first", "all"))
            lines.append([name, str(load(name).answers.shape[1]), first, every, str(own[0]["runs"])])
    head = ["pool", "models", f"first model alone, n = {' / '.join(map(str, TRAINED))}", "all models", "runs"]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["run", "belief", "page"])
    parser.add_argument("--way", choices=[*CHOOSERS, "tiers"], action="append")
    parser.add_argument("--pool", choices=POOLS, action="append")
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    if options.part == "run":
        for way in options.way or [*CHOOSERS, "tiers"]:
            run(way, options.runs, tuple(options.pool or POOLS))
    elif options.part == "belief":
        run_belief(options.runs, tuple(options.pool or POOLS))
    else:
        write_csv(TABLE, with_earlier(summary(), read_numbers(TABLE)))
        write_csv(BELIEF, belief_rows() or read_numbers(BELIEF))
        page()


if __name__ == "__main__":
    main()
