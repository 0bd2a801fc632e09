"""What an argument is: an array on the host or on a GPU, a matrix of SciPy, a tensor of another package."""
from __future__ import annotations

import ctypes
import logging
from typing import Any, NamedTuple, Sequence

import numpy as np

from . import _abi

logger = logging.getLogger("td")

REAL_CODES: dict[np.dtype[Any], int] = {np.dtype(np.float32): _abi.TD_F32, np.dtype(np.float64): _abi.TD_F64}
INDEX_CODES: dict[np.dtype[Any], int] = {np.dtype(np.int32): _abi.TD_I32, np.dtype(np.int64): _abi.TD_I64}
REAL_TYPES = {code: dtype for dtype, code in REAL_CODES.items()}


class Memory(NamedTuple):
    """An array as td reads it; owner keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: np.dtype[Any]
    space: int
    owner: Any


# ---- on a GPU --------------------------------------------------------------------------------------------------------


class _DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    """The first member of a DLManagedTensor, to which a capsule "dltensor" points."""

    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice), ("ndim", ctypes.c_int32), ("dtype", _DLDataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_DL_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_DL_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_DL_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _from_dlpack(x: Any) -> Memory:
    # td waits for what was started on the GPU, or for the stream that its context names: -1 asks for no other waiting.
    capsule = x.__dlpack__(stream=-1)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    t = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else _row_major(shape)
    kind = _DL_KINDS.get(t.dtype.code)
    if kind is None or t.dtype.lanes != 1:
        raise TypeError(f"an array of DLPack's type code {t.dtype.code}, {t.dtype.bits} bits: expected numbers that "
                        "NumPy has")
    # The capsule was not consumed: it ends the loan when it goes.
    return Memory((t.data or 0) + t.byte_offset, shape, strides, np.dtype(f"{kind}{t.dtype.bits // 8}"),
                  _abi.TD_DEVICE, (x, capsule))


def _from_cuda_interface(x: Any, interface: dict[str, Any]) -> Memory:
    if interface.get("mask") is not None:
        raise ValueError("an array with a mask: expected one without")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        elements = _row_major(shape)
    elif any(s % dtype.itemsize for s in strides):
        raise ValueError(f"strides {tuple(strides)} in bytes: expected multiples of {dtype.itemsize}, the bytes of a "
                         f"{dtype}; copy the array on the device first")
    else:
        elements = tuple(s // dtype.itemsize for s in strides)
    return Memory(interface["data"][0], shape, elements, dtype, _abi.TD_DEVICE, x)


def _dlpack_device(x: Any) -> tuple[int, int] | None:
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    kind, ordinal = x.__dlpack_device__()
    return int(kind), int(ordinal)


def on_device(x: Any) -> Memory | None:
    """What lies on a GPU, by __cuda_array_interface__ or DLPack; None for all else."""
    if isinstance(x, (np.ndarray, np.generic, list, tuple, int, float)):
        return None
    interface = getattr(x, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        return _from_cuda_interface(x, interface)
    device = _dlpack_device(x)
    if device is None or device[0] in _DL_HOST:
        return None
    if device[0] not in _DL_CUDA:
        raise TypeError(f"a {type(x).__name__} on a device of DLPack's type {device[0]}: expected the host or CUDA")
    return _from_dlpack(x)


def device_string(x: Any) -> str:
    """The device that an array on a GPU is on, for a context; the first one if the array does not say."""
    device = _dlpack_device(x)
    return "cuda" if device is None or device[0] not in _DL_CUDA else f"cuda:{device[1]}"


# ---- on the host -----------------------------------------------------------------------------------------------------


def _refuse_type(what: str, dtype: np.dtype[Any], expected: str) -> TypeError:
    return TypeError(f"{what}: numbers of type {dtype}, expected {expected}")


def _as_float64(a: Any, what: str) -> Any:
    """Integers, booleans and other floats as float64, in a copy; the logger hears of it."""
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8 and a.size:
        largest = max(int(a.max()), -int(a.min()))
        if largest > 2**53:
            raise ValueError(f"{what}: the integer {largest} has no exact float64; convert the array yourself")
    if a.dtype.kind not in "biuf":
        raise _refuse_type(what, a.dtype, "real numbers")
    logger.info("%s: %s becomes float64 in a copy", what, a.dtype)
    converted = a.astype(np.float64)
    if a.dtype.kind == "f" and a.dtype.itemsize > 8 and not np.isfinite(converted).all() and np.isfinite(a).all():
        raise ValueError(f"{what}: a {a.dtype} beyond float64")
    return converted


def _as_ndarray(x: Any, what: str) -> Any:
    if isinstance(x, np.ma.MaskedArray):
        masked = int(np.sum(x.mask))
        if masked:
            raise ValueError(f"{what}: an array with {masked} masked elements, expected one without")
        x = x.data
    if not isinstance(x, np.ndarray) and not hasattr(x, "__array__") and hasattr(x, "__dlpack__"):
        x = np.from_dlpack(x)
    return np.asarray(x)


def host_reals(x: Any, what: str) -> Any:
    """An ndarray of native float32 or float64, with strides that are multiples of the element: x itself where it is one,
    else a copy."""
    a = _as_ndarray(x, what)
    if a.dtype.newbyteorder("=") not in REAL_CODES:
        a = _as_float64(a, what)
    elif not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    if not a.flags.aligned or any(s % a.itemsize for s in a.strides):
        a = np.array(a, order="C")
    return a


def host_indices(x: Any, what: str) -> Any:
    """A contiguous vector of int32 or int64: x itself where it is one, else a copy."""
    a = _as_ndarray(x, what)
    if a.size == 0 and a.dtype.kind == "f":  # as np.array([]) is
        a = a.astype(np.int64)
    if a.dtype.kind not in "iu":
        raise _refuse_type(what, a.dtype, "integers")
    if a.ndim != 1:
        raise ValueError(f"{what}: an array with {a.ndim} dimensions, expected one index after the other")
    if a.dtype == np.uint64 and a.size and int(a.max()) >= 2**63:
        raise ValueError(f"{what}: the index {int(a.max())}, expected less than 2^63")
    if a.dtype not in INDEX_CODES:
        a = a.astype(np.int64)
    return np.require(a, requirements=["C", "A"])


def memory_of(a: Any) -> Memory:
    """An ndarray of `host_reals` or `host_indices` as td reads it."""
    return Memory(a.ctypes.data, a.shape, tuple(s // a.itemsize for s in a.strides), a.dtype, _abi.TD_HOST, a)


def dense_memory(x: Any, what: str) -> Memory:
    """A dense array of float32 or float64, where it is."""
    memory = on_device(x)
    if memory is None:
        return memory_of(host_reals(x, what))
    if memory.dtype not in REAL_CODES:
        raise _refuse_type(what, memory.dtype, "float32 or float64 on a GPU; convert them there")
    return memory


def is_copy(memory: Memory, x: Any) -> bool:
    """Whether an array on the host as td reads it is a copy of the caller's: NumPy makes another one each time, elsewhere."""
    return memory.space == _abi.TD_HOST and bool(_as_ndarray(x, "array").ctypes.data != memory.address)


