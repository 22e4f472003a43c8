"""Transformations that are read, and left out where only learning needs them."""

from __future__ import annotations

from n2d2py.data.transformations.base import register_unsupported
from n2d2py.ini import Schema
from n2d2py.ini.ignored import covered

_LABELS = "crops by pixel-wise labels"
_CLOSED = "is not part of the public N2D2"

_TYPES = (
    (
        _LABELS,
        {
            "LabelExtractionTransformation": "Widths Heights Label Distribution",
            "LabelSliceExtractionTransformation": "Width Height Label CachePath SlicesMargin "
            "KeepComposite RandomRotation RandomRotationRange "
            "RandomScaling RandomScalingRange AllowPadding "
            "BorderType BorderValue IgnoreNoValid ExcludeLabels",
        },
    ),
    (
        _CLOSED,
        {
            "ROIExtractionTransformation": "*",
            "BlendingTransformation": "*",
            "ChannelDropTransformation": "*",
            "ChannelShakeTransformation": "*",
        },
    ),
)

for _why, _schemas in _TYPES:
    for _name, _keys in _schemas.items():
        register_unsupported(
            Schema(
                _name,
                (),
                covered(*_keys.split()),
                doc=f"It {_why}. The section is read, and ignored if ApplyTo excludes inference.",
            ),
            _why,
        )
