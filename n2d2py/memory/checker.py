"""Proof of a memory plan from its two files alone: every byte read still holds what its producer wrote.

The arena is an array of stamps. A store writes the stamp of (tensor, position) at each address; a read compares. A fault names
the operator and the tensor that overwrote its data. This module shares no code with the planner and reads the GRAPH and the MAP
in their JSON form.

Order inside an operator: window operators (conv, pool, upsample, window) and concatenations store output rows in order, with
any order inside a row. The inputs of row y must survive all stores of rows <= y, or >= y if the step's `loop` starts with -h.
Pointwise operators (add, ew) read all operands of an element before they store it, in HWC order, or from the last to the first
element (-h-w-c). Others need their inputs whole. The only store unit is `elem`. A step with `rows` computes these rows only,
forwards. Each row of an operator is computed at most once, in ascending order; unused rows may be missing, unless the tensor is
outside of the arena. Rows of an arriving input follow each other from first to last. A global pool may take `in_rows` of its
input at a time: its workspace keeps partial results between steps, and the step that commits, with the last row, writes the
output.

A convolution with a `residual` adds the bytes of that tensor in its epilogue: the output lies exactly over them, and they must
be intact when it runs.
"""

from typing import Any

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.memory.case import Case, Violation
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.replay import Replay

_FORM = {"offset", "size", "stride", "length", "count"}
_OPTIONAL = {"limit", "wrap_offset", "alloc", "release", "external", "ring_rows", "pitch"}
_STEP = {"op", "clock", "view", "scratch", "loop", "unit", "rows", "in_rows", "commit"}
_ARRIVAL = {"input", "rows", "clock"}
_LINES = ("hwc", "hcw", "-hwc", "-hcw", "-h-w-c")
_ELEMENTS = ("hwc", "-h-w-c")


def check_plan(problem: MemoryProblem, plan: MemoryPlan) -> list[Violation]:
    """Return the faults of a plan, none if it is proved. The JSON of the export is checked."""
    return check_map(graph_json(problem), map_json(plan))


def check_map(graph: dict[str, Any], memory_map: dict[str, Any]) -> list[Violation]:
    """Return the faults of a MAP for a GRAPH (`memory_map.json`, `memory_graph.json`), none if it is proved."""
    case = Case(graph, memory_map)
    _check_planes(case)
    _Schedule(case).check()
    _check_constants(case)
    return case.found or Replay(case).run()


def refuse_violations(violations: list[Violation]) -> None:
    """Raise E604, once per fault, unless the plan is proved."""
    remedy = "report this plan; MemoryManagerStrategy=None or OptimizeBufferMemory=0 may avoid it"
    texts = [f"the memory plan overwrites live bytes: {violation}" for violation in violations]
    ErrorList.raise_if([N2D2Error("E604", text, where="memory", remedy=remedy) for text in texts])


def _check_planes(case: Case) -> None:
    """Check that every plane has its tensor's form, lies in the arena, and wraps between rows only."""
    planes = case.map["tensors"]
    for name in case.graph["tensors"]:
        plane = planes.get(name)
        if plane is None:
            case.fault("missing", f"{name} has no place", tensor=name)
            continue
        missing = _FORM - set(plane)
        unknown = set(plane) - _FORM - _OPTIONAL
        if missing:
            case.fault("missing", f"{name} lacks {', '.join(sorted(missing))}", tensor=name)
        elif unknown:
            case.fault("unsupported", f"{name}: {', '.join(sorted(unknown))} is not checked", tensor=name)
        elif bool(plane.get("external")) != (name in case.outside):
            case.fault("external", f"{name} is outside the arena but neither input nor output", tensor=name)
        else:
            _check_plane(case, name, plane)


def _check_plane(case: Case, name: str, plane: dict[str, Any]) -> None:
    fault = _form_fault(plane, name, case.shape[name])
    if fault:
        case.fault(*fault, tensor=name)
    elif name not in case.outside:
        first, last = case.extent(name)
        if first < 0 or last >= case.size:
            case.fault("arena", f"{name} occupies bytes {first} to {last} of an arena of {case.size}", tensor=name)
        if not case.is_in_one_memory(first, last + 1):
            case.fault("memory", f"{name} is not in one memory: bytes {first} to {last}", tensor=name)
        element, offset, stride = case.graph["tensors"][name].get("bytes", 1), plane["offset"], plane["stride"]
        if any(value % element for value in (offset, stride, plane.get("wrap_offset", 0), plane.get("pitch", 0))):
            text = f"elements of {element} bytes at offset {offset}, stride {stride}, wrap {plane.get('wrap_offset')}"
            case.fault("alignment", f"{name} has {text}", tensor=name)


