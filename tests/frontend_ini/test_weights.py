"""Initial and stored weights: fillers from the seed, .npz, .npy and .syntxt, and what is wrong with them.

They look at `n2d2py.contracts.ini.convolution`, `n2d2py.contracts.ini.weights`, `n2d2py.frontend.ini.targets` and
`n2d2py.contracts.ini.weights`.
"""

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py.contracts.ini.weights import open_weights

NET = "[a/b:0]\nInput=sp\nType=Conv\nNbOutputs=4\nKernelDims=3 2\n{keys}[fc]\nInput=a/b:0\nType=Fc\nNbOutputs=5\n{more}"
SHAPES = {"a/b:0_weights": (4, 3, 2, 3), "a/b:0_biases": (4,), "fc_weights": (5, 4 * 7 * 8), "fc_biases": (5,)}


def text(keys: str = "", more: str = "") -> str:
    return NET.format(keys=keys, more=more)


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def save(folder, arrays, form: str):
    if form == "npz":
        np.savez(folder / "w.npz", **arrays)
        return folder / "w.npz"
    for name, values in arrays.items():
        safe = name.replace("/", "_").replace(":", "_")
        if form == "npy":
            np.save(folder / f"{safe}.npy", values)
        else:
            np.savetxt(folder / f"{safe}.syntxt", values.reshape(len(values), -1), fmt="%.9g")
    return folder


