"""Calibration sources: pictures, arrays, synthetic data."""

import numpy as np
import pytest
from support.errors import error_line, error_of
from support.tables import every

from n2d2py import log
from n2d2py.data import open_source, synthetic
from n2d2py.data.input_data import open_data
from n2d2py.data.multi_input import open_multi_input
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.errors import N2D2Error
from n2d2py.graph import FilePort, Graph
from n2d2py.graph.inputs import split_inputs, stimulus_shape


def _all(stimuli):
    return np.concatenate([x for x, _, _ in stimuli.batches(16)])


def test_pictures_are_red_green_blue_in_the_input_range(tmp_path, picture):
    picture("d/b.png", [[[255, 0, 51]]])
    picture("d/a/a.png", [[7]])
    stimuli = open_source(tmp_path / "d", (3, 1, 1), Preprocessing((-1.0, 1.0)))
    assert stimuli.names == ["b.png", "a/a.png"] and stimuli.labels.tolist() == [-1, -1]
    np.testing.assert_allclose(_all(stimuli).reshape(2, 3), [[1, -1, -0.6], [-0.945098] * 3], rtol=1e-6)


@pytest.mark.parametrize("bounds, expected", [((0.0, 1.0), 0.2), ((0.0, 255.0), 51.0)])
def test_gray_networks_and_ranges(tmp_path, picture, bounds, expected):
    picture("d/a.png", [[[51, 51, 51]]])
    assert _all(open_source(tmp_path / "d", (1, 1, 1), Preprocessing(bounds))).reshape(-1) == np.float32(expected)


def test_pictures_are_resized(tmp_path, picture):
    picture("d/a.png", [[0, 100]])
    (values,) = _all(open_source(tmp_path / "d", (1, 1, 4), Preprocessing((0.0, 255.0))))
    assert values.tolist() == [[[0, 25, 75, 100]]]


@pytest.mark.parametrize(
    "save, dtype, expected",
    [("npy", np.float32, [3.0, 200.0]), ("npz", np.float64, [3.0, 200.0]), ("npz", np.uint8, [3 / 255, 200 / 255])],
)
def test_arrays(tmp_path, save, dtype, expected):
    x = np.array([3, 200], dtype).reshape(2, 1, 1, 1)
    path = tmp_path / f"d.{save}"
    np.save(path, x) if save == "npy" else np.savez(path, x=x, y=[4, 2])
    stimuli = open_source(path, (1, 1, 1))
    np.testing.assert_array_equal(_all(stimuli).reshape(-1), np.array(expected, np.float32))
    assert stimuli.labels.tolist() == ([-1, -1] if save == "npy" else [4, 2])


def test_a_csv_file_of_another_width_is_told_by_its_columns(tmp_path):
    np.savetxt(tmp_path / "d.csv", np.zeros((8, 640)), delimiter=",")
    with pytest.raises(N2D2Error, match=r"E414.*640 columns.*192 values"):
        open_source(tmp_path / "d.csv", (3, 8, 8))


@pytest.mark.parametrize("port", [None, FilePort((1, 2, 3)), FilePort((2, 3), None), FilePort((2, 1, 3), 1)])
def test_a_line_of_a_csv_file_is_a_sample_in_the_order_of_the_model_file(tmp_path, port):
    x = np.random.default_rng(3).normal(size=(5, 6)).astype(np.float32)
    np.savetxt(tmp_path / "d.csv", x, delimiter=",", header="a,b,c,d,e,f", comments="")
    found = _all(open_source(tmp_path / "d.csv", (6,) if port is None else (2, 3), port=port))
    np.testing.assert_allclose(found.reshape(5, 6), x, rtol=1e-6)


