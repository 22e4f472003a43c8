"""Pools over several channels, and rectifiers of their own, exported: every layer bit for bit that of Python."""

from __future__ import annotations

import shutil

import pytest

from n2d2py.cli import main

NETWORK = """
[database]
Type=Random_Database
[sp]
SizeX=9
SizeY=7
NbChannels=3
[conv]
Input=sp
Type=Conv
KernelSize=3
Padding=1
NbOutputs=6
[pool]
Type=Pool
PoolDims=3 2
Stride=2
Padding=1
[maxout] pool
Input=conv
Pooling=Max
NbOutputs=3
Mapping.SizeY=2
Mapping.StrideY=2
[all] pool
Input=conv
Pooling=Average
NbOutputs=2
[groups] pool
Input=conv
Pooling=Average
NbOutputs=6
Mapping.NbGroups=2
[turned] pool
Input=conv
Pooling=Max
NbOutputs=6
Mapping.Size=1
Mapping.OffsetX=2
[matrix] pool
Input=conv
Pooling=Max
NbOutputs=4
Mapping(conv)=1 0 0 0  1 1 0 0  0 1 1 0  0 1 0 0  0 0 1 0  0 0 1 1
[joined]
Input=maxout,all,groups,turned,matrix
Type=Activation
ActivationFunction=Rectifier
ActivationFunction.Clipping=0.75
NbOutputs=21
[fc]
Input=joined,conv
Type=Fc
NbOutputs=10
[fc.Target]
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None or shutil.which("make") is None, reason="needs g++ and make")
@pytest.mark.parametrize(
    "bits, verdict",
    [
        ("8", "compiled values identical to Python's"),
        ("16", "compiled values identical to Python's"),
        ("-32", "compiled values equal to Python's"),
    ],
)
def test_compiled_layers(tmp_path, monkeypatch, capsys, bits, verdict):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.ini").write_text(NETWORK)
    assert (
        main(
            [
                *"net.ini -w /dev/null -seed 1 -export CPP -fuse -nbbits".split(),
                bits,
                *"-calib 8 -db-export 2 -compare 4".split(),
            ]
        )
        == 0
    )
    assert verdict in capsys.readouterr().out
