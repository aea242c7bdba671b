"""People: who may label under which name, by a secret of their own.

The file has one annotator in each line: a name, or a name and a secret separated by a comma. A name without a secret
gets one; the links of all are kept beside the file in FILE.links, which only its owner can read, and stay the same
from one start to the next. Whoever is taken out of the file is no longer let in.
"""

import csv
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from altmas.errors import FileError, PlanError, StoreFailure
from altmas.session.answers import annotator_name

SHORTEST = 16
"""Characters that a token, a key or a secret has at least."""

DIFFERENT = 6
"""How many of them differ at least."""

OWNER = "owner"
"""The name under which the owner's rulings are recorded; nobody can label as that."""


def check_secret(secret: str, what: str) -> str:
    """The secret, if nobody can guess it; else PlanError, which never repeats it."""
    if not secret.isprintable() or any(character.isspace() for character in secret):
        raise PlanError(f"{what} holds blanks or control characters; nothing was started")
    if len(secret) < SHORTEST or len(set(secret)) < DIFFERENT:
        raise PlanError(
            f"{what} can be guessed: it has {len(secret)} characters, {len(set(secret))} of them different; expected "
            f"at least {SHORTEST}, {DIFFERENT} of them different (leave it out and one is made up); nothing was started"
        )
    return secret


def label_name(raw: str) -> str:
    """The name under which somebody labels on the page; PlanError if it is empty, not plain or the owner's."""
    name = annotator_name(raw)
    if name is None:
        raise PlanError("a name needs at least one visible character; nothing was recorded")
    if not name.isprintable():
        raise PlanError(f"the name {name!r} holds characters that cannot be seen; nothing was recorded")
    if name.casefold() == OWNER:
        raise PlanError(f"the name {name!r} is the session owner's; choose another one; nothing was recorded")
    return name


def people_of(source: str | os.PathLike[str] | Mapping[str, str]) -> dict[str, str]:
    """{name: secret} of a file or a mapping; a secret that a file leaves out is the one in FILE.links, or a new one."""
    if isinstance(source, Mapping):
        return _checked([(f"people[{name!r}]", str(name), str(secret)) for name, secret in source.items()])
    path = Path(source)
    rows = list(_rows(path))
    if any(secret for _, _, secret in rows) and _others_can_read(path):
        print(f"warning: {path} holds secrets and others can read it (chmod 600 {path})", flush=True)
    known = _known_secrets(links_file(path))
    return _checked([(where, name, secret or known.get(name) or new_secret()) for where, name, secret in rows])


def new_secret() -> str:
    """A secret of 192 bits."""
    return secrets.token_urlsafe(24)


def link(base: str, secret: str) -> str:
    """The address that lets one annotator in."""
    return f"{base}/?person={quote(secret, safe='')}"


def links_file(path: Path) -> Path:
    """Where the links of the people in a file are kept."""
    return path.with_name(path.name + ".links")


def write_links(path: Path, people: Mapping[str, str], base: str) -> Path:
    """Write everybody's link beside the file, whole or not at all, for its owner's eyes alone; where it is."""
    target = links_file(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", newline="") as file:
            csv.writer(file).writerows([("name", "link"), *((name, link(base, people[name])) for name in people)])
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError as cause:
        draft.unlink(missing_ok=True)
        raise StoreFailure(f"{target} cannot be written: {cause.strerror}; nothing was started") from cause
    return target


def _rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """(where, name, secret or "") of each line; blank lines, comments and a header are left out."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as cause:
        reason = getattr(cause, "strerror", None) or "it is not a text in UTF-8"
        raise FileError(f"{path} cannot be read: {reason}; expected a file with one annotator in each line") from cause
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in next(csv.reader([line]), [])]
        if (
            not any(cells)
            or line.lstrip().startswith("#")
            or (number == 1 and cells[:2] in (["name"], ["name", "secret"]))
        ):
            continue
        if len(cells) > 2:
            raise PlanError(
                f"{path}, line {number}: {len(cells)} columns; expected a name, or a name and a secret; "
                "nothing was started"
            )
        yield f"{path}, line {number}", cells[0], cells[1] if len(cells) == 2 else ""


def _checked(rows: list[tuple[str, str, str]]) -> dict[str, str]:
    """{name: secret}; PlanError if a name or a secret is no good or occurs twice."""
    people: dict[str, str] = {}
    seen: dict[str, str] = {}
    for where, raw, secret in rows:
        try:
            name = label_name(raw)
        except PlanError as problem:
            raise PlanError(f"{where}: {problem}") from None
        check_secret(secret, f"{where}: the secret of {name!r}")
        if name.casefold() in seen:
            raise PlanError(
                f"{where}: {name!r} and {seen[name.casefold()]!r} cannot be told apart; nothing was started"
            )
        if secret in people.values():
            raise PlanError(f"{where}: {name!r} has the secret of somebody else; nothing was started")
        people[name] = secret
        seen[name.casefold()] = name
    if not people:
        raise PlanError("the list of people is empty; expected one annotator in each line; nothing was started")
    return people


def _known_secrets(path: Path) -> dict[str, str]:
    """{name: secret} of a file of links that an earlier start wrote; empty if there is none."""
    if not path.exists():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        return {name: parse_qs(urlsplit(address).query)["person"][0] for name, address in rows}
    except (OSError, ValueError, KeyError) as cause:
        raise FileError(
            f"{path} cannot be read as the links of an earlier start ({cause}); mend it, or remove it and everybody "
            "gets a new link; nothing was started"
        ) from cause


def _others_can_read(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
