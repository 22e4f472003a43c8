"""Single entries of AIMET's files of encodings, in the words of each of its versions: what they mean, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.encodings import read_encodings


def read(tmp_path, entry: Any, version: str = "1.0.0"):
    """The encoding of a tensor `t` that has this entry; None for floating point."""
    data: dict[str, Any] = {"version": version}
    if version == "0.6.1":
        data.update(activation_encodings={"t": entry}, param_encodings={})
    elif version == "1.0.0":
        data.update(activation_encodings=[{"name": "t", **entry}], param_encodings=[])
    else:
        data.update(encodings=[{"name": "t", **entry}])
    path = tmp_path / "t.encodings"
    path.write_text(json.dumps(data))
    return read_encodings(path).get("t")


OLD = {"bitwidth": 8, "dtype": "int", "is_symmetric": "True", "scale": 0.5, "offset": -128}
NEW = {"dtype": "INT", "enc_type": "PER_TENSOR", "bw": 8, "is_sym": True, "scale": [0.5], "offset": [-128]}
LINEAR = {"output_dtype": "int8", "y_scale": 0.5, "y_zero_point": 0}
CASES: dict[str, tuple[str, Any, Any]] = {
    "old, symmetric": ("0.6.1", [OLD], (8, [0.5], [0], True)),
    "old, not symmetric": ("0.6.1", [{**OLD, "is_symmetric": "False"}], (8, [0.5], [128], False)),
    "old, symmetric with another offset": ("0.6.1", [{**OLD, "offset": -120}], (8, [0.5], [120], False)),
    "old, unsigned": ("0.6.1", [{**OLD, "is_symmetric": "False", "offset": 0}], (8, [0.5], [0], False)),
    "old, two channels": ("0.6.1", [OLD, {**OLD, "scale": 0.25}], (8, [0.5, 0.25], [0, 0], True)),
    "old, four bits": ("0.6.1", [{**OLD, "bitwidth": 4, "offset": -8}], (4, [0.5], [0], True)),
    "old, real": ("0.6.1", [{"bitwidth": 16, "dtype": "float"}], None),
    "old, two real channels": ("0.6.1", [{"bitwidth": 16, "dtype": "FLOAT"}] * 2, None),
    "old, several types": ("0.6.1", [OLD, {"bitwidth": 16, "dtype": "float"}], "its channels are of several types, or none"),
    "old, none": ("0.6.1", [], "its channels are of several types, or none"),
    "old, several widths": ("0.6.1", [OLD, {**OLD, "bitwidth": 4}], "its channels have different numbers of bits"),
    "symmetric": ("1.0.0", NEW, (8, [0.5], [0], True)),
    "not symmetric": ("1.0.0", {**NEW, "is_sym": False, "offset": [-3]}, (8, [0.5], [3], False)),
    "by channel": (
        "1.0.0",
        {**NEW, "enc_type": "PER_CHANNEL", "scale": [0.5, 1], "offset": [-128, -128]},
        (8, [0.5, 1], [0, 0], True),
    ),
    "one channel with another offset": (
        "1.0.0",
        {**NEW, "enc_type": "PER_CHANNEL", "scale": [0.5, 1], "offset": [-128, -127]},
        (8, [0.5, 1], [128, 127], False),
    ),
    "by block": ("1.0.0", {**NEW, "enc_type": "PER_BLOCK"}, "its type is PER_BLOCK, and blocks of weights are not supported"),
    "real": ("1.0.0", {"dtype": "FLOAT", "bw": 16}, None),
    "one bit": ("1.0.0", {**NEW, "bw": 1, "offset": [-1]}, (1, [0.5], [0], True)),
    "32 bits": ("1.0.0", {**NEW, "bw": 32, "offset": [-(2**31)]}, (32, [0.5], [0], True)),
    "no bits": ("1.0.0", {**NEW, "bw": 0}, "it has 0 bits"),
    "33 bits": ("1.0.0", {**NEW, "bw": 33}, "it has 33 bits"),
    "a truth value as bits": ("1.0.0", {**NEW, "bw": True}, "it has True bits"),
    "text as bits": ("1.0.0", {**NEW, "bw": "8"}, "it has 8 bits"),
    "no scale": ("1.0.0", {**NEW, "scale": [], "offset": []}, "a scale is no positive number"),
    "a scale of 0": ("1.0.0", {**NEW, "scale": [0.0]}, "a scale is no positive number"),
    "a negative scale": ("1.0.0", {**NEW, "scale": [-0.5]}, "a scale is no positive number"),
    "a scale without end": ("1.0.0", {**NEW, "scale": [1e39]}, "a scale is no positive number"),
    "the largest offset": ("1.0.0", {**NEW, "is_sym": False, "offset": [-255]}, (8, [0.5], [255], False)),
    "a larger offset": ("1.0.0", {**NEW, "is_sym": False, "offset": [-256]}, "an offset is no integer of 8 bits"),
    "a positive offset": ("1.0.0", {**NEW, "is_sym": False, "offset": [1]}, "an offset is no integer of 8 bits"),
    "half an offset": ("1.0.0", {**NEW, "is_sym": False, "offset": [-0.5]}, "an offset is no integer of 8 bits"),
    "linear": ("2.0.0", LINEAR, (8, [0.5], [0], True)),
    "linear, no zero point": ("2.0.0", {"output_dtype": "int4", "y_scale": 0.5}, (4, [0.5], [0], True)),
    "linear, unsigned": ("2.0.0", {**LINEAR, "output_dtype": "uint8", "y_zero_point": 200}, (8, [0.5], [200], False)),
    "linear, lowest": ("2.0.0", {**LINEAR, "y_zero_point": -128}, (8, [0.5], [-128], True)),
    "linear, too low": ("2.0.0", {**LINEAR, "y_zero_point": -129}, "an offset is no integer of 8 bits"),
    "linear, highest": ("2.0.0", {**LINEAR, "y_zero_point": 127}, (8, [0.5], [127], True)),
    "linear, too high": ("2.0.0", {**LINEAR, "y_zero_point": 128}, "an offset is no integer of 8 bits"),
    "linear, channels": ("2.0.0", {**LINEAR, "y_scale": [0.5, 1], "y_zero_point": [0, 1], "axis": 1}, (8, [0.5, 1], [0, 1], True)),
    "linear, real": ("2.0.0", {**LINEAR, "output_dtype": "float16"}, None),
    "linear, real without a scale": ("2.0.0", {"output_dtype": "float16"}, None),
    "linear, bfloat": ("2.0.0", {**LINEAR, "output_dtype": "bfloat16"}, None),
    "linear, blocks": ("2.0.0", {**LINEAR, "block_size": 32}, "blocks of weights are not supported"),
    "linear, rows of scales": ("2.0.0", {**LINEAR, "y_scale": [[0.5], [1]]}, "blocks of weights are not supported"),
    "linear, another type": ("2.0.0", {**LINEAR, "output_dtype": "complex64"}, "its type is complex64"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_entry(name, tmp_path):
    version, entry, wanted = CASES[name]
    if isinstance(wanted, str):
        with pytest.raises(N2D2Error, match=f"E315.*the encoding of 't' cannot be used: {wanted}"):
            read(tmp_path, entry, version)
        return
    found = read(tmp_path, entry, version)
    if wanted is None:
        assert found is None
        return
    bits, scale, zero, signed = wanted
    assert found is not None and (found.bits, found.signed) == (bits, signed) and found.scale.dtype == np.float32
    assert np.array_equal(found.scale, np.float32(scale)) and np.array_equal(found.zero, zero)
    assert found.axis == entry["axis"] if isinstance(entry, dict) and "axis" in entry else found.axis is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"version": "1.0.0", "activation_encodings": [{"bw": 8}], "param_encodings": []}', "an entry has no name"),
        ('{"version": "1.0.0", "activation_encodings": [3], "param_encodings": []}', "an entry has no name"),
        ('{"version": "1.0.0", "activation_encodings": [{"name": 3}]}', "an entry has no name"),
        ('{"version": "1.0.0", "param_encodings": "x"}', "its encodings are neither a table nor a list"),
        ("{", "the file is damaged, or no JSON"),
    ],
)
def test_files_without_meaning(text, wanted, tmp_path):
    (tmp_path / "t.encodings").write_text(text)
    with pytest.raises(N2D2Error, match=f"E315.*{wanted}"):
        read_encodings(tmp_path / "t.encodings")


def test_a_file_without_entries(tmp_path):
    (tmp_path / "t.encodings").write_text('{"version": "1.0.0"}')
    assert read_encodings(tmp_path / "t.encodings") == {}
