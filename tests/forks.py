"""Commands in processes of their own that start at once: forks of one process that has imported altmas already.

Most tests of a command need a process with its own standard streams, terminal and exit code, and are not about the
second that importing takes. `command("altmas")` is a program for them, taken for `altmas` by any shell, and
`command("python")` one that understands `-c CODE` and `-W error`. Where the start of a process is what a test is about,
or what is changed before altmas is imported, the test starts a Python of its own; so does one whose command gets
further streams (`>(wc -c)`) or starts processes itself (`altmas simulate`), which a fork cannot. With ONE_PROCESS in
its environment a fork does in its own process what joblib would do in others.

The program (CLIENT) hands its arguments, environment, folder and streams to the process that forks (`_serve`), passes
on signals, and ends as the fork ends. If the program is killed, so is the fork.
"""

import atexit
import gc
import importlib
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from functools import cache
from pathlib import Path

IMPORTED = (
    "altmas.cli altmas.report altmas.compare altmas.web altmas.trackers altmas.tuning altmas.guaranteed uvicorn "
    "pyarrow.csv pyarrow.parquet scipy.optimize scipy.special scipy.stats scipy.sparse.csgraph sklearn.linear_model "
    "sklearn.neighbors sklearn.decomposition sklearn.feature_extraction.text rich.progress rich.table typer.rich_utils"
).split()
"""What commands import, loaded once. Not JAX, which starts threads."""

ONE_PROCESS = "ALTMAS_TESTS_ONE_PROCESS"

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
asked = [{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]
text = json.dumps(asked).encode()
socket.send_fds(server, [len(text).to_bytes(8, "big")], [0, 1, 2])
server.sendall(text)
for number in {forwarded}:
    signal.signal(number, lambda number, _: server.send(bytes([number])))
code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    if -code in {forwarded}:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def folder() -> Path:
    """A folder with the programs `altmas` and `python`; the process that they are forks of ends with this one."""
    made = Path(tempfile.mkdtemp(prefix="forks-"))
    address = str(made / "socket")
    for name in ("altmas", "python"):
        program = made / name
        program.write_text(
            CLIENT.format(python=sys.executable, address=address, name=name, forwarded=tuple(map(int, FORWARDED)))
        )
        program.chmod(0o755)
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, __file__, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        start_new_session=True,
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    owner = os.getpid()

    def end() -> None:
        if os.getpid() == owner:
            server.kill()
            server.communicate()
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(end)
    return made


def command(name: str) -> str:
    """The program `altmas` or `python`."""
    return str(folder() / name)


# ---------------------------------------------------------------- the process that forks


def _serve(address: str) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is shared stays shared
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return  # whoever started this has ended
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            try:
                _keep(connection)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        connection.close()


def _keep(connection: socket.socket) -> None:
    """Fork once more, pass on signals, and say how it ended; what was started for nobody is killed."""
    first, streams, _, _ = socket.recv_fds(connection, 8, 3)
    text = b""
    while len(text) < int.from_bytes(first, "big"):
        text += connection.recv(1 << 16)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if child == 0:
        connection.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(waking), os.close(woken)
        _become(streams, *json.loads(text))
    for stream in streams:
        os.close(stream)
    while True:
        ready, _, _ = select.select([connection, waking], [], [])
        if connection in ready:
            sent = connection.recv(1)
            os.kill(child, sent[0] if sent else signal.SIGKILL)
            if not sent:
                return
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            connection.send(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            os._exit(0)


def _become(streams: list[int], name: str, arguments: list[str], cwd: str, env: dict[str, str]) -> None:
    """Never comes back: runs the command with these streams, and ends as Python would."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if os.isatty(0):
        _take_terminal()
    os.environ.clear()
    os.environ.update(env)
    if ONE_PROCESS in env:
        import joblib

        joblib.parallel_config("sequential")
    os.chdir(cwd)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8")
    sys.stdout = sys.__stdout__ = _writer(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2)  # type: ignore[misc]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.path.insert(0, "")
    code = 1
    try:
        _run(name, arguments)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except BrokenPipeError:
            code = code or 120
        os._exit(code)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _writer(number: int) -> io.TextIOWrapper:
    errors = "strict" if number == 1 else "backslashreplace"
    line_buffering = number == 2 or os.isatty(number)
    return io.TextIOWrapper(open(number, "wb", closefd=False), "utf-8", errors, line_buffering=line_buffering)


def _run(name: str, arguments: list[str]) -> None:
    if name == "python":
        *options, code = arguments[: arguments.index("-c")] + [arguments[arguments.index("-c") + 1]]
        sys.argv = ["-c", *arguments[arguments.index("-c") + 2 :]]
        if options == ["-W", "error"]:
            warnings.simplefilter("error")
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        exec(compile(code, "<string>", "exec"), vars(main))
        return
    from altmas.cli import main as altmas

    sys.argv = ["altmas", *arguments]
    altmas()


if __name__ == "__main__":
    _serve(sys.argv[1])
