"""Names of modes and labels of indices: from tables, set, through runs, files and pickles, and out again as tables."""
import gzip
import pickle

import numpy as np
import pytest

import td

LINES = """who,what,when,count
ann,tea,2024-01-05,2
b\u00f6b,"cake, big",2024-02-01,1
ann,tea,2024-01-09,3
b\u00f6b,tea,2024-02-02,4
"""
COLUMNS = {"columns": "who,what,when:%Y-%m", "value": "count"}
LABELS = [["ann", "b\u00f6b"], ["cake, big", "tea"], ["2024-01", "2024-02"]]
NAMES = ["who", "what", "when"]


def has_labels(x):
    return x.labels == LABELS and x.mode_names == NAMES


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "buys.csv"
    file.write_text(LINES, encoding="utf-8")
    return file


def test_a_table_becomes_a_tensor(path, tmp_path):
    x = td.read(path, **COLUMNS)
    assert has_labels(x) and x.shape == (2, 2, 2) and x.nnz == 3
    expected = np.zeros((2, 2, 2))
    expected[0, 1, 0], expected[1, 0, 1], expected[1, 1, 1] = 5, 1, 4
    np.testing.assert_array_equal(x.to_numpy(), expected)
    zipped = tmp_path / "buys.csv.gz"
    zipped.write_bytes(gzip.compress(LINES.encode()))
    assert has_labels(td.read(zipped, **COLUMNS))
    with pytest.raises(td.OptionRangeError, match="no column 'how'; the first line names who"):
        td.read(path, columns="who,how")
    path.write_text("a,b\n1\n", encoding="utf-8")
    with pytest.raises(td.FileError, match="line 2: has 1 field, expected 2"):
        td.read(path, columns="a,b")


def test_labels_go_with_models_files_and_pickles(path, tmp_path):
    x = td.read(path, **COLUMNS)
    model = td.cpals(x, 2, seed=1)
    assert has_labels(model) and has_labels(model.arrange()) and has_labels(td.cpals(path, 1, **COLUMNS))
    td.write(tmp_path / "x.tdb", x)
    td.write(tmp_path / "model.tdb", model)
    assert has_labels(td.read(tmp_path / "x.tdb")) and has_labels(td.read_ktensor(tmp_path / "model.tdb"))
    assert has_labels(pickle.loads(pickle.dumps(x))) and has_labels(pickle.loads(pickle.dumps(model)))
    assert has_labels(td.cpals(x.to_numpy(), 2, init=model))
    assert td.cpals(x.to_numpy(), 2).labels == [None] * 3


def test_labels_are_set(rng):
    x = td.tensor(rng.random((2, 3)))
    assert x.labels == [None, None] and x.mode_names == ["", ""]
    x.labels, x.mode_names = [None, (1, 2.5, "\u00e9")], ["row", None]
    assert x.labels == [None, ["1", "2.5", "\u00e9"]] and x.mode_names == ["row", ""]
    x.labels = None
    assert x.labels == [None, None]
    for wrong, why in (([None], "labels for 1 modes: expected 2"), ([None, "ab"], "2 labels of mode 1: expected 3"),
                       ([None, ["a", "b\0", "c"]], "holds a NUL")):
        with pytest.raises(ValueError, match=why):
            x.labels = wrong
        with pytest.raises(ValueError, match=why):
            td.KTensor(None, [np.ones((2, 1)), np.ones((3, 1))], labels=wrong)
    with pytest.raises(ValueError, match="names of 1 modes: expected 2"):
        x.mode_names = ["a"]


def test_what_leads():
    k = td.KTensor([3.0, 1.0], [[[0.6, 0], [-0.8, 0], [0.1, 0]], [[1, 2], [1, 3]]], labels=[["a", "b", "c"], None],
                   mode_names=["letter", ""])
    table = k.leading(2)
    assert list(zip(*table.values())) == [
        (0, 3.0, 0, "letter", 1, "b", -0.8), (0, 3.0, 0, "letter", 0, "a", 0.6), (0, 3.0, 1, "", 0, 0, 1.0),
        (0, 3.0, 1, "", 1, 1, 1.0), (1, 1.0, 1, "", 1, 1, 3.0), (1, 1.0, 1, "", 0, 0, 2.0)]
    assert all(column == [] for column in k.leading(0).values())
    assert list(k.table(0)) == ["letter", 0, 1] and list(k.table(-1)) == ["index", 0, 1]
    assert k.table(0)["letter"] == ["a", "b", "c"] and k.table(1)["index"] == [0, 1]
    np.testing.assert_array_equal(k.table(1)[1], [2, 3])
    with pytest.raises(ValueError, match="mode 2: expected -2 to 1"):
        k.table(2)


def test_tables_are_data_frames():
    pandas = pytest.importorskip("pandas")
    k = td.KTensor([3.0], [[[0.6], [-0.8]], [[1]]], labels=[["a", "b"], None], mode_names=["letter", ""])
    frame = pandas.DataFrame(k.table(0))
    assert frame.shape == (2, 2) and list(frame["letter"]) == ["a", "b"]
    assert list(pandas.DataFrame(k.leading())["label"]) == ["b", "a", 0]


def test_a_plot_has_the_labels():
    pytest.importorskip("matplotlib").use("Agg")
    k = td.KTensor([3.0], [[[0.6], [-0.8]], [[1]]], labels=[["a", "b"], None], mode_names=["letter", ""])
    axes = k.plot().axes
    assert [t.get_text() for t in axes[0].get_xticklabels()] == ["a", "b"]
    assert [a.get_title() for a in axes] == ["letter", "mode 1"]
