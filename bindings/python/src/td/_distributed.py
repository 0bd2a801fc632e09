"""Models of which each process has a block of the rows."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _abi
from ._arrays import REAL_TYPES
from ._ktensor import KTensor
from ._library import Handle, check, encoded_path, get_number, lib
from ._options import options_from
from ._report import Report
from ._tensor import mode_of


class DistributedKTensor:
    """A model in blocks, from `cpals` with ``model="distributed"`` in a context that processes share: of each factor every
    process has some rows, and all have the weights. In a context of one process all rows are here.

    It may be the ``init`` of another run, and `write` writes it, both called by all processes.

    Attributes
    ----------
    weights : ndarray of float64
    shape : tuple of int
        The dims of the whole.
    dtype : dtype
        That of the factors.
    report : Report

    Examples
    --------
    >>> model = td.cpals(np.ones((4, 3, 2)), 1, model="distributed")
    >>> model.local_rows(1), model.local_factor(1).shape, model.gather().shape
    (range(0, 3), (3, 1), (4, 3, 2))
    """

    def __init__(self, handle: Handle, report: Report) -> None:
        self._handle = handle
        self.report = report
        order, rank, code = _abi.i32(), _abi.i64(), _abi.i32()
        check(lib.td_ktensor_shape(handle, order, None, rank, code))
        dims = (_abi.i64 * order.value)()
        check(lib.td_ktensor_shape(handle, None, dims, None, None))
        self.shape: tuple[int, ...] = tuple(dims)
        self.dtype: np.dtype[Any] = np.dtype(REAL_TYPES[code.value])
        self.weights: Any = np.empty(rank.value)
        check(lib.td_ktensor_get_weights(handle, self.weights.ctypes.data_as(_abi.f64_p)))

    @property
    def ndim(self) -> int:
        """The number of modes."""
        return len(self.shape)

    @property
    def rank(self) -> int:
        """The number of components."""
        return len(self.weights)

    def __repr__(self) -> str:
        dims = " x ".join(str(n) for n in self.shape)
        return f"<td.DistributedKTensor {dims} of rank {self.rank}, {self.dtype}>"

    def __reduce__(self) -> Any:
        raise TypeError("a td.DistributedKTensor has some rows of a model and cannot be pickled; gather() gives all of it")

    def local_rows(self, mode: int) -> range:
        """The rows of a factor that are here, perhaps none.

        Parameters
        ----------
        mode : int
            Counted from 0, or from the end if it is negative.

        Returns
        -------
        range
        """
        first, count = _abi.i64(), _abi.i64()
        check(lib.td_ktensor_local_rows(self._handle, mode_of(mode, self.ndim), first, count))
        return range(first.value, first.value + count.value)

    def local_factor(self, mode: int) -> Any:
        """A copy of these rows.

        Parameters
        ----------
        mode : int
            Counted from 0, or from the end if it is negative.

        Returns
        -------
        ndarray of len(local_rows(mode)) x rank
        """
        m = mode_of(mode, self.ndim)
        rows = len(self.local_rows(m))
        a = np.empty((rows, self.rank), self.dtype, order="F")
        check(lib.td_ktensor_get_local_factor(self._handle, m, a.ctypes.data, max(rows, 1), _abi.TD_HOST))
        return a

    def gather(self) -> KTensor:
        """The whole model on all processes, which all call this."""
        return KTensor._from_handle(Handle("ktensor", lib.td_ktensor_gather, self._handle), self.report)

    def norm(self) -> float:
        """The Frobenius norm of the whole tensor; all processes call this."""
        return float(get_number(_abi.f64, lib.td_ktensor_norm, self._handle))


def write_distributed(path: str | os.PathLike[str], model: DistributedKTensor, options: dict[str, Any]) -> None:
    """`write` of a model in blocks."""
    settings = options_from(options, "write")
    check(lib.td_ktensor_write(model._handle, encoded_path(path), settings))
