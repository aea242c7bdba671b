"""Learning rate, epochs and dropout of the network, tuned on the labels there are: `altmas.tune`.

    found = altmas.tune(pool, labels, results="tuning.jsonl", plot="tuning.html")
    method = altmas.methods.AltMas(**found.options)

Methods do the same by themselves with `tune=True`: when the first labels are told, and whenever these have doubled.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from altmas.errors import PlanError, PoolError
from altmas.extras import require
from altmas.methods.paper.altmas import AltMas
from altmas.methods.paper.network import Network
from altmas.methods.paper.surrogates.tuning import FOLDS, GUIDED_TRIALS, RANDOM_TRIALS, RANGES, Tuned, trials
from altmas.outputs import kept_by, writable, write_whole
from altmas.pool import Pool
from altmas.pool.features import Features
from altmas.progress import progress_bar
from altmas.simulate import Journal


@dataclass(frozen=True)
class Tuning:
    """Every trial in order, and how many of them were random; the best one's options are `options`."""

    trials: tuple[Tuned, ...]
    random: int

    @property
    def best(self) -> Tuned:
        """The trial with the smallest loss."""
        return min(self.trials, key=lambda one: one.loss)

    @property
    def options(self) -> dict[str, Any]:
        """Options of `AltMas`, `Bald` and the other methods that train a network."""
        return {name: value for name, value in self.best.info().items() if name in RANGES}

    def plot(self, path: str | Path, *, force: bool = False) -> Path:
        """One HTML file that needs nothing else: the loss over the trials and over each option."""
        from plotly.io import to_html

        place = Path(path)
        page = to_html(figure(self), include_plotlyjs=True, full_html=True, validate=False)
        titled = page.replace("<head>", "<head><title>altmas: tuning</title>", 1)
        write_whole(place, titled.encode(), force=force)
        return place

    def __str__(self) -> str:
        lines = [f"{'trial':>5}{'learning rate':>15}{'epochs':>8}{'dropout':>9}{'loss':>9}"]
        for number, one in enumerate(self.trials, 1):
            rate, mark = one.training.learning_rate, "  best" if one is self.best else ""
            lines.append(f"{number:>5}{rate:>15.2e}{one.training.epochs:>8}{one.dropout:>9.3f}{one.loss:>9.4f}{mark}")
        return "\n".join(lines)


def tune(
    pool: Pool,
    labels: Mapping[Any, Any],
    *,
    method: Network | None = None,
    random_trials: int = RANDOM_TRIALS,
    guided_trials: int = GUIDED_TRIALS,
    seed: int = 0,
    results: str | Path | None = None,
    plot: str | Path | None = None,
    progress: bool = True,
    force: bool = False,
) -> Tuning:
    """The network's learning rate, epochs and dropout that predict held-out labels best (docs/equations.md A.4).

    labels   {id: class} of the points that are labelled; true labels only
    method   whose other options hold; `AltMas()` by default
    results  a .jsonl file: finished trials are kept there, and the same call goes on from them
    plot     an .html file that shows the trials, written anew after each
    force    whether a plot that is there already is replaced; one of the trials in `results` is in any case

    Raises MissingExtra, PlanError, PoolError, UnknownLabel, UnknownPoint before anything runs; FileError for another
    call's file.
    """
    wanted = (method or AltMas()).settings
    if wanted.surrogate != "mc_dropout":
        raise PlanError(f"surrogate {wanted.surrogate!r} cannot be tuned; 'mc_dropout' can; nothing was run")
    if random_trials < 1 or guided_trials < 0:
        raise PlanError(
            f"random_trials ({random_trials}) must be at least 1 and guided_trials ({guided_trials}) at least 0; "
            "nothing was run"
        )
    if pool.features is None:
        raise PoolError("this pool has no features, so there is no network to tune; nothing was run")
    rows = np.array([pool.index(point) for point in labels], np.int64)
    codes = np.array([pool.code(label) for label in labels.values()], np.int64)
    if len(rows) < FOLDS:
        raise PlanError(f"{len(rows)} labels are too few to tune on; expected at least {FOLDS}; nothing was run")
    require("paper", "tuning a network")
    kept = kept_by(pool)
    if plot is not None and results is not None and Path(plot).absolute() == Path(results).absolute():
        raise PlanError(f"results and plot are both {plot}; give two files; nothing was run")
    journal = Journal(results, _settings(pool, rows, codes, wanted, random_trials, seed), what="tuning", kept=kept)
    known = [journal.done[key][0]["loss"] for key in map(str, range(len(journal.done)))]
    if plot is not None:
        force = force or bool(known)
        writable(plot, force=force, kept=kept)
    x, total, found = Features.of(pool).subset(rows), random_trials + guided_trials, []
    search = trials(
        x,
        codes,
        len(pool.classes),
        wanted.training,
        wanted.draws,
        np.random.default_rng(seed),
        random_trials,
        guided_trials,
        known,
    )
    with progress_bar("tuning", total, shown=progress) as bar:
        for number, one in enumerate(search):
            found.append(one)
            if number >= len(known):
                journal.append(str(number), [one.info()])
            if plot is not None and number >= len(known) - 1:
                Tuning(tuple(found), random_trials).plot(plot, force=force or number > 0)
            bar.advance(1)
            bar.say(f"tuning, best loss {min(trial.loss for trial in found):.4f}")
    return Tuning(tuple(found), random_trials)


