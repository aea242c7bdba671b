"""What changed since an earlier report: the metrics that both have, then and now."""

import json
import os
from pathlib import Path
from typing import Any

from altmas.errors import FileError

Plain = dict[str, Any]

MOST_ROWS = 20
"""Metrics that are compared; those whose intervals lie apart come first."""


def read_report(path: str | os.PathLike[str]) -> Plain:
    """The content of a report's JSON; FileError if the file is none."""
    file = Path(path)
    accepted = "expected the .json that `altmas report` wrote beside an earlier page (--since FILE)"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"{file} does not exist; {accepted}") from None
    except (OSError, ValueError) as cause:
        raise FileError(f"{file} cannot be read as JSON; {accepted}") from cause
    if not isinstance(content, dict) or not {"metrics", "labels", "written_at"} <= content.keys():
        raise FileError(f"{file} is no report; {accepted}")
    return content


def trend_since(earlier: Plain, now: Plain) -> Plain:
    """{"since", "labels", "rows"}: each metric of both reports with its interval then and now.

    "apart" says whether the two intervals have no point in common. That is no test of the difference, for which both
    models have to be in one session.
    """
    before = {row["metric"]: row for row in earlier["metrics"]}
    rows = []
    for new in now["metrics"]:
        old = before.get(new["metric"])
        if old is None or old.get("value") is None or new["value"] is None:
            continue
        known = None not in (old.get("low"), new["low"])
        apart = known and (old["high"] < new["low"] or new["high"] < old["low"])
        then = {key: old.get(key) for key in ("value", "low", "high")}
        rows.append(
            {
                "metric": new["metric"],
                "then": then,
                "now": {key: new[key] for key in then},
                "change": new["value"] - old["value"],
                "apart": bool(apart),
            }
        )
    rows.sort(key=lambda row: not row["apart"])  # stable: what changed first, then in the order of the report
    same = earlier.get("reproducibility", {}).get("fingerprint") == now["reproducibility"]["fingerprint"]
    summary = {"since": earlier["written_at"], "labels": earlier["labels"], "same_pool": bool(same)}
    return summary | {"rows": rows[:MOST_ROWS], "left_out": max(0, len(rows) - MOST_ROWS)}
