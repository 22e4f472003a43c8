"""The contract of a kind of post-processing: its settings, and how they are bound to the outputs of a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar

import numpy as np

from n2d2py.arithmetic.detections import SUBPIXELS
from n2d2py.arithmetic.fixed_scale import ONE, FixedScale
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.errors import Location, N2D2Error
from n2d2py.files.arrays import DamagedArray, read_npy
from n2d2py.graph.port import TensorInfo
from n2d2py.ini import REQUIRED, Key, Kind, option_error, read_choice
from n2d2py.postprocessing.results import Detection
from n2d2py.registry import Registry

Infos = Sequence[TensorInfo]
Size = tuple[int, int]
"""Width and height, in pixels."""

CCall = Callable[..., int]
"""A call of the C interface of an export: the name of the function without prefix, then arrays (their memory) and integers."""


_SHORT_TABLES = ("anchors", "references")
"""Tables of 16-bit integers; the others have 32 bits."""


@dataclass(frozen=True)
class KernelConfig:
    """The configuration of a C++ kernel.

    Attributes:
        reads: positions of the outputs that it reads, by the name of the type of their values.
        constants: its enum.
        scales: conversions of stored values to fixed point.
        tables: C++ type and entries of each table; no entries of one that is not used.
    """

    reads: Mapping[str, int]
    constants: Mapping[str, int]
    scales: Mapping[str, FixedScale]
    tables: Mapping[str, tuple[str, Sequence[int]]]

    @staticmethod
    def of(decoder: Any, reads: Mapping[str, int], tables: Mapping[str, Sequence[int]], **constants: int) -> KernelConfig:
        """Return the constants of the fields of a decoder and of dataclasses in it: numbers (rows_first: RowsFirst), conversions."""
        values = dict(_fields_of(decoder))
        numbers = {name.title().replace("_", ""): int(one) for name, one in values.items() if isinstance(one, int)}
        scales = {name: one or FixedScale() for name, one in values.items() if one is None or isinstance(one, FixedScale)}
        kinds = {name: ("std::int16_t" if name in _SHORT_TABLES else "std::int32_t", one) for name, one in tables.items()}
        return KernelConfig(reads, numbers | {name: int(one) for name, one in constants.items()}, scales, kinds)


def _fields_of(decoder: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(decoder):
        value = getattr(decoder, field.name)
        if is_dataclass(value) and not isinstance(value, FixedScale):
            yield from _fields_of(value)
        else:
            yield field.name, value


@dataclass(frozen=True)
class PostProcessor(ABC):
    """A post-processing that is bound to the outputs of a network: its integers in Python, and all that its C++ code is made of.

    Attributes:
        names: of the classes; may be empty.
        kernel, kernel_class: header in kernels/n2d2, and its class.
        function: of the C interface, without prefix.
        folder: its templates in export_templates/cpp/post: interface.h, source.cpp, app.h and README.md.
        in_frame: whether C++ turns results to pixels of the frame (the template frame.cpp).
        types: C types of its interface by their name in the configuration.
    """

    names: tuple[str, ...]

    kernel: ClassVar[str]
    kernel_class: ClassVar[str]
    function: ClassVar[str]
    folder: ClassVar[str]
    in_frame: ClassVar[bool] = False
    types: ClassVar[Mapping[str, str]] = {}

    @property
    @abstractmethod
    def config(self) -> KernelConfig:
        """The configuration of the kernel."""

    @property
    @abstractmethod
    def memory(self) -> np.ndarray:
        """Zeros, for the C function to write to."""

    @abstractmethod
    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """Return the result in integers for the stored outputs (C, ...) of a sample, the first one of a stream."""

    @abstractmethod
    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: Size | None = None) -> Any:
        """Return a stored result in real numbers; positions of a `frame` (width, height) of the source in its pixels."""

    def stored(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the result in integers for each sample of stored outputs (N, C, ...), which are a stream."""
        return [self.decode(sample) for sample in zip(*outputs, strict=True)]

    def compiled(self, call: CCall, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """Return `stored` of the C interface; `samples`: the outputs that it reads, by position, as memory (HWC)."""
        memories = [self.memory for _ in samples]
        for sample, memory in zip(samples, memories, strict=True):
            call(self.function, *sample, memory)
        return memories

    def name(self, label: int) -> str:
        """Return the name of a class; "" where it has none."""
        return self.names[label] if 0 <= label < len(self.names) else ""


@dataclass(frozen=True)
class PostKind:
    """A kind of post-processing, `-post NAME`, with its settings.

    Attributes:
        bind: the settings by name, inputs and outputs of the network and the names of the classes give the post-processor.
            Raises E460 where they do not fit.
        fits: True if the outputs can only be of this kind; of an image of width and height, and for names of the classes.
    """

    name: str
    doc: str
    keys: tuple[Key, ...]
    bind: Callable[[Mapping[str, Any], Infos, Infos, tuple[str, ...]], PostProcessor]
    fits: Callable[[Infos, Size, tuple[str, ...]], bool]


DETECTION_KEYS = (
    Key("threshold", Kind.FLOAT, 0.25, "Scores above it count.", minimum=0, maximum=1),
    Key("max", Kind.UINT, 100, "Detections at most.", minimum=1, maximum=10000),
)
SCORES = Key("scores", Kind.ENUM, "probabilities", "Scores: logits go through a sigmoid.", ("probabilities", "logits"))
KINDS: Registry[PostKind] = Registry(
    "post-processing", *(f"{__package__}.{one.name}" for one in iter_modules([str(Path(__file__).parent)]))
)
"""The kinds by name: each file of this folder may add some."""


def register(
    name: str, doc: str, keys: tuple[Key, ...], bind: Callable[..., PostProcessor], fits: Callable[..., bool] = lambda *_: False
) -> None:
    """Add a kind; see `PostKind`."""
    KINDS.add(name, PostKind(name, doc, keys, bind, fits))


@dataclass(frozen=True)
class Post:
    """A post-processing with its settings, those that are not given at their default."""

    kind: PostKind
    values: Mapping[str, Any]

    def bind(self, inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> PostProcessor:
        """Return the post-processor of a network. Raise E460 where its input or its outputs do not fit."""
        return self.kind.bind(self.values, inputs, outputs, names)


def recognized(inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> str | None:
    """Return the text of -post for the only kind that outputs can be of; None if there is none, or more than one."""
    if len(inputs) != 1 or len(inputs[0].stored) != 4:
        return None
    fitting = [kind for kind in KINDS.values() if kind.fits(outputs, image_size(inputs), names)]
    if len(fitting) != 1:
        return None
    required = ",".join(f"{key.name}=..." for key in fitting[0].keys if key.default is REQUIRED)
    return fitting[0].name + (f":{required}" if required else "")


def parse_post(text: str, where: Location | None = None) -> Post:
    """Return the post-processing of `KIND:key=value,key=value`.

    Raises: E003 an unknown kind or key, or a value of the wrong type or range.
    """
    name, values = read_choice(text, {kind.name: kind.keys for kind in KINDS.values()}, option_error("-post", text, where))
    return Post(KINDS[name], values)


def files_of(text: str) -> dict[str, str]:
    """By the key of -post, the files that it names."""
    post = parse_post(text)
    return {key.name: post.values[key.name] for key in post.kind.keys if key.kind is Kind.PATH and post.values[key.name]}


def with_files(text: str, paths: Mapping[str, str]) -> str:
    """Return the text of -post with other paths of its files."""
    kind, _, settings = text.partition(":")
    pairs = (setting.partition("=") for setting in settings.split(","))
    return f"{kind}:{','.join(f'{key}={paths.get(key, value)}' for key, _, value in pairs)}" if paths else text


def image_size(inputs: Infos) -> Size:
    """Width and height of the image that a network takes. Raise E460 for a network without one image as its input."""
    if len(inputs) != 1 or len(inputs[0].stored) != 4:
        raise misfit("the model has not one input, an image", "choose it by -inputs, or remove -post")
    _, high, wide = (0, 1, 2) if inputs[0].port is None else inputs[0].port.image_axes
    return inputs[0].stored[1 + wide], inputs[0].stored[1 + high]


def misfit(what: str, remedy: str) -> N2D2Error:
    """E460: outputs that do not fit a kind."""
    return N2D2Error("E460", f"-post: {what}", remedy=remedy)


def require_small(outputs: Infos) -> None:
    """Raise E460 for outputs that have no fixed point: integers of more than 16 bits, or without a scale."""
    for info in outputs:
        if not info.type.is_float and (info.type.bits > 16 or info.type.plain):
            raise misfit(f"'{info.name}' has the type {info.type.name}", "export with -nbbits 8, 16 or -32")


def only_output(outputs: Infos) -> TensorInfo:
    """Return the output of a model with one. Raise E460 for others, and as `require_small`."""
    require_small(outputs)
    if len(outputs) != 1:
        raise misfit(f"the model has {len(outputs)} outputs", "choose one by -outputs")
    return outputs[0]


def real_array(path: Path, what: str) -> np.ndarray:
    """Return the finite real numbers of a .npy file. Raise E460 for another file; `what` names its content."""
    try:
        array = read_npy(path)
    except (OSError, DamagedArray) as error:
        raise misfit(f"the {what} {path} cannot be read: {error}", "give an .npy file") from error
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise misfit(f"the {what} {path} are not real numbers", "save finite numbers of floating point")
    return array


@dataclass(frozen=True)
class Detector(PostProcessor):
    """A post-processing that gives at most `most` detections in an image of `size`."""

    size: Size
    most: int

    function: ClassVar = "detect"
    folder: ClassVar = "boxes"
    in_frame: ClassVar = True
    types: ClassVar = {"Detection": "detection"}

    @property
    def memory(self) -> np.ndarray:  # class, score in 1/65536, edges in 1/16 pixel
        return np.zeros((self.most, 6), np.int32)

    def compiled(self, call: CCall, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        memories = [self.memory for _ in samples]
        counts = [call(self.function, *sample, one, self.most) for sample, one in zip(samples, memories, strict=True)]
        return [one[:count] for one, count in zip(memories, counts, strict=True)]

    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: Size | None = None) -> list[Detection]:
        corners = in_frame(stored[:, 2:], self.size, source, frame) / SUBPIXELS
        return [
            Detection(label, self.name(label), score / ONE, *box)
            for (label, score), box in zip(stored[:, :2].tolist(), corners.tolist(), strict=True)
        ]


def in_frame(positions: np.ndarray, size: Size, source: FrameSource | None, frame: Size | None) -> np.ndarray:
    """Return the positions (n, x y x y ...) in 1/16 pixel of the image, or of the frame (width, height) that became it."""
    if frame is None or source is None:
        return positions
    return source.to_frame(positions, frame, size, SUBPIXELS)
