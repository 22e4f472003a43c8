"""The node tests of the onnx package by operator: what docs/operators.md says of each, in Python.

The whole page is compared by `test_node_conformance.py`; here a failure names its operator.
"""

import numpy as np
import pytest
from operators_page import PAGE, row
from support.conformance_cases import compare, fed, load_cases, run_case, variants
from support.onnx_models import runtime_session

from n2d2py.contracts.reference import NoOnnxForm
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.reference.engine import to_onnx
from n2d2py.reference.executor import run_graph

pytestmark = pytest.mark.slow

SEVERAL = "(networks of several)"
ROWS = {
    line.split("|")[1].removesuffix(" * ").strip(): line
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and " of " in line
}


def warm() -> None:
    """Reads the tests of the package, which takes longer than to run them."""
    load_cases()


@pytest.mark.parametrize("operator", ROWS)
def test_what_the_page_says(operator):
    cases = [case for case in load_cases() if case.operator == (operator if operator != SEVERAL else "")]
    assert row(operator, [(case, run_case(case)) for case in cases]) == ROWS[operator]


REAL_INPUTS = ("QLinearConv", "QLinearMatMul")
"""Of these an input with a constant scale takes the real numbers, not the integers that the node tests have."""
_CHOSEN, _JOINED = "a constant whose elements are chosen", "function Right of arrays"
_CONV, _POOL, _WRITTEN, _DIVIDED = "(Conv3D)", "(Pool3D)", "(ArrayScatter)", "a whole number divided by 0"
_TYPE = "NOT_IMPLEMENTED"
WITHOUT_FORM = {
    **dict.fromkeys(("AffineGrid", "Gather", "GatherElements", "GatherND", "RotaryEmbedding"), (_CHOSEN,)),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), (_CHOSEN, _JOINED)),
    **dict.fromkeys(("Dropout", "GroupNormalization", "InstanceNormalization", "Shape", "Size"), (_JOINED,)),
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose"), (_CONV,)),
    "Attention": (_JOINED, _CHOSEN),
    "CausalConvWithState": (_CONV, _JOINED),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), (_POOL,)),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), (_WRITTEN,)),
    **dict.fromkeys(("CumProd", "CumSum"), ("(ArrayCumSum)",)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), (_JOINED, "a normalisation without mean")),
    **dict.fromkeys(("Max", "Min", "Pow", "TopK"), (_TYPE,)),
    **{f"Bitwise{name}": (f"function Bit{name} of",) for name in ("And", "Not", "Or", "Xor")},
    "BitShift": ("function ShiftRight of", "function ShiftLeft of"),
    "Div": (_DIVIDED,),
    "IsInf": ("function IsPosInf of", "function IsNegInf of"),
    "MatMulInteger": ("tensor(uint8)",),
    "Mod": (_DIVIDED, "function Fmod of", "function Mod of"),
    "PRelu": ("function PRelu of",),
}
"""Why the networks of some node tests are not for ONNX Runtime."""


@pytest.mark.parametrize("operator", [name for name in ROWS if name not in (SEVERAL, *REAL_INPUTS)])
def test_any_inputs_may_be_constants_on_both_engines(operator):
    """All inputs at run time, then each of them alone with the others constant: refused, or right by NumPy and ONNX Runtime."""
    for case in load_cases():
        for number, model in enumerate(variants(case) if case.operator == operator else ()):
            try:
                graph = import_onnx(model)
            except (N2D2Error, ErrorList):
                continue
            feeds = {name: fed(case.inputs[name], graph, name) for name in graph.inputs}
            assert not compare(case, list(run_graph(graph, feeds).values())), f"{case.name} {number}"
            found = by_onnx_runtime(graph, feeds)
            if isinstance(found, str):
                assert any(words in found for words in WITHOUT_FORM.get(operator, ())), f"{case.name} {number}: {found}"
            else:
                assert not compare(case, found), f"{case.name} {number}"


def by_onnx_runtime(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | str:
    """The outputs, or why ONNX Runtime does not compute them."""
    try:
        session = runtime_session(to_onnx(graph))
    except NoOnnxForm as reason:
        return str(reason)
    except Exception as error:  # ONNX Runtime has no common base class for its errors
        return str(error)
    given = {name: values if graph.kind(name) else values.astype(np.float32) for name, values in feeds.items()}
    return session.run(list(graph.outputs), given)
