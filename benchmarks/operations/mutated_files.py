"""Damaged input files: each is refused with one sentence and leaves no trace, or is read as what it says.

Every format that altmas reads is mutated as accidents do it: cut, flipped, with pieces doubled, swapped, missing or
strange, under a wrong name, nested without end. A worker process runs the real command on each file. Found per file:
  refused    exit code 2, one sentence on stderr, nothing recorded
  read       taken, and what altmas holds is what an independent reader finds in the same bytes (of a second model's
             table only that a comparison came out)
  traceback  an error that was not meant for people, or more than a sentence
  changed    taken, but something else was recorded than the file says, or a refused file left a trace
  hang       no answer within --patience seconds;  crash  the process died
The last four must be 0.

    python -m benchmarks.operations.mutated_files --files 10000 --store runs.jsonl     # goes on where it stopped
"""

import argparse
import ast
import contextlib
import csv
import io
import json
import os
import random
import select
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import altmas
from benchmarks import store
from benchmarks.store import Row, Runs, write_csv

RESULTS = store.RESULTS / "mutated_files.csv"
OUTCOMES = ("refused", "read", "traceback", "changed", "hang", "crash")
N, CLASSES = 40, ("cat", "dog", "owl")
STRANGE = (
    b'"',
    b",",
    b"\n",
    b"\r",
    b"}",
    b"[",
    b"{}",
    b"null",
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"1e999",
    b"NaN",
    b"-0",
    b"9223372036854775809",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"=1+1",
    b"' '",
    b"\\",
    b";",
    b"\t",
)


# ---------------------------------------------------------------- the files


def table() -> list[dict[str, Any]]:
    """A small table of predictions, scores, features, a slice and texts."""
    rng = np.random.default_rng(3)
    rows = []
    for number in range(N):
        scores = rng.dirichlet([1.0, 1.0, 1.0]).round(4)
        rows.append(
            {
                "case": f"c-{number:03d}",
                "said": CLASSES[int(scores.argmax())],
                "p_cat": float(scores[0]),
                "p_dog": float(scores[1]),
                "p_owl": float(1 - scores[0] - scores[1]),
                "x1": round(float(rng.normal()), 4),
                "x2": round(float(rng.normal()), 4),
                "site": "north" if number % 3 else "south",
                "text": f'a "quoted" text, number {number}; ünï\nsecond line',
            }
        )
    return rows


def labels() -> list[dict[str, Any]]:
    """Labels of some points by two people, one skip, one row that nobody filled in."""
    rows: list[dict[str, Any]] = [
        {"id": f"c-{number:03d}", "label": CLASSES[number % 3], "annotator": "ana" if number % 2 else "bob"}
        for number in range(20)
    ]
    rows = [{**row, "seconds": 1.5, "kind": "label", "reason": None} for row in rows]
    rows.append({"id": "c-030", "label": None, "annotator": "ana", "seconds": 3.0, "kind": "skip", "reason": "dark"})
    rows.append({"id": "c-031", "label": None, "annotator": None, "seconds": None, "kind": None, "reason": None})
    return rows


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink, write_page_checksum=True, store_schema=False)
    return bytes(sink.getvalue())


def as_npy(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([[row[name] for name in names] for row in table()], np.float32))
    return buffer.getvalue()


def as_tasks() -> bytes:
    """A Label Studio export with annotations."""
    tasks = []
    for number, row in enumerate(labels()):
        choice = {"type": "choices", "value": {"choices": [row["label"]]}, "from_name": "label", "to_name": "item"}
        annotation = {
            "id": number,
            "completed_by": {"email": f"{row['annotator']}@example.org"},
            "result": [choice] if row["label"] else [],
            "was_cancelled": row["kind"] == "skip",
            "lead_time": row["seconds"],
            "created_at": "2026-01-02T03:04:05Z",
        }
        tasks.append({"id": number, "data": {"altmas_id": row["id"], "text": "ünï"}, "annotations": [annotation]})
    return json.dumps(tasks, indent=1, ensure_ascii=False).encode()


