"""What the tests of the command line share: a small table with known truth, and how a command is run."""

import csv
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import typer.testing
from typer.testing import CliRunner

import forks
from altmas.cli import app

# The runner builds all commands anew at each call, which takes longer than most commands do.
typer.testing._get_command = cache(typer.testing._get_command)

CLASSES = ("bird", "cat", "dog")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run(*arguments: object) -> Ran:
    """The command in this process."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False, prog_name="altmas")
    assert "Traceback" not in result.stderr
    return Ran(result.exit_code, result.stdout, result.stderr)


def start(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own (a fork that has imported altmas already)."""
    command = [forks.command("altmas"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


def write_table(folder: Path, n: int = 120, accuracy: float = 0.8, seed: int = 0) -> tuple[Path, dict[str, str]]:
    """(path, {id: true class}) of a CSV with predictions, truth, a second model, a slice, texts and two features."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)

    def model(right: float) -> np.ndarray:
        return np.where(rng.random(n) < right, truth, (truth + rng.integers(1, 3, n)) % 3)

    first, second = model(accuracy), model(0.95)
    path = folder / "preds.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["study_id", "vendor_label", "v2", "label", "scanner", "text", "x1", "x2"])
        for i in range(n):
            x = rng.normal(truth[i], 0.5, 2).round(4)
            names = (CLASSES[first[i]], CLASSES[second[i]], CLASSES[truth[i]])
            writer.writerow([f"case-{i}", *names, "AB"[i % 2], f"animal, number {i}", *x])
    return path, {f"case-{i}": CLASSES[truth[i]] for i in range(n)}


def make_session(folder: Path, *options: object) -> tuple[Path, dict[str, str]]:
    """(session file, truth) of a session made by `altmas init`."""
    table, truth = write_table(folder)
    path = folder / "one.altmas"
    roles = (
        "--data",
        table,
        "--id",
        "study_id",
        "--prediction",
        "vendor_label",
        "--slice",
        "scanner",
        "--show",
        "text",
    )
    made = run("init", path, *roles, "--method", "tradition", *options)
    assert made.code == 0, made.err
    return path, truth
