"""Coordinates, neighbours and the imitation of the model, each against a slow and obvious version."""

import numpy as np
import pytest

import altmas
from altmas.methods.assured import space, views
from altmas.methods.assured.belief import label_surrogate
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.space import Neighbourhood, coordinates, median_distance, nearest, random_features
from altmas.methods.assured.views import best_ridge, describe, left_out, softened


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
def test_the_nearest_are_those_of_the_full_table_of_distances(same, monkeypatch):
    monkeypatch.setattr(space, "ROWS", 13)
    rng = np.random.default_rng(1)
    anchors = rng.normal(size=(60, 3)).astype(np.float32)
    points = anchors if same else rng.normal(size=(40, 3)).astype(np.float32)
    distance = ((points[:, None] - anchors[None]) ** 2).sum(2)
    if same:
        np.fill_diagonal(distance, np.inf)
    expected = np.sort(np.argsort(distance, axis=1)[:, :5], axis=1)
    np.testing.assert_array_equal(np.sort(nearest(points, anchors, 5, same), axis=1), expected)


@pytest.mark.parametrize("share", [0.5, 0.85])
def test_smoothing_is_the_closed_form_up_to_what_is_left_out(share):
    points, _ = crowds(120)
    near = Neighbourhood(points)
    inputs = np.random.default_rng(2).normal(size=(120, 4)).astype(np.float32)
    links = np.zeros((120, 120))
    chosen = nearest(points, points, RECIPE.neighbours, same=True)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    scale = [max(apart[i, j] for j in row) / 2 for i, row in enumerate(chosen)]
    for i, row in enumerate(chosen):
        for j in row:
            links[i, j] = links[j, i] = np.exp(-(apart[i, j] ** 2) / (scale[i] * scale[j]))
    root = np.diag(links.sum(1) ** -0.5)
    expected = (1 - share) * np.linalg.solve(np.eye(120) - share * root @ links @ root, inputs)
    expected /= np.sqrt((expected**2).sum(1).mean())
    found = near.smoothed(inputs, share)
    assert np.abs(found - expected).max() < 2 * space.LEFT_OUT
    assert (found**2).sum(1).mean() == pytest.approx(1, abs=1e-5)


def test_a_large_pool_takes_its_neighbours_from_anchors(monkeypatch):
    points, band = crowds(600)
    inputs = np.eye(2, dtype=np.float32)[band] + np.random.default_rng(3).normal(0, 1, (600, 2)).astype(np.float32)
    monkeypatch.setattr(space, "MOST_ANCHORS", 200)
    near = Neighbourhood(points)
    assert len(near.anchors) == 200 and len(near.others) == 400
    smooth = near.smoothed(inputs, 0.85)
    assert (smooth.argmax(1) == band).mean() > 0.95 > (inputs.argmax(1) == band).mean()


def test_twins_are_close_and_a_stranger_beside_them_is_no_trouble():
    points = np.vstack([np.zeros((20, 2)), [[3.0, 0.0]], np.full((20, 2), 9.0)]).astype(np.float32)
    near = Neighbourhood(points)
    assert np.isfinite(near.graph.toarray()).all() and near.graph.toarray().max() <= 1 + 1e-6
    side = np.repeat([0, 0, 1], [20, 1, 20])
    smooth = near.smoothed(np.eye(2, dtype=np.float32)[side], 0.93)
    assert np.isfinite(smooth).all() and (smooth[:20].argmax(1) == 0).all() and (smooth[21:].argmax(1) == 1).all()


def test_one_point_and_two_points_are_no_trouble():
    for n in (1, 2):
        near = Neighbourhood(np.zeros((n, 2), np.float32))
        assert np.isfinite(near.smoothed(np.ones((n, 3), np.float32), 0.5)).all()


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
    errors = {ridge: ((left_out(inputs, targets, ridge) - targets) ** 2).mean() for ridge in views.RIDGES}
    assert best_ridge(inputs, targets) == (min(errors, key=errors.get), pytest.approx(min(errors.values())))


def test_a_softened_view_is_a_distribution_that_makes_the_answers_likely():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(500, 3))
    says = np.array([rng.choice(3, p=np.exp(4 * row) / np.exp(4 * row).sum()) for row in values])
    view = softened(values, says)
    np.testing.assert_allclose(view.sum(1), 1)
    sharpness = np.log(view[:, 0] / view[:, 1]) / (values[:, 0] - values[:, 1])
    assert 3 < np.median(sharpness) < 5.5  # 4 made the answers


def test_a_model_that_is_a_line_is_imitated_by_a_line_even_if_it_hardly_ever_says_yes():
    rng = np.random.default_rng(6)
    features = rng.normal(size=(6_000, 5))
    margin = features @ [1.0, 1.0, -0.5, 0.0, 0.3] - 4.6
    predictions = (margin > 0).astype(int)
    assert 5 < predictions.sum() < 60
    pool = altmas.Pool(features, predictions, classes=[0, 1])
    order = np.argsort(-describe(pool).doubt)
    closest = np.argsort(np.abs(margin))[:50]
    assert np.isin(closest, order[:300]).mean() > 0.9


def test_chains_of_neighbours_carry_labels_further_than_balls_do():
    points, band = crowds(400)
    points *= np.array([1.0, 0.3], np.float32)
    plain = random_features(points, 200, 0.5 / median_distance(points), seed=1)
    kernels = {"ball": plain, "chain": Neighbourhood(points).smoothed(plain, 0.85)}
    rng, right = np.random.default_rng(0), {"ball": 0.0, "chain": 0.0}
    for _ in range(20):
        told = rng.permutation(400)[:8]
        rest = np.setdiff1d(np.arange(400), told)
        for name, kernel in kernels.items():
            guess = label_surrogate(kernel[told], band[told], kernel[rest], 2)[1].argmax(1)
            right[name] += float((guess == band[rest]).mean()) / 20
    assert right["chain"] > right["ball"] + 0.005


@pytest.mark.parametrize(
    "features", [np.zeros((50, 3)), np.ones((50, 40)), np.eye(50)[:, :40], np.arange(50.0)[:, None]]
)
def test_features_that_say_nothing_are_no_trouble(features):
    pool = altmas.Pool(features, np.arange(50) % 3, classes=[0, 1, 2])
    seen = describe(pool)
    assert all(np.isfinite(part).all() for part in (seen.ease, seen.components, seen.kernel, *seen.rivals, seen.doubt))
