"""Arrays on a GPU, by __cuda_array_interface__ and DLPack: on a GPU in software, whose memory gives a signal to a host that
touches it, if TD_SOFTWARE_GPU names the folder with its libtd and libtd_cuda; else on a GPU that libtd finds. Each test runs
in a process of its own, since one loads one libtd."""
import os
import subprocess
import sys
import textwrap

import pytest

import td

FOLDER = os.environ.get("TD_SOFTWARE_GPU")
HERE = os.path.dirname(os.path.abspath(__file__))


def on_gpu(script):
    environment = dict(os.environ)
    if FOLDER:
        environment["TD_LIBRARY"] = os.path.join(FOLDER, "libtd.so.0")
    else:
        try:
            td.Context("cuda")
        except td.BackendUnavailableError as e:
            pytest.skip(str(e))
    ran = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(script)], capture_output=True, text=True, cwd=HERE,
                         env=environment, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("kind", ["Interface", "DLPack", "Both"])
def test_dense(kind):
    on_gpu(f"""
        import numpy as np, td
        from gpu_arrays import {kind} as Array
        for dtype in (np.float32, np.float64):
            a = np.random.default_rng(1).random((6, 5, 4)).astype(dtype)
            for host in (a, a.T, np.asfortranarray(a), a[::2, ::-1]):
                x = td.tensor(Array(host))
                assert x.dtype == dtype and x.shape == host.shape
                np.testing.assert_array_equal(x.to_numpy(), host)
            model = td.cpals(Array(a), 2, seed=1, tol=0, max_iters=5)
            assert "cuda" in model.report.devices, model.report.devices
            assert abs(model.report.fit - td.cpals(a, 2, seed=1, tol=0, max_iters=5, context="cpu").report.fit) < 1e-5
            assert td.plan(Array(a), 2, context="cuda").fits == 1
        try:
            td.tensor(Array(np.ones((2, 3), np.int32)))
            raise SystemExit("integers were taken")
        except TypeError as e:
            assert "int32" in str(e) and "GPU" in str(e), e
    """)


@pytest.mark.skipif(not FOLDER, reason="needs three GPUs, as there are in software")
def test_which_gpu():
    on_gpu("""
        import numpy as np, td
        from gpu_arrays import Both, Interface
        model = td.cpals(Both(np.ones((4, 3, 2)), ordinal=2), 1)
        assert "cuda:2" in model.report.devices, model.report.devices
        try:
            td.cpals(Interface(np.ones((4, 3, 2)), ordinal=2), 1)  # does not say which: the first is asked, and refuses
            raise SystemExit("memory of another GPU was taken")
        except td.ArgumentError as e:
            assert "cuda:0" in str(e), e
        try:
            td.tensor(Both(np.ones((4, 3, 2))), context="cpu")
            raise SystemExit("a CPU took memory of a GPU")
        except td.UnsupportedError:
            pass
    """)


def test_sparse():
    on_gpu("""
        import numpy as np, td
        from gpu_arrays import Interface as Array
        where = np.ascontiguousarray(np.random.default_rng(1).integers(0, (4, 5, 6), (20, 3)).T)
        values = np.random.default_rng(2).random(20)
        expected = td.sparse_tensor(where, values, (4, 5, 6)).to_numpy()
        for dtype in (np.int32, np.int64):
            columns = [Array(c.astype(dtype)) for c in where]
            x = td.sparse_tensor(columns, Array(values), (4, 5, 6))
            np.testing.assert_array_equal(x.to_numpy(), expected)

        class Torch:  # as a sparse tensor of PyTorch
            is_sparse, shape = True, (4, 5, 6)
            def _indices(self): return columns
            def _values(self): return Array(values)
            def dense_dim(self): return 0
        assert td.cpals(Torch(), 2, seed=1).report.order == 3
        for arguments, text in (((columns, values, (4, 5, 6)), "integers"),
                                ((where, Array(values), (4, 5, 6)), "on the host"),
                                ((columns, Array(values)), "shape"),
                                (([Array(c[:9]) for c in where], Array(values), (4, 5, 6)), "expected 20"),
                                (([Array(c) for c in where[:, ::2]], Array(values), (4, 5, 6)), "without gaps"),
                                (([Array(c.astype(np.int16)) for c in where], Array(values), (4, 5, 6)), "int16")):
            try:
                td.sparse_tensor(*arguments)
                raise SystemExit("taken: " + text)
            except (ValueError, TypeError) as e:
                assert text in str(e), (text, e)
    """)


def test_mttkrp():
    on_gpu("""
        import numpy as np, td
        from gpu_arrays import Interface, Torch
        x = np.random.default_rng(1).random((6, 5, 4))
        f = [np.asfortranarray(np.random.default_rng(n).random((n, 3))) for n in x.shape]
        expected = td.mttkrp(x, f, 1, context="cpu")
        out = Interface(np.zeros((5, 3), order="F"))
        for tensor in (Interface(x), td.tensor(Interface(x)), x):
            assert td.mttkrp(tensor, [Interface(a) for a in f], 1, out=out) is out
            np.testing.assert_allclose(out.host(), expected, rtol=1e-13)
        result = td.mttkrp(Interface(x), [Torch(np.ascontiguousarray(a)) for a in f], 1)  # in rows: copied there
        assert isinstance(result, Torch)
        np.testing.assert_allclose(result.host(), expected, rtol=1e-13)
        for factors, where, text in (([Interface(f[0]), None, f[2]], out, "factor 2: an array on the host"),
                                     ([Interface(a) for a in f], np.zeros((5, 3)), "out: an array on the host"),
                                     ([Interface(a) for a in f], None, "out: expected"),
                                     ([Interface(np.ascontiguousarray(a)) for a in f], out, "contiguous"),
                                     ([Interface(a.astype(np.float32)) for a in f], out, "float32")):
            try:
                td.mttkrp(x, factors, 1, out=where, context="cuda")
                raise SystemExit("taken: " + text)
            except (ValueError, TypeError) as e:
                assert text in str(e), (text, e)
    """)


def test_interfaces_that_are_refused():
    on_gpu("""
        import numpy as np, td
        from gpu_arrays import Interface
        class Masked(Interface):
            @property
            def __cuda_array_interface__(self):
                return {**super().__cuda_array_interface__, "mask": self}
        class Odd(Interface):
            @property
            def __cuda_array_interface__(self):
                return {**super().__cuda_array_interface__, "strides": (17, 8)}
        for array, text in ((Masked(np.ones((2, 2))), "mask"), (Odd(np.ones((2, 2))), "17")):
            try:
                td.tensor(array)
                raise SystemExit("taken: " + text)
            except ValueError as e:
                assert text in str(e), e
    """)
