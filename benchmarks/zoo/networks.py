"""The zoo: networks of torchvision and timm, and heads of detectors, each with the size of its input.

The depth or width of some is reduced where the structure stays the same, so that their exports compile in a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["NETWORKS", "Entry"]


@dataclass(frozen=True)
class Entry:
    """`make` builds the module; `size`: height and width of its input of three channels; `origin`: the library."""

    make: Callable[[], Any]
    size: int
    origin: str
    reduced: bool = False


def _vision(name: str, size: int = 64, **arguments: Any) -> Entry:
    def make() -> Any:
        import torchvision

        return getattr(torchvision.models, name)(weights=None, num_classes=10, **arguments)

    return Entry(make, size, "torchvision", bool(arguments.keys() - {"init_weights"}))


def _timm(name: str, size: int = 64, **arguments: Any) -> Entry:
    def make() -> Any:
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **arguments)

    return Entry(make, size, "timm", bool(arguments.keys() - {"img_size"}))


def _head(name: str, size: int = 64, **arguments: Any) -> Entry:
    def make() -> Any:
        import heads

        return getattr(heads, name)(**arguments)

    return Entry(make, size, "heads.py")


class _First:
    """Segmentation networks give a dictionary; exporters want tensors."""

    def __new__(cls, network: Any) -> Any:
        from torch import nn

        class Output(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, x: Any) -> Any:
                return self.network(x)["out"]

        return Output()


def _segmentation(name: str, size: int = 64) -> Entry:
    def make() -> Any:
        from torchvision.models import segmentation

        return _First(getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=5))

    return Entry(make, size, "torchvision")


def _fcn() -> Any:
    from torchvision.models import resnet, segmentation

    body = resnet.ResNet(resnet.Bottleneck, [1, 2, 1, 1], replace_stride_with_dilation=[False, True, True])
    return _First(segmentation.fcn._fcn_resnet(body, 5, None))


def _ssdlite() -> Any:
    import heads
    from torchvision.models import detection

    return heads.SsdHead(detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5))


def _resnext() -> Any:
    from torchvision.models import resnet

    return resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], groups=32, width_per_group=4, num_classes=10)


NETWORKS: dict[str, Entry] = {
    # classification, convolutions
    "mobilenet_v2": _vision("mobilenet_v2", width_mult=0.5),
    "mobilenet_v3_small": _vision("mobilenet_v3_small"),
    "mobilenet_v3_large": _vision("mobilenet_v3_large"),
    "efficientnet_b0": _vision("efficientnet_b0"),
    "mnasnet0_5": _vision("mnasnet0_5"),
    "shufflenet_v2_x0_5": _vision("shufflenet_v2_x0_5"),
    "regnet_y_400mf": _vision("regnet_y_400mf"),
    "squeezenet1_1": _vision("squeezenet1_1"),
    "densenet": Entry(
        lambda: __import__("torchvision").models.DenseNet(12, (3, 6, 4, 3), 24, num_classes=10), 64, "torchvision", True
    ),
    "googlenet": _vision("googlenet", init_weights=False, aux_logits=False),
    "inception_v3": _timm("inception_v3", 96),
    "resnext": Entry(_resnext, 64, "torchvision", True),
    "resnet18": _timm("resnet18"),
    "hrnet_w18_small": _timm("hrnet_w18_small"),
    "ghostnet_050": _timm("ghostnet_050"),
    "repvgg_a0": _timm("repvgg_a0"),
    "mobileone_s0": _timm("mobileone_s0"),
    "mobilenetv4_conv_small": _timm("mobilenetv4_conv_small"),
    "efficientnet_lite0": _timm("efficientnet_lite0"),
    "lcnet_050": _timm("lcnet_050"),
    "mixnet_s": _timm("mixnet_s"),
    "ecaresnet26t": _timm("ecaresnet26t", layers=(1, 1, 1, 1)),
    "res2net50d": _timm("res2net50d", layers=(1, 1, 1, 1)),
    "resnest14d": _timm("resnest14d"),
    "skresnet18": _timm("skresnet18"),
    "cs3darknet_s": _timm("cs3darknet_s"),
    "dla46x_c": _timm("dla46x_c"),
    "dpn48b": _timm("dpn48b"),
    "starnet_s1": _timm("starnet_s1"),
    "repvit_m0_9": _timm("repvit_m0_9"),
    # classification, attention and its relatives
    "convnext": _timm("convnext_tiny", depths=(1, 1, 2, 1), dims=(48, 96, 192, 384)),
    "convnextv2_atto": _timm("convnextv2_atto"),
    "vit": _timm("vit_small_patch16_224", img_size=64, depth=3, embed_dim=192, num_heads=3),
    "swin": _timm("swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=48, depths=(2, 2, 2, 2)),
    "maxvit": _timm("maxvit_rmlp_pico_rw_256", img_size=64),
    "fastvit_t8": _timm("fastvit_t8"),
    "efficientformer_l1": _timm("efficientformer_l1", 224),
    "efficientformerv2_s0": _timm("efficientformerv2_s0", 224),
    "edgenext_xx_small": _timm("edgenext_xx_small"),
    "mobilevit_xxs": _timm("mobilevit_xxs"),
    "mobilevitv2_050": _timm("mobilevitv2_050"),
    "mixer": _timm("mixer_s32_224", 128, img_size=128),
    "poolformer": _timm("poolformer_s12"),
    "levit_128s": _timm("levit_128s", 224),
    "efficientvit_b0": _timm("efficientvit_b0"),
    "efficientvit_m0": _timm("efficientvit_m0", 224),
    "tiny_vit_5m": _timm("tiny_vit_5m_224", 224),
    "coatnet": _timm("coatnet_pico_rw_224", img_size=64),
    # segmentation, poses, detection
    "deeplabv3_mobilenet": _segmentation("deeplabv3_mobilenet_v3_large"),
    "lraspp_mobilenet": _segmentation("lraspp_mobilenet_v3_large"),
    "fcn_resnet": Entry(_fcn, 64, "torchvision", True),
    "ssdlite320": Entry(_ssdlite, 128, "torchvision"),
    "yolo": _head("Yolo"),
    "fpn": _head("FeaturePyramid"),
    "unet": _head("UNet"),
    "pose": _head("SimplePose"),
}
"""Name -> network; for each the spelling of both exporters is measured."""
