"""Damage of texts, bytes and ONNX models. A mutator takes the thing and a random generator, and gives the damaged thing."""

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["NAMES", "damage_bytes", "damage_model", "damage_text"]

INTEGERS = (0, 1, -1, 2, 3, 7, -2, 16, 255, 256, 65536, 10**6, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e6, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan"))
NAMES = (
    "",
    " ",
    "$$(id)",
    "$x^{2$",
    *".. ../up / a/b con NUL CON.txt".split(),
    "a\nb",
    'quote"quote',
    "it's",
    "back\\slash",
    *"100%s%n #:$ <b>&amp;</b> ]]> */ //".split(),
    "?" * 4,
    "\x01\x7f",
    "é",
    "日本語",
    "\U0001f600",
    "e\u0301",
    *"int main n2d2 0 -1 A a".split(),
    "x" * 300,
    "x" * 299 + "y",
    "é" * 200,
    "y" * 1000,
)
WORDS = (
    *(str(number) for number in (*INTEGERS[:16], 10**20, 10**400)),
    *("1e309", "nan", "inf", "-0", "3.5", "1e-30", "0x10", "1 1 1 1 1", "1,2", "sp", "${X}", "$(1/0)", "$(9**9**9)"),
    *("$(2**62)", "[sp]SizeX", "[sp]Nothing", "[conv]NbOutputs", '"', "\\", "[", "]", "=", ";", "\x00", "é", "{{A}}", "Max"),
    *("Conv", "Pool", "Fc", "Softmax", "ElemWise", "Resize", "Deconv", "Concat", "Transpose", "BatchNorm", "LRN", "Pad"),
    *("ONNX", "Reshape", "Upscale", "Unpool", "Activation", "Tanh", "Rectifier", "Saturation", "Logistic", "Average"),
)
LINES = (
    *("Input=sp", "Type=Conv", "Type=Pool", "Type=ONNX", "KernelDims=3 3", "KernelSize=5", "Stride=2", "Padding=-1"),
    *("Mapping.NbGroups=2", "DilationX=3", "NbOutputs=0", "[sp]", "[x] conv", "[new]", "BatchSize=1000000000", "SizeX=65536"),
    *("[sp.Transformation-9]", "Type=PadCropTransformation", "Width=1000000000", "Clipping=nan", "@include", "File=m.onnx"),
    *("Threshold=1e309", "LeakSlope=nan", "Mapping=1", "$A=$(2**40)", "Repeat=100000", "{% for i in range(100000) %}"),
)
MODES = (
    *(b"", b"\xff", b"linear", b"cubic", b"nearest", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"NOTSET", b"CRD", b"DCR"),
    *(b"align_corners", b"asymmetric", b"tf_crop_and_resize", b"half_pixel_symmetric", b"ceil", b"floor", b"edge", b"wrap"),
    *(b"reflect", b"constant", b"add", b"mul", b"max", b"none", b"tanh", b"ij,jk->ik", b"...", b"LEFT", b"x" * 1000),
)
OPERATORS = (
    *("Conv", "Relu", "Gemm", "Reshape", "Add", "MaxPool", "Transpose", "BatchNormalization", "Concat", "Clip", "Softmax"),
    *(*"Slice Pad MatMul Squeeze Shape Gather Resize Cast Constant Tile Expand OneHot Range".split(),),
    *("DepthToSpace", "LRN", "TopK", "ScatterND", "GatherND", "Einsum", "QLinearConv", "QuantizeLinear", "ConvTranspose", "If"),
    *("Loop", "Scan", "LSTM", "Split", "Upsample", "ConstantOfShape", "EyeLike", "CumSum", "GridSample", "Nothing", "Where"),
)


def damage_bytes(data: bytes, choice: random.Random) -> bytes:
    """Some wrong bytes, a cut, a piece doubled or removed, a wrong number."""
    bad, kind = bytearray(data), choice.randrange(6)
    if not bad:
        return b"\x00"
    at = choice.randrange(len(bad))
    if kind == 0:
        return bytes(bad[:at])
    if kind == 1:
        length = choice.choice((1, 4, 16, 64))
        bad[at:at] = bad[at : at + length]
    elif kind == 2:
        del bad[at : at + choice.choice((1, 2, 8, 64))]
    elif kind == 3:
        size = choice.choice((2, 4, 8))
        bad[at : at + size] = (choice.choice(INTEGERS) % (1 << 8 * size)).to_bytes(size, choice.choice(("little", "big")))
    else:
        for _ in range(choice.choice((1, 1, 2, 8))):
            bad[choice.randrange(len(bad))] = choice.randrange(256)
    return bytes(bad)


def damage_words(data: bytes, choice: random.Random) -> bytes:
    """Some of the words of 4 bytes that a file of offsets consists of, as other ones of it, or as wrong numbers."""
    bad = bytearray(data)
    for _ in range(choice.choice((1, 1, 2, 5))):
        at = 4 * choice.randrange(max(1, len(bad) // 4))
        other = 4 * choice.randrange(max(1, len(bad) // 4))
        wrong = (choice.choice(INTEGERS) % (1 << 32)).to_bytes(4, "little")
        near = ((int.from_bytes(bad[at : at + 4], "little") + choice.choice((-4, -1, 1, 4))) % (1 << 32)).to_bytes(4, "little")
        bad[at : at + 4] = choice.choice((wrong, near, bytes(bad[other : other + 4])))
    return bytes(bad)


def damage_text(data: bytes, choice: random.Random) -> bytes:
    """A changed value, key, section or line of an INI; now and then wrong bytes."""
    if choice.randrange(8) == 0:
        return damage_bytes(data, choice)
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    at, kind = choice.randrange(len(lines)), choice.randrange(8)
    keyed = [index for index, line in enumerate(lines) if "=" in line]
    if kind <= 2 and keyed:
        at = choice.choice(keyed)
        lines[at] = lines[at].split("=")[0] + "=" + choice.choice(WORDS if choice.randrange(5) else NAMES)
    elif kind == 3 and len(keyed) > 1:
        first, second = choice.sample(keyed, 2)
        lines[first] = lines[second].split("=")[0] + "=" + lines[first].split("=", 1)[1]
    elif kind == 4:
        lines.insert(at, choice.choice(lines if choice.randrange(2) else LINES))
    elif kind == 5:
        del lines[at]
    elif kind == 6:
        words = re.findall(r"\w+", lines[at])
        if words:
            lines[at] = lines[at].replace(choice.choice(words), choice.choice(WORDS), 1)
    else:
        sections = [line[1 : line.index("]")] for line in lines if re.match(r"\[[^\]]+\]", line)]
        if sections:
            old, new = choice.choice(sections), choice.choice(NAMES).replace("\n", " ")
            lines = [re.sub(rf"\b{re.escape(old)}\b", lambda _: new, line) for line in lines]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def damage_model(data: bytes, choice: random.Random) -> bytes:
    """A changed part of an ONNX model; one in eight is damaged in its bytes."""
    if choice.randrange(8) == 0:
        return damage_bytes(data, choice)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
        choice.choice(_PARTS)(model, choice)
        return model.SerializeToString()
    except Exception:  # bytes that are no model any more, or a text that protobuf refuses to hold
        return damage_bytes(data, choice)


def _node(model: onnx.ModelProto, choice: random.Random) -> onnx.NodeProto:
    return choice.choice(model.graph.node)


def _attribute(model: onnx.ModelProto, choice: random.Random) -> None:
    """An attribute of another value or type, one too few or too many."""
    node = _node(model, choice)
    schema = onnx.defs.get_schema(node.op_type, 22, node.domain) if onnx.defs.has(node.op_type, node.domain) else None
    names = sorted(schema.attributes) if schema else []
    kind = choice.randrange(8)
    if kind == 0 and node.attribute:
        del node.attribute[choice.randrange(len(node.attribute))]
    elif kind == 1 and node.attribute:
        node.attribute.add().CopyFrom(choice.choice(node.attribute))
    elif kind == 2 or not node.attribute:
        name = choice.choice([*names, "nothing"])
        _without(node, name)
        node.attribute.append(helper.make_attribute(name, _anything(choice)))
    elif kind == 3:
        name = choice.choice(node.attribute).name
        _without(node, name)
        node.attribute.append(helper.make_attribute(name, _anything(choice)))
    else:
        _other_value(choice.choice(node.attribute), choice)


def _fitting(model: onnx.ModelProto, choice: random.Random) -> None:
    """An attribute that the operator has, with any value of its type."""
    node = _node(model, choice)
    if not onnx.defs.has(node.op_type, node.domain):
        return
    schema = onnx.defs.get_schema(node.op_type, 22, node.domain)
    kinds = onnx.defs.OpSchema.AttrType
    known = {
        kinds.INT: lambda: choice.choice(INTEGERS),
        kinds.FLOAT: lambda: choice.choice(REALS),
        kinds.STRING: lambda: choice.choice(MODES),
        kinds.INTS: lambda: [choice.choice(INTEGERS) for _ in range(choice.randrange(1, 6))],
        kinds.FLOATS: lambda: [choice.choice(REALS) for _ in range(choice.randrange(1, 6))],
    }
    names = sorted(name for name, attribute in schema.attributes.items() if attribute.type in known)
    if names:
        name = choice.choice(names)
        _without(node, name)
        node.attribute.append(helper.make_attribute(name, known[schema.attributes[name].type]()))


def _constant(model: onnx.ModelProto, choice: random.Random) -> None:
    """One value of a constant, most often of whole numbers: shapes, axes, repeats, positions."""
    whole = [tensor for tensor in model.graph.initializer if tensor.data_type in (TensorProto.INT64, TensorProto.INT32)]
    tensors = whole if whole and choice.randrange(4) else list(model.graph.initializer)
    if tensors:
        _other_number(choice.choice(tensors), choice)
    else:
        _fitting(model, choice)


def _other_number(tensor: TensorProto, choice: random.Random) -> None:
    values = numpy_helper.to_array(tensor).copy()
    if not values.size or values.dtype.kind not in "iuf":
        return
    if values.dtype.kind == "f":
        number = choice.choice(REALS)
    else:
        limits = np.iinfo(values.dtype)
        number = min(max(choice.choice(INTEGERS), limits.min), limits.max)
    with np.errstate(over="ignore"):
        values.reshape(-1)[choice.randrange(values.size)] = number
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _without(node: onnx.NodeProto, name: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def _anything(choice: random.Random) -> Any:
    made: tuple[Callable[[], Any], ...] = (
        lambda: choice.choice(INTEGERS),
        lambda: choice.choice(REALS),
        lambda: choice.choice(NAMES),
        lambda: [choice.choice(INTEGERS) for _ in range(choice.randrange(1, 6))],
        lambda: [choice.choice(REALS) for _ in range(choice.randrange(1, 6))],
        lambda: b"\xff\xfe",
        lambda: ["a", "b"],
        lambda: helper.make_tensor("t", TensorProto.INT64, [2], [choice.choice(INTEGERS), 1]),
    )
    return choice.choice(made)()


def _other_value(attribute: onnx.AttributeProto, choice: random.Random) -> None:
    kinds = onnx.AttributeProto
    if attribute.type == kinds.INT:
        attribute.i = choice.choice(INTEGERS)
    elif attribute.type == kinds.FLOAT:
        attribute.f = choice.choice(REALS)
    elif attribute.type == kinds.STRING:
        attribute.s = choice.choice(MODES)
    elif attribute.type in (kinds.INTS, kinds.FLOATS):
        values = attribute.ints if attribute.type == kinds.INTS else attribute.floats
        pool: tuple = INTEGERS if attribute.type == kinds.INTS else REALS
        kind = choice.randrange(4)
        if kind == 0 or not values:
            values.append(choice.choice(pool))
        elif kind == 1:
            del values[choice.randrange(len(values))]
        else:
            values[choice.randrange(len(values))] = choice.choice(pool)
    elif attribute.type == kinds.TENSOR:
        _tensor(attribute.t, choice)
    else:
        attribute.type = choice.choice([kinds.INT, kinds.STRING, kinds.TENSOR, kinds.GRAPH, 77])


def _inputs(model: onnx.ModelProto, choice: random.Random) -> None:
    """An input or output dropped, doubled, emptied, exchanged or called otherwise."""
    node, kind = _node(model, choice), choice.randrange(8)
    ends = node.input if kind < 6 else node.output
    if not ends:
        ends.append(choice.choice(NAMES))
        return
    at = choice.randrange(len(ends))
    known = [name for one in model.graph.node for name in (*one.input, *one.output)]
    if kind in (0, 6):
        del ends[at]
    elif kind == 1:
        ends.append(choice.choice(known))
    elif kind == 2:
        ends[at] = ""
    elif kind == 3:
        ends[at] = choice.choice(known)
    elif kind == 4:
        for _ in range(choice.randrange(1, 12)):
            ends.append(choice.choice(known))
    else:
        ends[at] = choice.choice(NAMES)


def _tensor(tensor: TensorProto, choice: random.Random) -> None:
    """Dimensions, type, values, or a place in another file."""
    kind = choice.randrange(7)
    if kind == 0 and tensor.dims:
        tensor.dims[choice.randrange(len(tensor.dims))] = choice.choice(INTEGERS)
    elif kind == 1:
        tensor.dims.append(choice.choice((1, 2, 0, -1)))
    elif kind == 2 and tensor.dims:
        del tensor.dims[0]
    elif kind == 3:
        tensor.data_type = choice.randrange(30)
    elif kind == 4:
        tensor.raw_data = tensor.raw_data[: choice.randrange(1 + len(tensor.raw_data))]
    elif kind == 5:
        tensor.data_location = TensorProto.EXTERNAL
        for key, values in (
            ("location", ("data.bin", "../data.bin", "\x00", "", ".", "/dev/zero", "x" * 300)),
            ("offset", ("0", "-1", "x", "9" * 30)),
            ("length", ("4", "-1", "x", "9" * 30)),
        ):
            if choice.randrange(4):
                tensor.external_data.add(key=key, value=choice.choice(values))
    else:
        _other_number(tensor, choice)


def _initializer(model: onnx.ModelProto, choice: random.Random) -> None:
    if model.graph.initializer:
        _tensor(choice.choice(model.graph.initializer), choice)
    else:
        _attribute(model, choice)


def _renamed(model: onnx.ModelProto, choice: random.Random) -> None:
    """A tensor, everywhere, has another name."""
    names = sorted({name for node in model.graph.node for name in (*node.input, *node.output) if name})
    if not names:
        return
    old, new = choice.choice(names), choice.choice(NAMES)
    for node in model.graph.node:
        for ends in (node.input, node.output):
            for index, name in enumerate(ends):
                ends[index] = new if name == old else name
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer, *model.graph.value_info):
        value.name = new if value.name == old else value.name


def _value(model: onnx.ModelProto, choice: random.Random) -> None:
    """Type or shape of an input or output of the model."""
    value = choice.choice([*model.graph.input, *model.graph.output])
    tensor, kind = value.type.tensor_type, choice.randrange(6)
    dims = tensor.shape.dim
    if kind == 0:
        tensor.elem_type = choice.randrange(30)
    elif kind == 1 and dims:
        choice.choice(dims).dim_value = choice.choice([size for size in INTEGERS if size != 10**6])  # a network, of gigabytes
    elif kind == 2 and dims:
        del dims[choice.randrange(len(dims))]
    elif kind == 3:
        dims.add().dim_value = choice.choice((0, 1, 2, -1))
    elif kind == 4 and dims:
        choice.choice(dims).dim_param = choice.choice(NAMES)
    else:
        tensor.ClearField("shape")


def _whole(model: onnx.ModelProto, choice: random.Random) -> None:
    """Versions, names and lists of the model."""
    graph, kind = model.graph, choice.randrange(9)
    if kind == 0 and model.opset_import:
        model.opset_import[0].version = choice.choice((*INTEGERS, *range(5, 24)))
    elif kind == 1:
        model.ir_version = choice.choice(INTEGERS)
    elif kind == 2:
        graph.name = choice.choice(NAMES)
    elif kind == 3:
        graph.node.insert(choice.randrange(len(graph.node) + 1), _node(model, choice))
    elif kind == 4 and len(graph.node) > 1:
        del graph.node[choice.randrange(len(graph.node))]
    elif kind == 5:
        graph.output.append(choice.choice([*graph.output, *graph.input]))
    elif kind == 6 and graph.output:
        del graph.output[choice.randrange(len(graph.output))]
    elif kind == 7 and len(graph.node) > 1:
        order = list(graph.node)
        choice.shuffle(order)
        del graph.node[:]
        graph.node.extend(order)
    else:
        _function(model, choice)


def _function(model: onnx.ModelProto, choice: random.Random) -> None:
    """A node moves into a function of the model, sometimes with a constant that lies in another file."""
    node = _node(model, choice)
    body = onnx.NodeProto()
    body.CopyFrom(node)
    nodes = [body]
    if choice.randrange(2):
        tensor = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=choice.choice(("data.bin", "../data.bin", "")))
        nodes.append(helper.make_node("Constant", [], ["unread"], value=tensor))
    ends = [[name for name in dict.fromkeys(side) if name] for side in (node.input, node.output)]
    function = helper.make_function("own", "Body", *ends, nodes, list(model.opset_import))
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    node.CopyFrom(helper.make_node("Body", ends[0], ends[1], domain="own"))


def _operator(model: onnx.ModelProto, choice: random.Random) -> None:
    node = _node(model, choice)
    if choice.randrange(4):
        node.op_type = choice.choice(OPERATORS)
    else:
        node.domain = choice.choice(("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "own"))


_PARTS = (
    *(_fitting, _fitting, _fitting, _fitting, _constant, _constant, _constant, _attribute, _inputs, _initializer),
    *(_renamed, _renamed, _value, _whole, _operator),
)
"""Some are here several times: what the check of the standard lets through is more of a trial."""
