"""MemoryMode, MemoryBudget and StreamInput: plans that fit, refusals that say what would, inputs that arrive by lines, pools line by line."""

from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.e2e_run import assert_compiled_is_simulated
from support.errors import error_line, error_of
from support.memory_compiled import arena_symbol, export, memory_map, needs_tools
from support.memory_graphs import FAMILIES, settings_of
from support.memory_networks import Net
from support.programs import run_command
from support.tables import every, few_fast

from n2d2py.errors import N2D2Error
from n2d2py.memory import strategies
from n2d2py.memory.checker import check_plan
from n2d2py.memory.search import plan_whole
from n2d2py.memory.settings import MODES, Settings
from n2d2py.memory.strategies import budget_curve, peak_layers, plan_memory
from n2d2py.memory.stream import plan_pooled, plan_streamed

CALLER = r"""
#include "network.hpp"
#include <cstdio>
#include <cstring>
#include <vector>
struct State { const unsigned char* data; int next; std::size_t line; bool ordered; };
static void give(void* user, int input, int line, void* values) {
    State& state = *static_cast<State*>(user);
    state.ordered = state.ordered && input == 0 && line == state.next++;
    std::memcpy(values, state.data + state.line * static_cast<std::size_t>(line), state.line);
}
static std::size_t bytes(const branches_tensor* t) {
    return static_cast<std::size_t>(t->width * t->channels * t->element_bytes);
}
int main() {
    const branches_tensor *in = branches_input(0), *out = branches_output(0);
    const std::size_t line = bytes(in);
    std::vector<unsigned char> x(line * static_cast<std::size_t>(in->height));
    std::vector<unsigned char> whole(bytes(out) * static_cast<std::size_t>(out->height)), lines(whole.size());
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<unsigned char>(i * 37 % 251);
    const void* const inputs[] = {x.data()};
    void *const first[] = {whole.data()}, *const second[] = {lines.data()};
    branches_forward_raw(inputs, first, branches_static_arena());
    State state = {x.data(), 0, line, true};
    branches_forward_rows(give, &state, second, branches_static_arena());
    return !(whole == lines && state.ordered && state.next == in->height);
}
"""


@pytest.mark.parametrize("name", ["resnet8", "vww", "ds_cnn"])
def test_modes_need_less_and_less(name):
    problem = getattr(networks, name)()
    plans = [plan_memory(problem, mode=mode) for mode in MODES]
    sizes = [plan.arena_bytes for plan in plans]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) >= 3
    assert [plan.options["MemoryMode"] for plan in plans] == list(MODES)
    assert all(check_plan(problem, plan) == [] for plan in plans)
    assert not plans[0].streamed and not plans[1].streamed and plans[2].streamed


def test_a_budget_takes_the_fastest_mode_that_fits():
    problem = networks.resnet8()
    found = [plan_memory(problem, mode="Minimum", budget=budget) for budget in (60_000, 40_000, 26_000, 16_000)]
    assert [plan.options["MemoryMode"] for plan in found] == ["Speed", "Balanced", "Small", "Small"]
    assert all(plan.arena_bytes <= plan.options["MemoryBudget"] for plan in found)
    assert 0 < len(found[2].streamed) < len(found[3].streamed)
    assert all(check_plan(problem, plan) == [] for plan in found)


def test_a_budget_that_cannot_be_met_names_layers_and_settings():
    problem = networks.resnet8()
    error = error_of(plan_memory, problem, mode="Balanced", budget=33_000)
    assert error.code == "E607"
    text = str(error)
    assert "33,792" in text and "use MemoryMode=Small, which needs 25,600 bytes" in text
    assert plan_memory(problem, mode="Small", budget=33_000).arena_bytes == 25_600
    assert peak_layers(problem, plan_memory(problem, mode="Balanced"))[0] in text
    line = error_line(plan_memory, problem, mode="Minimum", budget=13_000)
    assert "use MemoryMode=Minimum StreamInput=1, which needs 12,896 bytes" in line


def test_advice_names_an_output_that_can_stay_with_the_caller():
    net = Net(8, 8, 4)
    net.upsample(net.conv(net.input, 16, 1), 4)
    with pytest.raises(N2D2Error, match="use MemoryMode=Small IncludeOutputInBuffer=0, which needs 1,280 bytes"):
        plan_memory(net.done(), mode="Small", budget=2_000)


def test_the_curve_falls_while_more_layers_stream():
    points = budget_curve(networks.resnet8(), Settings())
    assert points[0] == (33_792, 0) and points[-1][0] == 15_616 and len(points) > 4
    sizes, streamed = zip(*points, strict=True)
    assert list(sizes) == sorted(sizes, reverse=True) and list(streamed) == sorted(streamed)


