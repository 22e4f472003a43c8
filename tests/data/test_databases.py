"""Each type of database: labels, sets, names and stimuli; what is refused."""

import gzip
import struct

import numpy as np
import pytest
from support.errors import error_line, error_of
from support.tables import every

from n2d2py import log
from n2d2py.data import read_database
from n2d2py.data.database.arrays import read_arrays
from n2d2py.data.input_data import InputData


@pytest.fixture
def read(ini, tmp_path, monkeypatch):
    """A function from a type and its keys, of paths in tmp_path, to the database, whose sets are in the order of the list."""
    monkeypatch.chdir(tmp_path)

    def made(kind, **keys):
        lines = (f"{name}={value}\n" for name, value in ({"RandomPartitioning": 0} | keys).items())
        return read_database(ini(f"[database]\nType={kind}_Database\n" + "".join(lines)), seed=1)

    return made


def _gray(value):
    return np.full((2, 2), value, np.uint8)


def _labelled(database, name="Test"):
    return [(database.items.name(index), database.label_names[database.labels[index]]) for index in database.sets[name]]


# --- DIR_Database


@pytest.fixture
def tree(tmp_path, picture):
    for name in ("root/b/2.png", "root/b/1.png", "root/a/x/deep.png", "root/a/0.png"):
        picture(name, _gray(1))
    (tmp_path / "root/a/notes.txt").write_text("no picture")
    (tmp_path / "root/.hidden.png").write_text("hidden")
    return tmp_path / "root"


@every(
    "options, expected",
    [
        ({}, [("a/0.png", "/a"), ("b/1.png", "/b"), ("b/2.png", "/b")]),
        ({"Depth": -1}, [("a/0.png", "/a"), ("a/x/deep.png", "/a"), ("b/1.png", "/b"), ("b/2.png", "/b")]),
        ({"Depth": 2, "LabelDepth": 2}, [("a/0.png", "/a"), ("a/x/deep.png", "/a/x"), ("b/1.png", "/b"), ("b/2.png", "/b")]),
        ({"LabelDepth": 0, "LabelName": "all"}, [("a/0.png", "all"), ("b/1.png", "all"), ("b/2.png", "all")]),
        ({"LabelName": "L"}, [("a/0.png", "L/a"), ("b/1.png", "L/b"), ("b/2.png", "L/b")]),
        ({"IgnoreMasks": "*/b/1.png */a/*.png"}, [("b/2.png", "/b")]),
        ({"IgnoreMasks": "*/2+ng"}, [("a/0.png", "/a"), ("b/1.png", "/b")]),
        ({"IgnoreMasks": "*/?.png", "Depth": -1}, [("a/x/deep.png", "/a")]),
        ({"IgnoreMasks": "*oot/a"}, [("b/1.png", "/b"), ("b/2.png", "/b")]),
        ({"IgnoreMasks": "*/x", "Depth": -1}, [("a/0.png", "/a"), ("b/1.png", "/b"), ("b/2.png", "/b")]),
    ],
)
def test_directory_options(tree, read, options, expected):
    assert _labelled(read("DIR", DataPath="root", **options)) == expected


@pytest.mark.parametrize("mask", ["b", "b/1.png", "*/B", "*/b/"])
def test_a_mask_is_compared_with_whole_paths(tree, read, mask):
    """As in N2D2; a mask that matches nothing is said."""
    assert len(_labelled(read("DIR", DataPath="root", IgnoreMasks=mask))) == 3
    assert [one.code for one in log.warnings_seen()] == ["W413"]


def test_directory_without_labels(tree, read):
    database = read("DIR", DataPath="root", LabelDepth=-1)
    assert database.labels.tolist() == [-1, -1, -1] and database.label_names == ()


def test_directory_extensions(tree, picture, read):
    picture("root/a/9.bmp", _gray(3))
    assert _labelled(read("DIR", DataPath="root", ValidExtensions="BMP")) == [("a/9.bmp", "/a")]
    assert "E416" in error_line(read, "DIR", DataPath="root", ValidExtensions="jpg")


