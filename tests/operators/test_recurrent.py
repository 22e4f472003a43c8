"""LSTM, GRU and RNN of ONNX files: imported and compared with ONNX Runtime, in floating point and in integers; states beyond them."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import ModelBuilder, decibels, runtime_outputs, runtime_session
from support.ops import ArrayRecurrent
from support.recurrent_cases import CELLS, parameters
from support.tables import every

import n2d2py
from n2d2py.arithmetic import NumType
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer, refused
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Node, QuantGraph, QuantTensor
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.reference.engine import to_onnx
from n2d2py.reference.executor import run_graph
from n2d2py.stages.options import suit_calibration

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, SIZE, HIDDEN = 6, 5, 7


def saved(path, cell: str, *, inputs=None, dims=(STEPS, 1, SIZE), **attributes):
    """A file with one recurrent node; `inputs`: constants by name beside W, R and B."""
    count, rows = 2 if attributes.get("direction") == "bidirectional" else 1, GATES[cell] * HIDDEN
    build = ModelBuilder(3)
    constants = {
        "W": build.rng.normal(0, 0.6, (count, rows, SIZE)),
        "R": build.rng.normal(0, 0.5, (count, rows, HIDDEN)),
        "B": build.rng.normal(0, 0.4, (count, 2 * rows)),
        **(inputs or {}),
    }
    if attributes.pop("peepholes", False):
        constants["P"] = build.rng.normal(0, 0.5, (count, 3 * HIDDEN))
    names = ["W", "R", "B", "lengths", "h0", "c0", "P"][: 7 if cell == "LSTM" else 5]
    given = [build.constant(constants[name], name) if name in constants else "" for name in names]
    states = ["h", "c"] if cell == "LSTM" else ["h"]
    build.add(cell, "x", *given, name="y", more=states, hidden_size=HIDDEN, **attributes)
    return build.save(path, {"x": dims}, "y", *states)


FORMS = {
    "LSTM": ("LSTM", {}),
    "LSTM reverse": ("LSTM", {"direction": "reverse"}),
    "LSTM both": ("LSTM", {"direction": "bidirectional"}),
    "GRU": ("GRU", {}),
    "GRU linear": ("GRU", {"linear_before_reset": 1}),
    "GRU reverse": ("GRU", {"direction": "reverse", "linear_before_reset": 1}),
    "GRU both": ("GRU", {"direction": "bidirectional", "linear_before_reset": 1}),
    "GRU both, not linear": ("GRU", {"direction": "bidirectional"}),
    "LSTM clipped": ("LSTM", {"clip": 0.4}),
    "LSTM peepholes": ("LSTM", {"peepholes": True}),
    "LSTM coupled, peepholes, clipped": (
        "LSTM",
        {"input_forget": 1, "peepholes": True, "clip": 0.7, "direction": "bidirectional"},
    ),
    "GRU clipped": ("GRU", {"clip": 0.3, "linear_before_reset": 1}),
    "RNN": ("RNN", {}),
    "RNN both, clipped": ("RNN", {"direction": "bidirectional", "clip": 0.5}),
    "RNN ReLU": ("RNN", {"activations": ["Relu"], "direction": "reverse"}),
}


@every("side", [1, 3], ids=["one sequence", "three sequences"])
@every("initial", [False, True], ids=["from zero", "from a state"])
@every(("cell", "attributes"), FORMS.values(), ids=FORMS)
def test_as_onnx_runtime(tmp_path, cell, attributes, initial, side):
    rng, count = np.random.default_rng(1), 2 if attributes.get("direction") == "bidirectional" else 1
    states = {"h0": rng.uniform(-1, 1, (count, side, HIDDEN))} if initial else {}
    if initial and cell == "LSTM":
        states["c0"] = rng.uniform(-2, 2, (count, side, HIDDEN))
    full = {"lengths": np.full(side, STEPS, np.int32)} if initial else {}
    path = saved(tmp_path / "net.onnx", cell, inputs={**states, **full}, dims=(STEPS, side, SIZE), **attributes)
    graph, x = import_onnx(path), rng.normal(size=(STEPS, side, SIZE)).astype(np.float32)
    wanted = runtime_outputs(path, x)
    (name,) = graph.inputs
    found = list(run_graph(graph, {name: x.reshape(graph.shape(name))}).values())
    assert len(found) == len(wanted) == (3 if cell == "LSTM" else 2)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine.reshape(-1), theirs.reshape(-1), atol=1e-5)
    for mine, theirs in zip(found, runtime_outputs(to_onnx(graph), x.reshape(graph.shape(name))), strict=True):
        np.testing.assert_allclose(mine.reshape(-1), theirs.reshape(-1), atol=1e-5)


@every("named", [False, True])
@every("cell", ["LSTM", "GRU"])
def test_last_state_alone(tmp_path, cell, named):
    """The states of all steps are not given, or not read."""
    path = saved(tmp_path / "net.onnx", cell)
    model = onnx.load(path)
    model.graph.node[0].output[0] = "y" if named else ""
    kept = [value for value in model.graph.output if value.name == "h"]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    onnx.save(model, path)
    x = np.random.default_rng(5).normal(size=(STEPS, 1, SIZE)).astype(np.float32)
    graph = import_onnx(path)
    (found,) = run_graph(graph, {graph.inputs[0]: x.reshape(graph.shape(graph.inputs[0]))}).values()
    np.testing.assert_allclose(found.reshape(-1), runtime_outputs(path, x)[0].reshape(-1), atol=1e-5)


@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_batch_first_layout(tmp_path, cell, side):
    """ONNX Runtime has no layout 1; the same numbers come in another order."""
    first = import_onnx(saved(tmp_path / "a.onnx", cell, dims=(STEPS, side, SIZE), direction="bidirectional"))
    second = import_onnx(saved(tmp_path / "b.onnx", cell, dims=(side, STEPS, SIZE), direction="bidirectional", layout=1))
    x = np.random.default_rng(2).normal(size=(STEPS, side, SIZE)).astype(np.float32)
    given = [x, x.swapaxes(0, 1)]
    (y, *last), (turned, *others) = (
        list(run_graph(graph, {graph.inputs[0]: one.reshape(graph.shape(graph.inputs[0]))}).values())
        for graph, one in zip((first, second), given, strict=True)
    )
    np.testing.assert_array_equal(y.reshape(STEPS, 2, side, -1).transpose(2, 0, 1, 3).reshape(-1), turned.reshape(-1))
    for a, b in zip(last, others, strict=True):
        np.testing.assert_array_equal(a.reshape(2, side, -1).swapaxes(0, 1).reshape(-1), b.reshape(-1))


@every("bits", [8, 16])
@every("reverse", [False, True])
@every("kind", CELLS)
def test_integers_follow_real_numbers(kind, reverse, bits):
    op, rng = ArrayRecurrent(**kind, steps=20, size=16, hidden=24, reverse=reverse), np.random.default_rng(4)
    params = parameters(op, rng)
    x = rng.normal(size=(50, 20 * 16)).astype(np.float32)
    node = Node("layer", op, ["x"], ["y"], params)
    real = op.run([x], node)[0]
    top = 2 ** (bits - 1) - 1
    source, target = NumType(bits, scale=float(np.abs(x).max()) / top), NumType(bits, scale=float(np.abs(real).max()) / top)
    made = quantize_layer(node, LayerTypes([source], target, QuantOptions(bits=bits)))
    graph = QuantGraph(
        "net", bits, {n: QuantTensor(n, (1, 1), k) for n, k in (("x", source), ("y", target))}, [made], ["x"], ["y"]
    )
    found = target.dequantize(op.run_integer([source.quantize(x.astype(np.float64))], made, graph)[0])
    assert decibels(found, real) > (31 if bits == 8 else 60)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["CPP", "CPP_MCU"])
@pytest.mark.parametrize("bits", [8, 16, -32])
@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_compiled_as_simulated(tmp_path, cell, bits, target):
    """States of all steps of both directions, and the last ones."""
    if target == "CPP_MCU" and (bits != 8 or shutil.which("qemu-arm") is None):
        pytest.skip("one width on the simulated core")
    path = saved(tmp_path / "net.onnx", cell, direction="bidirectional")
    data = np.random.default_rng(6).normal(size=(20, STEPS * SIZE)).astype(np.float32)
    exported = n2d2py.export(path, target, data=data, bits=bits, folder=tmp_path / "out")
    assert n2d2py.compare(exported, 5).identical


class Stack(ModelBuilder):
    """Recurrent layers of x (STEPS, 1, SIZE), each of the states of all steps of the one before, `steps`."""

    def __init__(self, cell: str, direction: str):
        super().__init__(8)
        self.cell, self.direction, self.directions = cell, direction, 2 if direction == "bidirectional" else 1
        self.steps, self.size = "x", SIZE

    def layer(self) -> str:
        """One more layer; its last states."""
        count, rows, last = self.directions, GATES[self.cell] * HIDDEN, f"last_{len(self.nodes)}"
        shapes = ((count, rows, self.size), (count, rows, HIDDEN), (count, 2 * rows))
        weights = [self.rng.normal(0, 0.5, shape) for shape in shapes]
        made = self.add(self.cell, self.steps, *weights, more=[last], hidden_size=HIDDEN, direction=self.direction)
        self.size = count * HIDDEN
        self.steps = self.add("Reshape", self.add("Transpose", made, perm=[0, 2, 1, 3]), [STEPS, 1, self.size])
        return last

    def write(self, path: Path, output: str) -> Path:
        return self.save(path, {"x": (STEPS, 1, SIZE)}, output)


def stacked(path: Path, cell: str, direction: str) -> Path:
    """Two recurrent layers; the last states as output."""
    build = Stack(cell, direction)
    build.layer()
    return build.write(path, build.layer())


def wide_inputs(count: int) -> np.ndarray:
    """Stimuli whose range 8 bits would spoil: one element in fifty is twenty times as large."""
    rng = np.random.default_rng(9)
    values = rng.normal(size=(count, STEPS * SIZE))
    return (values * np.where(rng.random(values.shape) < 0.02, 20, 1)).astype(np.float32)


def quantized(path: Path, data: np.ndarray) -> QuantGraph:
    """The integers that the default makes of a file."""
    network, options = n2d2py.load(path), n2d2py.QuantizationOptions()
    calibration = suit_calibration(n2d2py.CalibrationOptions(stimuli=-1), options)
    return n2d2py.quantize(network, n2d2py.calibrate(network, data, options=calibration), options=options).graph


def rated(path: Path, graph: QuantGraph, data: np.ndarray) -> float:
    """Decibels of the outputs of ONNX Runtime over the error."""
    stored = simulate_all(graph, quantize_inputs(graph, [data]), 25)[graph.outputs[0]]
    found = graph.type(graph.outputs[0]).dequantize(stored).reshape(len(data), -1)
    session = runtime_session(path)
    return decibels(found, np.stack([session.run(None, {"x": one.reshape(STEPS, 1, SIZE)})[0].reshape(-1) for one in data]))


@pytest.mark.parametrize(("cell", "direction"), [("LSTM", "forward"), ("GRU", "bidirectional")])
def test_states_between_layers_have_16_bits(tmp_path, cell, direction):
    data = wide_inputs(100)
    graph = quantized(stacked(tmp_path / "net.onnx", cell, direction), data)
    layers = [node for node in graph.nodes if node.op.kind == "ArrayRecurrent"]
    assert len(layers) == (4 if direction == "bidirectional" else 2)
    assert {graph.type(node.inputs[0]).bits for node in layers} == {16}
    assert rated(tmp_path / "net.onnx", graph, data) > 36


@pytest.mark.parametrize(("activation", "bits"), [("", 16), ("Relu", 8)])
def test_states_that_scores_read_have_16_bits(tmp_path, activation, bits):
    """A layer that is not the last one reads 8 bits."""
    build, weights = Stack("GRU", "forward"), np.random.default_rng(1).normal(size=(HIDDEN, 5))
    build.layer()
    scores = build.add("MatMul", build.add("Reshape", build.layer(), [1, HIDDEN]), weights)
    if activation:
        scores = build.add("MatMul", build.add(activation, scores), weights[:5, :3])
    graph = quantized(build.write(tmp_path / "scores.onnx", scores), wide_inputs(20))
    (first, *_) = [node for node in graph.nodes if node.op.kind == "Fc"]
    assert graph.type(first.inputs[0]).bits == bits


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_linear_layer_after_each_step_comes_near_to_floating_point(tmp_path, direction):
    """The input, the states and the results of the linear layer have 16 bits."""
    build, rng = Stack("LSTM", direction), np.random.default_rng(1)
    build.layer()
    build.write(tmp_path / "net.onnx", build.add("MatMul", build.steps, rng.normal(size=(build.size, 5))))
    data = rng.normal(size=(200, STEPS * SIZE)).astype(np.float32)
    graph = quantized(tmp_path / "net.onnx", data[:100])
    linear = next(node for node in graph.nodes if node.op.kind in ("Conv", "Fc"))
    assert {graph.type(name).bits for name in (*graph.inputs, linear.inputs[0], *graph.outputs)} == {16}
    assert rated(tmp_path / "net.onnx", graph, data[100:]) > 40


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_layers_of_16_bits_compiled_as_simulated(tmp_path, cell, direction):
    path = stacked(tmp_path / "net.onnx", cell, direction)
    exported = n2d2py.export(path, data=wide_inputs(20), bits=8, folder=tmp_path / "out")
    assert n2d2py.compare(exported, 5).identical


def wired(path, cell: str, steps: int, linear: int, squeezed: bool = True):
    """States as inputs and outputs; the results of all steps lose the axis of directions, so that one step has two results of one shape."""
    saved(path, cell, dims=(steps, 1, SIZE), linear_before_reset=linear) if cell == "GRU" else saved(
        path, cell, dims=(steps, 1, SIZE)
    )
    model, states = onnx.load(path), ["h0", "c0"][: 2 if cell == "LSTM" else 1]
    node = model.graph.node[0]
    del node.input[4:]
    node.input.extend(["", *states])
    for value in model.graph.initializer:
        if value.name == "B" and cell == "LSTM":  # gates that keep what they have
            biases = numpy_helper.to_array(value).copy()
            biases[0, :HIDDEN] += 1
            biases[0, 2 * HIDDEN : 3 * HIDDEN] += 3
            value.CopyFrom(numpy_helper.from_array(biases, "B"))
    model.graph.input.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 1, HIDDEN)) for name in states)
    model.graph.node.append(helper.make_node("Squeeze", ["y", "axis"], ["o"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axis"))
    model.graph.output[0].name = "o"
    onnx.save(model, path)
    return path, states


FEW = {
    ("LSTM", 0, 0, 1, 8, True),
    ("LSTM", 0, 3, 50, 8, False),
    ("GRU", 0, 0, 50, 16, True),
    ("GRU", 1, 0, 1, 8, False),
    ("GRU", 0, 2, 1, 16, False),
}
"""Those of the fast run: every cell, both ways, each width and length with each cell."""
OVER_CALLS = [
    pytest.param(*cell, steps, bits, streamed, marks=() if (*cell, steps, bits, streamed) in FEW else pytest.mark.slow)
    for cell in (("LSTM", 0, 0), ("LSTM", 0, 3), ("GRU", 0, 0), ("GRU", 1, 0), ("GRU", 0, 2))
    for steps in (1, 50)
    for bits in (8, 16)
    for streamed in (False, True)
    if not (streamed and cell[2])  # a network that keeps its states begins with zeros
]


@pytest.mark.parametrize(("cell", "linear", "first", "steps", "bits", "streamed"), OVER_CALLS)
def test_states_over_calls(tmp_path, cell, linear, first, steps, bits, streamed):
    """Twenty calls, each with the states of the one before. Calibration has zeros as first states, or some beyond 1, and nothing later."""
    path, states = wired(tmp_path / "net.onnx", cell, steps, linear)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20, 1, SIZE) if steps == 1 else (20, steps * SIZE)).astype(np.float32)
    start = (first * rng.uniform(-1, 1, (1, 1, HIDDEN))).astype(np.float32)
    pairs = "h0:h,c0:c" if cell == "LSTM" else "h0:h"
    (tmp_path / "parameters.ini").write_text(f"States={pairs if streamed else 'none'}\n")
    options = n2d2py.LoadOptions(parameters=tmp_path / "parameters.ini")
    data = {"x": x} | ({} if streamed else {name: np.repeat(start, 20, 0) for name in states})
    np.savez(tmp_path / "data.npz", **data)
    given = x if streamed else tmp_path / "data.npz"
    exported = n2d2py.export(path, data=given, bits=bits, folder=tmp_path / "out", load_options=options)
    simulator, real = n2d2py.load_simulator(exported.folder), runtime_session(path)
    found, wanted, mine = [], [], [start] * len(states)
    theirs = dict.fromkeys(states, start)
    if streamed:
        found = list(simulator(x)[0] if isinstance(simulator(x), tuple) else simulator(x))
    for one in x:
        y, *after = real.run(None, {"x": one.reshape(steps, 1, SIZE), **theirs})
        theirs = dict(zip(states, after, strict=True))
        wanted.append(y.reshape(-1))
        if not streamed:
            y, *mine = (one.reshape(1, -1) for one in simulator(one[None], *mine))
            mine = [state.reshape(1, 1, HIDDEN) for state in mine]
            found.append(y.reshape(-1))
    assert decibels(np.array(found), np.array(wanted)) > (25 if bits == 8 else 50)


def test_states_beyond_the_integers_are_refused():
    op = ArrayRecurrent("LSTM", 2, 3, 4)
    params = parameters(op, np.random.default_rng(0))
    node = Node("layer", op, ["x"], ["y"], params)
    assert refused(node) is None
    for role, text, limit in (
        ("initial_h", "initial hidden state is beyond 127", 127),
        ("initial_c", "initial cell state is beyond 127", 127),
    ):
        for at in range(4):
            for sign in (-1, 1):
                node.params = params | {role: np.eye(4, dtype=np.float32)[at] * np.float32(sign * limit)}
                assert refused(node) is None
                node.params[role] = node.params[role] * np.float32(1.001)
                assert refused(node) == f"a recurrent layer whose {text}"


@every("reverse", [False, True])
@every(
    ("cell", "given"),
    [("LSTM", ("initial_h", "initial_c")), ("LSTM", ("initial_h",)), ("LSTM", ("initial_c",)), ("GRU", ("initial_h",))],
)
def test_zero_points_of_given_states(cell, given, reverse):
    """Integers that are moved together with their zero point stand for the same numbers; each input has its own."""
    op, rng = ArrayRecurrent(cell, 5, 4, 6, reverse, False, "", given), np.random.default_rng(7)
    params = {role: values for role, values in parameters(replace(op, given=()), rng).items() if role not in given}
    sizes = {"x": 20, **dict.fromkeys(given, 6)}
    kinds = {name: NumType(8, scale=(2.0 if name == "initial_c" else 0.9) / 50) for name in sizes}
    result = NumType(8, scale=1 / 127)
    types = LayerTypes(list(kinds.values()), result, QuantOptions())
    made = quantize_layer(Node("layer", op, list(sizes), ["y"], params), types)
    stored = {name: rng.integers(-50, 51, (3, size)) for name, size in sizes.items()}

    def run(moved: dict[str, int]) -> np.ndarray:
        tensors = {n: QuantTensor(n, (1, sizes[n]), replace(k, zero_point=moved[n])) for n, k in kinds.items()}
        graph = QuantGraph(
            "net", 8, {**tensors, "y": QuantTensor("y", (1, op.output_size()), result)}, [made], list(sizes), ["y"]
        )
        return op.run_integer([(stored[n] + moved[n]).astype(np.int8) for n in sizes], made, graph)[0]

    plain = run(dict.fromkeys(sizes, 0))
    assert np.unique(plain).size > 20
    for zero_points in ((3, 0, 0), (0, -7, 0), (0, 0, 11), (5, -20, 30)):
        np.testing.assert_array_equal(run(dict(zip(sizes, zero_points, strict=False))), plain)
