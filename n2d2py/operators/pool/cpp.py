"""Max and average pooling."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue, moving_epilogue
from n2d2py.exports.cpp.layer import Layer, cpp, window
from n2d2py.exports.cpp.parts import Expression
from n2d2py.exports.cpp.selection import vectors


@cpp("Pool")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a pooling layer."""
    op, kind, selection = layer.op, layer.inputs[0], layer.portable
    types: dict[str, str | Expression] = dict(layer.planes)
    constants = {**window(op.kernel, op.stride, op.pads), "Serial": layer.serial}
    kernel = "poolMax" if op.mode == "Max" else "poolAverage"
    if layer.has("scales"):
        kernel, order = "poolMean", ("lanes", "columns", "rows").index(op.order(layer.input_shape[2:]))
        types.update(
            Scale=layer.constants("scale", "float", {"scale": layer.values("scales")[0]}), Epilogue=epilogue(layer, selection)
        )
        constants.update(InputZero=kind.zero_point, CountPad=op.count_pad, Order=order)
    elif op.mode == "Max":
        types["Epilogue"] = moving_epilogue(layer, clamped=True)
    else:
        selection = vectors(layer)
        reach = 0 if kind.is_float else max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin, abs(kind.qmax))
        types.update(Sum=layer.sum_type(op.kernel[0] * op.kernel[1] * reach), Epilogue=epilogue(layer, selection))
        per_count = layer.integer and layer.node.rescaling.count > 1
        constants.update(InputZero=kind.zero_point, CountPad=op.count_pad, PerCount=per_count)
    if layer.partial is not None:
        kernel, constants["Kept"] = f"{kernel}Lines", layer.partial
    config = layer.config(f"{op.mode.lower()} pool {op.kernel[0]} x {op.kernel[1]}", types, constants, selection)
    return layer.code("pool", layer.call(kernel, config), selection=selection)