@pytest.mark.parametrize("form", ["npz", "npy", "syntxt"])
def test_stored_weights_are_read(form, arrays, build, tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    net = build(text(), weights=save(folder, arrays, form))
    for layer in ("a/b:0", "fc"):
        for name, role in (("weights", "weights"), ("biases", "bias")):
            np.testing.assert_allclose(net.params(layer)[role], arrays[f"{layer}_{name}"], rtol=1e-7)


def test_stored_orders(arrays, build, tmp_path):
    w, fc = arrays["a/b:0_weights"], arrays["fc_weights"]
    stored = {**arrays, "a/b:0_weights": w.transpose(2, 3, 1, 0), "fc_weights": fc.T}
    net = build(
        text("ConfigSection=c\n", "ConfigSection=f\n[c]\nWeightsExportFormat=HWCO\n[f]\nWeightsExportFormat=CO\n"),
        weights=save(tmp_path, stored, "npz"),
    )
    np.testing.assert_array_equal(net.params("a/b:0")["weights"], w)
    np.testing.assert_array_equal(net.params("fc")["weights"], fc)


@every("form", ["npz", "npy"])
@every(
    "name, stored, shapes",
    [
        ("a/b:0_weights", lambda w: w.transpose(2, 3, 1, 0), "(2, 3, 3, 4)|(4, 3, 2, 3)"),
        ("a/b:0_weights", lambda w: w.transpose(0, 2, 3, 1), "(4, 2, 3, 3)|(4, 3, 2, 3)"),
        ("a/b:0_weights", lambda w: w.reshape(-1), "(72)"),
        ("fc_weights", lambda w: w.T, "(224, 5)|(5, 224)"),
        ("fc_biases", lambda b: b.reshape(1, 5, 1), ""),
    ],
)
def test_arrays_of_another_shape_are_refused(form, name, stored, shapes, arrays, build, refusal, tmp_path):
    weights = save(tmp_path, {**arrays, name: stored(arrays[name])}, form)
    if not shapes:
        np.testing.assert_array_equal(build(text(), weights=weights).params("fc")["bias"], arrays[name])
        return
    error = refusal(text(), weights=weights)
    assert "E423" in error and all(shape in error for shape in shapes.split("|"))


def test_an_array_in_the_usual_order_is_refused_where_another_is_declared(arrays, refusal, tmp_path):
    error = refusal(text("", "ConfigSection=f\n[f]\nWeightsExportFormat=CO\n"), weights=save(tmp_path, arrays, "npz"))
    assert "E423" in error and "(5, 224)" in error and "(224, 5)" in error


def test_a_layer_without_bias_needs_no_file(arrays, build, tmp_path):
    del arrays["a/b:0_biases"]
    net = build(text("ConfigSection=c\n", "[c]\nNoBias=1\n"), weights=save(tmp_path, arrays, "npz"))
    assert not net.params("a/b:0")["bias"].any()


def test_missing_weights_are_an_error_or_keep_initial_values(arrays, build, refusal, tmp_path):
    del arrays["fc_weights"]
    path = save(tmp_path, arrays, "npz")
    assert "E421" in (found := refusal(text(), weights=path)) and "'fc_weights'" in found and "net.ini:7 [fc]" in found
    net = build(text(), weights=path, ignore_missing=True)
    np.testing.assert_array_equal(net.params("fc")["weights"], build(text()).params("fc")["weights"])
    np.testing.assert_array_equal(net.params("fc")["bias"], arrays["fc_biases"])


@pytest.mark.parametrize("form", ["npz", "npy", "syntxt"])
def test_a_wrong_number_of_values_is_an_error(form, arrays, refusal, tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    arrays["fc_biases"] = arrays["fc_biases"][:4]
    found = refusal(text(), weights=save(folder, arrays, form))
    assert "E423" in found and "4 values" in found and "'fc'" in found and "5" in found


@pytest.mark.parametrize("form", ["npz", "npy", "syntxt"])
def test_values_that_are_no_numbers_are_an_error(form, arrays, refusal, tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    arrays["fc_biases"] = np.array([1, 2, np.nan, 4, 5], np.float32)
    assert "E424" in refusal(text(), weights=save(folder, arrays, form))


@pytest.mark.parametrize(
    "name,content", [("fc_biases.syntxt", b"1 2 three 4 5"), ("fc_biases.npy", b"not an array"), ("fc_biases.npy", b"")]
)
def test_unreadable_files_are_named(name, content, arrays, refusal, tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    del arrays["fc_biases"]
    save(folder, arrays, "npy")
    (folder / name).write_bytes(content)
    assert "E422" in (found := refusal(text(), weights=folder)) and name in found


def test_a_file_that_is_no_npz_is_refused(refusal, tmp_path):
    (tmp_path / "w.npz").write_bytes(b"PK no")
    assert "E422" in refusal(text(), weights=tmp_path / "w.npz")


def test_what_the_option_names(tmp_path, monkeypatch):
    def opened(option, validation=False):
        return open_weights(option, has_validation=validation, folder=tmp_path, ignore_missing=False).path

    assert opened("/dev/null") is None and opened(None) is None
    (tmp_path / "weights").mkdir()
    assert opened(None) == tmp_path / "weights" and opened(None, True) is None
    (tmp_path / "weights_validation").mkdir()
    assert opened(None, True) == tmp_path / "weights_validation"
    assert "E420" in error_line(lambda: opened(str(tmp_path / "none")))


def filled(build, keys: str, seed: int = 1, name: str = "fc", outputs: int = 400) -> np.ndarray:
    net = build(f"[{name}]\nInput=sp\nType=Fc\nNbOutputs={outputs}\n{keys}", (16, 5, 5), seed=seed)
    return net.params(name)["weights"]


@every(
    "keys,mean,deviation",
    [
        ("", 0.0, 0.05),
        ("WeightsFiller=NormalFiller\nWeightsFiller.Mean=2\nWeightsFiller.StdDev=0.5", 2.0, 0.5),
        ("WeightsFiller=UniformFiller\nWeightsFiller.Min=-1\nWeightsFiller.Max=3", 1.0, 4 / 12**0.5),
        ("WeightsFiller=HeFiller", 0.0, (2 / 400) ** 0.5),
        ("WeightsFiller=HeFiller\nWeightsFiller.Scaling=3\nWeightsFiller.VarianceNorm=FanOut", 0.0, 3 * (2 / 400) ** 0.5),
        ("WeightsFiller=XavierFiller", 0.0, (1 / 400) ** 0.5),
        ("WeightsFiller=XavierFiller\nWeightsFiller.Distribution=Normal", 0.0, (1 / 400) ** 0.5),
    ],
)
def test_fillers_have_their_moments(keys, mean, deviation, build):
    values = filled(build, keys)
    assert values.mean() == pytest.approx(mean, abs=0.02 * deviation)
    assert values.std() == pytest.approx(deviation, rel=0.02)


def test_bounded_and_constant_fillers(build):
    uniform = filled(build, "WeightsFiller=UniformFiller\nWeightsFiller.Min=-1\nWeightsFiller.Max=3")
    assert -1 <= uniform.min() < -0.99 and 2.99 < uniform.max() <= 3
    xavier = filled(build, "WeightsFiller=XavierFiller")
    assert abs(xavier).max() == pytest.approx((3 / 400) ** 0.5, rel=1e-3)
    constant = filled(build, "WeightsFiller=ConstantFiller\nWeightsFiller.Value=0.75")
    assert (constant == 0.75).all()


def test_fillers_follow_the_seed_and_the_layer(build):
    first = filled(build, "")
    np.testing.assert_array_equal(first, filled(build, ""))
    assert not np.array_equal(first, filled(build, "", seed=2))
    assert not np.array_equal(first, filled(build, "", name="other"))


def test_a_layer_keeps_its_values_when_others_are_added(build):
    alone = build("[fc]\nInput=sp\nType=Fc\nNbOutputs=5\n").params("fc")
    among = build(
        "[conv]\nInput=sp\nType=Conv\nNbOutputs=2\nKernelSize=1\n[fc]\nInput=sp\nType=Fc\nNbOutputs=5\n"
        "[fc.Target]\n[conv.Target]\n"
    ).params("fc")
    np.testing.assert_array_equal(alone["weights"], among["weights"])
    assert not np.array_equal(alone["weights"].ravel()[:5], alone["bias"])


MATRIX = "Mapping(sp)=1 1 0 0  1 0 1 0  1 0 1 1\n"
CONNECTED = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 1]], bool)


@every("keys, connected", [("", np.ones((4, 3), bool)), (MATRIX, CONNECTED)])
@every("bias", [True, False])
def test_one_file_for_a_layer(keys, connected, bias, build, tmp_path, refusal):
    """<layer>.syntxt: the weights of an output, then its bias; only connected channels are stored."""
    rng = np.random.default_rng(7)
    w, b = rng.normal(size=(4, 3, 2, 3)).astype(np.float32), rng.normal(size=4).astype(np.float32)
    lines = [" ".join(f"{value:.9g}" for value in [*w[o][connected[o]].ravel(), *([b[o]] if bias else [])]) for o in range(4)]
    (tmp_path / "a_b_0.syntxt").write_text("\n".join(lines))
    if not bias:
        keys += "ConfigSection=c\n"
    text = f"[a/b:0]\nInput=sp\nType=Conv\nNbOutputs=4\nKernelDims=3 2\n{keys}" + ("" if bias else "[c]\nNoBias=1\n")
    net = build(text, weights=tmp_path)
    np.testing.assert_array_equal(net.params("a/b:0")["weights"], w * connected[:, :, None, None])
    np.testing.assert_array_equal(net.params("a/b:0")["bias"], b if bias else np.zeros(4))
    (tmp_path / "a_b_0.syntxt").write_text("\n".join(lines) + " 1")
    assert "N2D2-E423" in refusal(text, weights=tmp_path)
