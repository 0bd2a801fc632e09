"""What TensorLy and pyttb publish as examples of theirs, decomposed by td, with their classes on both sides."""
import doctest
import types

import numpy as np
import pytest

import td


@pytest.fixture
def tl():
    pytest.importorskip("tensorly.decomposition")
    import tensorly

    return tensorly


@pytest.fixture
def ttb():
    return pytest.importorskip("pyttb")


# ---- TensorLy --------------------------------------------------------------------------------------------------------


def test_the_cross_of_tensorlys_guide(tl):
    """Its page on decompositions: a cross of ones in 12 x 12 is two components."""
    cross = np.zeros((12, 12))
    cross[1:11, 4:8] = cross[4:8, 1:11] = 1
    model = td.cpals(tl.tensor(cross), 2, seed=1, tol=1e-12, max_iters=500)
    assert [f.shape for f in model.factors] == [(12, 2), (12, 2)]
    np.testing.assert_allclose(tl.cp_to_tensor(model), cross, atol=1e-6)  # which unpacks as weights and factors
    np.testing.assert_allclose(tl.cp_to_tensor(model.to_tensorly()), cross, atol=1e-6)


def test_the_same_iterations_as_parafac(tl):
    """Its gallery's random model of rank 3 in 10 x 10 x 10, from the same start: the same tensor after any number of
    iterations, since it does not depend on how columns are scaled on the way."""
    from tensorly.decomposition import parafac
    from tensorly.random import random_cp

    x = random_cp((10, 10, 10), 3, random_state=1234, full=True)
    start = random_cp((10, 10, 10), 3, random_state=5)
    for iterations in (1, 2, 25):
        theirs = parafac(x, 3, n_iter_max=iterations, init=start, tol=0)
        ours = td.cpals(x, 3, init=start, max_iters=iterations, tol=0)
        np.testing.assert_allclose(ours.full(), tl.cp_to_tensor(theirs), rtol=0, atol=1e-10)
        assert ours.score(theirs).score == pytest.approx(1, abs=1e-6)
    assert td.cpals(x, 3, init="nvecs", tol=1e-12, max_iters=2000).report.fit > 0.999


def test_the_sparse_tensor_of_tensorlys_guide(tl):
    """Its page on the sparse backend: a sparse tensor of rank 5 made of sparse factors, 1000 x 1001 x 1002."""
    sparse = pytest.importorskip("sparse")
    factors = [sparse.random((n, 5), 0.01, random_state=n).todense() for n in (1000, 1001, 1002)]
    terms = [np.ix_(*(np.flatnonzero(f[:, r]) for f in factors)) for r in range(5)]
    dense = {}
    for r, term in enumerate(terms):
        for where in np.stack([i.ravel() for i in np.meshgrid(*(t.ravel() for t in term), indexing="ij")], 1):
            dense[tuple(where)] = dense.get(tuple(where), 0) + np.prod([f[i, r] for f, i in zip(factors, where)])
    x = sparse.COO(np.array(list(dense)).T, np.array(list(dense.values())), shape=(1000, 1001, 1002))
    model = td.cpals(x, 5, init="nvecs", tol=1e-8, max_iters=200)  # its components hardly overlap: random starts get stuck
    assert model.report.fit > 0.999 and model.score((None, factors)).score > 0.99


# ---- pyttb -----------------------------------------------------------------------------------------------------------


def cp_als(input_tensor, rank, stoptol=1e-4, maxiters=1000, dimorder=None, init="random", printitn=1, fixsigns=True):
    """pyttb's cp_als by td."""
    import pyttb as ttb

    order = np.arange(input_tensor.ndims) if dimorder is None else np.array(dimorder)
    if isinstance(init, str) and init == "random":
        init = ttb.ktensor([np.random.uniform(size=(n, rank)) for n in input_tensor.shape])
    lines = ["CP_ALS:"]

    def show(report):
        if printitn and (report.iterations - 1) % printitn == 0:
            lines.append(f" Iter {report.iterations - 1}: f = {report.fit:e} f-delta = {report.fit_change:e}")

    model = td.cpals(input_tensor, rank, tol=stoptol, max_iters=maxiters, mode_order=order, init=init, progress=show,
                     fixsigns=fixsigns)
    if printitn:
        print("\n".join([*lines, f" Final f = {model.report.fit:e}"]))
    params = {"stoptol": stoptol, "maxiters": maxiters, "dimorder": order, "optdims": order, "printitn": printitn,
              "fixsigns": fixsigns}
    return model.to_pyttb(), init, {"params": params, "fit": model.report.fit}


def test_pyttbs_own_documentation(ttb):
    """The examples in the documentation of its cp_als, with ours in its place: what they print is compared by doctest."""
    ours = types.SimpleNamespace(**{name: getattr(ttb, name) for name in dir(ttb) if not name.startswith("__")})
    ours.cp_als = cp_als
    examples = doctest.DocTestParser().get_doctest(ttb.cp_als.__doc__, {"ttb": ours, "np": np}, "cp_als", None, 0)
    assert len(examples.examples) >= 8
    said = []
    ran = doctest.DocTestRunner().run(examples, out=said.append)
    assert ran.failed == 0, "".join(said)


@pytest.mark.parametrize("sparse", [True, False])
def test_the_same_run_as_pyttbs(ttb, sparse):
    """Its tutorial's sparse tensor with 10 nonzeros, and a dense one, from the same start: the same fit, to the digits that
    rounding leaves."""
    np.random.seed(1)
    x = ttb.sptenrand((5, 4, 3), nonzeros=10) if sparse else ttb.tenrand((5, 4, 3))
    theirs, start, told = ttb.cp_als(x, 2, maxiters=10, printitn=0)
    ours = td.cpals(x, 2, init=start, max_iters=10)
    assert ours.report.fit == pytest.approx(told["fit"], abs=1e-12) and ours.report.iterations == told["iters"] + 1
    assert ours.score(theirs).score == pytest.approx(1, abs=1e-9)
    assert td.tensor(x).is_sparse == sparse
    np.testing.assert_allclose(ours.to_pyttb().full().double(), ours.full(), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(td.mttkrp(x, start, 1), x.mttkrp(start.factor_matrices, 1), rtol=1e-13)
