"""Small float networks, compiled and run on the functional model, and compared with what Python computes."""

from collections.abc import Callable

import numpy as np

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph
from n2d2py.passes import keep_real
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.reference.engine import FloatEngine
from n2d2py_nvdla import Program, parse_loadable, write_loadable
from n2d2py_nvdla.check import notes, violations
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.firmware import FP16, INT8
from n2d2py_nvdla.model import run_program
from n2d2py_nvdla.tensors import tensor_array, tensor_bytes
from support.small_graphs import Net


def typed(graph: Graph, precision: int, samples: np.ndarray):
    """The QuantGraph of a network, as an export gets it."""
    if precision == FP16:
        return float_graph(graph, -32)
    options = QuantOptions(8, unsigned=False, equalize=False, correct_bias=False, adaptive_rounding=False)
    keep_real(graph, rows=False)
    graph = insert_conversions(graph)
    return quantize(graph, collect(graph, [samples], "key").histograms, options, {"x": None})[0]


def compiled(graph: Graph, config: str, precision: int, samples: np.ndarray, abi: str = "v12"):
    """(typed graph, lowered network, checked program) of a network."""
    quantized = typed(graph, precision, samples)
    lowered, problems = lower(quantized, CONFIGS[config], precision)
    if problems:
        raise problems[0]
    loadable = parse_loadable(write_loadable(emit(lowered, abi).loadable))
    program = Program.of(loadable, "net.nvdla")
    assert program.abi.name == abi
    assert violations(program, CONFIGS[config]) == [] and notes(program, CONFIGS[config]) == []
    return quantized, lowered, program


def run(lowered, program: Program, samples: np.ndarray) -> np.ndarray:
    """Real outputs (N, C, H, W) of the first output."""
    scale = next(iter(lowered.inputs.values()))[1]
    tensor_in, tensor_out = program.inputs[0][1], program.outputs[0][1]
    results = []
    for x in samples:
        stored = np.clip(np.rint(x / scale), -127, 127) if lowered.precision == INT8 else x
        done = run_program(program, [tensor_bytes(tensor_in, stored)], lowered.config)
        results.append(tensor_array(tensor_out, done.outputs[0]).astype(np.float64))
    return np.stack(results) * next(iter(lowered.outputs.values()))[1]


def expected(graph: Graph, samples: np.ndarray) -> np.ndarray:
    """The float network's first output."""
    y = FloatEngine(graph, taps=graph.outputs).run(samples)[graph.outputs[0]]
    return y.reshape(len(samples), *(*y.shape[1:], 1, 1)[:3]).astype(np.float64)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.reshape(-1), b.reshape(-1)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def samples(shape: tuple[int, int, int], count: int = 2) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((count, *shape)).astype(np.float32)


def steps(build: Callable[[Net], str], shape: tuple[int, int, int], config: str) -> tuple[np.ndarray, object, object]:
    """(differences in steps of the accelerator's result, typed graph, lowered network) of an int8 network."""
    net = Net(shape)
    graph = net.done(build(net))
    x = samples(shape)
    quantized, lowered, program = compiled(graph, config, 0, x)
    found = run(lowered, program, x)
    name = graph.outputs[0]
    kind = quantized.type(name)
    stored = simulate(quantized, quantize_inputs(quantized, [x]))[name].reshape(found.shape)
    real = stored if kind.is_float else stored * kind.scale
    return np.abs(found - real) / lowered.outputs[name][1], quantized, lowered


def half_error(build: Callable[[Net], str], shape: tuple[int, int, int]) -> float:
    """The largest error of an fp16 network, over the largest value; infinite where the direction is another."""
    net = Net(shape)
    graph = net.done(build(net))
    x = samples(shape)
    _, lowered, program = compiled(graph, "nv_full", FP16, x)
    found, wanted = run(lowered, program, x), expected(graph, x)
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / np.abs(wanted).max()) if cosine(found, wanted) > 0.9999 else np.inf
