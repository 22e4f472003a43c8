"""Stimuli of networks with several inputs: where they are read from, and how they reach the inputs."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.input_data import open_data
from n2d2py.data.several import open_several
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph
from n2d2py.graph.inputs import split_inputs, stimulus_shape

INPUTS = {"left:0": (2, 1, 3), "right": (4,)}
LEFT = np.arange(5 * 6, dtype=np.float32).reshape(5, 2, 1, 3)
RIGHT = -np.arange(5 * 4, dtype=np.int64).reshape(5, 2, 2)  # an input of a vector may have any axes
WANTED = np.concatenate([LEFT.reshape(5, -1), RIGHT.reshape(5, -1)], axis=1)


def network() -> Graph:
    graph = Graph("net")
    for name, shape in INPUTS.items():
        graph.add_input(name, (1, *shape))
    return graph


def values(stimuli) -> np.ndarray:
    return np.concatenate([x for x, _, _ in stimuli.batches(2)])


def test_an_npz_with_an_array_for_each_input(tmp_path):
    np.savez(tmp_path / "d.npz", **{"right": RIGHT, "left:0": LEFT, "y": np.arange(5)})
    stimuli = open_several(tmp_path / "d.npz", INPUTS)
    np.testing.assert_array_equal(values(stimuli), WANTED)
    assert stimuli.labels.tolist() == [0, 1, 2, 3, 4] and stimuli.shape == stimulus_shape(network()) == (10,)


def test_a_folder_with_a_file_for_each_input(tmp_path):
    np.save(tmp_path / "left_0.npy", LEFT)
    np.save(tmp_path / "right.npy", RIGHT)
    stimuli = open_several(tmp_path, INPUTS)
    np.testing.assert_array_equal(values(stimuli), WANTED)
    assert stimuli.labels.tolist() == [-1] * 5


def test_a_folder_with_a_file_for_each_stimulus(tmp_path):
    for index in range(5):
        np.savez(tmp_path / f"s{index}.npz", **{"left:0": LEFT[index : index + 1], "right": RIGHT[index]})
    stimuli = open_several(tmp_path, INPUTS)
    np.testing.assert_array_equal(values(stimuli), WANTED)
    assert stimuli.names[2] == "s2.npz"


def test_bytes_are_scaled_to_the_input_range(tmp_path):
    np.savez(tmp_path / "d.npz", **{"left:0": np.full((1, 2, 1, 3), 255, np.uint8), "right": np.ones((1, 4), np.float32)})
    assert values(open_several(tmp_path / "d.npz", INPUTS, (-1.0, 3.0))).tolist() == [[3.0] * 6 + [1.0] * 4]


def test_split_gives_each_input_its_shape():
    left, right = split_inputs(network(), WANTED.astype(np.float32))
    np.testing.assert_array_equal(left, LEFT)
    np.testing.assert_array_equal(right, RIGHT.reshape(5, 4))


@every(
    "arrays, code, text",
    [
        ({"left:0": LEFT}, "E414", "no array 'right'"),
        ({"left:0": LEFT, "right": RIGHT[:3]}, "E414", "left:0"),
        ({"left:0": LEFT.transpose(0, 2, 3, 1), "right": RIGHT}, "E414", "transpose it to channels, height, width"),
        ({"left:0": LEFT, "right": RIGHT[:, :1]}, "E414", "E414"),
        ({"left:0": LEFT[:0], "right": RIGHT[:0]}, "E416", "E416"),
        ({"left:0": LEFT, "right": RIGHT, "y": np.zeros(3, int)}, "E414", "E414"),
        ({"left:0": LEFT, "right": np.full((5, 4), "a")}, "E414", "E414"),
    ],
)
def test_what_does_not_fit(arrays, code, text, tmp_path):
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(N2D2Error) as caught:
        open_several(tmp_path / "d.npz", INPUTS)
    assert caught.value.code == code and text in caught.value.line()


def test_not_a_number_is_told_with_its_input(tmp_path):
    np.savez(tmp_path / "d.npz", **{"left:0": LEFT, "right": np.full((5, 4), np.nan, np.float32)})
    with pytest.raises(N2D2Error) as caught:
        values(open_several(tmp_path / "d.npz", INPUTS))
    assert caught.value.code == "E418" and "stimulus 0 of d.npz: right" in caught.value.line()


def test_folders_without_data_and_with_a_part(tmp_path):
    with pytest.raises(N2D2Error) as caught:
        open_several(tmp_path, INPUTS)
    assert caught.value.code == "E416"
    np.save(tmp_path / "right.npy", RIGHT)
    with pytest.raises(N2D2Error) as caught:
        open_several(tmp_path, INPUTS)
    assert caught.value.code == "E401" and "lacks left_0.npy" in caught.value.line()
    for path in (tmp_path / "right.npy", tmp_path / "nothing"):
        with pytest.raises(N2D2Error) as caught:
            open_several(path, INPUTS)
        assert caught.value.code in ("E401", "E414")


def test_truth_and_integers_are_taken_as_they_are(tmp_path):
    """Bytes are scaled as those of pictures are, but not True, and not what stands for integers."""
    np.savez(tmp_path / "d.npz", **{"left:0": LEFT > 0, "right": np.full((5, 4), 200, np.uint8)})
    held = values(open_several(tmp_path / "d.npz", INPUTS, integers=["right"]))
    assert np.array_equal(held[:, :6], (LEFT > 0).reshape(5, -1))
    assert (held[:, 6:] == 200).all()


def test_an_input_called_y(tmp_path):
    """Labels are those that are given apart, if any."""
    np.savez(tmp_path / "d.npz", **{"left:0": LEFT, "y": np.ones((5, 4), np.float32)})
    inputs = {"left:0": INPUTS["left:0"], "y": INPUTS["right"]}
    assert open_several(tmp_path / "d.npz", inputs).labels.tolist() == [-1] * 5
    given = open_data(tmp_path / "d.npz", np.arange(5))
    stimuli = open_several(given, inputs)
    assert stimuli.labels.tolist() == [0, 1, 2, 3, 4]
    assert (values(stimuli)[:, 6:] == 1).all()
