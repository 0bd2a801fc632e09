"""Runs: options, progress, plans, errors, threads."""
import io
import logging
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest

import td


def test_a_run(planted):
    truth, x = planted
    model = td.cpals(x, 2, tol=1e-10, max_iters=500, seed=1)
    assert model.report.fit > 0.999 and model.score(truth).score > 0.99
    assert model.report.stop_reason == "tol" and model.report["seconds.mttkrp"] >= 0
    assert len(model.report.series("fit")) == model.report.iterations
    assert abs(model.fit(x).fit - model.report.fit) < 1e-9
    assert "fit" in dir(model.report)
    with pytest.raises(AttributeError, match="did you mean 'fit'"):
        model.report.fitt
    with pytest.raises(KeyError):
        model.report["nothing like it"]


def test_a_run_says_that_its_fit_creeps():
    i = np.arange(1, 7.0)
    report = td.cpals(np.sin(np.einsum("i,j,k->ijk", i, i, i)), 4).report
    assert report.stop_reason == "tol" and report.fit_growth > 1e-4
    assert "the fit still grew by" in report.creeping and report.creeping in repr(report)
    assert "grew by" in pickle.loads(pickle.dumps(report)).creeping
    settled = td.cpals(np.ones((4, 3, 2)), 1).report
    assert settled.stop_reason == "tol" and settled.fit_growth < 1e-4
    assert settled.creeping == "" and repr(settled).endswith("stopped by tol>")


def test_options_come_from_the_table(planted):
    x = planted[1]
    names = {o.name for o in td.options("cpals")}
    assert {"tol", "max_iters", "seed"} <= names < {o.name for o in td.options()}
    model = td.cpals(x, 2, max_iters=np.int64(3), tol=np.float32(0), arrange=True, deterministic=np.bool_(True),
                     mode_order=[2, 0, 1], seed=None, format=None, groups="none")
    assert model.report.iterations == 3
    assert td.cpals(x, 2, mode_order=np.array([2, 0, 1]), max_iters=3, tol=0) == td.cpals(x, 2, mode_order="2,0,1",
                                                                                       max_iters=3, tol=0)
    sparse = td.sparse_tensor(np.indices((2, 3, 4, 5)).reshape(4, -1), np.arange(120.0), groups=((0, 1), 2, (3,)))
    assert sparse["groups"] == "0,1|2|3"


@pytest.mark.parametrize("keywords, error, text", [
    ({"max_itres": 5}, td.OptionUnknownError, "max_iters"),
    ({"max_itres": None}, TypeError, "max_iters"),
    ({"progres": True}, TypeError, "did you mean 'progress'"),
    ({"threads": 1}, TypeError, "keyword of td.Context"),
    ({"tol": -1}, td.OptionRangeError, "tol"),
    ({"max_iters": 2**70}, ValueError, "max_iters"),
    ({"tol": {}}, TypeError, "tol: a dict"),
    ({"max_iters": 1.5}, td.OptionRangeError, "max_iters"),
    ({"init": "nvec"}, td.OptionRangeError, "nvecs"),
    ({"init": 3}, TypeError, "a int"),
    ({"context": 3}, TypeError, "context: a int"),
    ({"interrupt": "never"}, ValueError, "never"),
    ({"progress": "bar"}, TypeError, "'bar'"),
    ({"resume": "/nowhere/at/all"}, td.FileError, "nowhere"),
    ({"init": "random\0ly"}, ValueError, r"init: 'random\\x00ly', expected text without a NUL"),
    ({"mode_order": ["0\0", 1, 2]}, ValueError, "mode_order: .* without a NUL"),
    ({"tol\0": 1}, ValueError, "keyword: .* without a NUL"),
    ({"context": "cpu\0"}, ValueError, "devices: .* without a NUL"),
])
def test_keywords_that_are_refused(planted, keywords, error, text):
    with pytest.raises(error, match=text):
        td.cpals(planted[1], 2, **keywords)


