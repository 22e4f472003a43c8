"""Arrays in the element types and the axes of the file, against ONNX Runtime: what calibrates, what the simulator and the library take and give."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.e2e_run import compiled_at_once
from support.errors import refused
from support.onnx_models import ModelBuilder, decibels, runtime_outputs

import n2d2py
from n2d2py.errors import N2D2Error

pytestmark = pytest.mark.usefixtures("without_report")

RNG = np.random.default_rng(11)
WEIGHTS = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
CAMERA = [("Cast", ["x"], {"to": 1}), ("Div", ["", np.float32(100)], {}), ("Conv", ["", WEIGHTS], {})]
NHWC = [("Transpose", ["x"], {"perm": [0, 3, 1, 2]}), ("Conv", ["", WEIGHTS], {})]


def chain(path, nodes, shape, kind=TensorProto.FLOAT) -> bytes:
    """A file of nodes one behind the other: "" is the result of the one before, arrays are constants."""
    build, last = ModelBuilder(opset=13), "x"
    for at, (operator, inputs, attributes) in enumerate(nodes):
        names = [last if isinstance(one, str) and not one else one for one in inputs]
        last = build.add(operator, *names, name=f"t{at}", **attributes)
    return build.save(path, {"x": shape}, last, kind=kind).read_bytes()


def reference(model: bytes, x: np.ndarray, batch: int = 1) -> np.ndarray:
    return runtime_outputs(model, x, batch)[0]


def sqnr(found: np.ndarray, want: np.ndarray) -> float:
    assert found.shape == want.shape
    return decibels(found, want)


def exported(folder, data, bits: int = 8):
    if data is not None:
        np.save(folder / "data.npy", data)
    made = n2d2py.export(
        folder / "net.onnx", "CPP", data=None if data is None else folder / "data.npy", bits=bits, folder=folder
    )
    return n2d2py.load_simulator(made.folder), compiled_at_once(made.folder)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "bool"])
def test_values_of_a_declared_integer_type_are_taken_as_they_are(tmp_path, dtype):
    kind = np.dtype(dtype)
    low, high = (0, 2) if dtype == "bool" else (max(np.iinfo(kind).min, -900), min(np.iinfo(kind).max, 900))
    x = RNG.integers(low, high, (10, 3, 6, 5)).astype(kind)
    model = chain(tmp_path / "net.onnx", CAMERA, [1, 3, 6, 5], helper.np_dtype_to_tensor_dtype(kind))
    want, nets = reference(model, x), exported(tmp_path, x)
    for net in nets:
        (given,), (result,) = net.info.inputs, net.info.outputs
        assert given.dtype == (np.uint8 if dtype == "bool" else kind) and (given.scale, given.zero_point) == (1, 0)
        assert sqnr(net(x), want) > 35 and sqnr(result.type.dequantize(net.run_raw(x)), want) > 35
    np.testing.assert_array_equal(nets[0].run_raw(x), nets[1].run_raw(x))
    header = next((tmp_path / "export_CPP_int8" / "include").glob("net.h")).read_text()
    assert f"typedef {given.dtype.name}_t net_input_t;" in header


@pytest.mark.parametrize("channels", [3, 5])
def test_arrays_of_a_file_of_height_width_channels(tmp_path, channels):
    nodes = [NHWC[0], ("Conv", ["", RNG.normal(size=(4, channels, 3, 3)).astype(np.float32)], {})]
    model = chain(tmp_path / "net.onnx", nodes, [1, 5, 5, channels])
    x = RNG.normal(size=(8, 5, 5, channels)).astype(np.float32)
    want = reference(model, x)
    for net in exported(tmp_path, x):
        assert net.info.inputs[0].shape == (1, 5, 5, channels) and sqnr(net(x), want) > 35
        if channels == 3:
            with pytest.raises(N2D2Error, match=r"E804.*\(8, 3, 5, 5\).*\(N, 5, 5, 3\)"):
                net(x.transpose(0, 3, 1, 2))
    if channels == 3:
        assert refused("E414.*nchw", lambda: exported(tmp_path, x.transpose(0, 3, 1, 2)))


_CUBE = RNG.normal(size=(3, 2, 3, 3, 3)).astype(np.float32)
RANKS = {
    "five axes": ([("Conv", ["x", _CUBE], {})], [1, 2, 4, 5, 6]),
    "no batch": ([("MatMul", ["x", RNG.normal(size=(4, 6)).astype(np.float32)], {})], [3, 5, 4]),
    "one axis": ([("MatMul", ["x", RNG.normal(size=(4, 6)).astype(np.float32)], {})], [4]),
    "a scalar": ([("ReduceMean", ["x"], {"keepdims": 0})], [3, 4]),
    "batch behind": ([("Transpose", ["x"], {"perm": [1, 0, 2]}), ("Sigmoid", [""], {})], [1, 3, 4]),
}


@pytest.mark.parametrize("name", RANKS)
def test_results_have_the_axes_of_the_file(tmp_path, name):
    nodes, shape = RANKS[name]
    model = chain(tmp_path / "net.onnx", nodes, shape)
    x = RNG.normal(size=shape).astype(np.float32)
    want = reference(model, x, 0)
    for net in exported(tmp_path, None, -32):
        assert sqnr(net(x), want) > 80
        if shape[0] != 1:
            both = net(np.stack([x, 2 * x]))
            assert both.shape == (2, *want.shape) and sqnr(both[0], want) > 80


_SIZE = [("Shape", ["x"], {}), ("Gather", ["", np.array([0])], {})]
BATCHES = {
    "a divisor behind a layer": [*_SIZE, ("Cast", [""], {"to": 1}), ("Conv", ["x", WEIGHTS], {}), ("Div", ["", "t2"], {})],
    "a count of elements": [("Size", ["x"], {}), ("Cast", [""], {"to": 1}), ("Div", ["x", ""], {})],
    "numbers of the images": [
        ("Shape", ["x"], {}),
        ("Gather", ["", np.array(0)], {}),
        ("Range", [np.array(0), "", np.array(1)], {}),
        ("Cast", [""], {"to": 1}),
        ("Reshape", ["", np.array([-1, 1, 1, 1])], {}),
        ("Add", ["x", ""], {}),
    ],
    "copies": [*_SIZE, ("Concat", ["", np.array([1, 1, 1])], {"axis": 0}), ("Tile", ["x", ""], {})],
    "a constant for each image": [
        ("Shape", ["x"], {}),
        ("Expand", [RNG.normal(size=(1, 3, 1, 1)).astype(np.float32), ""], {}),
        ("Add", ["x", ""], {}),
    ],
    "a shape": [*_SIZE, ("Concat", [np.array([-1]), ""], {"axis": 0}), ("Reshape", ["x", ""], {})],
}


@pytest.mark.parametrize("name", BATCHES)
def test_the_size_of_a_fixed_batch_is_the_number_of_the_file(tmp_path, name):
    model = chain(tmp_path / "net.onnx", BATCHES[name], [2, 3, 6, 5])
    x = RNG.normal(size=(2, 3, 6, 5)).astype(np.float32)
    for net in exported(tmp_path, None, -32):
        assert sqnr(net(x), reference(model, x, 0)) > 80


@pytest.mark.parametrize("bgr", [False, True])
@pytest.mark.parametrize("shape", [(3, 6, 4), (6, 4, 1)])
def test_pictures_in_the_axes_of_the_file(tmp_path, shape, bgr):
    """Gray files of height, width, 1 are only reshaped."""
    from PIL import Image

    rows = RNG.integers(0, 256, (6, 4, 3 if shape[0] == 3 else 1)).astype(np.uint8)
    (tmp_path / "data").mkdir()
    Image.fromarray(rows.squeeze()).save(tmp_path / "data" / "0.png")
    chain(tmp_path / "net.onnx", [("Reshape", ["x", np.array([-1, 1, 6, 4])], {}), ("Relu", [""], {})], [1, *shape])
    loaded = n2d2py.load(tmp_path / "net.onnx", options=n2d2py.LoadOptions(data=tmp_path / "data", bgr=bgr))
    want = rows.transpose(2, 0, 1)[:: -1 if bgr else 1] if shape[0] == 3 else rows
    np.testing.assert_allclose(loaded.network.data.sets["Validation"][0], want / 255, atol=1e-6)
    assert loaded.contract.order == ("gray" if shape[0] != 3 else "BGR" if bgr else "RGB")
    assert loaded.contract.size == (4, 6) and (loaded.contract.pixels is None) == (shape[0] != 3)
