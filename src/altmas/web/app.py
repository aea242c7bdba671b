"""The page's server: addresses, what each takes and gives, and how errors are told."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, Response

from altmas.errors import AltmasError, StoreFailure, UnknownPoint, VoteConflict
from altmas.items.images import NoImage
from altmas.items.scans import Window
from altmas.session import LEASE_SECONDS, Session
from altmas.web.access import PERSON, Access, Guard
from altmas.web.annotator_api import Desk, Texts
from altmas.web.goal import GoalWatch
from altmas.web.overview import Watch
from altmas.web.owner_api import owner_routes
from altmas.web.people import label_name
from altmas.web.prefetch import Supply
from altmas.web.static_files import sent, static_files

Annotator = Annotated[str, AfterValidator(label_name)]
Handle = Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]
Value = Annotated[float, Field(allow_inf_nan=False)]
Width = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)]


class Asked(BaseModel):
    """Who asks for items (with a link of their own the name may be left out), and which their page has already."""

    annotator: Annotator | None = None
    have: list[Handle] = Field(default=[], max_length=100)


class Voted(Asked):
    """What somebody says about an item; `revises` is the seq of their vote that this one replaces."""

    item: Handle
    kind: str = Field(default="label", pattern="^(label|skip|unsure)$")
    label: int | None = None
    reason: str = Field(default="", max_length=2000)
    seconds: Seconds | None = None
    revises: int | None = None


class TakenBack(Asked):
    """The seq of the vote that is taken back."""

    seq: int


class Remarked(Asked):
    """A remark on an item, or the new text of the one whose seq is `revises`; "" takes that back."""

    item: Handle
    text: str = Field(max_length=5000)
    revises: int | None = None


class NotShown(Asked):
    """An item whose image could not be shown, and why."""

    item: Handle
    why: str = Field(max_length=500)


class Chosen(Asked):
    """Whether somebody stops here or goes on."""

    stop: bool


class Looked(Asked):
    """The item whose prediction somebody wants to see."""

    item: Handle


class NotYou(Exception):
    """Somebody spoke in another person's name."""


class NoName(Exception):
    """Somebody gave no name where names are claims."""


@dataclass(frozen=True)
class Speaker:
    """Whose request it is; authenticated: known by a secret of their own, not by the name they claim."""

    name: str
    authenticated: bool


def _speaker(request: Request, claimed: str | None) -> Speaker:
    """Who speaks: the person whose secret came with the request, or else whoever they say."""
    person: str | None = request.scope.get(PERSON)
    if person is None:
        if claimed is None:
            raise NoName("annotator: a name is needed; nothing was recorded")
        return Speaker(claimed, False)
    if claimed not in (None, person):
        raise NotYou(f"this browser has the link of {person!r} and cannot speak as anybody else; nothing was recorded")
    return Speaker(person, True)


def create_app(
    session: Session,
    access: Access | None = None,
    *,
    title: str | None = None,
    annotator: str | None = None,
    instructions: str | None = None,
    definitions: Mapping[str, str] | None = None,
    question: str = "",
    reveal: bool = True,
    keys: Mapping[str, str] | None = None,
    pair: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    lease: float = LEASE_SECONDS,
) -> FastAPI:
    """The page of a session as an ASGI application; without `access` for this machine alone, and without an owner.

    PlanError if `keys`, `pair` or `groups` do not fit the session.
    """
    plan = session.plan
    texts = Texts(
        title or (session.path.stem if session.path is not None else "labels"),
        plan.instructions if instructions is None else instructions,
        dict(plan.definitions if definitions is None else definitions),
        annotator,
        question,
        reveal,
        dict(keys or {}),
        pair,
        groups,
    )
    supply, watch, goal = Supply(session), Watch(session), GoalWatch(session)
    desk = Desk(session, texts, supply, goal, lease=lease)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        supply.start()
        goal.start()
        yield
        supply.stop()
        goal.stop()
        watch.stop()
        desk.leave()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.supply, app.state.watch, app.state.desk = supply, watch, desk
    access = access or Access(owner="")
    _pages(app, access.root)
    _annotators(app, desk)
    owner_routes(app, desk, watch)
    _errors(app)
    app.add_middleware(Guard, access=access)
    return app


def _pages(app: FastAPI, root: str) -> None:
    for path, file in {"/": "label.html", "/overview": "overview.html", "/adjudicate": "adjudicate.html"}.items():
        app.add_api_route(path, _page(file, root), methods=["GET", "HEAD"])
    app.mount("/static", GZipMiddleware(static_files(), minimum_size=500), name="static")


