"""The record of a plan in `statistics/memory/`: graph and map as JSON, the mapping as text and
picture.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from n2d2py.files import write_text
from n2d2py.memory.format import graph_json, in_known_terms, map_json
from n2d2py.memory.log_text import mapping_text
from n2d2py.memory.picture import draw_plan
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem


def write_memory_files(folder: Path, problem: MemoryProblem, plan: MemoryPlan, *, picture: bool = True) -> None:
    """Writes memory_graph.json, memory_map.json, memory_mapping.log and memory_mapping.png into
    `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "memory_graph.json": json_text(graph_json(in_known_terms(problem, plan))),
        "memory_map.json": json_text(map_json(plan)),
        "memory_mapping.log": mapping_text(problem, plan),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    if picture:
        draw_plan(problem, plan, folder / "memory_mapping.png")


def json_text(data: dict[str, Any]) -> str:
    """JSON with one line per tensor and per operator."""
    parts = []
    for key, value in data.items():
        if key == "tensors":
            lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items()]
            text = "{\n  " + ",\n  ".join(lines) + "\n }" if lines else "{}"
        elif key in ("ops", "schedule"):
            text = "[\n  " + ",\n  ".join(json.dumps(entry) for entry in value) + "\n ]" if value else "[]"
        else:
            text = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
