"""Nodes against the definitions of the standard, before a converter reads them; and where data in other files may lie."""

import os
import time

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from support.errors import error_line, error_of, refused
from support.onnx_models import text_model
from support.tables import every

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx import importer, validation
from n2d2py.frontend.onnx.importer import import_onnx

HEADER = '<ir_version: 8, opset_import: ["" : 18, "own" : 1, "com.microsoft" : 1]>\ng (float[1,4,6,6] x) => (float[N,M,H,W] y) '


def refusal(text: str) -> N2D2Error:
    return error_of(lambda: import_onnx(parser.parse_model(HEADER + text))).errors[-1]


UNKNOWN = "q = Nothing (x)\n "
"""An operator at which the check of the whole model ends."""


@every(
    "text, what",
    [
        (UNKNOWN + 's, y = Split <axis = "a"> (x)', "Expected: 'INT', actual: 'STRING'"),
        (UNKNOWN + "y = QuantizeLinear ()", "input size 0 not in range"),
        (UNKNOWN + "y = Relu (x, x, x)", "input size 3 not in range"),
        (UNKNOWN + "y, z = Relu (x)", "output size 2 not in range"),
        (UNKNOWN + "y = Relu <alpha = 1.0> (x)", "Unrecognized attribute: alpha"),
        (UNKNOWN + "y = Transpose <perm = 1> (x)", "attribute"),
        (UNKNOWN + "y = Concat (x, x)", "Required attribute 'axis' is missing"),
    ],
)
def test_inputs_outputs_and_attributes(text, what):
    """The nodes are read although the operator beside them is unknown; errors of kinds come first, so q is not read."""
    error = refusal("{ " + text + "}")
    assert error.code == "E314" and what in error.what


@every(
    "constants, body, code, what",
    [
        ("float[3] w = {1,2,3}", 'y = Einsum <equation = "nchw,wk->nchk"> (x, w)', "E310", "the ranks of its inputs"),
        ("float[1] i = {0}", "y = Gather (x, i)", "E314", "its input 'i' contains float"),
        ("int64[2] a = {0,1}", "y = CumSum (x, a)", "E314", "'a' is not a single value"),
        ("", "y = LeakyRelu <alpha = inf> (x)", "E314", "its attribute alpha is not finite"),
        ("", "y = Cast <to = 99> (x)", "E314", "its attribute to is 99"),
        ("int64[2] k = {4611686018427387904,1}", "y = Reshape (x, k)", "E240", "4,611,686,018,427,387,904 elements"),
        ("int64[4] r = {1,1,1000000,1000000}", "y = Tile (x, r)", "E240", "144,000,000,000,000 elements"),
        (
            "int64[4] r = {1,1,1000000,1000000}",
            "c = ConstantOfShape (r)\n y = Add (x, c)",
            "E310",
            "its constant value would have",
        ),
        ("int8 z = {0}", "y = com.microsoft.QLinearAdd (x, z)", "E310", "its scale is not a positive number"),
        ("", "y = LRN <size = 0> (x)", "E310", "size"),
        ("", "y, z = Split <axis = 1, num_outputs = 0> (x)", "E314", "num_outputs is 0, it has 2 outputs"),
        ("", "y = Split <axis = 1, num_outputs = 0> (x)", "E314", "num_outputs is 0, it has 1 outputs"),
        ("", "y = MaxPool <kernel_shape = [2,2], pads = [5000,0,0,0]> (x)", "E310", "exceed the limit"),
    ],
)
def test_types_values_and_sizes(constants, body, code, what):
    error = refusal((f"<{constants}>" if constants else "") + "{ " + body + " }")
    assert (error.code, what in error.what) == (code, True), str(error)