def as_records() -> bytes:
    """A Label Studio JSON_MIN export."""
    answered = [row for row in labels() if row["label"]]
    records = [{"altmas_id": row["id"], "text": "ünï", "label": row["label"], "annotator": 1} for row in answered]
    return json.dumps(records).encode()


# ---------------------------------------------------------------- independent readers


def csv_rows(content: bytes, delimiter: str = ",") -> list[dict[str, Any]]:
    records = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    return [dict(zip(records[0], cells, strict=True)) for cells in records[1:] if cells]


def sheet_rows(content: bytes) -> list[dict[str, Any]]:
    """Rows of a sheet whose delimiter is what the first line has most of, with names in any case."""
    text = decoded(content)
    rows = csv_rows(text.encode(), max(",;\t", key=text.split("\n", 1)[0].count))
    return [{name.strip().lower(): cell for name, cell in row.items()} for row in rows]


def decoded(content: bytes) -> str:
    """UTF-8, or UTF-16 with its mark."""
    return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def jsonl_rows(content: bytes) -> list[dict[str, Any]]:
    """The objects one after the other; a line break inside one does not change what it says."""
    text, rows, position = decoded(content), [], 0
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        row, position = json.JSONDecoder().raw_decode(text, position)
        rows.append(row)
    return rows


def parquet_rows(content: bytes) -> list[dict[str, Any]]:
    """By another implementation of the format; where that is stricter about footers, by Arrow without a dataset."""
    import polars
    import pyarrow.parquet as pq

    names = pq.ParquetFile(io.BytesIO(content)).schema_arrow.names
    columns = [name for name in names if name in USED]
    try:
        return polars.read_parquet(io.BytesIO(content), columns=columns).to_dicts()
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException):
        rows: list[dict[str, Any]] = pq.ParquetFile(io.BytesIO(content)).read(columns).to_pylist()
        return rows


def matrix(content: bytes) -> list[list[float]]:
    """The numbers of a .npy file of float32, by its documented layout."""
    (length,) = struct.unpack("<H", content[8:10])
    header = ast.literal_eval(content[10 : 10 + length].decode("latin1"))
    array = np.frombuffer(content[10 + length :], header["descr"])
    shaped = array.reshape(header["shape"], order="F" if header["fortran_order"] else "C")
    return [list(map(float, row)) for row in shaped]


def said_in_tasks(content: bytes) -> set[Any]:
    return {
        (
            str(task["data"]["altmas_id"]),
            None if annotation.get("was_cancelled") else next(iter(chosen(annotation)), None),
        )
        for task in json.loads(content)
        for annotation in task.get("annotations") or []
    }


def chosen(annotation: dict[str, Any]) -> list[str]:
    results = [result for result in annotation.get("result") or [] if result.get("type") == "choices"]
    return [str(name) for result in results for name in result["value"]["choices"]]


def said_in_records(content: bytes) -> set[Any]:
    """A JSON_MIN export; what is a whole export under that name says what that says."""
    if any("annotations" in record for record in json.loads(content)):
        return said_in_tasks(content)
    return {(str(record["altmas_id"]), str(record["label"])) for record in json.loads(content) if record.get("label")}


def said_in_rows(rows: list[dict[str, Any]]) -> set[Any]:
    return {
        (_name(row["id"]), _name(row["label"]) if row.get("label") not in (None, "") else None)
        for row in rows
        if row.get("label") not in (None, "") or (row.get("kind") or "").strip().lower() in ("skip", "unsure")
    }


def points_of(rows: list[dict[str, Any]]) -> list[Any]:
    """The table as a pool should hold it."""
    return [
        [
            _name(row["case"]),
            _name(row["said"]),
            *(float(np.float32(row[name])) for name in ("x1", "x2")),
            *shares([float(row[name]) for name in SCORES]),
            _shown(row.get("text")),
        ]
        for row in rows
    ]


def _shown(value: Any) -> Any:
    """A text that is not there and an empty cell are both missing; bytes are text where the type was lost."""
    return (value.decode() if isinstance(value, bytes) else value) or None


def shares(scores: Any) -> list[float]:
    """Scores as they are kept: to float32 precision, with the sum 1."""
    exact = np.maximum(np.asarray(scores, np.float32).astype(np.float64), 0)
    return [round(float(share), 9) for share in exact / exact.sum()]


