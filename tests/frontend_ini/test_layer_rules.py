"""Rules of single layer types: dimensions of what is only described, sequences, coefficients per channel, window keys.

They look at `n2d2py.contracts.ini.layers`, `n2d2py.contracts.ini.keys` and
`n2d2py.frontend.ini.network`.
"""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.frontend.ini.network import build_graph
from n2d2py.ini import load_document

DESCRIBED = [
    ("Type=Anchor\nAnchor[0]=32 1.0\nAnchor[1]=48 0.5", (1, 12, 6, 8)),
    ("Type=Anchor\nRatios=0.5 1 2\nScales=1 4", (1, 36, 6, 8)),
    ("Type=Anchor", (1, 4, 6, 8)),
    ("Type=RP", (1, 4, 1, 1)),
    ("Type=Proposal", (1, 4, 1, 1)),
    ("Type=Proposal\nWithCls=1", (1, 5, 1, 1)),
    ("Type=ObjectDet", (1, 5, 1, 1)),
    ("Type=ObjectDet\nNumParts=1 4\nNumTemplates=2 0", (1, 19, 1, 1)),
    ("Type=ROIPooling\nNbOutputs=7\nOutputsWidth=3\nOutputsHeight=2", (1, 7, 2, 3)),
    ("Type=FMP\nNbOutputs=4\nScalingRatio=1.5", (1, 4, 4, 5)),
    ("Type=Distance\nNbOutputs=9", (1, 9, 1, 1)),
]


@every("body, shape", DESCRIBED)
def test_dimensions_of_layers_that_are_only_described(body, shape, refusal):
    Path("net.ini").write_text(f"[sp]\n[y]\nInput=sp\n{body}\n")
    assert build_graph(load_document(Path("net.ini")), (1, 4, 6, 8), None, 1).shape("y") == shape
    assert "E231" in refusal(f"[y]\nInput=sp\n{body}\n", (4, 6, 8))


def both(operation: str, more: str) -> str:
    return f"[a]\nInput=sp\nType=Dropout\nNbOutputs=3\n[y]\nInput=sp,a\nType=ElemWise\nNbOutputs=3\nOperation={operation}\n{more}\n"


PER_CHANNEL = "CoeffMode=PerChannel\nWeights=1 2 0.5 4 1 3\nShifts=1 0 -1 0.5 2 3"
FIRST, SECOND = (np.array(values).reshape(1, 3, 1, 1) for values in ((1, 2, 0.5), (4, 1, 3)))


@pytest.mark.parametrize("operation", ["Sum", "AbsSum", "EuclideanSum"])
def test_coefficients_of_each_channel(build, stimulus, operation):
    """AbsSum has weights alone."""
    (found,) = build(both(operation, PER_CHANNEL)).run(stimulus, "y")
    low, high = (np.array(values).reshape(1, 3, 1, 1) for values in ((1, 0, -1), (0.5, 2, 3)))
    terms = FIRST * stimulus + low, SECOND * stimulus + high
    want = {
        "Sum": terms[0] + terms[1],
        "AbsSum": (FIRST + SECOND) * np.abs(stimulus),
        "EuclideanSum": np.sqrt(terms[0] ** 2 + terms[1] ** 2),
    }[operation]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@every("key", ["Stride", "StrideX", "StrideDims", "PoolDims", "SubSample"])
def test_windows_of_no_size(refusal, key):
    """A stride or window of 0 is refused, a padding of 0 is not."""
    kind = (
        "Type=Conv\nKernelSize=1"
        if key == "SubSample"
        else "Type=Pool\nPooling=Max\n" + ("" if "Pool" in key else "PoolDims=2 2")
    )
    value = "0 1" if key.endswith("Dims") else "0"
    assert key in refusal(f"[y]\nInput=sp\n{kind}\nNbOutputs=3\n{key}={value}\n")


def test_more_weights_than_memory_holds_are_refused(refusal):
    assert "N2D2-E229" in refusal("[y]\nInput=sp\nType=Fc\nNbOutputs=2000000\n")


def test_a_border_around_a_vector(build, stimulus):
    """A vector is an image of one pixel."""
    text = "[v]\nInput=sp\nType=Fc\nNbOutputs=4\n[y]\nInput=v\nType=Transformation\nTransformation=PadCrop\nBorderType=ConstantBorder\nWidth=3\nHeight=3\nNbOutputs=4\n"
    vector, found = build(text).run(stimulus, "v", "y")
    expected = np.zeros((2, 4, 3, 3))
    expected[:, :, 1, 1] = vector.reshape(2, 4)
    np.testing.assert_array_equal(found, expected)


@every("size", [2, 3, 4])
@every("operation, steps", [("Erode", "-"), ("Dilate", "+"), ("Opening", "-+"), ("Closing", "+-")])
def test_morphology_of_an_image(build, stimulus, operation, steps, size):
    """Extremes over the window whose middle is a position, of what of it is inside of the image."""
    text = f"[y]\nInput=sp\nType=Transformation\nTransformation=MorphologyTransformation\nOperation={operation}\nSize={size}\nNbOutputs=3\n"
    (found,) = build(text).run(stimulus, "y")
    want = stimulus
    for step in steps:
        worst, extreme = (np.inf, np.min) if step == "-" else (-np.inf, np.max)
        around = (size // 2, size - 1 - size // 2)
        padded = np.pad(want, ((0, 0), (0, 0), around, around), constant_values=worst)
        want = extreme(np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(2, 3)), axis=(4, 5))
    np.testing.assert_array_equal(found, want)
