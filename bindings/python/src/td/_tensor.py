"""Tensors that libtd holds."""
from __future__ import annotations

import operator
import os
from functools import partial
from typing import Any, Sequence

import numpy as np

from . import _abi
from ._arrays import (INDEX_CODES, REAL_CODES, REAL_TYPES, Memory, coordinates_of, dense_memory, dense_of, device_string,
                      host_indices, host_reals, is_copy, memory_of, on_device)
from ._context import ContextLike, working
from ._labels import (Labels, checked_labels, checked_mode_names, get_labels, get_mode_names, set_labels,
                      set_mode_names)
from ._library import Handle, check, encoded_path, get_named, get_number, get_text, int64, int64s, lib
from ._options import integer_option, options_from


def mode_of(mode: Any, order: int) -> int:
    """A mode counted from 0, or from the end if it is negative, as NumPy counts axes."""
    m = operator.index(mode)
    if not -order <= m < order:
        raise ValueError(f"mode {m}: expected {-order} to {order - 1}")
    return m % order


class Tensor:
    """A sparse or dense tensor that libtd holds: made by `tensor`, `sparse_tensor` or `read`. It never changes.

    ``x["format"]``, ``x["bytes"]``, ``x["min"]``, ... are facts by their names in ``td.h``.

    Examples
    --------
    >>> x = td.sparse_tensor([[0, 1, 1], [0, 2, 0], [0, 3, 3]], [1.0, 2.0, 3.0], (2, 3, 4))
    >>> x.shape, x.nnz, x.is_sparse
    ((2, 3, 4), 3, True)
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        order = get_number(_abi.i32, lib.td_tensor_order, handle)
        dims = (_abi.i64 * order)()
        check(lib.td_tensor_dims(handle, dims))
        #: The dims.
        self.shape: tuple[int, ...] = tuple(dims)
        #: numpy.float32 or numpy.float64.
        self.dtype: np.dtype[Any] = REAL_TYPES[get_number(_abi.i32, lib.td_tensor_type, handle)]

    @property
    def ndim(self) -> int:
        """The number of modes."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """Stored entries; of a dense tensor all elements."""
        return int(get_number(_abi.i64, lib.td_tensor_nnz, self._handle))

    @property
    def is_sparse(self) -> bool:
        """Whether it is stored by entries."""
        return self["sparse"] == 1

    @property
    def labels(self) -> Labels:
        """For each mode the labels of its indices, or None: names from a table, or what was set. Setting them does not
        change the tensor; a model that is fitted to it has them, too."""
        return get_labels(self._handle, "tensor", self.ndim)

    @labels.setter
    def labels(self, labels: Sequence[Any] | None) -> None:
        set_labels(self._handle, "tensor", checked_labels(labels, self.shape))

    @property
    def mode_names(self) -> list[str]:
        """The modes' names, such as those of a table's columns; empty for a mode that has none."""
        return get_mode_names(self._handle, "tensor", self.ndim)

    @mode_names.setter
    def mode_names(self, names: Sequence[str | None] | None) -> None:
        set_mode_names(self._handle, "tensor", checked_mode_names(names, self.ndim))

    def norm(self) -> float:
        """The Frobenius norm."""
        return float(get_number(_abi.f64, lib.td_tensor_norm, self._handle))

    def __getitem__(self, key: str) -> int | float | str:
        return get_named("tensor", self._handle, key)

    def __repr__(self) -> str:
        return f"<td.Tensor {get_text(lib.td_tensor_describe, self._handle)}>"

    def slice_counts(self, mode: int) -> Any:
        """Stored entries in each slice of a mode.

        Parameters
        ----------
        mode : int
            Counted from 0.

        Returns
        -------
        ndarray of int64
        """
        m = mode_of(mode, self.ndim)
        counts = np.empty(self.shape[m], np.int64)
        check(lib.td_tensor_slice_counts(self._handle, m, counts.ctypes.data_as(_abi.i64_p)))
        return counts

    def entries(self) -> tuple[Any, Any]:
        """The stored entries of a sparse tensor, in libtd's order.

        Returns
        -------
        indices : ndarray of int64, ndim x nnz
        values : ndarray
        """
        indices, values = np.empty((self.ndim, self.nnz), np.int64), np.empty(self.nnz, self.dtype)
        columns = (_abi.ptr * self.ndim)(*(row.ctypes.data for row in indices))
        check(lib.td_tensor_get_entries(self._handle, _abi.TD_I64, columns, 0, REAL_CODES[self.dtype],
                                        values.ctypes.data))
        return indices, values

    def to_numpy(self) -> Any:
        """The tensor as an ndarray; a sparse tensor's missing entries become 0."""
        a = np.empty(self.shape, self.dtype)
        check(lib.td_tensor_get_dense(self._handle, int64s(memory_of(a).strides, "strides"), REAL_CODES[self.dtype],
                                      a.ctypes.data))
        return a

    def to_sparse(self) -> Any:
        """A sparse tensor as ``sparse.COO`` of pydata's package sparse, which has to be there."""
        import sparse

        indices, values = self.entries()
        return sparse.COO(indices, values, shape=self.shape)

    def __reduce__(self) -> Any:
        state = {"labels": self.labels, "mode_names": self.mode_names}
        if self.is_sparse:
            return partial(sparse_tensor, format=self["format"]), (*self.entries(), self.shape), state
        return tensor, (self.to_numpy(),), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.labels, self.mode_names = state["labels"], state["mode_names"]


