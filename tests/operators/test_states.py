"""States that are kept between calls: found, refused, as ONNX Runtime computes them call by call, compiled as simulated.

They look at `n2d2py.quant.types.recurrent_states`.
"""

import numpy as np
import onnx
import pytest
from support.e2e_run import compiled_at_once, needs_compiler
from support.errors import error_line
from support.extra_targets import INSTALLED
from support.onnx_models import text_model
from support.streaming_networks import NETWORKS, call_by_call, recurrent, stimuli
from support.tables import every, few_fast

import n2d2py
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.states import find_states, fix_inputs
from n2d2py.quant.simulator import simulate
from n2d2py.reference.engine import FloatEngine
from n2d2py.runtime.simulator import load_simulator
from n2d2py.stages.options import LoadOptions


def imported(path, states=""):
    model = load_onnx(path)
    find_states(model, states)
    return import_onnx(model), dict(model.states)


def written(tmp_path, name):
    return NETWORKS[name][0](tmp_path / f"{name}.onnx")


@every("name", NETWORKS)
def test_floats_are_those_of_onnx_runtime_call_by_call(tmp_path, name):
    path, x = written(tmp_path, name), stimuli(name)
    graph, pairs = imported(path)
    assert graph.states == len(pairs) and len(graph.user_inputs) == 1 == len(graph.user_outputs)
    expected = call_by_call(path, x, pairs)
    for dtype in (np.float32, np.float64):
        found = FloatEngine(graph, dtype=dtype).run(x)[graph.user_outputs[0]].reshape(len(x), -1)
        np.testing.assert_allclose(found, expected.reshape(found.shape), atol=2e-6)


def parameters(tmp_path, **values):
    path = tmp_path / "parameters.ini"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return LoadOptions(parameters=path)


def exported(tmp_path, name, *, bits=8, target="CPP", **values):
    path = written(tmp_path, name)
    options = parameters(tmp_path, **values) if values else LoadOptions()
    return path, n2d2py.export(
        path, target, data=stimuli(name), bits=bits, folder=tmp_path / "out", load_options=options, test=False
    )


NAMES = {
    "h0:hn": [("h0", "hn")],
    "h:hn": [("h", "hn")],
    "h_0:h_n": [("h_0", "h_n")],
    "state:stateN": [("state", "stateN")],
    "state:new_state": [("state", "new_state")],
    "in_cache:out_cache": [("in_cache", "out_cache")],
    "conv_cache:conv_cache_out": [("conv_cache", "conv_cache_out")],
    "past_state.1:present_state.1": [("past_state.1", "present_state.1")],
    "prevHidden:nextHidden": [("prevHidden", "nextHidden")],
    "audio_in:audio_out": [],
    "mask:mask_out": [],
    "state:other": [],
}


@every(("names", "pairs"), NAMES.items(), ids=NAMES)
def test_pairs_that_names_make_plain(tmp_path, names, pairs):
    before, behind = names.split(":")
    model = load_onnx(recurrent(tmp_path / "net.onnx", "GRU", (before, behind)))
    find_states(model, "")
    assert model.states == pairs


def test_a_pair_of_other_shapes_is_none(tmp_path):
    model = onnx.load(recurrent(tmp_path / "net.onnx", "GRU"))
    model.graph.output[1].type.tensor_type.shape.dim[2].dim_value = 4
    loaded = load_onnx(model)
    find_states(loaded, "")
    assert not loaded.states


def test_states_are_named(tmp_path):
    path = recurrent(tmp_path / "net.onnx", "LSTM", ("a", "b", "c", "d"))
    graph, pairs = imported(path, "c:d, a:b")
    assert pairs == {"c": "d", "a": "b"} and graph.inputs == ["x", "c", "a"]
    x = stimuli("lstm")
    np.testing.assert_allclose(FloatEngine(graph).run(x)["o"].reshape(len(x), -1), call_by_call(path, x, pairs), atol=2e-6)
    assert imported(path)[0].states == 0 == imported(recurrent(tmp_path / "net.onnx"), "none")[0].states


