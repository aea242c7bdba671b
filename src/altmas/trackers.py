"""Estimates in experiment trackers: one step for each number of labels, the interval's ends beside the value."""

import math
import re
import tempfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from altmas.estimates import Estimates
from altmas.extras import install
from altmas.report import report_of

if TYPE_CHECKING:
    from altmas.session import Session

STRUCTURE = re.compile(r"[\[\]@=,:_]+ ?")
"""What separates the parts of a metric's name; becomes _."""

UNWRITABLE = re.compile(r"[^0-9A-Za-z_\-. /]")
"""What MLflow does not take in the name of a metric; becomes a dot and the character's hexadecimal number."""

MOST_CHARACTERS = 5000
"""Characters of a parameter; MLflow takes 6,000."""

PARTS = (("value", ""), ("low", "_lower"), ("high", "_upper"))
"""(field of an estimate, what is appended to the metric's name for it)."""


def log_to_mlflow(session: "Session", *, report: bool = True, run_id: str | None = None) -> str:
    """Log <metric>, <metric>_lower and <metric>_upper at step = labels, params, tags and the report; the run's id.

    Into the active run, else the one with `run_id`, else a new one, which is ended again. A step that the run has
    already is not logged again.
    """
    mlflow = _mlflow()
    active = mlflow.active_run() if run_id is None else None
    run = active or mlflow.start_run(run_id=run_id)
    try:
        mlflow.set_tags(_tags(session))
        mlflow.log_params(_params(session))
        logged: set[int] = set()
        for labels, estimates in _steps(session):
            values = values_of(estimates)
            logged = logged or _logged_steps(mlflow, str(run.info.run_id), values)
            if values and labels not in logged:
                mlflow.log_metrics(values, step=labels)
        if report:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder)
                report_of(session, path / "report.html")
                session.export_events(path / "events.jsonl")
                for name in ("report.html", "report.json", "events.jsonl"):
                    mlflow.log_artifact(str(path / name))
    finally:
        if active is None:
            mlflow.end_run()
    return str(run.info.run_id)


def _mlflow() -> ModuleType:
    try:
        import mlflow
    except ImportError as cause:
        raise ImportError(f"logging to MLflow needs it installed: {install('mlflow')}") from cause
    return mlflow  # type: ignore[no-any-return]


def _logged_steps(mlflow: ModuleType, run_id: str, values: Mapping[str, float]) -> set[int]:
    """The steps at which the run has one of these metrics."""
    client = mlflow.MlflowClient()
    return {int(entry.step) for name in values for entry in client.get_metric_history(run_id, name)}


def _steps(session: "Session") -> list[tuple[int, list[dict[str, Any]]]]:
    """(labels, estimates) of those that were made on the way (of the trajectory where none was), and those of now."""
    now = len(session.history.labels)
    logged = [(int(entry["labels"]), list(entry["estimates"])) for entry in session.logged_estimates()]
    past = [step for step in logged if 0 < step[0] < now]
    if not past:
        past = [(labels, _plain(estimates)) for labels, estimates in session.trajectory() if labels < now]
    return [*past, (now, _plain(session.estimate()))]


def _plain(estimates: Estimates) -> list[dict[str, Any]]:
    return list(estimates.to_dict()["estimates"])


def values_of(estimates: list[dict[str, Any]]) -> dict[str, float]:
    """{name: number} of everything that is defined, names as MLflow takes them; no two metrics share one."""
    names = tracker_names([str(estimate["metric"]) for estimate in estimates])
    return {
        names[str(estimate["metric"])] + suffix: float(estimate[key])
        for estimate in estimates
        for key, suffix in PARTS
        if estimate.get(key) is not None and math.isfinite(estimate[key])
    }


def tracker_names(metrics: Iterable[str]) -> dict[str, str]:
    """{metric: its name in letters, digits and _-. /}: recall[c++] is recall_c.2B.2B; a clash is ended by a hash."""
    names: dict[str, str] = {}
    used: set[str] = set()
    for metric in metrics:
        name = UNWRITABLE.sub(lambda match: f".{ord(match[0]):02X}", STRUCTURE.sub("_", metric).strip("_"))
        if used & {name + suffix for _, suffix in PARTS}:
            name += "-" + sha256(metric.encode()).hexdigest()[:8]
        names[metric] = name
        used |= {name + suffix for _, suffix in PARTS}
    return names


def _params(session: "Session") -> dict[str, str]:
    """What was asked and how: what does not change while the session goes on."""
    plan = session.plan
    aims = {"targets": plan.targets, "thresholds": plan.thresholds}
    return {
        "altmas.method": session.method.name,
        "altmas.metrics": ", ".join(metric.name for metric in session.task.metrics)[:MOST_CHARACTERS],
        "altmas.confidence": f"{plan.confidence:g}",
        "altmas.seed": str(plan.seed),
        **{
            f"altmas.{name}": ", ".join(f"{k}={v:g}" for k, v in values.items())
            for name, values in aims.items()
            if values
        },
    }


def _tags(session: "Session") -> dict[str, str]:
    plan, status = session.plan, session.status()
    return {
        "altmas.method": session.method.name,
        "altmas.budget": "" if plan.budget is None else str(plan.budget),
        "altmas.labels": str(status.labels),
        "altmas.points": str(status.points),
        "altmas.interval": session.method.traits.interval,
        "altmas.log_hash": status.digest,
        "altmas.predictions": plan.fingerprint.get("predictions", ""),
    }
