"""Seeded random networks for the planner: of every operator type, small enough to execute byte by byte, and of families that differ in kind."""

import random
from collections.abc import Callable
from dataclasses import replace

from n2d2py.memory.access import Concatenated, Joined, PoolWindow, Repacked, View
from n2d2py.memory.problem import MemoryProblem, residual_sums
from n2d2py.memory.settings import Settings
from support.memory_networks import Net, with_sums


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


def settings_of(seed: int) -> Settings:
    """Settings that change from seed to seed, by numbers that do not share a factor with those of the families."""
    rng = random.Random(seed * 7 + 3)
    return Settings(
        include_input=rng.random() < 0.7,
        optimize_buffer=rng.random() < 0.9,
        no_branch_concat=rng.random() < 0.8,
        alignment=rng.choice((1, 1, 1, 2, 3, 4, 8)),
        clock=rng.choice(("level", "op")),
        buffer_alignment=rng.choice((1, 1, 2, 4, 16, 64)),
        include_output=rng.choice((None, True, True, False)),
    )


def mixed(seed: int) -> MemoryProblem:
    """Every type of operator, with what kernels may say of themselves."""
    rng = random.Random(seed)
    return _described(random_problem(seed + 50_000, ops=rng.randint(4, 14), uniform=seed % 4 == 0, tables=seed % 3 == 0), rng)


def crowded(seed: int) -> MemoryProblem:
    """Layers of any tensor before, so that many live at once, of sizes that do not fit each other."""
    rng = random.Random(seed)
    net = Net(rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 30))
    tensors = [net.input]
    for _ in range(rng.randint(5, 9)):
        x = rng.choice(tensors)
        same = [y for y in tensors if net.tensors[y].shape == net.tensors[x].shape and y != x]
        if same and rng.random() < 0.4:
            tensors.append(net.add(x, rng.choice(same)))
        elif rng.random() < 0.2:
            tensors.append(net.fc(x, rng.randint(1, 60)))
        else:
            tensors.append(net.conv(x, rng.choice((net.tensors[x].channels, rng.randint(1, 40))), rng.choice((1, 1, 3))))
        if rng.random() < 0.15:
            net.ops[-1] = replace(net.ops[-1], scratch_bytes=rng.randint(1, 200))
    read = {name for op in net.ops for name in op.inputs}
    last = [t for t in tensors if t not in read]
    ends = [net.fc(name, rng.randint(1, 8)) for name in last]
    return net.done(*ends)


def by_lines(seed: int) -> MemoryProblem:
    """Layers that run line by line, and a head: windows that move far, sums with what lies far behind, pools over all."""
    rng = random.Random(seed)
    net = Net(rng.randint(5, 20), rng.randint(2, 9), rng.randint(1, 4), rng.choice((1, 1, 1, 2)))
    x, shapes = net.input, {}
    for _ in range(rng.randint(3, 9)):
        t = net.tensors[x]
        shapes.setdefault(t.shape, []).append(x)
        x = _line_step(net, rng, x, shapes[t.shape])
    if rng.random() < 0.5:
        x = net.global_pool(x)
        net.ops[-1] = replace(net.ops[-1], access=replace(net.ops[-1].access, partial_bytes=rng.choice((None, 1, 2, 8))))
    if rng.random() < 0.5:
        x = net.fc(x, rng.randint(1, 20))
    extra = [rng.choice([op.output for op in net.ops])] if rng.random() < 0.2 else []
    return _described(net.done(*dict.fromkeys((x, *extra))), rng)


