"""Sessions that draw whole groups: what people do to a group that is asked for, what is refused, and the words."""

import json

import numpy as np
import pytest

import altmas
from altmas.errors import MethodError, PlanError, PoolError
from altmas.intervals import Tails
from altmas.methods import METHODS, Assured, Tradition
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.stages import stages_of
from altmas.methods.draws import answered_whole
from altmas.planning import plan_widths
from altmas.session.plan import Plan
from assured_world import constant_belief
from cli_world import run
from groups_world import grouped_world, runs

CHEAP = Assured(belief=constant_belief)
BOTH = pytest.mark.parametrize("method", [CHEAP, Tradition()], ids=["assured", "tradition"])

# ---------------------------------------------------------------- what people do


def session_of(method, n: int = 60, **options):
    pool, truth = grouped_world(groups=40, largest=6, accuracy=0.8, together=0.5, seed=2)
    session = altmas.Session.create(None, pool, method=method, draw="groups", **options)
    for query in session.ask(n) if n else ():
        session.tell(query.id, truth[int(query.id)])
    return session, pool, truth


def numbers(session) -> list[float]:
    (estimate,) = session.estimate()
    return [estimate.value, estimate.low, estimate.high, estimate.effective_labels]


@BOTH
def test_items_that_wait_move_nothing(method):
    session, _, _ = session_of(method)
    before = numbers(session)
    session.ask(1)
    session.ask(25)
    assert numbers(session) == before


@BOTH
def test_a_short_ask_gives_part_of_a_group_and_the_next_one_the_rest(method):
    one, pool, truth = session_of(method, 0)
    asked = []
    while len(asked) < 40:
        (query,) = one.ask(1)
        asked.append(int(query.id))
        one.tell(query.id, truth[int(query.id)])
    groups = pool.group[asked]
    met = list(dict.fromkeys(groups.tolist()))
    assert groups.tolist() == sorted(groups.tolist(), key=met.index)  # never back to a group, never two at once
    for g in met[:-1]:
        assert sorted(np.array(asked)[groups == g].tolist()) == np.flatnonzero(pool.group == g).tolist()


@BOTH
def test_a_group_counts_once_all_of_its_items_are_answered_in_whatever_order(method):
    session, pool, truth = session_of(method, 50)
    rows = [int(query.id) for query in session.ask(40)]
    forward, backward = (altmas.Session.create(None, pool, method=method, draw="groups") for _ in range(2))
    for other, order in ((forward, rows), (backward, rows[::-1])):
        for query in other.ask(50):
            other.tell(query.id, truth[int(query.id)])
        assert [int(query.id) for query in other.ask(40)] == rows
        for row in order:
            other.tell(row, truth[row])
    assert numbers(forward) == pytest.approx(numbers(backward))
    last = [row for row in rows if pool.group[row] == pool.group[rows[0]]]
    before = numbers(session)
    for row in last[:-1]:
        session.tell(row, truth[row])
        if set(np.flatnonzero(pool.group == pool.group[row])) - session.history.labels.keys():
            assert numbers(session)[0] == before[0]  # part of a group moves no estimate


@BOTH
def test_a_label_taken_back_ends_the_sample_before_its_group(method):
    session, _, truth = session_of(method, 0)
    rows = [int(query.id) for query in session.ask(60)]
    row = rows[20]
    for other in [*rows[:20], *rows[21:], row]:
        session.tell(other, truth[other])
    before, counted = numbers(session), stages_or_labels(session, method)
    session.undo()
    assert row not in session.history.labels
    assert stages_or_labels(session, method) <= 20 < counted and numbers(session) != before
    session.tell(row, truth[row])
    assert numbers(session) == pytest.approx(before)


def stages_or_labels(session, method) -> int:
    """How many labels are in the sample."""
    groups = session.pool.group
    if isinstance(method, Tradition):
        return len(answered_whole(session.history, groups).labels)
    return sum(len(stage.used) for stage in stages_of(session.history, groups))


@BOTH
def test_a_skip_is_an_answer_of_its_group(method):
    session, pool, truth = session_of(method, 0)
    rows = [int(query.id) for query in session.ask(60)]
    for place, row in enumerate(rows):
        session.skip(row, "unreadable") if place == 3 else session.tell(row, truth[row])
    whole = {g for g in pool.group[rows].tolist() if set(np.flatnonzero(pool.group == g)) <= set(rows)}
    in_sample = sum(int(pool.group[row] in whole) for place, row in enumerate(rows) if place != 3)
    counted = stages_or_labels(session, method)
    assert counted - in_sample in (0, 1)  # `used` of assured holds the skipped point too
    assert np.isfinite(numbers(session)[0])


