"""Labelled boxes of images: the formats, and their place in the input of a network."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.errors import error_line

from n2d2py.arithmetic.frame import FrameSource
from n2d2py.data.labels import labelled_data
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.data.sources import open_source


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An image 80 wide and 40 high with a bright box from (20, 10) to (60, 30), and a dark one."""
    monkeypatch.chdir(tmp_path)
    Path("images").mkdir()
    picture = np.zeros((40, 80, 3), np.uint8)
    picture[10:30, 20:60] = 255
    Image.fromarray(picture).save("images/a.png")
    Image.fromarray(np.zeros((40, 80, 3), np.uint8)).save("images/b.png")
    return Path("images")


def yolo(**files: str) -> Path:
    Path("labels").mkdir()
    for name, text in files.items():
        Path(f"labels/{name}.txt").write_text(text)
    return Path("labels")


def coco(**changes: object) -> Path:
    data = {
        "images": [{"id": 7, "file_name": "a.png"}],
        "categories": [{"id": 4, "name": "dog"}, {"id": 2, "name": "cat"}],
        "annotations": [{"image_id": 7, "category_id": 4, "bbox": [20, 10, 40, 20]}],
    }
    Path("boxes.json").write_text(json.dumps({**data, **changes}))
    return Path("boxes.json")


def test_yolo(folder):
    given, names = labelled_data(folder, yolo(a="3 0.5 0.5 0.5 0.5\n"))
    assert given.boxes is not None and names == ()
    np.testing.assert_allclose(given.boxes[0], [[3, 0, 0.25, 0.25, 0.75, 0.75]])
    assert given.boxes[1] is not None and len(given.boxes[1]) == 0  # an image without objects


@pytest.mark.parametrize("names, label", [((), 1), (("bird", "dog"), 1), (("dog", "bird"), 0), (("bird",), None)])
def test_coco(folder, names, label):
    """Categories are numbered by their ids, or by the names; those without a name do not count."""
    if label is None:
        assert "E410" in error_line(lambda: labelled_data(folder, coco(), names))
        return
    given, found = labelled_data(folder, coco(), names)
    assert given.boxes is not None and given.boxes[1] is None and found == (names or ("cat", "dog"))
    np.testing.assert_allclose(given.boxes[0], [[label, 0, 0.25, 0.25, 0.75, 0.75]])


@pytest.mark.parametrize(
    "how",
    [
        Preprocessing(),
        Preprocessing(crop=(48, 32)),
        Preprocessing(resize=(40, 40)),
        Preprocessing(resize=(24,), crop=(32, 24)),
        Preprocessing(resize=(24,)),
        Preprocessing(source=FrameSource("rgb", crop=(48, 32))),
        Preprocessing(source=FrameSource("rgb", resize=(64, 24))),
        Preprocessing(source=FrameSource("nv12", pad=0, flip="both")),
    ],
)
def test_boxes_lie_where_the_pixels_lie(folder, how):
    """The box of the input is where its bright pixels are, to one pixel."""
    given, _ = labelled_data(folder, coco())
    stimuli = open_source(given, (3, 24, 32), how)
    rows, columns = np.nonzero(stimuli[0][0] > 0.5)
    assert stimuli.boxes is not None and stimuli.boxes[0] is not None
    (box,) = stimuli.boxes[0]
    np.testing.assert_allclose(box[2:], [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], atol=1)


@pytest.mark.parametrize(
    "labels",
    [
        lambda: yolo(a="cat 0.5 0.5 0.5 0.5\n"),
        lambda: yolo(a="0 0.5 0.5 0.5\n"),
        lambda: yolo(a="0 0.5 0.5 nan 0.5\n"),
        lambda: yolo(c="0 0.5 0.5 0.5 0.5\n"),
        lambda: coco(images=[]),
        lambda: coco(annotations=[]),
        lambda: coco(annotations=[{"image_id": 7, "category_id": 5, "bbox": [0, 0, 1, 1]}]),
        lambda: coco(annotations=[{"image_id": 7, "category_id": 2, "bbox": [0, 0, 1]}]),
        lambda: coco(categories=3),
    ],
)
def test_damaged_labels(folder, labels):
    assert "E410" in error_line(lambda: labelled_data(folder, labels()))
