"""MNIST and FashionMNIST as arrays, from a folder of idx files or from the ordinary download.

A file is looked for in `folder`, then in `$ALTMAS_DATA/<dataset>` (where that is not set, in
`../shared/data/<dataset>` beside the repository), then in the user's cache
(`$XDG_CACHE_HOME/altmas` or `~/.cache/altmas`); only then is it downloaded into that cache.
Whatever its origin, a file with another sha256 is refused.

    AltmasError
    ├── DataMissing  (FileNotFoundError)  no folder holds the file and it could not be downloaded
    └── FileError
        └── DataDamaged                   a file is there, but it is not the published one
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import struct
import urllib.request
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from altmas.errors import AltmasError, FileError

Pixels: TypeAlias = NDArray[np.uint8]

TIMEOUT_SECONDS: Final = 30
CHUNK_BYTES: Final = 1 << 16
UNSIGNED_BYTE: Final = 0x08  # the only idx element type these datasets use


class DataMissing(AltmasError, FileNotFoundError):
    """Data of a benchmark that no folder holds and no download gave."""


class DataDamaged(FileError):
    """A data file whose bytes are not the published ones."""


class Dataset(NamedTuple):
    """Where an idx dataset is published, and the sha256 of each of its files."""

    name: str
    mirrors: tuple[str, ...]
    sha256: Mapping[str, str]


class Split(NamedTuple):
    """images (N, 28, 28) uint8 and labels (N,) uint8, in the published order."""

    images: Pixels
    labels: Pixels


TRAIN_IMAGES: Final = "train-images-idx3-ubyte.gz"
TRAIN_LABELS: Final = "train-labels-idx1-ubyte.gz"
TEST_IMAGES: Final = "t10k-images-idx3-ubyte.gz"
TEST_LABELS: Final = "t10k-labels-idx1-ubyte.gz"
FILES_OF_SPLIT: Final = {"train": (TRAIN_IMAGES, TRAIN_LABELS), "test": (TEST_IMAGES, TEST_LABELS)}

MNIST: Final = Dataset(
    "mnist",
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    {
        TRAIN_IMAGES: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        TRAIN_LABELS: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        TEST_IMAGES: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        TEST_LABELS: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)
FASHION_MNIST: Final = Dataset(
    "fashion-mnist",
    (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    ),
    {
        TRAIN_IMAGES: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        TRAIN_LABELS: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        TEST_IMAGES: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        TEST_LABELS: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
)


def data_folder() -> Path | None:
    """The folder of shared data: `ALTMAS_DATA`, else `../shared/data` beside the repository, else None."""
    named = os.environ.get("ALTMAS_DATA")
    if named:
        return Path(named)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return beside if beside.is_dir() else None


def cache_folder() -> Path:
    """Where downloads are kept: `$XDG_CACHE_HOME/altmas`, else `~/.cache/altmas`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "altmas"


def load_split(dataset: Dataset, split: str, *, folder: Path | None = None, download: bool = True) -> Split:
    """Images and labels of the "train" or "test" split; `folder` holds the four .gz files."""
    if split not in FILES_OF_SPLIT:
        raise ValueError(f"{dataset.name} has no split {split!r} (expected 'train' or 'test')")
    images, labels = (
        read_idx(find_file(dataset, name, folder=folder, download=download)) for name in FILES_OF_SPLIT[split]
    )
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise DataDamaged(
            f"{dataset.name} {split}: images of shape {images.shape} and labels of shape {labels.shape} do not "
            f"belong together (expected (N, rows, columns) and (N,)); nothing was loaded"
        )
    return Split(images, labels)


