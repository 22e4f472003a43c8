"""Public data sets in miniature, and real data: the embedded digits, and ../shared where it is present."""

import json

import numpy as np
import pytest
from PIL import Image
from support.errors import error_line

from n2d2py.data import build_provider, open_source, read_database
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.ini import load_document

KITTI = "{} 0 0 0 2 3 5 4 1 1 1 0 0 0 0\nDontCare 0 0 0 0 0 9 9 1 1 1 0 0 0 0\n"
POLYGONS = [["road", [[0, 0], [9, 0], [9, 9], [0, 9]]], ["cargroup", [[2, 3], [5, 3], [5, 4], [2, 4]]]]
JSON = json.dumps({"objects": [{"label": label, "polygon": points} for label, points in POLYGONS]})
BOX = {(3, 2): 0, (4, 5): 0, (3, 1): -1, (5, 2): -1, (2, 5): -1}
"""Label ids of pixels (row, column) where a box has the corners (2, 3) and (5, 4)."""

CASES = {
    "GTSDB_DIR_Database": ("Learn=0.5", "00000.ppm 00001.ppm", {"gt.txt": "00000.ppm;2;3;5;4;11\n"}, ["11"], BOX),
    "KITTI_Database": (
        "",
        "training/image_02/0000/000007.png testing/image_02/0000/000000.png",
        {"training/label_02/0000.txt": "6 1 Van 0 0 0 0 0 9 9 1 1 1 0 0 0 0\n7 1 " + KITTI.format("Car").splitlines()[0]},
        ["Car"],
        BOX,
    ),
    "KITTI_Object_Database": (
        "",
        "training/image_2/000003.png testing/image_2/000003.png",
        {"training/label_2/000003.txt": KITTI.format("Tram")},
        ["Tram"],
        BOX,
    ),
    "KITTI_Road_Database": (
        "",
        "training/image_2/um_000001.png",
        {"training/gt_image_2/um_road_000001.png": ""},
        ["road"],
        BOX,
    ),
    "FDDB_Database": (
        "Learn=1",
        "2002/07/19/big/img_1.jpg",
        {"FDDB-folds/FDDB-fold-01-ellipseList.txt": "2002/07/19/big/img_1\n1\n3.4 1.4 1.5707963 5 5  1\n"},
        ["face"],
        {(5, 5): 0, (8, 5): 0, (2, 5): 0, (5, 6): 0, (5, 8): -1, (9, 5): -1},
    ),
    "DOTA_Database": (
        "Learn=1",
        "train/images/P1.png test/images/P2.png",
        {"train/labelTxt/P1.txt": "imagesource:x\ngsd:0.1\n2 3 5 3 5 4 2 4 ship 0\n"},
        ["ship"],
        BOX,
    ),
    "Cityscapes_Database": (
        "LabelPath=labels",
        "val/ulm/ulm_000_leftImg8bit.png",
        {"../labels/gtFine/val/ulm/ulm_000_gtFine_polygons.json": JSON},
        ["road", "car"],
        {(3, 2): 1, (4, 5): 1, (3, 1): 0, (9, 9): 0},
    ),
    "CaltechPedestrian_Database": (
        "LabelPath=labels",
        "set00/V000/I00029.jpg set10/V000/I00001.jpg",
        {
            "../labels/set00/V000/I00029.txt": "% bbGt version=3\nperson? 0 0 9 9 0 0 0 0 0 0 0\npeople 2 3 3 1 0 0 0 0 0 0 0\n",
            "../labels/set10/V000/I00001.txt": "% bbGt version=3\n",
        },
        ["person"],
        BOX,
    ),
}


def written(tmp_path, case: str, more: str = "") -> str:
    """Write the files of a case; return its [database]."""
    keys, images, files, *_ = CASES[case]
    root = tmp_path / "data"
    for name in (*images.split(), *files):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if not files.get(name):
            pixels = np.full((10, 12, 3), (255, 0, 0), np.uint8)
            pixels[3:5, 2:6] = (255, 0, 255)
            Image.fromarray(pixels).save(root / name)
    for name, text in files.items():
        if text:
            (root / name).write_text(text)
    return f"[database]\nType={case}\nDataPath=data\n{keys}\n{more}"


