"""Planted faults: which changes are made, and what is counted."""

import pytest

from benchmarks.operations.mutants import EQUIVALENT, RESULTS, ROOT, TESTS, chosen, mutants_of, read, score, summary

SOURCE = b'''"""A module."""

LIMIT = 20


def decide(values, wanted=3):
    """Docstrings, 7 texts and annotations stay."""
    count: int = 0
    for value in values:
        if value < wanted and not value == 1:
            count += 1
    if count > max(values):
        raise ValueError(f"{count} is more than {9}")
    return all(value - 1 for value in values)
'''


def changes(source: bytes = SOURCE) -> set[str]:
    return {mutant.change.split(" -> ")[1] for mutant in mutants_of("m", source)}


def test_every_kind_of_change_is_made_once_inside_functions():
    assert changes() == {
        "count: int = (0 + 1)",
        "count: int = (0 - 1)",
        "if value <= wanted and not value == 1:",
        "if value >= wanted and not value == 1:",
        "if value < wanted or not value == 1:",
        "if (not (value < wanted and not value == 1)):",
        "if value < wanted and (value == 1):",
        "if value < wanted and not value != 1:",
        "if value < wanted and not value == (1 + 1):",
        "if value < wanted and not value == (1 - 1):",
        "pass",
        "count -= 1",
        "count += (1 + 1)",
        "count += (1 - 1)",
        "if count >= max(values):",
        "if count <= max(values):",
        "if count > min(values):",
        "return None",
        "return any(value - 1 for value in values)",
        "return all(value + 1 for value in values)",
        "return all(value - (1 + 1) for value in values)",
        "return all(value - (1 - 1) for value in values)",
    }


def test_a_mutant_is_the_module_with_one_change_and_keeps_its_key_while_its_function_stays():
    before = {mutant.key: mutant for mutant in mutants_of("m", SOURCE)}
    assert len(before) == len(list(mutants_of("m", SOURCE)))
    for mutant in before.values():
        assert mutant.function == "decide" and mutant.text != SOURCE.decode()
        changed = [
            one for one, other in zip(mutant.text.split("\n"), SOURCE.decode().split("\n"), strict=True) if one != other
        ]
        assert len(changed) == 1
    moved = b"OTHER = 1\n\n\n" + SOURCE
    assert {mutant.key for mutant in mutants_of("m", moved)} == set(before)
    other = SOURCE.replace(b"wanted=3", b"wanted=4")
    assert not {mutant.key for mutant in mutants_of("m", other)} & set(before)


def test_a_sample_holds_the_smaller_one():
    small, large = ({one.key for one in chosen("claims", each)} for each in (5, 12))
    assert len(small) == 5 and len(large) == 12 and small < large


def test_timeouts_are_killed_and_equivalent_ones_are_not_counted():
    outcomes = ["killed", "timeout", "survived", "equivalent"]
    rows = [{"module": "claims", "outcome": outcome} for outcome in outcomes]
    assert score(rows) == (2, 3)
    assert summary(rows).splitlines()[-1].split() == ["all", "2", "of", "3", "66.7%", "equivalent", "1"]


@pytest.mark.parametrize("module", TESTS)
def test_every_module_and_its_tests_exist(module):
    assert (ROOT / "src" / "altmas" / f"{module}.py").exists()
    assert all((ROOT / "tests" / f"{name}.py").exists() for name in TESTS[module])


def test_the_committed_results_kill_nine_of_ten_and_equivalent_ones_have_a_reason():
    rows = list(read(RESULTS).values())
    killed, total = score(rows)
    assert {row["module"] for row in rows} == set(TESTS) and killed >= 0.9 * total
    assert all(row["reason"] for row in read(EQUIVALENT).values())
