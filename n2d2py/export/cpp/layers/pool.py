"""Max and average pooling."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a pooling layer."""
    build = LayerBuilder(*layer)
    op, kind = build.node.op, build.inputs[0]
    types = {"Input": build.input_plane, "Output": build.output_plane}
    constants = {
        "KernelHeight": op.kernel[0],
        "KernelWidth": op.kernel[1],
        "StrideHeight": op.stride[0],
        "StrideWidth": op.stride[1],
        "PadTop": op.pads[0],
        "PadLeft": op.pads[1],
        "Serial": build.serial,
    }
    kernel = "poolMax" if op.mode == "Max" else "poolAverage"
    if "scales" in build.node.params:
        kernel, order = "poolMean", ("lanes", "columns", "rows").index(op.order(build.input_shape[2:]))
        scale = build.constants("scale", "float", {"scale": build.node.params["scales"][0]}, {})
        types.update(Scale=scale, Epilogue=build.epilogue())
        constants.update(InputZero=kind.zero_point, CountPad=op.count_pad, Order=order)
    elif op.mode == "Max":
        types["Epilogue"] = build.moving_epilogue(clamped=True)
    else:
        build.vectors()
        reach = 0 if kind.is_float else max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin, abs(kind.qmax))
        types.update(Sum=build.sum_type(op.kernel[0] * op.kernel[1] * reach), Epilogue=build.epilogue())
        constants.update(
            InputZero=kind.zero_point, CountPad=op.count_pad, PerCount=build.integer and build.node.rescaling.count > 1
        )
    if build.partial is not None:
        kernel, constants["Kept"] = f"{kernel}Lines", build.partial
    config = build.config(f"{build.node.name}: {op.mode.lower()} pool {op.kernel[0]} x {op.kernel[1]}", types, constants)
    return build.code("pool", f"n2d2::{kernel}<{config}>(in0, out);")
