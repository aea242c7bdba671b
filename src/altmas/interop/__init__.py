"""Files in and out: the next items for people who label elsewhere, and their labels back.

Formats: "csv", "jsonl", "parquet" (plain.py) and "label-studio" (label_studio.py). Points are matched by id, never by
order; a file is taken in whole or not at all.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altmas.errors import FileError
from altmas.interop import label_studio, plain
from altmas.interop.replies import COLUMNS, ImportResult, labelled_rows, logged_rows, record
from altmas.outputs import Kept, is_stream, kept_by, writable, write_whole
from altmas.session.store import Event, LabelStore
from altmas.suggest import listing, near

if TYPE_CHECKING:
    from altmas.session import Session

__all__ = [
    "FORMATS",
    "ExportResult",
    "ImportResult",
    "export_items",
    "export_labels",
    "export_logged_labels",
    "import_labels",
]

FORMATS = ("csv", "jsonl", "parquet", "label-studio")

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "label-studio",
}


@dataclass(frozen=True)
class ExportResult:
    """What an export wrote: so many points or answers, and for Label Studio the labelling config beside the tasks.

    fewer  why there are fewer points than were asked for; empty if there are not
    """

    path: Path
    format: str
    count: int
    config: Path | None = None
    fewer: str = ""

    def __str__(self) -> str:
        beside = f", labelling config in {self.config.name}" if self.config else ""
        fewer = f", fewer than asked for: {self.fewer}" if self.fewer else ""
        return f"{self.path.name}: {self.count} written{beside}{fewer}"


def export_items(
    session: "Session",
    path: str | os.PathLike[str],
    n: int,
    format: str | None = None,
    *,
    blind: bool = True,
    force: bool = False,
    local_files: str | os.PathLike[str] | None = None,
    take_over: bool = False,
) -> ExportResult:
    """Write the next n points to label as a file; they stay the same until something is told.

    Blind by default: without the model's prediction. With blind=False it is in the file, and a reveal is logged for
    every point. `local_files` is the folder that Label Studio serves: images below it get the address under which its
    local-files storage shows them. With take_over points that are leased to others are written too, and are no longer
    theirs. OutputExists if the file is there already, unless force; then nothing is drawn.
    """
    file, kept = Path(path), kept_by(session.pool, session.path)
    kind = format_of(file, format, reading=False)
    beside = label_studio.config_beside(file) if kind == "label-studio" and not is_stream(file) else None
    for output in filter(None, (file, beside)):
        writable(output, force=force, kept=kept)
    queries = session.ask(n, take_over=take_over)
    rows = [query.index for query in queries]
    if not blind:
        for query in queries:
            session.reveal(query.id)
    if kind == "label-studio":
        content, config = label_studio.tasks_and_config(
            session.pool,
            rows,
            session.plan,
            blind=blind,
            local_files=None if local_files is None else Path(local_files),
        )
        if beside is not None:
            write_whole(beside, config, force=force, kept=kept)
    else:
        written, columns = _item_rows(session, rows, blind=blind)
        content = plain.content_of(kind, written, columns)
    write_whole(file, content, force=force, kept=kept)
    return ExportResult(file, kind, len(rows), beside, session.why_fewer(n, len(rows)))


def export_labels(
    session: "Session", path: str | os.PathLike[str], format: str | None = None, *, force: bool = False
) -> ExportResult:
    """Write every answer that holds now: who said what about which point, when, and how long it took."""
    file, kept = Path(path), kept_by(session.pool, session.path)
    kind = _labels_format(file, format)
    writable(file, force=force, kept=kept)
    rows = labelled_rows(session)
    write_whole(file, plain.content_of(kind, rows, COLUMNS), force=force, kept=kept)
    return ExportResult(file, kind, len(rows))


def export_logged_labels(
    session: Path, path: str | os.PathLike[str], format: str | None = None, *, force: bool = False
) -> ExportResult:
    """`export_labels` of a session file whose table was changed or is gone: the log alone tells the labels."""
    store = LabelStore.open(session, read_only=True)
    try:
        events = store.events()
    finally:
        store.close()
    file = Path(path)
    kind, kept = _labels_format(file, format), Kept({"the session itself": session, **_tables(events)})
    rows = logged_rows(events)
    write_whole(file, plain.content_of(kind, rows, COLUMNS), force=force, kept=kept)
    return ExportResult(file, kind, len(rows))


def _tables(events: list[Event]) -> dict[str, Path]:
    """The table that the first event of a log names."""
    source = (events[0].body.get("pool") or {}).get("source") if events else None
    return {"the table of predictions": Path(source["table"])} if source else {}


def _labels_format(file: Path, format: str | None) -> str:
    kind = format_of(file, format, reading=False)
    if kind == "label-studio":
        raise FileError(f"labels are exported as csv, jsonl or parquet, not as {kind}; {file} was not written")
    return kind


def import_labels(
    session: "Session",
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    id: str | None = None,
    label: str | None = None,
) -> ImportResult:
    """Record the labels of a file, all or none; what was recorded.

    id, label  the columns of a plain file that hold them; by default those of these names, or the id column of the
               session's table
    Raises UnknownPoint, UnknownLabel (with the near match, the point and the row) or FileError; then nothing is.
    """
    file = Path(path)
    kind = format_of(file, format, reading=True)
    if kind == "label-studio":
        if id is not None or label is not None:
            raise FileError(f"{file} is of Label Studio, which has no columns to name; nothing was recorded")
        replies, blank, kind = label_studio.read_replies(file)
    else:
        own = (session.pool.source or {}).get("id")
        replies, blank = plain.read_replies(file, kind, plain.Named(id, label, own if isinstance(own, str) else None))
    return record(session, replies, file, kind, blank)


def format_of(path: Path, format: str | None, *, reading: bool) -> str:
    """The format asked for, or the one that the file's name or its first bytes show."""
    if format is not None:
        if format not in FORMATS:
            raise FileError(f"format {format!r} does not exist{near(format, FORMATS)}; expected {listing(FORMATS)}")
        return format
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None and reading:
        kind = _sniffed(plain.read_bytes(path))
    if kind is None:
        known = ", ".join(SUFFIXES)
        raise FileError(f"{path}: its name does not tell the format; expected one of {known}, or format=...")
    return kind


def _sniffed(content: bytes) -> str:
    head = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return "parquet" if content[:4] == b"PAR1" else {b"[": "label-studio", b"{": "jsonl"}.get(head, "csv")


def _item_rows(session: "Session", rows: list[int], *, blind: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The points as rows of a plain file: id, what is shown, then the columns to fill in."""
    pool, written = session.pool, []
    taken = {*COLUMNS, "prediction", "score"}
    for row in rows:
        shown = {} if pool.items is None else label_studio.shown_data(pool, row)
        table = shown.pop(label_studio.ROW, {})
        cells = {f"item.{name}" if str(name).lower() in taken else str(name): value for name, value in table.items()}
        own: dict[str, Any] = {"id": pool.ids[row], **shown, **cells}
        if not blind:
            for name, predicted, score in pool.answers_at(row):
                suffix = f" of {name}" if len(pool.models) > 1 else ""
                own[f"prediction{suffix}"] = str(predicted)
                if score is not None:
                    own[f"score{suffix}"] = score
        written.append(own)
    columns = list(dict.fromkeys(name for row in written for name in row)) or ["id"]
    return written, [*columns, "label", "annotator", "seconds", "created_at"]