def _form_fault(plane: dict[str, Any], name: str, shape: tuple[int, int, int]) -> tuple[str, str] | None:
    (height, width, pixel), stride, count = shape, plane["stride"], plane["count"]
    line, limit, ring = stride * plane["length"], plane.get("limit"), plane.get("ring_rows")
    if (count, plane["length"], plane["size"]) != (height, width, pixel):
        dims = f"{count}, {plane['length']} and {plane['size']}"
        return "form", f"{name} is {height} lines of {width} pixels of {pixel} bytes, its plane has {dims}"
    if stride < pixel:
        return "form", f"the pixels of {name} overlap: stride {stride}, size {pixel}"
    if ring is not None and (limit is not None or not 1 <= ring <= count):
        return "form", f"{name} keeps {ring} of {count} lines, or wraps besides"
    if "pitch" in plane and (plane["pitch"] < line or limit is not None):
        return "form", f"the lines of {name} overlap, or wrap besides: pitch {plane['pitch']}"
    if limit is not None and not ("wrap_offset" in plane and limit % line == 0 and 0 <= limit <= line * count):
        text = f"wraps after {limit} bytes, inside a line of {line} bytes or outside its {count} lines"
        return "wrap", f"{name} {text}"
    return None


class _Schedule:
    """Check of a schedule: every operator runs once, after its producers, and clocks respect alloc and release.

    Attributes:
        partly: tensors that are written or arrive by rows.
        last: index of the last step of each operator.
        ready: tensors that are complete; `done`: operators that have run.
        begun: rows of a tensor that are there; `lines_read`: rows of its input that an operator has accumulated.
    """

    def __init__(self, case: Case):
        self.case, self.steps = case, case.map["schedule"]
        arriving = {step["input"] for step in self.steps if "input" in step}
        by_rows = (step["op"] for step in self.steps if "rows" in step and step.get("op") in case.ops)
        self.partly = arriving | {case.ops[name]["output"] for name in by_rows}
        self.last = {step["op"]: index for index, step in enumerate(self.steps) if "op" in step}
        self.ready, self.done = set(case.graph["inputs"]) - arriving, set[str]()
        self.begun: dict[str, int] = {}
        self.lines_read: dict[str, int] = {}

    def check(self) -> None:
        case, clock = self.case, -1
        for index, step in enumerate(self.steps):
            now = step.get("clock", index)
            if now < clock:
                case.fault("clock", f"step {index} runs at clock {now}, after clock {clock}")
            clock = max(clock, now)
            if "input" in step:
                self._check_arrival(step, index)
            elif step.get("op") not in case.ops or step["op"] in self.done:
                case.fault("schedule", f"step {index} runs {step.get('op')}, which is unknown or has run", op=step.get("op"))
            else:
                self._check_operator(case.ops[step["op"]], step, index, now)
        for name in case.ops:
            if name not in self.done:
                case.fault("schedule", "never runs", op=name)
        for name in case.graph["outputs"]:
            release = case.map["tensors"].get(name, {}).get("release", clock + 1)
            if release <= clock:
                what = f"the network output {name} is released at clock {release}, before the end"
                case.fault("lifetime", what, tensor=name)

    def _check_operator(self, op: dict[str, Any], step: dict[str, Any], index: int, now: int) -> None:
        case, name, extra = self.case, op["name"], set(step) - _STEP
        if extra:
            case.fault("unsupported", f"step {index}: {', '.join(sorted(extra))} is not checked", op=name)
        elif not step.get("view"):
            _check_order(case, op, step)
        by_lines = "rows" in step or "in_rows" in step
        late = [t for t in self._reads(op) if t not in self.ready and not (by_lines and t in self.partly)]
        if late:
            case.fault("schedule", f"runs before {', '.join(late)} is written", op=name, tensor=late[0])
        self._check_lifetimes(op, step, now)
        commits = "rows" not in step or self.last[name] == index
        if "in_rows" in step:
            commits = self._check_in_rows(op, step)
        elif "rows" in step:
            self._check_rows(name, op["output"], step["rows"], commits)
        if commits:
            self.ready.add(op["output"])
            self.done.add(name)

    @staticmethod
    def _reads(op: dict[str, Any]) -> list[str]:
        return [*op["inputs"], *([op["residual"]] if "residual" in op else [])]

    def _check_lifetimes(self, op: dict[str, Any], step: dict[str, Any], now: int) -> None:
        case, planes = self.case, self.case.map["tensors"]
        output = planes.get(op["output"], {})
        if not step.get("view") and output.get("alloc", now) > now:
            what = f"writes {op['output']} at clock {now}, before its alloc {output['alloc']}"
            case.fault("lifetime", what, op=op["name"], tensor=op["output"])
        for name in self._reads(op):
            release = planes.get(name, {}).get("release", now)
            if release < now:
                case.fault("lifetime", f"reads {name} at clock {now}, after its release {release}", op=op["name"], tensor=name)

    def _check_arrival(self, step: dict[str, Any], index: int) -> None:
        case, name = self.case, step["input"]
        if name not in case.graph["inputs"] or name in case.outside or set(step) - _ARRIVAL:
            case.fault("schedule", f"step {index}: {name} does not arrive by rows", tensor=name)
        else:
            self._check_rows(None, name, step.get("rows"))
        if self.begun.get(name) == case.shape.get(name, (None,))[0]:
            self.ready.add(name)

    def _check_rows(self, op: str | None, tensor: str, rows: list[int] | None, ends: bool = False) -> None:
        """Record a fault unless these rows follow those computed before. None may be skipped if the tensor is outside of the
        arena or arrives; none may be missing at the end if it is outside and `ends`."""
        case, next_one = self.case, self.begun.get(tensor, 0)
        height = case.shape[tensor][0]
        complete = op is None or tensor in case.outside
        if not rows or not next_one <= rows[0] < rows[1] <= height or (complete and rows[0] != next_one):
            case.fault("schedule", f"makes lines {rows} of {tensor}, line {next_one} is next", op, tensor)
            return
        self.begun[tensor] = rows[1]
        if ends and complete and rows[1] != height:
            case.fault("schedule", f"makes {rows[1]} of the {height} lines of {tensor}", op, tensor)

    def _check_in_rows(self, op: dict[str, Any], step: dict[str, Any]) -> bool:
        """True if the operator commits; faults when the lines are not the next or the commit is not with the last."""
        case, name, rows, source = self.case, op["name"], step["in_rows"], op["inputs"][0]
        height, first = case.shape[source][0], self.lines_read.get(name, 0)
        commits = bool(step.get("commit"))
        if not rows or rows[0] != first or not first < rows[1] <= height or "rows" in step:
            case.fault("schedule", f"takes lines {rows} of {source}, line {first} is next", name, source)
            return True
        if commits != (rows[1] == height):
            case.fault("schedule", f"commits with lines {rows} of the {height} of {source}", name, source)
            return True
        self.lines_read[name] = rows[1]
        return commits


