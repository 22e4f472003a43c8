"""The files of the error cases: a workspace that works, and inputs that are broken in one way each."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

NETWORK = """\
[database]
Type=Numpy_Database
DataPath=data.npz
Validation=0.5

[sp]
SizeX=8
SizeY=8

[conv]
Input=sp
Type=Conv
NbOutputs=4
KernelDims=3 3
ActivationFunction=Rectifier

[pool]
Input=conv
Type=Pool
Pooling=Max
NbOutputs=4
PoolDims=2 2
Stride=2
Mapping.Size=1

[fc]
Input=pool
Type=Fc
NbOutputs=3

[fc.Target]
"""


def write_workspace(folder: Path) -> None:
    """net.ini, data.npz and weights.npz, and the same network's layers as net.onnx."""
    (folder / "net.ini").write_text(NETWORK)
    _save_data(folder / "data.npz")
    np.savez(folder / "weights.npz", **_weights())
    onnx.save(_model(), folder / "net.onnx")


def _save_data(path: Path, **changes: np.ndarray) -> None:
    random = np.random.default_rng(1)
    arrays = {"x": random.integers(0, 256, (12, 1, 8, 8)).astype(np.uint8), "y": np.arange(12) % 3, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def _weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    return {
        "conv_weights": random.normal(0, 0.4, (4, 1, 3, 3)).astype(np.float32),
        "conv_biases": np.zeros(4, np.float32),
        "fc_weights": random.normal(0, 0.2, (3, 36)).astype(np.float32),
        "fc_biases": np.zeros(3, np.float32),
    }


def _model(
    body: str = "c = Conv (x0, w) y = Relu (c)",
    inputs=((1, 1, 8, 8),),
    outputs=("y",),
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 13,
    element_type: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model of nodes in ONNX's text form; by default a convolution 4x3x3 with a Relu."""
    graph = helper.make_graph(
        onnx.parser.parse_graph(f"nodes () => () {{ {body} }}").node,
        "net",
        [helper.make_tensor_value_info(f"x{i}", element_type, shape) for i, shape in enumerate(inputs)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {"w": _weights()["conv_weights"]}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


# ---- any file -----------------------------------------------------------------------------------


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.mkdir(parents=True)


def garbage(path: Path) -> None:
    path.write_bytes(bytes(np.random.default_rng(3).integers(0, 256, 4000, dtype=np.uint8)))


def control_bytes(path: Path) -> None:
    path.write_bytes(b"[sp]\nSizeX=8\n\x00\x01\n")


def latin1(path: Path) -> None:
    path.write_bytes("[sp]\nSizeX=8 ; gr\xf6\xdfe\n".encode("latin-1"))


# ---- ONNX ---------------------------------------------------------------------------------------


FLAT, FILLED = "f = Flatten (x0) y = Gemm (f, w)", "k = ConstantOfShape (s) y = Add (x0, k)"
MODELS: dict[str, dict[str, Any]] = {
    "opset_5": {"opset": 5},
    "opset_99": {"opset": 99},
    "unsupported_operators": {
        "body": "c = Conv (x0, w) d = Det (c) e1 = NonZero (c) e2 = NonZero (e1) y = Relu (e2)",
        "outputs": ("y", "d"),
    },
    "cyclic_onnx": {"body": "c = Conv (z, w) z = Relu (c) y = Add (z, x0)"},
    "no_outputs": {"outputs": ()},
    "empty_output": {"body": "c = Conv (x0, w) y = Neg (e)", "weights": {"e": np.zeros(0, np.float32)}},
    "unknown_sizes": {"inputs": ((None, 1, "h", "w"),)},
    "no_input": {"body": "y = Relu (w)", "inputs": ()},
    "two_inputs": {"body": "s = Add (x0, x1) y = Conv (s, w)", "inputs": ((1, 1, 8, 8), (1, 1, 8, 8))},
    "duplicate_names": {"body": "y = Conv (x0, w) y = Relu (y)"},
    "wrong_rank": {"weights": {"w": np.ones((4, 9), np.float32)}},
    "wrong_channels": {"weights": {"w": np.ones((4, 3, 3, 3), np.float32)}},
    "zero_sized_weights": {"weights": {"w": np.ones((0, 1, 3, 3), np.float32)}},
    "large_kernel": {"weights": {"w": np.ones((4, 1, 9, 9), np.float32)}},
    "unequal_gemm": {"body": "y = Gemm (x0, w)", "weights": {"w": np.ones((60, 3), np.float32)}, "inputs": ((1, 64),)},
    "unequal_reshape": {"body": "y = Reshape (x0, s)", "weights": {"s": np.array([1, 7, -1])}},
    "batch_reduced": {"body": "y = ReduceMean <axes = [0]> (x0)", "inputs": (("N", 2, 8, 8),)},
    "huge_constant": {"body": FILLED, "weights": {"s": np.array([1, 1, 1000000, 1000000])}},
    "negative_shape": {"body": FILLED, "weights": {"s": np.array([1, 1, -8, 8])}},
    "unknown_domain": {"body": "y = com.vendor.FusedConv (x0, w)"},
    "uneven_blocks": {"body": "y = SpaceToDepth <blocksize = 2> (x0)", "inputs": ((1, 1, 4, 5),)},
    "with_state": {"body": "s = Add (x0, x1) y = Relu (s)", "inputs": ((1, 4), (1, 4)), "outputs": ("y", "s")},
    "pool_without_window": {"body": "y = MaxPool (x0)"},
    "zero_stride": {"body": "y = Conv <strides = [0, 1]> (x0, w)"},
    "negative_pads": {"body": "y = Conv <pads = [-5, 0, -5, 0]> (x0, w)"},
    "zero_groups": {"body": "y = Conv <group = 0> (x0, w)"},
    "negative_epsilon": {
        "body": "y = BatchNormalization (x0, a, b, c, d)",
        "weights": {name: np.full(1, -1, np.float32) for name in "abcd"},
    },
    "string_weights": {"body": "y = Conv (x0, w)", "weights": {"w": np.full((4, 1, 3, 3), "a", object)}},
    "classifier": {"body": FLAT, "weights": {"w": np.ones((64, 3), np.float32)}},
    "far_padding": {
        "body": "s = Sigmoid (x0) y = Pad (s, p, v)",
        "weights": {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.array(-10000, np.float32)},
    },
    "without_integers": {"body": "c = Conv (x0, w) y = LpNormalization <axis = 1, p = 1> (c)"},
    "one_hot": {"body": FLAT, "weights": {"w": np.eye(64, 4, dtype=np.float32)}},
    "huge_input": {"inputs": ((1, 1, 1 << 20, 1 << 20),)},
}
"""What differs from the model of the workspace."""


def truncated_onnx(path: Path) -> None:
    path.write_bytes(_model().SerializeToString()[:-40])


def no_opset(path: Path) -> None:
    model = _model()
    del model.opset_import[:]
    onnx.save(model, path)


def nan_weights(path: Path) -> None:
    weights = _weights()["conv_weights"]
    weights[2, 0, 1, 1] = np.nan
    onnx.save(_model(weights={"w": weights}), path)


def text_input(path: Path) -> None:
    model = _model("y = Identity (x0)")
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    path.write_bytes(model.SerializeToString())


def shapeless_input(path: Path) -> None:
    model = _model("y = Relu (x0)")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    path.write_bytes(model.SerializeToString())


def quantized(path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> net (float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] y)
    <float s = {0.004}, float t = {0.06}, uint8 z = {0}, int8[1, 1, 1, 1] w = {9}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) k = DequantizeLinear (w, s)
        c = Conv (d, k) r = QuantizeLinear (c, t, z) y = DequantizeLinear (r, t, z)
    }"""
    onnx.save(onnx.parser.parse_model(text), path)


def labels_from_one(path: Path) -> None:
    classes = np.arange(60) % 3
    np.savez(path, x=np.eye(64, dtype=np.float32)[classes].reshape(60, 1, 8, 8), y=classes + 1)


def short_initializer(path: Path) -> None:
    model = _model()
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-8]
    onnx.save(model, path)


def _external(path: Path, location: str, length: int = 144) -> None:
    model = _model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())


def external_outside(path: Path) -> None:
    _external(path, "../secret.bin")


def external_absolute(path: Path) -> None:
    _external(path, "/etc/passwd")


def external_missing(path: Path) -> None:
    _external(path, "weights.bin")


def external_short(path: Path) -> None:
    (path.parent / "weights.bin").write_bytes(bytes(100))
    _external(path, "weights.bin")


# ---- stimuli ------------------------------------------------------------------------------------


DATA: dict[str, dict[str, Any]] = {
    "wrong_size": {"x": np.zeros((12, 1, 9, 8), np.uint8)},
    "wrong_channel_count": {"x": np.zeros((12, 3, 8, 8), np.uint8)},
    "label_beyond": {"y": np.arange(12)},
    "too_few_labels": {"y": np.arange(5)},
    "real_labels": {"y": np.linspace(0, 1, 12)},
    "no_stimuli": {"x": np.zeros((0, 1, 8, 8), np.uint8), "y": np.zeros(0, int)},
    "complex_data": {"x": np.zeros((12, 1, 8, 8), np.complex64)},
}
"""What differs from the data of the workspace."""


def truncated_npz(path: Path) -> None:
    _save_data(path)
    path.write_bytes(path.read_bytes()[:300])


def data_without_x(path: Path) -> None:
    np.savez(path, a=np.zeros((2, 1, 8, 8), np.uint8), b=np.zeros(2))


def pickled_data(path: Path) -> None:
    objects = np.empty(2, object)
    objects[:] = [{}, []]
    np.savez(path, x=objects)


def data_with_nan(path: Path) -> None:
    x = np.zeros((12, 1, 8, 8), np.float32)
    x[5, 0, 2, 2] = np.nan
    _save_data(path, x=x)


def class_folders(folder: Path, size: tuple[int, int] = (8, 8)) -> None:
    for label in ("a", "b", "c"):
        (folder / label).mkdir(parents=True)
        for index in range(2):
            Image.new("L", size, 40 * index).save(folder / label / f"{index}.png")


def mixed_modes(path: Path) -> None:
    """One image of each of Pillow's modes gray, gray with alpha, color, color with alpha, CMYK; of two sizes, one rotated."""
    class_folders(path)
    rotated = Image.Exif()
    rotated[0x0112] = 6
    for index, mode in enumerate(("LA", "RGB", "RGBA")):
        Image.new(mode, (9, 8)).save(path / "a" / f"{index + 2}.png")
    Image.new("CMYK", (8, 8)).save(path / "b" / "2.jpg", exif=rotated)


def numbered_folders(path: Path) -> None:
    class_folders(path)
    for old, new in (("a", "1"), ("b", "2"), ("c", "10")):
        (path / old).rename(path / new)


def with_stray(path: Path) -> None:
    class_folders(path)
    Image.new("L", (8, 8)).save(path / "stray.png")


def small_values(path: Path) -> None:
    np.save(path, np.random.default_rng(1).random((8, 1, 8, 8), np.float32))


def corrupt_pictures(path: Path) -> None:
    class_folders(path)
    for file in path.glob("*/*.png"):
        file.write_bytes(file.read_bytes()[:50])


def large_pictures(path: Path) -> None:
    class_folders(path, (10, 8))


def text_pictures(path: Path) -> None:
    class_folders(path)
    (path / "a" / "0.png").write_text("not a picture\n")


def bomb(path: Path) -> None:
    """A picture whose header declares 60000 x 60000 pixels."""
    class_folders(path)
    data = bytearray((path / "a" / "0.png").read_bytes())
    data[16:24] = (60000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    (path / "a" / "0.png").write_bytes(bytes(data))


def _idx(folder: Path, images: bytes | None = None, labels: bytes | None = None) -> None:
    folder.mkdir()
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            images or bytes([0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 8]) + bytes(256)
        )
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels or bytes([0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 0]))


def truncated_idx(path: Path) -> None:
    _idx(path, bytes([0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 8]) + bytes(200))


def wrong_magic(path: Path) -> None:
    _idx(path, b"\x89PNG" + bytes(300))


def unequal_idx(path: Path) -> None:
    _idx(path, labels=bytes([0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 2]))


# ---- weights and statistics ---------------------------------------------------------------------


WEIGHTS: dict[str, dict[str, Any]] = {
    "small_weights": {"fc_weights": np.zeros((3, 35), np.float32)},
    "missing_weights": {"fc_biases": None},
    "zero_step": {"conv_QWeight_LSQ_StepSize": np.zeros(1, np.float32)},
    "weights_with_nan": {"fc_biases": np.array([0, np.inf, 0], np.float32)},
    "text_weights": {"fc_biases": np.array(["a", "b", "c"])},
    "pickled_weights": {"fc_biases": np.array([{}, 1, 2], object)},
}
"""What differs from the weights of the workspace; None: absent."""


def large_weights(path: Path) -> None:
    np.savez(path, **{name: array * np.float32(1e30) for name, array in _weights().items()})


def weights_beyond_half(path: Path) -> None:
    weights = _weights()
    weights["fc_weights"][1, 2] = -70000
    np.savez(path, **weights)


def syntxt_folder(path: Path) -> None:
    path.mkdir()
    for name, array in _weights().items():
        (path / f"{name}.syntxt").write_text(" ".join(map(str, array.reshape(-1))))
    (path / "conv_biases.syntxt").write_text("0 0 zero 0\n")


def foreign_statistics(path: Path) -> None:
    """An export whose statistics are of another network."""
    from n2d2py.quant.statistics import Statistics

    file = path / "export_CPP_int8" / "statistics" / "calibration" / "statistics.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    Statistics(key="another", stimuli=3).save(file)
    _as_exported(path / "export_CPP_int8")


def corrupt_statistics(path: Path) -> None:
    foreign_statistics(path)
    file = path / "export_CPP_int8" / "statistics" / "calibration" / "statistics.npz"
    file.write_bytes(file.read_bytes()[:60])
    _as_exported(path / "export_CPP_int8")


def foreign_folder(path: Path) -> None:
    (path / "export_CPP_int8").mkdir(parents=True)
    (path / "export_CPP_int8" / "thesis.txt").write_text("years of work\n")


def _as_exported(folder: Path) -> None:
    """A manifest with the digests of all files."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "manifest.json")
    digests = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    _manifest(folder, "net", digests)


def _manifest(folder: Path, network: str, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"tool": "n2d2py", "network": network, "files": files}))


def foreign_export(path: Path) -> None:
    _manifest(path / "export_CPP_int8", "other", {})


def foreign_calibration(path: Path) -> None:
    _manifest(path / "calib_net_int8", "other", {})


def edited_export(path: Path) -> None:
    _manifest(path / "export_CPP_int8", "net", {"main.cpp": "00", "gone.cpp": "00"})
    (path / "export_CPP_int8" / "main.cpp").write_text("int main() {}\n")
    (path / "export_CPP_int8" / "mine.cpp").write_text("// mine\n")


def make(name: str, path: Path) -> None:
    """Write the file or folder of a name."""
    if name in MODELS:
        onnx.save(_model(**MODELS[name]), path)
    elif name in DATA:
        _save_data(path, **DATA[name])
    elif name in WEIGHTS:
        np.savez(path, **{role: array for role, array in (_weights() | WEIGHTS[name]).items() if array is not None})
    else:
        globals()[name](path)
