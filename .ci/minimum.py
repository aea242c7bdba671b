"""The lowest versions that pyproject.toml allows, as constraints for pip: `python .ci/minimum.py > constraints.txt`."""

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9][0-9A-Za-z.]*)$")


def constraints(pyproject: str) -> list[str]:
    """name==version of every dependency, extra and tool of the tests; ValueError on one without a lower bound."""
    whole = tomllib.loads(pyproject)
    project = whole["project"]
    listed = [*project["dependencies"], *whole["dependency-groups"]["dev"]]
    listed += [one for extra in project["optional-dependencies"].values() for one in extra]
    found = {}
    for one in listed:
        bound = BOUND.match(one.replace(" ", ""))
        if bound is None:
            raise ValueError(f"{one!r} has no single lower bound; expected 'name>=version'")
        found[bound[1]] = bound[2]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    path = Path(__file__).parent.parent / "pyproject.toml"
    sys.stdout.write("\n".join(constraints(path.read_text(encoding="utf-8"))) + "\n")
