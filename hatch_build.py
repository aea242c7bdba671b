"""What the package index shows: README and project URLs with the address of the repository, where a release names it.

hatchling calls the hook whenever it makes metadata. ALTMAS_REPOSITORY_URL is the address of a repository on GitHub, or
on a server with the same paths; .github/workflows/release.yml sets it. Without it the package has README as it is, and
no URLs.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "ALTMAS_REPOSITORY_URL"
RELATIVE = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?://|mailto:|#)(?P<path>[^)\s]+)\)")


class PackagePage(MetadataHookInterface):
    """Sets the fields that pyproject.toml lists as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = repository(os.environ.get(VARIABLE, ""))
        tag = f"v{metadata['version']}"
        text = with_absolute_links(readme, address, tag) if address else readme
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = project_urls(address, tag) if address else {}


def repository(given: str) -> str:
    """The address without a slash at its end; empty if none is given, ValueError if it is none."""
    address = given.strip().rstrip("/").removesuffix(".git")
    if address and not re.fullmatch(r"https?://[^/\s]+/\S+", address):
        raise ValueError(f"{VARIABLE} is {given!r}; expected the address of the repository: https://HOST/OWNER/NAME")
    return address


def project_urls(address: str, tag: str) -> dict[str, str]:
    """The links beside the package on an index; pages are those of the release."""
    return {
        "Homepage": address,
        "Documentation": f"{address}/blob/{tag}/docs/index.md",
        "Repository": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
    }


def with_absolute_links(readme: str, address: str, tag: str) -> str:
    """README whose images and links lead into the repository at the tag, and which can be cloned from there."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["image"] else "blob"
        return f"{link['image']}{link['text']}({address}/{kind}/{tag}/{link['path']})"

    return RELATIVE.sub(absolute, readme).replace("<this repository>", address)
