"""A network of gates, chosen positions, blocks and functions, exported in integers: every layer bit for bit Python's."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from support.export_build import need

from n2d2py.cli import main

BODY = """c1 = Conv<pads = [1,1,1,1]>(x, w1)
h = HardSwish(c1)
p = GlobalAveragePool(h)
s = Conv(p, w2)
g = HardSigmoid(s)
m = Mul(h, g)
a, b = Split<axis = 1>(m, parts)
e = Elu(a)
q = Min(e, b)
d = Concat<axis = 1>(q, b)
r = Pad<mode = "reflect">(d, pads)
u = DepthToSpace<blocksize = 2>(r)
t = ConvTranspose<strides = [2,2]>(u, w3)
v = Gelu(t)
f = GlobalAveragePool(v)
y = Flatten(f)"""
NETWORK = """
[database]
Type=Random_Database
[sp]
SizeX=8
SizeY=8
NbChannels=3
[onnx]
Input=sp
Type=ONNX
File=net.onnx
"""


@pytest.mark.slow
def test_every_layer_is_identical(tmp_path, monkeypatch, capsys):
    need("make", "g++")
    monkeypatch.chdir(tmp_path)
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]> g (float[N,3,8,8] x) => (float[N,10] y) {{ {BODY} }}')
    rng = np.random.default_rng(0)
    constants = {
        name: rng.normal(size=shape, scale=0.4).astype(np.float32)
        for name, shape in (("w1", (8, 3, 3, 3)), ("w2", (8, 8, 1, 1)), ("w3", (2, 10, 2, 2)))
    }
    constants.update(parts=np.array([4, 4]), pads=np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.save(model, tmp_path / "net.onnx")
    (tmp_path / "net.ini").write_text(NETWORK)
    assert main([*"net.ini -seed 1 -export CPP -fuse -nbbits 8 -calib 8 -db-export 2 -compare 4".split()]) == 0
    assert "17 layers: compiled values identical to Python's" in capsys.readouterr().out
