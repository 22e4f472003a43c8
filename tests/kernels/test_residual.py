"""Convolutions that add a residual where they store, bit for bit: the integers of two layers one after the other, on every instruction set."""

from dataclasses import replace

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import LEVELS, SLOW_BUILDS, TARGETS, X86, check_build, on_builds
from support.kernel_residual import residual_cases, winograd_cases
from support.kernel_winograd import SETS, forced, having_form
from support.ops import ElemWise, Pool, PoolSum
from support.small_graphs import graph_of

from n2d2py.arithmetic import FLOAT32, FLOAT64, plain_type
from n2d2py.cli import main
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import layer_code
from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators import pool_sum
from n2d2py.passes import fuse
from n2d2py.reference.engine import FloatEngine


def test_cases_add():
    """Every case is one call that stores over the residual, nearly all by SIMD kernels, and all rescales occur in both stages."""
    made = [*residual_cases(1), *winograd_cases(1)]
    codes = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in made]
    assert all(code.sum == "total" and "n2d2::Added<" in code.config and "elemwise" not in code.statement for code in codes)
    assert sum(bool(code.selection.kernel.name) for code in codes) > 0.9 * len(codes)
    wide = [max(abs(case.node.residual.multiplier), abs(case.node.residual.residual_multiplier)) > 32767 for case in made]
    assert 0.2 < sum(wide) / len(wide) < 0.5
    for at in (0, 1):
        assert {type(case.apart.nodes[at].rescale).__name__ for case in made} == {
            "FloatRescale",
            "FixedPointRescale",
            "ShiftRescale",
        }


@on_builds(
    {"-O0 portable": 12, "-O0 avx2": 18},
    f"g++|clang++ -O0|-O3|sanitizers {X86}|portable",
    f"g++ -O3,parallel {X86}|portable",
    "-O1 emulated-avx512|emulated-amx",
    f"{'|'.join(sorted(TARGETS))} -O0|-O3",
)
def test_residual(tmp_path, build, every):
    """With SSE4.1, g++ -O3 once read the buffer of a small last group before its sums were stored."""
    check_build(residual_cases(2)[::every], tmp_path, build)


@on_builds({"-O0 avx2": 100}, f"{LEVELS} {'|'.join(one for one in SETS if one != 'neon')}")
def test_residual_winograd(tmp_path, monkeypatch, build, every):
    cases = having_form(winograd_cases(2))
    assert len(cases) >= 6
    monkeypatch.setattr(harness, "layer_code", forced)
    check_build(cases[::every], tmp_path, build)


SIZES = {"small": (1, 9), "mid": (8, 24), "large": (40, 71)}
KINDS = (FLOAT32, FLOAT64, plain_type("int32"))
LAYOUTS = ("apart", "strided", "wrapped", "strided wrapped")


def random_cases(seed: int, count: int, size: str) -> list[harness.Case]:
    """Cases of one range of sizes: odd kernels, strides and pads, every axis of the sum repeated in some."""
    rng, sweep, made = np.random.default_rng(seed), cases.Sweep(seed), []
    low, high = SIZES[size]
    while len(made) < count:
        channels, *image = (int(n) for n in rng.integers(low, high, 3))
        kernel, stride = ((int(n) for n in rng.integers(1, 5, 2)) for _ in range(2))
        kernel, stride = tuple(kernel), tuple(stride)
        pads = tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel))
        if any(n + pads[i] + pads[i + 2] < k for i, (n, k) in enumerate(zip(image, kernel, strict=True))):
            continue
        op = PoolSum(kernel, stride, pads)
        shape = (1, 1 if rng.integers(4) == 0 else channels, *image)
        pooled = op.pool.output_shapes([shape], Node("p", op, [], []))[0]
        other = [channels, *(n if n > 1 else int(rng.integers(1, 6)) for n in pooled[2:])]
        other = (1, *(1 if rng.integers(3) == 0 else n for n in other))
        out = tuple(max(a, b) for a, b in zip(pooled, other, strict=True))
        kind = KINDS[len(made) % 3]
        graph = sweep.graph(
            op, {"x": (shape, kind), "z": (other, kind)}, (out, kind), activation=(None, Clip(-0.5, 0.5))[len(made) % 6 == 0]
        )
        inputs = {"x": (sweep.stored(shape, kind) - 3 * (len(made) % 2)).astype(kind.dtype), "z": sweep.stored(other, kind)}
        made.append(sweep.case(f"pool sum {shape} + {other} {op}", graph, inputs, LAYOUTS[len(made) % 4]))
    return made


