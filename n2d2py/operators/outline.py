"""Detection heads and other layers with known dimensions but without arithmetic."""

from collections.abc import Callable
from dataclasses import dataclass

from n2d2py.contracts.ini import NB_OUTPUTS, LayerContext, ini
from n2d2py.contracts.operator import Op
from n2d2py.graph.shapes import Shape, channels, height, width
from n2d2py.ini import COVERED, Key, Kind


@dataclass(frozen=True)
class Outline(Op):
    """A result of a fixed shape, batch 1 first, of a layer type `kind`; never part of a graph that runs."""

    shape: Shape
    kind: str = "Outline"  # type: ignore[misc]

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [self.shape]


_VALUES_PER_ANCHOR = 6
_BOX = 4
_HEAD = "detection heads are left to the application"


def _anchor(context: LayerContext) -> Shape:
    """Return one map of six values (class score, X, Y, W, H, overlap) for each anchor of a position."""
    values = context.values
    count = len(values.matching("Anchor[*")) or len(values["Ratios"]) * len(values["Scales"])
    channel_count = _VALUES_PER_ANCHOR * count if count else channels(context.shapes[0])
    return (1, channel_count, height(context.shapes[0]), width(context.shapes[0]))


def _objects(context: LayerContext) -> Shape:
    """Return box and class, two values for each part and three for each template."""
    parts, templates = context.values["NumParts"], context.values["NumTemplates"]
    return (1, _BOX + 1 + 2 * max(parts, default=0) + 3 * max(templates, default=0), 1, 1)


def _regions(context: LayerContext) -> Shape:
    return (1, *(context.values[key] for key in ("NbOutputs", "OutputsHeight", "OutputsWidth")))


def _fractional(context: LayerContext) -> Shape:
    values, ratio = context.values, context.values["ScalingRatio"]
    return (1, values["NbOutputs"], *(int(extent / ratio) for extent in (height(context.shapes[0]), width(context.shapes[0]))))


def _register_type(name: str, shape: Callable[[LayerContext], Shape], *keys: Key, why: str = _HEAD) -> None:
    @ini(name, *keys, accepted=(COVERED,), config_accepted=(COVERED,), doc="Layer known to -describe only.", refused=why)
    def build(context: LayerContext) -> None:
        remedy = "end the network before this layer, and compute the rest in the application"
        context.cannot_run("E231", f"layers of type {name} cannot be computed: {why}", remedy, "Type")
        context.add(Outline(shape(context), name), [tensor for _, tensor in context.parents])


_PARTS = (
    Key("NumParts", Kind.UINTS, (), "Number of parts per object class."),
    Key("NumTemplates", Kind.UINTS, (), "Number of templates per class."),
)
_ANCHORS = (
    Key("Anchor[*", Kind.STRING, None, "Anchor[i]: root area and aspect ratio of an anchor."),
    Key("Ratios", Kind.FLOATS, (), "Aspect ratios (width to height) of the anchors."),
    Key("Scales", Kind.FLOATS, (1.0,), "Sizes of the anchors."),
)
_WIDTH = Key("OutputsWidth", Kind.UINT, doc="Width of each result.", minimum=1)
_HEIGHT = Key("OutputsHeight", Kind.UINT, doc="Height of each result.", minimum=1)
_CLASS = Key("WithCls", Kind.BOOL, False, "Add a class to each box.")
_RATIO = Key("ScalingRatio", Kind.FLOAT, doc="Ratio of input size to output size.", minimum=1)

_register_type("Anchor", _anchor, *_ANCHORS)
_register_type("ObjectDet", _objects, *_PARTS, *_ANCHORS)
_register_type("RP", lambda context: (1, _BOX, 1, 1))
_register_type("Proposal", lambda context: (1, _BOX + int(context.values["WithCls"]), 1, 1), *_PARTS, _CLASS)
_register_type("ROIPooling", _regions, NB_OUTPUTS, _WIDTH, _HEIGHT)
_register_type("FMP", _fractional, NB_OUTPUTS, _RATIO, why="its regions are drawn at random")
_register_type("Distance", lambda context: (1, context.values["NbOutputs"], 1, 1), NB_OUTPUTS, why="it is a loss of training")
