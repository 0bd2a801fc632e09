"""Keywords are options of libtd, found in its table at run time: a new option needs no new package."""
from __future__ import annotations

import difflib
import numbers
import os
from functools import lru_cache
from typing import Any, Mapping, NamedTuple

import numpy as np

from . import _abi
from ._library import Handle, c_text, check, get_text, lib

# Where an option of another scope belongs.
_PLACES = {"context": "td.Context", "tensor": "td.tensor", "read": "td.read", "write": "td.write", "plan": "td.plan",
           "cpals": "td.cpals", "report": "td.report"}


class Option(NamedTuple):
    """A row of libtd's table of options; a field that does not apply is empty."""

    scope: str
    name: str
    type: str
    default: str
    smallest: str
    largest: str
    choices: str
    help: str


@lru_cache(maxsize=None)
def _table() -> tuple[Option, ...]:
    rows = (get_text(lib.td_option_describe, i) for i in range(lib.td_option_count()))
    return tuple(Option(*row.split("\t")[:8]) for row in rows)


def options(scope: str | None = None) -> list[Option]:
    """Every option of the loaded library.

    Parameters
    ----------
    scope : str, optional
        Only those of this scope: "cpals" are keywords of `cpals`, "tensor" of `tensor` and `sparse_tensor`, "context" of
        `Context`, "read" of `read`, "write" of `write`, "plan" of `plan`, and "report" of `report`.

    Returns
    -------
    list of Option
        Named tuples of text: scope, name, type, default, smallest, largest, choices, help.

    Examples
    --------
    >>> [o.default for o in td.options("cpals") if o.name == "tol"]
    ['1e-4']
    """
    return [o for o in _table() if scope is None or o.scope == scope]


def option_names(*scopes: str) -> set[str]:
    """The names of some scopes' options."""
    return {o.name for o in _table() if o.scope in scopes}


def _list_text(values: Any) -> str:
    """Modes as text: (2, 0, 1) is "2,0,1", and ((0, 1), (2, 3)) is "0,1|2,3"."""
    if any(isinstance(v, (list, tuple)) for v in values):
        return "|".join(_list_text(v) if isinstance(v, (list, tuple)) else str(v) for v in values)
    return ",".join(str(v) for v in values)


def set_option(handle: Handle, key: str, value: Any) -> None:
    """Sets one option from the value of a keyword."""
    name = c_text(key, "keyword")
    if isinstance(value, (numbers.Integral, np.bool_)):
        number = int(value)
        if -2**63 <= number < 2**63:
            check(lib.td_options_set_i64(handle, name, number))
        else:
            check(lib.td_options_set_str(handle, name, str(number).encode()))
    elif isinstance(value, numbers.Real):
        check(lib.td_options_set_f64(handle, name, float(value)))
    elif isinstance(value, (str, os.PathLike)):
        check(lib.td_options_set_str(handle, name, c_text(value, key)))
    elif isinstance(value, (list, tuple)) or isinstance(value, np.ndarray):
        items = value if isinstance(value, (list, tuple)) else value.tolist()
        check(lib.td_options_set_str(handle, name, c_text(_list_text(items), key)))
    else:
        raise TypeError(f"{key}: a {type(value).__name__}, expected a number, text or a list of modes")


def options_from(keywords: Mapping[str, Any], *scopes: str, own: tuple[str, ...] = ()) -> Handle:
    """Options from keywords, of which None means the default. One that exists and does nothing here is refused too:
    libtd would leave it alone. own: the function's own keywords, which a misspelled one may have meant."""
    handle = Handle("options", lib.td_options_create)
    scope_of = {o.name: o.scope for o in _table()}
    for key, value in keywords.items():
        scope = scope_of.get(key)
        if scope is None:
            meant = difflib.get_close_matches(key, own, 1, 0.75)
            if meant:
                raise TypeError(f"no keyword is called '{key}': did you mean '{meant[0]}'?")
        elif scope not in scopes:
            raise TypeError(f"{key} is an option of scope \"{scope}\" and means nothing here: it is a keyword of "
                            f"{_PLACES.get(scope, scope)}")
        if value is not None or scope is None:
            set_option(handle, key, "" if value is None else value)
    return handle


def integer_option(handle: Handle, key: str) -> int:
    """The value of an option that takes a whole number."""
    value = _abi.i64()
    check(lib.td_options_get_i64(handle, key.encode(), value))
    return value.value