def find_file(dataset: Dataset, name: str, *, folder: Path | None = None, download: bool = True) -> Path:
    """The path of one verified file of the dataset; downloaded into the cache when no folder has it."""
    looked_in = folders_of(dataset, folder)
    for candidate in looked_in:
        if (candidate / name).is_file():
            return verified(candidate / name, dataset.sha256[name])
    if not download:
        raise DataMissing(missing_sentence(dataset, name, looked_in, "downloading was switched off"))
    try:
        return fetch(dataset, name, looked_in[-1])
    except OSError as cause:
        raise DataMissing(missing_sentence(dataset, name, looked_in, f"it could not be downloaded: {cause}")) from cause


def folders_of(dataset: Dataset, folder: Path | None) -> list[Path]:
    """The folders a file of the dataset may be in, in the order they are looked at; the last is the cache."""
    shared = data_folder()
    named = [] if folder is None else [folder]
    return named + ([shared / dataset.name] if shared else []) + [cache_folder() / dataset.name]


def missing_sentence(dataset: Dataset, name: str, looked_in: list[Path], why: str) -> str:
    return (
        f"{dataset.name}: {name} is not in {' nor in '.join(map(str, looked_in))}, and {why}; put the four idx .gz "
        f"files of {dataset.name} there, or set ALTMAS_DATA to a folder that has {dataset.name}/{name}"
    )


def fetch(dataset: Dataset, name: str, into: Path) -> Path:
    """The file, downloaded from the first mirror that gives the published bytes; OSError if none does.

    The bytes are written beside the target and renamed once verified, so an interrupted download
    never looks like a finished one.
    """
    into.mkdir(parents=True, exist_ok=True)
    unfinished = into / f"{name}.{os.getpid()}.part"
    failures = []
    for mirror in dataset.mirrors:
        try:
            download_to(mirror + name, unfinished)
            verified(unfinished, dataset.sha256[name])
            return unfinished.replace(into / name)
        except (OSError, http.client.HTTPException, DataDamaged) as cause:  # URLError and timeouts are OSErrors
            failures.append(f"{mirror} said: {cause}")
        finally:
            unfinished.unlink(missing_ok=True)
    raise OSError("; ".join(failures))


def download_to(url: str, path: Path) -> None:
    """Write what `url` answers to `path`, with a progress bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with (
        urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer,
        path.open("wb") as file,
        Progress(*columns) as bar,
    ):
        length = answer.headers.get("Content-Length")
        task = bar.add_task(url.rsplit("/", 1)[-1], total=int(length) if length else None)
        while chunk := answer.read(CHUNK_BYTES):
            file.write(chunk)
            bar.advance(task, len(chunk))


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verified(path: Path, sha256: str) -> Path:
    """The same path, once its bytes have the expected sha256."""
    digest = sha256_of(path)
    if digest != sha256:
        raise DataDamaged(
            f"{path}: sha256 {digest} is not that of the published file ({sha256}); delete it or put the published "
            f"file there; nothing was loaded"
        )
    return path


def read_idx(path: Path) -> Pixels:
    """The uint8 array in a gzipped idx file: 2 zero bytes, type, rank, big-endian sizes, then the elements."""
    try:
        with gzip.open(path) as file:
            raw = file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as cause:
        raise DataDamaged(f"{path} is not a whole gzip file ({cause}); nothing was loaded") from cause
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != UNSIGNED_BYTE:
        raise DataDamaged(
            f"{path} does not begin like an idx file of unsigned bytes (expected 00 00 08, found "
            f"{raw[:3].hex(' ') or 'nothing'}); nothing was loaded"
        )
    rank = raw[3]
    start = 4 + 4 * rank
    if len(raw) < start:
        raise DataDamaged(f"{path} ends inside its header ({len(raw)} bytes); nothing was loaded")
    shape = struct.unpack(f">{rank}I", raw[4:start])
    expected = int(np.prod(shape, dtype=np.int64))
    if len(raw) - start != expected:
        raise DataDamaged(
            f"{path} has {len(raw) - start} elements where its header promises {expected} {shape}; nothing was loaded"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def pixels_of(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(N, rows * columns) pixels in [0, 1]."""
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
