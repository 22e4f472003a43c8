"""AIMET .encodings next to an ONNX file: the quantizer of each tensor becomes a QONNX Quant node.

The formats are those of aimet-onnx: 0.6.1 (an entry for each channel), 1.0.0 (lists), 2.0.0 (the terms of QuantizeLinear). The
first two are y = s (clamp(rint(x / s) - o, 0, 2^bits - 1) + o) with an offset o of at most 0. The last is y = s (clamp(rint(x /
s) + z, limits of the type) - z).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from n2d2py import log
from n2d2py.errors import Location, N2D2Error, join_names
from n2d2py.files import read_regular
from n2d2py.naming import FreshNames

_DOMAIN = "qonnx.custom_op.general"
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Encoding:
    """Quantization parameters of a tensor.

    Attributes:
        bits: integer width, 1 to 32.
        scale: float32 (1,) or one for each channel.
        zero: the zero points, whole numbers, of the same shape.
        axis: channel axis; None if the format leaves it to the consumer.
    """

    bits: int
    scale: np.ndarray
    zero: np.ndarray
    signed: bool
    axis: int | None = None


class _InvalidEncoding(ValueError):
    """An unusable entry; the message is a clause with the reason."""


def read_encodings(path: Path) -> dict[str, Encoding]:
    """Return the encodings of a file by tensor name, without floating-point tensors.

    Raises N2D2Error: E315 an unreadable or damaged file, or an unsupported feature (block quantization).
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _error(path, f"the file has {path.stat().st_size:,} bytes")
        data = json.loads(read_regular(path).decode("utf-8"))
    except OSError as error:
        raise _error(path, f"the file cannot be read ({error.strerror})", "check the path") from None
    except (ValueError, RecursionError):
        raise _error(path, "the file is damaged, or not JSON") from None
    encodings: dict[str, Encoding] = {}
    for name, entry in _list_entries(data, path):
        try:
            encoding = _read_entry(entry)
        except (_InvalidEncoding, TypeError, KeyError, AttributeError, OverflowError, ValueError) as error:
            what = str(error) if isinstance(error, _InvalidEncoding) else "it is not as AIMET writes it"
            raise _error(path, f"the encoding of '{name}' cannot be used: {what}") from None
        if encoding is not None:
            encodings[name] = encoding
    return encodings


