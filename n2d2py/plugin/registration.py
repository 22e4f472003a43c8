"""The decorators of a plug-in's classes: each enters what a class declares into the registries that built-in operators use."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

import numpy as np

from n2d2py.contracts.cpp import Call, Expression, Layer, LayerCode, cpp, epilogue, moving_epilogue
from n2d2py.contracts.functions import FUNCTIONS
from n2d2py.contracts.ini import ACTIVATED, LayerContext, ini, read_activation
from n2d2py.contracts.onnx.nodes import Unsupported, find_converter
from n2d2py.contracts.operator import register
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, moved_layer, quantizer, refusal, summed_layer
from n2d2py.errors import ErrorList, N2D2Error, suggest
from n2d2py.exports.cpp.headers import plugin_header
from n2d2py.graph import Custom, Node, QuantNode
from n2d2py.ini.schema import REQUIRED, Key, Kind
from n2d2py.memory.access import Access, Pointwise, Whole, Window, memory_access
from n2d2py.operators.arrays.values import Arrays, onnx
from n2d2py.operators.pointwise import Activation
from n2d2py.plugin.operator import Facts, Function, Operator, attribute_type, camel, failed, incomplete, place_of
from n2d2py.registry import Duplicate

ACCESSES = ("whole", "pointwise", "window")

T = TypeVar("T", bound=type)

_KINDS = {(int, False): Kind.INT, (float, False): Kind.FLOAT, (bool, False): Kind.BOOL, (str, False): Kind.STRING}
_KINDS |= {(int, True): Kind.INTS, (float, True): Kind.FLOATS}


def operator(cls: T) -> T:
    """Declare an Operator; make it a frozen dataclass. Raises E022 for what is missing, Duplicate for a name in use."""
    result = _declared(cls, Operator)
    header = plugin_header(place_of(result).file, result.header)
    register(result)
    quantizer(result.kind)(PluginQuantizer)
    memory_access(result.kind)(_access)
    cpp(result.kind)(lambda layer: _code(header, layer))
    _enter_names(result, lambda op: op)
    return result


def function(cls: T) -> T:
    """Declare a Function; make it a frozen dataclass. Raises as `operator`."""
    result = _declared(cls, Function)
    result.place = plugin_header(place_of(result).file, result.header)
    FUNCTIONS.add(result.kind, result)
    _enter_names(result, lambda op: Activation(op))
    return result


def _declared(cls: Any, base: type) -> Any:
    if not isinstance(cls, type) or not issubclass(cls, base):
        name = base.__name__
        raise incomplete(cls, f"it does not derive from {name}", f"write: class {getattr(cls, '__name__', 'Name')}({name})")
    result: Any = cls if "__dataclass_fields__" in vars(cls) else dataclass(frozen=True)(cls)
    result.kind = vars(result).get("kind") or result.__name__
    gaps = [
        ("it names no header", 'write header = "name.hpp"', not result.header),
        ("it names no C++ function", 'write call = "mine::name"', not result.call),
        ("it has no compute()", "define compute(self, x)", result.compute is base.compute),
        *(_operator_gaps(result) if base is Operator else ()),
    ]
    ErrorList.raise_if([incomplete(result, what, remedy) for what, remedy, is_missing in gaps if is_missing])
    for one in fields(result):
        attribute_type(result, one.name)
    return result


def _operator_gaps(cls: Any) -> list[tuple[str, str, bool]]:
    has_quantize, has_sums = cls.quantize is not Operator.quantize, cls.sums is not Operator.sums
    lacks = not {"kernel", "stride", "pads"} <= {one.name for one in fields(cls)}
    remedy = 'declare them, or use access = "whole"'
    return [
        (f"access is '{cls.access}'", f"use one of {', '.join(ACCESSES)}", cls.access not in ACCESSES),
        ("its access is window, which needs the attributes kernel, stride and pads", remedy, cls.access == "window" and lacks),
        ("it has one of quantize() and sums()", "define both, or none", has_quantize != has_sums),
        ("it moves values and has sums()", "leave out one of them", cls.moves_values and has_sums),
    ]


def _enter_names(cls: Any, as_op: Callable[[Any], Any]) -> None:
    if cls.onnx:
        domain, _, name = cls.onnx.rpartition("::")
        if find_converter(name, domain) is not None:
            raise Duplicate(f"the ONNX operator {cls.onnx} is registered twice")
        onnx(cls.onnx)(_converter(cls, as_op))
    if cls.ini:
        _enter_section(cls, as_op)


# ---- ONNX and INI -------------------------------------------------------------------------------
def _converter(cls: Any, as_op: Callable[[Any], Any]) -> Callable:
    count = getattr(cls, "inputs", 1)
    names: Sequence[str] = getattr(cls, "parameters", ())

    attributes = {one.metadata.get("onnx") or one.name: one for one in fields(cls)}

    def convert(a: Arrays) -> None:
        node, values = a.node, {}
        for name, one in attributes.items():
            value = node.attribute(name)
            if value is not None:
                values[one.name] = _typed(cls, one, value)
            elif one.default is MISSING:
                raise Unsupported(f"it has no attribute {name}", "give it, or a default in the plug-in")
        for name in node.attribute_names():
            if name not in attributes:
                reason = f"the plug-in's {cls.__name__} has no attribute {name}"
                raise Unsupported(reason, suggest(name, attributes, "declare it in the plug-in"))
        data = count or len(node.inputs) - len(names)
        if len(node.inputs) != data + len(names):
            wanted = f"the plug-in's {cls.__name__} {data} and {len(names)} constants"
            raise Unsupported(f"it has {len(node.inputs)} inputs, {wanted}")
        params = {name: node.constant(data + i, name) for i, name in enumerate(names)}
        a.builder.layer(node, as_op(cls(**values)), [node.tensor(i) for i in range(data)], params)

    return convert


def _typed(cls: Any, one: Any, value: Any) -> Any:
    base, many = attribute_type(cls, one.name)
    is_list = isinstance(value, (list, tuple))
    items = list(value) if is_list else [value]
    fits = (isinstance(item, str) == (base is str) and not (base is int and isinstance(item, float)) for item in items)
    if many != is_list or not all(fits):
        raise Unsupported(f"its attribute {one.name} is {value!r}", f"give {base.__name__}{' values' if many else ''}")
    values = tuple(base(item) for item in items)
    return values if many else values[0]


def _turned(one: Any, value: Any) -> Any:
    """Return the value of an attribute with X and Y exchanged if it is spatial."""
    return value[::-1] if one.metadata.get("spatial") and isinstance(value, tuple) else value


def _enter_section(cls: Any, as_op: Callable[[Any], Any]) -> None:
    keys = []
    for one in fields(cls):
        kind = _KINDS[attribute_type(cls, one.name)]
        choices = one.metadata.get("choices", ())
        default = REQUIRED if one.default is MISSING else _turned(one, one.default)
        name, doc = one.metadata.get("ini") or camel(one.name), one.metadata.get("doc", "")
        keys.append(Key(name, Kind.ENUM if choices else kind, default, doc, tuple(choices)))
    outputs = Key("NbOutputs", Kind.UINT, None, "Number of output channels. Checked if it is given.", minimum=1)

    @ini(cls.ini, outputs, *keys, base=ACTIVATED, doc=(cls.__doc__ or "").split("\n")[0])
    def build(context: LayerContext) -> None:
        values = {one.name: _turned(one, context.values[key.name]) for one, key in zip(fields(cls), keys, strict=True)}
        count = getattr(cls, "inputs", 1)
        tensors = [context.concat_inputs()] if count == 1 else [tensor for _, tensor in context.parents]
        if count > 1 and len(tensors) != count:
            what = f"{cls.ini} reads {count} inputs, but Input names {len(tensors)}"
            raise context.fail("E022", what, "correct Input", "Input")
        op = as_op(cls(**values))
        shapes = [context.graph.shape(tensor) for tensor in tensors]
        constants = op.parameter_shapes(*shapes) if hasattr(op, "parameter_shapes") else {}
        params = {name: _parameter(context, name, shape) for name, shape in constants.items()}
        node = context.add(op, tensors, params, read_activation(context.values))
        if context.values.is_given("NbOutputs"):
            context.require_channels(node.output)


def _parameter(context: LayerContext, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if context.weights is None:
        return np.broadcast_to(np.float32(0), shape)
    initial = np.random.default_rng(context.seed).normal(0, 0.05, shape).astype(np.float32)
    return context.weights.load(context.name, name, initial, context.values.section.location)


# ---- integers, memory ---------------------------------------------------------------------------
class PluginQuantizer(Quantizer):
    """The sums that a plug-in's operator declares."""

    remedy = "define quantize() and sums() in the plug-in, or export with -nbbits -32"

    def refuses(self, node: Node) -> str | None:
        return None if node.op.moves_values or type(node.op).quantize is not Operator.quantize else node.op.kind

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        op = node.op
        if op.moves_values:
            return moved_layer(node, types)
        form = op._call("quantize", node, Facts(types.inputs, types.output, node.params, types.options.bits))
        if form is None:
            raise refusal(node, op.kind)
        constants = {name: np.atleast_1d(np.asarray(values)) for name, values in form.constants.items()}
        for name, values in constants.items():
            if values.dtype.kind not in "iu" or not values.size:
                what = f"{type(op).__name__}: quantize() returns {name} of type {values.dtype} instead of integers"
                raise N2D2Error("E024", what, where=place_of(type(op)), remedy="round the values to integers")
        if not (form.scale > 0 and form.bound >= 0):
            what = f"{type(op).__name__}: quantize() returns the scale {form.scale} and the bound {form.bound}"
            raise N2D2Error("E024", what, where=place_of(type(op)), remedy="return positive numbers")
        return summed_layer(node, types, form.scale, int(form.bound), Custom(constants))


