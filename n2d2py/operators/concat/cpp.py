"""Concatenation of channels, line by line; every input with its own rescale."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue, moving_epilogue
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Call
from n2d2py.exports.cpp.selection import vectors
from n2d2py.graph.shapes import channels


@cpp("Concat")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a concatenation that the memory plan does not do in place."""
    rescaled = layer.integer and layer.node.rescale is not None
    selection = vectors(layer) if rescaled else layer.portable
    sum_type = layer.sum_type() if rescaled else layer.output.cpp
    configs, first = [], 0
    for i, (name, plane) in enumerate(zip(layer.node.inputs, layer.input_planes, strict=True)):
        stored = epilogue(layer, selection, only=i) if rescaled else moving_epilogue(layer)
        configs.append(
            layer.config(
                f"channels from {first} on, of {name}",
                {"Input": plane, "Output": layer.output_plane, "Sum": sum_type, "Epilogue": stored},
                {"Channel": first, "InputZero": layer.inputs[i].zero_point if rescaled else 0, "Serial": layer.serial},
                selection,
                f"config{i}",
            )
        )
        first += channels(layer.graph.shape(name))
    declared = f"const unsigned char* const inputs[] = {{{', '.join(layer.bases)}}};"
    return layer.code("concat", Call("n2d2::concat", tuple(configs), ("inputs", "out"), (declared,)), selection=selection)
