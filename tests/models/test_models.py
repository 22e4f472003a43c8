"""The shipped INI files: dimensions, parameters and loading time."""

import time

from support.model_run import MODELS, description, need_types, with_macros
from support.tables import every

# Model, macros, number of layers (of N2D2's network of this name, where known), parameters, dimensions X x Y x C.
TABLE = [
    ("LeNet", {}, 9, None, "conv1 28x28x6, pool1 14x14x6, conv2 10x10x16, pool2 5x5x16, conv3 1x1x120, softmax 1x1x10"),
    ("LeNet_QAT", {}, 11, None, "conv2 10x10x16, bn3 1x1x120, fc2 1x1x10"),
    ("ResNet8_QAT", {}, 24, 78_714, "conv1 32x32x16, block2_sum 16x16x32, block3_sum 8x8x64, fc 1x1x10"),
    ("ResNet8_QAT", {"QUANTIZER": ""}, 24, 78_714, "block3_sum 8x8x64, fc 1x1x10"),
    ("LeNet_mapping", {}, 8, None, "conv2 10x10x16, conv3 1x1x120, fc2 1x1x10"),
    ("MobileNet_v1", {}, 30, 4_221_032, "conv1 112x112x32, conv5.5_1x1 14x14x512, conv6.1_1x1 7x7x1024, fc 1x1x1000"),
    ("MobileNet_v1", {"SIZE": 128, "ALPHA": 0.25}, 30, None, "conv1 64x64x8, conv6.1_1x1 4x4x256"),
    ("MobileNet_v2", {}, 66, 3_488_872, "conv1 112x112x32, conv9 7x7x1280"),
    (
        "MobileNet_v2",
        {"SIZE": 160, "ALPHA": 0.5},
        66,
        None,
        "conv1 80x80x16, conv2.1_1x1_linear 80x80x8, conv3.2_sum 40x40x12, conv8.1_1x1_linear 5x5x160, conv9 5x5x1280",
    ),
    (
        "ResNet-18",
        {},
        52,
        None,
        "conv1 112x112x64, pool1 55x55x64, conv2.2_sum 55x55x64, conv3.2_sum 28x28x128, conv5.2_sum 7x7x512",
    ),
    ("ResNet-18", {"BATCHNORM": 0}, 32, 11_684_712, "conv5.2_sum 7x7x512, fc 1x1x1000"),
    ("ResNet-50", {}, 73, 25_530_472, "pool1 55x55x64, conv2.3_sum 55x55x256, conv4.6_sum 14x14x1024, conv5.3_sum 7x7x2048"),
    ("ResNet-50", {"BATCHNORM": 1}, 126, None, "conv5.3_1x1_expand_conv 7x7x2048, conv5.3_1x1_expand 7x7x2048"),
    ("SqueezeNet", {}, 31, 1_235_496, "conv1 113x113x64, pool3 27x27x128, pool5 13x13x256, conv10 13x13x1000, pool10 1x1x1000"),
    (
        "GoogLeNet",
        {},
        82,
        6_998_552,
        "pool2 28x28x192, inception3b_join 28x28x480, inception4e_join 14x14x832, inception5b_5x5 7x7x128, pool 1x1x1024",
    ),
    (
        "DenseNet",
        {},
        185,
        7_905_448,
        "block1.5_join 56x56x256, transition1_pool 28x28x128, block3.23_join 14x14x1024, block4.15_3x3 7x7x32",
    ),
    ("DenseNet", {"BATCHNORM": 1}, 306, None, "block2.11_1x1_bn 28x28x480, head_bn 7x7x1024, head_pool 1x1x1024"),
    ("VGG16", {}, 24, 138_357_544, "conv0_1 224x224x64, conv4_2 14x14x512, pool4 7x7x512, fc1 1x1x4096, fc3 1x1x1000"),
    ("Autoencoder", {}, 4, None, "encoder2 8x8x8, decoder1 16x16x16, decoder2 32x32x1"),
    (
        "UNet",
        {},
        24,
        None,
        "down3_pool 16x16x64, down4_2 16x16x128, up3_resize 32x32x128, up3_1 32x32x64, up1_2 128x128x16, scores 128x128x4",
    ),
    ("UNet", {"UP": "Deconv", "SIZE": 64}, 21, None, "up3_double 16x16x64, up3_1 16x16x64, scores 64x64x4"),
    ("MaxPoolAdd", {}, 2, 0, "pool 56x56x64, dst 56x56x64"),
    ("DSCNN", {}, 12, 30_284, "conv1 20x25x64, conv5_pw 20x25x64, fc 1x1x12"),
]


@every("model, macros, layers, params, expected", TABLE, ids=[" ".join([row[0], *map(str, row[1].values())]) for row in TABLE])
def test_dimensions(model, macros, layers, params, expected):
    need_types(model, chosen=macros.get("UP", ""))
    start = time.process_time()
    found = description(with_macros(model, macros))
    assert time.process_time() - start < 10  # far from what the input would cost unbounded
    sizes = {layer["name"]: layer["output_dims"] for layer in found["layers"]}
    for name, size in map(str.split, expected.split(",")):
        assert "x".join(map(str, sizes[name])) == size, name
    assert len(sizes) == layers
    assert params is None or found["params"] == params


def test_every_ini_without_onnx_is_in_the_table():
    written = {path.stem for path in MODELS.glob("*.ini") if "Type=ONNX" not in path.read_text()}
    assert written == {row[0] for row in TABLE}


def test_inputs_of_a_concatenation():
    layers = {layer["name"]: layer for layer in description(with_macros("SqueezeNet", {}))["layers"]}
    assert layers["pool3"]["parents"] == ["fire3_expand1x1", "fire3_expand3x3"]
    assert layers["pool3"]["input_dims"] == [56, 56, 128]


def test_depthwise_layers_have_a_weight_per_channel():
    layers = {layer["name"]: layer for layer in description(with_macros("MobileNet_v2", {}))["layers"]}
    assert layers["conv8.1_3x3"]["params"] == 960 * 9 + 960
    assert layers["conv8.1_3x3"]["macs"] == 7 * 7 * 960 * 9


def test_every_model_names_its_command():
    for path in MODELS.glob("*.ini"):
        assert f"n2d2py models/{path.name} " in path.read_text(), path.name


def test_templates_are_used():
    texts = "".join(path.read_text() for path in [*MODELS.glob("*.ini"), *MODELS.glob("*.tpl")])
    for template in MODELS.glob("*.tpl"):
        assert f"@{template.name}]" in texts, template.name


def test_lenet_5_table():
    """The connection table of LeNet-5: 6 outputs of 3 maps, 9 of 4, 1 of 6: 60 kernels."""
    from n2d2py.contracts.ini.weights import WeightStore
    from n2d2py.frontend.ini.network import build_graph
    from n2d2py.ini import load_document

    graph = build_graph(load_document(MODELS / "LeNet_mapping.ini"), (1, 1, 32, 32), WeightStore(None), 1)
    connected = (graph.node("conv2").params["weights"] != 0).any(axis=(2, 3))
    assert sorted(connected.sum(axis=1)) == [3] * 6 + [4] * 9 + [6] and connected.sum() == 60
    blocks = graph.node("conv3")
    assert blocks.op.groups == 4 and blocks.params["weights"].shape == (120, 4, 5, 5)