def _line_step(net: Net, rng: random.Random, x: str, peers: list[str]) -> str:
    t = net.tensors[x]
    kind = rng.choice(("conv", "conv", "dw", "pool", "tiles", "ew", "add", "add", "concat", "up"))
    if kind in ("conv", "dw", "pool"):
        kernel = (rng.randint(1, min(5, t.height)), rng.randint(1, min(3, t.width)))
        stride = (rng.choice((1, 1, 2, 3)) if t.height > 6 else 1, rng.choice((1, 1, 2)) if t.width > 4 else 1)
        dilation = rng.choice((1, 1, 2)) if kind == "conv" and kernel[0] * 2 - 1 <= t.height else 1
        channels = rng.randint(1, 6) if kind == "conv" else t.channels
        pads = rng.choice(("same", "same", tuple(rng.randint(0, k - 1) for k in kernel * 2))) if dilation == 1 else "same"
        return net._window("pool" if kind == "pool" else "conv", x, channels, kernel, stride, pads, dilation)
    if kind == "tiles" and t.height >= 4 and t.width >= 2:
        return net.pool(x, 2, 2)
    if kind == "up" and t.bytes < 200:
        return net._add("upsample", (x,), (t.height * 2, t.width * 3, t.channels), scale=[2, 3])
    if kind == "concat":
        return net.concat(x, net.conv(rng.choice(peers), rng.randint(1, 3), 1))
    if kind == "add":
        return net.add(net.conv(x, t.channels, 3), rng.choice(peers))
    return net.ew(x)


def packed(seed: int) -> MemoryProblem:
    """Low-bit tensors between layers of bytes, with the layers that pack and unpack them."""
    rng = random.Random(seed)
    net = Net(rng.randint(6, 16), rng.randint(3, 8), rng.randint(2, 8))
    x = net.input
    for _ in range(rng.randint(2, 4)):
        x = net.conv(x, rng.randint(2, 12), rng.choice((1, 3)), rng.choice((1, 1, 2)))
        x = net.ew(x) if rng.random() < 0.3 else x
        x = net.pool(x, 2, 2) if rng.random() < 0.4 and min(net.tensors[x].shape[:2]) > 3 else x
        t = net.tensors[x]
        small = (t.height, t.width, -(-t.channels // rng.choice((2, 4, 8))))
        tables = {"lines": [[[y, y + 1] for y in range(t.height)]], "columns": [[[c, c + 1] for c in range(t.width)]]}
        x = net._add("window", (x,), small, **tables, packs="into")
        x = net._add("window", (x,), t.shape, **tables, packs="from")
        if rng.random() < 0.3:
            x = net.add(x, net._add("window", (net.ops[-1].inputs[0],), t.shape, **tables, packs="from"))
    net.conv(x, rng.randint(1, 4), 1)
    return net.done()


def residual(seed: int) -> MemoryProblem:
    """Sums of two branches, some with other readers of what they make, pools and concatenations between them."""
    rng = random.Random(seed)
    net = Net(rng.randint(3, 10), rng.randint(2, 8), rng.randint(1, 6))
    x = net.conv(net.input, rng.randint(2, 9), 3)
    for _ in range(rng.randint(1, 4)):
        t, y = net.tensors[x], x
        for _ in range(rng.randint(0, 2)):
            y = net.conv(y, rng.randint(1, 12), rng.choice((1, 3)))
        x = net.add(*rng.choice((lambda a, b: (a, b), lambda a, b: (b, a)))(x, net.conv(y, t.channels, rng.choice((1, 3)))))
        if rng.random() < 0.3:
            x = net.conv(x, rng.randint(2, 9), 3, rng.choice((1, 2)))
        elif rng.random() < 0.3:
            x = rng.choice((lambda x: net.concat(x, net.conv(x, 3, 1)), lambda x: net.pool(x, 2, 1)))(x)
    x = net.flatten(net.global_pool(x)) if rng.random() < 0.5 else net.conv(x, 2, 1)
    extra = [rng.choice([op.output for op in net.ops])] if rng.random() < 0.3 else []
    return net.done(*dict.fromkeys((x, *extra)))


def summed(seed: int) -> MemoryProblem:
    """Residual networks whose convolutions do the sums."""
    rng, problem = random.Random(seed), residual(seed)
    return with_sums(problem, [each for each in residual_sums(problem) if rng.random() < 0.8])


def joined(seed: int) -> MemoryProblem:
    """Concatenations of concatenations, of what others read too, and of inputs."""
    rng = random.Random(seed)
    net = Net(rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6), rng.choice((1, 1, 2)))
    tensors = [net.input, net.conv(net.input, rng.randint(1, 8), 3)]
    for _ in range(rng.randint(3, 7)):
        roll = rng.random()
        if roll < 0.5:
            tensors.append(net.conv(rng.choice(tensors), rng.randint(1, 8), rng.choice((1, 3))))
        elif roll < 0.9:
            parts = [rng.choice(tensors[-4:]) for _ in range(rng.randint(2, 4))]
            tensors.append(net.concat(*parts, **({"rescale": True} if rng.random() < 0.15 else {})))
        else:
            t = net.tensors[tensors[-1]]
            tensors.append(net.reshape(net.reshape(tensors[-1], t.height * t.width, 1, t.channels), *t.shape))
    read = {name for op in net.ops for name in op.inputs}
    ends = [name for name in tensors if name not in read]
    return net.done(*(ends if rng.random() < 0.6 else [net.concat(*ends, ends[0])]))


def several(seed: int) -> MemoryProblem:
    """Two inputs; every second network has the second one as a state."""
    rng = random.Random(seed)
    net = Net(rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 5), rng.choice((1, 1, 4)))
    other = net.tensor("other", *net.tensors["input"].shape)
    a, b = net.conv(net.input, rng.randint(1, 9), 3), net.conv(other, rng.randint(1, 9), 1)
    c = net.concat(a, b)
    d = net.add(net.conv(c, net.tensors[other].channels, rng.choice((1, 3))), rng.choice((other, net.input)))
    e = net.ew(d) if rng.random() < 0.5 else net.conv(d, net.tensors[other].channels, 1)
    out = net.softmax(net.fc(rng.choice((c, d, e)), rng.randint(1, 30)))
    problem = replace(net.done(out, e), inputs=(net.input, other), states=seed % 2)
    return _described(problem, rng)


