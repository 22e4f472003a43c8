"""A network of the layers beyond the usual ones, exported to C++: every layer bit for bit that of Python."""

from __future__ import annotations

import shutil

import pytest

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
    text = NETWORK
    if bits == "16":  # tables of 16 bits are refused
        text = text.replace("Operation=ToZero", "Operation=Truncate")
    (tmp_path / "net.ini").write_text(text)
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
    printed = capsys.readouterr().out
    assert verdict in printed
    folder = next(tmp_path.glob("export_CPP_*")) / "weights_export"
    assert len((folder / "up_weights.syntxt").read_text().splitlines()) == 8
    assert len((folder / "fc_biases.syntxt").read_text().split()) == 10
