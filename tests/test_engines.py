"""Pools from tables that live elsewhere are the pools of the same rows in memory, and nothing else is read."""

import io
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest

import altmas
from altmas.errors import AltmasError, FileError, OutputExists, PoolError
from altmas.pool import engines
from cli_world import run

NEEDED = "needs the dependency group engines (make engines)"
N = 1000
ROLES = dict(prediction="vendor", id="case", features=["x", "y"], scores=["p", "q"], slices=["year"], show="text")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    p = rng.random(N)
    return pa.table(
        {
            "case": [f"c{k}" for k in range(N)],
            "vendor": np.where(p >= 0.5, "cat", "dog").tolist(),
            "x": rng.normal(size=N),
            "y": rng.integers(0, 9, N),
            "p": p.astype(np.float32),
            "q": (1 - p).astype(np.float32),
            "year": np.repeat([2023, 2024], N // 2),
            "text": [f"text {k}" for k in range(N)],
            "emb": pa.array(rng.normal(size=(N, 4)).astype(np.float32).tolist(), pa.list_(pa.float32())),
            "secret": ["x" * 2000] * N,
        }
    )


@pytest.fixture(scope="module")
def expected(table):
    return altmas.Pool.from_table(table, **ROLES)


@pytest.fixture
def hive(table, tmp_path):
    folder = tmp_path / "hive"
    pyarrow.dataset.write_dataset(
        table, folder, format="parquet", partitioning=["year"], partitioning_flavor="hive", max_rows_per_group=200,
        max_rows_per_file=200,
    )  # fmt: skip
    return folder


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(engines, "ROWS", 128)


def same(pool, expected):
    assert pool.fingerprint == expected.fingerprint
    assert pool.items[7] == expected.items[7] and list(pool.ids) == list(expected.ids)


# ---------------------------------------------------------------- Arrow


def test_a_dataset_and_a_stream_are_the_pool_of_the_table(table, expected, hive):
    same(altmas.Pool.from_table(pyarrow.dataset.dataset(hive, partitioning="hive"), **ROLES), expected)
    same(altmas.Pool.from_table(table.to_reader(max_chunksize=100), **ROLES), expected)


def test_a_partitioned_folder_is_read_by_its_path_and_by_its_address(expected, hive, tmp_path):
    for path in (hive, str(hive), hive.as_uri()):
        pool = altmas.Pool.from_table(path, **ROLES)
        same(pool, expected)
        assert pool.source["table"] == str(hive)
    altmas.Session.create(tmp_path / "s.altmas", pool, metrics=["accuracy"]).close()
    with altmas.Session.open(tmp_path / "s.altmas") as session:
        same(session.pool, expected)


def test_the_command_line_reads_a_partitioned_folder(hive, tmp_path):
    roles = ("--id", "case", "--prediction", "vendor", "--features", "x", "--slice", "year", "--metric", "accuracy")
    ran = run("init", tmp_path / "s.altmas", "--data", hive, *roles)
    assert ran.code == 0, ran.err
    assert run("ask", tmp_path / "s.altmas", "-n", "3").code == 0


def test_lists_are_features_too(table, hive):
    roles = ROLES | {"features": "emb"}
    same(altmas.Pool.from_table(hive, **roles), altmas.Pool.from_table(table, **roles))


class Counting(pyarrow.fs.FileSystemHandler):
    """A file system of this machine that counts the bytes that are read."""

    def __init__(self) -> None:
        self.local, self.bytes = pyarrow.fs.LocalFileSystem(), 0

    def get_type_name(self):
        return "counting"

    def get_file_info(self, paths):
        return self.local.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.local.get_file_info(selector)

    def open_input_file(self, path):
        counting, raw = self, open(path, "rb")  # noqa: SIM115

        class File(io.RawIOBase):
            def read(self, n=-1):
                found = raw.read(n)
                counting.bytes += len(found)
                return found

            def seek(self, place, whence=0):
                return raw.seek(place, whence)

            def tell(self):
                return raw.tell()

            def seekable(self):
                return True

            def readable(self):
                return True

            def size(self):
                return os.path.getsize(path)

            def close(self):
                raw.close()
                super().close()

        return pa.PythonFile(File(), mode="r")

    def open_input_stream(self, path):
        return self.open_input_file(path)

    def normalize_path(self, path):
        return path

    def __getattr__(self, name):
        raise NotImplementedError(name)


Counting.__abstractmethods__ = frozenset()


def test_what_is_not_needed_is_not_read(table, tmp_path):
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", compression="none", use_dictionary=False)
    system = Counting()
    dataset = pyarrow.dataset.dataset(str(tmp_path / "t.parquet"), filesystem=pyarrow.fs.PyFileSystem(system))
    altmas.Pool.from_table(dataset, prediction="vendor", id="case")
    assert 5_000 < system.bytes < os.path.getsize(tmp_path / "t.parquet") / 10


def test_an_address_is_read_but_never_written_into_a_session(hive, expected, tmp_path, monkeypatch):
    """Opening a session must not reach over a network because its file says so."""
    given = pyarrow.fs.SubTreeFileSystem(str(hive.parent), pyarrow.fs.LocalFileSystem())
    monkeypatch.setattr(engines, "_file_system", lambda path: (given, path.removeprefix("s3://bucket/")))
    pool = altmas.Pool.from_table("s3://bucket/hive", **ROLES)
    same(pool, expected)
    assert pool.source is None
    altmas.Session.create(tmp_path / "s.altmas", pool, metrics=["accuracy"]).close()
    shutil.rmtree(hive)
    with altmas.Session.open(tmp_path / "s.altmas") as session:  # it carries its pool
        same(session.pool, expected)
    with pytest.raises(FileError, match="^s3://bucket/hive does not exist"):
        altmas.Pool.from_table("s3://bucket/hive", **ROLES)


def test_an_address_of_no_known_kind_is_a_sentence():
    with pytest.raises(FileError, match="cannot be reached"):
        altmas.Pool.from_table("gopher://x/y", prediction="vendor")


# ---------------------------------------------------------------- faults, in any batch


@pytest.mark.parametrize(
    "column, value, said",
    [
        ("x", None, "column 'x', row 700: the value is missing"),
        ("x", float("inf"), "column 'x', row 700: the value is inf"),
        ("vendor", None, "column 'vendor', row 700: the value is missing"),
    ],
)
def test_a_fault_is_named_with_its_row_in_the_whole_table(table, column, value, said):
    values = table.column(column).to_pylist()
    values[700] = value
    wrong = table.set_column(table.column_names.index(column), column, pa.array(values))
    with pytest.raises(PoolError, match=said):
        altmas.Pool.from_table(wrong.to_reader(max_chunksize=100), **ROLES)


def test_lists_that_change_their_length_between_batches_are_refused():
    rows = pa.table({"v": ["a", "b"] * 100, "e": [[1.0, 2.0]] * 150 + [[1.0]] * 50})
    with pytest.raises(PoolError, match="row 150 holds 1 numbers, the rows before it 2 numbers"):
        altmas.Pool.from_table(rows.to_reader(max_chunksize=50), prediction="v", features="e")


def test_unknown_columns_and_empty_tables_are_refused(table, hive):
    with pytest.raises(FileError, match="'vendr'.*vendor"):
        altmas.Pool.from_table(hive, prediction="vendr")
    with pytest.raises(PoolError, match="has no rows"):
        altmas.Pool.from_table(table.slice(0, 0).to_reader(), prediction="vendor")


def test_no_temporary_file_is_left_behind(table, tmp_path):
    code = f"""
import altmas, pyarrow.parquet
from altmas.pool import engines
engines.IN_MEMORY = 100
pyarrow.parquet.write_table(pyarrow.table({{"v": ["a", "b"] * 50, "x": [1.0, 2.0] * 50}}), r"{tmp_path}/t.parquet")
import numpy, os, tempfile
pool = altmas.Pool.from_table(r"{tmp_path}/t.parquet", prediction="v", features=["x"])
assert isinstance(pool.features, numpy.memmap) and len(os.listdir(tempfile.gettempdir())) == 1
"""
    folder = tmp_path / "tmp"
    folder.mkdir()
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=os.environ | {"TMPDIR": str(folder)}, check=True)
    assert list(folder.iterdir()) == []


