"""Precision of single layers, from the INI and from the export parameters, down to the compiled integers."""

import re

import numpy as np
import pytest
from support.e2e_run import HERE, assert_layers_equal, compiled_at_once, needs_compiler, random_inputs, run

import n2d2py
from n2d2py.quant.simulator import run_node

pytestmark = needs_compiler


def mixed_export(out, params: str = "", *options: str, **keys: str):
    """branches.ini with further keys of sections, `section="Key=Value"`, and these export parameters."""
    text = (HERE / "branches.ini").read_text()
    for section, lines in keys.items():
        text, found = re.subn(rf"(?m)^(\[{section}\].*)$", lambda match: match[1] + "\n" + lines, text, count=1)
        assert found
    (out / "branches.ini").write_text(text)
    (out / "params.ini").write_text(params)
    return run(
        str(out / "branches.ini"),
        *"-seed 1 -w /dev/null -export CPP -calib 16 -db-export 3 -quiet -export-parameters".split(),
        str(out / "params.ini"),
        "-o",
        str(out),
        *options,
        out=out,
    )


def assert_each_layer_is_simulated(folder, count: int = 3) -> None:
    """Every layer equals what Python makes of the compiled values of its inputs."""
    compiled, simulated = compiled_at_once(folder), n2d2py.load_simulator(folder)
    inputs = random_inputs(simulated, count)
    found, graph = compiled.layers(*inputs), simulated.graph
    values = {**dict(zip(graph.inputs, inputs, strict=True)), **{node.output: found[node.name] for node in graph.nodes}}
    assert_layers_equal(
        found, {node.name: run_node(graph, node, [values[name] for name in node.inputs])[0] for node in graph.nodes}
    )


def types(folder) -> dict[str, str]:
    return {info.name: info.type.name for info in n2d2py.load_simulator(folder).info.layers}


def test_float_fallback_and_wide_layers_of_the_parameters(tmp_path):
    folder = mixed_export(
        tmp_path,
        "[grouped]\nQuantize=0\n[largest]\nQuantize=0\n[depthwise]\nQuantBits=16\n"
        "[sum]\nQuantBits=16\nQuantWeightBits=16\n[fc2]\nQuantize=0\n",
    )
    found = types(folder)
    assert (found["largest"], found["bn_float"], found["fc2"], found["sum"]) == ("float32", "float32", "float32", "int16")
    assert found["grouped_activation"] == "float32" and found["maps"].endswith("8")
    assert_each_layer_is_simulated(folder)


def test_the_parameters_overrule_the_ini(tmp_path):
    folder = mixed_export(
        tmp_path, "[sum]\nQuantBits=8\n", sum="QuantBits=16", average="Quantize=0", maps="QuantBits=16\nQuantWeightBits=16"
    )
    found = types(folder)
    assert (found["sum"], found["average"], found["maps"]) == ("uint8", "float32", "uint16")  # the sum has a zero point
    assert_each_layer_is_simulated(folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_precisions(seed, tmp_path):
    rng = np.random.default_rng(seed)
    names = [
        *"stem bn grouped depthwise average largest sum product largest_of mixed padded cropped maps fc1".split(),
        *"fc2".split(),
    ]
    sections = []
    for name in names:
        choice = int(rng.integers(4))
        if choice == 1:
            sections.append(f"[{name}]\nQuantize=0\n")
        elif choice == 2 and name not in ("grouped", "mixed"):  # their tables are of 8 bits
            sections.append(f"[{name}]\nQuantBits=16\nQuantWeightBits={rng.choice([8, 16])}\n")
    assert_each_layer_is_simulated(mixed_export(tmp_path, "".join(sections)))


def test_a_large_loss_names_the_worst_layers_and_what_to_try(tmp_path, capsys, monkeypatch):
    from support.e2e_run import export

    monkeypatch.setenv("CXX", "no-compiler")
    folder = export(
        "LeNet",
        tmp_path,
        *"-calib 20 -db-export 0 -test -nb-test 40 -act-clipping-mode Quantile -act-quantile-value 0.5".split(),
        *"-sensitivity 4".split(),
    )
    printed = capsys.readouterr()
    assert "warning N2D2-W504: the integers score" in printed.err
    assert "clipping" in printed.out and "-act-clipping-mode None" in printed.out and "-quality best" in printed.out
    lines = (folder / "statistics" / "sensitivity.csv").read_text().splitlines()
    names = {"conv1", "conv2", "conv3", "fc1", "fc2", "softmax"}
    assert len(lines) == 7 and {line.split(",")[0] for line in lines[1:]} == names
    shares = [float(line.split(",")[2]) for line in lines[1:]]
    assert shares == sorted(shares, reverse=True) and sum(shares) == pytest.approx(100, abs=0.01)
