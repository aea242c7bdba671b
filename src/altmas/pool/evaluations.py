"""Logs of evaluation tools as tables: a row for each answer, a column for what each judge says of it.

Inspect (.eval, .json), promptfoo (.json, .jsonl), DeepEval (.json), lm-eval samples and OpenAI evals (.jsonl) are told
apart by content. Columns are id, input, output, target, one for each judge, and whatever else the tool says of an
answer in one word or number (metadata, variables, provider). A judge's yes and no, 1 and 0, C and I become pass and
fail; whole numbers are grades (a column of nothing but 1 too); fractions stand in "<judge>.score". Where a judge failed
or said nothing, its value is missing.
"""

import io
import json
import math
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from altmas.errors import FileError

LOGS = (".json", ".eval")
"""Endings that only logs of evaluation tools have here; in .jsonl they are looked for as well."""

LETTERS = {"C": "pass", "I": "fail", "P": "partial", "N": "no answer"}
"""Inspect's verdicts."""

ZSTANDARD = 93
"""The compression of current .eval files, which Python's zipfile does not know before 3.14."""

ACCEPTED = (
    "Inspect (.eval, .json), promptfoo (.json, .jsonl), DeepEval (.json), lm-eval samples or OpenAI evals (.jsonl)"
)

Row = Mapping[str, Any]


@dataclass
class Answer:
    """One answer: judges {name: verdict or number}, scores {name: number beside a verdict}, extras {name: anything}."""

    id: str
    input: str
    output: str
    target: str | None = None
    judges: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------- which tool


def read_log(path: Path) -> pa.Table:
    """The table in a .json or .eval file; FileError in one sentence if it is no log that is known."""
    if zipfile.is_zipfile(path):
        return _table(_inspect(_unzipped(path), path))
    with pa.input_stream(str(path)) as stream:  # decompresses by the file's ending
        log = json.loads(stream.read().decode("utf-8-sig"))
    tool = _tool_of_log(log)
    if tool is None:
        held = f"an object with {_keys(log)}" if isinstance(log, dict) else f"a {type(log).__name__}"
        raise FileError(
            f"{path} holds {held}, which is no log of an evaluation tool that is known: expected {ACCEPTED}; "
            "other data: write one object on each line and call it .jsonl"
        )
    return _table(tool(log, path))


def read_lines(path: Path, rows: Iterable[Any]) -> pa.Table:
    """The table in the lines of a log."""
    lines = _rows(list(rows), path, "line", "a log", "")
    tool = tool_of_line(lines[0])
    assert tool is not None
    return _table(tool(lines, path))


def tool_of_line(row: Any) -> Callable[[Sequence[Row], Path], list[Answer]] | None:
    """The reader for a .jsonl file with this first line; None for lines that are a plain table."""
    if not isinstance(row, dict):
        return None
    if {"doc_id", "doc", "resps"} <= row.keys():
        return _lm_eval
    if _is_spec(row.get("spec")) or {"run_id", "event_id", "type", "data"} <= row.keys():
        return _openai_evals
    return _promptfoo_rows if _is_promptfoo(row) else None


def _tool_of_log(log: Any) -> Callable[[Any, Path], list[Answer]] | None:
    if not isinstance(log, dict):
        return None
    if isinstance(log.get("eval"), dict) and "version" in log:
        return _inspect
    if any(
        "testCases" in section or "conversationalTestCases" in section for section in (log, *_objects(log.values()))
    ):
        return _deepeval
    results = log.get("results")
    rows = results.get("results") if isinstance(results, dict) else results
    return _promptfoo if isinstance(rows, list) and rows and _is_promptfoo(rows[0]) else None


def _is_promptfoo(row: Any) -> bool:
    return isinstance(row, dict) and {"success", "score", "vars"} <= row.keys()


def _is_spec(spec: Any) -> bool:
    return isinstance(spec, dict) and "run_id" in spec


# ---------------------------------------------------------------- Inspect


