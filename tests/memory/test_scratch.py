"""Scratch of kernels: where the plan places it, what the files of an export say of it, the stack that is left."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.e2e_run import assert_compiled_is_simulated
from support.memory_compiled import ROOT, export, memory_map, needs_tools
from support.memory_networks import mobilenet_v2, resnet8, unet, vww
from support.programs import run_command
from support.tables import every

from n2d2py.cli import main
from n2d2py.memory.checker import check_plan
from n2d2py.memory.plan import MemoryPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.scratch import ALIGNMENT, ScratchNeed, place_scratch
from n2d2py.memory.strategies import plan_memory

MODELS = ROOT.parent / "shared" / "data" / "models"


def needs(problem: MemoryProblem, *sizes: int) -> dict[str, ScratchNeed]:
    return {op.name: ScratchNeed(*sizes) for op in problem.ops}


@every("network", [resnet8, vww, lambda: mobilenet_v2(0.35, 96), unet])
@every("strategy", ["OptimizeOverlap", "OptimizeStream", "OptimizeMaxLifetimeMaxSizeFirst"])
def test_scratch_is_proved_and_the_arena_grows_by_a_tenth_at_most(network, strategy):
    problem = network()
    tensors = plan_memory(problem, strategy=strategy)
    found, plan = place_scratch(problem, tensors, needs(problem, 100, 200, 100_000, 1 << 20))
    assert not check_plan(found, plan)
    assert plan.tensor_arena_bytes == tensors.arena_bytes <= plan.arena_bytes <= tensors.arena_bytes * 1.1
    assert plan.planes == tensors.planes and plan.schedule == tensors.schedule
    added = {name: one for name, one in plan.scratch.items() if name not in tensors.scratch}
    assert len(added) == len([op for op in problem.ops if op.name not in {*tensors.scratch, *plan.views}])
    for name, one in added.items():
        assert one.offset % ALIGNMENT == 0 and one.size == found.op(name).scratch_bytes >= 100


def test_the_checker_finds_scratch_over_a_tensor_and_scratch_that_is_too_small():
    problem = resnet8()
    problem, plan = place_scratch(problem, plan_memory(problem), needs(problem, 64, 64, 1024, 2048))
    name = next(name for name in plan.order if name in plan.scratch and plan.planes[problem.op(name).inputs[0]].release > 2)
    kept = plan.planes[problem.op(name).inputs[0]].offset

    def with_scratch(scratch: Scratch) -> MemoryPlan:
        return replace(plan, ops={**plan.ops, name: replace(plan.op(name), scratch=scratch)})

    assert not check_plan(problem, plan)
    assert check_plan(problem, with_scratch(Scratch(kept, plan.scratch[name].size)))
    assert check_plan(problem, with_scratch(Scratch(plan.scratch[name].offset, plan.scratch[name].size - 1)))


def small_plan() -> MemoryPlan:
    """Three tensors at the bytes 0 to 1000, 2000 to 3000 and 5000 to 5010, of one operator that writes the last."""
    planes = {
        name: Plane(at, size, size, 1, 1, -1, 1) for name, at, size in (("x", 0, 1000), ("z", 2000, 1000), ("y", 5000, 10))
    }
    return MemoryPlan("by hand", 5010, planes, (ScheduleStep("op", 0),))


@every(
    "need,limit,place,arena",
    [
        ((10, 10, 10, 10), None, (3008, 10), 5010),  # the largest hole
        ((10, 10, 10, 5000), None, (3008, 1992), 5010),
        ((10, 10, 1992, 5000), None, (3008, 1992), 5010),
        ((10, 10, 1993, 5000), None, (3008, 1992), 5511),  # more than a tenth would be needed
        ((10, 2500, 2500, 2500), None, (5056, 2500), 7556),  # but for a kernel to run in its form
        ((2500, 2500, 2500, 2500), 7556, (5056, 2500), 7556),
        ((10, 2500, 2500, 2500), 7555, (5056, 2499), 7555),  # below a limit in another one
        ((2500, 2500, 2500, 2500), 7555, None, 5010),  # or without
        ((10, 10, 20, 30), 100, (3008, 30), 5010),
    ],
)
def test_where_scratch_goes(need, limit, place, arena):
    problem = MemoryProblem({}, (), (), ())
    _, plan = place_scratch(problem, small_plan(), {"op": ScratchNeed(*need)}, limit)
    assert plan.scratch == ({} if place is None else {"op": Scratch(*place)})
    assert plan.arena_bytes == (arena if place is None or sum(place) > 5010 else 5010)


def test_needs_are_in_ascending_order():
    with pytest.raises(ValueError, match="ascending"):
        ScratchNeed(3, 3, 2, 4)


def stacks(folder: Path, *variables: str) -> dict[str, int]:
    """The rows of `make size`; all frames must have a bounded size."""
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    run_command("make", "-s", "clean", cwd=folder)
    text = run_command("make", "-s", "-j2", "size", *variables, cwd=folder, env=environment)
    assert "a frame has no fixed size" not in text
    return {name.strip(): int(size) for name, size in re.findall(r"^(.{24}) +(\d+)", text, re.MULTILINE)}


@needs_tools
@pytest.mark.slow
@pytest.mark.skipif(not MODELS.is_dir(), reason="../shared/data is not here")
@pytest.mark.parametrize(
    "network,arena,stack,direct",
    [
        ("resnet8_qdq", 33_792, 82 << 10, ()),  # tiles of four by four: 80 KB beside the frames
        ("resnet8_qdq", 33_792, 2048, ("conv_1", "conv_2", "conv_4", "conv_7")),  # the same layers without
        ("kws_dscnn_qdq", 8_640, 2048, ()),
        ("vww_96_qdq", 37_248, 2048, ()),
    ],
)
def test_known_networks_take_two_kilobytes_of_stack_beside_tiles_of_four(network, arena, stack, direct, tmp_path):
    """For AVX2; the arena grows by a tenth at most, and larger workspaces lie on the stack."""
    parameters = tmp_path / "params.ini"
    parameters.write_text("".join(f"[/{name}/Conv_output_0]\nTile=avx2:direct\n" for name in direct))
    words = ["-export", "CPP", "-quiet", "-export-parameters", str(parameters), "-o", str(tmp_path)]
    assert main([str(MODELS / f"{network}.onnx"), *words]) == 0
    folder = tmp_path / "export_CPP_int8"
    assert arena <= memory_map(folder)["arena_size"] <= arena * 1.1
    for optimization in ("-O2", "-O3"):
        for threads in (0, 1):
            found = stacks(folder, "ARCH=-mavx2 -mfma", f"OPT={optimization}", f"OPENMP={threads}")
            limit = stack + 256 * threads  # a team has frames of its own
            assert 0 < found["stack"] <= limit and (found["stack"] > 2304) == (stack > 2304), (optimization, threads)
            assert ("stack of threads" in found) == bool(threads)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["Speed", "Balanced", "Small"])
def test_compiled_exports_use_their_scratch(mode, tmp_path):
    folder = export("MobileNet", tmp_path, f"MemoryMode={mode}\n")
    assert any("ScratchBytes" in header.read_text() for header in folder.glob("dnn/include/*.hpp"))
    assert_compiled_is_simulated(folder)


@needs_tools
def test_portable_exports_and_those_within_a_budget_have_no_other_arena(tmp_path):
    folder = export("branches", tmp_path, "SIMD=none\n")
    assert not any("ScratchBytes" in header.read_text() for header in folder.glob("dnn/include/*.hpp"))
    tensors = memory_map(folder)["arena_size"]
    folder = export("branches", tmp_path, f"MemoryBudget={tensors}\n")
    assert memory_map(folder)["arena_size"] == tensors
