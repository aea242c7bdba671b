"""The paper's method beside its baselines, through the public API: `python -m benchmarks.four_methods`.

`altmas.simulate` on two pools with known truth: the digits of `altmas demo`, and the answers of a language model on
tweets (hard labels only). Finished runs are kept next to the results and not repeated.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import altmas
from altmas.demo import digits
from benchmarks.data import load
from benchmarks.store import RESULTS, RUNS, write_csv

METHODS = ("altmas", "bald", "tradition", "trust")
BUDGETS = (100, 150, 200)


def pools() -> dict[str, tuple[altmas.Pool, NDArray[np.int64], list[str]]]:
    """{name: (pool, truth, metrics)}"""
    digits_pool, digits_truth = digits()
    tweets = load("tweet-emotion-llm")
    return {
        "digits": (digits_pool, digits_truth, ["accuracy", "macro_f1", "recall[8]"]),
        "tweet-emotion-llm": (tweets.pool(), tweets.truth, ["accuracy", "macro_f1"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    rows = []
    for name, (pool, truth, metrics) in pools().items():
        result = altmas.simulate(
            pool,
            truth,
            methods=METHODS,
            metrics=metrics,
            budgets=BUDGETS,
            repeats=options.repeats,
            n_jobs=options.jobs,
            batch=25,
            results=RUNS / f"four_methods.{name}.jsonl",
        )
        print(f"\n{name}\n{result}\n")
        rows += [{"pool": name, **row} for row in result.summary()]
    shown = ({key: f"{v:.5g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)
    write_csv(RESULTS / "four_methods.csv", shown)


if __name__ == "__main__":
    main()
