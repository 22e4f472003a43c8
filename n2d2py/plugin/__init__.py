"""Declarations of plug-ins: operators, functions of single values, chains that become one operator, kernels, instruction sets.

A plug-in is a folder with a Python file and the C++ headers next to it; `-plugin DIR` loads it, or an entry point of
the group `n2d2py.plugins`. `docs/tutorials/own_operator.md` is the tutorial, the docstrings are the reference. Everything
that a plug-in file needs is imported from here; the decorators are those of built-in operators, or use their registries.
"""

from n2d2py.contracts.cpp import InstructionSet, kernel, register_instruction_set
from n2d2py.exports.cpp.headers import plugin_header
from n2d2py.graph.chains import chain
from n2d2py.plugin.load import load_plugin
from n2d2py.plugin.operator import Facts, Function, Integers, Operator, attribute
from n2d2py.plugin.registration import function, operator