def _page(file: str, root: str) -> Callable[[], HTMLResponse]:
    """A page whose addresses begin with `root`; scripts learn it from their own address."""
    text = re.sub(r'(href|src)="/', rf'\1="{root}/', sent(file))
    return lambda: HTMLResponse(text)


def _annotators(app: FastAPI, desk: Desk) -> None:
    """What annotators may ask and say. Whatever writes is a POST; handlers run in threads and never wait for a fit."""

    @app.get("/api/setup")
    def setup(request: Request) -> dict[str, Any]:
        return desk.setup() | {"person": request.scope.get(PERSON)}

    @app.post("/api/next")
    def next_items(request: Request, asked: Asked) -> dict[str, Any]:
        return desk.hand(_speaker(request, asked.annotator).name, asked.have)

    @app.post("/api/vote")
    def vote(request: Request, body: Voted) -> dict[str, Any]:
        who = _speaker(request, body.annotator)
        return desk.vote(
            who.name,
            body.item,
            kind=body.kind,
            label=body.label,
            reason=body.reason,
            seconds=body.seconds,
            revises=body.revises,
            have=body.have,
            authenticated=who.authenticated,
        )

    @app.post("/api/undo")
    def undo(request: Request, body: TakenBack) -> dict[str, Any]:
        who = _speaker(request, body.annotator)
        undone = desk.undo(who.name, body.seq, authenticated=who.authenticated)
        return {"undone": undone, "header": desk.header(who.name)}

    @app.get("/api/mine")
    def mine(
        request: Request, annotator: Annotator | None = None, before: int | None = None, limit: int = 10
    ) -> dict[str, Any]:
        who = _speaker(request, annotator)
        return {"votes": desk.mine(who.name, before, max(1, min(limit, 50)))}

    @app.post("/api/note")
    def note(request: Request, body: Remarked) -> dict[str, Any]:
        who = _speaker(request, body.annotator)
        note = desk.note(who.name, body.item, body.text, body.revises, authenticated=who.authenticated)
        return {"note": note, "header": desk.header(who.name)}

    @app.post("/api/unshown")
    def unshown(request: Request, body: NotShown) -> dict[str, Any]:
        who = _speaker(request, body.annotator)
        desk.not_shown(who.name, body.item, body.why)
        return {"header": desk.header(who.name)}

    @app.post("/api/choose")
    def choose(request: Request, chosen: Chosen) -> dict[str, Any]:
        who = _speaker(request, chosen.annotator)
        desk.choose(who.name, chosen.stop, authenticated=who.authenticated)
        return {"header": desk.header(who.name)}

    @app.post("/api/reveal")
    def reveal(request: Request, looked: Looked) -> dict[str, Any]:
        who = _speaker(request, looked.annotator)
        return desk.reveal(who.name, looked.item, authenticated=who.authenticated)

    @app.get("/api/image/{handle}/{number}")
    def image(handle: Handle, number: int, center: Value | None = None, width: Width | None = None) -> Response:
        requested = Window(center, width, 0.0, 0.0) if center is not None and width is not None else None
        content, kind, window = desk.image(handle, number, requested)
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        if window is not None:
            headers["x-window"] = ",".join(f"{value:g}" for value in astuple(window))
        return Response(content, media_type=kind, headers=headers)


STATUS: tuple[tuple[type[Exception], int], ...] = (
    (VoteConflict, 409),
    (UnknownPoint, 404),
    (NoImage, 404),
    (NotYou, 403),
    (NoName, 422),
    (StoreFailure, 503),
    (AltmasError, 422),
)


def _errors(app: FastAPI) -> None:
    def told(_: Request, problem: Exception) -> Response:
        status = next(status for kind, status in STATUS if isinstance(problem, kind))
        return JSONResponse({"error": str(problem)}, status)

    def misread(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, RequestValidationError)
        first = problem.errors()[0]
        field = ".".join(str(key) for key in first["loc"][1:]) or "body"
        told_already = first["msg"].endswith("nothing was recorded")
        return JSONResponse(
            {"error": f"{field}: {first['msg']}" + ("" if told_already else "; nothing was recorded")}, 422
        )

    def plain(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)
        return JSONResponse({"error": str(problem.detail)}, problem.status_code)

    for kind in (AltmasError, NoImage, NotYou, NoName):
        app.add_exception_handler(kind, told)
    app.add_exception_handler(RequestValidationError, misread)
    app.add_exception_handler(HTTPException, plain)
