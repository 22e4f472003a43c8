"""AIMET's .encodings for small ONNX networks, in the words of its three versions, drawn by seed, with entries that are wrong."""

from __future__ import annotations

import random
from typing import Any

import onnx

VERSIONS = ("0.6.1", "1.0.0", "2.0.0")
KINDS = ("int8", "uint8", "int4", "uint4", "int16", "uint16", "int32", "float16", "bfloat16", "int", "8", "int33", "uint0")


def draw_encodings(model: onnx.ModelProto, rng: random.Random) -> Any:
    """What a file of encodings holds."""
    graph = model.graph
    version = rng.choice(VERSIONS)
    sizes = {each.name: list(each.dims) for each in graph.initializer}
    names = [*sizes, *(name for node in graph.node for name in node.output), *(each.name for each in graph.input)]
    names = rng.sample(names, min(len(names), rng.randint(1, 5)))
    if rng.random() < 0.15:
        names.append("nowhere")
    strange = rng.choice(names) if rng.random() < 0.5 else None
    entries = {name: _entry(version, sizes.get(name, []), name == strange, rng) for name in names}
    if strange and rng.random() < 0.1:
        entries[rng.choice(names)] = rng.choice([[], {}, 3, None, [{}], "text"])
    if version == "0.6.1":
        cut = rng.randint(0, len(names))
        return {
            "version": version,
            "activation_encodings": {name: entries[name] for name in names[:cut]},
            "param_encodings": {name: entries[name] for name in names[cut:]},
        }
    listed = [{"name": name, **entry} if isinstance(entry, dict) else entry for name, entry in entries.items()]
    if strange and rng.random() < 0.05:
        listed.append({"bw": 8})
    if version == "2.0.0":
        return {"version": version, "encodings": listed}
    cut = rng.randint(0, len(listed))
    return {"version": version, "activation_encodings": listed[:cut], "param_encodings": listed[cut:]}


def _entry(version: str, dims: list[int], strange: bool, rng: random.Random) -> Any:
    """An entry of a tensor; a strange one may be wrong in a way or two."""
    count = rng.choice([1, 1, *dims, 2]) if strange else rng.choice([1, 1, dims[0], dims[0], dims[-1]]) if dims else 1
    scales: list[Any] = [rng.choice([0.5, 0.25, 0.01]) for _ in range(count)]
    if strange and rng.random() < 0.1:
        scales[-1] = rng.choice([0, -1, 1e-60, 1e60, "a"])
    if version == "2.0.0":
        return _linear(scales, len(dims), strange, rng)
    bits = rng.choice([8, 8, 4, 16, 2, 1, 32, 33, 0, 8.0, True]) if strange else rng.choice([8, 8, 4, 16])
    middle = -(2 ** (int(bits) - 1)) if int(bits) else 0
    offsets = [rng.choice([middle, 0, -3, middle + 1, 1, -0.5]) if strange else rng.choice([middle, middle, 0, -3])] * count
    if strange and rng.random() < 0.1:
        offsets = offsets[:-1]
    if version == "0.6.1":
        symmetric = rng.choice([{"is_symmetric": word} for word in ("True", "true", "False", True)] + [{}])
        types = ["int", "int", "INT", "float"] if strange else ["int"]
        entries = [
            {"bitwidth": bits, "dtype": rng.choice(types), "scale": scale, "offset": offset, **symmetric}
            for scale, offset in zip(scales, offsets, strict=False)
        ]
        if strange and entries and rng.random() < 0.2:
            entries[-1]["bitwidth"] = 4
        return entries if rng.random() < 0.9 else [{"bitwidth": 16, "dtype": "float"}] * count
    entry: dict[str, Any] = {"dtype": rng.choice(["INT", "FLOAT", "int"] if strange else ["INT"]), "bw": bits}
    entry |= {"scale": scales, "offset": offsets}
    if rng.random() < 0.9:
        entry["enc_type"] = "PER_CHANNEL" if count > 1 else rng.choice(["PER_TENSOR", "PER_CHANNEL"])
    if strange and rng.random() < 0.2:
        entry["enc_type"] = "PER_BLOCK"
    if rng.random() < 0.9:
        entry["is_sym"] = rng.random() < 0.7
    return entry


def _linear(scales: list[Any], rank: int, strange: bool, rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(KINDS if strange else KINDS[:9])
    entry: dict[str, Any] = {"output_dtype": kind}
    if not strange or rng.random() < 0.9:
        entry["y_scale"] = scales if len(scales) > 1 or rng.random() < 0.5 else scales[0]
    if rng.random() < 0.6:
        zero = rng.choice([0, 3, 127, 128, -128, -129, 255, 256, 0.5] if strange else [0, 0, 3])
        entry["y_zero_point"] = [zero] * len(scales) if len(scales) > 1 else zero
    if len(scales) > 1 and rng.random() < 0.8:
        entry["axis"] = rng.choice([0, 1, max(rank - 1, 0), rank, -1, -rank, -rank - 1] if strange else [0, 0, 0, 1, -1])
    if strange and rng.random() < 0.1:
        entry |= rng.choice([{"block_size": 4}, {"y_scale": [scales, scales]}])
    return entry
