"""C++ epilogues, types that turn an accumulator or a stored input into an output element; layers that move values."""

from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, NumType, Rescale
from n2d2py.arithmetic.rescale import FloatRescale, FractionRescale, ShiftRescale, StepRescale
from n2d2py.contracts.cpp.code import LayerCode, Selection
from n2d2py.contracts.cpp.layer import Layer
from n2d2py.contracts.cpp.parts import Argument, Array, Expression
from n2d2py.contracts.quant.quantizer import peak
from n2d2py.errors import InternalError
from n2d2py.graph import ResidualAdd, Shape


def epilogue(layer: Layer, selection: Selection | None = None, only: int | None = None) -> Expression:
    """Return the type that turns an accumulator into an output element, with constants in the order of the selected kernel.

    `only`: use the constants of one of several inputs.
    """
    if not layer.integer:
        real = layer.output.cpp
        activation = _activation(layer, real)
        return Expression.type("n2d2::Activated", real, activation)
    node, rescale = layer.node, layer.node.rescaling
    rescale, suffix = (rescale, "") if only is None else (rescale.only(only), str(only))
    factor = _rescale(layer, selection or layer.portable, rescale, node.bound, suffix)
    kind = layer.output if node.residual is None else node.residual.type
    if layer.has("origin"):
        kind = replace(kind, zero_point=int(layer.values("origin")[0]))
    stored = _requantized(kind, factor, _clamp(layer), not node.zero_in_bias)
    return stored if node.residual is None else _with_residual(layer, node.residual, stored)


def _requantized(kind: NumType, factor: Expression, limits: tuple[int, int], centred: bool = True) -> Expression:
    zero = (kind.zero_point,) if centred and kind.zero_point else ()
    return Expression.type("n2d2::Requantized", kind.cpp, factor, *limits, *zero)


def _with_residual(layer: Layer, added: ResidualAdd, stored: Expression) -> Expression:
    old = layer.inputs[-1]
    functions = {"weight": added.multiplier, "oldWeight": added.residual_multiplier, "offset": added.stored_offset(old)}
    operand = layer.constants("sum", "std::int32_t", functions, {"Old": old.cpp})
    last = _requantized(layer.output, _rescale(layer, layer.portable, added.rescale, added.bound, "_sum"), added.clamp)
    return Expression.type("n2d2::Added", stored, operand, last)


def converting_epilogue(layer: Layer) -> Expression:
    """Return the type that converts a stored input to the number type of the output."""
    source, target = layer.inputs[0], layer.output
    if target.is_float:
        scale = layer.constants("scale", target.cpp, {"scale": source.scale})
        return Expression.type("n2d2::Restored", target.cpp, scale, source.zero_point)
    factor = _rescale(layer, layer.portable, layer.node.rescaling, layer.node.bound)
    return Expression.type("n2d2::Converted", target.cpp, factor, *_clamp(layer), source.zero_point, target.zero_point)


def moving_epilogue(layer: Layer, clamped: bool = False) -> Expression:
    """Return the type for layers that move values: the activation in floating point, the (clamped) value in integers."""
    if not layer.integer:
        return epilogue(layer)
    if any((kind.bits, kind.signed) != (layer.output.bits, layer.output.signed) for kind in layer.inputs):
        raise InternalError(f"{layer.name} moves values, but its tensors have different types")
    kind, limits = layer.output.cpp, _clamp(layer)
    everything = (layer.output.qmin, layer.output.qmax)
    if not clamped or (limits == everything and (layer.output.full or not layer.output.signed)):
        return Expression.type("n2d2::Moved", kind)
    return Expression.type("n2d2::Clamped", kind, *limits)


def _clamp(layer: Layer) -> tuple[int, int]:
    low, high = layer.node.clamp or (layer.output.qmin, layer.output.qmax)
    return int(low), int(high)


def _rescale(layer: Layer, selection: Selection, rescale: Rescale, bound: int, suffix: str = "") -> Expression:
    def per_output(role: str, values: np.ndarray, ctype: str) -> Array:
        return layer.array(role + suffix, values, ctype, selection.per_output(values))

    def rescaling(*arguments: Argument) -> Expression:
        return Expression.type(f"n2d2::{type(rescale).__name__}", *arguments)

    if isinstance(rescale, FloatRescale):
        bounded = 0 < bound * float(np.max(np.abs(rescale.factors))) < 2**30
        return rescaling(per_output("factors", rescale.factors, "float"), rescale.count, *_if_true(bounded))
    if isinstance(rescale, FractionRescale):
        bounded = 0 < (bound + 1) * float(np.max(np.abs(rescale.factors))) < 2**30
        factors = per_output("factors", rescale.factors, "float")
        fractions = per_output("fractions", rescale.fractions, "float")
        addend = Expression.type("n2d2::Fraction", fractions, rescale.fractions.size)
        return Expression.type("n2d2::FloatRescale", factors, rescale.count, bounded, addend)
    if isinstance(rescale, StepRescale):
        magnitudes = np.abs(layer.values("scales").astype(np.float64)) * [peak(kind) for kind in layer.inputs]
        bounded = float(max(magnitudes.sum(), magnitudes.prod())) / float(rescale.step) < 2**21
        return rescaling(layer.constants("step", "float", {"step": rescale.step}), *_if_true(bounded))
    if isinstance(rescale, FixedPointRescale):
        return rescaling(per_output("multipliers", rescale.multipliers, "std::int32_t"), rescale.count, rescale.shift)
    if isinstance(rescale, DoublingRescale):
        words = [per_output(role, getattr(rescale, role), "std::int32_t") for role in ("multipliers", "shifts")]
        return rescaling(*words, rescale.count, bool(rescale.twice), bool(rescale.shifts.min() > 0))
    if isinstance(rescale, ShiftRescale):
        multipliers = per_output("multipliers", rescale.multipliers, "std::int64_t")
        return rescaling(multipliers, per_output("shifts", rescale.second, "std::uint8_t"), rescale.count)
    raise InternalError(f"{layer.name}: no C++ form of {type(rescale).__name__}")


def _if_true(flag: bool) -> tuple[bool, ...]:
    """Return the last argument of a template whose default is false."""
    return (True,) if flag else ()


def _activation(layer: Layer, kind: str) -> Expression:
    function = layer.node.activation
    if function is None:
        return Expression.type("n2d2::Linear", kind)
    functor = function.functor()
    values = () if functor.parameters is None else (layer.constants("activation", kind, functor.parameters),)
    headers = (functor.header,) if functor.header else ()
    return Expression.type(functor.template, kind, *values, *functor.flags, headers=headers)


_AXES = {2: (0,), 3: (0, 2), 4: (0, 1, 2)}


def move(layer: Layer, kernel: str, constants: dict[str, int]) -> LayerCode:
    """Return the call of a kernel that moves values."""
    config = layer.config(kernel, {**layer.planes, "Epilogue": moving_epilogue(layer)}, constants)
    return layer.code(kernel, layer.call(kernel, config))


def image_axes(layer: Layer, shape: Shape) -> tuple[int, ...]:
    """Return, for each axis after the batch, whether it is channel (0), row (1) or column (2). Raise E703 for more than three
    axes."""
    if len(shape) not in _AXES:
        raise layer.beyond_axes(shape)
    return _AXES[len(shape)]


def copy(layer: Layer) -> LayerCode:
    """Return the C++ of an identity, or of a float activation function."""
    layer = layer.pointwise()
    return move(layer, "copy", {"Serial": layer.serial})