@every(
    "body, constants, words",
    [
        ('y = Conv <auto_pad = "SAME"> (x, w)', "float[2,4,1,1] w = {1,2,3,4,5,6,7,8}", "NOTSET or SAME_UPPER"),
        ('y = ConvTranspose <auto_pad = "SAME"> (x, w)', "float[4,2,1,1] w = {1,2,3,4,5,6,7,8}", "NOTSET or SAME_UPPER"),
        ('y = MaxPool <auto_pad = "valid", kernel_shape = [2,2]> (x)', "", "SAME_LOWER or VALID"),
        ('y = AveragePool <auto_pad = "valid", kernel_shape = [2,2]> (x)', "", "SAME_LOWER or VALID"),
        ('y = LpPool <auto_pad = "", kernel_shape = [2,2]> (x)', "", "SAME_LOWER or VALID"),
        ('y = DepthToSpace <blocksize = 2, mode = "RCD"> (x)', "", "DCR or CRD"),
        ('y = Resize <keep_aspect_ratio_policy = "keep"> (x, , , s)', "int64[4] s = {1,4,9,8}", "keep_aspect_ratio_policy"),
    ],
)
def test_words_that_an_operator_does_not_know(body, constants, words):
    """None of them stands for another: the converters would compute something."""
    error = refusal((f"<{constants}>" if constants else "") + "{ " + body + " }")
    assert error.code == "E314" and words in error.what


@pytest.mark.parametrize(
    "opset, kind, body",
    [
        (20, "float", 'y = Gelu <approximate = "TANH"> (x)'),
        (18, "uint8", 'y = BitShift <direction = "left"> (x, x)'),
        (28, "float", 'y = SpaceToDepth <blocksize = 2, mode = ""> (x)'),
    ],
)
def test_words_of_other_operator_sets(opset, kind, body):
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({kind}[1,4,6,6] x) => ({kind}[N,M,H,W] y) {{ {body} }}'
    assert "E314" in error_line(import_onnx, parser.parse_model(text))


def test_a_node_that_nobody_reads_is_not_looked_at():
    graph = import_onnx(parser.parse_model(HEADER + "{ y = Relu (x)\n q = Nothing (x)\n r = Relu (nowhere) }"))
    assert [node.name for node in graph.nodes] == ["y"]


@every(
    ("constants", "body", "name"),
    [
        ("", "a = Relu (x)\n a = Abs (x)\n y = Relu (a)", "a"),
        ("", "x = Relu (x)\n y = Relu (x)", "x"),
        ("<float[1] c = {1}>", "c = Relu (x)\n y = Add (x, c)", "c"),
        ("", "y, y = Split <axis = 1> (x)", "y"),
    ],
)
def test_tensors_that_are_written_twice(constants, body, name):
    """Also where the check of the whole model ends before, at an operator that it does not know."""
    for before in ("", UNKNOWN):
        error = refusal(f"{constants} {{ {before}{body} }}")
        assert error.code == "E302" and ("written twice" in error.what or name in error.what)
    assert f"the tensor '{name}' is written twice" in error.what


def test_a_stumbling_converter_is_a_defect_that_names_the_node(monkeypatch):
    def stumble(*_):
        raise IndexError("x")

    monkeypatch.setattr(importer, "find_converter", lambda *_: stumble)
    with pytest.raises(importer.InternalError, match="Relu 'y': IndexError: x"):
        import_onnx(parser.parse_model(HEADER + "{ y = Relu (x) }"))


@pytest.mark.parametrize("size", [9, 2**40])
def test_a_window_beyond_the_channels_holds_all_of_them(size):
    graph = import_onnx(parser.parse_model(HEADER + f"{{ y = LRN <size = {size}, alpha = 1.0> (x) }}"))
    assert graph.nodes[0].op.size == 7
    assert graph.nodes[0].op.alpha == 1.0 / size


def test_names_that_are_no_text(tmp_path):
    model = parser.parse_model(HEADER + "{ y = Relu (x) }")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "unread"))
    for old in (b"unread", b"Relu"):
        path = tmp_path / "net.onnx"
        path.write_bytes(model.SerializeToString().replace(old, b"\xff" + old[1:]))
        assert refused("E302.*not UTF-8", import_onnx, path)
        with pytest.raises(N2D2Error, match="E302.*not UTF-8"):
            import_onnx(onnx.load(path))