def test_files_beside_labelled_folders_are_a_warning(tree, picture, read):
    picture("root/stray.png", _gray(0))
    read("DIR", DataPath="root")
    assert [(one.code, "stray.png" in one.what) for one in log.warnings_seen()] == [("W404", True)]


def test_directory_from_an_ini_with_more_folders(ini, tree, picture):
    picture("more/a/7.png", _gray(2))
    picture("more/c/8.png", _gray(2))
    database = read_database(
        ini(
            "[database]\nType=DIR_Database\nDataPath=root\nLearn=0.5\n"
            "EquivLabelPartitioning=0\nRandomPartitioning=0\n"
            "LoadMore=database.more\nLabelDepth=1\n\n"
            "[database.more]\nDataPath=more\nLearn=0\nTest=1\n"
            "RandomPartitioning=0\n"
        )
    )
    assert database.label_names == ("/a", "/b", "/c")
    assert _labelled(database, "Learn") == [("a/0.png", "/a"), ("b/1.png", "/b")]
    assert _labelled(database) == [("b/2.png", "/b"), ("a/7.png", "/a"), ("c/8.png", "/c")]
    assert log.warnings_seen() == ()


def test_a_circular_chain_of_folders(ini, tree):
    document = ini("[database]\nType=DIR_Database\nDataPath=root\nLoadMore=more\n\n[more]\nDataPath=root\nLoadMore=database\n")
    assert "N2D2-E419: " in error_line(lambda: read_database(document))


# --- IDX


def _idx(path, array, compress=False):
    data = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(data) if not compress else gzip.open(path, "wb").write(data)


@pytest.fixture(params=[False, True], ids=["plain", "gz"])
def idx_folder(tmp_path, request):
    images = np.arange(10 * 6, dtype=np.uint8).reshape(10, 2, 3)
    for prefix, count in (("train", 10), ("t10k", 4)):
        for kind, data in (("images-idx3", images[:count]), ("labels-idx1", np.arange(count, dtype=np.uint8))):
            suffix = ".gz" if request.param else ""
            _idx(tmp_path / f"{prefix}-{kind}-ubyte{suffix}", data, request.param)
    return tmp_path


def test_idx(idx_folder, read):
    database = read("MNIST_IDX", DataPath=".", Validation=0.3, RandomPartitioning=1)
    assert database.sizes() == {"Learn": 7, "Validation": 3, "Test": 4}
    last = database.sets["Test"][-1]
    assert database.items.name(last) == "t10k-images-idx3-ubyte[3]" and database.labels[last] == 3
    assert database.items.read(last)[:, :, 0].tolist() == [[18, 19, 20], [21, 22, 23]]
    assert database.label_names == tuple("0123456789")


def test_idx_damages(idx_folder, read):
    path = next(idx_folder.glob("t10k-images*"))
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    line = error_line(read, "MNIST_IDX", DataPath=".")
    assert line.startswith("N2D2-E402: ") and path.name in line
    path.write_bytes(b"")
    assert "E402" in error_line(read, "MNIST_IDX", DataPath=".")
    path.unlink()
    assert f"{path.name.removesuffix('.gz')}.gz" in error_line(read, "MNIST_IDX", DataPath=".")


def test_idx_says_what_is_declared(tmp_path, idx_folder, read):
    _idx(tmp_path / "t10k-images-idx3-ubyte", np.zeros((2, 2, 2), np.uint8))
    assert "contains 2 stimuli, but t10k-labels-idx1-ubyte" in error_line(read, "MNIST_IDX", DataPath=".")
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes() + b"x")
    assert "2x2x2 = 8 bytes" in error_line(read, "MNIST_IDX", DataPath=".")


# --- CIFAR


def _cifar(path, labels, label_bytes=1):
    planes = np.repeat([10, 20, 30], 1024)  # red, green, blue
    rows = [np.concatenate([np.full(label_bytes, label), planes]) for label in labels]
    path.write_bytes(np.array(rows, np.uint8).tobytes())


