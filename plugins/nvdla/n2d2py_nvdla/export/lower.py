"""From the typed network to hardware layers."""

from __future__ import annotations

from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph
from n2d2py.graph.forms import Table
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.export.fallback import fall_back
from n2d2py_nvdla.export.hardware import Lowered, Region
from n2d2py_nvdla.export.islands import island_problem, island_scales
from n2d2py_nvdla.export.layers import plan_concatenations
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, flat, refuse, rule_of
from n2d2py_nvdla.export.pixels import holds_pixels


def lower(
    graph: QuantGraph, config: HardwareConfig, precision: int, scales: dict[str, float] | None = None, fallback: bool = False
) -> tuple[Lowered, list[N2D2Error]]:
    """Return the hardware layers of a network, and one error for each layer that has none.

    `scales` are those that tensors shall have instead of the scales of their types. With `fallback` layers that the
    accelerator does not have become extension operations of the CPU where they can.
    """
    state = Lowering(graph, config, precision)
    if state.integer:
        state.scales.update(island_scales(graph))
    tables = {node.output for node in graph.nodes if isinstance(node.form, Table)}
    state.scales.update({name: scale for name, scale in (scales or {}).items() if name not in tables})
    problems: list[N2D2Error] = []
    for name in graph.inputs:
        buffer = state.buffer(name, "input")
        buffer.image = state.integer and holds_pixels(graph, name)
        state.values[name] = HardwareTensor(Region.whole(buffer), state.scale_of(name))
        state.out.inputs[name] = (buffer, state.scale_of(name))
    plan_concatenations(state)
    for node in graph.nodes:
        if node.name in state.done:
            continue
        rule = rule_of(node.op.kind)
        try:
            problem = island_problem(state, node) if state.integer else None
            if problem is not None:
                raise problem
            if rule is None:
                raise refuse(node, "the accelerator has no such operation")
            rule(state, node)
        except N2D2Error as problem:
            reason = fall_back(state, node) if fallback else ""
            if reason is None:
                continue
            what = f"{problem.what}; not on the CPU either: {reason}" if reason else problem.what
            problems.append(N2D2Error(problem.code, what, where=problem.where or node.location, remedy=problem.remedy))
            for name in node.outputs:  # what follows is looked at all the same
                state.values[name] = HardwareTensor(
                    Region.whole(state.buffer(name, shape=flat(graph.shape(name)))), state.scale_of(name)
                )
    if not problems:
        for name in graph.outputs:
            value = state.values[name]
            if value.region.buffer.kind != "output":
                problems.append(
                    N2D2Error(
                        "E715",
                        f"the output '{name}' is {'an input' if value.region.buffer.kind == 'input' else 'a part of another tensor'}",
                        where=graph.name,
                        remedy="end the network with a layer",
                    )
                )
            state.out.outputs[name] = (value.region.buffer, value.scale)
    return state.out, problems
