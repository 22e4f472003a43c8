"""Seeded random networks of every operator type, small enough to execute byte by byte."""

import random
from dataclasses import replace

from n2d2py.memory.access import Concatenated, View
from n2d2py.memory.problem import MemoryProblem
from support.memory_networks import Net


def random_problem(seed: int, *, ops: int = 14, uniform: bool = False, tables: bool = False) -> MemoryProblem:
    """A random DAG; `uniform` gives all tensors one byte per element, `tables` makes every fourth operator a "window"."""
    rng = random.Random(seed)
    net = Net(rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 5), 1 if uniform else rng.choice((1, 1, 2, 4)))
    tensors = [net.input]
    for _ in range(rng.randint(3, ops)):
        if not uniform and rng.random() < 0.2:
            net.element_bytes = rng.choice((1, 1, 2, 4))
        recent = tensors[-3:] if rng.random() < 0.8 else tensors
        step = _table if tables and rng.random() < 0.25 else _step
        made = step(net, rng, rng.choice(recent), tensors)
        if made is None:
            continue
        tensors.append(made)
        if rng.random() < 0.15 and not isinstance(net.ops[-1].access, (View, Concatenated)):
            net.ops[-1] = replace(net.ops[-1], scratch_bytes=rng.randint(1, 90))
    read = {name for op in net.ops for name in op.inputs}
    outputs = [t for t in tensors if t not in read] + ([rng.choice(tensors)] if rng.random() < 0.2 else [])
    return net.done(*dict.fromkeys(outputs))


def _step(net: Net, rng: random.Random, x: str, tensors: list[str]) -> str | None:
    t = net.tensors[x]
    same_type = [o for o in tensors if net.tensors[o].element_bytes == t.element_bytes]
    kind = rng.choice((*"conv conv conv dw pool add add ew concat concat fc softmax reshape upsample pad global copy".split(),))
    if kind in ("conv", "dw", "pool"):
        kernel = (rng.randint(1, min(4, t.height + 2)), rng.randint(1, min(4, t.width + 2)))
        stride = (rng.randint(1, 3), rng.randint(1, 3))
        dilation = rng.choice((1, 1, 1, 2)) if kind == "conv" else 1
        safe_distances = [dilation * (k - 1) for k in kernel * 2]
        pads = tuple(rng.randint(0, r) for r in safe_distances)
        if (
            rng.random() < 0.4
            or t.height + pads[0] + pads[2] <= safe_distances[0]
            or t.width + pads[1] + pads[3] <= safe_distances[1]
        ):
            pads = "same"
        channels = rng.randint(1, 9) if kind == "conv" else t.channels
        return net._window("pool" if kind == "pool" else "conv", x, channels, kernel, stride, pads, dilation)
    if kind in ("add", "ew"):
        peers = [o for o in tensors if net.tensors[o].shape == t.shape]
        if rng.random() < 0.5:
            peers.append(net.conv(x, t.channels, 1))
        return (net.add if kind == "add" else net.ew)(x, *([rng.choice(peers)] if rng.random() < 0.8 else []))
    if kind == "concat":
        saved, net.element_bytes = net.element_bytes, t.element_bytes
        peers = [o for o in same_type if net.tensors[o].shape[:2] == t.shape[:2]]
        parts = [
            net.conv(rng.choice(peers), rng.randint(1, 5), 1) if rng.random() < 0.7 else rng.choice(peers)
            for _ in range(rng.randint(2, 4))
        ]
        made = net.concat(*parts, **({"rescale": True} if rng.random() < 0.2 else {}))
        net.element_bytes = saved
        return made
    if kind == "fc":
        return net.fc(x, rng.randint(1, 40))
    if kind == "softmax":
        return net.softmax(x)
    if kind == "reshape":
        saved, net.element_bytes = net.element_bytes, t.element_bytes
        made = net.flatten(x) if rng.random() < 0.6 else net.reshape(x, t.width, t.height, t.channels)
        net.element_bytes = saved
        return made
    if kind == "upsample":
        return net.upsample(x, 2) if t.bytes < 300 else None
    if kind == "pad":
        pads = [rng.randint(0, 2) for _ in range(4)]
        return _named(net, "pad", net.pool(x, 1, 1, tuple(pads)))
    if kind == "global":
        return net.global_pool(x)
    return _named(net, "copy", net._add("fc", (x,), t.shape))


def _named(net: Net, name: str, made: str) -> str:
    """The result of the last operator, under another name."""
    op, tensor = net.ops.pop(), net.tensors.pop(made)
    name = f"{name}{len(net.ops)}"
    net.ops.append(replace(op, name=name, output=f"{name}.y"))
    net.tensors[f"{name}.y"] = replace(tensor, name=f"{name}.y")
    return f"{name}.y"


def _table(net: Net, rng: random.Random, x: str, tensors: list[str]) -> str | None:
    """A "window" of one or two inputs: ranges that move down and across, and sometimes back."""
    height, width = rng.randint(1, 9), rng.randint(1, 9)
    inputs = (x, *([rng.choice(tensors)] if rng.random() < 0.4 else []))

    def ranges(outputs: int, size: int) -> list[list[int]]:
        wide, made = rng.randint(1, 3), []
        for position in range(outputs):
            first = position * size // outputs + rng.choice((0, 0, 0, -1, 1)) * rng.randint(0, 1)
            first = min(max(first, 0), size - 1)
            made.append([first, min(size, first + wide)] if rng.random() < 0.9 else [0, 0])
        return made

    shapes = [net.tensors[name].shape for name in inputs]
    return net._add(
        "window",
        inputs,
        (height, width, rng.randint(1, 6)),
        lines=[ranges(height, shape[0]) for shape in shapes],
        columns=[ranges(width, shape[1]) for shape in shapes],
    )
