"""Declaration of the network input: [sp], [env] or [cenv]."""

from dataclasses import dataclass

import numpy as np

from n2d2py.errors import Location, N2D2Error
from n2d2py.ini import CACHES, SPIKING, Document, Ignored, Key, Kind, Schema, Values

NAMES = ("cenv", "env", "sp")

_SPIKES = SPIKING.for_keys("StimulusType", "DiscardedLateStimuli", "Period*")
_STREAMS = Ignored("", "keys of streams", "writes or reads streams of prepared stimuli", "remove them")

SP = Schema(
    "sp",
    (
        Key("SizeX", Kind.UINT, 0, "Width of the network input."),
        Key("SizeY", Kind.UINT, 0, "Height of the network input."),
        Key("SizeD", Kind.UINT, 1, "Depth of the network input. Only 1 is supported.", minimum=1),
        Key("NbChannels", Kind.UINT, 1, "Number of channels of the network input.", minimum=1),
        Key("Size", Kind.UINTS, (), "X Y C, X C, or the length of a vector. With NbChannels: X Y.", minimum=1),
        Key("TargetSizeX", Kind.UINT, None, "Width of the expected outputs of an auto-encoder. Must equal that of the input."),
        Key("TargetSizeY", Kind.UINT, None, "Height of the expected outputs."),
        Key("TargetSizeD", Kind.UINT, None, "Depth of the expected outputs."),
        Key("TargetNbChannels", Kind.UINT, None, "Number of channels of the expected outputs."),
        Key("TargetSize", Kind.UINTS, None, "Size of the expected outputs instead of TargetSizeX and TargetSizeY."),
        Key("BatchSize", Kind.UINT, 1, "Batch size of -test.", minimum=1),
        Key("CompositeStimuli", Kind.BOOL, False, "The data have a label for each pixel."),
    ),
    (*CACHES.for_keys("CachePath"), *_SPIKES, *SPIKING.for_keys("SpikeCUDA"), *_STREAMS.for_keys("ReadStream")),
    doc="The input of the network ([env] and [cenv] are synonyms). `[sp.Transformation*]` and then "
    "`[sp.OnTheFlyTransformation*]` transform images into stimuli, in file order. `[sp.ChannelTransformation*]` without "
    "Channel creates a new channel from the whole image. With Channel=k, it transforms the existing channel k; "
    "`[sp.ChannelsTransformation*]` transforms all of them. Their OnTheFly forms are applied last. Remaining integers are "
    "divided by the largest value of their type. The Learn set is transformed like the Validation set.",
)
SP_CONFIG = Schema(
    "ConfigSection of sp",
    (
        Key("DataSignedMapping", Kind.BOOL, False, "Map n-bit integers v to (v - 2^(n-1)) / 2^(n-1)."),
        Key("QuantizationLevels", Kind.UINT, 0, "Number of equidistant values that stimuli are rounded to. 0: no rounding."),
        Key("QuantizationMin", Kind.FLOAT, 0.0, "Lowest of the QuantizationLevels."),
        Key("QuantizationMax", Kind.FLOAT, 1.0, "Highest of the QuantizationLevels."),
    ),
    (*_STREAMS.for_keys("StreamTensor", "StreamLabel"), *_SPIKES),
    doc="Keys in the ConfigSection of [sp].",
)


@dataclass(frozen=True)
class Levels:
    """`count` equidistant values from `low` to `high`."""

    count: int
    low: float
    high: float

    def nearest(self, values: np.ndarray) -> np.ndarray:
        """Return the level nearest to each value, ties to even levels; in the type of `values`."""
        step = (self.high - self.low) / (self.count - 1)
        index = np.clip(np.rint((values - self.low) / step), 0, self.count - 1)
        return (index * step + self.low).astype(values.dtype)


