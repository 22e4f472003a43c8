"""Networks for detection, poses and segmentation, written for the zoo: what neither torchvision nor timm has in a small size."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["FeaturePyramid", "SimplePose", "SsdHead", "UNet", "Yolo"]


def _conv(inputs: int, outputs: int, size: int = 3, stride: int = 1, activation: type[nn.Module] = nn.SiLU) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs), activation())


class _Split(nn.Module):
    """Cross-stage block: one half goes through bottlenecks, all their results are joined."""

    def __init__(self, inputs: int, outputs: int, count: int = 1, residual: bool = True):
        super().__init__()
        self.half, self.residual = outputs // 2, residual
        self.first = _conv(inputs, outputs, 1)
        self.last = _conv((2 + count) * self.half, outputs, 1)
        self.parts = nn.ModuleList(
            nn.Sequential(_conv(self.half, self.half), _conv(self.half, self.half)) for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = list(self.first(x).chunk(2, 1))
        for part in self.parts:
            y = part(found[-1])
            found.append(found[-1] + y if self.residual else y)
        return self.last(torch.cat(found, 1))


class _PyramidPool(nn.Module):
    """Three max pools, each on the result of the last, joined with their input."""

    def __init__(self, channels: int):
        super().__init__()
        self.first, self.last = _conv(channels, channels // 2, 1), _conv(channels * 2, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [self.first(x)]
        for _ in range(3):
            found.append(F.max_pool2d(found[-1], 5, 1, 2))
        return self.last(torch.cat(found, 1))


class Yolo(nn.Module):
    """Backbone, pyramid up and down, and a head without anchors: distances as means of distributions, class scores."""

    def __init__(self, width: int = 8, classes: int = 4, bins: int = 8):
        super().__init__()
        a, b, c, d = width, width * 2, width * 4, width * 8
        self.bins, self.classes = bins, classes
        self.stem = nn.Sequential(_conv(3, a, 3, 2), _conv(a, b, 3, 2), _Split(b, b))
        self.stage3 = nn.Sequential(_conv(b, c, 3, 2), _Split(c, c, 2))
        self.stage4 = nn.Sequential(_conv(c, d, 3, 2), _Split(d, d), _PyramidPool(d))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.top = _Split(d + c, c, residual=False)
        self.down = _conv(c, c, 3, 2)
        self.bottom = _Split(c + d, d, residual=False)
        self.boxes = nn.ModuleList(nn.Sequential(_conv(n, 16), nn.Conv2d(16, 4 * bins, 1)) for n in (c, d))
        self.scores = nn.ModuleList(nn.Sequential(_conv(n, 16), nn.Conv2d(16, classes, 1)) for n in (c, d))
        self.expectation = nn.Conv2d(bins, 1, 1, bias=False)
        self.expectation.weight.data[:] = torch.arange(bins).view(1, bins, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        third = self.stage3(self.stem(x))
        fourth = self.stage4(third)
        third = self.top(torch.cat([self.up(fourth), third], 1))
        fourth = self.bottom(torch.cat([self.down(third), fourth], 1))
        maps = [
            torch.cat([box(y), score(y)], 1) for box, score, y in zip(self.boxes, self.scores, (third, fourth), strict=True)
        ]
        joined = torch.cat([m.view(m.shape[0], 4 * self.bins + self.classes, -1) for m in maps], 2)
        boxes, scores = joined.split((4 * self.bins, self.classes), 1)
        count = joined.shape[2]
        distances = self.expectation(boxes.view(-1, 4, self.bins, count).transpose(2, 1).softmax(1)).view(-1, 4, count)
        points, strides = self._points(maps, x.shape[2])
        low, high = distances.chunk(2, 1)
        low, high = points - low, points + high
        return torch.cat([torch.cat([(low + high) / 2, high - low], 1) * strides, scores.sigmoid()], 1)

    @staticmethod
    def _points(maps: list[torch.Tensor], size: int) -> tuple[torch.Tensor, torch.Tensor]:
        points, strides = [], []
        for m in maps:
            height, width = m.shape[2:]
            y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
            points.append(torch.stack([x.reshape(-1), y.reshape(-1)]))
            strides.append(torch.full((1, height * width), size / height))
        return torch.cat(points, 1)[None], torch.cat(strides, 1)


class FeaturePyramid(nn.Module):
    """Lateral 1x1 convolutions, the level above enlarged to the size of the one below and added, a head for all levels."""

    def __init__(self, width: int = 16, classes: int = 6):
        super().__init__()
        self.stages = nn.ModuleList(_conv(3 if i == 0 else width << i - 1, width << i, 3, 2, nn.ReLU) for i in range(4))
        self.lateral = nn.ModuleList(nn.Conv2d(width << i, 32, 1) for i in range(1, 4))
        self.smooth = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(3))
        self.head = nn.Sequential(
            nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.Conv2d(32, classes, 3, padding=1)
        )

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        maps = []
        for stage in self.stages:
            maps.append(x := stage(x))
        level, found = None, []
        for source, lateral, smooth in zip(maps[:0:-1], self.lateral[::-1], self.smooth, strict=True):
            y = lateral(source)
            level = y if level is None else y + F.interpolate(level, size=y.shape[-2:], mode="nearest")
            found.append(self.head(smooth(level)))
        return found


class SimplePose(nn.Module):
    """A backbone of strided convolutions and three transposed ones: a heat map for each joint."""

    def __init__(self, width: int = 16, joints: int = 17):
        super().__init__()
        sizes = [3, width, width * 2, width * 4, width * 8]
        self.body = nn.Sequential(*(_conv(a, b, 3, 2, nn.ReLU) for a, b in pairwise(sizes)))
        up = [width * 8, 32, 32, 32]
        self.up = nn.Sequential(
            *(
                nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
                for a, b in pairwise(up)
            )
        )
        self.last = nn.Conv2d(32, joints, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.up(self.body(x)))


class UNet(nn.Module):
    """Encoder and decoder of three levels, enlarged by transposed convolutions, joined with what had that size."""

    def __init__(self, width: int = 8, classes: int = 3):
        super().__init__()

        def pair(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(_conv(a, b, 3, 1, nn.ReLU), _conv(b, b, 3, 1, nn.ReLU))

        sizes = [width, width * 2, width * 4]
        self.down = nn.ModuleList(pair(a, b) for a, b in pairwise([3, *sizes]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.join = nn.ModuleList(pair(2 * a, a) for a in sizes[:-1])
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = []
        for stage in self.down:
            x = stage(F.max_pool2d(x, 2) if found else x)
            found.append(x)
        for level in (1, 0):
            x = self.join[level](torch.cat([found[level], self.up[level](x)], 1))
        return self.last(x).softmax(1)


class SsdHead(nn.Module):
    """A detector of torchvision without what decodes boxes and suppresses them: (1, boxes, 4) and (1, boxes, classes)."""

    def __init__(self, detector: nn.Module):
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.head(list(self.backbone(x).values()))
        return found["bbox_regression"], found["cls_logits"].softmax(-1)