# ---- tensors of other packages ---------------------------------------------------------------------------------------


class Coordinates(NamedTuple):
    """A sparse tensor: an array of indices from 0 for each mode, values, dims."""

    indices: Sequence[Any]
    values: Any
    shape: tuple[int, ...]


def _columns(subs: Any) -> list[Any]:
    return [subs[:, m] for m in range(subs.shape[1])]


def coordinates_of(x: Any) -> Coordinates | None:
    """The entries of pydata's sparse arrays, SciPy's and CuPy's sparse matrices, pyttb's sptensor, and PyTorch's
    sparse tensors; None for all else."""
    if isinstance(x, np.ndarray):
        return None
    if all(hasattr(x, name) for name in ("subs", "vals", "shape")):  # pyttb
        subs = np.asarray(x.subs)
        columns = _columns(subs) if subs.ndim == 2 and subs.size else [np.zeros(0, np.int64) for _ in x.shape]
        return Coordinates(columns, np.asarray(x.vals).reshape(-1), tuple(x.shape))
    if getattr(x, "is_sparse", None) is True and hasattr(x, "_indices"):  # PyTorch: td adds duplicates up itself
        if x.dense_dim():
            raise ValueError(f"a PyTorch tensor with {x.dense_dim()} dense dimensions: expected a sparse one")
        return Coordinates(list(x._indices()), x._values(), tuple(x.shape))
    if hasattr(x, "fill_value") and hasattr(x, "nnz"):  # pydata's sparse
        coo = x if hasattr(x, "coords") else x.tocoo() if hasattr(x, "tocoo") else x.to_coo()
        if coo.fill_value != 0:
            raise ValueError(f"a sparse array with fill_value {coo.fill_value}: expected 0")
        return Coordinates(list(coo.coords), coo.data, tuple(coo.shape))
    if hasattr(x, "tocoo") and hasattr(x, "nnz"):  # SciPy and CuPy
        coo = x.tocoo()
        indices = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
        return Coordinates(list(indices), coo.data, tuple(coo.shape))
    return None


def dense_of(x: Any) -> Any:
    """The array of pyttb's tensor; all else as it is."""
    inner = None if isinstance(x, np.ndarray) else getattr(x, "data", None)
    if isinstance(inner, np.ndarray) and not hasattr(x, "__array__"):
        return inner
    return x
