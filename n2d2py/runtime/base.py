"""Shared by compiled and simulated networks: their description, checks of arrays, quantization."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.sensor import SensorSource, StreamSource
from n2d2py.errors import N2D2Error
from n2d2py.graph import FilePort, InputContract, TensorInfo, dims_text, plain_port
from n2d2py.postprocessing import Detection, Detector, PostProcessor


class ArrayError(N2D2Error, ValueError):
    """An array that does not fit the network (E804)."""

    def __init__(self, what: str, remedy: str):
        super().__init__("E804", what, remedy=remedy)


@dataclass(frozen=True)
class LayerInfo(TensorInfo):
    """The result of a layer; `operation` is the layer's kind, `name` its name."""

    operation: str = ""


@dataclass(frozen=True)
class NetworkInfo:
    """A network: inputs, outputs, layers in the order in which they run.

    Attributes:
        arena_bytes: working memory of one inference in the compiled project; 0 when it is simulated.
    """

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    layers: tuple[LayerInfo, ...]
    arena_bytes: int


class Network:
    """A network that runs on NumPy arrays in the axes of its file, for any batch N.

    One with states runs the batch as N calls of a stream, the first one after a reset.

    Attributes:
        info: its inputs, outputs and layers.
        contract: images that it takes, and names of its classes.
        post: its post-processing; None without -post.
    """

    info: NetworkInfo
    contract: InputContract = InputContract()
    post: PostProcessor | None = None

    def __repr__(self) -> str:
        ends = (
            ", ".join(f"{one.name} {dims_text(one.shape)} {one.type.name}" for one in each)
            for each in (self.info.inputs, self.info.outputs)
        )
        arena = f", arena {self.info.arena_bytes:,} bytes" if self.info.arena_bytes else ""
        return "{}: inputs {}, outputs {}, {} layers{}".format(self.info.name, *ends, len(self.info.layers), arena)

    def __call__(
        self, *inputs: np.ndarray | None, outputs: Sequence[str] | str | None = None
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Real outputs for real inputs, one array for each input of the network.

        Inputs are quantized and outputs dequantized by their scales and zero points. Returns float32 (float64 for 64-bit
        networks); a tuple when there are several outputs. `outputs` names those that are wanted, in the order of the result:
        only the layers that these need run, and inputs that they do not need may be None.

        Raise E804 for arrays of another number, shape or type, or with NaN; for outputs that the network does not have, or does
        not compute alone.
        """
        chosen = self._chosen(outputs)
        arrays, is_single = self._batches(self._present(inputs, chosen))
        for info, x in zip(self.info.inputs, arrays, strict=True):
            if x.dtype.kind not in "fiub":
                raise ArrayError(f"the input '{info.name}' is an array of {x.dtype}", "give real numbers")
            if x.dtype.kind == "f" and np.isnan(x).any():
                raise ArrayError(f"the input '{info.name}' contains NaN", "give real numbers")
        results = self._results(self._quantized(arrays), chosen)
        real = [self.info.outputs[index].type.dequantize(y) for index, y in zip(chosen, results, strict=True)]
        return self._given(real, chosen, is_single)

    def run_raw(
        self, *inputs: np.ndarray | None, outputs: Sequence[str] | str | None = None
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the stored outputs for stored inputs: integers, or real numbers of a floating-point network. `outputs` as in a
        call.

        Raises:
            ArrayError: E804 for arrays of another number or shape, or values that the type does not hold; for outputs as in a
                call.
        """
        chosen = self._chosen(outputs)
        arrays, is_single = self._batches(self._present(inputs, chosen))
        return self._given(self._results(self._stored(arrays), chosen), chosen, is_single)

    def layers(self, *inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Return the stored result of each layer by name, for real inputs as in a call or stored ones as in `run_raw`.

        Arrays of the stored integer type are taken unchanged, others are quantized. A convolution that does the sum of
        another layer in its last stage has no separate result. Where layers run row by row, the rows that no layer reads are
        not computed: the result is then a masked array, with these lines masked.
        """
        arrays, _ = self._batches(inputs)
        ready = all(x.dtype == info.dtype for info, x in zip(self.info.inputs, arrays, strict=True))
        return self._run_layers(self._stored(arrays) if ready else self._quantized(arrays))

    def pipeline(self, raw: np.ndarray) -> Any:
        """Return the result for one raw image or sound: that of -post, in pixels of the image; else the real outputs.

        `raw`: with -input-format an image, bytes (height, width, 3) of red, green, blue or (height, width) of gray, of any
        size; with -audio the samples (n,) of a sound, int16; with -sensor samples (n, axes), int16; of other networks the real
        input, as in a call.

        Raises:
            ArrayError: E804 as `from_frame`, `from_audio`, `from_sensor` and a call.
        """
        source, frame, raw = self.contract.source, None, np.asarray(raw)
        if isinstance(source, AudioSource):
            stored = self.from_audio(raw)
        elif isinstance(source, SensorSource):
            stored = self.from_sensor(raw)
        elif isinstance(source, FrameSource):
            if raw.dtype != np.uint8 or raw.ndim not in (2, 3) or raw.shape[2:] not in ((), (3,)) or raw.size == 0:
                what = f"the image has shape {raw.shape} and type {raw.dtype}"
                raise ArrayError(what, "give an array (height, width, 3) or (height, width) of uint8")
            frame = raw.shape[1], raw.shape[0]
            colors = raw if raw.ndim == 3 else np.repeat(raw[:, :, None], 3, 2)
            stored = self.from_frame(source.layout.encode(colors), frame[0])
        else:
            return self.postprocess(raw)[0] if self.post is not None else self(raw)
        if self.post is not None:
            return self.postprocess(stored, frame)[0]
        results = self._results(self._batches([stored])[0], self._chosen(None))
        real = [info.type.dequantize(y) for info, y in zip(self.info.outputs, results, strict=True)]
        return self._given(real, self._chosen(None), True)

    def from_frame(self, lines: np.ndarray, width: int) -> np.ndarray:
        """Return the input for `run_raw` of a frame: its rows of memory (height, bytes), uint8, in the format of -input-format.

        A frame of nv12 has its rows of Y, then those of U and V.

        Raises:
            ArrayError: E804 the network takes no frames, the lines are none, or the size is not possible.
        """
        source, lines = self.contract.source, np.asarray(lines)
        if not isinstance(source, FrameSource):
            raise ArrayError("this network does not convert frames", "export with -input-format")
        if lines.dtype != np.uint8 or lines.ndim != 2 or lines.shape[1] < source.layout.line_bytes(width):
            raise ArrayError(
                f"the lines have shape {lines.shape} and type {lines.dtype}, but {width} pixels of {source.format} need "
                f"{source.layout.line_bytes(width)} bytes",
                "give an array (height, bytes) of uint8",
            )
        self._require_possible(source, len(lines), width)
        return _port(self.info.inputs[0]).array(self._framed(source, np.ascontiguousarray(lines), width), True)

    def _require_possible(self, source: FrameSource, rows: int, width: int) -> None:
        height, (high, wide) = source.layout.height(rows), self.info.inputs[0].stored[2:]
        if source.layout.memory_rows(height) != rows:
            raise ArrayError(f"no frame of {source.format} has {rows} rows", "give the rows of Y, then those of U and V")
        try:
            source.axes(width, height, wide, high)
        except N2D2Error as error:
            raise ArrayError(error.what, error.remedy or "") from None

    def _framed(self, source: FrameSource, lines: np.ndarray, width: int) -> np.ndarray:
        info, pixels = self.info.inputs[0], self.contract.pixels
        assert pixels is not None  # a source of frames requires them
        frame = source.convert(lines, width, (info.stored[1], info.stored[2], info.stored[3]))
        return info.type.quantize(pixels.real(frame[:, :, list(pixels.order)].transpose(2, 0, 1)))[None]

    def from_audio(self, samples: np.ndarray, piece: int = 0) -> np.ndarray:
        """Return the input for `run_raw` after all samples (n,) of a sound, int16, at the rate of -audio; frames before it are
        silent.

        `piece`: samples that a compiled export gets at a time; 0: all.

        Raises:
            ArrayError: E804 the network takes no sounds, or the samples are none.
        """
        return self._from_stream(AudioSource, np.asarray(samples), piece, "sounds")

    def from_sensor(self, samples: np.ndarray, piece: int = 0) -> np.ndarray:
        """Return the input for `run_raw` after all samples (n, axes) of a sensor, int16; samples before them are zeros.

        `piece`: samples that a compiled export gets at a time; 0: all.

        Raises:
            ArrayError: E804 the network takes no samples of a sensor, or the samples are none.
        """
        return self._from_stream(SensorSource, np.asarray(samples), piece, "samples of a sensor")

    def _from_stream(self, kind: type[StreamSource], samples: np.ndarray, piece: int, what: str) -> np.ndarray:
        source = self.contract.source
        if not isinstance(source, kind):
            raise ArrayError(f"this network does not convert {what}", f"export with {kind.option}")
        self._require_samples(source, samples)
        return _port(self.info.inputs[0]).array(self._streamed(source, np.ascontiguousarray(samples), piece), True)

    def stream(self, samples: np.ndarray) -> list[Any]:
        """Return the result of -post for each window of a recording, as the program of -app gives it: of a sound (n,) for
        each tenth of the input, of samples (n, axes) of a sensor for each `hop`, int16.

        Raises:
            ArrayError: E804 a network without -post, of no sounds and no samples of a sensor, or samples that are none.
        """
        source, samples = self.contract.source, np.asarray(samples)
        if self.post is None or not isinstance(source, StreamSource):
            raise ArrayError("this network makes no decisions in a stream", "export with -post, and -audio or -sensor")
        self._require_samples(source, samples)
        info, shape = self.info.inputs[0], self.info.inputs[0].stored[1:]
        frames = source.frames_of(shape)
        windows = [frames.stimulus(source.real(one), shape) for one in source.each_window(samples, frames.count)]
        if not windows:
            return []
        return [self.post.result(one) for one in self._processed(self.post, self._run([info.type.quantize(np.array(windows))]))]

    def _require_samples(self, source: StreamSource, samples: np.ndarray) -> None:
        if samples.dtype != np.int16 or not samples.ndim or samples.shape[1:] != source.sample_shape:
            wanted = str(("n", *source.sample_shape)).replace("'", "")
            what = f"the samples have shape {samples.shape} and type {samples.dtype}"
            raise ArrayError(what, f"give an array {wanted} of int16")

    def _streamed(self, source: StreamSource, samples: np.ndarray, piece: int) -> np.ndarray:
        info = self.info.inputs[0]
        frames, shape = source.frames_of(info.stored[1:]), info.stored[1:]
        latest = source.real(source.latest(samples, frames.count))
        return info.type.quantize(frames.stimulus(latest, shape))[None]

    def postprocess(self, x: np.ndarray, frame: tuple[int, int] | None = None) -> list[Any]:
        """Return the result of -post for each sample of a batch, which is a stream: the post-processing begins with its first
        sample.

        Args:
            x: real samples as in a call, or stored ones as in `run_raw`.
            frame: width and height of the frames that `from_frame` made the images of: the result is in their pixels.

        Raises:
            ArrayError: E804 an export without -post, a frame without -input-format, or arrays as in a call.
            N2D2Error: E407 a frame that cannot be converted.
        """
        if self.post is None:
            raise ArrayError("this network has no post-processing", "export with -post")
        source = self.contract.source if isinstance(self.contract.source, FrameSource) else None
        if frame is not None and source is None:
            raise ArrayError("this network takes no frames", "export with -input-format, or leave out the frame")
        ((sample,), _), (info,) = self._batches([x]), self.info.inputs
        stored = self._stored([sample]) if sample.dtype == info.dtype else self._quantized([sample])
        return [self.post.result(one, source, frame) for one in self._processed(self.post, self._run(stored))]

    def detect(self, x: np.ndarray, frame: tuple[int, int] | None = None) -> list[list[Detection]]:
        """Return the objects in each image of a batch, the highest score first: `postprocess` of a detector.

        Raises:
            ArrayError: E804 an export that detects nothing, and as `postprocess`.
        """
        if self.post is not None and not isinstance(self.post, Detector):
            raise ArrayError("this network detects no objects", "call postprocess()")
        return self.postprocess(x, frame)

    def _processed(self, post: PostProcessor, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return the stored results for stored outputs (N, C, ...)."""
        return post.stored(outputs)

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        """`layers` for stored inputs in the axes of the graph."""
        return self._run_layers(inputs)

    def _run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return the stored outputs for checked stored inputs of the right type."""
        raise NotImplementedError

    def _run_for(self, inputs: list[np.ndarray], outputs: list[int]) -> list[np.ndarray]:
        """Return the stored values of some outputs, by their positions, for inputs as in `_run`. This class computes all."""
        results = self._run(inputs)
        return [results[index] for index in outputs]

    def _needed(self, outputs: list[int]) -> set[int]:
        """Return the positions of the inputs that some outputs need."""
        return set(range(len(self.info.inputs)))

    def _run_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the stored results of all layers for checked stored inputs of the right type."""
        raise NotImplementedError

    def _results(self, inputs: list[np.ndarray], chosen: list[int]) -> list[np.ndarray]:
        """Return the stored outputs in the order of `chosen`; all of them by default."""
        if len(set(chosen)) < len(self.info.outputs):
            return self._run_for(inputs, chosen)
        results = self._run(inputs)
        return [results[index] for index in chosen]

    def _chosen(self, outputs: Sequence[str] | str | None) -> list[int]:
        known = [info.name for info in self.info.outputs]
        names = known if outputs is None else [outputs] if isinstance(outputs, str) else list(outputs)
        wrong = [name for name in names if name not in known]
        if wrong or not names:
            what = f"the network has no output '{wrong[0]}'" if wrong else "no output is wanted"
            raise ArrayError(what, f"its outputs are {', '.join(known)}")
        return [known.index(name) for name in names]

    def _present(self, inputs: Sequence[np.ndarray | None], chosen: list[int]) -> list[np.ndarray]:
        """Return the inputs; zeros for those that are None, which no chosen output may need."""
        if len(inputs) != len(self.info.inputs) or all(x is not None for x in inputs):
            return [x for x in inputs if x is not None]
        needed = self._needed(chosen)
        count = next((len(x) for x in inputs if x is not None and np.ndim(x)), 1)
        arrays = []
        for index, (info, x) in enumerate(zip(self.info.inputs, inputs, strict=True)):
            if x is None and index in needed:
                names = ", ".join(self.info.outputs[each].name for each in chosen)
                raise ArrayError(f"the input '{info.name}' is None, and needed for {names}", "give an array")
            arrays.append(np.zeros((count, *info.stored[1:]), info.dtype) if x is None else x)
        return arrays

    def _given(self, results: list[np.ndarray], chosen: list[int], is_single: bool) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the results of some outputs in the axes of the file."""
        ports = [_port(self.info.outputs[index]) for index in chosen]
        arrays = [port.array(y, is_single) for port, y in zip(ports, results, strict=True)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _batches(self, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], bool]:
        """Return the inputs as equally many samples in the network's shapes, and whether they are one run of the file."""
        if len(inputs) != len(self.info.inputs):
            raise ArrayError(
                f"{len(inputs)} arrays for a network of {len(self.info.inputs)} inputs",
                f"give {', '.join(info.name for info in self.info.inputs)}",
            )
        raw = [np.asarray(x) for x in inputs]
        arrays = []
        for info, x in zip(self.info.inputs, raw, strict=True):
            port = _port(info)
            samples = port.samples(x, info.stored)
            if samples is None:
                remedy = "add the batch axis with x[None]" if x.shape == port.sample else "reshape or transpose it"
                raise ArrayError(f"the input '{info.name}' has shape {x.shape}, not {port.text()}", remedy)
            arrays.append(samples)
        if len({len(x) for x in arrays}) > 1:
            counts = ", ".join(str(len(x)) for x in arrays)
            raise ArrayError(f"inputs of {counts} samples", "give the same number for each input")
        return arrays, all(_port(info).is_single(x) for info, x in zip(self.info.inputs, raw, strict=True))

    def _quantized(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [info.type.quantize(x) for info, x in zip(self.info.inputs, arrays, strict=True)]

    def _stored(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Return the inputs in their stored types, checked to hold the same values."""
        for info, x in zip(self.info.inputs, arrays, strict=True):
            if info.type.is_float:
                if x.dtype.kind not in "fiub":
                    raise ArrayError(f"the input '{info.name}' is an array of {x.dtype}", f"give {info.dtype}")
                continue
            if x.dtype.kind not in ("iub" if info.type.plain else "iu"):
                raise ArrayError(
                    f"the input '{info.name}' is an array of {x.dtype}",
                    f"give stored integers ({info.dtype}), or call the network with real numbers",
                )
            if x.size and not info.type.qmin <= int(x.min()) <= int(x.max()) <= info.type.qmax:
                raise ArrayError(
                    f"the input '{info.name}' holds {int(x.min())} to {int(x.max())}",
                    f"its integers go from {info.type.qmin} to {info.type.qmax}",
                )
        return [x.astype(info.dtype) for info, x in zip(self.info.inputs, arrays, strict=True)]


def _port(info: TensorInfo) -> FilePort:
    return info.port or plain_port(info.stored)
