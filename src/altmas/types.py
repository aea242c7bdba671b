"""Types of arrays that signatures name."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
"""An array whose shape the docstring gives."""
