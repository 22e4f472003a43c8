"""Files over which the onnx package does not come back, and constants that do not fit their layer: one numbered error, at once."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx import parser
from support.onnx_models import text_model
from support.tables import every

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx import trial
from n2d2py.frontend.onnx.importer import import_onnx


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
    start = time.monotonic()
    with pytest.raises(N2D2Error) as caught:
        import_onnx(path)
    assert {error.code for error in caught.value.errors} == {"E314"} and time.monotonic() - start < 5


@pytest.mark.parametrize(
    "call, ends", [(lambda: time.sleep(20), False), (lambda: bytearray(8 << 30), True), (lambda: 1 / 0, True)]
)
def test_a_call_that_does_not_end(call, ends, monkeypatch):
    """Only what ends the copy of the process counts: an exception comes again when the call is made."""
    monkeypatch.setattr(trial, "_SECONDS", 1)
    if ends:
        trial.check_ends(call, "a node", Location("n.onnx"))
        return
    with pytest.raises(N2D2Error) as caught:
        trial.check_ends(call, "a node", Location("n.onnx"))
    assert caught.value.code == "E317"


@every("count", [1, 31, 128])
@every("operator, shape", [("Conv", (32, 3, 1, 1)), ("ConvTranspose", (3, 32, 1, 1))])
def test_a_bias_of_other_outputs(operator, shape, count, tmp_path):
    """ONNX Runtime refuses them too."""
    constants = {"w": np.ones(shape, np.float32), "b": np.ones(count, np.float32), "g": np.ones((1, 32, 1, 1), np.float32)}
    with pytest.raises(N2D2Error) as caught:
        import_onnx(_written(tmp_path / "n.onnx", f"c = {operator}(x, w, b)\n y = Mul(c, g)", **constants))
    assert [error.code for error in caught.value.errors] == ["E310"] and f"{count} values for 32" in caught.value.errors[
        0
    ].line()


def test_onnx_is_not_left_alone_with_wild_numbers(tmp_path, monkeypatch):
    """Numbers beyond any shape are looked at in a copy of the process first."""
    seen = []
    monkeypatch.setattr("n2d2py.frontend.onnx.validator.check_ends", lambda call, what, where: seen.append(what))
    constants = {"r": np.array([1, 1, 2**40, 1])}
    with pytest.raises(N2D2Error):
        import_onnx(_written(tmp_path / "n.onnx", "y = Tile(x, r)", **constants))
    assert seen == ["the node Tile"]


def test_a_model_that_comes_back_is_made_once():
    """In the copy of the process; an exception of it comes from a second call, in this one."""
    called, model = (
        [],
        parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Relu(x) }'),
    )

    def made(fails: bool = False):
        called.append(1)
        if fails:
            raise ValueError("no model")
        return model

    assert trial.limited(made, "a model", Location("n.onnx")) == model and not called
    with pytest.raises(ValueError):
        trial.limited(lambda: made(True), "a model", Location("n.onnx"))
    assert called == [1]
