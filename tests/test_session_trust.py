"""A session file is data: opening one runs nothing that it names, however it is opened."""

import functools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, f1_score

import altmas
from altmas.doctor import examine
from altmas.errors import PlanError
from benchmarks.operations.crafted_sessions import planned
from cli_world import run
from session_world import create, truth

FILES = Path(__file__).parent / "data" / "sessions"
RAN: list[str] = []


def ran(*args: Any, **kwargs: Any) -> float:
    """What no session file may reach."""
    RAN.append(repr(args))
    return 0.5


@dataclass
class Ran:
    """A dataclass that notes when it is made."""

    x: int = 0

    def __post_init__(self) -> None:
        ran("made")


RAN_HERE = {"$function": f"{__name__}:ran"}
MADE_HERE = {"$object": f"{__name__}:Ran", "options": {}}


def metric(function: Any) -> dict[str, Any]:
    return {"metrics": ["accuracy", {"name": "trick", "function": function}]}


def partial(function: Any, *args: Any) -> dict[str, Any]:
    return {"$partial": function, "args": {"$tuple": list(args)}, "keywords": {}}


def method(name: str = "tradition", place: str | None = None, **options: Any) -> dict[str, Any]:
    return {"method": {"name": name, "options": options, "class": place}}


PROFILE = partial({"$function": "cProfile:run"}, "import test_session_trust; test_session_trust.ran()")

TRICKS: dict[str, dict[str, Any]] = {
    "partial of a function that runs its argument": metric(PROFILE),
    "function of the system": metric({"$function": "os:system"}),
    "function of this module": metric(RAN_HERE),
    "partial inside a partial": metric(partial(partial(RAN_HERE, 1), 2)),
    "function among the arguments of a score": metric(
        partial({"$function": "sklearn.metrics:f1_score"}, PROFILE, {"$tuple": [MADE_HERE]})
    ),
    "pair": {"metrics": [{"name": "trick", "pair": PROFILE}]},
    "any dataclass as an object": metric(MADE_HERE),
    "any dataclass as the method": method("trick", f"{__name__}:Ran"),
    "module whose import runs code": method("trick", "this:Anything"),
    "function as an option": method("assured", belief=RAN_HERE),
    "object as an option": method("tradition", calibrate_rows=MADE_HERE),
    "object in a list in an option": method("spe", families={"$tuple": [[{"deep": PROFILE}]]}),
    "method that looks built in": method("trick", "altmas.methods.assured.evil:Ran"),
    "score that is none": metric({"$function": "sklearn.metrics:os.system"}),
    "loader of pickles beside the scores": metric({"$function": "sklearn.metrics._scorer:_deprecate"}),
}


def crafted(path: Path, trick: str) -> Path:
    with create(path) as session:
        for query in session.ask(3):
            session.tell(query.id, truth(query))
    RAN.clear()
    return planned(path, **TRICKS[trick])


@pytest.mark.parametrize("trick", TRICKS)
def test_opening_a_crafted_file_runs_nothing(tmp_path, trick):
    path, modules = crafted(tmp_path / "crafted.altmas", trick), set(sys.modules)
    for read_only in (False, True):
        with pytest.raises(PlanError, match="would be imported and run; nothing was|cannot be made again"):
            altmas.Session.open(path, read_only=read_only)
    assert RAN == []
    assert "this" not in set(sys.modules) - modules


@pytest.mark.parametrize("trick", list(TRICKS)[::4])
def test_no_command_runs_what_a_crafted_file_names(tmp_path, trick):
    path = crafted(tmp_path / "crafted.altmas", trick)
    for arguments in (["status", path], ["report", path, "-o", tmp_path / "report.html"], ["doctor", path]):
        assert run(*arguments).code in (1, 2)
    assert RAN == []


def test_the_sentence_says_exactly_what_would_be_imported(tmp_path):
    path = tmp_path / "crafted.altmas"
    create(path).close()
    planned(path, **metric(PROFILE))
    for arguments in (["status", path], ["tell", path, "p1", "cat"], ["estimate", path, "--json"]):
        done = run(*arguments)
        assert done.code == 2
        assert "metric 'trick' is 'cProfile:run', which would be imported and run; nothing was" in done.err
        assert "--trust" in done.err
    [pool] = [one for one in examine(path) if one.what == "pool"]
    assert not pool.ok and "cProfile:run" in pool.found


def test_a_trusted_file_is_imported_from_the_command_line(tmp_path):
    path = tmp_path / "own.altmas"
    create(path, metrics=["accuracy", ran]).close()
    assert run("status", path).code == 2
    assert run("status", path, "--trust").code == 0
    assert "test_session_trust:ran" not in run("doctor", path, "--trust").out


def test_every_command_that_opens_a_session_takes_trust():
    import typer.main

    from altmas.cli import app

    commands: Any = typer.main.get_command(app)
    for name, command in commands.commands.items():
        options = {option.name for option in command.params}
        assert ("trust" in options) == ("session" in options and name != "init"), name


def test_a_file_of_version_0_1_0_opens_with_everything_that_was_in_it():
    with altmas.Session.open(FILES / "assured-0.1.0.altmas", read_only=True) as session:
        assert session.method.name == "assured"
        accuracy, recall, score, macro, cost = session.plan.metrics
        assert (accuracy, recall, score, cost[0]) == ("accuracy", "recall[cat]", accuracy_score, "cost")
        assert isinstance(macro, functools.partial) and macro.func is f1_score
        assert session.status().labels == 13 - 1
        assert session.status().digest == DIGEST
        assert session.votes("p3") == {"bob": "owl", "ana": "cat"}
        labels = {session.pool.ids[row]: session.pool.classes[code] for row, code in session.history.labels.items()}
        assert labels["p3"] == "cat" and "p5" not in labels
    with altmas.Session.open(FILES / "tradition-0.1.0.altmas", read_only=True) as session:
        assert session.method == altmas.methods.Tradition(calibrate_rows=True)
        assert len(session.history.labels) == 5
    with altmas.Session.open(FILES / "spe-0.1.0.altmas", read_only=True) as session:
        assert session.method == altmas.methods.Spe(families=("normal", "gamma"))


DIGEST = "985c848fa9161f2e91d4ca49b48d93b90a072f64e9679d366739030ad0b4f1b6"


def test_no_other_process_imports_what_an_untrusted_file_names(tmp_path):
    """As `python -X importtime` would show it: the module is on the path, and is not imported."""
    (tmp_path / "evil_module.py").write_text("open('ran', 'w').close()\ndef score(y_true, y_pred): return 1.0\n")
    path = tmp_path / "crafted.altmas"
    create(path).close()
    planned(path, **metric({"$function": "evil_module:score"}))
    script = "import altmas\ntry: altmas.Session.open('crafted.altmas')\nexcept altmas.AltmasError: print('refused')"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n" and not (tmp_path / "ran").exists()
