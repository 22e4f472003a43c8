"""Other ways to write an ONNX model, right ones and wrong ones, drawn by seed: what was done, in words; None where it does not apply."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from support.damages import damage_model

Change = Callable[[onnx.ModelProto, random.Random], "str | None"]


def change_model(model: onnx.ModelProto, rng: random.Random) -> str:
    """Changes a model once, now and then twice."""
    done = []
    for _ in range(1 if rng.random() < 0.7 else 2):
        told = None
        while told is None:
            told = rng.choice(CHANGES)(model, rng) if model.graph.node else "nothing"
        done.append(told)
    return ", ".join(done)


def _fresh(model: onnx.ModelProto, stem: str) -> str:
    graph = model.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    taken |= {each.name for each in (*graph.initializer, *graph.input)}
    while stem in taken:
        stem += "_"
    return stem


def _hold(model: onnx.ModelProto, stem: str, array: np.ndarray) -> str:
    """The name of a new constant."""
    name = _fresh(model, stem)
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return name


def _put(model: onnx.ModelProto, nodes: list[onnx.NodeProto], at: int) -> None:
    """Puts nodes before the node `at`."""
    every = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    every[at:at] = nodes
    del model.graph.node[:]
    model.graph.node.extend(every)


def _replace(model: onnx.ModelProto, old: str, new: str, but: onnx.NodeProto | None = None) -> None:
    """Nodes read another tensor."""
    for node in model.graph.node:
        if but is None or node.output != but.output:
            for at, name in enumerate(node.input):
                if name == old:
                    node.input[at] = new


def _result(model: onnx.ModelProto, name: str, kind: int = TensorProto.FLOAT) -> None:
    model.graph.output.append(helper.make_tensor_value_info(name, kind, None))


# ---- operator sets


def other_set(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """The same nodes in another operator set: attributes become inputs, or inputs attributes, as its definitions have them."""
    version = rng.choice([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24])
    before = model.opset_import[0].version
    held = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if not node.domain and all(onnx.defs.has(node.op_type, each) for each in (before, version)):
            schema = onnx.defs.get_schema(node.op_type, version)
            _inputs_as_attributes(node, held, model, schema)
            _attributes_as_inputs(node, model, schema)
    model.opset_import[0].version = version
    return f"written in set {version}"


def _inputs_as_attributes(node: onnx.NodeProto, held: dict, model: onnx.ModelProto, schema: onnx.defs.OpSchema) -> None:
    before = onnx.defs.get_schema(node.op_type, model.opset_import[0].version)
    declared = [each.name for each in before.inputs]
    known = {name.lower(): name for name in schema.attributes}
    now = {each.name for each in schema.inputs}
    for at in reversed(range(1, len(node.input))):
        role = declared[min(at, len(declared) - 1)]
        name = known.get({"constant_value": "value", "repeats": ""}.get(role, role.lower()))
        if role in now or name is None or node.input[at] not in held:
            continue
        array = numpy_helper.to_array(held[node.input[at]])
        kind = schema.attributes[name].type.value
        values = array.reshape(-1).tolist()
        value = values if kind in (AttributeProto.INTS, AttributeProto.FLOATS) else (values or [0])[0]
        node.attribute.append(helper.make_attribute(name, value, attr_type=int(kind)))
        del node.input[at]
    while node.input and not node.input[-1]:
        del node.input[-1]


def _attributes_as_inputs(node: onnx.NodeProto, model: onnx.ModelProto, schema: onnx.defs.OpSchema) -> None:
    declared = [each.name.lower() for each in schema.inputs]
    for attribute in list(node.attribute):
        role = "constant_value" if attribute.name == "value" and node.op_type == "Pad" else attribute.name
        if attribute.name in schema.attributes or role not in declared:
            continue
        value = np.array(helper.get_attribute_value(attribute))
        array = value.astype(np.float32 if value.dtype.kind == "f" else np.int64)
        at = declared.index(role)
        node.input.extend([""] * (at + 1 - len(node.input)))
        node.input[at] = _hold(model, f"{node.output[0]}_{role}", array)
        node.attribute.remove(attribute)


# ---- ends of the network


def _sizes(model: onnx.ModelProto, rng: random.Random) -> str:
    """An axis of an input: named, unknown, or of another size."""
    value = rng.choice(model.graph.input)
    dims = value.type.tensor_type.shape.dim
    if not dims:
        return "input without axes"
    at, way = (
        rng.randrange(len(dims)) if rng.random() < 0.5 else 0,
        rng.choice(["N", "", "1", "2", "3", "front", "end", "none"]),
    )
    if way in ("front", "end"):
        sizes = [1 if way == "front" else None, *(dim.dim_value or dim.dim_param for dim in dims)]
        sizes = sizes if way == "front" else [*sizes[1:], 1]
        value.CopyFrom(helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, sizes))
    elif way == "none":
        value.type.tensor_type.ClearField("shape")
    else:
        dims[at].Clear()
        if way.isdigit():
            dims[at].dim_value = int(way)
        elif way:
            dims[at].dim_param = way
    return f"axis {at} of {value.name}: {way}"


def _input_type(model: onnx.ModelProto, rng: random.Random) -> str:
    """An input of another type, converted or not before it is read."""
    value = rng.choice(model.graph.input)
    kind = rng.choice(["UINT8", "INT8", "INT64", "INT32", "DOUBLE", "FLOAT16", "BOOL", "STRING", "UINT16"])
    value.type.tensor_type.elem_type = TensorProto.DataType.Value(kind)
    if rng.random() < 0.6:
        name = _fresh(model, f"{value.name}_real")
        _replace(model, value.name, name)
        _put(model, [helper.make_node("Cast", [value.name], [name], to=TensorProto.FLOAT)], 0)
        return f"{value.name} of {kind}, converted"
    return f"{value.name} of {kind}"


def _more_ends(model: onnx.ModelProto, rng: random.Random) -> str:
    """Another output: of a node inside, an input, a constant, one twice; or an input that nothing reads."""
    graph = model.graph
    way = rng.choice(["inner", "inner", "input", "constant", "twice", "nothing", "unread input", "first alone", "reversed"])
    if way == "inner":
        _result(model, rng.choice([name for node in graph.node for name in node.output if name]))
    elif way == "input":
        _result(model, rng.choice(graph.input).name)
    elif way == "constant" and graph.initializer:
        _result(model, rng.choice(graph.initializer).name)
    elif way == "twice":
        graph.output.append(graph.output[0])
    elif way == "nothing":
        _result(model, "nowhere")
    elif way == "unread input":
        graph.input.append(helper.make_tensor_value_info("unread", TensorProto.FLOAT, [rng.choice(["N", 1, 2]), 3]))
    elif way == "first alone":
        del graph.output[1:]
    else:
        outputs = list(graph.output)[::-1]
        del graph.output[:]
        graph.output.extend(outputs)
    return f"outputs: {way}"


def _declared(model: onnx.ModelProto, rng: random.Random) -> str:
    """The shape or type that an output is said to have."""
    value = rng.choice(model.graph.output)
    shape = rng.choice([None, [], ["N"], ["N", 3], [1, 2, 3], ["a", "b", "c", "d"]])
    kind = rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE])
    value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shape))
    return f"{value.name} declared as {shape} of {kind}"


def _turned(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """An input whose axes come in another order and are transposed first."""
    value = rng.choice(model.graph.input)
    sizes = [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim]
    if len(sizes) < 2 or not all(sizes):
        return None
    perm = list(range(len(sizes)))
    if len(perm) == 4 and rng.random() < 0.6:
        perm = [0, 3, 1, 2]
    else:
        rng.shuffle(perm)
    given = [sizes[perm.index(axis)] for axis in range(len(perm))]
    value.CopyFrom(helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, given))
    name = _fresh(model, f"{value.name}_turned")
    _replace(model, value.name, name)
    _put(model, [helper.make_node("Transpose", [value.name], [name], perm=perm)], 0)
    return f"{value.name} turned {perm}"


# ---- nodes


def _read_twice(model: onnx.ModelProto, rng: random.Random) -> str:
    """A tensor that one more node reads, alone, twice or with another; the result is an output."""
    names = [name for node in model.graph.node for name in node.output if name] + [each.name for each in model.graph.input]
    first, second = rng.choice(names), rng.choice(names)
    kind, inputs = rng.choice(
        [
            ("Relu", [first]),
            ("Add", [first, first]),
            ("Mul", [first, second]),
            ("Concat", [first, first]),
            ("Max", [first, second]),
        ]
        + [
            ("Identity", [first]),
            ("Sub", [first, second]),
            ("Shape", [first]),
            ("Flatten", [first]),
            ("Concat", [first, second]),
        ]
    )
    made = _fresh(model, "made")
    axis = {"axis": rng.choice([0, 1, -1, 2])} if kind in ("Concat", "Flatten") else {}
    model.graph.node.append(helper.make_node(kind, inputs, [made], **axis))
    _result(model, made, TensorProto.INT64 if kind == "Shape" else TensorProto.FLOAT)
    return f"and {kind} of {', '.join(inputs)} {axis or ''}"


def _node_between(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """A node between an input or a result and its readers."""
    graph = model.graph
    at = rng.randrange(len(graph.node))
    node = graph.node[at]
    places = [place for place, name in enumerate(node.input) if name]
    if not places:
        return None
    place = rng.choice(places)
    made, source = _fresh(model, "between"), node.input[place]
    kind, attributes = rng.choice(
        [("Identity", {}), ("Dropout", {}), ("Relu", {}), ("Neg", {}), ("Abs", {}), ("Transpose", {}), ("Flatten", {"axis": 0})]
        + [("Flatten", {}), ("Softmax", {"axis": rng.choice([0, 1, -1])}), ("Cast", {"to": rng.choice([1, 6, 7, 9, 10, 11])})]
        + [("ReduceMean", {"keepdims": 1}), ("Sigmoid", {}), ("Shape", {}), ("Squeeze", {}), ("ArgMax", {"axis": 0})]
    )
    node.input[place] = made
    _put(model, [helper.make_node(kind, [source], [made], **attributes)], at)
    return f"{kind} {attributes or ''} before input {place} of {node.op_type}"


def _rounded(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """A quantizer and its inverse before an input of a node, by tensor or by channel."""
    at = rng.randrange(len(model.graph.node))
    node = model.graph.node[at]
    places = [place for place, name in enumerate(node.input) if name]
    if not places:
        return None
    place = rng.choice(places)
    kind = rng.choice([np.int8, np.int8, np.uint8, np.int16, np.int32])
    count = rng.choice([0, 0, 0, 1, 2, 3])
    scale = np.full(count, 0.25, np.float32) if count else np.float32(0.125)
    zero = np.zeros(count, kind) if count else np.array(rng.choice([0, 0, 3, -5 if kind is np.int8 else 7]), kind)
    given = [_hold(model, "step", scale), _hold(model, "zero", zero)] if rng.random() < 0.85 else [_hold(model, "step", scale)]
    axis = {"axis": rng.choice([0, 1, -1])} if count else {}
    low, made, source = _fresh(model, "low"), _fresh(model, "rounded"), node.input[place]
    held = {each.name: each for each in model.graph.initializer}
    parts = [helper.make_node("QuantizeLinear", [source, *given], [low], **axis)]
    if source in held and rng.random() < 0.6:
        array = numpy_helper.to_array(held[source])
        low, parts = _hold(model, "low", np.rint(np.clip(np.nan_to_num(array.astype(np.float64)) * 8, 0, 99)).astype(kind)), []
    parts.append(helper.make_node("DequantizeLinear", [low, *given], [made], **axis))
    if rng.random() < 0.15:
        parts.insert(1, helper.make_node(rng.choice(["Relu", "Identity", "Transpose"]), [low], [_fresh(model, "inner")]))
        parts[-1].input[0] = parts[1].output[0]
    node.input[place] = made
    _put(model, parts, at)
    return f"input {place} of {node.op_type} rounded to {np.dtype(kind)} {count} {axis or ''} {len(given)} {len(parts)}"


def _optional(model: onnx.ModelProto, rng: random.Random) -> str:
    """Inputs and outputs that are left out, or said to be so at the end."""
    node = rng.choice(model.graph.node)
    way = rng.choice(["inputs", "outputs", "input", "output"])
    if way == "inputs":
        node.input.append("")
    elif way == "outputs":
        node.output.append("")
    elif way == "input" and len(node.input) > 1:
        node.input[rng.randrange(1, len(node.input))] = ""
    else:
        node.output.insert(0, "")
    return f"{node.op_type} of {', '.join(node.input)} gives {', '.join(node.output)}"


def _negative(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """Axes counted from the other end."""
    rank = rng.choice([2, 3, 4])
    found = [(node, a) for node in model.graph.node for a in node.attribute if a.name in ("axis", "axes", "perm")]
    held = [each for each in model.graph.initializer if each.data_type == TensorProto.INT64]
    if held and rng.random() < 0.5:
        one = rng.choice(held)
        array = numpy_helper.to_array(one)
        other = np.where(array < 0, array + rank, array - rank)
        one.CopyFrom(numpy_helper.from_array(np.asarray(other, np.int64), one.name))
        return f"{one.name} = {other.tolist()}"
    if not found:
        return None
    node, attribute = rng.choice(found)
    value = helper.get_attribute_value(attribute)
    turned = [x + rank if x < 0 else x - rank for x in (value if isinstance(value, list) else [value])]
    attribute.CopyFrom(helper.make_attribute(attribute.name, turned if isinstance(value, list) else turned[0]))
    return f"{node.op_type} {attribute.name} = {turned}"


# ---- constants and the file


def _constant_elsewhere(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """A constant as a node gives it, behind a node, or as an input with a default."""
    graph = model.graph
    if not graph.initializer:
        return None
    held = rng.choice(graph.initializer)
    name, array = held.name, numpy_helper.to_array(held)
    way = rng.choice(["node", "numbers", "behind", "converted", "input", "open", "computed"])
    if way == "open":  # an input of the network instead
        graph.initializer.remove(held)
        graph.input.append(helper.make_tensor_value_info(name, held.data_type, array.shape))
    elif way == "input":
        graph.input.append(helper.make_tensor_value_info(name, held.data_type, array.shape))
    elif way in ("behind", "converted", "computed"):
        made = _fresh(model, f"{name}_given")
        _replace(model, name, made)
        kind, attributes = {
            "behind": ("Identity", {}),
            "converted": ("Cast", {"to": rng.choice([1, 6, 7, 10, 11])}),
            "computed": rng.choice([("Neg", {}), ("Abs", {}), ("Transpose", {}), ("Exp", {}), ("Flatten", {})]),
        }[way]
        _put(model, [helper.make_node(kind, [name], [made], **attributes)], 0)
    else:
        node = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        if way == "numbers" and array.ndim < 2 and array.size and array.dtype.kind in "if":
            plain = array.reshape(-1).tolist() if array.ndim else array.item()
            word = "float" if array.dtype.kind == "f" else "int"
            node = helper.make_node("Constant", [], [name], **{f"value_{word}{'s' * array.ndim}": plain})
        graph.initializer.remove(held)
        _put(model, [node], 0)
    return f"{name} {way}"


def _constant_type(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """Constants of other widths: one, or all real ones."""
    real = [each for each in model.graph.initializer if each.data_type in (TensorProto.FLOAT, TensorProto.INT64)]
    if not real:
        return None
    kind = rng.choice([np.float16, np.float64, np.int32])
    chosen = [each for each in real if (each.data_type == TensorProto.INT64) == (kind is np.int32)]
    chosen = chosen if rng.random() < 0.5 else chosen[:1]
    for each in chosen:
        each.CopyFrom(numpy_helper.from_array(np.asarray(numpy_helper.to_array(each).astype(kind)), each.name))
    return f"{', '.join(each.name for each in chosen)} of {np.dtype(kind)}" if chosen else None


def _values(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """A constant with special values, or of another number of axes."""
    if not model.graph.initializer:
        return None
    held = rng.choice(model.graph.initializer)
    array = numpy_helper.to_array(held)
    way = rng.choice(
        ["equal", "zero", "negative", "large", "nan", "infinite", "scalar", "one axis", "axes", "reversed", "empty"]
    )
    if array.dtype.kind not in "if" or not array.size:
        return None
    special = {"nan": np.nan, "infinite": np.inf, "large": 1e30}
    if way in special and array.dtype.kind == "f":
        array = np.where(np.arange(array.size).reshape(array.shape) == 0, special[way], array)
    elif way in ("equal", "zero", "large"):
        array = np.full(array.shape, {"equal": array.reshape(-1)[0], "zero": 0, "large": 1 << 40}[way])
    elif way == "negative":
        array = -np.abs(array)
    elif way == "scalar":
        array = array.reshape(-1)[0]
    elif way == "one axis":
        array = array.reshape(-1)
    elif way == "axes":
        array = array[None]
    elif way == "reversed":
        array = array[::-1] if array.ndim else array
    else:
        array = array.reshape(-1)[:0]
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.ascontiguousarray(array).astype(numpy_helper.to_array(held).dtype).reshape(np.shape(array))
    held.CopyFrom(numpy_helper.from_array(array, held.name))
    return f"{held.name} {way}"


ODD_NAMES = ("a b", "x/y:0", "1", "é", "n" * 300, "../x", "", "operand0", "sp")


def _renamed(model: onnx.ModelProto, rng: random.Random) -> str:
    """A tensor with another name."""
    graph = model.graph
    names = [name for node in graph.node for name in (*node.input, *node.output) if name]
    old, new = rng.choice(names), rng.choice(ODD_NAMES)
    _replace(model, old, new)
    for node in graph.node:
        for at, name in enumerate(node.output):
            node.output[at] = new if name == old else name
    for each in (*graph.input, *graph.output, *graph.initializer):
        each.name = new if each.name == old else each.name
    return f"{old} is {new[:20]}"


def _order(model: onnx.ModelProto, rng: random.Random) -> str:
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return f"nodes in the order {' '.join(node.op_type for node in nodes)}"


def _branch(model: onnx.ModelProto, rng: random.Random) -> str:
    """The last node in a branch whose condition is a constant."""
    node = onnx.NodeProto.FromString(model.graph.node[-1].SerializeToString())
    inner = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output]
    outer = list(node.output)
    for at, name in enumerate(node.output):
        node.output[at] = inner[at].name = f"{name}_inner"
    other = helper.make_node("Identity", [node.input[0] if node.input else model.graph.input[0].name], ["other_inner"])
    bodies = [
        helper.make_graph([node], "then", [], inner),
        helper.make_graph([other], "else", [], [helper.make_tensor_value_info("other_inner", TensorProto.FLOAT, None)]),
    ]
    truth = bool(rng.random() < 0.7)
    chosen = dict(zip(("then_branch", "else_branch"), bodies, strict=True))
    condition = _hold(model, "condition", np.array([truth] * rng.choice([1, 1, 1, 2])))
    del model.graph.node[-1]
    model.graph.node.append(helper.make_node("If", [condition], outer, **chosen))
    return f"{node.op_type} in a branch, {truth}"


def _function(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """The last node as a function of the file."""
    node = model.graph.node[-1]
    if not all(node.input) or len(set(node.input)) < len(node.input) or model.functions or node.domain:
        return None
    body = onnx.NodeProto.FromString(node.SerializeToString())
    sets = [helper.make_opsetid("", model.opset_import[0].version)]
    model.functions.append(helper.make_function("own", "Own", list(node.input), list(node.output), [body], sets))
    model.opset_import.append(helper.make_opsetid("own", 1))
    told = node.op_type
    del node.attribute[:]
    node.op_type, node.domain = "Own", "own"
    return f"{told} as a function"


def _infinite(model: onnx.ModelProto, rng: random.Random) -> str | None:
    """Numbers of an attribute at and beyond what makes sense."""
    found = [(node, a) for node in model.graph.node for a in node.attribute if a.type in (a.INT, a.INTS, a.FLOAT)]
    if not found:
        return None
    node, attribute = rng.choice(found)
    value = helper.get_attribute_value(attribute)
    most = rng.choice([64, 65, -64, -65, 1 << 16, (1 << 16) + 1, 1 << 24, (1 << 24) + 1, 1 << 40, -(1 << 40), 0, 1])
    other = rng.choice([float("inf"), float("nan"), 1e-30, -1.0]) if isinstance(value, float) else most
    if isinstance(value, list):
        other = [other if at == len(value) - 1 else old for at, old in enumerate(value)]
    attribute.CopyFrom(helper.make_attribute(attribute.name, other, attr_type=attribute.type))
    return f"{node.op_type} {attribute.name} = {other}"


CHANGES: tuple[Change, ...] = (
    *(damage_model,) * 4,
    *(other_set,) * 4,
    *(_sizes,) * 3,
    *(_rounded,) * 3,
    *(_node_between, _constant_elsewhere, _more_ends, _turned) * 2,
    *(_input_type, _declared, _read_twice, _optional, _negative, _constant_type, _values, _renamed, _order),
    *(_branch, _function, _infinite),
)
