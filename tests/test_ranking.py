"""Which of several models is best: tiers whose errors are bounded, draws where contenders differ, honest sentences."""

import json
import math

import numpy as np
import pytest

import altmas
from altmas.belief import Belief, WrittenOut
from altmas.errors import MethodError, MetricError, PlanError
from altmas.history import Batch, History
from altmas.intervals import anytime_quantile
from altmas.methods import Assured, Task
from altmas.methods.assured.contest import Contest, disagreement, importance
from altmas.metrics import metric_set, truth_values
from altmas.ranking import Ranked, Ranking, rank
from altmas.simulate import label_until
from assured_world import constant_belief

NAMES = np.array(["a", "b", "c"])


def world(shares, n=800, seed=0, features=False):
    """(pool, truth): one model for each share of right answers, with errors that partly fall on the same points."""
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(0, 3, n), rng.random(n)
    answers = {}
    for place, share in enumerate(shares):
        luck = np.where(rng.random(n) < 0.5, hard, rng.random(n))
        answers[f"v{place}"] = NAMES[np.where(luck < share, truth, (truth + rng.integers(1, 3, n)) % 3)]
    return altmas.Pool(None, answers, classes=NAMES.tolist()), truth


def labelled(pool, truth, n, seed=0, method=None, metric="accuracy"):
    """(task, history) after n labels drawn for a ranking."""
    metrics, method = metric_set([metric], pool), method or Assured()
    task, history = Task(pool, metrics, seed=seed, rank=metrics), History(len(pool))
    for stop in [stop for stop in (20, 40, 80, 160) if stop < n] + [n]:
        batch = method.propose(task, history, stop - len(history.labels))
        labels = dict(history.labels) | {int(row): int(truth[row]) for row in batch.indices}
        before = len(history.labels)
        batch = Batch(batch.indices, batch.probabilities, batch.record, labels_before=before)
        history = History(len(pool), (*history.batches, batch), labels)
    return task, history


def test_a_clear_order_is_found_and_a_tie_is_called_one():
    pool, truth = world([0.9, 0.9, 0.6, 0.5])
    task, history = labelled(pool, truth, 160)
    found = rank(Assured(), task, history, task.rank, "accuracy")
    assert found.best in ("v0", "v1") and {"v2", "v3"} <= {*found.tier("worse"), *found.tier("not told apart")}
    assert "v3" in found.tier("worse")
    assert found.contender in ("v0", "v1") and found[0].tier == "best"
    assert [one.tier for one in found] == sorted(
        (one.tier for one in found), key=["best", "not told apart", "worse"].index
    )
    assert found.best in found.summary and "shown to be worse" in str(found)


def test_values_are_the_estimates_and_differences_have_intervals_that_contain_them():
    pool, truth = world([0.85, 0.8, 0.6])
    task, history = labelled(pool, truth, 100)
    found = rank(Assured(), task, history, task.rank, "accuracy")
    estimates = {one.metric: one.value for one in Assured().estimate(task, history)}
    for one in found:
        assert one.value == pytest.approx(estimates[f"{one.model}: accuracy"])
        assert one.tier == "best" or one.low <= one.behind <= one.high
        assert one.behind == pytest.approx(found[0].value - one.value)


def test_with_every_label_the_order_is_the_true_one_and_exact():
    pool, truth = world([0.7, 0.9, 0.8], n=60)
    history = History(60, (), {row: int(code) for row, code in enumerate(truth)})
    method = Assured()
    batch = method.propose(Task(pool, metric_set(["accuracy"], pool)), History(60), 60)
    history = History(60, (batch,), dict(history.labels))
    metrics = metric_set(["accuracy"], pool)
    found = rank(method, Task(pool, metrics), history, metrics, "accuracy")
    true = truth_values(pool, truth, metrics)
    assert [one.model for one in found] == sorted(("v0", "v1", "v2"), key=lambda name: -true[f"{name}: accuracy"])
    assert all(one.low == one.high == pytest.approx(one.behind) for one in found[1:])
    assert found.tier("worse") == tuple(one.model for one in found[1:] if one.behind > 0)


