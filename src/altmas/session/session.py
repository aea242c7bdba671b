"""Session: ask, tell, estimate, stop; and the loop for an oracle that is a function.

Everything a session knows is the replay of its event log (log.py). Draws are written down before they are
shown, labels before they are acknowledged, so a reopened session goes on as if it had never been closed.
"""

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from altmas.above import above
from altmas.errors import AltmasError, NotASession, PlanError, PoolError, SessionError, StoreFailure
from altmas.estimates import Estimates
from altmas.forecast import Forecast
from altmas.history import History
from altmas.memo import ArrayFile
from altmas.methods import DEFAULT_METHOD, Method, check
from altmas.metrics import MetricLike, metric_set
from altmas.outputs import kept_by, write_whole
from altmas.pool import Model, Name, Pool
from altmas.pool.alignment import aligned
from altmas.pool.growth import grown, slice_values, with_classes, with_slices
from altmas.progress import progress_bar
from altmas.session.answers import Answer, annotator_name, authentication
from altmas.session.archive import about as about_pool
from altmas.session.archive import archivable, compare, made_parts, parts_of, stored_pool
from altmas.session.arrays import pack
from altmas.session.changes import Change, change_entry
from altmas.session.journal import Journal
from altmas.session.log import RULINGS, VOTES, State, model_entry, plain
from altmas.session.opinions import Agreement, Disagreement, agreement, disagreements, unsure
from altmas.session.plan import Plan, PlannedTasks, metric_tuple
from altmas.session.plan_json import metric_name
from altmas.session.queue import ReadyQueue
from altmas.session.remarks import Note, StopChoice, choice_entry, choice_of, note_entry, notes, own_note, unshown_entry
from altmas.session.snapshot import Snapshot, Status, status_of
from altmas.session.stopping import Decision, Goal
from altmas.session.store import Entry, Event, LabelStore
from altmas.session.votes import LEASE_SECONDS, Undone, Votes
from altmas.session.waves import Waves, fitting_items, wave_names
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS, About, Task
from altmas.tensors import detached
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

__all__ = ["LEASE_SECONDS", "Query", "Session", "Undone"]

log = logging.getLogger("altmas")

ESTIMATES_KEPT = 4
"""How many estimates are remembered: the last ones, each for its history and slice."""


@dataclass(frozen=True)
class Query:
    """A point that is waiting for its label: its id, its row in the pool and what a labeller is shown."""

    id: Name
    index: int
    item: Any = None


