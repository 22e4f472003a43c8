"""Puts what a plug-in declares into the registries of the tool."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.errors import N2D2Error, nearest
from n2d2py.export.cpp import code, headers, isa
from n2d2py.export.cpp.code import LAYERS, LayerCode, layer_kinds, override_kernel, register_layer
from n2d2py.export.cpp.headers import plugin_header
from n2d2py.export.cpp.isa import FAMILIES, KERNELS, PORTABLE, InstructionSet, instruction_sets, register_instruction_set, tags
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.frontend.ini.common import ACTIVATED, CONFIGURATION, NB_OUTPUTS, read_activation
from n2d2py.frontend.ini.inputs import require_channels
from n2d2py.frontend.ini.registry import LAYER_TYPES, LayerContext, LayerType, layer_types
from n2d2py.frontend.ini.registry import register_layer as register_section
from n2d2py.frontend.onnx.registry import CONVERTERS, Unsupported, find_converter, register_converter, supported_operators
from n2d2py.graph import Node
from n2d2py.graph.forms import Custom
from n2d2py.graph.quant import QuantNode
from n2d2py.ini.schema import REQUIRED, Key, Kind
from n2d2py.memory.from_graph import LAYOUTS, register_layout
from n2d2py.memory.problem import OpSpec
from n2d2py.operators.activation import Activation
from n2d2py.operators.base import OPERATORS, operator_kinds, register
from n2d2py.operators.functions import FUNCTIONS
from n2d2py.passes import register_pass
from n2d2py.passes.chain import ChainPass
from n2d2py.plugin.declare import ACCESSES, Declared, Operator, attribute_type, camel, failed, incomplete, place_of
from n2d2py.plugin.integers import Facts
from n2d2py.quant.contract import QUANTIZERS, LayerTypes, Quantizer, quantizer, refusal
from n2d2py.quant.forming import moved, summed
from n2d2py.registry import Registry

__all__ = ["PluginQuantizer", "check", "enter", "lists", "registries"]

_KINDS = {
    (int, False): Kind.INT,
    (float, False): Kind.FLOAT,
    (bool, False): Kind.BOOL,
    (str, False): Kind.STRING,
    (int, True): Kind.INTS,
    (float, True): Kind.FLOATS,
}


# ---- checking -----------------------------------------------------------------------------------
def check(declared: Declared, folder: Path, beside: frozenset[str] = frozenset()) -> list[N2D2Error]:
    """What a declaration lacks (E022), and names that others have (E023); `beside` are the kinds that the same plug-in declares."""
    made, found = declared.made, []

    def lacks(what: str, remedy: str) -> None:
        found.append(incomplete(made, what, remedy))

    if declared.what == "recipe":
        chain = made.chain
        if not isinstance(chain, tuple) or len(chain) < 1 or not all(isinstance(kind, str) for kind in chain):
            lacks("chain is no tuple of names", 'write chain = ("First", "Second")')
            return found
        known = {*operator_kinds(), *FUNCTIONS, *beside}
        for kind in chain:
            if kind not in known:
                like = nearest(kind, known)
                lacks(
                    f"its chain names '{kind}', which is no kind of layer",
                    (f"did you mean {like}? " if like else "")
                    + f"known: {', '.join(sorted(known))}; a plug-in that adds one is loaded before",
                )
        return found
    if not made.header or not (folder / made.header).is_file():
        lacks(
            f"the header '{made.header}' does not exist in {folder}" if made.header else "it names no header",
            'write header = "name.hpp" and put the file beside the Python file',
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
                    "E023", f"{made.__name__}: {what} '{name}' is taken", where=place_of(made), remedy=f"choose another {what}"
                )
            )
    return found


def _onnx_name(text: str) -> tuple[str, str]:
    domain, _, name = text.rpartition("::")
    return name, domain


def registries() -> list[Registry[Any]]:
    """The tables by name that `enter` changes."""
    for built_in in (layer_types, layer_kinds, supported_operators):
        built_in()  # built-ins enter when they are first asked for
    return [OPERATORS, FUNCTIONS, LAYER_TYPES, CONVERTERS, QUANTIZERS, LAYOUTS, LAYERS]


def lists() -> list[Any]:
    """The other dictionaries and lists that `enter` changes."""
    return [code._OVERRIDES, headers._PLUGINS, isa._MORE, sys.modules["n2d2py.passes.fuse"]._MORE]


# ---- entering -----------------------------------------------------------------------------------
def enter(declared: Declared, folder: Path) -> None:
    """Registers a checked declaration everywhere."""
    made = declared.made
    if declared.what == "recipe":
        register_pass(_recipe_pass(made()))
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
        register_layout(made.kind, _layout)
        register_layer(made.kind, lambda *layer: _code(header, *layer))
        _enter_names(made, lambda op: op)


def _enter_names(made: Any, as_op: Callable[[Any], Any]) -> None:
    if made.onnx:
        name, domain = _onnx_name(made.onnx)
        register_converter(name, _converter(made, as_op), domain)
    if made.ini:
        register_section(_section(made, as_op))


def _recipe_pass(made: Any) -> ChainPass:
    return ChainPass(f"{made.name}", f"chains {' - '.join(made.chain)} replaced", made.chain, made.becomes)


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


def _section(made: Any, as_op: Callable[[Any], Any]) -> LayerType:
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
    outputs = Key("NbOutputs", Kind.UINT, None, "number of output channels, checked when it is given", minimum=1)
    schema = ACTIVATED.extended(NB_OUTPUTS, outputs, *keys, name=made.ini, doc=(made.__doc__ or "").split("\n")[0])

    def build(context: LayerContext) -> None:
        values = {}
        for one, key in zip(fields(made), keys, strict=True):
            value = context.values[key.name]
            values[one.name] = value[::-1] if one.metadata.get("spatial") and isinstance(value, tuple) else value
        count = getattr(made, "inputs", 1)
        tensors = [context.joined()] if count == 1 else [tensor for _, tensor in context.parents]
        if count > 1 and len(tensors) != count:
            raise context.fail("E022", f"{made.ini} reads {count} inputs, not {len(tensors)}", "correct Input", "Input")
        op = as_op(made(**values))
        shapes = [context.graph.shape(tensor) for tensor in tensors]
        params = {
            name: _parameter(context, name, shape)
            for name, shape in (op.parameter_shapes(*shapes) if hasattr(op, "parameter_shapes") else {}).items()
        }
        node = context.add(op, tensors, params, read_activation(context.values))
        if context.values.given("NbOutputs"):
            require_channels(context, node.output)

    return LayerType(made.ini, schema, CONFIGURATION, build)


def _parameter(context: LayerContext, name: str, shape: tuple[int, ...]) -> np.ndarray:
    context.loaded.append(name)
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
                    f"{type(op).__name__}: quantize() gives {name} of {values.dtype}, no whole numbers",
                    where=place_of(type(op)),
                    remedy="round them to integers",
                )
        if not (form.scale > 0 and form.bound >= 0):
            raise N2D2Error(
                "E024",
                f"{type(op).__name__}: quantize() gives the scale {form.scale} and the bound {form.bound}",
                where=place_of(type(op)),
                remedy="give positive numbers",
            )
        return summed(node, types, form.scale, int(form.bound), Custom(constants))


def _layout(node: QuantNode, graph: Any) -> OpSpec:
    op = node.op
    if op.access == "window":
        spec = OpSpec.window(node.name, "conv", node.inputs[0], node.output, kernel=op.kernel, stride=op.stride, pads=op.pads)
    else:
        kind = "fc" if op.access == "whole" else "add" if len(node.inputs) > 1 else "ew"
        spec = OpSpec(node.name, kind, tuple(node.inputs), node.output)
    spec.attributes["by_lines"] = False
    return spec


# ---- C++ ----------------------------------------------------------------------------------------
def _code(header: str, *layer: Any) -> LayerCode:
    """The config struct of the layer from the operator's attributes, its arrays and the call of its kernel."""
    build = LayerBuilder(*layer)
    op, node = build.node.op, build.node
    if build.streamed:
        raise failed(op, node, 'its kernel does not run line by line, as OptimizeStream asks; use access = "whole"')
    sum_type = build.sum_type()
    types = {
        "Input": build.input_plane,
        "Output": build.output_plane,
        "Sum": sum_type,
        "Epilogue": build.moving_epilogue(clamped=True) if op.moves_values else build.epilogue(),
    }
    constants: dict[str, Any] = {}
    if len(node.inputs) > 1 or op.inputs == 0:
        types.update({f"Input{i}": build.identifiers.plane(name) for i, name in enumerate(node.inputs)})
        constants.update({f"Input{i}Zero": kind.zero_point for i, kind in enumerate(build.inputs)})
        constants["Inputs"] = len(node.inputs)
    constants.update(InputZero=build.inputs[0].zero_point, Serial=build.serial)
    reals: dict[str, float] = {}
    for one in fields(op):
        _attribute(one, getattr(op, one.name), constants, reals)
    types["Parameters"] = build.constants("parameters", sum_type if not build.integer else "float", reals, {})
    arrays = [build.array(name, values, sum_type) for name, values in node.params.items()]
    config = build.config(f"{node.name}: {op.kind}", types, constants)
    ins = [f"in{i}" for i in range(len(node.inputs))]
    call = f"{op.call}<{config}>({', '.join([*ins, 'out', *arrays])});"
    if op.inputs == 0:
        call = (
            f"const unsigned char* const in[] = {{{', '.join(ins)}}};\n"
            f"{op.call}<{config}>({', '.join(['in', 'out', *arrays])});"
        )
    return build.code(header, call)


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
