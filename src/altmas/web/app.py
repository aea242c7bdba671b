"""The page's server: addresses, what each takes and gives, and how errors are told."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from altmas.errors import AltmasError, StoreFailure, UnknownPoint, VoteConflict
from altmas.items.images import NoImage
from altmas.session import LEASE_SECONDS, Session
from altmas.web.access import Access, Guard
from altmas.web.annotator_api import Desk, Texts
from altmas.web.overview import Watch, overview, to_settle
from altmas.web.prefetch import Supply

STATIC = Path(__file__).parent / "static"


def _name(given: str) -> str:
    name = " ".join(given.split())
    if not name or not name.isprintable():
        raise ValueError("a name needs at least one visible character")
    return name


Annotator = Annotated[str, Field(max_length=80), AfterValidator(_name)]
Handle = Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]
Seconds = Annotated[float, Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)]


class Asked(BaseModel):
    """Who asks for items, and which of them their page has already."""

    annotator: Annotator
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
    """A remark on an item."""

    item: Handle
    text: str = Field(min_length=1, max_length=5000)


class Looked(Asked):
    """The item whose prediction somebody wants to see."""

    item: Handle


class Ruled(BaseModel):
    """The owner's ruling on an item."""

    item: Handle
    label: int


def create_app(
    session: Session,
    access: Access | None = None,
    *,
    title: str | None = None,
    annotator: str | None = None,
    instructions: str | None = None,
    definitions: Mapping[str, str] | None = None,
    lease: float = LEASE_SECONDS,
) -> FastAPI:
    """The page of a session as an ASGI application; without `access` for this machine alone, and without an owner."""
    plan = session.plan
    texts = Texts(
        title or (session.path.stem if session.path is not None else "labels"),
        plan.instructions if instructions is None else instructions,
        dict(plan.definitions if definitions is None else definitions),
        annotator,
    )
    supply, watch = Supply(session), Watch(session)
    desk = Desk(session, texts, supply, lease=lease)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        supply.start()
        yield
        supply.stop()
        watch.stop()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.supply, app.state.watch, app.state.desk = supply, watch, desk
    _pages(app)
    _annotators(app, desk)
    _owner(app, desk, watch)
    _errors(app)
    app.add_middleware(Guard, access=access or Access(owner=""))
    return app


def _pages(app: FastAPI) -> None:
    for path, file in {"/": "label.html", "/overview": "overview.html", "/adjudicate": "adjudicate.html"}.items():
        app.add_api_route(path, _page(file), methods=["GET", "HEAD"])
    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _page(file: str) -> Callable[[], FileResponse]:
    return lambda: FileResponse(STATIC / file, media_type="text/html; charset=utf-8")


def _annotators(app: FastAPI, desk: Desk) -> None:
    """What annotators may ask and say. Whatever writes is a POST; handlers run in threads and never wait for a fit."""

    @app.get("/api/setup")
    def setup() -> dict[str, Any]:
        return desk.setup()

    @app.post("/api/next")
    def next_items(asked: Asked) -> dict[str, Any]:
        return desk.hand(asked.annotator, asked.have)

    @app.post("/api/vote")
    def vote(said: Voted) -> dict[str, Any]:
        return desk.vote(
            said.annotator,
            said.item,
            kind=said.kind,
            label=said.label,
            reason=said.reason,
            seconds=said.seconds,
            revises=said.revises,
            have=said.have,
        )

    @app.post("/api/undo")
    def undo(said: TakenBack) -> dict[str, Any]:
        undone = desk.undo(said.annotator, said.seq)
        return {"undone": undone, "header": desk.header(said.annotator)}

    @app.get("/api/mine")
    def mine(annotator: Annotator, before: int | None = None, limit: int = 10) -> dict[str, Any]:
        return {"votes": desk.mine(annotator, before, max(1, min(limit, 50)))}

    @app.post("/api/note")
    def note(said: Remarked) -> dict[str, Any]:
        desk.note(said.annotator, said.item, said.text)
        return {"header": desk.header(said.annotator)}

    @app.post("/api/reveal")
    def reveal(looked: Looked) -> dict[str, Any]:
        return desk.reveal(looked.annotator, looked.item)

    @app.get("/api/image/{handle}/{number}")
    def image(handle: Handle, number: int) -> Response:
        content, kind = desk.image(handle, number)
        return Response(content, media_type=kind, headers={"content-security-policy": "default-src 'none'; sandbox"})


def _owner(app: FastAPI, desk: Desk, watch: Watch) -> None:
    """What only the owner may see and settle; the guard asks for the key."""

    @app.get("/api/owner/overview")
    def owner_overview() -> dict[str, Any]:
        return overview(desk, watch)

    @app.get("/api/owner/queue")
    def owner_queue() -> dict[str, Any]:
        return {"classes": desk.setup()["classes"], "title": desk.texts.title, "items": to_settle(desk)}

    @app.post("/api/owner/rule")
    def owner_rule(ruled: Ruled) -> dict[str, Any]:
        name = desk.class_name(ruled.label)
        desk.session.adjudicate(desk.session.pool.ids[desk.row(ruled.item)], name, "owner")
        return {"left": len(to_settle(desk))}


STATUS: tuple[tuple[type[Exception], int], ...] = (
    (VoteConflict, 409),
    (UnknownPoint, 404),
    (NoImage, 404),
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
        field = ".".join(str(place) for place in first["loc"][1:]) or "body"
        return JSONResponse({"error": f"{field}: {first['msg']}; nothing was recorded"}, 422)

    def plain(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)
        return JSONResponse({"error": str(problem.detail)}, problem.status_code)

    app.add_exception_handler(AltmasError, told)
    app.add_exception_handler(NoImage, told)
    app.add_exception_handler(RequestValidationError, misread)
    app.add_exception_handler(HTTPException, plain)
