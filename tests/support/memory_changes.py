"""Random changes of memory graphs and maps as JSON data."""

from __future__ import annotations

import copy
import json
import random
from typing import Any


def places(data: Any, path: tuple = ()) -> list[tuple]:
    """The paths of everything inside of JSON data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for key, value in inner for found in ((*path, key), *places(value, (*path, key)))]


def change(data: dict[str, Any], rng: random.Random) -> str:
    """Changes one thing in place; what was done."""
    path = rng.choice(places(data))
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    key, value = path[-1], holder[path[-1]]
    if isinstance(value, bool):
        new = not value
    elif isinstance(value, int):
        new = value + rng.choice([1, -1, 1, -1, 7, -7, 64, -64, 1000])
    elif value is None:
        new = rng.choice([0, 1, 5])
    elif isinstance(value, str):
        new = rng.choice([other for other in _strings(data) if other != value] or ["other"])
    elif value and isinstance(value, list) and rng.random() < 0.7:
        new = list(value)
        at, other = rng.randrange(len(new)), rng.randrange(len(new))
        if rng.random() < 0.4:
            del new[at]
        elif at != other:
            new[at], new[other] = new[other], new[at]
        else:
            new.insert(at, copy.deepcopy(new[at]))
    elif isinstance(holder, list) or rng.random() < 0.5:
        del holder[key]
        return f"{'.'.join(map(str, path))} removed"
    else:
        new = copy.deepcopy(holder[rng.choice([other for other in holder if type(holder[other]) is type(value)])])
    holder[key] = new
    return f"{'.'.join(map(str, path))} -> {json.dumps(new)[:40]}"


def _strings(data: Any) -> list[str]:
    if isinstance(data, str):
        return [data]
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return sorted({found for part in parts for found in _strings(part)})
