"""Tensors in files beside a model: where they lie, how many bytes each takes, wherever in a model they stand."""

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.errors import error_of
from support.tables import every

from n2d2py.frontend.onnx.external import load_external_data, refuse_external_data
from n2d2py.graph.shapes import MAX_ELEMENTS

BYTES = bytes(range(1, 101))


def outside(name: str, dims: list[int], kind: int = TensorProto.FLOAT, **entries: str) -> TensorProto:
    """A tensor whose data lie elsewhere, in `data.bin` unless it is said."""
    tensor = TensorProto(name=name, data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in ({"location": "data.bin"} | entries).items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def holding(*tensors: TensorProto) -> onnx.ModelProto:
    return helper.make_model(helper.make_graph([], "g", [], [], list(tensors)))


def loaded(folder: Path, tensor: TensorProto) -> TensorProto:
    (folder / "data.bin").write_bytes(BYTES)
    proto = holding(tensor)
    load_external_data(proto, folder / "net.onnx")
    return proto.graph.initializer[0]


def refusal(folder: Path, tensor: TensorProto) -> str:
    (error,) = error_of(loaded, folder, tensor).errors
    assert error.code == "E304" and error.where is not None and str(error.where).startswith(str(folder / "net.onnx"))
    return error.what


SIZES = [
    (TensorProto.FLOAT, [3], 12),
    (TensorProto.FLOAT, [2, 3], 24),
    (TensorProto.FLOAT, [], 4),
    (TensorProto.FLOAT, [3, 0], 0),
    (TensorProto.FLOAT, [2, -1], 0),
    (TensorProto.FLOAT, [-1, -2], 0),
    (TensorProto.DOUBLE, [5], 40),
    (TensorProto.FLOAT16, [5], 10),
    (TensorProto.BFLOAT16, [5], 10),
    (TensorProto.INT64, [3], 24),
    (TensorProto.INT32, [3, 3], 36),
    (TensorProto.INT16, [7], 14),
    (TensorProto.INT8, [7], 7),
    (TensorProto.UINT8, [3, 7], 21),
    (TensorProto.BOOL, [9], 9),
    (TensorProto.INT4, [1], 1),
    (TensorProto.INT4, [2], 1),
    (TensorProto.INT4, [5], 3),
    (TensorProto.INT4, [16], 8),
    (TensorProto.UINT4, [1], 1),
    (TensorProto.UINT4, [3, 3], 5),
    (TensorProto.UINT4, [16], 8),
]


@every(("kind", "dims", "size"), SIZES)
def test_the_bytes_of_a_tensor(kind, dims, size, tmp_path):
    """As many as its values need are read; the file may say fewer, and not one more."""
    found = loaded(tmp_path, outside("w", dims, kind, offset="7"))
    assert found.raw_data == BYTES[7 : 7 + size]
    assert found.data_location == TensorProto.DEFAULT and not found.external_data
    assert loaded(tmp_path, outside("w", dims, kind, length=str(size))).raw_data == BYTES[:size]
    if size:
        assert loaded(tmp_path, outside("w", dims, kind, length=str(size - 1))).raw_data == BYTES[: size - 1]
    found = refusal(tmp_path, outside("w", dims, kind, length=str(size + 1)))
    assert found.startswith(f"the data of 'w' need {size} bytes, ") and f" {size + 1}" in found


@pytest.mark.parametrize("kind", [TensorProto.UNDEFINED, 77])
def test_a_type_without_bytes(kind, tmp_path):
    assert refusal(tmp_path, outside("w", [3], kind)).startswith("the data of 'w' have a type ")


def test_most_elements_of_a_tensor(tmp_path):
    """What has not more than allowed is looked for in the file."""
    assert (
        refusal(tmp_path, outside("w", [MAX_ELEMENTS], TensorProto.INT8)) == "the data of 'w' go beyond the end of 'data.bin'"
    )
    assert refusal(tmp_path, outside("w", [MAX_ELEMENTS + 1], TensorProto.INT8)) == (
        f"the data of 'w' have {MAX_ELEMENTS + 1:,} elements, more than the limit of {MAX_ELEMENTS:,}"
    )


@every(("offset", "there"), [(0, True), (87, True), (88, True), (89, False), (100, False), (10**17, False)])
def test_the_end_of_a_file(offset, there, tmp_path):
    tensor = outside("", [3], offset=str(offset))
    if there:
        assert loaded(tmp_path, tensor).raw_data == BYTES[offset : offset + 12]
    else:
        assert refusal(tmp_path, tensor) == "the data of a constant without name go beyond the end of 'data.bin'"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9" * 18, True),
        ("0" * 17 + "4", True),
        ("0" * 18 + "4", False),
        ("1" * 19, False),
        ("1" * 20, False),
        ("-5", False),
        ("+5", False),
        ("1.0", False),
        ("1e3", False),
        ("x", False),
        ("", False),
        (" 4", False),
        ("\u0663", False),  # an Arabic digit
        ("\u00b2", False),  # a small digit
    ],
)
@pytest.mark.parametrize("key", ["offset", "length"])
def test_places_are_numbers_of_at_most_18_digits(key, text, number, tmp_path):
    tensor = outside("w", [3], **{key: text})
    if number and int(text) == 4:
        assert loaded(tmp_path, tensor).raw_data == (BYTES[4:16] if key == "offset" else BYTES[:4])
        return
    said = {
        (True, "offset"): "the data of 'w' go beyond the end of 'data.bin'",
        (True, "length"): "the data of 'w' need 12 bytes, but the file provides 999,999,999,999,999,999",
    }
    assert refusal(tmp_path, tensor) == said.get(
        (number, key), "the data of 'w' have an offset or a length that is not a number"
    )