@every(
    "x, shape, message",
    [
        (np.zeros((2, 4, 5, 3)), (3, 4, 5), "takes Nx3x4x5; give -layout nhwc"),
        (np.zeros((3, 4, 5)), (3, 4, 5), "add an axis of stimuli in front"),
        (np.zeros((2, 7)), (8,), "an array 2x7"),
        (np.zeros((2, 7), np.int16), (7,), "E414: "),
        (np.zeros((0, 7)), (7,), "E416: "),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, x, shape, message):
    np.save(tmp_path / "d.npy", x)
    assert message in error_line(lambda: open_source(tmp_path / "d.npy", shape))


def test_what_is_no_source(tmp_path, picture):
    assert "does not exist" in error_line(lambda: open_source(tmp_path / "gone", (3, 1, 1)))
    (tmp_path / "x.bin").write_text("x")
    assert "neither a folder nor" in error_line(lambda: open_source(tmp_path / "x.bin", (3, 1, 1)))
    (tmp_path / "empty").mkdir()
    assert "E416" in error_line(lambda: open_source(tmp_path / "empty", (3, 1, 1)))
    (tmp_path / "empty" / "a.WAV").write_bytes(b"")
    assert "-audio" in error_line(lambda: open_source(tmp_path / "empty", (3, 1, 1)))
    picture("d/a.png", [[0]])
    assert "640" in error_line(lambda: open_source(tmp_path / "d", (640,)))
    assert "1x1x2" in error_line(lambda: open_source(tmp_path / "d", (2, 1, 1)))
    assert "-input-range 1:1 " in error_line(lambda: open_source(tmp_path / "d", (1, 1, 1), Preprocessing((1.0, 1.0))))


def test_values_that_are_not_finite(tmp_path):
    np.save(tmp_path / "d.npy", np.array([[0.0], [np.inf]]))
    assert "E418" in error_line(lambda: _all(open_source(tmp_path / "d.npy", (1,))))


def test_synthetic_data_warn_and_depend_on_the_seed():
    first, again, other = (_all(synthetic((3, 8, 8), 4, seed, (-1.0, 1.0))) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other) and not np.array_equal(first[0], first[1])
    assert -1 <= first.min() < -0.9 and 0.9 < first.max() <= 1
    assert [one.code for one in log.warnings_seen()] == ["W402"] * 3


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_changed_byte_of_an_archive_is_noticed(tmp_path, save):
    x = np.random.default_rng(2).random((40, 3, 5, 4), np.float32)
    save(tmp_path / "x.npz", x=x)
    content = bytearray((tmp_path / "x.npz").read_bytes())
    for place in range(400, len(content) - 400, 997):
        content[place] ^= 1
        (tmp_path / "bad.npz").write_bytes(content)
        assert "E402" in error_line(open_source, tmp_path / "bad.npz", (3, 5, 4))
        content[place] ^= 1
    np.testing.assert_array_equal(open_source(tmp_path / "x.npz", (3, 5, 4))[7], x[7])


@every(
    "held, shape",
    [
        ((3, 1, 8), (1, 8)),  # sound of one channel
        ((3, 8), (1, 8)),
        ((3, 1, 4, 5), (1, 4, 5)),
        ((3, 4, 5), (1, 4, 5)),
        ((3, 1), (1,)),
        ((3, 2, 8), (2, 8)),
    ],
)
def test_one_channel_may_have_no_axis(tmp_path, held, shape):
    x = np.random.default_rng(0).normal(size=held).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(_all(open_source(tmp_path / "x.npy", shape)), x.reshape(3, *shape))


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
    stimuli = open_multi_input(tmp_path / "d.npz", INPUTS)
    np.testing.assert_array_equal(values(stimuli), WANTED)
    assert stimuli.labels.tolist() == [0, 1, 2, 3, 4] and stimuli.shape == stimulus_shape(network()) == (10,)


def test_a_folder_with_a_file_for_each_input(tmp_path):
    np.save(tmp_path / "left_0.npy", LEFT)
    np.save(tmp_path / "right.npy", RIGHT)
    stimuli = open_multi_input(tmp_path, INPUTS)
    np.testing.assert_array_equal(values(stimuli), WANTED)
    assert stimuli.labels.tolist() == [-1] * 5


def test_bytes_are_scaled_to_the_input_range(tmp_path):
    np.savez(tmp_path / "d.npz", **{"left:0": np.full((1, 2, 1, 3), 255, np.uint8), "right": np.ones((1, 4), np.float32)})
    assert values(open_multi_input(tmp_path / "d.npz", INPUTS, (-1.0, 3.0))).tolist() == [[3.0] * 6 + [1.0] * 4]


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
    line = error_line(open_multi_input, tmp_path / "d.npz", INPUTS)
    assert code in line and text in line


def test_not_a_number_is_told_with_its_input(tmp_path):
    np.savez(tmp_path / "d.npz", **{"left:0": LEFT, "right": np.full((5, 4), np.nan, np.float32)})
    line = error_line(values, open_multi_input(tmp_path / "d.npz", INPUTS))
    assert "E418" in line and "stimulus 0 of d.npz: right" in line


def test_folders_without_data_and_with_a_part(tmp_path):
    assert "E416" in error_line(open_multi_input, tmp_path, INPUTS)
    np.save(tmp_path / "right.npy", RIGHT)
    error = error_of(open_multi_input, tmp_path, INPUTS)
    assert error.code == "E401" and "lacks left_0.npy" in error.line()
    for path in (tmp_path / "right.npy", tmp_path / "nothing"):
        assert error_of(open_multi_input, path, INPUTS).code in ("E401", "E414")


def test_truth_and_integers_are_taken_as_they_are(tmp_path):
    """Bytes are scaled as those of pictures are, but not True, and not what stands for integers."""
    np.savez(tmp_path / "d.npz", **{"left:0": LEFT > 0, "right": np.full((5, 4), 200, np.uint8)})
    held = values(open_multi_input(tmp_path / "d.npz", INPUTS, integers=["right"]))
    assert np.array_equal(held[:, :6], (LEFT > 0).reshape(5, -1))
    assert (held[:, 6:] == 200).all()


def test_an_input_called_y(tmp_path):
    """Labels are those that are given apart, if any."""
    np.savez(tmp_path / "d.npz", **{"left:0": LEFT, "y": np.ones((5, 4), np.float32)})
    inputs = {"left:0": INPUTS["left:0"], "y": INPUTS["right"]}
    assert open_multi_input(tmp_path / "d.npz", inputs).labels.tolist() == [-1] * 5
    given = open_data(tmp_path / "d.npz", np.arange(5))
    stimuli = open_multi_input(given, inputs)
    assert stimuli.labels.tolist() == [0, 1, 2, 3, 4]
    assert (values(stimuli)[:, 6:] == 1).all()
