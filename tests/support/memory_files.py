"""Reader of `memory_graph.json` (the GRAPH)."""

from typing import Any

from n2d2py.memory.access import (
    Access,
    Concatenated,
    Joined,
    LineTable,
    Pointwise,
    PoolWindow,
    Repacked,
    TensorSpec,
    Upsample,
    View,
    Whole,
    Window,
)
from n2d2py.memory.problem import MemoryProblem, OpSpec


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, (list, tuple)) else value


def read_graph(data: dict[str, Any]) -> MemoryProblem:
    """The problem that `graph_json` wrote; raises E602 if it is wrong."""
    tensors = {name: TensorSpec(name, t["h"], t["w"], t["c"], t.get("bytes", 1)) for name, t in data["tensors"].items()}
    ops = tuple(map(read_op, data["ops"]))
    problem = MemoryProblem(tensors, tuple(data["inputs"]), tuple(data["outputs"]), ops, data.get("states", 0))
    problem.validate()
    return problem


def read_op(entry: dict[str, Any]) -> OpSpec:
    """One operator of the GRAPH."""
    type, inputs = entry["type"], tuple(entry["inputs"])
    keys = {"by_lines": "by_lines", "prefers_caller": "straight", "dense": "dense"}
    common: dict[str, Any] = {name: entry.get(key, name == "by_lines") for name, key in keys.items()}
    if "residual" in entry:
        common["aliases"], inputs = len(inputs), (*inputs, entry["residual"])
    layer: str = {"add": "ElemWise", "softmax": "Softmax"}.get(type) or entry.get("layer", "")
    return OpSpec(entry["name"], _access(type, entry, common), inputs, entry["output"], entry.get("scratch_bytes", 0), layer)


def _access(type: str, entry: dict[str, Any], common: dict[str, Any]) -> Access:
    if type in ("conv", "pool"):
        dil = entry.get("dil", 1)
        form = {
            "kernel": (entry["kh"], entry["kw"]),
            "stride": (entry["sh"], entry["sw"]),
            "pads": tuple(entry["pads"]),
            "dilation": tuple(dil) if isinstance(dil, (list, tuple)) else (dil, dil),
            "groups": entry.get("groups", 1),
            **common,
        }
        if type == "conv":
            return Window(**form)
        return PoolWindow(**form, mode=entry.get("kind", ""), partial_bytes=entry.get("sum_bytes"))
    if type == "upsample":
        scale = entry["scale"]
        lines, columns = scale if isinstance(scale, (list, tuple)) else (scale, scale)
        return Upsample((lines, columns), **common)
    if type == "window" and "packs" in entry:
        return Repacked(_tuples(entry["lines"]), _tuples(entry["columns"]), **common, unpacks=entry["packs"] == "from")
    if type == "window":
        return LineTable(_tuples(entry["lines"]), _tuples(entry["columns"]), **common)
    if type == "concat" and entry.get("axis") == "columns":
        return Joined(**common)
    if type == "concat":
        return Concatenated(entry.get("rescale", False), **common)
    return {"add": Pointwise, "ew": Pointwise, "reshape": View}.get(type, Whole)(**common)
