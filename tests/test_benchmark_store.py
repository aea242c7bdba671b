"""Where benchmarks keep runs and tables: nothing finished is lost or run twice, and pages are replaced in place."""

import re
from pathlib import Path

import pytest

from benchmarks.store import RESULTS, Runs, keep_csv, read_csv, read_numbers, write_csv
from benchmarks.tables import DOCS, markdown, with_table

ROOT = RESULTS.parent


def test_runs_are_added_and_known_by_their_key(tmp_path):
    runs = Runs(tmp_path / "new" / "runs.jsonl", "pool", "seed")
    assert runs.read() == [] and runs.done() == set()
    runs.add({"pool": "a", "seed": 0, "value": 1.5}, {"pool": "a", "seed": 1, "value": None})
    runs.add({"pool": "b", "seed": 0, "value": 2})
    assert runs.done() == {("a", 0), ("a", 1), ("b", 0)}
    assert runs.read()[1] == {"pool": "a", "seed": 1, "value": None}
    assert Runs(runs.path, "seed").done() == {0, 1}


def test_a_run_cut_short_by_a_crash_is_not_done_and_spoils_no_other(tmp_path):
    runs = Runs(tmp_path / "runs.jsonl", "seed")
    runs.add({"seed": 0})
    with runs.path.open("a") as file:
        file.write('{"seed": 1')
    assert runs.done() == {0}
    runs.add({"seed": 2})
    assert runs.done() == {0, 2}
    assert runs.path.read_text() == '{"seed": 0}\n{"seed": 2}\n'