@pytest.mark.parametrize("case", CASES)
def test_regions_label_their_pixels(ini, tmp_path, case):
    _, images, _, names, pixels = CASES[case]
    database = read_database(ini(written(tmp_path, case)))
    assert list(database.label_names) == names and set(database.labels) == {-1}
    found = {database.items.name(index): index for at in database.sets.values() for index in at.tolist()}
    assert set(found) == set(images.split())
    labels = database.maps(found[images.split()[0]])
    assert labels.shape == (10, 12) and {at: labels[at] for at in pixels} == pixels
    for name in images.split()[1:]:
        assert (database.maps(found[name]) == -1).all()


def test_margins_and_the_label_outside(ini, tmp_path):
    database = read_database(ini(written(tmp_path, "GTSDB_DIR_Database", "DefaultLabel=sky\nROIsMargin=1\n")))
    assert database.label_names == ("11", "sky")
    labels = database.maps(0)
    assert labels[1, 5] == 1 and labels[2, 5] == labels[5, 6] == -1 and labels[3, 5] == 0


@pytest.mark.parametrize(
    "text", ["00000.ppm;2;3\n", "00000.ppm;2;3;nan;4;1\n", "00000.ppm;a;3;5;4;1\n", "00000.ppm;2;3;1e30;4;1\n"]
)
def test_damaged_annotations(ini, tmp_path, text):
    document = ini(written(tmp_path, "GTSDB_DIR_Database"))
    (tmp_path / "data/gt.txt").write_text(text)
    assert "E410" in error_line(read_database, document)


@pytest.mark.parametrize("text", ["[]", '{"objects": [{"label": 3, "polygon": []}]}', '{"objects": 1}', "[" * 100_000])
def test_damaged_polygons(ini, tmp_path, text):
    document = ini(written(tmp_path, "Cityscapes_Database", "SingleInstanceLabels=0\n"))
    next(tmp_path.rglob("*.json")).write_text(text)
    assert "E410" in error_line(read_database, document)


IDENTITIES = "2.jpg 30\n1.jpg 4\n3.jpg 30\nabsent.jpg 7\n"
ONE = {(3, 2): 1, (4, 5): 1, (2, 2): 0, (5, 2): 0, (3, 1): 0}
LABELLED = {
    "CelebA_Database": [
        (
            "LabelPath=data/Anno\nInTheWild=0",
            "img_align_celeba/1.jpg img_align_celeba/2.jpg img_align_celeba/3.jpg",
            {"Anno/identity_CelebA.txt": IDENTITIES, "Eval/list_eval_partition.txt": "1.jpg 0\n2.jpg 1\n3.jpg 2\n"},
            {"1.jpg": "4", "2.jpg": "30", "3.jpg": "30"},
        ),
        (
            "LabelPath=data/Anno\nWithPartitioning=0\nDefaultLabel=sky",
            "img_celeba/1.jpg",
            {"Anno/identity_CelebA.txt": "1.jpg 4", "Anno/list_bbox_celeba.txt": "1\nimage_id x y w h\n1.jpg 2 3 4 2\n"},
            {"1.jpg": ONE},
        ),
    ]
}


@pytest.mark.parametrize("case, at", [(case, at) for case, each in LABELLED.items() for at in range(len(each))])
def test_tables_and_names_label_the_stimuli(ini, tmp_path, case, at):
    """The label of each stimulus, or those of pixels: id 0 outside of boxes, 1 inside."""
    keys, images, files, labels = LABELLED[case][at]
    CASES[case] = (keys, images, files)
    database = read_database(ini(written(tmp_path, case)))
    names = [database.items.name(index) for index in range(len(database.items))]
    assert sorted(names) == sorted(labels) and sum(database.sizes().values()) == len(names)
    for index, name in enumerate(names):
        if isinstance(labels[name], str):
            assert database.maps is None and database.label_names[database.labels[index]] == labels[name]
        else:
            found = database.maps(index)
            assert {place: found[place] for place in labels[name]} == labels[name]


def test_sets_and_label_ids_that_files_give(ini, tmp_path):
    CASES["CelebA_Database"] = LABELLED["CelebA_Database"][0][:3]
    database = read_database(ini(written(tmp_path, "CelebA_Database")))
    assert database.label_names == ("4", "7", "30") and database.labels.tolist() == [0, 2, 2]
    assert {name: at.tolist() for name, at in database.sets.items()} == {"Learn": [0], "Validation": [1], "Test": [2]}


