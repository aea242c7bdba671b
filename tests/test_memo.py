"""A memo makes each result once, keeps the last ones, and lets threads wait for one another."""

import copy
import pickle
import threading

import numpy as np
import pytest

import altmas
from altmas import memo as memo_module
from altmas.memo import ArrayFile, Memo
from altmas.methods.assured import views


def test_a_result_is_made_once_for_each_key():
    memo, made = Memo(), []
    for key in (1, 1, 2, 2):
        assert memo.get("double", key, lambda key=key: made.append(key) or 2 * key, keep=2) == 2 * key
    assert made == [1, 2]


def test_the_results_asked_for_last_are_kept_and_names_do_not_displace_each_other():
    memo, made = Memo(), []

    def ask(name: str, key: int) -> None:
        memo.get(name, key, lambda: made.append((name, key)), keep=2)

    for key in (1, 2, 1, 3, 1, 2):  # 2 goes when 3 comes
        ask("a", key)
    ask("b", 1)
    assert made == [("a", 1), ("a", 2), ("a", 3), ("a", 2), ("b", 1)]
    assert memo.count("a") == 2 and memo.count("b") == 1 and memo.count("c") == 0


def test_a_failure_is_not_kept():
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.get("a", 1, lambda: 1 / 0)
    assert memo.get("a", 1, lambda: 7) == 7


def test_threads_that_want_the_same_wait_for_it_and_others_do_not():
    memo, made = Memo(), []
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> int:
        made.append(1)
        begun.set()
        assert go_on.wait(20)
        return 5

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(memo.get("a", 1, slow))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    assert memo.get("b", 1, lambda: 6) == 6 and memo.get("a", 2, lambda: 7, keep=2) == 7
    go_on.set()
    for thread in threads:
        thread.join()
    assert found == [5] * 4 and made == [1]


def test_making_one_result_may_ask_for_another():
    memo = Memo()
    assert memo.get("a", 1, lambda: memo.get("b", 1, lambda: 2) + 1) == 3


@pytest.mark.parametrize("again", [copy.deepcopy, lambda memo: pickle.loads(pickle.dumps(memo))])
def test_a_copy_begins_empty(again):
    memo = Memo()
    memo.get("a", 1, lambda: 2)
    assert again(memo).count("a") == 0 and memo.count("a") == 1


# ---------------------------------------------------------------- arrays beside a session


def kept_file(tmp_path, monkeypatch):
    monkeypatch.setattr(memo_module, "LONG", 0.0)
    return ArrayFile(tmp_path / "s.altmas-description")


def test_arrays_are_made_once_for_all_processes_and_again_for_other_data(tmp_path, monkeypatch):
    file, made = kept_file(tmp_path, monkeypatch), []

    def make() -> dict[str, np.ndarray]:
        made.append(1)
        return {"a": np.arange(3.0), "b c": np.ones((2, 2), np.float16)}

    first, second = (Memo(file).arrays({"features": "x"}, make) for _ in range(2))
    assert len(made) == 1 and list(first) == list(second)
    for name, array in first.items():
        assert array.dtype == second[name].dtype and (array == second[name]).all()
    Memo(file).arrays({"features": "y"}, make)
    Memo(ArrayFile(file.path, read_only=True)).arrays({"features": "z"}, make)
    Memo(file).arrays({"features": "y"}, make)
    assert len(made) == 3  # for x, y and z: what a read-only session makes is not written


def test_what_takes_no_time_gets_no_file(tmp_path):
    file = ArrayFile(tmp_path / "description")
    Memo(file).arrays({}, lambda: {"a": np.zeros(1)})
    assert not file.path.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"notes of mine"])
def test_a_file_that_altmas_did_not_write_is_left_alone(tmp_path, monkeypatch, content):
    file = kept_file(tmp_path, monkeypatch)
    file.path.write_bytes(content)
    assert Memo(file).arrays({}, lambda: {"a": np.ones(1)})["a"] == 1
    assert file.path.read_bytes() == content


def test_damage_and_a_full_disk_cost_time_alone(tmp_path, monkeypatch):
    file = kept_file(tmp_path, monkeypatch)
    Memo(file).arrays({}, lambda: {"a": np.ones(1000)})
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-700] + bytes(700))
    assert Memo(file).arrays({}, lambda: {"a": np.zeros(1)})["a"] == 0
    monkeypatch.setattr(np, "savez", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    file.path.unlink()
    assert Memo(file).arrays({}, lambda: {"a": np.ones(1)})["a"] == 1
    assert list(tmp_path.iterdir()) == []


def test_a_session_keeps_the_description_of_its_pool_and_answers_the_same_with_and_without(tmp_path, monkeypatch):
    monkeypatch.setattr(memo_module, "LONG", 0.0)
    rng = np.random.default_rng(0)
    features, path = rng.normal(size=(200, 3)), tmp_path / "s.altmas"
    truth = (features[:, 0] > 0).astype(int)
    predictions = np.where(rng.random(200) < 0.2, 1 - truth, truth)
    with altmas.Session.create(path, altmas.Pool(features, predictions), metrics=["accuracy"]) as session:
        for query in session.ask(60):
            session.tell(query.id, int(truth[query.index]))
        before = session.estimate()["accuracy"]
    kept = tmp_path / "s.altmas-description"
    assert kept.exists()
    with altmas.Session.open(path) as session:
        monkeypatch.setattr(views, "_describe", lambda pool: pytest.fail("was described again"))
        assert session.estimate()["accuracy"] == before
    monkeypatch.undo()
    kept.unlink()
    with altmas.Session.open(path, read_only=True) as session:
        assert session.estimate()["accuracy"] == before
    assert not kept.exists()
