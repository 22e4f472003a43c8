"""MaxPool, AveragePool and the global pools."""

from __future__ import annotations

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.frontend.onnx.windows import ceil_excess, image_size, pair, read_pads, windowed_layer
from n2d2py.graph import Node
from n2d2py.operators.pool import Pool
from n2d2py.operators.windows import output_extent


def _windowed(mode: str):
    def convert(node: OnnxNode, builder: Builder) -> None:
        size = image_size(node)
        node.require_single_output()
        if pair(node, "dilations") != (1, 1):
            raise Unsupported("its window is dilated")
        kernel, stride = pair(node, "kernel_shape"), pair(node, "strides")
        pads = read_pads(node, size, kernel, stride)
        count_pad = bool(node.attribute("count_include_pad", 0))
        if node.attribute("ceil_mode", 0):
            bottom, right = ceil_excess(size, kernel, stride, pads)
            if mode == "Average" and count_pad and (bottom or right):
                raise Unsupported(
                    "ceil_mode with count_include_pad makes windows that are partly not counted",
                    "export with ceil_mode=0 or with count_include_pad=0",
                )
            pads = (pads[0], pads[1], pads[2] + bottom, pads[3] + right)
        count_pad = count_pad or not any(pads) or mode == "Max"
        op = Pool(mode, kernel, stride, pads, count_pad)
        output_extent(size, kernel, stride, pads, Node(node.name, op, [], [], location=builder.model.place(node.name)))
        if int(Pool(mode, kernel, stride, pads, False).window_counts(size).min()) == 0:
            raise Unsupported("some of its windows lie outside the image", "reduce its pads")
        windowed_layer(node, builder, op)

    return convert


def _global(mode: str):
    def convert(node: OnnxNode, builder: Builder) -> None:
        windowed_layer(node, builder, Pool(mode, image_size(node)))

    return convert


onnx("MaxPool", images=True)(_windowed("Max"))
onnx("AveragePool", images=True)(_windowed("Average"))
onnx("GlobalMaxPool", images=True)(_global("Max"))
onnx("GlobalAveragePool", images=True)(_global("Average"))