def test_for_errors_less_is_better():
    pool, truth = world([0.9, 0.5])
    task, history = labelled(pool, truth, 100, metric="error")
    found = rank(Assured(), task, history, task.rank, "error")
    assert found.best == "v0" and found["v1"].tier == "worse" and found["v1"].behind > 0 and found["v1"].low > 0


def test_nobody_is_called_worse_with_few_labels_or_none():
    pool, truth = world([0.99, 0.05])
    for n in (5, 15, 39):
        task, history = labelled(pool, truth, n)
        assert rank(Assured(), task, history, task.rank, "accuracy").tier("worse") == ()
    nothing = rank(Assured(), task, History(len(pool)), task.rank, "accuracy")
    assert math.isnan(nothing[0].value) and "no drawn label" in nothing.summary


@pytest.mark.parametrize("name", ["accuracy", "error"])
def test_with_every_point_told_and_none_asked_for_the_order_is_known(name):
    pool, truth = world([0.6, 0.9, 0.75])
    pool = pool.with_models(*pool.models, altmas.Model("twin", pool.models[1].predictions))
    session = altmas.Session.create(None, pool, metrics=[name])
    for row, label in enumerate(truth):
        session.tell(pool.ids[row], pool.classes[label])
    told = session.ranking(name)
    session = altmas.Session.create(None, pool, metrics=[name])
    for query in session.ask(len(pool)):
        session.tell(query.id, pool.classes[truth[query.index]])
    drawn = session.ranking(name)
    assert [one.model for one in told] == [one.model for one in drawn] == ["v1", "twin", "v2", "v0"]
    for one, other in zip(told, drawn, strict=True):
        assert (one.tier, one.value) == (other.tier, pytest.approx(other.value))
        assert (one.behind, one.low) == pytest.approx((other.behind, other.low), nan_ok=True)
    assert told.alike == drawn.alike == ("twin",) and told.summary == drawn.summary


def test_models_with_the_same_answers_are_never_told_apart():
    pool, truth = world([0.8, 0.6])
    twin = altmas.Model("twin", pool.models[0].predictions)
    pool = pool.with_models(*pool.models, twin)
    task, history = labelled(pool, truth, 120)
    found = rank(Assured(), task, history, task.rank, "accuracy")
    assert {found["v0"].tier, found["twin"].tier} == {"best", "not told apart"}


def test_no_label_tells_models_that_say_the_same_and_the_summary_says_so():
    pool, truth = world([0.8, 0.6])
    pool = pool.with_models(*pool.models, altmas.Model("twin", pool.models[0].predictions))
    task, history = labelled(pool, truth, 60)
    found = rank(Assured(), task, history, task.rank, "accuracy")
    (other,) = {"v0", "twin"} - {found.best}
    assert found.alike == (other,) == tuple(found.to_dict()["alike"]) and found.contender != other
    assert f"No label can tell {found.best} from '{other}': they say the same of every point." in found.summary
    only = pool.with_models(pool.models[0], pool.models[2])
    task, history = labelled(only, truth, 60)
    found = rank(Assured(), task, history, task.rank, "accuracy")
    assert found.contender is None and "To tell " not in found.summary and found[1].tier == "not told apart"


def test_models_that_differ_at_one_unlabelled_point_can_be_told_apart_by_it():
    pool, truth = world([0.8], n=300)
    task, history = labelled(pool.with_models(*pool.models, altmas.Model("w", pool.models[0].predictions)), truth, 60)
    free = int(np.flatnonzero(history.known < 0)[0])
    answers = pool.models[0].predictions.copy()
    answers[free] = (answers[free] + 1) % 3
    both = pool.with_models(*pool.models, altmas.Model("w", answers))
    metrics = metric_set(["accuracy"], both)
    found = rank(Assured(), Task(both, metrics, rank=metrics), history, metrics, "accuracy")
    assert found.alike == () and found[1].tier == "not told apart"


