"""What only the owner may see and do: addresses below /api/owner, which the guard asks a key for."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.responses import Response

from altmas.web.annotator_api import Desk
from altmas.web.overview import Watch, overview, settled_before, to_settle
from altmas.web.people import OWNER

Handle = Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]


class Ruled(BaseModel):
    """The owner's ruling on an item: a class, or none if it cannot be settled."""

    item: Handle
    label: int | None
    note: str = Field(default="", max_length=5000)


class RulingTakenBack(BaseModel):
    """The seq of the ruling that is taken back."""

    seq: int


class Raised(BaseModel):
    """The number of labels in all that the session may have from now on."""

    budget: int = Field(ge=1, le=10**9)


def owner_routes(app: FastAPI, desk: Desk, watch: Watch) -> None:
    """Add the owner's addresses to the page's server."""
    _reading(app, desk, watch)
    _ruling(app, desk)
    _steering(app, desk)


def _reading(app: FastAPI, desk: Desk, watch: Watch) -> None:
    @app.get("/api/owner/overview")
    def owner_overview(metric: str | None = None) -> dict[str, Any]:
        return overview(desk, watch, metric)

    @app.get("/api/owner/report")
    def owner_report() -> Response:
        return _file(desk.session.report().to_html().encode(), "text/html; charset=utf-8", f"{desk.texts.title}.html")

    @app.get("/api/owner/labels")
    def owner_labels() -> Response:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "labels.csv"
            desk.session.export_labels(path)
            return _file(path.read_bytes(), "text/csv; charset=utf-8", f"{desk.texts.title}-labels.csv")


def _file(content: bytes, kind: str, name: str) -> Response:
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name if letter.isascii())
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{plain}"'})


def _ruling(app: FastAPI, desk: Desk) -> None:
    @app.get("/api/owner/queue")
    def owner_queue() -> dict[str, Any]:
        about = {"classes": desk.setup()["classes"], "title": desk.texts.title}
        return about | {"items": to_settle(desk), "settled": settled_before(desk)}

    @app.post("/api/owner/rule")
    def owner_rule(ruled: Ruled) -> dict[str, Any]:
        id = desk.session.pool.ids[desk.row(ruled.item)]
        if ruled.label is None:
            desk.session.cannot_settle(id, OWNER, ruled.note)
        else:
            desk.session.adjudicate(id, desk.class_name(ruled.label), OWNER, ruled.note)
        desk.goal.told()
        return {"left": len(to_settle(desk))}

    @app.post("/api/owner/unrule")
    def owner_unrule(body: RulingTakenBack) -> dict[str, Any]:
        undone = desk.session.undo(OWNER, seq=body.seq)
        desk.session.release(OWNER)  # whoever takes a vote back holds the item; the owner does not label
        desk.goal.told()
        return {"undone": None if undone is None else str(undone.id)}


def _steering(app: FastAPI, desk: Desk) -> None:
    def awake(change: Callable[[], object]) -> dict[str, Any]:
        changed = change()
        desk.supply.wake()
        desk.goal.told()
        return {"changed": changed}

    @app.post("/api/owner/budget")
    def owner_budget(raised: Raised) -> dict[str, Any]:
        return awake(lambda: desk.session.extend(budget=raised.budget).seq)

    @app.post("/api/owner/close")
    def owner_close() -> dict[str, Any]:
        return awake(lambda: desk.session.close_overdue(OWNER, "closed by the owner: no answer"))
