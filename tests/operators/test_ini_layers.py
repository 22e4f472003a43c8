"""The layer types of the INI beyond the usual ones: dimensions, parameters, float results, refusals.

They look at `n2d2py.contracts.ini.convolution`, `n2d2py.frontend.ini.network` and
`n2d2py.frontend.ini.transformations`.
"""

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py.contracts.ini.weights import WeightStore
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.network import build_graph
from n2d2py.graph import Graph, n2d2_dims
from n2d2py.ini import load_document
from n2d2py.reference.executor import run_graph

IMAGE = np.random.default_rng(0).normal(size=(1, 4, 6, 8)).astype(np.float32)


def build(tmp_path, text: str, shape=(1, 4, 6, 8), weights: WeightStore | None = None) -> Graph:
    path = tmp_path / "net.ini"
    path.write_text(text)
    return build_graph(load_document(path), shape, weights or WeightStore(None), 1)


def layer(tmp_path, body: str, **options) -> Graph:
    """A network of one layer [y] on sp (1, 4, 6, 8)."""
    return build(tmp_path, f"[y]\nInput=sp\n{body}\n", **options)


def result(graph: Graph, x: np.ndarray = IMAGE) -> np.ndarray:
    graph.outputs = ["y"]
    return run_graph(graph, {"sp": x})["y"]


def dims(graph: Graph, name: str = "y") -> list[int]:
    return n2d2_dims(graph.shape(name))


