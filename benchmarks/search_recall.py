"""Recall certificates for a search: `python -m benchmarks.search_recall` (docs/recall-certificates.md reads it).

Two systematic reviews (search-clef): abstracts that a query found, of which few are relevant. People screen them until
it is certain that 95 % of the relevant ones were seen. Three ways to screen, two certificates on the same labels:
`guarantee` (ours; it needs draws with known probabilities) and `buscarpy` (Callaghan and Mueller-Hansen 2020).
Needs `buscarpy` (the dependency group `reference`). Runs that are done are kept in a cache and not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from altmas.guarantee import Stage, horizons, log_capital, terms
from altmas.ratios import OPEN, Ratio
from altmas.types import Array
from benchmarks.data import DataMissing, cache_folder, data_folder
from benchmarks.store import RESULTS, Runs, write_csv

TOPICS: Final = ("CD007394", "CD009372")
TARGETS: Final = (0.8, 0.95)
ERROR: Final = 0.05
LOOK: Final = 20
"""Both certificates are looked at after every so many labels."""
START: Final = 30
"""Labels drawn at random before anything is learned."""
PATIENCE: Final = 50
"""Irrelevant documents in a row after which ranked screening gives way to random draws."""
GROWTH: Final = 1.5
"""Growth of the labels from stage to stage of weighted draws."""


@dataclass(frozen=True)
class Search:
    """One review: what is known of its documents, and which are relevant."""

    features: Array  # (N, D)
    relevant: Array  # (N,) 0 or 1

    def belief(self, known: Array) -> Array:
        """(N,) believed P(relevant), by a logistic regression on the labels so far."""
        labelled = known >= 0
        if len(np.unique(known[labelled])) < 2:
            return np.full(len(known), (known[labelled].sum() + 1) / (labelled.sum() + 20))
        model = LogisticRegression(C=1.0, max_iter=300).fit(self.features[labelled], known[labelled])
        return np.asarray(model.predict_proba(self.features)[:, 1])


def read(topic: int) -> Search:
    """The documents of a topic; features are the text's and the two scores of the query."""
    folder = data_folder()
    if folder is None or not (folder / "search-clef" / "pool.npz").is_file():
        raise DataMissing("search-clef/pool.npz is not there; set ALTMAS_DATA to the folder that holds it")
    with np.load(folder / "search-clef" / "pool.npz", allow_pickle=False) as pool:
        of = pool["topic"] == topic
        scores = np.column_stack([pool["score"][of], pool["tfidf"][of]]).astype(np.float64)
        text, relevant = pool["X"][of].astype(np.float64), pool["y"][of].astype(np.int64)
    return Search(np.hstack([8 * text, (scores - scores.mean(0)) / scores.std(0)]), relevant)


# ---------------------------------------------------------------- three ways to screen


def ranked(search: Search, rng: np.random.Generator) -> tuple[Array, list[Stage]]:
    """All documents, the most probable first, learned anew every 50; no draws, so no stages."""
    order = list(rng.permutation(len(search.relevant))[:START])
    while len(order) < len(search.relevant):
        order += next_ranked(search, np.array(order))[:50].tolist()
    return np.array(order), []


def next_ranked(search: Search, seen: Array) -> Array:
    """Documents not seen yet, the most probable first."""
    known = np.full(len(search.relevant), OPEN)
    known[seen] = search.relevant[seen]
    order = np.argsort(-search.belief(known), kind="stable")
    return np.asarray(order[known[order] == OPEN])


def ranked_then_random(search: Search, rng: np.random.Generator) -> tuple[Array, list[Stage]]:
    """Ranked until PATIENCE documents in a row are irrelevant, then uniform draws among the rest."""
    order = list(rng.permutation(len(search.relevant))[:START])
    while len(order) < len(search.relevant) and (len(order) < 100 or search.relevant[order[-PATIENCE:]].any()):
        order += next_ranked(search, np.array(order))[:50].tolist()
    known = np.full(len(search.relevant), OPEN)
    known[order] = search.relevant[order]
    drawn = rng.permutation(np.flatnonzero(known == OPEN))
    p = search.belief(known)
    stage = Stage(known, np.ones(len(known)), np.column_stack([1 - p, p]), drawn, search.relevant[drawn])
    return np.append(order, drawn), [stage]


def weighted(search: Search, rng: np.random.Generator) -> tuple[Array, list[Stage]]:
    """Every document drawn with a known probability: half uniform, half by the belief, in growing stages."""
    known = np.full(len(search.relevant), OPEN)
    stages: list[Stage] = []
    end = START
    while (known == OPEN).any():
        p, open_ = search.belief(known), known == OPEN
        sizes = np.where(open_, 0.5 / open_.sum() + 0.5 * p / p[open_].sum(), 1.0)
        times = np.where(open_, rng.exponential(size=len(p)) / sizes, np.inf)
        drawn = np.argsort(times)[: min(end - (known >= 0).sum(), open_.sum())]
        stages.append(Stage(known, sizes, np.column_stack([1 - p, p]), drawn, search.relevant[drawn]))
        known = stages[-1].after()
        end = int(np.ceil(GROWTH * end))
    return np.concatenate([stage.drawn for stage in stages]), stages


