"""Models: what is computed of them, MTTKRP, other packages' classes."""
import pickle

import numpy as np
import pytest

import td


def test_what_is_computed(planted, rng):
    truth, x = planted
    np.testing.assert_allclose(x, np.einsum("r,ir,jr,kr->ijk", truth.weights, *truth.factors), rtol=1e-14)
    assert abs(truth.norm() - np.linalg.norm(x)) < 1e-12
    assert abs(truth.dot(x) - np.linalg.norm(x)**2) < 1e-10
    assert abs(truth.dot(truth) - np.linalg.norm(x)**2) < 1e-10
    assert truth.fit(x).fit > 1 - 1e-14 and truth.fit(x + 1).residual == pytest.approx(np.sqrt(x.size))
    where = rng.integers(0, x.shape, (10, 3)).T
    np.testing.assert_allclose(truth.values_at(where), x[tuple(where)], rtol=1e-14)
    np.testing.assert_allclose(truth.normalize().full(), x, rtol=1e-13)
    arranged = truth.arrange()
    assert list(arranged.weights) == sorted(arranged.weights, reverse=True)
    np.testing.assert_allclose(np.linalg.norm(arranged.factors[1], axis=0), 1, rtol=1e-15)
    flipped = td.KTensor(truth.weights, [-truth.factors[0], -truth.factors[1], truth.factors[2]])
    assert (flipped.fixsigns().factors[0] >= 0).all()
    score = truth.score(arranged)
    assert score.score == pytest.approx(1) and sorted(score.match) == [0, 1]


def test_arrays_of_any_order_and_type():
    f = np.arange(12.0)
    c, strided = f.reshape(6, 2), f.reshape(3, 4)[:, ::2]
    k = td.KTensor(np.array([1, 2]), [c, strided, [[1, 2], [3, 4]]])
    assert k.dtype == np.float64 and k.shape == (6, 3, 2) and k.rank == 2 and k.ndim == 3
    np.testing.assert_allclose(k.full(), np.einsum("r,ir,jr,kr->ijk", [1, 2], c, strided, [[1, 2], [3, 4]]))
    k.factors[0] = np.ascontiguousarray(k.factors[0]) * 2  # a caller's own array, in rows
    np.testing.assert_allclose(k.full(), 2 * np.einsum("r,ir,jr,kr->ijk", [1, 2], c, strided, [[1, 2], [3, 4]]))
    assert td.KTensor(None, [np.ones((2, 1), np.float32)] * 2).dtype == np.float32
    weights, factors = k
    assert weights is k.weights and factors is k.factors
    assert k == td.KTensor(k.weights, k.factors) and k != td.KTensor(None, k.factors) and k != 1


@pytest.mark.parametrize("arguments, text", [
    (([1.0], [np.ones((2, 2))]), r"\(1,\): expected \(2,\)"),
    ((None, [np.ones((2, 2)), np.ones((2, 3))]), "factor 1 has 3 columns: expected 2"),
    ((None, [np.ones(2)]), "1 dimensions"),
    ((None, []), "no factors"),
])
def test_what_is_no_model(arguments, text):
    with pytest.raises(ValueError, match=text):
        td.KTensor(*arguments)


def test_what_no_longer_is_a_model():
    def changed(weights=None, factor=None):
        k = td.KTensor(None, [np.ones((3, 2)), np.ones((4, 2))])
        k.weights = k.weights if weights is None else weights
        k.factors[0] = k.factors[0] if factor is None else factor
        return k

    calls = (td.KTensor.norm, td.KTensor.full, td.KTensor.normalize, td.KTensor.leading, lambda k: k.score(changed()),
             lambda k: changed().score(k), lambda k: k.values_at([[0], [0]]), lambda k: k.dot(np.ones((3, 4))),
             lambda k: td.cpals(np.ones((3, 4)), 2, init=k))
    for call in calls:
        with pytest.raises(ValueError, match=r"weights of shape \(9,\): expected \(2,\)"):
            call(changed(weights=np.ones(9)))
        with pytest.raises(ValueError, match="factor 1 has 2 columns: expected 1"):
            call(changed(factor=np.ones((6, 1))))
        with pytest.raises(ValueError, match="factor 0 has 1 dimensions"):
            call(changed(factor=np.ones(6)))
    other = changed(factor=np.ones((6, 2), np.int8))
    assert other.norm() == pytest.approx(np.sqrt(24) * 2)


