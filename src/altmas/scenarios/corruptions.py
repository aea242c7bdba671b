"""Things that go wrong with data on the way to a model: generators for tables, texts and images (C.9).

A corruption is a function (data, share, rng) -> changed copy, in which about `share` of the rows are affected.
tables  (n, D) numbers;  texts  a sequence of str;  images  (n, H, W) or (n, H, W, channels) numbers
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import PoolError
from altmas.types import Array

Corruption = Callable[[Any, float, np.random.Generator], Any]

SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.99)
"""Shares of rows that are affected in the copies a predictor learns from."""


def affected(n: int, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """round(share n) rows at random."""
    return rng.choice(n, round(share * n), replace=False)


# ---------------------------------------------------------------- tables


def _cells(data: Array, share: float, rng: np.random.Generator) -> tuple[Array, tuple[Array, ...], Array]:
    """A copy in floats, the affected rows of a random number of columns as an index, and those columns."""
    changed = np.array(data, np.float64)
    columns = rng.choice(changed.shape[1], rng.integers(1, changed.shape[1] + 1), replace=False)
    return changed, np.ix_(affected(len(changed), share, rng), columns), columns


def missing_values(data: Array, share: float, rng: np.random.Generator) -> Array:
    """Values that are gone: nan if the data has such already, so that the model can cope with it, else the mean."""
    changed, cells, columns = _cells(data, share, rng)
    gone = np.isnan(changed).any()
    changed[cells] = np.nan if gone else changed[:, columns].mean(0)
    return changed


def outliers(data: Array, share: float, rng: np.random.Generator) -> Array:
    """Noise of one to five standard deviations of the column."""
    changed, cells, columns = _cells(data, share, rng)
    spread = np.nanstd(changed[:, columns], axis=0) * rng.uniform(1, 5)
    changed[cells] += spread * rng.standard_normal(changed[cells].shape)
    return changed


def wrong_scale(data: Array, share: float, rng: np.random.Generator) -> Array:
    """Values times 10, 100 or 1000, as after a change of unit."""
    changed, cells, _ = _cells(data, share, rng)
    changed[cells] *= rng.choice([10.0, 100.0, 1000.0])
    return changed


def swapped_columns(data: Array, share: float, rng: np.random.Generator) -> Array:
    """Two columns that changed places."""
    changed = np.array(data, np.float64)
    if changed.shape[1] > 1:
        pair, rows = rng.choice(changed.shape[1], 2, replace=False), affected(len(changed), share, rng)
        changed[np.ix_(rows, pair)] = changed[np.ix_(rows, pair[::-1])]
    return changed


def flipped_sign(data: Array, share: float, rng: np.random.Generator) -> Array:
    """Values times -1."""
    changed, cells, _ = _cells(data, share, rng)
    changed[cells] *= -1
    return changed


# ---------------------------------------------------------------- texts


def typos(texts: Sequence[str], share: float, rng: np.random.Generator) -> list[str]:
    """Neighbouring letters exchanged, letters lost and doubled: about one letter in eight of an affected text."""
    changed = list(texts)
    for row in affected(len(changed), share, rng).tolist():
        letters = list(changed[row])
        for position in np.flatnonzero(rng.random(len(letters)) < 0.125).tolist():
            kind = rng.integers(3)
            if kind == 0 and position + 1 < len(letters):
                letters[position], letters[position + 1] = letters[position + 1], letters[position]
            else:
                letters[position] = "" if kind == 1 else letters[position] * 2
        changed[row] = "".join(letters)
    return changed


def lost_words(texts: Sequence[str], share: float, rng: np.random.Generator) -> list[str]:
    """Texts of which every word is lost with the same probability, between 0.1 and 0.9."""
    changed, loss = list(texts), rng.uniform(0.1, 0.9)
    for row in affected(len(changed), share, rng).tolist():
        words = changed[row].split()
        kept = rng.random(len(words)) >= loss
        changed[row] = " ".join(word for word, keep in zip(words, kept, strict=True) if keep)
    return changed


# ---------------------------------------------------------------- images


def rotation(images: Array, share: float, rng: np.random.Generator) -> Array:
    """Images turned by the same angle, up to 90 degrees either way."""
    from scipy.ndimage import rotate

    changed, rows = np.array(images), affected(len(images), share, rng)
    if len(rows):
        angle = rng.uniform(-90, 90)
        changed[rows] = rotate(changed[rows], angle, axes=(2, 1), reshape=False, order=1, mode="nearest")
    return changed


def image_noise(images: Array, share: float, rng: np.random.Generator) -> Array:
    """Noise of 5 to 100 % of the range of values, cut to that range."""
    changed, rows = np.array(images), affected(len(images), share, rng)
    low, high = float(changed.min()), float(changed.max())
    noise = rng.uniform(0.05, 1.0) * (high - low) * rng.standard_normal(changed[rows].shape)
    changed[rows] = np.clip(changed[rows] + noise, low, high).astype(changed.dtype)
    return changed


def contrast(images: Array, share: float, rng: np.random.Generator) -> Array:
    """Images whose values are drawn towards their mean, down to a tenth of the contrast."""
    changed, rows = np.array(images), affected(len(images), share, rng)
    if len(rows):
        some = changed[rows].astype(np.float64)
        mean = some.mean(axis=tuple(range(1, some.ndim)), keepdims=True)
        changed[rows] = (mean + rng.uniform(0.1, 0.9) * (some - mean)).astype(changed.dtype)
    return changed


# ---------------------------------------------------------------- which to use


KINDS: dict[str, tuple[Corruption, ...]] = {
    "table": (missing_values, outliers, wrong_scale, swapped_columns, flipped_sign),
    "text": (typos, lost_words),
    "image": (rotation, image_noise, contrast),
}
"""Corruptions by the kind of data."""


def kind_of(data: Any) -> str:
    """The kind of data that this is."""
    if len(data) and not hasattr(data, "columns") and isinstance(next(iter(data)), str):
        return "text"
    array = np.asarray(data)
    if array.dtype.kind in "biuf" and array.ndim == 2 and not hasattr(data, "columns"):
        return "table"
    if array.dtype.kind in "biuf" and array.ndim in (3, 4):
        return "image"
    raise PoolError(
        f"source ({type(data).__name__} of shape {array.shape}, {array.dtype}) is neither an array of numbers (n, D), "
        "nor texts, nor images (n, H, W); pass corruptions=[function(data, share, rng)] for other data"
    )


def mixed(corruptions: Sequence[Corruption]) -> Corruption:
    """One after the other of two or more of these, in random number and order: for errors nobody thought of."""

    def mixture(data: Any, share: float, rng: np.random.Generator) -> Any:
        count = int(rng.integers(min(2, len(corruptions)), len(corruptions) + 1))
        for at in rng.permutation(len(corruptions))[:count].tolist():
            data = corruptions[at](data, share, rng)
        return data

    return mixture