# ---- convolutions -----------------------------------------------------------------------------
@every("size, kernel, stride, subsample", [(6, 3, 1, 2), (6, 2, 2, 2), (6, 1, 1, 3), (6, 3, 2, 3)])
def test_subsample_takes_every_nth_output(tmp_path, size, kernel, stride, subsample):
    body = f"Type=Conv\nKernelSize={kernel}\nStride={stride}\nNbOutputs=5\n"
    whole, part = result(layer(tmp_path, body)), result(layer(tmp_path, body + f"SubSample={subsample}"))
    assert part.shape[2] == -(-((size - kernel) // stride + 1) // subsample)
    np.testing.assert_allclose(part, whole[:, :, ::subsample, ::subsample], atol=1e-6)


def test_one_dimensional_convolution(tmp_path):
    body = "Type=Conv\nKernelDims=3\nStrideDims=2\nPadding=1\nDilation=1\nNbOutputs=5"
    for shape in ((1, 4, 1, 9), (1, 4, 9)):
        graph = layer(tmp_path, body, shape=shape)
        assert graph.node("y").params["weights"].shape == (5, 4, 1, 3)
        assert dims(graph) == [5, 1, 5]
        assert graph.node("y").op.pads == (0, 1, 0, 1)


def test_a_convolution_of_a_vector_reads_one_pixel(tmp_path):
    graph = layer(tmp_path, "Type=Conv\nKernelSize=1\nNbOutputs=5", shape=(1, 7))
    assert graph.shape("y") == (1, 5, 1, 1)


@pytest.mark.parametrize("kind, extra", [("Conv", "KernelSize=1"), ("Deconv", "KernelSize=1"), ("Fc", "")])
def test_outputs_remap_permutes_stored_outputs(tmp_path, kind, extra):
    shape = (6, 4 * 6 * 8) if kind == "Fc" else (6, 4, 1, 1)
    stored = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.savez(tmp_path / "w.npz", y_weights=stored, y_biases=np.arange(6.0))
    graph = layer(
        tmp_path,
        f"Type={kind}\n{extra}\nNbOutputs=6\nConfigSection=c\n[c]\nOutputsRemap=1:2,0:2",
        weights=WeightStore(tmp_path / "w.npz"),
    )
    params = graph.node("y").params
    assert params["bias"].tolist() == [3, 0, 4, 1, 5, 2]
    np.testing.assert_array_equal(params["weights"].reshape(6, -1)[[1, 3, 5, 0, 2, 4]], stored.reshape(6, -1))


@pytest.mark.parametrize(
    "extra, expected",
    [
        ("KernelSize=2\nStride=2", [16, 12, 6]),
        ("KernelDims=3 5\nStrideDims=2 1\nPaddingDims=1 0", [15, 10, 6]),
        ("KernelSize=3\nDilation=2", [12, 10, 6]),
    ],
)
def test_deconv_dimensions(tmp_path, extra, expected):
    assert dims(layer(tmp_path, f"Type=Deconv\nNbOutputs=6\n{extra}")) == expected


def test_deconv_with_a_mapping(tmp_path):
    graph = layer(tmp_path, "Type=Deconv\nKernelSize=2\nNbOutputs=4\nMapping.ChannelsPerGroup=1")
    assert graph.node("y").op.groups == 4 and graph.node("y").params["weights"].shape == (4, 1, 2, 2)
    graph = layer(tmp_path, "Type=Deconv\nKernelSize=1\nNbOutputs=2\nMapping(sp)=1 0 \\\n0 1 \\\n1 1 \\\n0 1")
    weights = graph.node("y").params["weights"]
    assert graph.node("y").op.groups == 1
    assert (weights[:, :, 0, 0] != 0).tolist() == [[True, False, True, False], [False, True, True, True]]


POOLED = """[pool]
Input=sp
Type=Pool
Pooling=Max
PoolSize=2
Stride=2
NbOutputs=4
Mapping.Size=1
[y]
Input=pool
Type=Unpool
Pooling={pooling}
ArgMax={argmax}
PoolSize=2
Stride={stride}
NbOutputs=4
Mapping.Size=1
"""


@pytest.mark.parametrize(
    "keys, text",
    [
        ("NbOutputs=3\nMapping.Size=1", "E215.*4 channels to 3 outputs"),
        ("NbOutputs=4\nMapping.SizeY=2\nMapping.StrideY=1", "E215.*4 channels to 4 outputs"),
        ("NbOutputs=4\nMapping.Size=1\nMapping.OffsetX=1", "E215.*4 channels to 4 outputs"),
    ],
)
def test_unpool_of_other_channels(tmp_path, keys, text):
    body = POOLED.format(pooling="Max", argmax="pool", stride=2)
    at = body.rindex("NbOutputs=4")
    with pytest.raises(N2D2Error, match=text) as caught:
        build(tmp_path, f"{body[:at]}{keys}\n")
    assert caught.value.code == "E215"


def test_unpool_reverses_its_pool(tmp_path):
    graph = build(tmp_path, POOLED.format(pooling="Max", argmax="pool", stride=2))
    y = result(graph)
    blocks = IMAGE.reshape(1, 4, 3, 2, 4, 2)
    maxima = blocks.max(axis=(3, 5), keepdims=True)
    np.testing.assert_array_equal(y, np.where(blocks == maxima, blocks, 0).reshape(IMAGE.shape))


def test_average_unpool_spreads_the_values(tmp_path):
    y = result(build(tmp_path, POOLED.format(pooling="Average", argmax="", stride=2)))
    pooled = IMAGE.reshape(1, 4, 3, 2, 4, 2).max(axis=(3, 5))
    np.testing.assert_allclose(y, pooled.repeat(2, axis=2).repeat(2, axis=3) / 4, rtol=1e-6)


def test_average_unpool_of_windows_that_are_not_square(tmp_path):
    text = POOLED.format(pooling="Average", argmax="", stride=2).replace("PoolSize=2", "PoolDims=2 3")
    y = result(build(tmp_path, text.replace("Stride=2", "StrideDims=2 3")))
    pooled = IMAGE.reshape(1, 4, 2, 3, 4, 2).max(axis=(3, 5))
    np.testing.assert_allclose(y, pooled.repeat(3, axis=2).repeat(2, axis=3) / 6, rtol=1e-6)


# ---- layout -----------------------------------------------------------------------------------
def test_reshape_keeps_and_deduces(tmp_path):
    graph = layer(tmp_path, "Type=Reshape\nDims=0 2 -1\nNbOutputs=12")
    assert dims(graph) == [8, 2, 12]
    np.testing.assert_array_equal(result(graph).ravel(), IMAGE.ravel())


@every(
    "given, outputs, code",
    [("0 0 5", 5, "E208"), ("-1 -1 4", 4, "E208"), ("1 2 3 4", 4, "E208"), ("7 1 -1", 4, "E208"), ("0 2 -1", 11, "E216")],
)
def test_reshape_refusals(tmp_path, given, outputs, code):
    assert code in error_line(layer, tmp_path, f"Type=Reshape\nDims={given}\nNbOutputs={outputs}")


@every(
    "perm, axes, outputs",
    [("1 0 2 3", (0, 1, 3, 2), 4), ("2 0 1 3", (0, 2, 3, 1), 6), ("1 2 0 3", (0, 3, 1, 2), 8), ("0 1 2 3", (0, 1, 2, 3), 4)],
)
def test_transpose_counts_axes_from_x(tmp_path, perm, axes, outputs):
    graph = layer(tmp_path, f"Type=Transpose\nPerm={perm}\nNbOutputs={outputs}")
    np.testing.assert_array_equal(result(graph), IMAGE.transpose(axes))
    # the n-th dimension X Y C of the result is dimension perm[n] of the input
    assert dims(graph) == [[8, 6, 4][int(axis)] for axis in perm.split()[:3]]


@every(
    "mode, config",
    [("NearestNeighbor", ""), ("Bilinear", ""), ("BilinearTF", ""), ("BilinearTF", "ConfigSection=c\n[c]\nAlignCorners=0")],
)
def test_resize(tmp_path, mode, config):
    graph = layer(tmp_path, f"Type=Resize\nMode={mode}\nOutputWidth=16\nOutputHeight=9\nNbOutputs=4\n{config}")
    assert dims(graph) == [16, 9, 4]
    y = result(graph)
    coordinates = {"NearestNeighbor": 0.0, "Bilinear": 0.5 * 8 / 16 - 0.5, "BilinearTF": 7 / 15}[mode]
    if mode == "BilinearTF" and config:
        coordinates = 8 / 16
    share = max(coordinates, 0.0)
    expected = IMAGE[..., 0, 0] * (1 - share) + IMAGE[..., 0, 1] * share
    np.testing.assert_allclose(y[..., 0, 0 if coordinates <= 0 else 1], expected, rtol=1e-4, atol=1e-6)


# ---- values -----------------------------------------------------------------------------------
def test_scaling(tmp_path):
    np.testing.assert_allclose(result(layer(tmp_path, "Type=Scaling\nFactor=-2.5\nNbOutputs=4")), IMAGE * -2.5)


@every(
    "operation, expected",
    [
        ("Binary", lambda x: np.where(x > 0.25, 3, 0)),
        ("BinaryInverted", lambda x: np.where(x > 0.25, 0, 3)),
        ("Truncate", lambda x: np.minimum(x, 0.25)),
        ("ToZero", lambda x: np.where(x > 0.25, x, 0)),
        ("ToZeroInverted", lambda x: np.where(x > 0.25, 0, x)),
    ],
)
@every("kind", ["Threshold", "Transformation"])
def test_threshold(tmp_path, operation, expected, kind):
    keys = f"Operation={operation}\nMaxValue=3\n"
    body = "Threshold=0.25\nNbOutputs=4\n" + (
        f"Type=Threshold\nConfigSection=c\n[c]\n{keys}"
        if kind == "Threshold"
        else f"Type=Transformation\nTransformation=ThresholdTransformation\n{keys}"
    )
    np.testing.assert_allclose(result(layer(tmp_path, body)), expected(IMAGE))


SHIFTS = np.arange(1, 5).reshape(1, 4, 1, 1)


@every(
    "keys, expected",
    [
        (
            "Transformation=RangeAffineTransformation\nFirstOperator=Minus\nFirstValue=1 2 3 4\nSecondOperator=Divides\n"
            "SecondValue=2",
            lambda x: (x - np.arange(1, 5).reshape(1, 4, 1, 1)) / 2,
        ),
        ("Transformation=RangeAffine\nFirstOperator=Multiplies\nFirstValue=3\nSecondValue=0.5", lambda x: 3 * x + 0.5),
        ("Transformation=RangeClippingTransformation\nRangeMin=-1\nRangeMax=0.5", lambda x: (np.clip(x, -1, 0.5) + 1) / 1.5),
        ("Transformation=SliceExtractionTransformation\nWidth=3\nHeight=2\nOffsetX=4\nOffsetY=1", lambda x: x[..., 1:3, 4:7]),
        ("Transformation=RangeAffine\nFirstOperator=Plus\nFirstValue=1\nSecondOperator=Minus\nSecondValue=3", lambda x: x - 2),
        (
            "Transformation=RangeAffine\nFirstOperator=Divides\nFirstValue=1 2 4 8\nSecondOperator=Multiplies\nSecondValue=0",
            lambda x: 0 * x,
        ),
        ("Transformation=RangeAffine\nFirstOperator=Multiplies\nFirstValue=0\nSecondValue=1 2 3 4", lambda x: 0 * x + SHIFTS),
        ("Transformation=SliceExtraction\nWidth=4\nHeight=5\nOffsetX=4\nOffsetY=1", lambda x: x[..., 1:, 4:]),
        ("Transformation=SliceExtraction\nWidth=0\nHeight=0\nOffsetX=7\nOffsetY=5", lambda x: x[..., 5:, 7:]),
        ("Transformation=PadCropTransformation\nWidth=5\nHeight=4", lambda x: x[..., 1:5, 1:6]),
        ("Transformation=PadCrop\nWidth=8\nHeight=6", lambda x: x),
        ("Transformation=PadCrop\nWidth=7\nHeight=3", lambda x: x[..., 1:4, :7]),
        ("Transformation=Rescale\nWidth=1\nHeight=1", lambda x: x[..., 2:4, 3:5].mean(axis=(2, 3), keepdims=True)),
        (
            "Transformation=PadCropTransformation\nWidth=1\nHeight=1\nAdditiveWH=1\nBorderType=ConstantBorder",
            lambda x: np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0))),
        ),
        ("Transformation=FlipTransformation\nHorizontalFlip=1", lambda x: x[..., ::-1]),
        ("Transformation=Flip\nVerticalFlip=1\nHorizontalFlip=1", lambda x: x[..., ::-1, ::-1]),
        ("Transformation=Flip", lambda x: x),
        ("Transformation=Flip\nVerticalFlip=1", lambda x: x[..., ::-1, :]),
        ("Transformation=Reshape\nNbRows=4", lambda x: x.reshape(1, 4, 4, 12)),
        ("Transformation=Reshape\nNbRows=1\nNbCols=48", lambda x: x.reshape(1, 4, 1, 48)),
    ],
)
def test_transformations_as_layers(tmp_path, keys, expected):
    y = result(layer(tmp_path, f"Type=Transformation\nNbOutputs=4\n{keys}"))
    np.testing.assert_allclose(y, expected(IMAGE), rtol=1e-5, atol=1e-6)


