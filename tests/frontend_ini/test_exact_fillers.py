"""Initial values to the last bit: the generator is seeded by the seed of the run and the name of the layer, as documented.

They look at `n2d2py.frontend.ini.fillers`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

Draw = Callable[[np.random.Generator, int], np.ndarray]
# weights of 4 outputs, 3 channels and windows of 2 x 3 as LAYER has them: 18 weights lead to an output, 24 from a channel
IN, OUT = 18, 24


def expected(role: str, draw: Draw, shape: tuple[int, ...], seed: int) -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64([seed, zlib.crc32(f"c/{role}".encode())]))
    return draw(generator, int(np.prod(shape))).astype(np.float32).reshape(shape)


def normal(mean: float, deviation: float) -> Draw:
    return lambda generator, count: generator.normal(mean, deviation, count)


def uniform(low: float, high: float) -> Draw:
    return lambda generator, count: generator.uniform(low, high, count)


LAYER = "[c]\nInput=sp\nType=Conv\nNbOutputs=4\nKernelDims=3 2\n"
FILLERS = [
    ("", normal(0, 0.05)),
    ("F=NormalFiller", normal(0, 1)),
    ("F=NormalFiller\nF.Mean=2", normal(2, 1)),
    ("F=NormalFiller\nF.StdDev=0.25", normal(0, 0.25)),
    ("F=NormalFiller\nF.StdDev=0", normal(0, 0)),
    ("F=UniformFiller", uniform(0, 1)),
    ("F=UniformFiller\nF.Min=-2", uniform(-2, 1)),
    ("F=UniformFiller\nF.Max=3", uniform(0, 3)),
    ("F=ConstantFiller", lambda generator, count: np.zeros(count)),
    ("F=ConstantFiller\nF.Value=-1.5", lambda generator, count: np.full(count, -1.5)),
    ("F=HeFiller", normal(0, sqrt(2 / IN))),
    ("F=HeFiller\nF.VarianceNorm=FanIn", normal(0, sqrt(2 / IN))),
    ("F=HeFiller\nF.VarianceNorm=FanOut", normal(0, sqrt(2 / OUT))),
    ("F=HeFiller\nF.VarianceNorm=Average", normal(0, sqrt(2 / 21))),
    ("F=HeFiller\nF.MeanNorm=0.5\nF.Scaling=3", normal(0.5, 3 * sqrt(2 / IN))),
    ("F=XavierFiller", uniform(-sqrt(3 / IN), sqrt(3 / IN))),
    ("F=XavierFiller\nF.Distribution=Uniform\nF.Scaling=0.5", uniform(-0.5 * sqrt(3 / IN), 0.5 * sqrt(3 / IN))),
    ("F=XavierFiller\nF.VarianceNorm=FanOut", uniform(-sqrt(3 / OUT), sqrt(3 / OUT))),
    ("F=XavierFiller\nF.VarianceNorm=Average", uniform(-sqrt(3 / 21), sqrt(3 / 21))),
    ("F=XavierFiller\nF.Distribution=Normal", normal(0, sqrt(1 / IN))),
    ("F=XavierFiller\nF.Distribution=Normal\nF.VarianceNorm=Average\nF.Scaling=2", normal(0, 2 * sqrt(1 / 21))),
]


@pytest.mark.parametrize("seed", [1, 7])
@pytest.mark.parametrize(("keys", "draw"), FILLERS)
def test_weights(keys, draw, seed, build):
    lines = [f"Weights{line.replace('F', 'Filler', 1)}" for line in keys.splitlines()]
    found = build(LAYER + "\n".join(lines), seed=seed)
    assert np.array_equal(found.params("c")["weights"], expected("Weights", draw, (4, 3, 2, 3), seed))
    assert np.array_equal(found.params("c")["bias"], expected("Bias", normal(0, 0.05), (4,), seed))


BIASES = [
    ("F=HeFiller", normal(0, sqrt(2))),
    ("F=HeFiller\nF.VarianceNorm=FanOut", normal(0, sqrt(2 / 4))),
    ("F=HeFiller\nF.VarianceNorm=Average", normal(0, sqrt(2 / 2.5))),
    ("F=XavierFiller", uniform(-sqrt(3), sqrt(3))),
    ("F=ConstantFiller\nF.Value=0.75", lambda generator, count: np.full(count, 0.75)),
    ("F=NormalFiller\nF.Mean=1\nF.StdDev=2", normal(1, 2)),
]


@pytest.mark.parametrize(("keys", "draw"), BIASES)
def test_biases(keys, draw, build):
    """One value leads to each output of a bias."""
    lines = [f"Bias{line.replace('F', 'Filler', 1)}" for line in keys.splitlines()]
    found = build(LAYER + "\n".join(lines))
    assert np.array_equal(found.params("c")["bias"], expected("Bias", draw, (4,), 1))
    assert np.array_equal(found.params("c")["weights"], expected("Weights", normal(0, 0.05), (4, 3, 2, 3), 1))


@pytest.mark.parametrize("role", ["Weights", "Bias"])
def test_a_negative_deviation_is_refused(role, refusal):
    error = refusal(f"{LAYER}{role}Filler=NormalFiller\n{role}Filler.StdDev=-0.5\n")
    assert f"{role}Filler.StdDev=-0.5 is below 0" in error


def test_a_layer_of_more_values_than_are_drawn_at_once(build):
    """The same as in one go."""
    found = build("[c]\nInput=sp\nType=Fc\nNbOutputs=1100\n", (1000, 1, 1)).params("c")["weights"]
    assert np.array_equal(found.reshape(1100, 1000), expected("Weights", normal(0, 0.05), (1100, 1000), 1))
