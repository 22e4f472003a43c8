"""[database.slicing]: tiles of images; GTSRB and Caltech folders."""

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py.data import build_provider, read_database
from n2d2py.data.database.selection import tiles

DATABASE = "[database]\nType=DIR_Database\nDataPath=data\nRandomPartitioning=0\n"
SLICING = "[database.slicing]\nWidth=2\nHeight=2\nStrideX=2\nStrideY=2\nRandomShuffle=0\n"


@every(
    "how, expected",
    [
        ((5, 2, 2, 2, 2, 2), [(0, 0, 2, 2), (2, 0, 2, 2), (4, 0, 1, 2)]),
        ((5, 2, 2, 2, 2, 2, True), [(0, 0, 2, 2), (2, 0, 2, 2), (3, 0, 2, 2)]),
        ((3, 3, 2, 2, 1, 2), [(0, 0, 2, 2), (0, 2, 2, 1), (1, 0, 2, 2), (1, 2, 2, 1), (2, 0, 1, 2), (2, 2, 1, 1)]),
        ((1, 3, 2, 2, 2, 2, True), [(0, 0, 1, 2), (0, 1, 1, 2)]),
    ],
)
def test_tiles(how, expected):
    assert tiles(*how) == expected


@pytest.fixture
def pictures(picture):
    picture("data/a/0.png", np.arange(8).reshape(2, 4))
    picture("data/b/1.png", np.arange(8, 16).reshape(2, 4))


def test_a_tile_has_the_label_of_its_image(ini, pictures):
    provider = build_provider(ini(DATABASE + SLICING + "[sp]\nSizeX=2\nSizeY=2\n"))
    ((x, labels, names),) = provider.stimuli("Test").batches(8)
    assert names == ["a/0.png[0,0]", "a/0.png[2,0]", "b/1.png[0,0]", "b/1.png[2,0]"]
    assert labels.tolist() == [0, 0, 1, 1]
    assert np.rint(x[3, 0] * 255).tolist() == [[10, 11], [14, 15]]


def test_other_sets_keep_their_images(ini, pictures, picture):
    for index in range(2, 6):
        picture(f"data/a/{index}.png", np.zeros((2, 4)))
    database = read_database(ini(DATABASE + "Learn=0.5\nPerLabelPartitioning=0\n" + SLICING + "ApplyTo=NoLearn\n"))
    assert database.sizes() == {"Learn": 3, "Validation": 0, "Test": 6}
    first = int(database.sets["Learn"][0])
    assert database.items.name(first) == "a/0.png" and database.items.read(first).shape == (2, 4, 1)


def test_tiles_are_shuffled_by_the_seed(ini, pictures):
    text = DATABASE + SLICING.replace("RandomShuffle=0\n", "")
    orders = [read_database(ini(text), seed=seed).sets["Test"].tolist() for seed in (1, 1, 4)]
    assert orders[0] == orders[1] != orders[2] and sorted(orders[2]) == [0, 1, 2, 3]


def test_tiles_of_arrays(ini, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.arange(16, dtype=np.uint8).reshape(2, 2, 4), y=[0, 1])
    database = read_database(ini("[database]\nType=Numpy_Database\nDataPath=d.npz\nRandomPartitioning=0\n" + SLICING))
    assert database.items.read(3)[:, :, 0].tolist() == [[10, 11], [14, 15]]


def test_slicing_errors(ini, pictures, tmp_path):
    assert "StrideX" in error_line(lambda: read_database(ini(DATABASE + SLICING.replace("StrideX=2\n", ""))))
    (tmp_path / "data/b/1.png").write_text("no picture")
    assert "E403: b/1.png is not a" in error_line(lambda: read_database(ini(DATABASE + SLICING)))


# --- GTSRB


@pytest.fixture
def signs(tmp_path, picture):
    for name in (
        *"Final_Training/Images/00000/1 Final_Training/Images/00002/1 Final_Training/Images/00002/2".split(),
        *"Final_Test/Images/10 Final_Test/Images/11".split(),
    ):
        picture(f"gtsrb/{name}.ppm", np.zeros((2, 2, 3)))
    (tmp_path / "gtsrb/Final_Training/Images/00002/GT-00002.csv").write_text("Filename;ClassId\n")
    (tmp_path / "gtsrb/GT-final_test.csv").write_text("Filename;Width;ClassId\r\n11.ppm;2;1\r\n10.ppm;2;2\r\n")
    return tmp_path / "gtsrb"


GTSRB = "[database]\nType=GTSRB_DIR_Database\nDataPath=gtsrb\nRandomPartitioning=0\n"


def test_traffic_signs(ini, signs):
    database = read_database(ini(GTSRB + "Validation=0.5\n"))
    assert database.label_names == ("0", "1", "2")
    named = {
        name: [(database.items.name(index).rsplit("Images/")[1], int(database.labels[index])) for index in positions]
        for name, positions in database.sets.items()
    }
    assert named["Learn"] == [("00000/1.ppm", 0), ("00002/1.ppm", 2)]
    assert named["Validation"] == [("00002/2.ppm", 2)]
    assert named["Test"] == [("11.ppm", 1), ("10.ppm", 2)]
    assert database.items.read(4).shape == (2, 2, 3)


@pytest.mark.parametrize(
    "table, message",
    [
        ("Filename;Width\n", "E410: {}/GT-final_test.csv has no columns ClassId"),
        ("Filename;ClassId\n10.ppm;x\n", "E410: {}/GT-final_test.csv:2: '10.ppm;x' is not a line of 2"),
        ("Filename;ClassId\n12.ppm;1\n", "E401: {}/GT-final_test.csv:2: 12.ppm does not exist"),
    ],
)
def test_damaged_tables(ini, signs, table, message):
    (signs / "GT-final_test.csv").write_text(table)
    assert message.replace("{}", str(signs)) in error_line(lambda: read_database(ini(GTSRB)))


