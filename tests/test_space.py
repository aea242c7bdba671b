"""Coordinates, neighbours and the imitation of the model, each against a slow and obvious version."""

import numpy as np
import pytest

import altmas
from altmas.methods.assured import imitation, space, views
from altmas.methods.assured.belief import label_slopes
from altmas.methods.assured.imitation import best_ridge, best_sharpness, left_out, softmax
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.space import Neighbourhood, carried, coordinates, median_distance, nearest, random_features
from altmas.methods.assured.views import describe


def crowds(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two crowds of points that lie in long bands, and which band each is in."""
    rng = np.random.default_rng(seed)
    band = np.arange(n) % 2
    along = rng.uniform(0, 10, n)
    return np.column_stack([along, 2.5 * band + rng.normal(0, 0.15, n)]).astype(np.float32), band


def test_few_columns_are_standardised_and_many_are_turned_to_principal_components():
    rng = np.random.default_rng(0)
    few = rng.normal(3, [1, 5, 0.1], (500, 3))
    few = np.column_stack([few, np.full(500, 7.0)])
    expected = np.column_stack([(few[:, :3] - few[:, :3].mean(0)) / few[:, :3].std(0), np.zeros(500)])
    np.testing.assert_allclose(coordinates(few), expected, atol=1e-5)
    many = rng.normal(size=(200, 60)) * np.linspace(3, 0.1, 60)
    _, _, vectors = np.linalg.svd(many - many.mean(0), full_matrices=False)
    expected = (many - many.mean(0)) @ vectors[:50].T
    np.testing.assert_allclose(np.abs(coordinates(many)), np.abs(expected), atol=1e-3)


def test_chunks_do_not_change_the_coordinates(monkeypatch):
    features = np.random.default_rng(0).normal(5, 2, (100, 4))
    whole = coordinates(features)
    monkeypatch.setattr(space, "_chunks", lambda array: [slice(i, i + 7) for i in range(0, len(array), 7)])
    np.testing.assert_allclose(coordinates(features), whole, atol=1e-5)


@pytest.mark.parametrize("same", [True, False])
def test_the_nearest_are_those_of_the_full_table_of_distances(same):
    rng = np.random.default_rng(1)
    anchors = rng.normal(size=(60, 3)).astype(np.float32)
    points = anchors if same else rng.normal(size=(40, 3)).astype(np.float32)
    distance = ((points[:, None] - anchors[None]) ** 2).sum(2)
    if same:
        np.fill_diagonal(distance, np.inf)
    expected = np.sort(np.argsort(distance, axis=1)[:, :5], axis=1)
    found, squared = nearest(points, anchors, 5, same)
    np.testing.assert_array_equal(np.sort(found, axis=1), expected)
    np.testing.assert_allclose(squared, np.take_along_axis(distance, found, 1), rtol=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.85])
def test_smoothing_is_the_closed_form_up_to_what_is_left_out(share):
    points, _ = crowds(120)
    near = Neighbourhood(points)
    inputs = np.random.default_rng(2).normal(size=(120, 4)).astype(np.float32)
    links = np.zeros((120, 120))
    chosen = nearest(points, points, RECIPE.neighbours, same=True)[0]
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    scale = [max(apart[i, j] for j in row) / 2 for i, row in enumerate(chosen)]
    for i, row in enumerate(chosen):
        for j in row:
            links[i, j] = links[j, i] = np.exp(-(apart[i, j] ** 2) / (scale[i] * scale[j]))
    root = np.diag(links.sum(1) ** -0.5)
    expected = (1 - share) * np.linalg.solve(np.eye(120) - share * root @ links @ root, inputs)
    expected /= np.sqrt((expected**2).sum(1).mean())
    found = near.smoothed(inputs.copy(), share).inputs
    assert np.abs(found - expected).max() < 2 * space.LEFT_OUT
    assert (found**2).sum(1).mean() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.93, 0.99])
def test_no_more_of_the_smoothing_is_left_than_is_said(share, monkeypatch):
    monkeypatch.setattr(space, "BLOCK", 3)
    points, _ = crowds(200)
    graph = Neighbourhood(points).graph
    own = np.random.default_rng(2).normal(size=(200, 8)).astype(np.float32)
    expected = (1 - share) * np.linalg.solve(np.eye(200) - share * graph.toarray(), own)
    left = np.linalg.norm(carried(graph, own, share) - expected, axis=0) / np.linalg.norm(own - expected, axis=0)
    assert left.max() < space.LEFT_OUT + 1e-5


def test_a_large_pool_takes_its_neighbours_from_anchors(monkeypatch):
    points, band = crowds(600)
    inputs = np.eye(2, dtype=np.float32)[band] + np.random.default_rng(3).normal(0, 1, (600, 2)).astype(np.float32)
    monkeypatch.setattr(space, "MOST_ANCHORS", 200)
    near = Neighbourhood(points)
    assert len(near.anchors) == 200 and len(near.others) == 400
    smooth = near.smoothed(inputs.copy(), 0.85).inputs
    assert (smooth.argmax(1) == band).mean() > 0.95 > (inputs.argmax(1) == band).mean()


def test_twins_are_close_and_a_stranger_beside_them_is_no_trouble():
    points = np.vstack([np.zeros((20, 2)), [[3.0, 0.0]], np.full((20, 2), 9.0)]).astype(np.float32)
    near = Neighbourhood(points)
    assert np.isfinite(near.graph.toarray()).all() and near.graph.toarray().max() <= 1 + 1e-6
    side = np.repeat([0, 0, 1], [20, 1, 20])
    smooth = near.smoothed(np.eye(2, dtype=np.float32)[side], 0.93).inputs
    assert np.isfinite(smooth).all() and (smooth[:20].argmax(1) == 0).all() and (smooth[21:].argmax(1) == 1).all()


def test_one_point_and_two_points_are_no_trouble():
    for n in (1, 2):
        near = Neighbourhood(np.zeros((n, 2), np.float32))
        assert np.isfinite(near.smoothed(np.ones((n, 3), np.float32), 0.5).inputs).all()


def test_each_row_is_predicted_without_itself():
    rng = np.random.default_rng(4)
    inputs, targets = rng.normal(size=(40, 6)), rng.normal(size=(40, 2))
    with_constant = np.hstack([inputs, np.ones((40, 1))])
    found = left_out(inputs, targets, 0.3)
    for row in range(40):
        rest = np.delete(np.arange(40), row)
        gram = with_constant[rest].T @ with_constant[rest] + 0.3 * np.eye(7)
        slopes = np.linalg.solve(gram, with_constant[rest].T @ targets[rest])
        np.testing.assert_allclose(found[row], with_constant[row] @ slopes, atol=1e-8)
    errors = {ridge: ((left_out(inputs, targets, ridge) - targets) ** 2).mean() for ridge in imitation.RIDGES}
    assert best_ridge(inputs, targets) == (min(errors, key=errors.get), pytest.approx(min(errors.values())))


def test_a_softened_view_is_a_distribution_that_makes_the_answers_likely():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(500, 3))
    says = np.array([rng.choice(3, p=np.exp(4 * row) / np.exp(4 * row).sum()) for row in values])
    view = softmax(best_sharpness(values, says) * values)
    np.testing.assert_allclose(view.sum(1), 1)
    sharpness = np.log(view[:, 0] / view[:, 1]) / (values[:, 0] - values[:, 1])
    assert 3 < np.median(sharpness) < 5.5  # 4 made the answers


def test_a_model_that_is_a_line_is_imitated_by_a_line_even_if_it_hardly_ever_says_yes():
    rng = np.random.default_rng(6)
    features = rng.normal(size=(2_500, 5))
    margin = features @ [1.0, 1.0, -0.5, 0.0, 0.3] - 4.0
    predictions = (margin > 0).astype(int)
    assert 5 < predictions.sum() < 60
    pool = altmas.Pool(features, predictions, classes=[0, 1])
    order = np.argsort(-describe(pool).doubt)
    closest = np.argsort(np.abs(margin))[:30]
    assert np.isin(closest, order[:250]).mean() > 0.9


def test_chains_of_neighbours_carry_labels_further_than_balls_do():
    points, band = crowds(400)
    points *= np.array([1.0, 0.3], np.float32)
    plain = random_features(points, 200, 0.5 / median_distance(points), seed=1)
    kernels = {"ball": plain, "chain": Neighbourhood(points).smoothed(plain.copy(), 0.85).inputs}
    rng, right = np.random.default_rng(0), {"ball": 0.0, "chain": 0.0}
    for _ in range(20):
        told = rng.permutation(400)[:8]
        rest = np.setdiff1d(np.arange(400), told)
        for name, kernel in kernels.items():
            _, slopes, mean = label_slopes(kernel[told], band[told], 2, 0.1)
            guess = (kernel[rest] @ slopes + mean).argmax(1)
            right[name] += float((guess == band[rest]).mean()) / 20
    assert right["chain"] > right["ball"] + 0.005


@pytest.mark.parametrize(
    "features", [np.zeros((50, 3)), np.ones((50, 40)), np.eye(50)[:, :40], np.arange(50.0)[:, None]]
)
def test_features_that_say_nothing_are_no_trouble(features):
    pool = altmas.Pool(features, np.arange(50) % 3, classes=[0, 1, 2])
    seen = describe(pool)
    assert all(np.isfinite(part).all() for part in (seen.ease, seen.components, seen.kernel, *seen.rivals, seen.doubt))


@pytest.mark.parametrize("columns", [3, 40])
def test_points_that_were_not_fitted_are_told_much_as_if_they_had_been(columns, monkeypatch):
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, 1_500)
    features = rng.normal(0, 0.7, (1_500, columns)) + rng.normal(0, 1, (3, columns))[truth]
    predictions = np.where(rng.random(1_500) < 0.1, (truth + 1) % 3, truth)
    pool = altmas.Pool(features, predictions, classes=[0, 1, 2])
    whole = describe(pool)
    monkeypatch.setattr(views, "FITTED", 500)
    monkeypatch.setattr(views, "CHUNK", 350)
    monkeypatch.setattr(space, "DISTANCES", 1e6)
    rows = views.fitted_rows(1_500)
    assert len(rows) == 500 and (np.diff(rows) > 0).all()
    part = describe(altmas.Pool(features, predictions, classes=[0, 1, 2]))
    for name in ("ease", "components", "kernel", "doubt"):
        assert getattr(part, name).shape == getattr(whole, name).shape
        assert np.isfinite(getattr(part, name)).all()
    others = np.setdiff1d(np.arange(1_500), rows)
    assert np.corrcoef(part.doubt[others], whole.doubt[others])[0, 1] > 0.9
    near = part.kernel @ part.kernel[others[0]]
    assert np.corrcoef(near[others], (whole.kernel @ whole.kernel[others[0]])[others])[0, 1] > 0.7


def test_what_is_carried_to_other_points_is_multiplied_at_the_anchors():
    points, _ = crowds(300)
    near = Neighbourhood(points[:200], 300)
    plain = random_features(points, 20, 1.0, seed=1)
    smoothed = near.smoothed(plain[:200].copy(), 0.85)
    links = near.links_of(points[200:])
    np.testing.assert_allclose(np.asarray(links.sum(1)).ravel(), 1, atol=1e-5)
    slopes = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    features = smoothed.own * plain[200:] + links @ smoothed.moved
    np.testing.assert_allclose(smoothed.predicted(links, plain[200:], slopes), features @ slopes, atol=1e-5)
    assert np.sqrt((features**2).sum(1).mean()) == pytest.approx(1, abs=0.15)


def test_crowds_keep_the_inner_products_of_what_is_carried():
    points, _ = crowds(300)
    near = Neighbourhood(points)
    plain = random_features(points, 100, 1.0, seed=1)
    whole, most = near.crowds(plain, 0.93, 100), near.crowds(plain, 0.93, 40)
    assert whole.shape == (300, 100) and most.shape == (300, 40)
    np.testing.assert_allclose(
        whole @ whole.T, near.smoothed(plain.copy(), 0.93).inputs @ near.smoothed(plain, 0.93).inputs.T, atol=1e-3
    )
    assert np.abs(most @ most.T - whole @ whole.T).max() < 0.1


def test_wide_tables_are_kept_in_half_precision(monkeypatch):
    monkeypatch.setattr(views, "WIDE", 100)
    points, band = crowds(200)
    seen = describe(altmas.Pool(points, band, classes=[0, 1]))
    assert seen.kernel.dtype == seen.components.dtype == seen.rivals[0].dtype == np.float16
    np.testing.assert_allclose(seen.rivals[0].sum(1), 1, atol=2e-3)