@dataclass(frozen=True)
class Environment:
    """The declared network input.

    Attributes:
        section: section name, by which layers refer to the input.
        shape: (C, H, W), or (F,) for a Size of one number.
        batch_size, signed, composite: BatchSize, DataSignedMapping, CompositeStimuli.
        where: place of the section.
        levels: values that stimuli are rounded to, or None.
    """

    section: str
    shape: tuple[int, ...]
    batch_size: int
    signed: bool
    where: Location
    composite: bool = False
    levels: Levels | None = None


def read_environment(document: Document, *, for_data: bool = True) -> Environment:
    """Return the declaration of the input, without reading data. Sets [sp]_SizeX, _SizeY and _NbChannels.

    Without `for_data`, only the dimensions are needed, and settings that no data can be made for are accepted.

    Raises: E411 no section or no size, E406 an unsupported setting, and the errors of reading.
    """
    sections = [section for name in NAMES if (section := document.section(name)) is not None]
    if not sections:
        what = "section [sp] (or [env], [cenv]) is missing, so the input has no size"
        remedy = "add [sp] with SizeX, SizeY and NbChannels"
        raise N2D2Error("E411", what, where=Location(str(document.path)), remedy=remedy)
    section = sections[0]
    if for_data and len(sections) > 1:
        what = f"sections [{sections[1].name}] and [{section.name}] both declare the input"
        raise N2D2Error("E411", what, where=section.location, remedy="remove one of them")
    values = SP.read(section, SP_CONFIG)
    count, low, high = (values[f"Quantization{key}"] for key in ("Levels", "Min", "Max"))
    if count == 1 or low >= high:
        what = f"QuantizationLevels={count} from {low:g} to {high:g} is not a valid quantization"
        remedy = "give at least 2 levels, and QuantizationMin below QuantizationMax"
        raise values.fail("E417", what, remedy, "QuantizationLevels")
    shape = _shape(values)
    x, y, channels = (shape[2], shape[1], shape[0]) if len(shape) == 3 else (shape[0], 1, 1)
    targets = {"SizeX": x, "SizeY": y, "SizeD": 1, "NbChannels": channels, "Size": values["Size"] or (x, y)}
    for name, value in targets.items() if for_data else ():
        key = f"Target{name}"
        if values.is_given(key) and values[key] != value:  # it would be scored in another way
            what = f"'{key}' changes the size of the expected outputs, which is not supported"
            raise values.fail("E124", what, "remove it", key)
    for key, value in (("_SizeX", x), ("_SizeY", y), ("_NbChannels", channels)):
        section.set_automatic(key, value)
    signed, composite = values["DataSignedMapping"], values["CompositeStimuli"]
    levels = Levels(count, low, high) if count else None
    return Environment(section.name, shape, values["BatchSize"], signed, section.location, composite, levels)


def _shape(values: Values) -> tuple[int, ...]:
    size = values["Size"]
    if not size:
        missing = [key for key in ("SizeX", "SizeY") if not values[key]]
        if missing:
            what = f"{' and '.join(missing)} of the input {'is' if len(missing) == 1 else 'are'} missing or 0"
            raise values.fail("E411", what, "give SizeX and SizeY, or Size", missing[0])
        if values["SizeD"] != 1:
            raise values.fail("E411", "SizeD above 1 is not supported", "remove SizeD", "SizeD")
        return values["NbChannels"], values["SizeY"], values["SizeX"]
    if values.is_given("SizeX") or values.is_given("SizeY"):
        raise values.fail("E411", "Size and SizeX or SizeY are both given", "remove one of them", "Size")
    if values.is_given("NbChannels") and size[2:] != (values["NbChannels"],):
        if len(size) != 2:
            what = f"Size has {len(size)} values, but NbChannels={values['NbChannels']} is also given"
            raise values.fail("E411", what, "give Size=X Y C, or Size=X Y with NbChannels", "Size")
        return values["NbChannels"], size[1], size[0]
    if len(size) == 1:
        return size
    if len(size) > 3:
        raise values.fail("E411", f"Size with {len(size)} values is not supported", "give X Y C, X C, or one number", "Size")
    return size[-1], size[1] if len(size) == 3 else 1, size[0]
