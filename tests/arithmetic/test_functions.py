"""The functions that are made of correctly rounded operations, against the C library's: within a few of the last bits."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.arithmetic import functions

LIBRARY = {
    "exp": np.exp,
    "log": np.log,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 0.25, -0.25, 22.0, -22.0, 1e8, 1.6e6])


@every("name", LIBRARY)
def test_near_the_library(name):
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            rng.normal(size=20000) * 10.0 ** rng.integers(-8, 5, 20000),
            rng.uniform(-1, 1, 20000),
            np.arange(-200, 200) * (np.pi / 4),
            SPECIAL,
        ]
    )
    x = np.abs(x) + 1 if name == "acosh" else x
    if name in ("sin", "cos", "tan"):
        x = x[(np.abs(x) < 1e6) & (x != 0) | ~np.isfinite(x)]
    with np.errstate(all="ignore"):
        want, found = LIBRARY[name](x), getattr(functions, name)(x)
    assert np.array_equal(np.isnan(want), np.isnan(found))
    finite = np.isfinite(want)
    assert np.array_equal(want[~finite & ~np.isnan(want)], found[~finite & ~np.isnan(want)])
    assert (np.signbit(want) == np.signbit(found))[finite].all()
    error = np.abs(found[finite] - want[finite]) / np.maximum(np.abs(want[finite]), 1e-300)
    limit = 1e-13 if name in ("sin", "cos", "tan") else 4e-15  # next to a root, relative to the root's distance
    assert error.max() < limit, (x[finite][error.argmax()], error.max())


def test_angles_beyond_the_parts_of_pi_keep_their_period_in_float32():
    x = np.float32(10.0) ** np.arange(6, 9) * np.float32(1.37)
    for name in ("sin", "cos"):
        np.testing.assert_allclose(getattr(functions, name)(x), LIBRARY[name](x.astype(np.float64)), atol=1e-7)
