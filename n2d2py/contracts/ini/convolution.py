"""Common parts of Conv and Deconv sections: geometry, weights in N2D2's order, output permutation."""

from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.contracts.ini.keys import ACTIVATED, NB_OUTPUTS, THIRD_AXIS, read_window, window_keys
from n2d2py.contracts.ini.layers import LayerContext
from n2d2py.contracts.ini.mapping import MAPPING_KEYS, as_groups, read_mapping
from n2d2py.contracts.ini.trained import with_trained_weights
from n2d2py.contracts.ini.weights import fill, filler_keys
from n2d2py.contracts.windows import Pads
from n2d2py.graph.shapes import height
from n2d2py.ini import Ignored, Key, Kind

_FILTERS = Ignored(
    "",
    "kernels of filters",
    "gives the weights of a filter (Gaussian, Gabor, ...)",
    "store its values as weights, give them with -w, and remove it",
    changes=True,
)
CONVOLUTION = with_trained_weights(ACTIVATED).extended(
    NB_OUTPUTS,
    *window_keys("Kernel", None, size=True),
    *window_keys("Stride", 1),
    *window_keys("Padding", 0, signed=True),
    *window_keys("Dilation", 1),
    *filler_keys("Weights"),
    *filler_keys("Bias"),
    *MAPPING_KEYS,
    accepted=(*_FILTERS.for_keys("Kernel", "Kernel.*", "Kernel[*"), *THIRD_AXIS),
)

_ORDER = "Order of the stored outputs as start:step pairs. 1:2,0:2 stores odd outputs before even ones."
REMAP = Key("OutputsRemap", Kind.STRING, "", _ORDER)

CONVOLUTION_CONFIG = (
    Key("NoBias", Kind.BOOL, False, "Leave out the bias."),
    Key("WeightsExportFormat", Kind.ENUM, "OCHW", "Axis order of stored weights.", ("OCHW", "HWCO")),
    Key("WeightsExportFlip", Kind.BOOL, False, "Stored kernels are rotated by 180 degrees."),
    REMAP,
)


@dataclass(frozen=True)
class ConvolutionAttributes:
    """Kernel, stride and dilation (vertical, horizontal), pads (top, left, bottom, right).

    `line`: the layer is one-dimensional: its KernelDims has one value and its input has height 1.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: Pads
    dilation: tuple[int, int]
    line: bool


def read_geometry(context: LayerContext) -> ConvolutionAttributes:
    """Return the window of a convolution, whose inputs become images. Raises E211 or E212 for its dimensions."""
    values = context.values
    context.as_images()
    dims = values["KernelDims"]
    line = dims is not None and len(dims) == 1
    if line and any(height(shape) != 1 for shape in context.shapes):
        what = f"KernelDims has 1 value, but the input has height {height(context.shapes[0])}"
        raise context.fail("E211", what, "give X and Y", "KernelDims")
    kernel = read_window(values, "Kernel", None, size=True, line=1 if line else None)
    stride, dilation = (read_window(values, base, 1, line=1 if line else None) for base in ("Stride", "Dilation"))
    pads = read_window(values, "Padding", 0, line=0 if line else None)
    return ConvolutionAttributes(kernel, stride, (*pads, *pads), dilation, line)


def read_parameters(context: LayerContext, kernel: tuple[int, int]) -> tuple[dict[str, np.ndarray | None], int]:
    """Return ({"weights" (O, C / groups, KH, KW), "bias" (O) or None}, groups) of a convolution.

    An irregular mapping gives dense weights with zeros. Raises E213, E232 for the OutputsRemap, and the errors of loading.
    """
    values, outputs = context.values, context.values["NbOutputs"]
    mapping, count = read_mapping(context)
    groups = 1 if mapping is None else as_groups(mapping)
    if mapping is not None and (mapping.sum(axis=1) == 0).any():
        what = f"{int((mapping.sum(axis=1) == 0).sum())} outputs have no connection"
        log.warning("W213", what, where=values.section.location, remedy="correct the Mapping keys")
    weights = _weights(context, outputs, count, kernel, mapping, groups)
    bias = None if values["NoBias"] else context.parameter("biases", (outputs,))
    return remap_outputs(context, weights, bias), groups or 1


def _weights(
    context: LayerContext, outputs: int, count: int, kernel: tuple[int, int], mapping: np.ndarray | None, groups: int | None
) -> np.ndarray:
    values = context.values
    if mapping is None or groups is not None:
        shape = (outputs, count // (groups or 1), *kernel)
        by_place = values["WeightsExportFormat"] == "HWCO"
        stored = context.parameter("weights", shape, order=(2, 3, 1, 0) if by_place else ())
        if by_place:
            stored = stored.reshape(*kernel, shape[1], outputs).transpose(3, 2, 0, 1)
    else:
        shape = (outputs, count, *kernel)  # N2D2 fills all weights, whether they are connected or not
        initial = None
        if context.weights is not None:
            initial = fill(values, "Weights", shape, seed=context.seed, name=context.name)[mapping]
        rows = (mapping.sum(axis=1) * kernel[0] * kernel[1]).tolist()
        connected = context.parameter("weights", (int(mapping.sum()), *kernel), initial, rows)
        context.connected = mapping
        stored = np.zeros((outputs, count, *kernel), np.float32)
        stored[mapping] = connected
    return stored[:, :, ::-1, ::-1] if values["WeightsExportFlip"] else stored


def _outputs_remap(context: LayerContext, outputs: int) -> np.ndarray | None:
    """Return the position in the stored order of each output, from OutputsRemap; None if the order is kept.

    "1:4,0:4,3:4,2:4" stores 1, 5, 9, ... then 0, 4, 8, ... and so on. Raises E232 if an output is missing or repeated.
    """
    text = context.values["OutputsRemap"]
    if not text:
        return None
    order: list[int] = []
    for pair in text.split(","):
        start, _, step = pair.strip().partition(":")
        if not (start.isdecimal() and step.isdecimal() and int(step) > 0):
            what = f"OutputsRemap: '{pair.strip()}' is not start:step"
            raise context.fail("E232", what, "give pairs such as 1:2,0:2", "OutputsRemap")
        order += range(int(start), outputs, int(step))
        if len(order) > outputs:
            break
    if sorted(order) != list(range(outputs)):
        what = f"OutputsRemap={text} does not name each of the {outputs} outputs once"
        raise context.fail("E232", what, "give pairs such as 1:2,0:2", "OutputsRemap")
    return np.argsort(order)


def remap_outputs(context: LayerContext, weights: np.ndarray, bias: np.ndarray | None) -> dict[str, np.ndarray | None]:
    """Return stored weights and bias in the layer's output order; reorder the weight scales of the context too."""
    remap = _outputs_remap(context, context.values["NbOutputs"])
    if remap is not None and context.weights is not None:
        weights, bias = weights[remap], None if bias is None else bias[remap]
        if context.weight_scales is not None and context.weight_scales.size > 1:
            context.weight_scales = context.weight_scales[remap]
    return {"weights": weights, "bias": bias}
