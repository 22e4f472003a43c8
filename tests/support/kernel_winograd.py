"""The Winograd form of a layer on every instruction set that can have it."""

from n2d2py.contracts.cpp.code import LayerCode
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.isa import WINOGRAD, sets_with
from n2d2py.contracts.cpp.layer import layer_code

SETS = sets_with(WINOGRAD)
"""The instruction sets that have the form."""


def forced(*layer) -> LayerCode:
    """The layer with its Winograd form, which it must have, on all sets that can have it."""
    code = layer_code(*layer).choosing(dict.fromkeys(SETS, True))
    form = code.winograd
    assert form is not None, code.selection.reason
    assert form.sets == SETS
    return code


def having_form(cases: list) -> list:
    """The cases of `kernel_harness` whose layers may have a Winograd form: the memory of some, made for another kernel, has no room."""
    return [
        case for case in cases if layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)).winograd is not None
    ]