def _access(node: QuantNode, graph: Any) -> Access:
    op = node.op
    if op.access == "window":
        return Window(op.kernel, op.stride, op.pads, by_lines=False)
    return Whole(by_lines=False) if op.access == "whole" else Pointwise(by_lines=False)


# ---- C++ ----------------------------------------------------------------------------------------
def _code(header: str, layer: Layer) -> LayerCode:
    op, node = layer.op, layer.node
    if layer.streamed:
        raise failed(op, node, 'its kernel does not run row by row, which OptimizeStream requires; use access = "whole"')
    sum_type = layer.sum_type()
    types: dict[str, Any] = {
        **layer.planes,
        "Sum": sum_type,
        "Epilogue": moving_epilogue(layer, clamped=True) if op.moves_values else epilogue(layer),
    }
    constants: dict[str, Any] = {}
    if len(node.inputs) > 1 or op.inputs == 0:
        types.update({f"Input{i}": plane for i, plane in enumerate(layer.input_planes)})
        constants.update({f"Input{i}Zero": kind.zero_point for i, kind in enumerate(layer.inputs)})
        constants["Inputs"] = len(node.inputs)
    constants.update(InputZero=layer.inputs[0].zero_point, Serial=layer.serial)
    reals: dict[str, float] = {}
    for one in fields(op):
        _attribute(one, getattr(op, one.name), constants, reals)
    types["Parameters"] = layer.constants("parameters", sum_type if not layer.integer else "float", reals)
    arrays = [layer.array(name, values, sum_type) for name, values in node.params.items()]
    constant = [Expression("{1}", (types["Epilogue"], each)) for each in arrays]
    bases, declared = layer.bases, ()
    if op.inputs == 0:
        bases, declared = ("in",), (f"const unsigned char* const in[] = {{{', '.join(bases)}}};",)
    config = layer.config(op.kind, types, constants)
    return layer.code(header, Call(op.call, (config,), (*bases, "out", *constant), declared))


def _attribute(one: Any, value: Any, constants: dict[str, Any], reals: dict[str, float]) -> None:
    name, choices = camel(one.name), one.metadata.get("choices", ())
    for index, item in enumerate(value if isinstance(value, tuple) else (value,)):
        number = f"{index}" if isinstance(value, tuple) else ""
        if isinstance(item, float):
            reals[f"{one.name}{number}"] = item
        elif isinstance(item, str):
            constants[name] = choices.index(item) if item in choices else 0
        else:
            constants[f"{name}{number}"] = item
