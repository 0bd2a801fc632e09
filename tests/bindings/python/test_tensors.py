"""Arrays of all kinds become the tensor that they are."""
import logging
import pickle

import numpy as np
import pytest

import td


def same(x, expected):
    stored = td.tensor(x)
    assert stored.shape == expected.shape
    np.testing.assert_array_equal(stored.to_numpy(), expected)
    return stored


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_views_of_arrays(rng, dtype):
    a = rng.random((6, 5, 8)).astype(dtype)
    for view in (a, a.T, a[::2, ::-1, 1:7:3], np.asfortranarray(a), a[1:2], np.broadcast_to(a[:, :1], a.shape),
                 a.transpose(1, 2, 0), a.reshape(2, 3, 5, 8)):
        before = view.copy()
        stored = same(view, view)
        assert stored.dtype == dtype and not stored.is_sparse
        np.testing.assert_array_equal(view, before)
    a.flags.writeable = False
    same(a, a)


def test_a_float32_model_of_a_float32_array(rng):
    """Its factors are float32, whatever the model is asked for: not floats written into doubles."""
    a = rng.random((6, 5, 4)).astype(np.float32)
    model = td.cpals(a, 2, seed=1, tol=0, max_iters=20)
    assert all(f.dtype == np.float32 for f in model.factors) and model.weights.dtype == np.float64
    full = np.einsum("r,ir,jr,kr->ijk", model.weights, *model.factors)
    assert abs(1 - np.linalg.norm(a - full) / np.linalg.norm(a) - model.report.fit) < 1e-5


def test_strides_that_are_no_multiple_of_the_element(rng):
    """Fields of records lie 9 bytes apart: a stride that counts elements would be wrong."""
    records = np.zeros((3, 4, 5), dtype=[("tag", "i1"), ("value", "f8")])
    records["value"] = rng.random((3, 4, 5))
    assert records["value"].strides[-1] == 9
    same(records["value"], records["value"].copy())
    unaligned = np.frombuffer(b"\0" + rng.random(24).tobytes(), np.float64, 24, 1).reshape(2, 3, 4)
    same(unaligned, unaligned.copy())


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "u8", "f2", "g"])
def test_other_numbers_become_float64_and_say_so(rng, dtype, caplog):
    a = rng.integers(0, 2, (3, 4, 5)).astype(dtype)
    with caplog.at_level(logging.INFO, "td"):
        assert same(a, a.astype(np.float64)).dtype == np.float64
    assert f"{a.dtype} becomes float64" in caplog.text


def test_other_byte_order(rng):
    a = rng.random((3, 4, 5))
    same(a.astype(">f8"), a)
    assert same(a.astype(">f4"), a.astype(np.float32)).dtype == np.float32


def test_nested_lists():
    same([[1, 2], [3, 4]], np.array([[1.0, 2], [3, 4]]))


@pytest.mark.parametrize("x, error, text", [
    (np.array([[2**53 + 1, 1]]), ValueError, "9007199254740993"),
    (np.ones((2, 2), complex), TypeError, "complex128"),
    (np.array([["a", "b"]]), TypeError, "<U1"),
    (np.array([["2026-01-01"]], "M8[D]"), TypeError, "datetime64"),
    (np.array([[None, 1.0]]), TypeError, "object"),
    (np.ma.masked_array([[1.0, 2.0]], [[False, True]]), ValueError, "1 masked"),
    (np.array([[1.0, np.nan]]), td.ArgumentError, "nan"),
    (np.ones(3), td.ShapeError, "order"),
    (np.ones((0, 3)), td.ShapeError, "0"),
    (object(), TypeError, "object"),
])
def test_what_is_refused(x, error, text):
    with pytest.raises(error, match=f"(?i){text}"):
        td.tensor(x)


def test_masked_array_without_a_mask():
    same(np.ma.masked_array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))


def test_coordinates(rng):
    dense = np.zeros((4, 5, 6))
    where = rng.integers(0, (4, 5, 6), (20, 3)).T
    values = rng.random(20)
    np.add.at(dense, tuple(where), values)
    for dtype in (np.int8, np.int32, np.int64, np.uint64):
        for indices in (where.astype(dtype), list(where.astype(dtype)), where.T.astype(dtype, order="C").T):
            x = td.sparse_tensor(indices, values, (4, 5, 6))
            assert x.is_sparse and x.nnz == len({tuple(p) for p in where.T})
            np.testing.assert_allclose(x.to_numpy(), dense, rtol=1e-15)
    mixed = [where[0].astype(np.int32), where[1].astype(np.int64), where[2].astype(np.uint8)]
    np.testing.assert_allclose(td.sparse_tensor(mixed, values, (4, 5, 6), format="coo").to_numpy(), dense, rtol=1e-15)
    one = td.sparse_tensor(where + 1, values[::1].astype(np.float32), index_base=1)
    assert one.dtype == np.float32 and one.shape == tuple(where.max(axis=1) + 1)
    indices, stored = x.entries()
    again = td.sparse_tensor(indices, stored, x.shape)
    np.testing.assert_array_equal(again.to_numpy(), x.to_numpy())
    assert x.slice_counts(-1).sum() == x.nnz


def test_an_empty_tensor():
    x = td.sparse_tensor([[], [], []], [], (2, 3, 4))
    assert x.nnz == 0 and x.norm() == 0
    assert td.cpals(x, 1).report.fit >= 0


