"""Tables that live elsewhere, read in batches: Arrow datasets and streams, Parquet, DuckDB, Spark, Dask, Ray.

Only the columns that are needed are read. Names (classes, ids, slices, items) are kept in Arrow's memory; numbers
(features, scores) go as float32 into .npy files batch by batch, so that memory never holds a wide table.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from altmas.errors import FileError, PoolError
from altmas.pool.columns import Columns
from altmas.pool.first_phase import PassingSample, Rows, Wanted
from altmas.pool.readable import existing, refuse_invalid, refuse_unknown, sentence
from altmas.pool.scratch import IN_MEMORY, remove, temporary_file

Group = tuple[str, ...]
"""Columns that become one matrix."""

ROWS = 65_536
"""Rows that are looked at together."""

PACKET, PACKETS = 2**20, 16
"""Bytes of rows that an executor of Spark packs together, and packets that its driver takes together."""

HEADER = 128
"""Bytes before the numbers of a .npy file, written last, when the number of rows is known."""


@dataclass(frozen=True)
class Source:
    """A table that is read in batches.

    where    how messages call it
    columns  the names of its columns
    batches  columns -> its rows with those columns, in parts, in order
    """

    where: str
    columns: Sequence[str]
    batches: Callable[[list[str]], Iterator[pa.Table]]


def source_of(table: Any) -> Source | None:
    """The table as a source of batches, or None for one that is in memory or a text file."""
    if isinstance(table, str | os.PathLike):
        return _of_path(os.fspath(table))
    module = type(table).__module__
    kinds: dict[str, Callable[[], Source | None]] = {
        "pyarrow._dataset": lambda: of_dataset(table, "the dataset"),
        "pyarrow.lib": lambda: _of_reader(table),
        "duckdb": lambda: _of_duckdb(table),
        "_duckdb": lambda: _of_duckdb(table),
        "pyspark.sql": lambda: _of_spark(table),
        "dask.dataframe": lambda: _of_dask(table),
        "ray.data": lambda: _of_ray(table),
    }
    factory = next((make for name, make in kinds.items() if module == name or module.startswith(f"{name}.")), None)
    return None if factory is None else factory()


# ---------------------------------------------------------------- files


def is_address(path: str) -> bool:
    """Whether a path is the address of an object store or another file system, such as s3://bucket/folder."""
    return "://" in path and not path.startswith("file://")


def local(table: str | os.PathLike[str]) -> str:
    """A file:// address as a path of this machine; anything else as it is."""
    path = os.fspath(table)
    if not path.startswith("file://"):
        return path
    from pyarrow.fs import FileSystem

    return str(FileSystem.from_uri(path)[1])


def _of_path(path: str) -> Source | None:
    """A Parquet file, a folder of them (also hive-partitioned: year=2024/...), or the address of either."""
    if is_address(path):
        return _of_address(path)
    resolved = Path(local(path)).expanduser()
    if resolved.suffix.lower() != ".parquet" and not (resolved.is_dir() and any(resolved.rglob("*.parquet"))):
        return None
    return of_dataset(_dataset(existing(resolved), None, str(resolved)), str(existing(resolved)))


def _of_address(path: str) -> Source:
    from pyarrow.fs import FileType

    try:
        system, store_path = _file_system(path)
        kind = system.get_file_info(store_path).type
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise FileError(f"{path} cannot be reached: {sentence(cause)}") from cause
    if kind == FileType.NotFound:
        raise FileError(f"{path} does not exist")
    return of_dataset(_dataset(store_path, system, path), path)


def _file_system(path: str) -> tuple[Any, str]:
    """(file system, path in it) of an address; keys and regions come from where the store's own tools look."""
    from pyarrow.fs import FileSystem

    system, store_path = FileSystem.from_uri(path)
    return system, store_path


def _dataset(path: Any, system: Any, where: str) -> Any:
    import pyarrow.dataset

    scan = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)  # where the file has them
    kind = pyarrow.dataset.ParquetFileFormat(default_fragment_scan_options=scan)
    try:
        return pyarrow.dataset.dataset(path, filesystem=system, format=kind, partitioning="hive")
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise FileError(f"{where} cannot be read as .parquet: {sentence(cause)}") from cause


def of_dataset(dataset: Any, where: str) -> Source:
    """An Arrow dataset; little is read ahead, since memory is what is to be spared."""

    def batches(columns: list[str]) -> Iterator[pa.Table]:
        read = dataset.to_batches(columns=columns, batch_size=ROWS, batch_readahead=2, fragment_readahead=1)
        yield from (pa.Table.from_batches([batch]) for batch in read)

    return Source(where, dataset.schema.names, batches)


def _of_reader(reader: Any) -> Source | None:
    """A stream of record batches, which can be read once; None for a table."""
    if not isinstance(reader, pa.RecordBatchReader):
        return None

    def batches(columns: list[str]) -> Iterator[pa.Table]:
        yield from (pa.Table.from_batches([batch]).select(columns) for batch in reader)

    return Source("the stream", reader.schema.names, batches)