def _settings(pool: Pool, rows: Any, codes: Any, wanted: Any, random_trials: int, seed: int) -> dict[str, Any]:
    """What two calls must share for one to continue the other; the number of guided trials may grow."""
    return {
        "pool": pool.fingerprint,
        "labels": hashlib.sha256(rows.tobytes() + codes.tobytes()).hexdigest()[:16],
        "training": asdict(wanted.training),
        "draws": wanted.draws,
        "random_trials": random_trials,
        "seed": seed,
    }


# ---------------------------------------------------------------- plot

NAMES = {"learning_rate": "learning rate", "epochs": "epochs", "dropout": "dropout"}


def figure(tuning: Tuning) -> dict[str, Any]:
    """A plotly figure: top left the loss over the trials with the best so far, then the loss over each option."""
    values, numbers = [one.info() for one in tuning.trials], list(range(1, len(tuning.trials) + 1))
    losses = [one["loss"] for one in values]
    kinds = ["random" if number <= tuning.random else "guided" for number in numbers]
    texts = [
        escape(f"trial {number} ({kind}): " + ", ".join(f"{NAMES[name]} {one[name]:.3g}" for name in NAMES))
        for number, kind, one in zip(numbers, kinds, values, strict=True)
    ]
    colours = ["#9a9a9a" if kind == "random" else "#1f77b4" for kind in kinds]

    def dots(x: list[Any], place: str) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "markers",
            "x": x,
            "y": losses,
            "text": texts,
            "marker": {"color": colours, "size": 9},
            "hovertemplate": "%{text}<br>loss %{y:.4f}<extra></extra>",
            "xaxis": f"x{place}",
            "yaxis": f"y{place}",
            "showlegend": False,
        }

    best = {"type": "scatter", "mode": "lines", "line": {"shape": "hv", "color": "#d62728"}, "showlegend": False}
    data = [dots(numbers, ""), best | {"x": numbers, "y": np.minimum.accumulate(losses).tolist()}]
    layout: dict[str, Any] = {
        "title": {"text": "Held-out loss of each trial (grey: random, blue: guided, red: best so far)"},
        "xaxis": {"title": {"text": "trial"}, "domain": [0, 0.45], "anchor": "y"},
        "yaxis": {"title": {"text": "loss"}, "domain": [0.58, 1], "anchor": "x"},
        "height": 760,
    }
    corners = ((0.55, 0.58), (0, 0), (0.55, 0))
    for place, (name, (left, bottom)) in enumerate(zip(NAMES, corners, strict=True), 2):
        data.append(dots([one[name] for one in values], str(place)))
        across = {"title": {"text": NAMES[name]}, "type": "log", "domain": [left, left + 0.45], "anchor": f"y{place}"}
        layout[f"xaxis{place}"] = across
        layout[f"yaxis{place}"] = {"title": {"text": "loss"}, "domain": [bottom, bottom + 0.42], "anchor": f"x{place}"}
    return {"data": data, "layout": layout}
