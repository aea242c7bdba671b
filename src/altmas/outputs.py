"""Writing files: one rule for what may be replaced, and how a file gets to its place.

- A file that exists is replaced only with force.
- A session file, its journals and the files that a session reads are never written over, under whatever name.
- A file is complete and on disk under its name, or not there at all: a draft beside it is synced, then renamed.
- Pipes, devices and the standard output are written to as they are.
"""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altmas.errors import FileError, OutputExists

if TYPE_CHECKING:
    from altmas.pool import Pool

STDOUT = Path("/dev/stdout")
"""Where `-` on the command line writes to."""

DESCRIPTORS = {"/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/1": 1, "/dev/fd/2": 2}

COMPANIONS = ("-journal", "-wal", "-shm")
"""What SQLite appends to the name of a database for the files that it keeps beside it."""

SESSION_MARK = (0x414C544D).to_bytes(4, "big")
"""SQLite's application id of a session file, at byte 68."""

CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)
"""What file systems answer that do not know how to sync a folder."""


@dataclass(frozen=True)
class Kept:
    """What must not be written over: files by what they are to somebody, and items whose paths start at `folder`."""

    files: Mapping[str, Path] = field(default_factory=dict)
    items: Iterable[Any] = ()
    folder: Path = Path()


NOTHING = Kept()


def kept_by(pool: "Pool", session: Path | None = None) -> Kept:
    """Every file that a pool was read from, its items, and the session file if there is one."""
    source = pool.source or {}
    sources = {} if session is None else {"the session itself": session}
    sources |= {"the table of predictions": Path(source["table"])} if source else {}
    for role in ("features", "scores"):
        value = source.get(role)
        listed = value.values() if isinstance(value, Mapping) else [value]
        names = [name for entry in listed for name in ([entry] if isinstance(entry, str) else entry or [])]
        mapped = getattr(getattr(pool, role), "filename", None)  # of a memory map
        files = [name for name in names if os.path.isabs(name)] + ([] if mapped is None else [mapped])
        sources |= {f"a file with {role} ({name})": Path(name) for name in files}
    return Kept(sources, () if pool.items is None else pool.items, Path(source.get("folder") or "."))


def writable(path: str | os.PathLike[str], *, force: bool = False, kept: Kept = NOTHING) -> Path:
    """The path, if it may be written; FileError or OutputExists says why not. Nothing is changed."""
    file = Path(path)
    _refuse_kept(file, kept, force)
    status = _stat(file)
    if status is None:
        if not _target(file).parent.is_dir():
            raise FileError(f"{file} cannot be written: No such file or directory: {file.parent}")
    elif stat.S_ISDIR(status.st_mode):
        raise FileError(f"{file} cannot be written: it is a folder; give the name of a file")
    elif stat.S_ISREG(status.st_mode) and not force and not is_stream(file):
        raise OutputExists(
            f"{file} exists already and was not changed; give another name, or --force (in Python force=True) to "
            "replace it"
        )
    return file


def write_whole(path: str | os.PathLike[str], content: bytes, *, force: bool = False, kept: Kept = NOTHING) -> None:
    """Put a finished file in its place, synced; through a symbolic link to where that points.

    FileError or OutputExists if that may not or cannot be done; then what was there is still there.
    """
    file = writable(path, force=force, kept=kept)
    try:
        if is_stream(file):
            _pour(file, content)
        else:
            _put(_target(file), content, force)
    except BrokenPipeError:
        raise  # the reader has gone, as in `... | head`
    except FileExistsError as cause:
        raise OutputExists(f"{file} appeared while it was being written; it was not changed") from cause
    except OSError as cause:
        raise FileError(f"{file} cannot be written: {cause.strerror}") from cause


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether this is the standard output, a pipe or a device: written to as it is, with no second file beside it."""
    if os.fspath(path) in DESCRIPTORS:
        return True
    status = _stat(Path(path))
    return status is not None and not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))


# ---------------------------------------------------------------- what must stay


def _refuse_kept(file: Path, kept: Kept, force: bool) -> None:
    """OutputExists if the path leads to a session, to one of its journals or to a file that it reads."""
    status, target = _stat(file), _target(file)
    for what, path in kept.files.items():
        if _same(status, path) or target == _target(path) or (path.is_dir() and _target(path) in target.parents):
            raise _never(file, what)
    if status is not None and stat.S_ISREG(status.st_mode):
        if _is_session(file):
            raise _never(file, "a session file")
        if force and _is_item(status, target.name, kept):  # without force it is refused in any case
            raise _never(file, "an item that labellers are shown")
    for ending in COMPANIONS:
        owner = target.with_name(target.name.removesuffix(ending) or target.name)
        if owner != target and (owner in map(_target, kept.files.values()) or _is_session(owner)):
            raise _never(file, f"the name of a journal of the session {owner.name}")


def _never(file: Path, what: str) -> OutputExists:
    return OutputExists(f"{file} is {what} and is never written over, not even by force; give another name")


def _is_item(status: os.stat_result, name: str, kept: Kept) -> bool:
    """Whether one of the items is the path of that file."""
    values = (value for item in kept.items for value in (item.values() if isinstance(item, Mapping) else (item,)))
    paths = (value for value in values if isinstance(value, str | os.PathLike) and os.path.basename(value) == name)
    return any(_same(status, kept.folder / path) for path in paths)


def _is_session(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head[:16] == b"SQLite format 3\x00" and head[68:72] == SESSION_MARK


def _same(status: os.stat_result | None, path: Path) -> bool:
    other = None if status is None else _stat(path)
    return status is not None and other is not None and os.path.samestat(status, other)


def _stat(path: Path) -> os.stat_result | None:
    """What is at the end of the path, also of links and descriptors; None if there is nothing."""
    number = DESCRIPTORS.get(os.fspath(path))
    try:
        return path.stat() if number is None else os.fstat(number)
    except OSError:
        return None


def _target(path: Path) -> Path:
    """Where the path leads, through symbolic links."""
    return Path(os.path.realpath(path))


# ---------------------------------------------------------------- into its place


def _put(target: Path, content: bytes, force: bool) -> None:
    """A draft beside the target, synced and renamed; without force never over a file that appeared meanwhile."""
    draft = target.with_name(f".altmas-{secrets.token_hex(6)}.new")
    before = _stat(target)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            draft.chmod(stat.S_IMODE(before.st_mode))
        if force:
            draft.replace(target)
        else:
            _link(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _link(draft: Path, target: Path) -> None:
    """Give the draft its name; FileExistsError if there is a file of that name."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        draft.replace(target)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as cause:
        if cause.errno not in CANNOT_SYNC:
            raise FileError(
                f"the file is complete in {folder}, but its name could not be synced ({cause.strerror}): it may be "
                "missing after a power failure"
            ) from cause


def _pour(path: Path, content: bytes) -> None:
    """Write into something that is there: the standard output, a pipe, a device."""
    number = DESCRIPTORS.get(os.fspath(path))
    if number is None:
        with path.open("wb") as file:
            file.write(content)
        return
    stream = sys.stdout if number == 1 else sys.stderr
    stream.flush()
    stream.buffer.write(content)
    stream.buffer.flush()
    with suppress(OSError, ValueError):  # a pipe cannot be synced
        os.fsync(stream.fileno())
