"""No file is replaced unasked, no session and nothing that it reads ever; a file is whole or not there."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import altmas
import forks
from altmas import demo, outputs
from altmas.errors import FileError, OutputExists
from altmas.outputs import kept_by, writable, write_whole
from cli_world import make_session, run, start

WRITERS = {
    "report": ("report", "{session}", "-o", "{file}"),
    "report as json": ("report", "{session}", "-o", "{file}.json"),
    "export": ("export", "{session}", "-n", "3", "--to", "csv", "{file}"),
    "export for Label Studio": ("export", "{session}", "-n", "3", "--to", "label-studio", "{file}"),
    "export --labels": ("export", "{session}", "--labels", "--to", "jsonl", "{file}"),
    "export --events": ("export", "{session}", "--events", "{file}"),
}


def words(name, session, file):
    return [one.format(session=session, file=file) for one in WRITERS[name]]


@pytest.fixture
def world(tmp_path):
    """(session file, folder) with a few labels told."""
    session, truth = make_session(tmp_path)
    for id in list(truth)[:3]:
        assert run("tell", session, id, truth[id]).code == 0
    return session, tmp_path


def events(session):
    with altmas.Session.open(session, read_only=True) as one:
        return [event["kind"] for event in one.events() if event["kind"] != "estimate"]


# ---------------------------------------------------------------- every command


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_there_is_replaced_only_by_force(name, world):
    session, folder = world
    target = folder / ("mine.json" if "json" in name else "mine")
    target.write_text("my notes")
    before, log = {one.name for one in folder.iterdir()}, events(session)
    refused = run(*words(name, session, folder / "mine"))
    assert refused.code == 2 and "mine" in refused.err and "--force" in refused.err
    assert target.read_text() == "my notes" and {one.name for one in folder.iterdir()} == before
    assert events(session) == log  # nothing was drawn for a file that could not be written
    assert run(*words(name, session, folder / "mine"), "--force").code == 0
    assert target.read_text() != "my notes"


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "report as json"])
def test_a_session_is_never_written_over(name, world, monkeypatch):
    session, folder = world
    monkeypatch.chdir(folder)
    targets = {
        "name": session,
        "relative": folder / ".." / folder.name / session.name,
        "symlink": folder / "link",
        "hard link": folder / "twin",
        "journal": folder / (session.name + "-journal"),
        "wal": folder / (session.name + "-wal"),
    }
    targets["symlink"].symlink_to(session)
    os.link(session, targets["hard link"])
    before = session.read_bytes()
    for by, target in targets.items():
        for force in ([], ["--force"]):
            refused = run(*words(name, session, target), *force)
            assert refused.code == 2 and "never written over" in refused.err, by
            assert session.read_bytes() == before, by
        assert target.exists() == (by not in ("journal", "wal")), by


@pytest.mark.parametrize("name", WRITERS)
def test_another_session_is_never_written_over_either(name, world):
    session, folder = world
    other = folder / ("other.json" if "json" in name else "other")
    other.write_bytes(session.read_bytes())
    refused = run(*words(name, session, folder / "other"), "--force")
    assert refused.code == 2 and "a session file and is never written over" in refused.err
    assert other.read_bytes() == session.read_bytes()


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "report as json"])
def test_the_table_of_a_session_is_never_written_over(name, world):
    session, folder = world
    table = folder / "preds.csv"
    (folder / "link").symlink_to(table)
    before = table.read_bytes()
    for target in (table, folder / "link"):
        refused = run(*words(name, session, target), "--force")
        assert refused.code == 2 and "the table of predictions and is never written over" in refused.err
        assert table.read_bytes() == before


def test_features_scores_and_items_are_never_written_over(tmp_path):
    np.save(tmp_path / "emb.npy", np.random.default_rng(0).normal(size=(4, 2)))
    np.save(tmp_path / "p.npy", np.full((4, 2), 0.5))
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    rows = "".join(f"{name},images/a.png\n" for name in "xyxy")
    (tmp_path / "t.csv").write_text("said,image\n" + rows)
    roles = {"features": str(tmp_path / "emb.npy"), "scores": str(tmp_path / "p.npy"), "show": ["image", "said"]}
    pool = altmas.Pool.from_table(tmp_path / "t.csv", prediction="said", **roles)
    session = altmas.Session.create(tmp_path / "s.altmas", pool, method="tradition")
    for name in ("emb.npy", "p.npy", "t.csv", "images/a.png", "s.altmas"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(OutputExists, match="never written over"):
            session.export_labels(tmp_path / name, "csv", force=True)
        assert (tmp_path / name).read_bytes() == before
    session.export_labels(tmp_path / "images" / "b.csv")  # beside the items is fine


def test_a_memory_map_and_a_folder_of_parquet_files_are_kept(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    np.save(tmp_path / "emb.npy", np.zeros((4, 2)))
    pool = altmas.Pool(np.load(tmp_path / "emb.npy", mmap_mode="r"), list("abab"))
    with pytest.raises(OutputExists, match="a file with features"):
        writable(tmp_path / "emb.npy", force=True, kept=kept_by(pool))
    (tmp_path / "t.parquet").mkdir()
    pq.write_table(pa.table({"said": list("abab")}), tmp_path / "t.parquet" / "one.parquet")
    pool = altmas.Pool.from_table(tmp_path / "t.parquet", prediction="said")
    with pytest.raises(OutputExists, match="the table of predictions"):
        writable(tmp_path / "t.parquet" / "two.parquet", kept=kept_by(pool))


def test_a_file_beside_the_output_is_as_safe_as_the_output(world):
    """The report's JSON and Label Studio's config: if one of two files may not be written, neither is."""
    session, folder = world
    (folder / "r.json").write_text("mine")
    assert run("report", session, "-o", folder / "r.html").code == 2
    (folder / "tasks.config.xml").write_text("mine")
    assert run("export", session, folder / "tasks.json").code == 2
    assert not (folder / "r.html").exists() and not (folder / "tasks.json").exists()
    assert (folder / "r.json").read_text() == (folder / "tasks.config.xml").read_text() == "mine"
    os.link(session, folder / "s.json")
    assert "never written over" in run("report", session, "-o", folder / "s.html", "--force").err


def test_simulate_adds_to_its_own_results_and_to_nothing_else(tmp_path):
    session, _ = make_session(tmp_path)
    table, roles = tmp_path / "preds.csv", ("--prediction", "vendor_label", "--truth", "label", "--budget", 20)
    call = ("simulate", "--data", table, *roles, "--repeats", 2, "--jobs", 1, "--method", "tradition", "-q")
    for target in (table, session):
        before = target.read_bytes()
        refused = run(*call, "--results", target)
        assert refused.code == 2 and "never written over" in refused.err and target.read_bytes() == before
    binary = tmp_path / "noise.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "is not a simulation's results file" in run(*call, "--results", binary).err
    results = tmp_path / "runs.jsonl"
    assert run(*call, "--results", results).code == 0
    whole = results.read_text()
    results.write_text(whole[:-30])  # killed while writing the last line
    assert run(*call, "--results", results).code == 0
    assert len(results.read_text().splitlines()) == len(whole.splitlines())
    results.write_text(whole.replace('"rows"', '"row"', 1))
    assert "damaged in line 2" in run(*call, "--results", results).err


def test_a_second_demonstration_takes_new_names(tmp_path):
    assert [one.name for one in demo.free_names(tmp_path)] == ["demo.altmas", "demo-report.html"]
    (tmp_path / "demo-report.json").write_text("mine")
    assert [one.name for one in demo.free_names(tmp_path)] == ["demo-2.altmas", "demo-2-report.html"]
    (tmp_path / "demo-2.altmas").symlink_to(tmp_path / "nowhere")
    assert [one.name for one in demo.free_names(tmp_path)] == ["demo-3.altmas", "demo-3-report.html"]


# ---------------------------------------------------------------- from Python


def test_python_replaces_by_force_too(tmp_path):
    session = altmas.Session.create(None, altmas.Pool(None, list("ab") * 10), method="tradition")
    calls = {
        "report.html": lambda path, **force: session.report(path, **force),
        "next.csv": lambda path, **force: session.export(path, 3, **force),
        "labels.csv": lambda path, **force: session.export_labels(path, **force),
        "events.jsonl": lambda path, **force: session.export_events(path, **force),
        "again.html": lambda path, **force: session.report().write(path, **force),
    }
    for name, call in calls.items():
        call(tmp_path / name)
        with pytest.raises(FileExistsError, match="force=True"):
            call(tmp_path / name)
        call(tmp_path / name, force=True)


def test_a_report_remembers_what_it_must_not_write_over(world):
    session, _ = world
    with altmas.Session.open(session) as one:
        report = one.report()
    before = session.read_bytes()
    with pytest.raises(OutputExists, match="the session itself"):
        report.write(session, force=True)
    assert session.read_bytes() == before


# ---------------------------------------------------------------- how a file gets to its place


def test_a_file_is_written_through_a_link_and_keeps_its_mode(tmp_path):
    target, link = tmp_path / "far" / "real.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    link.symlink_to(target)
    write_whole(link, b"first")
    assert link.is_symlink() and target.read_bytes() == b"first"
    target.chmod(0o600)
    write_whole(link, b"second", force=True)
    assert link.is_symlink() and target.read_bytes() == b"second" and target.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in target.parent.iterdir()] == ["real.txt"]


def test_content_and_name_are_synced_before_it_is_said_to_be_written(tmp_path, monkeypatch):
    done = []
    sync, link, replace = os.fsync, os.link, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (done.append("folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "file"), sync(fd))
    )
    monkeypatch.setattr(os, "link", lambda a, b: (done.append("name"), link(a, b)))
    monkeypatch.setattr(os, "replace", lambda a, b, **k: (done.append("name"), replace(a, b)))
    write_whole(tmp_path / "x", b"1")
    write_whole(tmp_path / "x", b"2", force=True)
    assert done == ["file", "name", "folder"] * 2


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    write_whole(tmp_path / "x", b"before")

    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for force in (True, False):
        with pytest.raises(FileError):
            write_whole(tmp_path / "x", b"after", force=force)
        with pytest.raises(FileError, match="No space left"):
            write_whole(tmp_path / "y", b"after", force=force)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"x": b"before"}


def test_a_folder_that_cannot_be_synced_is_said(tmp_path, monkeypatch):
    sync = os.fsync

    def broken(number):
        def fsync(fd):
            if os.path.isdir(f"/proc/self/fd/{fd}"):
                raise OSError(number, os.strerror(number))
            sync(fd)

        return fsync

    monkeypatch.setattr(os, "fsync", broken(errno.EIO))
    with pytest.raises(FileError, match="complete .* could not be synced"):
        write_whole(tmp_path / "x", b"1")
    monkeypatch.setattr(os, "fsync", broken(errno.EINVAL))  # a share that does not know how
    write_whole(tmp_path / "y", b"1")


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    target, link = tmp_path / "x", os.link

    def late(a, b):
        target.write_bytes(b"somebody else's")
        link(a, b)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(OutputExists, match="appeared"):
        write_whole(target, b"mine")
    assert target.read_bytes() == b"somebody else's" and len(list(tmp_path.iterdir())) == 1


def test_a_file_system_without_hard_links_works(tmp_path, monkeypatch):
    def unknown(a, b):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", unknown)
    write_whole(tmp_path / "x", b"1")
    assert (tmp_path / "x").read_bytes() == b"1" and len(list(tmp_path.iterdir())) == 1


def test_folders_and_missing_folders_are_refused(tmp_path):
    with pytest.raises(FileError, match="it is a folder"):
        writable(tmp_path, force=True)
    with pytest.raises(FileError, match="No such file or directory"):
        writable(tmp_path / "no" / "x")


# ---------------------------------------------------------------- standard output


@pytest.mark.parametrize("place", ["-", "/dev/stdout"])
def test_outputs_can_go_to_the_standard_output(place, world):
    session, folder = world
    before = {one.name for one in folder.iterdir()}
    page = start("report", session, "-o", place)
    assert page.returncode == 0 and page.stdout.startswith("<!doctype html>")
    assert page.stdout.rstrip().endswith("</html>")
    assert {one.name for one in folder.iterdir()} == before


def test_every_kind_of_export_can_go_to_the_standard_output(world):
    session, folder = world
    before, place = {one.name for one in folder.iterdir()}, "-"
    log = start("export", session, "--events", place)
    assert [json.loads(line)["seq"] for line in log.stdout.splitlines()][0] == 1
    labels = start("export", session, "--labels", "--to", "csv", place)
    assert len(labels.stdout.splitlines()) == 4 and "3 written" in labels.stderr
    tasks = start("export", session, "-n", "2", "--to", "label-studio", place)
    assert len(json.loads(tasks.stdout)) == 2
    assert {one.name for one in folder.iterdir()} == before
    assert start("export", session, "-n", "2", place).stdout.removeprefix("\ufeff").startswith("id,")


def test_the_standard_output_may_not_be_the_session(world):
    session, _ = world
    before = session.read_bytes()
    command = f"{forks.command('altmas')} report {session} -o - >> {session}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert ran.returncode == 2 and "never written over" in ran.stderr
    assert session.read_bytes() == before


def test_a_pipe_is_written_to_as_it_is(world):
    session, folder = world
    command = f"{sys.executable} -m altmas report {session} -o >(wc -c >{folder / 'size'}) && sleep 0.5"
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == 0
    assert int((folder / "size").read_text()) > 10_000
    gone = f"{forks.command('altmas')} report {session} -o - | head -1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", gone], capture_output=True, text=True)
    assert "Traceback" not in ran.stderr and ran.returncode in (0, 141)


def test_everything_that_writes_goes_through_one_rule():
    """No other module of the package opens a file for writing, apart from the session store and the page's cache."""
    import re
    from pathlib import Path

    package = Path(outputs.__file__).parent
    opened = r"(?<!archive\.)\bopen\([^)]*\"[wax]b?\""
    pattern = re.compile(rf"\.write_(text|bytes)\(|\w+\.open\(\"[wax]|{opened}|savefig|\.to_csv")
    found = {
        one.relative_to(package).as_posix() for one in package.rglob("*.py") if pattern.search(one.read_text("utf-8"))
    }
    # simulate adds lines to a file that `writable` has looked at, engines fills drafts beside files that are not there
    # yet; memo replaces only a cache that altmas wrote
    assert found <= {"outputs.py", "simulate.py", "memo.py", "pool/engines.py"}


def test_what_a_session_keeps_is_said_by_kind(world):
    session, folder = world
    with altmas.Session.open(session) as one:
        kept = kept_by(one.pool, one.path)
    assert set(kept.files) == {"the session itself", "the table of predictions"}
    assert kept.folder == folder
