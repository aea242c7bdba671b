"""What src imports is declared; what trains networks needs an extra, and says so where it is missing."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest

import altmas
from altmas import compute, demo, doctor
from altmas.errors import MissingExtra
from altmas.extras import EXTRAS, missing, require
from altmas.methods import METHODS, AltMas, Assured
from cli_world import run, write_table

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NETWORKS = ["altmas", "bald", "batchbald", "ase", "xwed"]
INSTALL = "pip install 'altmas[paper]' (in a copy of the repository: pip install '.[paper]')"
OF_THE_USER = {"pandas", "pyspark"}
"""Frames are handed back as pandas ones where the user has it, and as pyarrow tables where not; whoever hands over a
frame of Spark has it."""


# ---------------------------------------------------------------- what is imported is declared


def distributions(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", one)[0].lower() for one in requirements}  # type: ignore[index]


def imports(tree: ast.AST, late: bool = False) -> Iterator[tuple[str, bool]]:
    """(module, whether it is imported only when a function runs or for types) of every import from elsewhere."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0], late
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        yield from imports(node, late or for_types or isinstance(node, ast.FunctionDef))


@cache
def imported() -> dict[str, set[bool]]:
    """{module: {whether late}} over all of src, without the standard library and altmas itself."""
    found: dict[str, set[bool]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for module, late in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if module not in sys.stdlib_module_names and module != "altmas":
                found.setdefault(module, set()).add(late)
    return found


@cache
def installed() -> dict[str, list[str]]:
    return {**packages_distributions()}


def name_of(module: str) -> str:
    """The distribution that holds a module, also where it is not installed."""
    known = {one: [name] for extra in EXTRAS.values() for one, name in extra.items()} | installed()
    return known.get(module, [module])[0].lower()


def test_every_import_is_a_declared_dependency_and_every_dependency_is_imported():
    core = distributions(PROJECT["dependencies"])
    extra = {one for each in PROJECT["optional-dependencies"].values() for one in distributions(each)}
    used = {name_of(module) for module in imported()} - OF_THE_USER
    used = {"mlflow-skinny" if one == "mlflow" else one for one in used}  # it holds the same module
    assert used == core | extra


def test_what_an_extra_holds_is_imported_only_where_it_is_needed():
    core = distributions(PROJECT["dependencies"])
    for module, late in imported().items():
        if name_of(module) not in core:
            assert late == {True}, f"{module} is imported when altmas is"


def test_the_extra_is_what_pyproject_says():
    for extra, packages in EXTRAS.items():
        assert set(packages.values()) == distributions(PROJECT["optional-dependencies"][extra])
    assert [name for name, make in METHODS.items() if make().traits.extra == "paper"] == [
        name for name in METHODS if name in NETWORKS
    ]


# ---------------------------------------------------------------- without it


@pytest.fixture
def bare(monkeypatch):
    """An installation without the extra."""
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: None)


def pool() -> altmas.Pool:
    rng = np.random.default_rng(0)
    return altmas.Pool(rng.normal(size=(80, 3)), rng.integers(0, 2, 80))


def test_the_sentence_names_what_is_missing_and_the_command(bare, monkeypatch):
    with pytest.raises(ImportError) as caught:
        require("paper", "this part")
    assert str(caught.value) == (
        f"this part needs jax, optax and bayesian-optimization, so nothing was done; install the extra: {INSTALL}"
    )
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: None if module == "optax" else module)
    with pytest.raises(MissingExtra, match="this part needs optax, so nothing was done; install"):
        require("paper", "this part")
    assert missing("") == []
    require("", "a part that needs nothing")


@pytest.mark.parametrize("name", NETWORKS)
def test_choosing_a_network_method_says_what_to_install(name, bare):
    with pytest.raises(MissingExtra, match=rf"^method '{name}' needs .*{re.escape(INSTALL)}$"):
        altmas.Session.create(None, pool(), method=name)
    with pytest.raises(MissingExtra, match=re.escape(INSTALL)):
        altmas.simulate(pool(), [0] * 80, methods=["tradition", name], budgets=[40], repeats=1, progress=False)


