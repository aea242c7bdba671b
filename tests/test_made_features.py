"""Features made from texts, images and categories: what they are, that they are kept, and that errors are sentences."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from altmas import Pool, Session
from altmas.errors import PoolError
from altmas.items.images import png
from altmas.planning import plan_widths
from altmas.pool.made_features import descriptor, image_features, text_features
from benchmarks.made_features import NOTHING, kinds_of
from cli_world import run

WORDS = {"cat": "purr meow whiskers", "dog": "bark fetch bone"}


def texts(n=120):
    rng = np.random.default_rng(0)
    return [" ".join(rng.permutation(WORDS["cat" if k % 2 else "dog"].split())) + f" number {k % 7}" for k in range(n)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f'{"cat" if k % 3 else "dog"},"{one}",{"AB"[k % 2]},{k}\n' for k, one in enumerate(texts())]
    path.write_text("said,text,site,x\n" + "".join(rows))
    return path


def test_texts_of_one_kind_are_close_and_rows_have_length_1():
    made = text_features(texts())
    assert np.allclose((made**2).sum(1), 1, atol=1e-2)
    near = made @ made.T
    same = np.equal.outer(np.arange(120) % 2, np.arange(120) % 2)
    assert near[same].mean() > near[~same].mean() + 0.3
    assert (text_features(texts()) == made).all()


def test_the_projection_is_that_of_the_plain_formula():
    """sublinear TF-IDF of words and pairs, SVD, rows scaled: distances as by numpy alone."""
    found = text_features(texts(40), width=5)
    tokens = [one.split() for one in texts(40)]
    grams = [words + [" ".join(pair) for pair in zip(words, words[1:], strict=False)] for words in tokens]
    known = sorted({gram for row in grams for gram in row if sum(gram in other for other in grams) >= 2})
    counts = np.array([[row.count(gram) for gram in known] for row in grams], float)
    idf = np.log((1 + 40) / (1 + (counts > 0).sum(0))) + 1
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(weights, full_matrices=False)
    slow = (u * s)[:, :5]
    slow /= np.linalg.norm(slow, axis=1, keepdims=True)
    assert np.allclose(found @ found.T, slow @ slow.T, atol=0.02)


def test_scripts_without_blanks_are_taken_by_letters():
    chinese = [
        "今天天气很好我们去公园" + "好" * (k % 3) if k % 2 else "银行卡丢失请尽快冻结账户" + "快" * (k % 3)
        for k in range(40)
    ]
    made = text_features(chinese)
    assert made[0] @ made[2] > made[0] @ made[1] + 0.3


def test_columns_become_features_by_their_name(table):
    pool = Pool.from_table(table, prediction="said", features=["text", "x", "site"])
    assert pool.features.shape[1] == text_features(texts()).shape[1] + 1 + 2
    assert (pool.features[:, -3] == np.arange(120)).all() and (pool.features[:, -2:].sum(1) == 1).all()
    assert "TF-IDF and SVD of the texts in column 'text'" in repr(pool) and "2 categories of column 'site'" in repr(
        pool
    )
    assert Pool(texts(), ["cat", "dog"] * 60).made_features[0].startswith("TF-IDF")


def test_texts_in_a_parquet_file_become_features(tmp_path):
    rows = {"said": ["cat", "dog"] * 60, "text": texts(), "x": range(120)}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    pool = Pool.from_table(tmp_path / "t.parquet", prediction="said", features=["text", "x"])
    assert (pool.features[:, :-1] == text_features(texts())).all() and pool.made_features
    assert Pool.from_table(tmp_path / "t.parquet", prediction="said", features="x").features.shape == (120, 1)


def test_the_session_keeps_what_was_made_and_does_not_make_it_again(table, tmp_path, monkeypatch):
    path = tmp_path / "s.altmas"
    ran = run("init", path, "--data", table, "--prediction", "said", "--show", "text", "--features", "text")
    assert ran.code == 0 and "features: TF-IDF and SVD of the texts in column 'text'" in ran.err
    made = text_features(texts())

    def never(*_):
        raise AssertionError("made again")

    monkeypatch.setattr("altmas.pool.origins.made_from", never)
    with Session.open(path) as session:
        assert (session.pool.features == made).all() and session.pool.made_features
        assert session.pool.items[3] == texts()[3]
        session.tell({query.id: "cat" for query in session.ask(30)})
        assert session.estimate()[0].labels == 30


def test_a_session_of_texts_in_memory_is_read_again(tmp_path):
    with Session.create(tmp_path / "s.altmas", Pool(texts(), ["cat", "dog"] * 60)) as session:
        made = session.pool.features
    with Session.open(tmp_path / "s.altmas") as session:
        assert (session.pool.features == made).all() and session.pool.made_features


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([f"w{k}" for k in range(60)], "no words that several texts share"),
        (["same"] * 60, "holds one value in all rows"),
        ([""] * 30 + [f"q{k}" for k in range(30)], "no words that several texts share"),
    ],
)
def test_texts_from_which_nothing_can_be_made(values, said):
    with pytest.raises(PoolError, match=said):
        Pool(values, ["cat", "dog"] * 30)


def test_numbers_with_a_gap_stay_numbers(tmp_path):
    (tmp_path / "t.csv").write_text(
        "said,x\n" + "".join(f"{'ab'[k % 2]},{k if k != 9 else 'n.a.'}\n" for k in range(30))
    )
    ran = run("init", tmp_path / "s", "--data", tmp_path / "t.csv", "--prediction", "said", "--features", "x")
    assert ran.code == 2 and "column 'x', row 9: 'n.a.' is not a number" in ran.err


# ---------------------------------------------------------------- images


def stripes(k, side=40):
    image = np.zeros((side, side, 3), np.uint8)
    image[:: 4 if k % 2 else side, :, 0] = 255
    image[:, :: side if k % 2 else 4, 1] = 255
    return image


def test_images_that_look_alike_are_close():
    pool = Pool(None, ["a", "b"] * 10, items=[stripes(k) for k in range(20)])
    made = image_features(pool.items, "items", None)
    assert made.shape == (20, 3 * 64 + 128) and np.isfinite(made).all()
    assert np.linalg.norm(made[0] - made[2]) < np.linalg.norm(made[0] - made[1]) / 10


@pytest.mark.parametrize("shape", [(1, 1), (5, 90), (28, 28), (300, 200, 3), (33, 31, 4)])
def test_every_size_has_the_same_descriptor_length(shape):
    grey = len(shape) == 2
    assert descriptor(np.full(shape, 0.5)).shape == ((64 if grey else 192) + 128,)


def test_the_means_of_a_descriptor_are_those_of_the_image():
    image = np.random.default_rng(0).random((64, 64))
    expected = image.reshape(8, 8, 8, 8).mean((1, 3)).ravel()
    assert np.allclose(descriptor(image)[:64], expected, atol=1e-5)


def test_image_files_become_features(tmp_path):
    pytest.importorskip("PIL")
    for k in range(40):
        image = stripes(k) if k % 5 else stripes(k)[..., 0]  # some are grey
        (tmp_path / f"{k}.png").write_bytes(png(image))
    (tmp_path / "t.csv").write_text("said,file\n" + "".join(f"{'ab'[k % 2]},{k}.png\n" for k in range(40)))
    pool = Pool.from_table(tmp_path / "t.csv", prediction="said", features="file", show="file")
    assert pool.features.shape == (40, 320) and pool.made_features == ("image descriptors of column 'file'",)
    (tmp_path / "7.png").write_bytes(b"nothing")
    with pytest.raises(PoolError, match="row 7: the file is not an image"):
        Pool.from_table(tmp_path / "t.csv", prediction="said", features="file")


# ---------------------------------------------------------------- plans


def test_a_plan_says_what_is_gained_where_nothing_can_be_learned(table, tmp_path):
    given = ("--data", table, "--prediction", "said", "--budget", 30, "--worlds", 1, "-q")
    plain = " ".join(run("plan", *given).out.split())
    assert "one class, one slice). Give scores, or features" in plain and "no gain" not in plain
    assert "errors go with them" in json.loads(run("plan", *given, "--features", "text", "--json").out)["learnable"]
    said = np.where(np.arange(120) % 3, "cat", "dog")
    scores = np.where(np.arange(120) % 3, 0.3, 0.8)
    pool = Pool(None, said, classes=["cat", "dog"], scores=np.column_stack([1 - scores, scores]))
    assert plan_widths(pool, budgets=[30], worlds=1, progress=False).learnable == ""


# ---------------------------------------------------------------- by themselves


def test_what_is_shown_becomes_features_by_itself_on_the_command_line(table, tmp_path):
    made = run("init", tmp_path / "s.altmas", "--data", table, "--prediction", "said", "--show", "text", "--budget", 30)
    assert "features: TF-IDF and SVD of the texts in column 'text'" in made.err
    assert "--features none leaves them out" in made.err
    with Session.open(tmp_path / "s.altmas") as session:
        assert (session.pool.features == text_features(texts())).all()
        assert session.pool.source["features"] == ["text"]
    without = ("--show", "text", "--features", "none")
    told = run("init", tmp_path / "n.altmas", "--data", table, "--prediction", "said", *without, "--budget", 30)
    assert "features" not in told.err
    with Session.open(tmp_path / "n.altmas") as session:
        assert session.pool.features is None and session.pool.made_features == ()


def test_a_plan_names_the_features_that_are_made(table):
    told = run("plan", "--data", table, "--prediction", "said", "--show", "text", "--budget", 30, "--worlds", 1)
    assert "features: TF-IDF and SVD of the texts in column 'text'" in told.err


def test_python_makes_features_of_what_is_shown_when_asked(table):
    assert Pool.from_table(table, prediction="said", show="text").features is None
    pool = Pool.from_table(table, prediction="said", show=["text", "site", "x", "said"], features="auto")
    assert pool.features.shape[1] == text_features(texts()).shape[1] + 2  # no numbers, and not the prediction
    assert len(pool.made_features) == 2 and pool.unmade == ""


@pytest.mark.parametrize(("column", "why"), [("x", ""), ("alike", "tell them apart"), ("many", "more than the 100")])
def test_where_no_features_can_be_made_the_pool_has_none_and_says_why(tmp_path, monkeypatch, column, why):
    monkeypatch.setattr("altmas.pool.origins.MOST_TEXTS", 100)
    rows = {"said": ["cat", "dog"] * 60, "x": range(120), "alike": [f"w{k} v{k}" for k in range(120)], "many": texts()}
    if column == "alike":
        monkeypatch.setattr("altmas.pool.origins.MOST_TEXTS", 1000)
    pool = Pool.from_table(pa.table(rows), prediction="said", show=column, features="auto")
    assert pool.features is None and pool.made_features == () and why in pool.unmade and bool(pool.unmade) == bool(why)


def test_an_unreadable_image_leaves_the_pool_without_features_and_says_so(tmp_path):
    files = [tmp_path / f"{k}.png" for k in range(20)]
    for file in files[1:]:
        file.write_bytes(png(np.zeros((8, 8), np.uint8)))
    rows = {"said": ["cat", "dog"] * 10, "file": list(map(str, files))}
    pool = Pool.from_table(pa.table(rows), prediction="said", show="file", features="auto")
    assert pool.features is None and "row 0" in pool.unmade


def test_items_that_are_added_get_features_of_the_same_meaning(table, tmp_path):
    """Words and projection are those of the first table: a text that is in both has the same features."""
    run("init", tmp_path / "s.altmas", "--data", table, "--prediction", "said", "--show", "text", "--budget", 30)
    more = tmp_path / "more.csv"
    other = ["something else entirely", *texts()[:3]]
    more.write_text("said,text,site,x\n" + "".join(f'cat,"{one}",A,1\n' for one in other))
    run("extend", tmp_path / "s.altmas", "--data", more, "--wave", "later")
    with Session.open(tmp_path / "s.altmas") as session:
        features = session.pool.features
        assert features.shape == (124, text_features(texts()).shape[1])
        assert np.allclose(features[121:], features[:3], atol=2e-4) and (features[120] == 0).all()


# ---------------------------------------------------------------- embeddings


class Model:
    """Stands for sentence_transformers.SentenceTransformer: how many letters a text has, and how many words."""

    def __init__(self, folder, *, device, local_files_only):
        assert device == "cpu" and local_files_only

    def encode(self, texts, **_):
        made = np.array([[len(text), len(text.split())] for text in texts], float)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_a_language_model_makes_features_of_a_column(table, tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    monkeypatch.setenv("ALTMAS_EMBEDDING_MODEL", str(tmp_path / "model"))
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: module)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))
    pool = Pool.from_table(table, prediction="said", show="text", features=["text:embedding", "x"])
    assert pool.features.shape == (120, 3) and np.allclose((pool.features[:, :2] ** 2).sum(1), 1, atol=1e-3)
    assert pool.made_features == ("embeddings of the texts in column 'text' (2 columns)",)
    assert pool.source["features"] == ["text:embedding", "x"]
    with pytest.raises(PoolError, match="column 'x' holds no texts"):
        Pool.from_table(table, prediction="said", features="x:embedding")
    monkeypatch.setenv("ALTMAS_EMBEDDING_MODEL", str(tmp_path))
    with pytest.raises(PoolError, match="holds no model"):
        Pool.from_table(table, prediction="said", features="text:embedding")
    monkeypatch.delenv("ALTMAS_EMBEDDING_MODEL")
    with pytest.raises(PoolError, match="ALTMAS_EMBEDDING_MODEL is not set; set ALTMAS_EMBEDDING_MODEL to a folder"):
        Pool.from_table(table, prediction="said", features="text:embedding")


def test_an_embedding_without_its_packages_says_what_to_install(table, monkeypatch):
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: None)
    told = run("plan", "--data", table, "--prediction", "said", "--features", "text:embedding", "--budget", 30)
    assert told.code == 2 and "pip install 'altmas[embeddings]'" in told.err


def test_the_benchmark_leaves_embeddings_out_where_they_cannot_be_made_and_says_why(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: None)
    assert kinds_of("20news") == ["none", "made from texts", "given"]
    assert "20news: no embedding, since" in capsys.readouterr().err
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: module)
    monkeypatch.delenv("ALTMAS_EMBEDDING_MODEL", raising=False)
    assert "embedding" not in kinds_of("20news") and "is not set" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setenv("ALTMAS_EMBEDDING_MODEL", str(tmp_path))
    assert kinds_of(NOTHING) == ["none", "made from texts", "embedding"] and capsys.readouterr().err == ""
