"""What a run did, and the page that shows it."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _abi
from ._context import ContextLike, working
from ._library import Handle, Named, check, encoded_path, get_named, get_series, lib
from ._options import options_from

if TYPE_CHECKING:
    from ._ktensor import KTensor

# The names of td.h. A newer library's are found by name all the same; these are what pickling takes along.
FACTS = ("iterations", "converged", "order", "rank", "workers", "threads", "resumed_from", "effective_rank",
         "exact_residuals", "exchanged_bytes", "fit", "explained", "relative", "residual", "fit_error", "fit_change",
         "fit_growth", "condition", "norm", "seconds", "seconds.init", "seconds.mttkrp", "seconds.solve", "seconds.fit", "stop_reason", "format",
         "devices", "init", "checkpoint_error", "creeping")
SERIES = ("fit", "fit_error", "fit_change", "residual", "seconds", "effective_rank", "condition", "mttkrp_seconds",
          "worker.entries", "worker.rows", "worker.mttkrp_seconds", "worker.iteration_seconds")


class Report(Named):
    """What a run did: ``report.fit``, ``report.iterations``, ``report.stop_reason``, ``report.seconds``, ... by the names
    of ``td.h``, also as ``report["seconds.mttkrp"]``; a value per iteration by `series`.

    Examples
    --------
    >>> model = td.cpals(np.random.default_rng(1).random((5, 4, 3)), 2, max_iters=4, tol=0)
    >>> model.report.iterations, model.report.stop_reason, len(model.report.series("fit"))
    (4, 'max_iters', 4)
    """

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle
        self._facts: dict[str, Any] = {}
        self._series: dict[str, Any] = {}

    @classmethod
    def _copy_of(cls, lent: Any) -> Report:
        """Of a report that is lent to a callback."""
        return cls(Handle("report", lib.td_report_copy, lent))

    def __getitem__(self, key: str) -> Any:
        if self._handle is None:
            return self._facts[key]
        return get_named("report", self._handle, key)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(f for f in FACTS if "." not in f)]

    def series(self, key: str) -> Any:
        """A value per iteration.

        Parameters
        ----------
        key : str
            "fit", "fit_error", "fit_change", "residual", "seconds"; "effective_rank" and "condition" have one value per
            solve and "mttkrp_seconds" one per mode and iteration.

        Returns
        -------
        ndarray of float64
        """
        if self._handle is None:
            return self._series[key]
        return np.array(get_series(lib.td_report_get_series, self._handle, key))

    def __getstate__(self) -> dict[str, Any]:
        return {"_handle": None, "_facts": {k: self[k] for k in FACTS}, "_series": {k: self.series(k) for k in SERIES}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        creeping = self["creeping"]
        return (f"<td.Report fit {self['fit']:.6f} after {self['iterations']} iterations, stopped by "
                f"{self['stop_reason']}{': ' if creeping else ''}{creeping}>")


def lent_number(kind: Any, lent: Any, key: bytes) -> Any:
    """A number of a report that is lent to a callback, without copying the report."""
    value = kind()
    (lib.td_report_get_i64 if kind is _abi.i64 else lib.td_report_get_f64)(lent, key, value)
    return value.value


def report(path: str | os.PathLike[str], model: KTensor, x: Any = None, *, context: ContextLike = None,
           **options: Any) -> None:
    """Writes the run that a model comes from as a page to look at: one file of HTML that needs no network.

    It shows the fit by iteration, weights, each component as a drawing a mode, what to know before trusting them
    (components that are alike or cancel each other, lost rank), and how to repeat the run.

    Parameters
    ----------
    path : str or path
        ``.html``; ``.json`` for the same facts as data.
    model : KTensor
        What `cpals` gave, also if it was changed since; not one that was pickled.
    x : Tensor, array or what `tensor` takes, optional
        What was decomposed. Without it the page says nothing of the plan.
    context : Context or str, optional
        Where the run was.
    **options
        Options of scope "report", see `options`: ``report_title``, ``mode_names`` ("user,item,month"), ``line_modes`` (modes
        from 0 whose rows lie along an axis), ``report_command``; and those of the run, which the page shows.

    Examples
    --------
    >>> x = np.random.default_rng(1).random((30, 20, 10))
    >>> td.report("run.html", td.cpals(x, 3, seed=1), x, mode_names="person,item,month", seed=1)
    """
    told = getattr(model, "report", None)
    if told is None or told._handle is None:
        raise ValueError("this model has no report to write: it comes from no run of td.cpals, or was pickled")
    from ._tensor import Tensor, tensor

    settings = options_from(options, "report", "cpals", own=("context",))
    stored = x if x is None or isinstance(x, Tensor) else tensor(x, context=context)
    with working(context) as (c, _):
        check(lib.td_report_write(c, told._handle, stored._handle if stored is not None else None, model._to_handle(),
                                  settings, encoded_path(path)))
