"""The files of the error cases: a workspace that works, and inputs that are broken in one way each."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

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


KERNELS = np.ones((4, 1, 3, 3), np.float32)


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
    nodes=None, inputs=((1, 1, 8, 8),), outputs=("y",), weights=None, opset: int = 13, element_type: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    """A model; by default a convolution 4x3x3 with a Relu."""
    nodes = nodes or [helper.make_node("Conv", ["x0", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    weights = weights or {"w": _weights()["conv_weights"]}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(f"x{i}", element_type, shape) for i, shape in enumerate(inputs)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _bytes() -> bytes:
    return _model().SerializeToString()


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


def truncated_onnx(path: Path) -> None:
    path.write_bytes(_bytes()[:-40])


def opset_5(path: Path) -> None:
    onnx.save(_model(opset=5), path)


def opset_99(path: Path) -> None:
    onnx.save(_model(opset=99), path)


def no_opset(path: Path) -> None:
    model = _model()
    del model.opset_import[:]
    onnx.save(model, path)


def unsupported_operators(path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x0", "w"], ["c"]),
        helper.make_node("Det", ["c"], ["d"]),
        helper.make_node("NonZero", ["c"], ["e1"]),
        helper.make_node("NonZero", ["e1"], ["e2"]),
        helper.make_node("Relu", ["e2"], ["y"]),
    ]
    onnx.save(_model(nodes, outputs=("y", "d")), path)


def nan_weights(path: Path) -> None:
    weights = _weights()["conv_weights"]
    weights[2, 0, 1, 1] = np.nan
    onnx.save(_model(weights={"w": weights}), path)


def cyclic_onnx(path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["z", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["z"]),
        helper.make_node("Add", ["z", "x0"], ["y"]),
    ]
    onnx.save(_model(nodes), path)


def no_outputs(path: Path) -> None:
    onnx.save(_model(outputs=()), path)


def empty_output(path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x0", "w"], ["c"]), helper.make_node("Neg", ["e"], ["y"])]
    onnx.save(_model(nodes, weights={"e": np.zeros(0, np.float32)}), path)


def text_input(path: Path) -> None:
    model = _model([helper.make_node("Identity", ["x0"], ["y"])])
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    path.write_bytes(model.SerializeToString())


def unknown_sizes(path: Path) -> None:
    onnx.save(_model(inputs=((None, 1, "h", "w"),)), path)


def no_input(path: Path) -> None:
    onnx.save(_model([helper.make_node("Relu", ["w"], ["y"])], inputs=()), path)


def shapeless_input(path: Path) -> None:
    model = _model([helper.make_node("Relu", ["x0"], ["y"])])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    path.write_bytes(model.SerializeToString())


def two_inputs(path: Path) -> None:
    nodes = [helper.make_node("Add", ["x0", "x1"], ["s"]), helper.make_node("Conv", ["s", "w"], ["y"])]
    onnx.save(_model(nodes, inputs=((1, 1, 8, 8), (1, 1, 8, 8))), path)


def duplicate_names(path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x0", "w"], ["y"]), helper.make_node("Relu", ["y"], ["y"])]
    onnx.save(_model(nodes), path)


def wrong_rank(path: Path) -> None:
    onnx.save(_model(weights={"w": np.ones((4, 9), np.float32)}), path)


def wrong_channels(path: Path) -> None:
    onnx.save(_model(weights={"w": np.ones((4, 3, 3, 3), np.float32)}), path)


def zero_sized_weights(path: Path) -> None:
    onnx.save(_model(weights={"w": np.ones((0, 1, 3, 3), np.float32)}), path)


def large_kernel(path: Path) -> None:
    onnx.save(_model(weights={"w": np.ones((4, 1, 9, 9), np.float32)}), path)


def _single(path: Path, node: onnx.NodeProto, weights: dict[str, np.ndarray], **changes: object) -> None:
    onnx.save(_model([node], weights=weights, **changes), path)


def unequal_gemm(path: Path) -> None:
    _single(path, helper.make_node("Gemm", ["x0", "w"], ["y"]), {"w": np.ones((60, 3), np.float32)}, inputs=((1, 64),))


def unequal_reshape(path: Path) -> None:
    _single(path, helper.make_node("Reshape", ["x0", "s"], ["y"]), {"s": np.array([1, 7, -1])})


def batch_reduced(path: Path) -> None:
    _single(path, helper.make_node("ReduceMean", ["x0"], ["y"], axes=[0]), {"s": np.array([1])}, inputs=(("N", 2, 8, 8),))


def huge_constant(path: Path) -> None:
    """A constant of 10^12 elements from a shape of four numbers."""
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["k"]), helper.make_node("Add", ["x0", "k"], ["y"])]
    onnx.save(_model(nodes, weights={"s": np.array([1, 1, 1000000, 1000000])}), path)


def negative_shape(path: Path) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["k"]), helper.make_node("Add", ["x0", "k"], ["y"])]
    onnx.save(_model(nodes, weights={"s": np.array([1, 1, -8, 8])}), path)


def unknown_domain(path: Path) -> None:
    _single(path, helper.make_node("FusedConv", ["x0", "w"], ["y"], domain="com.vendor"), {"w": KERNELS})


def uneven_blocks(path: Path) -> None:
    _single(path, helper.make_node("SpaceToDepth", ["x0"], ["y"], blocksize=2), {"w": KERNELS}, inputs=((1, 1, 4, 5),))


def with_state(path: Path) -> None:
    nodes = [helper.make_node("Add", ["x0", "x1"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    onnx.save(_model(nodes, inputs=((1, 4), (1, 4)), outputs=("y", "s")), path)


def pool_without_window(path: Path) -> None:
    _single(path, helper.make_node("MaxPool", ["x0"], ["y"]), {"w": KERNELS})


def zero_stride(path: Path) -> None:
    _single(path, helper.make_node("Conv", ["x0", "w"], ["y"], strides=[0, 1]), {"w": KERNELS})


def negative_pads(path: Path) -> None:
    _single(path, helper.make_node("Conv", ["x0", "w"], ["y"], pads=[-5, 0, -5, 0]), {"w": KERNELS})


def zero_groups(path: Path) -> None:
    _single(path, helper.make_node("Conv", ["x0", "w"], ["y"], group=0), {"w": KERNELS})


def negative_epsilon(path: Path) -> None:
    """A normalization by the root of a negative variance."""
    weights = {name: np.full(1, -1, np.float32) for name in "abcd"}
    _single(path, helper.make_node("BatchNormalization", ["x0", *"abcd"], ["y"]), weights)


def string_weights(path: Path) -> None:
    _single(path, helper.make_node("Conv", ["x0", "w"], ["y"]), {"w": np.full((4, 1, 3, 3), "a", object)})


def classifier(path: Path) -> None:
    """Three outputs, one for each class."""
    nodes = [helper.make_node("Flatten", ["x0"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"])]
    onnx.save(_model(nodes, weights={"w": np.ones((64, 3), np.float32)}), path)


def quantized(path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> net (float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] y)
    <float s = {0.004}, float t = {0.06}, uint8 z = {0}, int8[1, 1, 1, 1] w = {9}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) k = DequantizeLinear (w, s)
        c = Conv (d, k) r = QuantizeLinear (c, t, z) y = DequantizeLinear (r, t, z)
    }"""
    onnx.save(onnx.parser.parse_model(text), path)


