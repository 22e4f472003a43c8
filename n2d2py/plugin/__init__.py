"""Declarations of plug-ins: operators, functions of single values, chains that become one operator, kernels, instruction sets.

A plug-in is a folder with a Python file and the C++ headers next to it; `-plugin DIR` loads it, or an entry point of
the group `n2d2py.plugins`. `docs/tutorials/own_operator.md` is the tutorial, the docstrings of the base classes are the
reference. Everything that a plug-in file needs is imported from here.
"""

from n2d2py.plugin.declare import (
    Function,
    Instructions,
    Kernel,
    Operator,
    Recipe,
    attribute,
    function,
    instructions,
    kernel,
    operator,
    recipe,
)
from n2d2py.plugin.integers import Facts, Integers
from n2d2py.plugin.load import load_plugin

__all__ = [
    "Facts",
    "Function",
    "Instructions",
    "Integers",
    "Kernel",
    "Operator",
    "Recipe",
    "attribute",
    "function",
    "instructions",
    "kernel",
    "load_plugin",
    "operator",
    "recipe",
]
