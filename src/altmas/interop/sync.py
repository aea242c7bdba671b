"""A project of Label Studio kept supplied: the next items go there as tasks, annotations come back, by polling.

The API is that of Label Studio's documentation: /api/projects, /api/projects/{id}/import, /api/projects/{id}/export,
/api/users, /api/token/refresh. Nothing but the server that was named is ever asked.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altmas.errors import ServerError
from altmas.interop import label_studio
from altmas.interop.replies import ImportResult, record

if TYPE_CHECKING:
    from altmas.session import Session

TIMEOUT = 60
"""Seconds to wait for an answer of the server."""


@dataclass(frozen=True)
class SyncResult:
    """What one round did: labels that came back, tasks that were sent, tasks of the session without an answer."""

    received: ImportResult
    sent: int
    open: int

    def __str__(self) -> str:
        return f"{self.received}; {self.sent} sent, {self.open} open"


class LabelStudio:
    """One project on a server of Label Studio."""

    def __init__(self, url: str, token: str, project: int | None = None) -> None:
        self.url, self.token, self.project = url.rstrip("/"), token, project
        self._access = f"Token {token}"
        if token.count(".") == 2:  # a personal access token, which is exchanged for a short-lived one
            self._renew()

    def _renew(self) -> None:
        answer = self._ask("POST", "/api/token/refresh/", {"refresh": self.token}, authorized=False)
        self._access = f"Bearer {answer['access']}"

    def create_project(self, title: str, config: str) -> int:
        """The number of a new project with that labelling config; it is the one used from now on."""
        project = self._ask("POST", "/api/projects/", {"title": title, "label_config": config})
        self.project = int(project["id"])
        return self.project

    def set_config(self, config: str) -> bool:
        """Give the project the labelling config if it has none yet; whether it did."""
        project = self._ask("GET", f"/api/projects/{self.project}/")
        if "<Choices" in str(project.get("label_config", "")):
            return False
        self._ask("PATCH", f"/api/projects/{self.project}/", {"label_config": config})
        return True

    def tasks(self) -> list[dict[str, Any]]:
        """Every task of the project with its annotations, as its JSON export has them."""
        tasks = self._ask("GET", f"/api/projects/{self.project}/export?exportType=JSON&download_all_tasks=true")
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise ServerError(f"{self.url} sent no list of tasks for project {self.project}; nothing was recorded")
        return tasks

    def send(self, tasks: list[dict[str, Any]]) -> None:
        """Import tasks into the project."""
        self._ask("POST", f"/api/projects/{self.project}/import", tasks)

    def people(self) -> dict[int, str]:
        """{number: e-mail address} of those whom the token may see."""
        answer = self._ask("GET", "/api/users/")
        users = answer.get("results", []) if isinstance(answer, Mapping) else answer
        known = [user for user in users if user.get("id") is not None and user.get("email")]
        return {int(user["id"]): str(user["email"]) for user in known}

    def _ask(self, verb: str, path: str, body: Any = None, *, authorized: bool = True, again: bool = True) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", method=verb)  # noqa: S310
        request.add_header("Content-Type", "application/json")
        if authorized:
            request.add_header("Authorization", self._access)
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=TIMEOUT) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            if refused.code == 401 and again and self._access.startswith("Bearer"):
                self._renew()
                return self._ask(verb, path, body, again=False)
            raise ServerError(_refusal(self, path, refused)) from None
        except (OSError, ValueError) as cause:
            reason = getattr(cause, "reason", None) or cause
            raise ServerError(
                f"Label Studio at {self.url} cannot be reached ({reason}); start it (label-studio start), or give "
                "another address with --url; nothing was recorded"
            ) from None


def _refusal(studio: LabelStudio, path: str, refused: urllib.error.HTTPError) -> str:
    """What the server's refusal means."""
    meaning = {
        401: "the token is not accepted; copy it from Account & Settings and give it with --token",
        403: "the token may not do this; give that of somebody who may see the project",
        404: f"there is no project {studio.project}; give the number in the address of the project with --project",
    }.get(refused.code, refused.read(300).decode("utf-8", "replace").strip() or str(refused.reason))
    return f"Label Studio at {studio.url} answered {refused.code} to {path.partition('?')[0]}: {meaning}"


def config_of(session: "Session", *, blind: bool = True, local_files: Path | None = None) -> str:
    """The labelling config for the items of a session."""
    task = label_studio.task_of(session.pool, 0, blind=blind, local_files=local_files)
    return label_studio.labelling_config(session.pool, sorted(set(task["data"]) - {"altmas_id"}), session.plan)


def sync_once(
    session: "Session", studio: LabelStudio, n: int, *, blind: bool = True, local_files: Path | None = None
) -> SyncResult:
    """Record the annotations that are new, then send tasks until n of the session's items wait for an answer there.

    An item is sent once, however often this is called: the tasks in the project say which are there.
    """
    tasks = [task for task in studio.tasks() if _is_ours(task)]
    where = f"project {studio.project}"
    replies, blank, kind = label_studio.replies_in(_with_addresses(tasks, studio.people()), where)
    received = record(session, replies, Path(where), kind, blank)
    sent = {str(task["data"]["altmas_id"]) for task in tasks}
    if session.should_stop().stop:
        return SyncResult(received, 0, received.blank)
    queries = [query for query in session.ask(n) if str(query.id) not in sent]
    if not blind:
        for query in queries:
            session.reveal(query.id)
    new_tasks = [
        label_studio.task_of(session.pool, query.index, blind=blind, local_files=local_files) for query in queries
    ]
    if new_tasks:
        studio.send(new_tasks)
    return SyncResult(received, len(new_tasks), received.blank + len(new_tasks))


def _is_ours(task: Mapping[str, Any]) -> bool:
    """Whether altmas made the task; others in the project are left alone."""
    return isinstance(task.get("data"), Mapping) and "altmas_id" in task["data"]


def _with_addresses(tasks: Iterable[dict[str, Any]], people: Mapping[int, str]) -> list[dict[str, Any]]:
    """The tasks with annotators by number and e-mail address, as far as the address is known."""

    def known(annotation: dict[str, Any]) -> dict[str, Any]:
        who = annotation.get("completed_by")
        named = isinstance(who, int) and who in people
        return annotation | {"completed_by": {"id": who, "email": people[who]}} if named else annotation  # type: ignore[index]

    return [task | {"annotations": list(map(known, task.get("annotations") or []))} for task in tasks]
