"""CP-ALS."""
from __future__ import annotations

import os
from typing import Any, Callable, Literal, Union, overload

from . import _abi
from ._arrays import device_string, on_device
from ._context import ContextLike, working
from ._distributed import DistributedKTensor
from ._errors import TdError
from ._ktensor import KTensor, as_ktensor
from ._library import Handle, check, int64, lib
from ._options import integer_option, option_names, options_from, set_option
from ._progress import Display, display_for
from ._report import Report
from ._signals import SignalsLater
from ._tensor import Tensor, tensor

Progress = Union[None, bool, Literal["line", "tqdm"], Callable[[Report], Any]]


class _Run:
    """A run's way to what watches it, and back with what that raised."""

    def __init__(self, display: Display, signals: SignalsLater) -> None:
        self._display, self._signals = display, signals
        self.raised: BaseException | None = None

    def after_iteration(self, lent: int, user: Any) -> int:
        """Called by libtd. Nothing may be raised through its frames: an exception stops the run and waits."""
        try:
            self._signals.deliver()
            return int(self._signals.at_once(self._display, lent))
        except BaseException as e:
            self.raised = e
            return 1

    def end(self) -> None:
        """What still came after the last iteration."""
        try:
            self._signals.deliver()
            self._display.close()
        except BaseException as e:
            self.raised = self.raised or e


def _stored(x: Any, context: ContextLike, keywords: dict[str, Any]) -> Tensor:
    """The tensor of an argument; of keywords those that say how to store it are taken out."""
    if isinstance(x, Tensor):
        return x
    scopes = ("tensor", "read") if isinstance(x, (str, os.PathLike)) else ("tensor",)
    of_tensor = option_names(*scopes)
    return tensor(x, context=context, **{k: keywords.pop(k) for k in list(keywords) if k in of_tensor})


@overload
def cpals(x: Any, rank: int, *, init: Any = None, progress: Progress = None, context: ContextLike = None,
          interrupt: Literal["raise", "return"] = "raise", model: Literal["replicated"] = "replicated",
          **options: Any) -> KTensor: ...


@overload
def cpals(x: Any, rank: int, *, init: Any = None, progress: Progress = None, context: ContextLike = None,
          interrupt: Literal["raise", "return"] = "raise", model: Literal["distributed"],
          **options: Any) -> DistributedKTensor: ...


def cpals(x: Any, rank: int, *, init: Any = None, progress: Progress = None, context: ContextLike = None,
          interrupt: Literal["raise", "return"] = "raise", model: str = "replicated",
          **options: Any) -> KTensor | DistributedKTensor:
    """Fits a model of `rank` components to a tensor by alternating least squares (CP-ALS).

    Parameters
    ----------
    x : Tensor, array or what `tensor` takes; or the path of a file
        What to decompose. Arrays are read where they are, on the host or on a GPU.
    rank : int
        The number of components.
    init : str, or KTensor, DistributedKTensor or what `as_ktensor` takes, optional
        The start: "random" (the default, from `seed`), "nvecs", or a model to go on from.
    progress : optional
        What a run shows: None, a bar of tqdm or a line if stderr is a terminal or a notebook and the run takes more than
        half a second; True, at once; False, nothing; "line" or "tqdm"; or a function that is called with a `Report` after
        each iteration and may return True to stop.
    context : Context or str, optional
        Where work runs: "cpu", "cuda", ...; for an array on a GPU that GPU.
    interrupt : {"raise", "return"}
        What ^C does, which ends the run after the iteration: raise KeyboardInterrupt, or return the model so far.
    model : {"replicated", "distributed"}
        What each of the processes that share a tensor gets: the whole model, or its block of the rows.
    **options
        Options of scope "cpals", see `options`: ``tol``, ``max_iters``, ``max_seconds``, ``seed``, ``mode_order`` and
        ``fixed_modes`` (modes from 0, as in ``[2, 0, 1]``), ``ridge``, ``checkpoint``, ``resume``, ...; for an array also
        those of scope "tensor", for a path those of scope "read".

    Returns
    -------
    KTensor or DistributedKTensor
        Normalized and arranged, of the tensor's type; its ``report`` tells of the run.

    Raises
    ------
    TdError
        In its subclasses: `OptionUnknownError`, `ShapeError`, ...
    BaseException
        What `progress` raised, and KeyboardInterrupt, come out of this call when the run has ended cleanly. The model so
        far is their attribute ``model``.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = td.KTensor([5.0, 2.0], [rng.random((n, 2)) for n in (10, 9, 8)])
    >>> model = td.cpals(truth.full(), 2, tol=1e-10, max_iters=500, seed=1)
    >>> bool(model.report.fit > 0.999), round(model.score(truth).score, 3)
    (True, 1.0)
    """
    if interrupt not in ("raise", "return"):
        raise ValueError(f"interrupt: {interrupt!r}, expected \"raise\" or \"return\"")
    components = int64(rank, "rank")
    devices = device_string(x) if not isinstance(x, Tensor) and on_device(x) is not None else None
    keywords = dict(options)
    stored = _stored(x, devices if context is None else context, keywords)
    settings = options_from(keywords, "cpals", own=("init", "progress", "context", "interrupt"))
    set_option(settings, "model", model)
    start = None
    if isinstance(init, str):
        set_option(settings, "init", init)
    elif isinstance(init, DistributedKTensor):
        start = init._handle
    elif init is not None:
        start = as_ktensor(init)._to_labelled_handle()
    display = display_for(progress, integer_option(settings, "max_iters"))
    made, report = Handle("ktensor"), Handle("report")
    with working(context, devices) as (c, signals):
        run = _Run(display, signals)
        refused: TdError | None = None
        try:
            check(lib.td_cpals(c, stored._handle, components, start, settings, _abi.progress_fn(run.after_iteration), None,
                               made.out, report.out))
        except TdError as e:
            refused = e
        run.end()
        if refused is not None:
            raise (run.raised or refused) from (refused if run.raised else None)
        told = Report(report)
        fitted: KTensor | DistributedKTensor
        if model == "distributed":
            made.kept = context  # by whose communicator the blocks meet
            fitted = DistributedKTensor(made, told)
        else:
            fitted = KTensor._from_handle(made, told)
    if run.raised is None or (interrupt == "return" and isinstance(run.raised, KeyboardInterrupt)):
        return fitted
    run.raised.model = fitted  # type: ignore[attr-defined]
    if hasattr(run.raised, "add_note"):
        run.raised.add_note(f"td.cpals was stopped after {told.iterations} iterations; the model so far is "
                            "this exception's attribute 'model'")
    raise run.raised
