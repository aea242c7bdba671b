"""Images for a browser: arrays as PNG, and files that truly are images.

Nothing here trusts a name: what is served is decided by the first bytes of the content.
"""

import base64
import binascii
import os
import struct
import zlib
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MissingExtra
from altmas.items import scans
from altmas.items.scans import Window

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif")
"""What a browser can show; a text that ends so is taken for the path of an image."""

UNSHOWABLE = (".svg", ".nii", ".heic")
"""Paths of images that no browser shows, or that could hold a programme."""

MAX_BYTES = 64 * 2**20

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (4, b"ftypavif", "image/avif"),
)


class NoImage(Exception):
    """Why an item's image cannot be shown, in words that give no name or content away."""


def media_type(head: bytes) -> str | None:
    """The media type that the first bytes of a file show, or None for what is no image."""
    for at, signature, kind in _SIGNATURES:
        if head[at : at + len(signature)] == signature:
            return kind
    return None


def looks_like_image(value: object) -> bool:
    """Whether a value of an item is to be shown as an image rather than as text."""
    if isinstance(value, PurePath):
        return True
    if isinstance(value, bytes):
        return media_type(value[:16]) is not None or bool(scans.scan_kind(value[: scans.HEAD]))
    if isinstance(value, str):
        return _is_path(value, SUFFIXES + scans.SUFFIXES + UNSHOWABLE) or value[:11].lower() == "data:image/"
    if isinstance(value, dict):  # how Hugging Face writes an image that was not decoded
        return set(value) == {"bytes", "path"}
    return _is_picture_array(value)


def is_image_path(text: str) -> bool:
    """Whether a text is the path of an image file, by its ending; an address on the web is none."""
    return _is_path(text, SUFFIXES + scans.SUFFIXES + UNSHOWABLE) and "://" not in text


def image_bytes(value: object, folder: Path) -> tuple[bytes, str]:
    """(content, media type) of an image value; NoImage with the reason. Relative paths start at `folder`."""
    return image_shown(value, folder)[:2]


def image_shown(value: object, folder: Path, window: Window | None = None) -> tuple[bytes, str, Window | None]:
    """The same, and the window of values that is shown of a DICOM or grey TIFF file; None where there is none."""
    if isinstance(value, dict):
        value = value["bytes"] if value["bytes"] is not None else value["path"]
    if isinstance(value, str) and value[:5].lower() == "data:":
        value = _decoded(value)
    if isinstance(value, str | PurePath):
        value = _read(os.fspath(value), folder)
    if not isinstance(value, bytes):
        return png(pixels_of(value)), "image/png", None
    if scan := scans.scan_kind(value[: scans.HEAD]):
        return _scan_shown(value, scan, window)
    kind = media_type(value[:16])
    if kind is None:
        raise NoImage("the file is not an image that a browser can show")
    return value, kind, None


def _scan_shown(content: bytes, kind: str, window: Window | None) -> tuple[bytes, str, Window | None]:
    try:
        scan = scans.read_scan(content, kind)
    except (MissingExtra, ValueError) as cause:
        raise NoImage(str(cause)) from cause
    return png(scan.pixels(window)), "image/png", window or scan.window


def pixels_of(value: Any) -> NDArray[np.uint8]:
    """(H, W), (H, W, 3) or (H, W, 4) bytes of an array or a picture object.

    Bytes stay as they are, numbers between 0 and 1 are stretched to 0..255, all others from their least to their
    greatest; undefined numbers are black.
    """
    if hasattr(value, "convert") and getattr(value, "mode", "L") not in ("L", "RGB", "RGBA"):
        value = value.convert("RGB")
    array = np.asarray(value)
    if array.ndim == 3 and array.shape[-1] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or array.dtype.kind not in "biuf" or 0 in array.shape:
        raise NoImage(f"an array of shape {array.shape} is no image")
    return array if array.dtype == np.uint8 else _stretched(array)


def _stretched(array: NDArray[Any]) -> NDArray[np.uint8]:
    values = array.astype(np.float64)
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if 0 <= low and high <= 1:
        low, high = 0.0, 1.0
    scaled = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / ((high - low) or 1.0)
    return np.round(scaled * 255).astype(np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """The PNG file of (H, W), (H, W, 3) or (H, W, 4) bytes: signature, header, zlib-packed rows, end."""
    height, width = pixels.shape[:2]
    colour = {2: 0, 3: 2, 4: 6}[2 if pixels.ndim == 2 else pixels.shape[2]]
    rows = pixels.reshape(height, -1)
    filtered = np.hstack([np.zeros((height, 1), np.uint8), rows])  # filter 0 before each row
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = zlib.compress(filtered.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _is_path(text: str, suffixes: tuple[str, ...]) -> bool:
    return len(text) < 4096 and "\n" not in text and text.lower().endswith(suffixes)


def _is_picture_array(value: object) -> bool:
    if isinstance(value, str | bytes | dict | list | tuple) or not hasattr(value, "__array_interface__"):
        return False
    array = np.asarray(value)
    return array.dtype.kind in "biuf" and (array.ndim == 2 or (array.ndim == 3 and _has_channels(array.shape)))


def _has_channels(shape: tuple[int, ...]) -> bool:
    return shape[-1] in (1, 3, 4) or shape[0] in (1, 3, 4)


def _decoded(address: str) -> bytes:
    head, _, body = address.partition(",")
    try:
        return base64.b64decode(body, validate=True) if head.lower().endswith(";base64") else b""
    except (binascii.Error, ValueError) as cause:
        raise NoImage("the image inside the item is damaged") from cause


def _read(name: str, folder: Path) -> bytes:
    """The file that an item names; one that leaves `folder` by .. is refused, whatever is there."""
    if "://" in name:
        raise NoImage("the image is on another server; this page never fetches from elsewhere")
    if name.lower().endswith(UNSHOWABLE):
        raise NoImage("browsers cannot show this kind of image; convert it to PNG")
    base = os.path.abspath(folder)
    path = os.path.normpath(os.path.join(base, name)) if "\0" not in name else base
    if not os.path.isabs(name) and os.path.commonpath([base, path]) != base:
        raise NoImage("its path leaves the folder of the table, so it was not opened; use an absolute path")
    try:
        if os.path.getsize(path) > MAX_BYTES:
            raise NoImage(f"the image is larger than {MAX_BYTES // 2**20} MB")
        return Path(path).read_bytes()
    except OSError as cause:
        raise NoImage(f"the image cannot be read ({cause.strerror})") from cause
