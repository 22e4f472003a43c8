"""One plug-in of each form."""

import numpy as np

from n2d2py.contracts.windows import pad
from n2d2py.plugin import Function, Integers, Operator, attribute, chain, function, kernel, operator, plugin_header


@function
class SoftClip(Function):
    """x / (1 + |x / limit|)."""

    limit: float = attribute(1.0, doc="what large values come near to")
    onnx, ini = "test::SoftClip", "SoftClip"
    header, call = "several.hpp", "several::SoftClip"

    def compute(self, x):
        return x / (1 + np.abs(x) / x.dtype.type(self.limit))


@operator
class L2Pool(Operator):
    """The root of the sum of squares in each window."""

    kernel: tuple[int, int] = attribute(onnx="kernel_shape", ini="PoolDims", spatial=True)
    stride: tuple[int, int] = attribute((1, 1), onnx="strides", ini="StrideDims", spatial=True)
    pads: tuple[int, ...] = attribute((0, 0, 0, 0), ini="Pads")
    onnx, ini, access, nonnegative = "test::L2Pool", "L2Pool", "window", True
    header, call = "several.hpp", "several::l2Pool"

    def shape(self, x):
        size = [(n + self.pads[i] + self.pads[i + 2] - self.kernel[i]) // self.stride[i] + 1 for i, n in enumerate(x[2:])]
        if len(x) != 4 or min(size) < 1:
            raise ValueError("the window does not fit into the image")
        return (*x[:2], *size)

    def _squares(self, x):
        windows = np.lib.stride_tricks.sliding_window_view(pad(x, self.pads), self.kernel, (2, 3))
        return (windows[:, :, :: self.stride[0], :: self.stride[1]] ** 2).sum(axis=(4, 5))

    def compute(self, x):
        return np.sqrt(self._squares(x))

    def quantize(self, layer):
        return Integers(layer.scale / 16, 16 * (self.kernel[0] * self.kernel[1]) * layer.peak() ** 2)

    def sums(self, x):
        """floor(16 * sqrt(sum)): the root of a whole number, exact."""
        roots = np.floor(np.sqrt(256.0 * self._squares(x))).astype(np.int64)
        return roots


@operator
class Shuffle(Operator):
    """Channel g * n + i becomes i * groups + g."""

    groups: int
    onnx, ini, moves_values = "test::Shuffle", "Shuffle", True
    header, call = "several.hpp", "several::shuffle"

    def shape(self, x):
        if x[1] % self.groups:
            raise ValueError(f"{x[1]} channels are no {self.groups} groups")
        return x

    def compute(self, x):
        n, c = x.shape[:2]
        return x.reshape(n, self.groups, c // self.groups, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)


@operator
class Dot(Operator):
    """The sum over all inputs of weight[input] * x, with weights as an ONNX constant."""

    inputs, parameters = 0, ("weight",)
    onnx, access = "test::Dot", "pointwise"
    header, call = "several.hpp", "several::dot"

    def compute(self, *x, weight):
        return sum(w * one for w, one in zip(weight.reshape(-1), x, strict=True))

    def quantize(self, layer):
        factors = layer.params["weight"].reshape(-1) * [kind.scale for kind in layer.inputs]
        unit = float(np.abs(factors).max()) / 2**12
        whole = np.rint(factors / unit).astype(int)
        return Integers(unit, sum(abs(int(m)) * layer.peak(i) for i, m in enumerate(whole)), {"weight": whole})

    def sums(self, *x, weight):
        return sum(int(w) * one for w, one in zip(weight, x, strict=True))


@chain("fuse-shuffles", "two shuffles that undo each other", ("Shuffle", "Shuffle"))
def fuse_shuffles(first, second):
    return f"{first.op.groups} and {second.op.groups} groups are two shuffles"


@kernel("Pool", "several::OtherPool", plugin_header(__file__, "several.hpp"))
def is_small_max_pool(layer):
    return layer.op.mode == "Max" and layer.op.kernel == (2, 2)
