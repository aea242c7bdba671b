"""Session files that version 0.1 wrote before the packages were moved: they open and say what they said."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import altmas

FOLDER = Path(__file__).parent / "data" / "sessions-0.1"
FILES = sorted(path.stem for path in FOLDER.glob("*.altmas"))
SAME_ESTIMATES = ("tradition", "altmas", "callables")
"""Files whose method estimates as it did then; `assured` may learn to do better from the same labels."""
RETRAINED = {"altmas": 0.01}
"""Files whose estimates come from networks, which are trained in fewer steps now: how far they may be apart."""
WIDER = ("tradition",)
"""Files of a random sample: its intervals reach farther than Wilson's where errors are rare (B4)."""


def opened(name: str, tmp_path: Path) -> altmas.Session:
    """The file, copied: a session logs its estimates."""
    path = tmp_path / f"{name}.altmas"
    path.write_bytes((FOLDER / f"{name}.altmas").read_bytes())
    return altmas.Session.open(path)


def test_there_are_files_of_several_methods():
    assert {"assured", "tradition", "altmas", "callables"} <= set(FILES)


def with_marks(names: Iterable[str]) -> list[Any]:
    """The names as parameters; a network's session opens only with the extra."""
    return [pytest.param(name, marks=[pytest.mark.paper] if name.startswith("altmas") else []) for name in names]


@pytest.mark.parametrize("name", with_marks(FILES))
def test_an_earlier_file_replays_to_the_same_draws_and_labels(name, tmp_path):
    then = json.loads((FOLDER / f"{name}.json").read_text())
    with opened(name, tmp_path) as session:
        history = session.history
        assert history.drawn.tolist() == then["drawn"]
        assert {str(row): code for row, code in history.labels.items()} == then["labels"]
        assert {str(row): why for row, why in history.skipped.items()} == then["skipped"]
        assert session.status().digest == then["digest"]
        assert [one.metric for one in session.estimate()] == [one["metric"] for one in then["estimates"]]


@pytest.mark.parametrize("name", with_marks(SAME_ESTIMATES))
def test_an_earlier_file_gives_the_same_estimates(name, tmp_path):
    then = json.loads((FOLDER / f"{name}.json").read_text())["estimates"]
    with opened(name, tmp_path) as session:
        now = session.estimate().to_dict()["estimates"]
    for one, earlier in zip(now, then, strict=True):
        for key, wider in (("value", 0.0), ("low", -0.05), ("high", 0.05)):
            if one[key] is earlier[key] is None or (name == "callables" and key != "value"):
                continue  # the bounds of scikit-learn's functions are known now: their intervals stay inside
            apart = one[key] - earlier[key]
            allowed = sorted((0.0, wider if name in WIDER else 0.0))
            within = RETRAINED.get(name, 1e-6)
            assert allowed[0] - within <= apart <= allowed[1] + within, (one["metric"], key)


def test_an_earlier_session_goes_on(tmp_path):
    with opened("assured", tmp_path) as session:
        before = len(session.history.labels)
        for query in session.ask(5):
            session.tell(query.id, "cat")
        assert len(session.history.labels) > before
