"""Concatenation of channels, line by line; every input with its own rescale."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.graph.shapes import channels

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a concatenation that the memory plan does not do in place."""
    build = LayerBuilder(*layer)
    rescaled = build.integer and build.node.rescale is not None
    if rescaled:
        build.vectors()
    sum_type = build.sum_type() if rescaled else build.output.cpp
    configs, first = [], 0
    for i, name in enumerate(build.node.inputs):
        epilogue = build.epilogue(only=i) if rescaled else build.moving_epilogue()
        configs.append(
            build.config(
                f"{build.node.name}: channels from {first} on, of {name}",
                {"Input": build.identifiers.plane(name), "Output": build.output_plane, "Sum": sum_type, "Epilogue": epilogue},
                {"Channel": first, "InputZero": build.inputs[i].zero_point if rescaled else 0, "Serial": build.serial},
                suffix=f"config{i}",
            )
        )
        first += channels(build.graph.shape(name))
    bases = ", ".join(f"in{i}" for i in range(len(configs)))
    call = f"const unsigned char* const inputs[] = {{{bases}}};\nn2d2::concat<{', '.join(configs)}>(inputs, out);"
    return build.code("concat", call)