def _sparse_device(columns: Sequence[Memory], values: Memory) -> None:
    for what, memory in (*((f"indices of mode {m}", c) for m, c in enumerate(columns)), ("values", values)):
        if memory.space != _abi.TD_DEVICE:
            raise ValueError(f"{what}: an array on the host, expected one on the GPU, where the others are")
        if len(memory.shape) != 1 or (memory.shape[0] > 1 and memory.strides[0] != 1):
            raise ValueError(f"{what}: shape {memory.shape} with strides {memory.strides}, expected a vector without gaps")
        expected = REAL_CODES if what == "values" else INDEX_CODES
        if memory.dtype not in expected:
            raise TypeError(f"{what}: numbers of type {memory.dtype} on a GPU, expected "
                            f"{' or '.join(str(t) for t in expected)}; convert them there")


def index_columns(indices: Sequence[Any]) -> list[Any]:
    """Indices on the host, all of one type."""
    columns = [host_indices(c, f"indices of mode {m}") for m, c in enumerate(indices)]
    if len({c.dtype for c in columns}) > 1:
        columns = [c.astype(np.int64) for c in columns]
    return columns


def sparse_tensor(indices: Sequence[Any], values: Any, shape: Sequence[int] | None = None, *, index_base: int = 0,
                  context: ContextLike = None, **options: Any) -> Tensor:
    """Makes a sparse tensor from coordinates. Entries at the same place are summed (or ``duplicates="error"``).

    Parameters
    ----------
    indices : sequence of arrays, or an array of ndim x nnz
        An array of integers for each mode. int32 and int64 are read where they are, on the host or on a GPU.
    values : array
        nnz numbers. float32 and float64 are read where they are, others become float64.
    shape : sequence of int, optional
        The dims. Left out: the largest index of each mode and 1; needed for arrays on a GPU.
    index_base : int
        0 or 1: what indices count from.
    context : Context or str, optional
        Where work runs.
    **options
        Options of scope "tensor", see `options`: ``format``, ``duplicates``, ``groups``, ...

    Returns
    -------
    Tensor

    Examples
    --------
    >>> td.sparse_tensor([[0, 1], [0, 2], [0, 3]], [1.0, 2.0]).shape
    (2, 3, 4)
    """
    settings = options_from(options, "tensor", own=("shape", "index_base", "context"))
    if int64(index_base, "index_base") not in (0, 1):  # ctypes would cut it to 32 bits
        raise ValueError(f"index_base = {index_base}: expected 0 or 1")
    devices = None
    memory_values = on_device(values)
    if memory_values is None:
        arrays = index_columns(indices)
        a = np.ascontiguousarray(host_reals(values, "values"))
        if a.ndim != 1:
            raise ValueError(f"values: an array with {a.ndim} dimensions, expected one value after the other")
        columns, memory_values = [memory_of(c) for c in arrays], memory_of(a)
        if shape is None:
            shape = tuple(int(c.max()) + 1 - index_base if c.size else 0 for c in arrays)
    else:
        columns = [_require_device(indices[m], m) for m in range(len(indices))]
        _sparse_device(columns, memory_values)
        devices = device_string(values)
        if shape is None:
            raise ValueError("shape: expected, since indices on a GPU are not looked at beforehand")
    order, nnz = len(columns), memory_values.shape[0]
    if len(shape) != order:
        raise ValueError(f"indices for {order} modes, expected {len(shape)} as in shape {tuple(shape)}")
    for m, c in enumerate(columns):
        if c.shape[0] != nnz:
            raise ValueError(f"{c.shape[0]} indices of mode {m}, expected {nnz}, one for each value")
        if c.dtype != columns[0].dtype:
            raise TypeError(f"indices of mode {m} are {c.dtype}, those of mode 0 {columns[0].dtype}: expected one type")
    index_code = INDEX_CODES[columns[0].dtype] if columns else _abi.TD_I64
    with working(context, devices) as (works, _):
        handle = Handle("tensor", lib.td_tensor_create, works, order, int64s(shape, "shape"), nnz, index_code,
                        (_abi.ptr * order)(*(m.address for m in columns)), index_base, REAL_CODES[memory_values.dtype],
                        memory_values.address, memory_values.space, settings)
    return Tensor(handle)


