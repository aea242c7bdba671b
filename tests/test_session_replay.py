"""Whatever is done to a session, all that read its log say the same.

The replay in Python is compared with a plain list of what was said; the SQL views, the exported labels and events, the
session as it stood earlier and the status are compared with both.
"""

import json
import math
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import altmas
from altmas.session.log import VOTES, State
from altmas.session.store import Event
from session_world import NAMES, create, pool

POOL = pool(12)
PEOPLE = st.sampled_from([None, "ana", "bob"])
ROWS = st.integers(0, 11)
CLASSES = st.sampled_from(NAMES.tolist())


class Replay(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "one.altmas"
        self.session = create(self.path, pool=POOL, budget=8, double_share=0.5)
        self.said: list[tuple[int, str | None, str, str | None]] = []  # standing votes and rulings, in order
        self.undone = self.revisions = 0
        self.past: dict[int, tuple[dict[int, int], dict[int, str]]] = {}  # {seq: (labels, skipped)} along the way

    def teardown(self) -> None:
        self.session.close()
        self.folder.cleanup()

    @rule(row=ROWS, label=CLASSES, name=PEOPLE)
    def tell(self, row, label, name):
        self.session.tell(f"p{row}", label, name)
        self.say(row, name, "label", label)

    def say(self, row, name, kind, label):
        self.revisions += any(said[:2] == (row, name) and said[2] in VOTES for said in self.said) and kind in VOTES
        self.said.append((row, name, kind, label))

    @rule(row=ROWS, name=PEOPLE, kind=st.sampled_from(["skip", "unsure"]))
    def skip(self, row, name, kind):
        self.session.skip(f"p{row}", "why", name, kind=kind)
        self.say(row, name, kind, None)

    @rule(row=ROWS, label=CLASSES, name=st.sampled_from(["eve", "ana"]))
    def adjudicate(self, row, label, name):
        if self.session.votes(f"p{row}"):
            self.session.adjudicate(f"p{row}", label, name)
            self.say(row, name, "adjudication", label)

    @rule(name=PEOPLE)
    def undo(self, name):
        undone = self.session.undo(name)
        mine = [one for one in self.said if name is None or one[1] == name]
        if not mine:
            assert undone is None
            return
        last = max(place for place, one in enumerate(self.said) if name is None or one[1] == name)
        self.undone += 1
        row, annotator, kind, label = self.said.pop(last)
        assert (undone.index, undone.annotator, undone.kind, undone.label) == (row, annotator, kind, label)

    @rule(n=st.integers(1, 4), name=PEOPLE)
    def ask(self, n, name):
        asked = self.session.ask(n, name)
        assert asked == self.session.ask(n, name)
        if name is None:
            assert not {query.index for query in asked} & (set(self.session.history.labels))

    @rule(name=st.sampled_from(["ana", "bob"]))
    def release(self, name):
        self.session.release(name)

    @rule()
    def estimate(self):
        self.session.estimate()

    @rule()
    def reopen(self):
        self.session.close()
        self.session = altmas.Session.open(self.path)

    def expected(self) -> tuple[dict[int, str], set[int]]:
        """Labels and skipped rows by the definition: last ruling, else first voter for a class, as last revised."""
        labels, skipped = {}, set()
        for row in {one[0] for one in self.said}:
            rulings = [label for at, _, kind, label in self.said if at == row and kind == "adjudication"]
            votes: dict[str | None, str | None] = {}
            for at, name, kind, label in self.said:
                if at == row and kind != "adjudication":
                    votes[name] = label
            chosen = [*rulings[-1:], *(label for label in votes.values() if label is not None)]
            if chosen:
                labels[row] = chosen[0]
            else:
                skipped.add(row)
        return labels, skipped

    @invariant()
    def labels_are_what_was_said(self):
        labels, skipped = self.expected()
        history = self.session.history
        assert {row: POOL.classes[code] for row, code in history.labels.items()} == labels
        assert set(history.skipped) == skipped

    @invariant()
    def live_state_is_the_replay(self):
        events = self.session._journal.store.events()
        replayed, live = State(POOL), self.session._journal.read()
        replayed.feed(events)
        assert replayed.history().key == live.history().key
        assert replayed.history().skipped == live.history().skipped
        assert replayed.outstanding() == live.outstanding() == live.history().outstanding.tolist()
        assert list(replayed.standing) == list(live.standing)
        assert (replayed.seq, replayed.digest) == (live.seq, live.digest)
        assert len(set(live.history().drawn.tolist())) == len(live.history().drawn)

    @invariant()
    def sql_says_the_same(self):
        with closing(sqlite3.connect(self.path)) as connection:
            labels = connection.execute("SELECT point, label, seq FROM labels").fetchall()
            votes = connection.execute("SELECT point, annotator, kind, label, seq FROM votes").fetchall()
        assert {int(point[1:]): label for point, label, _ in labels} == self.expected()[0]
        assert len({point for point, *_ in labels}) == len(labels)
        state = self.session._journal.read()
        by_point: dict[int, list[tuple[object, ...]]] = {}
        for point, annotator, kind, label, seq in votes:
            by_point.setdefault(int(point[1:]), []).append((annotator, kind, label, seq))
        assert by_point == {
            row: [
                (vote.annotator, vote.kind, None if vote.code is None else POOL.classes[vote.code], vote.seq)
                for vote in state.votes(row)
            ]
            for row in range(len(POOL))
            if state.votes(row)
        }
        assert {seq for *_, seq in labels} <= set(state.standing)

    @invariant()
    def status_counts_what_was_said(self):
        labels, skipped = self.expected()
        drawn = set(self.session.history.drawn.tolist())
        unsure = {row for row in skipped if {said[2] for said in self.last_votes(row)} == {"unsure"}}
        status = self.session.status()
        assert (status.labels, status.skipped, status.unsure) == (len(labels), len(skipped - unsure), len(unsure))
        assert (status.undone, status.revisions) == (self.undone, self.revisions)
        assert status.volunteered == len(set(labels) - drawn)
        assert status.outstanding == len(drawn - set(labels) - skipped)

    def last_votes(self, row: int) -> list[tuple[int, str | None, str, str | None]]:
        """The last vote of each annotator on a point."""
        votes = {said[1]: said for said in self.said if said[0] == row and said[2] in VOTES}
        return list(votes.values())

    @rule()
    def remember(self):
        history = self.session.history
        self.past[self.session.status().seq] = dict(history.labels), dict(history.skipped)

    @rule()
    def look_back(self):
        for seq, (labels, skipped) in self.past.items():
            history = self.session.at(seq=seq).history
            assert (history.labels, history.skipped) == (labels, skipped)

    @precondition(lambda self: self.said)
    @rule(suffix=st.sampled_from(["csv", "jsonl", "parquet"]))
    def exchange(self, suffix):
        """The exported labels, imported into a new session, make the same labels, votes and skips."""
        file = self.path.with_name(f"labels.{suffix}")
        exported = self.session.export_labels(file, force=True)
        other = create(None, pool=POOL, budget=8)
        imported = other.import_labels(file)
        assert exported.count == imported.labels + imported.skips + imported.rulings
        mine, theirs = self.session.history, other.history
        assert mine.labels == theirs.labels and mine.skipped == theirs.skipped
        for row in range(len(POOL)):
            assert list(self.session.votes(f"p{row}").items()) == list(other.votes(f"p{row}").items())
        assert [asdict(one) for one in self.session.disagreements()] == [asdict(one) for one in other.disagreements()]
        assert same(asdict(self.session.agreement()), asdict(other.agreement()))
        again = self.session.import_labels(file)
        assert (again.labels, again.revisions, again.skips, again.rulings) == (0, 0, 0, 0)
        assert other.import_labels(file).unchanged == exported.count

    @rule()
    def exported_events_are_the_log(self):
        file = self.path.with_name("events.jsonl")
        self.session.export_events(file, force=True)
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        state = State(POOL)
        state.feed(Event(**{name: line[name] for name in COLUMNS}) for line in lines if line["kind"] != "draw")
        assert state.labels == self.session.history.labels and state.skipped == self.session.history.skipped


COLUMNS = ("kind", "annotator", "point", "label", "seconds", "refers", "body", "seq", "at", "hash")


def same(first, second):
    """Whether two dictionaries of numbers are equal, nan equal to nan."""
    return first.keys() == second.keys() and all(
        first[key] == second[key] or (math.isnan(first[key]) and math.isnan(second[key])) for key in first
    )


Replay.TestCase.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
TestReplay = Replay.TestCase


def test_a_skip_is_a_vote_and_keeps_its_place_when_it_becomes_a_class(tmp_path):
    session = create(tmp_path / "one.altmas", pool=POOL)
    session.skip("p0", "blurred", "ana")
    session.tell("p0", str(NAMES[1]), "bob")
    session.tell("p0", str(NAMES[2]), "ana")
    assert POOL.classes[session.history.labels[0]] == NAMES[2]
    with closing(sqlite3.connect(tmp_path / "one.altmas")) as connection:
        assert connection.execute("SELECT label, annotator FROM labels").fetchall() == [(str(NAMES[2]), "ana")]
