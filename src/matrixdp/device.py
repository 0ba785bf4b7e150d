"""Arrays on a GPU: recognised by their interfaces, and used through CuPy, which is an extra.

CuPy is imported when an array on a GPU is given, and not before.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from matrixdp.errors import ParameterError, import_extra

_CUDA_DEVICES = (2, 13)  # kDLCUDA and kDLCUDAManaged of DLPack


def is_on_device(data: Any) -> bool:
    """True if an array lies on a CUDA device: CuPy, PyTorch, JAX, Numba and all that speak DLPack."""
    module = type(data).__module__.partition(".")[0]
    if module in ("numpy", "pandas", "polars", "pyarrow", "builtins"):
        return False
    if module == "cupy" or (hasattr(type(data), "__cuda_array_interface__") and _has_cuda_interface(data)):
        return True
    find = getattr(type(data), "__dlpack_device__", None)
    if find is None:
        return False
    try:
        return int(find(data)[0]) in _CUDA_DEVICES
    except Exception:  # a library that cannot say where its array lies
        return False


def is_device_block(block: Any) -> bool:
    """True if a block of records is an array on a GPU, or a mapping with such columns."""
    columns = block.values() if isinstance(block, Mapping) else [block]
    return any(is_on_device(column) for column in columns)


def _has_cuda_interface(data: Any) -> bool:
    try:
        return data.__cuda_array_interface__ is not None
    except Exception:  # PyTorch raises an AttributeError for arrays in the memory of the host
        return False


@cache
def load_cupy() -> Any:
    """CuPy with a device that works; a `MissingExtraError` or a `ParameterError` that says what is missing."""
    cupy = import_extra("cupy", "arrays on a GPU need CuPy; or move the data to the host", "cuda")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    if not count:
        raise ParameterError("device 'cuda' needs an NVIDIA GPU and its driver, and none was found on this machine.")
    return cupy


def to_device_array(data: Any) -> Any:
    """A CuPy array that shares the memory of an array on a GPU."""
    cupy = load_cupy()
    if isinstance(data, cupy.ndarray):
        return data
    if hasattr(data, "detach"):  # a tensor of PyTorch that requires a gradient
        data = data.detach()
    return cupy.asarray(data) if _has_cuda_interface(data) else cupy.from_dlpack(data)
