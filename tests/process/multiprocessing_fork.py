"""Python's multiprocessing by fork, in a process that has used td: pool workers use it, and the parent goes on.
usage: multiprocessing_fork.py LIBTD"""

import ctypes
import multiprocessing
import signal
import sys

td = ctypes.CDLL(sys.argv[1])
LONGS = ctypes.c_int64 * 3


def norm_of_ones(dim):
    """The norm of dim^3 ones, by a context with 2 threads: dim^1.5."""
    options, context, tensor = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    norm, one = ctypes.c_double(), ctypes.c_double(1)
    calls = (
        lambda: td.td_options_create(ctypes.byref(options)),
        lambda: td.td_options_set_i64(options, b"threads", ctypes.c_int64(2)),
        lambda: td.td_context_create(b"cpu", options, ctypes.byref(context)),
        lambda: td.td_tensor_create_dense(context, 3, LONGS(dim, dim, dim), LONGS(0, 0, 0), 2, ctypes.byref(one), 0,
                                          None, ctypes.byref(tensor)),
        lambda: td.td_tensor_norm(tensor, ctypes.byref(norm)),
    )
    for call in calls:
        if call() != 0:
            raise RuntimeError("a call of td failed")
    td.td_tensor_destroy(tensor)
    td.td_context_destroy(context)
    td.td_options_destroy(options)
    return norm.value


if __name__ == "__main__":
    signal.alarm(60)
    assert norm_of_ones(100) == 1000
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(norm_of_ones, [64, 100, 64, 100]) == [512, 1000, 512, 1000]
    assert norm_of_ones(100) == 1000
