"""What a run shows of itself."""
from __future__ import annotations

import sys
import time
from typing import Any, Callable, Protocol

import numpy as np

from . import _abi
from ._report import Report, lent_number


class Display(Protocol):
    """Hears of each iteration, and of the end."""

    def __call__(self, lent: Any) -> bool:
        """After an iteration, with a report that is lent; true stops the run."""

    def close(self) -> None:
        """After the run."""


class Silent:
    """Shows nothing. It is there for ^C, which is seen between iterations."""

    def __call__(self, lent: Any) -> bool:
        return False

    def close(self) -> None:
        pass


class Called:
    """A function of the caller's."""

    def __init__(self, function: Callable[[Report], Any]) -> None:
        self._function = function

    def __call__(self, lent: Any) -> bool:
        answer = self._function(Report._copy_of(lent))
        return isinstance(answer, (bool, np.bool_)) and bool(answer)

    def close(self) -> None:
        pass


class Line:
    """A line on a terminal that renews itself, from when a run has taken as long as a person notices."""

    first, between = 0.5, 0.1  # seconds

    def __init__(self, stream: Any, first: float = first) -> None:
        self._stream, self._next, self._shown = stream, time.monotonic() + first, False

    def __call__(self, lent: Any) -> bool:
        now = time.monotonic()
        if now >= self._next:
            self._next, self._shown = now + self.between, True
            self._show(f"\rtd.cpals: iteration {lent_number(_abi.i64, lent, b'iterations')}, "
                       f"fit {lent_number(_abi.f64, lent, b'fit'):.6f}, "
                       f"change {lent_number(_abi.f64, lent, b'fit_change'):.1e} ")
        return False

    def close(self) -> None:
        if self._shown:
            self._show("\n")

    def _show(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a terminal that has gone is no reason to end a run
            pass


class Bar:
    """A bar of tqdm."""

    def __init__(self, tqdm: Any, total: int, delay: float = Line.first) -> None:
        self._bar = tqdm(total=total, desc="td.cpals", unit="it", delay=delay, leave=False)

    def __call__(self, lent: Any) -> bool:
        self._bar.set_postfix_str(f"fit {lent_number(_abi.f64, lent, b'fit'):.6f}", refresh=False)
        self._bar.update(lent_number(_abi.i64, lent, b"iterations") - self._bar.n)
        return False

    def close(self) -> None:
        self._bar.close()


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _is_watched() -> bool:
    """Whether a person is likely to see what goes to stderr."""
    try:
        return "ipykernel" in sys.modules or bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def display_for(progress: Any, total: int) -> Display:
    """What the keyword progress asks for."""
    if progress is False or (progress is None and not _is_watched()):
        return Silent()
    if callable(progress):
        return Called(progress)
    if progress == "line":
        return Line(sys.stderr, 0)
    if progress is None or progress is True or progress == "tqdm":
        tqdm = _tqdm()
        if tqdm is not None:
            return Bar(tqdm, total, Line.first if progress is None else 0)
        if progress == "tqdm":
            raise ImportError("progress=\"tqdm\" needs the package tqdm")
        return Line(sys.stderr, Line.first if progress is None else 0)
    raise TypeError(f"progress: {progress!r}, expected None, True, False, \"line\", \"tqdm\" or a function of a td.Report")
