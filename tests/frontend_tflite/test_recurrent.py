"""LSTM and RNN of .tflite files: in floating point and in integers as LiteRT's kernels, whose states are reset before each stimulus."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference
from support.tflite_files import Small, refusal, rewritten, written

import n2d2py
from n2d2py.reference.executor import run_graph

FIELD = Path(__file__).parents[3] / "shared" / "data" / "field" / "real"
HIDDEN, SIZE, BATCH, STEPS = 5, 4, 2, 6
TANH, RELU, SIGMOID = 4, 1, 5


def _variable(m: Small, name: str, size: int = HIDDEN, batch: int = BATCH) -> int:
    at = m.tensor(name, (batch, size))
    m.file._tensors[at].isVariable = True
    return at


def _real(m: Small, *shape: int) -> int:
    return m.tensor("constant", shape, values=m.rng.normal(0, 0.7, shape).astype(np.float32))


def _lstm(
    m: Small,
    leave: tuple[int, ...] = (),
    peepholes: bool = False,
    more: dict[int, int] | None = None,
    sizes: tuple[int, int] = (BATCH, STEPS),
    **options,
) -> int:
    """`leave`: inputs that are left out, `more`: further ones."""
    batch, steps = sizes
    inputs = [-1] * 24
    inputs[0] = m.x
    for at in range(1, 5):
        inputs[at], inputs[at + 4] = _real(m, HIDDEN, SIZE), _real(m, HIDDEN, HIDDEN)
        inputs[at + 11] = _real(m, HIDDEN)
    for at in (9, 10, 11) if peepholes else ():
        inputs[at] = _real(m, HIDDEN)
    inputs[18], inputs[19] = (_variable(m, name, batch=batch) for name in "hc")
    for at in leave:
        inputs[at] = -1
    for at, index in (more or {}).items():
        inputs[at] = index
    options = {"fusedActivationFunction": TANH, **options}
    shape = (steps, batch, HIDDEN) if options.get("timeMajor") else (batch, steps, HIDDEN)
    return m.add("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, shape, None, "UnidirectionalSequenceLSTMOptions", **options)


def _rnn(m: Small, activation: int, time_major: bool = False) -> int:
    inputs = [m.x, _real(m, HIDDEN, SIZE), _real(m, HIDDEN, HIDDEN), _real(m, HIDDEN), _variable(m, "h")]
    shape = (STEPS, BATCH, HIDDEN) if time_major else (BATCH, STEPS, HIDDEN)
    options = {"fusedActivationFunction": activation, "timeMajor": time_major}
    return m.add("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, shape, None, "SequenceRNNOptions", **options)


def _both(m: Small, code: str, merge: bool = True, auxiliary: bool = False, batch: int = 1, **options) -> int:
    """Two directions; without `merge` the difference of their results. LiteRT reads beyond its input for several sequences of an LSTM, batch first."""
    lstm = code.endswith("LSTM")

    def rows(number: int) -> list[int]:
        return [_real(m, HIDDEN, SIZE) if at < number else _real(m, HIDDEN, HIDDEN) for at in range(2 * number)]

    ways, states = [], []
    for way in range(2):
        if lstm:
            ways += [*rows(4), -1, -1, -1, *(_real(m, HIDDEN) for _ in range(4)), -1, -1]
            states += [_variable(m, f"{role}{way}", HIDDEN, batch) for role in "hc"]
        else:
            ways += [*rows(1), _real(m, HIDDEN), _variable(m, f"h{way}", HIDDEN, batch)]
    other = m.add("NEG", [m.x], (batch, STEPS, SIZE), None) if auxiliary else -1
    more = [-1] * (8 if lstm else 2)
    options = {"fusedActivationFunction": TANH, "timeMajor": False, "mergeOutputs": merge, **options}
    table = "BidirectionalSequenceLSTMOptions" if lstm else "BidirectionalSequenceRNNOptions"
    first = (STEPS, batch) if options["timeMajor"] else (batch, STEPS)
    inputs = [m.x, *ways, *states, other, *more]
    made = m.add(code, inputs, (*first, 2 * HIDDEN if merge else HIDDEN), None, table, **options)
    if merge:
        return made
    back = m.tensor("back", (*first, HIDDEN))
    m.file._operators[-1].outputs = np.array([made, back], np.int32)
    return m.add("SUB", [made, back], (*first, HIDDEN), None, "SubOptions")


LAYERS = {
    "LSTM": (_lstm, {}),
    "time first": (_lstm, {"timeMajor": True}),
    "clipped cells": (_lstm, {"cellClip": 0.3}),
    "peepholes": (_lstm, {"peepholes": True}),
    "coupled gates": (_lstm, {"leave": (1, 5, 12)}),
    "coupled gates, peepholes": (_lstm, {"leave": (1, 5, 9, 12), "peepholes": True, "cellClip": 0.5}),
    "RNN": (_rnn, {"activation": TANH}),
    "RNN, ReLU, time first": (_rnn, {"activation": RELU, "time_major": True}),
    "LSTM, both ways": (_both, {"code": "BIDIRECTIONAL_SEQUENCE_LSTM"}),
    "LSTM, both ways, two results": (_both, {"code": "BIDIRECTIONAL_SEQUENCE_LSTM", "merge": False, "cellClip": 0.3}),
    "LSTM, both ways, time first": (_both, {"code": "BIDIRECTIONAL_SEQUENCE_LSTM", "timeMajor": True, "batch": 2}),
    "LSTM, both ways, another input": (_both, {"code": "BIDIRECTIONAL_SEQUENCE_LSTM", "auxiliary": True}),
    "RNN, both ways": (_both, {"code": "BIDIRECTIONAL_SEQUENCE_RNN", "batch": 2}),
    "RNN, both ways, two results": (_both, {"code": "BIDIRECTIONAL_SEQUENCE_RNN", "merge": False}),
}


@every(("make", "options"), LAYERS.values(), ids=LAYERS)
def test_real_layers(tmp_path, make, options):
    first = options.get("timeMajor") or options.get("time_major")
    batch = options.get("batch", 1 if make is _both else BATCH)
    shape = (STEPS, batch, SIZE) if first else (batch, STEPS, SIZE)
    m = Small(shape, None)
    path = written(m, tmp_path, make(m, **options))
    graph = n2d2py.load(path).network.graph
    for scale in (0, 1, 3):
        x = (m.rng.normal(size=shape) * scale).astype(np.float32)
        reference = Reference(path, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
        reference.interpreter.set_tensor(reference.inputs[0]["index"], x)
        reference.interpreter.invoke()
        wanted = reference.interpreter.get_tensor(reference.outputs[0]["index"])
        (found,) = run_graph(graph, {graph.inputs[0]: x.reshape(graph.shape(graph.inputs[0]))}).values()
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=2e-6)


def _rnn_of_one_step(m: Small, code: str = "RNN", table: str = "RNNOptions", lead: tuple[int, ...] = (1,)) -> int:
    inputs = [m.x, _real(m, HIDDEN, SIZE), _real(m, HIDDEN, HIDDEN), _real(m, HIDDEN), _variable(m, "h", batch=1)]
    return m.add(code, inputs, (*lead, HIDDEN), None, table, fusedActivationFunction=TANH)


STREAMED = {
    "RNN": ((1,), _rnn_of_one_step),
    "RNN over a sequence": ((1, 1), lambda m: _rnn_of_one_step(m, "UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", (1, 1))),
    "LSTM": ((1, 1), lambda m: _lstm(m, sizes=(1, 1))),
    "LSTM, time first": ((1, 1), lambda m: _lstm(m, sizes=(1, 1), timeMajor=True, peepholes=True, cellClip=0.4)),
}


@every(("lead", "make"), STREAMED.values(), ids=STREAMED)
def test_one_step_keeps_its_states_from_call_to_call(tmp_path, lead, make):
    m = Small((*lead, SIZE), None)
    path = written(m, tmp_path, make(m))
    model, reference = n2d2py.load(path), Reference(path, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    graph, x = model.network.graph, m.rng.normal(size=(4, *lead, SIZE)).astype(np.float32)
    states = {name: np.zeros(graph.shape(name), np.float32) for name in graph.state_inputs}
    assert states
    for each in x:
        reference.interpreter.set_tensor(reference.inputs[0]["index"], each)
        reference.interpreter.invoke()
        wanted = reference.interpreter.get_tensor(reference.outputs[0]["index"])
        found = run_graph(graph, {graph.inputs[0]: each.reshape(graph.shape(graph.inputs[0])), **states})
        states = {name: found[result] for name, result in zip(graph.state_inputs, graph.state_outputs, strict=True)}
        np.testing.assert_allclose(found[graph.outputs[0]].reshape(wanted.shape), wanted, atol=2e-6)


def _begun(m: Small) -> int:
    state = m.tensor("begun", (BATCH, HIDDEN), values=np.ones((BATCH, HIDDEN), np.float32))
    return _lstm(m, more={18: state})


REFUSED = {
    "projection": (lambda m: _lstm(m, more={16: _real(m, HIDDEN, HIDDEN)}), "a projection"),
    "norm": (lambda m: _lstm(m, more={21: _real(m, HIDDEN)}), "normalization"),
    "activation": (lambda m: _lstm(m, fusedActivationFunction=SIGMOID), "activation"),
    "activation of an RNN": (lambda m: _rnn(m, SIGMOID), "activation"),
    "state": (_begun, "state"),
    "negative limit of cells": (lambda m: _lstm(m, cellClip=-1.0), "cell_clip"),
    "input of the way back": (lambda m: _both(m, "BIDIRECTIONAL_SEQUENCE_RNN", auxiliary=True, batch=BATCH), "auxiliary"),
    "no state": (lambda m: _lstm(m, leave=(19,)), "is missing"),
    "uneven weights": (lambda m: _lstm(m, more={2: _real(m, HIDDEN, SIZE + 1)}), "shape"),
    "weights of one axis": (lambda m: _lstm(m, more={at: _real(m, HIDDEN) for at in range(5, 9)}), "shape"),
    "biases of two axes": (lambda m: _lstm(m, more={at: _real(m, HIDDEN, 2) for at in range(12, 16)}), "shape"),
}


@every(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, make, reason):
    m = Small((BATCH, STEPS, SIZE), None)
    assert reason in refusal(written(m, tmp_path, make(m)))


@pytest.mark.skipif(not FIELD.is_dir(), reason="../shared/data/field is not here")
def test_integer_lstm_of_the_field(tmp_path):
    """One step of the scores at most: LiteRT's gates have 16 bits, as ours, but other tables."""
    path = FIELD / "tflm_mnist_lstm_int8.tflite"
    x = np.random.default_rng(0).integers(-128, 128, (20, 28, 28)).astype(np.int8)
    reference, wanted = Reference(path, "BUILTIN_REF"), []
    for one in x:
        reference.interpreter.reset_all_variables()
        reference.interpreter.set_tensor(reference.inputs[0]["index"], one[None])
        reference.interpreter.invoke()
        wanted.append(reference.interpreter.get_tensor(reference.outputs[0]["index"])[0])
    exported = n2d2py.export(path, data=x, folder=tmp_path, bits=8)
    simulator = n2d2py.load_simulator(exported.folder)
    assert not any(simulator.graph.type(node.output).is_float for node in simulator.graph.nodes)
    found = np.asarray(simulator.run_raw(x)).reshape(20, 10)
    assert np.abs(found.astype(int) - np.array(wanted)).max() <= 1
    assert np.mean(found == np.array(wanted)) > 0.95


