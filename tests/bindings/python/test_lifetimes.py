"""Handles end with their owners, in any order, also in cycles; memory does not grow."""
import gc
import resource
import weakref

import numpy as np
import pytest

import td
from td import _library


def test_owners_go_with_their_handles():
    for _ in range(500):
        x = td.tensor(np.ones((3, 3, 3)))
        cycle = [x]
        cycle.append(cycle)
        del x, cycle
    gc.collect()
    for _ in range(64):
        td.tensor(np.ones((2, 2)))
    assert sum(o() is not None for o in _library._owners) < 100
    assert len(_library._owners) < 300


def test_what_a_handle_works_on_goes_after_it():
    """Also in a cycle, where Python chooses an order."""
    class Kept:
        def __init__(self, x):
            self.x = weakref.ref(x._handle)

        def __del__(self):
            order.append(self.x() is None)

    for in_cycle in (False, True):
        order = []
        x = td.tensor(np.ones((2, 3)))
        x._handle.kept = Kept(x)
        if in_cycle:
            x._handle.kept.tensor = x
        del x
        gc.collect()
        assert order == [True]


def test_borrowed_arrays_are_kept():
    if "borrow" not in {o.name for o in td.options("tensor")}:
        pytest.skip("this libtd does not borrow")
    a = np.random.default_rng(1).random((100, 110, 120))
    expected = td.cpals(a, 2, seed=1, max_iters=3).report.fit
    x = td.tensor(a, borrow=True)
    address, alive = a.ctypes.data, weakref.ref(a)
    assert x["borrowed"] == 1 and x["bytes"] < a.nbytes
    del a
    gc.collect()
    assert alive() is not None and alive().ctypes.data == address
    assert abs(td.cpals(x, 2, seed=1, max_iters=3).report.fit - expected) < 1e-9
    del x
    gc.collect()
    assert alive() is None


def test_what_cannot_be_borrowed():
    if "borrow" not in {o.name for o in td.options("tensor")}:
        pytest.skip("this libtd does not borrow")
    a = np.arange(24.0).reshape(2, 3, 4)
    for x in (a.astype(int), a.astype(">f8"), a.astype(np.float16), a.tolist()):
        with pytest.raises(TypeError, match=f"borrow=True of a {type(x).__name__} .*: expected"):
            td.tensor(x, borrow=True)
        np.testing.assert_array_equal(td.tensor(x, borrow=False).to_numpy(), a)
    for x in (a[:, ::2, 1:], np.ma.masked_array(a), memoryview(a)):
        assert td.tensor(x, borrow="1")["borrowed"] == 1


def test_memory_does_not_grow():
    """400 MB would have to be held if tensors, also those in cycles, were not destroyed."""
    a = np.ones((100, 100, 100))
    def once():
        x = td.tensor(a)
        x.itself = x
        try:
            td.cpals(x, 0)
        except td.ShapeError as e:
            e.kept = e, x
    for _ in range(5):
        once()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50):
        once()
        gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100 * 1024
