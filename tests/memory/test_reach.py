"""How far outputs may lie over their inputs, against every distance tried byte by byte."""

from __future__ import annotations

import itertools
import random

from support.memory_networks import Net
from support.tables import every

from n2d2py.memory.access import Pointwise
from n2d2py.memory.manager import PlaneLayout
from n2d2py.memory.overlap import reach
from n2d2py.memory.problem import OpSpec, TensorSpec


def places(tensor: TensorSpec, stride: int, part: int) -> list[list[range]]:
    """For each line of a tensor the bytes of its elements, in the order in which they are visited."""
    lines = []
    for y, x in itertools.product(range(tensor.height), range(tensor.width)):
        first = (y * tensor.width + x) * stride + part
        if x == 0:
            lines.append([])
        width = tensor.element_bytes
        lines[-1] += [range(first + c * width, first + (c + 1) * width) for c in range(tensor.channels)]
    return lines


def meets(a: range, b: range, distance: int) -> bool:
    return a.start + distance < b.stop and b.start < a.stop + distance


def safe_elements(source: list[range], output: list[range], distance: int, backwards: bool) -> bool:
    """No element is stored over one that is read later."""
    order = list(range(len(source)))[:: -1 if backwards else 1]
    return not any(meets(output[i], source[j], distance) for at, i in enumerate(order) for j in order[at + 1 :])


def limits(safe, span: int) -> tuple[int, int]:
    """The largest distance up to which all are safe forwards, the smallest from which all are backwards."""
    ahead = -span
    while ahead < span and safe(ahead + 1, False):
        ahead += 1
    behind = span
    while behind > -span and safe(behind - 1, True):
        behind -= 1
    return ahead, behind


@every("seed", range(40))
def test_pointwise_operators(seed):
    """Elements of other sizes, pixels with gaps, channels within wider pixels."""
    rng = random.Random(seed)
    height, width, channels = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3)
    sizes = [rng.choice((1, 2, 4)) for _ in range(2)]
    parts = [size * rng.randint(0, 1) for size in sizes]
    gaps = [size * rng.randint(0, 2) for size in sizes]
    tensors = [TensorSpec(name, height, width, channels, size) for name, size in zip("xy", sizes, strict=True)]
    strides = [t.pixel_bytes + part + gap for t, part, gap in zip(tensors, parts, gaps, strict=True)]
    forms = [
        PlaneLayout(part + t.pixel_bytes, stride, width, height, size)
        for t, part, stride, size in zip(tensors, parts, strides, sizes, strict=True)
    ]
    found = reach(OpSpec("a", Pointwise(), ("x",), "y"), tensors[0], forms[0], parts[0], tensors[1], forms[1], parts[1])
    source, output = (list(itertools.chain(*places(t, s, p))) for t, s, p in zip(tensors, strides, parts, strict=True))
    whole = [form.bytes for form in forms]

    def safe(distance: int, backwards: bool) -> bool:
        return safe_elements(source, output, distance, backwards)

    ahead, behind = (min(max(found, -whole[1]), whole[0]) for found in limits(safe, max(whole) + 1))
    assert found is not None
    told = min(found.ahead, whole[0]), max(found.backward, -whole[1])  # beyond them nothing is shared
    assert told[0] <= ahead and told[1] >= behind
    if not any(gaps) and not any(parts):  # without gaps nothing is given away
        assert told == (ahead, behind)


@every("seed", range(40))
def test_windows(seed):
    """Line by line: a line of the output may cover what no later one reads."""
    rng = random.Random(seed)
    net = Net(rng.randint(3, 9), rng.randint(2, 4), rng.randint(1, 3))
    kernel, stride = rng.randint(1, 3), rng.randint(1, 3)
    pads = tuple(rng.randint(0, kernel - 1) for _ in range(4))
    net.conv(
        net.input,
        rng.randint(1, 4),
        (kernel, 1),
        (stride, 1),
        (pads[0], 0, pads[2], 0),
        rng.choice((1, 1, 2)) if kernel < 3 else 1,
    )
    problem = net.done()
    op = problem.ops[0]
    x, y = problem.tensors["input"], problem.tensors[op.output]
    forms = [PlaneLayout(t.pixel_bytes, t.pixel_bytes, t.width, t.height, 1) for t in (x, y)]
    found = reach(op, x, forms[0], 0, y, forms[1], 0)
    reads = op.reads(x, y.height)
    lines = [range(n * forms[0].line, (n + 1) * forms[0].line) for n in range(x.height)]
    stores = [range(n * forms[1].line, (n + 1) * forms[1].line) for n in range(y.height)]

    def safe(distance: int, backwards: bool) -> bool:
        order = list(range(y.height))[:: -1 if backwards else 1]
        return not any(
            meets(stores[n], lines[line], distance)
            for at, n in enumerate(order)
            for later in order[at:]
            for line in ([*range(reads[later][0], reads[later][-1] + 1)] if reads[later] else [])
        )

    ahead, behind = limits(safe, x.bytes + y.bytes)
    assert found is not None
    assert found.ahead == max(ahead, -y.bytes) or (found.ahead < ahead and not all(reads))
    assert found.backward == min(behind, x.bytes) or (found.backward > behind and not all(reads))