def test_cifar(tmp_path, read):
    _cifar(tmp_path / "data_batch_1.bin", [1, 0, 1, 0])
    _cifar(tmp_path / "test_batch.bin", [1, 0])
    (tmp_path / "batches.meta.txt").write_text("plane\ncar\n\n")
    database = read("CIFAR10", DataPath=".", Validation=0.25, UseTestForValidation=1)
    assert database.sizes() == {"Learn": 3, "Validation": 3, "Test": 2}
    assert _labelled(database) == [("test_batch.bin[0]", "car"), ("test_batch.bin[1]", "plane")]
    assert database.items.read(4)[0, 0].tolist() == [30, 20, 10]  # blue first


def test_cifar_100_labels(tmp_path, read):
    _cifar(tmp_path / "test.bin", [1], label_bytes=2)
    for name, first in (("coarse", "fish"), ("fine", "apple")):
        (tmp_path / f"{name}_label_names.txt").write_text(f"{first}\n{name}\n")
    for coarse, name in enumerate(("fine", "coarse")):
        assert _labelled(read("CIFAR100", DataPath=".", UseCoarse=coarse)) == [("test.bin[0]", name)]


def test_cifar_damages(tmp_path, read):
    (tmp_path / "test_batch.bin").write_bytes(b"12345")
    assert "test_batch.bin has 5 bytes" in error_line(read, "CIFAR10", DataPath=".")
    (tmp_path / "test_batch.bin").unlink()
    assert "N2D2-E401: " in error_line(read, "CIFAR10", DataPath=".")


# --- ILSVRC2012


@pytest.fixture
def imagenet(tmp_path, picture):
    for name in ("train/n01/b.png", "train/n01/a.png", "train/n02/c.png", "val/v1.png", "val/v2.png"):
        picture(name, _gray(1))
    (tmp_path / "synsets.txt").write_text("n02 second thing\nn01 first thing\n")
    (tmp_path / "val.txt").write_text("v1.png 1\nv2.png 0\n")
    return tmp_path


def test_ilsvrc(imagenet, read):
    database = read("ILSVRC2012", DataPath=".", LabelPath="synsets.txt")
    assert _labelled(database) == [("val/v1.png", "n01 first thing"), ("val/v2.png", "n02 second thing")]
    assert database.sets["Validation"].tolist() == database.sets["Test"].tolist()
    assert sorted(_labelled(database, "Learn"))[0] == ("train/n01/a.png", "n01 first thing")


def test_ilsvrc_background_shifts_the_labels(imagenet, read):
    database = read("ILSVRC2012", DataPath=".", LabelPath="synsets.txt", BackgroundClass=1, UseValidationForTest=0)
    assert database.label_names[0] == "background" and database.sizes()["Test"] == 0
    assert database.labels[database.sets["Validation"]].tolist() == [2, 1]


def test_ilsvrc_labels_out_of_range(imagenet, read):
    (imagenet / "val.txt").write_text("v1.png 1\nv2.png 2\n")
    line = error_line(read, "ILSVRC2012", DataPath=".", LabelPath="synsets.txt")
    assert "'v2.png 2' is not 'file label' with a label from 0 to 1" in line


# --- CSV_Database


def test_csv(tmp_path, read):
    (tmp_path / "t.csv").write_text("a;b;label\n1;2;0\n3;4.5;2\n")
    database = read("CSV", DataPath="t.csv", NbHeaderLines=1)
    assert database.items.read(1).reshape(-1).tolist() == [3, 4.5]
    assert database.labels.tolist() == [0, 2] and database.label_names == ("0", "1", "2")


def test_csv_with_names_in_the_first_column(tmp_path, read):
    (tmp_path / "t.csv").write_text("cat, 1, 2\ndog, 3, 4\ncat, 5, 6\n")
    database = read("CSV", DataPath="t.csv", LabelColumn=0, Learn=0, Validation=0)
    assert _labelled(database) == [("t.csv[0]", "cat"), ("t.csv[1]", "dog"), ("t.csv[2]", "cat")]
    assert database.items.read(2).tolist() == [[[5.0], [6.0]]]


