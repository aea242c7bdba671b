"""A memo makes each result once, keeps the last ones, and lets threads wait for one another."""

import copy
import pickle
import threading

import pytest

from altmas.memo import Memo


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
