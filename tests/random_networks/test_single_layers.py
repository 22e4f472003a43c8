"""One layer in all its forms, compiled: every integer and every real number of the C++ is Python's. A failure names the operator."""

from __future__ import annotations

import logging

import pytest
from network_blocks import Block, model_text
from network_chain import run_batch
from network_generator import Layer, Shape, Spec
from support.programs import needs

pytestmark = [pytest.mark.slow, needs("g++")]


@pytest.fixture(autouse=True)
def _logging():
    """The chain silences all logging; others want it back."""
    yield
    logging.disable(logging.NOTSET)


def ini(kind: str, *forms: str, size: Shape = (5, 6, 4)) -> list[tuple[Shape, Layer]]:
    """A layer for each form: keys and values between commas."""
    keys = [dict(pair.split("=") for pair in form.split(",")) for form in forms]
    return [(size, Layer("one", kind, ("sp",), {"NbOutputs": str(size[2]), **each})) for each in keys]


def nodes(*forms: tuple[str, Shape] | tuple[str, Shape, str], size: Shape = (5, 6, 4)) -> list[tuple[Shape, Layer]]:
    """An ONNX section for each form: nodes, the shape of the result, constants."""
    return [
        (size, Layer("one", "ONNX", ("sp",), {}, model_text("one", Block(text, shape, "".join(rest)), [size])))
        for text, shape, *rest in forms
    ]


def numbers(name: str, *dims: int) -> str:
    count, size = 1, "".join(f"{dim}," for dim in dims)[:-1]
    for dim in dims:
        count *= dim
    return f"float[{size}] {name} = {{{','.join(str(((7 * i) % 11 - 5) / 8 or 0.3) for i in range(count))}}}"