def _unzipped(path: Path) -> Row:
    """The log in an .eval file, put together as its .json form has it."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
        header = next((name for name in ("header.json", "_journal/start.json") if name in archive.namelist()), None)
        if header is None:
            raise FileError(f"{path} is a zip file without header.json; expected an .eval file of Inspect")
        samples = [json.loads(_member(archive, path, name)) for name in names]
        log: Row = json.loads(_member(archive, path, header)) | {"samples": samples}
    return log


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> bytes:
    """The bytes of a member, whichever way they are compressed."""
    info = archive.getinfo(name)
    if info.compress_type != ZSTANDARD:
        return archive.read(name)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        lengths = struct.unpack("<HH", file.read(30)[26:30])  # of the name and of the extra field before the data
        file.seek(sum(lengths), io.SEEK_CUR)
        packed = file.read(info.compress_size)
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        return bytes(stream.read())


def _inspect(log: Row, path: Path) -> list[Answer]:
    samples = _rows(log.get("samples"), path, "samples", "an Inspect log", "log them with log_samples=True")
    repeated = any(sample.get("epoch", 1) != 1 for sample in samples)
    answers = [_inspect_sample(sample, log["eval"], repeated) for sample in samples]
    for name in {name for answer in answers for name in answer.judges}:
        if all(_scalar(answer.judges.get(name)) in (None, *LETTERS) for answer in answers):
            for answer in answers:
                answer.judges[name] = LETTERS.get(str(answer.judges.get(name)))
    return answers


def _inspect_sample(sample: Row, about: Row, repeated: bool) -> Answer:
    attached = _object(sample.get("attachments"))
    output = _object(sample.get("output"))
    judges: dict[str, Any] = {}
    for name, score in _object(sample.get("scores")).items():
        value = _object(score).get("value")
        judges |= {f"{name}.{key}": entry for key, entry in value.items()} if isinstance(value, dict) else {name: value}
    run = {key: about[key] for key in ("task", "model") if key in about} | {"epoch": sample.get("epoch")}
    return Answer(
        f"{sample.get('id')}#{sample.get('epoch')}" if repeated else str(sample.get("id")),
        _text(sample.get("input"), attached),
        _text(output.get("completion") or _first_choice(output), attached),
        _text(sample.get("target"), attached),
        judges,
        extras=run | _object(sample.get("metadata")),
    )


def _first_choice(output: Row) -> Any:
    choices = output.get("choices")
    return _object(_object(choices[0] if choices else None).get("message")).get("content")


# ---------------------------------------------------------------- promptfoo


def _promptfoo(log: Row, path: Path) -> list[Answer]:
    results = log["results"]
    return _promptfoo_rows(results["results"] if isinstance(results, dict) else results, path)


def _promptfoo_rows(rows: Sequence[Row], path: Path) -> list[Answer]:
    return [_promptfoo_row(row, path) for row in rows if _checked(row, path, "vars", "a promptfoo result")]


def _promptfoo_row(row: Row, path: Path) -> Answer:
    failed = row.get("failureReason") == 2  # an error, not a verdict
    grading, test = _object(row.get("gradingResult")), _object(row.get("testCase"))
    judges: dict[str, Any] = {"success": None if failed else row.get("success")}
    scores: dict[str, Any] = {"success": None if failed else row.get("score")}
    for component in _objects(grading.get("componentResults") or ()):
        assertion = _object(component.get("assertion"))
        name = _free(str(assertion.get("metric") or assertion.get("type") or "assertion"), judges)
        broken = _object(component.get("metadata")).get("graderError")
        judges[name], scores[name] = (None, None) if broken else (component.get("pass"), component.get("score"))
    provider, prompt = row.get("provider"), row.get("prompt")
    extras = {
        "provider": _object(provider).get("label") or _object(provider).get("id") or _scalar(provider),
        "prompt": _object(prompt).get("label") or _scalar(prompt),
        "description": test.get("description"),
    }
    return Answer(
        str(row.get("id") or f"{row.get('testIdx')}-{row.get('promptIdx')}"),
        _text(_object(prompt).get("raw") or prompt),
        _text(_object(row.get("response")).get("output")),
        None,
        judges,
        scores,
        extras | _object(test.get("metadata")) | _object(row.get("vars")),
    )


# ---------------------------------------------------------------- DeepEval


def _deepeval(log: Row, path: Path) -> list[Answer]:
    run = next(
        section
        for section in (log, *_objects(log.values()))
        if {"testCases", "conversationalTestCases"} & section.keys()
    )
    cases = [*(run.get("testCases") or ()), *(run.get("conversationalTestCases") or ())]
    records = _rows(cases, path, "testCases", "a DeepEval test run", "save one after evaluate()")
    names = [case.get("name") for case in records]
    named = len(set(names)) == len(names)
    return [_deepeval_case(case, str(case.get("name")) if named else str(k)) for k, case in enumerate(records)]


def _deepeval_case(case: Row, id: str) -> Answer:
    judges: dict[str, Any] = {"success": case.get("success")}
    scores: dict[str, Any] = {}
    for metric in _objects(case.get("metricsData") or ()):
        name, broken = _free(str(metric.get("name")), judges), metric.get("error")
        judges[name], scores[name] = (None, None) if broken else (metric.get("success"), metric.get("score"))
    turns = _objects(case.get("turns") or ())
    prompt, reply = (turns[:-1], turns[-1].get("content")) if turns else (case.get("input"), case.get("actualOutput"))
    target = case.get("expectedOutput", case.get("expectedOutcome"))
    return Answer(id, _text(prompt), _text(reply), _text(target), judges, scores, _object(case.get("metadata")))


# ---------------------------------------------------------------- lm-eval samples

LM_EVAL = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")


def _lm_eval(rows: Sequence[Row], path: Path) -> list[Answer]:
    several = len({row.get("filter") for row in rows}) > 1
    return [_lm_eval_row(row, several) for row in rows if _checked(row, path, "doc_id", "a sample of lm-eval")]


def _lm_eval_row(row: Row, several: bool) -> Answer:
    calls = row.get("arguments") or {}
    calls = list(calls.values()) if isinstance(calls, dict) else calls
    arguments = [list(call.values()) if isinstance(call, dict) else list(call) for call in calls]
    measured = row.get("metrics") or [name for name in row if name not in LM_EVAL and not name.endswith("_hash")]
    extras = {"filter": row.get("filter")} | _object(row.get("doc"))
    return Answer(
        f"{row['doc_id']}/{row.get('filter')}" if several else str(row["doc_id"]),
        _text(arguments[0][0] if arguments and arguments[0] else None),
        _lm_eval_output(row, arguments),
        _text(row.get("target")),
        {name: row.get(name) for name in measured},
        extras=extras,
    )


def _lm_eval_output(row: Row, arguments: list[list[Any]]) -> str:
    """The generated text, or the choice with the highest likelihood."""
    responses = row.get("filtered_resps", row["resps"])
    if not isinstance(responses, list) or not responses:
        return _text(responses)
    likelihoods = [_likelihood(response) for response in responses]
    if len(responses) == len(arguments) > 1 and not any(map(math.isnan, likelihoods)):
        return _text(arguments[likelihoods.index(max(likelihoods))][-1]).strip()
    return _text(responses[0])


def _likelihood(response: Any) -> float:
    """The log-likelihood in [log-likelihood, whether greedy], both perhaps written as texts; nan if it is none."""
    try:
        return float(response[0]) if isinstance(response, list) else math.nan
    except (IndexError, TypeError, ValueError):
        return math.nan


# ---------------------------------------------------------------- OpenAI evals


def _openai_evals(rows: Sequence[Row], path: Path) -> list[Answer]:
    events: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("sample_id") is not None and isinstance(row.get("data"), dict):
            events.setdefault(str(row["sample_id"]), []).append(row)
    if not events:
        raise FileError(f"{path} is a log of OpenAI evals without events of samples; nothing can be tested")
    spec: Row = next((row["spec"] for row in rows if _is_spec(row.get("spec"))), {})
    run = {key: spec[key] for key in ("eval_name", "completion_fns", "split") if key in spec}
    return [_openai_evals_sample(id, of_sample, run) for id, of_sample in events.items()]


def _openai_evals_sample(id: str, events: Sequence[Row], run: Row) -> Answer:
    by_kind: dict[str, dict[str, Any]] = {}
    for event in events:  # the first sampling is the model's; those of a grader follow it
        by_kind[event["type"]] = {**event["data"], **by_kind.get(event["type"], {})}
    sampled, match, raw = (by_kind.get(kind, {}) for kind in ("sampling", "match", "raw_sample"))
    judges = {"match": match["correct"]} if "correct" in match else {}
    return Answer(
        id,
        _text(sampled.get("prompt", raw.get("input"))),
        _text(sampled.get("sampled", match.get("sampled"))),
        _text(match.get("expected", raw.get("ideal"))),
        judges | {name: value for name, value in by_kind.get("metrics", {}).items() if _scalar(value) is not None},
        extras={name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in run.items()},
    )


# ---------------------------------------------------------------- parts of logs


def _rows(rows: Any, path: Path, name: str, what: str, hint: str) -> list[Row]:
    if not isinstance(rows, list) or not rows:
        raise FileError(f"{path} is {what} without {name}; nothing can be tested; {hint}")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise FileError(f"{path}, {name} {number} is a {type(row).__name__}; expected an object")
    return rows


def _checked(row: Any, path: Path, key: str, what: str) -> bool:
    if not isinstance(row, dict) or key not in row:
        held = _keys(row) if isinstance(row, dict) else f"a {type(row).__name__}"
        raise FileError(f"{path} holds {held} where {what} with {key!r} was expected")
    return True


def _keys(row: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, list(row)[:5])) + (", ..." if len(row) > 5 else "") if row else "no keys"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(values: Iterable[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _scalar(value: Any) -> Any:
    """A word, number or truth value; None for anything else, also for a number that is none."""
    missing = isinstance(value, float) and not math.isfinite(value)
    return value if isinstance(value, str | bool | int | float) and not missing else None


def _number(value: Any) -> float | None:
    known = _scalar(value)
    return None if known is None or isinstance(known, str) else float(known)


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name, numbered if it is taken."""
    return name if name not in taken else next(f"{name} {k}" for k in range(2, 10**6) if f"{name} {k}" not in taken)


