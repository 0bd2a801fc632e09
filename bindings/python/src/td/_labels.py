"""Names of modes and labels of indices: of a handle as Python has them, and back."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, List, Optional, Sequence

from . import _abi
from ._library import Handle, check, get_text, lib

#: For each mode the labels of its indices, or None.
Labels = List[Optional[List[str]]]


def _function(handle: Handle, noun: str, name: str) -> Callable[..., int]:
    function: Callable[..., int] = getattr(lib, f"td_{noun}_{name}")
    return function


def get_labels(handle: Handle, noun: str, order: int) -> Labels:
    """All labels; None for a mode that has none."""
    get = _function(handle, noun, "get_labels")
    labels: Labels = []
    for m in range(order):
        needed = _abi.i64()
        check(get(handle, m, None, 0, ctypes.byref(needed)))
        if needed.value == 0:
            labels.append(None)
            continue
        buffer = ctypes.create_string_buffer(needed.value)
        check(get(handle, m, buffer, needed.value, ctypes.byref(needed)))
        labels.append(buffer.raw[:-1].decode().split("\0"))
    return labels


def set_labels(handle: Handle, noun: str, labels: Labels) -> None:
    """Labels as `checked_labels` gives them."""
    put = _function(handle, noun, "set_labels")
    for m, names in enumerate(labels):
        text = b"" if names is None else "".join(name + "\0" for name in names).encode()
        check(put(handle, m, text, len(text)))


def get_mode_names(handle: Handle, noun: str, order: int) -> list[str]:
    """The modes' names, empty for one that has none."""
    return [get_text(_function(handle, noun, "get_mode_name"), handle, m) for m in range(order)]


def set_mode_names(handle: Handle, noun: str, names: Sequence[str]) -> None:
    """Names as `checked_mode_names` gives them."""
    for m, name in enumerate(names):
        check(_function(handle, noun, "set_mode_name")(handle, m, name.encode()))


def checked_labels(labels: Sequence[Iterable[Any] | None] | None, shape: Sequence[int]) -> Labels:
    """Labels of any kind as texts, as many as the dims ask for."""
    if labels is None:
        return [None] * len(shape)
    if len(labels) != len(shape):
        raise ValueError(f"labels for {len(labels)} modes: expected {len(shape)}")
    checked = [None if names is None else [str(name) for name in names] for names in labels]
    for m, texts in enumerate(checked):
        if texts is not None and len(texts) != shape[m]:
            raise ValueError(f"{len(texts)} labels of mode {m}: expected {shape[m]}")
        for name in texts or ():
            if "\0" in name:
                raise ValueError(f"a label of mode {m} holds a NUL: {name!r}")
    return checked


def checked_mode_names(names: Sequence[str | None] | None, order: int) -> list[str]:
    """A name for each mode, empty where there is none."""
    if names is None:
        return [""] * order
    if len(names) != order:
        raise ValueError(f"names of {len(names)} modes: expected {order}")
    checked = ["" if name is None else str(name) for name in names]
    for name in checked:
        if "\0" in name:
            raise ValueError(f"a mode's name holds a NUL: {name!r}")
    return checked