WAYS: Final[dict[str, Callable[[Search, np.random.Generator], tuple[Array, list[Stage]]]]] = {
    "ranked": ranked,
    "ranked, then random": ranked_then_random,
    "weighted draws": weighted,
}


# ---------------------------------------------------------------- two certificates


def most_relevant(search: Search, order: Array, stages: list[Stage]) -> Array:
    """(T,) after each label of `order`, the number of relevant documents that the guarantee does not exceed.

    An upper confidence sequence of the share of relevant documents: the largest count that is not rejected.
    """
    n = len(search.relevant)
    ratio = Ratio.of_points(np.tile([0.0, 1.0], (n, 1)), np.ones((n, 2)))
    counts = np.unique(np.concatenate([np.arange(1, 300), np.geomspace(300, n, 40).astype(int)]))
    log = log_capital(terms(ratio, stages, counts / n), ERROR, *horizons(n // 2, n))[:, 1]
    rejected = np.maximum.accumulate(log, 0) >= np.log(1 / ERROR)
    largest = len(counts) - np.argmin(np.column_stack([rejected[:, ::-1], np.zeros(len(log), bool)]), axis=1)
    known_before = len(order) - len(log)
    return np.append(np.full(known_before, n), np.append(0, counts)[largest])


def ours(search: Search, order: Array, stages: list[Stage], target: float) -> int | None:
    """Labels after which the guarantee says that at least `target` of the relevant documents were found."""
    if not stages:
        return None
    found = np.cumsum(search.relevant[order])
    bound = np.maximum(most_relevant(search, order, stages), found)  # what was found is there
    bound = np.minimum(bound, found + len(order) - np.arange(1, len(order) + 1))  # and no more than what is left
    return first_look(found >= target * bound)


def buscar(search: Search, order: Array, target: float) -> int | None:
    """Labels after which buscarpy's p-value for "recall is below the target" is below ERROR."""
    from buscarpy import calculate_h0

    labels = search.relevant[order]
    for count in range(LOOK, len(order) + 1, LOOK):
        if labels[:count].any() and calculate_h0(labels[:count], len(order), target) < ERROR:
            return count
    return len(order)


def first_look(reached: Array) -> int:
    """The first multiple of LOOK at which it is reached; the whole search if it never is before."""
    looks = np.arange(LOOK, len(reached) + 1, LOOK)
    hits = looks[reached[looks - 1]]
    return int(hits[0]) if len(hits) else len(reached)


def one_run(search: Search, topic: int, seed: int) -> list[dict[str, Any]]:
    """Labels to each certificate and recall at that moment, for each way to screen."""
    rows = []
    for way, screen in WAYS.items():
        order, stages = screen(search, np.random.default_rng([seed, topic]))
        share = np.cumsum(search.relevant[order]) / search.relevant.sum()
        for target in TARGETS:
            for name, labels in (
                ("guarantee", ours(search, order, stages, target)),
                ("buscarpy", buscar(search, order, target)),
            ):
                if labels is not None:
                    end = {"labels": labels, "recall": float(share[labels - 1])}
                    rows.append({"screening": way, "certificate": name, "target": target} | end)
    return rows


def summary(topic: int, search: Search, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Mean labels and recall at the certificate, and how often recall was below the target."""
    keys = ("screening", "certificate", "target")
    for kind in dict.fromkeys(tuple(row[key] for key in keys) for row in rows):
        ends = [row for row in rows if tuple(row[key] for key in keys) == kind]
        recall = np.array([row["recall"] for row in ends])
        yield {
            "topic": TOPICS[topic],
            "documents": len(search.relevant),
            "relevant": int(search.relevant.sum()),
            **dict(zip(keys, kind, strict=True)),
            "runs": len(ends),
            "labels": round(float(np.mean([row["labels"] for row in ends])), 1),
            "recall": round(float(recall.mean()), 4),
            "false": int((recall < kind[2]).sum()),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall certificates for a search.")
    parser.add_argument("--runs", type=int, default=25, help="for each review")
    options = parser.parse_args()
    runs = Runs(cache_folder() / "search_recall.jsonl", "topic", "seed")
    searches = [read(topic) for topic in range(len(TOPICS))]
    done = {runs.key_of(run): run["rows"] for run in runs.read()}
    by_topic: list[list[dict[str, Any]]] = [[] for _ in TOPICS]
    for seed in range(options.runs):
        for topic, search in enumerate(searches):
            key = TOPICS[topic], seed
            if key not in done:
                done[key] = one_run(search, topic, seed)
                runs.add({"topic": key[0], "seed": seed, "rows": done[key]})
            by_topic[topic] += done[key]
        rows = [row for topic, search in enumerate(searches) for row in summary(topic, search, by_topic[topic])]
        write_csv(RESULTS / "search_recall.csv", rows)
        print(f"{seed + 1} of {options.runs} runs", flush=True)


if __name__ == "__main__":
    main()
