"""One place where every benchmark gets its pools: `load(name)` for a name in `NAMES` or `HELD_OUT`.

N points, D features, C classes. Pools without a public download are read from `data_folder()`; MNIST is
downloaded where it is absent. What cannot be had raises DataMissing, which a test turns into a visible skip.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from altmas.pool import Pool
from benchmarks.held_out import HELD_OUT_ARRAYS
from benchmarks.idx import MNIST, DataDamaged, DataMissing, cache_folder, data_folder, load_split, pixels_of

__all__ = [
    "HELD_OUT",
    "NAMES",
    "DataDamaged",
    "DataMissing",
    "NamedPool",
    "cache_folder",
    "data_folder",
    "load",
    "provenance",
]

Arrays: TypeAlias = dict[str, NDArray[Any]]

MODELS: Final = Path(__file__).parent / "models"
DIGITS: Final = [str(digit) for digit in range(10)]


@dataclass(frozen=True)
class NamedPool:
    """A pool whose true labels are known, so that estimates can be compared with the truth."""

    name: str
    features: NDArray[np.float32] | None  # (N, D)
    predictions: NDArray[np.int64]  # (N,) codes into classes
    truth: NDArray[np.int64]  # (N,) codes into classes
    scores: NDArray[np.float32] | None  # (N, C), rows sum to 1
    classes: list[str]
    slices: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)  # name -> (N,)

    def __len__(self) -> int:
        return len(self.truth)

    @property
    def accuracy(self) -> float:
        """The true accuracy of the model under test."""
        return float((self.predictions == self.truth).mean())

    def pool(self) -> Pool:
        """What a session may see: everything but the truth."""
        return Pool(self.features, self.predictions, scores=self.scores, classes=self.classes, slices=dict(self.slices))


def load(name: str, *, download: bool = True) -> NamedPool:
    """The pool of this name. DataMissing if it is not there, DataDamaged if its file is not what it should be."""
    if name not in LOADERS:
        raise ValueError(f"no pool is called {name!r} (expected one of {', '.join(LOADERS)})")
    return LOADERS[name](name, download)


def provenance(name: str) -> dict[str, Any]:
    """How the predictions of mnist-99, mnist-70 or mnist-12 came to be: seed, steps, versions, checksums, accuracy."""
    story: dict[str, Any] = json.loads(str(arrays_of_model(name)["provenance"]))
    return story


def two_class(classes: list[str]) -> Callable[[str, bool], NamedPool]:
    return lambda name, _download: named_pool(name, shared_arrays(f"{name}/pool.npz"), classes)


def with_class_names(name: str, _download: bool) -> NamedPool:
    arrays = shared_arrays(f"{name}/pool.npz", "classes")
    return named_pool(name, arrays, arrays["classes"].tolist())


def employment(name: str, _download: bool) -> NamedPool:
    """US census; slices by year, sex and race (ACS codes)."""
    arrays = shared_arrays(f"{name}/pool.npz", "X", "year", "feature_names")
    column = arrays["feature_names"].tolist().index
    slices = {"year": arrays["year"]} | {code: arrays["X"][:, column(code)] for code in ("SEX", "RAC1P")}
    return named_pool(name, arrays, ["not employed", "employed"], slices)


def labels_only(file: str, count: int) -> Callable[[str, bool], NamedPool]:
    """Predictions and truth alone; the source numbers its classes and does not name them."""

    def loader(name: str, _download: bool) -> NamedPool:
        arrays = shared_arrays(f"labelerrors-manyclass/{file}")
        return named_pool(name, arrays, [str(code) for code in range(count)])

    return loader


def mnist_labelerrors(name: str, download: bool) -> NamedPool:
    return digits(name, shared_arrays("mnist/labelerrors_predictions.npz"), download)


def mnist_model(name: str, download: bool) -> NamedPool:
    """One of the paper's three models under test; its scores were kept in half precision."""
    arrays = arrays_of_model(name)
    scores = arrays["scores"].astype(np.float64)
    scores /= scores.sum(axis=1, keepdims=True)
    return digits(name, {"a": arrays["predictions"], "scores": scores}, download)


def digits(name: str, arrays: Arrays, download: bool) -> NamedPool:
    """These predictions on the test images of MNIST: pixels in [0, 1] as features, rows in the published order."""
    images, labels = load_split(MNIST, "test", download=download)
    return named_pool(name, arrays | {"X": pixels_of(images), "y": labels}, DIGITS)


def held_out(name: str, download: bool) -> NamedPool:
    """A pool on which nothing was tuned, with the predictions of a classifier that is trained here."""
    arrays = HELD_OUT_ARRAYS[name](download)
    return named_pool(name, arrays, DIGITS[: arrays["scores"].shape[1]])