# ---------------------------------------------------------------- kept in files


def test_a_stored_pool_opens_again_without_its_engine(table, expected, tmp_path):
    store = tmp_path / "pool.parquet"
    pool = altmas.Pool.from_table(table.to_reader(max_chunksize=100), **ROLES, store=store)
    same(pool, expected)
    names = {"pool.parquet", "pool.features.npy", "pool.scores.npy"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert np.load(tmp_path / "pool.features.npy").dtype == np.float32
    altmas.Session.create(tmp_path / "s.altmas", pool, metrics=["accuracy"]).close()
    with altmas.Session.open(tmp_path / "s.altmas") as session:
        same(session.pool, expected)


def test_several_models_are_stored_with_the_scores_of_each(table, tmp_path):
    roles = dict(prediction=["vendor", "text"], id="case", features="emb", classes=None)
    two = table.set_column(7, "text", table.column("vendor"))
    scores = {"vendor": ["p", "q"], "text": ["p", "q"]}
    pool = altmas.Pool.from_table(two, **roles, scores={"vendor": ["p", "q"]}, store=tmp_path / "one.parquet")
    assert pool.models[0].scores is not None and pool.models[1].scores is None
    same_scores = altmas.Pool.from_table(two, **roles, scores=scores)
    kept = altmas.Pool.from_table(two, **roles, scores=scores, store=tmp_path / "two.parquet")
    assert kept.fingerprint == same_scores.fingerprint


def test_a_single_model_that_is_called_like_its_column_keeps_its_scores_in_a_store(table, tmp_path):
    roles = dict(prediction=["vendor"], id="case", scores=["p", "q"])
    kept = altmas.Pool.from_table(table, **roles, store=tmp_path / "pool.parquet")
    assert kept.scores is not None
    assert kept.fingerprint == altmas.Pool.from_table(table, **roles).fingerprint


def test_nothing_is_replaced_and_a_failure_leaves_nothing(table, tmp_path):
    store = tmp_path / "pool.parquet"
    store.write_text("mine")
    with pytest.raises(OutputExists):
        altmas.Pool.from_table(table, **ROLES, store=store)
    assert store.read_text() == "mine"
    store.unlink()
    values = table.column("x").to_pylist()
    values[700] = None
    wrong = table.set_column(2, "x", pa.array(values))
    with pytest.raises(PoolError, match="row 700"):
        altmas.Pool.from_table(wrong.to_reader(max_chunksize=100), **ROLES, store=store)
    with pytest.raises(FileError, match="does not end with .parquet"):
        altmas.Pool.from_table(table, **ROLES, store=tmp_path / "pool.csv")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- narrow tables


def kinds(table):
    frame = table.to_pandas()
    return [frame, table, table.to_batches()[0], {name: frame[name].to_numpy() for name in frame}]


def test_a_reduction_gives_back_the_kind_of_batch_that_it_was_given(table):
    reduction = altmas.Reduction.fit(table, features=["x", "y", "p"], keep=["case", "vendor"], dimensions=2)
    assert reduction.columns == ["reduced_0", "reduced_1"]
    found = []
    for batch in kinds(table.select(["case", "vendor", "x", "y", "p"])):
        narrow = reduction(batch)
        assert type(narrow) is type(batch)
        found.append(np.column_stack([np.asarray(narrow[name]) for name in reduction.columns]))
        assert list(np.asarray(narrow["case"])) == table.column("case").to_pylist()
    assert all(np.array_equal(one, found[0]) for one in found) and found[0].dtype == np.float32


def test_a_reduction_keeps_the_variance_that_singular_values_say(table):
    columns = ["x", "y", "p", "q"]
    wide = np.column_stack([table.column(name).to_numpy() for name in columns]).astype(np.float64)
    scaled = (wide - wide.mean(0)) / wide.std(0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    narrow = altmas.Reduction.fit(table, features=columns, dimensions=2)(table)
    variances = [np.asarray(narrow[name]).astype(np.float64).var() * N for name in narrow.column_names]
    np.testing.assert_allclose(variances, singular[:2] ** 2, rtol=1e-4)


def test_lists_are_reduced_and_batches_do_not_matter(table):
    reduction = altmas.Reduction.fit(table, features="emb", keep="case", dimensions=9)
    assert len(reduction.columns) == 4  # there are no more directions than features
    whole = reduction(table)
    parts = pa.concat_tables(map(reduction, [table.slice(0, 300), table.slice(300)]))
    for name in reduction.columns:
        np.testing.assert_allclose(whole[name].to_numpy(), parts[name].to_numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "change, said",
    [
        (dict(features=["nothing"]), "column 'nothing' is not in the batch"),
        (dict(features=["text"]), "column 'text' holds what is no number"),
        (dict(features=[]), "names no column"),
        (dict(features=["x"], dimensions=0), "dimensions is 0"),
    ],
)
def test_a_reduction_of_what_cannot_be_reduced_is_refused(table, change, said):
    with pytest.raises(PoolError, match=said):
        altmas.Reduction.fit(table, **change)


def test_a_batch_with_a_gap_is_refused(table):
    reduction = altmas.Reduction.fit(table, features=["x"])
    with pytest.raises(PoolError, match="column 'x', row 1 of its batch"):
        reduction({"x": np.array([1.0, np.nan])})


# ---------------------------------------------------------------- engines


def test_a_duckdb_relation_is_the_pool_of_the_table(table, expected, hive, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason=NEEDED)
    con = duckdb.connect()
    con.register("rows", table)
    same(altmas.Pool.from_table(con.sql("select * from rows"), **ROLES), expected)
    query = f'select *, p > 0.5 as "odd "" name" from read_parquet(\'{hive}/**/*.parquet\', hive_partitioning=true)'
    relation = con.sql(query + ' order by cast(substr("case", 2) as int)')
    same(altmas.Pool.from_table(relation, **ROLES, store=tmp_path / "pool.parquet"), expected)
    assert altmas.Pool.from_table(relation, prediction='odd " name').classes == (False, True)
    with pytest.raises(FileError, match="no column 'vendr'|'vendr'"):
        altmas.Pool.from_table(relation, prediction="vendr")
    failing = con.sql('select "case", vendor, cast(text as int) as x from rows')
    with pytest.raises(AltmasError, match="the DuckDB relation cannot be read"):
        altmas.Pool.from_table(failing, prediction="vendor", features=["x"])


@pytest.mark.filterwarnings("ignore")
def test_a_dask_frame_is_the_pool_of_the_table(table, expected):
    dask = pytest.importorskip("dask.dataframe", reason=NEEDED)
    frame = dask.from_pandas(table.drop_columns(["emb"]).to_pandas(), npartitions=4, sort=False)
    same(altmas.Pool.from_table(frame, **ROLES), expected)
    assert len(altmas.Pool.from_table(frame[frame["year"] == 2024], prediction="vendor")) == N // 2


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason=NEEDED)
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    builder = sql.SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_is_the_pool_of_the_table(table, expected, spark, tmp_path):
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    same(altmas.Pool.from_table(frame, **ROLES), expected)
    same(altmas.Pool.from_table(frame, **ROLES, store=tmp_path / "pool.parquet"), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("local", [True, False])
def test_rows_of_a_spark_frame_come_in_order_and_nothing_stays_behind(spark, monkeypatch, tmp_path, local):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not local:
        monkeypatch.setattr(engines, "_on_this_machine", lambda frame: False)
    monkeypatch.setattr(engines, "PACKET", 2000)
    monkeypatch.setattr(engines, "PACKETS", 3)
    frame = spark.range(0, 5000, 1, 7).selectExpr("id as case", "id % 2 as vendor", "cast(id as float) as x")
    batches = list(engines.source_of(frame).batches(["case", "x"]))
    assert local or len(batches) > 21 and max(batch.nbytes for batch in batches) <= 2000
    assert pa.concat_tables(batches)["case"].to_pylist() == list(range(5000))
    interrupted = engines.source_of(frame).batches(["case"])
    next(interrupted)
    interrupted.close()
    assert not list(tmp_path.iterdir())
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0
    with pytest.raises(PoolError, match="has no rows"):
        altmas.Pool.from_table(frame.where("case < 0"), prediction="vendor", features=["x"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", ["mapInPandas", "mapInArrow"])
def test_spark_makes_a_table_narrow_where_it_lives(table, spark, tmp_path, verb):
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    reduction = altmas.Reduction.fit(table, features="emb", keep=["case", "vendor", "year"], dimensions=2)
    narrow = getattr(frame, verb)(reduction.over, reduction.spark_schema(frame))
    assert narrow.columns == ["case", "vendor", "year", "reduced_0", "reduced_1"]
    pool = altmas.Pool.from_table(narrow, prediction="vendor", id="case", slices="year", features=reduction.columns)
    here = altmas.Pool.from_table(
        reduction(table), prediction="vendor", id="case", slices="year", features=reduction.columns
    )
    np.testing.assert_allclose(pool.features, here.features, atol=1e-5)
    assert list(pool.ids) == list(here.ids)


@pytest.mark.filterwarnings("ignore")
def test_ray_makes_a_table_narrow_and_is_the_pool_of_the_table(table, expected):
    ray = pytest.importorskip("ray", reason=NEEDED)
    pytest.importorskip("ray.data", reason=NEEDED)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        dataset = ray.data.from_arrow(table)
        same(altmas.Pool.from_table(dataset, **ROLES), expected)
        reduction = altmas.Reduction.fit(table, features="emb", keep=["case", "vendor"], dimensions=2)
        narrow = dataset.map_batches(reduction, batch_format="pyarrow")
        pool = altmas.Pool.from_table(narrow, prediction="vendor", id="case", features=reduction.columns)
        assert pool.features.shape == (N, 2)
    finally:
        ray.shutdown()
