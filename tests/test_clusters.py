"""Simulations on clusters that run here: dask.distributed and Ray give the rows that one process gives."""

import os
import warnings
from contextlib import suppress

import joblib
import numpy as np
import pytest

import altmas
from altmas.compute import in_processes
from altmas.simulate import simulate

OPTIONS = dict(methods=["assured", "tradition"], metrics=["accuracy", "recall[cat]"], budgets=[20, 40], repeats=3)
NEEDED = "needs the dependency group engines (make engines)"


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog"], 250)
    predictions = np.where(rng.random(250) < 0.8, truth, "dog")
    return altmas.Pool(rng.normal(size=(250, 3)) + (truth == "cat")[:, None], predictions), truth


@pytest.fixture(scope="module")
def alone(world):
    return told(simulate(*world, **OPTIONS, n_jobs=1, progress=False))


def told(result) -> list[dict]:
    """The rows without the time that they took."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in result.rows]


@pytest.fixture(scope="module")
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason=NEEDED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its own libraries warn of
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with distributed.Client(cluster):
            yield
        with suppress(TimeoutError):  # on a busy machine its processes end late
            cluster.close()


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason=NEEDED)
    from ray.util.joblib import register_ray

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        register_ray()
        yield
        ray.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_dask_gives_the_rows_of_one_process(world, alone, dask_cluster):
    with joblib.parallel_config(backend="dask"):
        assert told(simulate(*world, **OPTIONS, progress=False)) == alone


@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_rows_of_one_process_and_keeps_them(world, alone, ray_cluster, tmp_path):
    path = tmp_path / "rows.jsonl"
    with joblib.parallel_config(backend="ray"):
        assert told(simulate(*world, **OPTIONS, progress=False, results=path)) == alone
    assert len(path.read_text().splitlines()) == 1 + 2 * OPTIONS["repeats"]


@pytest.mark.filterwarnings("ignore")
def test_what_a_cluster_refuses_reaches_the_caller(ray_cluster):
    with joblib.parallel_config(backend="ray"), pytest.raises(ZeroDivisionError):
        list(in_processes(_divide, [(1, 1), (1, 0)]))


def _divide(a: int, b: int) -> float:
    return a / b


# ---------------------------------------------------------------- without a cluster


class Together(joblib.parallel.ThreadingBackend):
    """A backend that gives results back only all together, as Ray's does."""

    supports_return_generator = False

    default_n_jobs = 2

    def effective_n_jobs(self, n_jobs):
        return 2


@pytest.fixture
def together():
    joblib.register_parallel_backend("together", Together)
    yield
    del joblib.parallel.BACKENDS["together"]


def test_a_backend_without_a_stream_of_results_gets_few_calls_at_a_time(together):
    made = []

    def calls():
        for number in range(20):
            made.append(number)
            yield (number,)

    with joblib.parallel_config(backend="together"):
        results = in_processes(abs, calls())
        assert next(results) == 0 and len(made) == 8
        assert list(results) == list(range(1, 20))


def test_an_outer_configuration_says_where_and_without_one_there_are_two_processes():
    calls = [(k,) for k in range(8)]
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert set(in_processes(_process, calls)) == {os.getpid()}
    with joblib.parallel_config(n_jobs=1):
        assert set(in_processes(_process, calls)) == {os.getpid()}
    assert set(in_processes(_process, calls, 1)) == {os.getpid()}
    assert os.getpid() not in set(in_processes(_process, calls))


def _process(_: int) -> int:
    return os.getpid()


def test_unordered_results_are_the_same_results():
    assert sorted(in_processes(abs, [(-k,) for k in range(6)], 1, ordered=False)) == list(range(6))
