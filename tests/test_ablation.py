"""The ablation of assured: every constant has its row, and the page shows the table."""

from dataclasses import fields

import pytest

from altmas.methods.assured.recipe import RECIPE, Recipe, varied
from benchmarks import ablation
from benchmarks.store import read_csv

CONSTANTS = [field.name for field in fields(Recipe) if field.name not in ablation.ELSEWHERE]


def test_every_constant_is_changed_twice_and_alone():
    changed = [name for changes in ablation.variants() for name in changes]
    assert sorted(changed) == sorted(2 * CONSTANTS)
    assert all(value != getattr(RECIPE, name) for one in ablation.variants() for name, value in one.items())


def test_every_constant_has_a_reason():
    for field in fields(Recipe):
        assert field.name in (Recipe.__doc__ or ""), field.name


def test_the_recipe_is_as_it_was_after_a_variation():
    before = Recipe()
    with pytest.raises(ZeroDivisionError), varied(folds=3, certain=0.1):
        assert (RECIPE.folds, RECIPE.certain) == (3, 0.1)
        raise ZeroDivisionError
    assert before == RECIPE
    with pytest.raises(KeyError, match="no constants of the recipe: fold"), varied(fold=3):
        pass


def test_the_page_shows_the_table():
    rows = read_csv(ablation.TABLE)
    assert {row["constant"] for row in rows} == set(CONSTANTS)
    assert ablation.page_table(rows) in ablation.PAGE.read_text(encoding="utf-8")


def test_the_page_shows_what_uniform_draws_buy():
    rows = read_csv(ablation.UNIFORM_TABLE)
    assert ablation.uniform_page_table(rows) in ablation.PAGE.read_text(encoding="utf-8")
    for name, track, _ in ablation.UNIFORM_CELLS:
        values = [float(row["label_value"]) for row in rows if (row["pool"], row["track"]) == (name, track)]
        assert len(values) == len(ablation.UNIFORM_SHARES) and values[0] > values[-1]