@every("equation", ["ab", "abcd->abcdd", "abcd->abce", "abcd,ab->abcd", "abc->abc", "->", "", ",", "abcd->a,b"])
def test_equations_that_do_not_fit(equation):
    assert refusal(f'{{ y = Einsum <equation = "{equation}"> (x) }}').code in ("E310", "E314")


@every(
    "body",
    [
        "y = LayerNormalization <axis = 9223372036854775807> (x, x)",
        "y = LayerNormalization <axis = 2147483648> (x, x)",
        "y = GatherND <batch_dims = -7> (x, i)",
        "y, z = Split <num_outputs = 2147483647> (x)",
        "y, z, v = Split <num_outputs = 2> (x)",
        "y = EyeLike ()",
    ],
)
@every("beside", ["", UNKNOWN])
def test_what_ends_the_process_in_the_rules_of_shapes(body, beside):
    """The onnx package leaves its memory, or fills it, over these attributes."""
    error = refusal("<int64[1,2] i = {0,1}>{ " + beside + body + " }")
    assert error.code in ("E302", "E314")


def test_an_operator_that_the_declared_set_does_not_have_yet():
    """It is compared with its first definition."""
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 15]>\ng (float[2,3] x) => (float[2,3] y) { y = Mish (x) }')
    assert import_onnx(model).outputs == ["y"]
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 15]>\ng (float[2,3] x) => (float[2,3] y) <float[3] w = {1,1,1}>'
        '{ y = LayerNormalization <axis = "a"> (x, w) }'
    )
    assert refused("E314.*actual: 'STRING'", import_onnx, model)


def _written(path, body: str, functions: str = "", **constants: np.ndarray):
    ends = "float[1,3,4,4] x => float y"
    path.write_bytes(text_model(ends, body, constants, domains='"f" : 1', functions=functions).SerializeToString())
    return path


@every("equation", ["....", ".i", "..i->i", "a...b...->ab", "i" * 100_000 + "."])
@every("inside", [False, True])
def test_dots_that_are_no_ellipsis(equation, inside, tmp_path):
    node = f'y = Einsum <equation = "{equation}"> (x)'
    functions = f'<domain: "f", opset_import: ["" : 17]> h (x) => (y) {{ {node} }}'
    path = _written(tmp_path / "n.onnx", "y = f.h(x)" if inside else node, functions if inside else "")
    start = sum(os.times()[:4])
    assert {error.code for error in error_of(import_onnx, path).errors} == {"E314"} and sum(os.times()[:4]) - start < 5


@pytest.mark.parametrize("call", [lambda: time.sleep(20), lambda: os.kill(os.getpid(), 9)])
def test_a_call_that_does_not_end(call, monkeypatch):
    monkeypatch.setattr(validation, "_SECONDS", 1)
    assert "E317" in error_line(validation.run_limited, call, "a node", Location("n.onnx"))


def test_a_call_that_ends():
    """An exception comes again when the call is made in this process."""
    assert validation.run_limited(lambda: "result", "a node", Location("n.onnx")) == "result"
    with pytest.raises(ZeroDivisionError):
        validation.run_limited(lambda: 1 / 0, "a node", Location("n.onnx"))


@every("count", [1, 31, 128])
@every("operator, shape", [("Conv", (32, 3, 1, 1)), ("ConvTranspose", (3, 32, 1, 1))])
def test_a_bias_of_other_outputs(operator, shape, count, tmp_path):
    """ONNX Runtime refuses them too."""
    constants = {"w": np.ones(shape, np.float32), "b": np.ones(count, np.float32), "g": np.ones((1, 32, 1, 1), np.float32)}
    found = error_of(
        lambda: import_onnx(_written(tmp_path / "n.onnx", f"c = {operator}(x, w, b)\n y = Mul(c, g)", **constants))
    )
    assert [error.code for error in found.errors] == ["E310"] and f"{count} values for 32" in found.errors[0].line()
