"""Kruskal tensors are ordinary arrays: weights and factor matrices. libtd gets a copy for what it computes."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Sequence

import numpy as np

from . import _abi
from ._arrays import INDEX_CODES, REAL_CODES, REAL_TYPES, host_reals, memory_of
from ._context import ContextLike, working
from ._labels import (Labels, checked_labels, checked_mode_names, get_labels, get_mode_names, set_labels,
                      set_mode_names)
from ._library import Handle, check, encoded_path, get_number, int64s, lib
from ._options import options_from
from ._report import Report
from ._tensor import index_columns, mode_of, tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Fit(NamedTuple):
    """How well a model M fits a tensor X: residual = norm(X - M), relative = residual / norm(X), fit = 1 - relative,
    explained = 1 - relative^2."""

    fit: float
    explained: float
    relative: float
    residual: float


class Score(NamedTuple):
    """The factor match score, and for each component of the first model the second's, -1 for none."""

    score: float
    match: Any


def _checked(weights: Any, factors: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Weights and factors of any kind as arrays that fit each other."""
    given = [host_reals(f, f"factor {m}") for m, f in enumerate(factors)]
    if not given:
        raise ValueError("no factors: expected one for each mode")
    for m, f in enumerate(given):
        if f.ndim != 2:
            raise ValueError(f"factor {m} has {f.ndim} dimensions: expected 2")
        if f.shape[1] != given[0].shape[1]:
            raise ValueError(f"factor {m} has {f.shape[1]} columns: expected {given[0].shape[1]}, as factor 0 has")
    rank = given[0].shape[1]
    dtype = np.float32 if all(f.dtype == np.float32 for f in given) else np.float64
    checked = np.ones(rank) if weights is None else np.ascontiguousarray(host_reals(weights, "weights"), dtype=np.float64)
    if checked.shape != (rank,):
        raise ValueError(f"weights of shape {checked.shape}: expected ({rank},), one for each column")
    return checked, [np.asfortranarray(f, dtype=dtype) for f in given]


class KTensor:
    """The tensor sum over r of weights[r] * factors[0][:, r] o factors[1][:, r] o ...

    It unpacks as ``weights, factors = model``, which is what TensorLy's functions take for a CP tensor.

    Parameters
    ----------
    weights : array or None
        One for each component; None: all 1.
    factors : sequence of arrays
        A matrix of dims[m] x rank for each mode. They are kept in float32 if all are, else in float64.
    report : Report, optional
        Of the run that made it.
    labels : sequence, optional
        For each mode the labels of its indices, or None.
    mode_names : sequence of str, optional
        A name for each mode.

    Attributes
    ----------
    weights : ndarray of float64
    factors : list of ndarray
    report : Report or None
    labels : list
        For each mode a list of texts, or None. A model has those of the tensor that it was fitted to.
    mode_names : list of str
        Empty for a mode without a name.

    Examples
    --------
    >>> k = td.KTensor([2.0, 0.5], [[[1, 0], [1, 1]], [[1, 2], [3, 4], [5, 6]]])
    >>> k.shape, k.rank, float(k.full()[0, 2])
    ((2, 3), 2, 10.0)
    """

    def __init__(self, weights: Any, factors: Sequence[Any], report: Report | None = None, *,
                 labels: Sequence[Any] | None = None, mode_names: Sequence[str | None] | None = None) -> None:
        self.weights: Any
        self.factors: list[Any]
        self.weights, self.factors = _checked(weights, factors)
        self.report = report
        self.labels: Labels = checked_labels(labels, self.shape)
        self.mode_names: list[str] = checked_mode_names(mode_names, self.ndim)

    # ---- what it is ---------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims."""
        return tuple(int(f.shape[0]) for f in self.factors)

    @property
    def ndim(self) -> int:
        """The number of modes."""
        return len(self.factors)

    @property
    def rank(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the factors."""
        return np.dtype(self.factors[0].dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.weights, self.factors))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KTensor):
            return NotImplemented
        return (self.shape == other.shape and self.rank == other.rank and np.array_equal(self.weights, other.weights)
                and all(np.array_equal(a, b) for a, b in zip(self.factors, other.factors)))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        dims = " x ".join(str(n) for n in self.shape)
        run = "" if self.report is None else f", {repr(self.report)[len('<td.Report '):-1]}"
        return f"<td.KTensor {dims} of rank {self.rank}, {self.dtype}{run}>"

    # ---- between here and libtd ---------------------------------------------------------------------------------

    def _to_handle(self) -> Handle:
        weights, factors = _checked(self.weights, self.factors)  # which may have been replaced since
        with working(None, "cpu") as (c, _):
            handle = Handle("ktensor", lib.td_ktensor_create, c, len(factors),
                            int64s([f.shape[0] for f in factors], "shape"), weights.size, REAL_CODES[factors[0].dtype])
        check(lib.td_ktensor_set_weights(handle, weights.ctypes.data_as(_abi.f64_p)))
        for m, f in enumerate(factors):
            check(lib.td_ktensor_set_factor(handle, m, f.ctypes.data, f.shape[0], _abi.TD_HOST))
        return handle

    def _to_labelled_handle(self) -> Handle:
        """For what keeps labels: a file, and the start of a run."""
        handle = self._to_handle()
        set_labels(handle, "ktensor", checked_labels(self.labels, self.shape))
        set_mode_names(handle, "ktensor", checked_mode_names(self.mode_names, self.ndim))
        return handle

    @classmethod
    def _from_handle(cls, handle: Handle, report: Report | None = None) -> KTensor:
        order, rank, code = _abi.i32(), _abi.i64(), _abi.i32()
        check(lib.td_ktensor_shape(handle, order, None, rank, code))
        dims = (_abi.i64 * order.value)()
        check(lib.td_ktensor_shape(handle, None, dims, None, None))
        weights = np.empty(rank.value)
        check(lib.td_ktensor_get_weights(handle, weights.ctypes.data_as(_abi.f64_p)))
        factors = [np.empty((n, rank.value), REAL_TYPES[code.value], order="F") for n in dims]
        for m, f in enumerate(factors):
            check(lib.td_ktensor_get_factor(handle, m, f.ctypes.data, f.shape[0], _abi.TD_HOST))
        return cls(weights, factors, report, labels=get_labels(handle, "ktensor", order.value),
                   mode_names=get_mode_names(handle, "ktensor", order.value))

    def _changed(self, change: Any) -> KTensor:
        handle = self._to_handle()
        check(change(handle))
        changed = KTensor._from_handle(handle, self.report)
        changed.labels, changed.mode_names = self.labels, self.mode_names
        return changed

    # ---- what is computed ---------------------------------------------------------------------------------------

    def full(self) -> Any:
        """The whole tensor, as an ndarray of the factors' type."""
        a = np.empty(self.shape, self.dtype)
        check(lib.td_ktensor_full(self._to_handle(), int64s(memory_of(a).strides, "strides"), REAL_CODES[self.dtype],
                                  a.ctypes.data))
        return a

    def values_at(self, indices: Sequence[Any]) -> Any:
        """The model's values at some places.

        Parameters
        ----------
        indices : sequence of arrays, or an array of ndim x n
            An array of integers from 0 for each mode.

        Returns
        -------
        ndarray of float64
        """
        columns = index_columns(indices)
        if len(columns) != self.ndim or len({c.size for c in columns}) > 1:
            raise ValueError(f"arrays of {[c.size for c in columns]} indices: expected {self.ndim} arrays of one length")
        values = np.empty(columns[0].size)
        check(lib.td_ktensor_values_at(self._to_handle(), values.size, INDEX_CODES[columns[0].dtype],
                                       (_abi.ptr * self.ndim)(*(c.ctypes.data for c in columns)), 0,
                                       values.ctypes.data_as(_abi.f64_p)))
        return values

    def norm(self) -> float:
        """The Frobenius norm of the whole tensor, which is not formed."""
        return float(get_number(_abi.f64, lib.td_ktensor_norm, self._to_handle()))

    def dot(self, other: Any, *, context: ContextLike = None) -> float:
        """The inner product with a model, tensor or array of the same shape.

        Parameters
        ----------
        other : KTensor, Tensor or array
        context : Context or str, optional
            Where work runs.
        """
        mine = self._to_handle()
        if isinstance(other, KTensor):
            return float(get_number(_abi.f64, lib.td_ktensor_dot, mine, other._to_handle()))
        x = tensor(other, context=context)
        with working(context) as (c, _):
            return float(get_number(_abi.f64, lib.td_ktensor_dot_tensor, c, mine, x._handle))

    def fit(self, x: Any, *, context: ContextLike = None) -> Fit:
        """How well it models a tensor.

        Parameters
        ----------
        x : Tensor or array
            Of the same shape.
        context : Context or str, optional
            Where work runs.

        Returns
        -------
        Fit
            Named tuple of fit, explained, relative, residual.
        """
        stored, mine, out = tensor(x, context=context), self._to_handle(), [_abi.f64() for _ in range(4)]
        with working(context) as (c, _):
            check(lib.td_ktensor_fit(c, mine, stored._handle, *out))
        return Fit(*(v.value for v in out))

    def score(self, other: Any, *, use_weights: bool = True) -> Score:
        """The factor match score with another model: 1 is a perfect match.

        Parameters
        ----------
        other : KTensor, or what `as_ktensor` takes
        use_weights : bool
            Whether weights count.

        Returns
        -------
        Score
            Named tuple of score and match.

        Examples
        --------
        >>> k = td.KTensor([3.0, 1.0], [np.eye(4, 2), np.eye(5, 2), np.eye(6, 2)])
        >>> other = td.KTensor(k.weights[::-1], [f[:, ::-1] for f in k.factors])
        >>> s = k.score(other)
        >>> s.score, s.match.tolist()
        (1.0, [1, 0])
        """
        value, match = _abi.f64(), np.empty(self.rank, np.int64)
        check(lib.td_ktensor_score(self._to_handle(), as_ktensor(other)._to_handle(), int(use_weights), value,
                                   match.ctypes.data_as(_abi.i64_p)))
        return Score(value.value, match)

    def normalize(self) -> KTensor:
        """The same tensor with columns of length 1 and their lengths in the weights."""
        return self._changed(lib.td_ktensor_normalize)

    def arrange(self) -> KTensor:
        """The same tensor, normalized, with its components by descending weight."""
        return self._changed(lib.td_ktensor_arrange)

    def fixsigns(self) -> KTensor:
        """The same tensor with signs turned in pairs, so that the largest entries of columns are positive."""
        return self._changed(lib.td_ktensor_fixsigns)

    # ---- what it says -------------------------------------------------------------------------------------------

    def leading(self, n: int = 5) -> dict[str, list[Any]]:
        """What leads each component: in each mode the entries of largest magnitude, the largest first; zeros do not lead.

        Parameters
        ----------
        n : int
            How many at most of each component and mode.

        Returns
        -------
        dict of lists
            The columns "component", "weight", "mode", "name" (the mode's), "index", "label" (the index where it has
            none) and "value" of a table, which ``pandas.DataFrame`` takes as it is.

        Examples
        --------
        >>> k = td.KTensor([2.0], [[[0.6], [0.8]], [[1.0], [0.0]]], labels=[["tea", "cake"], None])
        >>> k.leading()["label"]
        ['cake', 'tea', 0]
        """
        handle = self._to_handle()
        table: dict[str, list[Any]] = {c: [] for c in ("component", "weight", "mode", "name", "index", "label", "value")}
        for r in range(self.rank):
            for m, dim in enumerate(self.shape):
                most, found = min(n, dim), _abi.i64()
                indices, values = np.empty(max(most, 0), np.int64), np.empty(max(most, 0))
                check(lib.td_ktensor_get_leading(handle, m, r, most, indices.ctypes.data_as(_abi.i64_p),
                                                 values.ctypes.data_as(_abi.f64_p), found))
                names = self.labels[m]
                for i, v in zip(indices[:found.value].tolist(), values[:found.value].tolist()):
                    row = (r, float(self.weights[r]), m, self.mode_names[m], i, i if names is None else names[i], v)
                    for column, entry in zip(table.values(), row):
                        column.append(entry)
        return table

    def table(self, mode: int) -> dict[Any, Any]:
        """A factor as the columns of a table: first the labels (or indices) of the mode, under its name or "index", then
        each component under its number. ``pandas.DataFrame`` takes it as it is.

        Parameters
        ----------
        mode : int
            Counted from 0, or from the end if it is negative.

        Returns
        -------
        dict of a list and arrays

        Examples
        --------
        >>> k = td.KTensor(None, [[[0.6], [0.8]], [[1.0]]], labels=[["tea", "cake"], None], mode_names=["item", ""])
        >>> k.table(0)["item"], k.table(0)[0].tolist()
        (['tea', 'cake'], [0.6, 0.8])
        """
        m = mode_of(mode, self.ndim)
        names = self.labels[m]
        columns: dict[Any, Any] = {self.mode_names[m] or "index": list(range(self.shape[m])) if names is None else names}
        columns.update((r, self.factors[m][:, r]) for r in range(self.rank))
        return columns

    # ---- other packages -----------------------------------------------------------------------------------------

    def to_tensorly(self) -> Any:
        """As TensorLy's ``CPTensor``; TensorLy has to be there, with its NumPy backend."""
        from tensorly.cp_tensor import CPTensor

        return CPTensor((self.weights.astype(self.dtype), [np.array(f) for f in self.factors]))

    def to_pyttb(self) -> Any:
        """As pyttb's ``ktensor``, of copies; pyttb has to be there."""
        import pyttb

        return pyttb.ktensor([np.asfortranarray(f, np.float64) for f in self.factors], self.weights.copy())

    def plot(self, *, labels: Sequence[Sequence[str] | None] | None = None, titles: Sequence[str] | None = None,
             components: Sequence[int] | None = None) -> Figure:
        """Draws each component, a row, in each mode, a column: bars where a mode is short or has labels, else lines.

        Parameters
        ----------
        labels : sequence, optional
            For each mode the names of its indices, or None; by default the model's labels.
        titles : sequence of str, optional
            A name for each mode; by default the model's.
        components : sequence of int, optional
            Which to draw; by default all.

        Returns
        -------
        matplotlib.figure.Figure
            matplotlib has to be there.
        """
        from ._plot import plot_ktensor

        if titles is None:
            titles = [name or f"mode {m}" for m, name in enumerate(self.mode_names)]
        return plot_ktensor(self, self.labels if labels is None else labels, titles, components)


def as_ktensor(x: Any) -> KTensor:
    """A model of another package as a `KTensor`, whose arrays are the same where their type and order allow it.

    Parameters
    ----------
    x : KTensor, CPTensor of TensorLy, ktensor of pyttb, or a pair of weights and factors
        Weights may be None.

    Returns
    -------
    KTensor
    """
    if isinstance(x, KTensor):
        return x
    for name in ("factors", "factor_matrices"):
        if hasattr(x, name) and hasattr(x, "weights"):
            return KTensor(x.weights, getattr(x, name))
    if isinstance(x, (tuple, list)) and len(x) == 2:
        return KTensor(x[0], x[1])
    raise TypeError(f"a {type(x).__name__}: expected a td.KTensor, weights and factors, or what has both as TensorLy's "
                    "CPTensor and pyttb's ktensor do")


def read_ktensor(path: str | os.PathLike[str], *, context: ContextLike = None) -> KTensor:
    """Reads a model: text as Tensor Toolbox and pyttb write it, SPLATT's folder, a folder of ``.npy``, or td's binary format.

    Parameters
    ----------
    path : str or path
        The file or folder.
    context : Context or str, optional
        Where work runs.

    Returns
    -------
    KTensor
    """
    with working(context, "cpu") as (c, _):
        return KTensor._from_handle(Handle("ktensor", lib.td_ktensor_read, c, encoded_path(path)))


def write_ktensor(path: str | os.PathLike[str], model: KTensor, options: dict[str, Any]) -> None:
    """`write` of a model."""
    settings = options_from(options, "write")
    check(lib.td_ktensor_write(model._to_labelled_handle(), encoded_path(path), settings))
