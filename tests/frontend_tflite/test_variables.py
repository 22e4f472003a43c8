"""Variables of .tflite files, which keep values from call to call, against LiteRT's own, call by call.

They look at `n2d2py.frontend.tflite.file` and `n2d2py.frontend.tflite.translation`.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.errors import error_of
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from ai_edge_litert import interpreter as litert
from support.tflite_files import IN, OUT, Small, joined, rewritten

from n2d2py.cli import main
from n2d2py.frontend.models import load_model
from n2d2py.runtime import load_simulator

SLICE = {"beginMask": 0, "endMask": 0}


class Streaming(Small):
    """A file whose main graph reads and assigns variables; a second graph gives their first values."""

    def __init__(self, shape=(1, 1, 1, 3), grid=IN, dtype=np.int8):
        super().__init__(shape, grid, dtype)
        self.handles: dict[str, int] = {}
        self.first: list[tuple[str, np.ndarray]] = []

    def handle(self, name: str) -> int:
        if name not in self.handles:
            made = self.add("VAR_HANDLE", [], (), None, "VarHandleOptions", name=f"handle_{name}", sharedName=name)
            self.file._tensors[made].type = self.schema.TensorType.RESOURCE
            self.handles[name] = made
        return self.handles[name]

    def read(self, name: str, shape, grid=IN, dtype=np.int8, tensor: str = "") -> int:
        return self.add(
            "READ_VARIABLE", [self.handle(name)], shape, grid, "ReadVariableOptions", dtype, name=tensor or f"old_{name}"
        )

    def assign(self, name: str, value: int) -> None:
        self.file.operator("ASSIGN_VARIABLE", [self.handle(name), value], value, "AssignVariableOptions")
        self.file._operators[-1].outputs = np.zeros(0, np.int32)

    def begin(self, name: str, values: np.ndarray) -> None:
        self.first.append((name, values))

    def write(self, folder: Path, outputs, name: str = "m.tflite", change=None) -> Path:
        self.file.operator("CALL_ONCE", [], self.x, "CallOnceOptions", initSubgraphIndex=1)
        once = self.file._operators.pop()
        once.outputs = np.zeros(0, np.int32)
        self.file._operators.insert(0, once)
        begin = Streaming()
        for variable, values in self.first:
            begin.assign(variable, begin.tensor(f"{variable}_0", values.shape, values=values))
        main = super().write(folder, outputs, name)
        joined(main, [Small.write(begin, folder, [], "once.tflite")], main)
        return rewritten(main, partial(self._finished, change))

    def _finished(self, change, schema, model) -> None:
        model.subgraphs[1].inputs = np.zeros(0, np.int32)
        for code in model.operatorCodes:
            if code.builtinCode in (schema.BuiltinOperator.VAR_HANDLE, schema.BuiltinOperator.CALL_ONCE, 142, 143, 144):
                code.version = 1
        if change is not None:
            change(schema, model)


def _context(m: Streaming, zero: int = IN[1], grid=IN, dtype=np.int8) -> int:
    """A convolution over the last four columns, three of them a variable."""
    channels = m.file._tensors[m.x].shape[3]
    m.begin("cache", np.full((1, 3, 1, channels), zero, dtype))
    old = m.read("cache", (1, 3, 1, channels), grid, dtype)
    whole = m.add("CONCATENATION", [old, m.x], (1, 4, 1, channels), grid, "ConcatenationOptions", dtype, name="whole", axis=1)
    rows = [m.constant(name, values) for name, values in (("b", [0, 1, 0, 0]), ("e", [1, 4, 1, channels]), ("s", [1, 1, 1, 1]))]
    new = m.add("STRIDED_SLICE", [whole, *rows], (1, 3, 1, channels), grid, "StridedSliceOptions", dtype, name="new", **SLICE)
    m.assign("cache", new)
    return whole


def _conv(m: Streaming, source: int) -> int:
    w, scales = m.weights((5, 4, 1, 3), 5, 0)
    fields = {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    return m.add("CONV_2D", [source, w, m.bias(scales, 5, IN[0])], (1, 1, 1, 5), OUT, "Conv2DOptions", name="y", **fields)


def _wanted(path: Path, calls: np.ndarray) -> np.ndarray:
    """What LiteRT gives call by call, in the integers of the file."""
    reference = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    reference.allocate_tensors()
    (port,), found = reference.get_input_details(), []
    for call in calls:
        reference.set_tensor(port["index"], call[None])
        reference.invoke()
        found.append(np.concatenate([reference.get_tensor(one["index"]).reshape(-1) for one in reference.get_output_details()]))
    return np.array(found)


def _exported(path: Path, calls: np.ndarray, *options: str) -> Path:
    (scale, zero), folder = IN, path.parent
    real = (calls.astype(np.float32) - zero) * np.float32(scale) if calls.dtype == np.int8 else calls
    np.save(folder / "calls.npy", np.moveaxis(real, -1, 1))
    done = main([str(path), "-export", "CPP", "-calib-data", str(folder / "calls.npy"), "-o", str(folder), *options])
    assert done == 0
    return next(folder.glob("export_CPP_*"))


def _calls(count: int, shape=(1, 1, 3), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (count, *shape)).astype(np.int8)


def test_a_cached_context_as_litert(tmp_path):
    """Every call is LiteRT's to the bit, also the first ones, which read the first value."""
    m = Streaming()
    path, calls = m.write(tmp_path, _conv(m, _context(m))), _calls(40)
    folder = _exported(path, calls)
    found = load_simulator(folder)(np.load(tmp_path / "calls.npy"))
    (scale, zero), wanted = OUT, _wanted(path, calls)
    integers = np.rint(np.asarray(found).reshape(40, -1) / scale + zero) if np.asarray(found).dtype.kind == "f" else found
    assert np.array_equal(np.asarray(integers).reshape(40, -1), wanted) and len(np.unique(wanted)) > 20


