"""What a labeller is shown: an item as a list of parts, each a text, a named value or an image.

A part never holds HTML, a path or the item's id: the page puts texts in as text and fetches images by handle.
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.items.conversations import conversation, structured
from altmas.items.images import NoImage, image_shown, is_image_path, looks_like_image
from altmas.items.pairs import Pair
from altmas.items.scans import Window

if TYPE_CHECKING:
    from altmas.pool import Pool

Part = dict[str, Any]


def parts_of(pool: "Pool", row: int) -> list[Part]:
    """The parts of one item, in order; without items the id alone, since there is nothing else to recognise it by."""
    if pool.items is None:
        return [{"kind": "value", "name": "item", "text": str(pool.ids[row])}]
    item = pool.items[row]
    return [_part(number, name, value) for number, (name, value) in enumerate(_fields(item))]


def paired(parts: list[Part], pair: Pair) -> list[Part]:
    """The parts with the two answers of a pair as left and right, without their names: those can say whose they are."""
    sides = dict(zip(pair.fields, ("left", "right"), strict=True))
    shown = []
    for part in parts:
        side = sides.get(str(part["name"]))
        kind = "image" if part["kind"] == "image" else "text"
        shown.append(part if side is None else part | {"kind": kind, "name": None, "side": side})
    return shown


def image_of(pool: "Pool", row: int, number: int) -> tuple[bytes, str]:
    """(content, media type) of one image part; NoImage with the reason if there is none."""
    return windowed_image_of(pool, row, number)[:2]


def windowed_image_of(
    pool: "Pool", row: int, number: int, window: Window | None = None
) -> tuple[bytes, str, Window | None]:
    """The same, and the window of values that is shown of a DICOM or grey TIFF file; None where there is none."""
    fields = [] if pool.items is None else _fields(pool.items[row])
    if not 0 <= number < len(fields) or not looks_like_image(fields[number][1]):
        raise NoImage("this item has no such image")
    return image_shown(fields[number][1], folder_of(pool), window)


def folder_of(pool: "Pool") -> Path:
    """Where relative image paths start: the folder of the table, or the present one for a pool made in memory."""
    folder = (pool.source or {}).get("folder")
    return Path(folder) if folder is not None else Path.cwd()


def missing_images(pool: "Pool", most: int = 200) -> tuple[list[str], int]:
    """(image paths that lead to no file, how many were looked at) among the first items."""
    items = [] if pool.items is None else [pool.items[row] for row in range(min(len(pool), most))]
    values = [value for item in items for _, value in _fields(item)]
    paths = [value for value in values if isinstance(value, str) and is_image_path(value)]
    return [path for path in paths if not os.path.exists(folder_of(pool) / path)], len(paths)


def _fields(item: Any) -> list[tuple[str | None, Any]]:
    """(name, value) of everything in an item; the name is None for an item that is one bare value."""
    if isinstance(item, dict) and not looks_like_image(item):
        return [(str(name), value) for name, value in item.items()]
    if isinstance(item, np.void) and item.dtype.names:
        return [(str(name), item[name]) for name in item.dtype.names]
    return [(None, item)]


def _part(number: int, name: str | None, value: Any) -> Part:
    if looks_like_image(value):
        return {"kind": "image", "name": name, "number": number}
    text = text_of(value)
    return {"kind": "text" if name is None else "value", "name": name, "text": text}


def text_of(value: Any) -> str | None:
    """A value as a labeller reads it; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if (messages := conversation(value)) is not None:
        return messages
    if isinstance(value, list | tuple | dict):
        return structured(value)
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, threshold=200, separator=", ")
    return str(value)
