"""Many node tests as one network, exported to C++, compiled in few pieces, and run."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from n2d2py.exports import StoredStimuli
from n2d2py.exports.cpp.library import Export
from n2d2py.graph import Graph, Node, QuantGraph
from n2d2py.passes import fuse
from n2d2py.quant.quantize import float_graph
from support.conformance_cases import Case, Outcome, without_free_rows
from support.export_networks import request, write_export
from support.ops import BatchNorm, Dropout, Identity
from support.programs import run_command

__all__ = ["compiled", "differences", "joined"]

_FLAGS = [
    *"-std=c++11 -O0 -Wall -Wextra -Wpedantic -Wconversion -Werror -fPIC -Iinclude -Idnn/include -Ikernels".split(),
    *"-fno-exceptions -fno-rtti".split(),
]


def joined(cases: Sequence[tuple[Case, Outcome]]) -> tuple[QuantGraph, list[np.ndarray], list[tuple[Case, list[str]]]]:
    """(the network of all cases side by side, its inputs, for each case the tensors of its outputs)."""
    network, inputs, results = Graph("node_tests"), [], []
    for number, (case, outcome) in enumerate(cases):
        part = outcome.graph
        names = {name: network.add_input(f"c{number}_{name}", part.shape(name), part.kind(name)) for name in part.inputs}
        inputs += [outcome.feeds[name][:1] for name in part.inputs]
        for node in part.nodes:
            names.update({name: f"c{number}_{name}" for name in node.outputs})
            network.add(
                Node(
                    f"c{number}_{node.name}",
                    node.op,
                    [names[name] for name in node.inputs],
                    [names[name] for name in node.outputs],
                    node.params,
                    node.activation,
                )
            )
        outputs = []
        for index, name in enumerate(part.outputs):
            outputs.append(names[name])
            if names[name] in network.inputs or names[name] in network.outputs:
                outputs[-1] = f"c{number}_copy{index}"
                network.add(Node(outputs[-1], Identity(), [names[name]], [outputs[-1]]))
        network.outputs += outputs
        results.append((case, outputs))
    network, _ = fuse_plainly(network)
    typed = float_graph(network, -32)
    return typed, [x.astype(typed.type(name).dtype) for x, name in zip(inputs, network.inputs, strict=True)], results


def fuse_plainly(network: Graph) -> tuple[Graph, object]:
    """The network as -fuse 0 would have it: layers that have no kernel of their own are replaced."""
    for node in list(network.nodes):
        if isinstance(node.op, Dropout):
            node.op = Identity()
    if any(isinstance(node.op, BatchNorm) for node in network.nodes):
        outputs = list(network.outputs)
        fused, report = fuse(network, integer=False)
        assert len(fused.outputs) == len(outputs)
        return fused, report
    return network, None


def compiled(graph: QuantGraph, folder: Path, *, pieces: int = 2, **fields) -> Export:
    """The exported project of `graph`, compiled without optimisation in a few pieces; `fields` of its request."""
    write_export(folder, request(graph, targets=(), stimuli=StoredStimuli((), (), ()), **fields))
    sources = sorted(path.relative_to(folder) for path in (*folder.glob("dnn/src/*.cpp"), *folder.glob("dnn/parameters/*.cpp")))
    own = [
        path for path in sources if path.parent.name == "src" and path.stem in ("arena", "forward", "info", "quantize", "trace")
    ]
    layers = [path for path in sources if path not in own]
    parts = [layers[index::pieces] for index in range(pieces)]
    for index, part in enumerate(parts):
        (folder / f"part{index}.cpp").write_text("".join(f'#include "{path}"\n' for path in part))
    files = [*map(str, own), *(f"part{index}.cpp" for index in range(pieces))]
    running = [
        subprocess.Popen(
            ["g++", *_FLAGS, "-I.", "-c", "-o", f"{Path(name).stem}.o", name], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        for name in files
    ]
    for process in running:
        errors = process.communicate()[1]
        assert process.returncode == 0, errors[:4000]
    run_command("g++", "-shared", "-o", "network.so", *(f"{Path(name).stem}.o" for name in files), cwd=folder)
    return Export(folder / "network.so", graph.name)


def differences(cases: Sequence[tuple[Case, Outcome]], folder: Path) -> list[str]:
    """One line for each case whose compiled result differs from the expected one, for the first stimulus."""
    graph, inputs, results = joined(cases)
    found = compiled(graph, folder).run_raw(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    values = dict(zip(graph.outputs, found, strict=True))
    lines = []
    for case, names in results:
        for name, want in zip(names, case.outputs, strict=True):
            got = without_free_rows(case, values[name].reshape(-1), want).astype(np.float64)
            want = want.reshape(-1)[: got.size].astype(np.float64)
            with np.errstate(all="ignore"):
                if got.size != want.size or not np.allclose(
                    got, want, rtol=case.rtol, atol=max(case.atol, 1e-6), equal_nan=True
                ):
                    lines.append(f"{case.name}: {got[:6]} instead of {want[:6]}")
    return lines