LAYERS = {
    "Deconv": ini(
        *"Deconv NbOutputs=3,KernelSize=3,Stride=2 NbOutputs=5,KernelSize=2,Stride=3".split(),
        *"NbOutputs=2,KernelSize=4,Stride=2,Padding=1 NbOutputs=4,KernelSize=3,Mapping.NbGroups=4".split(),
        *"NbOutputs=4,KernelWidth=1,KernelHeight=3,StrideX=2,StrideY=1".split(),
    ),
    "Resize": ini(
        *"Resize OutputWidth=9,OutputHeight=11,Mode=Bilinear OutputWidth=3,OutputHeight=2,Mode=BilinearTF".split(),
        *"OutputWidth=9,OutputHeight=7,Mode=NearestNeighbor OutputWidth=12,OutputHeight=10,Mode=Bilinear".split(),
    ),
    "Normalize": [*ini("Normalize", "Norm=L2"), *ini("LRN", "N=3"), *ini("Softmax", "WithLoss=0")],
    "Pool": ini("Pool", "Pooling=Average,PoolSize=3,Stride=2,Mapping.Size=1", "Pooling=Max,PoolSize=2,Stride=1,Mapping.Size=1"),
    "Activation": ini(
        "Activation", *(f"ActivationFunction={name}" for name in ("Swish", "Tanh", "Logistic", "Rectifier", "Softplus"))
    ),
    "MatMul": nodes(
        ("z = MatMul(x, w)", (5, 3, 4), numbers("w", 6, 3)),
        ("t = Transpose <perm = [0, 1, 3, 2]> (x)\nz = MatMul(x, t)", (5, 5, 4)),
        ("t = Relu(x)\nz = MatMul(w, t)", (2, 6, 4), numbers("w", 2, 5)),
        ("t = Sigmoid(x)\nu = Transpose <perm = [0, 1, 3, 2]> (t)\nz = MatMul(u, x)", (6, 6, 4)),
        ('t = Tanh(x)\nz = Einsum <equation = "nchw,nchk->nckw"> (x, t)', (6, 6, 4)),
    ),
    "LayerNormalization": nodes(
        ("z = LayerNormalization <axis = 3, epsilon = 0.01> (x, w, b)", (5, 6, 4), f"{numbers('w', 6)}, {numbers('b', 6)}"),
        ("z = LayerNormalization <axis = 2, epsilon = 0.1> (x, w)", (5, 6, 4), numbers("w", 5, 6)),
        ("z = InstanceNormalization <epsilon = 0.01> (x, w, b)", (5, 6, 4), f"{numbers('w', 4)}, {numbers('b', 4)}"),
        ("z = Softmax <axis = 2> (x)", (5, 6, 4)),
        ("t = Softmax <axis = 3> (x)\nz = Mul(t, x)", (5, 6, 4)),
    ),
    "Reduce": nodes(
        ("z = ReduceMean <keepdims = 1> (x, a)", (5, 1, 4), "int64[1] a = {3}"),
        ("z = ReduceMax <keepdims = 1> (x, a)", (1, 6, 4), "int64[1] a = {2}"),
        ("z = ReduceSum <keepdims = 1> (x, a)", (1, 1, 4), "int64[2] a = {2, 3}"),
        ("z = ReduceMin <keepdims = 1> (x, a)", (5, 6, 1), "int64[1] a = {1}"),
        ("z = CumSum(x, a)", (5, 6, 4), "int64 a = {2}"),
        ("z = ReduceL2 <keepdims = 1> (x, a)", (5, 1, 4), "int64[1] a = {3}"),
    ),
    "Windows": nodes(
        ("z = MaxPool <kernel_shape = [2, 2], dilations = [2, 1], strides = [1, 2]> (x)", (3, 3, 4)),
        ("z = LpPool <kernel_shape = [2, 3], strides = [2, 1], p = 2> (x)", (2, 4, 4)),
        ("w = Relu(v)\nz = Conv <pads = [1, 0, 1, 0]> (x, w)", (5, 5, 3), numbers("v", 3, 4, 3, 2)),
        (
            "z = ConvTranspose <strides = [2, 1], pads = [0, 1, 1, 0], output_padding = [1, 0]> (x, w)",
            (10, 6, 2),
            numbers("w", 4, 2, 2, 2),
        ),
    ),
    "Sums": nodes(
        ("z = Add(x, w)", (5, 6, 4), numbers("w", 4, 5, 6)),
        ("z = Add(w, x)", (5, 6, 4), numbers("w", 5, 6)),
        ("t = Relu(x)\nz = Concat <axis = 2> (t, x)", (10, 6, 4)),
        ("t = Softmax <axis = 3> (x)\nz = Concat <axis = 3> (t, x, t)", (5, 18, 4)),
        ("t = Softmax <axis = 2> (x)\nz = Add(t, x)", (5, 6, 4)),
        ("t = Tanh(x)\nu = Sub(t, w)\nz = Div(u, v)", (5, 6, 4), f"{numbers('w', 5, 6)}, {numbers('v', 6)}"),
        (
            "t = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)\nu = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (x)\nz = Add(t, u)",
            (2, 3, 4),
        ),
    ),
    "Moved": [
        *ini("Transpose", "NbOutputs=6,Perm=1 2 0 3", "NbOutputs=5,Perm=2 0 1 3", "NbOutputs=4,Perm=1 0 2 3"),
        *ini("Padding", "TopPadding=1,BottomPadding=2,LeftPadding=-1,RightPadding=0"),
        *ini("BatchNorm", "ActivationFunction=Rectifier", "ActivationFunction=Swish"),
        *ini("Fc", "NbOutputs=7", "NbOutputs=3,ActivationFunction=Rectifier"),
        *ini("Threshold", "Threshold=0.3"),
    ],
    "Chosen": nodes(
        ("z = Slice(x, a, b, c, d)", (5, 3, 4), "int64[1] a = {-1}, int64[1] b = {-7}, int64[1] c = {3}, int64[1] d = {-2}"),
        ('z = Pad <mode = "reflect"> (x, a)', (7, 7, 4), "int64[8] a = {0, 0, 1, 0, 0, 0, 1, 1}"),
        ("z = Gather <axis = 2> (x, a)", (3, 6, 4), "int64[3] a = {4, 0, 0}"),
        ("z = DepthToSpace <blocksize = 2> (x)", (10, 12, 1)),
        ("z = Transpose <perm = [0, 2, 3, 1]> (x)", (6, 4, 5)),
        ("z = Tile(x, a)", (10, 6, 8), "int64[4] a = {1, 2, 2, 1}"),
    ),
}


@pytest.mark.parametrize("bits", ["8", "16", "-32"])
@pytest.mark.parametrize("operator", LAYERS)
def test_compiled_forms_of_a_layer(operator, bits, tmp_path):
    specs = [Spec(at + 1, size, (layer,), ("-nbbits", bits)) for at, (size, layer) in enumerate(LAYERS[operator])]
    outcomes = run_batch(specs, tmp_path / "batch")
    for spec, outcome in zip(specs, outcomes, strict=True):
        assert outcome is None, f"{spec.ini()}\n{outcome}"