def _require_device(x: Any, mode: int) -> Memory:
    memory = on_device(x)
    if memory is None:
        raise ValueError(f"indices of mode {mode}: an array on the host, expected one on the GPU, where the values are")
    return memory


def tensor(x: Any, *, shape: Sequence[int] | None = None, first: Sequence[int] | None = None,
           context: ContextLike = None, **options: Any) -> Tensor:
    """Makes a tensor of an array of any kind. Calls that take a tensor take the array itself as well; this saves time where
    the same one is used again.

    Parameters
    ----------
    x : array, sparse array or tensor of another package
        A NumPy array or view, or what NumPy makes an array of: float32 and float64 are read where they are, with any
        strides; other real numbers become float64. An array on a GPU (PyTorch, CuPy, JAX, Numba; ``__dlpack__`` or
        ``__cuda_array_interface__``) is read there. A sparse array of SciPy, of pydata's ``sparse``, of PyTorch, CuPy
        or pyttb becomes a sparse tensor. A `Tensor` is given back.
    shape : sequence of int, optional
        x is one process's block of an array of this shape; left out where `first` is given: the block's own.
    first : sequence of int, optional
        Where in that array the block's first element is, from 0; left out where `shape` is given: the beginning.
    context : Context or str, optional
        Where work runs; for an array on a GPU that GPU.
    **options
        Options of scope "tensor", see `options`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> a = np.arange(24.0).reshape(2, 3, 4)
    >>> x = td.tensor(a[:, ::-1, :])
    >>> bool((x.to_numpy() == a[:, ::-1, :]).all())
    True
    """
    if shape is not None or first is not None:
        return _dense_block(x, shape, first, context, options)
    if isinstance(x, Tensor):
        options_from(options, "tensor", own=("shape", "first", "context"))
        if options:
            raise TypeError(f"{', '.join(options)}: how a td.Tensor is stored was settled when it was made")
        return x
    if isinstance(x, (str, os.PathLike)):
        return read(x, context=context, **options)
    coordinates = coordinates_of(x)
    if coordinates is not None:
        return sparse_tensor(*coordinates, context=context, **options)
    settings = options_from(options, "tensor", own=("shape", "first", "context"))
    memory = dense_memory(dense_of(x), "array")
    if options.get("borrow") is not None and integer_option(settings, "borrow") == 1 and is_copy(memory, dense_of(x)):
        raise TypeError(f"borrow=True of a {type(x).__name__} that has to be copied first: expected an array of float32 or "
                        "float64 in the machine's byte order, aligned to its elements")
    with working(context, device_string(x) if memory.space == _abi.TD_DEVICE else None) as (c, _):
        handle = Handle("tensor", lib.td_tensor_create_dense, c, len(memory.shape), int64s(memory.shape, "shape"),
                        int64s(memory.strides, "strides"), REAL_CODES[memory.dtype], memory.address, memory.space,
                        settings)
    made = Tensor(handle)
    if _is_borrowed(made):
        handle.kept = memory.owner
    return made