def _text(value: Any, attached: Mapping[str, Any] | None = None) -> str:
    """What a person reads: a text, the contents of messages with their roles, or JSON."""
    if isinstance(value, str):
        return str((attached or {}).get(value.removeprefix("attachment://"), value)) if attached else value
    if value is None:
        return ""
    if isinstance(value, list):
        texts = [_message(part, len(value) > 1, attached) for part in value]
        return "\n\n".join(text for text in texts if text)
    return _message(value, False, attached)


def _message(value: Any, with_role: bool, attached: Mapping[str, Any] | None) -> str:
    """The text of one message, part of a message, or value."""
    if not isinstance(value, dict) or not {"content", "text"} & value.keys():
        return value if isinstance(value, str) else _text(value) if isinstance(value, list) else json.dumps(value)
    text = _text(value.get("content", value.get("text")), attached)
    return f"{value['role']}: {text}" if with_role and "role" in value else text


# ---------------------------------------------------------------- the table


def _table(answers: list[Answer]) -> pa.Table:
    columns: dict[str, Any] = {
        "id": [answer.id for answer in answers],
        "input": [answer.input for answer in answers],
        "output": [answer.output for answer in answers],
    }
    if any(answer.target for answer in answers):
        columns["target"] = [answer.target for answer in answers]
    for name in dict.fromkeys(name for answer in answers for name in answer.judges):
        verdicts = _judged([_scalar(answer.judges.get(name)) for answer in answers])
        fractions = any(isinstance(value, float) for value in verdicts)
        columns[_free(f"{name}.score" if fractions and not name.endswith("score") else name, columns)] = verdicts
    for name in dict.fromkeys(name for answer in answers for name in answer.scores):
        columns[_free(f"{name}.score", columns)] = [_number(answer.scores.get(name)) for answer in answers]
    for name in dict.fromkeys(name for answer in answers for name in answer.extras):
        values = [_scalar(answer.extras.get(name)) for answer in answers]
        if any(value is not None for value in values):
            columns[name if name not in columns else _free(f"metadata.{name}", columns)] = values
    return pa.table({name: _column(values) for name, values in columns.items()})


def _judged(values: list[Any]) -> list[Any]:
    """Verdicts as pass and fail, grades as whole numbers, anything else as it is."""
    known = {value for value in values if value is not None}
    if known <= {0, 1} and (0 in known or any(value is True for value in known)):  # 1 alone may be a grade
        return [None if value is None else "pass" if value else "fail" for value in values]
    if all(isinstance(value, int | float) and float(value).is_integer() for value in known):
        return [None if value is None else int(value) for value in values]
    if all(isinstance(value, int | float) for value in known):
        return [None if value is None else float(value) for value in values]
    return values


def _column(values: list[Any]) -> pa.Array:
    """Values of one kind as they are, whole numbers beside fractions as fractions, anything mixed as texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    try:
        return pa.array(values) if len(kinds) == 1 else pa.array(_texts(values), pa.string())
    except (OverflowError, pa.ArrowException):
        return pa.array(_texts(values), pa.string())


def _texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]
