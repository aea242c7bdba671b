"""What this installation and a session file look like from inside, and what is wrong with them."""

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from altmas import compute
from altmas.errors import AltmasError
from altmas.extras import EXTRAS, install, missing
from altmas.session import Session
from altmas.session.session_file import BESIDE, SCHEMA_VERSION, left_drafts
from altmas.session.store import LabelStore

PACKAGES = (
    "altmas numpy scipy scikit-learn narwhals pyarrow joblib threadpoolctl typer rich fastapi starlette pydantic "
    "uvicorn jinja2"
).split()
LITTLE = 500 * 2**20
"""Bytes of free disk below which a warning is due."""


@dataclass(frozen=True)
class Finding:
    """Something that was looked at; ok is False where it needs attention."""

    what: str
    found: str
    ok: bool = True


def examine(session: Path | None = None, *, trust: bool = False) -> list[Finding]:
    """Findings about the installation, and about a session file if one is given; `trust` as in Session.open."""
    findings = [*_installation(), *_jax(), *_disk("disk, here", Path.cwd())]
    return findings if session is None else [*findings, *examine_session(session, trust=trust)]


def _installation() -> Iterator[Finding]:
    yield Finding("python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("system", f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores")
    for name in PACKAGES:
        try:
            yield Finding(name, version(name))
        except PackageNotFoundError:
            yield Finding(name, "not installed", ok=False)
    yield from _extras()
    yield Finding("threads", f"{compute.threads()} (set ALTMAS_THREADS to change)")


def _extras() -> Iterator[Finding]:
    """What the extras installed; nothing is wrong where one is absent."""
    for extra, packages in EXTRAS.items():
        if missing(extra):
            yield Finding(f"altmas[{extra}]", f"not installed ({', '.join(missing(extra))}); {install(extra)}")
            continue
        for name in packages.values():
            yield Finding(name, version(name))


def _jax() -> Iterator[Finding]:
    if missing("paper"):
        return
    try:
        jax = compute.jax()
        devices = ", ".join(str(device) for device in jax.devices())
    except Exception as cause:  # whatever a broken installation raises is the finding
        yield Finding("jax device", f"{type(cause).__name__}: {cause}", ok=False)
        return
    yield Finding("jax device", devices)
    folder = jax.config.jax_compilation_cache_dir
    if not folder:
        yield Finding("compilation cache", "none: the cache folder cannot be written, programs are compiled each time")
        return
    files = [file for file in Path(folder).iterdir() if file.is_file()] if Path(folder).is_dir() else []
    size = sum(file.stat().st_size for file in files) / 2**20
    yield Finding("compilation cache", f"{folder}, {len(files)} files, {size:.1f} MB")


def _disk(what: str, folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    yield Finding(what, f"{free / 2**30:.1f} GB free at {folder}", ok=free > LITTLE)


def examine_session(path: Path, *, trust: bool = False) -> Iterator[Finding]:
    """The file as SQLite sees it, its log, its leases, and whether its pool is still the same."""
    yield from _left_behind(path)
    try:
        store = LabelStore.open(path, read_only=True)
    except AltmasError as error:
        yield Finding("session", str(error), ok=False)
        return
    try:
        if store.recovered:
            note = "a write was interrupted; what was acknowledged is there, the rest is undone at the next opening"
            yield Finding("after a crash", note)
        integrity = store.integrity()
        yield Finding("integrity check", integrity, ok=integrity == "ok")
        yield Finding("file format", f"{SCHEMA_VERSION}, the newest that this altmas knows")
        events = store.events()
        last = events[-1].hash if events else "none"
        yield Finding("event log", f"{len(events):,} events, each matches its hash; the last: {last}", ok=bool(events))
        leases = store.leases(time.time())
        yield Finding("leases", _leases(leases.values()))
    except AltmasError as error:
        yield Finding("event log", str(error), ok=False)
    finally:
        store.close()
    yield from _disk("disk, session", path.absolute().parent)
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    yield Finding("writable", "yes" if writable else "no: the file or its folder is read-only", ok=writable)
    try:
        with Session.open(path, read_only=True, trust=trust) as session:
            now = session.status()
            yield Finding("pool", f"{len(session.pool):,} points, the same as when the session was made")
            yield Finding("labels", f"{now.labels:,}, method {now.method}")
    except AltmasError as error:
        yield Finding("pool", str(error), ok=False)


def _left_behind(path: Path) -> Iterator[Finding]:
    """Files beside the session that a kill or a crash may have left."""
    for ending in BESIDE:
        beside = path.with_name(path.name + ending)
        if beside.exists():
            note = f"{beside.name}, {beside.stat().st_size:,} bytes: a write is under way or was interrupted; keep it"
            yield Finding("beside the session", note)
    drafts = left_drafts(path)
    if drafts:
        names = ", ".join(draft.name for draft in drafts)
        yield Finding("unfinished drafts", f"{names}: left by a creation that was killed; they can be deleted")


def _leases(leases: Iterable[tuple[str, float]]) -> str:
    """Who holds how many points until when."""
    people: dict[str, list[float]] = {}
    for holder, until in leases:
        people.setdefault(holder, []).append(until)
    latest = datetime.max.timestamp() - 86400
    ends = {name: datetime.fromtimestamp(min(max(until), latest)) for name, until in people.items()}
    return (
        "; ".join(f"{name}: {len(people[name])} until {end:%Y-%m-%d %H:%M:%S}" for name, end in ends.items()) or "none"
    )
