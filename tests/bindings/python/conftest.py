"""What the tests of the Python package share."""
import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def planted(rng):
    """A model of rank 2, and its tensor."""
    import td

    truth = td.KTensor([5.0, 2.0], [rng.random((n, 2)) for n in (9, 8, 7)])
    return truth, truth.full()