def test_pickles_and_files(planted, tmp_path):
    model = td.cpals(planted[1], 2, seed=1)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.report.fit == model.report.fit and again.report["seconds.mttkrp"] == model.report["seconds.mttkrp"]
    np.testing.assert_array_equal(again.report.series("fit"), model.report.series("fit"))
    assert pickle.loads(pickle.dumps(again)).report.stop_reason == model.report.stop_reason
    assert "rank 2" in repr(again) and "stopped by tol" in repr(again)
    for name in ("model.txt", "model.tdb"):
        td.write(tmp_path / name, model)
        assert td.read_ktensor(tmp_path / name) == model
    td.write(tmp_path / "folder", model, file_format="npy")
    np.testing.assert_array_equal(np.load(tmp_path / "folder/factor1.npy"), model.factors[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mttkrp(rng, dtype):
    x = rng.random((4, 5, 6)).astype(dtype)
    factors = [rng.random((n, 3)).astype(dtype) for n in x.shape]
    expected = [np.einsum("ijk,jr,kr->ir", x, factors[1], factors[2]), np.einsum("ijk,ir,kr->jr", x, factors[0], factors[2]),
                np.einsum("ijk,ir,jr->kr", x, factors[0], factors[1])]
    sparse = td.sparse_tensor(np.indices(x.shape).reshape(3, -1), x.reshape(-1))
    rtol = 2e-5 if dtype == np.float32 else 1e-13
    padded = np.zeros((8, 3), dtype, order="F")
    for tensor in (x, td.tensor(x), sparse):
        for mode in range(3):
            given = [None if m == mode else f for m, f in enumerate(factors)]
            for form in (given, td.KTensor([1, 2, 3], factors), [np.asfortranarray(f) for f in factors],
                         [f.astype(np.float64) for f in factors]):
                result = td.mttkrp(tensor, form, mode)
                assert result.dtype == dtype
                np.testing.assert_allclose(result, expected[mode], rtol=rtol)
            np.testing.assert_allclose(td.mttkrp(tensor, given, mode - 3), expected[mode], rtol=rtol)
            out = padded[1:1 + x.shape[mode]]
            assert td.mttkrp(tensor, given, mode, out=out) is out
            np.testing.assert_allclose(out, expected[mode], rtol=rtol)
            assert (padded[0] == 0).all() and (padded[1 + x.shape[mode]:] == 0).all()
            padded[:] = 0


def test_what_mttkrp_refuses(rng):
    x = rng.random((4, 5, 6))
    f = [np.ones((n, 3)) for n in x.shape]
    for factors, mode, out, error, text in (
            (f[:2], 0, None, ValueError, "2 factors: expected 3"),
            (f, 3, None, ValueError, "mode 3: expected -3 to 2"),
            ([f[0], f[1][:, :2], f[2]], 0, None, ValueError, r"factor 2 has shape \(6, 3\): expected \(6, 2\)"),
            ([f[0], np.ones(5), f[2]], 0, None, ValueError, "factor 1 has 1 dimensions: expected 2"),
            ([f[0], f[1][1:], f[2]], 0, None, ValueError, r"expected \(5, 3\)"),
            (f, 0, np.empty((4, 3)), ValueError, "contiguous"),
            (f, 0, np.empty((4, 3), np.float32, order="F"), TypeError, "float32"),
            (f, 0, [[1]], TypeError, "a list"),
            (f, 0, np.empty((3, 3), order="F"), ValueError, r"out has shape \(3, 3\)"),
            ([f[0], np.full((5, 3), np.nan), f[2]], 0, None, td.ArgumentError, "not finite")):
        with pytest.raises(error, match=text):
            td.mttkrp(x, factors, mode, out=out)


def test_as_ktensor():
    class CPTensor:
        weights, factors = None, [np.ones((2, 1)), np.ones((3, 1))]

    class Ktensor:
        weights, factor_matrices = np.ones(1), [np.ones((2, 1)), np.ones((3, 1))]

    for other in (CPTensor(), Ktensor(), (None, CPTensor.factors)):
        assert td.as_ktensor(other).shape == (2, 3)
    with pytest.raises(TypeError, match="int"):
        td.as_ktensor(3)


def test_plot(planted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = planted[0].plot(titles=["a", "b", "c"], labels=[None, list("abcdefgh"), None])
    assert len(figure.axes) == 6 and figure.axes[1].get_title() == "b"
    figure.canvas.draw()
    long = td.KTensor(None, [np.random.rand(50, 2), np.random.rand(40, 2)])
    assert len(long.plot(components=[1], labels=[None, [f"n{i}" for i in range(40)]]).axes) == 2
    with pytest.raises(ValueError, match="7 labels of mode 1: expected 8"):
        planted[0].plot(labels=[None, list("abcdefg"), None])


def test_a_model_in_blocks(planted, tmp_path):
    """Of one process: all rows are here. examples/python/mpi.py has several."""
    _, x = planted
    whole = td.cpals(x, 2, max_iters=5, seed=1)
    blocks = td.cpals(x, 2, max_iters=5, seed=1, model="distributed")
    assert isinstance(blocks, td.DistributedKTensor) and "rank 2" in repr(blocks)
    assert (blocks.shape, blocks.ndim, blocks.rank, blocks.dtype) == (x.shape, 3, 2, np.float64)
    assert (blocks.weights == whole.weights).all() and blocks.report.fit == whole.report.fit
    for m in range(3):
        assert blocks.local_rows(m) == range(x.shape[m])
        assert (blocks.local_factor(m) == whole.factors[m]).all()
    assert (blocks.local_factor(-1) == whole.factors[2]).all()
    assert blocks.gather() == whole and blocks.norm() == pytest.approx(whole.norm())
    td.write(tmp_path / "k.tdb", blocks)
    assert td.read_ktensor(tmp_path / "k.tdb") == whole
    assert td.cpals(x, 2, max_iters=1, init=blocks).report.fit >= whole.report.fit - 1e-12
    with pytest.raises(ValueError, match="mode 3: expected -3 to 2"):
        blocks.local_rows(3)
    with pytest.raises(TypeError, match="gather"):
        pickle.dumps(blocks)
    with pytest.raises(td.TdError, match="halved"):
        td.cpals(x, 2, model="halved")
