"""Scores of detections (-post) against labelled boxes: mAP of the float network, of its integers, and of the compiled export."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, QuantGraph
from n2d2py.postprocessing import Detector, parse_post
from n2d2py.runtime.simulator import ends
from n2d2py.stages.load import LoadedNetwork
from n2d2py.targets import Score
from n2d2py.targets.boxes import Boxes

TARGET = "detections"
"""Name of the score in the place of a target's."""


def check_boxes(network: LoadedNetwork, stimuli: Stimuli) -> None:
    """Raise E452 for detections without labelled boxes, or labelled boxes without detections."""
    if (network.options.post is None) == (stimuli.boxes is None):
        return
    if stimuli.boxes is None:
        what, remedy = (
            "-test has no boxes to compare the detections of -post with",
            "give -labels FILE.json of COCO, or a folder of YOLO's .txt files",
        )
    else:
        what, remedy = "the labels are boxes, but the model has no -post", "add -post with the kind of the detector"
    raise N2D2Error("E452", what, where=network.place, remedy=remedy)


def detector_of(network: LoadedNetwork, graph: Graph | QuantGraph) -> Detector:
    """The post-processing of the network with the types of `graph`."""
    return parse_post(str(network.options.post)).bind(*ends(graph), network.data.classes)


def detection_score(
    detector: Detector, outputs: Sequence[np.ndarray], stimuli: Stimuli, indices: np.ndarray | None = None
) -> Score:
    """The score of the stored outputs (N, C, ...) of stimuli, whose numbers in their set are `indices`."""
    count = len(stimuli)
    found = (detector.detections(detector.stored([y[index] for y in outputs])) for index in range(count))
    rows = tuple(np.array([(one.label, *one[2:]) for one in each], np.float64).reshape(-1, 6) for each in found)
    labelled = tuple(np.zeros((0, 6)) if one is None else one for one in stimuli.boxes or ())
    none, nothing = np.full(count, -1, np.int64), np.zeros((count, 1), np.int64)
    numbers = np.arange(count) if indices is None else indices
    names = detector.names
    boxes = Boxes(rows, labelled)
    return Score(TARGET, names, 1, tuple(stimuli.names), numbers, none, nothing, nothing.astype(float), none, boxes=boxes)
