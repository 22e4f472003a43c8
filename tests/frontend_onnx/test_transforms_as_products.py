"""The nodes that stand for a Fourier transform, one by one: what they compute by NumPy, and what is no such transform.

They look at `n2d2py.frontend.onnx.spectra`; `test_spectra` imports whole models.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.spectra import expand

F = np.float32


def expanded(call: str, dims: tuple[int, ...], opset: int = 17, **given: np.ndarray):
    """The nodes that stand for a call on a tensor x of these axes, and the constants with those that they add."""
    (proto,) = parser.parse_graph(f"g (float[N] x) => (float[N] y) {{ y = {call} }}").node
    constants, names = dict(given), []

    def fresh(name: str) -> str:
        names.append(name)
        return f"{name}_{names.count(name)}"

    return expand(proto, opset, dims, constants, fresh), constants


def result(call: str, x: np.ndarray, opset: int = 17, **given: np.ndarray) -> np.ndarray:
    """What the nodes make of x, by the evaluator of the onnx package; the layers are made for a batch of 1."""
    nodes, constants = expanded(call, (1, *x.shape[1:]), opset, **given)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return ReferenceEvaluator(built).run(None, {"x": x.astype(F)})[0]


def signal(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape)


# ---- DFT ----------------------------------------------------------------------------------------
def transformed(x: np.ndarray, axis: int, length: int | None = None, inverse: bool = False, onesided: bool = False):
    """By NumPy, of numbers whose last axis is their parts."""
    numbers = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    axis = axis % x.ndim
    made = (np.fft.ifft if inverse else np.fft.fft)(numbers, length, axis)
    if onesided:
        made = np.take(made, range(made.shape[axis] // 2 + 1), axis)
    return np.stack([made.real, made.imag], -1)


PLACES = [(3, 1), (3, -2), (4, 1), (4, 2), (4, -2), (4, -3), (5, 1), (5, 2), (5, 3), (5, -2), (5, -3), (5, -4)]


@pytest.mark.parametrize("rank, axis", PLACES)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("opset", [17, 19, 20])
def test_every_axis_between_the_batch_and_the_parts(rank, axis, parts, opset):
    x = signal(2, *(5, 6, 3)[: rank - 2], parts)
    if opset < 20:
        found = result(f"DFT <axis = {axis}> (x)", x, opset)
    else:
        found = result("DFT (x, , axis)", x, opset, axis=np.array(axis))
    np.testing.assert_allclose(found, transformed(x, axis), atol=2e-5)


@pytest.mark.parametrize("opset, axis", [(17, 1), (19, 1), (20, -2), (25, -2)])
def test_the_axis_where_none_is_given(opset, axis):
    x = signal(2, 5, 6, 1)
    np.testing.assert_allclose(result("DFT (x)", x, opset), transformed(x, axis), atol=2e-5)


@pytest.mark.parametrize("length", [1, 2, 4, 5, 6, 9, 12])
@pytest.mark.parametrize("parts, inverse, onesided", [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 1, 0)])
def test_shorter_and_longer_transforms(length, parts, inverse, onesided):
    """Numbers are left out or zeros follow; an inverse one divides by the length of the transform."""
    x = signal(2, 6, parts)
    call = f"DFT <inverse = {inverse}, onesided = {onesided}> (x, length)"
    np.testing.assert_allclose(
        result(call, x, length=np.array([length])), transformed(x, 1, length, bool(inverse), bool(onesided)), atol=2e-5
    )


@pytest.mark.parametrize(
    "call, dims, opset, given, reason",
    [
        *(
            (
                f"DFT <axis = {axis}> (x)",
                (1, *sizes, 1),
                17,
                {},
                f"it transforms the axis {axis} of {'x'.join(map(str, shape))}",
            )
            for sizes, axes in (((6,), (0, 2, -1, -3, 3, -4)), ((6, 5), (0, 3, -1, -4, 4, -5)))
            for shape in [(1, *sizes, 1)]
            for axis in axes
        ),
        ("DFT (x, , a)", (1, 6, 1), 20, {"a": np.array(0)}, "it transforms the axis 0 of 1x6x1"),
        ("DFT (x, , a)", (1, 6, 1), 20, {"a": np.array(-1)}, "it transforms the axis -1 of 1x6x1"),
        ("DFT (x)", (1, 6), 17, {}, "it transforms the axis 1 of 1x6"),
        ("DFT (x)", (1, 6), 20, {}, "it transforms the axis -2 of 1x6"),
        ("DFT (x)", (1, 6, 3), 17, {}, "it transforms the axis 1 of 1x6x3"),
        ("DFT (x)", (1, 6, 0), 17, {}, "it transforms the axis 1 of 1x6x0"),
        ("DFT <onesided = 1, inverse = 1> (x)", (1, 6, 1), 17, {}, "it is an inverse transform of one side, or one side of"),
        ("DFT <onesided = 1> (x)", (1, 6, 2), 17, {}, "it is an inverse transform of one side, or one side of complex numbers"),
        ("DFT (x, n)", (1, 6, 1), 17, {}, "its length is computed at run time"),
        ("DFT (x, n)", (1, 6, 1), 17, {"n": np.array([4, 4])}, "its length has 2 values"),
        ("DFT (x, n)", (1, 6, 1), 17, {"n": np.zeros(0, int)}, "its length has 0 values"),
        ("DFT (x, , a)", (1, 6, 1), 20, {}, "its axis is computed at run time"),
        ("DFT (x, n)", (1, 6, 1), 17, {"n": np.array(-4)}, "its length is -4"),
        ("DFT (x, n)", (1, 6, 1), 17, {"n": np.array(0)}, "its length is 0"),
    ],
)
def test_transforms_that_are_refused(call, dims, opset, given, reason):
    with pytest.raises(Unsupported) as caught:
        expanded(call, dims, opset, **given)
    assert caught.value.reason.startswith(reason)
    assert caught.value.remedy == ("export it as a constant" if "run time" in reason else None)


@pytest.mark.parametrize("length", [-4, 0])
def test_a_length_that_is_none_is_an_error_of_the_file(model, length):
    built = model("float[N,6,1] x => float[?,?,?] z", "y = DFT (x, n)\n z = Relu (y)", n=np.array(length))
    with pytest.raises(N2D2Error, match="E31[04]"):
        import_onnx(built)


def kinds(nodes) -> list[str]:
    return [node.op_type for node in nodes]


@pytest.mark.parametrize(
    "dims, axis, made",
    [
        ((1, 6, 1), 1, ["Reshape", "MatMul", "Reshape"]),
        ((1, 5, 6, 2), 2, ["Reshape", "MatMul", "Reshape"]),
        ((1, 5, 6, 2), 1, ["Transpose", "Reshape", "MatMul", "Reshape", "Transpose"]),
    ],
)
def test_nothing_is_turned_where_the_axis_lies_before_the_parts(dims, axis, made):
    nodes, constants = expanded(f"DFT <axis = {axis}> (x)", dims)
    assert kinds(nodes) == made and nodes[-1].output == ["y"]
    names = [name for node in nodes for name in node.output]
    assert len(set(names)) == len(names) and set(names).isdisjoint(constants)
    sizes = {6: 5, 5: 6}[dims[axis]] if len(dims) == 4 else None
    front = [0] if sizes is None else [0, sizes]
    np.testing.assert_array_equal(constants["y_flat_1"], [*front, dims[axis] * dims[-1]])
    np.testing.assert_array_equal(constants["y_parts_1"], [*front, dims[axis], 2])


# ---- STFT ---------------------------------------------------------------------------------------
def frames_of(x: np.ndarray, step: int, window: np.ndarray, onesided: bool) -> np.ndarray:
    """By NumPy, of (N, samples)."""
    starts = range(0, x.shape[1] - len(window) + 1, step)
    made = np.stack([np.fft.fft(x[:, at : at + len(window)] * window) for at in starts], 1)
    made = made[..., : len(window) // 2 + 1] if onesided else made
    return np.stack([made.real, made.imag], -1)


@pytest.mark.parametrize("shape", [(2, 20), (2, 20, 1)])
@pytest.mark.parametrize("step, length", [(1, 1), (3, 7), (4, 8), (20, 8), (1, 20), (7, 20), (5, 5), (12, 8), (13, 8)])
@pytest.mark.parametrize("form", ["", "<onesided = 1>", "<onesided = 0>"])
def test_frames(shape, step, length, form):
    x, window = signal(*shape), np.random.default_rng(5).uniform(0.5, 1.5, length)
    flat, onesided = x.reshape(2, 20), form != "<onesided = 0>"
    held = {"step": np.array([step]), "window": window.astype(F), "length": np.array(length)}
    for inputs, used in (
        ("x, step, window", window),
        ("x, step, window, length", window),
        ("x, step, , length", np.ones(length)),
    ):
        given = {name: held[name] for name in inputs.replace(",", " ").split()[1:]}
        found = result(f"STFT {form} ({inputs})", x, **given)
        np.testing.assert_allclose(found, frames_of(flat, step, used, onesided), atol=2e-5)


def test_a_window_of_integers_in_two_axes():
    x, window = signal(2, 20), np.arange(1, 7)
    found = result("STFT (x, step, window)", x, step=np.array(4), window=window[None])
    np.testing.assert_allclose(found, frames_of(x, 4, window, True), rtol=1e-4, atol=1e-4)


STEP, EIGHT = {"s": np.array(4)}, {"w": np.ones(8, F)}


@pytest.mark.parametrize(
    "call, dims, given, reason",
    [
        ("STFT (x, s, w)", (20,), STEP | EIGHT, "its signal has the shape 20: complex signals are not supported"),
        ("STFT (x, s, w)", (1, 20, 2), STEP | EIGHT, "its signal has the shape 1x20x2: complex signals are not supported"),
        ("STFT (x, s, w)", (1, 20, 1, 1), STEP | EIGHT, "its signal has the shape 1x20x1x1: complex"),
        (
            "STFT (x, s, w)",
            (1, 20),
            {"s": np.array(0)} | EIGHT,
            "its frames of 8 samples every 0 do not fit its window or its 20",
        ),
        ("STFT (x, s, w)", (1, 20), {"s": np.array(-1)} | EIGHT, "its frames of 8 samples every -1 do not fit"),
        ("STFT (x, , w)", (1, 20), EIGHT, "its frames of 8 samples every None do not fit"),
        ("STFT (x, s, w)", (1, 7), STEP | EIGHT, "its frames of 8 samples every 4 do not fit its window or its 7 samples"),
        ("STFT (x, s, w, n)", (1, 20), STEP | EIGHT | {"n": np.array(7)}, "its frames of 7 samples every 4 do not fit"),
        ("STFT (x, s, w, n)", (1, 20), STEP | EIGHT | {"n": np.array(9)}, "its frames of 9 samples every 4 do not fit"),
        ("STFT (x, s, , n)", (1, 20), STEP | {"n": np.array(21)}, "its frames of 21 samples every 4 do not fit"),
        ("STFT (x, s, , n)", (1, 20), STEP | {"n": np.array(-1)}, "its frames of -1 samples every 4 do not fit"),
        ("STFT (x, s, w, n)", (1, 20), STEP | EIGHT | {"n": np.array(0)}, "its frames of 0 samples every 4 do not fit"),
        ("STFT (x, s)", (1, 20), STEP, "its frames of 0 samples every 4 do not fit"),
        ("STFT (x, s, w)", (1, 20), {"s": np.array([4, 4])} | EIGHT, "its frame step has 2 values"),
        ("STFT (x, s, , n)", (1, 20), STEP | {"n": np.array([8, 8])}, "its frame length has 2 values"),
        ("STFT (x, s, w)", (1, 20), EIGHT, "its frame step is computed at run time"),
        ("STFT (x, s, w)", (1, 20), STEP, "its window is computed at run time"),
        ("STFT (x, s, , n)", (1, 20), STEP, "its frame length is computed at run time"),
    ],
)
def test_frames_that_are_refused(call, dims, given, reason):
    with pytest.raises(Unsupported) as caught:
        expanded(call, dims, **given)
    assert caught.value.reason.startswith(reason)


def test_the_parts_of_frames():
    nodes, constants = expanded("STFT (x, s, w)", (1, 20), **STEP, **EIGHT)
    assert kinds(nodes) == ["Reshape", "Conv", "Reshape", "Transpose"] and nodes[-1].output == ["y"]
    np.testing.assert_array_equal(constants["y_line_1"], [0, 1, 20])
    np.testing.assert_array_equal(constants["y_halves_1"], [0, 2, 5, 4])
    assert constants["y_waves_1"].shape == (10, 1, 8) and constants["y_waves_1"].dtype == np.float32