@pytest.mark.slow
def test_a_cached_context_compiled(tmp_path):
    m = Streaming()
    path, calls = m.write(tmp_path, _conv(m, _context(m))), _calls(12)
    _exported(path, calls, "-test", "-compare", "12")


@pytest.mark.parametrize("again", [False, True])
def test_sums_of_real_numbers(again, tmp_path):
    """y = old + x is the state and an output; a variable that is read behind its assignment has the new value."""
    m, y = _summing()
    m.assign("sum", y)
    outputs = [y]
    if again:
        later = m.read("sum", (1, 1, 1, 3), None, np.float32, "later")
        outputs.append(m.add("MUL", [later, m.x], (1, 1, 1, 3), None, "MulOptions", name="z"))
    path = m.write(tmp_path, outputs)
    calls = np.random.default_rng(2).normal(size=(9, 1, 1, 3)).astype(np.float32)
    found = load_simulator(_exported(path, calls, "-nbbits", "-32"))(np.load(tmp_path / "calls.npy"))
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, (list, tuple)) else [found]
    rows = np.concatenate([np.asarray(part).reshape(9, -1) for part in parts], axis=1)
    np.testing.assert_allclose(rows, _wanted(path, calls), rtol=1e-5, atol=1e-5)


def test_a_chain_of_variables(tmp_path):
    """The second variable becomes what the first one was: two calls of delay."""
    m = Streaming(grid=None)
    for name in ("first", "second"):
        m.begin(name, np.zeros((1, 1, 1, 3), np.float32))
    first, second = (m.read(name, (1, 1, 1, 3), None, np.float32) for name in ("first", "second"))
    y = m.add("ADD", [second, m.x], (1, 1, 1, 3), None, "AddOptions", name="y")
    scaled = m.add(
        "MUL", [m.x, m.tensor("half", (1,), values=np.array([0.5], np.float32))], (1, 1, 1, 3), None, "MulOptions", name="h"
    )
    m.assign("second", first)
    m.assign("first", scaled)
    path, calls = m.write(tmp_path, y), np.random.default_rng(3).normal(size=(7, 1, 1, 3)).astype(np.float32)
    found = load_simulator(_exported(path, calls, "-nbbits", "-32"))(np.load(tmp_path / "calls.npy"))
    np.testing.assert_allclose(np.asarray(found).reshape(7, -1), _wanted(path, calls), rtol=1e-5, atol=1e-5)


def _line(path: Path) -> str:
    (error,) = error_of(load_model, path).errors
    return error.line()


def _summing(zero: np.ndarray | None = None) -> tuple[Streaming, int]:
    """y = old + x, where the variable `sum` starts as `zero`."""
    m = Streaming(grid=None)
    m.begin("sum", np.zeros((1, 1, 1, 3), np.float32) if zero is None else zero)
    old = m.read("sum", (1, 1, 1, 3), None, np.float32)
    return m, m.add("ADD", [old, m.x], (1, 1, 1, 3), None, "AddOptions", name="y")


def test_refused_variables(tmp_path):
    """Each in one line that names the variable."""
    m, y = _summing()
    m.assign("other", y)
    m.begin("other", np.zeros((1, 1, 1, 3), np.float32))
    assert "'sum' is never assigned" in _line(m.write(tmp_path, y))
    m, y = _summing()
    m.assign("sum", m.tensor("k", (1, 1, 1, 3), values=np.ones((1, 1, 1, 3), np.float32)))
    assert "'sum' becomes a constant" in _line(m.write(tmp_path, y))
    m, y = _summing()
    m.first.clear()
    m.assign("sum", y)
    assert "has no value before the first call" in _line(m.write(tmp_path, y))


