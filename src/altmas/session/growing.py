"""GrowingSession: models, items, metrics, goals, classes and slices that come to a session after it was made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from altmas.errors import PlanError, PoolError
from altmas.methods import check
from altmas.metrics import MetricLike
from altmas.pool import Model, Name, Pool
from altmas.pool.alignment import aligned
from altmas.pool.growth import grown, slice_values, with_classes, with_slices
from altmas.session.changes import Change, change_entry
from altmas.session.log import State, model_entry
from altmas.session.plan import metric_tuple
from altmas.session.plan_json import metric_name
from altmas.session.reading import ReadableSession
from altmas.session.store import Entry
from altmas.session.waves import fitting_items, wave_names
from altmas.tensors import detached


class GrowingSession(ReadableSession):
    """Adds to the pool and to the plan: each change is one event, all of it or nothing."""

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
        further = metric_tuple(metrics)
        self._tasks.functions |= {metric_name(metric): metric for metric in further if not isinstance(metric, str)}
        tasks = self._tasks.fresh()

        def compose(state: State) -> list[Entry]:
            before, pool = tasks.of(state.pool, state.settings)[0], state.pool
            larger = with_classes(pool, classes) if classes else pool
            values = {name: slice_values(pool, name, raw) for name, raw in (slices or {}).items()}
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
                metrics=further,
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
        return next(change for change in self.changes() if change.seq == event.seq)


def _still_new(model: Model, pool: Pool) -> Model:
    """The model; PoolError if somebody else has added one of that name meanwhile."""
    if any(known.name == model.name for known in pool.models):
        raise PoolError(
            f"there is a model {model.name!r} in this pool already; give another name; nothing was recorded"
        )
    return model
