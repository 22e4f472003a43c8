"""A compiled export, called through its C interface with ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_size_t, c_ssize_t, c_uint64, c_void_p
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.sensor import StreamSource
from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.build import build_library
from n2d2py.exports.cpp.weights_file import WEIGHTS_FILE
from n2d2py.exports.writer import read_manifest
from n2d2py.graph import FilePort, InputContract
from n2d2py.postprocessing import PostProcessor, files_of, parse_post, with_files
from n2d2py.runtime.base import ArrayError, LayerInfo, Network, NetworkInfo, TensorInfo

API_VERSION = 3
"""Version of the C interface, and of the library as a package."""


class _Tensor(Structure):
    """`<name>_tensor` of the C interface."""

    _fields_ = [
        *((name, c_char_p) for name in ("name", "operation", "type")),
        *((name, c_int) for name in ("element_bytes", "rank", "height", "width", "channels")),
        ("scale", c_double),
        *((name, c_int) for name in ("zero_point", "low", "high")),
    ]


_CALLBACK = CFUNCTYPE(None, c_void_p, c_int, c_void_p, c_int, c_int)
_FUNCTIONS = {
    "name": (c_char_p, []),
    **dict.fromkeys(("api_version", "input_count", "output_count", "layer_count"), (c_int, [])),
    **dict.fromkeys(("arena_bytes", "arena_alignment"), (c_size_t, [])),
    **dict.fromkeys(("input", "output", "layer"), (POINTER(_Tensor), [c_int])),
    "forward_raw": (None, [POINTER(c_void_p), POINTER(c_void_p), c_void_p]),
    "forward_traced": (None, [POINTER(c_void_p), POINTER(c_void_p), c_void_p, _CALLBACK, c_void_p]),
    "copy_layer": (None, [c_int, c_void_p, c_int, c_int, c_void_p]),
}
_OPTIONAL = {
    "forward_to": (c_int, [c_uint64, POINTER(c_void_p), POINTER(c_void_p), c_void_p]),
    **dict.fromkeys(("inputs_to", "outputs_to"), (c_uint64, [c_uint64])),
    "layers_to": (c_int, [c_uint64]),
    **dict.fromkeys(("from_frame", "audio_begin", "audio_samples", "sensor_begin", "sensor_samples"), (c_int, None)),
    "reset": (None, [c_void_p]),
    "load_weights": (c_int, [c_void_p, c_size_t]),
    "device_name": (c_char_p, [c_void_p]),
    "status": (c_int, [c_void_p]),
    "status_text": (c_char_p, [c_int]),
}
"""Of exports whose outputs can be chosen; with -input-format, -audio and -sensor, with states, with a weights file, on a device."""


class _Library:
    """The functions of the C interface without their prefix; None for those of _OPTIONAL that the export does not have."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # functions are attributes of the object

    def __init__(self, path: Path, prefix: str):
        self._loaded, self._prefix = _load_copy(path, _stamp(path)), prefix
        for name, (result, arguments) in {**_FUNCTIONS, **_OPTIONAL}.items():
            function = getattr(self._loaded, f"{prefix}_{name}", None)
            if function is None and name in _FUNCTIONS:
                raise N2D2Error("E803", f"{path} lacks a function: {prefix}_{name}", remedy="export again")
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        if self.api_version() != API_VERSION:
            what = f"{path} has interface version {self.api_version()} instead of {API_VERSION}"
            raise N2D2Error("E803", what, remedy="export again with this version of n2d2py")
        if self.load_weights:
            self._load_weights(path.parents[1])
        if self.device_name:
            self._check_device()

    def call(self, name: str, *arguments: np.ndarray | int) -> int:
        """Call a function of -post with the memory of arrays, and integers."""
        function = getattr(self._loaded, f"{self._prefix}_{name}")
        return function(*(c_int(one) if isinstance(one, int) else c_void_p(one.ctypes.data) for one in arguments))

    def _check_device(self) -> None:
        """Open the device of the library; let inferences raise what their status says. Raise E803 without a device."""

        def checked(code: int, *_: object) -> int:
            if code:
                remedy = "install a driver of the device, or choose another device (see README.md of the export)"
                raise N2D2Error("E803", f"{self._prefix}: {self.status_text(code).decode()}", remedy=remedy)
            return code

        checked(self.status(None))
        for function in (self.forward_raw, self.forward_traced):
            function.restype, function.errcheck = c_int, checked

    def _load_weights(self, folder: Path) -> None:
        """Give the weights file of the export `folder` to its library; the memory that contains it stays as long as the library."""
        path = folder / "dnn/parameters" / WEIGHTS_FILE
        try:
            memory = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise N2D2Error("E803", f"{path} cannot be read: {error}", remedy="export again") from error
        if status := self.load_weights(memory.ctypes.data, memory.size):
            what = f"{path} does not contain the weights of {self._prefix}: error {status}"
            raise N2D2Error("E803", what, remedy="export again")
        vars(self._loaded).setdefault("mapped", []).append(memory)


