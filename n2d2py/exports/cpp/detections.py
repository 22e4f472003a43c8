"""Detections of the outputs of a network, in C++: `kernels/n2d2/detections.hpp` with the numbers of a decoder."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.arithmetic.detections import POWERS, SIGMOID, BoxDecoder, FixedScale
from n2d2py.exports.base import ExportRequest
from n2d2py.postprocessing import Detector, parse_post
from n2d2py.runtime.simulator import ends

HEADER = "n2d2/detections.hpp"


@dataclass(frozen=True)
class DetectionView:
    """The post-processing as the templates see it."""

    detector: Detector

    @property
    def decoder(self) -> BoxDecoder:
        """Its integers."""
        return self.detector.decoder

    @property
    def outputs(self) -> list[int]:
        """Positions of the outputs that it reads, in order."""
        return sorted({self.detector.boxes.output, self.detector.scores.output})

    @property
    def scales(self) -> dict[str, str]:
        """By function of the configuration, the conversion to fixed point: C++ type, and its values."""
        decoder = self.decoder
        found = {
            "x": decoder.x,
            "y": decoder.y,
            "growth": decoder.growth,
            "score": decoder.score,
            "label": decoder.label or FixedScale(),
        }
        return {name: _literal(one) for name, one in found.items()}

    @property
    def tables(self) -> list[tuple[str, str, str]]:
        """Function of the configuration, type and entries of each table; no entries of one that is not used."""
        decoder = self.decoder
        anchors = [value for anchor in decoder.anchors for value in anchor]
        return [
            (name, kind, ", ".join(map(str, values)))
            for name, kind, values in (
                ("sigmoid", "std::int32_t", SIGMOID.tolist() if decoder.logits else []),
                ("powers", "std::int32_t", POWERS.tolist() if anchors else []),
                ("anchors", "std::int16_t", anchors),
            )
        ]


def _literal(scale: FixedScale) -> str:
    """Name and braces of a C++ value."""
    if scale.factor:
        return f"RealScale{{{scale.factor!r}}}"
    return f"FixedScale{{{scale.multiplier}, {scale.shift}, {scale.zero_point}}}"


def detection_view(request: ExportRequest) -> DetectionView | None:
    """The detections that -post asks for; None without it."""
    if request.post is None:
        return None
    return DetectionView(parse_post(request.post).bind(*ends(request.graph), request.contract.classes))
