"""Normalisations over channels, in floating point only."""

from __future__ import annotations

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.operators.normalize import SMALLEST_NORM

__all__ = ["lrn_code", "normalize_code"]


def _code(build: LayerBuilder, kernel: str, title: str, parameters: dict[str, float], constants: dict[str, int]) -> LayerCode:
    node = build.node
    if build.integer:
        raise N2D2Error(
            "E702",
            f"layer '{node.name}': {node.op.kind} has no integer form",
            where=node.location,
            remedy="remove the layer, or export with -nbbits -32",
        )
    if build.serial:
        raise InternalError(f"{node.name}: the output of a {node.op.kind} lies over its input")
    values = build.constants("parameters", "double", parameters, {})
    config = build.config(
        f"{node.name}: {title}",
        {"Input": build.input_plane, "Output": build.output_plane, "Parameters": values, "Epilogue": build.epilogue()},
        constants,
    )
    return build.code("normalize", f"n2d2::{kernel}<{config}>(in0, out);")


def lrn_code(*layer) -> LayerCode:
    """The C++ of a local response normalisation.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    build = LayerBuilder(*layer)
    op = build.node.op
    return _code(
        build,
        "lrn",
        f"response normalisation over {op.size} channels",
        {"alpha": op.alpha, "beta": op.beta, "k": op.k},
        {"Window": op.size},
    )


def normalize_code(*layer) -> LayerCode:
    """The C++ of a normalisation to length 1.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    build = LayerBuilder(*layer)
    norm = build.node.op.norm
    return _code(build, "normalize", f"{norm} normalisation", {"smallest": SMALLEST_NORM}, {"Power": 1 if norm == "L1" else 2})
