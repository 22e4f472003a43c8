"""Each shipped INI becomes a compiled int8 project whose layers are bit-exact."""
from __future__ import annotations

import shutil

import pytest
from model_run import assert_bit_exact, export, need_types, with_macros

pytestmark = pytest.mark.skipif(shutil.which("g++") is None or shutil.which("make") is None,
                                reason="g++ and make are not both installed")

# Large networks with fewer pixels or channels: the code is the same, the build is shorter.
CASES = [
    ("LeNet", {}), ("LeNet_mapping", {}), ("Autoencoder", {}), ("DSCNN", {}),
    ("MobileNet_v1", {"SIZE": 64, "ALPHA": 0.25, "CLASSES": 20}),
    ("MobileNet_v2", {"SIZE": 64, "ALPHA": 0.35, "CLASSES": 20}),
    ("ResNet-18", {"SIZE": 64, "CLASSES": 20}), ("ResNet-50", {"SIZE": 64, "CLASSES": 20}),
    ("SqueezeNet", {"SIZE": 67, "CLASSES": 20}), ("VGG16", {"SIZE": 32, "HIDDEN": 64, "CLASSES": 20}),
    ("GoogLeNet", {"SIZE": 64, "CLASSES": 20}), ("DenseNet", {"SIZE": 64, "GROWTH": 8, "CLASSES": 20}),
    ("DenseNet", {"SIZE": 32, "GROWTH": 4, "CLASSES": 20, "BATCHNORM": 1}),
    ("UNet", {"SIZE": 32, "WIDTH": 4}), ("UNet", {"SIZE": 32, "WIDTH": 4, "UP": "Deconv"}),
]
FAST = ("LeNet_mapping", "Autoencoder")


def cases():
    for model, macros in CASES:
        marks = [] if model in FAST else [pytest.mark.slow]
        yield pytest.param(model, macros, marks=marks, id=" ".join([model, *map(str, macros.values())]))


@pytest.mark.parametrize("model, macros", list(cases()))
def test_compiled_project_is_bit_exact(model, macros, tmp_path):
    need_types(model, chosen=macros.get("UP", ""))
    assert_bit_exact(export(with_macros(model, macros), tmp_path / "out"))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["LeNet_mapping", "DSCNN"])
def test_scores_of_the_whole_chain(model, tmp_path):
    """-test: the compiled program itself is checked against the simulation (E812 otherwise)."""
    folder = export(with_macros(model, {}), tmp_path / "out", "-test", "-nb-test", "8")
    assert (folder / "statistics" / "report.html").is_file()
