"""The stimuli files, byte by byte."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.errors import InternalError
from n2d2py.exports import StoredStimuli, write_stimuli
from n2d2py.graph import QuantGraph, QuantTensor

S8 = NumType(8)


def graph_of(*tensors: tuple[str, tuple[int, ...], NumType]) -> QuantGraph:
    graph = QuantGraph("net", 8, inputs=[name for name, _, _ in tensors])
    graph.tensors = {name: QuantTensor(name, shape, kind) for name, shape, kind in tensors}
    return graph


def test_colour_images_are_p6_in_hwc_with_the_label_behind(tmp_path):
    graph = graph_of(("env", (1, 3, 1, 2), S8))
    x = np.array([[[[1, -2]], [[3, 4]], [[5, -127]]]], np.int8)
    write_stimuli(StoredStimuli((x,), (np.array([258], np.int32),), ("a b.png",)), graph, ["env"], tmp_path)
    expected = b"P6\n2 1\n255\n" + bytes([1, 3, 5, 254, 4, 129]) + bytes([2, 1, 0, 0])
    assert (tmp_path / "stimuli" / "env000.ppm").read_bytes() == expected
    assert (tmp_path / "stimuli.list").read_bytes() == b"stimuli/env000.ppm\n"
    assert (tmp_path / "stimuli.link").read_bytes() == b"stimuli/env000.ppm a b.png\n"


def test_grey_images_are_p5_and_wide_integers_little_endian(tmp_path):
    graph = graph_of(("env", (1, 1, 2, 1), NumType(16)))
    x = np.array([[[[1], [-2]]]], np.int16)
    write_stimuli(StoredStimuli((x,)), graph, ["env"], tmp_path)
    assert (tmp_path / "stimuli" / "env000.pgm").read_bytes() == b"P5\n1 2\n65535\n\x01\x00\xfe\xff"


def test_vectors_are_a_line_and_floats_are_stored_as_they_are(tmp_path):
    graph = graph_of(("env", (1, 2), FLOAT32))
    x = np.array([[1.5, -2]], np.float32)
    write_stimuli(StoredStimuli((x,), (np.array([[-1, 7]], np.int32),)), graph, ["env"], tmp_path)
    expected = b"P5\n2 1\n65535\n" + np.array([1.5, -2], "<f4").tobytes() + np.array([-1, 7], "<i4").tobytes()
    assert (tmp_path / "stimuli" / "env000.pgm").read_bytes() == expected


def test_labels_of_all_targets_follow_in_order(tmp_path):
    graph = graph_of(("env", (1, 1), S8))
    labels = (np.array([5], np.int32), np.arange(4, dtype=np.int32).reshape(1, 2, 2))
    write_stimuli(StoredStimuli((np.zeros((1, 1), np.int8),), labels), graph, ["env"], tmp_path)
    data = (tmp_path / "stimuli" / "env000.pgm").read_bytes()
    assert np.frombuffer(data[-20:], "<i4").tolist() == [5, 0, 1, 2, 3]


def test_several_inputs_have_a_file_each(tmp_path):
    graph = graph_of(("a", (1, 1), S8), ("b", (1, 1, 1, 1), S8))
    arrays = (np.array([[1], [2]], np.int8), np.array([[[[3]]], [[[4]]]], np.int8))
    write_stimuli(StoredStimuli(arrays, (np.array([8, 9], np.int32),)), graph, ["a", "b"], tmp_path)
    assert (tmp_path / "stimuli.list").read_text().splitlines() == [
        "stimuli/a000.pgm stimuli/b000.pgm",
        "stimuli/a001.pgm stimuli/b001.pgm",
    ]
    assert (tmp_path / "stimuli" / "a001.pgm").read_bytes().endswith(b"\n\x02\x09\x00\x00\x00")
    assert (tmp_path / "stimuli" / "b001.pgm").read_bytes().endswith(b"\n\x04")


def test_numbers_have_as_many_digits_as_needed(tmp_path):
    graph = graph_of(("env", (1, 1), S8))
    write_stimuli(StoredStimuli((np.zeros((1001, 1), np.int8),)), graph, ["env"], tmp_path)
    lines = (tmp_path / "stimuli.list").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("stimuli/env0000.pgm", "stimuli/env1000.pgm")


def test_no_stimuli_give_an_empty_list(tmp_path):
    write_stimuli(StoredStimuli(), graph_of(("env", (1, 1), S8)), ["env"], tmp_path)
    assert (tmp_path / "stimuli.list").read_bytes() == b""


@pytest.mark.parametrize(
    "stimuli",
    [
        StoredStimuli((np.zeros((2, 1), np.uint8),)),
        StoredStimuli((np.zeros((2, 2), np.int8),)),
        StoredStimuli((np.zeros((2, 1), np.int8), np.zeros((2, 1), np.int8))),
        StoredStimuli((np.zeros((2, 1), np.int8),), (np.zeros(3, np.int32),)),
        StoredStimuli((np.zeros((2, 1), np.int8),), (), ("one",)),
    ],
)
def test_stimuli_that_do_not_fit_are_refused(stimuli, tmp_path):
    with pytest.raises(InternalError):
        write_stimuli(stimuli, graph_of(("env", (1, 1), S8)), ["env"], tmp_path)
