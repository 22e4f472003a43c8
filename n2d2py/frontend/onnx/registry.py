"""The converters: ONNX operator -> function that adds its layers to the Graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import ONNX_FUNCTIONS
from n2d2py.registry import Registry

if TYPE_CHECKING:
    from n2d2py.frontend.onnx.arrays.values import Arrays
    from n2d2py.frontend.onnx.builder import Builder
    from n2d2py.frontend.onnx.node import OnnxNode

__all__ = [
    "Converter",
    "Unsupported",
    "find_array_converter",
    "find_converter",
    "register_array_converter",
    "register_converter",
    "supported_operators",
]

Converter = Callable[["OnnxNode", "Builder"], None]
"""Adds the layers of one ONNX node and binds its outputs; raises Unsupported before it adds any."""

ArrayConverter = Callable[["Arrays"], None]
"""The same with operators on arrays."""

ARRAY_CONVERTERS: Registry[ArrayConverter] = Registry(
    "the converter to arrays of the ONNX operator", "n2d2py.frontend.onnx.arrays"
)
CONVERTERS: Registry[Converter] = Registry("the converter of the ONNX operator", "n2d2py.frontend.onnx.converters")


class Unsupported(Exception):
    """Why a node cannot be imported: `reason` and `remedy` are clauses, the same for every node they hit."""

    def __init__(self, reason: str, remedy: str | None = None):
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


def _key(op_type: str, domain: str) -> str:
    return op_type if domain in ("", "ai.onnx") else f"{domain}::{op_type}"


def register_converter(op_type: str, converter: Converter, domain: str = "") -> None:
    """Makes `converter` responsible for the operator `op_type` of `domain`.

    Raises:
        InternalError: when another converter has it.
    """
    CONVERTERS.add(_key(op_type, domain), converter)


def find_converter(op_type: str, domain: str) -> Converter | None:
    """The converter of an operator, or None; that of a function adds an Activation layer."""
    key = _key(op_type, domain)
    return CONVERTERS.get(key) or (_apply_function if key in ONNX_FUNCTIONS else None)


def _apply_function(node: OnnxNode, builder: Builder) -> None:
    try:
        function = ONNX_FUNCTIONS[_key(node.type, node.domain)](node)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    builder.layer(node, Activation(function), [node.tensor()])


def register_array_converter(op_type: str, converter: ArrayConverter) -> None:
    """Makes `converter` responsible for what no converter to image layers takes of an operator.

    Raises:
        InternalError: when another one has it.
    """
    ARRAY_CONVERTERS.add(op_type, converter)


def find_array_converter(op_type: str, domain: str) -> ArrayConverter | None:
    """The converter to operators on arrays, or None."""
    return ARRAY_CONVERTERS.get(op_type) if domain in ("", "ai.onnx") else None


def supported_operators() -> list[str]:
    """The operators that have a converter, sorted; those of other domains as "domain::Operator"."""
    return sorted({*CONVERTERS, *ARRAY_CONVERTERS, *ONNX_FUNCTIONS})
