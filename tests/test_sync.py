"""altmas sync against a server that answers as Label Studio's API documentation says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from altmas import Pool, Session
from altmas.errors import FileError, ServerError
from altmas.interop.sync import LabelStudio, config_of, sync_once
from cli_world import make_session, run

TOKEN = "legacy0123456789"
PERSONAL = "head.body.signature"


class Studio(ThreadingHTTPServer):
    """Projects, tasks and users in memory; every request is checked as the documentation asks for it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.projects, self.requests, self.expired = {}, [], 0
        self.users = [{"id": 1, "email": "ana@example.org"}, {"id": 2, "email": ""}]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def label(self, project, choose, who=1):
        """Somebody answers every task that has no answer."""
        for task in self.projects[project]["tasks"]:
            if not task["annotations"]:
                self.answer(task, choose(task["data"]), who)

    def answer(self, task, label, who=1):
        chosen = [{"type": "choices", "from_name": "label", "to_name": "item", "value": {"choices": [label]}}]
        at = f"2026-01-01T00:00:{len(task['annotations']):02d}Z"
        done = {"completed_by": who, "result": [] if label is None else chosen, "was_cancelled": label is None}
        task["annotations"] = [{**done, "created_at": at, "lead_time": 3.5, "ground_truth": False}]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, value, code=200):
        content = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle_any(self, verb):
        studio, address = self.server, urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        studio.requests.append((verb, address.path))
        if (verb, address.path) == ("POST", "/api/token/refresh/"):
            return self.reply({"access": "short"} if body == {"refresh": PERSONAL} else {}, 200)
        if self.headers["Authorization"] not in (f"Token {TOKEN}", "Bearer short"):
            return self.reply({"detail": "Invalid token."}, 401)
        if self.headers["Authorization"] == "Bearer short" and studio.expired:
            studio.expired -= 1
            return self.reply({"detail": "expired"}, 401)
        if (verb, address.path) == ("GET", "/api/users/"):
            return self.reply(studio.users)
        if (verb, address.path) == ("POST", "/api/projects/"):
            number = len(studio.projects) + 1
            studio.projects[number] = {"id": number, "label_config": "<View></View>", "tasks": [], **body}
            return self.reply(studio.projects[number], 201)
        parts = address.path.strip("/").split("/")
        project = studio.projects.get(int(parts[2]))
        if project is None:
            return self.reply({"detail": "Not found."}, 404)
        if verb in ("GET", "PATCH") and len(parts) == 3:
            project.update(body or {})
            return self.reply({name: value for name, value in project.items() if name != "tasks"})
        if (verb, parts[3]) == ("POST", "import"):
            assert isinstance(body, list) and all("data" in task for task in body)
            for task in body:
                project["tasks"].append({"id": 100 + len(project["tasks"]), "annotations": [], **task})
            return self.reply({"task_count": len(body)}, 201)
        assert (verb, parts[3]) == ("GET", "export") and parse_qs(address.query)["exportType"] == ["JSON"]
        every = parse_qs(address.query).get("download_all_tasks") == ["true"]
        return self.reply([task for task in project["tasks"] if task["annotations"] or every])

    def do_GET(self):
        self.handle_any("GET")

    def do_POST(self):
        self.handle_any("POST")

    def do_PATCH(self):
        self.handle_any("PATCH")


@pytest.fixture
def studio():
    server = Studio()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def session():
    texts = [f"text {k}" for k in range(60)]
    return Session.create(None, Pool(predictions=["cat", "dog"] * 30, items=texts), method="tradition", budget=12)


def made(session, studio, token=TOKEN):
    client = LabelStudio(studio.url, token)
    client.create_project("mine", config_of(session))
    return client


def test_items_go_out_once_and_labels_come_back_once(session, studio):
    client = made(session, studio)
    first = sync_once(session, client, 5)
    assert (first.sent, first.open, first.received.labels) == (5, 5, 0)
    assert sync_once(session, client, 5).sent == 0  # nobody has answered: nothing more is drawn or sent
    studio.label(1, lambda data: "cat")
    second = sync_once(session, client, 5)
    assert (second.received.labels, second.sent) == (5, 5)
    assert len(session.history.labels) == 5 and sync_once(session, client, 5).received.labels == 0
    ids = [task["data"]["altmas_id"] for task in studio.projects[1]["tasks"]]
    assert len(ids) == len(set(ids)) == 10
    assert not any("predictions" in task for task in studio.projects[1]["tasks"])  # blind


def test_it_stops_at_the_budget(session, studio):
    client = made(session, studio)
    for _ in range(6):
        sync_once(session, client, 5)
        studio.label(1, lambda data: "cat")
    assert len(session.history.labels) == 12 and len(studio.projects[1]["tasks"]) == 12


def test_skips_revisions_and_tasks_of_others(session, studio):
    client = made(session, studio)
    sync_once(session, client, 3)
    tasks = studio.projects[1]["tasks"]
    tasks.append({"id": 999, "data": {"text": "not ours"}, "annotations": []})
    studio.answer(tasks[0], "cat")
    studio.answer(tasks[1], None)
    done = sync_once(session, client, 3).received
    assert (done.labels, done.skips) == (1, 1)
    tasks[0]["annotations"][0] |= {
        "result": [{"type": "choices", "value": {"choices": ["dog"]}}],
        "created_at": "2026-01-02T00:00:00Z",
    }
    assert sync_once(session, client, 3).received.revisions == 1
    assert session.votes(tasks[0]["data"]["altmas_id"]) == {"ana@example.org": "dog"}


