"""One example for each public name: cells that `.ci/site_pages.py` shows; they run as one program.

A cell begins with `# %%` and the names that it is an example of. It may use what cells before it made.
"""

# %% Pool
import numpy as np
import pyarrow

import altmas

rng = np.random.default_rng(0)
truth = rng.choice(["cat", "dog"], 600)  # what only an expert would know
score = np.clip(0.5 + 0.3 * (truth == "dog") - 0.15 + 0.2 * rng.normal(size=600), 0.01, 0.99)
pool = altmas.Pool(
    rng.normal(size=(600, 3)) + (truth == "cat")[:, None],
    np.where(score >= 0.5, "dog", "cat"),
    scores=np.column_stack([1 - score, score]),
    classes=["cat", "dog"],
    ids=[f"case-{k}" for k in range(600)],
    slices={"scanner": rng.choice(["A", "B"], 600)},
)

# %% Pool.from_table
table = pyarrow.table({"case": ["a", "b", "c"], "vendor": ["cat", "dog", "cat"], "size": [1.0, 2.5, 0.3]})
small = altmas.Pool.from_table(table, prediction="vendor", id="case", features=["size"])

# %% Pool.sample_from, Pool.rows_meant, Pool.predicted_counts
part = altmas.Pool.sample_from(pool, 200, seed=1)  # numbers are about all 600 rows
assert len(part) == 200 and part.rows_meant == 600 and part.predicted_counts.sum() == 600

# %% Reduction
wide = pyarrow.table({"case": list("abcd"), "vendor": list("xyxx"), "x": [1.0, 2, 3, 4], "y": [2.0, 4, 6, 8.5]})
reduction = altmas.Reduction.fit(wide, features=["x", "y"], keep=["case", "vendor"], dimensions=1)
narrow = reduction(wide)  # a pyarrow table of case, vendor and reduced_0; in a cluster, of every batch
small = altmas.Pool.from_table(narrow, prediction="vendor", id="case", features=reduction.columns)

# %% Pool.index, Pool.code, Pool.codes, Pool.find_class
assert pool.index("case-7") == 7
assert pool.code("dog") == 1 and pool.find_class("eel") is None
assert pool.codes(["dog", "cat"]).tolist() == [1, 0]

# %% Pool.predictions, Pool.scores, Pool.model, Pool.answers_at, Pool.anchor
assert pool.predictions.shape == (600,) and pool.scores.shape == (600, 2)
name = pool.models[0].name
assert pool.model(name).predictions is pool.predictions
print(pool.answers_at(7), pool.anchor[7])

# %% Pool.new_model, Pool.with_models, Model
rival: altmas.Model = pool.new_model("rival", rng.choice(["cat", "dog"], 600))
two = pool.with_models(*pool.models, rival)
assert [model.name for model in two.models] == [name, "rival"]

# %% Pool.named_values
graded = altmas.Pool(None, ["bad", "good", "ok"], values={"bad": 0, "ok": 1, "good": 2})
assert graded.named_values == {"bad": 0, "ok": 1, "good": 2}  # `mean` can be asked for

# %% Pool.notices, Pool.fingerprint
alike = altmas.Pool(None, ["Cat", "cat", "dog"])
print(*alike.notices)
assert alike.fingerprint["predictions"] != pool.fingerprint["predictions"]

# %% Session, Session.create, Session.close
session = altmas.Session.create(
    "cats.altmas", pool, metrics=["accuracy", "recall[cat]"], budget=100, targets={"accuracy": 0.03}, seed=1
)
session.close()

# %% Session.open
session = altmas.Session.open("cats.altmas", pool)

# %% Session.path, Session.pool, Session.plan, Session.task, Session.method
print(session.path, session.plan.budget, session.method.name, len(session.pool), len(session.task.metrics))

# %% Session.ask, Query
queries = session.ask(10)
first: altmas.Query = queries[0]
print(first.id, first.index, first.item)
assert session.ask(10) == queries  # the same until something is told