def test_a_pool_without_features_is_told_that_first(bare):
    """Nobody should install half a gigabyte to read that the method cannot work here anyway."""
    with pytest.raises(altmas.errors.MethodError, match="'altmas' needs features"):
        altmas.Session.create(None, altmas.Pool(None, [0, 1, 1]), method="altmas")


def test_the_other_parts_that_train_networks_say_so_too(bare):
    compute.jax.cache_clear()  # another test may have loaded it in this process
    for part in (
        lambda: Assured(also=("network",)),
        lambda: altmas.tune(pool(), {0: 0, 1: 1, 2: 0}, progress=False),
        compute.jax,
    ):
        with pytest.raises(MissingExtra, match=re.escape(INSTALL)):
            part()
    assert Assured(also=("trees",)).also == ("trees",)


def test_opening_a_session_that_uses_one_says_what_to_install(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("altmas.extras.find_spec", lambda module: module)  # it was made where the extra is
        for name, method in {"a": AltMas(draws=7), "b": Assured(also=("network",))}.items():
            altmas.Session.create(tmp_path / f"{name}.altmas", pool(), method=method).close()
        with altmas.Session.open(tmp_path / "a.altmas") as session:
            assert session.method == AltMas(draws=7)
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: None)
    for name in "ab":
        with pytest.raises(MissingExtra, match=re.escape(INSTALL)):
            altmas.Session.open(tmp_path / f"{name}.altmas")
        ran = run("status", tmp_path / f"{name}.altmas")
        assert ran.code == 2 and INSTALL in ran.err and len(ran.err.strip().splitlines()) <= 3


def test_the_command_line_says_what_to_install_and_records_nothing(tmp_path, bare):
    table, _ = write_table(tmp_path)
    roles = ("--data", table, "--prediction", "vendor_label", "--features", "x1", "--method", "altmas")
    for command in (("init", tmp_path / "one.altmas", *roles), ("simulate", *roles, "--truth", "label")):
        ran = run(*command)
        assert ran.code == 2 and INSTALL in " ".join(ran.err.split()) and not ran.out
    assert not (tmp_path / "one.altmas").exists()


def test_the_demonstration_shows_what_it_can_and_says_what_is_missing(tmp_path, bare, monkeypatch):
    monkeypatch.setattr(demo, "BUDGET", 45)
    ran = run("demo", "--output", tmp_path)
    assert ran.code == 0, ran.err
    text = " ".join(ran.out.split())
    assert f"altmas, bald. To see them too: {INSTALL}" in text
    assert demo.compared_methods() == ["assured", "tradition"]
    assert (tmp_path / "demo-report.html").exists()


def test_the_doctor_finds_nothing_wrong_with_a_light_installation(bare):
    found = {one.what: one for one in doctor.examine()}
    assert found["altmas[paper]"].ok and INSTALL in found["altmas[paper]"].found
    assert "jax" not in found and "jax device" not in found


WITHOUT = """
import json, sys
for module in ("jax", "jaxlib", "optax", "bayes_opt"):
    sys.modules[module] = None
import numpy as np
import altmas
from altmas.errors import MissingExtra
said = []
rng = np.random.default_rng(0)
x, y = rng.normal(size=(60, 3)).astype(np.float32), rng.integers(0, 2, 60)
from altmas.confidence import ConfidenceHead
from altmas.methods.paper.surrogates import BayesByBackprop, Ensemble, MCDropout
scores = np.full((60, 2), 0.5)
for part in (
    lambda: MCDropout().fit(x, y, 2, rng),
    lambda: Ensemble().fit(x, y, 2, rng),
    lambda: BayesByBackprop().fit(x, y, 2, rng),
    lambda: ConfidenceHead.fit(x, scores, y, rng),
):
    try:
        part()
    except MissingExtra as error:
        said.append(str(error))
pool = altmas.Pool(x, y, classes=[0, 1])
session = altmas.Session.create(None, pool, budget=40)
session.run(lambda query: int(y[query.index]), progress=False)
print(json.dumps({"said": said, "value": session.estimate()[0].value}))
"""


def test_networks_say_so_where_jax_cannot_be_imported_and_the_default_does_not_care():
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert len(found["said"]) == 4 and all(INSTALL in one for one in found["said"])
    assert found["value"] > 0.99
