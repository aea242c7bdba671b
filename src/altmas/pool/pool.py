"""The pool: every point that could be labelled, and what the models say about it.

N points, C classes. predictions[i] and every label are codes 0..C-1 into the one explicit class list;
class names appear only where data enters and leaves.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.above import above
from altmas.errors import AltmasError, PoolError, UnknownLabel, UnknownPoint
from altmas.items.lazy import items_of
from altmas.memo import Memo
from altmas.pool.first_phase import refuse_sample, sampled_rows, taken_items
from altmas.pool.given import (
    checked_features,
    checked_groups,
    checked_ids,
    checked_slices,
    checked_weights,
    factorised,
    features_made,
    given_classes,
    hash_of,
    hashes_of,
    ids_as_text,
    inferred_classes,
    number_of_points,
    refuse_half_characters,
    slices_as_text,
    words_of_model,
)
from altmas.pool.models import (
    DEFAULT_MODEL,
    Model,
    check_model_name,
    named_predictions,
    named_scores,
    plurality,
    refuse_other_column_order,
    scores_of,
    unknown_model,
)
from altmas.pool.naming import (
    Name,
    RowsOfNumbers,
    WholeNumbers,
    as_whole,
    look_alikes,
    names_of,
    plain,
    spellings,
    without_decimals,
)
from altmas.pool.scratch import rows_of
from altmas.pool.values import named_values, values_by_class
from altmas.suggest import listing, near

__all__ = ["Model", "Name", "Pool"]


class Pool:
    """Unlabelled points with the predictions of the models under test.

    features     (N, D) array or memmap of numbers, or None for methods that need none; (N,) texts become TF-IDF and SVD
    predictions  (N,) class names, or codes into `classes` when these are integers and no class name is a number;
                 {name: (N,) class names} of several models; None for a pool without a model
    scores       (N, C) probabilities of the model, columns in the order of `classes`, kept to float32 precision, or
                 (N,) those of the second of two classes; {name: scores} of several models
    classes      the class list; by default the sorted union of what is seen (then `classes_inferred` is True)
    ids          (N,) unique names of the points; by default 0..N-1
    slices       {"scanner": (N,) values}; a missing value is the slice "(missing)"
    items        what a labeller is shown: a sequence of N texts, image paths, arrays or dicts, or a frame of N rows
    values       {class: number}: what `mean`, `share[>=...]` and `weighted_kappa` take the classes for; where `classes`
                 is not given they are the class list
    group        (N,) what points come together in: conversation, patient, document; a point without a value is a group
                 of its own. It matters for what is said about data like the pool (`about="future"`)
    weights      (N,) how many rows each row stands for, positive numbers: metrics are those of the expanded pool

    Raises PoolError, naming the first offending row (rows count from 0).
    """

    def __init__(
        self,
        features: ArrayLike | None = None,
        predictions: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        scores: ArrayLike | Mapping[str, ArrayLike | None] | None = None,
        classes: Sequence[Name] | None = None,
        ids: ArrayLike | None = None,
        slices: Mapping[str, ArrayLike] | None = None,
        items: Any = None,
        group: ArrayLike | None = None,
        values: Mapping[Any, float] | None = None,
        weights: ArrayLike | None = None,
        _judge_scores: bool = True,
    ) -> None:
        # _judge_scores: whether scores that do not fit the answers are refused, as those of another column order
        self.items: Sequence[Any] | None = items_of(items)
        answers = {
            name: names_of(column, words_of_model("predictions", name))
            for name, column in named_predictions(predictions).items()
        }
        self._n = number_of_points(answers, features, ids, slices, self.items)
        given_scores = named_scores(scores, list(answers))
        classes = list(named_values(values)) if classes is None and values is not None else classes
        self.classes_inferred = classes is None
        self.classes = inferred_classes(answers, given_scores) if classes is None else given_classes(classes)
        self.models: tuple[Model, ...] = tuple(
            self._model(name, names, given_scores.get(name), judge=_judge_scores) for name, names in answers.items()
        )
        self.values = None if values is None else values_by_class(values, self.classes, self.find_class)
        """(C,) the numbers that the classes count as, or None where nobody gave any."""
        features, self.made_features = features_made(features)
        self.unmade = ""
        """Why no features were made of what is shown though they were wanted; else empty."""
        self.features = checked_features(features, self._n)
        self.ids = checked_ids(ids, self._n)
        self.slices = checked_slices(slices or {}, self._n)
        self.group = None if group is None else checked_groups(group, self._n)
        """(N,) the number of the group that each point belongs to, or None; groups are counted as they appear."""
        self.group_name = "group"
        """What the groups are called: the name of their column."""
        self.weights = None if weights is None else checked_weights(weights, self._n)
        """(N,) how many rows each point stands for, or None if each stands for itself."""
        self.sampled_from: int | None = None
        """How many rows there were of which the points are a uniform random sample; None if they are all there is."""
        if self.items is not None and len(self.items) != self._n:
            raise PoolError(f"items has {len(self.items)} entries, predictions has {self._n}; one item per point")
        refuse_half_characters(self.items)
        self.memo = Memo()
        """What methods computed from this pool and would otherwise compute again."""
        self.source: dict[str, Any] | None = None
        """How to read this pool again (set by `from_table` for files), or None for one that lives in memory."""
        self.extended = False
        """Whether it has points, classes or slices that its source has not."""

    def _model(self, name: str, names: NDArray[Any], scores: ArrayLike | None, *, judge: bool = True) -> Model:
        codes = self._codes(names, words_of_model("predictions", name), PoolError)
        matrix = None if scores is None else scores_of(scores, self._n, self.classes, words_of_model("scores", name))
        model = Model(name, codes, matrix)
        if judge:
            refuse_other_column_order(
                model, self.classes, inferred=self.classes_inferred, what=words_of_model("score", name)
            )
        return model

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        prediction: str | Sequence[str] | None,
        id: str | None = None,
        features: str | PathLike[str] | Sequence[str] | ArrayLike | None = None,
        scores: str | PathLike[str] | Sequence[str] | ArrayLike | Mapping[str, Any] | None = None,
        slices: str | Sequence[str] = (),
        show: str | Sequence[str] | None = None,
        classes: Sequence[Name] | None = None,
        group: str | None = None,
        values: Mapping[Any, float] | None = None,
        weight: str | None = None,
        sample: int | None = None,
        sample_seed: int = 0,
        store: str | PathLike[str] | None = None,
        encoding: str | None = None,
    ) -> "Pool":
        """The pool in a table: pandas, polars or pyarrow frame, Hugging Face dataset, .csv/.jsonl/.parquet path.

        Folders of Parquet files, addresses (s3://bucket/folder), Arrow datasets and streams, DuckDB relations and
        frames of Spark, Dask and Ray are read in batches; `store="pool.parquet"` keeps what was read there and in
        .npy files beside it, from which a session can be opened again.

        `features` and `scores` name numeric columns, one column of equally long lists or a .npy file aligned by row,
        or are arrays; features="auto" makes them of what is shown, as the command line does. `show` names what a
        labeller sees. A list of prediction columns makes a model of each, called
        like its column, with scores={column: ...}; None makes a pool without a model, which needs `classes`. `group` is
        the column of what points come together in (conversation, patient), `weight` that of how many rows a row stands
        for; `values` as in Pool. `sample` takes so many rows at random (`sample_from`), 0 takes all; by default
        1,000,000 of a table with more than 2,000,000 rows and no weights. `encoding` is that of a .csv file that is not
        UTF-8; columns may be separated by semicolons or tabs where its first line has no comma.
        Raises FileError or PoolError, naming the column.
        """
        pool: Pool = above("pool_from_table")(
            table,
            prediction=prediction,
            id=id,
            features=features,
            scores=scores,
            slices=slices,
            show=show,
            classes=classes,
            group=group,
            values=values,
            weight=weight,
            sample=sample,
            sample_seed=sample_seed,
            store=store,
            encoding=encoding,
        )
        return pool

    @classmethod
    def sample_from(cls, source: Any, n: int, *, seed: int = 0, **roles: Any) -> "Pool":
        """A uniform random sample of n rows of a pool, or of a table (with the arguments of `from_table`), as the pool.

        What is estimated is about all rows of the source: that only n of them were looked at is counted in every
        interval. The same seed takes the same rows. Without ids points are called by their row in the source.
        Raises PoolError if there are no n rows, if the pool is a sample already, or if rows have weights.
        """
        if not isinstance(source, Pool):
            return cls.from_table(source, sample=n, sample_seed=seed, **roles)
        refuse_sample(n, len(source), weighted=source.weights is not None, sampled=source.sampled_from is not None)
        if n == len(source):
            return source
        made = source._sample(sampled_rows(len(source), n, seed))
        if source.source is not None and not source.extended:
            made.source = source.source | {"sample": n, "sample_seed": seed}
        return made

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        shape = "no features" if self.features is None else f"{self.features.shape[1]} features"
        shape += f" ({'; '.join(self.made_features)})" if self.made_features else ""
        scores = "with scores" if self.scores is not None else "hard labels only"
        if [model.name for model in self.models] != [DEFAULT_MODEL]:
            scores = "; ".join(map(repr, self.models)) or "no model"
        inferred = " inferred from the predictions" if self.classes_inferred else ""
        classes = f"{len(self.classes)} classes{inferred} ({listing(self.classes, 5)})"
        notices = "".join(f"; note: {notice}" for notice in self.notices)
        points = f"{len(self):,} points"
        if self.sampled_from is not None:
            points += f", a random sample of {self.sampled_from:,}"
        if self.weights is not None:
            points += f" that stand for {self.weights.sum():,.0f}"
        return f"Pool({points}, {classes}, {shape}, {scores}{notices})"

    @property
    def rows_meant(self) -> float:
        """How many rows the points stand for: their number, their weights together, or all that they came from."""
        if self.weights is not None:
            return float(self.weights.sum())
        return float(len(self) if self.sampled_from is None else self.sampled_from)

    @property
    def predicted_counts(self) -> NDArray[np.float64]:
        """(C,) how many of these rows are predicted as each class; estimated where the points are a random sample."""
        counts = np.bincount(self.predictions, self.weights, len(self.classes)).astype(np.float64)
        return counts if self.sampled_from is None else counts * (self.sampled_from / len(self))

    @property
    def predictions(self) -> NDArray[np.int64]:
        """(N,) answers of the first model; of a pool without a model the code 0 everywhere: its tables have one row."""
        return self.models[0].predictions if self.models else self.anchor

    @property
    def scores(self) -> NDArray[np.float64] | None:
        """(N, C) scores of the first model, or None."""
        return self.models[0].scores if self.models else None

    @cached_property
    def anchor(self) -> NDArray[np.int64]:
        """(N,) the answer that most models give: the class that a belief about the truth is written around."""
        return plurality(self.models, len(self), len(self.classes))

    @property
    def named_values(self) -> dict[str, float] | None:
        """{class: value}, or None where nobody gave any."""
        return None if self.values is None else dict(zip(map(str, self.classes), self.values, strict=True))

    def model(self, name: str) -> Model:
        """The model of that name; PoolError if there is none."""
        for model in self.models:
            if model.name == name:
                return model
        raise PoolError(unknown_model(name, [model.name for model in self.models]))

    def answers_at(self, row: int) -> list[tuple[str, Name, float | None]]:
        """(model, the class that it predicts, its score of that class if it gives scores) of every model at a point."""
        answers = []
        for model in self.models:
            code = int(model.predictions[row])
            score = None if model.scores is None else float(model.scores[row, code])
            answers.append((model.name, self.classes[code], score))
        return answers

    def new_model(self, name: str, predictions: ArrayLike, scores: ArrayLike | None = None) -> Model:
        """A further model of these points, in their order; PoolError if the name is taken or the answers do not fit."""
        check_model_name(name)
        if any(model.name == name for model in self.models):
            raise PoolError(f"there is a model {name!r} in this pool already; give another name; nothing was recorded")
        names = names_of(predictions, f"predictions of {name!r}")
        if len(names) != len(self):
            raise PoolError(
                f"predictions of {name!r} has {len(names):,} rows, the pool has {len(self):,} points; give one for "
                "each, in the order of the pool; nothing was recorded"
            )
        return self._model(name, names, scores)

    def with_models(self, *models: Model) -> "Pool":
        """The same points with these models instead; nothing else is copied or checked."""
        changed = copy(self)
        for derived in ("anchor", "fingerprint"):
            changed.__dict__.pop(derived, None)
        changed.models, changed.memo = models, Memo(self.memo.file)
        return changed

    def _taken(self, rows: NDArray[np.int64], group: NDArray[np.int64] | None = None) -> "Pool":
        """The points at these rows, as often as they occur, counted anew and without items; group as `Pool.group`."""
        taken = self._at(rows)
        taken.group = group
        return taken

    def _sample(self, rows: NDArray[np.int64]) -> "Pool":
        """The points at these different rows as a random sample of the pool, with their ids, items and groups."""
        sample = self._at(rows)
        ids = rows if isinstance(self.ids, range) else [self.ids[row] for row in rows.tolist()]
        sample.ids = ids.tolist() if isinstance(ids, np.ndarray) else ids
        sample.items = None if self.items is None else taken_items(self.items, rows)
        sample.group = None if self.group is None else np.unique(self.group[rows], return_inverse=True)[1]
        sample.sampled_from = len(self)
        return sample

    def _at(self, rows: NDArray[np.int64]) -> "Pool":
        """The points at these rows, counted from 0, with nothing but what models and slices say of them."""
        subset = copy(self)
        for derived in ("anchor", "fingerprint", "_index_of_id"):
            subset.__dict__.pop(derived, None)
        subset._n, subset.ids, subset.items, subset.source, subset.memo = (
            len(rows),
            range(len(rows)),
            None,
            None,
            Memo(),
        )
        subset.models = tuple(
            Model(model.name, model.predictions[rows], None if model.scores is None else model.scores[rows])
            for model in self.models
        )
        subset.features = None if self.features is None else rows_of(self.features, rows)
        subset.slices = {name: values[rows] for name, values in self.slices.items()}
        subset.weights = None if self.weights is None else self.weights[rows]
        subset.group = None
        return subset

    @cached_property
    def notices(self) -> tuple[str, ...]:
        """What looks like a mistake in the data though it is none by itself: class names that are nearly the same."""
        return tuple(
            f"the classes {listing(group)} differ only by case, blanks, Unicode form or decimals and count as "
            "different; if they are one class, write it alike in the table"
            for group in look_alikes(self.classes)
        )

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """One hash for each part: equal parts have equal hashes, whatever container they came in."""
        parts: dict[str, Any] = {
            "classes": repr([str(name) for name in self.classes]),
            "ids": ids_as_text(self.ids),
            "predictions": self.predictions if self.models else None,
            "features": self.features,
            "scores": self.scores,
            "slices": slices_as_text(self.slices),
        }
        if self.group is not None:
            parts["group"] = self.group
        if self.values is not None:
            parts["values"] = repr(self.values)
        if self.weights is not None:
            parts["weights"] = repr(self.weights.tolist())
        if self.sampled_from is not None:
            parts["sample"] = f"{len(self)} of {self.sampled_from}"
        if [model.name for model in self.models] != [DEFAULT_MODEL]:
            parts["models"] = repr([(model.name, *hashes_of(model)) for model in self.models])
        return {part: hash_of(value) for part, value in parts.items() if value is not None}

    @cached_property
    def _index_of_id(self) -> Mapping[Name, int]:
        if isinstance(self.ids, WholeNumbers):
            return RowsOfNumbers(self.ids)
        return {name: index for index, name in enumerate(self.ids)}

    @cached_property
    def _code_of_class(self) -> dict[str, int]:
        """Every spelling of every class; a class's own name comes before another spelling of a different one."""
        by_name = {str(name): code for code, name in enumerate(self.classes)}
        by_number = {without_decimals(name): code for name, code in by_name.items()}
        by_spelling = {spelling: code for code, name in enumerate(self.classes) for spelling in spellings(name)}
        return by_number | by_spelling | by_name

    @cached_property
    def _code_of_text(self) -> dict[str, int | None]:
        """What `find_class` gives for the classes' own names."""
        return {str(name): self._find_class(str(name)) for name in self.classes}

    def index(self, id: object) -> int:
        """The row of the point with this id; UnknownPoint if there is none. "17" and "17.0" find the integer id 17."""
        name = plain(id)
        number = as_whole(without_decimals(name)) if isinstance(name, str) else as_whole(name)
        for candidate in (name, number, str(number) if isinstance(number, int) else None):
            if isinstance(candidate, str | int) and candidate in self._index_of_id:
                return self._index_of_id[candidate]
        hint = near(name, self.ids[:10_000])
        if self.sampled_from is not None:
            hint += f" (a random sample of {self.sampled_from:,} rows, which may hold it)"
        raise UnknownPoint(f"id {name!r} is not in this pool of {len(self):,} points{hint}; nothing was recorded")

    def find_class(self, label: object) -> int | None:
        """The code of a class name, or None.

        "3", "3.0" and " 3 " find the class 3, and true, 1 or "True" the class True.
        """
        if type(label) is str and label in self._code_of_text:  # a log of 20,000 labels asks as often
            return self._code_of_text[label]
        return self._find_class(label)

    def _find_class(self, label: object) -> int | None:
        name = as_whole(plain(label))
        if not isinstance(name, str | int):
            return None
        bare = str(name).strip()
        written = (*spellings(name), without_decimals(str(name)), bare, without_decimals(bare))
        return next((self._code_of_class[text] for text in written if text in self._code_of_class), None)

    def code(self, label: object, *, where: str = "") -> int:
        """The code of a class name; UnknownLabel if it is not one of the pool's classes."""
        code = self.find_class(label)
        if code is None:
            name = plain(label)
            raise UnknownLabel(
                f"{where}label {name!r} is not a class of this pool (expected one of {listing(self.classes)})"
                f"{near(name, self.classes)}; nothing was recorded"
            )
        return code

    def codes(self, labels: ArrayLike, *, what: str = "labels") -> NDArray[np.int64]:
        """(n,) codes of many class names, such as the known truth; UnknownLabel on the first that is none.

        Integers are codes already when no class name is a number (as Hugging Face stores labels).
        """
        return self._codes(names_of(labels, what), what, UnknownLabel)

    def _codes(self, names: NDArray[Any], what: str, refusal: type[AltmasError]) -> NDArray[np.int64]:
        seen, inverse = factorised(names)
        matches = [self.find_class(name) for name in seen]
        numbers = any(isinstance(as_whole(name), int) for name in self.classes)
        if names.dtype.kind == "i" and not numbers:
            matches = [name if 0 <= name < len(self.classes) else None for name in seen]
        code_of = np.array([-1 if code is None else code for code in matches], np.int64)
        codes = code_of[inverse]
        if (code_of < 0).any():
            row = int(np.argmax(codes < 0))
            name = plain(names[row])
            raise refusal(
                f"{what}, row {row}: {name!r} is not one of the classes {listing(self.classes)}"
                f"{near(name, self.classes)}"
            )
        return codes
