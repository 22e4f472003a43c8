"""Tensors of few bits packed between the layers of a typed network: its structure, its integers, its file."""

from dataclasses import replace

import numpy as np
import pytest
from support.export_networks import U8, Builder, chain, random_inputs
from support.ops import Conv, MemoryView, PackChannels, Pool, UnpackChannels
from support.packed_networks import few, narrowed
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.operator import make_operator
from n2d2py.errors import InternalError
from n2d2py.graph import Moved, QuantNode
from n2d2py.operators.packed_channels import packed_bits
from n2d2py.passes.integer.pack_activations import low_bit_tensors, pack_activations, packable_tensors
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import read_graph, write_graph


@every(
    ("least", "most", "bits"),
    [(0, 1, 1), (0, 3, 2), (-1, 2, 2), (0, 2, 2), (0, 15, 4), (-7, 7, 4), (-8, 7, 4), (0, 4, 4), (0, 16, None), (-8, 8, None)],
)
def test_the_bits_are_those_of_the_range(least, most, bits):
    assert packed_bits(NumType(8, least < 0, least=least, most=most)) == bits


def test_bytes_wide_and_real_numbers_are_not_packed():
    for kind in (NumType(8), NumType(16, least=0, most=1), NumType(32, is_float=True), NumType(8, False, plain=True)):
        assert packed_bits(kind) is None


def test_every_reader_has_what_it_reads_unpacked():
    graph = few()
    packed = pack_activations(graph, ["stem", "deep", "flat"])
    packed.verify()
    assert [node.name for node in packed.nodes] == [
        *("stem", "stem.packed", "stem.for.deep", "deep", "deep.packed", "deep.for.flat", "flat", "flat.packed"),
        *("stem.for.add", "flat.for.add", "add", "mean", "fc"),
    ]
    assert packed.shape("stem.packed") == (1, 3, 7, 9) and packed.shape("deep.packed") == (1, 2, 7, 9)
    assert packed.shape("flat.packed") == (1, 1, 7, 9)
    assert packed.packed == {f"{name}.packed": name for name in ("stem", "deep", "flat")}
    assert packed.unpacked["stem.for.add"] == packed.origin("stem.packed") == packed.origin("stem.for.deep") == "stem"
    assert graph.nodes[1].inputs == ["stem"], "the given network is not changed"


def test_every_integer_is_the_same(tmp_path):
    graph = few()
    packed = pack_activations(graph, packable_tensors(graph))
    inputs = random_inputs(graph, 5)
    expected, found = (simulate(each, inputs, keep=True) for each in (graph, packed))
    for name, values in expected.items():
        assert len(np.unique(values)) > 1
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    for name, origin in packed.unpacked.items():
        np.testing.assert_array_equal(found[name], expected[origin], err_msg=name)
    write_graph(packed, tmp_path / "network.npz")
    again = simulate(read_graph(tmp_path / "network.npz"), inputs, keep=True)
    for name, values in found.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)


def test_what_stays_bytes_and_why():
    found = {one.name: one for one in low_bit_tensors(few())}
    assert list(found) == ["stem", "deep", "flat", "add", "mean"] and packable_tensors(few()) == [
        "stem",
        "deep",
        "flat",
        "mean",
    ]
    assert (found["deep"].bits, found["deep"].bytes, found["deep"].packed_bytes) == (2, 6 * 63, 2 * 63)
    assert found["add"].refused == "it is an output, which the caller reads"
    (one,) = low_bit_tensors(narrowed(chain(True), {"conv/1": (0, 15)}))
    assert not one.refused
    graph = few()
    graph.tensors["env"] = replace(graph.tensors["env"], type=NumType(8, False, least=0, most=15))
    assert low_bit_tensors(graph)[0].refused == "it is an input, which the caller fills"
    states = {one.name: one.packed for one in low_bit_tensors(pack_activations(few(), ["flat"]))}
    assert states == {"stem": False, "deep": False, "flat": True, "add": False, "mean": False}


def test_names_that_are_taken_get_a_number():
    graph = few()
    graph.nodes[1].name = "stem.packed"
    packed = pack_activations(graph, ["stem"])
    assert "stem.packed.2" in packed.tensors and len({node.name for node in packed.nodes}) == len(packed.nodes)


def test_an_integer_outside_the_bits_is_an_error():
    graph = pack_activations(few(), ["deep"])
    node = next(node for node in graph.nodes if isinstance(node.op, PackChannels))
    with pytest.raises(InternalError, match=r"deep.packed: integers outside the 2 bits from -1 on"):
        node.op.run_integer([np.full((1, 6, 1, 1), 3, np.int8)], node, graph)


def behind(outputs: int, op=None, *, read: bool = True):
    """A convolution `c` of so many channels of 4 bits, and a layer `n` that reads it."""
    build = Builder("few", (1, 4, 6, 8), True)
    build.weighted("c", Conv(), "env", (outputs, 4, 1, 1), U8)
    if read:
        node = QuantNode("n", op or Pool("Max", (2, 2)), ["c"], ["n"], Moved())
        node.clamp = (0, 255)
        build.add(node, U8)
    build.weighted("o", Conv(), "env", (2, 4, 1, 1), U8)
    build.graph.outputs = ["o", *(["n"] if read else [])]
    graph = build.graph
    graph.tensors["c"] = replace(graph.tensors["c"], type=NumType(8, False, least=0, most=15))
    return graph


@every(
    "graph, refused, size",
    [
        (behind(2), "", 48),
        (behind(3), "", 96),
        (behind(1), "its channels fill no byte", 48),
        (behind(2, MemoryView((96,))), "'n' sees its bytes in another shape", 48),
        (behind(2, make_operator("Columns", 2, 7)), "'n' sees its bytes in another shape", 48),
        (behind(2, read=False), "no layer reads it", 48),
        (behind(1, read=False), "no layer reads it", 48),
    ],
)
def test_what_a_tensor_is_packed_for(graph, refused, size):
    (one,) = [each for each in low_bit_tensors(graph) if each.name == "c"]
    assert (one.refused, one.packed_bytes, one.bytes) == (refused, size, 48 * graph.shape("c")[1])
    assert packable_tensors(graph) == ([] if refused else ["c"])


def test_the_operators_that_pack_and_unpack():
    """Bits, the least integer, and as many channels as there were."""
    graph = few()
    nodes = {node.name: node for node in pack_activations(graph, ["stem", "deep"]).nodes}
    assert nodes["deep.packed"].op == PackChannels(2, -1) and nodes["stem.packed"].op == PackChannels(4, 0)
    assert nodes["deep.for.flat"].op == UnpackChannels(2, -1, 6) and nodes["stem.for.deep"].op == UnpackChannels(4, 0, 6)
    assert nodes["fc"] is graph.nodes[-1], "what reads nothing packed stays the same"
    assert pack_activations(graph, []) is graph
