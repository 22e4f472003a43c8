"""Public data sets in miniature: the labels of pixels in the regions that their files annotate, by hand."""

import json

import numpy as np
import pytest
from PIL import Image

from n2d2py.data import read_database
from n2d2py.errors import N2D2Error

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
        if not name.endswith((".txt", ".json")):
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
    labels = database.maps.read(found[images.split()[0]])
    assert labels.shape == (10, 12) and {at: labels[at] for at in pixels} == pixels
    for name in images.split()[1:]:
        assert (database.maps.read(found[name]) == -1).all()


def test_margins_and_the_label_outside(ini, tmp_path):
    database = read_database(ini(written(tmp_path, "GTSDB_DIR_Database", "DefaultLabel=sky\nROIsMargin=1\n")))
    assert database.label_names == ("11", "sky")
    labels = database.maps.read(0)
    assert labels[1, 5] == 1 and labels[2, 5] == labels[5, 6] == -1 and labels[3, 5] == 0


@pytest.mark.parametrize(
    "text", ["00000.ppm;2;3\n", "00000.ppm;2;3;nan;4;1\n", "00000.ppm;a;3;5;4;1\n", "00000.ppm;2;3;1e30;4;1\n"]
)
def test_damaged_annotations(ini, tmp_path, text):
    document = ini(written(tmp_path, "GTSDB_DIR_Database"))
    (tmp_path / "data/gt.txt").write_text(text)
    with pytest.raises(N2D2Error, match="E410"):
        read_database(document)


@pytest.mark.parametrize("text", ["[]", '{"objects": [{"label": 3, "polygon": []}]}', '{"objects": 1}', "[" * 100_000])
def test_damaged_polygons(ini, tmp_path, text):
    document = ini(written(tmp_path, "Cityscapes_Database", "SingleInstanceLabels=0\n"))
    next(tmp_path.rglob("*.json")).write_text(text)
    with pytest.raises(N2D2Error, match="E410"):
        read_database(document)


def test_a_pair_of_idx_files(ini, tmp_path):
    pixels = np.arange(5 * 6, dtype=np.uint8).reshape(5, 2, 3)
    (tmp_path / "x").write_bytes(bytes((0, 0, 8, 3)) + np.array(pixels.shape, ">u4").tobytes() + pixels.tobytes())
    (tmp_path / "y").write_bytes(bytes((0, 0, 8, 1, 0, 0, 0, 5, 0, 2, 1, 0, 2)))
    database = read_database(ini("[database]\nType=IDX_Database\nDataPath=x\nLabelPath=y\nRandomPartitioning=0\n"))
    np.testing.assert_array_equal(database.items.read(3)[:, :, 0], pixels[3])
    assert database.labels.tolist() == [0, 2, 1, 0, 2] and database.sizes()["Test"] == 5
