"""Integers of the file itself: dynamic quantization, ConvInteger, MatMulInteger, single roundings; like ONNX Runtime."""

import numpy as np
import onnx
import pytest
from support.onnx_models import original_engine, text_model
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

pytest.importorskip("onnxruntime")


def build(signature: str, body: str, constants: dict[str, np.ndarray], opset: int = 21) -> onnx.ModelProto:
    model = text_model(signature, body, constants, opset=opset)
    onnx.checker.check_model(model)
    return model


def check(model: onnx.ModelProto, folder, tolerance: float = 0.0, **feeds: np.ndarray) -> None:
    onnx.save(model, folder / "net.onnx")
    graph = import_onnx(folder / "net.onnx")
    wanted = original_engine(folder / "net.onnx").run(feeds)
    given = {name: x.reshape(graph.shape(name)).astype(graph.kind(name) or np.float32) for name, x in feeds.items()}
    for (name, want), found in zip(wanted.items(), run_graph(graph, given).values(), strict=True):
        assert np.unique(want).size > 3, f"{name} tells nothing"
        np.testing.assert_allclose(
            found.reshape(want.shape).astype(np.float64),
            want.astype(np.float64),
            rtol=0,
            atol=tolerance * np.abs(want).max(initial=0),
        )


RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(1, 3, 9, 7)).astype(np.float32), RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)


@every(
    "left, right, zeros",
    [
        ("uint8", "int8", {}),
        ("uint8", "uint8", {"za": np.uint8(7), "zb": np.uint8(130)}),
        ("int8", "int8", {"za": np.int8(-3)}),
        ("uint8", "int8", {"za": np.uint8(200), "zb": np.arange(-2, 3).astype(np.int8)}),
    ],
)
def test_matrix_products_of_integers(left, right, zeros):
    """Against exact sums: ONNX Runtime saturates those of uint8 times int8 on processors without VNNI."""
    a = RNG.integers(np.iinfo(left).min, np.iinfo(left).max + 1, (6, 8)).astype(left)
    b = RNG.integers(np.iinfo(right).min, np.iinfo(right).max + 1, (8, 5)).astype(right)
    names = ", ".join(["a", "b", *(name if name in zeros else "" for name in ("za", "zb"))]).rstrip(", ")
    graph = import_onnx(build(f"{left}[6,8] a => int32[6,5] y", f"y = MatMulInteger({names})", {"b": b, **zeros}))
    given = a.reshape(1, -1).astype(graph.kind("a") or np.float32).reshape(graph.shape("a"))
    wanted = (a.astype(int) - int(zeros.get("za", 0))) @ (b.astype(int) - zeros.get("zb", np.int8(0)).astype(int))
    (found,) = run_graph(graph, {"a": given}).values()
    np.testing.assert_array_equal(found.reshape(6, 5), wanted)


@every(
    "attributes",
    ["", "<pads=[1,0,2,1], strides=[2,1]>", "<dilations=[2,2], pads=[2,2,2,2]>", '<auto_pad="SAME_UPPER", strides=[2,2]>'],
)
def test_convolutions_of_integers(attributes, tmp_path):
    x = RNG.integers(0, 256, (1, 3, 9, 7)).astype(np.uint8)
    w = RNG.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8)
    shape = onnx.shape_inference.infer_shapes(
        build(
            "uint8[1,3,9,7] x => int32[1,4,N,M] y",
            f"y = ConvInteger{attributes}(x, w, zx, zw)",
            {"w": w, "zx": np.uint8(100), "zw": np.uint8(131)},
        )
    ).graph.output[0]
    dims = ",".join(str(d.dim_value or d.dim_param) for d in shape.type.tensor_type.shape.dim)
    check(
        build(
            f"uint8[1,3,9,7] x => int32[{dims}] y",
            f"y = ConvInteger{attributes}(x, w, zx, zw)",
            {"w": w, "zx": np.uint8(100), "zw": np.uint8(131)},
        ),
        tmp_path,
        x=x,
    )


def test_a_layer_of_dynamic_quantization(tmp_path):
    """As onnxruntime.quantization.quantize_dynamic writes it."""
    body = """q, s, z = DynamicQuantizeLinear(x)
              p = ConvInteger<pads=[1,1,1,1]>(q, w, z, zw)
              f = Cast<to=1>(p)
              t = Mul(s, sw)
              m = Mul(f, t)
              y = Add(m, b)"""
    constants = {
        "w": RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        "zw": np.int8(0),
        "sw": np.float32(0.01),
        "b": RNG.normal(size=(1, 4, 1, 1)).astype(np.float32),
    }
    check(build("float[1,3,9,7] x => float[1,4,9,7] y", body, constants), tmp_path, 1e-6, x=X)


