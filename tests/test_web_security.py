"""Who gets what from the page's server: every refusal is a claim that these tests would break."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import altmas
from altmas.errors import PlanError
from altmas.items.images import NoImage, image_bytes, png
from altmas.web import access, serving
from altmas.web.access import POLICY, Access
from altmas.web.static_files import STATIC
from session_world import create, pool
from web_world import BASE, OWNER, Page, paged, served

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture
def page() -> Iterator[Page]:
    with paged(create(budget=40)) as made:
        yield made


@pytest.fixture
def closed() -> Iterator[Page]:
    """A page that needs a token, as any that listens beyond loopback does."""
    with paged(create(budget=40), Access(owner=OWNER, token=TOKEN)) as made:
        yield made


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize("path", ["/", "/static/label.js", "/api/setup", "/api/mine", "/overview", "/nowhere"])
def test_every_answer_is_hardened(page: Page, path: str) -> None:
    headers = page.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "default-src 'none'" in POLICY and "'unsafe" not in POLICY and "http" not in POLICY
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


# ---------------------------------------------------------------- host: DNS rebinding


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8377", "127.0.0.1.evil.example", "10.0.0.8"])
def test_a_foreign_host_name_is_refused(page: Page, host: str) -> None:
    for answer in (
        page.get("/", headers={"host": host}),
        page.post("/api/next", {"annotator": "x"}, headers={"host": host}),
    ):
        assert answer.status_code == 421
    assert "x" not in {one.name for one in page.session.status().annotators}


MALFORMED = ["", "a@b", "[::1", "::1]", "[x]:1", "a b", "127.0.0.1:port", "127.0.0.1:99999", "127.0.0.1/", "a,b", "é"]


@pytest.mark.parametrize("host", MALFORMED)
def test_a_malformed_host_or_origin_is_told_so(page: Page, host: str) -> None:
    given = host.encode("latin-1")
    for answer in (
        page.get("/", headers={b"host": given}),
        page.get("/", headers=[(b"host", b"127.0.0.1"), (b"host", given)]),
        page.post("/api/next", {"annotator": "x"}, headers={b"origin": b"http://" + given}),
        page.post("/api/next", {"annotator": "x"}, headers={b"origin": given or b"x"}),
    ):
        assert answer.status_code == 400 and "nothing was done" in answer.json()["error"]
    assert page.session.status().annotators == ()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9000", "[::1]:8377", "LOCALHOST"])
def test_this_machine_has_several_names_and_tunnels_other_ports(page: Page, host: str) -> None:
    assert page.get("/", headers={"host": host}).status_code == 200


def test_a_server_on_every_address_takes_addresses_and_its_own_names_only() -> None:
    access = serving._access(create(), "0.0.0.0", None, None, ["lab.example"])
    assert access.host_is_ours("192.168.1.7:8377") and access.host_is_ours("lab.example")
    assert not access.host_is_ours("evil.example")
    alone = serving._access(create(), "192.168.1.7", None, None, [])
    assert alone.host_is_ours("192.168.1.7") and not alone.host_is_ours("192.168.1.8")


# ---------------------------------------------------------------- origin: CSRF


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_write_from_another_origin_records_nothing(page: Page, headers: dict[str, str]) -> None:
    handle = page.handles()[0]
    before = page.session.status().seq
    for path, body in (
        ("/api/vote", {"annotator": "ana", "item": handle, "label": 0}),
        ("/api/undo", {"annotator": "ana", "seq": 1}),
        ("/api/note", {"annotator": "ana", "item": handle, "text": "x"}),
        ("/api/reveal", {"annotator": "ana", "item": handle}),
        ("/api/next", {"annotator": "eve"}),
        ("/api/owner/rule", {"item": handle, "label": 0}),
    ):
        answer = page.post(path, body, headers=headers)
        assert answer.status_code == 403 and "another site" in answer.json()["error"]
    assert page.session.status().seq == before


def test_a_write_from_the_page_itself_is_taken(page: Page) -> None:
    headers = {"origin": BASE, "sec-fetch-site": "same-origin"}
    answer = page.post("/api/vote", {"annotator": "ana", "item": page.handles()[0], "label": 0}, headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_could_send_is_refused(page: Page, kind: str) -> None:
    body = f'{{"annotator": "ana", "item": "{page.handles()[0]}", "label": 0}}'
    answer = page.request("POST", "/api/vote", content=body, headers={"content-type": kind})
    assert answer.status_code == 415
    assert page.session.status().labels == 0


def test_reading_never_writes_and_other_methods_are_refused(page: Page) -> None:
    before = page.session.status().seq
    for path in ("/api/vote", "/api/undo", "/api/next", "/api/note", "/api/reveal"):
        assert page.get(path).status_code == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert page.request(method, "/api/vote").status_code == 405
    assert page.session.status().seq == before


def test_another_site_cannot_embed_an_answer_but_may_link_to_the_page(page: Page) -> None:
    handle = page.handles()[0]
    embedded = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    for path in ("/", "/api/setup", f"/api/image/{handle}/0", "/static/label.js"):
        assert page.get(path, headers=embedded).status_code == 403
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert page.get("/", headers=followed).status_code == 200
    assert page.get("/api/setup", headers=followed).status_code == 403


def test_a_body_that_is_too_large_is_refused(page: Page) -> None:
    answer = page.post("/api/note", {"annotator": "ana", "item": page.handles()[0], "text": "x" * 300_000})
    assert answer.status_code == 413


# ---------------------------------------------------------------- token


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", f"?token={TOKEN}x", f"?token={TOKEN[:-1]}", f"?key={TOKEN}"]
)
def test_without_the_token_nothing_is_given(closed: Page, query: str) -> None:
    for path in ("/", "/static/label.js", "/api/setup", "/overview", "/api/owner/overview"):
        answer = closed.get(path + query)
        assert answer.status_code == 401
        assert "cat" not in answer.text and "set-cookie" not in answer.headers
    assert closed.post(f"/api/next{query}", {"annotator": "eve"}).status_code == 401
    assert closed.session.status().annotators == ()


def test_the_token_moves_into_a_cookie_and_out_of_the_address(closed: Page) -> None:
    answer = closed.get(f"/?token={TOKEN}&annotator=ana")
    assert answer.status_code == 303 and answer.headers["location"] == "/?annotator=ana"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
    assert closed.get("/").status_code == 200
    assert closed.post("/api/next", {"annotator": "ana"}).status_code == 200


def test_a_made_up_cookie_is_refused(closed: Page) -> None:
    closed.cookies.set("altmas-token", "0" * 64)
    assert closed.get("/").status_code == 401
    closed.cookies = httpx.Cookies({"altmas-token": TOKEN})
    assert closed.get("/").status_code == 401


def test_the_redirect_never_leaves_the_server(closed: Page) -> None:
    answer = closed.get(f"{BASE}//evil.example/?token={TOKEN}")
    assert answer.status_code == 303 and answer.headers["location"] == "/evil.example/"


def test_a_link_followed_from_another_site_comes_back_with_its_cookie(closed: Page) -> None:
    """Strict cookies are kept back on such a visit, so the page loads itself once more before it refuses."""
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    first = closed.get("/", headers=visit)
    assert first.status_code == 401 and 'http-equiv="refresh"' in first.text
    second = closed.get("/", headers={**visit, "sec-fetch-site": "same-origin"})
    assert second.status_code == 401 and "refresh" not in second.text


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, closed: Page) -> None:
    compared = []
    real = access.hmac.compare_digest
    monkeypatch.setattr(access.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    closed.get("/?token=wrong")
    assert (b"wrong", TOKEN.encode()) in compared


def test_whatever_others_can_reach_has_a_token() -> None:
    session = create()
    assert serving._access(session, "127.0.0.1", None, None, []).token is None
    assert serving._access(session, "127.0.0.1", None, None, ["localhost"]).token is None
    made = {serving._access(session, host, None, None, []).token for host in ("0.0.0.0", "::", "192.168.1.7", "lab")}
    made |= {serving._access(session, "127.0.0.1", None, None, [name]).token for name in ("lab", "https://lab.example")}
    assert len(made) == 6 and all(token is not None and len(token) >= 32 for token in made)
    assert serving._access(session, "0.0.0.0", TOKEN, None, []).token == TOKEN


@pytest.mark.parametrize(
    "token", ["", " ", "short", "fifteen-letters", "a" * 40, "ababababababababab", "sixteen letters!", "x\n" * 20]
)
def test_a_token_or_key_that_can_be_guessed_is_refused_and_not_repeated(token: str) -> None:
    for given in ({"token": token, "owner_key": None}, {"token": None, "owner_key": token}):
        for host in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(PlanError, match="nothing was started") as refusal:
                serving._access(create(), host, allowed_hosts=[], **given)
            assert len(token) < 5 or token not in str(refusal.value)


@pytest.mark.parametrize("name", ["", "http://", "ftp://lab.example", "lab.example/path", "a b", "me@lab"])
def test_a_further_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="not a name"):
        serving._access(create(), "127.0.0.1", None, None, [name])


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "Via", "X-Real-IP"])
def test_an_open_page_is_not_answered_through_a_proxy(page: Page, closed: Page, header: str) -> None:
    """A proxy makes it reachable for others, who would need no token."""
    for answer in (
        page.get("/", headers={header: "x"}),
        page.post("/api/next", {"annotator": "x"}, headers={header: "x"}),
    ):
        assert answer.status_code == 403 and "--allowed-host" in answer.json()["error"]
    assert closed.get(f"/?token={TOKEN}", headers={header: "x"}).status_code == 303


def test_a_real_server_prints_the_token_once_and_logs_no_request(tmp_path: Path) -> None:
    create(tmp_path / "s.altmas", budget=30).close()
    with served(tmp_path / "s.altmas", token=TOKEN) as server:
        with httpx.Client(base_url=server.base, follow_redirects=True) as client:
            assert client.get("/").status_code == 401
            assert client.get("/", params={"token": "wrong-token"}).status_code == 401
            assert client.get("/", params={"token": TOKEN}).status_code == 200
            assert client.post("/api/next", json={"annotator": "ana"}).status_code == 200
        printed = server.stop()
    names = ["labelling page", "owner's overview"]
    assert [line[:16].strip() for line in printed.splitlines() if TOKEN in line] == names
    assert "wrong-token" not in printed and "GET" not in printed and "/api/next" not in printed


def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    with serving._listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PlanError, match=f"cannot listen on 127.0.0.1, port {port}"):
            serving._listen("127.0.0.1", port)
    with pytest.raises(PlanError, match="cannot listen"):
        serving._listen("127.0.0.1", 70_000)


# ---------------------------------------------------------------- owner


def test_estimates_and_rulings_need_the_owners_key(page: Page) -> None:
    page.vote(page.handles()[0], 0)
    for path in ("/overview", "/adjudicate", "/api/owner/overview", "/api/owner/queue"):
        answer = page.get(path)
        assert answer.status_code == 403 and "accuracy" not in answer.text
    assert page.get("/overview?key=wrong").status_code == 403
    assert page.post("/api/owner/rule", {"item": "0" * 20, "label": 0}).status_code == 403
    assert page.get(f"/overview?key={OWNER}").status_code == 303
    assert page.get("/overview").status_code == page.get("/api/owner/overview").status_code == 200


def test_the_annotators_token_is_not_the_owners_key(closed: Page) -> None:
    closed.get(f"/?token={TOKEN}")
    assert closed.get("/api/setup").status_code == 200
    assert closed.get("/overview").status_code == 403


def test_an_application_without_an_owner_has_no_way_in() -> None:
    with paged(create(), Access(owner="")) as page:
        page.cookies.set("altmas-key", access._mark("", "key"))
        assert page.get("/overview").status_code == page.get("/overview?key=").status_code == 403


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/session.py",
        "/static//etc/passwd",
        "/static/....//app.py",
        "/static/..\\app.py",
        "/api/image/../../../etc/passwd",
        "/api/image/..%2f..%2fetc%2fpasswd/0",
        "/api/image/" + "0" * 20 + "/0",
    ],
)
def test_an_address_cannot_climb_out(page: Page, path: str) -> None:
    answer = page.get(path)
    assert answer.status_code in (404, 405, 422)
    assert "root:" not in answer.text and "import" not in answer.text


def test_image_names_in_a_table_cannot_climb_out_of_its_folder(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    inside.mkdir()
    (tmp_path / "secret.png").write_bytes(png(np.zeros((2, 2), np.uint8)))
    for name in ("../secret.png", "x/../../secret.png", "..\\..\\secret.png", "../secret.png\0.png"):
        with pytest.raises(NoImage) as refusal:
            image_bytes(name, inside)
        assert "secret" not in str(refusal.value)


def test_files_that_are_no_images_are_never_sent_whatever_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "keys.png").write_text("-----BEGIN PRIVATE KEY-----")
    (tmp_path / "page.jpg").write_text("<html><script>alert(1)</script>")
    items = ["keys.png", "page.jpg", "/etc/passwd", "../../../../etc/passwd", "../../../../etc/passwd.png"]
    rows = "".join(f"{'ab'[n % 2]},{item}\n" for n, item in enumerate(items))
    (tmp_path / "t.csv").write_text("guess,picture\n" + rows)
    given = altmas.Pool.from_table(tmp_path / "t.csv", prediction="guess", show="picture")
    with paged(create(pool=given, budget=5)) as page:
        items_shown = page.items("ana", "ben")
        assert len(items_shown) == 5
        for item in items_shown:
            answer = page.get(f"/api/image/{item['handle']}/0")
            assert answer.status_code == 404 and answer.headers["content-type"] == "application/json"
            assert "root:" not in answer.text and "PRIVATE" not in answer.text


def test_only_items_that_somebody_was_asked_for_can_be_fetched() -> None:
    given = pool(items=np.zeros((60, 3, 3), np.uint8))
    with paged(create(pool=given, budget=40)) as page:
        drawn = set(page.session.history.drawn.tolist())
        undrawn = next(row for row in range(60) if row not in drawn)
        key = page.app.state.desk.handles._key
        stranger = type(page.app.state.desk.handles)(key).of(undrawn)
        assert page.get(f"/api/image/{page.handles()[0]}/0").status_code == 200
        assert page.get(f"/api/image/{stranger}/0").status_code == 404
        assert page.vote(stranger, 0).status_code == 404


# ---------------------------------------------------------------- what users wrote stays text


def test_html_in_texts_and_names_arrives_as_data(page: Page) -> None:
    nasty = '<img src=x onerror="alert(1)"></script><script>alert(2)</script>'
    given = altmas.Pool(None, [nasty, "b"] * 20, items=[nasty] * 40)
    with paged(create(pool=given, budget=20), instructions=nasty, title=nasty) as made:
        for answer in (made.get("/api/setup"), made.post("/api/next", {"annotator": nasty[:40]})):
            assert answer.headers["content-type"] == "application/json"
            assert nasty in str(answer.json())
        for path in ("/", "/overview"):
            assert "onerror" not in made.get(path).text


def test_the_pages_scripts_have_no_way_to_turn_text_into_html() -> None:
    scripts = {file.name: file.read_text() for file in STATIC.glob("*.js")}
    assert {"label.js", "overview.js", "adjudicate.js"} <= scripts.keys()
    for name, script in scripts.items():
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|srcdoc|setHTML", script
        )
        assert not found, (name, found)


def test_nothing_in_the_package_points_elsewhere() -> None:
    for file in STATIC.iterdir():
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", file.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
        if file.suffix == ".html":
            assert " style=" not in file.read_text() and "onclick" not in file.read_text()
            assert not re.search(r"<script(?![^>]* src=)", file.read_text())
