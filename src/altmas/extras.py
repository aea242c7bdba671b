"""Packages that only some parts need: the extra that installs them, and the sentence that says so."""

from importlib.util import find_spec

from altmas.errors import MissingExtra

EXTRAS: dict[str, dict[str, str]] = {
    "paper": {"jax": "jax", "optax": "optax", "bayes_opt": "bayesian-optimization"},
    "embeddings": {"sentence_transformers": "sentence-transformers"},
    "images": {"PIL": "pillow", "pydicom": "pydicom", "tifffile": "tifffile"},
}
"""{extra: {module: distribution}} as pyproject.toml declares them."""


def missing(extra: str) -> list[str]:
    """The distributions of an extra that are not installed; an empty name needs nothing."""
    return [name for module, name in EXTRAS.get(extra, {}).items() if find_spec(module) is None]


def install(extra: str) -> str:
    """The command that installs an extra, from an index and in a copy of the repository."""
    return f"pip install 'altmas[{extra}]' (in a copy of the repository: pip install '.[{extra}]')"


def require(extra: str, what: str) -> None:
    """MissingExtra, which says what to install, if a part that `what` names needs an extra that is not there."""
    lacking = missing(extra)
    if lacking:
        raise MissingExtra(f"{what} needs {_joined(lacking)}, so nothing was done; install the extra: {install(extra)}")


def _joined(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
