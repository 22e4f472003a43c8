"""N2D2's published and measured arenas, reproduced: no wrap, wrap, each parameter.

The figures are those of N2D2's manager, whose arena ends with its highest space. Ours ends with the
highest byte of a plane, which is never more: `tops` gives the former, `arena_bytes` the latter.
"""

from __future__ import annotations

import time

import pytest
from support import memory_networks as networks
from support.memory_figures import NETWORKS
from support.tables import every, few_fast

from n2d2py.memory.checker import check_plan
from n2d2py.memory.generate import Generation
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import ORDERS, place_online, place_sorted, plan_memory

# total bytes; arenas for None, MinSizeFirst, MaxSizeFirst, MaxHole: without and with wrap
FIGURES = {
    "resnet8": (117_844, (52_224, 49_152, 49_152, 49_152), (34_880, 44_032, 44_032, 34_816)),
    "vww": (259_460, (55_296, 73_728, 64_512, 55_296), (37_632,) * 4),
    "ds_cnn": (72_578, (16_490, 24_000, 16_000, 16_490), (9_130,) * 4),
    "ad": (2_312, (896, 896, 768, 896), (896, 896, 768, 896)),
    "mbv1_0.25_128": (463_056, (98_304, 131_072, 114_688, 98_304), (66_560,) * 4),
    "mbv1_0.25_224": (1_413_456, (301_056, 401_408, 351_232, 301_056), (202_496,) * 4),
    "mbv1_0.5_224": (2_674_384, (953_344, 953_344, 602_112, 953_344), (404_992,) * 4),
    "mbv1_1.0_224": (5_196_240, (1_756_160, 1_756_160, 1_204_224, 1_756_160), (809_984,) * 4),
    "mbv2_0.35_128": (1_014_096, (278_528, 253_952, 245_760, 278_528), (252_928, 252_928, 200_704, 200_704)),
    "mbv2_0.35_224": (3_098_904, (852_992, 777_728, 752_640, 852_992), (765_184, 765_184, 609_280, 609_280)),
    "mbv2_1.0_224": (7_048_304, (1_705_984, 1_580_544, 1_505_280, 1_705_984), (1_686_272, 1_686_272, 1_218_560, 1_218_560)),
    "resnet18": (3_589_096, (1_154_048, 1_003_520, 1_003_520, 1_003_520), (1_025_024, 1_025_024, 817_152, 817_152)),
    "resnet50": (16_987_624, (2_809_856, 3_211_264, 2_408_448, 3_211_264), (2_465_792, 2_458_624, 2_458_624, 1_978_368)),
    "squeezenet": (4_521_552, (1_132_672, 1_030_544, 982_144, 1_132_672), (1_191_232, 796_992, 796_992, 796_992)),
}

# default; IncludeInput=0; OptimizeBufferMemory=0; NoBranchConcat=0; clock per operator
PARAMETERS = {
    "resnet8": (44_032, 34_816, 49_152, 44_032, 34_880),
    "mbv2_0.35_224": (609_280, 765_184, 752_640, 609_280, 609_280),
    "resnet18": (817_152, 1_017_856, 1_003_520, 817_152, 817_152),
    "resnet50": (2_458_624, 2_458_624, 2_408_448, 2_458_624, 2_458_624),
    "densenet121": (1_913_856, 1_913_856, 1_605_632, 1_913_856, 1_913_856),
}
SETTINGS = ({}, {"include_input": False}, {"optimize_buffer": False}, {"no_branch_concat": False}, {"clock": "op"})


def tops(problem, strategy=networks.N2D2, **settings) -> int:
    """The end of the highest space: N2D2's arena."""
    generation = Generation(problem, Settings(**settings))
    order = ORDERS[strategy]
    if order is None:
        place_online(generation.spaces)
    else:
        place_sorted(generation.spaces, order)
    return max(space.offset + space.size for space in generation.spaces)


@pytest.mark.parametrize("name", few_fast(FIGURES, 12))
def test_arena_of_the_four_strategies(name):
    total, plain, wrapped = FIGURES[name]
    problem = NETWORKS[name]()
    assert sum(t.bytes for t in problem.tensors.values()) == total
    assert tuple(tops(problem, s, optimize_buffer=False, no_branch_concat=False) for s in ORDERS) == plain
    assert tuple(tops(problem, s) for s in ORDERS) == wrapped
    for strategy, figure in zip(ORDERS, wrapped, strict=True):
        plan = plan_memory(problem, strategy=strategy)
        assert plan.arena_bytes == figure or (name == "resnet50" and figure - plan.arena_bytes in (0, 7_168))
        assert check_plan(problem, plan) == []


@every("name", PARAMETERS)
def test_arena_of_each_parameter(name):
    problem = NETWORKS[name]()
    assert tuple(tops(problem, **settings) for settings in SETTINGS) == PARAMETERS[name]


def test_concatenation_in_place_costs_less_than_in_n2d2():
    """N2D2 sizes the space for each input from its own offset on: 64+128+32 bytes too much (spec
    4.6).
    """
    assert tops(networks.googlenet()) == 975_072 - 224
    assert tops(networks.googlenet(), no_branch_concat=False) == 1_075_200


def test_the_documented_mobilenet_v2_map():
    """N2D2's documentation: 1186.5 KWords; planes at 147, 143.5, 136.5, 129.5, 325.5 wrapping to
    315, 609.
    """
    problem = networks.mobilenet_v2(1.0, 224, expand_always=True)
    plan = plan_memory(problem, strategy=networks.N2D2)
    planes = list(plan.planes.values())
    assert plan.arena_bytes == 1186.5 * 1024
    assert [p.offset / 1024 for p in planes[1:7]] == [147, 143.5, 136.5, 129.5, 325.5, 315]
    assert [p.contiguous for p in planes[:7]] == [True, True, True, True, True, False, True]
    assert planes[5].intervals()[1] == (0, 315 * 1024)
    assert planes[6].intervals() == [(315 * 1024, 609 * 1024)]


def test_planning_and_proving_are_fast():
    problem = networks.mobilenet_v2(1.0, 224)
    start = time.process_time()
    plan = plan_memory(problem, strategy=networks.N2D2)
    planned = time.process_time()
    assert check_plan(problem, plan) == []
    assert planned - start < 0.2
    assert time.process_time() - planned < 3