@needs_tools
@pytest.mark.slow
def test_an_input_arrives_line_by_line(tmp_path):
    folder = export("branches", tmp_path, "StreamInput=1\n")
    assert any("input" in step for step in memory_map(folder)["schedule"])
    assert_compiled_is_simulated(folder)
    (folder / "caller.cpp").write_text(CALLER)
    run_command("make", "lib", "OPT=-O1", "OPENMP=0", cwd=folder)
    run_command(
        *"g++ -std=c++11 -Wall -Wextra -Wconversion -Werror -Iinclude caller.cpp lib/libbranches.a -o".split(),
        *"caller".split(),
        cwd=folder,
    )
    run_command("./caller", cwd=folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_exact(mode, tmp_path):
    assert_compiled_is_simulated(export("MobileNet", tmp_path, f"MemoryMode={mode}\n"))


def test_a_setting_that_needs_the_whole_budget_is_named():
    problem = networks.resnet8()
    assert "use MemoryMode=Small, which needs 25,600 bytes" in error_line(plan_memory, problem, mode="Balanced", budget=25_600)
    with pytest.raises(N2D2Error, match="use MemoryMode=Minimum StreamInput=1, which needs 12,896 bytes"):
        plan_memory(problem, mode="Minimum", budget=12_896)


def test_the_curve_has_eight_budgets_between_its_ends(monkeypatch):
    """In even steps from the plan that streams nothing to the smallest."""
    budgets = []

    def noted(problem, settings):
        budgets.append(settings.budget)
        return plan_streamed(problem, settings)

    monkeypatch.setattr(strategies, "plan_streamed", noted)
    points = strategies.budget_curve(networks.resnet8(), Settings())
    first, last = points[0][0], points[-1][0]
    wanted = [first + (last - first) * n // 9 for n in range(1, 9)]
    assert budgets[1] == 0 and set(budgets[2:]) <= set(wanted) and {wanted[0], wanted[-1]} <= set(budgets[2:])


CASES = [("packed", 2004), ("packed", 2005), ("packed", 2009), ("crowded", 2026), ("by_lines", 2028), ("packed", 2028)]


@pytest.mark.parametrize(("family", "seed"), few_fast(CASES[::-1], 3))
def test_what_the_fewest_bytes_meet_is_met(family, seed):
    """Whatever budget lies above the smallest plan by lines; where the first try meets it, it runs no more layers by lines than that."""
    problem, settings = FAMILIES[family](seed), settings_of(seed)
    most = plan_streamed(problem, replace(settings, budget=10**12)).arena_bytes
    least = plan_streamed(problem, settings).arena_bytes
    missed = 0
    for part in range(9):
        budget = least + (most - least) * part // 8
        first = plan_streamed(problem, replace(settings, budget=budget))
        plan = plan_memory(problem, settings, mode="Small", budget=budget)
        assert plan.arena_bytes <= budget and check_plan(problem, plan) == []
        missed += first.arena_bytes > budget
        if first.arena_bytes <= budget and plan.options["MemoryMode"] == "Small":
            assert len(plan.streamed) == len(first.streamed)
    assert missed


@pytest.mark.parametrize(("family", "seed"), few_fast(CASES[::-1], 3))
def test_points_of_a_curve_of_budgets(family, seed):
    """From the plan without lines to the smallest one, each with fewer bytes; ten at the most."""
    problem, settings = FAMILIES[family](seed), settings_of(seed)
    points = budget_curve(problem, settings)
    assert 2 <= len(points) <= 10 and points[0][1] == 0
    sizes = [size for size, _ in points]
    assert sizes == sorted(set(sizes), reverse=True)
    least = plan_streamed(problem, settings)
    assert points[-1] == (least.arena_bytes, len(least.streamed))


def _streamed(net: Net) -> set[str]:
    problem = net.done()
    plan = plan_pooled(problem, Settings())
    assert check_plan(problem, plan) == []
    return set(plan.streamed)


def test_tiny_yolo_needs_a_quarter_by_default():
    problem = networks.tiny_yolo_v2()
    plan = plan_memory(problem)
    assert check_plan(problem, plan) == [] and plan.strategy == "OptimizeOverlap"
    assert plan_whole(problem, Settings()).arena_bytes == 804_608
    assert plan.arena_bytes == 208_096 < 255_334
    assert plan_memory(problem, mode="Balanced").arena_bytes == plan.arena_bytes
    assert not plan_memory(problem, mode="Speed").streamed


@every("name", ["resnet8", "vww", "ds_cnn", "unet", "squeezenet11", "googlenet"])
def test_other_plans_stay_as_they_are(name):
    problem = getattr(networks, name)()
    plan = plan_pooled(problem, Settings())
    assert not plan.streamed and plan.arena_bytes == plan_whole(problem, Settings()).arena_bytes


def test_element_wise_layers_between_run_along():
    net = Net(40, 40, 3)
    net.conv(net.pool(net.ew(net.conv(net.input, 32, 3)), 2, 2), 8, 3)
    assert _streamed(net) == {"conv0", "ew1", "pool2"}


def test_windows_that_overlap_are_not_run_line_by_line():
    net = Net(40, 40, 3)
    net.conv(net.pool(net.conv(net.input, 32, 3), 3, 2), 8, 3)
    assert _streamed(net) == set()


def test_a_result_with_another_reader_is_whole():
    net = Net(40, 40, 3)
    x = net.conv(net.input, 32, 3)
    net.concat(net.pool(x, 2, 2), net.conv(x, 8, 3, 2))
    assert _streamed(net) == set()


@needs_tools
def test_compiled(tmp_path):
    folder = export("pooled", tmp_path, "")
    found = memory_map(folder)
    turns = [step for step in found["schedule"] if step.get("rows")]
    assert {step["op"] for step in turns} >= {"conv1", "pool1"}
    assert "pool2" not in {step["op"] for step in turns}
    assert_compiled_is_simulated(folder)
    assert arena_symbol(folder) < 40 * 48 * 24
