#!/usr/bin/env python3
"""td from Python with NumPy and ctypes alone: one file to copy and to cut down to what a program needs.

Decomposes a NumPy array and a tensor given by coordinates, shows progress, and handles an error. Modes and coordinates
count from 0, as NumPy does. libtd is found by the environment variable TD_LIBRARY or by the system's search path.
"""
import ctypes
import ctypes.util
import os
import sys
import weakref

import numpy as np

# ---- the C functions that are used here, as td.h declares them -------------------------------------------------------

i32, i64, f64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_double
text, ptr = ctypes.c_char_p, ctypes.c_void_p
ptr_p, i64_p, f64_p = ctypes.POINTER(ptr), ctypes.POINTER(i64), ctypes.POINTER(f64)
progress_fn = ctypes.CFUNCTYPE(i32, ptr, ptr)

SIGNATURES = {
    "td_status_name": (text, [i32]),
    "td_last_error": (i64, [ptr, i64]),
    "td_abi_version": (i32, []),
    "td_options_create": (i32, [ptr_p]),
    "td_options_destroy": (None, [ptr]),
    "td_options_set_str": (i32, [ptr, text, text]),
    "td_context_create": (i32, [text, ptr, ptr_p]),
    "td_context_destroy": (None, [ptr]),
    "td_tensor_create": (i32, [ptr, i32, i64_p, i64, i32, ptr_p, i32, i32, ptr, i32, ptr, ptr_p]),
    "td_tensor_create_dense": (i32, [ptr, i32, i64_p, i64_p, i32, ptr, i32, ptr, ptr_p]),
    "td_tensor_destroy": (None, [ptr]),
    "td_ktensor_destroy": (None, [ptr]),
    "td_ktensor_get_factor": (i32, [ptr, i32, ptr, i64, i32]),
    "td_ktensor_get_weights": (i32, [ptr, f64_p]),
    "td_cpals": (i32, [ptr, ptr, i64, ptr, ptr, progress_fn, ptr, ptr_p, ptr_p]),
    "td_report_destroy": (None, [ptr]),
    "td_report_get_i64": (i32, [ptr, text, i64_p]),
    "td_report_get_f64": (i32, [ptr, text, f64_p]),
}
ABI_VERSION = 0
TYPES = {np.dtype(np.float32): 1, np.dtype(np.float64): 2, np.dtype(np.int32): 11, np.dtype(np.int64): 12}
HOST = 0


def load():
    name = os.environ.get("TD_LIBRARY") or ctypes.util.find_library("td")
    if name is None:
        raise OSError("libtd was not found: install it, or set TD_LIBRARY to the path of libtd.so")
    library = ctypes.CDLL(name)
    for function, (result, arguments) in SIGNATURES.items():
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    if library.td_abi_version() != ABI_VERSION:
        raise OSError(f"{name} has ABI version {library.td_abi_version()}; this file was written for {ABI_VERSION}")
    return library


td = load()


# ---- errors and handles ----------------------------------------------------------------------------------------------

class TdError(Exception):
    """What td refused or failed at; `status` is its code."""

    def __init__(self, status):
        why = ctypes.create_string_buffer(1024)
        td.td_last_error(why, len(why))
        super().__init__(f"{td.td_status_name(status).decode()}: {why.value.decode()}")
        self.status = status


def check(status):
    if status < 0:
        raise TdError(status)
    return status


class Handle:
    """Owns what a td_*_create gave; destroyed with the object."""

    def __init__(self, noun, create, *arguments):
        self.value = ptr()
        check(create(*arguments, ctypes.byref(self.value)))
        weakref.finalize(self, getattr(td, f"td_{noun}_destroy"), self.value)


def numbers(values):
    """A sequence of whole numbers as the C array that td reads."""
    return (i64 * len(values))(*values)


# ---- what a program calls --------------------------------------------------------------------------------------------