class Session:
    """One model under test, one pool, one log of labels. Made by `Session.create` or `Session.open`."""

    def __init__(
        self,
        store: LabelStore,
        plan: Plan,
        pool: Pool,
        events: Iterable[Event],
        *,
        metrics: Iterable[MetricLike] = (),
        trust: bool = False,
    ) -> None:
        if store.path is not None:
            pool.memo.file = ArrayFile(Path(f"{store.path}-description"), read_only=store.read_only)
        self._tasks = PlannedTasks(plan, metrics, trust=trust)
        self._tasks.of(pool)  # a plan that does not fit the pool is met here
        self._waves = Waves(store)
        self._journal = Journal(store, pool, events, self._waves)
        self._planned()  # and one that was changed and does not fit, here
        self._queue = ReadyQueue(self._journal, self._tasks)
        self._votes = Votes(self._journal, self._queue, plan)
        self._estimates: dict[Any, Estimates] = {}
        self._forecast: tuple[Any, Forecast | None] | None = None

    # ------------------------------------------------------------ made, opened, closed

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

    def close(self) -> None:
        """Close the file; everything told is in it already."""
        self._journal.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        budget = f" of {self.plan.budget}" if self.plan.budget is not None else ""
        return f"Session({self.path or 'in memory'}: {self.method.name}, {len(self.history.labels)}{budget} labels)"

    @property
    def path(self) -> Path | None:
        """The session file, or None for one in memory."""
        return self._journal.store.path

    @property
    def pool(self) -> Pool:
        """The points, and what the models say about them, those that were added included."""
        return self._journal.pool

    @property
    def plan(self) -> Plan:
        """What the session is to find out."""
        return self._planned()[0]

    @property
    def task(self) -> Task:
        """What the method is asked: the metrics of all models."""
        return self._planned()[1]

    def _planned(self) -> tuple[Plan, Task]:
        """The plan and its task as of the last look at the log."""
        state = self._journal.seen
        return self._tasks.of(state.pool, state.settings)

    @property
    def method(self) -> Method:
        """How points are chosen and metrics estimated."""
        return self.plan.method

    @property
    def history(self) -> History:
        """What methods see: every draw, label and skip so far."""
        with self._journal.lock:
            return self._journal.read().history()

    # ------------------------------------------------------------ ask

    def ask(
        self, n: int = 1, annotator: str | None = None, lease: float = LEASE_SECONDS, *, draw: bool = True
    ) -> list[Query]:
        """The next n points to label, fewer near the end of the budget or the pool; the same until something is told.

        Points that were drawn and wait for a label come first; new ones are drawn and written down before they
        are returned. With an annotator's name they are leased to that person for `lease` seconds: nobody else is
        asked for them meanwhile. With draw=False only points that are ready are returned, without a wait.
        """
        if not (isinstance(n, int | np.integer) and n >= 1):
            raise PlanError(f"ask for {n!r} points is not possible; expected a whole number of at least 1")
        if not (math.isfinite(lease) and lease > 0):
            raise PlanError(f"a lease of {lease!r} seconds is not possible; expected a number above 0")
        return [self._query(row) for row in self._queue.take(int(n), annotator_name(annotator), lease, draw)]

    def prefetch(self, n: int) -> int:
        """Draw until n points wait that nobody was asked for; how many were drawn.

        Meant for a background thread: labels can be told, and points that wait asked for, while the method thinks.
        """
        return self._queue.refill(n)

    def _query(self, row: int) -> Query:
        return Query(self.pool.ids[row], row, None if self.pool.items is None else self.pool.items[row])

    # ------------------------------------------------------------ tell

    def tell(
        self,
        id: object,
        label: object = None,
        annotator: str | None = None,
        seconds: float | None = None,
        note: str = "",
        left: str = "",
    ) -> None:
        """Record the label of a point (its id, or the Query), or of many as {id: label}: on disk when this returns.

        A point that was not asked for is taken too (`history.volunteered`); told again by the same annotator it is
        a revision, told by another one a second opinion. `left` is the class of the answer that was shown on the left,
        where two stood side by side.
        """
        if isinstance(id, Mapping) and label is not None:
            raise PlanError("tell takes {id: label, ...}, or one id and one label; nothing was recorded")
        told = id.items() if isinstance(id, Mapping) else [(id, label)]
        self.answer(
            Answer(_id(point), said, "label", annotator, seconds, note=note or "", left=left) for point, said in told
        )

    def skip(
        self,
        id: object,
        reason: str = "",
        annotator: str | None = None,
        *,
        kind: str = "skip",
        seconds: float | None = None,
    ) -> None:
        """Record that a point cannot be labelled ("skip"), or that the annotator cannot tell ("unsure")."""
        if kind in ("label", *RULINGS):
            raise PlanError("skip takes kind='skip' or 'unsure'; use tell for a label; nothing was recorded")
        self.answer([Answer(_id(id), None, kind, annotator, seconds, reason=reason)])

    def answer(self, answers: Iterable[Answer]) -> None:
        """Record labels, skips and rulings of several people together: all or none, on disk when this returns.

        A ruling is an Answer of kind "adjudication", on a point with votes in the session or earlier in `answers`.
        """
        self._votes.cast(answers)

    def answer_new(self, choose: Callable[[list[Event]], Iterable[Answer]]) -> None:
        """`answer` with what `choose` makes of the votes and rulings that stand, oldest first, when it is recorded.

        Two processes that import the same file at the same time come one after the other: the second finds the
        answers of the first standing.
        """
        self._votes.cast_new(choose)

    def standing(self) -> list[Event]:
        """Every vote and ruling that was not taken back, oldest first; of one annotator on a point the last counts."""
        with self._journal.lock:
            return list(self._journal.read().standing.values())

    def vote(
        self,
        id: object,
        label: object = None,
        annotator: str | None = None,
        *,
        kind: str = "label",
        reason: str = "",
        seconds: float | None = None,
        revises: int | None = None,
    ) -> Event:
        """The event of what an annotator says about a point that they were asked for, recorded once however often sent.

        Meant for pages that may lose the acknowledgement and send again. VoteConflict if the point went to somebody
        else meanwhile, or if the annotator's own standing vote is another one than `revises`, the seq that they saw.
        """
        return self._votes.cast_once(Answer(id, label, kind, annotator, seconds, reason), revises)

    def vote_and_ask(
        self,
        id: object,
        label: object,
        annotator: str,
        n: int,
        lease: float = LEASE_SECONDS,
        *,
        kind: str = "label",
        reason: str = "",
        seconds: float | None = None,
        revises: int | None = None,
        authenticated: bool | None = None,
        left: str = "",
    ) -> tuple[Event, list[Query]]:
        """`vote`, and the next n points that are ready for this annotator (`ask` with draw=False), in one write."""
        answer = Answer(id, label, kind, annotator, seconds, reason, authenticated=authenticated, left=left)
        event, rows = self._votes.cast_and_take(answer, revises, n, lease)
        return event, [self._query(row) for row in rows]

    def undo(
        self, annotator: str | None = None, *, seq: int | None = None, authenticated: bool | None = None
    ) -> Undone | None:
        """Take back the last label, skip or ruling (of that annotator); what it was, or None if there is nothing.

        With seq, that event alone: None if it was taken back already, VoteConflict if something newer stands.
        """
        return self._votes.take_back(annotator_name(annotator), seq, authenticated)

    def adjudicate(self, id: object, label: object, annotator: str | None = None, note: str = "") -> None:
        """Settle the label of a point over the votes of its annotators."""
        if label is None:
            raise PlanError("adjudicate takes a class; cannot_settle says that there is none; nothing was recorded")
        self._votes.settle(id, label, annotator, note)

    def cannot_settle(self, id: object, annotator: str | None = None, note: str = "") -> None:
        """Rule that the votes on a point cannot be settled: it has no label, and counts as skipped."""
        self._votes.settle(id, None, annotator, note)

    def overdue(self) -> list[Query]:
        """Points that wait though points drawn after them have an answer, and that nobody has on the screen.

        Answers beyond the first of them cannot be used by `assured` yet: its sample is the longest answered prefix.
        """
        with self._journal.lock:
            state, held = self._journal.read(), self._queue.holders()
            rows = [row for row in state.overtaken() if row not in held]
        return [self._query(row) for row in rows]

    def close_overdue(self, annotator: str | None = None, reason: str = "closed: no answer") -> int:
        """Record "no answer" for every point that is `overdue`: a skip with that reason; how many there were."""
        late = self.overdue()
        self.answer(Answer(query.id, None, "skip", annotator, reason=reason) for query in late)
        return len(late)

    def reveal(self, id: object, annotator: str | None = None, *, authenticated: bool | None = None) -> None:
        """Record that an annotator looked at what the model predicts for a point."""
        point = str(self.pool.ids[self.pool.index(id)])
        entry = Entry("reveal", annotator_name(annotator), point, body=authentication(authenticated))
        self._journal.write(lambda state: [entry])

    def note(
        self,
        remark: str,
        id: object = None,
        annotator: str | None = None,
        *,
        revises: int | None = None,
        authenticated: bool | None = None,
    ) -> int:
        """Record a remark, about one point or about the session; its seq. With `revises`, the new text of that one.

        An edit to "" takes the remark back; VoteConflict if it is not the annotator's own.
        """
        point, name = None if id is None else str(self.pool.ids[self.pool.index(_id(id))]), annotator_name(annotator)
        (event,) = self._journal.write(lambda state: [note_entry(state, remark, point, name, revises, authenticated)])
        return event.seq if revises is None else revises

    def notes(self, id: object = None) -> list[Note]:
        """Every remark that stands (on one point), oldest first: notes, and those that came with labels and rulings."""
        with self._journal.lock:
            found = notes(self._journal.read())
        wanted = None if id is None else self.pool.ids[self.pool.index(_id(id))]
        return found if id is None else [note for note in found if note.id == wanted]

    def not_shown(self, id: object, why: str, annotator: str | None = None) -> None:
        """Record that an image of a point could not be shown: once for each point; `status().unshown` counts them."""
        row = self.pool.index(_id(id))
        entry = unshown_entry(str(self.pool.ids[row]), why, annotator)
        self._journal.write(lambda state: [] if row in state.unshown else [entry])

    def revealed_to(self, annotator: str | None) -> set[int]:
        """The rows whose prediction an annotator has looked at."""
        name = annotator_name(annotator)
        with self._journal.lock:
            return {row for row, who in self._journal.read().revealed if who == name}

    def note_by(self, id: object, annotator: str | None) -> Note | None:
        """The last remark that stands of one annotator on a point, apart from those that came with a label."""
        with self._journal.lock:
            return own_note(self._journal.read(), str(self.pool.ids[self.pool.index(id)]), annotator_name(annotator))

    def release(self, annotator: str) -> None:
        """End the leases of an annotator who went away: the points can be asked of others at once."""
        with self._journal.store.transaction():
            self._journal.store.release(annotator_name(annotator))

    def record(self, kind: str, body: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> None:
        """Write an event of a new kind into the log (predictions of a second model, settings of the page, ...)."""
        if kind in KINDS:
            raise SessionError(f"events of kind {kind!r} are written by the session itself; nothing was recorded")
        data = None if arrays is None else pack({name: np.asarray(array) for name, array in arrays.items()})
        values = {str(key): plain(value) for key, value in body.items()}
        self._journal.write(lambda state: [Entry(kind, body=values, data=data)])

    # ------------------------------------------------------------ models

    def add_model(
        self,
        name: str,
        predictions: ArrayLike | Mapping[Any, Any],
        scores: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> Model:
        """Record what one more model says of every point: the labels told so far tell about it too.

        `predictions` are aligned with the pool by row, or with `ids` (then `scores` are, too), or a mapping
        {id: prediction}. A model that was trained on, or chosen by, labels of this session must not be added: its
        answers on those points say nothing about it. PoolError, UnknownLabel, UnknownPoint, MetricError or MethodError
        names what does not fit; then nothing was recorded.
        """
        with self._journal.lock:
            state = self._journal.read()
            pool, settings = state.pool, state.settings
        rows, answers = aligned(pool, predictions, ids, whose=f"model {name!r}", outcome="nothing was recorded")
        scores = None if scores is None else np.asarray(detached(scores, f"scores of {name!r}"))
        model = pool.new_model(name, answers, scores if rows is None or scores is None else scores[rows])
        larger = pool.with_models(*pool.models, model)
        plan, task = self._tasks.fresh().of(larger, settings)
        check(plan.method, larger, task.metrics)
        self._journal.write(lambda state: [model_entry(_still_new(model, state.pool))])
        return model

    # ------------------------------------------------------------ changes

    def extend(
        self,
        items: Any = None,
        *,
        wave: str | None = None,
        first_wave: str | None = None,
        wave_budget: int | None = None,
        columns: Mapping[str, Any] | None = None,
        budget: int | None = None,
        metrics: MetricLike | Iterable[MetricLike] = (),
        targets: Mapping[str, float] | None = None,
        thresholds: Mapping[str, float] | None = None,
        classes: Sequence[Name] = (),
        slices: Mapping[str, ArrayLike | Mapping[Any, Any]] | None = None,
    ) -> Change:
        """Add items, or change what the session is to find out: one event, all of it or nothing.

        items        a Pool, or a table as for `Pool.from_table`; its columns have the roles that they had in the
                     session's table, or those in `columns`, as {"prediction": "predicted", "id": "ticket"}
        wave         how they are called in the slice "wave", by default the date; first_wave: how the first points are
        wave_budget  labels for each new wave, before items of other waves are drawn again
        budget       labels in all;  metrics  further ones;  targets, thresholds  further or other ones
        classes      further ones;  slices  {name: values by row, or {id: value}} of the points that there are

        PoolError, PlanError, MetricError or MethodError names what does not fit; then nothing was recorded.
        """
        wanted = metric_tuple(metrics)
        self._tasks.given |= {metric_name(one): one for one in wanted if not isinstance(one, str)}
        tasks = self._tasks.fresh()

        def compose(state: State) -> list[Entry]:
            before, pool = tasks.of(state.pool, state.settings)[0], state.pool
            larger = with_classes(pool, classes) if classes else pool
            values = {name: slice_values(pool, name, given) for name, given in (slices or {}).items()}
            larger, added = with_slices(larger, values), None
            if items is not None:
                if before.about != "pool":
                    raise PlanError(
                        "items cannot be added to a session about data to come (about='future'): they are another "
                        "sample of it; make a new session; nothing was recorded"
                    )
                more = fitting_items(larger, items, columns or {}, before.method)
                names = wave_names(state, wave, first_wave)
                larger, added = grown(larger, more, *names), self._waves.add(more, *names, len(state.grown) + 1)
            after = before.extended(
                larger,
                metrics=wanted,
                budget=budget,
                targets=targets,
                thresholds=thresholds,
                wave_budget=wave_budget,
            )
            settings = after.settings_since(before, len(state.labels))
            if not (settings or classes or values or added):
                raise PlanError(
                    "nothing would change: give items, a budget, metrics, targets, thresholds, classes or slices that "
                    "the session has not; nothing was recorded"
                )
            tasks.of(larger, state.settings | settings)
            return [change_entry(settings, larger.classes[len(pool.classes) :], values, added)]

        (event,) = self._journal.write(compose)
        return next(one for one in self.changes() if one.seq == event.seq)

    def changes(self) -> list[Change]:
        """What was changed after the session was made, in order."""
        with self._journal.lock:
            return list(self._journal.read().changes)

    # ------------------------------------------------------------ estimate and stop

    def estimate(self, by: str | None = None, *, metrics: MetricLike | Iterable[MetricLike] | None = None) -> Estimates:
        """Every metric from the labels so far; with `by`, every metric on each value of that slice.

        metrics  others than those of the plan, in their place; such an estimate is not logged
        """
        now = self.now()
        if metrics is not None:
            asked = metric_set(metrics, now.task.pool)
            check(self.method, now.task.pool, asked)
            return replace(now, task=replace(now.task, metrics=asked, targets=())).estimate(by)
        key = (now.history.key, by, len(now.task.pool.models), len(self._journal.seen.changes))
        estimates = self._estimates.get(key)
        if estimates is None:
            estimates = now.estimate(by)
            self._estimates = dict([*self._estimates.items(), (key, estimates)][-ESTIMATES_KEPT:])
            if by is None:
                self._log_estimate(now, estimates)
        return estimates

    def _log_estimate(self, now: Snapshot, estimates: Estimates) -> None:
        """Keep the first estimate at each number of labels; a file that cannot be written keeps nobody from it."""
        labels = len(now.history.labels)
        body: Any = plain({"labels": labels, "seen": now.seq, "estimates": estimates.to_dict()["estimates"]})
        try:
            with self._journal.lock:
                if labels not in self._journal.read().estimates:
                    self._journal.write(lambda state: [Entry("estimate", body=body)])
        except StoreFailure as failure:
            log.info("the estimate was not logged: %s", failure)

    def ranking(self, metric: str | None = None) -> "Ranking":
        """The models in tiers by a metric: best, not told apart from the best yet, shown to be worse.

        By default the metric that the session was made to rank by (`rank=`), else its first.
        """
        made: Ranking = above("ranking")(self, metric)
        return made

    def monitor(self, metric: str | None = None, *, against: str | None = None, tolerance: float = 0.0) -> "Monitor":
        """A metric in each wave with its change, and whether a drop is shown in the newest, at every look.

        By default the first metric, against the wave before. `tolerance`: how large a drop has to be.
        """
        made: Monitor = above("monitor")(self, metric, against=against, tolerance=tolerance)
        return made

    def trajectory(self, points: int = 20) -> list[tuple[int, Estimates]]:
        """[(labels, estimates)] on the way to where the session stands, at up to so many numbers of labels.

        Each is computed from the labels of that moment; nothing is drawn or recorded.
        """
        if points < 1:
            raise PlanError(f"a trajectory of {points} points was asked for; expected at least 1")
        past, met = self._journal.beginning(), {0}
        for event in self._journal.store.events():
            past.feed([event])
            met.add(len(past.labels))
        last = len(past.labels)
        counts = sorted({round(last * (step + 1) / points) for step in range(points)} & met - {0})
        moments = {count: self.now() if count == last else self.at(labels=count) for count in counts}
        return [(count, moment.estimate()) for count, moment in moments.items()]

    def check(self, claim: str, *, guarantee: bool = False) -> "Verdict":
        """Whether the labels show a claim such as "recall[cat] >= 0.9"; guarantee=True refuses without a proof."""
        made: Verdict = above("check")(self, claim, guarantee=guarantee)
        return made

    def should_stop(self) -> Decision:
        """Whether the budget is spent, the pool is exhausted or every target is reached; and what is missing."""
        now = self.now()
        return replace(now.decision(self.estimate), ahead=lambda: self._forecast_at(now, None))

    def forecast(self, until: int | None = None) -> Forecast | None:
        """Widths, and the chance to reach every target or decide every threshold, up to the budget or `until` labels.

        The session goes on in worlds imagined from what the method believes now, and that belief stays as it is. None
        below 20 drawn labels, or for a method that cannot tell.
        """
        return self._forecast_at(self.now(), until)

    def _forecast_at(self, now: Snapshot, until: int | None) -> Forecast | None:
        """The forecast of a moment, kept for the last one asked for."""
        key = (now.history.key, until, len(now.task.pool.models), now.plan.budget)
        if self._forecast is None or self._forecast[0] != key:
            self._forecast = key, now.forecast(until)
        return self._forecast[1]

    def goals(self) -> tuple[Goal, ...]:
        """Every target and threshold of the plan, and whether it is reached now."""
        return self.now().goals(self.estimate)

    def choose(
        self,
        stop: bool,
        annotator: str | None = None,
        *,
        goals: Iterable[Goal] | None = None,
        authenticated: bool | None = None,
    ) -> StopChoice:
        """Record that somebody stops here or goes on, and the goals that they saw; labelling stays possible.

        By default the goals as they stand.
        """
        now = self.now()
        seen: Any = plain([asdict(goal) for goal in (now.goals(self.estimate) if goals is None else goals)])
        entry = choice_entry(stop, seen, len(now.history.labels), annotator, authenticated)
        return choice_of(self._journal.write(lambda state: [entry])[0])

    def choices(self) -> list[StopChoice]:
        """Who stopped or went on when the goal was reached or the budget spent, oldest first."""
        with self._journal.lock:
            return [choice_of(event) for event in self._journal.read().choices]

    def now(self) -> Snapshot:
        """The session as it stands, to be read without being disturbed."""
        with self._journal.lock:
            return self._snapshot(self._journal.read())

    def _snapshot(self, state: State) -> Snapshot:
        return Snapshot.of(*self._tasks.of(state.pool, state.settings), state)

    def at(self, labels: int | None = None, *, seq: int | None = None) -> Snapshot:
        """The session as it stood when it first had so many labels, or after the event with that seq."""
        if (labels is None) == (seq is None):
            raise PlanError("at() takes a number of labels, or seq=..., and not both")
        events = self._journal.store.events()
        past = self._journal.beginning()
        for event in events:
            if (seq is not None and past.seq == seq) or (labels is not None and len(past.labels) == labels):
                break
            past.feed([event])
        if (past.seq if labels is None else len(past.labels)) != (seq if labels is None else labels):
            wanted = f"{labels} labels" if seq is None else f"event {seq}"
            raise PlanError(f"the session never stood at {wanted}; it has {len(events)} events")
        return Snapshot.of(*self._tasks.fresh().of(past.pool, past.settings), past)

    # ------------------------------------------------------------ what is known

    def status(self) -> Status:
        """Counts, pace and people, now."""
        with self._journal.lock:
            return status_of(self.plan, self._journal.read(), self._queue.holders())

    def logged_estimates(self) -> list[dict[str, Any]]:
        """The first estimate that was made at each number of labels, as `Estimates.to_dict` has it, in that order."""
        with self._journal.lock:
            logged = self._journal.read().estimates
            return [dict(logged[labels].body) for labels in sorted(logged)]

    def votes(self, id: object) -> dict[str, Name | None]:
        """{annotator: label, None for a skip} of one point; nobody named is ""."""
        row = self.pool.index(id)
        with self._journal.lock:
            votes = self._journal.read().votes(row)
        return {vote.annotator or "": None if vote.code is None else self.pool.classes[vote.code] for vote in votes}

    def votes_by(self, annotator: str | None, limit: int | None = None) -> list[Event]:
        """The standing votes of one annotator (of nobody named for None), newest first."""
        name = annotator_name(annotator)
        with self._journal.lock:
            standing = reversed(self._journal.read().standing.values())
            votes = (event for event in standing if event.annotator == name and event.kind in VOTES)
            return list(islice(votes, limit))

    def unsure(self) -> list[Disagreement]:
        """Points without a label whose annotators said "unsure", and that wait for `adjudicate`."""
        with self._journal.lock:
            return unsure(self._journal.read())

    def agreement(self) -> Agreement:
        """How far annotators agree where several of them labelled one point."""
        with self._journal.lock:
            return agreement(self._journal.read())

    def disagreements(self) -> list[Disagreement]:
        """Points whose annotators differ and that wait for `adjudicate`."""
        with self._journal.lock:
            return disagreements(self._journal.read())

    def events(self) -> Iterator[dict[str, Any]]:
        """Every event in order, as plain values."""
        return map(_event_dict, self._journal.store.events())

    def export_events(self, path: str | os.PathLike[str], *, force: bool = False) -> int:
        """Write every event as one line of JSON; how many there are; force replaces a file."""
        lines = [json.dumps(event, ensure_ascii=False) + "\n" for event in self.events()]
        write_whole(path, "".join(lines).encode(), force=force, kept=kept_by(self.pool, self.path))
        return len(lines)

    def integrity(self) -> str:
        """What SQLite's own check of the file says: "ok", or the faults it found."""
        return self._journal.store.integrity()

    # ------------------------------------------------------------ reports, comparisons, files

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
        made: Report = above("report")(self, path, items=items, notes=notes, force=force, since=since)
        return made

    def compare(
        self,
        predictions: ArrayLike | Mapping[Any, Any],
        metrics: Iterable[MetricLike] | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> "Comparison":
        """A second model against this one on the labels that exist; predictions by row, by `ids`, or as {id: one}."""
        made: Comparison = above("compare")(self, predictions, metrics, ids=ids)
        return made

    def alone(self) -> "tuple[Alone, ...]":
        """What each model alone would have said of every metric of the truth, as share[pass], beside the estimate."""
        made: tuple[Alone, ...] = above("alone")(self)
        return made

    def judge_quality(self) -> Estimates | None:
        """How far each judge agrees with the labels: accuracy, kappa and, for grades, weighted kappa, with intervals.

        None where no metric is about the truth alone, or there is no model.
        """
        made: Estimates | None = above("judge_quality")(self)
        return made

    def threshold(self, claim: str) -> "ThresholdChoice":
        """The threshold of the scores that is shown to keep a claim such as "recall[cat] >= 0.9", and its cost."""
        made: ThresholdChoice = above("threshold")(self, claim)
        return made

    def export(
        self,
        path: str | os.PathLike[str],
        n: int,
        format: str | None = None,
        *,
        blind: bool = True,
        force: bool = False,
        local_files: str | os.PathLike[str] | None = None,
    ) -> "ExportResult":
        """Write the next n points to label as CSV, JSONL, Parquet or Label Studio tasks.

        `local_files` is the folder whose images Label Studio serves. OutputExists if the file is there already,
        unless force; then nothing is drawn.
        """
        made: ExportResult = above("export")(self, path, n, format, blind=blind, force=force, local_files=local_files)
        return made

    def export_labels(
        self, path: str | os.PathLike[str], format: str | None = None, *, force: bool = False
    ) -> "ExportResult":
        """Write every label, skip and ruling that holds now as CSV, JSONL or Parquet; force replaces a file."""
        made: ExportResult = above("export_labels")(self, path, format, force=force)
        return made

    def import_labels(self, path: str | os.PathLike[str], format: str | None = None) -> "ImportResult":
        """Record the labels of a file, all or none: CSV, JSONL, Parquet, Label Studio's JSON or JSON_MIN."""
        made: ImportResult = above("import_labels")(self, path, format)
        return made

    def log_to_mlflow(self, *, report: bool = True, run_id: str | None = None) -> str:
        """Log every estimate with its interval and the report to MLflow; the id of the run."""
        made: str = above("log_to_mlflow")(self, report=report, run_id=run_id)
        return made

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.estimate()._repr_html_()}"

    # ------------------------------------------------------------ the loop

    def label(self, **options: Any) -> "LabellingPage | None":
        """Open the labelling page and answer it until interrupted; the options are those of `altmas.web.serve`.

        In a notebook, or with block=False, it is answered in the background, and what comes back links to it.
        """
        made: LabellingPage | None = above("label")(self, **options)
        return made

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


KINDS = (
    *VOTES,
    *("created", "draw", "undo", *RULINGS, "reveal", "note", "unshown", "choice", "estimate", "model", "extend"),
)
"""Kinds of events that the session writes itself."""


def _id(point: object) -> object:
    """The id of a point that is given by its id or as the query that asked for it."""
    return point.id if isinstance(point, Query) else point


def _still_new(model: Model, pool: Pool) -> Model:
    """The model; PoolError if somebody else has added one of that name meanwhile."""
    if any(one.name == model.name for one in pool.models):
        raise PoolError(
            f"there is a model {model.name!r} in this pool already; give another name; nothing was recorded"
        )
    return model


def _versions() -> dict[str, str]:
    return {"altmas": __version__, "numpy": np.__version__}


def _event_dict(event: Event) -> dict[str, Any]:
    columns = ("seq", "at", "kind", "annotator", "point", "label", "seconds", "refers", "body", "hash")
    arrays = {name: array.tolist() for name, array in event.arrays.items()}
    return {name: getattr(event, name) for name in columns} | ({"arrays": arrays} if arrays else {})
