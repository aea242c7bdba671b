"""DICOM and TIFF files as grey values or colours, and the window of values that a screen shows of them.

A window with centre c and width w maps the values from c - w/2 to c + w/2 to black to white.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MissingExtra
from altmas.extras import require

SUFFIXES = (".dcm", ".dicom", ".tif", ".tiff")
HEAD = 132
"""Bytes of a file that show which kind it is."""


@dataclass(frozen=True)
class Window:
    """Which values are shown, and between which all values of the image lie."""

    center: float
    width: float
    low: float
    high: float


@dataclass(frozen=True)
class Scan:
    """Pixels of a file: (H, W) values with the window that shows them best, or (H, W, 3 or 4) bytes without one."""

    values: NDArray[Any]
    window: Window | None = None
    inverted: bool = False

    def pixels(self, window: Window | None = None) -> NDArray[np.uint8]:
        """Bytes for a screen, through the given window or the scan's own."""
        through = window or self.window
        if through is None:
            return self.values.astype(np.uint8)
        share = (self.values.astype(np.float64) - (through.center - through.width / 2)) / through.width
        grey = np.round(np.clip(np.nan_to_num(share), 0, 1) * 255).astype(np.uint8)
        return 255 - grey if self.inverted else grey


def scan_kind(head: bytes) -> str:
    """ "dicom", "tiff" or "" by the first HEAD bytes of a file."""
    if head[128:132] == b"DICM":
        return "dicom"
    return "tiff" if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+") else ""


def read_scan(content: bytes, kind: str) -> Scan:
    """The first image of a DICOM or TIFF file; MissingExtra without the packages, ValueError for a damaged file."""
    require("images", {"dicom": "showing a DICOM image", "tiff": "showing a TIFF image"}[kind])
    try:
        return _dicom(content) if kind == "dicom" else _tiff(content)
    except MissingExtra:
        raise
    except Exception as cause:  # a damaged file can fail in any way
        raise ValueError(f"the {'DICOM' if kind == 'dicom' else 'TIFF'} file cannot be decoded") from cause


def _dicom(content: bytes) -> Scan:
    import pydicom

    data = pydicom.dcmread(io.BytesIO(content))
    array = np.asarray(data.pixel_array)
    colours = int(getattr(data, "SamplesPerPixel", 1)) > 1
    if array.ndim > 2 + colours:
        array = array[0]  # the first of several frames
    if colours:
        return Scan(array)
    values = array * float(getattr(data, "RescaleSlope", 1)) + float(getattr(data, "RescaleIntercept", 0))
    window = _window(values, _first(data, "WindowCenter"), _first(data, "WindowWidth"))
    return Scan(values, window, inverted=str(getattr(data, "PhotometricInterpretation", "")) == "MONOCHROME1")


def _tiff(content: bytes) -> Scan:
    import tifffile

    array = np.asarray(tifffile.imread(io.BytesIO(content), key=0))
    if array.ndim == 3 and array.shape[-1] in (3, 4) and array.dtype == np.uint8:
        return Scan(array)
    if array.ndim == 3 and array.shape[-1] in (3, 4):  # colours of more than 8 bits
        return Scan(np.round(array / (array.max() or 1) * 255))
    if array.ndim != 2:
        raise ValueError(f"an array of shape {array.shape} is no image")
    return Scan(array, _window(array))


def _first(data: Any, name: str) -> float | None:
    """A number of a DICOM header, the first where there are several."""
    value = getattr(data, name, None)
    if value is None or value == "":
        return None
    return float(value[0] if hasattr(value, "__len__") and not isinstance(value, str) else value)


def _window(values: NDArray[Any], center: float | None = None, width: float | None = None) -> Window:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if center is None or width is None or width <= 0:
        center, width = (low + high) / 2, (high - low) or 1.0
    return Window(center, width, low, high)