def _name(value: Any) -> str:
    value = value.decode() if isinstance(value, bytes) else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# ---------------------------------------------------------------- formats


@dataclass(frozen=True)
class Format:
    """How a kind of file is made, which command reads it, what altmas then holds and what the bytes say."""

    suffix: str
    original: Callable[[], bytes]
    command: tuple[str, ...]
    held: Callable[[altmas.Session], Any]
    says: Callable[[bytes], Any]


def pool_points(session: altmas.Session) -> list[Any]:
    pool = session.pool
    assert pool.features is not None and pool.items is not None and pool.scores is not None
    return [
        [
            str(pool.ids[row]),
            str(pool.classes[pool.predictions[row]]),
            *map(float, pool.features[row]),
            *(round(float(score), 9) for score in pool.scores[row]),
            pool.items[row],
        ]
        for row in range(len(pool))
    ]


def pool_features(session: altmas.Session) -> list[list[float]]:
    assert session.pool.features is not None
    return [list(map(float, row)) for row in session.pool.features]


def recorded(session: altmas.Session) -> set[Any]:
    votes = [event for event in session.events() if event["kind"] in ("label", "skip", "unsure")]
    return {(vote["point"], vote["label"]) for vote in votes}


SCORES = ("p_cat", "p_dog", "p_owl")
USED = ("case", "said", *SCORES, "x1", "x2", "site", "text", "id", "label", "annotator", "seconds", "kind", "reason")
ROLES = (
    *("--id", "case", "--prediction", "said", "--features", "x1", "--features", "x2", "--slice", "site"),
    *(word for name in SCORES for word in ("--scores", name)),
)
CLASS_OPTIONS = tuple(word for name in CLASSES for word in ("--class", name))
INIT = ("init", "{new}", "--data", "{file}", *ROLES, "--show", "text", *CLASS_OPTIONS, "--method", "tradition")
NPY = ("init", "{new}", "--data", "{good}", "--prediction", "said", "--features", "{file}", "--method", "tradition")
IMPORT = ("import", "{new}", "{file}")
COMPARE = ("compare", "{new}", "--predictions", "{file}", "--prediction", "said", "--id", "case", "--json")

FORMATS = {
    "csv table": Format(".csv", lambda: as_csv(table()), INIT, pool_points, lambda b: points_of(csv_rows(b))),
    "tsv table": Format(
        ".tsv", lambda: as_csv(table(), "\t"), INIT, pool_points, lambda b: points_of(csv_rows(b, "\t"))
    ),
    "jsonl table": Format(".jsonl", lambda: as_jsonl(table()), INIT, pool_points, lambda b: points_of(jsonl_rows(b))),
    "parquet table": Format(
        ".parquet", lambda: as_parquet(table()), INIT, pool_points, lambda b: points_of(parquet_rows(b))
    ),
    "npy features": Format(".npy", lambda: as_npy(["x1", "x2"]), NPY, pool_features, matrix),
    "csv second model": Format(".csv", lambda: as_csv(table()), COMPARE, lambda session: None, lambda b: None),
    "csv labels": Format(".csv", lambda: as_csv(labels()), IMPORT, recorded, lambda b: said_in_rows(sheet_rows(b))),
    "jsonl labels": Format(
        ".jsonl", lambda: as_jsonl(labels()), IMPORT, recorded, lambda b: said_in_rows(jsonl_rows(b))
    ),
    "parquet labels": Format(
        ".parquet", lambda: as_parquet(labels()), IMPORT, recorded, lambda b: said_in_rows(parquet_rows(b))
    ),
    "label-studio": Format(".json", as_tasks, IMPORT, recorded, said_in_tasks),
    "label-studio-min": Format(".json", as_records, IMPORT, recorded, said_in_records),
}


