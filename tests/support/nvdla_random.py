"""Random networks: chains of convolutions, layers that are split, sums, concatenations, pools, slices, fully connected ends."""

import numpy as np

from n2d2py.graph import Graph
from support.ops import Concat, ElemWise, IndexSelect, Pool
from support.small_graphs import RELU, Net

__all__ = ["random_network"]


def random_network(seed: int, blocks: int, wide: bool = False) -> Graph:
    """A network of so many blocks; `wide`: with a layer whose weights fill more than the buffer of nv_small."""
    return _Grower(np.random.default_rng(seed), seed).grow(blocks, wide)


class _Grower:
    def __init__(self, random: np.random.Generator, seed: int):
        self.random = random
        shape = (int(random.integers(1, 20)), int(random.integers(5, 13)), int(random.integers(5, 13)))
        self.net, self.count = Net(shape, seed), 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def shape(self, tensor: str) -> tuple[int, int, int]:
        return tuple(self.net.graph.shape(tensor)[1:])

    def grow(self, blocks: int, wide: bool) -> Graph:
        x = self.conv("x")
        at = int(self.random.integers(blocks))
        for number in range(blocks):
            if wide and number == at:
                x = self.conv(self.conv(x, 70), int(self.random.integers(230, 300)), kernel=(3, 3))
            grow = self.random.choice([self.conv, self.conv, self.residual, self.concat, self.pool, self.take, self.grouped])
            x = grow(x)
        if self.random.integers(2):
            x = self.fc(x)
            if self.random.integers(2):
                x = self.net.fc(self.name("fc"), x, int(self.random.integers(1, 40)))
        elif not x.startswith("conv"):
            x = self.conv(x)  # what moves values is no end
        return self.net.done(x)

    def conv(self, x: str, outputs: int = 0, kernel: tuple[int, int] | None = None, same: bool = False, groups: int = 1) -> str:
        _, h, w = self.shape(x)
        kernel = kernel or tuple(int(self.random.choice([1, 2, 3])) for _ in range(2))
        if same:
            kernel = tuple(int(self.random.choice([1, 3])) for _ in range(2))
        pads = (kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2)
        if not same and self.random.integers(2) and h > 3 and w > 3:
            pads = (0, 0, 0, 0)
        stride = tuple(1 if same or n < 6 else int(self.random.integers(1, 3)) for n in (h, w))
        return self.net.conv(
            self.name("conv"),
            x,
            outputs or int(self.random.choice([1, 3, 5, 8, 9, 16, 20, 33, 40])),
            kernel,
            RELU if self.random.integers(3) else None,
            groups,
            stride=stride,
            pads=pads,
        )

    def grouped(self, x: str) -> str:
        c = self.shape(x)[0]
        groups = c if c % 2 or self.random.integers(2) else 2
        return self.conv(x, groups * int(self.random.integers(1, 3)), groups=groups)

    def residual(self, x: str) -> str:
        c = self.shape(x)[0]
        y = self.conv(self.conv(x, same=True), c, same=True)
        other = x if self.random.integers(2) else self.conv(x, c, same=True)
        return self.net.add(self.name("sum"), ElemWise("Sum"), y, other, activation=RELU if self.random.integers(2) else None)

    def concat(self, x: str) -> str:
        parts = [self.conv(x, same=True) for _ in range(int(self.random.integers(2, 4)))]
        return self.net.add(self.name("concat"), Concat(), *parts)

    def pool(self, x: str) -> str:
        _, h, w = self.shape(x)
        kernel = tuple(int(self.random.integers(1, min(4, n + 1))) for n in (h, w))
        stride = tuple(int(self.random.integers(1, k + 1)) for k in kernel)
        pads = tuple(int(self.random.integers(0, k)) for k in (*kernel, *kernel))
        mode = str(self.random.choice(["Max", "Average"]))
        return self.net.add(self.name("pool"), Pool(mode, kernel, stride, pads, count_pad=True), x)

    def take(self, x: str) -> str:
        c, h, _ = self.shape(x)
        channels = self.random.permutation(c)[: max(1, c - 2)] if self.random.integers(2) else np.arange(c // 2, c)
        rows = tuple(range(1, h)) if h > 3 and self.random.integers(2) else None
        return self.net.add(self.name("take"), IndexSelect((tuple(int(one) for one in channels), rows, None)), x)

    def fc(self, x: str) -> str:
        return self.net.fc(self.name("fc"), x, int(self.random.integers(1, 80)))
