"""Operators, functions, chains and kernels of a plug-in: compiled, imported, refused."""

from pathlib import Path

import numpy as np
import pytest
from support.ops import Pool
from support.programs import needs, run_command
from support.small_graphs import graph_of

from n2d2py.cli import main
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import layer_code
from n2d2py.contracts.operator import operator_kinds
from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.headers import needed_headers
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Node
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.strategies import plan_memory
from n2d2py.passes import fuse
from n2d2py.plugin import Function, load_plugin
from n2d2py.plugin.load import isolated
from n2d2py.plugin.testing import check_layer
from n2d2py.quant.quantize import float_graph

HERE = Path(__file__).resolve().parent
compiled = needs("g++", "make")


@pytest.fixture(autouse=True)
def several(monkeypatch):
    monkeypatch.setenv("OPT", "-O1")
    with isolated():
        load_plugin(HERE / "several")
        yield


def made(kind: str, **attributes):
    return operator_kinds()[kind](**attributes)


CASES = {
    "window": lambda bits: check_layer(
        made("L2Pool", kernel=(3, 2), stride=(2, 1), pads=(1, 0, 1, 1)), (1, 5, 7, 6), bits=bits
    ),
    "moves": lambda bits: check_layer(made("Shuffle", groups=3), (1, 12, 3, 2), bits=bits),
    "many inputs": lambda bits: check_layer(
        made("Dot"), *[(1, 4, 3, 5)] * 3, bits=bits, params={"weight": np.array([0.5, -1.25, 2.0], np.float32)}
    ),
}


@compiled
def test_function_is_compiled():
    function = [one for one in Function.__subclasses__() if one.kind == "SoftClip"][-1]
    check_layer(function(limit=0.5), (1, 3, 4, 4), bits=(-32,))


@compiled
@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("bits", [8, -32, -64])
def test_operator_is_compiled(case, bits):
    CASES[case]((bits,))


def test_onnx_attributes_and_constants():
    import onnx

    graph = import_onnx(
        onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "test" : 1]>
        net (float[1, 4, 6, 8] x) => (float[1, 4, 3, 4] y)
        <float[2] weight = {0.5, 2.0}> {
            a = test.SoftClip <limit = 2.0> (x)
            b = test.Shuffle <groups = 2> (a)
            c = test.Dot (a, b, weight)
            y = test.L2Pool <kernel_shape = [2, 2], strides = [2, 2]> (c)
        }""")
    )
    soft, shuffle, dot, pool = list(graph.nodes)
    assert soft.op.function.limit == 2.0 and shuffle.op.groups == 2
    assert pool.op.kernel == (2, 2) and graph.shape("y") == (1, 4, 3, 4)
    assert dot.inputs == ["a", "b"] and dot.params["weight"].tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("y = test.Shuffle (x)", "it has no attribute groups"),
        ("y = test.Shuffle <group = 2> (x)", "it has no attribute groups"),
        ("y = test.Shuffle <groups = 2.5> (x)", "its attribute groups is 2.5"),
        ("y = test.SoftClip <limits = 2.0> (x)", "has no attribute limits; did you mean 'limit'?"),
        ("y = test.Shuffle <groups = 3> (x)", "Shuffle: 4 channels are no 3 groups"),
    ],
)
def test_onnx_refusals(text, expected):
    import onnx

    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17, "test" : 1]>
        net (float[1, 4, 6, 8] x) => (float[1, 4, 6, 8] y) {{ {text} }}""")
    with pytest.raises(N2D2Error, match=expected.replace("?", r"\?")):
        import_onnx(model)


def test_ini(tmp_path, capsys):
    (tmp_path / "net.ini").write_text("""[sp]
SizeX=8
SizeY=6
NbChannels=4
[pool]
Input=sp
Type=L2Pool
PoolDims=3 2
StrideDims=2 1
NbOutputs=4
[clip]
Input=pool
Type=SoftClip
Limit=0.25
""")
    assert main(["-plugin", str(HERE / "several"), str(tmp_path / "net.ini"), "-describe", "json", "-quiet"]) == 0
    text = capsys.readouterr().out
    assert "L2Pool" in text and "[\n" in text
    (tmp_path / "bad.ini").write_text((tmp_path / "net.ini").read_text().replace("PoolDims=3 2", "PoolDim=3 2"))
    assert main(["-plugin", str(HERE / "several"), str(tmp_path / "bad.ini"), "-describe", "-quiet"]) == 1
    assert "required property 'PoolDims' " in capsys.readouterr().err


def test_chain_says_why_not():
    graph = graph_of(
        {"x": (1, 8, 2, 2)},
        Node("a", made("Shuffle", groups=2), ["x"], ["a"]),
        Node("b", made("Shuffle", groups=4), ["a"], ["b"]),
    )
    _, report = fuse(graph, integer=True)
    assert [entry.text for entry in report.refused if entry.rewrite == "fuse-shuffles"] == [
        "2 and 4 groups are two shuffles",
        "the result of b is read by nothing, not by a Shuffle alone",
    ]


def _pool(kernel):
    graph = graph_of({"x": (1, 8, 4, 4)}, Node("pool", Pool("Max", kernel, (2, 2)), ["x"], ["y"]))
    typed = float_graph(graph, -32)
    plan = plan_memory(memory_problem(typed))
    return layer_code(typed.nodes[0], typed, plan, Identifiers(typed))


def test_kernel_replaces_a_built_in_one_where_it_fits():
    code = _pool((2, 2))
    assert "typedef several::OtherPool Isa;" in code.config and code.selection.kernel.name.startswith("several::OtherPool")
    assert [
        name.rpartition("/")[2]
        for name in needed_headers(code.headers, HERE.parents[1] / "kernels")
        if name.startswith("plugins/")
    ] == ["more.hpp", "several.hpp"]
    kernel = code.selection.kernel
    assert (kernel.name, kernel.sets, code.selection.reason) == ("several::OtherPool", ("all",), "a plug-in's kernel fits")
    other = _pool((3, 3))
    assert "OtherPool" not in other.config
    assert other.selection.reason == "floating point; no several::OtherPool: the plug-in says that it does not fit"


@compiled
@pytest.mark.slow
def test_kernel_is_compiled():
    check_layer(Pool("Max", (2, 2), (2, 2)), (1, 8, 4, 4), bits=(8,))


@compiled
@pytest.mark.slow
def test_skeleton(tmp_path, monkeypatch):
    import sys

    monkeypatch.chdir(tmp_path)
    assert main(["--new-operator", "BlockNorm", "mine"]) == 0
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == [
        "block_norm.hpp",
        "block_norm.py",
        "test_block_norm.py",
    ]
    assert main(["--new-operator", "BlockNorm", "mine"]) == 1
    monkeypatch.setenv("PYTHONPATH", str(HERE.parents[1]))
    run_command(sys.executable, "-m", "pytest", "-q", "mine")
