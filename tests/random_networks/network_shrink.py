"""The smallest network that still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from network_chain import Failure, run_batch
from network_generator import Layer, Spec

__all__ = ["report", "shrink"]

Test = Callable[[Spec], Failure | None]

_DEFAULTS = {"KernelDims": "1 1", "StrideDims": "1 1", "PaddingDims": "0 0", "DilationDims": "1 1"}
_NEEDED = (
    *"NbOutputs Pooling PoolDims Perm Norm OutputWidth OutputHeight Mode TopPadding LeftPadding".split(),
    *"BottomPadding RightPadding KernelDims".split(),
)


def fails_alone(folder: Path) -> Test:
    """Whether a network fails, by a chain of its own; refused ones do not count."""

    def test(spec: Spec) -> Failure | None:
        outcome = run_batch([spec], folder)[0]
        return outcome if isinstance(outcome, Failure) else None

    return test


def shrink(spec: Spec, failure: Failure, test: Test, tries: int = 200) -> tuple[Spec, Failure]:
    """Removes layers, keys and options and makes sizes smaller as long as the kind of failure stays."""
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(spec):
            tries -= 1
            found = test(smaller)
            if found is not None and found.kind == failure.kind:
                spec, failure, progress = smaller, found, True
                break
            if tries <= 0:
                break
    return spec, failure


def _smaller(spec: Spec) -> Iterator[Spec]:
    """Simpler networks, those that remove most first. They need not be valid."""
    layers = spec.layers
    for index in range(len(layers) - 1, -1, -1):  # what comes behind a layer
        kept = _ancestors(layers, layers[index].name)
        if len(kept) < len(layers):
            yield replace(spec, layers=kept)
    for layer in layers:  # a layer alone, its readers reading its first parent
        if len(layers) > 1:
            rest = [
                replace(
                    other,
                    parents=tuple(
                        dict.fromkeys(layer.parents[0] if parent == layer.name else parent for parent in other.parents)
                    ),
                )
                for other in layers
                if other is not layer
            ]
            yield replace(spec, layers=tuple(rest))
    for position in range(0, len(spec.options), 2):
        yield replace(spec, options=spec.options[:position] + spec.options[position + 2 :])
    for key in spec.parameters:
        yield replace(spec, parameters={k: v for k, v in spec.parameters.items() if k != key})
    for index, layer in enumerate(layers):
        for keys in _simpler_keys(layer):
            yield replace(spec, layers=(*layers[:index], replace(layer, keys=keys), *layers[index + 1 :]))
        if len(layer.parents) > 1:
            yield replace(spec, layers=(*layers[:index], replace(layer, parents=layer.parents[:-1]), *layers[index + 1 :]))
    height, width, channels = spec.size
    for size in ((height // 2, width, channels), (height, width // 2, channels), (height, width, 1)):
        if min(size) > 0 and size != spec.size:
            yield replace(spec, size=size)


def _ancestors(layers: tuple[Layer, ...], name: str) -> tuple[Layer, ...]:
    needed = {name}
    for layer in reversed(layers):
        if layer.name in needed:
            needed.update(layer.parents)
    return tuple(layer for layer in layers if layer.name in needed)


def _simpler_keys(layer: Layer) -> Iterator[dict[str, str]]:
    for key, value in layer.keys.items():
        if key not in _NEEDED:
            yield {k: v for k, v in layer.keys.items() if k != key}
        elif key in _DEFAULTS and value != _DEFAULTS[key]:
            yield {**layer.keys, key: _DEFAULTS[key]}
        elif key == "NbOutputs" and value != "1" and layer.type in ("Conv", "Deconv", "Fc"):
            yield {**layer.keys, key: "1"}
            yield {**layer.keys, key: str(int(value) // 2)}


def report(spec: Spec, failure: Failure) -> str:
    """The failure with all that reproduces it."""
    models = "".join(
        f"; {layer.name}.onnx, as onnx.parser.parse_model reads it\n{layer.model}\n" for layer in spec.layers if layer.model
    )
    return (
        f"seed {spec.seed}: {failure.kind}: {failure.text}\n\n{spec.command()}\n\n; net.ini\n{spec.ini()}\n"
        f"{models}; params.ini\n{spec.parameter_text()}"
    )
