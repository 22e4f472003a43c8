"""Single nodes of ONNX on arrays against ONNX Runtime; those that it lacks against onnx.reference.

The first axis of each input is no batch: it is part of the array. Two stimuli run together here, one after the other there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.index_select import IndexSelect
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

__all__ = ["SingleNode", "node", "weights"]

F = np.float32


@dataclass(frozen=True)
class SingleNode:
    """A body that makes `outputs` of `values`: arrays are constants, tuples inputs of these dimensions, perhaps behind the name of a type.

    `kinds`: the kinds of the layers on arrays that come out, where that is told. `reference`: ONNX Runtime is not asked.
    """

    body: str
    opset: int
    outputs: tuple[str, ...]
    tolerance: float
    kinds: str | None
    reference: bool
    values: dict[str, Any]

    def model(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The model, whose inputs are vectors that it gives their dimensions and types; and two stimuli."""
        rng = np.random.default_rng(7)
        text, heads, feeds, constants = "", [], {}, {}
        for name, spec in self.values.items():
            if not isinstance(spec, tuple):
                constants[name] = spec
                continue
            stimuli, kind = _drawn(spec, rng)
            feeds[f"{name}_in"] = stimuli.reshape(2, -1)
            heads.append(f"float[1,{stimuli[0].size}] {name}_in")
            constants[f"{name}_dims"] = np.array(stimuli.shape[1:], np.int64)
            target = name if kind == TensorProto.FLOAT else f"{name}_real"
            text += f"{target} = Reshape ({name}_in, {name}_dims)\n "
            if kind != TensorProto.FLOAT:
                text += f"{name} = Cast <to = {kind}> ({target})\n "
        version = 10 if self.opset < 25 else 13
        results = ", ".join(f"float {name}" for name in self.outputs)
        model = parser.parse_model(
            f'<ir_version: {version}, opset_import: ["": {self.opset}]> g ({", ".join(heads)}) => ({results}) {{ {text}{self.body} }}'
        )
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
        for output in model.graph.output:
            output.ClearField("type")
        model = onnx.shape_inference.infer_shapes(model)
        for output in model.graph.output:
            if not output.type.HasField("tensor_type"):
                output.type.tensor_type.elem_type = TensorProto.FLOAT
        return model, feeds

    def expected(self, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[list[np.ndarray]]:
        """The outputs of each stimulus."""
        session: Any = ReferenceEvaluator(model) if self.reference else None
        if session is None:
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return [session.run(None, {name: stimuli[n : n + 1] for name, stimuli in feeds.items()}) for n in range(2)]

    def check(self) -> Graph:
        """The import has the same results, in NumPy and as an ONNX model again."""
        model, feeds = self.model()
        wanted = self.expected(model, feeds)
        graph = import_onnx(model)
        shaped = {name: stimuli.reshape(2, *graph.shape(name)[1:]) for name, stimuli in feeds.items()}
        for found in (run_graph(graph, shaped), FloatEngine(graph).run(shaped)):
            assert len(found) == len(self.outputs)
            for index, values in enumerate(found.values()):
                for n in range(2):
                    self._compare(np.asarray(values)[n], np.asarray(wanted[n][index]))
        if self.kinds is not None:
            assert [
                layer.op.kind for layer in graph.nodes if isinstance(layer.op, (ArrayOp, IndexSelect))
            ] == self.kinds.split()
        return graph

    def _compare(self, found: np.ndarray, wanted: np.ndarray) -> None:
        assert found.size == wanted.size
        if wanted.dtype.kind != "f":
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
            return
        finite = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=self.tolerance, atol=self.tolerance * finite)


def node(
    body: str,
    opset: int = 18,
    outputs: str = "y",
    tolerance: float = 1e-5,
    kinds: str | None = None,
    reference: bool = False,
    **values: Any,
) -> SingleNode:
    """A `SingleNode`."""
    return SingleNode(body, opset, tuple(outputs.split()), tolerance, kinds, reference, values)


def weights(*dims: int, seed: int = 3) -> np.ndarray:
    """Constants drawn at random."""
    return np.random.default_rng(seed).normal(0, 0.7, dims).astype(F)


def _drawn(spec: tuple, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Two stimuli of an input, and the ONNX type that the node reads."""
    kind, dims = (spec[0], spec[1:]) if spec and isinstance(spec[0], str) else ("float32", spec)
    if kind == "float32":
        values = rng.normal(0, 1.5, (2, *dims))
    elif kind == "bool":
        values = rng.integers(0, 2, (2, *dims))
    else:
        values = rng.integers(0 if kind.startswith("u") else -9, 10, (2, *dims))
    return values.astype(F), helper.np_dtype_to_tensor_dtype(np.dtype(kind))