WRONG = {
    "a:hn": "no input is called 'a'; the inputs are x, h0, c0",
    "h0:b": "no output is called 'b'; the outputs are o, hn, cn",
    "h0:hn,c0:hn": "'c0:hn' names an input or an output twice",
    "h0": "'h0' ",
    "x:o,h0:hn,c0:cn": "every input is a state",
    "h0:o": "the state 'h0' has 5 elements, 'o', which it becomes, 9",
}


@every(("text", "reason"), WRONG.items())
def test_wrong_states_are_refused(tmp_path, text, reason):
    line = error_line(imported, recurrent(tmp_path / "net.onnx"), text)
    assert "E316" in line and reason in line


def branching(path):
    """A network that chooses its weights by a rate, as Silero's voice activity detector does."""
    body = """fast = Equal (sr, rate)
        y = If (fast) <then_branch = high () => (float[1,4] a) <float high = {2.0}> { a = Mul (x, high) },
                       else_branch = low () => (float[1,4] b) <float low = {3.0}> { b = Mul (x, low) }>"""
    onnx.save(text_model("float[1,4] x, int64 sr => float[1,4] y", body, {"rate": np.array(16000)}), path)
    return path


@pytest.mark.parametrize(("rate", "factor"), [("16000", 2), ("8000", 3)])
def test_an_input_of_fixed_value_chooses_a_branch(tmp_path, rate, factor):
    model = load_onnx(branching(tmp_path / "net.onnx"))
    fix_inputs(model, f"sr:{rate}")
    x = np.arange(4, dtype=np.float32)[None]
    np.testing.assert_array_equal(next(iter(FloatEngine(import_onnx(model)).run(x).values())), factor * x)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rate:8000", "no input is called 'rate'; the inputs are x, sr"),
        ("sr:fast", "'fast'"),
        ("sr:8000,x:1", "'x' is the only input"),
    ],
)
def test_wrong_constants_are_refused(tmp_path, text, reason):
    line = error_line(fix_inputs, load_onnx(branching(tmp_path / "net.onnx")), text)
    assert "E316" in line and reason in line


def test_a_branch_that_an_input_chooses_says_what_helps(tmp_path):
    assert "-constants sr:16000" in error_line(lambda: import_onnx(branching(tmp_path / "net.onnx")))


def typed(path, x, bits=8):
    model = n2d2py.load(path, options=LoadOptions())
    return n2d2py.quantize(model, n2d2py.calibrate(model, x)).quantized.graph if bits == 8 else None


WIDTHS = {"lstm": 16, "gru": 16, "joined": 16, "averaged": 16, "cached": 8, "passed_on": 8}


@every("name", NETWORKS)
def test_integers_are_near_and_states_have_the_type_of_their_outputs(tmp_path, name):
    path, x = written(tmp_path, name), stimuli(name)
    graph = typed(path, x)
    for state, output in zip(graph.inputs[1:], graph.outputs[1:], strict=True):
        assert graph.type(state) == graph.type(output)
    # only a state that is computed needs more bits than the network
    assert all(graph.type(state).bits <= WIDTHS[name] for state in graph.inputs[1:])
    assert graph.type(graph.inputs[1]).bits == WIDTHS[name] or name == "passed_on"
    real = FloatEngine(imported(path)[0]).run(x)["o"].reshape(len(x), -1)
    kind = graph.type("o")
    found = kind.dequantize(simulate(graph, [graph.type("x").quantize(x)])["o"]).reshape(real.shape)
    assert 10 * np.log10(np.square(real).sum() / np.square(found - real).sum()) > 30