def _stamp(path: Path) -> tuple[int, ...]:
    """Return the differences between a file and the one that replaced it."""
    try:
        status = path.stat()
    except OSError as error:
        raise N2D2Error("E803", f"{path} cannot be loaded: {error}", remedy="run make in the export") from error
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


@cache
def _load_copy(path: Path, stamp: tuple[int, ...]) -> ctypes.CDLL:
    """Load a copy under a separate name: a library that was built again is another one to the loader, which never unloads any."""
    handle, name = tempfile.mkstemp(prefix=path.stem, suffix=path.suffix)
    os.close(handle)
    try:
        shutil.copyfile(path, name)
        return ctypes.CDLL(name)
    except OSError as error:
        raise N2D2Error("E803", f"{path} cannot be loaded: {error}", remedy="run make clean in the export") from error
    finally:
        os.unlink(name)


class Export(Network):
    """The compiled project in a folder. Each call has its own arena, so threads may share the object."""

    def __init__(self, library: Path, prefix: str, details: Mapping[str, Any] = MappingProxyType({})):
        ports = details.get("ports", {})
        if "contract" in details:
            self.contract = InputContract.of(details["contract"])
        self._library = _Library(library, prefix)
        lib = self._library
        file_ports = [list(map(FilePort.of, ports.get(key, ()))) for key in ("inputs", "outputs")]
        counts = (lib.input_count(), lib.output_count())
        known = [one if len(one) == count else [None] * count for one, count in zip(file_ports, counts, strict=True)]
        self.info = NetworkInfo(
            lib.name().decode(),
            tuple(_tensor(lib.input(i), port) for i, port in enumerate(known[0])),
            tuple(_tensor(lib.output(i), port) for i, port in enumerate(known[1])),
            tuple(_layer(lib.layer(i)) for i in range(lib.layer_count())),
            lib.arena_bytes(),
        )
        if "post" in details:
            home = library.parents[1]
            text = with_files(details["post"], {key: str(home / name) for key, name in files_of(details["post"]).items()})
            self.post = parse_post(text).bind(self.info.inputs, self.info.outputs, self.contract.classes)

    def _processed(self, post: PostProcessor, outputs: list[np.ndarray]) -> list[np.ndarray]:
        read = [_to_hwc(outputs[index]) for index in sorted(set(post.config.reads.values()))]
        return post.compiled(self._library.call, list(zip(*read, strict=True)))

    def _framed(self, source: FrameSource, lines: np.ndarray, width: int) -> np.ndarray:
        convert, info, height = self._library.from_frame, self.info.inputs[0], source.layout.height(len(lines))
        if convert is None:
            raise ArrayError("this export does not convert frames", "export with -input-format")
        stored, state = _hwc_batch(1, info), np.zeros(4 * info.stored[1] * info.stored[3] + 16, np.uint32)
        sizes = c_int(width), c_int(height), c_ssize_t(lines.shape[1])
        if convert(c_void_p(lines.ctypes.data), *sizes, c_void_p(stored.ctypes.data), c_void_p(state.ctypes.data)):
            raise ArrayError(f"a frame of {width}x{height} cannot be converted", "export again")
        return _nchw(stored)

    def _streamed(self, source: StreamSource, samples: np.ndarray, piece: int) -> np.ndarray:
        info = self.info.inputs[0]
        begin, push = (getattr(self._library, f"{source.stem}_{name}") for name in ("begin", "samples"))
        if begin is None:
            raise ArrayError("this export does not convert its input", f"export with {source.option}")
        stored = _hwc_batch(1, info)
        words = np.zeros(2 * source.fft + 2 * source.mels + 16 if isinstance(source, AudioSource) else 0, np.uint32)
        state = [c_void_p(words.ctypes.data)] if len(words) else []
        begin(*state, c_void_p(stored.ctypes.data))
        step = piece or len(samples) or 1
        for part in (samples[first : first + step] for first in range(0, len(samples), step)):
            push(*state, c_void_p(part.ctypes.data), c_int(len(part)), c_void_p(stored.ctypes.data))
        return _nchw(stored)

    def _run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        return self._each(inputs, self._library.forward_raw)

    def _run_for(self, inputs: list[np.ndarray], outputs: list[int]) -> list[np.ndarray]:
        results = self._each(inputs, partial(self._library.forward_to, self._bits(outputs)))
        return [results[index] for index in outputs]

    def _needed(self, outputs: list[int]) -> set[int]:
        bits = self._library.inputs_to(self._bits(outputs)) if self._library.forward_to else -1
        return {index for index in range(len(self.info.inputs)) if bits >> index & 1}

    def layers_to(self, outputs: Sequence[str] | str) -> int:
        """Return the number of layers that run for the named outputs.

        Raises:
            ArrayError: E804 for outputs that the network does not have, or does not compute alone.
        """
        chosen = self._chosen(outputs)
        wants_all = len(set(chosen)) == len(self.info.outputs)
        return len(self.info.layers) if wants_all else self._library.layers_to(self._bits(chosen))

    def _bits(self, outputs: list[int]) -> int:
        if not self._library.forward_to:
            raise ArrayError(
                "this export computes all of its outputs at once: its inputs arrive row by row, or it has more than 64 outputs",
                "export with StreamInput=0, or leave out the choice of outputs",
            )
        return sum(1 << index for index in set(outputs))

    def _run_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        taps = [_hwc_batch(len(inputs[0]), info) for info in self.info.layers]
        computed = [np.zeros(info.stored[2] if len(info.stored) == 4 else 1, bool) for info in self.info.layers]
        indices = iter(range(len(inputs[0])))

        def forward(sources, results, arena):
            index = next(indices)

            @_CALLBACK
            def copy(user, layer, base, first, stop):
                computed[layer][first:stop] = True
                self._library.copy_layer(layer, base, first, stop, taps[layer][index].ctypes.data)

            self._library.forward_traced(sources, results, arena, copy, None)

        self._each(inputs, forward)
        return {
            info.name: _masked_lines(_nchw(values), ~lines)
            for info, values, lines in zip(self.info.layers, taps, computed, strict=True)
            if lines.any()
        }

    def _each(self, inputs: list[np.ndarray], forward) -> list[np.ndarray]:
        """Call forward(sources, results, arena) for each stimulus; return the outputs."""
        sources = [_to_hwc(x) for x in inputs]
        results = [_hwc_batch(len(inputs[0]), info) for info in self.info.outputs]
        alignment = self._library.arena_alignment()
        memory = np.empty(self.info.arena_bytes + alignment, np.uint8)
        arena = None if self._library.device_name else c_void_p(memory.ctypes.data + -memory.ctypes.data % alignment)
        if self._library.reset is not None:
            self._library.reset(arena)
        for index in range(len(inputs[0])):
            forward(_pointers(sources, index), _pointers(results, index), arena)
        return list(map(_nchw, results))


