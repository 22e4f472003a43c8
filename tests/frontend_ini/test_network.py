"""Sections become a network: order of the layers, ONNX files among them, targets.

They look at `n2d2py.frontend.ini.network`, `n2d2py.frontend.ini.onnx_section` and `n2d2py.frontend.ini.targets`.
"""

import numpy as np
import pytest
from support.numpy_layers import convolve
from support.onnx_models import ModelBuilder
from support.tables import every

DROP = "[{0}]\nInput={1}\nType=Activation\nActivationFunction=Tanh\nNbOutputs=3\n"


def order(net) -> list[str]:
    return [node.name for node in net.graph.nodes]


def test_layers_run_level_by_level_and_in_file_order(build):
    net = build(
        DROP.format("last", "b, a2").replace("NbOutputs=3", "NbOutputs=6")
        + DROP.format("b", "a1")
        + DROP.format("a2", "sp")
        + DROP.format("a1", "sp")
    )
    assert [name for name in order(net) if name != "last_concat"] == ["a2", "a1", "b", "last"]


@pytest.mark.parametrize("name", ["sp", "env", "cenv"])
def test_the_provider_has_three_names(name, build, stimulus):
    net = build(DROP.format("a", name))
    np.testing.assert_allclose(net.run(stimulus, "a")[0], np.tanh(stimulus))


@pytest.mark.parametrize("provider", ["sp", "env", "cenv"])
def test_the_other_names_of_the_provider_stand_for_it(provider, build):
    """It does not stand for itself: what is removed has other names, what is there has none."""
    net = build(f"[{provider}]\n" * (provider != "sp") + DROP.format("a", provider), weights=None)
    assert net.graph.aliases == dict.fromkeys({"sp", "env", "cenv"} - {provider}, provider)


def test_a_section_without_input_makes_no_layer(build):
    net = build("[base]\nType=Activation\nActivationFunction=Rectifier\nNbOutputs=3\n[a] base\nInput=sp\n[b] base\nInput=a\n")
    assert order(net) == ["a", "b"]


def test_blanks_around_inputs_do_not_matter(build):
    net = build(DROP.format("a", "sp") + DROP.format("b", " a ,  sp ").replace("NbOutputs=3", "NbOutputs=6"))
    assert net.dims("b") == [10, 8, 6]


def test_a_cycle_names_its_layers(refusal):
    found = refusal(DROP.format("a", "c") + DROP.format("b", "a") + DROP.format("c", "b") + DROP.format("ok", "sp"))
    assert found.startswith("N2D2-E224: net.ini:3 [a]") and "a -> b -> c" in found and "ok" not in found


def test_all_unknown_parents_are_listed(refusal):
    found = refusal(DROP.format("first", "spp") + DROP.format("b", "frst") + DROP.format("c", "sp")).splitlines()
    assert ["net.ini:3" in found[0], "net.ini:8" in found[1], len(found)] == [True, True, 2]
    assert "did you mean 'sp'?" in found[0] and "did you mean 'first'?" in found[1]


@pytest.mark.parametrize("model", ["Spike", "CSpike_BP", "RRAM"])
def test_spiking_models_are_out_of_scope(model, refusal, tmp_path):
    from n2d2py.contracts.ini.weights import WeightStore
    from n2d2py.errors import N2D2Error
    from n2d2py.frontend.ini.network import build_graph
    from n2d2py.ini import load_document

    (tmp_path / "net.ini").write_text(f"DefaultModel={model}\n[sp]\n" + DROP.format("a", "sp"))
    with pytest.raises(N2D2Error, match="E222.*spiking"):
        build_graph(load_document(tmp_path / "net.ini"), (1, 3, 8, 10), WeightStore(None), 1)


def write_onnx(path) -> np.ndarray:
    """x (n, 3, 8, 10) -> 1x1 convolution "Block/conv-1:0" -> Relu "Block/relu:0"; returns the weights."""
    w = np.random.default_rng(2).normal(size=(4, 3, 1, 1)).astype(np.float32)
    build = ModelBuilder()
    build.add("Relu", build.add("Conv", "x", w, name="Block/conv-1:0"), name="Block/relu:0")
    build.save(path, {"x": ["n", 3, 8, 10]}, "Block/relu:0")
    return w


ONNX = "[onnx]\nInput=sp\nType=ONNX\nFile=net.onnx\n"
HEAD = "[head]\nInput={0}\nType=Conv\nNbOutputs=2\nKernelDims=1 1\n"


