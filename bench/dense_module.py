#!/usr/bin/env python3
"""Times a Python module on the dense tensor in a .npy file.

usage: bench/dense_module.py pyttb|tensorly FILE.npy RANK REPEATS
Prints one line of JSON: "mttkrp" (seconds of all modes, a value a repeat) and "iteration" (seconds of one of CP-ALS).
"""
import json
import sys
import time

import numpy


def seconds_of(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def pyttb_calls(array, factors):
    import pyttb

    x = pyttb.tensor(numpy.asfortranarray(array))
    start = pyttb.ktensor([f.copy() for f in factors])

    def iterations(count):
        rank = factors[0].shape[1]
        return seconds_of(lambda: pyttb.cp_als(x, rank, stoptol=0, maxiters=count, init=start, printitn=0))

    return lambda mode: x.mttkrp(factors, mode), lambda count: (iterations(count + 1) - iterations(1)) / count


def tensorly_calls(array, factors):
    from tensorly.decomposition import parafac
    from tensorly.tenalg import unfolding_dot_khatri_rao

    def iteration(count): # without a tol it cannot call back
        start = (None, [f.copy() for f in factors])
        times = []
        parafac(array, factors[0].shape[1], n_iter_max=count + 1, init=start, tol=1e-300,
                callback=lambda *_: times.append(time.perf_counter()))
        if len(times) < count + 1:
            sys.exit(f"TensorLy called back {len(times)} times, expected at least {count + 1}")
        return (times[-1] - times[-1 - count]) / count

    return lambda mode: unfolding_dot_khatri_rao(array, (None, factors), mode), iteration


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("pyttb", "tensorly"):
        sys.exit(__doc__)
    module, path, rank, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    array = numpy.load(path)
    random = numpy.random.default_rng(0)
    factors = [random.random((d, rank)) for d in array.shape]
    mttkrp, iteration = (pyttb_calls if module == "pyttb" else tensorly_calls)(array, factors)
    sweeps = []
    for _ in range(repeats + 1): # the first maps memory: it is left out
        sweeps.append(sum(seconds_of(lambda m=mode: mttkrp(m)) for mode in range(array.ndim)))
    print(json.dumps({"mttkrp": sweeps[1:], "iteration": [iteration(2)]}))


if __name__ == "__main__":
    main()