@pytest.mark.parametrize("shift", [0, 1])
def test_values_and_differences_stay_inside_their_bounds(shift):
    truth = np.random.default_rng(0).integers(0, 3, 300)
    pool = altmas.Pool(None, {"x": NAMES[truth], "y": NAMES[(truth + shift) % 3]}, classes=NAMES.tolist())
    task, history = labelled(pool, truth, 60)
    found = rank(Assured(), task, history, task.rank, "accuracy")
    assert all(0 <= one.value <= 1 and 0 <= one.behind <= 1 for one in found)
    assert found[1].tier == ("worse" if shift else "not told apart")


def test_the_best_is_chosen_by_the_mean_of_estimate_labels_and_belief():
    pool, truth = world([0.85, 0.8, 0.6])
    task, history = labelled(pool, truth, 60)
    contest = Assured().contest(task, history, task.rank)
    estimator, known = contest.estimator, history.known
    for k, model in enumerate(pool.models):
        right = model.predictions == known
        believed = sum(
            part.share * (right[part.labelled].sum() + part.belief.of_class(model.predictions)[part.rest].sum())
            for part in estimator.parts
        ) / len(pool)
        by_hand = (contest.values[k] + right[known >= 0].mean() + believed) / 3
        assert contest.scores[k] == pytest.approx(by_hand)


def test_a_model_that_is_added_later_is_ranked_with_the_labels_so_far():
    pool, truth = world([0.7, 0.6], n=300)
    session = altmas.Session.create(None, pool, rank="accuracy", budget=150)
    session.run(lambda query: NAMES[truth[query.index]], progress=False)
    session.add_model("right", NAMES[truth])
    found = session.ranking()
    assert found.best == "right" and set(found.tier("worse")) == {"v0", "v1"}
    with pytest.raises(altmas.AltmasError, match="already"):
        session.add_model("right", NAMES[truth])


def test_a_metric_that_nothing_is_known_of_yet_ranks_nobody():
    pool, truth = world([0.8, 0.6], n=400)
    rare = np.where(np.arange(400) < 2, "rare", "usual")
    pool = altmas.Pool(None, {m.name: NAMES[m.predictions] for m in pool.models}, slices={"g": rare})
    metrics = metric_set(["accuracy@g=rare"], pool)
    task, history = labelled(pool, truth, 60, metric="accuracy@g=rare")
    found = rank(Assured(), task, history, metrics, "accuracy@g=rare")
    assert found.tier("worse") == () and len(found) == 2 and found.summary


def test_draws_for_a_ranking_go_where_models_differ():
    pool, truth = world([0.85, 0.8, 0.8])
    task, history = labelled(pool, truth, 40)
    answers = np.stack([model.predictions for model in pool.models])
    differ = (answers != answers[0]).any(axis=0)
    assert differ[history.drawn].mean() > 1.5 * differ.mean()


def test_disagreement_is_the_chance_that_two_models_differ():
    answers = [np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([0, 1, 0])]
    by_hand = [np.mean([a[row] != b[row] for a in answers for b in answers]) for row in range(3)]
    np.testing.assert_allclose(disagreement(answers, 3), by_hand)


def test_expected_squares_are_those_of_a_belief_that_is_not_written_out(monkeypatch):
    pool, truth = world([0.85, 0.8, 0.6])
    task, history = labelled(pool, truth, 60)
    for metric in ("accuracy", "macro_f1"):
        metrics = metric_set([metric], pool)
        quick = Assured().contest(task, history, metrics)
        found = [quick.expected_squares(0, k) for k in range(3)]
        with monkeypatch.context() as patch:
            patch.setattr(Belief, "written_out", property(lambda belief: belief))
            slow = Assured().contest(task, history, metrics)
        assert type(slow.estimator.belief) is Belief and type(quick.estimator.belief) is WrittenOut
        np.testing.assert_allclose(quick.scores, slow.scores, atol=1e-12)
        np.testing.assert_allclose(found, [slow.expected_squares(0, k) for k in range(3)], atol=1e-15)


