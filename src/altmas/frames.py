"""Results as tables and as JSON."""

import math
from collections.abc import Mapping
from typing import Any


def frame_of(rows: list[dict[str, Any]]) -> Any:
    """A pandas frame if pandas is installed, else a pyarrow table."""
    try:
        import pandas
    except ImportError:
        import pyarrow

        return pyarrow.Table.from_pylist(rows)
    return pandas.DataFrame(rows)


def plain(value: Any) -> Any:
    """The same ready for JSON: numpy's values as Python's own, and None for numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