def load_export(path: Path | str) -> Export:
    """Return the compiled export in folder `path`; its library is built first when it is missing or stale.

    Raises:
        N2D2Error: E805 when `path` is not a C++ export; E801, E802, E807 when it cannot be built; E803 when the
            library cannot be loaded.
    """
    folder = Path(path).resolve()
    manifest = read_manifest(folder)
    if manifest is None or "namespace" not in manifest.get("details", {}):
        raise N2D2Error("E805", f"{path} is not a C++ export", remedy="give the folder written by -export CPP")
    prefix = manifest["details"]["namespace"]
    library = folder / "lib" / f"lib{prefix}.so"
    build_library(folder, library)
    return Export(library, prefix, manifest["details"])


def _tensor(pointer, port: FilePort | None = None) -> TensorInfo:
    raw = pointer.contents
    text = raw.type.decode()
    bits, is_float = 8 * raw.element_bytes, text.startswith("float")
    full, plain = raw.low == -(1 << (bits - 1)), raw.low == raw.high == 0
    known = {"scale": raw.scale, "zero_point": raw.zero_point, "full": full and not is_float, "plain": plain and not is_float}
    kind = NumType(bits, signed=not text.startswith("u"), is_float=is_float, **known)
    shape = {2: (1, raw.channels), 3: (1, raw.channels, raw.width), 4: (1, raw.channels, raw.height, raw.width)}[raw.rank]
    return TensorInfo(raw.name.decode(), shape, kind, port)


def _layer(pointer) -> LayerInfo:
    result = _tensor(pointer)
    return LayerInfo(result.name, result.stored, result.type, operation=pointer.contents.operation.decode())


def _to_hwc(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _hwc_batch(count: int, info: TensorInfo) -> np.ndarray:
    return np.zeros((count, *info.stored[2:], info.stored[1]), info.dtype)


def _nchw(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(values, -1, 1))


def _masked_lines(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(values, np.broadcast_to(missing[:, None], values.shape)) if missing.any() else values


def _pointers(arrays: list[np.ndarray], index: int):
    return (c_void_p * len(arrays))(*(x.ctypes.data + index * x.strides[0] for x in arrays))