def test_importance_is_zero_where_all_models_agree_and_the_metric_is_a_mean():
    pool, truth = world([0.85, 0.8, 0.8])
    task, history = labelled(pool, truth, 60)
    contest = Assured().contest(task, history, task.rank)
    believed, _ = importance(contest)
    answers = np.stack([model.predictions for model in pool.models])
    agree = (answers == answers[0]).all(axis=0)
    assert np.abs(believed[agree]).max() < 1e-15 < believed[~agree].mean()


def test_variances_of_differences_equal_a_loop_over_labels():
    pool, truth = world([0.85, 0.8, 0.6])
    task, history = labelled(pool, truth, 60)
    contest = Assured().contest(task, history, task.rank)
    for k, j in [(0, 1), (2, 0)]:
        shown, start = 0.0, 0
        for part in contest.estimator.parts:
            residuals = contest.residuals[start : start + len(part.rows)]
            shown += float(part.squares(residuals[:, k] - residuals[:, j]).sum())
            start += len(part.rows)
        assert contest.shown[k, j] == pytest.approx(shown)


def test_critical_values_grow_with_the_number_of_models_and_are_normal_for_two():
    pool, truth = world([0.85, 0.8, 0.8, 0.8, 0.8, 0.75])
    task, history = labelled(pool, truth, 100)
    many = Assured().contest(task, history, task.rank)
    two = Contest(many.among, many.metrics[:2], many.planned)
    rng = np.random.default_rng(0)
    assert two.critical_at_one_look(0.95, rng).max() == pytest.approx(1.96, abs=0.12)
    assert many.critical_at_one_look(0.95, rng).min() > 2.2


def test_critical_values_hold_at_every_look():
    """(R3): for two models those of a confidence sequence at the confidence asked for."""
    pool, truth = world([0.85, 0.8])
    task, history = labelled(pool, truth, 100)
    contest = Assured().contest(task, history, task.rank)
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    alone = contest.critical_at_one_look(0.95, rng)
    assert (contest.critical(0.95, again) > 1.4 * alone).all()
    assert contest.planned == 200 and contest.critical(0.95, rng).max() >= anytime_quantile(0.95, 100, 200)


def test_two_models_of_equal_accuracy_are_hardly_ever_told_apart_by_looking_often():
    """With the factor for one look a tenth to an eighth of such sessions called one of the two worse."""
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(50_000 + seed)
        truth, order = rng.integers(0, 2, 800), rng.permutation(800)
        slips = [order[:120], np.r_[order[:60], order[120:180]]]
        answers = {f"v{k}": np.where(np.isin(np.arange(800), rows), 1 - truth, truth) for k, rows in enumerate(slips)}
        pool = altmas.Pool(None, answers, classes=[0, 1])
        method, metrics, told, ever = Assured(belief=constant_belief), metric_set(["accuracy"], pool), 0, False
        task, history = Task(pool, metrics, seed=seed, rank=metrics, budget=120), History(800)
        for stop in range(40, 121, 10):
            history = label_until(method, task, history, stop, stop - told, truth.__getitem__)
            told, found = stop, rank(method, task, history, metrics, "accuracy")
            ever = ever or bool(found.tier("worse"))
        wrong += ever
    assert wrong <= 3


def excluded_best(seed, n=100, looks=(25, 50, 100)):
    """Whether a truly best model was called worse at any look; a constant belief is fast."""
    pool, truth = world([0.8, 0.8, 0.78, 0.75, 0.7], n=500, seed=seed)
    method = Assured(belief=constant_belief)
    metrics = metric_set(["accuracy"], pool)
    true = truth_values(pool, truth, metrics)
    best = {name.split(":")[0] for name, value in true.items() if value == max(true.values())}
    for look in looks:
        task, history = labelled(pool, truth, look, seed, method)
        if best & set(rank(method, task, history, metrics, "accuracy").tier("worse")):
            return True
    return False


def test_a_truly_best_model_is_hardly_ever_excluded():
    assert sum(map(excluded_best, range(6))) <= 1


@pytest.mark.slow
def test_a_truly_best_model_is_excluded_in_at_most_5_percent_of_sessions():
    assert sum(map(excluded_best, range(200))) <= 17  # 5 % of 200 and two standard errors


