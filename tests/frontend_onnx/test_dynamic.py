"""Files of ONNX Runtime's `quantize_dynamic`: the same network in floating point, static integers and every export."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic
from support.onnx_models import decibels, runtime_outputs, runtime_session, text_model

from n2d2py.cli import main
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions

pytestmark = pytest.mark.usefixtures("without_report")

RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape, scale=0.2).astype(np.float32)


NETWORKS = {
    "conv": (
        "float[1,3,8,8] x => float[1,6] y",
        "c = Conv<pads=[1,1,1,1]>(x, w, b)\nr = Relu(c)\np = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)\nf = Flatten(p)\ny = Gemm(f, w1, b1)",
        {"w": weights(8, 3, 3, 3), "b": weights(8), "w1": weights(128, 6), "b1": weights(6)},
    ),
    "rows": (
        "float[1,5,16] x => float[1,5,4] y",
        "q = MatMul(x, w)\nk = MatMul(x, w1)\nt = Transpose<perm=[0,2,1]>(k)\ns = MatMul(q, t)\np = Softmax<axis=-1>(s)\no = MatMul(p, x)\ny = MatMul(o, w2)",
        {"w": weights(16, 16), "w1": weights(16, 16), "w2": weights(16, 4)},
    ),
    "lstm": (
        "float[1,6,8] x => float[1,5] y",
        "t = Transpose<perm=[1,0,2]>(x)\na, h = LSTM<hidden_size=12>(t, w, r, b)\ns = Squeeze(h, axes)\ny = MatMul(s, w1)",
        {"w": weights(1, 48, 8), "r": weights(1, 48, 12), "b": weights(1, 96), "w1": weights(12, 5), "axes": np.array([0])},
    ),
}


@pytest.fixture(params=NETWORKS)
def files(request, tmp_path) -> tuple[Path, np.ndarray, np.ndarray]:
    """The dynamic file, inputs, and what the network in floating point makes of them."""
    onnx.save(text_model(*NETWORKS[request.param]), tmp_path / "float.onnx")
    kind = (
        {"weight_type": QuantType.QUInt8} if request.param == "conv" else {"weight_type": QuantType.QInt8, "per_channel": True}
    )
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "dynamic.onnx", **kind)
    session = runtime_session(tmp_path / "float.onnx")
    x = RNG.normal(size=(32, *session.get_inputs()[0].shape[1:])).astype(np.float32)
    return tmp_path / "dynamic.onnx", x, runtime_outputs(tmp_path / "float.onnx", x, batch=1)[0]


def test_the_real_network_is_as_near_to_the_original_as_the_dynamic_one(files):
    path, x, wanted = files
    network = load_stage(path, LoadOptions(read_data=False))
    assert network.restored
    (found,) = FloatEngine(network.graph).run(x).values()
    (dynamic,) = runtime_outputs(path, x, batch=1)
    assert decibels(found, wanted) > max(30, decibels(dynamic, wanted) - 0.5)


@pytest.mark.parametrize("target", ["CPP", "CPP_MCU", "ONNX", "TFLite"])
def test_every_export_takes_the_file_with_and_without_a_calibration(files, target, tmp_path, capsys):
    path, x, _ = files
    np.save(tmp_path / "x.npy", x)
    if target in ("ONNX", "TFLite") and "LSTM" in {node.op_type for node in onnx.load(tmp_path / "float.onnx").graph.node}:
        pytest.skip("these exports have no LSTM")
    common = [str(path), "-export", target, "-o", str(tmp_path), "-db-export", "0"]
    assert main(common) == 0
    code, folder = ("W402", "int8") if target == "CPP_MCU" else ("W509", "float32")
    assert code in capsys.readouterr().err and (tmp_path / f"export_{target}_{folder}").is_dir()
    assert main([*common, "-force", "-calib-data", str(tmp_path / "x.npy")]) == 0
    assert "W509" not in capsys.readouterr().err and (tmp_path / f"export_{target}_int8").is_dir()
