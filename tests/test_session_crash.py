"""What is left when a labelling process is killed, and when two of them write at once."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import altmas
import forks
from benchmarks.operations.kill9 import kills
from session_world import create, pool, truth


def test_a_process_killed_at_random_moments_loses_nothing_acknowledged_and_leaves_nothing_half(tmp_path):
    """At least 12 kills, and more on a machine so busy that some kind of work has acknowledged nothing much yet."""
    found = []
    with closing(kills(tmp_path, 120, longest=0.25)) as left:
        for kill in left:
            found.append(kill)
            if len(found) >= 12 and all(kill.acknowledged > 2 for kill in found[-3:]):
                break
    assert [kill for kill in found if not kill.harmless] == []
    assert {kill.work: kill.acknowledged > 2 for kill in found[-3:]} == {"tell": True, "import": True, "rule": True}


EXTENDER = """
import sys, altmas, numpy as np
session = altmas.Session.open(sys.argv[1])
print("ready", flush=True)
for wave in range(1, 1000):
    n = 400
    items = altmas.Pool(
        np.zeros((n, 4)), ["cat"] * n, scores=np.tile([1.0, 0.0, 0.0], (n, 1)), classes=["cat", "dog", "owl"],
        ids=[f"{wave}-{row}" for row in range(n)], slices={"site": ["north"] * n}, items=["text " * 50] * n,
    )
    session.extend(items, wave=f"w{wave}")
    print(wave, flush=True)
"""


def test_a_process_killed_while_it_adds_items_leaves_whole_waves(tmp_path):
    for kill in range(3):
        path = tmp_path / f"{kill}.altmas"
        create(path).close()
        process = subprocess.Popen(
            [forks.command("python"), "-c", EXTENDER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.02 + 0.13 * kill)
        process.kill()
        acknowledged = len(process.communicate(timeout=60)[0].split())
        with altmas.Session.open(path) as session:
            waves = len(session.changes())
            assert acknowledged <= waves <= acknowledged + 1
            assert len(session.pool) == 60 + 400 * waves and session.integrity() == "ok"
            names = "SELECT count(*) FROM parts WHERE name LIKE 'wave %: about'"
            assert session._journal.store._connection.execute(names).fetchone()[0] == waves
            session.tell(session.ask(1)[0].id, "cat")


TELLER = """
import sys, altmas
path, name, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = altmas.Session.open(path)
print("ready", flush=True)
sys.stdin.readline()
for row in range(first, first + 30):
    session.tell(f"p{row}", "cat", annotator=name)
    print(row, flush=True)
"""


def teller(path: Path, name: str, first: int) -> subprocess.Popen[str]:
    command = [forks.command("python"), "-c", TELLER, str(path), name, str(first)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_processes_tell_at_once(tmp_path):
    path = tmp_path / "one.altmas"
    create(path).close()
    both = [teller(path, "ana", 0), teller(path, "bob", 15)]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    said = []
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        out, _ = process.communicate(timeout=60)
        said.append([int(line) for line in out.split()])
    assert said == [list(range(30)), list(range(15, 45))]
    with altmas.Session.open(path) as session:
        assert session.integrity() == "ok"
        assert sorted(session.history.labels) == list(range(45))
        assert session.status().revisions == 0
        assert session.votes("p20") == {"ana": "cat", "bob": "cat"}


ASKER = """
import sys, altmas
path, name = sys.argv[1], sys.argv[2]
session = altmas.Session.open(path)
print("ready", flush=True)
sys.stdin.readline()
while queries := session.ask(3, annotator=name):
    for query in queries:
        session.tell(query.id, "cat", annotator=name)
        print(query.index, flush=True)
"""


def test_two_processes_that_ask_at_once_never_get_the_same_point(tmp_path):
    path = tmp_path / "one.altmas"
    create(path, budget=40).close()
    both = [
        subprocess.Popen(
            [forks.command("python"), "-c", ASKER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ana", "bob")
    ]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    rows = [int(line) for process in both for line in process.communicate(timeout=60)[0].split()]
    assert len(rows) == len(set(rows)) == 40
    with altmas.Session.open(path) as session:
        assert sorted(session.history.labels) == sorted(rows)
        drawn = session.history.drawn.tolist()
        assert len(drawn) == len(set(drawn)) == 40


REPLAYER = """
import sys, altmas
for path in sys.argv[1:]:
    session = altmas.Session.open(path)
    for event in session.events():
        past = session.at(seq=event["body"]["seen"]) if "seen" in event["body"] else None
        if event["kind"] == "estimate":
            assert past.estimate().to_dict()["estimates"] == event["body"]["estimates"], (path, event["seq"])
            print("estimate")
        if event["kind"] == "draw":
            again = session.method.propose(session.task, past.history, len(event["body"]["points"]))
            assert again.indices.tolist() == event["arrays"]["indices"], (path, event["seq"])
            print("draw")
"""


@pytest.mark.parametrize("methods", [("assured", "tradition"), pytest.param(("altmas",), marks=pytest.mark.paper)])
def test_another_process_reproduces_every_draw_and_estimate_bit_for_bit(methods, tmp_path):
    paths = [tmp_path / f"{method}.altmas" for method in methods]
    for path in paths:
        with create(path, method=path.stem, metrics=["accuracy", "macro_f1"], budget=16, pool=pool(100)) as session:
            while queries := session.ask(8):
                session.tell({query.id: truth(query) for query in queries})
                session.estimate()
    command = [forks.command("python"), "-c", REPLAYER, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split().count("estimate") == done.stdout.split().count("draw") == 2 * len(methods)


EXTENDING = """
import sys
import numpy as np
import altmas

session = altmas.Session.open(sys.argv[1])
while True:
    wave = len(session.pool) // 50
    ids = [f"w{wave}-{row}" for row in range(50)]
    more = altmas.Pool(np.full((50, 4), wave, np.float32), ["cat", "dog"] * 25, classes=["cat", "dog"], ids=ids)
    session.extend(more, wave=str(wave), first_wave="0" if wave == 1 else None, budget=10 + wave)
    print(len(session.pool), flush=True)
"""


def test_an_extension_that_is_killed_is_there_whole_or_not_at_all(tmp_path):
    """Killed at random moments: what was acknowledged is there, nothing is half, and labels are as they were."""
    path, ids = tmp_path / "grows.altmas", [f"w0-{row}" for row in range(50)]
    first = altmas.Pool(np.zeros((50, 4), np.float32), ["cat", "dog"] * 25, classes=["cat", "dog"], ids=ids)
    with altmas.Session.create(path, first, method="assured", budget=10) as session:
        for query in session.ask(10):
            session.tell(query.id, "cat")
        labels = dict(session.history.labels)
    rng, acknowledged = np.random.default_rng(0), 50
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", EXTENDING, path], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        acknowledged = max(acknowledged, int(child.stdout.readline()))
        time.sleep(float(rng.uniform(0.0, 0.15)))
        child.kill()
        acknowledged = max([acknowledged, *map(int, child.communicate()[0].split())])
        with altmas.Session.open(path) as session:
            assert len(session.pool) in (acknowledged, acknowledged + 50) and len(session.pool) % 50 == 0
            assert len(session.history.domains) == len(session.pool) // 50
            assert dict(session.history.labels) == labels
        acknowledged = len(session.pool)