@every(
    "keys, expected",
    [
        ("Transformation=ColorSpaceTransformation\nColorSpace=RGB\nNbOutputs=3", lambda x: x[:, ::-1]),
        ("Transformation=ColorSpace\nColorSpace=BGR\nNbOutputs=3", lambda x: x),
        ("Transformation=ColorSpace\nColorSpace=RGB_to_BGR\nNbOutputs=3", lambda x: x[:, ::-1]),
        ("Transformation=ColorSpace\nColorSpace=BGR_to_RGB\nNbOutputs=3", lambda x: x[:, ::-1]),
        ("Transformation=ChannelExtraction\nCSChannel=Blue\nNbOutputs=1", lambda x: x[:, :1]),
        ("Transformation=ChannelExtraction\nCSChannel=Red\nNbOutputs=1", lambda x: x[:, 2:]),
        ("Transformation=ChannelExtraction\nCSChannel=Green\nNbOutputs=1", lambda x: x[:, 1:2]),
        (
            "Transformation=ChannelExtraction\nCSChannel=Gray\nNbOutputs=1",
            lambda x: 0.114 * x[:, :1] + 0.587 * x[:, 1:2] + 0.299 * x[:, 2:],
        ),
    ],
)
def test_colours_as_layers(tmp_path, keys, expected):
    y = result(layer(tmp_path, f"Type=Transformation\n{keys}", shape=(1, 3, 6, 8)), IMAGE[:, :3])
    np.testing.assert_allclose(y, expected(IMAGE[:, :3]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "weights, per_channel", [("1 2 3 4", [[1, 2, 3, 4]] * 2), ("1 2 3 4 5 6 7 8", [[1, 2, 3, 4], [5, 6, 7, 8]])]
)
def test_elemwise_coefficients_per_channel(tmp_path, weights, per_channel):
    graph = build(
        tmp_path,
        f"[y]\nInput=sp,sp\nType=ElemWise\nOperation=Sum\nCoeffMode=PerChannel\nWeights={weights}\nShifts=0.5\nNbOutputs=4",
    )
    gain = np.array(per_channel, np.float32).sum(axis=0).reshape(1, 4, 1, 1)
    np.testing.assert_allclose(result(graph), IMAGE * gain + 1, rtol=1e-5, atol=1e-5)


# ---- normalisations, windows, inserted layers ---------------------------------------------------
def test_normalisations_read_their_keys(tmp_path):
    graph = layer(tmp_path, "Type=LRN\nNbOutputs=4\nConfigSection=c\n[c]\nN=3\nAlpha=0.5\nBeta=1\nK=1")
    sums = sum(np.pad(IMAGE**2, ((0, 0), (1, 1), (0, 0), (0, 0)))[:, i : i + 4] for i in range(3))
    np.testing.assert_allclose(result(graph), IMAGE / (1 + 0.5 * sums), rtol=1e-5)
    y = result(layer(tmp_path, "Type=Normalize\nNorm=L1\nNbOutputs=4"))
    np.testing.assert_allclose(np.abs(y).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("key, value, least", [("Alpha", "-0.1", "0"), ("K", "0", "1e-12"), ("K", "-1", "1e-12")])
def test_a_normalisation_that_divides_by_zero(tmp_path, key, value, least):
    with pytest.raises(N2D2Error, match=rf"E122.*{key}={value} is below {least}"):
        layer(tmp_path, f"Type=LRN\nNbOutputs=4\nConfigSection=c\n[c]\n{key}={value}")


@every("kind", ["Softmax", "Dropout", "Fc", "Reshape"])
def test_input_window(tmp_path, kind):
    extra = {"Fc": "NbOutputs=2", "Reshape": "NbOutputs=4\nDims=0 0 0"}.get(kind, "NbOutputs=4")
    body = f"Type={kind}\n{extra}\nInputOffsetX=3\nInputOffsetY=1\nInputWidth=2"
    cropped = IMAGE[..., 1:, 3:5]
    alone = layer(tmp_path, f"Type={kind}\n{extra}", shape=(1, *cropped.shape[1:]))
    np.testing.assert_allclose(result(layer(tmp_path, body)), result(alone, cropped), rtol=1e-6)


def test_batchnorm_is_inserted_after_convolutions_without_one(tmp_path):
    text = (
        "InsertBatchNormAfterConv=1\n[a]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=3\n"
        "ActivationFunction=Rectifier\n[b]\nInput=a\nType=Conv\nKernelSize=1\nNbOutputs=3\n"
        "[c]\nInput=b\nType=BatchNorm\nNbOutputs=3\n[y]\nInput=c\nType=Fc\nNbOutputs=2"
    )
    np.savez(tmp_path / "w.npz", a_batchnorm_means=np.array([1.0, 2.0, 3.0]))
    graph = build(tmp_path, text, weights=WeightStore(tmp_path / "w.npz", ignore_missing=True))
    assert [node.name for node in graph.nodes] == ["a", "a_batchnorm", "b", "c", "y"]
    inserted = graph.node("a_batchnorm")
    assert inserted.params["mean"].tolist() == [1, 2, 3] and inserted.params["variance"].tolist() == [1, 1, 1]
    assert graph.node("a").activation is None and inserted.activation is not None
    assert graph.node("b").inputs == ["a"] == inserted.outputs
    graph.verify()


def test_a_section_without_type_is_refused_where_batchnorms_are_inserted_too(tmp_path):
    with pytest.raises(N2D2Error, match=r"\[b\]: .*Type"):
        build(
            tmp_path,
            "InsertBatchNormAfterConv=1\n[a]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=3\n[b]\nInput=a\nNbOutputs=3",
        )


def test_weights_of_an_onnx_layer_come_from_the_store_where_it_has_them(tmp_path):
    import onnx
    from support.onnx_models import text_model

    weights = {name: np.ones((2, 4, 1, 1), np.float32) for name in ("wa", "wb")}
    body = "a = Conv (x, wa) b = Conv (x, wb) s = Add (a, b)"
    model = text_model("float[1,4,6,8] x => float[1,2,6,8] s", body, weights)
    onnx.save(model, str(tmp_path / "m.onnx"))
    np.savez(tmp_path / "w.npz", b_weights=np.arange(8.0).reshape(2, 4, 1, 1))
    built = build(tmp_path, f"[net]\nInput=sp\nType=ONNX\nFile={tmp_path / 'm.onnx'}", weights=WeightStore(tmp_path / "w.npz"))
    assert built.node("a").params["weights"].ravel().tolist() == [1] * 8
    assert built.node("b").params["weights"].ravel().tolist() == list(range(8))


def test_exported_weights_are_read_back_as_they_are(tmp_path):
    from n2d2py.exports.weights import write_weights
    from n2d2py.graph import QuantGraph, QuantNode
    from n2d2py.graph.forms import Weighted
    from n2d2py.operators.conv import Conv

    weights = np.random.default_rng(1).integers(-127, 128, (3, 2, 2, 2)).astype(np.int8)
    bias = np.array([-70000, 0, 5], np.int32)
    graph = QuantGraph("g", 8)
    graph.nodes.append(QuantNode("a/b:0", Conv(), ["x"], ["y"], Weighted(weights, bias)))
    write_weights(graph, tmp_path / "weights_export")
    text = (tmp_path / "weights_export" / "a_b_0_weights.syntxt").read_text()
    assert [len(line.split()) for line in text.splitlines()] == [8] * 3
    store = WeightStore(tmp_path / "weights_export")
    np.testing.assert_array_equal(store.load("a/b:0", "weights", np.zeros((3, 2, 2, 2)), None), weights)
    np.testing.assert_array_equal(store.load("a/b:0", "biases", np.zeros(3), None), bias)