@BOTH
def test_a_volunteered_label_in_the_middle_of_a_group_does_not_hold_it_up(method):
    session, pool, truth = session_of(method, 30)
    counts = np.bincount(pool.group)
    asked = [int(query.id) for query in session.ask(1)]
    while counts[pool.group[asked[-1]]] < 3 or (pool.group[session.history.drawn[:-1]] == pool.group[asked[-1]]).any():
        session.tell(asked[-1], truth[asked[-1]])
        asked += [int(query.id) for query in session.ask(1)]
    own = np.flatnonzero(pool.group == pool.group[asked[-1]])
    volunteered = int(own[-1])
    session.tell(volunteered, truth[volunteered])
    session.tell(asked[-1], truth[asked[-1]])
    for _ in range(len(own) - 2):
        (query,) = session.ask(1)
        assert int(query.id) in own and int(query.id) != volunteered
        session.tell(query.id, truth[int(query.id)])
    (following,) = session.ask(1)
    assert int(following.id) not in own
    assert np.isfinite(numbers(session)[:3]).all()


@BOTH
def test_with_every_label_it_is_exact(method):
    session, pool, truth = session_of(method, 400)
    (estimate,) = session.estimate()
    assert estimate.low == estimate.value == estimate.high == pytest.approx((pool.predictions == truth).mean())


@BOTH
def test_before_a_group_is_whole_there_is_no_number(method):
    session, pool, truth = session_of(method, 0)
    asked = session.ask(6)
    g = next(g for g in pool.group[[int(q.id) for q in asked]] if np.bincount(pool.group)[g] > 1)
    row = int(next(q.id for q in asked if pool.group[int(q.id)] == g))
    session.tell(row, truth[row])
    (estimate,) = session.estimate()
    assert np.isnan(estimate.value) and "no group is answered whole yet" in estimate.note


def test_a_point_left_open_counts_with_its_group():
    """(V13): what was told of the group is known, the rest may be anything."""
    session, pool, truth = session_of(CHEAP, 0)
    rows = [int(query.id) for query in session.ask(80)]
    counts = np.bincount(pool.group)
    place = next(place for place in range(30, 60) if counts[pool.group[rows[place]]] > 2)
    for row in rows:
        if row != rows[place]:
            session.tell(row, truth[row])
    samples = CHEAP._samples(session.task, session.history, stages_of(session.history, pool.group))
    linear = Estimators(samples, session.task, session.history).linearised(session.task.metrics[0], Tails(3.7, 3.7))
    (part,) = linear.estimator.parts
    group, scale = part.left_open
    assert group.tolist() == np.flatnonzero(pool.group == pool.group[rows[place]]).tolist()
    believed = part.belief.agree[group]
    known = np.where(group == rows[place], 0.0, truth[group] == pool.predictions[group])
    down = max((believed - known).sum(), 0) * scale / len(pool)
    up = max((np.where(group == rows[place], 1.0, known) - believed).sum(), 0) * scale / len(pool)
    assert (linear.too_high, linear.too_low) == pytest.approx((down, up))


def test_a_session_is_the_same_when_opened_again(tmp_path):
    pool, truth = grouped_world(groups=40, largest=6, accuracy=0.8, seed=2)
    path = tmp_path / "groups.altmas"
    with altmas.Session.create(path, pool, draw="groups") as session:
        for query in session.ask(70):
            session.tell(query.id, truth[int(query.id)])
        before, following = numbers(session), [query.id for query in session.ask(12)]
    with altmas.Session.open(path) as again:
        assert again.plan.draw == "groups" and again.status().draw == "groups"
        assert numbers(again) == before and [query.id for query in again.ask(12)] == following
    with pytest.raises(PlanError, match="draw is 'groups' there, 'items' here"):
        altmas.Session.create(path, pool, exist_ok=True)


def test_a_plan_of_an_earlier_version_draws_single_items():
    pool, _ = grouped_world(groups=10)
    stored = Plan.of(pool).to_json()
    del stored["draw"]
    assert Plan.from_json(stored).draw == "items"


# ---------------------------------------------------------------- what is refused


def test_what_cannot_be_drawn_by_group_is_refused_in_a_sentence():
    pool, _ = grouped_world(groups=12)
    plain = altmas.Pool(None, pool.predictions, classes=[0, 1])

    def create(on, **options):
        altmas.Session.create(None, on, draw="groups", **options)

    with pytest.raises(PlanError, match=r"this pool has no groups; .*--group.*; nothing was recorded"):
        create(plain)
    for name in METHODS.keys() - {"assured", "tradition"}:
        if METHODS[name]().traits.lacking(pool) or name == "oasis":
            continue
        with pytest.raises(MethodError, match="can draw whole groups: assured, tradition; nothing was recorded"):
            create(pool, method=name)
    with pytest.raises(MethodError, match="assured, tradition"):
        create(pool, method=Tradition(calibrate_rows=True))
    with pytest.raises(PlanError, match="no guarantee is offered for draws of whole groups"):
        create(pool, guarantee=True)
    with pytest.raises(PlanError, match="draw='patients' was not understood; expected 'items' or 'groups'"):
        altmas.Session.create(None, pool, draw="patients")
    sample = altmas.Pool(None, pool.predictions, classes=[0, 1], group=pool.group)
    sample.sampled_from = 10_000
    with pytest.raises(PlanError, match="random sample of 10,000 rows"):
        create(sample)
    heavy = altmas.Pool(None, pool.predictions, classes=[0, 1], group=pool.group, weights=np.full(len(pool), 2.0))
    with pytest.raises(PlanError, match="methods that can: assured"):
        create(heavy, method="tradition")
    create(heavy)


