"""Where libtd is, whether it is one that this package can call, and calls with their errors and handles."""
from __future__ import annotations

import ctypes
import difflib
import os
import pathlib
import re
import weakref
from typing import Any, Callable

from . import _abi
from ._errors import FileError, OptionUnknownError, error_class

SONAME = f"libtd.so.{_abi.TD_ABI_VERSION}"


def _candidates() -> list[str]:
    """The files to try, best first: TD_LIBRARY alone where it is set; in the package, where a wheel carries it; beside
    the package where `cmake --install` put both (<prefix>/share/td/python/src/td and <prefix>/lib), or Debian's package
    did (<prefix>/lib/python3/dist-packages/td); the system's."""
    chosen = os.environ.get("TD_LIBRARY")
    if chosen:
        return [chosen]
    here = pathlib.Path(__file__).resolve().parent
    folders = [here]
    if here.parts[-5:] == ("share", "td", "python", "src", "td"):
        lib = here.parents[4] / "lib"
        folders += [lib, here.parents[4] / "lib64", *sorted(lib.glob("*-linux-*"))]
    if here.parts[-4:] == ("lib", "python3", "dist-packages", "td"):
        folders.append(here.parents[2])
    return [str(folder / SONAME) for folder in folders if (folder / SONAME).exists()] + [SONAME]


def _load() -> tuple[ctypes.CDLL, str]:
    reasons = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as e:
            reasons.append(str(e))
            continue
        if not hasattr(library, "td_abi_version"):
            raise ImportError(f"{path} is not libtd: it has no td_abi_version")
        abi = library.td_abi_version()
        if abi != _abi.TD_ABI_VERSION:
            raise ImportError(f"{path} has ABI version {abi}; this package was written for version "
                              f"{_abi.TD_ABI_VERSION}. Use the package that came with the library.")
        for name, (result, arguments) in _abi.SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        return library, path
    raise ImportError("libtd was not found, or does not load. Install td, or set the environment variable TD_LIBRARY to "
                      "the path of libtd.so. Tried:\n  " + "\n  ".join(reasons))


lib, _path = _load()


def library_path() -> str:
    """The file that libtd was loaded from, or the name by which the system found it."""
    return _path


def library_version() -> str:
    """The version of the libtd that is loaded, as in ``"0.1.0"``."""
    v = int(lib.td_version())
    return f"{v // 10000}.{v // 100 % 100}.{v % 100}"


def has_feature(name: str) -> bool:
    """Whether the loaded library has a feature: "reference", "cpu", "openmp", "cuda"."""
    return bool(lib.td_has_feature(name.encode()))


def check(status: int) -> int:
    """Raises what a call failed at. Its text belongs to the thread, and stays until another call fails."""
    if status < 0:
        size = lib.td_last_error(None, 0)
        why = ctypes.create_string_buffer(size)
        lib.td_last_error(why, size)
        raise error_class(status)(why.value.decode(errors="replace"), status, lib.td_status_name(status).decode())
    return status


class _Owner(weakref.ref):  # type: ignore[type-arg]
    """Of a Handle; calls td_*_destroy itself when that goes, with the handle that it passes for. No line of Python runs
    then: a signal whose handler raises there, as that of ^C does, would be lost."""

    __slots__ = ("_as_parameter_",)
    _as_parameter_: ctypes.c_void_p


_owners: set[_Owner] = set()
_most_owners = 64  # before those whose handles have gone are let go too


def _own(handle: Handle, destroy: Any) -> None:
    global _most_owners
    owner = _Owner(handle, destroy)
    owner._as_parameter_ = handle._as_parameter_
    _owners.add(owner)
    if len(_owners) > _most_owners:
        for other in list(_owners):
            if other() is None:
                _owners.discard(other)
        _most_owners = 2 * len(_owners) + 64


