"""Surrogates: what every one of them promises, the dropout draws, and what compiles when."""

import json
import os
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import forks
from altmas.compute import threads
from altmas.methods.paper.information import bald
from altmas.methods.paper.surrogates import SURROGATES, Ensemble, MCDropout, Training, surrogate_named
from altmas.methods.paper.surrogates.minibatches import visits
from altmas.methods.paper.surrogates.mlp import initial_weights, padded_classes, padded_columns, train
from altmas.pool import Pool
from altmas.pool.features import Features

QUICK = Training(epochs=30)


def two_clouds(seed=0, n=120, columns=5, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    x = rng.normal(size=(n, columns)).astype(np.float32)
    x[:, 0] += 6 * y
    return (x - x.mean(0)) / x.std(0), y


@pytest.fixture(params=SURROGATES)
def surrogate(request):
    return surrogate_named(request.param, 0.3, QUICK)


@pytest.mark.paper
def test_it_learns_what_can_be_learned(surrogate):
    x, y = two_clouds()
    fitted = surrogate.fit(x, y, 3, np.random.default_rng(0))
    unseen, truth = two_clouds(seed=1)
    assert (fitted.mean(unseen).argmax(1) == truth).mean() > 0.9
    probs = fitted.draws(10, np.random.default_rng(0))(unseen)
    assert (probs.mean(0).argmax(1) == truth).mean() > 0.9
    assert fitted.trained.loss < 0.3
    assert fitted.trained.steps == 30 * 2


@pytest.mark.paper
def test_its_draws_are_probabilities_of_networks_that_differ(surrogate):
    x, y = two_clouds()
    draws = surrogate.fit(x, y, 3, np.random.default_rng(0)).draws(4, np.random.default_rng(0))
    probs = draws(x)
    assert probs.shape == (draws.count, 120, 3) and draws.count == 4
    assert probs.dtype == np.float32
    assert_allclose(probs.sum(-1), 1, atol=1e-5)
    assert (np.abs(probs - probs[:1]).max((1, 2))[1:] > 1e-3).all()


@pytest.mark.paper
def test_a_draw_is_the_same_network_on_every_call(surrogate):
    x, y = two_clouds()
    draws = surrogate.fit(x, y, 3, np.random.default_rng(0)).draws(6, np.random.default_rng(0))
    assert_array_equal(draws(x), draws(x))
    assert_allclose(np.concatenate([draws(x[:50]), draws(x[50:])], axis=1), draws(x), atol=1e-6)


@pytest.mark.paper
def test_the_same_seed_gives_the_same_network(surrogate):
    x, y = two_clouds()
    first, again, other = (surrogate.fit(x, y, 3, np.random.default_rng(seed)).mean(x) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-4


@pytest.mark.paper
def test_rows_may_come_from_the_pool_as_they_are_needed(surrogate):
    x, y = two_clouds()
    pool = Pool(x, y)
    rows = np.arange(0, 120, 2)
    lazily = surrogate.fit(Features.of(pool).subset(rows), y[rows], 3, np.random.default_rng(0))
    eagerly = surrogate.fit(Features.of(pool)[rows], y[rows], 3, np.random.default_rng(0))
    assert_array_equal(lazily.mean(x), eagerly.mean(x))


@pytest.mark.paper
def test_an_example_without_weight_teaches_nothing(surrogate):
    x, y = two_clouds()
    wrong = np.arange(120) % 2 == 0
    lies = np.where(wrong, (y + 1) % 3, y)
    fitted = surrogate.fit(x, lies, 3, np.random.default_rng(0), weights=np.where(wrong, 0.0, 1.0))
    assert (fitted.mean(x).argmax(1) == y).mean() > 0.9


@pytest.mark.paper
def test_one_example_is_enough_to_train(surrogate):
    fitted = surrogate.fit(np.ones((1, 2), np.float32), np.array([1]), 2, np.random.default_rng(0))
    assert fitted.mean(np.ones((1, 2), np.float32))[0, 1] > 0.9


@pytest.mark.paper
def test_without_dropout_the_draws_are_identical_and_tell_nothing():
    x, y = two_clouds()
    draws = MCDropout(0.0, QUICK).fit(x, y, 3, np.random.default_rng(0)).draws(5, np.random.default_rng(0))
    probs = draws(x)
    assert_array_equal(probs, np.broadcast_to(probs[:1], probs.shape))
    assert (bald(probs) <= 1e-12).all()


@pytest.mark.paper
def test_dropped_units_are_those_of_the_masked_network():
    """Draw by draw against the whole network with its masks written out (A.4)."""
    x, y = two_clouds()
    network = MCDropout(0.4, QUICK).fit(x, y, 3, np.random.default_rng(0))
    probs = network.draws(5, np.random.default_rng(7))(x)
    masks = (np.random.default_rng(7).random((5, 2, 256)) < 0.6) / 0.6
    w = network.trained.weights
    for found, (first, second) in zip(probs, masks, strict=True):
        hidden = np.maximum(x @ w.w1 + w.b1, 0) * first
        hidden = np.maximum(hidden @ w.w2 + w.b2, 0) * second
        logits = hidden @ w.w3 + w.b3
        expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert_allclose(found, expected, atol=1e-5)


@pytest.mark.paper
def test_there_is_more_doubt_between_two_classes_than_inside_them():
    x, y = two_clouds(n=200)
    network = MCDropout(0.3, Training()).fit(x, y, 3, np.random.default_rng(0))
    draws = network.draws(50, np.random.default_rng(0))
    between = x.copy()
    between[:, 0] = (x[y == 0, 0].mean() + x[y == 1, 0].mean()) / 2
    assert bald(draws(between)).mean() > 3 * bald(draws(x)).mean()


@pytest.mark.paper
def test_an_ensemble_averages_its_members():
    x, y = two_clouds()
    ensemble = Ensemble(3, QUICK).fit(x, y, 3, np.random.default_rng(0))
    draws = ensemble.draws(50, np.random.default_rng(0))
    assert draws.count == 3  # there are no more draws than members
    assert_allclose(ensemble.mean(x), draws(x).mean(0), atol=1e-6)
    assert ensemble.draws(2, np.random.default_rng(0)).count == 2


@pytest.mark.paper
def test_weight_decay_keeps_the_weights_small():
    x, y = two_clouds()
    sizes = [
        sum(float((w**2).sum()) for w in train(x, y, 3, training, 0.0, np.random.default_rng(0)).weights)
        for training in (Training(epochs=30, weight_decay=0.0), Training(epochs=30, weight_decay=0.1))
    ]
    assert sizes[1] < 0.7 * sizes[0]


def test_every_example_is_visited_equally_often():
    order = visits(7, 700, np.random.default_rng(0))
    assert_array_equal(np.bincount(order), np.full(7, 100))
    assert_array_equal(np.sort(order.reshape(100, 7), axis=1), np.tile(np.arange(7), (100, 1)))


@pytest.mark.parametrize("n, steps", [(1, 100), (64, 100), (65, 200), (200, 400), (10_000, 1000)])
def test_the_number_of_steps_grows_with_the_examples_up_to_a_limit(n, steps):
    assert Training().steps(n) == steps


@pytest.mark.paper
def test_nothing_compiles_again_while_labels_are_told():
    import jax

    compiled = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    x, y = two_clouds(n=900, columns=9)
    MCDropout(0.3, QUICK).fit(x[:20], y[:20], 3, np.random.default_rng(0))
    jax.monitoring.register_event_duration_secs_listener(listen)
    for n in (21, 64, 65, 200, 900):
        MCDropout(0.3, QUICK).fit(x[:n], y[:n], 3, np.random.default_rng(n))
    MCDropout(0.5, Training(learning_rate=1e-2, epochs=7, weight_decay=0.0)).fit(x, y, 3, np.random.default_rng(0))
    assert compiled == []
    MCDropout(0.3, QUICK).fit(x[:, :8], y % 2, 2, np.random.default_rng(0))  # the same size class
    assert compiled == []
    MCDropout(0.3, QUICK).fit(np.tile(x, 2), y, 3, np.random.default_rng(0))  # another does: the count is alive
    assert len(compiled) == 1


@pytest.mark.parametrize("columns, padded", [(1, 16), (16, 16), (17, 32), (668, 672), (784, 800), (794, 800)])
def test_size_classes_of_columns_add_little(columns, padded):
    assert padded_columns(columns) == padded
    assert padded - columns < max(16, columns / 8)


def test_size_classes_of_classes_are_powers_of_two():
    assert [padded_classes(n) for n in (2, 10, 16, 17, 77, 128)] == [16, 16, 16, 32, 128, 128]


def reference_training(x, y, n_classes, training, dropout, rng):
    """The same training written out in numpy, float64, without any filling up."""
    n, total = len(y), training.steps(len(y))
    each = np.ones(n)
    order = visits(n, total * training.batch, rng).reshape(total, training.batch)
    w = [np.asarray(part, np.float64) for part in initial_weights(x.shape[1], n_classes, rng)]
    bits = np.random.default_rng(rng.integers(2**32))
    m, v = [np.zeros_like(part) for part in w], [np.zeros_like(part) for part in w]
    kept = round((1 - dropout) * 65_536)
    drawn = np.frombuffer(bits.bytes(total * 2 * training.batch * 256 * 2), np.uint16)
    masks = (drawn.reshape(total, 2, training.batch, 256) < kept) / (1 - dropout)
    for t, (rows, (first, second)) in enumerate(zip(order, masks, strict=True), start=1):
        h1 = np.maximum(x[rows] @ w[0] + w[1], 0) * first
        h2 = np.maximum(h1 @ w[2] + w[3], 0) * second
        logits = h2 @ w[4] + w[5]
        p = np.exp(logits - logits.max(1, keepdims=True))
        d3 = (p / p.sum(1, keepdims=True) - np.eye(n_classes)[y[rows]]) * (each[rows] / each[rows].sum())[:, None]
        d2 = (d3 @ w[4].T) * second * (h2 > 0)
        d1 = (d2 @ w[2].T) * first * (h1 > 0)
        gradient = [x[rows].T @ d1, d1.sum(0), h1.T @ d2, d2.sum(0), h2.T @ d3, d3.sum(0)]
        rate = training.learning_rate * (1 - (t - 1) / total)
        for k, g in enumerate(gradient):
            g = g + training.weight_decay * w[k]
            m[k] = 0.9 * m[k] + 0.1 * g
            v[k] = 0.999 * v[k] + 0.001 * g * g
            w[k] = w[k] - rate * (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
    return w


@pytest.mark.paper
def test_training_is_adam_with_l2_and_a_falling_rate_written_out():
    x, y = two_clouds(n=40)
    training = Training(epochs=6, batch=16, enough=0.0)
    found = train(x, y, 3, training, 0.25, np.random.default_rng(4)).weights
    expected = reference_training(x, y, 3, training, 0.25, np.random.default_rng(4))
    for part, wanted in zip(found, expected, strict=True):
        assert part.shape == wanted.shape
        assert_allclose(part, wanted, atol=2e-4)


# ---------------------------------------------------------------- threads, JAX, its cache


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"ALTMAS_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "x"}, 0),
    ],
)
def test_threads_are_those_the_user_set(monkeypatch, environment, expected):
    for name in ("ALTMAS_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert threads() == expected or (expected == 0 and 1 <= threads() <= 8)


FIT = """
import json, os, sys
import numpy as np
import altmas
before = "jax" in sys.modules
from altmas.compute import jax
hits = []
jax().monitoring.register_event_listener(lambda event, **_: hits.append(event))
from altmas.methods.paper.surrogates import MCDropout, Training
x = np.random.default_rng(0).normal(size=(60, 13)).astype(np.float32)
MCDropout(training=Training(epochs=2)).fit(x, np.arange(60) % 2, 2, np.random.default_rng(0))
print(json.dumps({
    "loaded_by_import": before,
    "hits": hits.count("/jax/compilation_cache/cache_hits"),
    "folder": jax().config.jax_compilation_cache_dir,
    "left": [name for name in ("NPROC", "PJRT_NPROC") if name in os.environ],
}))
"""


def fit_elsewhere(**environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("JAX_COMPILATION_CACHE_DIR", "NPROC")}
    command = [forks.command("python"), "-W", "error", "-c", FIT]
    run = subprocess.run(command, env=kept | environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), run.stderr


@pytest.mark.paper
def test_compiled_programs_are_kept_between_runs(tmp_path):
    first, _ = fit_elsewhere(XDG_CACHE_HOME=str(tmp_path))
    assert first["loaded_by_import"] is False
    assert first["left"] == []
    assert first["hits"] == 0
    assert first["folder"].startswith(str(tmp_path / "altmas" / "jax"))
    second, said = fit_elsewhere(XDG_CACHE_HOME=str(tmp_path))
    assert second["hits"] == 1
    assert said == ""


@pytest.mark.slow
@pytest.mark.paper
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    found, said = fit_elsewhere(XDG_CACHE_HOME=str(tmp_path / "file"))
    assert found["folder"] is None
    assert said == ""


@pytest.mark.slow
@pytest.mark.paper
def test_the_users_own_cache_and_threads_stay_as_they_are(tmp_path):
    found, _ = fit_elsewhere(JAX_COMPILATION_CACHE_DIR=str(tmp_path), NPROC="1")
    assert found["folder"] == str(tmp_path)
    assert found["left"] == ["NPROC"]


@pytest.mark.paper
def test_training_ends_when_nothing_is_left_to_learn():
    x, y = two_clouds()
    through, early = (
        train(x, y, 3, Training(epochs=300, max_steps=600, enough=enough), 0.0, np.random.default_rng(0))
        for enough in (0.0, 0.1)
    )
    assert through.steps == 600
    assert 5 < early.steps < 300 and 0.05 < early.loss < 0.1


@pytest.mark.paper
@pytest.mark.parametrize("columns", [5, 4000])
def test_training_across_segments_counts_its_steps(columns):
    """With many columns a segment holds few minibatches: it may end inside any of them."""
    x, y = two_clouds(columns=columns)
    early = train(x, y, 3, Training(epochs=100, enough=0.05), 0.0, np.random.default_rng(0))
    assert 2 < early.steps < 200 and early.loss < 0.05
    assert train(x, y, 3, Training(epochs=10, enough=0.0), 0.0, np.random.default_rng(0)).steps == 20
