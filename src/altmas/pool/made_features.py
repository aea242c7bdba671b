"""Features made from what is there: texts (TF-IDF and SVD), images (a small descriptor), categories (one-hot).

They need no labels and no model. Everything is a function of the pool alone, so the same pool has the same features.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MissingExtra, PoolError
from altmas.extras import install
from altmas.items.images import NoImage, image_bytes, looks_like_image, pixels_of

Floats = NDArray[np.float32]

WIDTH = 128
"""Columns that texts become."""

MOST_WORDS = 50_000
FITTED_ON = 50_000
"""Rows from which the words and the projection are taken; the others are only projected."""

CHUNK = 20_000
"""Texts or images that are looked at together."""

MOST_CATEGORIES = 50
"""Different values up to which a column of short texts holds categories."""

WITHOUT_BLANKS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts that do not put blanks between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

SIDE, CELLS, ANGLES = 32, 4, 8
"""Images are taken at 32 x 32; gradients are counted in 4 x 4 cells and 8 directions."""


def made_from(values: Sequence[Any], what: str, folder: Path, like: Sequence[Any] | None = None) -> tuple[Floats, str]:
    """(features, how they were made) of a column of texts, image paths, images or categories; PoolError otherwise.

    like  values whose words, projection and categories are taken, so that both have features of the same meaning
    """
    first = [value for value in values[:1000] if value is not None]
    if first and all(map(looks_like_image, first)):
        return image_features(values, what, folder), f"image descriptors of {what}"
    texts = _texts(values)
    known = texts if like is None else _texts(like)
    categories = sorted(set(known))
    if len(categories) <= min(MOST_CATEGORIES, len(known) / 5) and max(map(len, categories)) <= 40:
        if len(categories) < 2:
            raise PoolError(f"{what} holds one value in all rows, from which nothing can be learned; leave it out")
        equal = np.array([[text == category for category in categories] for text in texts])
        return equal.astype(np.float32), f"{len(categories)} categories of {what}"
    features = text_features(texts, what, like=known)
    return features, f"TF-IDF and SVD of the texts in {what} ({features.shape[1]} columns)"


# ---------------------------------------------------------------- texts


def _texts(values: Sequence[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]


def text_features(
    texts: Sequence[str], what: str = "texts", width: int = WIDTH, like: Sequence[str] | None = None
) -> Floats:
    """(N, width) TF-IDF of words and pairs of words, projected by SVD, each row of length 1; rounded to 4 digits.

    Words and projection are those of the texts themselves, or of `like`. Scripts without blanks between words are taken
    by letters. PoolError if no word stands in two texts.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    known = texts if like is None else like
    sample = [known[row] for row in np.linspace(0, len(known) - 1, min(FITTED_ON, len(known))).astype(int)]
    letters = len(WITHOUT_BLANKS.findall("".join(sample[:1000]))) > 0.3 * sum(map(len, sample[:1000]))
    options = {"analyzer": "char"} if letters else {"token_pattern": r"(?u)\b\w+\b"}
    words = TfidfVectorizer(
        ngram_range=(1, 2), min_df=2, max_features=MOST_WORDS, sublinear_tf=True, dtype=np.float32, **options
    )
    try:
        counted = words.fit_transform(sample)
    except ValueError:  # scikit-learn has no other word for an empty vocabulary
        counted = np.zeros((0, 0))
    columns = min(width, counted.shape[0] - 1, counted.shape[1] - 1)
    spread = 1 - np.square(np.asarray(counted.mean(0))).sum() if columns >= 1 else 0.0  # rows have length 1
    if spread < 1e-6:
        raise PoolError(
            f"{what}: no words that several texts share tell them apart (the first is {sample[0][:40]!r}), so no "
            "features can be made of them; leave it out (--features), or give columns of numbers or longer texts"
        )
    projection = TruncatedSVD(columns, random_state=0).fit(counted)
    made = np.empty((len(texts), columns), np.float32)
    for start in range(0, len(texts), CHUNK):
        rows = words.transform(texts[start : start + CHUNK])
        made[start : start + CHUNK] = normalize(projection.transform(rows)).round(4)
    return made


