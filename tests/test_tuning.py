"""Tuning of learning rate, epochs and dropout."""

import numpy as np
import pytest

import altmas
from altmas.methods import AltMas, Bald
from altmas.methods.paper.surrogates import MCDropout, Training, tuning
from altmas.methods.paper.surrogates.tuning import held_out_loss, options_at, tuned


def clouds(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    x[:, 0] += 3 * y
    return x, y


def test_the_unit_cube_spans_the_ranges():
    low, high = options_at(0, 0, 0, Training()), options_at(1, 1, 1, Training())
    assert (low.training.learning_rate, low.training.epochs, low.dropout) == (1e-4, 20, 0.05)
    assert (high.training.learning_rate, high.training.epochs, high.dropout) == (1e-2, 300, 0.6)
    assert options_at(0.5, 0, 0, Training(batch=16)).training.batch == 16


def test_every_range_is_on_a_log_scale():
    middle = options_at(0.5, 0.5, 0.5, Training())
    assert middle.training.learning_rate == pytest.approx(1e-3)
    assert middle.training.epochs == round((20 * 300) ** 0.5)
    assert middle.dropout == pytest.approx((0.05 * 0.6) ** 0.5, abs=1e-4)


@pytest.mark.paper
def test_every_label_is_predicted_by_a_network_that_has_not_seen_it():
    x, y = clouds(12)
    seen = []

    class Spy(MCDropout):
        def fit(self, x, y, n_classes, rng, weights=None):
            seen.append(x)
            return super().fit(x, y, n_classes, rng, weights)

    folds = np.arange(12) % 3
    loss = held_out_loss(Spy(0.1, Training(epochs=5)), x, y, 2, folds, 4, np.random.default_rng(0))
    assert loss > 0
    for fold, trained in enumerate(seen):
        assert len(trained) == 8
        assert not (trained[:, None] == x[folds == fold]).all(-1).any()


@pytest.mark.paper
def test_more_training_is_better_than_none():
    x, y = clouds()
    folds = np.arange(60) % 3
    untrained, trained = (
        held_out_loss(MCDropout(0.1, training), x, y, 2, folds, 4, np.random.default_rng(0))
        for training in (Training(epochs=1, learning_rate=1e-6), Training(epochs=40))
    )
    assert trained < 0.6 * untrained


@pytest.mark.paper
def test_the_best_trial_wins_and_the_same_seed_finds_it_again(monkeypatch):
    """On a known landscape, in place of networks: dropout 0.25 and a learning rate of 1e-3 are best."""
    monkeypatch.setattr(tuning, "GUIDED_TRIALS", 5)
    x, y = clouds()
    tried = []

    def landscape(surrogate, *_):
        loss = (surrogate.dropout - 0.25) ** 2 * 20 + (np.log10(surrogate.training.learning_rate) + 3) ** 2
        tried.append(loss)
        return float(loss)

    monkeypatch.setattr(tuning, "held_out_loss", landscape)
    first, again = (tuned(x, y, 2, Training(), 4, np.random.default_rng(5)) for _ in range(2))
    assert first == again
    assert len(tried) == 20
    assert first.loss == min(tried) < min(tried[:5])  # guided trials beat the random ones
    assert first.dropout == pytest.approx(0.25, abs=0.15)
    assert first.info() == {
        "learning_rate": first.training.learning_rate,
        "epochs": first.training.epochs,
        "dropout": first.dropout,
        "loss": first.loss,
    }


# ---------------------------------------------------------------- altmas.tune


def labelled_pool(n=60, told=40):
    x, y = clouds(n)
    pool = altmas.Pool(x, y, classes=["no", "yes"], ids=[f"p{i}" for i in range(n)])
    return pool, {f"p{i}": ["no", "yes"][y[i]] for i in range(told)}


@pytest.fixture
def landscape(monkeypatch):
    """Losses without networks: dropout 0.25 and a learning rate of 1e-3 are best. Holds the trials made."""
    made = []

    def loss(surrogate, *_):
        made.append(surrogate)
        return float((surrogate.dropout - 0.25) ** 2 * 20 + (np.log10(surrogate.training.learning_rate) + 3) ** 2)

    monkeypatch.setattr(tuning, "held_out_loss", loss)
    return made


@pytest.mark.paper
def test_tune_finds_options_that_methods_take(landscape):
    pool, labels = labelled_pool()
    found = altmas.tune(pool, labels, guided_trials=6, progress=False)
    assert isinstance(found, altmas.Tuning)
    assert len(found.trials) == len(landscape) == 11 and found.random == 5
    assert found.best.loss == min(one.loss for one in found.trials) < min(one.loss for one in found.trials[:5])
    for method in (AltMas(**found.options), Bald(**found.options)):
        assert method.settings.dropout == found.best.dropout
        assert method.settings.training.learning_rate == found.best.training.learning_rate
        assert method.settings.training.epochs == found.best.training.epochs
    assert str(found).count("best") == 1 and len(str(found).splitlines()) == 12


@pytest.mark.paper
def test_tuning_that_was_interrupted_goes_on_as_if_it_had_not_been(landscape, tmp_path):
    pool, labels = labelled_pool()
    journal = tmp_path / "tuning.jsonl"
    whole = altmas.tune(pool, labels, guided_trials=4, progress=False)
    altmas.tune(pool, labels, guided_trials=1, results=journal, progress=False)
    with journal.open("a") as file:
        file.write('{"key": "6", "rows"')  # killed while writing
    landscape.clear()
    again = altmas.tune(pool, labels, guided_trials=4, results=journal, progress=False)
    assert again == whole
    assert len(landscape) == 3  # six of the nine trials were there
    landscape.clear()
    assert altmas.tune(pool, labels, guided_trials=4, results=journal, progress=False) == whole and not landscape


@pytest.mark.paper
def test_results_of_other_labels_are_refused(landscape, tmp_path):
    pool, labels = labelled_pool()
    journal = tmp_path / "tuning.jsonl"
    altmas.tune(pool, labels, guided_trials=0, results=journal, progress=False)
    fewer = dict(list(labels.items())[:20])
    with pytest.raises(altmas.errors.FileError, match="another tuning .other labels"):
        altmas.tune(pool, fewer, guided_trials=0, results=journal, progress=False)


@pytest.mark.paper
def test_the_plot_is_one_file_that_needs_nothing_else(landscape, tmp_path):
    pool, labels = labelled_pool()
    altmas.tune(pool, labels, guided_trials=2, plot=tmp_path / "tuning.html", progress=False)
    page = (tmp_path / "tuning.html").read_text(encoding="utf-8")
    assert "src=" not in page and "href=" not in page and "<script" not in page and len(page) < 30_000
    assert page.count("<svg") == page.count("</desc>") == 4 and page.count("<title>trial ") == 4 * 7
    for words in ("learning rate", "epochs", "dropout", "trial 7: ", 'class="best"'):
        assert words in page


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"random_trials": 0}, altmas.errors.PlanError, "random_trials"),
        ({"guided_trials": -1}, altmas.errors.PlanError, "guided_trials"),
        ({"method": AltMas(surrogate="ensemble")}, altmas.errors.PlanError, "cannot be tuned"),
        ({"labels": {"p0": "no"}}, altmas.errors.PlanError, "too few"),
        ({"labels": {"p0": "maybe"}}, altmas.errors.UnknownLabel, "maybe"),
        ({"labels": {"elsewhere": "no"}}, altmas.AltmasError, "elsewhere"),
        ({"pool": altmas.Pool(None, [0, 1] * 20)}, altmas.errors.PoolError, "no features"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_runs(landscape, change, error, words):
    pool, labels = labelled_pool()
    given = {"pool": pool, "labels": labels, "progress": False} | change
    with pytest.raises(error, match=words):
        altmas.tune(given.pop("pool"), given.pop("labels"), **given)
    assert not landscape


@pytest.mark.paper
def test_real_networks_are_tuned():
    pool, labels = labelled_pool()
    method = AltMas(draws=4, max_steps=60)
    found = altmas.tune(pool, labels, method=method, random_trials=2, guided_trials=1, progress=False)
    assert len(found.trials) == 3 and found.best.loss < np.log(2)
    assert all(one.training.max_steps == 60 for one in found.trials)


@pytest.mark.paper
def test_what_a_session_tuned_is_in_its_file(monkeypatch, tmp_path):
    """Chosen values, how many labels they rest on, and, once the labels have doubled, the next ones."""
    monkeypatch.setattr(tuning, "RANDOM_TRIALS", 2)
    monkeypatch.setattr(tuning, "GUIDED_TRIALS", 0)
    x, y = clouds(120)
    path, method = tmp_path / "s.altmas", AltMas(initial=20, tune=True, draws=4, epochs=3)
    with altmas.Session.create(path, altmas.Pool(x, y, classes=[0, 1]), method=method) as session:
        for asked in (20, 10, 10, 5):
            session.tell({query.id: int(y[query.index]) for query in session.ask(asked)})
    with altmas.Session.open(path) as session:
        stored = [batch.info.get("tuned") for batch in session.history.batches]
        assert session.plan.method == method
    assert stored[0] is None
    assert [one["labels"] for one in stored[1:]] == [20, 20, 40]
    for one in stored[1:]:
        assert 1e-4 <= one["learning_rate"] <= 1e-2 and 20 <= one["epochs"] <= 300 and 0.05 <= one["dropout"] <= 0.6
    assert stored[1] == stored[2]


@pytest.mark.paper
def test_options_that_were_tuned_beforehand_are_in_the_session_file(landscape, tmp_path):
    pool, labels = labelled_pool()
    found = altmas.tune(pool, labels, guided_trials=0, progress=False)
    path = tmp_path / "s.altmas"
    altmas.Session.create(path, pool, method=AltMas(**found.options)).close()
    with altmas.Session.open(path) as session:
        assert {name: getattr(session.method, name) for name in found.options} == found.options
