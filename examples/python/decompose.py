#!/usr/bin/env python3
"""td from Python: an array and a tensor given by coordinates are decomposed, a run is watched and stopped, an error is
handled. Modes and coordinates count from 0, as in NumPy. See docs/python.md for how to install the package."""
import numpy as np

import td


def array_with_noise():
    """A NumPy array of rank 3, as a view whose axes are turned: it is read where it is."""
    rng = np.random.default_rng(7)
    truth = td.KTensor(None, [rng.standard_normal((n, 3)) for n in (40, 30, 20)])
    stored = np.ascontiguousarray((truth.full() + 1e-3 * rng.standard_normal(truth.shape)).transpose(2, 0, 1))
    return truth, stored.transpose(1, 2, 0)


def letters():
    """Letters that follow one another in a text, by their place in a word: repeated coordinates add up."""
    words = "the theme that they thought there then thus these things this though".split()
    entries = [(ord(a) - 97, ord(b) - 97, place) for w in words for place, (a, b) in enumerate(zip(w, w[1:]))]
    return td.sparse_tensor(np.array(entries).T, np.ones(len(entries)), (26, 26, 8))


truth, array = array_with_noise()
model = td.cpals(array, 3, tol=1e-7, max_iters=200, seed=1)
print(model)
print(f"  weights {model.weights}, match with the truth {model.score(truth).score:.6f}")
assert model.report.fit > 0.99 and model.score(truth).score > 0.99
assert abs(1 - np.linalg.norm(array - model.full()) / np.linalg.norm(array) - model.report.fit) < 1e-9

x = letters()
print(x)
model = td.cpals(x, 2, tol=1e-8, max_iters=500, seed=3)
best = "".join(chr(97 + int(np.argmax(abs(f[:, 0])))) for f in model.factors[:2])
print(f"  fit {model.report.fit:.4f}; the strongest pair of letters is '{best}'")
assert best == "th"

# The function sees each iteration, and True stops. What it raises comes out of td.cpals with the model so far, and so
# does ^C as KeyboardInterrupt.
fits = []
td.cpals(x, 2, tol=0, progress=lambda report: fits.append(report.fit) or report.iterations == 3)
print("the first three fits:", ", ".join(f"{fit:.4f}" for fit in fits))
try:
    td.cpals(x, 2, tol=0, progress=lambda report: 1 / (3 - report.iterations))
except ZeroDivisionError as e:
    print(f"stopped by {e}; {e.model.report.iterations} iterations are done")
    assert e.model.report.iterations == 3

try:
    td.sparse_tensor([[0, 26], [0, 0], [0, 0]], [1.0, 1.0], (26, 26, 8))
except td.TdError as e:
    print(f"{e.name}: {e}")
    assert isinstance(e, IndexError)
try:
    td.cpals(x, 2, max_itres=5)
except TypeError as e:
    print(e)
    assert "max_iters" in str(e)