# %% Session.tell
session.tell(first.id, "cat", annotator="ana", seconds=3.5)
session.tell({query.id: str(truth[query.index]) for query in queries[1:8]})

# %% Session.skip
session.skip(queries[8].id, "cut off at the border", annotator="ana")

# %% Session.undo
print(session.undo(annotator="ana"))  # takes back the skip; nothing is erased from the log

# %% Session.answer, Answer
session.answer(
    [
        altmas.Answer(queries[8].id, str(truth[queries[8].index]), annotator="ana"),
        altmas.Answer(queries[9].id, kind="unsure", reason="both are seen", annotator="ben"),
    ]
)

# %% Session.votes, Session.votes_by, Session.unsure, Session.standing
print(session.votes(first.id), len(session.votes_by("ana")), session.unsure()[0].id, len(session.standing()))

# %% Session.adjudicate, Session.disagreements, Session.agreement
session.tell(first.id, "dog", annotator="ben")  # a second opinion
print([one.id for one in session.disagreements()], session.agreement())
session.adjudicate(first.id, str(truth[first.index]), annotator="chief")

# %% Session.cannot_settle, Session.overdue, Session.close_overdue
session.cannot_settle(queries[9].id, annotator="chief", note="both can be seen")  # no label: it counts as skipped
print(session.overdue(), session.close_overdue(annotator="chief"))  # points passed over by later answers: "no answer"

# %% Session.note, Session.notes, Session.note_by
session.note("the scanner was repaired", annotator="ana")
seq = session.note("cut off", first.id, "ana")
session.note("cut off at the left", first.id, "ana", revises=seq)  # an edit
print(session.notes(), session.note_by(first.id, "ana"))

# %% Session.reveal, Session.revealed_to, Session.not_shown, Session.release
session.reveal(first.id, annotator="ana")  # ana saw what the model says
assert session.revealed_to("ana") == {first.index}
session.not_shown(first.id, "no such file", annotator="ana")  # an image that the page could not show
session.release("ana")  # what waits for ana may be asked of others

# %% Session.run
session.run(lambda query: str(truth[query.index]), progress=False)

# %% Session.estimate, Estimates, Estimate
estimates: altmas.Estimates = session.estimate()
print(estimates)
accuracy: altmas.Estimate = estimates["accuracy"]
assert accuracy.low <= accuracy.value <= accuracy.high
print(session.estimate(by="scanner"), session.estimate(metrics="f1[cat]"))

# %% Session.should_stop, Decision
decision: altmas.Decision = session.should_stop()
print(decision.stop, decision.reason)

# %% Session.forecast, Forecast
forecast: altmas.Forecast | None = session.forecast()  # widths and chances with more labels, from the present belief
print(forecast)

# %% Session.goals, Session.choose, Session.choices
print(session.goals())
session.choose(stop=True, annotator="ana")  # recorded with the goals as they stand; labelling stays possible
print(session.choices())

# %% Session.extend, Session.changes
session.extend(budget=120, metrics=["f1[cat]"])  # more labels, and one more question; nothing told so far is lost
print(session.changes())

# %% Session.forecast
print(session.forecast())  # widths and the chance to reach the target, up to the budget

# %% Session.check
print(session.check("accuracy >= 0.5"))

# %% Session.status, Status
status: altmas.Status = session.status()
print(status.to_dict())

# %% Session.now, Session.at, Session.history, Snapshot
earlier: altmas.Snapshot = session.at(50)
print(earlier.estimate()["accuracy"], len(session.now().history.labels), len(session.history.labels))

# %% Session.trajectory, Session.logged_estimates
for labels, then in session.trajectory(points=3):
    print(labels, then["accuracy"])
print(len(session.logged_estimates()))

# %% Session.compare, Session.add_model, Session.ranking
second = np.where(rng.random(600) < 0.95, truth, "cat")
print(session.compare(second))
session.add_model("v2", second)
print(session.ranking("accuracy"))

# %% Session.alone
people = altmas.Session.create(None, pool, metrics=["share[cat]"], budget=40)
people.run(lambda query: str(truth[query.index]), progress=False)
print(people.alone()[0])

