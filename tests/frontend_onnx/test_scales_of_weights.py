"""The scales of quantized weights: one of all, or one of each output, along whichever axis has the outputs."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.frontend.onnx.weight_scales import weight_scales

COLUMN = np.array([1.0, 2.0, 4.0])


def along(axis: int, shape: tuple[int, ...], values) -> np.ndarray:
    """A grid of scales that differ along one axis only."""
    return np.broadcast_to(np.reshape(values, [-1 if at == axis else 1 for at in range(len(shape))]), shape)


@every(
    "grid, outputs, wanted",
    [
        (np.full((3, 2), 0.5), 3, [0.5]),
        (np.full((3, 2), 0.5), 4, [0.5]),
        (np.full((1,), 0.25), 1, [0.25]),
        (np.full((1, 1, 1), 0.25), 7, [0.25]),
        (np.float64(0.125)[None], 5, [0.125]),
        (COLUMN, 3, COLUMN),
        (along(0, (3, 2), COLUMN), 3, COLUMN),
        (along(0, (3, 5), COLUMN), 3, COLUMN),
        (along(1, (2, 3), COLUMN), 3, COLUMN),
        (along(1, (5, 3), COLUMN), 3, COLUMN),
        (along(0, (3, 4, 2, 2), COLUMN), 3, COLUMN),
        (along(1, (4, 3, 2, 2), COLUMN), 3, COLUMN),
        (along(2, (4, 5, 3), COLUMN), 3, COLUMN),
        (along(1, (3, 3), COLUMN), 3, COLUMN),
        (along(1, (4, 3, 2, 2), COLUMN), 6, [1, 2, 4, 1, 2, 4]),
        (along(1, (4, 3, 2, 2), COLUMN), 9, [1, 2, 4, 1, 2, 4, 1, 2, 4]),
        (along(0, (3, 5), COLUMN), 4, None),
        (along(0, (3, 5), COLUMN), 5, None),
        (along(0, (3, 5), COLUMN), 2, None),
        (along(0, (3, 2), COLUMN), 2, None),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), 2, None),
        (np.array([[1.0, 1.0, 2.0], [3.0, 3.0, 3.0]]), 2, None),
        (np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [4.0, 4.0, 4.0]]), 3, None),
        (np.zeros((0, 3)), 3, None),
    ],
)
def test_one_of_all_or_one_of_each_output(grid, outputs, wanted):
    found = weight_scales(grid, outputs)
    if wanted is None:
        assert found is None
    else:
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, wanted)
