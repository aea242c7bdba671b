"""The files of the page, read once and sent without indentation, comments and most blanks around signs.

The sources keep one rule for this: no comment in a script that lasts longer than its line, and no text that goes over
lines (tests/test_static_files.py).
"""

import re
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

STATIC = Path(__file__).parent / "static"
_COMMENT_LINE = re.compile(r"(//.*|/\*\*? .* \*/)")
_TRAILING = re.compile(r"(?<=[;,{}()\[\]]) // [^`\"']*$")


_BLANKS = re.compile(r" (=>?|[!=]==|&&|\|\||[?:]) |(,) |([{(\[]) | ([)\]}])|(?<=\)) (\{) ?")


def slim_script(text: str) -> str:
    """A script without indentation and comments, line by line; without blanks around signs where no text can be."""
    lines = (line.strip() for line in text.splitlines())
    kept = (_TRAILING.sub("", line) for line in lines if line and not _COMMENT_LINE.fullmatch(line))
    return "\n".join(line if re.search("[\"'`/]", line) else _closer(line) for line in kept) + "\n"


def _closer(code: str) -> str:
    return _BLANKS.sub(lambda match: next(filter(None, match.groups())), code)


def slim_style(text: str) -> str:
    """A stylesheet without comments and blanks that mean nothing; one in front of a colon may mean something."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" ?([{}]) ?|([;:,]) ", lambda match: match[1] or match[2], text)
    return text.replace(";}", "}").strip() + "\n"


def slim_page(text: str) -> str:
    """A page without indentation."""
    return re.sub(r"\n\s+", "\n", text)


_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_SLIM = {".js": slim_script, ".css": slim_style, ".html": slim_page}


def sent(name: str) -> str:
    """What is sent of a file in the folder `static`."""
    path = STATIC / name
    return _SLIM.get(path.suffix, str)(path.read_text(encoding="utf-8"))


def static_files() -> Router:
    """Answers with the files of the page by name, and with nothing else."""
    files = {path.name: sent(path.name).encode() for path in STATIC.iterdir() if path.suffix in _KINDS}

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        return Response(files[name], media_type=_KINDS[Path(name).suffix])

    return Router([Route("/{name}", answer)])