# %% Session.judge_quality
print(people.judge_quality())  # how far each model agrees with people

# %% Session.monitor
# print(session.monitor("accuracy"))  # level and change for each wave of a session that was extended with items

# %% Session.threshold
print(people.threshold("recall[dog] >= 0.5"))

# %% Session.held_by_others, Session.why_fewer
shared = altmas.Session.create(None, pool, metrics=["accuracy"], budget=10)
shared.ask(8, annotator="ana")
print(shared.held_by_others())  # ana has eight items, which nobody else is asked for
given = shared.ask(5)
print(len(given), shared.why_fewer(5, len(given)))
print(len(shared.ask(5, take_over=True)))

# %% Session.export, Session.import_labels
todo = altmas.Session.create(None, pool, metrics=["accuracy"])
todo.export("next.csv", 20)  # fill in the column "label", then read it back
print(todo.import_labels("next.csv"))

# %% Session.export_labels, Session.export_events, Session.events, Session.integrity
session.export_labels("labels.csv")
print(session.export_events("events.jsonl"), next(iter(session.events()))["kind"], session.integrity())

# %% Session.report
session.report("cats.html")

# %% Session.label
# session.label()  # opens the page on this machine and returns when it is closed

# %% Session.log_to_mlflow
# session.log_to_mlflow()  # needs altmas[mlflow]: one step for each estimate of the trajectory

# %% Session.prefetch, Session.vote, Session.vote_and_ask, Session.answer_new, Session.record
web = altmas.Session.create(None, pool, metrics=["accuracy"])  # what a page of your own would call
web.prefetch(5)
waiting = web.ask(2, annotator="ana")
web.vote(waiting[0].id, "cat", "ana")  # once, however often it is sent
_, following = web.vote_and_ask(waiting[1].id, "dog", "ana", 1)
web.answer_new(lambda votes: [altmas.Answer(following[0].id, "cat")] if len(votes) == 2 else [])
web.record("camera", {"exposure": 3})

# %% Plan
plan: altmas.Plan = session.plan
print(plan.metrics, plan.targets, plan.confidence)

# %% Metric
metric: altmas.Metric = session.task.metrics[0]
print(metric.name, metric.bounds, metric.meaning(pool))

# %% simulate, Simulation
result: altmas.Simulation = altmas.simulate(
    pool, truth, methods=["tradition"], metrics=["accuracy"], budgets=[50], repeats=4, n_jobs=1, progress=False
)
print(result, len(result.rows), result.summary()[0]["coverage"])

# %% methods
print(sorted(altmas.methods.METHODS))
by_object = altmas.Session.create(None, pool, method=altmas.methods.Tradition(), metrics=["accuracy"])

# %% errors, AltmasError
try:
    session.tell("case-7", "eel")
except altmas.AltmasError as error:  # here altmas.errors.UnknownLabel, which is a ValueError too
    print(error)

# %% predict_performance
source = rng.normal(size=(300, 2))
of_source = (source[:, 0] > 0).astype(int)


def model(inputs):
    p = 0.5 + 0.5 * np.tanh(inputs[:, 0])
    return np.column_stack([1 - p, p])


print(altmas.predict_performance(model, source, of_source, source + 0.1, repeats=2, progress=False))

# %% worst_case, Transformations, Range
where = altmas.Transformations(
    lambda inputs: (inputs[:, 0] > 0).astype(int),
    source,
    of_source,
    lambda inputs, shift: inputs + shift,
    {"shift": altmas.Range(-1.0, 1.0)},
)
print(altmas.worst_case(where, budget=8, progress=False))

# %% tune, Tuning
# tuning: altmas.Tuning = altmas.tune(pool, {query.id: "cat" for query in queries})  # needs altmas[paper]

# %% read_evaluation
# table = altmas.read_evaluation("2026-01-01_task.eval")  # a log of Inspect, promptfoo, DeepEval, lm-eval, OpenAI evals

# %% __version__
print(altmas.__version__)
session.close()