FORMS = {
    "the same": ("RELU", (1, 1, 1, 3), IN, np.int8, True),
    "other axes": ("RESHAPE", (1, 1, 3, 1), IN, np.int8, False),
    "fewer axes": ("RESHAPE", (1, 1, 3), IN, np.int8, False),
    "another scale": ("QUANTIZE", (1, 1, 1, 3), (IN[0] * 2, IN[1]), np.int8, False),
    "another zero point": ("QUANTIZE", (1, 1, 1, 3), (IN[0], IN[1] + 1), np.int8, False),
    "another type": ("QUANTIZE", (1, 1, 1, 3), IN, np.uint8, False),
    "real numbers": ("DEQUANTIZE", (1, 1, 1, 3), None, np.float32, False),
}


@every("form", FORMS)
def test_a_variable_keeps_its_form(form, tmp_path):
    code, shape, grid, dtype, taken = FORMS[form]
    m = Streaming()
    m.begin("v", np.full((1, 1, 1, 3), IN[1], np.int8))
    y = m.add("ADD", [m.read("v", (1, 1, 1, 3)), m.x], (1, 1, 1, 3), OUT, "AddOptions", name="y")
    m.assign("v", m.add(code, [m.x], shape, grid, "", dtype, name="new"))
    path = m.write(tmp_path, y)
    if taken:
        assert load_model(path).states == [("v", "new")]
    else:
        assert "the variable 'v' is assigned with another shape or type" in _line(path)


@every(
    ("first", "taken"),
    [
        (np.zeros((1, 1, 1, 3), np.float32), True),
        (np.zeros((3,), np.float32), True),
        (np.array([[[[0, 0, 1]]]], np.float32), False),
        (np.array([[[[1, 0, 0]]]], np.float32), False),
        (np.ones((1, 1, 1, 3), np.float32), False),
        (np.zeros((1, 1, 1, 2), np.float32), False),
        (np.zeros((1, 1, 1, 4), np.float32), False),
        (np.zeros((1, 1, 1, 3), np.int8), False),
    ],
)
def test_the_first_value_of_a_variable_is_zeros_of_its_form(first, taken, tmp_path):
    m, y = _summing(first)
    m.assign("sum", y)
    path = m.write(tmp_path, y)
    if taken:
        assert load_model(path).states == [("sum", "y_kept")]
    else:
        assert "its variable 'sum' does not start as zeros" in _line(path)


@every(("first", "taken"), [(IN[1], True), (0, False), (IN[1] - 1, False), (IN[1] + 1, False)])
def test_zeros_of_integers_are_the_zero_point(first, taken, tmp_path):
    m = Streaming()
    m.begin("v", np.full((1, 1, 1, 3), first, np.int8))
    y = m.add("ADD", [m.read("v", (1, 1, 1, 3)), m.x], (1, 1, 1, 3), OUT, "AddOptions", name="y")
    m.assign("v", m.add("RELU", [m.x], (1, 1, 1, 3), IN, name="new"))
    path = m.write(tmp_path, y)
    if taken:
        assert load_model(path).states == [("v", "new")]
    else:
        assert "its variable 'v' does not start as zeros" in _line(path)


def test_a_variable_with_a_scale_for_each_channel_is_refused(tmp_path):
    """Whatever the zero points of the other channels are."""
    m = Streaming()
    m.begin("v", np.full((1, 1, 1, 3), IN[1], np.int8))
    old = m.read("v", (1, 1, 1, 3), (np.full(3, IN[0], np.float32), IN[1]))
    m.file._tensors[old].quantization.zeroPoint = np.array([IN[1], IN[1], 5])
    m.file._tensors[old].quantization.quantizedDimension = 3
    y = m.add("ADD", [old, m.x], (1, 1, 1, 3), OUT, "AddOptions", name="y")
    m.assign("v", m.add("RELU", [m.x], (1, 1, 1, 3), IN, name="new"))
    assert "'old_v' is quantized by channel" in _line(m.write(tmp_path, y))


@pytest.mark.parametrize("code", ["READ_VARIABLE", "ASSIGN_VARIABLE"])
def test_what_is_no_variable(code, tmp_path):
    m, y = _summing()
    m.assign("sum", y)
    if code == "READ_VARIABLE":
        y = m.add(code, [m.x], (1, 1, 1, 3), None, "ReadVariableOptions", name="z")
    else:
        m.file.operator(code, [m.x, y], y, "AssignVariableOptions")
        m.file._operators[-1].outputs = np.zeros(0, np.int32)
    assert f"{code} (1 operator) cannot be imported: its variable is not a result of VAR_HANDLE; " in _line(
        m.write(tmp_path, y)
    )


