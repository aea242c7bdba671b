"""Your own method or pool on the terms of the leaderboard: `python -m benchmarks.challenge`.

    python -m benchmarks.challenge --method mine.urn:Urn --pool banking77 --pool data/tickets.npz --out mine.csv

A method is `module:name` of a class or instance that follows the protocol of `altmas.methods.Method`, or the name of
one of the package; a pool is the path of an .npz file in the layout below, or the name of one of the benchmark's. Each
is asked what the leaderboard asks (accuracy, macro F1, one class), with and without scores, beside `tradition`, which
the label value refers to. Finished runs are kept beside the table, so that an interrupted call goes on.

Layout of a pool, N points, C classes, D features:  a (N,) codes of the predictions, y (N,) codes of the truth, and
where there are any X (N, D) features, scores (N, C) probabilities, classes (C,) names.

`--track models` and `--track judges` ask other questions, of other methods and pools: benchmarks/challenge_tracks.py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402  (thread caps come first)

from altmas.errors import AltmasError  # noqa: E402
from altmas.methods import METHODS, Method, lacking, method_named, unsupported  # noqa: E402
from altmas.metrics import metric_set  # noqa: E402
from altmas.simulate import Row, simulate  # noqa: E402
from altmas.version import __version__  # noqa: E402
from benchmarks.challenge_tracks import TRACKS as OTHER_TRACKS  # noqa: E402
from benchmarks.challenge_tracks import NotInProtocol, imported  # noqa: E402
from benchmarks.challenge_tracks import rows_on as rows_on_track  # noqa: E402
from benchmarks.data import LOADERS, DataDamaged, DataMissing, NamedPool, load, named_pool, read_npz  # noqa: E402
from benchmarks.label_value import BUDGETS, TRACKS, pool_of  # noqa: E402
from benchmarks.leaderboard import STEP, asks  # noqa: E402
from benchmarks.store import write_csv  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402

ONE_MODEL = "one-model"
BASELINE = "tradition"
SHOWN = ("pool", "track", "metric", "method", "labels", "repeats", "bias", "rmse", "coverage", "width", "label_value")


def method_at(name: str) -> Method:
    """The method of a name, or of `module:name` (a class without required options, or an instance)."""
    if ":" not in name:
        return method_named(name)
    definition = imported(name)
    method = definition() if isinstance(definition, type) else definition
    lacks = [verb for verb in ("name", "traits", "propose", "estimate", "inclusion") if not hasattr(method, verb)]
    if lacks:
        raise NotInProtocol(
            f"--method {name} has no {', '.join(lacks)} (a method inherits from altmas.methods.Method and defines "
            "name, traits, propose and estimate); nothing was run"
        )
    if method.name in METHODS and type(method) is not METHODS[method.name]:
        raise NotInProtocol(
            f"--method {name} is called {method.name!r} as a method of the package; give it another name"
        )
    return method  # type: ignore[no-any-return]  # it has every verb of the protocol


def pool_at(name: str) -> NamedPool:
    """The pool of a name, or that of an .npz file in the layout above."""
    if name in LOADERS:
        return load(name)
    path = Path(name)
    arrays = read_npz(path, f"expected the path of an .npz file, or one of {', '.join(LOADERS)}", "a", "y")
    count = int(max(arrays["a"].max(), arrays["y"].max())) + 1 if len(arrays["y"]) else 0
    classes = list(map(str, arrays["classes"] if "classes" in arrays else range(count)))
    if "scores" in arrays and arrays["scores"].shape[1:] != (len(classes),):
        raise DataDamaged(
            f"{path}: scores of shape {arrays['scores'].shape} for {len(classes)} classes; nothing was loaded"
        )
    return named_pool(path.stem, arrays, classes)


def rows_on(
    named: NamedPool,
    methods: Sequence[Method],
    *,
    repeats: int,
    n_jobs: int,
    budgets: Sequence[int],
    folder: Path | None,
) -> Iterator[Row]:
    """The rows of every method on a pool: numbers, or why it cannot."""
    truth = [named.classes[code] for code in named.truth]
    fitting = [labels for labels in budgets if labels <= len(named)]
    for track in TRACKS if named.scores is not None else TRACKS[:1]:
        pool = pool_of(named, track)
        for ask, names in asks(named).items():
            metrics = metric_set(names, pool)
            reasons = {method: lacking(method, pool) or unsupported(method, metrics) for method in methods}
            able = [method for method in methods if not reasons[method]]
            key = {"version": __version__, "pool": named.name, "track": track}
            for method in (method for method in methods if reasons[method]):
                for metric in names:
                    yield key | {"metric": metric, "method": method.name, "status": f"cannot: {reasons[method]}"}
            if not able or not fitting:
                continue
            results = None if folder is None else folder / f"{named.name}.{track}.{ask}.jsonl"
            simulation = simulate(
                pool,
                truth,
                methods=able,
                metrics=names,
                budgets=fitting,
                repeats=repeats,
                n_jobs=n_jobs,
                batch=STEP,
                results=results,
            )
            yield from (key | {"status": "run"} | row for row in simulation.summary())


def shown(rows: Sequence[Row], columns: Sequence[str] = SHOWN) -> str:
    """The rows as a table for people."""

    def cell(row: Row, name: str) -> object:
        value = row.get(name, "")
        if not isinstance(value, float):
            return value
        return "–" if np.isnan(value) else f"{value:.4g}"

    lines = [[cell(row, name) for name in columns] for row in rows if row["status"] == "run"]
    cannot = [
        f"{row['method']} on {row['pool']}, {row['track']}, {row['metric']}: {row['status']}"
        for row in rows
        if row["status"] != "run"
    ]
    return "\n".join([markdown(columns, lines), "", *cannot])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Your own method or pool on the terms of the leaderboard.")
    parser.add_argument(
        "--track", choices=[ONE_MODEL, *OTHER_TRACKS], default=ONE_MODEL, help="the question; one model by default"
    )
    parser.add_argument(
        "--method", action="append", default=[], help="module:name, or a method's name; may be repeated"
    )
    parser.add_argument(
        "--pool", action="append", required=True, help="an .npz file, or a pool's name; may be repeated"
    )
    parser.add_argument("--repeats", type=int, default=20, help="runs of each method")
    parser.add_argument(
        "--budgets", help=f"numbers of labels, comma-separated, of one model; {','.join(map(str, BUDGETS))} by default"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a .csv file; finished runs are kept in a folder beside it")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    folder = None if options.out is None else options.out.with_suffix(".runs")
    settings = {"repeats": options.repeats, "n_jobs": options.jobs, "folder": folder}
    columns: Sequence[str] = SHOWN
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        if options.track == ONE_MODEL:
            names = dict.fromkeys([BASELINE, *(options.method or ["assured"])])
            methods, pools = [method_at(name) for name in names], [pool_at(name) for name in options.pool]
            budgets = [int(labels) for labels in options.budgets.split(",")] if options.budgets else BUDGETS
            rows = [row for named in pools for row in rows_on(named, methods, budgets=budgets, **settings)]
        elif options.budgets:
            parser.error(f"--track {options.track} has numbers of labels of its own; leave --budgets out")
        else:
            track = OTHER_TRACKS[options.track]
            ways, columns = list(dict.fromkeys(["random", "assured", *options.method])), track.shown
            rows = list(rows_on_track(track, ways, list(dict.fromkeys(options.pool)), **settings))
    except (AltmasError, NotInProtocol, DataMissing, DataDamaged) as cause:
        print(cause, file=sys.stderr)
        return 2
    print(shown(rows, columns))
    if options.out is not None:
        write_csv(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
