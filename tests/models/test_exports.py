"""Each shipped INI becomes a compiled int8 project whose layers are bit-exact."""

import pytest
from support.model_run import assert_bit_exact, dims, export, need_types, with_macros, write
from support.programs import needs

pytestmark = needs("g++", "make")

# Large networks with fewer pixels or channels: the code is the same, the build is shorter.
CASES = [
    ("LeNet", {}),
    ("LeNet_mapping", {}),
    ("Autoencoder", {}),
    ("DSCNN", {}),
    ("MobileNet_v1", {"SIZE": 64, "ALPHA": 0.25, "CLASSES": 20}),
    ("MobileNet_v2", {"SIZE": 64, "ALPHA": 0.35, "CLASSES": 20}),
    ("ResNet-18", {"SIZE": 64, "CLASSES": 20}),
    ("ResNet-50", {"SIZE": 64, "CLASSES": 20}),
    ("SqueezeNet", {"SIZE": 67, "CLASSES": 20}),
    ("VGG16", {"SIZE": 32, "HIDDEN": 64, "CLASSES": 20}),
    ("GoogLeNet", {"SIZE": 64, "CLASSES": 20}),
    ("DenseNet", {"SIZE": 64, "GROWTH": 8, "CLASSES": 20}),
    ("DenseNet", {"SIZE": 32, "GROWTH": 4, "CLASSES": 20, "BATCHNORM": 1}),
    ("UNet", {"SIZE": 32, "WIDTH": 4}),
    ("UNet", {"SIZE": 32, "WIDTH": 4, "UP": "Deconv"}),
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


VECTORS = """[database]
Type=Random_Database
NbStimuli=16
NbLabels=4
[sp]
Size=8 8 3
[conv]
Input=sp
Type=Conv
KernelSize=8
NbOutputs=6
[fc]
Input=sp
Type=Fc
NbOutputs=6
[sum]
Input=conv,fc
Type=ElemWise
NbOutputs=6
Operation=Sum
[joined]
Input=fc,sum
Type=Conv
KernelSize=1
NbOutputs=5
[last]
Input=joined
Type=Fc
NbOutputs=4
[last.Target]
"""


def test_vectors_and_maps_of_one_pixel_are_added_and_joined():
    assert dims(write(VECTORS)) == {
        "conv": [1, 1, 6],
        "fc": [1, 1, 6],
        "sum": [1, 1, 6],
        "joined": [1, 1, 5],
        "last": [1, 1, 4],
    }


@pytest.mark.slow
def test_vectors_and_maps_of_one_pixel_in_integers(tmp_path):
    assert_bit_exact(export(write(VECTORS), tmp_path))
