"""Annotators with links of their own: nobody votes, takes back or reads as somebody else."""

import csv
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import altmas
from altmas.errors import AltmasError, FileError, PlanError
from altmas.web import serving
from altmas.web.access import Access
from altmas.web.people import people_of
from altmas.web.static_files import STATIC
from session_world import create
from web_world import OWNER, Page, paged, served

PEOPLE = {"Ana": "secret-of-ana-0123456789", "Ben": "secret-of-ben-9876543210"}


@pytest.fixture
def page() -> Iterator[Page]:
    with paged(create(budget=40), Access(owner=OWNER, people=PEOPLE)) as made:
        yield made


def enter(page: Page, name: str) -> Page:
    """The same page in the browser of one person."""
    page.cookies = httpx.Cookies()
    assert page.get(f"/?person={PEOPLE[name]}").status_code == 303
    return page


def events(session: altmas.Session, *kinds: str) -> list[dict[str, Any]]:
    return [event for event in session.events() if event["kind"] in kinds]


# ---------------------------------------------------------------- who comes in


@pytest.mark.parametrize(
    "query", ["", "?person=", "?person=wrong", f"?person={OWNER}", f"?key={PEOPLE['Ana']}", "?token=x"]
)
def test_without_a_link_nothing_is_given(page: Page, query: str) -> None:
    for path in ("/", "/static/label.js", "/api/setup", "/api/mine", "/overview", "/api/owner/overview"):
        answer = page.get(path + query)
        assert answer.status_code in (401, 403) and "set-cookie" not in answer.headers
        assert "cat" not in answer.text
    assert page.post(f"/api/next{query}", {"annotator": "Ana"}).status_code == 401
    assert page.session.status().annotators == ()


def test_the_secret_moves_into_a_cookie_that_scripts_and_other_sites_cannot_use(page: Page) -> None:
    answer = page.get(f"/?person={PEOPLE['Ana']}&x=1")
    assert answer.status_code == 303 and answer.headers["location"] == "/?x=1"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and PEOPLE["Ana"] not in cookie
    assert page.get("/api/setup").json()["person"] == "Ana"
    assert enter(page, "Ben").get("/api/setup").json()["person"] == "Ben"


def test_a_cookie_that_was_made_up_is_nobody(page: Page) -> None:
    for value in ("Ana", PEOPLE["Ana"], "0" * 64, ""):
        page.cookies = httpx.Cookies({"altmas-person": value})
        assert page.get("/api/setup").status_code == 401
    enter(page, "Ana")
    page.cookies = httpx.Cookies({"altmas-key": page.cookies["altmas-person"]})
    assert page.get("/overview").status_code == 403


# ---------------------------------------------------------------- who says what


def test_nobody_votes_undoes_notes_reveals_or_reads_as_somebody_else(page: Page) -> None:
    enter(page, "Ana")
    handle = page.handles("Ana")[0]
    seq = page.vote(handle, 1, "Ana").json()["seq"]
    enter(page, "Ben")
    mine = page.handles("Ben")[0]
    before = page.session.status().seq
    for path, body in (
        ("/api/vote", {"item": mine, "label": 0}),
        ("/api/undo", {"seq": seq}),
        ("/api/note", {"item": mine, "text": "x"}),
        ("/api/reveal", {"item": mine}),
        ("/api/next", {}),
    ):
        answer = page.post(path, {"annotator": "Ana", **body})
        assert answer.status_code == 403 and "cannot speak as anybody else" in answer.json()["error"], path
    assert page.get("/api/mine?annotator=Ana").status_code == 403
    assert page.get("/api/mine").json()["votes"] == []
    assert page.post("/api/undo", {"seq": seq}).json()["undone"] is None  # as himself: nothing of his
    assert page.session.status().seq == before
    assert page.session.votes(page.id_of(handle)) == {"Ana": "dog"}


def test_what_a_person_says_is_recorded_under_the_name_in_the_file_as_authenticated(page: Page) -> None:
    enter(page, "Ben")
    first, second = page.post("/api/next", {}).json()["hand"][:2]
    seq = page.post("/api/vote", {"item": first, "label": 2}).json()["seq"]
    page.post("/api/note", {"item": second, "text": "odd"})
    page.post("/api/reveal", {"item": second})
    page.post("/api/undo", {"seq": seq})
    page.post("/api/vote", {"item": first, "kind": "skip", "reason": "dark", "annotator": "Ben"})
    said = events(page.session, "label", "skip", "note", "reveal", "undo")
    assert len(said) == 5 and {event["annotator"] for event in said} == {"Ben"}
    assert all(event["body"]["authenticated"] is True for event in said)