def test_small(tmp_path):
    harness.check_all(random_cases(1, 6, "small"), tmp_path, flags=("-O0",))


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [0, 1 << 30])
def test_small_and_mid(tmp_path, monkeypatch, streamed):
    """All outputs stored past the caches, and none."""
    monkeypatch.setattr(pool_sum, "STREAMING_BYTES", streamed)
    made = [*random_cases(1, 18, "small"), *random_cases(2, 6, "mid")]
    for case in made:
        case.planes["y"] = replace(case.planes["y"], external=True)
    assert any("Streaming = 1" in harness.source(case, 0) for case in made) == (streamed == 0)
    harness.check_all(made, tmp_path, flags=("-O3", "-march=native"))


@pytest.mark.parametrize("size", ["small", "mid", pytest.param("large", marks=pytest.mark.slow)])
def test_reference_is_pytorch(size):
    """What the cases are compared with is PyTorch's result, where its rule for pads (half of the kernel) allows the case."""
    torch = pytest.importorskip("torch")
    compared = 0
    for case in random_cases(7, 40 if size == "small" else 6, size):
        op = case.node.op
        if (
            op.pads[:2] != op.pads[2:]
            or any(2 * p > k for p, k in zip(op.pads[:2], op.kernel, strict=True))
            or case.node.activation
        ):
            continue
        x, z = (torch.from_numpy(case.inputs[name]) for name in ("x", "z"))
        expected = torch.nn.functional.max_pool2d(x, op.kernel, op.stride, op.pads[:2]) + z
        np.testing.assert_array_equal(case.expected(), expected.numpy(), str(case.title))
        compared += 1
    assert compared >= 1


@pytest.mark.parametrize(
    "bits, name, kind",
    [
        pytest.param("-32", "float32", "float32", marks=pytest.mark.slow),
        pytest.param("-64", "float64", "float64", marks=pytest.mark.slow),
        ("32", "int32", "int32"),
    ],
)
def test_model(tmp_path, bits, name, kind):
    """models/MaxPoolAdd.ini is one layer in each type."""
    model = harness.ROOT / "models" / "MaxPoolAdd.ini"
    assert main([str(model), "-export", "CPP", "-nbbits", bits, "-db-export", "0", "-quiet", "-o", str(tmp_path)]) == 0
    table = (tmp_path / f"export_CPP_{name}" / "statistics" / "layers.csv").read_text().splitlines()
    assert len(table) == 2 and "PoolSum,sp + src2,112x112x64 + 56x56x1,56x56x64" in table[1] and f"{kind} + {kind}" in table[1]


@on_builds({}, *SLOW_BUILDS)
def test_builds(tmp_path, build, every):
    made = [*random_cases(3, 40, "small"), *random_cases(4, 16, "mid"), *random_cases(5, 4, "large")]
    check_build(made, tmp_path, build)


def _graph(mode: str = "Max", weights: tuple[float, ...] = (), twice: bool = False) -> Graph:
    return graph_of(
        {"x": (1, 4, 9, 7), "z": (1, 1, 5, 4)},
        Node("pool", Pool(mode, (3, 3), (2, 2), (1, 1, 1, 1)), ["x"], ["p"]),
        Node("sum", ElemWise("Sum", weights), ["p", "p" if twice else "z"], ["y"]),
    )


def test_fused_into_one_layer_with_the_same_result():
    graph = _graph()
    fused, _ = fuse(graph, integer=False)
    assert [node.op for node in fused.nodes] == [PoolSum((3, 3), (2, 2), (1, 1, 1, 1))]
    rng = np.random.default_rng(0)
    batch = {"x": rng.normal(-9, 1, (32, 4, 9, 7)).astype(np.float32), "z": rng.normal(size=(32, 1, 5, 4)).astype(np.float32)}
    for dtype in (np.float32, np.float64):
        before, after = (FloatEngine(one, dtype=dtype).run(batch)["y"] for one in (graph, fused))
        np.testing.assert_array_equal(before, after)
    assert before.max() < 0


@pytest.mark.parametrize(
    "graph, integer",
    [(_graph("Average"), False), (_graph(weights=(1.0, 2.0)), False), (_graph(twice=True), False), (_graph(), True)],
)
def test_not_fused(graph, integer):
    fused, _ = fuse(graph, integer=integer)
    assert all(not isinstance(node.op, PoolSum) for node in fused.nodes)