def test_a_graph_that_computes_is_refused(tmp_path):
    m = Streaming()

    def change(schema, model) -> None:
        graph = model.subgraphs[1]
        graph.operators[1].outputs = np.array([len(graph.tensors)], np.int32)
        graph.tensors.append(schema.TensorT())
        graph.tensors[-1].shape = np.zeros(0, np.int32)
        graph.operators[1].opcodeIndex = model.subgraphs[0].operators[3].opcodeIndex

    line = _line(m.write(tmp_path, _conv(m, _context(m)), change=change))
    assert line.startswith("N2D2-E310") and "graph 1, which runs once" in line
    m = Streaming()
    twice = m.write(tmp_path, _conv(m, _context(m)), change=lambda schema, model: model.subgraphs.append(model.subgraphs[1]))
    assert "the file has 3 graphs" in _line(twice)


@pytest.mark.parametrize("inputs", [0, 1, 3])
def test_an_assignment_of_other_inputs_is_refused(inputs, tmp_path):
    m = Streaming()

    def change(schema, model) -> None:
        graph, code = model.subgraphs[0], schema.BuiltinOperator.ASSIGN_VARIABLE
        (assigned,) = [one for one in graph.operators if model.operatorCodes[one.opcodeIndex].builtinCode == code]
        assigned.inputs = np.resize(assigned.inputs, inputs)

    line = _line(m.write(tmp_path, _conv(m, _context(m)), change=change))
    assert line.startswith("N2D2-E310") and "ASSIGN_VARIABLE (1 operator) cannot be imported" in line


def _svdf(m: Small, grid, rank: int, steps: int, units: int, activation: int = 0) -> int:
    """An SVDF of real numbers, or of int8 with a state, and weights of time, of int16."""
    count, size, state = units * rank, m.file._tensors[m.x].shape[1], (0.002, 0)
    if grid is None:
        real = {"dtype": np.float32}
        w, t = (
            m.tensor(name, s, values=m.rng.normal(size=s).astype(np.float32))
            for name, s in (("w", (count, size)), ("t", (count, steps)))
        )
        b, kept = (
            m.tensor("b", (units,), values=m.rng.normal(size=units).astype(np.float32)),
            m.tensor("kept", (1, count * steps)),
        )
    else:
        real = {"dtype": np.int8}
        w = m.tensor("w", (count, size), (0.01, 0), np.int8, m.rng.integers(-127, 128, (count, size)).astype(np.int8))
        t = m.tensor("t", (count, steps), (1e-4, 0), np.int16, m.rng.integers(-9999, 9999, (count, steps)).astype(np.int16))
        b = m.tensor("b", (units,), (0.002 * 1e-4, 0), np.int32, m.rng.integers(-(10**6), 10**6, units).astype(np.int32))
        kept = m.tensor("kept", (1, count * steps), state, np.int16)
    m.file._tensors[kept].isVariable = True
    return m.add(
        "SVDF", [m.x, w, t, b, kept], (1, units), grid, "SVDFOptions", rank=rank, fusedActivationFunction=activation, **real
    )


@every("rank, steps, activation", [(1, 5, 0), (2, 4, 1), (3, 1, 0)])
def test_svdf_of_real_numbers(rank, steps, activation, tmp_path):
    m = Small((1, 6), None)
    path, calls = (
        m.write(tmp_path, _svdf(m, None, rank, steps, 4, activation)),
        np.random.default_rng(1).normal(size=(12, 6)).astype(np.float32),
    )
    found = load_simulator(_exported(path, calls, "-nbbits", "-32"))(calls)
    np.testing.assert_allclose(np.asarray(found).reshape(12, -1), _wanted(path, calls), atol=1e-5)


@every("rank", [1, 2])
def test_svdf_of_integers(rank, tmp_path):
    """A step at most, as sums are rescaled by another rounding. LiteRT takes the rectifier alone, by the zero point."""
    m = Small((1, 6), IN)
    path, calls = m.write(tmp_path, _svdf(m, (0.05, -128), rank, 6, 4, 1)), _calls(20, (6,))
    found = load_simulator(_exported(path, calls)).run_raw(calls)
    wanted = _wanted(path, calls)
    assert np.abs(np.asarray(found).reshape(20, -1).astype(int) - wanted).max() <= 1
    assert len(np.unique(wanted)) > 20
