"""Constants of the layers of a microcontroller: their bytes, and those that an inference reads of them."""

from __future__ import annotations

from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.identifiers import Identifiers
from n2d2py.exports.cpp.isa import InstructionSet, instruction_sets
from n2d2py.exports.cpp.layer import ExportChoices, layer_code
from n2d2py.exports.cpp.parts import Array
from n2d2py.graph import QuantGraph
from n2d2py.graph.shapes import elements, height, width
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan

_PIXELS = 2
"""Pixels of the output for which a kernel reads its weights once; kernels with vectors have more."""


def microcontroller_sets() -> tuple[InstructionSet, ...]:
    """The instruction sets of microcontrollers."""
    return tuple(row for row in instruction_sets() if row.microcontroller)


def constants_of(graph: QuantGraph, plan: MemoryPlan, choices: ExportChoices, portable: bool) -> list[Constant]:
    """The constants of all layers in the order of the graph. A layer without a kernel has none: `prepare` refuses it."""
    identifiers, found = Identifiers(graph), []
    for node in graph.nodes:
        if node.name in plan.views or node.op.is_part:
            continue
        try:
            code = layer_code(node, graph, plan, identifiers, choices)
        except N2D2Error:
            continue
        code = code.portable() if portable else code.only(microcontroller_sets())
        shape, copied = graph.shape(node.output), copyable(code)
        for array in code.own_constants:
            reads = most_bytes(array) * -(-height(shape) * width(shape) // _PIXELS)
            if "weights" not in node.params:  # a table
                reads = elements(shape) * array.values.itemsize
            found.append(Constant(array.name, node.name, most_bytes(array), float(reads), array.name == copied))
    return found


def most_bytes(array: Array) -> int:
    """Bytes of an array for the instruction set that needs most, with the zero that ends a string literal, in whole words."""
    largest = max(values.nbytes for values in (array.values, *(form.values for form in array.forms)))
    return (largest + (array.values.itemsize == 1) + 3) // 4 * 4


def copyable(code: LayerCode) -> str:
    """The name of the array that a layer may read from a copy: its weights, where its calls are given their address. "" for none."""
    name = f"{code.identifier}_weights"
    given = any(name in call.arguments for call in code.calls)
    return name if given and not any(array.typed for array in code.arrays if array.name == name) else ""