def far_padding(path: Path) -> None:
    nodes = [helper.make_node("Sigmoid", ["x0"], ["s"]), helper.make_node("Pad", ["s", "p", "v"], ["y"])]
    onnx.save(_model(nodes, weights={"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.array(-10000, np.float32)}), path)


def without_integers(path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x0", "w"], ["c"]), helper.make_node("LpNormalization", ["c"], ["y"], axis=1, p=1)]
    onnx.save(_model(nodes), path)


def one_hot(path: Path) -> None:
    nodes = [helper.make_node("Flatten", ["x0"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"])]
    onnx.save(_model(nodes, weights={"w": np.eye(64, 4, dtype=np.float32)}), path)


def labels_from_one(path: Path) -> None:
    classes = np.arange(60) % 3
    np.savez(path, x=np.eye(64, dtype=np.float32)[classes].reshape(60, 1, 8, 8), y=classes + 1)


def huge_input(path: Path) -> None:
    onnx.save(_model(inputs=((1, 1, 1 << 20, 1 << 20),)), path)


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


def wrong_size(path: Path) -> None:
    _save_data(path, x=np.zeros((12, 1, 9, 8), np.uint8))


def wrong_channel_count(path: Path) -> None:
    _save_data(path, x=np.zeros((12, 3, 8, 8), np.uint8))


def label_beyond(path: Path) -> None:
    _save_data(path, y=np.arange(12))


def too_few_labels(path: Path) -> None:
    _save_data(path, y=np.arange(5))


def real_labels(path: Path) -> None:
    _save_data(path, y=np.linspace(0, 1, 12))


def no_stimuli(path: Path) -> None:
    _save_data(path, x=np.zeros((0, 1, 8, 8), np.uint8), y=np.zeros(0, int))


def complex_data(path: Path) -> None:
    _save_data(path, x=np.zeros((12, 1, 8, 8), np.complex64))


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


def small_weights(path: Path) -> None:
    np.savez(path, **{**_weights(), "fc_weights": np.zeros((3, 35), np.float32)})


def missing_weights(path: Path) -> None:
    weights = _weights()
    del weights["fc_biases"]
    np.savez(path, **weights)


def large_weights(path: Path) -> None:
    np.savez(path, **{name: array * np.float32(1e30) for name, array in _weights().items()})


def zero_step(path: Path) -> None:
    np.savez(path, **_weights(), conv_QWeight_LSQ_StepSize=np.zeros(1, np.float32))


def weights_beyond_half(path: Path) -> None:
    weights = _weights()
    weights["fc_weights"][1, 2] = -70000
    np.savez(path, **weights)


def weights_with_nan(path: Path) -> None:
    np.savez(path, **{**_weights(), "fc_biases": np.array([0, np.inf, 0], np.float32)})


def text_weights(path: Path) -> None:
    np.savez(path, **{**_weights(), "fc_biases": np.array(["a", "b", "c"])})


def pickled_weights(path: Path) -> None:
    np.savez(path, **{**_weights(), "fc_biases": np.array([{}, 1, 2], object)})


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
