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
    place = Path(path)
    accepted = "expected the .json that `altmas report` wrote beside an earlier page (--since FILE)"
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"{place} does not exist; {accepted}") from None
    except (OSError, ValueError) as cause:
        raise FileError(f"{place} cannot be read as JSON; {accepted}") from cause
    if not isinstance(content, dict) or not {"metrics", "labels", "written_at"} <= content.keys():
        raise FileError(f"{place} is no report; {accepted}")
    return content


def trend_since(earlier: Plain, now: Plain) -> Plain:
    """{"since", "labels", "rows"}: each metric of both reports with its interval then and now.

    "apart" says whether the intervals have no point in common: a change that is larger than both leave open. It is no
    test of the difference, for which both models have to be in one session.
    """
    before = {one["metric"]: one for one in earlier["metrics"]}
    rows = []
    for one in now["metrics"]:
        old = before.get(one["metric"])
        if old is None or old.get("value") is None or one["value"] is None:
            continue
        known = None not in (old.get("low"), one["low"])
        apart = known and (old["high"] < one["low"] or one["high"] < old["low"])
        then = {key: old.get(key) for key in ("value", "low", "high")}
        rows.append(
            {
                "metric": one["metric"],
                "then": then,
                "now": {key: one[key] for key in then},
                "change": one["value"] - old["value"],
                "apart": bool(apart),
            }
        )
    rows.sort(key=lambda row: not row["apart"])  # stable: what changed first, then in the order of the report
    same = earlier.get("reproducibility", {}).get("fingerprint") == now["reproducibility"]["fingerprint"]
    found = {"since": earlier["written_at"], "labels": earlier["labels"], "same_pool": bool(same)}
    return found | {"rows": rows[:MOST_ROWS], "left_out": max(0, len(rows) - MOST_ROWS)}