def _dense_block(x: Any, shape: Sequence[int] | None, first: Sequence[int] | None, context: ContextLike,
                 options: dict[str, Any]) -> Tensor:
    """A process's block of a dense tensor."""
    if isinstance(x, (Tensor, str, os.PathLike)) or coordinates_of(x) is not None:
        raise TypeError(f"shape and first of {type(x).__name__}: expected an array, of which they say where it belongs")
    settings = options_from(options, "tensor", own=("shape", "first", "context"))
    memory = dense_memory(dense_of(x), "array")
    order = len(memory.shape)
    whole = memory.shape if shape is None else shape
    offset = (0,) * order if first is None else first
    for name, numbers in (("shape", whole), ("first", offset)):
        if len(numbers) != order:
            raise ValueError(f"{name}: {len(numbers)} numbers, expected {order}, one for each mode of the block")
    with working(context) as (c, _):
        return Tensor(Handle("tensor", lib.td_tensor_create_dense_block, c, order, int64s(whole, "shape"),
                             int64s(offset, "first"), int64s(memory.shape, "shape"), int64s(memory.strides, "strides"),
                             REAL_CODES[memory.dtype], memory.address, memory.space, settings))


def _is_borrowed(x: Tensor) -> bool:
    """Whether it works on the caller's array, which it then has to keep from being collected. Not every libtd can."""
    try:
        return x["borrowed"] == 1
    except KeyError:
        return False


def read(path: str | os.PathLike[str], *, context: ContextLike = None, **options: Any) -> Tensor:
    """Reads a tensor: coordinate text of FROSTT, ParTI, Tensor Toolbox, pyttb, GenTen or Matrix Market, also ``.gz``; ``.npy``;
    td's binary format. What a file is, is found from its content. A table (CSV, TSV, also ``.gz``) is read where ``columns``
    names those that become modes, as in ``columns="user,item,when:%Y-%m", value="count"``; the names in them are the
    tensor's `labels`. Models are read by `read_ktensor`.

    Parameters
    ----------
    path : str or path
        The file.
    context : Context or str, optional
        Where work runs.
    **options
        Options of scopes "read" and "tensor", see `options`: ``columns``, ``value``, ``dialect``, ``index_base``,
        ``value_type``, ``format``, ...

    Returns
    -------
    Tensor
        Its ``x["source"]`` says what the file was taken for.
    """
    settings = options_from(options, "read", "tensor", own=("context",))
    with working(context) as (c, _):
        return Tensor(Handle("tensor", lib.td_tensor_read, c, encoded_path(path), settings))


def write_tensor(path: str | os.PathLike[str], x: Any, options: dict[str, Any]) -> None:
    """`write` of a tensor or array."""
    settings = options_from(options, "write")
    check(lib.td_tensor_write(tensor(x)._handle, encoded_path(path), settings))