def strip_chain(seed: int) -> MemoryProblem:
    """A chain with residuals whose segments can be in strips of columns; every third ends in a pool over all channels in slices."""
    rng = random.Random(seed)
    net = Net(rng.randint(4, 14), rng.randint(3, 20), rng.randint(1, 4), rng.choice((1, 1, 1, 2)))
    x = net.input
    for _ in range(rng.randint(2, 5)):
        t = net.tensors[x]
        kind = rng.choice(("conv", "conv", "dw", "pool", "add", "ew"))
        kernel, stride = rng.choice((1, 2, 3)), rng.choice((1, 1, 2)) if min(t.height, t.width) > 4 else 1
        pads = (rng.randint(0, kernel - 1), rng.randint(0, kernel - 1), kernel - 1, rng.randint(0, kernel - 1))
        if kind == "conv":
            x = net.conv(x, rng.randint(1, 16), kernel, stride, pads)
        elif kind in ("dw", "pool"):
            x = (net.dw if kind == "dw" else net.pool)(x, kernel, stride, pads)
        elif kind == "ew":
            x = net.ew(x)
        else:
            x = net.add(x, net.conv(x, t.channels, 3, 1, 1))
    if seed % 3 == 0:
        x = net.global_pool(net.ew(net.conv(x, rng.choice((17, 24, 32, 40, 64, 100)), 1)))
        return net.done(net.fc(x, 3))
    return net.done(net.conv(x, 2, 1))


FAMILIES: dict[str, Callable[[int], MemoryProblem]] = {
    "mixed": mixed,
    "crowded": crowded,
    "by_lines": by_lines,
    "packed": packed,
    "summed": summed,
    "joined": joined,
    "several": several,
}


def _described(problem: MemoryProblem, rng: random.Random) -> MemoryProblem:
    """With what kernels say of themselves: a few make no single lines, some are faster into the buffer of the caller, some need scratch."""
    ops = []
    for op in problem.ops:
        if not isinstance(op.access, (View, Concatenated, Joined, Repacked)):
            access = op.access
            if rng.random() < 0.06:
                access = replace(access, by_lines=False)
            if rng.random() < 0.3:
                access = replace(access, prefers_caller=True)
            scratch = rng.randint(1, 120) if rng.random() < 0.08 and not isinstance(access, PoolWindow) else op.scratch_bytes
            op = replace(op, access=access, scratch_bytes=scratch)
        ops.append(op)
    return replace(problem, ops=tuple(ops))