# ---------------------------------------------------------------- sessions


@pytest.fixture(scope="module")
def session():
    pool, truth = world([0.9, 0.6], n=300)
    made = altmas.Session.create(None, pool, rank="accuracy", budget=60)
    made.run(lambda query: NAMES[truth[query.index]], progress=False)
    return made


def test_a_session_ranks_by_what_it_was_made_for_or_by_another_metric(session):
    found = session.ranking()
    assert (found.metric, found.best, found.labels) == ("accuracy", "v0", 60)
    assert session.ranking("macro_f1").metric == "macro_f1"
    told = json.loads(json.dumps(found.to_dict()))
    assert told["best"] == "v0" and [one["model"] for one in told["models"]] == ["v0", "v1"]
    assert len(found.to_frame()) == 2 and "behind the best" in found._repr_html_()


def test_the_plan_keeps_what_is_ranked(tmp_path):
    pool, _ = world([0.9, 0.6], n=60)
    path = tmp_path / "one.altmas"
    altmas.Session.create(path, pool, rank="accuracy").close()
    with altmas.Session.open(path) as again:
        assert again.plan.rank == "accuracy" and len(again.task.rank) == 2
        again.add_model("v2", [NAMES[0]] * 60)
        assert [metric.model for metric in again.task.rank] == ["v0", "v1", "v2"]


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"rank": "v1: accuracy"}, MetricError, "without a model's name"),
        ({"rank": "share[a]"}, MetricError, "cannot be ranked by 'share[a]'"),
        ({"rank": "acuracy"}, MetricError, "does not exist"),
        ({"rank": 3}, PlanError, "rank=3 was not understood"),
        ({"rank": "accuracy", "method": "tradition"}, MethodError, "does not compare models"),
    ],
)
def test_what_cannot_be_ranked_is_refused_with_a_sentence(options, kind, sentence):
    pool, _ = world([0.9, 0.6], n=60)
    with pytest.raises(kind) as caught:
        altmas.Session.create(None, pool, **options)
    assert sentence in str(caught.value)


def test_one_model_cannot_be_ranked():
    pool, _ = world([0.9, 0.6], n=60)
    with pytest.raises(PlanError, match="at least two models, this pool has 1"):
        altmas.Session.create(None, pool.with_models(pool.models[0])).ranking()


# ---------------------------------------------------------------- simulated, and reported


def test_a_simulation_says_how_good_the_chosen_model_was():
    pool, truth = world([0.9, 0.6, 0.5], n=300)
    found = altmas.simulate(
        pool, NAMES[truth], methods=["assured"], budgets=[60], repeats=2, n_jobs=1, rank="accuracy", progress=False
    )
    (row, _) = [one for one in found.rows if one["metric"] == "accuracy of the model ranked best"]
    assert row["chosen"] == "v0" and row["value"] == row["truth"] and row["best_excluded"] is False
    assert {one["metric"] for one in found.rows} >= {"v0: accuracy", "v2: accuracy"}
    with pytest.raises(MethodError, match="does not compare models"):
        altmas.simulate(pool, NAMES[truth], methods=["tradition"], budgets=[60], rank="accuracy", progress=False)


def test_the_report_has_models_side_by_side_and_their_ranking(session, tmp_path):
    report = session.report(tmp_path / "models.html")
    page = (tmp_path / "models.html").read_text(encoding="utf-8")
    assert 'id="models"' in page and 'id="ranking"' in page and "chart-ranking" in page
    told = json.loads((tmp_path / "models.json").read_text(encoding="utf-8"))
    assert told["models"]["names"] == ["v0", "v1"] and told["ranking"]["best"] == "v0"
    assert [one["metric"] for one in told["models"]["rows"]] == ["accuracy"] and report is not None


def test_a_session_made_to_rank_has_the_ranking_as_its_headline(session):
    report, found = session.report(), session.ranking()
    assert session.plan.rank and report.content["headline"]["verdict"] == found.finding
    assert report.content["headline"]["next"] == found.outlook and "nothing to decide" not in str(report)


