"""Tensors of PyTorch as arrays: also those that carry a gradient, lie on another device or hold bfloat16."""

from typing import Any

from altmas.errors import PoolError


def is_tensor(value: object) -> bool:
    """Whether this is a tensor of PyTorch, told by its methods: PyTorch is never imported."""
    return hasattr(value, "detach") and hasattr(value, "cpu") and hasattr(value, "layout")


def detached(values: Any, what: str) -> Any:
    """A tensor as an array, a list of tensors as a list of arrays, anything else as it is.

    Floats that numpy does not know (bfloat16, float8) become float32. PoolError says what to do with a tensor that
    has no numbers in memory.
    """
    if isinstance(values, list | tuple) and any(map(is_tensor, values)):
        return [_array(value, what) if is_tensor(value) else value for value in values]
    return _array(values, what) if is_tensor(values) else values


def _array(tensor: Any, what: str) -> Any:
    if "sparse" in str(tensor.layout):
        raise PoolError(f"{what} is a sparse tensor; expected a dense one: pass tensor.to_dense()")
    if getattr(tensor.device, "type", "") == "meta":
        raise PoolError(f"{what} is a tensor on the device 'meta', which holds no numbers; expected one with values")
    plain = tensor.detach().cpu()
    supported = plain.float() if str(plain.dtype).startswith(("torch.bfloat16", "torch.float8")) else plain
    array = supported.numpy()
    return array.item() if array.ndim == 0 else array