def test_csv_errors_come_together(tmp_path, read):
    (tmp_path / "t.csv").write_text("1,2,0\n1,x,0\n1,0\n")
    lines = [one.line() for one in error_of(read, "CSV", DataPath="t.csv").errors]
    assert "t.csv:2: could not convert string to float: 'x'" in lines[0]
    assert "t.csv:3: a row of 2 columns, the first one has 3" in lines[1]
    assert "LabelColumn=3" in error_line(read, "CSV", DataPath="t.csv", LabelColumn=3)
    assert "E416" in error_line(read, "CSV", DataPath="t.csv", NbHeaderLines=9)


# --- Numpy_Database


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy(tmp_path, save, read):
    x = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
    save(tmp_path / "d.npz", x=x, y=[1, 0], labels=["no", "yes"])
    database = read("Numpy", DataPath="d.npz")
    np.testing.assert_array_equal(database.items.read(1), x[1].transpose(1, 2, 0))
    assert _labelled(database) == [("d.npz[0]", "yes"), ("d.npz[1]", "no")]


def test_numpy_stored_without_compression_is_mapped(tmp_path, read):
    np.savez(tmp_path / "d.npz", x=np.ones((4, 2, 2), np.float64), y=np.zeros(4))
    database = read("Numpy", DataPath="d.npz")
    assert isinstance(read_arrays(InputData(tmp_path / "d.npz"))[0], np.memmap)
    assert database.items.read(0).dtype == np.float32


@every("kind", ["int64", "uint32", "uint64", ">i8"])
def test_numpy_with_wide_integers(tmp_path, kind, read):
    """NumPy gives ids 64 bits; those that 32 bits hold are taken, others are not cut."""
    np.savez(tmp_path / "d.npz", x=np.array([[0, 7, 2**31 - 1], [1, 2, 2**31]]).astype(kind))
    items = read("Numpy", DataPath="d.npz").items
    assert items.read(0).dtype == np.int32
    assert items.read(0).reshape(-1).tolist() == [0, 7, 2**31 - 1]
    assert "E414" in error_line(items.read, 1)


def test_numpy_without_labels(tmp_path, read):
    np.save(tmp_path / "d.npy", np.zeros((3, 7), np.float32))
    database = read("Numpy", DataPath="d.npy")
    assert database.labels.tolist() == [-1] * 3 and database.items.read(0).shape == (1, 7, 1)


@pytest.mark.parametrize("name", ["d.npz", "d.npy"])
def test_numpy_damages(tmp_path, name, read):
    path = tmp_path / name
    (np.save if name == "d.npy" else np.savez)(path, np.zeros((20, 30), np.float32))
    data = path.read_bytes()
    for damaged in (b"", data[:40], data[:-1500], b"junk" * 100):
        path.write_bytes(damaged)
        assert error_line(read, "Numpy", DataPath=name).startswith("N2D2-E402: ")


# --- List_Database


def test_list(tmp_path, picture, read):
    for name in ("i/a b.png", "i/c.png", "i/v.png"):
        picture(name, _gray(0))
    (tmp_path / "test.txt").write_text("a b.png 1\n# comment\nc.png 0\n")
    (tmp_path / "valid.txt").write_text("v.png 1\n")
    (tmp_path / "names.txt").write_text("no\nyes\nperhaps\n")
    database = read("List", DataPath="i", LabelPath="test.txt", ValidationPath="valid.txt", LabelNamesPath="names.txt")
    assert _labelled(database) == [("a b.png", "yes"), ("c.png", "no")]
    assert _labelled(database, "Validation") == [("v.png", "yes")]
    assert database.label_names == ("no", "yes", "perhaps")


def test_list_refusals(tmp_path, read):
    (tmp_path / "l.txt").write_text("gone.png 1\nonly\n")
    lines = [one.line() for one in error_of(read, "List", DataPath=".", LabelPath="l.txt").errors]
    assert "E401" in lines[0] and "l.txt:1: gone.png does not exist in" in lines[0]
    assert "E410" in lines[1] and "'only' is not 'file label'" in lines[1]


# --- Random_Database, the registry, [database]


