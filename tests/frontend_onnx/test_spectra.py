"""Fourier transforms of constant sizes against ONNX Runtime, or NumPy where it has none."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.expansions import spectra
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

F = np.float32


@every("onesided", [0, 1])
@every("windowed", [False, True])
@every("shape", ["N, 100", "N, 100, 1"])
def test_short_time(model, check, shape, windowed, onesided):
    weights = {"step": np.array(10), "length": np.array(32), "hann": np.hanning(32).astype(F)}
    inputs = "x, step, hann" if windowed else "x, step, , length"
    if not windowed:
        weights.pop("hann")
    else:
        weights.pop("length")
    body = f"y = STFT <onesided = {onesided}> ({inputs})\n z = Relu (y)"
    graph = check(model(f"float[{shape}] x => float[N, 7, {17 if onesided else 32}, 2] z", body, 17, **weights), batch=2)
    assert any(node.op.kind == "Conv" for node in graph.nodes)


@every("opset", [17, 20])
@every(
    "shape, axis, length, attributes",
    [
        ((2, 5, 6, 1), 1, None, {}),
        ((2, 5, 6, 1), 2, None, {"onesided": 1}),
        ((2, 5, 6, 2), 2, None, {}),
        ((2, 5, 6, 2), 1, None, {"inverse": 1}),
        ((2, 6, 1), 1, 4, {}),
        ((2, 6, 2), 1, 9, {}),
        ((2, 6, 1), 1, 9, {"onesided": 1}),
    ],
)
def test_discrete(model, tmp_path, shape, axis, length, attributes, opset):
    weights = {} if length is None else {"length": np.array(length)}
    given = "" if length is None else "length"
    if opset == 20:
        weights["axis"] = np.array(axis)
    names = ", ".join(f"{name} = {value}" for name, value in {**attributes, **({"axis": axis} if opset < 20 else {})}.items())
    call = f"DFT <{names}> (x, {given}{', axis' if opset == 20 else ''})".replace("<> ", "")
    call = call.replace("(x, )", "(x)")
    sizes = ", ".join(map(str, shape[1:]))
    onnx.save(
        model(
            f"float[N, {sizes}] x => float[{', '.join('?' * len(shape))}] z", f"y = {call}\n z = Identity (y)", opset, **weights
        ),
        tmp_path / "m.onnx",
    )
    graph = import_onnx(tmp_path / "m.onnx")
    x = np.random.default_rng(1).normal(size=shape).astype(F)
    number = x[..., 0] + (1j * x[..., 1] if shape[-1] == 2 else 0)
    transform = np.fft.ifft if attributes.get("inverse") else np.fft.rfft if attributes.get("onesided") else np.fft.fft
    wanted = transform(number, length, axis)
    wanted = np.stack([wanted.real, wanted.imag], -1)
    (found,) = run_graph(graph, {"x": x.reshape(len(x), *graph.shape("x")[1:])}).values()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-5)


@every(
    "body, reason",
    [
        ("y = STFT (x, step, hann)", "do not match the window"),
        ("s = Cast <to = 7> (n)\n y = STFT (x, s, hann)", "its frame step is computed at run time"),
        ("s = Cast <to = 7> (n)\n y = STFT (hann2, s, hann)", "its frame step is computed at run time"),
        ("y = STFT (c, step, hann)", "is complex"),
        ("y = DFT <axis = 1, onesided = 1, inverse = 1> (c)", "onesided=1"),
    ],
)
def test_refused(model, tmp_path, body, reason):
    built = model(
        "float[N, 40] x, float[N, 40, 2] c, float n => float[?, ?, ?] z", f"{body}\n z = ReduceMax <keepdims = 0, axes = [1]> (y)",
        17, step=np.array(4), hann=np.hanning(50).astype(F), hann2=np.ones((1, 60), F),
    )  # fmt: skip
    onnx.save(built, tmp_path / "m.onnx")
    with pytest.raises(N2D2Error) as caught:
        import_onnx(tmp_path / "m.onnx")
    (only,) = caught.value.errors
    assert reason in only.line()


def test_what_reads_a_refused_operator_is_not_accused(model, tmp_path):
    """The shape of what is refused is not known as the file has it: one cause, one line."""
    built = model(
        "float[N, 40] x => float[?, ?, ?] z", "y = STFT (x, step, hann)\n s = ReduceSumSquare <axes = [3], keepdims = 0> (y)\n z = MatMul (s, w)",
        17, step=np.array(4), hann=np.hanning(50).astype(F), w=(17, 3),
    )  # fmt: skip
    onnx.save(built, tmp_path / "m.onnx")
    with pytest.raises(N2D2Error) as caught:
        import_onnx(tmp_path / "m.onnx")
    assert len(caught.value.errors) == 1


@every(
    "body, elements",
    [
        ("y = STFT (x, step, hann)", 2 * 17 * 32),
        ("y = STFT <onesided = 0> (x, step, hann)", 2 * 32 * 32),
        ("y = DFT <axis = 1> (r)", 40 * 1 * 40 * 2),
        ("y = DFT <axis = 1, onesided = 1> (r)", 40 * 1 * 21 * 2),
        ("y = DFT <axis = 1> (c)", 40 * 2 * 40 * 2),
        ("y = DFT <axis = 1, inverse = 1> (c, nine)", 40 * 2 * 9 * 2),
    ],
)
def test_a_matrix_of_more_elements_than_there_is_room_is_refused(model, monkeypatch, body, elements):
    built = model(
        "float[N, 40] x, float[N, 40, 1] r, float[N, 40, 2] c => float[?, ?] z", f"{body}\n f = Flatten (y)\n z = Relu (f)",
        17, step=np.array(4), hann=np.hanning(32).astype(F), nine=np.array(9),
    )  # fmt: skip
    assert spectra._LARGEST == 1 << 26
    monkeypatch.setattr(spectra, "_LARGEST", elements)
    import_onnx(built)
    monkeypatch.setattr(spectra, "_LARGEST", elements - 1)
    with pytest.raises(N2D2Error, match=f"its matrix of {elements:,} elements"):
        import_onnx(built)