# ---------------------------------------------------------------- mutations


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content as an accident leaves it."""
    if rng.random() < 0.08:
        return whole_file(content, rng)
    broken = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice((cut, flip, flip, remove, double, insert, insert, nest, reverse, swap_lines, digit))(broken, rng)
    return bytes(broken)


def whole_file(content: bytes, rng: random.Random) -> bytes:
    """Nothing, a mark and nothing, blanks, another format under this name, noise, another encoding, a page."""
    originals = [form.original for form in FORMATS.values()]
    texts = [b"", b"\xef\xbb\xbf", b" \r\n\t\n", b"<!doctype html><p>404", b"SQLite format 3\x00" + bytes(84)]
    noise = rng.randbytes(rng.randint(1, 3000))
    coded = content.decode("latin1").encode(rng.choice(("utf-16", "utf-32", "utf-8")))
    return rng.choice([*texts, noise, coded, rng.choice(originals)(), b"\xef\xbb\xbf" + content, content * 2])


def at(broken: bytearray, rng: random.Random) -> int:
    """A position; in half of the cases near an end, where headers and footers are."""
    if not broken:
        return 0
    near = rng.choice((0, 0, 1, 2))
    span = min(200, len(broken))
    first = {0: rng.randrange(len(broken)), 1: rng.randrange(span), 2: len(broken) - 1 - rng.randrange(span)}
    return first[near]


def cut(broken: bytearray, rng: random.Random) -> None:
    del broken[at(broken, rng) :]


def flip(broken: bytearray, rng: random.Random) -> None:
    if broken:
        broken[at(broken, rng)] = rng.randrange(256)


def remove(broken: bytearray, rng: random.Random) -> None:
    position = at(broken, rng)
    del broken[position : position + rng.randint(1, 30)]


def double(broken: bytearray, rng: random.Random) -> None:
    position = at(broken, rng)
    broken[position:position] = broken[position : position + rng.randint(1, 300)]


def insert(broken: bytearray, rng: random.Random) -> None:
    position = at(broken, rng)
    broken[position:position] = rng.choice(STRANGE)


def nest(broken: bytearray, rng: random.Random) -> None:
    """A value nested very deep in place of one, or a cell of 200,000 letters."""
    if rng.random() < 0.7:
        return insert(broken, rng)
    deep = rng.choice((50, 900, 20_000, 100_000))
    long = rng.choice((b"[" * deep + b"]" * deep, b'{"a":' * deep + b"1" + b"}" * deep, b"x" * 200_000))
    position = broken.find(b":", at(broken, rng)) + 1
    broken[position:position] = long + rng.choice((b",", b""))


def reverse(broken: bytearray, rng: random.Random) -> None:
    low = at(broken, rng)
    high = low + rng.randint(1, 60)
    broken[low:high] = bytes(reversed(broken[low:high]))


def swap_lines(broken: bytearray, rng: random.Random) -> None:
    """Two lines change places, or one stands twice."""
    lines = bytes(broken).split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], rng.choice((lines[first], lines[second]))
    broken[:] = b"\n".join(lines)


def digit(broken: bytearray, rng: random.Random) -> None:
    """Another digit where one is: lengths, shapes, offsets, ids, scores."""
    digits = [position for position, byte in enumerate(broken) if 48 <= byte <= 57]
    if digits:
        broken[rng.choice(digits)] = rng.choice(b"0123456789-.e")


# ---------------------------------------------------------------- one file


class Bench:
    """A folder with what the commands need, and the commands."""

    def __init__(self, folder: Path) -> None:
        from typer.testing import CliRunner

        self.folder, self.runner = folder, CliRunner()
        self.good = folder / "good.csv"
        self.good.write_bytes(as_csv(table()))
        self.session = folder / "good.altmas"
        init = [word.format(new=self.session, file=self.good) for word in INIT]
        assert self.run(init)[0] == 0
        self.template = self.session.read_bytes()

    def run(self, words: list[str]) -> tuple[int, str, BaseException | None]:
        """(exit code, stderr, the exception that was not meant for people)."""
        from altmas.cli import app

        result = self.runner.invoke(app, words, prog_name="altmas")
        strange = result.exception
        return result.exit_code, result.stderr, None if isinstance(strange, SystemExit) else strange

    def outcome(self, number: int) -> tuple[str, str, str]:
        """(format, outcome, what was said) of the file with this number."""
        name = list(FORMATS)[number % len(FORMATS)]
        form, rng = FORMATS[name], random.Random(number)
        content = mutated(form.original(), rng)
        file, new = self.folder / f"broken{form.suffix}", self.folder / "new.altmas"
        file.write_bytes(content)
        if form.command[0] != "init":
            new.write_bytes(self.template)
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        try:
            outcome, message = self._judged(form, content, file, new, before)
        finally:
            new.unlink(missing_ok=True)
            file.unlink()
        return name, outcome, message

    def _judged(self, form: Format, content: bytes, file: Path, new: Path, before: dict[str, bytes]) -> tuple[str, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code, message, strange = self.run([w.format(new=new, file=file, good=self.good) for w in form.command])
        if strange is not None:
            return "traceback", f"{type(strange).__name__}: {strange}"[:300]
        if code != 0:
            after = {path.name: path.read_bytes() for path in self.folder.iterdir()}
            lines = [line for line in message.strip().split("\n") if not line.startswith("try: altmas ")]
            if code != 2 or not lines[-1].startswith("altmas: ") or len(lines) > 1:
                return "traceback", f"exit code {code}: {message[:300]}"
            return ("refused", message.strip()[:300]) if after == before else ("changed", "a refused file left a trace")
        with altmas.Session.open(new) as session:
            held = form.held(session)
        try:
            says = form.says(content)
        except Exception as cause:  # what the other reader cannot read is a finding too
            return "changed", f"read, but the other reader says {type(cause).__name__}: {cause}"[:300]
        return ("read", "") if held == says else ("changed", f"held {str(held)[:120]}, the file says {str(says)[:120]}")


def work() -> None:
    """Read numbers from stdin, answer each with its outcome as a line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        answers = os.fdopen(os.dup(1), "w")
        for line in sys.stdin:
            with contextlib.redirect_stdout(io.StringIO()):
                outcome = bench.outcome(int(line))
            answers.write(json.dumps([int(line), *outcome]) + "\n")
            answers.flush()


