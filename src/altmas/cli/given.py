"""What options say, as values: numbers, pools and sessions; PlanError names the option where it says none."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from altmas.claims import CLAIM, Claim
from altmas.cli.app import trusted
from altmas.cli.show import hint, warning, working
from altmas.errors import PlanError
from altmas.items.parts import folder_of, missing_images
from altmas.outputs import STDOUT
from altmas.pool import Pool
from altmas.pool.csv_files import how_written
from altmas.pool.engines import is_address
from altmas.pool.origins import AUTO
from altmas.session import Session
from altmas.session.stopping import may_stop
from altmas.suggest import listing
from altmas.task import ABOUT, DRAWS, About, Draw


def about_of(text: str) -> About:
    """What --about says; PlanError if it is neither."""
    population = next((name for name in ABOUT if name == text), None)
    if population is None:
        raise PlanError(f"--about {text!r} was not understood; expected pool or future")
    return population


def draw_of(text: str) -> Draw:
    """What --draw says; PlanError if it is neither."""
    unit = next((name for name in DRAWS if name == text), None)
    if unit is None:
        raise PlanError(f"--draw {text!r} was not understood; expected items or groups")
    return unit


def output(file: Path) -> Path:
    """Where to write: - is the standard output."""
    return STDOUT if str(file) == "-" else file


def pool_of(
    data: str,
    *,
    prediction: Sequence[str] | None,
    id: str | None,
    features: Sequence[str] | None,
    scores: Sequence[str] | None,
    slices: Sequence[str] | None,
    show: Sequence[str] | None = None,
    classes: Sequence[str] | None,
    group: str | None,
    values: Sequence[str] | None,
    weight: str | None,
    sample: int | None,
    seed: int = 0,
    store: Path | None = None,
    encoding: str | None,
) -> Pool:
    """The pool that the options describe."""
    with working("reading the table"):
        pool = Pool.from_table(
            data,
            prediction=(prediction[0] if len(prediction) == 1 else list(prediction)) if prediction else None,
            id=id,
            features=_features(features),
            scores=scores_of(scores, prediction or ()),
            slices=slices or (),
            show=(show[0] if len(show) == 1 else show) if show else None,
            classes=classes or None,
            group=group,
            values=numbers("--value", values) or None,
            weight=weight,
            sample=sample,
            sample_seed=seed,
            store=store,
            encoding=encoding,
        )
    if how := "" if is_address(data) else how_written(data, encoding):
        hint(f"note: {data}: {how}")
    if pool.sampled_from is not None:
        hint(
            f"a random sample of {len(pool):,} of {pool.sampled_from:,} rows is the pool; intervals are about all rows"
        )
    for how in pool.made_features:
        hint(f"features: {how}" + ("" if features else "; --features none leaves them out"))
    if pool.unmade:
        hint(f"no features of what is shown: {pool.unmade}")
    for notice in pool.notices:
        warning(notice)
    missing, paths = missing_images(pool)
    if missing:
        hint(
            f"note: {len(missing)} of the first {paths:,} image paths lead to no file, such as {missing[0]!r}; paths "
            f"start at {folder_of(pool)}"
        )
    return pool


def _features(columns: Sequence[str] | None) -> Sequence[str] | str | None:
    """What --features says: nothing means what is shown, "none" none."""
    if not columns:
        return AUTO
    return None if list(columns) == ["none"] else columns


def scores_of(scores: Sequence[str] | None, models: Sequence[str]) -> Sequence[str] | dict[str, list[str]] | None:
    """The score columns: of the one model, or {model: columns} of several."""
    if not scores or len(models) <= 1:
        return scores or None
    by_model: dict[str, list[str]] = {}
    for text in scores:
        model = next((name for name in models if text.startswith(f"{name}=")), None)
        if model is None:
            raise PlanError(
                f'--scores {text!r} does not say whose they are; write "{models[0]}={text}" (models: {listing(models)})'
            )
        by_model.setdefault(model, []).append(text.removeprefix(f"{model}="))
    return by_model


def pairs(option: str, texts: Sequence[str] | None, *, last: bool = True) -> dict[str, str]:
    """{name: text} of repeated NAME=TEXT options; the last = separates (metric names may hold one) or the first."""
    by_name = {}
    for text in texts or ():
        name, separator, value = text.rpartition("=") if last else text.partition("=")
        if not (separator and name.strip() and value.strip()):
            raise PlanError(f'{option} {text!r} was not understood; write "name=value"')
        by_name[name.strip()] = value.strip()
    return by_name


def numbers(option: str, texts: Sequence[str] | None) -> dict[str, float]:
    """{name: number} of repeated NAME=NUMBER options."""
    return {name: number(f"{option} {name}", text) for name, text in pairs(option, texts).items()}


def thresholds_of(texts: Sequence[str] | None) -> dict[str, float]:
    """{metric: number} of repeated --threshold options: "recall[cat] >= 0.9", or "recall[cat]=0.9"."""
    thresholds: dict[str, float] = {}
    for text in texts or ():
        if CLAIM.match(text.strip()) is None:
            thresholds |= numbers("--threshold", [text])
        else:
            claim = Claim.parse(text)
            thresholds[claim.metric] = claim.value
    return thresholds


def number(what: str, text: str) -> float:
    """The number that a text spells, 0.05 for 5%; PlanError naming the option if it spells none."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise PlanError(f"{what}: {text!r} is not a number; expected one such as 0.05") from None


def opened(path: Path, *, read_only: bool = False) -> Session:
    """The session in a file."""
    return Session.open(path, read_only=read_only, trust=trusted.get())


def how_to_get_waiting(session: Session) -> str:
    """Who has the items that labels wait for, and the command that gives them out; empty if no label waits."""
    now = session.now()
    rows = {*now.held_up.waits_for.tolist(), *now.left_behind.waits_for.tolist()}
    if not rows:
        return ""
    held = session.held_by_others()
    others = [replace(holding, rows=theirs) for holding in held if (theirs := tuple(rows & {*holding.rows}))]
    left_out = set() if others else {row for holding in held for row in holding.rows}
    given = [row for row in now.history.outstanding.tolist() if row not in left_out]
    last = max(position for position, row in enumerate(given, 1) if row in rows)
    who = f"{'; '.join(map(str, others))}; " if others else ""
    command = shlex.join(["altmas", "export", str(session.path), "-n", str(last)])
    return f"{who}these items come with: {command}{' --take-over' if others else ''} FILE"


def goal_reached(session: Session) -> str:
    """That every target or threshold of the session is settled, so that more labels are not needed; empty if not."""
    goals = session.goals()
    if not may_stop(goals):
        return ""
    return f"note: the goal is reached ({'; '.join(map(str, goals))}); more labels are not needed for it"
