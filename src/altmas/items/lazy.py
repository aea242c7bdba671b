"""What a labeller is shown, read one point at a time from columns that stay in Arrow's memory.

Arrow is loaded only where there are frames: half of the time to start would go into it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from altmas.tensors import detached

if TYPE_CHECKING:
    import pyarrow as pa


class LazyItems(Sequence[Any]):
    """The values of one column, or the rows of several as dicts; each is made when it is looked at."""

    def __init__(self, columns: "pa.ChunkedArray | pa.Table") -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns)

    def columns_and(self, more: "LazyItems") -> "pa.ChunkedArray | pa.Table":
        """The columns with those of further items below them."""
        import pyarrow as pa

        if hasattr(self.columns, "column_names"):
            return pa.concat_tables([self.columns, more.columns])
        return pa.chunked_array([*self.columns.chunks, *more.columns.chunks], self.columns.type)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]  # IndexError, and rows counted from the end, as in a list
        if hasattr(self.columns, "column_names"):  # a table; else one column
            return {name: self.columns.column(name)[row].as_py() for name in self.columns.column_names}
        return self.columns[row].as_py()


def items_of(items: Any) -> Sequence[Any] | None:
    """A sequence that can be indexed by row: frames and series become lazy items, tensors arrays."""
    items = detached(items, "items")
    if items is None or isinstance(items, list | tuple | LazyItems):
        return items
    import narwhals as nw
    import pyarrow as pa

    if isinstance(items, pa.Array):
        return LazyItems(pa.chunked_array([items]))
    native = nw.from_native(items, pass_through=True, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect(backend="pyarrow")
    try:
        if isinstance(native, nw.DataFrame):
            return LazyItems(native.to_arrow().select(native.columns))  # pandas would add its index
        if isinstance(native, nw.Series):
            column = native.to_arrow()
            return LazyItems(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    except (pa.ArrowException, TypeError, ValueError):  # images and other objects that Arrow cannot hold
        return native.rows(named=True) if isinstance(native, nw.DataFrame) else native.to_list()
    return items  # type: ignore[no-any-return]