def one_of_many(folder: str, column: int) -> Callable[[str, bool], NamedPool]:
    """One of the models of a pool of many, alone: its answers, or its probability of the second of two classes."""

    def loader(name: str, _download: bool) -> NamedPool:
        arrays = shared_arrays(f"{folder}/pool.npz", needed=("y",))
        if "model_scores" in arrays:
            chance = arrays["model_scores"][:, column].astype(np.float64)
            own = {"scores": np.column_stack([1 - chance, chance]), "a": (chance > 0.5).astype(np.int64)}
        else:
            own = {"a": arrays["predictions"][:, column]}
        count = int(max(own["a"].max(), arrays["y"].max())) + 1
        return named_pool(name, own | {"y": arrays["y"]}, [str(code) for code in range(count)])

    return loader


def named_pool(
    name: str, arrays: Arrays, classes: list[str], slices: Mapping[str, NDArray[Any]] | None = None
) -> NamedPool:
    """The arrays X, a, y, scores as a NamedPool, once their shapes and codes agree."""
    n = len(arrays["y"])
    shapes = {key: arrays[key].shape for key in ("X", "a", "y", "scores") if key in arrays}
    codes = np.concatenate([arrays["a"], arrays["y"]])
    if any(shape[0] != n for shape in shapes.values()) or codes.min() < 0 or codes.max() >= len(classes):
        raise DataDamaged(
            f"{name}: arrays of shapes {shapes} with codes {codes.min()} to {codes.max()} do not form a pool "
            f"(expected equal lengths and codes 0 to {len(classes) - 1}); nothing was loaded"
        )
    return NamedPool(
        name,
        arrays["X"].astype(np.float32, copy=False) if "X" in arrays else None,
        arrays["a"].astype(np.int64),
        arrays["y"].astype(np.int64),
        arrays["scores"].astype(np.float32, copy=False) if "scores" in arrays else None,
        classes,
        {key: values.astype(np.int64) for key, values in (slices or {}).items()},
    )


def shared_arrays(path: str, *also: str, needed: tuple[str, ...] = ("a", "y")) -> Arrays:
    """The arrays in a file of the data folder, which must hold those needed and these also."""
    folder = data_folder()
    if folder is None:
        raise DataMissing(f"{path}: there is no data folder; set ALTMAS_DATA to the folder that holds {path}")
    return read_npz(folder / path, "set ALTMAS_DATA to the folder that holds " + path, *needed, *also)


def arrays_of_model(name: str) -> Arrays:
    remedy = "`python -m benchmarks.models_under_test` makes it"
    return read_npz(MODELS / f"{name}.npz", remedy, "predictions", "scores", "provenance")


def read_npz(file: Path, remedy: str, *needed: str) -> Arrays:
    if not file.is_file():
        raise DataMissing(f"{file} does not exist; {remedy}")
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as npz:
            arrays = dict(npz)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as cause:
        raise DataDamaged(f"{file} is not a whole .npz file ({cause}); nothing was loaded") from cause
    if absent := [key for key in needed if key not in arrays]:
        raise DataDamaged(f"{file} lacks {', '.join(absent)} (it holds {', '.join(arrays)}); nothing was loaded")
    return arrays


LOADERS: dict[str, Callable[[str, bool], NamedPool]] = {
    "20news": with_class_names,
    "abt-buy-svm": two_class(["no match", "match"]),
    "employment-ma": employment,
    "banking77": with_class_names,
    "tweet-emotion-llm": with_class_names,
    "cifar100": labels_only("cifar100_test.npz", 100),
    "caltech256": labels_only("caltech256.npz", 256),
    "imagenet": labels_only("imagenet_val.npz", 1000),
    "mnist-labelerrors": mnist_labelerrors,
    "mnist-99": mnist_model,
    "mnist-70": mnist_model,
    "mnist-12": mnist_model,
}
NAMES = tuple(LOADERS)
"""Pools on which the methods were developed."""
LOADERS |= dict.fromkeys(HELD_OUT_ARRAYS, held_out) | {
    "pacs": one_of_many("models-pacs", 5),
    "cola": one_of_many("models-cola", 60),
    "qnli": one_of_many("models-qnli", 15),
    "emotion": one_of_many("models-emotion", 2),
    "comments": one_of_many("models-civilcomments", 3),
    "groups-adult": two_class(["up to 50K", "above 50K"]),
    "time-elec": two_class(["down", "up"]),
}
HELD_OUT = tuple(name for name in LOADERS if name not in NAMES)
"""Pools on which no constant and no formula for the metrics of one model was chosen."""