@pytest.mark.parametrize("arguments, error, text", [
    (([[0, 2], [0, 0]], [1.0, 1.0], (2, 2)), td.CoordinateError, "entry 1"),
    (([[0, 1], [0]], [1.0, 1.0], (2, 2)), ValueError, "1 indices of mode 1, expected 2"),
    (([[0, 1], [0, 1]], [1.0, 1.0], (2, 2, 2)), ValueError, "2 modes, expected 3"),
    (([[0.5, 1], [0, 1]], [1.0, 1.0], (2, 2)), TypeError, "float64, expected integers"),
    (([[0, 1], [0, 1]], [[1.0, 1.0]], (2, 2)), ValueError, "2 dimensions"),
    (([[0, -1], [0, 1]], [1.0, 1.0], (2, 2)), IndexError, "-1"),
    (([[0, 1], [0, 1]], [1.0, 1.0], (2.5, 2)), TypeError, "2.5"),
    (([[0, 1], [0, 1]], [1.0, 1.0], (2**63, 2)), ValueError, "shape: 9223372036854775808"),
])
def test_coordinates_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        td.sparse_tensor(*arguments)


@pytest.mark.parametrize("base, error", [(2, ValueError), (2**32, ValueError), (0.5, TypeError), ("0", TypeError)])
def test_index_bases_that_are_refused(base, error):
    with pytest.raises(error, match=f"index_base.*{base}.*expected"):
        td.sparse_tensor([[0, 1], [0, 1]], [1.0, 1.0], (2, 2), index_base=base)


def test_scipy(rng):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    m = scipy_sparse.random(20, 30, 0.2, random_state=1)
    for form in ("coo", "csr", "csc", "lil", "dok", "bsr", "dia"):
        assert same(m.asformat(form), m.toarray()).is_sparse
    assert same(scipy_sparse.csr_array(m), m.toarray()).nnz == m.nnz
    twice = scipy_sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), (2, 2))
    same(twice, twice.toarray())


def test_pydata_sparse(rng):
    sparse = pytest.importorskip("sparse")
    x = sparse.random((5, 6, 7), 0.2, random_state=1)
    stored = same(x, x.todense())
    assert stored.is_sparse and stored.nnz == x.nnz
    same(sparse.GCXS.from_coo(x), x.todense())
    same(sparse.DOK.from_coo(x), x.todense())
    np.testing.assert_array_equal(stored.to_sparse().todense(), x.todense())
    with pytest.raises(ValueError, match="fill_value 1"):
        td.tensor(x + 1)


def test_dlpack_on_the_host(rng):
    class Foreign:
        """An array of a package that NumPy knows by DLPack alone."""

        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **keywords):
            return self.a.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    a = rng.random((3, 4, 5))
    same(Foreign(a[:, ::2]), a[:, ::2])


def test_pytorch(rng):
    torch = pytest.importorskip("torch")
    a = torch.rand(4, 5, 6)
    assert same(a.permute(2, 0, 1), a.permute(2, 0, 1).numpy()).dtype == np.float32
    x = a.to_sparse()
    assert same(x, a.numpy()).is_sparse
    assert td.plan(a, 2).fits == 1


def test_facts_and_pickles(rng):
    a = rng.random((3, 4, 5))
    x = td.tensor(a)
    assert x["min"] == a.min() and x["sparse"] == 0 and x["format"] == "dense"
    assert abs(x.norm() - np.linalg.norm(a)) < 1e-12
    with pytest.raises(KeyError, match="norm"):
        x["norn"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).to_numpy(), a)
    s = td.sparse_tensor([[0, 1], [0, 2], [1, 0]], [1.0, 2.0], (2, 3, 4), format="coo")
    again = pickle.loads(pickle.dumps(s))
    assert again["format"] == "coo"
    np.testing.assert_array_equal(again.to_numpy(), s.to_numpy())
    assert "2 x 3 x 4" in repr(s) and td.tensor(s) is s
    with pytest.raises(TypeError, match="settled"):
        td.tensor(s, format="blco")


def test_files(tmp_path, rng):
    a = rng.random((3, 4, 5))
    for name in ("x.npy", "x.tdb", "x.txt.gz"):
        td.write(tmp_path / name, a)
        np.testing.assert_array_equal(td.read(tmp_path / name).to_numpy(), a)
    x = td.sparse_tensor([[0, 1], [0, 2], [1, 0]], [1.0, 2.0], (2, 3, 4))
    td.write(str(tmp_path / "x.tns"), x)
    again = td.read(tmp_path / "x.tns", format="blco", value_type="f32")
    assert again["format"] == "blco" and again.dtype == np.float32 and "FROSTT" in again["source"]
    assert td.cpals(tmp_path / "x.tns", 2, index_base=1, format="coo").report.format == "coo"
    for path, error in (("missing.tns", OSError), ("a\0b", td.FileError)):
        with pytest.raises(error):
            td.read(tmp_path / path)
    td.write(tmp_path / "model.txt", td.KTensor(None, [np.eye(2), np.eye(3, 2)]))
    with pytest.raises(td.FileError, match="is a ktensor, expected a tensor"):
        td.read(tmp_path / "model.txt")


def test_a_block_of_a_dense_tensor():
    a = np.arange(24.0).reshape(2, 3, 4)
    assert (td.tensor(a[:, ::-1], shape=a.shape, first=(0, 0, 0)).to_numpy() == a[:, ::-1]).all()
    with pytest.raises(td.ShapeError):
        td.tensor(a, shape=(2, 3, 5))
    with pytest.raises(td.ShapeError):
        td.tensor(a, first=(0, 0, 1))
    with pytest.raises(ValueError, match="first: 2 numbers, expected 3"):
        td.tensor(a, first=(0, 0))
    with pytest.raises(TypeError, match="expected an array"):
        td.tensor("x.tdb", shape=(2, 3))
