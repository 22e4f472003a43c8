"""Puts what a plug-in declares into the registries of the tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.errors import N2D2Error, nearest
from n2d2py.exports.cpp import headers, isa, layer
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue, moving_epilogue
from n2d2py.exports.cpp.headers import plugin_header
from n2d2py.exports.cpp.isa import FAMILIES, KERNELS, PORTABLE, InstructionSet, instruction_sets, register_instruction_set, tags
from n2d2py.exports.cpp.layer import LAYERS, Layer, cpp, layer_kinds, override_kernel
from n2d2py.exports.cpp.parts import Call, Expression
from n2d2py.frontend.ini.contract import LAYER_TYPES, LayerContext, ini, layer_types
from n2d2py.frontend.ini.inputs import require_channels
from n2d2py.frontend.ini.keys import ACTIVATED, NB_OUTPUTS, read_activation
from n2d2py.frontend.onnx.contract import ARRAY_CONVERTERS, CONVERTERS, IMAGE_CONVERTERS, Unsupported, find_converter, onnx
from n2d2py.graph import Node
from n2d2py.graph.chains import CHAINS, chain
from n2d2py.graph.forms import Custom
from n2d2py.graph.quant import QuantNode
from n2d2py.ini.schema import REQUIRED, Key, Kind
from n2d2py.memory.access import MEMORY_ACCESSES, Access, Pointwise, Whole, Window, memory_access
from n2d2py.operators.activation import Activation
from n2d2py.operators.base import OPERATORS, operator_kinds, register
from n2d2py.operators.functions import FUNCTIONS, ONNX_FUNCTIONS
from n2d2py.plugin.declare import ACCESSES, Declared, Operator, attribute_type, camel, failed, incomplete, place_of
from n2d2py.plugin.integers import Facts
from n2d2py.quant.contract import QUANTIZERS, LayerTypes, Quantizer, quantizer, refusal
from n2d2py.quant.forming import moved, summed
from n2d2py.reference.contract import EMITTERS
from n2d2py.registry import Registry

_KINDS = {
    (int, False): Kind.INT,
    (float, False): Kind.FLOAT,
    (bool, False): Kind.BOOL,
    (str, False): Kind.STRING,
    (int, True): Kind.INTS,
    (float, True): Kind.FLOATS,
}


# ---- checking -----------------------------------------------------------------------------------
def check(declared: Declared, folder: Path, siblings: frozenset[str] = frozenset()) -> list[N2D2Error]:
    """Missing parts of a declaration (E022), and names that others have (E023); `siblings` has the kinds that the same plug-in declares."""
    made, found = declared.made, []

    def lacks(what: str, remedy: str) -> None:
        found.append(incomplete(made, what, remedy))

    if declared.what == "recipe":
        chain = made.chain
        if not isinstance(chain, tuple) or len(chain) < 1 or not all(isinstance(kind, str) for kind in chain):
            lacks("chain is not a tuple of names", 'write chain = ("First", "Second")')
            return found
        known = {*operator_kinds(), *FUNCTIONS, *siblings}
        for kind in chain:
            if kind not in known:
                like = nearest(kind, known)
                lacks(
                    f"its chain names '{kind}', which is not a layer type",
                    (f"did you mean {like}? " if like else "")
                    + f"known: {', '.join(sorted(known))}; a plug-in that adds one is loaded before",
                )
        return found
    if not made.header or not (folder / made.header).is_file():
        lacks(
            f"the header '{made.header}' does not exist in {folder}" if made.header else "it names no header",
            'write header = "name.hpp" and put the file next to the Python file',
        )
    if declared.what == "instructions":
        return found + _instruction_gaps(made)
    if declared.what == "kernel":
        if made.isa and made.isa not in tags():
            lacks(f"the instruction set {made.isa} is unknown", f"use one of {', '.join(tags())}")
        if made.operator not in operator_kinds():
            lacks(
                f"it is for the operator '{made.operator}', which does not exist",
                f"known: {', '.join(sorted(operator_kinds()))}",
            )
        if not made.tag:
            lacks("it has no tag", 'write tag = "mine::Fast", a struct of the header')
        return found
    if not made.call:
        lacks("it names no C++ function", 'write call = "mine::name"')
    if not _overrides(made, "compute"):
        lacks("it has no compute()", "define compute(self, x)")
    if declared.what == "operator":
        found += _operator_gaps(made)
    return found + _taken(declared)


def _instruction_gaps(made: Any) -> list[N2D2Error]:
    found = []
    for what in ("name", "tag", "macro", "when"):
        if not re.fullmatch(r"[A-Za-z]\w*" if what != "when" else r"(?s).+", getattr(made, what)):
            found.append(incomplete(made, f"its {what} is '{getattr(made, what)}'", f"give a {what}"))
    known = (*instruction_sets(), PORTABLE)
    for what in ("name", "tag", "macro"):
        if getattr(made, what) in [getattr(row, what) for row in known]:
            found.append(incomplete(made, f"its {what} '{getattr(made, what)}' is taken", f"choose another {what}"))
    for what, names, all_names in (
        ("has", made.has, KERNELS),
        ("signed", made.signed, made.has),
        ("extends", (made.extends,) if made.extends else (), [row.name for row in known]),
        ("family", (made.family,) if made.family else (), [family.name for family in FAMILIES]),
    ):
        for name in names:
            if name not in all_names:
                found.append(incomplete(made, f"{what} names '{name}'", f"use one of {', '.join(all_names)}"))
    return found


def _overrides(made: type, method: str) -> bool:
    return any(method in vars(base) for base in made.__mro__ if base.__module__ != "n2d2py.plugin.declare")


def _operator_gaps(made: Any) -> list[N2D2Error]:
    found = []
    if made.access not in ACCESSES:
        found.append(incomplete(made, f"access is '{made.access}'", f"use one of {', '.join(ACCESSES)}"))
    if made.access == "window" and not {"kernel", "stride", "pads"} <= {one.name for one in fields(made)}:
        found.append(
            incomplete(
                made,
                "its access is window, which needs the attributes kernel, stride and pads",
                'declare them, or use access = "whole"',
            )
        )
    if _overrides(made, "quantize") != _overrides(made, "sums"):
        found.append(incomplete(made, "it has one of quantize() and sums()", "define both, or none"))
    if made.moves_values and _overrides(made, "sums"):
        found.append(incomplete(made, "it moves values and has sums()", "leave out one of them"))
    return found


def _taken(declared: Declared) -> list[N2D2Error]:
    made, found = declared.made, []
    names = [
        ("kind", made.kind, operator_kinds() if declared.what == "operator" else FUNCTIONS),
        ("kind", made.kind, layer_kinds() if declared.what == "operator" else ()),
        ("ini", made.ini, layer_types()),
    ]
    if made.onnx and find_converter(*_onnx_name(made.onnx)) is not None:
        names.append(("onnx", made.onnx, (made.onnx,)))
    for what, name, known in names:
        if name and name in known and what not in [error.what.split()[1] for error in found]:
            found.append(
                N2D2Error(
                    "E023",
                    f"{made.__name__}: {what} '{name}' is already in use",
                    where=place_of(made),
                    remedy=f"choose another {what}",
                )
            )
    return found


def _onnx_name(text: str) -> tuple[str, str]:
    domain, _, name = text.rpartition("::")
    return name, domain


def registries() -> list[Registry[Any]]:
    """The tables by name that `enter` changes."""
    return [
        OPERATORS,
        FUNCTIONS,
        ONNX_FUNCTIONS,
        LAYER_TYPES,
        CONVERTERS,
        ARRAY_CONVERTERS,
        IMAGE_CONVERTERS,
        EMITTERS,
        QUANTIZERS,
        MEMORY_ACCESSES,
        LAYERS,
        CHAINS,
    ]


def lists() -> list[Any]:
    """The other dictionaries and lists that `enter` changes."""
    return [layer._OVERRIDES, headers._PLUGINS, isa._MORE]


# ---- entering -----------------------------------------------------------------------------------
def enter(declared: Declared, folder: Path) -> None:
    """Register a checked declaration everywhere."""
    made = declared.made
    if declared.what == "recipe":
        chain(made.name, f"chains {' - '.join(made.chain)} replaced", made.chain)(made().becomes)
        return
    header = plugin_header(folder, made.header)
    if declared.what == "instructions":
        values = {one.name: getattr(made, one.name) for one in fields(InstructionSet)}
        values |= {
            "header": header,
            "title": made.title or made.name,
            "has": frozenset(made.has),
            "signed": frozenset(made.signed),
        }
        register_instruction_set(InstructionSet(**values))
    elif declared.what == "kernel":
        override_kernel(made.operator, made.isa, header, made.tag, made().fits)
    elif declared.what == "function":
        made.place = header
        FUNCTIONS.add(made.kind, made)
        _enter_names(made, lambda op: Activation(op))
    else:
        register(made)
        quantizer(made.kind)(PluginQuantizer)
        memory_access(made.kind)(_access)
        cpp(made.kind)(lambda layer: _code(header, layer))
        _enter_names(made, lambda op: op)


def _enter_names(made: Any, as_op: Callable[[Any], Any]) -> None:
    if made.onnx:
        onnx(made.onnx)(_converter(made, as_op))
    if made.ini:
        _enter_section(made, as_op)


# ---- ONNX and INI -------------------------------------------------------------------------------
def _converter(made: Any, as_op: Callable[[Any], Any]) -> Callable:
    count = getattr(made, "inputs", 1)
    names = getattr(made, "parameters", ())

    def convert(node: Any, builder: Any) -> None:
        values = {}
        for one in fields(made):
            given = node.attribute(one.metadata.get("onnx") or one.name)
            if given is None and one.default is MISSING:
                raise Unsupported(
                    f"it has no attribute {one.metadata.get('onnx') or one.name}", "give it, or a default in the plug-in"
                )
            if given is not None:
                values[one.name] = _typed(made, one, given)
        known = {one.metadata.get("onnx") or one.name for one in fields(made)}
        for name in node.attribute_names():
            if name not in known:
                like = nearest(name, known)
                raise Unsupported(
                    f"the plug-in's {made.__name__} has no attribute {name}",
                    f"did you mean {like}?" if like else "declare it in the plug-in",
                )
        data = count or len(node.inputs) - len(names)
        if len(node.inputs) != data + len(names):
            raise Unsupported(
                f"it has {len(node.inputs)} inputs, the plug-in's {made.__name__} {data} and {len(names)} constants"
            )
        params = {name: node.constant(data + i, name) for i, name in enumerate(names)}
        builder.layer(node, as_op(made(**values)), [node.tensor(i) for i in range(data)], params)

    return convert


def _typed(made: Any, one: Any, given: Any) -> Any:
    base, many = attribute_type(made, one.name)
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    if many != isinstance(given, (list, tuple)) or any(
        isinstance(item, str) != (base is str) or (base is int and isinstance(item, float)) for item in items
    ):
        raise Unsupported(f"its attribute {one.name} is {given!r}", f"give {base.__name__}{' values' if many else ''}")
    values = tuple(base(item) for item in items)
    return values if many else values[0]


def _enter_section(made: Any, as_op: Callable[[Any], Any]) -> None:
    keys = []
    for one in fields(made):
        kind = _KINDS[attribute_type(made, one.name)]
        choices = one.metadata.get("choices", ())
        default = REQUIRED if one.default is MISSING else one.default
        if isinstance(default, tuple) and one.metadata.get("spatial"):
            default = default[::-1]
        keys.append(
            Key(
                one.metadata.get("ini") or camel(one.name),
                Kind.ENUM if choices else kind,
                default,
                one.metadata.get("doc", ""),
                tuple(choices),
            )
        )
    outputs = Key("NbOutputs", Kind.UINT, None, "Number of output channels. Checked if it is given.", minimum=1)
    schema = ACTIVATED.extended(NB_OUTPUTS, outputs, *keys, name=made.ini, doc=(made.__doc__ or "").split("\n")[0])

    @ini(made.ini, schema)
    def build(context: LayerContext) -> None:
        values = {}
        for one, key in zip(fields(made), keys, strict=True):
            value = context.values[key.name]
            values[one.name] = value[::-1] if one.metadata.get("spatial") and isinstance(value, tuple) else value
        count = getattr(made, "inputs", 1)
        tensors = [context.joined()] if count == 1 else [tensor for _, tensor in context.parents]
        if count > 1 and len(tensors) != count:
            raise context.fail(
                "E022", f"{made.ini} reads {count} inputs, but Input names {len(tensors)}", "correct Input", "Input"
            )
        op = as_op(made(**values))
        shapes = [context.graph.shape(tensor) for tensor in tensors]
        params = {
            name: _parameter(context, name, shape)
            for name, shape in (op.parameter_shapes(*shapes) if hasattr(op, "parameter_shapes") else {}).items()
        }
        node = context.add(op, tensors, params, read_activation(context.values))
        if context.values.given("NbOutputs"):
            require_channels(context, node.output)


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
            return moved(node, types)
        form = op._call("quantize", node, Facts(types.inputs, types.output, node.params, types.options.bits))
        if form is None:
            raise refusal(node, op.kind)
        constants = {name: np.atleast_1d(np.asarray(values)) for name, values in form.constants.items()}
        for name, values in constants.items():
            if values.dtype.kind not in "iu" or not values.size:
                raise N2D2Error(
                    "E024",
                    f"{type(op).__name__}: quantize() returns {name} of type {values.dtype} instead of integers",
                    where=place_of(type(op)),
                    remedy="round the values to integers",
                )
        if not (form.scale > 0 and form.bound >= 0):
            raise N2D2Error(
                "E024",
                f"{type(op).__name__}: quantize() returns the scale {form.scale} and the bound {form.bound}",
                where=place_of(type(op)),
                remedy="return positive numbers",
            )
        return summed(node, types, form.scale, int(form.bound), Custom(constants))


def _access(node: QuantNode, graph: Any) -> Access:
    op = node.op
    if op.access == "window":
        return Window(op.kernel, op.stride, op.pads, by_lines=False)
    return Whole(by_lines=False) if op.access == "whole" else Pointwise(by_lines=False)


# ---- C++ ----------------------------------------------------------------------------------------
def _code(header: str, layer: Layer) -> LayerCode:
    """The config struct of the layer from the operator's attributes, its arrays and the call of its kernel."""
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
    constant = [Expression.of(str(each), types["Epilogue"], each) for each in arrays]
    bases, declared = layer.bases, ()
    if op.inputs == 0:
        bases, declared = ("in",), (f"const unsigned char* const in[] = {{{', '.join(bases)}}};",)
    config = layer.config(op.kind, types, constants)
    return layer.code(header, Call(op.call, (config,), (*bases, "out", *constant), declared))


def _attribute(one: Any, value: Any, constants: dict[str, Any], reals: dict[str, float]) -> None:
    """An attribute in the config: whole numbers as constants, a text as its place in `choices`, reals as functions."""
    name, choices = camel(one.name), one.metadata.get("choices", ())
    for index, item in enumerate(value if isinstance(value, tuple) else (value,)):
        number = f"{index}" if isinstance(value, tuple) else ""
        if isinstance(item, float):
            reals[f"{one.name}{number}"] = item
        elif isinstance(item, str):
            constants[name] = choices.index(item) if item in choices else 0
        else:
            constants[f"{name}{number}"] = item
