"""Learning rate, epochs and dropout of the network, tuned on the labels there are: `altmas.tune`.

    tuning = altmas.tune(pool, labels, results="tuning.jsonl", plot="tuning.html")
    method = altmas.methods.AltMas(**tuning.options)

Methods do the same by themselves with `tune=True`: when the first labels are told, and whenever these have doubled.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
from altmas.svg import STYLE, THEME, dots


@dataclass(frozen=True)
class Tuning:
    """Every trial in order, and how many of them were random; the best one's options are `options`."""

    trials: tuple[Tuned, ...]
    random: int

    @property
    def best(self) -> Tuned:
        """The trial with the smallest loss."""
        return min(self.trials, key=lambda trial: trial.loss)

    @property
    def options(self) -> dict[str, Any]:
        """Options of `AltMas`, `Bald` and the other methods that train a network."""
        return {name: value for name, value in self.best.info().items() if name in RANGES}

    def plot(self, path: str | Path, *, force: bool = False) -> Path:
        """One HTML file that needs nothing else: the loss over the trials and over each option."""
        file = Path(path)
        write_whole(file, page_of(self).encode(), force=force)
        return file

    def __str__(self) -> str:
        lines = [f"{'trial':>5}{'learning rate':>15}{'epochs':>8}{'dropout':>9}{'loss':>9}"]
        for number, trial in enumerate(self.trials, 1):
            rate, mark = trial.training.learning_rate, "  best" if trial is self.best else ""
            lines.append(
                f"{number:>5}{rate:>15.2e}{trial.training.epochs:>8}{trial.dropout:>9.3f}{trial.loss:>9.4f}{mark}"
            )
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
    settings = (method or AltMas()).settings
    if settings.surrogate != "mc_dropout":
        raise PlanError(f"surrogate {settings.surrogate!r} cannot be tuned; 'mc_dropout' can; nothing was run")
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
    journal = Journal(results, _settings(pool, rows, codes, settings, random_trials, seed), what="tuning", kept=kept)
    losses = [journal.done[key][0]["loss"] for key in map(str, range(len(journal.done)))]
    if plot is not None:
        force = force or bool(losses)
        writable(plot, force=force, kept=kept)
    x, total, finished = Features.of(pool).subset(rows), random_trials + guided_trials, []
    search = trials(
        x,
        codes,
        len(pool.classes),
        settings.training,
        settings.draws,
        np.random.default_rng(seed),
        random_trials,
        guided_trials,
        losses,
    )
    with progress_bar("tuning", total, shown=progress) as bar:
        for number, trial in enumerate(search):
            finished.append(trial)
            if number >= len(losses):
                journal.append(str(number), [trial.info()])
            if plot is not None and number >= len(losses) - 1:
                Tuning(tuple(finished), random_trials).plot(plot, force=force or number > 0)
            bar.advance(1)
            bar.say(f"tuning, best loss {min(trial.loss for trial in finished):.4f}")
    return Tuning(tuple(finished), random_trials)


def _settings(pool: Pool, rows: Any, codes: Any, settings: Any, random_trials: int, seed: int) -> dict[str, Any]:
    """What two calls must share for one to continue the other; the number of guided trials may grow."""
    return {
        "pool": pool.fingerprint,
        "labels": hashlib.sha256(rows.tobytes() + codes.tobytes()).hexdigest()[:16],
        "training": asdict(settings.training),
        "draws": settings.draws,
        "random_trials": random_trials,
        "seed": seed,
    }


# ---------------------------------------------------------------- plot

NAMES = {"learning_rate": "learning rate", "epochs": "epochs", "dropout": "dropout"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>altmas: tuning</title>
<style>
{theme}
body {{ background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 24px; }}
.panels {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); gap: 18px; max-width: 960px; }}
{style}
</style></head><body>
<h1>Held-out loss of each trial</h1>
<p>Grey: random trials; blue: guided ones; red line: the best so far. Best: {best}.</p>
<div class="panels">{charts}</div>
</body></html>
"""


def page_of(tuning: Tuning) -> str:
    """A page of charts: the loss over the trials with the best so far, then over each option."""
    values = [trial.info() for trial in tuning.trials]
    losses = [info["loss"] for info in values]
    lowest = np.minimum.accumulate(losses).tolist()
    numbers = [float(number) for number in range(1, len(losses) + 1)]
    kinds = ["other" if number <= tuning.random else "plain" for number in numbers]
    words = [
        f"trial {number:.0f}: {_words(info)}, loss {info['loss']:.4f}"
        for number, info in zip(numbers, values, strict=True)
    ]

    def points(across: list[float]) -> list[tuple[float, float, str, str]]:
        return list(zip(across, losses, kinds, words, strict=True))

    best = list(zip(numbers, lowest, strict=True))
    charts = [dots("chart-trials", "loss over the trials", points(numbers), across="trial", best=best)]
    for option, name in NAMES.items():
        across = [info[option] for info in values]
        charts.append(dots(f"chart-{option}", f"loss over {name}", points(across), across=name, log=True))
    return PAGE.format(theme=THEME, style=STYLE, best=_words(tuning.best.info()), charts="\n".join(charts))


def _words(info: dict[str, float]) -> str:
    return ", ".join(f"{name} {info[option]:.3g}" for option, name in NAMES.items())
