"""Normalisations over channels, in floating point only."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import epilogue
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.operators.normalize import SMALLEST_NORM

__all__ = ["lrn", "normalize"]


def _code(layer: Layer, kernel: str, title: str, parameters: dict[str, float], constants: dict[str, int]) -> LayerCode:
    if layer.integer:
        raise layer.no_integers("remove the layer, or export with -nbbits -32")
    values = layer.apart().constants("parameters", "double", parameters)
    config = layer.config(title, {**layer.planes, "Parameters": values, "Epilogue": epilogue(layer)}, constants)
    return layer.code("normalize", layer.call(kernel, config))


@cpp("LRN")
def lrn(layer: Layer) -> LayerCode:
    """The C++ of a local response normalisation.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    op = layer.op
    parameters = {"alpha": op.alpha, "beta": op.beta, "k": op.k}
    return _code(layer, "lrn", f"response normalisation over {op.size} channels", parameters, {"Window": op.size})


@cpp("Normalize")
def normalize(layer: Layer) -> LayerCode:
    """The C++ of a normalisation to length 1.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    norm = layer.op.norm
    power = 1 if norm == "L1" else 2
    return _code(layer, "normalize", f"{norm} normalisation", {"smallest": SMALLEST_NORM}, {"Power": power})