# ---------------------------------------------------------------- all files


class Worker:
    """A process that judges files; started anew when it died or hung."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.process: subprocess.Popen[str] | None = None

    def judge(self, number: int) -> list[Any]:
        process = self.process or self._start()
        assert process.stdin is not None and process.stdout is not None
        name = list(FORMATS)[number % len(FORMATS)]
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self.patience)
        line = process.stdout.readline() if ready else ""
        if line:
            return list(json.loads(line))
        self.stop()
        return [number, name, "crash" if ready else "hang", f"exit code {process.returncode}" if ready else ""]

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.operations.mutated_files", "--worker"]
        root = Path(__file__).parent.parent.parent
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=root
        )
        return self.process

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def judged(numbers: Iterator[int], runs: Runs, patience: float) -> None:
    """Judge the files with these numbers that the store does not have yet, and add them."""
    known = runs.done()
    worker = Worker(patience)
    try:
        for number in numbers:
            if number not in known:
                runs.add(dict(zip(("file", "format", "outcome", "said"), worker.judge(number), strict=True)))
    finally:
        worker.stop()


def runs_in(path: Path) -> Runs:
    """The files that were judged, told apart by their number."""
    return Runs(path, "file")


def summary(rows: list[Row]) -> list[Row]:
    """Counts of every outcome, for each format and in all."""
    counts = Counter((row["format"], row["outcome"]) for row in rows)
    by_format = []
    for name in FORMATS:
        own = {outcome: counts[name, outcome] for outcome in OUTCOMES}
        by_format.append({"format": name, "files": sum(own.values()), **own})
    return [*by_format, {"format": "all", **{key: sum(row[key] for row in by_format) for key in ("files", *OUTCOMES)}}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--patience", type=float, default=120.0)
    parser.add_argument("--store", type=Path, default=Path(tempfile.gettempdir()) / "altmas-mutated.jsonl")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return
    judged(iter(range(options.first, options.first + options.files)), runs_in(options.store), options.patience)
    rows = summary(runs_in(options.store).read())
    write_csv(options.results, rows)
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    if any(rows[-1][key] for key in OUTCOMES[2:]):
        sys.exit(1)


if __name__ == "__main__":
    main()
