"""A session as a report: one self-contained HTML file, and the same as JSON."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altmas.errors import FileError
from altmas.items.images import NoImage
from altmas.items.parts import image_of, parts_of
from altmas.outputs import NOTHING, Kept, is_stream, kept_by, writable, write_whole
from altmas.report.content import content_of
from altmas.report.html import fragment, page
from altmas.report.trend import read_report

if TYPE_CHECKING:
    from altmas.session import Session

__all__ = ["Report", "content_of", "report_of"]


@dataclass(frozen=True)
class Report:
    """What a session says at one moment; `content` is the tree that `to_json` writes and `to_html` shows."""

    content: dict[str, Any]
    pictures: dict[str, tuple[bytes, str]] = field(default_factory=dict, repr=False)
    kept: Kept = field(default=NOTHING, repr=False, compare=False)
    """What `write` must not write over, whatever it is told."""

    def to_html(self) -> str:
        """One page that needs no other file and no network."""
        return page(self.content, self.pictures)

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page, and the JSON beside it; for a path that ends in .json that alone.

        OutputExists, and neither is written, if one of them is there already; unless force.
        """
        files = files_of(path)
        _refuse(path, files, force, self.kept)
        for file in files:
            content = self.to_json() if file.suffix.lower() == ".json" else self.to_html()
            write_whole(file, content.encode(), force=force, kept=self.kept)
        return Path(path)

    def __str__(self) -> str:
        headline = f"{self.content['headline']['verdict']} {self.content['headline']['next']}".rstrip()
        return "\n".join([headline, *(metric["verdict"]["sentence"] for metric in self.content["metrics"])])

    def _repr_html_(self) -> str:
        return fragment(self.content)


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a report at this path consists of: the JSON, and the page unless the path ends in .json."""
    file = Path(path)
    if is_stream(file):
        return [file]
    return list(dict.fromkeys([file.with_suffix(".json"), file]))


def _refuse(path: str | os.PathLike[str], files: list[Path], force: bool, kept: Kept) -> None:
    """OutputExists or FileError if one of the files may not be written, or has the name of something else."""
    for file in files:
        writable(file, force=force, kept=kept)
    folder = Path(os.path.realpath(path)).parent
    if not is_stream(path) and not os.access(folder, os.W_OK):
        raise FileError(f"{path} cannot be written: the folder {folder} is read-only; give a name in another folder")
    if not is_stream(path) and Path(path).suffix.lower() not in ("", ".html", ".htm", ".json"):
        raise FileError(
            f"{path} was not written: a report is HTML or JSON; give a name that ends in .html, .htm or .json (for a "
            "PDF or paper, open the .html in a browser and print it)"
        )


def report_of(
    session: "Session",
    path: str | os.PathLike[str] | None = None,
    *,
    items: bool = False,
    notes: bool = True,
    force: bool = False,
    since: str | os.PathLike[str] | None = None,
) -> Report:
    """The report of a session, written to `path` if one is given; with items, the labelled points are in it.

    notes  whether what annotators wrote is in it
    since  the JSON of an earlier report: what changed since then is shown
    """
    earlier = None if since is None else read_report(since)
    kept = kept_by(session.pool, session.path)
    if path is not None:
        _refuse(path, files_of(path), force, kept)  # before the work
    content = content_of(session, items=items, notes=notes, since=earlier)
    report = Report(content, _pictures(session) if items else {}, kept)
    if path is not None:
        report.write(path, force=force)
    return report


def _pictures(session: "Session") -> dict[str, tuple[bytes, str]]:
    """The images of labelled points that can be shown."""
    pictures = {}
    for row in session.history.labels:
        for part in parts_of(session.pool, row):
            if part["kind"] == "image":
                try:
                    name = f"{session.pool.ids[row]}.{part['number']}"
                    pictures[name] = image_of(session.pool, row, part["number"])
                except NoImage:
                    continue
    return pictures
