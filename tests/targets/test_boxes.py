"""Average precision of detections against pycocotools, and by hand."""

import contextlib
import io

import numpy as np
import pytest

from n2d2py.targets.detections import Boxes


def drawn(seed: int, images: int = 12) -> Boxes:
    """Boxes of three classes, some of crowds, and detections near them with equal scores, wrong classes and doubles."""
    rng = np.random.default_rng(seed)
    found, labelled = [], []
    for _ in range(images):
        count = rng.integers(0, 6)
        corners = rng.uniform(0, 60, (count, 2))
        boxes = np.concatenate(
            [rng.integers(0, 3, (count, 1)), rng.random((count, 1)) < 0.15, corners, corners + rng.uniform(5, 30, (count, 2))],
            1,
        )
        near = np.repeat(boxes, 3, 0)
        near = near[rng.random(len(near)) < 0.7]
        near[:, 2:] += rng.normal(0, 2, (len(near), 4))
        near[:, 1] = rng.random(len(near)).round(1)
        near[rng.random(len(near)) < 0.2, 0] = rng.integers(0, 3)
        near[:, 4:] = np.maximum(near[:, 4:], near[:, 2:4] + 1)
        found.append(near[np.argsort(-near[:, 1], kind="stable")])
        labelled.append(boxes)
    return Boxes(tuple(found), tuple(labelled))


def of_coco(boxes: Boxes) -> list[float]:
    """mAP and mAP at 0.5, in percent, of pycocotools."""
    tools = pytest.importorskip("pycocotools.coco")
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = tools.COCO()
        annotations = [
            {"image_id": at, "category_id": int(row[0]), "iscrowd": int(row[1]), "bbox": [*row[2:4], *(row[4:] - row[2:4])]}
            for at, each in enumerate(boxes.labelled)
            for row in each
        ]
        for number, one in enumerate(annotations, 1):
            one.update(id=number, area=one["bbox"][2] * one["bbox"][3])
        images = [{"id": at} for at in range(len(boxes.detections))]
        truth.dataset = {"images": images, "annotations": annotations, "categories": [{"id": at} for at in range(3)]}
        truth.createIndex()
        results = [
            {"image_id": at, "category_id": int(row[0]), "score": row[1], "bbox": [*row[2:4], *(row[4:] - row[2:4])]}
            for at, each in enumerate(boxes.detections)
            for row in each
        ]
        judge = COCOeval(truth, truth.loadRes(results), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return [100 * judge.stats[0], 100 * judge.stats[1]]


@pytest.mark.parametrize("seed", range(8))
def test_average_precision_is_that_of_coco(seed):
    boxes = drawn(seed)
    assert [boxes.percent, boxes.percent_50] == pytest.approx(of_coco(boxes), abs=1e-9)


def test_average_precision_by_hand():
    """Two boxes; the best detection is right, the second is a double, the third has an IoU of 0.6 with the other box."""
    labelled = np.array([[0, 0, 0, 0, 10, 10], [0, 0, 20, 0, 30, 10.0]])
    found = np.array([[0, 0.9, 0, 0, 10, 10], [0, 0.8, 0, 0, 10, 10], [0, 0.7, 20, 0, 26, 10.0]])
    boxes = Boxes((found,), (labelled,))
    # Recalls up to 0.5 (51 of 101) at precision 1, those above at 2/3, up to an IoU of 0.6: three of ten limits.
    assert boxes.percent_50 == pytest.approx(100 * (51 + 50 * 2 / 3) / 101)
    assert boxes.percent == pytest.approx(100 * (3 * (51 + 50 * 2 / 3) + 7 * 51) / 1010)


@pytest.mark.parametrize(
    "found, labelled, percent",
    [
        (np.zeros((0, 6)), np.zeros((0, 6)), None),
        (np.array([[0, 0.5, 0, 0, 1, 1.0]]), np.zeros((0, 6)), None),
        (np.zeros((0, 6)), np.array([[0, 0, 0, 0, 1, 1.0]]), 0.0),
        (np.array([[1, 0.5, 0, 0, 1, 1.0]]), np.array([[0, 0, 0, 0, 1, 1.0]]), 0.0),
        (np.array([[0, 0.5, 0, 0, 1, 1.0]]), np.array([[0, 0, 0, 0, 1, 1.0]]), 100.0),
    ],
)
def test_nothing_found_or_nothing_there(found, labelled, percent):
    assert Boxes((found,), (labelled,)).percent == (None if percent is None else pytest.approx(percent))
