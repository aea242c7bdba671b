"""Arrays in session files: the same bits come back, and nothing in them is ever unpickled or believed unchecked."""

import io
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from altmas.session.arrays import pack, unpack


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.random.default_rng(0).normal(size=(4, 3))),
        np.array(["ü", "x", ""]),
        np.array([], np.float32),
        np.zeros((0, 3)),
        np.array(2.5),
        np.array([True, False]),
        np.array(["2026-01-01"], "datetime64[D]"),
        np.array([1, 2], ">i4"),
    ],
)
def test_an_array_comes_back_bit_for_bit_and_in_the_same_order_in_memory(array):
    again = unpack(pack({"one": array, "two": array}))
    assert list(again) == ["one", "two"]
    np.testing.assert_array_equal(again["one"], array)
    assert again["one"].dtype == array.dtype and again["one"].strides == array.strides
    assert again["one"].flags.writeable


def test_numpy_reads_it_too():
    with np.load(io.BytesIO(pack({"a": np.arange(3), "b": np.eye(2)})), allow_pickle=False) as archive:
        assert archive.files == ["a", "b"]
        np.testing.assert_array_equal(archive["b"], np.eye(2))


def test_what_earlier_versions_wrote_is_read_without_the_stray_array_of_old_numpy():
    buffer = io.BytesIO()
    np.savez(buffer, rows=np.arange(3))
    assert unpack(buffer.getvalue())["rows"].tolist() == [0, 1, 2]
    stray = pack({"allow_pickle": np.array(False), "rows": np.arange(3)})
    assert list(unpack(stray)) == ["rows"]


def test_objects_are_refused_never_pickled():
    with pytest.raises(ValueError, match="allow_pickle"):
        pack({"bad": np.array([{}], object)})


class Trick:
    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle was run')",)


def npz(content: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("rows.npy", content)
    return buffer.getvalue()


def npy(header: str, content: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK",
        pickle.dumps(Trick()),
        npz(pickle.dumps(Trick())),
        npz(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n", pickle.dumps([Trick()]))),
        npz(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}\n", bytes(8))),
        npz(npy("{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,)}\n", b"")),
        npz(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}\n", bytes(8))),
        npz(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "(" * 900 + ")}\n", bytes(8))),
        npz(npy("__import__('os').abort()\n", bytes(8))),
        npz(bytes(10_000_000), zipfile.ZIP_DEFLATED),
        pack({"rows": np.arange(100)})[:-30],
    ],
)
def test_bytes_that_are_no_arrays_are_refused(data):
    with pytest.raises(ValueError, match="arrays that cannot be read"):
        unpack(data)


def test_the_old_writer_of_numpy_is_not_used():
    """numpy before 2.2 has no allow_pickle in savez: the keyword became an array, and objects were pickled."""
    script = """
import sys, numpy as np
def savez(*args, **arrays):
    sys.exit("savez was called")
np.savez = savez
from altmas.session.arrays import pack, unpack
print(sorted(unpack(pack({"rows": np.arange(2)}))))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['rows']\n", "")
