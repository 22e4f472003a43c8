"""A built-in operator's file, moved out of the package into a plug-in folder, works there unchanged, C++ included."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]

NET = """
[database]
Type=Random_Database

[sp]
SizeX=9
SizeY=7
NbChannels=6

[norm]
Input=sp
Type=LRN
NbOutputs=6
ConfigSection=settings

[settings]
N=3
Alpha=0.25
K=1.5

[fc]
Input=norm
Type=Fc
NbOutputs=10

[fc.Target]
"""

RUN = """
import sys
import numpy as np, onnx
from n2d2py.cli import main
from n2d2py.frontend.ini.network import build_graph
from n2d2py.contracts.ini.weights import WeightStore
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.ini import load_document
from n2d2py.plugin import load_plugin
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

plugins = sys.argv[1:]
if main([*(word for folder in plugins for word in ("-plugin", folder)), "net.ini", "-describe", "-w", "/dev/null"]):
    sys.exit(1)
for folder in plugins:
    load_plugin(folder)
model = onnx.parser.parse_model('''
<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 6, 7, 9] x) => (float[N, 6, 7, 9] y) { y = LRN<size=5, alpha=0.5, beta=0.6, bias=1.25>(x) }''')
x = np.random.default_rng(3).normal(size=(2, 6, 7, 9)).astype(np.float32)
for graph in (import_onnx(model), build_graph(load_document("net.ini"), (1, 6, 7, 9), WeightStore(None), 1)):
    print([(node.name, node.op, node.inputs, node.outputs) for node in graph.nodes])
    engine = FloatEngine(graph)
    print(engine.backend)
    for values in (engine.run(x), run_graph(graph, {graph.inputs[0]: x})):
        print({name: array.tobytes().hex() for name, array in values.items()})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the package without LRN, which lies in the plug-in folder `mine` beside it."""
    folder = tmp_path_factory.mktemp("moved")
    shutil.copytree(ROOT / "n2d2py", folder / "package" / "n2d2py", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("kernels", "export_templates", "params", "models"):
        (folder / "package" / name).symlink_to(ROOT / name)
    (folder / "mine").mkdir()
    shutil.move(folder / "package" / "n2d2py" / "operators" / "lrn.py", folder / "mine" / "lrn.py")
    (folder / "net.ini").write_text(NET)
    return folder


def python(folder: Path, package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a package, in the folder; the processes share the bytecode of the copy."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(package), "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "N2D2PY_DATA": str(ROOT)}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, text=True, capture_output=True, timeout=300)


def run(folder: Path, package: Path, *plugins: str) -> subprocess.CompletedProcess[str]:
    return python(folder, package, "-c", RUN, *plugins)


def test_same_results_as_built_in(folder):
    moved, built_in = run(folder, folder / "package", "mine"), run(folder, ROOT)
    assert (moved.returncode, built_in.returncode) == (0, 0), moved.stderr + built_in.stderr
    assert "LRN(size=5" in built_in.stdout and built_in.stdout.count("onnxruntime") == 2
    assert moved.stdout == built_in.stdout


def test_package_lacks_it(folder):
    done = run(folder, folder / "package")
    assert done.returncode == 1 and "E226" in done.stderr and "Type=LRN" in done.stderr


def test_built_in_name_is_refused(folder):
    done = run(folder, ROOT, "mine")
    assert done.returncode == 1 and "E023" in done.stderr and "LRN" in done.stderr


def compare(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(folder, folder / "package", "-m", "n2d2py", *words, *"-plugin mine -export CPP -compare 2".split())


@pytest.mark.slow
def test_lrn_is_exported_built_and_compared(folder):
    done = compare(folder, "net.ini", "-w", "/dev/null", "-nbbits", "-32", "-o", "real")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plug-in mine:" in done.stdout + done.stderr and "the C++ layer of LRN" in done.stdout + done.stderr
    assert "n2d2::lrn<" in "".join(path.read_text() for path in (folder / "real").rglob("*.?pp"))


def test_an_integer_operator_is_exported_built_and_compared(folder):
    shutil.move(folder / "package" / "n2d2py" / "operators" / "depth_to_space.py", folder / "mine" / "depth_to_space.py")
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 8, 6, 5] x) => (float[1, 2, 12, 10] y) { y = DepthToSpace<blocksize=2>(x) }""")
    onnx.save(model, folder / "moves.onnx")
    np.save(folder / "x.npy", np.random.default_rng(1).normal(size=(4, 8, 6, 5)).astype(np.float32))
    done = compare(folder, "moves.onnx", "-calib", "-1", "-calib-data", "x.npy", "-o", "whole")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the quantizer of DepthToSpace" in done.stdout + done.stderr
    assert "n2d2::depthToSpace<" in "".join(path.read_text() for path in (folder / "whole").rglob("*.?pp"))


def test_an_operator_that_a_rewrite_makes_is_exported_and_compared(folder):
    shutil.move(folder / "package" / "n2d2py" / "operators" / "pool_sum.py", folder / "mine" / "pool_sum.py")
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 7, 6] a, float[1, 4, 3, 3] b) => (float[1, 4, 3, 3] y) {
    pooled = MaxPool<kernel_shape=[3, 2], strides=[2, 2]>(a)
    y = Add(pooled, b)
}""")
    onnx.save(model, folder / "sum.onnx")
    random = np.random.default_rng(1)
    shapes = {"a": (4, 4, 7, 6), "b": (4, 4, 3, 3)}
    np.savez(folder / "ab.npz", **{name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    done = compare(folder, "sum.onnx", "-calib-data", "ab.npz", "-nbbits", "-32", "-o", "sum")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the chain fuse-pool-sum" in done.stdout + done.stderr
    assert "n2d2::poolSum<" in "".join(path.read_text() for path in (folder / "sum").rglob("*.?pp"))
