"""Arrays as bytes and back: one .npz file without compression and without pickles, whatever the version of numpy.

numpy.savez is not used: before numpy 2.2 it takes `allow_pickle` for the name of one more array and pickles objects.
What is read comes from a file that anybody may have written, so nothing is allocated before its size was checked.
"""

import io
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

STRAY = "allow_pickle"
"""An array that numpy before 2.2 wrote beside those that were given."""

Arrays = dict[str, NDArray[Any]]


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays as the bytes of one .npz file; ValueError on an array of objects, which could only be pickled."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                npy.write_array(file, np.asanyarray(array), allow_pickle=False)
    return buffer.getvalue()


def unpack(data: bytes) -> Arrays:
    """The arrays of `pack`; ValueError if the bytes are something else."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {member.filename.removesuffix(".npy"): _content(archive, member) for member in archive.infolist()}
        return {name: _array(content) for name, content in members.items() if name != STRAY}
    except Exception as cause:  # bytes that were changed can fail in any way
        raise ValueError(f"arrays that cannot be read ({cause})") from cause


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of one member; a compressed one is refused, because a few bytes could become many."""
    if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
        raise ValueError(f"{member.filename!r} is compressed, which altmas never writes")
    return archive.read(member)


def _array(content: bytes) -> NDArray[Any]:
    """The array in the bytes of one .npy file, whose header must announce exactly as much as there is."""
    file = io.BytesIO(content)
    version = npy.read_magic(file)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"an array of format {version}, which altmas never writes")
    shape, by_column, dtype = read_header(file)
    start = file.tell()
    if dtype.hasobject:
        raise ValueError(f"an array of {dtype}, which altmas never writes")
    if math.prod(shape) * dtype.itemsize != len(content) - start or math.prod(shape) > len(content):
        raise ValueError(f"an array of shape {shape} and {dtype} does not take {len(content) - start} bytes")
    array: NDArray[Any] = np.ndarray(shape, dtype, content, start, order="F" if by_column else "C")
    return array.copy(order="K")  # in the same order in memory: sums in another order could end in other bits