def test_a_personal_token_is_exchanged_and_renewed(session, studio):
    client = made(session, studio, PERSONAL)
    studio.expired = 1
    assert sync_once(session, client, 2).sent == 2
    assert [path for _, path in studio.requests].count("/api/token/refresh/") == 2


@pytest.mark.parametrize(
    ("token", "project", "said"),
    [
        ("wrong-token", 1, "answered 401.*the token is not accepted.*--token"),
        (TOKEN, 77, "answered 404.*there is no project 77.*--project"),
    ],
)
def test_refusals_say_what_to_do(session, studio, token, project, said):
    with pytest.raises(ServerError, match=said):
        sync_once(session, LabelStudio(studio.url, token, project), 2)
    assert session.history.batches == ()


def test_a_server_that_is_not_there_gets_a_sentence(session):
    with pytest.raises(ServerError, match="cannot be reached.*label-studio start.*--url"):
        sync_once(session, LabelStudio("http://127.0.0.1:9", TOKEN, 1), 2)


def test_the_command_makes_a_project_and_ends_with_the_budget(studio, tmp_path):
    path, truth = make_session(tmp_path, "--budget", 25)
    ran = run("sync", path, "--url", studio.url, "--token", TOKEN, "--once", "-n", 25)
    assert ran.code == 0 and "project 1 was made" in ran.out and "25 sent" in ran.out
    assert "altmas sync" in ran.err and '<Choice value="bird"' in studio.projects[1]["label_config"]
    studio.label(1, lambda data: truth[data["altmas_id"]])
    ran = run("sync", path, "--url", studio.url, "--token", TOKEN, "--project", 1)
    assert ran.code == 0 and "25 labels" in ran.out and "stop: the budget of 25 labels is spent" in ran.out
    assert run("sync", path, "--url", "http://127.0.0.1:9", "--once").code == 2


# ---------------------------------------------------------------- people and images in files


def exported(tmp_path, name, rows):
    path = tmp_path / name
    path.write_text(json.dumps(rows), "utf-8")
    return path


def whole(id, label, who):
    chosen = [{"type": "choices", "value": {"choices": [label]}}]
    return {"data": {"altmas_id": id}, "annotations": [{"completed_by": who, "result": chosen}]}


def least(id, label, who):
    return {"altmas_id": id, "label": label, "annotator": who}


ANA = {"id": 1, "email": "ana@example.org"}


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (whole(3, "cat", ANA), least(3, "cat", 1), "ana@example.org"),
        (least(3, "cat", 1), whole(3, "cat", ANA), "1"),
        (whole(3, "cat", 1), whole(3, "cat", ANA), "1"),
        (whole(3, "cat", ANA), whole(3, "cat", 1), "ana@example.org"),
    ],
)
def test_one_annotator_in_two_styles_is_one_person(session, tmp_path, first, second, name):
    session.import_labels(exported(tmp_path, "a.json", [first]))
    result = session.import_labels(exported(tmp_path, "b.json", [second]))
    assert (result.labels, result.unchanged) == (0, 1)
    assert session.votes(3) == {name: "cat"}
    later = session.import_labels(exported(tmp_path, "c.json", [least(5, "dog", 1), least(7, "cat", 2)]))
    assert later.labels == 2 and session.votes(5) == {name: "dog"} and session.votes(7) == {"2": "cat"}


def test_a_number_that_is_somebody_else_on_another_server_is_another_person(session, tmp_path):
    session.import_labels(exported(tmp_path, "a.json", [whole(3, "cat", ANA)]))
    session.import_labels(exported(tmp_path, "b.json", [whole(3, "dog", {"id": 1, "email": "bob@example.org"})]))
    assert session.votes(3) == {"ana@example.org": "cat", "bob@example.org": "dog"}


def test_images_get_the_address_that_the_local_files_storage_shows(tmp_path):
    images = tmp_path / "served" / "a b"
    images.mkdir(parents=True)
    rows = []
    for k in range(30):
        (images / f"{k}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        rows.append(f"{'cat' if k % 2 else 'dog'},served/a b/{k}.png\n")
    (tmp_path / "t.csv").write_text("said,file\n" + "".join(rows))
    roles = ("--data", tmp_path / "t.csv", "--prediction", "said", "--show", "file", "--method", "tradition")
    path = tmp_path / "s.altmas"
    assert run("init", path, *roles).code == 0
    out = tmp_path / "tasks.json"
    ran = run("export", path, out, "-n", 3, "--to", "label-studio", "--local-files", tmp_path / "served")
    assert ran.code == 0
    shown = [task["data"]["image"] for task in json.loads(out.read_text())]
    assert all(one.startswith("/data/local-files/?d=a%20b/") and one.endswith(".png") for one in shown)
    with Session.open(path) as session, pytest.raises(FileError, match="is not below .*--local-files"):
        session.export(tmp_path / "x.json", 3, "label-studio", local_files=tmp_path / "elsewhere")