@pytest.mark.parametrize("rank, error", [(0, td.ShapeError), (2.5, TypeError), (2**64 + 2, ValueError), ("2", TypeError)])
def test_ranks_that_are_refused(planted, rank, error):
    with pytest.raises(error, match="rank"):
        td.cpals(planted[1], rank)


def test_errors_are_what_a_caller_expects():
    with pytest.raises(td.TdError) as told:
        td.cpals(np.ones((2, 2)), 0)
    assert told.value.status == -2 and told.value.name == "TD_ERR_SHAPE" and isinstance(told.value, ValueError)
    again = pickle.loads(pickle.dumps(told.value))
    assert type(again) is td.ShapeError and str(again) == str(told.value) and again.status == -2
    with pytest.raises(MemoryError, match="bytes"):
        td.cpals(np.ones((20, 20, 20)), 1000, context=td.Context("cpu", memory_limit=100000))
    with pytest.raises(td.ArgumentError, match="cpu:x"):
        td.Context("cpu:x")
    for error in (td.FileError("text", -50, "TD_ERR_IO"), td.HostMemoryError("text", -30, "TD_ERR_HOST_MEMORY")):
        assert str(error) == "text" and str(pickle.loads(pickle.dumps(error))) == "text"


def test_starts(planted):
    truth, x = planted
    for start in (truth, (truth.weights, truth.factors), (None, truth.factors)):
        assert td.cpals(x, 2, init=start, max_iters=2, tol=0).report.series("fit")[0] > 1 - 1e-7
    with pytest.raises(td.ShapeError):
        td.cpals(x, 3, init=truth)
    fixed = td.cpals(x, 2, init=truth, fixed_modes=[0], max_iters=2, arrange=0, fixsigns=0)
    assert fixed.report.fit > 1 - 1e-7


def test_progress_by_a_function(planted):
    x, seen = planted[1], []
    model = td.cpals(x, 2, tol=0, progress=lambda report: seen.append(report) or report.iterations == 3)
    assert model.report.iterations == 3 and model.report.stop_reason == "callback"
    assert [r.iterations for r in seen] == [1, 2, 3] and seen[1].fit == model.report.series("fit")[1]
    # A number is no wish to stop, whatever its truth.
    assert td.cpals(x, 2, tol=0, max_iters=5, progress=lambda report: report.fit).report.iterations == 5
    assert td.cpals(x, 2, tol=0, max_iters=5, progress=lambda report: np.bool_(True)).report.iterations == 1


def test_an_exception_of_progress_keeps_the_model(planted):
    def fail(report):
        if report.iterations == 4:
            raise ZeroDivisionError("four")

    with pytest.raises(ZeroDivisionError, match="four") as told:
        td.cpals(planted[1], 2, tol=0, progress=fail)
    assert told.value.model.report.iterations == 4
    assert any("4 iterations" in note for note in getattr(told.value, "__notes__", ["4 iterations"]))


def test_td_within_progress(planted):
    x, scores = planted[1], []
    td.cpals(x, 2, tol=0, max_iters=3, progress=lambda report: scores.append(td.cpals(x, 1, max_iters=2).report.fit))
    assert len(scores) == 3
    c = td.Context("cpu")
    with pytest.raises(RuntimeError, match="in use"):
        td.cpals(x, 2, context=c, progress=lambda report: td.cpals(x, 1, context=c))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, x, **keywords):
    monkeypatch.setattr(sys, "stderr", stream)
    td.cpals(x, 2, tol=0, max_iters=5, **keywords)
    return stream.getvalue()


def test_progress_that_is_shown(planted, monkeypatch):
    x = planted[1]
    line = shown(monkeypatch, Terminal(), x, progress="line")
    assert line.startswith("\rtd.cpals: iteration 1, fit 0.") and line.endswith("\n")
    assert shown(monkeypatch, Terminal(), x) == ""  # over before a person notices
    assert shown(monkeypatch, io.StringIO(), x) == shown(monkeypatch, Terminal(), x, progress=False) == ""
    monkeypatch.setattr(sys, "stderr", None)
    td.cpals(x, 2)
    for missing in (True, "tqdm"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "tqdm.auto", None)
            if missing == "tqdm":
                with pytest.raises(ImportError, match="tqdm"):
                    td.cpals(x, 2, progress="tqdm")
            else:
                assert "iteration 1" in shown(without, Terminal(), x, progress=True)