@every("name", NETWORKS)
def test_inputs_of_16_bits_that_become_states(tmp_path, name):
    """`passed_on` keeps an input, and what it kept, for the calls after that."""
    model = n2d2py.load(written(tmp_path, name))
    calibrated = n2d2py.calibrate(model, stimuli(name))
    options = n2d2py.QuantizationOptions(input_bits=16)
    graph = n2d2py.quantize(model, calibrated, options=options).quantized.graph
    for state, output in zip(graph.inputs[1:], graph.outputs[1:], strict=True):
        assert graph.type(state) == graph.type(output)
    assert graph.type("x").bits == 16 and (name != "passed_on" or graph.type(graph.inputs[1]).bits == 16)


def test_a_state_of_a_cell_is_what_the_cell_computes_with(tmp_path):
    """Nothing is rounded between two calls: h is in 2^-15, c in a power of two."""
    graph = typed(written(tmp_path, "lstm"), stimuli("lstm"))
    assert graph.type("h0").scale == 2.0**-15
    assert np.log2(graph.type("c0").scale) % 1 == 0


@pytest.mark.compiles
@needs_compiler
@pytest.mark.parametrize("name", few_fast(NETWORKS))
def test_compiled_as_simulated_over_many_calls(tmp_path, name):
    _, project = exported(tmp_path, name)
    assert n2d2py.compare(project, 20).identical
    simulator, x = load_simulator(project.folder), stimuli(name)
    compiled = compiled_at_once(project.folder)
    np.testing.assert_array_equal(simulator(x), compiled(x))
    assert not np.array_equal(simulator(x[1:]), simulator(x)[1:])  # what came before counts
    np.testing.assert_array_equal(simulator(x), compiled(x))  # each run begins with a reset


@pytest.mark.compiles
@needs_compiler
@pytest.mark.parametrize(
    ("name", "bits"), [("joined", 16), *(pytest.param(name, -32, marks=pytest.mark.slow) for name in ("lstm", "cached"))]
)
def test_other_precisions(tmp_path, name, bits):
    path, project = exported(tmp_path, name, bits=bits)
    assert n2d2py.compare(project, 20).identical
    x = stimuli(name)
    expected = call_by_call(path, x, imported(path)[1])
    found = compiled_at_once(project.folder)(x).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5 if bits < 0 else 2e-3)


@pytest.mark.compiles
@needs_compiler
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("passed_on", {"IncludeInputInBuffer": 0, "IncludeOutputInBuffer": 0}),
        pytest.param("cached", {"IncludeInputInBuffer": 0, "IncludeOutputInBuffer": 0}, marks=pytest.mark.slow),
        pytest.param("cached", {"MemoryMode": "Minimum"}, marks=pytest.mark.slow),
    ],
)
def test_other_memory(tmp_path, name, values):
    _, project = exported(tmp_path, name, **values)
    assert n2d2py.compare(project, 20).identical


def test_calls_between_resets(tmp_path):
    path, x = written(tmp_path, "lstm"), stimuli("lstm")
    model = n2d2py.load(path, options=parameters(tmp_path, StateCalls=6))
    assert model.graph.calls == 6
    observed = n2d2py.calibrate(model, x).calibration.network
    batches = [batch for batch, _, _ in observed.data.sets["Validation"].batches(64)]
    assert [len(batch) for batch in batches] == [6, 6, 6, 2]
    found = np.concatenate([FloatEngine(model.graph).run(batch)["o"].reshape(len(batch), -1) for batch in batches])
    np.testing.assert_allclose(found, call_by_call(path, x, {"h0": "hn", "c0": "cn"}, 6), atol=2e-6)


@every("target", ["ONNX", "TFLite", *sorted(INSTALLED)])
def test_targets_without_states_refuse(tmp_path, target):
    line = error_line(exported, tmp_path, "averaged", target=target)
    assert "E706" in line and "keeps state between calls" in line


def test_lines_of_an_input_do_not_go_with_states(tmp_path):
    line = error_line(exported, tmp_path, "cached", StreamInput=1)
    assert "E706" in line and "StreamInput" in line
