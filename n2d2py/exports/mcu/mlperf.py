"""MLPerf Tiny: the benchmarks whose firmware an export can contain, and the conversion of their samples to the network's input."""

from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest
from n2d2py.exports.cpp.conversion import byte_tables
from n2d2py.graph import PixelMap, QuantGraph, Shape, channels, dims_text, elements, height, width


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, as the runner of https://github.com/mlcommons/tiny has it.

    Attributes:
        shape: of the input, (C, H, W) or (F,); three channels are RGB.
        sample: type of the elements of a sample, which arrive channels-last.
        factor, offset: factor * element + offset is the real value of the reference model's input.
        baud: of the serial line in performance and accuracy mode.
    """

    name: str
    shape: tuple[int, ...]
    outputs: int
    sample: type[np.generic] = np.uint8
    factor: float = 1.0
    offset: float = 0.0
    baud: int = 115200

    @property
    def reconstructs(self) -> bool:
        """True if the result is the mean squared error of the output against the input."""
        return self.outputs == elements((1, *self.shape))


_KEYWORD_SCALE = 0.5847029089927673
"""Of the input of kws_ref_model.tflite, whose zero point is 83; the samples are quantized with both."""
BENCHMARKS = {
    one.name: one
    for one in (
        Benchmark("ic01", (3, 32, 32), 10),
        Benchmark("vww01", (3, 96, 96), 2, factor=1 / 255),
        Benchmark("kws01", (1, 49, 10), 12, np.int8, _KEYWORD_SCALE, -83 * _KEYWORD_SCALE),
        Benchmark("ad01", (640,), 640, np.float32, baud=921600),
    )
}
"""By name. sww01 is not among them: its firmware receives sound over I2S by drivers of the board."""


class BenchmarkView:
    """A benchmark as the templates see it, for a network that fits it.

    The byte of an image means the same as in the calibration data where that is known, else the same as for the reference model.

    Attributes:
        tables: literals of the stored values of the bytes of a sample, by channel or once for all; () where bytes stay
            unchanged.
        order: the channel of a sample that each channel of the input is.
    """

    def __init__(self, benchmark: Benchmark, request: ExportRequest):
        self.benchmark, self.tables, self.order = benchmark, (), ()
        if benchmark.sample != np.float32:
            count = 3 if benchmark.shape[0] == 3 else 1
            pixels = request.contract.pixels if count == 3 else None
            pixels = pixels or PixelMap((benchmark.factor,) * count, (benchmark.offset,) * count, tuple(range(count)))
            elements_of_bytes = np.arange(256, dtype=np.uint8).view(benchmark.sample).astype(int)
            kind = request.graph.type(request.graph.user_inputs[0])
            self.tables, self.order = byte_tables(pixels, elements_of_bytes, kind), pixels.order


def check_benchmark(benchmark: Benchmark, graph: QuantGraph) -> None:
    """Raise E705 for a network that does not fit the benchmark."""
    shapes = [graph.shape(name) for name in graph.user_inputs]
    sizes = [elements(graph.shape(name)) for name in graph.user_outputs]
    fits = list(map(_planes, shapes)) == [_planes((1, *benchmark.shape))] and sizes == [benchmark.outputs]
    if not fits or graph.states:
        inputs, outputs = " and ".join(dims_text(shape[1:]) for shape in shapes), " and ".join(map(str, sizes))
        wanted = f"one input of {dims_text(benchmark.shape)} and one output of {benchmark.outputs} values"
        has = f"{inputs} and {outputs}{', and states' if graph.states else ''}"
        what = f"MLPerfTiny={benchmark.name} requires {wanted}; the model has {has}"
        raise N2D2Error("E705", what, remedy="correct MLPerfTiny, or export the model of the benchmark")


def warn_of_negative_results(benchmark: Benchmark, graph: QuantGraph) -> None:
    """W706 where outputs can be negative: MLCommons' runner divides the results of a sample by their sum."""
    kind = graph.type(graph.user_outputs[0])
    if not benchmark.reconstructs and kind.qmin < kind.zero_point:
        what = "results can be negative, which the score of MLCommons' runner does not expect: it divides them by their sum"
        log.warning("W706", f"MLPerfTiny={benchmark.name}: {what}", remedy="end the model with Softmax")


def _planes(shape: Shape) -> tuple[int, int, int]:
    return channels(shape), height(shape), width(shape)
