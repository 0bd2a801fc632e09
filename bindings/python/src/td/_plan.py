"""What td would do, said before it is done."""
from __future__ import annotations

import os
from typing import Any, NamedTuple, Sequence, Union

import numpy as np

from . import _abi
from ._arrays import REAL_CODES, coordinates_of, dense_of, on_device
from ._context import ContextLike, working
from ._library import Handle, Named, encoded_path, get_named, get_series, get_text, int64, int64s, lib
from ._options import options_from
from ._tensor import Tensor

Shape = Sequence[int]


class PlanMode(NamedTuple):
    """What a plan says of MTTKRP in a mode: the dim, how many rows take part, the kernel, how sums into one row are kept
    apart, seconds, imbalance, rows that several workers sum, and the entries that each worker works on."""

    dim: int
    rows: int
    kernel: str
    conflicts: str
    seconds: float
    imbalance: float
    split_rows: int
    load: list[float]


class Plan(Named):
    """What td would do with a tensor at a rank, what that takes, and why: made by `plan`, shown as text by ``print``.

    ``p.fits``, ``p.format``, ``p["format.why"]``, ``p["host_bytes.peak"]``, ``p["seconds.iteration"]``, ... are facts by
    the names of ``td.h``; ``p.modes`` has a `PlanMode` for each mode.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __getitem__(self, key: str) -> Any:
        return get_named("plan", self._handle, key)

    def series(self, key: str) -> Any:
        """A value per mode.

        Parameters
        ----------
        key : str
            "dims", "rows", "mttkrp_seconds", "imbalance", "imbalance_unsplit", "split_rows"; "load" has
            one per worker and mode.

        Returns
        -------
        ndarray of float64
        """
        return np.array(get_series(lib.td_plan_get_series, self._handle, key))

    @property
    def modes(self) -> list[PlanMode]:
        """What it says of each mode."""
        dims, rows, seconds, imbalance, split, load = (get_series(lib.td_plan_get_series, self._handle, key) for key in (
            "dims", "rows", "mttkrp_seconds", "imbalance", "split_rows", "load"))
        workers = len(load) // len(dims)
        return [PlanMode(int(dims[m]), int(rows[m]), self[f"kernel.{m}"], self[f"conflicts.{m}"], seconds[m],
                         imbalance[m], int(split[m]), load[m * workers:(m + 1) * workers]) for m in range(len(dims))]

    def __str__(self) -> str:
        return get_text(lib.td_plan_describe, self._handle)

    def __repr__(self) -> str:
        return str(self)


def _sizes(x: Any, nnz: int | None, dtype: Any) -> tuple[tuple[int, ...], int | None, Any]:
    """Dims, entries (None: dense) and type of an array that is not stored yet."""
    coordinates = coordinates_of(x)
    if coordinates is not None:
        return coordinates.shape, len(coordinates.values), dtype or coordinates.values.dtype
    if isinstance(x, (tuple, list)) and all(hasattr(n, "__index__") for n in x):
        return tuple(x), nnz, dtype
    memory = on_device(x)
    a = memory if memory is not None else np.asanyarray(dense_of(x))
    return tuple(a.shape), nnz, dtype or a.dtype


def plan(x: Union[Tensor, Shape, str, os.PathLike[str], Any], rank: int, *, nnz: int | None = None, dtype: Any = None,
         context: ContextLike = None, **options: Any) -> Plan:
    """What `cpals` would do, what memory and time that takes, and why. Nothing is allocated that grows with the entries or
    the rank, but that a file is read.

    Parameters
    ----------
    x : Tensor, array, dims, or the path of a file
        A tensor that there is, an array, which is not copied, or the dims of one that is not there yet.
    rank : int
        The number of components.
    nnz : int, optional
        With dims: the entries of a sparse tensor. Left out: a dense one.
    dtype : optional
        float32 or float64; by default the array's, or float64.
    context : Context or str, optional
        Where work would run.
    **options
        Options of scopes "plan" and "cpals", of scope "tensor" where the tensor is not stored yet, and for a file "read".

    Returns
    -------
    Plan
        Also of what does not fit; then its ``fits`` is 0.

    Examples
    --------
    >>> p = td.plan((3000, 2000, 1000), 16, nnz=10**6, format="blco", context="cpu")
    >>> p.format, p["format.why"], p.modes[1].dim
    ('blco', "asked for by option 'format'", 2000)
    """
    scopes = ["plan", "cpals"]
    if not isinstance(x, Tensor):
        scopes += ["tensor", "read"] if isinstance(x, (str, os.PathLike)) else ["tensor"]
    settings = options_from(options, *scopes, own=("nnz", "dtype", "context"))
    number = int64(rank, "rank")
    with working(context) as (c, _):
        if isinstance(x, Tensor):
            return Plan(Handle("plan", lib.td_plan_create_for_tensor, c, x._handle, number, settings))
        if isinstance(x, (str, os.PathLike)):
            return Plan(Handle("plan", lib.td_plan_read, c, encoded_path(x), number, settings))
        shape, entries, kind = _sizes(x, nnz, dtype)
        code = REAL_CODES.get(_numpy_type(kind), _abi.TD_F64)
        if entries is None:
            return Plan(Handle("plan", lib.td_plan_create_dense, c, len(shape), int64s(shape, "shape"), code, number,
                               settings))
        return Plan(Handle("plan", lib.td_plan_create, c, len(shape), int64s(shape, "shape"), int64(entries, "nnz"), code,
                           number, settings))


def _numpy_type(kind: Any) -> np.dtype[Any]:
    """NumPy's type of one of NumPy, PyTorch ("torch.float32") or none."""
    name = str(kind)
    return np.dtype(name[len("torch."):] if name.startswith("torch.") else kind or np.float64)
