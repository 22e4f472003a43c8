"""The shipped INI files: dimensions, parameters and loading time."""

from __future__ import annotations

import time

from support.model_run import MODELS, description, need_types, with_macros
from support.tables import every

# Model, macros, number of layers (of N2D2's network of this name, where known), parameters, dimensions X Y C.
TABLE = [
    (
        "LeNet",
        {},
        9,
        None,
        {
            "conv1": [28, 28, 6],
            "pool1": [14, 14, 6],
            "conv2": [10, 10, 16],
            "pool2": [5, 5, 16],
            "conv3": [1, 1, 120],
            "softmax": [1, 1, 10],
        },
    ),
    ("LeNet_QAT", {}, 11, None, {"conv2": [10, 10, 16], "bn3": [1, 1, 120], "fc2": [1, 1, 10]}),
    (
        "ResNet8_QAT",
        {},
        24,
        78_714,
        {"conv1": [32, 32, 16], "block2_sum": [16, 16, 32], "block3_sum": [8, 8, 64], "fc": [1, 1, 10]},
    ),
    ("ResNet8_QAT", {"QUANTIZER": ""}, 24, 78_714, {"block3_sum": [8, 8, 64], "fc": [1, 1, 10]}),
    ("LeNet_mapping", {}, 8, None, {"conv2": [10, 10, 16], "conv3": [1, 1, 120], "fc2": [1, 1, 10]}),
    (
        "MobileNet_v1",
        {},
        30,
        4_221_032,
        {"conv1": [112, 112, 32], "conv5.5_1x1": [14, 14, 512], "conv6.1_1x1": [7, 7, 1024], "fc": [1, 1, 1000]},
    ),
    ("MobileNet_v1", {"SIZE": 128, "ALPHA": 0.25}, 30, None, {"conv1": [64, 64, 8], "conv6.1_1x1": [4, 4, 256]}),
    ("MobileNet_v2", {}, 66, 3_488_872, {"conv1": [112, 112, 32], "conv9": [7, 7, 1280]}),
    (
        "MobileNet_v2",
        {"SIZE": 160, "ALPHA": 0.5},
        66,
        None,
        {
            "conv1": [80, 80, 16],
            "conv2.1_1x1_linear": [80, 80, 8],
            "conv3.2_sum": [40, 40, 12],
            "conv8.1_1x1_linear": [5, 5, 160],
            "conv9": [5, 5, 1280],
        },
    ),
    (
        "ResNet-18",
        {},
        52,
        None,
        {
            "conv1": [112, 112, 64],
            "pool1": [55, 55, 64],
            "conv2.2_sum": [55, 55, 64],
            "conv3.2_sum": [28, 28, 128],
            "conv5.2_sum": [7, 7, 512],
        },
    ),
    ("ResNet-18", {"BATCHNORM": 0}, 32, 11_684_712, {"conv5.2_sum": [7, 7, 512], "fc": [1, 1, 1000]}),
    (
        "ResNet-50",
        {},
        73,
        25_530_472,
        {"pool1": [55, 55, 64], "conv2.3_sum": [55, 55, 256], "conv4.6_sum": [14, 14, 1024], "conv5.3_sum": [7, 7, 2048]},
    ),
    ("ResNet-50", {"BATCHNORM": 1}, 126, None, {"conv5.3_1x1_expand_conv": [7, 7, 2048], "conv5.3_1x1_expand": [7, 7, 2048]}),
    (
        "SqueezeNet",
        {},
        31,
        1_235_496,
        {
            "conv1": [113, 113, 64],
            "pool3": [27, 27, 128],
            "pool5": [13, 13, 256],
            "conv10": [13, 13, 1000],
            "pool10": [1, 1, 1000],
        },
    ),
    (
        "GoogLeNet",
        {},
        82,
        6_998_552,
        {
            "pool2": [28, 28, 192],
            "inception3b_join": [28, 28, 480],
            "inception4e_join": [14, 14, 832],
            "inception5b_5x5": [7, 7, 128],
            "pool": [1, 1, 1024],
        },
    ),
    (
        "DenseNet",
        {},
        185,
        7_905_448,
        {
            "block1.5_join": [56, 56, 256],
            "transition1_pool": [28, 28, 128],
            "block3.23_join": [14, 14, 1024],
            "block4.15_3x3": [7, 7, 32],
        },
    ),
    (
        "DenseNet",
        {"BATCHNORM": 1},
        306,
        None,
        {"block2.11_1x1_bn": [28, 28, 480], "head_bn": [7, 7, 1024], "head_pool": [1, 1, 1024]},
    ),
    (
        "VGG16",
        {},
        24,
        138_357_544,
        {"conv0_1": [224, 224, 64], "conv4_2": [14, 14, 512], "pool4": [7, 7, 512], "fc1": [1, 1, 4096], "fc3": [1, 1, 1000]},
    ),
    ("Autoencoder", {}, 4, None, {"encoder2": [8, 8, 8], "decoder1": [16, 16, 16], "decoder2": [32, 32, 1]}),
    (
        "UNet",
        {},
        24,
        None,
        {
            "down3_pool": [16, 16, 64],
            "down4_2": [16, 16, 128],
            "up3_resize": [32, 32, 128],
            "up3_1": [32, 32, 64],
            "up1_2": [128, 128, 16],
            "scores": [128, 128, 4],
        },
    ),
    (
        "UNet",
        {"UP": "Deconv", "SIZE": 64},
        21,
        None,
        {"up3_double": [16, 16, 64], "up3_1": [16, 16, 64], "scores": [64, 64, 4]},
    ),
    ("MaxPoolAdd", {}, 2, 0, {"pool": [56, 56, 64], "dst": [56, 56, 64]}),
    ("DSCNN", {}, 12, 30_284, {"conv1": [20, 25, 64], "conv5_pw": [20, 25, 64], "fc": [1, 1, 12]}),
]


@every("model, macros, layers, params, expected", TABLE, ids=[" ".join([row[0], *map(str, row[1].values())]) for row in TABLE])
def test_dimensions(model, macros, layers, params, expected):
    need_types(model, chosen=macros.get("UP", ""))
    start = time.process_time()
    found = description(with_macros(model, macros))
    assert time.process_time() - start < 10  # far from what the input would cost unbounded
    sizes = {layer["name"]: layer["output_dims"] for layer in found["layers"]}
    assert {name: sizes.get(name) for name in expected} == expected
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
    from n2d2py.frontend.ini.network import build_graph
    from n2d2py.frontend.ini.weights import WeightStore
    from n2d2py.ini import load_document

    graph = build_graph(load_document(MODELS / "LeNet_mapping.ini"), (1, 1, 32, 32), WeightStore(None), 1)
    connected = (graph.node("conv2").params["weights"] != 0).any(axis=(2, 3))
    assert sorted(connected.sum(axis=1)) == [3] * 6 + [4] * 9 + [6] and connected.sum() == 60
    blocks = graph.node("conv3")
    assert blocks.op.groups == 4 and blocks.params["weights"].shape == (120, 4, 5, 5)