@pytest.mark.skipif(not FIELD.is_dir(), reason="../shared/data/field is not here")
def test_axis_of_the_scales_of_a_bias(tmp_path):
    """TFLite Micro's detector of persons gives biases the axis of their weights; LiteRT reads it with the right one."""
    path = FIELD / "tflm_person.tflite"

    def righted(schema, model):
        for tensor in model.subgraphs[0].tensors:
            if tensor.quantization is not None and len(tensor.shape) == 1:
                tensor.quantization.quantizedDimension = 0

    reference = Reference(rewritten(path, righted, tmp_path / "righted.tflite"), "BUILTIN_REF")
    graphs = [n2d2py.load(each).network.graph for each in (path, tmp_path / "righted.tflite")]
    x = np.random.default_rng(0).integers(-128, 128, tuple(reference.inputs[0]["shape"])).astype(np.int8)
    reference.interpreter.set_tensor(reference.inputs[0]["index"], x)
    reference.interpreter.invoke()
    wanted = reference.interpreter.get_tensor(reference.outputs[0]["index"]).reshape(-1)
    exported = n2d2py.export(path, data=x.transpose(0, 3, 1, 2), folder=tmp_path / "out", bits=8)
    found = np.asarray(n2d2py.load_simulator(exported.folder).run_raw(x.transpose(0, 3, 1, 2))).reshape(-1)
    assert np.abs(found.astype(int) - wanted).max() <= 1
    assert len(graphs[0].nodes) == len(graphs[1].nodes)
