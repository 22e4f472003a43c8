"""Shared by the tests of memory: n2D2's published and measured arenas, reproduced: no wrap, wrap, each parameter."""

from support import memory_networks as networks

NETWORKS = {
    "resnet8": networks.resnet8,
    "vww": networks.vww,
    "ds_cnn": networks.ds_cnn,
    "ad": networks.autoencoder,
    "mbv1_0.25_128": lambda: networks.mobilenet_v1(0.25, 128),
    "mbv1_0.25_224": lambda: networks.mobilenet_v1(0.25, 224),
    "mbv1_0.5_224": lambda: networks.mobilenet_v1(0.5, 224),
    "mbv1_1.0_224": lambda: networks.mobilenet_v1(1.0, 224),
    "mbv2_0.35_128": lambda: networks.mobilenet_v2(0.35, 128),
    "mbv2_0.35_224": lambda: networks.mobilenet_v2(0.35, 224),
    "mbv2_1.0_224": lambda: networks.mobilenet_v2(1.0, 224),
    "resnet18": networks.resnet18,
    "resnet50": networks.resnet50,
    "squeezenet": networks.squeezenet11,
    "googlenet": networks.googlenet,
    "densenet121": networks.densenet121,
}
