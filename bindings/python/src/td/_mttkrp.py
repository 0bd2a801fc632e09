"""MTTKRP, for solvers of one's own."""
from __future__ import annotations

import sys
from typing import Any, Sequence

import numpy as np

from . import _abi
from ._arrays import Memory, device_string, host_reals, memory_of, on_device
from ._context import ContextLike, working
from ._library import check, int64s, lib
from ._tensor import mode_of, tensor


def _column_major(memory: Memory) -> bool:
    rows, columns = memory.shape
    return (rows <= 1 or memory.strides[0] == 1) and (columns <= 1 or memory.strides[1] >= max(rows, 1))


def _leading_dimension(memory: Memory) -> int:
    return max(memory.strides[1] if memory.shape[1] > 1 else 0, memory.shape[0], 1)


def _device_matrix(x: Any, what: str) -> Memory:
    """A matrix on a GPU whose columns are contiguous: as it is, or a copy that its own package makes."""
    memory = on_device(x)
    if memory is None:
        raise ValueError(f"{what}: an array on the host, expected one on the GPU, where the others are")
    if len(memory.shape) != 2 or _column_major(memory):
        return memory
    if hasattr(x, "contiguous") and hasattr(x, "T"):  # PyTorch
        copy = x.T.contiguous().T
    elif hasattr(x, "copy") and type(x).__module__.startswith("cupy"):
        copy = x.copy(order="F")
    else:
        raise ValueError(f"{what}: strides {memory.strides} in elements, expected a matrix on the GPU whose columns are "
                         "contiguous")
    owned = on_device(copy)
    assert owned is not None
    return owned._replace(owner=(copy, owned.owner))


def _device_empty(like: Any, rows: int, columns: int) -> Any:
    """A matrix on the GPU with contiguous columns, of the package and type of another one."""
    if hasattr(like, "new_empty"):  # PyTorch
        return like.new_empty((columns, rows)).T
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(like, cupy.ndarray):
        return cupy.empty((rows, columns), like.dtype, order="F")
    raise ValueError(f"out: expected, since td does not know how to make a {type(like).__name__} on the GPU")


def _host_matrix(x: Any, what: str, dtype: np.dtype[Any]) -> Memory:
    a = host_reals(x, what)
    if a.dtype != dtype:
        a = a.astype(dtype, order="F")
    memory = memory_of(a)
    return memory if a.ndim != 2 or _column_major(memory) else memory_of(np.asfortranarray(a))


def _host_out(out: Any, dtype: np.dtype[Any]) -> Memory:
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        kind = f"an array of {out.dtype}" if isinstance(out, np.ndarray) else f"a {type(out).__name__}"
        raise TypeError(f"out: {kind}, expected a NumPy array of the tensor's {dtype}")
    if not out.flags.writeable:
        raise ValueError("out: an array that cannot be written to")
    if any(s % out.itemsize for s in out.strides) or not out.flags.aligned:
        raise ValueError(f"out: strides {out.strides} in bytes, expected multiples of {out.itemsize}")
    return memory_of(out)


def mttkrp(x: Any, factors: Any, mode: int, *, out: Any = None, context: ContextLike = None) -> Any:
    """The matricized tensor times Khatri-Rao product, as in Kolda and Bader, SIAM Review 51(3), 2009.

    Parameters
    ----------
    x : Tensor, array or what `tensor` takes
        The tensor X.
    factors : sequence of arrays, or KTensor, CPTensor of TensorLy, ktensor of pyttb
        A matrix of ``x.shape[m]`` x R for each mode, of which ``factors[mode]`` is not read and may be None. The weights
        of a model are not used. Matrices with contiguous columns (``order="F"``) of the tensor's type are read where
        they are; others are copied. Either all are on the host or all on the GPU.
    mode : int
        Counted from 0.
    out : array, optional
        Where to write: ``x.shape[mode]`` x R with contiguous columns, of the tensor's type; on the GPU if the factors are.
    context : Context or str, optional
        Where work runs; for factors on a GPU that GPU.

    Returns
    -------
    array
        out, or a new matrix of ``x.shape[mode]`` x R with contiguous columns: on the host an ndarray, on the GPU one of the
        factors' package (PyTorch or CuPy; with others ``out`` has to be given).

    Examples
    --------
    >>> x = np.arange(24.0).reshape(2, 3, 4)
    >>> td.mttkrp(x, [None, np.ones((3, 1)), np.ones((4, 1))], 0)
    array([[ 66.],
           [210.]])
    """
    given = list(getattr(factors, "factors", getattr(factors, "factor_matrices", factors)))
    others = [f for m, f in enumerate(given) if f is not None and m != mode]
    on_gpu = bool(others) and on_device(others[0]) is not None
    devices = device_string(others[0]) if on_gpu else None
    stored = tensor(x, context=devices if context is None else context)
    m = mode_of(mode, stored.ndim)
    if len(given) != stored.ndim:
        raise ValueError(f"{len(given)} factors: expected {stored.ndim}, one for each mode")
    used = {n: _device_matrix(f, f"factor {n}") if on_gpu else _host_matrix(f, f"factor {n}", stored.dtype)
            for n, f in enumerate(given) if n != m}
    for n, memory in used.items():
        if len(memory.shape) != 2:
            raise ValueError(f"factor {n} has {len(memory.shape)} dimensions: expected 2")
    rank = next(iter(used.values())).shape[1]
    if out is None:
        out = (_device_empty(others[0], stored.shape[m], rank) if on_gpu else
               np.empty((stored.shape[m], rank), stored.dtype, order="F"))
        if on_gpu and rank > 0 and on_device(out) is None:
            raise ValueError("out: expected on the GPU")
    target = on_device(out) if on_gpu else _host_out(out, stored.dtype)
    if target is None:
        raise ValueError("out: an array on the host, expected one on the GPU, where the factors are")
    for n, memory in (*used.items(), (m, target)):
        what = "out" if n == m else f"factor {n}"
        if memory.shape != (stored.shape[n], rank):
            raise ValueError(f"{what} has shape {memory.shape}: expected ({stored.shape[n]}, {rank})")
        if memory.dtype != stored.dtype:
            raise TypeError(f"{what}: numbers of type {memory.dtype}, expected the tensor's {stored.dtype}")
    if not _column_major(target):
        raise ValueError(f"out: strides {target.strides} in elements, expected a matrix whose columns are contiguous "
                         "(order='F')")
    addresses = (_abi.ptr * stored.ndim)(*(None if n == m else used[n].address for n in range(stored.ndim)))
    ld = int64s((_leading_dimension(target if n == m else used[n]) for n in range(stored.ndim)), "ld")
    with working(context, devices) as (c, _):
        check(lib.td_mttkrp(c, stored._handle, m, rank, addresses, ld, target.address, _leading_dimension(target),
                            target.space))
    return out
