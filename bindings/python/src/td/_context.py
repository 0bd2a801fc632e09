"""Where work runs."""
from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import Any, Iterator, Union

from . import _abi
from ._communicator import Communicator
from ._library import Handle, c_text, check, get_text, lib
from ._options import options_from
from ._signals import SignalsLater

_LEVELS = {1: logging.WARNING, 2: logging.INFO, 3: logging.DEBUG}
logger = logging.getLogger("td")


def _pass_on_log(level: int, text: bytes, user: Any) -> None:
    # What a logging handler raises is printed and forgotten, as logging itself does.
    logger.log(_LEVELS.get(level, logging.INFO), "%s", text.decode(errors="replace"))


_log = _abi.log_fn(_pass_on_log)


def _distributed(devices: str, settings: Any, communicator: Communicator) -> Handle:
    handle = Handle("context")
    handle.kept = communicator  # whose functions td calls as long as the context is there
    with SignalsLater():
        check(lib.td_context_create_distributed(c_text(devices, "devices"), settings, communicator.handle, handle.out))
    return handle


class Context:
    """Devices to work on.

    Calls take ``context=``, a `Context` or a string of devices; without it they share contexts for "auto". One context
    works for one call at a time: a call from another thread waits. Decisions and warnings go to ``logging.getLogger("td")``.

    Parameters
    ----------
    devices : str
        "auto" (the GPU if there is one, else "cpu"), "cpu", "cpu:4" (four workers), "reference", "cuda", "cuda:2".
    communicator : mpi4py.MPI.Comm, optional
        The processes that share tensors in this context, on "cpu": all of them make it and call `tensor`, `read` and `cpals` with
        it together, each with entries of its own, or with one file. It is duplicated.
    **options
        Options of scope "context", see `options`: ``threads``, ``memory_limit``, ...

    Examples
    --------
    >>> c = td.Context("cpu", threads=1)
    >>> td.cpals(np.ones((4, 3, 2)), 1, context=c).rank
    1
    """

    def __init__(self, devices: str = "auto", communicator: Any = None, **options: Any) -> None:
        self.devices = devices
        settings = options_from(options, "context", own=("devices", "communicator"))
        if communicator is None:
            self._handle = Handle("context", lib.td_context_create, c_text(devices, "devices"), settings)
        else:
            self._handle = _distributed(devices, settings, Communicator(communicator))
        check(lib.td_context_set_log(self._handle, _log, None))
        self._gate = threading.Lock()
        self._user = 0

    def set_stream(self, stream: int | None, slot: int = 0) -> None:
        """Names the CUDA stream by which the caller orders work on arrays on the GPU; without one, a call waits for all
        that was started there.

        Parameters
        ----------
        stream : int or None
            A ``cudaStream_t`` as a number (``torch.cuda.current_stream().cuda_stream``, ``cupy.cuda.Stream.ptr``), which
            has to last until another one is set or the context ends. None: no stream.
        slot : int
            Which of the context's GPUs.
        """
        check(lib.td_context_set_stream(self._handle, slot, stream))

    def __repr__(self) -> str:
        return f"<td.Context {get_text(lib.td_context_describe, self._handle)}>"

    def __reduce__(self) -> Any:
        raise TypeError("a td.Context stands for devices of this process and cannot be pickled")

    @contextlib.contextmanager
    def _working(self) -> Iterator[Handle]:
        me = threading.get_ident()
        if self._user == me:
            raise RuntimeError("this td.Context is in use by the call that called back")
        with self._gate:
            self._user = me
            try:
                yield self._handle
            finally:
                self._user = 0


ContextLike = Union[Context, str, None]

# Contexts between calls, by their devices. A call takes one out, so that calls from other threads and from callbacks find
# another. A child of fork makes its own.
_idle: dict[str, list[Context]] = {}
_idle_lock = threading.Lock()


def _forget() -> None:
    global _idle_lock
    _idle_lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def _borrowed(context: ContextLike) -> Iterator[Handle]:
    if isinstance(context, Context):
        with context._working() as handle:
            yield handle
        return
    devices = "auto" if context is None else context
    if not isinstance(devices, str):
        raise TypeError(f"context: a {type(context).__name__}, expected a td.Context or a string of devices")
    with _idle_lock:
        waiting = _idle.setdefault(devices, [])
        mine = waiting.pop() if waiting else None
    if mine is None:
        mine = Context(devices)
    try:
        with mine._working() as handle:
            yield handle
    finally:
        with _idle_lock:
            _idle.setdefault(devices, []).append(mine)


@contextlib.contextmanager
def working(context: ContextLike, devices: str | None = None) -> Iterator[tuple[Handle, SignalsLater]]:
    """A context for one call, and signals held back meanwhile, since the call may call back to log. devices: where to
    work if the caller does not say."""
    with _borrowed(devices if context is None else context) as handle, SignalsLater() as signals:
        yield handle, signals