@pytest.mark.parametrize(
    "case, at, file, text",
    [
        ("CelebA_Database", 0, "Anno/identity_CelebA.txt", "1.jpg\n"),
        ("CelebA_Database", 1, "Anno/list_bbox_celeba.txt", "1\nx\n1.jpg 2 3 nan 2\n"),
    ],
)
def test_damaged_tables(ini, tmp_path, case, at, file, text):
    CASES[case] = LABELLED[case][at][:3]
    document = ini(written(tmp_path, case))
    (tmp_path / "data" / file).write_text(text)
    assert "E410" in error_line(read_database, document)


ROWS = [f"33,{kind},{at},{at}.5,-{at},.25;" for at, kind in enumerate(["Jogging"] * 4 + ["Walking"] * 6)]


def test_windows_of_accelerations(ini, tmp_path):
    """Windows of 4 rows, 2 apart; of two activities, the one that is complete first."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "WISDM_at_v2.0_raw.txt"
    path.write_text("\n".join([*ROWS[:5], "579,,;", *ROWS[5:]]))
    document = ini("[database]\nType=Actitracker_Database\nDataPath=data\nWindowSize=4\nRandomPartitioning=0\n")
    database = read_database(document)
    assert [database.label_names[label] for label in database.labels] == ["Jogging", "Jogging", "Walking"]
    np.testing.assert_array_equal(database.items.read(1)[:, :, 0], [[at + 0.5, -at, 0.25] for at in range(2, 6)])
    for text in (ROWS[0] + "\n33,Flying,1,1,1,1;", "33,Jogging,1,1,1;"):
        path.write_text(text)
        assert "E410" in error_line(read_database, document)
    path.write_text("\n".join(ROWS[:5]))
    assert "E416" in error_line(read_database, document)


def test_databases_that_are_joined(ini, tmp_path):
    for name, labels in (("a", "0 2"), ("b", "2 1 x")):
        (tmp_path / f"{name}.csv").write_text("".join(f"{at},{label}\n" for at, label in enumerate(labels.split())))
    table = "Type=CSV_Database\nValidation=0\nRandomPartitioning=0\nPerLabelPartitioning=0\nDataPath="
    text = (
        f"[database]\nType=CompositeDatabase\nDatabases=one two\n[one]\n{table}a.csv\nLearn=1\n[two]\n{table}b.csv\nLearn=0\n"
    )
    database = read_database(ini(text))
    assert database.label_names == ("0", "1", "2", "x") and database.labels.tolist() == [0, 2, 2, 1, 3]
    assert database.sizes() == {"Learn": 2, "Validation": 0, "Test": 3} and database.items.name(3) == "b.csv[1]"
    assert "E119" in error_line(lambda: read_database(ini(text.replace("one two", "one three"))))
    assert "E419" in error_line(lambda: read_database(ini(text.replace("one two", "database"))))


def test_a_pair_of_idx_files(ini, tmp_path):
    pixels = np.arange(5 * 6, dtype=np.uint8).reshape(5, 2, 3)
    (tmp_path / "x").write_bytes(bytes((0, 0, 8, 3)) + np.array(pixels.shape, ">u4").tobytes() + pixels.tobytes())
    (tmp_path / "y").write_bytes(bytes((0, 0, 8, 1, 0, 0, 0, 5, 0, 2, 1, 0, 2)))
    database = read_database(ini("[database]\nType=IDX_Database\nDataPath=x\nLabelPath=y\nRandomPartitioning=0\n"))
    np.testing.assert_array_equal(database.items.read(3)[:, :, 0], pixels[3])
    assert database.labels.tolist() == [0, 2, 1, 0, 2] and database.sizes()["Test"] == 5


def test_the_embedded_digits(request):
    document = load_document(request.config.rootpath / "models" / "LeNet.ini")
    provider = build_provider(document, seed=1)
    assert provider.shape == (1, 32, 32) and len(provider.labels) == 10
    sizes = provider.sizes()
    assert sizes["Validation"] == round(0.2 * (sizes["Learn"] + sizes["Validation"]))
    total = 0
    for x, labels, _ in provider.stimuli("Test").batches(provider.batch_size):
        assert x.min() >= 0 and x.max() <= 1 and set(labels) <= set(range(10))
        total += len(x)
    assert total == sizes["Test"] > 100


def test_mnist_gzipped(ini, shared):
    provider = build_provider(
        ini(f"[database]\nType=MNIST_IDX_Database\nValidation=0.1\nDataPath={shared / 'mnist'}\n[sp]\nSizeX=28\nSizeY=28\n")
    )
    assert provider.sizes() == {"Learn": 54000, "Validation": 6000, "Test": 10000}
    x, labels, _ = next(provider.stimuli("Test").batches(8))
    assert labels.tolist() == [7, 2, 1, 0, 4, 1, 4, 9]
    assert x.shape == (8, 1, 28, 28) and provider.value_range == (0.0, 1.0)


def test_cifar_folders_in_label_order(ini, shared):
    provider = build_provider(
        ini(f"[database]\nType=DIR_Database\nDataPath={shared / 'cifar10' / 'test'}\n[sp]\nSizeX=32\nSizeY=32\nNbChannels=3\n")
    )
    assert provider.labels[:3] == ("/airplane", "/automobile", "/bird")
    assert provider.sizes()["Test"] == 1000
    stimuli = provider.stimuli("Test")
    path = shared / "cifar10" / "test" / stimuli.names[5]
    assert path.parent.name == provider.labels[stimuli.labels[5]].strip("/")
    expected = np.asarray(Image.open(path).convert("RGB"))[:, :, ::-1].transpose(2, 0, 1)
    np.testing.assert_array_equal(stimuli[5], expected.astype(np.float32) / np.float32(255))


def test_the_statistics_of_mnist_are_those_that_n2d2_documents(ini, shared):
    # Mean 33.3184, deviation 78.5675; after normalization [-0.424074, 2.82154] (its data_analysis).
    provider = build_provider(
        ini(
            f"[database]\nType=MNIST_IDX_Database\nDataPath={shared / 'mnist'}\n"
            "[sp]\nSizeX=28\nSizeY=28\n[sp.StimuliData-raw]\nApplyTo=LearnOnly\n"
            "[sp.Transformation]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
            "FirstValue=[sp.StimuliData-raw]_GlobalValue.mean\nSecondOperator=Divides\n"
            "SecondValue=[sp.StimuliData-raw]_GlobalValue.stdDev\n"
        )
    )
    found = provider.pipelines.statistics["sp.StimuliData-raw"]
    assert (found.count, f"{found.mean:g}", f"{found.deviation:g}") == (60000, "33.3184", "78.5675")
    assert tuple(f"{bound:g}" for bound in provider.value_range) == ("-0.424074", "2.82154")


def test_imagenet_lists(ini, shared):
    folder = shared / "imagenet"
    text = (
        f"[database]\nType=List_Database\nDataPath={folder}\nLabelPath={folder}/eval.txt\n"
        f"ValidationPath={folder}/calib.txt\nLabelNamesPath={folder}/synset_names.txt\n"
        "[sp]\nSizeX=160\nSizeY=160\nNbChannels=3\n"
        "[sp.Transformation-1]\nType=RescaleTransformation\nWidth=160\nHeight=160\n"
        "[sp.Transformation-2]\nType=ColorSpaceTransformation\nColorSpace=RGB\n"
        "[sp.Transformation-3]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
        "FirstValue=128\nSecondOperator=Divides\nSecondValue=128\n"
    )
    provider = build_provider(ini(text), seed=1)
    assert provider.sizes() == {"Learn": 0, "Validation": 100, "Test": 300}
    assert len(provider.labels) == 1000 and provider.value_range == (-1.0, 127 / 128)
    x, labels, names = next(provider.stimuli("Validation").batches(16))
    assert names[1] == "images/010_n01530575_brambling.png" and labels[1] == 10
    assert x.shape == (16, 3, 160, 160) and -1 <= x.min() < -0.9 and 0.9 < x.max() < 1


def test_keyword_spotting_arrays(ini, shared):
    path = shared / "kws" / "kws_mfcc.npz"
    provider = build_provider(
        ini(f"[database]\nType=Numpy_Database\nDataPath={path}\nRandomPartitioning=0\n[sp]\nSizeX=10\nSizeY=49\n")
    )
    stored = np.load(path)
    x, labels, _ = next(provider.stimuli("Test").batches(300))
    np.testing.assert_array_equal(x, stored["x"])
    np.testing.assert_array_equal(labels, stored["y"])
    assert provider.value_range is None
    np.testing.assert_array_equal(open_source(path, (1, 49, 10))[7], stored["x"][7])


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 255.0)])
def test_folder_of_pictures(shared, bounds):
    stimuli = open_source(shared / "vww" / "images", (3, 96, 96), Preprocessing(bounds))
    assert len(stimuli) == 120
    expected = np.asarray(Image.open(shared / "vww" / "images" / stimuli.names[3]).convert("RGB"))
    np.testing.assert_allclose(stimuli[3], expected.transpose(2, 0, 1) / 255 * bounds[1], rtol=1e-6)
