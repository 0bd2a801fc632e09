"""What a run did."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _abi
from ._library import Handle, Named, get_named, get_series, lib

# The names of td.h. A newer library's are found by name all the same; these are what pickling takes along.
FACTS = ("iterations", "converged", "order", "rank", "workers", "threads", "resumed_from", "effective_rank",
         "exact_residuals", "fit", "explained", "relative", "residual", "fit_error", "fit_change", "condition", "norm",
         "seconds", "seconds.init", "seconds.mttkrp", "seconds.solve", "seconds.fit", "stop_reason", "format", "devices",
         "init", "checkpoint_error")
SERIES = ("fit", "fit_error", "fit_change", "residual", "seconds", "effective_rank", "condition", "mttkrp_seconds")


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
        return (f"<td.Report fit {self['fit']:.6f} after {self['iterations']} iterations, stopped by "
                f"{self['stop_reason']}>")


def lent_number(kind: Any, lent: Any, key: bytes) -> Any:
    """A number of a report that is lent to a callback, without copying the report."""
    value = kind()
    (lib.td_report_get_i64 if kind is _abi.i64 else lib.td_report_get_f64)(lent, key, value)
    return value.value
