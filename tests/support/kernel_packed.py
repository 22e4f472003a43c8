"""Layers whose weights have few bits or are halves, for the sweeps of kernels."""

from dataclasses import replace
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.contracts.cpp.arrays import Storage
from n2d2py.graph.forms import Real, Weighted
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K1, K3, Window
from support.kernel_simd import dense_cases, line_cases

KINDS = {
    "binary": (np.array([-1, 1]), Storage(1, 2, 0, -1)),
    "odd of 2 bits": (np.arange(-3, 4, 2), Storage(2, 2, 0, -3)),
    "ternary": (np.arange(-1, 2), Storage(2, 1, 2, -2)),
    "2 bits": (np.arange(-2, 2), Storage(2, 1, 2, -2)),
    "odd of 4 bits": (np.arange(-15, 16, 2), Storage(4, 2, 0, -15)),
    "odd of 3 bits": (np.arange(-7, 8, 2), Storage(4, 2, 0, -15)),
    "4 bits": (np.arange(-8, 8), Storage(4, 1, 8, -8)),
    "odd of 8 bits": (np.arange(-255, 256, 2), Storage(8, 2, 0, -255)),
}
"""Values of weights, and how they are stored."""


class FewBits(cases.Sweep):
    """Layers whose weights have few bits, each kind of them in turn."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.few = cycle(values for values, _ in KINDS.values())

    def weights(self, shape, kind: NumType) -> np.ndarray:
        values = next(self.few)
        ends = values[[0, -1]][np.arange(np.prod(shape)) % 2].reshape(shape)
        drawn = np.where(self.rng.random(shape) < 0.1, ends, self.rng.choice(values, shape))
        return drawn.astype(np.int16 if np.abs(values).max() > 127 else np.int8)


def few_bits(seed: int) -> list[harness.Case]:
    sweep = FewBits(seed)
    made = [*dense_cases(sweep), *line_cases(sweep)]
    kinds = cycle(((cases.U8, cases.U8), (cases.S8, cases.S8), (cases.U16, cases.S16), (cases.U8, NumType(32))))
    shapes = [(1, c, *size) for c, size in zip((1, 3, 7, 16, 33, 65, 130, 257), cycle([(1, 1), (2, 3), (1, 4), (3, 1)]))]
    for shape, outputs, layout in zip(shapes, cycle((1, 10, 17, 40)), cycle(("apart", "strided", "wrapped"))):
        made.append(sweep.fc(shape, outputs, next(kinds), layout))
    return [case for case in made if case.node.form.weights.size]


WEIGHTS = {
    "random": lambda rng, shape: rng.integers(-8, 8, shape),
    "least": lambda rng, shape: np.full(shape, -8),
    "alternating": lambda rng, shape: np.where(np.indices(shape)[2:].sum(axis=0) % 2, 7, -8),
    "odd": lambda rng, shape: 2 * rng.integers(-8, 8, shape) + 1,
    "outputs of one sign": lambda rng, shape: (
        np.where(np.arange(shape[0])[:, None, None, None] % 2, 7, -8) + np.zeros(shape, int)
    ),
}
"""Weights (O, C, 3, 3) of 4 bits."""
FEWER = {
    "two bits": lambda rng, shape: rng.integers(-2, 2, shape),
    "one bit": lambda rng, shape: 2 * rng.integers(0, 2, shape) - 1,
    "odd, two bits": lambda rng, shape: 2 * rng.integers(-2, 2, shape) + 1,
    "largest odd": lambda rng, shape: np.where(rng.random(shape) < 0.1, 15, -15),
}
"""Of fewer bits, and the largest odd ones of 4 bits, whose transforms reach the ends of a byte."""


def winograd_case(
    sweep: cases.Sweep,
    channels: int,
    outputs: int,
    size,
    pads,
    output: NumType,
    layout: str,
    kind: str,
    zero: int,
    inputs: NumType = cases.U8,
) -> harness.Case:
    """A 3 x 3 convolution of stride 1 with weights of a `kind` of `WEIGHTS` or `FEWER`; `zero`: of the inputs."""
    plain = cases.S8 if inputs.signed else cases.U8
    case = sweep.conv((1, channels, *size), outputs, K3._replace(pads=pads), (plain, output), layout, zero=zero)
    weighted = case.node.form
    assert isinstance(weighted, Weighted)
    weights = (WEIGHTS | FEWER)[kind](sweep.rng, weighted.weights.shape).astype(np.int8)
    case.node.form = replace(weighted, weights=weights)
    return case


def half_cases(seed: int) -> list[harness.Case]:
    """Convolutions of all kinds and fully connected layers with halves for weights."""
    sweep, f = cases.Sweep(seed), (FLOAT32, FLOAT32)
    made = [
        sweep.conv((1, 5, 7, 6), 11, K3, f, "strided"),
        sweep.conv((1, 16, 5, 5), 4, K1, f),
        sweep.depthwise((1, 8, 9, 8), Window((3, 2), (2, 1), (1, 0, 1, 1), (1, 2)), f, "wrapped"),
        sweep.conv((1, 12, 6, 6), 8, K3, f, groups=4),
        sweep.fc((1, 7, 3, 3), 10, f, "apart"),
        sweep.fc((1, 100), 5, f, "strided"),
    ]
    for case in made:
        case.node.form = Real({**case.node.params, "weights": case.node.params["weights"].astype(np.float16)})
    return made
