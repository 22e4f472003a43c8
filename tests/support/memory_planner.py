"""Shared by the tests of memory: plans: safe on every shape, right about views, alignment, external inputs, scratch; honest about"""

from n2d2py.memory.problem import MemoryProblem
from support.memory_networks import Net

# spec 4.5: the shapes where N2D2's margin is short
UNSAFE_IN_N2D2 = [
    ((224, 224, 3), 12, 3, 2, 1),
    ((224, 224, 3), 16, 3, 2, 1),
    ((28, 28, 1), 2, 3, 1, 0),
    ((64, 64, 8), 16, 3, 1, 0),
]


def single_conv(shape, channels, kernel, stride, pad) -> MemoryProblem:
    net = Net(*shape)
    net.conv(net.input, channels, kernel, stride, pad)
    return net.done()
