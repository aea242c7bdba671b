"""The release notes of a tag, from CHANGELOG.md; an error where tag, version and changelog do not agree."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def notes(tag: str, version: str, changelog: str) -> str:
    """What the changelog says of the version that is tagged; ValueError where it is another or has no dated heading."""
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, pyproject.toml says {version}; expected the tag v{version}")
    parts = re.split(r"^## ", changelog, flags=re.MULTILINE)
    heading = re.compile(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$")
    found = next((part for part in parts if heading.match(part.splitlines()[0] if part else "")), None)
    if found is None:
        raise ValueError(
            f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'; rename [Unreleased] and add a new one"
        )
    return found.partition("\n")[2].strip() + "\n"


if __name__ == "__main__":
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        sys.stdout.write(notes(sys.argv[1], stated, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    except ValueError as cause:
        sys.exit(str(cause))
