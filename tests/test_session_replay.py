"""Whatever is done to a session, the live state is the replay of the log and the SQL views say the same."""

import sqlite3
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import altmas
from altmas.session.log import State
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

    def teardown(self) -> None:
        self.session.close()
        self.folder.cleanup()

    @rule(row=ROWS, label=CLASSES, name=PEOPLE)
    def tell(self, row, label, name):
        self.session.tell(f"p{row}", label, name)
        self.said.append((row, name, "label", label))

    @rule(row=ROWS, name=PEOPLE, kind=st.sampled_from(["skip", "unsure"]))
    def skip(self, row, name, kind):
        self.session.skip(f"p{row}", "why", name, kind=kind)
        self.said.append((row, name, kind, None))

    @rule(row=ROWS, label=CLASSES)
    def adjudicate(self, row, label):
        if self.session.votes(f"p{row}"):
            self.session.adjudicate(f"p{row}", label, "eve")
            self.said.append((row, "eve", "adjudication", label))

    @rule(name=PEOPLE)
    def undo(self, name):
        undone = self.session.undo(name)
        mine = [one for one in self.said if name is None or one[1] == name]
        if not mine:
            assert undone is None
            return
        last = max(place for place, one in enumerate(self.said) if name is None or one[1] == name)
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
        connection = sqlite3.connect(self.path)
        try:
            told = {int(point[1:]): label for point, label in connection.execute("SELECT point, label FROM labels")}
        finally:
            connection.close()
        assert told == self.expected()[0]


Replay.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestReplay = Replay.TestCase