OUTSIDE = "the data of 'w' are in '{}', outside the folder of the model"
PLACES = {
    "a file": ("data.bin", ""),
    "a file with a dot": ("./data.bin", ""),
    "a folder within": ("within/more.bin", ""),
    "through a folder": ("within/../data.bin", ""),
    "a link within": ("link.bin", ""),
    "none": ("", OUTSIDE),
    "the folder": (".", OUTSIDE),
    "the folder, by another": ("within/..", OUTSIDE),
    "above": ("../data.bin", OUTSIDE),
    "above, through a folder": ("within/../../above.bin", OUTSIDE),
    "a folder beside, of the same beginning": ("../net2/data.bin", OUTSIDE),
    "a link to above": ("up.bin", OUTSIDE),
    "a letter that no name has": ("a\0b", OUTSIDE),
    "no file": ("absent.bin", "the data of 'w' cannot be read from 'absent.bin' (No such file or directory)"),
    "a folder as a file": ("data.bin/more.bin", "the data of 'w' cannot be read from 'data.bin/more.bin' (Not a directory)"),
}


@every("case", PLACES)
def test_a_file_below_the_folder_of_the_model(case, tmp_path):
    location, said = PLACES[case]
    folder = tmp_path / "net"
    (folder / "within").mkdir(parents=True)
    (tmp_path / "net2").mkdir()
    for name in ("net/within/more.bin", "above.bin", "data.bin", "net2/data.bin"):
        (tmp_path / name).write_bytes(BYTES)
    (folder / "link.bin").symlink_to("within/more.bin")
    (folder / "up.bin").symlink_to("../above.bin")
    tensor = outside("w", [3], location=location)
    if said:
        assert refusal(folder, tensor) == said.format(location)
    else:
        assert loaded(folder, tensor).raw_data == BYTES[:12]


def test_a_whole_path_is_refused_even_if_it_is_below_the_folder(tmp_path):
    whole = str(tmp_path / "data.bin")
    assert refusal(tmp_path, outside("w", [3], location=whole)) == OUTSIDE.format(whole)


def test_a_circle_of_links(tmp_path):
    (tmp_path / "a.bin").symlink_to("b.bin")
    (tmp_path / "b.bin").symlink_to("a.bin")
    assert re.search("outside the folder|Too many levels", refusal(tmp_path, outside("w", [3], location="a.bin")))


def test_all_that_cannot_be_read_are_listed(tmp_path):
    """A file that is not there only once."""
    (tmp_path / "data.bin").write_bytes(BYTES)
    lost = [outside(name, [3], location="no.bin") for name in "ce"]
    proto = holding(outside("a", [99]), outside("b", [3]), *lost, outside("d", [3], offset="x"))
    found = error_of(load_external_data, proto, tmp_path / "net.onnx")
    assert [error.what for error in found.errors] == [
        "the data of 'a' go beyond the end of 'data.bin'",
        "the data of 'c' cannot be read from 'no.bin' (No such file or directory)",
        "the data of 'd' have an offset or a length that is not a number",
    ]
    assert proto.graph.initializer[1].raw_data == BYTES[:12]


def _inner(*tensors: TensorProto) -> onnx.GraphProto:
    return helper.make_graph([], "inner", [], [], list(tensors))


def _deep(tensor: TensorProto) -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=_inner(tensor))], "deep", [], [])


PARTS = {
    "an attribute": lambda tensor: [helper.make_node("Constant", [], ["y"], value=tensor)],
    "the last of several attributes": lambda tensor: [helper.make_node("Foo", [], ["y"], a=1, b=[2.0], value=tensor)],
    "a list of tensors": lambda tensor: [helper.make_node("Foo", [], ["y"], values=[TensorProto(name="o"), tensor])],
    "a graph within": lambda tensor: [helper.make_node("If", ["c"], ["y"], then_branch=_inner(tensor))],
    "the second graph": lambda tensor: [
        helper.make_node("If", ["c"], ["y"], else_branch=_inner(), then_branch=_inner(TensorProto(name="o"), tensor))
    ],
    "a list of graphs": lambda tensor: [helper.make_node("Foo", [], ["y"], graphs=[_inner(), _inner(tensor)])],
    "a graph in a graph": lambda tensor: [helper.make_node("If", ["c"], ["y"], then_branch=_deep(tensor))],
    "the second node": lambda tensor: [
        helper.make_node("Relu", ["x"], ["z"]),
        helper.make_node("Constant", [], ["y"], value=tensor),
    ],
}


@every("function", [False, True])
@every("case", PARTS)
def test_wherever_a_tensor_stands(case, function, tmp_path):
    (tmp_path / "data.bin").write_bytes(BYTES)
    nodes = PARTS[case](outside("w", [3]))
    if function:
        made = helper.make_function("d", "f", [], ["y"], nodes, [helper.make_opsetid("", 18)])
        proto = helper.make_model(helper.make_graph([], "g", [], []), functions=[made])
    else:
        proto = helper.make_model(helper.make_graph(nodes, "g", [], []))
    error = error_of(refuse_external_data, proto, "memory")
    assert error.code == "E304" and str(error.where) == "memory"
    assert "'w'" in error.what
    load_external_data(proto, tmp_path / "net.onnx")
    assert BYTES[:12] in proto.SerializeToString() and b"data.bin" not in proto.SerializeToString()
    refuse_external_data(proto, "memory")
