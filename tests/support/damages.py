"""Small random changes of models: what was done, in words. They are the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

TEXTS = ("SAME_UPPER", "VALID", "linear", "reflect", "other", "")
OTHER_TYPES = ("Relu", "Add", "Conv", "Reshape", "Softmax", "Nothing", "MaxPool", "Gemm", "Concat")
KINDS = (np.float64, np.int64, np.int32, np.float16, np.int8, np.bool_)


def _number(rng: random.Random, value: Any) -> Any:
    return rng.choice([value + 1, value - 1, 0, -1, 2, 3, 99, -value, 2 * value])


def _numbers(rng: random.Random, values: list) -> list:
    changed = list(values)
    way = rng.randrange(4)
    if way == 0 and changed:
        del changed[rng.randrange(len(changed))]
    elif way == 1:
        changed.append(rng.choice([0, 1, 2]))
    elif changed:
        at = rng.randrange(len(changed))
        changed[at] = _number(rng, changed[at])
    return changed


# ---- ONNX


def damage_model(model: onnx.ModelProto, rng: random.Random) -> str:
    """Changes a model in one place."""
    node = rng.choice(model.graph.node)
    ways: list[Callable[[onnx.ModelProto, onnx.NodeProto, random.Random], str]] = [_inputs, _outputs, _new_attribute, _kind]
    ways += [_attribute] * 4 if node.attribute else []
    ways += [_constant] * 4 if model.graph.initializer else []
    return rng.choice(ways)(model, node, rng)


def _attribute(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> str:
    at = rng.randrange(len(node.attribute))
    given = node.attribute[at]
    value = helper.get_attribute_value(given)
    if rng.random() < 0.15 or isinstance(value, onnx.TensorProto):
        del node.attribute[at]
        return f"{node.op_type} without {given.name}"
    if isinstance(value, bytes):
        value = rng.choice(TEXTS)
    elif isinstance(value, (int, float)):
        value = rng.choice([float("nan"), 0.0, -value, 1e30]) if isinstance(value, float) else _number(rng, value)
    elif isinstance(value, list) and value and isinstance(value[0], (int, float)):
        value = _numbers(rng, value)
    name = given.name
    node.attribute[at].CopyFrom(helper.make_attribute(name, value, attr_type=given.type))
    return f"{node.op_type} {name} = {value}"


def _new_attribute(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> str:
    if not onnx.defs.has(node.op_type, model.opset_import[0].version):
        return _kind(model, node, rng)
    known = onnx.defs.get_schema(node.op_type, model.opset_import[0].version).attributes
    free = sorted(set(known) - {each.name for each in node.attribute})
    if not free:
        return _kind(model, node, rng)
    name = rng.choice(free)
    values: dict[int, Any] = {
        AttributeProto.INT: rng.choice([0, 1, 2, -1, 7]),
        AttributeProto.FLOAT: rng.choice([0.0, 0.5, -1.0, 3.0]),
        AttributeProto.STRING: rng.choice(TEXTS),
        AttributeProto.INTS: [rng.choice([0, 1, 2, 3, -1]) for _ in range(rng.randint(1, 4))],
    }
    kind = int(known[name].type.value)
    if kind not in values:
        return _kind(model, node, rng)
    node.attribute.append(helper.make_attribute(name, values[kind], attr_type=kind))
    return f"{node.op_type} with {name} = {values[kind]}"


def _inputs(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> str:
    names = list(node.input)
    every = [name for each in model.graph.node for name in (*each.input, *each.output) if name]
    way = rng.choice(["last", "first", "swapped", "twice", "other", "none"])
    at = rng.randrange(len(names)) if names else 0
    if way in ("last", "first") and names:
        del names[-1 if way == "last" else 0]
    elif way == "swapped":
        names = names[::-1]
    elif way == "twice" or not names:
        names.append(rng.choice(every))
    else:
        names[at] = rng.choice(every) if way == "other" else ""
    del node.input[:]
    node.input.extend(names)
    return f"{node.op_type} of {', '.join(names)}"


def _outputs(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> str:
    if rng.random() < 0.5:
        node.output.append("more")
    else:
        node.output[0] = rng.choice(["", "other", node.input[0] if node.input else "x"])
    return f"{node.op_type} gives {', '.join(node.output)}"


def _kind(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> str:
    before, way = node.op_type, rng.randrange(5)
    if way == 0:
        node.domain = rng.choice(["com.microsoft", "elsewhere"])
        return f"{before} of {node.domain}"
    if way == 1:
        model.opset_import[0].version = rng.choice([7, 9, 11, 13, 18, 21])
        return f"set {model.opset_import[0].version}"
    if way == 2:
        dims = model.graph.input[0].type.tensor_type.shape.dim
        at = rng.randrange(len(dims))
        dims[at].dim_value = rng.choice([0, 1, 2, 3, 8])
        return f"input axis {at} of {dims[at].dim_value}"
    if way == 3:
        model.graph.node.remove(node)
        return f"no {before}"
    node.op_type = rng.choice(OTHER_TYPES)
    return f"{before} is {node.op_type}"


def _constant(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> str:
    held = rng.choice(model.graph.initializer)
    array, way = numpy_helper.to_array(held), rng.randrange(5)
    if way == 0:
        array, told = array.astype(rng.choice(KINDS)), "of another type"
    elif way == 1:
        array, told = array.reshape(rng.choice([(-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1]])), "reshaped"
    elif way == 2 and array.ndim and array.shape[0] > 1:
        array, told = array[: -1 if rng.random() < 0.5 else 1], "cut"
    elif array.size and array.dtype.kind in "if":
        array, told = array.copy(), "changed"
        at = rng.randrange(array.size)
        value = array.reshape(-1)[at].item()
        array.reshape(-1)[at] = np.array(_number(rng, value)).astype(array.dtype)
    else:
        array, told = np.concatenate([array, array]) if array.ndim else array.reshape(1), "doubled"
    held.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), held.name))
    return f"{held.name} {told} {list(array.shape)} {array.dtype} {array.reshape(-1)[:3].tolist()}"


# ---- .tflite


def damage_file(made: Any, rng: random.Random) -> str:
    """Changes a file of `tflite_files.Small` in one place."""
    operator = rng.choice(made.file._operators)
    tensor = rng.choice(made.file._tensors)
    options = operator.builtinOptions
    fields = (
        sorted(name for name, value in vars(options).items() if isinstance(value, (int, float))) if options is not None else []
    )
    way = rng.choice(["inputs", "outputs", "shape", "type", "scale", "values", *["option"] * 4 * bool(fields)])
    if way == "option":
        name = rng.choice(fields)
        value = getattr(options, name)
        value = not value if isinstance(value, bool) else max(_number(rng, value), 0) if isinstance(value, int) else 2.0
        setattr(options, name, value)
        return f"{name} = {getattr(options, name)}"
    if way in ("inputs", "outputs"):
        given = [int(index) for index in getattr(operator, way)]
        if rng.random() < 0.6 and given:
            del given[rng.randrange(len(given))]
        else:
            given.insert(rng.randint(0, len(given)), rng.choice([-1, *range(len(made.file._tensors))]))
        setattr(operator, way, np.array(given, np.int32))
        return f"{way} {given}"
    name = tensor.name
    if way == "shape":
        tensor.shape = np.array(_numbers(rng, [int(size) for size in tensor.shape]), np.int32)
        return f"{name} of {tensor.shape.tolist()}"
    if way == "type":
        kind = rng.choice(["FLOAT32", "INT8", "UINT8", "INT32", "INT64", "FLOAT16", "INT16", "BOOL"])
        tensor.type = getattr(made.schema.TensorType, kind)
        return f"{name} is {kind}"
    if way == "values" and tensor.buffer:
        buffer = made.file._buffers[tensor.buffer]
        buffer.data = buffer.data[: rng.choice([0, len(buffer.data) // 2])] if rng.random() < 0.4 else buffer.data[::-1].copy()
        return f"{name} with {len(buffer.data)} other bytes"
    numbers = tensor.quantization
    if numbers is None:
        tensor.shape = np.array([], np.int32)
        return f"{name} without axes"
    part = rng.choice(["none", "scale", "zero", "more", "axis"])
    if part == "none":
        tensor.quantization = None
    elif part == "scale":
        numbers.scale = numbers.scale * np.float32(rng.choice([0, -1, 2, np.nan]))
    elif part == "zero":
        numbers.zeroPoint = numbers.zeroPoint + rng.choice([1, -1, 300])
    elif part == "more":
        numbers.scale = np.append(numbers.scale, np.float32(0.1))
        if rng.random() < 0.7:
            numbers.zeroPoint = np.append(numbers.zeroPoint, numbers.zeroPoint[:1])
    else:
        numbers.quantizedDimension = rng.choice([0, 1, 2, 3, 9])
    return f"{name} with another grid: {part}"


# ---- INI

VALUES = ("0", "-1", "1", "2", "3", "99", "a", "", "0.5", "1 2", "1 2 3", "1,2", "sp", "before", "Max", "1e30", "true")


def damage_text(text: str, keys: list[str], rng: random.Random) -> tuple[str, str]:
    """(the text of an INI with one line changed, removed or added; what was done). `keys`: lines that may be added."""
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines) if "=" in line or line.startswith("[")]
    at, way = rng.choice(places), rng.random()
    if way < 0.6 and "=" not in lines[at]:
        lines[at] = rng.choice(["[other]", "[sp]", f"{lines[at]} other", lines[at][:-1], lines[places[0]]])
        told = lines[at]
    elif way < 0.6:
        key = lines[at].split("=")[0]
        lines[at] = f"{key}={rng.choice(VALUES)}"
        told = lines[at]
    elif way < 0.75:
        told = f"no {lines.pop(at)}"
    else:
        lines.insert(at + 1, rng.choice(keys))
        told = f"and {lines[at + 1]}"
    return "\n".join(lines) + "\n", f"line {at + 1}: {told}"
