"""Each shader on small random layers against the Python integers, under the validation layer."""

from collections import Counter

import numpy as np
import pytest
from support.attention_cases import masked_softmaxes, norms, products, softmaxes, sums
from support.kernel_cases import Sweep, convolutions, fully_connected, moves, pointwise, pools
from support.kernel_elements import blocks, repeats, takes
from support.kernel_resampling import deconvolutions, resizes
from support.kernel_residual import residual_cases
from support.vulkan_cases import check_on_device, lowered, need_validation, need_vulkan

from n2d2py.arithmetic import FloatRescale
from n2d2py_vulkan.dispatch import NoShader, fixed_point
from n2d2py_vulkan.elements import split_places
from n2d2py_vulkan.layers import packed_weights

SHADERS = {"conv", "depthwise", "elemwise", "normalize", "pool", "product", "resize", "softmax"}
WAYS = pytest.mark.parametrize(
    ("dot", "copy"), [(False, "0"), (True, "1")], ids=["float-sums-in-place", "dot-products-with-copies"]
)


def cases(seed: int, convs: int):
    sweep = Sweep(seed)
    made = [*convolutions(sweep, convs), *fully_connected(sweep), *pools(sweep), *pointwise(sweep), *resizes(sweep)]
    made += [*deconvolutions(sweep), *moves(sweep), *takes(sweep), *blocks(sweep), *repeats(sweep)]
    every = 1 if convs > 40 else 3
    for attention in (products, sums, softmaxes, masked_softmaxes, norms):
        made += attention(seed, every)
    return lowered([*made, *residual_cases(seed)])


@WAYS
def test_integers(tmp_path, dot, copy):
    need_vulkan()
    need_validation()
    found, reasons = cases(7, 40)
    few = found[dot::6]
    assert {one.shader for _, made in few for one in made} == SHADERS
    assert Counter(reasons)["its output overlaps an input, and invocations have no order"] > 5
    check_on_device(few, tmp_path, dot, N2D2_VULKAN_COPY=copy)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@WAYS
def test_more_integers(tmp_path, seed, dot, copy):
    need_vulkan()
    need_validation()
    check_on_device(cases(seed, 120)[0], tmp_path, dot, N2D2_VULKAN_COPY=copy)


def test_weights_are_words_of_four_inputs():
    """Two groups of three outputs and five inputs: a quad of outputs each, the second word of inputs filled up."""
    weights = np.arange(1, 31, dtype=np.int8).reshape(6, 5, 1, 1)
    words = packed_weights(weights, 2).view(np.int8).reshape(2, 1, 2, 4, 4)  # group, quad, quad of inputs, output, input
    assert words[0, 0, 0].tolist() == [[1, 2, 3, 4], [6, 7, 8, 9], [11, 12, 13, 14], [0] * 4]
    assert words[1, 0, 1].tolist() == [[20, 0, 0, 0], [25, 0, 0, 0], [30, 0, 0, 0], [0] * 4]


def test_places_are_the_sum_of_two_short_tables():
    """A transposed 30 x 40 x 8 with a border that is filled; random places have no such tables, and many of them are refused."""
    lines, columns, third = np.arange(30)[:, None, None] * 8, np.arange(40)[None, :, None] * 240, np.arange(8)
    places = np.where((lines < 0) | (columns < 480), -1, lines + columns + third).transpose(1, 0, 2).reshape(-1)
    outer, inner = split_places(places)
    assert len(outer) + len(inner) < 300
    found = (outer[:, None] + inner).reshape(-1)
    np.testing.assert_array_equal(np.where(found < 0, -1, found), places)
    with pytest.raises(NoShader, match="no order"):
        split_places(np.random.default_rng(0).permutation(2**20 + 1))


def test_floating_point_factors_stay_on_the_cpu():
    """The rounding mode of a GPU's products is its own choice."""
    with pytest.raises(NoShader, match="which GPUs compute exactly"):
        fixed_point(FloatRescale(np.array([0.1])), 1)