class Handle:
    """Owns what a td_*_create gives. Its place is there before the call, so that an exception that a signal raises just
    after the call does not lose the handle. At the end of the process nothing is destroyed: a thread may still work."""

    def __init__(self, noun: str, create: Callable[..., int] | None = None, *arguments: Any) -> None:
        self._as_parameter_ = ctypes.c_void_p()
        self.kept: Any = None  # what the handle works on; it goes after the handle was destroyed
        _own(self, getattr(lib, f"td_{noun}_destroy"))
        if create is not None:
            check(create(*arguments, self.out))

    @property
    def out(self) -> Any:
        """Where a function of td.h puts a new handle."""
        return ctypes.byref(self._as_parameter_)

    def __bool__(self) -> bool:
        return bool(self._as_parameter_)


def get_text(function: Callable[..., int], *arguments: Any) -> str:
    """A text from a function with (buf, cap, needed) as its last arguments."""
    needed = _abi.i64()
    check(function(*arguments, None, 0, ctypes.byref(needed)))
    buffer = ctypes.create_string_buffer(needed.value)
    check(function(*arguments, buffer, needed.value, ctypes.byref(needed)))
    return buffer.value.decode(errors="replace")


def get_number(kind: Any, function: Callable[..., int], *arguments: Any) -> Any:
    """A number that a function writes through its last argument."""
    value = kind()
    check(function(*arguments, ctypes.byref(value)))
    return value.value


def get_series(function: Callable[..., int], handle: Any, key: str) -> list[float]:
    """All values of a series of a report or plan."""
    n = _abi.i64()
    check(function(handle, key.encode(), None, 0, ctypes.byref(n)))
    values = (_abi.f64 * n.value)()
    check(function(handle, key.encode(), values, n.value, ctypes.byref(n)))
    return list(values)


class Named:
    """What has items by the names of ``td.h`` has them as attributes, too."""

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError as e:
            raise AttributeError(e.args[0]) from None


def get_named(noun: str, handle: Any, key: str) -> int | float | str:
    """A fact by name, whichever of the three kinds it is. An unknown name is a KeyError, with the nearest name."""
    getters: tuple[Callable[[], Any], ...] = (
        lambda: get_number(_abi.i64, getattr(lib, f"td_{noun}_get_i64"), handle, key.encode()),
        lambda: get_number(_abi.f64, getattr(lib, f"td_{noun}_get_f64"), handle, key.encode()),
        lambda: get_text(getattr(lib, f"td_{noun}_get_str"), handle, key.encode()))
    nearest: list[str] = []
    for getter in getters:
        try:
            value: int | float | str = getter()
            return value
        except OptionUnknownError as e:
            nearest += re.findall("did you mean '(.*)'", str(e))
    meant = difflib.get_close_matches(key, nearest, 1, 0.5)
    raise KeyError(f"no result '{key}'" + (f"; did you mean '{meant[0]}'?" if meant else ""))


def int64(value: Any, what: str) -> int:
    """A whole number for an int64_t: ctypes would cut one that is too large."""
    try:
        number = value.__index__()
    except AttributeError:
        raise TypeError(f"{what}: {value!r} of type {type(value).__name__}, expected a whole number") from None
    if not -2**63 <= number < 2**63:
        raise ValueError(f"{what}: {number}, expected a number of at most 63 bits")
    return int(number)


def int64s(values: Any, what: str) -> Any:
    """A sequence of whole numbers as the C array that td reads."""
    numbers = [int64(v, what) for v in values]
    return (_abi.i64 * len(numbers))(*numbers)


def c_text(text: str | os.PathLike[str], what: str) -> bytes:
    """Text for libtd, for which it would end at a NUL."""
    if not isinstance(text, (str, os.PathLike)):
        raise TypeError(f"{what}: a {type(text).__name__}, expected text")
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise ValueError(f"{what}: {os.fspath(text)!r}, expected text without a NUL character")
    return encoded


def encoded_path(path: str | os.PathLike[str]) -> bytes:
    """A file's name as the system has it."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise FileError(f"{os.fspath(path)!r}: a name with a NUL character", _abi.TD_ERR_IO, "TD_ERR_IO")
    return name
