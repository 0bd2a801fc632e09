"""Signals while libtd works."""
from __future__ import annotations

import inspect
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Callable

_Handler = Callable[[int, Any], Any]


class SignalsLater:
    """While it is entered, what Python's handlers of signals do, such as the KeyboardInterrupt of ^C, waits until
    `deliver` is called or the end of the block.

    ctypes prints and forgets an exception that leaves a callback, and a handler may raise in a callback before its first
    line. So handlers run here in places where what they raise can be caught. Python runs them in the main thread alone;
    in others this does nothing. Handlers that are not Python's are left alone.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, _Handler] = {}
        self._came: list[int] = []
        self._at_once = False

    def __enter__(self) -> SignalsLater:
        if threading.current_thread() is threading.main_thread():
            try:
                for number in range(1, signal.NSIG):
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler
                        signal.signal(number, self._note)
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._restore()
        self.deliver()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            # Whoever has set another handler meanwhile keeps it.
            if signal.getsignal(number) == self._note:
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self._at_once:
            self._came.append(number)
            return
        self._at_once = False # until this one has returned: if it raises, the next one must not break in on the way out
        self._handlers[number](number, frame)
        self._at_once = True

    def deliver(self) -> None:
        """Runs the handlers of what came, which may raise."""
        while self._came:
            number = self._came.pop(0)
            self._handlers[number](number, inspect.currentframe())

    def at_once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Calls Python code of the caller's, which signals may interrupt."""
        self._at_once = True
        try:
            return work(*arguments)
        finally:
            self._at_once = False