@every(
    "parent,tensor",
    [
        ("onnx,Block/relu:0", "Block/relu:0"),
        ("Block/relu:0", "Block/relu:0"),
        ("onnx", "Block/relu:0"),
        ("onnx,Block/conv-1:0", "Block/conv-1:0"),
    ],
)
@every("first", [True, False])
def test_layers_follow_an_onnx_file(parent, tensor, first, build, stimulus, tmp_path):
    w = write_onnx(tmp_path / "net.onnx")
    head = HEAD.format(parent)
    net = build(ONNX + head if first else head + ONNX)
    inside = convolve(stimulus, w, 0)
    inside = inside.clip(0) if tensor == "Block/relu:0" else inside
    p = net.params("head")
    np.testing.assert_allclose(net.run(stimulus, "head")[0], convolve(inside, p["weights"], p["bias"]), atol=1e-5)
    assert net.targets[0].tensor == net.graph.outputs[0]


def test_a_layer_may_stand_before_an_onnx_file(build, stimulus, tmp_path):
    w = write_onnx(tmp_path / "net.onnx")
    net = build(ONNX.replace("Input=sp", "Input=pre") + DROP.format("pre", "sp"))
    np.testing.assert_allclose(net.run(stimulus, "Block/relu:0")[0], convolve(np.tanh(stimulus), w, 0).clip(0), atol=1e-5)


def test_automatic_properties_of_onnx_layers(build, tmp_path):
    write_onnx(tmp_path / "net.onnx")
    net = build(
        ONNX + "[fc]\nInput=onnx,Block/relu:0\nType=Fc\nNbOutputs=$([Block/relu:0]_NbOutputs * 10 + "
        "[Block/relu:0]_OutputsHeight)\n"
    )
    assert net.dims("fc") == [1, 1, 48]


def test_an_unknown_tensor_of_an_onnx_file_is_refused(refusal, tmp_path):
    write_onnx(tmp_path / "net.onnx")
    found = refusal(ONNX + HEAD.format("onnx,Block/relv:0"))
    assert found.startswith("N2D2-E223: net.ini:7") and "did you mean 'Block/relu:0'?" in found


def test_a_missing_onnx_file_is_named(refusal):
    assert (found := refusal(ONNX)).startswith("N2D2-E301: net.ini:5") and "net.onnx" in found


@every("name", ["fc", "Block/fc", "fc:0", "a-b_c.1", "MobilenetV1/Predictions/Reshape:0-x"])
@every("suffix", ["", "-Top5", "1"])
def test_targets_of_any_name(name, suffix, build):
    net = build(f"[{name}]\nInput=sp\nType=Fc\nNbOutputs=7\n[{name}.Target{suffix}]\nTopN=5\n")
    (target,) = net.targets
    assert (target.name, target.tensor, target.top_n) == (f"{name}.Target{suffix}", name, 5)
    assert net.graph.outputs == [name]


def test_several_targets_on_one_and_on_several_layers(build):
    fc = "[{0}]\nInput=sp\nType=Fc\nNbOutputs=7\n"
    net = build(fc.format("b") + fc.format("a") + "[a.Target]\n[b.Target-1]\nBinaryThreshold=0.25\n[a.Target-5]\nTopN=5\n")
    assert [(t.name, t.tensor, t.top_n) for t in net.targets] == [
        ("a.Target", "a", 1),
        ("b.Target-1", "b", 1),
        ("a.Target-5", "a", 5),
    ]
    assert net.targets[1].binary_threshold == 0.25
    assert net.graph.outputs == ["a", "b"]


def test_a_target_inside_the_network_leaves_the_rest_out(build):
    net = build(DROP.format("a", "sp") + DROP.format("b", "a") + "[a.Target]\n")
    assert net.graph.outputs == ["a"] and [node.name for node in net.graph.prune()] == ["b"]


def test_without_target_the_last_layer_is_scored(build, capsys):
    net = build(DROP.format("a", "sp") + DROP.format("b", "a"))
    assert [target.tensor for target in net.targets] == net.graph.outputs == ["b"]
    assert "no Target section: the output 'b' is scored" in capsys.readouterr().err


def test_targets_that_name_nothing_are_listed(refusal):
    found = refusal(DROP.format("conv1", "sp") + "[conv.Target]\n[conv1.Target]\n[cnv1.Target-2]\n").splitlines()
    assert len(found) == 2
    assert "E219" in found[0] and "net.ini:7" in found[0] and "[conv1.Target]" in found[0]
    assert "E219" in found[1] and "net.ini:9 [cnv1.Target-2]" in found[1]