def test_a_name_that_anybody_could_type_is_recorded_as_such() -> None:
    with paged(create(budget=40)) as page:
        assert page.get("/api/setup").json()["person"] is None
        page.vote(page.handles()[0])
        (event,) = events(page.session, "label")
        assert event["body"]["authenticated"] is False
        assert page.post("/api/next", {}).status_code == 422  # and there has to be one


def test_status_counts_votes_by_whether_the_name_was_authenticated() -> None:
    session = create(budget=40)
    with paged(session) as claims:
        claims.vote(claims.handles("Ana")[0], annotator="Ana")
    with paged(session, Access(owner=OWNER, people=PEOPLE)) as page:
        enter(page, "Ana").vote(page.handles("Ana")[0], annotator="Ana")
        enter(page, "Ben").vote(page.handles("Ben")[0], annotator="Ben")
    session.tell(session.ask(1)[0].id, "cat", annotator="script")
    counts = {one.name: (one.authenticated, one.claimed) for one in session.status().annotators if one.labels}
    assert counts == {"Ana": (1, 1), "Ben": (1, 0), "script": (0, 0)}
    report = session.report()
    assert (report.content["people"]["authenticated"], report.content["people"]["claimed"]) == (2, 1)
    html = report.to_html()
    assert "2 votes under an authenticated name" in html and "1 under a name that anybody" in html


# ---------------------------------------------------------------- the owner


def test_the_owner_sees_and_settles_but_is_not_an_annotator(page: Page) -> None:
    enter(page, "Ana")
    handle = page.handles("Ana")[0]
    page.vote(handle, None, "Ana", kind="unsure")
    assert page.get("/overview").status_code == page.get("/adjudicate").status_code == 403
    assert page.post("/api/owner/rule", {"item": handle, "label": 0}).status_code == 403
    page.cookies = httpx.Cookies()
    assert page.get(f"/overview?key={OWNER}").status_code == 303
    for path in ("/overview", "/adjudicate", "/api/owner/queue", "/static/adjudicate.js"):
        assert page.get(path).status_code == 200
    assert page.get("/").status_code == page.get("/api/setup").status_code == 401
    assert page.post("/api/vote", {"annotator": "Ana", "item": handle, "label": 0}).status_code == 401
    assert page.post("/api/owner/rule", {"item": handle, "label": 0}).status_code == 200
    (ruling,) = events(page.session, "adjudication")
    assert ruling["annotator"] == "owner"


@pytest.mark.parametrize("name", ["owner", "Owner", " OWNER "])
def test_nobody_labels_as_the_owner_or_takes_a_ruling_back(name: str) -> None:
    with paged(create(budget=40)) as page:
        handle = page.handles("ana")[0]
        page.vote(handle, None, "ana", kind="unsure")
        page.as_owner().post("/api/owner/rule", {"item": handle, "label": 0})
        (ruling,) = events(page.session, "adjudication")
        answer = page.post("/api/undo", {"annotator": name, "seq": ruling["seq"]})
        assert answer.status_code == 422 and "owner" in answer.json()["error"]
        page.session.adjudicate(page.id_of(handle), "dog", "ana")  # a ruling in somebody's name, from a script
        seq = events(page.session, "adjudication")[-1]["seq"]
        assert page.post("/api/undo", {"annotator": "ana", "seq": seq}).json()["undone"] is None
        assert len(events(page.session, "undo")) == 0


# ---------------------------------------------------------------- names are plain


@pytest.mark.parametrize(
    "name", ["", "  ", "a\nb", "a\tb", "\x1b[31mred", "a\u202eb", "zero\u200bwidth", "x" * 101, "a\x00"]
)
def test_a_name_that_is_not_plain_is_refused(name: str) -> None:
    with paged(create(budget=40)) as page:
        answer = page.post("/api/next", {"annotator": name})
        assert answer.status_code == 422 and answer.json()["error"].endswith("nothing was recorded")
        assert answer.json()["error"].count("nothing was recorded") == 1
        assert page.session.status().annotators == ()
    if name.strip() and name != "zero\u200bwidth":  # files and scripts may use what some scripts need to join letters
        with pytest.raises(PlanError, match="expected .* characters|at most 100"):
            create().tell("p0", "cat", annotator=name)