def dense(context, array):
    """A tensor of any NumPy array, view or order in memory; nothing is copied before td does."""
    array = np.asarray(array)
    if array.dtype not in TYPES or array.dtype.kind != "f":
        array = array.astype(np.float64)
    strides = numbers([s // array.itemsize for s in array.strides])
    return Handle("tensor", td.td_tensor_create_dense, context.value, array.ndim, numbers(array.shape), strides,
                  TYPES[array.dtype], array.ctypes.data, HOST, None)


def sparse(context, coordinates, values, shape):
    """A tensor of `shape` with values at coordinates, one integer array a mode."""
    values = np.ascontiguousarray(values)
    coordinates = [np.ascontiguousarray(c, dtype=np.int64) for c in coordinates]
    if len(coordinates) != len(shape) or any(c.shape != values.shape for c in coordinates):
        raise ValueError("expected one array of coordinates a mode, each as long as values")
    addresses = (ptr * len(shape))(*(c.ctypes.data for c in coordinates))
    return Handle("tensor", td.td_tensor_create, context.value, len(shape), numbers(shape), values.size,
                  TYPES[np.dtype(np.int64)], addresses, 0, TYPES[values.dtype], values.ctypes.data, HOST, None)


def report_value(report, key):
    if key == "iterations":
        value = i64()
        check(td.td_report_get_i64(report, key.encode(), ctypes.byref(value)))
    else:
        value = f64()
        check(td.td_report_get_f64(report, key.encode(), ctypes.byref(value)))
    return value.value


def cpals(context, tensor, shape, rank, dtype=np.float64, progress=None, **settings):
    """Weights, factors and fit of a rank-`rank` model. settings: td's options, as in tol=1e-6, max_iters=100, seed=1.
    progress(iteration, fit) may return True to stop; its exceptions come out of this call."""
    options = Handle("options", td.td_options_create)
    for key, value in settings.items():
        check(td.td_options_set_str(options.value, key.encode(), str(value).encode()))
    raised = []

    def after_iteration(report, _):
        try:
            return 1 if progress(report_value(report, "iterations"), report_value(report, "fit")) else 0
        except BaseException as e:  # must not pass through C; also ^C
            raised.append(e)
            return 1

    callback = progress_fn(after_iteration) if progress else progress_fn()
    model, report = ptr(), ptr()
    check(td.td_cpals(context.value, tensor.value, rank, None, options.value, callback, None, ctypes.byref(model),
                      ctypes.byref(report)))
    try:
        if raised:
            raise raised[0]
        weights = np.empty(rank)
        check(td.td_ktensor_get_weights(model, weights.ctypes.data_as(f64_p)))
        factors = [np.empty((rows, rank), dtype=dtype, order="F") for rows in shape]
        for mode, factor in enumerate(factors):
            check(td.td_ktensor_get_factor(model, mode, factor.ctypes.data, factor.shape[0], HOST))
        return weights, factors, report_value(report, "fit")
    finally:
        td.td_report_destroy(report)
        td.td_ktensor_destroy(model)


# ---- a demonstration -------------------------------------------------------------------------------------------------

def show(iteration, fit):
    """A line that renews itself on a terminal; elsewhere a line now and then."""
    if sys.stdout.isatty():
        print(f"\r  iteration {iteration}: fit {fit:.6f} ", end="", flush=True)
    elif iteration % 10 == 0:
        print(f"  iteration {iteration}: fit {fit:.6f}")


def main():
    context = Handle("context", td.td_context_create, b"auto", None)
    generator = np.random.default_rng(7)

    print("a NumPy array of rank 3 with noise, transposed, so that it is not contiguous")
    planted = [generator.standard_normal((n, 3)) for n in (40, 30, 20)]
    array = np.einsum("ir,jr,kr->kji", *planted)
    array = (array + 1e-3 * generator.standard_normal(array.shape)).transpose(2, 1, 0)
    weights, factors, fit = cpals(context, dense(context, array), array.shape, 3, progress=show, tol=1e-7,
                                  max_iters=200, seed=1)
    model = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    mine = 1 - np.linalg.norm(array - model) / np.linalg.norm(array)
    print(f"\n  weights {weights}, fit {fit:.6f}, by NumPy {mine:.6f}")
    assert abs(fit - mine) < 1e-9 and fit > 0.99

    print("a tensor given by coordinates: letters that follow one another in a text, by their place in a word")
    words = "the theme that they thought there then thus these things this though".split()
    entries = [(ord(a) - 97, ord(b) - 97, place) for w in words for place, (a, b) in enumerate(zip(w, w[1:]))]
    x = sparse(context, np.array(entries).T, np.ones(len(entries)), (26, 26, 8))
    weights, factors, fit = cpals(context, x, (26, 26, 8), 2, seed=3, tol=1e-8, max_iters=500)
    best = "".join(chr(97 + int(np.argmax(np.abs(f[:, 0])))) for f in factors[:2])
    print(f"  weights {weights}, fit {fit:.4f}; the strongest pair is '{best}'")
    assert best == "th"

    print("a run that is stopped, and an exception that comes out of a callback")
    seen = []
    cpals(context, x, (26, 26, 8), 2, tol=0, progress=lambda iteration, fit: seen.append(fit) or iteration == 3)
    assert len(seen) == 3
    try:
        cpals(context, x, (26, 26, 8), 2, progress=lambda iteration, fit: 1 / 0)
        raise AssertionError("the exception was lost")
    except ZeroDivisionError as e:
        print(f"  {type(e).__name__}: {e}")

    print("errors say what came and what was expected")
    try:
        sparse(context, [[0, 26], [0, 0], [0, 0]], np.ones(2), (26, 26, 8))
        raise AssertionError("a coordinate outside the tensor was accepted")
    except TdError as e:
        print(f"  {e}")
        assert e.status == -3
    try:
        cpals(context, x, (26, 26, 8), 2, max_itres=5)
        raise AssertionError("an unknown option was accepted")
    except TdError as e:
        print(f"  {e}")
        assert "max_iters" in str(e)


if __name__ == "__main__":
    main()
