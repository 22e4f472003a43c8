"""Inputs of an ONNX model that are not data: recurrent states, and inputs with a fixed value.

A streaming network reads the state of its last call and returns the next one. `States=INPUT:OUTPUT` names such a pair.
Otherwise names decide: both contain the same word for the state ("h", "cache", ...), the output marks it as new ("hn",
"stateN", "cache_out", ...), and the shapes agree.
"""

import re
from dataclasses import replace

import numpy as np
from onnx import helper

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.model import Dims, OnnxInput, OnnxModel, declared_dims, to_array
from n2d2py.graph import Graph, elements
from n2d2py.operators.reshape import Reshape

Pair = tuple[str, str]

_OLD_MARKS = frozenset("0 in input past prev previous prior old last initial init".split())
"""Words that may accompany the name of a state before a call."""
_NEW_MARKS = frozenset("n out output new next present current cur o t".split())
"""Words that mark the name of a state after a call."""
_STATE_WORDS = frozenset(
    """
    h c hx cx hidden cell state states cache caches buf buffer mem memory carry context ctx rnn lstm gru
    """.split()
)
"""Usual names of a state."""


_PASSES = ("Cast", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def propose_constants(model: OnnxModel) -> str:
    """Return NAME:VALUE,... for the inputs that the conditions of If nodes compare with a constant, such as sr:16000."""
    writers = {name: node for node in model.proto.graph.node for name in node.output}
    inputs, values = {one.name for one in model.inputs}, dict(model.constants)
    for node in model.proto.graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            values[node.output[0]] = to_array(node.attribute[0].t, model.path)
    found: dict[str, str] = {}
    for node in model.proto.graph.node:
        compared = writers.get(next(iter(node.input), "")) if node.op_type == "If" else None
        if compared is None or compared.op_type != "Equal":
            continue
        for source, constant in (tuple(compared.input), tuple(compared.input)[::-1]):
            while (writer := writers.get(source)) is not None and writer.op_type in _PASSES:
                source = writer.input[0]
            if source in inputs and constant in values and values[constant].size == 1:
                found.setdefault(source, f"{source}:{values[constant].item()}")
    return ",".join(found.values())


def fix_inputs(model: OnnxModel, text: str) -> None:
    """Make inputs constants: `text` is NAME:VALUE,NAME:VALUE,... of -constants, or of the export parameter Constants.

    Raises N2D2Error: E316 a name that is not an input, or a value that does not fit its type.
    """
    for name, value in _parse_pairs(model, text, "Constants", "sr:16000"):
        match = next((one for one in model.inputs if one.name == name), None)
        if match is None:
            raise _states_error(model, f"Constants: no input is called '{name}'", _list_inputs(model))
        kind = helper.tensor_dtype_to_np_dtype(match.element_type)
        try:
            given = int(value) if kind.kind in "biu" else float(value)
            number = np.array(given).astype(kind)
            if kind.kind in "biu" and number != given:
                raise OverflowError
        except (ValueError, OverflowError):
            what = f"Constants: '{value}' is not a value of the input '{name}' ({kind})"
            raise _states_error(model, what, "give a number") from None
        if len(model.inputs) == 1:
            raise _states_error(model, f"Constants: '{name}' is the only input", "leave one that data are given for")
        model.constants[name] = np.full([size or 1 for size in match.dims], number)
        model.inputs.remove(match)
        log.notice("%s: the input '%s' is the constant %s", model.path, name, value)


def find_states(model: OnnxModel, text: str) -> None:
    """Find the states of a model, and move them after its other inputs and outputs, in the same order.

    `text` is INPUT:OUTPUT,..., "none", or empty to match by name.

    Raises N2D2Error: E316 a name that is not an input or output, a duplicate name, or a model with no input but states.
    """
    asked = text.strip()
    if model.states:  # the file says them
        if asked:
            raise _states_error(model, "States: the file says its states itself: its variables", "leave States out")
        return
    if asked.lower() == "none":
        return
    pairs = _parse_pairs(model, asked, "States", "h0:hn,c0:cn") if asked else _match_names(model)
    if not pairs:
        return
    _check_pairs(model, pairs)
    if not asked:
        text = "%s: states are kept between calls: %s (matched by name; States=none makes them inputs and outputs)"
        log.notice(text, model.path, ", ".join(f"{output} -> {name}" for name, output in pairs))
    inputs, outputs = {one.name: one for one in model.inputs}, {one.name: one for one in model.proto.graph.output}
    paired = {name for pair in pairs for name in pair}
    shapes = {one.name: declared_dims(one) for one in outputs.values()}
    model.inputs = [one for one in model.inputs if one.name not in paired]
    model.inputs += [_with_output_sizes(inputs[name], shapes[output]) for name, output in pairs]
    ordered = [one for one in outputs.values() if one.name not in paired] + [outputs[output] for _, output in pairs]
    del model.proto.graph.output[:]
    model.proto.graph.output.extend(ordered)
    model.states = pairs
    model.batch = 1 if model.batch is None else model.batch


def check_states(model: OnnxModel, graph: Graph) -> None:
    """Raise E316 if the sizes of a state before and after a call differ."""
    for (name, output), *ends in zip(model.states, graph.state_inputs, graph.state_outputs, strict=True):
        before, after = (elements(graph.shape(tensor)) for tensor in ends)
        if before != after:
            what = f"the state '{name}' has {before} elements, '{output}', which it becomes, {after}"
            raise _states_error(model, what, "name the pairs with States=INPUT:OUTPUT,..., or States=none")


def keep_state_images(graph: Graph) -> None:
    """Keep states as images if their consumers and producers use images; this saves two layout conversions in each call."""
    for state_input, becoming in zip(graph.state_inputs, graph.state_outputs, strict=True):
        readers, maker = graph.consumers(state_input), graph.producer(becoming)
        if maker is None or not readers or not all(isinstance(node.op, Reshape) for node in (*readers, maker)):
            continue
        image = maker.inputs[0]
        shapes = {graph.shape(image), *(graph.shape(node.output) for node in readers)}
        is_used = image in (*graph.inputs, *graph.outputs) or graph.consumers(becoming) or graph.outputs.count(becoming) > 1
        if len(shapes) > 1 or len(graph.shape(image)) < 3 or is_used:
            continue
        graph.tensors[state_input] = replace(graph.tensors[state_input], shape=graph.shape(image))
        for node in readers:
            graph.bypass(node)
        graph.outputs[graph.outputs.index(becoming)] = image
        graph.remove(maker)


def _check_pairs(model: OnnxModel, pairs: list[Pair]) -> None:
    inputs, outputs = {one.name: one for one in model.inputs}, set(model.outputs)
    for index, (name, output) in enumerate(pairs):
        if name not in inputs:
            raise _states_error(model, f"States: no input is called '{name}'", _list_inputs(model))
        if output not in outputs:
            raise _states_error(model, f"States: no output is called '{output}'", f"the outputs are {', '.join(model.outputs)}")
        if any(name == other or output == result for other, result in pairs[:index]):
            raise _states_error(model, f"States: '{name}:{output}' names an input or an output twice", "name each once")
        if inputs[name].kind:
            raise _states_error(model, f"States: the input '{name}' is not a float tensor", "remove it, or set States=none")
    if len(pairs) == len(inputs) or len(pairs) == len(outputs):
        what = "input" if len(pairs) == len(inputs) else "output"
        raise _states_error(model, f"States: every {what} is a state", f"leave an {what} that is none, or give States=none")


def _parse_pairs(model: OnnxModel, text: str, key: str, example: str) -> list[Pair]:
    pairs = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        # names of ONNX may hold colons: the last one separates, or of a pair the one that makes both names known
        splits = [(part[: colon.start()], part[colon.end() :]) for colon in re.finditer(":", part)]
        known = {one.name for one in model.inputs}
        name, other = next((pair for pair in splits if pair[0] in known), (splits or [("", "")])[-1])
        if not (name and other):
            raise _states_error(model, f"{key}: '{part}' is not a pair", f"write {key}={example}")
        pairs.append((name.strip(), other.strip()))
    return pairs


def _match_names(model: OnnxModel) -> list[Pair]:
    """Return the pairs that names determine uniquely: one output for one input, of matching shapes."""
    names = {one.name: _split_name(one.name, _OLD_MARKS) for one in model.inputs if not one.kind}
    outputs = {name: _split_name(name, _NEW_MARKS) for name in model.outputs}
    shapes = {one.name: declared_dims(one) for one in model.proto.graph.output}
    inputs = {one.name: one for one in model.inputs}
    pairs = []
    for name, (meaning, _) in names.items():
        same = [output for output, (other, marked) in outputs.items() if marked and other == meaning]
        alone = sum(other == meaning for other, _ in names.values()) == 1
        if meaning & _STATE_WORDS and len(same) == 1 and alone and _shapes_agree(inputs[name].dims, shapes[same[0]]):
            pairs.append((name, same[0]))
    return [] if len(pairs) in (len(inputs), len(outputs)) else pairs


def _split_name(name: str, marks: frozenset[str]) -> tuple[frozenset[str], bool]:
    """Return the words of a name without `marks`, and whether it contains a mark."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
    split = [part for word in words for part in (tuple(word) if word in ("hn", "cn") else (word,))]
    return frozenset(split) - marks, bool(marks.intersection(split))


def _shapes_agree(first: Dims, second: Dims) -> bool:
    """True if two shapes agree in their known sizes; a shape without axes is unknown."""
    pairs = zip(first, second, strict=False)
    return not second or (len(first) == len(second) and all(None in pair or pair[0] == pair[1] for pair in pairs))


def _with_output_sizes(value: OnnxInput, output: Dims) -> OnnxInput:
    """Return the input with open sizes from its output, else 1 (one sequence)."""
    others = output if len(output) == len(value.dims) else (None,) * len(value.dims)
    return replace(value, dims=tuple(size or other or 1 for size, other in zip(value.dims, others, strict=True)))


def _list_inputs(model: OnnxModel) -> str:
    return f"the inputs are {', '.join(one.name for one in model.inputs)}"


def _states_error(model: OnnxModel, what: str, remedy: str) -> N2D2Error:
    return N2D2Error("E316", what, where=model.place(), remedy=remedy)
