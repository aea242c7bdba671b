"""The pool: what the models under test said about which points, and how tables and files become one."""

import os
from typing import Any

from altmas.above import above
from altmas.pool.models import Model
from altmas.pool.pool import Name, Pool
from altmas.pool.reduction import Reduction

__all__ = ["Model", "Name", "Pool", "Reduction", "read_evaluation"]


def read_evaluation(path: str | os.PathLike[str]) -> Any:
    """The log of an evaluation tool (Inspect, promptfoo, DeepEval, lm-eval, OpenAI evals) as a pyarrow table.

    Its columns are id, input, output, target, one for each judge, and metadata; `Pool.from_table` takes the table, or
    the file itself. Raises FileError on a file that is no such log.
    """
    return above("read_evaluation")(path)
