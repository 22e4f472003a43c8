"""A Softmax at an output stays: probabilities as ONNX Runtime has them, in integers that the compiled program gives too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser
from support.e2e_run import assert_compiled_is_simulated, needs_compiler, run
from support.tables import few_fast

import n2d2py
from n2d2py.cli import main

BODY = "c = Conv<pads=[1, 1, 1, 1]>(x, w)\n r = Relu(c)\n"
SCORES = BODY + "p = GlobalAveragePool(r)\n q = Flatten(p)\n l = MatMul(q, f)\n"
CASES: dict[str, tuple[str, tuple[str, ...], int]] = {
    "one class": (SCORES + "y = Softmax<axis=1>(l)", ("y",), 1),
    "1000 classes": (SCORES + "y = Softmax<axis=1>(l)", ("y",), 1000),
    "two heads": (SCORES + "y = Softmax<axis=1>(l)\n b = MatMul(q, f)", ("y", "b"), 4),
    "logits too": (SCORES + "y = Softmax<axis=1>(l)", ("y", "l"), 5),
    "logarithm": (SCORES + "y = LogSoftmax<axis=1>(l)", ("y",), 5),
    "channels of an image": (BODY + "y = Softmax<axis=1>(r)", ("y",), 1),
    "lines of an image": (BODY + "y = Softmax<axis=3>(r)", ("y",), 1),
    "channels behind": (BODY + "t = Transpose<perm=[0, 2, 3, 1]>(r)\n y = Softmax<axis=3>(t)", ("y",), 1),
    "last of three axes": (BODY + "t = Reshape(r, s)\n y = Softmax<axis=-1>(t)", ("y",), 1),
}


def _written(folder: Path, name: str) -> Path:
    text, outputs, classes = CASES[name]
    ends = ", ".join(f"float {each}" for each in outputs)
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[1,3,8,8] x) => ({ends}) {{ {text} }}')
    draw = np.random.default_rng(3)
    constants = {"w": draw.normal(0, 0.3, (6, 3, 3, 3)), "f": draw.normal(0, 2, (6, classes))}
    model.graph.initializer.extend(numpy_helper.from_array(one.astype(np.float32), key) for key, one in constants.items())
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 24, 16]), "s"))
    for end in model.graph.output:
        end.CopyFrom(helper.make_tensor_value_info(end.name, onnx.TensorProto.FLOAT, None))
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


@needs_compiler
@pytest.mark.parametrize("name, bits", few_fast([*((name, "8") for name in CASES), ("logits too", "16")], 4))
def test_probabilities_leave_the_network(name, bits, tmp_path):
    path = _written(tmp_path, name)
    folder = run(str(path), "-export", "CPP", "-nbbits", bits, "-calib", "8", "-quiet", "-o", str(tmp_path), out=tmp_path)
    assert_compiled_is_simulated(folder)
    network = n2d2py.load_simulator(folder)
    x = np.random.default_rng(1).integers(0, 256, (1, 3, 8, 8)).astype(np.float32) / 255
    x[:, :, 4:] = 0
    wanted = onnxruntime.InferenceSession(path).run(None, {"x": x})
    found = network(x)
    for one, (expected, values) in enumerate(zip(wanted, found if isinstance(found, tuple) else (found,), strict=True)):
        step = 2.0 ** -int(bits) + 0.02 * np.abs(expected).max()
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=0, atol=step if bits == "8" else step / 20)
        kind = network.info.outputs[one].type
        if one == 0 and name != "logarithm":
            assert (kind.bits, kind.signed, kind.scale, kind.zero_point) == (int(bits), False, 2.0 ** -int(bits), 0)


@pytest.mark.parametrize("target", ["CPP", "ONNX"])
def test_logits_on_request(target, tmp_path):
    """`-drop-softmax`: the same order, far beyond 1."""
    path, x, found = _written(tmp_path, "1000 classes"), np.full((1, 3, 8, 8), 0.5, np.float32), []
    for more in ([], ["-drop-softmax"]):
        out = tmp_path / f"o{len(more)}"
        words = [str(path), "-export", target, "-nbbits", "8", "-calib", "8", "-db-export", "0", "-quiet", "-o", str(out)]
        assert main([*words, *more]) == 0
        folder = out / f"export_{target}_int8"
        if target == "CPP":
            found.append(n2d2py.load_simulator(folder)(x).reshape(-1))
        else:
            session = onnxruntime.InferenceSession(next(folder.glob("*.onnx")))
            found.append(session.run(None, {session.get_inputs()[0].name: x})[0].reshape(-1))
    probabilities, logits = found
    assert logits.max() > 1.5 and probabilities.min() >= 0 and 0.2 < probabilities.sum() < 1.3
    assert probabilities[logits.argmax()] == probabilities.max()