def test_items_cannot_be_added_where_groups_are_drawn():
    session, pool, _ = session_of(CHEAP, 10)
    more = altmas.Pool(None, [0, 1], classes=[0, 1], ids=["x", "y"])
    with pytest.raises(PoolError, match="cannot be added to a pool with groups"):
        session.extend(more)


def test_a_claim_rests_on_the_interval_and_says_so():
    session, pool, truth = session_of(CHEAP, 110)
    verdict = session.check("accuracy >= 0.2")
    assert verdict.answer == "shown" and not verdict.proven
    assert "whole groups are drawn, and no guarantee is offered for that" in verdict.caution
    with pytest.raises(PlanError, match="no guarantee is offered"):
        session.check("accuracy >= 0.2", guarantee=True)
    assert session.forecast() is None


def test_widths_are_planned_with_an_assumption_in_words():
    pool, _ = grouped_world(groups=60)
    plan = plan_widths(pool, budgets=[100], worlds=2, draw="groups", methods=["tradition"])
    assert "items of one group (group) are right or wrong independently" in plan.assumption
    single = plan_widths(pool, budgets=[100], worlds=2, methods=["tradition"])
    assert plan.widths[0].half_width > single.widths[0].half_width


def test_rows_with_weights_count_by_group():
    """With weights the estimate is that of the expanded pool."""
    pool, truth = grouped_world(groups=60, largest=6, accuracy=0.8, seed=6)
    weights = np.random.default_rng(0).integers(1, 5, len(pool)).astype(float)
    heavy = altmas.Pool(None, pool.predictions, classes=[0, 1], group=pool.group, weights=weights)
    figures = runs(heavy, truth, CHEAP, n=100, repeats=60)["accuracy"]
    assert figures["truth"] == pytest.approx(np.average(pool.predictions == truth, weights=weights))
    assert figures["coverage"] >= 0.9 and abs(figures["bias"]) < 3.5 * figures["bias_error"]


def test_a_ranking_of_models_counts_groups():
    pool, truth = grouped_world(groups=60, largest=8, accuracy=0.9, seed=3)
    rng = np.random.default_rng(5)
    worse = np.where((rng.random(60) < 0.5)[pool.group], 1 - truth, truth)
    both = altmas.Pool(None, {"a": pool.predictions, "b": worse}, classes=[0, 1], group=pool.group)
    session = altmas.Session.create(None, both, draw="groups", rank="accuracy", budget=250)
    session.run(lambda query: truth[int(query.id)], progress=False)
    ranking = session.ranking()
    assert ranking.best == "a" and ranking["b"].low > 0


# ---------------------------------------------------------------- words


def test_commands_and_report_say_that_whole_groups_are_drawn(tmp_path):
    pool, truth = grouped_world(groups=40, largest=6, accuracy=0.8, seed=2)
    table, path = tmp_path / "turns.csv", str(tmp_path / "turns.altmas")
    names = np.array(["no", "yes"])
    rows = zip(names[pool.predictions], names[truth], pool.group, strict=True)
    table.write_text("predicted,true,chat\n" + "".join(f"{p},{t},{g}\n" for p, t, g in rows))
    common = ["--data", str(table), "--prediction", "predicted"]
    made = run("init", path, *common, "--group", "chat", "--draw", "groups", "--budget", 60)
    words = "whole groups are drawn (40 groups by chat): a group counts once all of its items are answered"
    assert words in made.out
    with altmas.Session.open(path) as session:
        session.run(lambda query: names[truth[int(query.id)]], progress=False)
        report = session.report()
    assert words in run("status", path).out
    assert json.loads(run("status", path, "--json").out)["draw"] == "groups"
    assert "whole groups were drawn (40 groups by chat)" in report.to_html()
    assert report.content["plan"]["draw"] == "groups"
    assert any("Whole groups are drawn (40 groups by chat)" in one["words"] for one in report.content["assumptions"])
    refused = run("init", tmp_path / "no.altmas", *common, "--draw", "groups")
    assert refused.code and "this pool has no groups" in refused.err and not (tmp_path / "no.altmas").exists()
    assert "expected items or groups" in run("init", path, *common, "--draw", "chats").err
    known = ["--truth", "true", "--group", "chat", "--draw", "groups", "--method", "tradition"]
    assert "tradition" in run("simulate", *common, *known, "--budget", 60, "--repeats", 2, "--jobs", 1).out
    planned = run("plan", path, "--budget", 100, "--worlds", 1).out
    assert "are right or wrong independently" in " ".join(planned.split())