def test_tqdm(planted, monkeypatch):
    pytest.importorskip("tqdm")
    assert "td.cpals" in shown(monkeypatch, Terminal(), planted[1], progress="tqdm")


def test_plans(rng):
    p = td.plan((3000, 2000, 1000), 16, nnz=10**6, format="blco", context="cpu")
    assert p.format == "blco" and p.fits == 1 and p["host_bytes.peak"] > 10**6
    assert len(p.modes) == 3 and p.modes[1].dim == 2000 and sum(p.modes[0].load) == 10**6
    assert "blco" in str(p) and list(p.series("dims")) == [3000, 2000, 1000]
    assert td.plan((10**6, 10**6, 10**6), 16).fits == 0
    a = rng.random((4, 5, 6)).astype(np.float32)
    assert td.plan(a, 2)["host_bytes.tensor"] < td.plan(a.shape, 2)["host_bytes.tensor"]
    assert td.plan(td.tensor(a), 2).format == "dense"
    with pytest.raises(TypeError, match="keyword of td.tensor"):
        td.plan(td.tensor(a), 2, format="coo")
    with pytest.raises(AttributeError, match="formatt"):
        p.formatt


def test_plan_of_a_file_and_of_matrices(tmp_path):
    x = td.sparse_tensor([[0, 1], [0, 2], [1, 0]], [1.0, 2.0], (2, 3, 4))
    td.write(tmp_path / "x.tns", x)
    assert td.plan(tmp_path / "x.tns", 2, index_base=1)["nnz"] == 2
    sparse = pytest.importorskip("scipy.sparse")
    assert td.plan(sparse.eye(5), 2)["nnz"] == 5


def test_threads(planted):
    """Several at once, which share no context, and one context for all, which takes turns."""
    x, models = planted[1], []
    for context in ("cpu", td.Context("cpu", threads=1)):
        threads = [threading.Thread(target=lambda: models.append(td.cpals(x, 2, seed=1, context=context,
                                                                      deterministic=1))) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len(models) == 8 and all(m == models[0] for m in models)


def test_the_interpreter_is_free_during_a_run(rng):
    """Another thread counts while a run works, which it could not if the run held the interpreter's lock."""
    x, counted, done = td.tensor(rng.random((150, 150, 150))), [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    within = []
    td.cpals(x, 10, max_iters=3, tol=0, progress=lambda report: within.append(counted[0]), context=td.Context("cpu", threads=1))
    done.set()
    thread.join()
    assert within[1] > within[0] + 1000 or within[2] > within[1] + 1000


def fit_in_child(x):
    return td.cpals(x, 2, seed=1).report.fit


def test_fork(planted):
    x = planted[1]
    mine = fit_in_child(x)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(fit_in_child, [x, x]) == [pytest.approx(mine)] * 2


def test_the_log(tmp_path, caplog):
    path = tmp_path / "x.tns"
    path.write_text("1 1 1 2.5\n1 3 2 0.75\n4 2 1 1\n")
    with caplog.at_level(logging.DEBUG, "td"):
        assert td.read(path).shape == (4, 3, 2)
    assert "FROSTT" in caplog.text


def test_contexts():
    c = td.Context("cpu:2", threads=2)
    assert "2 workers" in repr(c)
    assert td.cpals(np.ones((4, 3, 2)), 1, context=c).report.workers == 2
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(c)
    with pytest.raises(td.UnsupportedError):
        c.set_stream(1)
    with pytest.raises(TypeError, match="devices: a int, expected text"):
        td.Context(5)
    assert td.has_feature("cpu") and not td.has_feature("cup")
    assert td.__version__ == td.library_version()
