"""A network of the layers beyond the usual ones, exported to C++: every layer bit for bit that of Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs import needs

from n2d2py.cli import main

NETWORK = """
InsertBatchNormAfterConv=1
[database]
Type=Random_Database
[sp]
SizeX=16
SizeY=16
NbChannels=3
[base]
NbOutputs=8
Mapping.Size=1
[conv1]
Input=sp
Type=Conv
KernelSize=3
Padding=1
NbOutputs=8
ActivationFunction=Rectifier
ConfigSection=remap
[remap]
OutputsRemap=1:2,0:2
[pool1] base
Input=conv1
Type=Pool
Pooling=Max
PoolSize=2
Stride=2
[conv2]
Input=pool1
Type=Conv
KernelSize=3
Padding=1
SubSample=2
NbOutputs=12
ActivationFunction=Rectifier
[up]
Input=conv2
Type=Deconv
KernelSize=3
Stride=2
NbOutputs=8
ActivationFunction=Rectifier
[crop]
Input=up
Type=Padding
NbOutputs=8
TopPadding=0
BottomPadding=-1
LeftPadding=-1
RightPadding=0
[unpool] base
Input=crop
Type=Unpool
Pooling=Max
ArgMax=pool1
PoolSize=2
Stride=2
[bilinear]
Input=pool1
Type=Resize
OutputWidth=16
OutputHeight=16
Mode=Bilinear
NbOutputs=8
[nearest]
Input=pool1
Type=Resize
OutputWidth=16
OutputHeight=16
Mode=NearestNeighbor
NbOutputs=8
[spread] base
Input=pool1
Type=Unpool
Pooling=Average
PoolSize=2
Stride=2
[sum]
Input=unpool,bilinear,nearest,spread
Type=ElemWise
Operation=Sum
NbOutputs=8
Weights=1 2 3 4 5 6 7 8
CoeffMode=PerChannel
[scale]
Input=sum
Type=Scaling
Factor=0.1
NbOutputs=8
[threshold]
Input=scale
Type=Threshold
NbOutputs=8
Threshold=0.05
ConfigSection=zero
[zero]
Operation=ToZero
[swapped]
Input=threshold
Type=Transpose
NbOutputs=8
Perm=1 0 2 3
[flat]
Input=swapped
Type=Reshape
Dims=8 32 -1
NbOutputs=8
[fc]
Input=flat
Type=Fc
InputOffsetX=2
InputWidth=4
NbOutputs=10
[fc.Target]
"""


POOLS = """
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
"""Pools over several channels, and a rectifier with a limit."""


VERDICTS = {
    "8": "compiled values identical to Python's",
    "16": "compiled values identical to Python's",
    "-32": "compiled values equal to Python's",
}
needs_compiler = needs("g++", "make")


def compares(text: str, bits: str, folder: Path, capsys) -> None:
    """Exports a network and compares every layer of the compiled program with Python."""
    (folder / "net.ini").write_text(text)
    command = f"net.ini -w /dev/null -seed 1 -export CPP -fuse -nbbits {bits} -calib 8 -db-export 2 -compare 4"
    assert main(command.split()) == 0
    assert VERDICTS[bits] in capsys.readouterr().out


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("bits", VERDICTS)
def test_compiled_layers(tmp_path, monkeypatch, capsys, bits):
    monkeypatch.chdir(tmp_path)
    # tables of 16 bits are refused
    compares(NETWORK.replace("Operation=ToZero", "Operation=Truncate") if bits == "16" else NETWORK, bits, tmp_path, capsys)
    folder = next(tmp_path.glob("export_CPP_*")) / "weights_export"
    assert len((folder / "up_weights.syntxt").read_text().splitlines()) == 8
    assert len((folder / "fc_biases.syntxt").read_text().split()) == 10


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("bits", VERDICTS)
def test_compiled_pools(tmp_path, monkeypatch, capsys, bits):
    monkeypatch.chdir(tmp_path)
    compares(POOLS, bits, tmp_path, capsys)