@pytest.mark.parametrize("name", ["Ana", "Zoë Müller-O'Neill", "李雷", "annotator 7 (night shift)", "ana@lab.example"])
def test_ordinary_names_are_taken(name: str) -> None:
    session = create()
    session.tell("p0", "cat", annotator=f" {name} ")
    assert session.votes("p0") == {name: "cat"}


# ---------------------------------------------------------------- the file


def links(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        return {row["name"]: row["link"] for row in csv.DictReader(file)}


def test_names_alone_get_secrets_that_stay_and_that_nobody_else_can_read(tmp_path: Path) -> None:
    create(tmp_path / "s.altmas", budget=30).close()
    (tmp_path / "people.txt").write_text('# who labels\nAna\n\n"Ben, the second"\n')
    with served(tmp_path / "s.altmas", people=str(tmp_path / "people.txt")) as server:
        written = links(tmp_path / "people.txt.links")
        assert stat.S_IMODE(os.stat(tmp_path / "people.txt.links").st_mode) == 0o600
        assert written.keys() == {"Ana", "Ben, the second"} and len(set(written.values())) == 2
        with httpx.Client(follow_redirects=True) as client:
            assert client.get(f"{server.base}/").status_code == 401
            assert client.get(written["Ben, the second"]).status_code == 200
            assert client.get(f"{server.base}/api/setup").json()["person"] == "Ben, the second"
        printed = server.stop()
    assert all(secret.rpartition("=")[2] not in printed for secret in written.values())
    assert "2 people have links" in printed and "people.txt.links" in printed and "not authenticated" not in printed
    (tmp_path / "people.txt").write_text("Cyd\nAna\n")
    people = people_of(tmp_path / "people.txt")
    assert list(people) == ["Cyd", "Ana"] and written["Ana"].endswith(people["Ana"])  # the same link after a restart


def test_secrets_in_the_file_are_used_and_a_file_that_others_can_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text("name,secret\nAna," + PEOPLE["Ana"] + "\n")
    os.chmod(tmp_path / "people.csv", 0o644)
    assert people_of(tmp_path / "people.csv") == {"Ana": PEOPLE["Ana"]}
    assert "chmod 600" in capsys.readouterr().out
    os.chmod(tmp_path / "people.csv", 0o600)
    people_of(tmp_path / "people.csv")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text, word",
    [
        ("", "empty"),
        ("# nobody\n", "empty"),
        ("Ana\nana\n", "told apart"),
        ("Ana,short\n", "line 1: the secret of 'Ana' can be guessed"),
        ("Ana,aaaaaaaaaaaaaaaaaaaa\n", "can be guessed"),
        ("Ana,0123456789abcdef\nBen,0123456789abcdef\n", "somebody else"),
        ("Ana,0123456789abcdef,x\n", "3 columns"),
        ("Owner\n", "owner's"),
        ("A\x07na\n", "cannot be seen"),
        (",0123456789abcdef\n", "visible character"),
    ],
)
def test_a_file_that_cannot_be_meant_starts_nothing(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "people.txt").write_text(text)
    with pytest.raises(PlanError, match=word) as refusal:
        people_of(tmp_path / "people.txt")
    assert "0123456789abcdef" not in str(refusal.value)
    assert not (tmp_path / "people.txt.links").exists()


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        people_of(tmp_path / "nobody.txt")
    (tmp_path / "people.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="UTF-8"):
        people_of(tmp_path / "people.txt")
    (tmp_path / "people.txt").write_text("Ana\n")
    (tmp_path / "people.txt.links").write_text("what is this\nAna\n")
    with pytest.raises(FileError, match="everybody gets a new link"):
        people_of(tmp_path / "people.txt")


def test_settings_that_contradict_each_other_start_nothing(tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_text("Ana\n")
    for options in ({"token": "0123456789abcdef"}, {"annotator": "Ana"}):
        with pytest.raises(AltmasError, match="leave --.* out; nothing was started"):
            serving.serve(create(), people=tmp_path / "people.txt", open_browser=False, **options)


def test_the_terminal_says_that_open_names_are_not_authenticated(tmp_path: Path) -> None:
    create(tmp_path / "s.altmas", budget=30).close()
    with served(tmp_path / "s.altmas") as server:
        assert "Names are not authenticated" in server.stop()
    assert "names are not authenticated" in (STATIC / "label.js").read_text()
