"""In a notebook: the page is answered in the background and linked to, progress is a line that is rewritten."""

import asyncio
import logging
import sys
from types import SimpleNamespace

import httpx
import pytest

from altmas import Pool, Session
from altmas.progress import in_notebook, progress_bar


@pytest.fixture
def session():
    return Session.create(None, Pool(predictions=["cat", "dog"] * 30), method="tradition")


@pytest.fixture
def notebook(monkeypatch):
    """The module that every kernel has loaded."""
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_a_page_in_the_background_answers_until_it_is_stopped(session, capsys):
    page = session.label(block=False, open_browser=False, port=0)
    try:
        assert httpx.get(page.addresses.here).status_code == 200
        session.tell(session.ask(1)[0], "cat")  # the session goes on meanwhile
        assert page.addresses.label in repr(page) and "stop()" in repr(page)
        assert f'<a href="{page.addresses.here}" target="_blank">' in page._repr_html_()
    finally:
        page.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(page.addresses.here)
    assert "stopped" in repr(page) and "stop() of what this returns" in capsys.readouterr().out


def test_inside_an_event_loop_the_page_does_not_block(session):
    async def cell():
        return session.label(open_browser=False, port=0)

    page = asyncio.run(cell())
    try:
        assert httpx.get(page.addresses.here).status_code == 200
    finally:
        page.stop()


def test_a_page_leaves_the_log_of_its_process_alone(session, tmp_path):
    class OwnsItsStream(logging.StreamHandler):  # as the handler of absl does, which comes with JAX
        def close(self):
            self.stream.close()
            super().close()

    handler = OwnsItsStream((tmp_path / "log").open("w"))
    try:
        session.label(block=False, open_browser=False, port=0).stop()
        assert not handler.stream.closed
    finally:
        handler.close()


def test_progress_in_a_notebook_is_one_line(notebook, session, capsys):
    assert in_notebook()
    session.run(lambda query: "cat")
    said = capsys.readouterr().err
    assert said.startswith("\rlabels: ") and said.endswith("\n") and said.count("\n") == 1
    assert "60 of 60" in said


def test_progress_elsewhere_is_as_before(capsys):
    assert not in_notebook()
    with progress_bar("labels", 3, shown=False) as bar:
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_a_real_kernel_runs_the_page_and_the_loop():
    nbformat, client = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import altmas, httpx, warnings; warnings.simplefilter('error')\n"
        "session = altmas.Session.create(None, altmas.Pool(predictions=['cat', 'dog'] * 30), method='tradition')\n"
        "page = session.label(port=0)\npage",
        "print(httpx.get(page.addresses.here).status_code)",
        "session.run(lambda query: 'cat').reason",
        "page.stop(); page",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client.NotebookClient(book, timeout=60, kernel_name="python3").execute()
    first, second, third, last = (cell.outputs for cell in book.cells)
    assert 'target="_blank">Open the labelling page</a>' in first[-1].data["text/html"]
    assert second[0].text.strip() == "200"
    assert "60 of 60" in "".join(one.text for one in third if one.output_type == "stream")
    assert "stopped" in last[-1].data["text/plain"]
