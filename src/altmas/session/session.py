"""Session: made, opened, run with an oracle that is a function, reported, compared and exported.

What it reads from its log is in reading.py, what it records in recording.py, how it grows in growing.py; all of them
stand on core.py. What stands above the session in the order of imports is reached by name (`altmas.above`).
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from altmas.above import above
from altmas.errors import AltmasError, NotASession, PlanError
from altmas.estimates import Estimates
from altmas.methods import DEFAULT_METHOD, Method
from altmas.metrics import MetricLike
from altmas.pool import Pool
from altmas.progress import progress_bar
from altmas.session.answers import Query
from altmas.session.archive import about as about_pool
from altmas.session.archive import archivable, compare, made_parts, parts_of, stored_pool
from altmas.session.growing import GrowingSession
from altmas.session.plan import Plan, metric_tuple
from altmas.session.recording import RecordingSession
from altmas.session.stopping import Decision
from altmas.session.store import Entry, LabelStore
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS, About, Draw
from altmas.version import __version__

if TYPE_CHECKING:
    from altmas.alone import Alone
    from altmas.claims import Verdict
    from altmas.compare import Comparison
    from altmas.interop import ExportResult, ImportResult
    from altmas.monitoring import Monitor
    from altmas.ranking import Ranking
    from altmas.report import Report
    from altmas.thresholds import ThresholdChoice
    from altmas.web.serving import LabellingPage


class Session(RecordingSession, GrowingSession):
    """One model under test, one pool, one log of labels. Made by `Session.create` or `Session.open`."""

    # ------------------------------------------------------------ made, opened, run

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None,
        pool: Pool,
        *,
        metrics: MetricLike | Iterable[MetricLike] = DEFAULT_METRICS,
        method: str | Method = DEFAULT_METHOD,
        budget: int | None = None,
        targets: Mapping[str, float] | None = None,
        thresholds: Mapping[str, float] | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        seed: int | None = 0,
        exist_ok: bool = False,
        double_share: float = 0.0,
        guarantee: bool = False,
        about: About = "pool",
        draw: Draw = "items",
        rank: str = "",
        instructions: str = "",
        definitions: Mapping[str, str] | None = None,
    ) -> Self:
        """A new session in a file, or in memory for None; with exist_ok the one that is there if it has this plan.

        The settings are those of `Plan`; seed=None draws a seed, which is stored.
        Raises SessionExists, PlanError, MetricError, MethodError, PoolMismatch.
        """
        plan = Plan.of(
            pool,
            metrics=metrics,
            method=method,
            budget=budget,
            targets=targets,
            thresholds=thresholds,
            confidence=confidence,
            seed=seed,
            double_share=double_share,
            guarantee=guarantee,
            about=about,
            draw=draw,
            rank=rank,
            instructions=instructions,
            definitions=definitions,
        )
        file = None if path is None else Path(path)
        if exist_ok and file is not None and file.exists():
            return cls._reopened(file, plan, pool, any_seed=seed is None)
        archived = file is not None and (pool.source is None or pool.extended) and archivable(pool)
        origin = about_pool(pool, archived, file)
        first = Entry("created", body={"plan": plan.to_json(), "pool": origin, "versions": _versions()})
        store = LabelStore.create(file, parts_of(pool) if archived else made_parts(pool) if file else (), first)
        return cls(store, plan, pool, store.events())

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        pool: Pool | None = None,
        *,
        metrics: Iterable[MetricLike] = (),
        method: Method | None = None,
        read_only: bool = False,
        trust: bool = False,
    ) -> Self:
        """The session in a file. PoolMismatch says which part of the pool differs from the one it was made with.

        `pool`, `metrics`, `method` stand in for what the file does not hold: a pool of more than 512 MB, functions and
        methods that are not built in. A session file is data: nothing that it names is imported, unless trust=True
        says that whoever made it may run code here.
        """
        store = LabelStore.open(Path(path), read_only=read_only)
        try:
            events = store.events()
            if not events or events[0].kind != "created":
                raise NotASession(f"{path} is damaged: its log does not begin with a plan; nothing was read")
            born, handed = events[0].body, metric_tuple(metrics)
            plan = Plan.from_json(born["plan"], handed, method, trust=trust)
            pool = pool if pool is not None else stored_pool(store, born["pool"])
            compare(path, pool, plan.fingerprint, born["pool"]["points"])
            return cls(store, plan, pool, events, metrics=handed, trust=trust)
        except BaseException as cause:
            store.close()
            if isinstance(cause, AltmasError) or not isinstance(cause, Exception):
                raise
            raise NotASession(  # a plan that altmas did not write can fail in any way
                f"{path} is damaged: its plan or pool is none that altmas writes ({type(cause).__name__}: {cause}); "
                "nothing was read"
            ) from cause

    @classmethod
    def _reopened(cls, path: Path, plan: Plan, pool: Pool, any_seed: bool) -> Self:
        functions = [metric for metric in plan.metrics if not isinstance(metric, str)]
        session = cls.open(path, pool, metrics=functions, method=plan.method)
        plan = replace(plan, seed=session.plan.seed) if any_seed else plan
        stored = next(session.events())["body"]["plan"]
        different = plan.differences(stored)
        if different and plan.differences(stored | session._journal.seen.settings):
            session.close()
            raise PlanError(f"{path} was made with another plan: {'; '.join(different)}; nothing was changed")
        return session

    def __repr__(self) -> str:
        budget = f" of {self.plan.budget}" if self.plan.budget is not None else ""
        told = len(self.history.labels)
        labels = "label" if told == 1 and not budget else "labels"
        return f"Session({self.path or 'in memory'}: {self.method.name}, {told}{budget} {labels})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.estimate()._repr_html_()}"

    def label(self, **options: Any) -> "LabellingPage | None":
        """Open the labelling page and answer it until interrupted; the options are those of `altmas.web.serve`.

        In a notebook, or with block=False, it is answered in the background, and what comes back links to it.
        """
        result: LabellingPage | None = above("label")(self, **options)
        return result

    def run(self, oracle: Callable[[Query], object], progress: bool = True, *, batch: int = 10) -> Decision:
        """Ask the oracle until the stop rule fires; which one it was.

        oracle(query) -> label, or None for a point that it cannot label. Whatever it raises ends the loop; all
        labels before it are kept. `batch` points are drawn together.
        """
        with progress_bar("labels", self._queue.budget(), shown=progress) as bar:
            bar.advance(len(self.history.labels))
            while not (decision := self.should_stop()).stop:
                queries = self.ask(batch)
                if not queries:
                    return Decision(True, "nothing is left to ask: what is open is with annotators")
                for query in queries:
                    label = oracle(query)
                    if label is None:
                        self.skip(query.id, "the oracle gave no label")
                    else:
                        self.tell(query.id, label)
                        bar.advance(1)
        return decision

    # ------------------------------------------------------------ questions asked of the labels

    def check(self, claim: str, *, guarantee: bool | None = None) -> "Verdict":
        """Whether the labels show a claim such as "recall[cat] >= 0.9".

        guarantee  True refuses metrics for which no proof is offered, False lets their interval decide; by default as
                   the session was made
        """
        result: Verdict = above("check")(self, claim, guarantee=guarantee)
        return result

    def ranking(self, metric: str | None = None) -> "Ranking":
        """The models in tiers by a metric: best, not told apart from the best yet, shown to be worse.

        By default the metric that the session was made to rank by (`rank=`), else its first.
        """
        result: Ranking = above("ranking")(self, metric)
        return result

    def monitor(self, metric: str | None = None, *, against: str | None = None, tolerance: float = 0.0) -> "Monitor":
        """A metric in each wave with its change, and whether a drop is shown in the newest, at every look.

        By default the first metric, against the wave before. `tolerance`: how large a drop has to be.
        """
        result: Monitor = above("monitor")(self, metric, against=against, tolerance=tolerance)
        return result

    def compare(
        self,
        predictions: ArrayLike | Mapping[Any, Any],
        metrics: Iterable[MetricLike] | None = None,
        *,
        ids: ArrayLike | None = None,
        model: str | None = None,
    ) -> "Comparison":
        """A second model against this one on the labels that exist; predictions by row, by `ids`, or as {id: one}.

        model  which model of a session of several it is compared with; by default the first
        """
        result: Comparison = above("compare")(self, predictions, metrics, ids=ids, model=model)
        return result

    def alone(self) -> "tuple[Alone, ...]":
        """What each model alone would have said of every metric of the truth, as share[pass], beside the estimate."""
        result: tuple[Alone, ...] = above("alone")(self)
        return result

    def judge_quality(self) -> Estimates | None:
        """How far each judge agrees with the labels: accuracy, kappa and, for grades, weighted kappa, with intervals.

        None where no metric is about the truth alone, or there is no model.
        """
        result: Estimates | None = above("judge_quality")(self)
        return result

    def threshold(self, claim: str) -> "ThresholdChoice":
        """The threshold of the scores that is shown to keep a claim such as "recall[cat] >= 0.9", and its cost."""
        result: ThresholdChoice = above("threshold")(self, claim)
        return result

    # ------------------------------------------------------------ reports and files

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        items: bool = False,
        notes: bool = True,
        force: bool = False,
        since: str | os.PathLike[str] | None = None,
    ) -> "Report":
        """The report as it stands, written as one HTML file with JSON beside it; no item is in it unless asked for.

        What annotators wrote is in it unless notes=False; about which point, only with items. `since` is the JSON of an
        earlier report: what changed is shown. OutputExists if a file is there already, unless force.
        """
        result: Report = above("report")(self, path, items=items, notes=notes, force=force, since=since)
        return result

    def export(
        self,
        path: str | os.PathLike[str],
        n: int,
        format: str | None = None,
        *,
        blind: bool = True,
        force: bool = False,
        local_files: str | os.PathLike[str] | None = None,
        take_over: bool = False,
    ) -> "ExportResult":
        """Write the next n points to label as CSV, JSONL, Parquet or Label Studio tasks.

        `local_files` is the folder whose images Label Studio serves. `take_over`: points that are leased to others
        are written too, and are no longer theirs. OutputExists if the file is there already, unless force; then
        nothing is drawn.
        """
        options = {"blind": blind, "force": force, "local_files": local_files, "take_over": take_over}
        result: ExportResult = above("export")(self, path, n, format, **options)
        return result

    def export_labels(
        self, path: str | os.PathLike[str], format: str | None = None, *, force: bool = False
    ) -> "ExportResult":
        """Write every label, skip and ruling that holds now as CSV, JSONL or Parquet; force replaces a file."""
        result: ExportResult = above("export_labels")(self, path, format, force=force)
        return result

    def import_labels(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        id: str | None = None,
        label: str | None = None,
    ) -> "ImportResult":
        """Record the labels of a file, all or none: CSV, JSONL, Parquet, Label Studio's JSON or JSON_MIN.

        id, label  the columns that hold them; by default those of these names, or the id column of the session's table
        """
        result: ImportResult = above("import_labels")(self, path, format, id=id, label=label)
        return result

    def log_to_mlflow(self, *, report: bool = True, run_id: str | None = None) -> str:
        """Log every estimate with its interval and the report to MLflow; the id of the run."""
        result: str = above("log_to_mlflow")(self, report=report, run_id=run_id)
        return result


def _versions() -> dict[str, str]:
    return {"altmas": __version__, "numpy": np.__version__}