def test_a_better_estimate_than_that_of_the_best_is_explained():
    rows = (Ranked("v1", 0.9, 0.0, math.nan, math.nan, "best"), Ranked("v2", 0.92, -0.02, -0.1, 0.05, "not told apart"))
    found = Ranking(rows, "accuracy", 0.95, 50, "assured")
    assert "'v2' (0.9200) has a better estimate than 'v1' (0.9000): the choice also counts" in found.summary
    assert [one.shown_behind for one in found] == ["-", "tied"] and found.to_dict()["models"][1]["behind"] == -0.02
    for shown in (str(found), found._repr_html_()):
        assert "tied" in shown and "-0.0200" not in shown
    level = Ranking((rows[0], Ranked("v2", 0.8, 0.1, 0.0, 0.2, "not told apart")), "accuracy", 0.95, 50, "assured")
    assert "better estimate" not in level.summary and level[1].shown_behind == "+0.1000"


def test_the_report_of_one_model_has_neither(tmp_path):
    pool, truth = world([0.9, 0.6], n=100)
    one = altmas.Session.create(None, pool.with_models(pool.models[0]), method="tradition")
    one.tell({query.id: NAMES[truth[query.index]] for query in one.ask(30)})
    one.report(tmp_path / "one.html")
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert 'id="models"' not in page and 'id="ranking"' not in page


@pytest.mark.parametrize("ahead", [0, 1])
def test_once_every_point_on_which_two_models_differ_is_labelled_the_order_is_that_of_the_labels(ahead):
    """The better one leads, by as much as it is better, and of two that are equal none is worse."""
    for seed in range(4):
        rng = np.random.default_rng(90_000 + seed)
        truth = rng.integers(0, 2, 400)
        wrong, answers = rng.permutation(400)[: 60 + ahead], {}
        for name, rows in (("a", wrong[: 30 + ahead]), ("b", wrong[30 + ahead :])):
            answers[name] = truth.copy()
            answers[name][rows] = 1 - answers[name][rows]
        pool = altmas.Pool(None, answers, classes=[0, 1])
        session = altmas.Session.create(None, pool, rank="accuracy", seed=seed)
        session.tell({str(query.id): int(truth[query.index]) for query in session.ask(60)})
        session.tell({str(row): int(truth[row]) for row in wrong})
        found = session.ranking()
        apart = found.models[1]
        assert (apart.low, apart.high) == pytest.approx((ahead / 400, ahead / 400)) and found.contender is None
        assert (found.best, apart.tier) == ("b", "worse") if ahead else apart.tier == "not told apart"


def test_an_estimate_that_cannot_be_is_not_what_an_interval_lies_around():
    """(V23): models that differ seldom, among others: one draw with a large weight moved a difference to five times
    what is possible, and its interval reached down from there and not to 0."""
    outside, wrong, made = 0, 0, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 3, 3000)
        first = np.where(rng.random(3000) < 0.92, truth, (truth + 1) % 3)
        near = [np.where(rng.random(3000) < 0.03, (truth + rng.integers(0, 3, 3000)) % 3, first) for _ in range(3)]
        far = [np.where(rng.random(3000) < 0.4, (truth + rng.integers(0, 3, 3000)) % 3, first) for _ in range(3)]
        answers = {f"v{k}": NAMES[codes] for k, codes in enumerate([first, *near, *far])}
        pool = altmas.Pool(None, answers, classes=NAMES.tolist())
        task, history = labelled(pool, truth, 50, seed=seed)
        contest = Assured().contest(task, history, task.rank)
        accuracy = [float((model.predictions == truth).mean()) for model in pool.models]
        for k in range(1, 4):
            linear = contest._difference(0, k, 1.96)
            least, most = linear.metric.possible(pool, history.known)
            low, high = contest.interval(0, k, 1.96)
            outside += not least <= linear.value <= most
            assert least <= linear.value_inside(of_pool=True) <= most
            wrong, made = wrong + (not low <= accuracy[0] - accuracy[k] <= high), made + 1
    assert outside and wrong <= 0.12 * made