def quantize_by(proto: onnx.ModelProto, path: Path) -> None:
    """Insert a Quant after each tensor of `proto` that the encodings in `path` name, in place.

    Raises N2D2Error: E315 as `read_encodings`, and if the channels of an encoding do not fit the tensor.
    """
    encodings, graph = read_encodings(path), proto.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    written = {name: (node, position) for node in graph.node for position, name in enumerate(node.output) if name}
    readers: dict[str, list[_Place]] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, position))
    names = {*written, *weights, *(value.name for value in graph.input)}
    missing = _missing(encodings, names, path)
    fresh, quantizers = FreshNames(names), dict[str, list[onnx.NodeProto]]()  # by the tensor that they read
    for name, encoding in encodings.items():
        if name in written:  # the quantized tensor gets the name: consumers and outputs are unchanged
            if encoding.scale.size > 1:
                raise _misfit(path, name, encoding, "the result of a layer")
            real, (node, position) = fresh(f"{name}_real"), written[name]
            node.output[position] = real
            quantizers[real] = [_add_quantizer(graph, fresh, real, name, encoding, ())]
            continue
        tensor = weights.get(name)
        for axis, places in _group_by_axis(readers.get(name, []), tensor, encoding).items() if name in names else ():
            shape = _channel_shape(path, name, encoding, axis, tensor)
            quantized = fresh(f"{name}_quantized")
            for node, position in places:
                node.input[position] = quantized
            quantizers.setdefault(name, []).append(_add_quantizer(graph, fresh, name, quantized, encoding, shape))
    _insert_after_producers(graph, quantizers)
    if all(entry.domain != _DOMAIN for entry in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    log.notice("%s: %d tensors are quantized by the encodings", path, len(encodings) - missing)


def _missing(encodings: dict[str, Encoding], names: set[str], path: Path) -> int:
    """Return the number of encodings of tensors that the model does not have, with a warning; refuse it if none has one."""
    missing = [name for name in encodings if name not in names]
    remedy = "give the encodings exported with this model"
    if len(missing) == len(encodings):
        raise _error(path, "none of its tensors is in the model", remedy)
    if missing:
        count = f"{len(missing)} of {len(encodings)}"
        what = f"{count} encodings belong to tensors that the model does not have: {join_names(missing)}"
        log.warning("W306", what, where=Location(str(path)), remedy=remedy)
    return len(missing)


_Place = tuple[onnx.NodeProto, int]


def _channel_shape(
    path: Path, name: str, encoding: Encoding, axis: int | None, weights: onnx.TensorProto | None
) -> tuple[int, ...]:
    """Return the shape of the scales that broadcasts to an input or a constant."""
    size = encoding.scale.size
    if size == 1:
        return ()
    if weights is None or axis is None or list(weights.dims)[axis : axis + 1] != [size]:
        raise _misfit(path, name, encoding, "an input of the model" if weights is None else "x".join(map(str, weights.dims)))
    return tuple(size if each == axis else 1 for each in range(len(weights.dims)))


def _add_quantizer(
    graph: onnx.GraphProto, fresh: FreshNames, source: str, result: str, encoding: Encoding, shape: tuple[int, ...]
) -> onnx.NodeProto:
    """Return a Quant node, whose constants are added to the graph."""
    constants = {"scale": encoding.scale.reshape(shape), "zero_point": encoding.zero.reshape(shape), "bits": encoding.bits}
    tensors = [numpy_helper.from_array(np.asarray(x, np.float32), fresh(f"{result}_{stem}")) for stem, x in constants.items()]
    graph.initializer.extend(tensors)
    name, inputs = fresh(f"{result}_quantizer"), [source, *(tensor.name for tensor in tensors)]
    attributes = {"signed": int(encoding.signed), "narrow": 0, "rounding_mode": "ROUND"}
    return helper.make_node("Quant", inputs, [result], name=name, domain=_DOMAIN, **attributes)


def _insert_after_producers(graph: onnx.GraphProto, quantizers: dict[str, list[onnx.NodeProto]]) -> None:
    """Insert each node after the producer of the tensor that it reads; those of inputs and constants are the first."""
    produced = {name for node in graph.node for name in node.output}
    order = [node for source, nodes in quantizers.items() if source not in produced for node in nodes]
    for node in graph.node:
        order += [node, *(quantizer for name in node.output for quantizer in quantizers.get(name, ()))]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
    del graph.node[:]
    graph.node.extend(copies)


def _misfit(path: Path, name: str, encoding: Encoding, tensor: str) -> N2D2Error:
    what = f"the encoding of '{name}' has {encoding.scale.size} channels, which do not fit the tensor ({tensor})"
    return _error(path, what, "give the encodings exported with this model")


def _group_by_axis(
    places: list[_Place], weights: onnx.TensorProto | None, encoding: Encoding
) -> dict[int | None, list[_Place]]:
    groups: dict[int | None, list[_Place]] = {}
    for node, position in places:
        axis = None
        if encoding.scale.size > 1 and weights is not None:
            axis = _channel_axis(node, position) if encoding.axis is None else encoding.axis
            axis += len(weights.dims) if axis < 0 else 0
        groups.setdefault(axis, []).append((node, position))
    return groups


def _channel_axis(node: onnx.NodeProto, position: int) -> int:
    """Return the axis of the output channels of an operand."""
    if position != 1:
        return 0
    is_transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return {"MatMul": -1, "Gemm": 0 if is_transposed else 1, "ConvTranspose": 1}.get(node.op_type, 0)


def _list_entries(data: Any, path: Path) -> Iterable[tuple[str, Any]]:
    if not isinstance(data, Mapping) or not isinstance(data.get("version"), str):
        raise _error(path, "it has no version", "export it with AIMET for ONNX, not for PyTorch (_torch.encodings)")
    names = ("encodings",) if "encodings" in data else ("activation_encodings", "param_encodings")
    try:
        for group in (data.get(name, {}) for name in names):
            yield from ((str(entry["name"]), entry) for entry in group) if isinstance(group, list) else group.items()
    except (TypeError, KeyError, AttributeError):
        raise _error(path, "its encodings are neither a table nor a list of entries with names") from None


def _read_entry(entry: Any) -> Encoding | None:
    """Return the encoding of an entry; None for a floating-point tensor."""
    if isinstance(entry, list):
        return _read_channel_list(entry)
    if "output_dtype" in entry:
        return _read_quantize_linear(entry)
    if str(entry.get("dtype", "INT")).upper() == "FLOAT":
        return None
    kind = entry.get("enc_type", "PER_TENSOR")
    if kind not in ("PER_TENSOR", "PER_CHANNEL"):
        raise _InvalidEncoding(f"its type is {kind}, and blocks of weights are not supported")
    return _read_offsets(entry["bw"], np.asarray(entry["scale"]), np.asarray(entry["offset"]), entry.get("is_sym", False))


def _read_channel_list(entries: list) -> Encoding | None:
    """Return the encoding of format 0.6.1: one entry for the tensor, or one for each channel."""
    kinds, bits = {str(each["dtype"]).lower() for each in entries}, {each.get("bitwidth") for each in entries}
    if kinds == {"float"}:
        return None
    if kinds != {"int"}:
        raise _InvalidEncoding("its channels are of several types, or none")
    if len(bits) != 1:
        raise _InvalidEncoding("its channels have different numbers of bits")
    scale, offset = (np.array([each[key] for each in entries], np.float64) for key in ("scale", "offset"))
    symmetric = str(entries[0].get("is_symmetric", "False")).lower() == "true"
    return _read_offsets(bits.pop(), scale, offset, symmetric)


def _read_offsets(bits: Any, scale: np.ndarray, offset: np.ndarray, symmetric: bool) -> Encoding:
    """Return the encoding for unsigned integers with an offset; symmetric tensors become signed with zero point 0."""
    bits = _read_bits(bits)
    middle = 2 ** (bits - 1)
    signed = bool(symmetric) and bool(np.all(offset == -middle))
    zero = -offset.astype(np.float64) - (middle if signed else 0)
    return _checked_encoding(bits, scale, zero, signed, None)


def _read_quantize_linear(entry: Mapping[str, Any]) -> Encoding | None:
    kind = str(entry["output_dtype"])
    if kind.startswith(("float", "bfloat")):
        return None
    digits = kind.removeprefix("u").removeprefix("int")
    if not digits.isdigit():
        raise _InvalidEncoding(f"its type is {kind}")
    scale, zero, axis = np.asarray(entry["y_scale"], np.float64), entry.get("y_zero_point"), entry.get("axis")
    if entry.get("block_size") or scale.ndim > 1:
        raise _InvalidEncoding("blocks of weights are not supported")
    zero, axis = 0 if zero is None else zero, None if axis is None else int(axis)
    return _checked_encoding(_read_bits(int(digits)), scale, np.asarray(zero), not kind.startswith("u"), axis)


def _read_bits(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 32:
        raise _InvalidEncoding(f"it has {value} bits")
    return value


def _checked_encoding(bits: int, scale: np.ndarray, zero: np.ndarray, signed: bool, axis: int | None) -> Encoding:
    with np.errstate(over="ignore"):  # what is too large is refused below
        scale = np.asarray(scale, np.float64).astype(np.float32).reshape(-1)
    zero = np.broadcast_to(np.asarray(zero, np.float64).reshape(-1), scale.shape)
    if not scale.size or not np.all((scale > 0) & np.isfinite(scale)):
        raise _InvalidEncoding("a scale is not a positive number")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if not np.all((zero == np.rint(zero)) & (zero >= low) & (zero <= high)):
        raise _InvalidEncoding(f"an offset is not a {bits}-bit integer")
    return Encoding(bits, scale, zero, signed, axis)


def _error(path: Path, what: str, remedy: str = "export the model and its encodings again with aimet-onnx") -> N2D2Error:
    return N2D2Error("E315", what, where=Location(str(path)), remedy=remedy)
