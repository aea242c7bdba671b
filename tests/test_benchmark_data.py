"""The pools of the benchmarks: idx files, downloads, shared pools and the three models under test."""

import gzip
import json
import struct
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax", reason="the models under test are trained with it: pip install 'altmas[paper]'")

from altmas import AltmasError  # noqa: E402
from benchmarks import data, idx  # noqa: E402
from benchmarks import models_under_test as models  # noqa: E402
from benchmarks.idx import DataDamaged, DataMissing, Dataset  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (7, 28, 28), dtype=np.uint8)
LABELS = RNG.integers(0, 10, 7, dtype=np.uint8)


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """Neither a data folder nor a cache: both are empty folders."""
    monkeypatch.setenv("ALTMAS_DATA", str(tmp_path / "shared"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def tiny_dataset(folder, *mirrors):
    """A dataset of seven images, written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for images, labels in idx.FILES_OF_SPLIT.values():
        (folder / images).write_bytes(gzip.compress(idx_bytes(IMAGES), mtime=0))
        (folder / labels).write_bytes(gzip.compress(idx_bytes(LABELS), mtime=0))
    return Dataset("tiny", mirrors, {file.name: idx.sha256_of(file) for file in folder.iterdir()})


def test_a_split_comes_back_as_it_was_written(tmp_path):
    split = idx.load_split(tiny_dataset(tmp_path), "test", folder=tmp_path)
    np.testing.assert_array_equal(split.images, IMAGES)
    np.testing.assert_array_equal(split.labels, LABELS)


def test_a_split_that_does_not_exist_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="no split 'valid'"):
        idx.load_split(tiny_dataset(tmp_path), "valid", folder=tmp_path)


def test_images_and_labels_of_different_lengths_do_not_belong_together(tmp_path):
    dataset = tiny_dataset(tmp_path)
    labels = tmp_path / idx.TEST_LABELS
    labels.write_bytes(gzip.compress(idx_bytes(LABELS[:-1]), mtime=0))
    dataset = dataset._replace(sha256={**dataset.sha256, labels.name: idx.sha256_of(labels)})
    with pytest.raises(DataDamaged, match="do not belong together"):
        idx.load_split(dataset, "test", folder=tmp_path)


def test_a_changed_file_is_refused_although_it_reads(tmp_path):
    dataset = tiny_dataset(tmp_path)
    (tmp_path / idx.TEST_LABELS).write_bytes(gzip.compress(idx_bytes(LABELS[::-1]), mtime=0))
    with pytest.raises(DataDamaged, match=f"{idx.TEST_LABELS}.*{dataset.sha256[idx.TEST_LABELS]}"):
        idx.load_split(dataset, "test", folder=tmp_path)


whole = gzip.compress(idx_bytes(IMAGES), mtime=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (whole[: len(whole) // 2], "not a whole gzip file"),
        (whole[:-4], "not a whole gzip file"),
        (whole[:200] + bytes(50) + whole[250:], "not a whole gzip file"),
        (b"", "found nothing"),
        (b"<html>not found</html>", "not a whole gzip file"),
        (gzip.compress(b"", mtime=0), "found nothing"),
        (gzip.compress(b"<html>not found</html>", mtime=0), "expected 00 00 08, found 3c 68 74"),
        (gzip.compress(b"\0\0\x0d" + idx_bytes(IMAGES)[3:], mtime=0), "expected 00 00 08, found 00 00 0d"),
        (gzip.compress(idx_bytes(IMAGES)[:9], mtime=0), "ends inside its header"),
        (gzip.compress(idx_bytes(IMAGES)[:-1], mtime=0), "5487 elements where its header promises 5488"),
        (gzip.compress(idx_bytes(IMAGES) + b"\0", mtime=0), "5489 elements where its header promises 5488"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(tmp_path, content, reason):
    file = tmp_path / "damaged.gz"
    file.write_bytes(content)
    with pytest.raises(DataDamaged, match=reason) as refusal:
        idx.read_idx(file)
    assert str(file) in str(refusal.value)


def test_the_data_folder_is_looked_at_before_the_cache(no_data):
    tiny = tiny_dataset(no_data / "shared" / "tiny")
    assert idx.find_file(tiny, idx.TEST_LABELS).parent == no_data / "shared" / "tiny"
    tiny_dataset(no_data / "cache" / "altmas" / "tiny")
    assert idx.find_file(tiny, idx.TEST_LABELS).parent == no_data / "shared" / "tiny"
    (no_data / "shared" / "tiny" / idx.TEST_LABELS).unlink()
    assert idx.find_file(tiny, idx.TEST_LABELS).parent == no_data / "cache" / "altmas" / "tiny"


def test_a_download_is_kept_and_not_repeated(no_data):
    mirror = no_data / "mirror"
    tiny = tiny_dataset(mirror, f"{mirror.as_uri()}/")
    np.testing.assert_array_equal(idx.load_split(tiny, "test").labels, LABELS)
    for file in mirror.iterdir():
        file.unlink()
    np.testing.assert_array_equal(idx.load_split(tiny, "test").labels, LABELS)
    kept = sorted(file.name for file in (no_data / "cache" / "altmas" / "tiny").iterdir())
    assert kept == [idx.TEST_IMAGES, idx.TEST_LABELS]


def test_a_mirror_with_other_bytes_is_passed_over(no_data):
    good, bad = no_data / "good", no_data / "bad"
    tiny_dataset(bad)
    (bad / idx.TEST_LABELS).write_bytes(b"<html>moved</html>")
    tiny = tiny_dataset(good, f"{bad.as_uri()}/", f"{good.as_uri()}/")
    found = idx.find_file(tiny, idx.TEST_LABELS)
    assert idx.sha256_of(found) == tiny.sha256[idx.TEST_LABELS]


def test_a_failed_download_names_every_place_and_leaves_nothing_behind(no_data):
    bad, absent = no_data / "bad", no_data / "absent"
    tiny = tiny_dataset(bad, f"{absent.as_uri()}/", f"{bad.as_uri()}/")
    (bad / idx.TEST_LABELS).write_bytes(b"<html>moved</html>")
    with pytest.raises(DataMissing) as missing:
        idx.load_split(tiny, "test")
    assert isinstance(missing.value, FileNotFoundError) and isinstance(missing.value, AltmasError)
    for place in (bad.as_uri(), absent.as_uri(), str(no_data / "shared" / "tiny"), "ALTMAS_DATA", "sha256"):
        assert place in str(missing.value)
    assert not (no_data / "cache" / "altmas" / "tiny" / idx.TEST_LABELS).exists()
    assert not list((no_data / "cache" / "altmas" / "tiny").glob("*.part"))


def test_a_cache_that_cannot_be_written_is_reported_as_missing_data(no_data):
    mirror = no_data / "mirror"
    tiny = tiny_dataset(mirror, f"{mirror.as_uri()}/")
    (no_data / "cache").write_text("a file where the cache folder would be")
    with pytest.raises(DataMissing, match="could not be downloaded"):
        idx.load_split(tiny, "test", folder=no_data / "named")


@pytest.mark.parametrize("name", data.NAMES)
def test_a_pool_whose_data_are_absent_says_what_is_missing(no_data, name):
    with pytest.raises(DataMissing, match="ALTMAS_DATA"):
        data.load(name, download=False)


def test_a_name_that_is_no_pool_is_refused_with_the_list():
    with pytest.raises(ValueError, match="'mnist-98'.*mnist-99"):
        data.load("mnist-98")


def tiny_pool(folder, **changes):
    file = folder / "shared" / "abt-buy-svm" / "pool.npz"
    file.parent.mkdir(parents=True)
    arrays = {"X": np.ones((4, 2)), "a": np.array([0, 1, 0, 1]), "y": np.array([0, 1, 1, 1])} | changes
    np.savez(file, **{key: array for key, array in arrays.items() if array is not None})
    return file


def test_a_shared_pool_becomes_a_pool_without_its_truth(no_data):
    tiny_pool(no_data, scores=np.full((4, 2), 0.5))
    named = data.load("abt-buy-svm")
    assert (len(named), named.accuracy, named.classes) == (4, 0.75, ["no match", "match"])
    pool = named.pool()
    np.testing.assert_array_equal(pool.predictions, named.predictions)
    assert list(pool.classes) == named.classes and pool.scores is not None
    assert not hasattr(pool, "truth")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"y": None}, "lacks y"),
        ({"a": np.array([0, 1, 0])}, "equal lengths"),
        ({"X": np.ones((3, 2))}, "equal lengths"),
        ({"y": np.array([0, 1, 1, 2])}, "codes 0 to 1"),
        ({"y": np.array([-1, 1, 1, 1])}, "codes 0 to 1"),
    ],
)
def test_a_shared_pool_whose_arrays_disagree_is_refused(no_data, changes, reason):
    tiny_pool(no_data, **changes)
    with pytest.raises(DataDamaged, match=reason):
        data.load("abt-buy-svm")


@pytest.mark.parametrize("kept", [0, 10, 400])
def test_a_truncated_pool_is_refused(no_data, kept):
    file = tiny_pool(no_data)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(DataDamaged, match="not a whole .npz file"):
        data.load("abt-buy-svm")


PUBLISHED = {  # name: N, D, C, accuracy of the model under test in per cent
    "20news": (7_480, 128, 20, 92.35),
    "abt-buy-svm": (53_753, 6, 2, 99.94),
    "employment-ma": (30_000, 16, 2, 83.03),
    "banking77": (3_080, 128, 77, 85.13),
    "tweet-emotion-llm": (1_421, 64, 4, 79.87),
    "cifar100": (10_000, None, 100, 69.29),
    "caltech256": (29_780, None, 256, 84.92),
    "imagenet": (50_000, None, 1000, 72.73),
    "mnist-labelerrors": (10_000, 784, 10, 99.13),
    "mnist-99": (10_000, 784, 10, None),
    "mnist-70": (10_000, 784, 10, None),
    "mnist-12": (10_000, 784, 10, None),
}


def loaded(name):
    try:
        return data.load(name, download=False)
    except DataMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", data.NAMES)
def test_the_real_pool_has_its_published_size_and_accuracy(name):
    named = loaded(name)
    n, d, c, accuracy = PUBLISHED[name]
    assert len(named) == len(named.predictions) == n and len(named.classes) == c
    assert (named.features is None) == (d is None)
    if named.features is not None:
        assert named.features.shape == (n, d) and named.features.dtype == np.float32
    if named.scores is not None:
        assert named.scores.shape == (n, c)
        np.testing.assert_allclose(named.scores.sum(axis=1), 1, atol=1e-5)
    if accuracy is None:
        accuracy = 100 * data.provenance(name)["accuracy_on_mnist_test"]
    assert 100 * named.accuracy == pytest.approx(accuracy, abs=0.005)
    assert len(named.pool()) == n


@pytest.mark.parametrize(
    ("name", "n", "classes", "accuracy"),
    [
        ("digits-tree", 1297, 10, 0.65),
        ("fashion-bayes", 10_000, 10, 0.67),
        ("tumours-tree", 509, 2, 0.819),
        ("pacs", 9991, 7, 0.853),
        ("cola", 1043, 2, 0.386),
        ("comments", 30_000, 2, 0.880),
        ("groups-adult", 48_842, 2, 0.829),
        ("time-elec", 36_288, 2, 0.733),
    ],
)
def test_held_out_pools_have_their_size_and_accuracy(name, n, classes, accuracy):
    assert name in data.HELD_OUT and name not in data.NAMES
    named = loaded(name)
    assert len(named) == n and len(named.classes) == classes and named.accuracy == pytest.approx(accuracy, abs=0.02)
    assert named.scores is None or (named.scores.argmax(1) == named.predictions).mean() > 0.999


def test_employment_can_be_sliced_by_year_sex_and_race():
    named = loaded("employment-ma")
    assert sorted(named.slices) == ["RAC1P", "SEX", "year"]
    years, counts = np.unique(named.slices["year"], return_counts=True)
    assert years.tolist() == [2016, 2017, 2018] and counts.tolist() == [10_000] * 3
    assert set(named.slices["SEX"].tolist()) == {1, 2}


@pytest.mark.parametrize(
    ("recipe", "low", "high"),
    [(models.RECIPES[0], 0.985, 1), (models.RECIPES[1], 0.65, 0.75), (models.RECIPES[2], 0.10, 0.15)],
)
def test_a_kept_model_is_the_one_its_recipe_describes(recipe, low, high):
    file = models.FOLDER / f"{recipe.name}.npz"
    assert file.stat().st_size < 250_000
    story = data.provenance(recipe.name)
    assert low <= story["accuracy_on_mnist_test"] <= high
    assert {key: story[key] for key in ("seed", "steps", "batch", "network", "trained_on", "schedule_steps")} == {
        key: getattr(recipe, key) for key in ("seed", "steps", "batch", "network", "trained_on", "schedule_steps")
    }
    dataset = models.DATASETS[recipe.trained_on]
    assert story["training_files_sha256"] == {
        f"{dataset.name}/{name}": dataset.sha256[name] for name in (idx.TRAIN_IMAGES, idx.TRAIN_LABELS)
    }
    kept = data.arrays_of_model(recipe.name)
    predicted = np.take_along_axis(kept["scores"], kept["predictions"][:, None].astype(int), axis=1)[:, 0]
    np.testing.assert_array_equal(predicted, kept["scores"].max(axis=1))


def test_the_early_stopped_model_saw_the_first_batches_of_the_finished_one():
    finished, stopped = models.RECIPES[:2]
    assert replace(finished, name=stopped.name, steps=stopped.steps) == stopped
    full = models.minibatches(60_000, finished.batch, finished.steps, finished.seed)
    early = list(models.minibatches(60_000, stopped.batch, stopped.steps, stopped.seed))
    assert len(early) == stopped.steps
    for few, many in zip(early, full, strict=False):
        np.testing.assert_array_equal(few, many)


def test_an_epoch_visits_every_row_once():
    batches = list(models.minibatches(60, 12, 10, seed=3))
    assert len(batches) == 10
    for epoch in (batches[:5], batches[5:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(60))
    assert not np.array_equal(batches[0], batches[5])


@pytest.fixture
def halves():
    """Sixty images that are bright above (class 0) or below (class 1)."""
    labels = np.arange(60, dtype=np.uint8) % 2
    images = np.random.default_rng(1).integers(0, 60, (60, 28, 28), dtype=np.uint8)
    images[labels == 0, :14] += 150
    images[labels == 1, 14:] += 150
    return images, labels


@pytest.mark.slow
@pytest.mark.parametrize("network", ["cnn", "dense"])
def test_a_network_learns_what_can_be_learnt_and_does_so_again(halves, network):
    recipe = replace(models.RECIPES[0], network=network, steps=12, batch=20, schedule_steps=None)
    steps = []
    params = models.train(recipe, *halves, lambda: steps.append(1))
    assert len(steps) == recipe.steps
    scores = models.scores_of(models.NETWORKS[network][1], params, halves[0])
    assert scores.shape == (60, 10)
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
    assert (scores.argmax(axis=1) == halves[1]).mean() > 0.95
    again = models.train(recipe, *halves, lambda: None)
    np.testing.assert_allclose(again["dense2"]["w"], params["dense2"]["w"], atol=1e-5)


@pytest.mark.slow
def test_models_are_trained_once_and_again_only_by_force(no_data, monkeypatch, capsys):
    for dataset in ("MNIST", "FASHION_MNIST"):
        published = getattr(models, dataset)
        tiny = tiny_dataset(no_data / "shared" / published.name)._replace(name=published.name)
        monkeypatch.setattr(models, dataset, tiny)
        monkeypatch.setitem(models.DATASETS, tiny.name, tiny)
    recipes = tuple(replace(recipe, network="dense", steps=2, batch=3) for recipe in models.RECIPES)
    monkeypatch.setattr(models, "RECIPES", recipes)
    folder = no_data / "models"

    models.main(["--folder", str(folder)])
    first = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    assert sorted(first) == ["mnist-12.npz", "mnist-70.npz", "mnist-99.npz"]
    with np.load(folder / "mnist-70.npz") as kept:
        story = json.loads(str(kept["provenance"]))
        assert story["accuracy_on_mnist_test"] == (kept["predictions"] == LABELS).mean()
        assert kept["scores"].dtype == np.float16 and kept["scores"].shape == (7, 10)
    assert {"jax", "optax", "numpy", "python"} <= set(story["versions"])

    models.main(["--folder", str(folder)])
    assert first == {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    assert capsys.readouterr().out.count("already there") == 3
    models.main(["--folder", str(folder), "--force", "--only", "mnist-70"])
    changed = {file.name for file in folder.iterdir() if file.stat().st_mtime_ns != first[file.name][0]}
    assert changed == {"mnist-70.npz"}