def _check_order(case: Case, op: dict[str, Any], step: dict[str, Any]) -> None:
    """Check that loop nest and store unit are supported by the replay."""
    loop, unit = step.get("loop", "hwc"), step.get("unit", "elem")
    known = _ELEMENTS if op["type"] in ("add", "ew") else _LINES
    if "rows" in step or "in_rows" in step:
        known = ("hwc", "hcw")
    if loop not in known:
        case.fault("unsupported", f"the loop order {loop} is not checked; known: {', '.join(known)}", op=op["name"])
    if unit != "elem":
        case.fault("unsupported", f"the store unit {unit} is not checked", op=op["name"])


def _check_constants(case: Case) -> None:
    """Record constants without an operator, and memories that hold more than they have room for."""
    room = dict(case.map.get("roms", {}))
    for each in case.map.get("memories", ()):
        room[each["name"]] = each["bytes"] + each.get("reserved", 0) - _end_in(case, each)
    for each in case.map.get("constants", ()):
        where = {each["home"]} if "copy" in each else {each["home"], each["memory"]}
        if each["op"] not in case.ops or not (where | {each["memory"]}) <= set(room):
            case.fault("constant", f"{each['name']} is of no layer, or in no memory", op=each["op"])
            continue
        for name in where:
            room[name] -= each["bytes"]
            if room[name] < 0:
                case.fault("constant", f"{each['name']} does not fit into {name}", op=each["op"])


def _end_in(case: Case, memory: dict[str, Any]) -> int:
    """Return the bytes of a memory up to the last tensor, workspace or copy."""
    ends = [case.extent(name)[1] + 1 for name in case.graph["tensors"] if name not in case.outside]
    ends += [part["offset"] + part["size"] for step in case.map["schedule"] for part in step.get("scratch", ())]
    ends += [each["copy"] + each["bytes"] for each in case.copies]
    return max((end - memory["start"] for end in ends if memory["start"] < end <= memory["start"] + memory["bytes"]), default=0)
