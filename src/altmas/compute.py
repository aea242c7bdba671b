"""How the machine is used: how many threads, work in order over them, and JAX when it is first needed.

Importing altmas does not import JAX (half a second and more); whoever needs it calls `jax()`.
"""

import hashlib
import os
import platform
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from altmas.extras import require

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 8
"""More do not help with products of this size, and a shared machine has other users."""

DEFAULT_JOBS = 2
"""Processes where nobody says how many."""

CALLS_PER_WORKER = 4
"""Calls handed over together where results come back only together: few, so that little is lost by a crash."""

WORTH_CACHING = 0.1
"""Seconds of compilation from which a program is kept on disk."""


def threads() -> int:
    """How many threads altmas uses: ALTMAS_THREADS or OMP_NUM_THREADS if set, else the cores it may use, at most 8."""
    for name in ("ALTMAS_THREADS", "OMP_NUM_THREADS"):
        setting = os.environ.get(name, "")
        if setting.isdigit() and int(setting) > 0:
            return int(setting)
    import joblib  # knows about affinity and container quotas

    return min(MOST_THREADS, int(joblib.cpu_count()))


def in_order(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """work(item) for each item, in order, on `threads()` threads with at most one finished result waiting for each.

    Each thread runs numpy's products on itself alone, so results do not depend on how many threads there are.
    """
    workers = threads()
    with products_on_one_thread(), ThreadPoolExecutor(workers) as executor:
        running: deque[Future[R]] = deque()
        for item in items:
            running.append(executor.submit(work, item))
            if len(running) > workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def in_processes(
    work: Callable[..., R], calls: Iterable[tuple[Any, ...]], n_jobs: int | None = None, *, ordered: bool = True
) -> Iterator[R]:
    """work(*call) of each call as they are done, in other processes or on the cluster of `joblib.parallel_config`.

    n_jobs   how many at once; by default what an outer `parallel_config` says, and 2 without one
    ordered  in the order of the calls; else as they come, where the backend can tell

    A backend that gives results back only all together (Ray) gets a few calls for each worker at a time.
    """
    import joblib

    backend, count = joblib.parallel.get_active_backend()
    outer = type(backend).__name__ != "LokyBackend" or count is not None
    options = {"n_jobs": n_jobs} if n_jobs is not None else {} if outer else {"n_jobs": DEFAULT_JOBS}
    jobs = (joblib.delayed(work)(*call) for call in calls)
    if backend.supports_return_generator:
        yield from joblib.Parallel(return_as="generator" if ordered else "generator_unordered", **options)(jobs)
        return
    workers = joblib.effective_n_jobs(n_jobs if n_jobs is not None else -1)
    while part := list(islice(jobs, CALLS_PER_WORKER * workers)):
        yield from joblib.Parallel(**options)(part)


@contextmanager
def products_on_one_thread() -> Iterator[None]:
    """While anybody is inside, numpy's products do not start threads of their own.

    The limit is one for the process, and threadpoolctl obeys only the thread that set it first. So one thread of ours
    sets it for the first to enter and lifts it for the last to leave; each for itself would lift it too early or never.
    """
    global _inside, _limit
    with _entering:
        _inside += 1
        if _inside == 1:
            _limit = _limiter().submit(_limited).result()
    try:
        yield
    finally:
        with _entering:
            _inside -= 1
            if _inside == 0:
                _limiter().submit(_limit.close).result()


_entering, _inside, _limit = Lock(), 0, ExitStack()


def _limited() -> ExitStack:
    """The limit, set; closing it lifts it."""
    limit = ExitStack()
    limit.enter_context(_libraries(len(sys.modules)).limit(limits=1, user_api="blas"))
    return limit


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The libraries that have threads; looked for again when modules were imported, which may bring further ones."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _limiter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="altmas-limits")


@cache
def jax() -> Any:
    """The jax module, its threads capped and its compiled programs kept between runs; MissingExtra without it."""
    require("paper", "training a network")
    _cap_threads_of_xla()
    import jax

    _keep_compiled_programs(jax)
    return jax


def _cap_threads_of_xla() -> None:
    """XLA sizes its pool by these variables when its client starts; what the user has set stays."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "NPROC" in os.environ or "PJRT_NPROC" in os.environ or "xla_cpu_multi_thread_eigen" in flags:
        return
    variables = {"NPROC": str(threads()), "PJRT_NPROC": str(threads())}
    os.environ.update(variables)
    try:
        import jax

        jax.local_devices()  # starts the client
    finally:
        for name in variables:
            os.environ.pop(name, None)


def cache_directory() -> Path:
    """Where compiled programs are kept: below XDG_CACHE_HOME or ~/.cache, apart for each kind of processor."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "altmas" / "jax" / _processor()


def _processor() -> str:
    """A short name for this processor: programs compiled for another one may not run on it (shared home folders)."""
    kind = platform.machine() + platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        kind += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(kind.encode()).hexdigest()[:12]


def _keep_compiled_programs(jax: Any) -> None:
    """Point JAX at our cache, unless the user chose one or the folder cannot be written; then it just compiles."""
    if jax.config.jax_compilation_cache_dir:
        return
    try:
        folder = cache_directory()
        folder.mkdir(parents=True, exist_ok=True)
        (probe := folder / f".write-{os.getpid()}").touch()
        probe.unlink()
    except (OSError, RuntimeError):  # no home folder is a RuntimeError
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_CACHING)