def test_a_network_quantized_dynamically_by_onnx_runtime(tmp_path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    body = """c = Conv<pads=[1,1,1,1]>(x, w)
              r = Relu(c)
              f = Flatten(r)
              h = MatMul(f, w1)
              g = Relu(h)
              y = Gemm(g, w2, b2)"""
    constants = {
        "w": W,
        "w1": RNG.normal(size=(252, 20), scale=0.1).astype(np.float32),
        "w2": RNG.normal(size=(20, 6), scale=0.3).astype(np.float32),
        "b2": RNG.normal(size=6).astype(np.float32),
    }
    onnx.save(build("float[1,3,9,7] x => float[1,6] y", body, constants, 13), tmp_path / "float.onnx")
    quantize_dynamic(
        tmp_path / "float.onnx", tmp_path / "dynamic.onnx", weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
    )
    model = onnx.load(tmp_path / "dynamic.onnx")
    assert {"DynamicQuantizeLinear", "MatMulInteger"} <= {node.op_type for node in model.graph.node}
    check(model, tmp_path, 1e-5, x=X)


def test_an_embedding_quantized_dynamically(tmp_path):
    """Its table is integers that a DequantizeLinear after the Gather scales."""
    body = "q = Gather(w, x) d = DequantizeLinear(q, s, z) f = Flatten(d) h = MatMul(f, w1) y = Relu(h)"
    constants = {
        "w": RNG.integers(0, 256, (50, 8)).astype(np.uint8),
        "s": np.float32(0.01),
        "z": np.uint8(120),
        "w1": RNG.normal(size=(56, 20), scale=0.1).astype(np.float32),
    }
    words = RNG.integers(0, 50, (1, 7))
    check(build("int64[1,7] x => float[1,20] y", body, constants), tmp_path, 1e-6, x=words)


@every("kind, zero", [("uint8", 120), ("int8", -5), ("uint16", 30000), ("int16", 7)])
def test_a_rounding_alone_gives_the_integers_of_the_file(kind, zero, tmp_path):
    constants = {"s": np.float32(0.013), "z": np.array(zero, kind)}
    check(build(f"float[1,3,9,7] x => {kind}[1,3,9,7] y", "y = QuantizeLinear(x, s, z)", constants), tmp_path, x=X)
    q = RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (1, 3, 9, 7)).astype(kind)
    check(build(f"{kind}[1,3,9,7] x => float[1,3,9,7] y", "y = DequantizeLinear(x, s, z)", constants), tmp_path, 1e-7, x=q)


def test_scales_of_channels_and_of_blocks(tmp_path):
    constants = {"s": np.array([0.1, 0.02, 0.3], np.float32), "z": np.array([3, 100, 255], np.uint8)}
    check(build("float[1,3,9,7] x => uint8[1,3,9,7] y", "y = QuantizeLinear<axis=1>(x, s, z)", constants), tmp_path, x=X)
    blocks = {"s": RNG.uniform(0.01, 0.1, (1, 3, 3, 7)).astype(np.float32)}
    check(
        build("float[1,3,9,7] x => int8[1,3,9,7] y", "y = QuantizeLinear<axis=2, block_size=3, output_dtype=3>(x, s)", blocks),
        tmp_path,
        x=X,
    )


@pytest.mark.parametrize("channels, count", [(3, 2), (1, 2)])
def test_scales_that_do_not_fit_the_channels(channels, count):
    """Also where they would broadcast."""
    constants = {"s": np.full(count, 0.1, np.float32)}
    body = "y = QuantizeLinear<axis=1, output_dtype=3>(x, s)"
    with pytest.raises(N2D2Error, match=f"{count} scales for an axis of {channels}"):
        import_onnx(build(f"float[1,{channels},9,7] x => int8[1,{channels},9,7] y", body, constants))


@every("zeros, differences", [({}, 0), ({"za": np.uint8(0)}, 0), ({"za": np.uint8(3)}, 1), ({"zb": np.zeros(5, np.int8)}, 0)])
def test_only_zero_points_other_than_0_are_taken_away(zeros, differences):
    names = ", ".join(["a", "b", *(name if name in zeros else "" for name in ("za", "zb"))]).rstrip(", ")
    given = {"b": np.ones((8, 5), np.int8), **zeros}
    graph = import_onnx(build("uint8[6,8] a => int32[6,5] y", f"y = MatMulInteger({names})", given))
    assert sum(getattr(node.op, "function", "") == "Sub" for node in graph.nodes) == differences