# ---------------------------------------------------------------- engines


def _of_duckdb(relation: Any) -> Source:
    def batches(columns: list[str]) -> Iterator[pa.Table]:
        chosen = relation.project(", ".join('"' + name.replace('"', '""') + '"' for name in columns))
        reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
        yield from (pa.Table.from_batches([batch]) for batch in reader(ROWS))

    return Source("the DuckDB relation", relation.columns, batches)


def _of_spark(frame: Any) -> Source:
    """Spark hands partitions to its driver as a whole, however large; so they are made small on the way."""

    def batches(columns: list[str]) -> Iterator[pa.Table]:
        chosen = frame.select(*("`" + name.replace("`", "``") + "`" for name in columns))
        yield from _written(chosen, columns) if _on_this_machine(frame) else _sent(chosen)

    return Source("the Spark frame", frame.columns, batches)


def _on_this_machine(frame: Any) -> bool:
    """Whether the executors write to the disk of this process: local mode, not through Spark Connect."""
    return ".connect." not in type(frame).__module__ and frame.sparkSession.conf.get("spark.master", "")[:5] == "local"


def _written(frame: Any, columns: list[str]) -> Iterator[pa.Table]:
    """The rows in order, by way of Parquet files in the folder for temporary files (TMPDIR)."""
    with tempfile.TemporaryDirectory(prefix="altmas-") as name:
        folder = Path(name) / "spark"
        how = {"parquet.block.size": str(16 * PACKET), "compression": "none"}
        frame.write.options(**how).parquet(folder.as_uri())
        yield from of_dataset(_dataset(folder, None, "the Spark frame"), "the Spark frame").batches(columns)