def test_runs_written_together_replace_what_was_there(tmp_path):
    runs = Runs(tmp_path / "runs.jsonl", "seed")
    runs.add({"seed": 0})

    def interrupted():
        yield {"seed": 1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.write(interrupted())
    assert runs.done() == {0}
    runs.write([{"seed": 1}, {"seed": 2}])
    assert runs.done() == {1, 2} and [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


def test_a_table_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "table.csv"
    write_csv(path, [{"pool": "a, b", "n": 1}, {"pool": "c", "value": 0.5}])
    assert path.read_bytes() == b'pool,n,value\n"a, b",1,\nc,,0.5\n'
    assert read_csv(path)[0] == {"pool": "a, b", "n": "1", "value": ""}
    assert read_numbers(path) == [{"pool": "a, b", "n": 1, "value": None}, {"pool": "c", "n": None, "value": 0.5}]
    assert read_csv(tmp_path / "none.csv") == []


def test_a_summary_without_runs_leaves_the_table(tmp_path, capsys):
    path = tmp_path / "table.csv"
    write_csv(path, [])
    assert not path.exists()
    write_csv(path, [{"n": 1}])
    write_csv(path, [])
    assert path.read_text() == "n\n1\n" and [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert "no rows for table.csv: nothing was written" in capsys.readouterr().out


def test_rows_replace_those_with_their_key(tmp_path):
    path = tmp_path / "table.csv"
    keep_csv(path, [{"part": "x", "value": 1}, {"part": "x", "value": 2}, {"part": "y", "value": 3}], "part")
    keep_csv(path, [{"part": "x", "value": 4}], "part")
    assert [tuple(row.values()) for row in read_csv(path)] == [("y", "3"), ("x", "4")]


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.csv")), ids=lambda path: path.name)
def test_every_committed_table_is_as_the_writer_writes_it(path, tmp_path):
    write_csv(tmp_path / path.name, read_csv(path))
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_a_table_in_markdown_has_a_cell_for_each_column():
    assert markdown(["a", "b"], [[1, "x"]]) == "| a | b |\n|---|---|\n| 1 | x |"
    with pytest.raises(ValueError, match="a row of 1 cells in a table of 2 columns"):
        markdown(["a", "b"], [["x"]])


def test_tables_are_replaced_between_their_marks():
    text = "a\n<!-- table: one -->\nold\n<!-- end -->\nb\n<!-- table: two -->\nkept\n<!-- end -->\n"
    assert with_table(text, "one", r"new \1").splitlines()[2] == r"new \1" and "kept" in with_table(text, "one", "new")
    with pytest.raises(ValueError, match="table: three"):
        with_table(text, "three", "new")


# ---------------------------------------------------------------- benchmarks/README.md

README = ROOT / "README.md"
LINE = re.compile(r"^\| `python -m (benchmarks\.[\w.]+)(?: [^`]*)?` \|([^|]*)\|([^|]*)\|", re.MULTILINE)


def listed() -> dict[str, tuple[list[str], list[str]]]:
    """{module: (files, pages)} of the table in benchmarks/README.md."""
    return {
        module: (re.findall(r"`([^`]+)`", files), re.findall(r"\]\(([^)]+)\)", pages))
        for module, files, pages in LINE.findall(README.read_text(encoding="utf-8"))
    }


def test_the_readme_lists_every_command():
    commands = {
        "benchmarks." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in ROOT.rglob("*.py")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert set(listed()) == commands, "each command needs its row in benchmarks/README.md"


def test_the_readme_names_files_and_pages_that_are_there():
    files = {file for written, _ in listed().values() for file in written}
    pages = [page for _, read in listed().values() for page in read]
    assert [file for file in files if "/" in file and not (ROOT.parent / file).exists()] == []
    assert [page for page in pages if not (ROOT / page).is_file()] == []
    committed, said = {path.name for path in RESULTS.iterdir() if path.is_file()}, {Path(file).name for file in files}
    assert committed - said == set(), "results that no command in benchmarks/README.md is said to write"


def test_every_page_names_a_command_that_the_readme_gives_for_it():
    commands: dict[str, list[str]] = {}
    for module, (_, pages) in listed().items():
        for page in pages:
            commands.setdefault(page, []).append(f"python -m {module}")
    for page, named in commands.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        assert any(command in text or f"make {command.rpartition('.')[2]}" in text for command in named), (page, named)


def test_commands_in_the_docs_are_listed():
    texts = [*DOCS.glob("*.md"), ROOT.parent / "README.md", ROOT.parent / "CONTRIBUTING.md", ROOT.parent / "Makefile"]
    said = {name for path in texts for name in re.findall(r"-m (benchmarks\.[\w.]*\w)", path.read_text("utf-8"))}
    assert said - set(listed()) == set()


# ---------------------------------------------------------------- docs/session_file.md


def test_the_page_of_the_session_file_says_what_the_tables_say():
    page = (DOCS / "session_file.md").read_text(encoding="utf-8")
    writers = read_numbers(RESULTS / "writers.csv")
    told, refused, lost = (sum(row[what] for row in writers) for what in ("told", "refused", "lost"))
    assert (refused, lost) == (0, 0) and f"{told:,} told, none refused, none lost" in page
    longest, load = max(row["longest_ms"] for row in writers) / 1000, writers[0]["load_before"]
    assert f"the longest wait {longest:.1f} s on two cores with a load of {load:.1f}" in page
    kills = read_csv(RESULTS / "kill9.csv")
    during = sum(row["in_write"] == "True" for row in kills)
    assert f"is killed {len(kills):,} times at random moments, {during} of them during a write" in page
    assert {(row["lost"], row["half"], row["integrity"], row["same_next"]) for row in kills} == {
        ("0", "0", "ok", "True")
    }


def test_rows_with_more_runs_than_the_new_ones_stay(tmp_path):
    path = tmp_path / "table.csv"
    keep_csv(path, [{"part": "x", "runs": 10, "value": 1}, {"part": "y", "runs": 2, "value": 2}], "part", count="runs")
    new = [
        {"part": "x", "runs": 3, "value": 7},
        {"part": "y", "runs": 2, "value": 8},
        {"part": "z", "runs": 1, "value": 9},
    ]
    keep_csv(path, new, "part", count="runs")
    assert {row["part"]: row["value"] for row in read_csv(path)} == {"x": "1", "y": "8", "z": "9"}
