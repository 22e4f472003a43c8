"""AIMET's encodings at their limits: sizes of files, numbers of bits, offsets of channels, what each quantizer is made of."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx import encodings
from n2d2py.frontend.onnx.encodings import quantize_by, read_encodings

OLD = {"bitwidth": 8, "dtype": "int", "is_symmetric": "True", "scale": 0.5, "offset": -128}
NEW = {"dtype": "INT", "enc_type": "PER_TENSOR", "bw": 8, "is_sym": True, "scale": [0.5], "offset": [-128]}
LINEAR = {"output_dtype": "int8", "y_scale": 0.5, "y_zero_point": 0}
BY_CHANNEL = {**NEW, "enc_type": "PER_CHANNEL", "scale": [0.5, 0.25], "offset": [-128, -128]}
MISSPELLED = "it is not as AIMET writes it"


def without(entry: dict, *keys: str) -> dict:
    return {key: value for key, value in entry.items() if key not in keys}


def read(folder, entry: Any):
    """The encoding of a tensor `t` that has this entry, in the words of its version."""
    path = folder / "t.encodings"
    path.write_text(json.dumps({"version": "1.0.0", "encodings": {"t": entry}}))
    return read_encodings(path).get("t")


def refusal(folder, entry: Any) -> str:
    with pytest.raises(N2D2Error) as caught:
        read(folder, entry)
    error = caught.value
    assert error.code == "E315" and str(error.where) == str(folder / "t.encodings")
    assert error.remedy == "export the model and its encodings again with aimet-onnx"
    return error.what.removeprefix("the encoding of 't' cannot be used: ")


MEANT: dict[str, tuple[Any, tuple]] = {
    "the first channel says that all are symmetric": ([OLD, {**OLD, "is_symmetric": "False"}], (8, [0, 0], True)),
    "the first channel says that none is symmetric": ([{**OLD, "is_symmetric": "False"}, OLD], (8, [128, 128], False)),
    "old, nothing said of symmetry": ([without(OLD, "is_symmetric")], (8, [128], False)),
    "old, symmetry in small letters": ([{**OLD, "is_symmetric": "true"}], (8, [0], True)),
    "old, symmetry as a truth value": ([{**OLD, "is_symmetric": True}], (8, [0], True)),
    "old, the type in large letters": ([{**OLD, "dtype": "INT"}], (8, [0], True)),
    "old, 4 bits of the middle of 8": ([{**OLD, "bitwidth": 4, "offset": -8}], (4, [0], True)),
    "old, three channels": ([OLD, OLD, {**OLD, "scale": 1}], (8, [0, 0, 0], True)),
    "nothing said of symmetry": (without(NEW, "is_sym"), (8, [128], False)),
    "nothing said of the type": (without(NEW, "dtype"), (8, [0], True)),
    "nothing said of channels": (without(NEW, "enc_type"), (8, [0], True)),
    "the type in small letters": ({**NEW, "dtype": "int"}, (8, [0], True)),
    "one of two channels off the middle": ({**BY_CHANNEL, "offset": [-127, -128]}, (8, [127, 128], False)),
    "the middle of other bits": ({**NEW, "bw": 4, "offset": [-4]}, (4, [4], False)),
    "three bits": ({**NEW, "bw": 3, "offset": [-4]}, (3, [0], True)),
    "two bits": ({**NEW, "bw": 2, "offset": [-2]}, (2, [0], True)),
    "16 bits": ({**NEW, "bw": 16, "offset": [-32768]}, (16, [0], True)),
    "31 bits": ({**NEW, "bw": 31, "offset": [-(2**30)]}, (31, [0], True)),
    "32 bits without a sign": ({**NEW, "bw": 32, "offset": [-(2**32) + 1]}, (32, [2**32 - 1], False)),
    "one bit without a sign": ({**NEW, "bw": 1, "is_sym": False, "offset": [-1]}, (1, [1], False)),
    "a single offset of two channels": ({**BY_CHANNEL, "offset": [-3]}, (8, [3, 3], False)),
    "16 bits, linear": ({**LINEAR, "output_dtype": "uint16", "y_zero_point": 65535}, (16, [65535], False)),
    "32 bits, linear": ({**LINEAR, "output_dtype": "int32", "y_zero_point": -(2**31)}, (32, [-(2**31)], True)),
    "one bit, linear": ({**LINEAR, "output_dtype": "int1", "y_zero_point": -1}, (1, [-1], True)),
    "no block, linear": ({**LINEAR, "block_size": 0}, (8, [0], True)),
    "two channels without zero points": ({"output_dtype": "int4", "y_scale": [0.5, 1]}, (4, [0, 0], True)),
    "one zero point of two channels": ({**LINEAR, "y_scale": [0.5, 1], "y_zero_point": 2}, (8, [2, 2], True)),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANT)
def test_what_an_entry_means(case, tmp_path):
    entry, (bits, zero, signed) = MEANT[case]
    found = read(tmp_path, entry)
    assert found is not None and (found.bits, found.zero.tolist(), found.signed, found.axis) == (bits, zero, signed, None)
    assert found.scale.size == len(zero)


WRONG: dict[str, tuple[Any, str]] = {
    "old, another type": ([{**OLD, "dtype": "complex"}], "its channels are of several types, or none"),
    "old, another type beside the right one": ([OLD, {**OLD, "dtype": "str"}], "its channels are of several types, or none"),
    "old, real beside another": (
        [{**OLD, "dtype": "float"}, {**OLD, "dtype": "str"}],
        "its channels are of several types, or none",
    ),
    "old, three widths": ([OLD, {**OLD, "bitwidth": 4}, {**OLD, "bitwidth": 5}], "its channels have different numbers of bits"),
    "old, no scale": ([without(OLD, "scale")], MISSPELLED),
    "old, no bits": ([without(OLD, "bitwidth")], MISSPELLED),
    "old, no type": ([without(OLD, "dtype")], MISSPELLED),
    "old, a text": (["x"], MISSPELLED),
    "no bits": (without(NEW, "bw"), MISSPELLED),
    "no offset": (without(NEW, "offset"), MISSPELLED),
    "bits as a real number": ({**NEW, "bw": 8.0}, "it has 8.0 bits"),
    "negative bits": ({**NEW, "bw": -1}, "it has -1 bits"),
    "no": (None, MISSPELLED),
    "a number": (3, MISSPELLED),
    "one of two scales is 0": ({**BY_CHANNEL, "scale": [0.5, 0]}, "a scale is no positive number"),
    "the first of two scales is negative": ({**BY_CHANNEL, "scale": [-0.5, 1]}, "a scale is no positive number"),
    "a scale too small for float32": ({**NEW, "scale": [1e-60]}, "a scale is no positive number"),
    "one of two offsets is no integer": ({**BY_CHANNEL, "offset": [-3, -0.5]}, "an offset is no integer of 8 bits"),
    "one of two offsets is too large": ({**BY_CHANNEL, "offset": [-256, -3]}, "an offset is no integer of 8 bits"),
    "one of two offsets is positive": ({**BY_CHANNEL, "offset": [-3, 1]}, "an offset is no integer of 8 bits"),
    "an offset of 4 bits": ({**NEW, "bw": 4, "is_sym": False, "offset": [-16]}, "an offset is no integer of 4 bits"),
    "an offset of 1 bit": ({**NEW, "bw": 1, "is_sym": False, "offset": [-2]}, "an offset is no integer of 1 bits"),
    "three offsets of two channels": ({**BY_CHANNEL, "offset": [-3, -3, -3]}, MISSPELLED),
    "a zero point of 4 bits": ({**LINEAR, "output_dtype": "int4", "y_zero_point": 8}, "an offset is no integer of 4 bits"),
    "a low zero point of 4 bits": ({**LINEAR, "output_dtype": "int4", "y_zero_point": -9}, "an offset is no integer of 4 bits"),
    "a negative zero point without sign": ({**LINEAR, "output_dtype": "uint8", "y_zero_point": -1}, "an offset is no integer of 8 bits"),
    "a zero point of one bit": ({**LINEAR, "output_dtype": "int1", "y_zero_point": 1}, "an offset is no integer of 1 bits"),
    "no type, linear": ({"y_scale": 0.5, "y_zero_point": 0}, MISSPELLED),
    "no scale, linear": ({"output_dtype": "int8"}, MISSPELLED),
    "a type without bits": ({**LINEAR, "output_dtype": "int"}, "its type is int"),
    "another type of blocks": ({**LINEAR, "output_dtype": "complex64", "block_size": 4}, "its type is complex64"),
    "33 bits, linear": ({**LINEAR, "output_dtype": "int33"}, "it has 33 bits"),
    "no bits, linear": ({**LINEAR, "output_dtype": "uint0"}, "it has 0 bits"),
    "rows of rows": ({**LINEAR, "y_scale": [[[0.5]]]}, "blocks of weights are not supported"),
    "an axis that is none": ({**LINEAR, "axis": "x"}, MISSPELLED),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_no_entry_means(case, tmp_path):
    entry, said = WRONG[case]
    assert refusal(tmp_path, entry) == said


@pytest.mark.parametrize("axis", [0, 1, -1, 7])
def test_the_axis_of_an_entry(axis, tmp_path):
    found = read(tmp_path, {**LINEAR, "y_scale": [0.5, 1], "y_zero_point": [0, 1], "axis": axis})
    assert found is not None and found.axis == axis and found.zero.tolist() == [0, 1]


def test_the_largest_file(tmp_path, monkeypatch):
    """A GiB; larger ones are not read."""
    path = tmp_path / "t.encodings"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(N2D2Error) as caught:
        read_encodings(path)
    assert caught.value.code == "E315" and caught.value.what == "the file has 1,073,741,825 bytes"
    assert str(caught.value.where) == str(path)
    assert encodings._MOST_BYTES == 1 << 30
    path.write_text('{"version": "1"}')
    for most, taken in ((16, True), (15, False)):
        monkeypatch.setattr(encodings, "_MOST_BYTES", most)
        if taken:
            assert read_encodings(path) == {}
        else:
            with pytest.raises(N2D2Error, match="the file has 16 bytes"):
                read_encodings(path)


FILES = {
    "none": (None, "the file cannot be read (No such file or directory)"),
    "no JSON": ("{", "the file is damaged, or no JSON"),
    "a list": ("[]", "it has no version"),
    "no version": ("{}", "it has no version"),
    "a number as version": ('{"version": 2}', "it has no version"),
    "an entry without name": ('{"version": "2", "encodings": [{"bw": 8}]}', "an entry has no name"),
    "an entry that is a text": ('{"version": "2", "encodings": ["t"]}', "an entry has no name"),
    "a name that is a number": ('{"version": "2", "encodings": [{"name": 3}]}', "an entry has no name"),
    "a text": ('{"version": "2", "encodings": "t"}', "its encodings are neither a table nor a list"),
    "a number": ('{"version": "1", "activation_encodings": 3}', "its encodings are neither a table nor a list"),
    "a number as the second group": ('{"version": "1", "param_encodings": 3}', "its encodings are neither a table nor a list"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_files_that_cannot_be_used(case, tmp_path):
    text, said = FILES[case]
    path = tmp_path / "t.encodings"
    if text is not None:
        path.write_text(text)
    with pytest.raises(N2D2Error) as caught:
        read_encodings(path)
    assert caught.value.what == said and str(caught.value.where) == str(path)


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ({"encodings": {"a": NEW}}, ["a"]),
        ({"encodings": [{"name": "a", **NEW}, {"name": "b", **NEW}], "param_encodings": {"c": NEW}}, ["a", "b"]),
        ({"activation_encodings": {"a": NEW}}, ["a"]),
        ({"param_encodings": {"a": NEW}}, ["a"]),
        ({"activation_encodings": [{"name": "a", **NEW}], "param_encodings": {"b": [OLD]}}, ["a", "b"]),
        ({"activation_encodings": {"a": {"dtype": "FLOAT"}, "b": NEW, "c": {"dtype": "float"}}}, ["b"]),
        ({}, []),
    ],
)
def test_tables_and_lists_of_entries(groups, names, tmp_path):
    path = tmp_path / "t.encodings"
    path.write_text(json.dumps({"version": "1", **groups}))
    assert list(read_encodings(path)) == names


def model(*nodes: onnx.NodeProto, inputs: str = "x", **constants: tuple[int, ...]) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inputs.split()],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def written(folder, **entries: Any):
    path = folder / "net.encodings"
    path.write_text(json.dumps({"version": "2", "encodings": entries}))
    return path


def test_what_a_quantizer_is_made_of(tmp_path):
    """Scale, zero point and bits as constants of their own, named after the result."""
    proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]), w=(3, 2))
    by_column = {**LINEAR, "output_dtype": "uint4", "y_scale": [0.5, 0.25], "y_zero_point": [3, 5], "axis": 1}
    quantize_by(proto, written(tmp_path, w=by_column, x={**LINEAR, "output_dtype": "int16", "y_zero_point": -7}))
    held = {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}
    found = {node.output[0]: node for node in proto.graph.node if node.op_type == "Quant"}
    assert list(found) == ["w_quantized", "x_quantized"]
    wanted = {"w": ([[0.5, 0.25]], [[3, 5]], 4, 0), "x": (0.5, -7, 16, 1)}
    for name, (scale, zero, bits, signed) in wanted.items():
        node = found[f"{name}_quantized"]
        assert list(node.input) == [name, *(f"{name}_quantized_{stem}" for stem in ("scale", "zero_point", "bits"))]
        for at, value in zip(node.input[1:], (scale, zero, bits), strict=True):
            assert held[at].dtype == np.float32 and held[at].tolist() == value
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        assert attributes == {"signed": signed, "narrow": 0, "rounding_mode": b"ROUND"}
        assert node.domain == "qonnx.custom_op.general" and node.name == f"{name}_quantized_quantizer"
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", 17), ("qonnx.custom_op.general", 1)]


MISFITS = {
    "an input": ({"x": 2}, "the encoding of 'x' has 2 channels, which do not fit the tensor (an input of the model)"),
    "a result": ({"y": 2}, "the encoding of 'y' has 2 channels, which do not fit the tensor (the result of a layer)"),
    "a constant": ({"w": 5}, "the encoding of 'w' has 5 channels, which do not fit the tensor (3x2)"),
    "the other axis of a constant": ({"w": 3}, "the encoding of 'w' has 3 channels, which do not fit the tensor (3x2)"),
    "nothing": ({"a": 1, "b": 1}, "none of its tensors is in the model"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_channels_that_do_not_fit(case, tmp_path):
    counts, said = MISFITS[case]
    entries = {name: {**LINEAR, "y_scale": [0.5] * count, "y_zero_point": [0] * count} for name, count in counts.items()}
    path = written(tmp_path, **entries)
    with pytest.raises(N2D2Error) as caught:
        quantize_by(model(helper.make_node("MatMul", ["x", "w"], ["y"]), w=(3, 2)), path)
    assert caught.value.code == "E315" and caught.value.what == said and str(caught.value.where) == str(path)
    assert caught.value.remedy == "give the file that was exported with this model"


@pytest.mark.parametrize("count", [1, 2])
def test_an_input_that_nobody_reads_has_no_quantizer(count, tmp_path):
    entry = {**LINEAR, "y_scale": [0.5] * count, "y_zero_point": [0] * count}
    proto = model(helper.make_node("Relu", ["x"], ["y"]), inputs="x u")
    quantize_by(proto, written(tmp_path, u=entry, y=LINEAR))
    assert [node.output[0] for node in proto.graph.node] == ["y_real", "y"]


def test_outputs_that_are_left_out_are_no_tensors(tmp_path):
    log.setup(quiet=True)
    proto = model(helper.make_node("Split", ["x"], ["a", ""], axis=1), helper.make_node("Relu", ["a"], ["y"]))
    quantize_by(proto, written(tmp_path, **{"": LINEAR, "a": LINEAR}))
    (warning,) = log.warnings_seen()
    assert warning.code == "W306" and warning.what.startswith("1 of 2 encodings are of tensors that the model does not have: ")
    assert list(proto.graph.node[0].output) == ["a_real", ""]
