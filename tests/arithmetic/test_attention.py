"""Powers of a softmax: near the exact ones at every scale, within 32 bits."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.arithmetic.attention import ONE, exponentials, powers_of

SCALES = (1e-12, 1e-6, 1e-5, 3.3e-4, 1e-3, 0.01, 0.1, 0.7, 1.0, 3.0, 100.0, 1e6)


@every("scale", SCALES)
def test_powers_of_16_bits_are_near_the_exact_ones(scale):
    powers = exponentials(scale, 16)
    multiplier, shift, limit = powers.tolist()
    below = np.arange(65536)
    found = powers_of((65535 - below)[None], powers)[0]
    assert powers.dtype == np.int32 and 0 <= shift <= 30 and 1 <= limit <= 65535 and multiplier * limit < 2**31
    assert found[0] == ONE
    np.testing.assert_allclose(found, ONE * np.exp(-scale * below), rtol=0, atol=1.5)
    assert limit == 65535 or not found[limit:].any()


@every("scale", SCALES)
def test_powers_of_bytes_are_the_nearest_integers(scale):
    found = powers_of(np.arange(255, -1, -1)[None], exponentials(scale, 8))[0]
    np.testing.assert_array_equal(found, np.rint(ONE * np.exp(-scale * np.arange(256))))