def _sent(frame: Any) -> Iterator[pa.Table]:
    """The rows in order, as packets that lie on the executors' disks until the driver takes a few at a time."""
    from pyspark import StorageLevel

    packets = frame.mapInArrow(_packing(PACKET), "position long, packet binary").persist(StorageLevel.DISK_ONLY)
    try:
        parts = -(-packets.count() // PACKETS) or 1
        in_order = packets.repartitionByRange(parts, "position").sortWithinPartitions("position")
        for row in in_order.select("packet").toLocalIterator():
            yield pa.ipc.open_stream(bytes(row["packet"])).read_all()
    finally:
        packets.unpersist()


def _packing(size: int) -> Callable[[Any], Any]:
    """The function that packs batches of rows on an executor, about `size` bytes in a packet, each with its position.

    It travels to the executors by value: altmas need not be installed there.
    """

    def packed(batches: Any) -> Any:
        import pyarrow
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        position = task.partitionId() << 33
        for batch in batches:
            rows = max(1, batch.num_rows * size // max(batch.nbytes, size))
            for start in range(0, batch.num_rows, rows):
                sink = pyarrow.BufferOutputStream()
                with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
                    stream.write_batch(batch.slice(start, rows))
                columns = [pyarrow.array([position]), pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())]
                yield pyarrow.RecordBatch.from_arrays(columns, ["position", "packet"])
                position += 1

    return packed


def _of_dask(frame: Any) -> Source:
    def batches(columns: list[str]) -> Iterator[pa.Table]:
        chosen = frame[columns]
        for number in range(chosen.npartitions):
            part = chosen.partitions[number].compute()
            if len(part):
                yield Columns(part, columns).table

    return Source("the Dask frame", [str(name) for name in frame.columns], batches)


def _of_ray(dataset: Any) -> Source:
    def batches(columns: list[str]) -> Iterator[pa.Table]:
        yield from dataset.select_columns(columns).iter_batches(batch_size=ROWS, batch_format="pyarrow")

    return Source("the Ray dataset", dataset.schema().names, batches)


# ---------------------------------------------------------------- reading


def fetched(
    source: Source,
    names: Sequence[str],
    groups: Mapping[Group, Sequence[str]],
    repeated: Sequence[str] = (),
    request: Wanted | None = None,
) -> tuple[pa.Table, dict[Group, NDArray[np.float32]], tuple[int, Rows | None]]:
    """(the columns of names in memory, {group: (N, columns) numbers}, (rows of the source, those of the sample if one
    was taken)) of a source, in one pass over its rows.

    repeated  columns of names with few different values, kept as codes
    request   a random sample of the rows

    Raises FileError or PoolError, naming the column and the row.
    """
    files = {group: temporary_file() for group in groups}
    parts: list[pa.Table] = []
    passing = None if request is None else PassingSample(request)
    size = 0
    try:
        for table in stored(source, names, {group: (files[group], groups[group]) for group in groups}, passing):
            parts.append(_coded(table, repeated))
            size += table.num_rows
        chosen = None if passing is None else passing.chosen(source.where)
        matrices = {
            group: _mapped(path) if chosen is None else _mapped_rows(path, chosen[0]) for group, path in files.items()
        }
    except BaseException:
        for path in files.values():
            remove(path)
        raise
    table = pa.concat_tables(parts, promote_options="permissive").unify_dictionaries()
    if chosen is None or passing is None:
        return table, matrices, (size, None)
    return table.take(chosen[0]), matrices, (passing.size, chosen[1])


def keep(source: Source, store: Path, names: Sequence[str], groups: Mapping[Group, Path]) -> None:
    """Write the columns of names to a .parquet file and each group of numbers to its .npy file, batch by batch.

    Each file is complete under its name, or none is there.
    """
    import pyarrow.parquet

    drafts = {path: path.with_name(f".{path.name}.{os.getpid()}.draft") for path in (store, *groups.values())}
    writer = None
    try:
        for table in stored(source, names, {group: (drafts[path], group) for group, path in groups.items()}):
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(drafts[store], table.schema)
            writer.write_table(_as_before(table, writer.schema, source.where))
        assert writer is not None
        writer.close()
        for path, draft in drafts.items():
            os.replace(draft, path)
    finally:
        if writer is not None:
            writer.close()
        for draft in drafts.values():
            remove(draft)


def _as_before(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    try:
        return table.cast(schema)
    except (pa.ArrowException, ValueError) as cause:
        raise FileError(f"{where}: a column changes its kind between two parts: {sentence(cause)}") from cause


def stored(
    source: Source,
    names: Sequence[str],
    groups: Mapping[Group, tuple[Path, Sequence[str]]],
    passing: PassingSample | None = None,
) -> Iterator[pa.Table]:
    """The columns of names, part by part; meanwhile the numbers of each group are written to its .npy file.

    passing  keeps rows that may be in a random sample; the others are left out
    """
    names = list(dict.fromkeys(names))
    needed = list(dict.fromkeys([*names, *(name for _, group in groups.values() for name in group)]))
    refuse_unknown(needed, source.columns, source.where)
    writers = {group: MatrixWriter(path, source.where, columns) for group, (path, columns) in groups.items()}
    first = 0
    try:
        for table in _batches(source, needed):
            refuse_invalid(table, source.where)
            first += table.num_rows
            mask = None if passing is None else passing.kept(table.num_rows)
            if mask is not None:
                table = table.filter(pa.array(mask))
            part = Columns.part(table, source.where, first - table.num_rows)
            for writer in writers.values() if table.num_rows else ():
                writer.add(part)
            yield table.select(names)
    finally:
        for writer in writers.values():
            writer.close()
    if not first:
        raise PoolError(f"{source.where} has no rows; nothing can be tested")


def _batches(source: Source, columns: list[str]) -> Iterator[pa.Table]:
    """Batches with at least one row; what an engine says on the way is told in one sentence."""
    read = source.batches(columns)
    while True:
        try:
            table = next(read)
        except StopIteration:
            return
        except (FileError, PoolError):
            raise
        except Exception as cause:  # engines fail in ways of their own
            raise FileError(f"{source.where} cannot be read: {sentence(cause)}") from cause
        if table.num_rows:
            yield table


class MatrixWriter:
    """A .npy file of float32 that grows row by row; it is one when it is closed."""

    def __init__(self, path: Path, where: str, columns: Sequence[str]) -> None:
        self.where, self.columns = where, list(columns)
        self.rows, self.width = 0, -1
        self.file = path.open("wb")
        self.file.write(b"\0" * HEADER)

    def add(self, part: Columns) -> None:
        matrix = part.matrix(self.columns)
        if self.width not in (-1, matrix.shape[1]):
            raise PoolError(
                f"{self.where}, column {self.columns[0]!r}, row {self.rows} holds {matrix.shape[1]} numbers, the rows "
                f"before it {self.width} numbers"
            )
        self.width = matrix.shape[1]
        self.rows += len(matrix)
        self.file.write(np.ascontiguousarray(matrix, np.float32).tobytes())

    def close(self) -> None:
        about = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({self.rows}, {max(self.width, 0)}), }}"
        magic = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
        self.file.seek(0)
        self.file.write(magic + about.ljust(HEADER - 11).encode() + b"\n")
        self.file.close()


def _coded(table: pa.Table, repeated: Sequence[str]) -> pa.Table:
    """The same with texts that are repeated as codes."""
    for index, name in enumerate(table.column_names):
        kind = table.column(name).type
        if name in repeated and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            table = table.set_column(index, name, table.column(name).cast(pa.string()).dictionary_encode())
    return table


def _mapped_rows(path: Path, rows: Rows) -> NDArray[np.float32]:
    """Some rows of the matrix in a temporary file, which is removed."""
    whole: NDArray[np.float32] = np.load(path, mmap_mode="r")
    target = temporary_file()
    with target.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (len(rows), whole.shape[1])}
        )
        for start in range(0, len(rows), ROWS):
            file.write(np.ascontiguousarray(whole[rows[start : start + ROWS]]).tobytes())
    del whole
    remove(path)
    return _mapped(target)


def _mapped(path: Path) -> NDArray[np.float32]:
    """The matrix in a temporary file: in memory if it is small, else mapped."""
    small = path.stat().st_size <= IN_MEMORY
    matrix: NDArray[np.float32] = np.load(path, mmap_mode=None if small else "r")
    if small:
        remove(path)
    return matrix
