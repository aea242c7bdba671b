"""A pool that lived in memory is in the session file; one that came from files is read again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import altmas
from altmas.errors import FileError, PoolMismatch
from altmas.session import archive
from session_world import N, create, pool


def reopened(tmp_path: Path, made: altmas.Pool) -> altmas.Pool:
    path = tmp_path / "one.altmas"
    create(path, pool=made).close()
    return altmas.Session.open(path).pool


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"features": None, "scores": None, "slices": None, "items": None},
        {"ids": None},
        {"ids": list(range(100, 100 + N))},
        {"ids": [f"ü, \n{row}😀" for row in range(N)]},
        {"ids": [2**70 + row for row in range(N)]},
        {"classes": None, "scores": None},
        {"predictions": np.arange(N) % 4, "classes": None, "scores": None},
        {"predictions": np.arange(N) % 2 == 0, "classes": [True, False], "scores": None},
        {"predictions": np.arange(N) % 2, "classes": ["no", "yes", "😀,\n"]},
        {"features": np.arange(N * 3, dtype=np.float32).reshape(N, 3)},
        {"slices": {"site": ["ü"] * N, "empty ": np.arange(N)}},
        {
            "predictions": {"v1": np.arange(N) % 3, "ü 2": np.arange(N) % 2},
            "scores": {"ü 2": np.random.default_rng(0).dirichlet([1, 1, 1], N)},
        },
    ],
)
def test_every_part_comes_back(tmp_path, changes, monkeypatch):
    monkeypatch.setattr(archive, "CHUNK_BYTES", 200)  # many chunks
    made = pool(**changes)
    again = reopened(tmp_path, made)
    assert again.fingerprint == made.fingerprint
    assert again.classes == made.classes and again.classes_inferred == made.classes_inferred
    assert list(again.ids) == list(made.ids) and again.items == made.items
    assert [model.name for model in again.models] == [model.name for model in made.models]
    pairs = [(again.features, made.features)]
    for mine, theirs in zip(again.models, made.models, strict=True):
        pairs += [(mine.predictions, theirs.predictions), (mine.scores, theirs.scores)]
    for one, other in pairs:
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    assert {name: values.tolist() for name, values in again.slices.items()} == {
        name: values.tolist() for name, values in made.slices.items()
    }


@pytest.mark.parametrize(
    "items",
    [
        [f"ünï {row}\n\x00😀" for row in range(N)],
        [{"age": row, "name": None, "tags": ["a"]} for row in range(N)],
        np.arange(N * 4, dtype=np.uint8).reshape(N, 2, 2),
        [np.full((row + 1, 2), row, np.float32) for row in range(N)],
        pd.DataFrame({"age": range(N), "text": [f"t{row}" for row in range(N)]}),
        pd.Series([f"t{row}" for row in range(N)]),
    ],
)
def test_items_come_back(tmp_path, items):
    made = pool(items=items)
    again = reopened(tmp_path, made)
    assert len(again.items) == N
    for row in (0, 7, N - 1):
        np.testing.assert_equal(again.items[row], made.items[row])


def test_paths_come_back_as_texts(tmp_path):
    again = reopened(tmp_path, pool(items=[Path(f"{row}.png") for row in range(N)]))
    assert again.items[3] == "3.png"


class Lazy:
    def __len__(self) -> int:
        return N

    def __getitem__(self, row: int) -> str:
        raise AssertionError("to read every item could take hours")


@pytest.mark.parametrize("items", [Lazy(), [object()] * N])
def test_items_that_cannot_be_kept_are_announced_and_may_be_handed_over(tmp_path, items, caplog):
    made = pool(items=items)
    again = reopened(tmp_path, made)
    assert again.items is None and "items are not kept" in caplog.text
    assert altmas.Session.open(tmp_path / "one.altmas", made).pool.items is items


def test_items_beyond_the_limit_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "LIMIT", 4000)
    for number, items in enumerate(
        [
            ["x" * 200] * N,
            np.zeros((N, 100)),
            [np.zeros(100)] * N,
            pd.Series(["x" * 200] * N),
        ]
    ):
        path = tmp_path / f"{number}.altmas"
        create(path, pool=pool(items=items)).close()
        assert altmas.Session.open(path).pool.items is None
        assert path.stat().st_size < 100_000


def test_a_pool_beyond_the_limit_has_to_be_handed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "LIMIT", 1000)
    path, made = tmp_path / "one.altmas", pool()
    create(path, pool=made).close()
    with pytest.raises(PoolMismatch, match=r"does not hold its pool of 60 points .*Session.open\(path, pool=...\)"):
        altmas.Session.open(path)
    with altmas.Session.open(path, made) as session:
        assert session.pool is made


def test_a_pool_from_files_is_read_again_and_compared(tmp_path):
    table, path = tmp_path / "preds.csv", tmp_path / "one.altmas"
    table.write_text("id,pred,text\n" + "".join(f"p{row},{'ab'[row % 2]},t{row}\n" for row in range(20)))
    made = altmas.Pool.from_table(table, prediction="pred", id="id", show="text")
    create(path, pool=made).close()
    with altmas.Session.open(path) as session:
        assert session.pool.fingerprint == made.fingerprint and session.pool.items[3] == "t3"
        assert list(session._journal.store.part("predictions")) == []
    table.write_text(table.read_text().replace("p3,b", "p3,a"))
    with pytest.raises(
        PoolMismatch, match="has different predictions; put it back as it was; .*; nothing was recorded"
    ):
        altmas.Session.open(path)
    table.unlink()
    with pytest.raises(FileError, match="one.altmas needs the files of its pool: .*preds.csv.*or pass pool=..."):
        altmas.Session.open(path)
    with altmas.Session.open(path, made) as session:
        session.tell("p1", "a")


def test_a_folder_with_the_session_and_its_files_can_be_moved(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new place"
    (old / "data").mkdir(parents=True)
    table, features = old / "data" / "preds.csv", old / "emb.npy"
    table.write_text("id,pred\n" + "".join(f"p{row},{'ab'[row % 2]}\n" for row in range(20)))
    np.save(features, np.arange(40.0).reshape(20, 2))
    made = altmas.Pool.from_table(table, prediction="pred", id="id", features=features)
    create(old / "one.altmas", pool=made).close()
    old.rename(new)
    with altmas.Session.open(new / "one.altmas") as session:
        assert session.pool.fingerprint == made.fingerprint
