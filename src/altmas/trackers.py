"""Estimates in experiment trackers: one step for each number of labels, the interval's ends beside the value."""

import math
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from altmas.estimates import Estimates
from altmas.report import report_of

if TYPE_CHECKING:
    from altmas.session import Session

ALLOWED = re.compile(r"[^0-9A-Za-z_\-. /]")
"""What MLflow takes in the name of a metric; anything else becomes _."""


def log_to_mlflow(session: "Session", *, report: bool = True, run_id: str | None = None) -> str:
    """Log <metric>, <metric>_lower and <metric>_upper at step = labels, tags, and the report; the id of the run.

    Into the active run, else the one with `run_id`, else a new one, which is ended again.
    """
    mlflow = _mlflow()
    active = mlflow.active_run() if run_id is None else None
    run = active or mlflow.start_run(run_id=run_id)
    try:
        mlflow.set_tags(_tags(session))
        for estimates, labels in _steps(session):
            mlflow.log_metrics(values_of(estimates), step=labels)
        if report:
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                report_of(session, place / "report.html")
                session.export_events(place / "events.jsonl")
                for name in ("report.html", "report.json", "events.jsonl"):
                    mlflow.log_artifact(str(place / name))
    finally:
        if active is None:
            mlflow.end_run()
    return str(run.info.run_id)


def _mlflow() -> ModuleType:
    try:
        import mlflow
    except ImportError as cause:
        raise ImportError("logging to MLflow needs it installed: pip install 'altmas[mlflow]'") from cause
    return mlflow  # type: ignore[no-any-return]


def _steps(session: "Session") -> list[tuple[Any, int]]:
    """The estimates that were logged on the way, and those of now."""
    now = len(session.history.labels)
    past = [(one["estimates"], one["labels"]) for one in session.logged_estimates() if one["labels"] < now]
    return [*past, (_plain(session.estimate()), now)]


def _plain(estimates: Estimates) -> list[dict[str, Any]]:
    return list(estimates.to_dict()["estimates"])


def values_of(estimates: list[dict[str, Any]]) -> dict[str, float]:
    """{name: number} of everything that is defined, names as MLflow takes them."""
    values: dict[str, float] = {}
    for one in estimates:
        name = ALLOWED.sub("_", str(one["metric"])).strip("_")
        for key, suffix in (("value", ""), ("low", "_lower"), ("high", "_upper")):
            number = one.get(key)
            if number is not None and math.isfinite(number):
                values[name + suffix] = float(number)
    return values


def _tags(session: "Session") -> dict[str, str]:
    plan, status = session.plan, session.status()
    return {
        "altmas.method": session.method.name,
        "altmas.confidence": f"{plan.confidence:g}",
        "altmas.seed": str(plan.seed),
        "altmas.labels": str(status.labels),
        "altmas.points": str(status.points),
        "altmas.interval": session.method.traits.interval,
        "altmas.log_hash": status.digest,
        "altmas.predictions": plan.fingerprint.get("predictions", ""),
    }