def test_signs_cut_out(ini, signs, picture):
    """ExtractROIs: both corners of the box are part of the sign."""
    for number, (name, box) in enumerate({"00000/1": (0, 0, 0, 1), "00002/1": (1, 0, 1, 0), "00002/2": (0, 1, 1, 1)}.items()):
        folder, file = name.split("/")
        picture(f"gtsrb/Final_Training/Images/{name}.ppm", np.arange(12).reshape(2, 2, 3) + 20 * number)
        table = signs / f"Final_Training/Images/{folder}/GT-{folder}.csv"
        head = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\r\n"
        old = table.read_text() if file == "2" else head
        table.write_text(old + f"{file}.ppm;2;2;{';'.join(map(str, box))};0\r\n")
    (signs / "GT-final_test.csv").write_text("Filename;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n10.ppm;0;0;0;0;2\n")
    database = read_database(ini(GTSRB + "ExtractROIs=1\n"))
    assert [database.items.read(index).shape for index in range(4)] == [(2, 1, 3), (1, 1, 3), (1, 2, 3), (1, 1, 3)]
    whole = read_database(ini(GTSRB)).items
    assert np.array_equal(database.items.read(2), whole.read(2)[1:])
    assert database.items.name(2).endswith("00002/2.ppm[0,1]") and database.labels.tolist() == [0, 2, 2, 2]
    table.write_text(head)
    assert "00002/1.ppm" in error_line(lambda: read_database(ini(GTSRB + "ExtractROIs=1\n")))
    table.write_text("Filename;ClassId\n")
    assert "has no columns Roi.X1 and Roi.Y1" in error_line(lambda: read_database(ini(GTSRB + "ExtractROIs=1\n")))


# --- choosing labels


@pytest.fixture
def labelled(tmp_path):
    """0 a, 1 b, 1 b, 2 c, 2 c, 2 c and one without label."""
    np.savez(tmp_path / "d.npz", x=np.zeros((7, 1, 2, 2), np.uint8), y=[2, 1, 2, 0, 1, 2, -1], labels=["a", "b", "c"])
    return "[database]\nType=Numpy_Database\nDataPath=d.npz\nRandomPartitioning=0\n"


@pytest.mark.parametrize(
    "keys, stimuli, labels",
    [
        ("Labels=a c", [0, 2, 3, 5], [2, 2, 0, 2]),
        ("Labels=b\nFilterKeep=0", [0, 2, 3, 5, 6], [2, 2, 0, 2, -1]),
        ("Labels=b\nRemoveStimuli=0", [0, 1, 2, 3, 4, 5, 6], [-1, 1, -1, -1, 1, -1, -1]),
    ],
)
def test_labels_kept_or_left_out(ini, labelled, keys, stimuli, labels):
    database = read_database(ini(f"{labelled}[database.filterROIs]\n{keys}\n"))
    assert database.sets["Test"].tolist() == stimuli
    assert database.labels[database.sets["Test"]].tolist() == labels and database.label_names == ("a", "b", "c")


@pytest.mark.parametrize(
    "keys, names, stimuli, labels",
    [
        ("NbKeep=2", ("a", "b"), [1, 3, 4], [1, 0, 1]),
        ("NbKeep=2\nAscending=0", ("b", "c"), [0, 1, 2, 4, 5], [1, 0, 1, 0, 1]),
        ("NbKeep=9", ("a", "b", "c"), [0, 1, 2, 3, 4, 5], [2, 1, 2, 0, 1, 2]),
    ],
)
def test_labels_of_the_fewest_or_most_stimuli(ini, labelled, keys, names, stimuli, labels):
    database = read_database(ini(f"{labelled}[database.sortAndDropLabels]\n{keys}\n"))
    assert (database.label_names, database.sets["Test"].tolist()) == (names, stimuli)
    assert database.labels[database.sets["Test"]].tolist() == labels


def test_unknown_label_to_filter(ini, labelled):
    assert "E410" in error_line(lambda: read_database(ini(f"{labelled}[database.filterROIs]\nLabels=d\n")))


# --- Caltech


@pytest.mark.parametrize("kind, clutter, others", [("101", "BACKGROUND_Google", ["Faces_easy"]), ("256", "257.clutter", [])])
def test_categories(ini, picture, kind, clutter, others):
    for category, count in (("ant", 2), ("bee", 4), (clutter, 3), *((one, 3) for one in others)):
        for index in range(count):
            picture(f"c/{category}/{index}.jpg", np.zeros((4, 4, 3)))
    text = f"[database]\nType=Caltech{kind}_DIR_Database\nDataPath=c\nLearn=0.5\n"
    database = read_database(ini(text))
    assert database.label_names == ("/ant", "/bee")
    assert database.sizes() == {"Learn": 2, "Validation": 0, "Test": 4}
    assert database.type == f"Caltech{kind}_DIR_Database"
    more = read_database(ini(text + "IncClutter=1\n"))
    assert set(more.label_names) == {"/ant", "/bee", f"/{clutter}"}


# --- [database] without, and with an unsupported type


def test_label_names_without_a_type(ini, tmp_path):
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    database = read_database(ini("[database]\nLabelPath=names.txt\n"))
    assert database.label_names == ("cat", "dog") and len(database.items) == 0
    assert "LabelPath=gone does not exist" in error_line(lambda: read_database(ini("[database]\nLabelPath=gone\n")))