def test_random_is_a_function_of_the_seed(ini):
    document = ini("[database]\nType=Random_Database\nNbStimuli=5\nNbLabels=2\nSize=4 3 2\n")
    first, again, other = (read_database(document, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.items.read(3), again.items.read(3))
    assert not np.array_equal(first.items.read(3), other.items.read(3))
    assert not np.array_equal(first.items.read(3), first.items.read(4))
    assert first.items.read(0).shape == (3, 4, 2) and first.labels.tolist() == [0, 1, 0, 1, 0]


def test_random_of_an_ini_warns_and_has_the_size_of_the_input(ini):
    document = ini("[database]\nType=Random_Database\nNbStimuli=7\nNbLabels=3\n")
    database = read_database(document, seed=1, shape=(3, 5, 4))
    assert database.items.read(0).shape == (5, 4, 3) and database.sizes()["Test"] == 7
    assert [one.code for one in log.warnings_seen()] == ["W402"]


def test_no_database_is_an_empty_one_with_a_warning(ini):
    database = read_database(ini("[sp]\nSizeX=1\n"))
    assert database.sizes() == {"Learn": 0, "Validation": 0, "Test": 0}
    assert [one.code for one in log.warnings_seen()] == ["W401"]


def test_the_default_path_is_under_n2d2_data(ini, monkeypatch, tmp_path):
    monkeypatch.setenv("N2D2_DATA", str(tmp_path))
    document = ini("[database]\nType=MNIST_IDX_Database\n")
    assert f"DataPath={tmp_path}/mnist does not exist" in error_line(lambda: read_database(document))


def test_text_files_are_stimuli_where_there_are_no_others(tmp_path, read):
    """As N2D2's CsvDataFile: commas, semicolons, blanks and tabs separate, # begins a comment."""
    for label in "ab":
        (tmp_path / "root" / label).mkdir(parents=True)
    (tmp_path / "root/a/0.csv").write_text("# two rows\n1, 2.5;3\n\n4 5\t-6e1 # the last\n")
    (tmp_path / "root/b/1.dat").write_text("7\n")
    (tmp_path / "root/b/2.txt").write_text("8,9")
    database = read("DIR", DataPath="root")
    assert _labelled(database) == [("a/0.csv", "/a"), ("b/1.dat", "/b"), ("b/2.txt", "/b")]
    assert database.items.read(0).tolist() == [[[1], [2.5], [3]], [[4], [5], [-60]]]
    assert database.items.read(2).shape == (1, 2, 1)
    assert _labelled(read("DIR", DataPath="root", ValidExtensions="dat")) == [("b/1.dat", "/b")]
    for text, what in (("1 2\n3", "line 2 has 1 numbers"), ("1 x", "line 1 does not hold numbers"), ("# none", "no numbers")):
        (tmp_path / "root/a/0.csv").write_text(text)
        assert what in error_line(lambda: database.items.read(0))


def test_channels_in_files_of_their_own(ini, picture, tmp_path):
    """N2D2's MultiChannelMatch and MultiChannelReplace; an absent channel is 0."""
    for name, value in (("a/x_0", 1), ("a/x_1", 2), ("b/y_0", 3), ("b/alone", 9)):
        picture(f"root/{name}.png", _gray(value))
    text = "[database]\nType=DIR_Database\nDataPath=root\nMultiChannelMatch=(.*)_0(\\.[^.]+)\nMultiChannelReplace=$1_0$2 $1_1$2\nRandomPartitioning=0\n"
    database = read_database(ini(text))
    assert _labelled(database) == [("a/x_0.png", "/a"), ("b/y_0.png", "/b")]
    assert database.items.read(0)[0, 0].tolist() == [1, 2] and database.items.read(1)[0, 0].tolist() == [3, 0]
    for wrong in ("MultiChannelMatch=(.*", "MultiChannelReplace=$3_0"):
        key = wrong.split("=")[0]
        changed = "\n".join(wrong if line.startswith(key) else line for line in text.splitlines())
        assert "N2D2-E109" in error_line(lambda changed=changed: read_database(ini(changed)))
