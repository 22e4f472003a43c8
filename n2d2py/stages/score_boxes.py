"""Scores of detections (-post) against labelled boxes: mAP of the float network, of its integers, and of the compiled export."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, QuantGraph
from n2d2py.postprocessing import Detector, PostProcessor, parse_post
from n2d2py.runtime.base import Network
from n2d2py.runtime.simulator import ends
from n2d2py.stages.load import LoadedNetwork
from n2d2py.targets import Score
from n2d2py.targets.boxes import Boxes

TARGET = "detections"
"""Name of the score in the place of a target's."""


def check_boxes(network: LoadedNetwork, stimuli: Stimuli) -> None:
    """Raise E452 for key points, for detections without labelled boxes, or labelled boxes without detections."""
    if network.options.post is not None and parse_post(network.options.post).kind.name == "keypoints":
        what, remedy = "-test cannot score the key points of -post", "remove -test; -compare gives the error of the maps"
        raise N2D2Error("E452", what, where=network.place, remedy=remedy)
    if (detector_of(network, network.graph) is None) == (stimuli.boxes is None):
        return
    if stimuli.boxes is None:
        what, remedy = (
            "-test has no boxes to compare the detections of -post with",
            "give -labels FILE.json of COCO, or a folder of YOLO's .txt files",
        )
    else:
        what, remedy = "the labels are boxes, but the model has no -post", "add -post with the kind of the detector"
    raise N2D2Error("E452", what, where=network.place, remedy=remedy)


def detector_of(network: LoadedNetwork, graph: Graph | QuantGraph) -> Detector | None:
    """Return the detector of -post for the types of `graph`; None without one."""
    post = post_of(network, graph)
    return post if isinstance(post, Detector) else None


def post_of(network: LoadedNetwork, graph: Graph | QuantGraph) -> PostProcessor | None:
    """Return the post-processing of -post for the types of `graph`; None without -post."""
    text = network.options.post
    return None if text is None else parse_post(text).bind(*ends(graph), network.data.classes)


def with_pipeline(running: Network, network: LoadedNetwork, graph: Graph | QuantGraph) -> Network:
    """Return `running`, which runs `graph`, with the conversion of its input and the post-processing of the network."""
    running.contract, running.post = network.data.contract, post_of(network, graph)
    return running


def found_boxes(detector: Detector, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the detections of each sample of stored outputs (N, C, ...), as in `Boxes`."""
    detections = map(detector.result, detector.stored(outputs))
    return [np.array([(one.label, *one[2:]) for one in each], np.float64).reshape(-1, 6) for each in detections]


def detection_score(
    names: tuple[str, ...], detections: Sequence[np.ndarray], stimuli: Stimuli, indices: np.ndarray | None = None
) -> Score:
    """Return the score of detections in stimuli with the numbers `indices` in their set; `names` are those of the classes."""
    labelled = tuple(np.zeros((0, 6)) if one is None else one for one in stimuli.boxes or ())
    numbers = np.arange(len(stimuli)) if indices is None else indices
    return Score.of_detections(TARGET, names, tuple(stimuli.names), numbers, Boxes(tuple(detections), labelled))
