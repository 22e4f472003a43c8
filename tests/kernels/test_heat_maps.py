"""Heat maps: the definition against float64 and by hand, the kernel against the definition."""

import numpy as np
import pytest
from support.heat_map_cases import heat_map_cases, program, wanted
from support.kernel_harness import each_compiler, printed_by

from n2d2py.arithmetic import FLOAT32
from n2d2py.arithmetic.fixed_scale import ONE, FixedScale
from n2d2py.arithmetic.heat_maps import CenterDecoder, ClassMap, HeatMaps, PointDecoder

SCORE = FixedScale.of(FLOAT32, ONE)


def test_points_by_hand():
    """A map of 5x4 cells over 80x64 pixels, so that a cell has 16 pixels: largest in column 2, row 1, larger to the right and above."""
    maps = np.zeros((3, 4, 5), np.float32)
    maps[0, 1, 1:4], maps[0, 0, 2], maps[0, 2, 2] = (0.25, 1, 0.75), 0.5, 0.25
    maps[1, 3, 4] = 0.5  # a corner stays
    heat = HeatMaps(3, 5, 4, 80, 64, SCORE)
    for refine, x, y in (("none", 2, 1), ("quarter", 2.25, 0.75), ("quadratic", 2 + 0.5 / 2, 1 - 0.25 / 2.5)):
        found = PointDecoder(heat, refine).points(maps)
        np.testing.assert_allclose(found[0], [ONE, 256 * x, 256 * y], atol=1)
        assert found[1].tolist() == [ONE // 2, 4 * 256, 3 * 256] and found[2].tolist() == [0, 0, 0]
    assert PointDecoder(heat, "none", True).points(maps)[0].tolist() == [ONE, 256 * 2 + 128, 256 + 128]


def test_the_top_of_a_parabola():
    """The quadratic rule finds the maximum of a drawn parabola within 1/16 pixel and 1/256 cell."""
    rng = np.random.default_rng(2)
    for x, y, width in rng.uniform((2, 2, 0.001), (7, 6, 0.01), (50, 3)):
        rows, columns = np.mgrid[:9, :10]
        values = (1 - width * ((columns - x) ** 2 + (rows - y) ** 2)).astype(np.float32)
        _, px, py = PointDecoder(HeatMaps(1, 10, 9, 320, 288, SCORE), "quadratic").points(values[None])[0] / 16
        assert abs(px - 32 * x) < 0.7 and abs(py - 32 * y) < 0.7


def test_boxes_are_those_of_the_paper():
    """Against max_pool2d and topk of PyTorch in float64, where no scores are equal: the same boxes in the same order."""
    torch = pytest.importorskip("torch")
    rng, checked = np.random.default_rng(4), 0
    for _ in range(20):
        heat = rng.permutation(576).reshape(3, 12, 16).astype(np.float32) / 576
        sizes = rng.uniform(0.5, 6, (2, 12, 16)).astype(np.float32)
        offsets = rng.uniform(0, 1, (2, 12, 16)).astype(np.float32)
        step = FixedScale.of(FLOAT32, 4096)
        found = CenterDecoder(HeatMaps(3, 16, 12, 64, 48, SCORE), step, step, ONE // 2, 20).boxes(heat, sizes, offsets)
        values = torch.tensor(heat, dtype=torch.float64)
        peaks = torch.where(torch.nn.functional.max_pool2d(values, 3, 1, 1) == values, values, 0).flatten()
        scores, places = (one.numpy() for one in torch.topk(peaks, 20))
        label, row, column = np.unravel_index(places[scores > 0.5], heat.shape)
        center = np.stack([column, row], 1) + offsets[:, row, column].T
        half = sizes[:, row, column].T / 2
        corners = np.clip(4 * np.concatenate([center - half, center + half], 1), 0, [64, 48, 64, 48])
        assert found[:, 0].tolist() == label.tolist()
        np.testing.assert_allclose(found[:, 1], ONE * scores[scores > 0.5], atol=1)
        np.testing.assert_allclose(found[:, 2:], 16 * corners, atol=1.1)
        checked += len(found)
    assert checked > 200


def test_equal_neighbors_are_one_peak():
    decoder = CenterDecoder(HeatMaps(1, 4, 3, 16, 12, SCORE), FixedScale.of(FLOAT32, 4096), None, 0, 100)
    plateau = np.ones((1, 3, 4), np.float32)
    assert len(decoder.boxes(plateau, np.ones((2, 3, 4), np.float32), None)) == 1
    assert len(decoder.boxes(0 * plateau, np.ones((2, 3, 4), np.float32), None)) == 0


def test_classes_of_pixels():
    scores = np.array([[[0.5, 0.1, np.nan]], [[0.5, 0.2, -np.inf]]], np.float32)
    assert ClassMap(2, 1, 3, SCORE, 0).best(scores).tolist() == [[0, 1, 1]]
    assert ClassMap(1, 1, 3, SCORE, ONE // 4).best(scores[:1]).tolist() == [[1, 0, 0]]


@each_compiler(84, 168)
def test_kernels_on_this_machine(compiler, count, tmp_path):
    cases = list(heat_map_cases(count, seed=count))
    printed = printed_by(program(cases, "std::fputs(text, stdout)"), compiler, tmp_path)
    assert list(map(int, printed)) == wanted(cases)
