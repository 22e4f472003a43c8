"""Runner of an export in ncnn with its standard kernels."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.exports.stimuli import read_arrays
from n2d2py.graph import QuantGraph
from n2d2py.runtime.runner import STEP_SLACK, PackageRunner, stack_samples

_UNROUNDED_SLACK = 8.5 / 255
"""Tolerance without RoundBlobs: float layers read unrounded values, half a step off, and may magnify this."""
_WINOGRAD_SLACK = 1e-3
"""Relative tolerance of Winograd convolutions, of the largest magnitude."""


class NcnnRunner(PackageRunner):
    """Runner of the network in ncnn, one sample at a time.

    Attributes:
        settings: of `net.opt`: float32 and int8 on one core, without packed channels if these are not exact.
    """

    label = "ncnn"
    remedy = "pip install n2d2py[ncnn]"
    module = "ncnn"
    settings: Mapping[str, Any] = {
        "num_threads": 1,
        "use_vulkan_compute": False,
        **{f"use_{name}": False for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage", "bf16_packed")},
    }

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        super().__init__(folder, details)
        self.slack = _WINOGRAD_SLACK if details["simulated"] else STEP_SLACK if details["rounded"] else _UNROUNDED_SLACK
        if details["unpacked"]:
            self.settings = {**self.settings, "use_packing_layout": False}

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        inputs = read_arrays(self._folder, len(graph.inputs), count)
        net, wanted = open_network(self._folder, self._details, self.settings), list(graph.outputs)
        samples = log.progress(zip(*inputs, strict=True), "running the network", total=count, unit="stimulus")
        results = stack_samples(_run_sample(net, self._details, sample, wanted) for sample in samples)
        return {
            name: graph.type(name).quantize(values.reshape(count, *graph.shape(name)[1:])) for name, values in results.items()
        }

    def network(self) -> Any:
        return _Layers(self._details, open_network(self._folder, self._details, {**self.settings, "lightmode": False}))

    def sizes(self) -> dict[str, int]:
        return {name: (self._folder / self._details[name]).stat().st_size for name in ("param", "bin")}


class _Layers:
    """The network with all its blobs kept."""

    def __init__(self, details: Mapping[str, Any], net: Any):
        self._details, self._net = details, net

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        net, details, blobs = self._net, self._details, list(self._details["blobs"])
        return stack_samples(_run_sample(net, details, sample, blobs, keep=True) for sample in zip(*inputs, strict=True))


def open_network(folder: Path, details: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Return the network loaded by ncnn."""
    net = import_module("ncnn").Net()
    for name, value in settings.items():
        setattr(net.opt, name, value)
    for load, name in ((net.load_param, "param"), (net.load_model, "bin")):
        if load(str(folder / details[name])) != 0:
            raise RuntimeError(f"ncnn does not read {details[name]}")
    return net


def _run_sample(
    net: Any, details: Mapping[str, Any], sample: tuple[np.ndarray, ...], wanted: list[str], keep: bool = False
) -> dict[str, np.ndarray]:
    """Return the real values of tensors (C, H, W) or (C), for the stored inputs of one sample."""
    library = import_module("ncnn")
    extractor = net.create_extractor()
    extractor.set_light_mode(not keep)
    for name, stored in zip(details["inputs"], sample, strict=True):
        real = NumType(**details["types"][name]).dequantize(stored)
        extractor.input(details["blobs"][name], library.Mat(np.ascontiguousarray(real, np.float32)).clone())
    results = {}
    for name in wanted:
        status, blob = extractor.extract(details["blobs"][name])
        if status != 0:
            raise RuntimeError(f"ncnn does not compute '{name}'")
        values = np.array(blob, np.float32)
        results[name] = values * np.float32(details["types"][name]["scale"]) if name in details["stored"] else values
    return results