# ---------------------------------------------------------------- images


def image_features(values: Sequence[Any], what: str, folder: Path) -> Floats:
    """(N, 192 or 320) a small descriptor of each image; PoolError naming the row of one that cannot be read."""
    described = []
    for row in range(len(values)):
        try:
            described.append(descriptor(_pixels(values[row], folder)))
        except NoImage as cause:
            raise PoolError(f"{what}, row {row}: {cause}; features of images need every image") from None
    widths = {len(vector) for vector in described}
    if len(widths) > 1:  # some are grey, some in colour
        described = [descriptor_in_colour(vector) for vector in described]
    return np.stack(described)


def _pixels(value: Any, folder: Path) -> NDArray[Any]:
    """(H, W) or (H, W, 3 or 4) numbers of an array, a path or the bytes of a file; NoImage if there are none."""
    if value is None:
        raise NoImage("there is no image")
    if isinstance(value, str | bytes | dict | Path):
        content, _ = image_bytes(value, folder)
        return np.asarray(_decoded(content))
    return pixels_of(value)


def _decoded(content: bytes) -> Any:
    """The picture in the bytes of a file."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as cause:
        raise MissingExtra(
            f"features of image files need Pillow; install it with {install('images')}, or give arrays"
        ) from cause
    try:
        with Image.open(BytesIO(content)) as picture:
            picture.draft("RGB", (4 * SIDE, 4 * SIDE))  # JPEG is read at a fraction of its size
            grey = picture.mode in ("1", "L", "LA", "I", "I;16", "F")
            return picture.convert("L" if grey else "RGB")
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as cause:
        raise NoImage("the image cannot be decoded") from cause


def descriptor(pixels: NDArray[Any]) -> Floats:
    """A coarse description of an image: 8 x 8 means of each channel, and gradients by cell and direction.

    A grey image has 64 + 128 numbers, a coloured one 3 * 64 + 128.
    """
    array: NDArray[Any] = np.asarray(pixels, np.float32)
    if array.max(initial=0.0) > 1:
        array = array / 255
    channels = array[..., None] if array.ndim == 2 else array[..., :3]
    small = np.stack([_resized(channels[..., k], SIDE) for k in range(channels.shape[-1])], -1)
    means = small.reshape(8, SIDE // 8, 8, SIDE // 8, -1).mean((1, 3))
    return np.concatenate([means.transpose(2, 0, 1).ravel(), _gradients(small.mean(-1))]).astype(np.float32)


def descriptor_in_colour(vector: Floats) -> Floats:
    """The descriptor of a grey image as that of a coloured one with three equal channels."""
    grey, coloured = 64 + CELLS**2 * ANGLES, 3 * 64 + CELLS**2 * ANGLES
    assert len(vector) in (grey, coloured)
    return vector if len(vector) == coloured else np.concatenate([vector[:64], vector[:64], vector])


def _resized(channel: NDArray[Any], side: int) -> NDArray[Any]:
    """(side, side) means of the pixels that fall into each cell; a small image is repeated."""
    for axis in (0, 1):
        length = channel.shape[axis]
        if length < side:
            channel = np.take(channel, np.arange(side) * length // side, axis)
        else:
            starts = np.arange(side) * length // side
            sizes = np.diff(np.append(starts, length))
            shape = [-1 if dimension == axis else 1 for dimension in (0, 1)]
            channel = np.add.reduceat(channel, starts, axis) / sizes.reshape(shape)
    return channel


def _gradients(grey: NDArray[Any]) -> Floats:
    """(CELLS * CELLS * ANGLES,) lengths of gradients by cell and direction, scaled to length 1."""
    down, right = np.gradient(grey)
    angle = ((np.arctan2(down, right) % np.pi) / np.pi * ANGLES).astype(int) % ANGLES
    cell = np.arange(SIDE) * CELLS // SIDE
    bins = (cell[:, None] * CELLS + cell[None, :]) * ANGLES + angle
    counted = np.bincount(bins.ravel(), np.hypot(down, right).ravel(), CELLS**2 * ANGLES)
    return (counted / (np.linalg.norm(counted) + 1e-6)).astype(np.float32)
