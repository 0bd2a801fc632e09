"""Handles end with their owners, in any order, also in cycles; memory does not grow."""
import gc
import resource

import numpy as np

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
