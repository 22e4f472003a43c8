"""Checkpoints are files that anybody may have changed: a training goes on from them as it should, or E433 comes first."""

import importlib.util
import io
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.errors import refused

from n2d2py import cli
from n2d2py.training.checkpoint import read_checkpoint, write_checkpoint

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

NETWORK = """[database]
Type=Numpy_Database
DataPath=data.npz
Learn=0.75
Validation=0.25
[sp]
SizeX=4
SizeY=4
BatchSize=8
[fc1]
Input=sp
Type=Fc
NbOutputs=5
QWeight=LSQ
QWeight.Range=15
QAct=SAT
QAct.Range=15
QAct.Alpha=2.0
Solvers.LearningRate=0.05
Solvers.Momentum=0.9
[drop]
Input=fc1
Type=Dropout
NbOutputs=5
[fc2]
Input=drop
Type=Fc
NbOutputs=3
Solvers=Adam
[softmax]
Input=fc2
Type=Softmax
NbOutputs=3
WithLoss=1
[softmax.Target]
"""
CHECKPOINT = Path("out/training/checkpoint.npz")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with net.ini and a training of one epoch in out; in whole, of two epochs at once."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(3)
    np.savez(folder / "data.npz", x=rng.integers(0, 256, (64, 1, 4, 4), dtype=np.uint8), y=rng.integers(0, 3, 64))
    (folder / "net.ini").write_text(NETWORK)
    for words in (["-learn-epoch", "1", "-o", str(folder / "out")], ["-learn-epoch", "2", "-o", str(folder / "whole")]):
        assert cli.main([str(folder / "net.ini"), *words]) == 0
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "weights").glob("*.syntxt")}


class _Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


def _archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _again(data: bytes, change: Callable[[dict[str, np.ndarray]], None], target: Path) -> bytes:
    """The checkpoint with other arrays, and the digest of those."""
    with np.load(io.BytesIO(data)) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "digest"}
    change(arrays)
    beside = target.with_name("again.npz")
    write_checkpoint(beside, arrays)
    return beside.read_bytes()


def _drop(rng):
    return lambda arrays: arrays.pop(str(rng.choice(sorted(arrays))))


def _retype(rng):
    def change(arrays):
        name = str(rng.choice(sorted(arrays)))
        arrays[name] = arrays[name].astype(rng.choice(["<f8", "<i4", "|u1", "<f2", "<U3"]))
        if arrays[name].dtype == np.float64:
            arrays[name] = arrays[name].astype(">f4")

    return change


def _reshape(rng):
    def change(arrays):
        name = str(rng.choice(sorted(arrays)))
        arrays[name] = np.concatenate([arrays[name].ravel()] * 2) if rng.random() < 0.5 else arrays[name][None]

    return change


def _unprogressed(rng):
    def change(arrays):
        if rng.random() < 0.5:
            arrays["progress/counts"] = rng.choice([0, -1, -(2**62)], 2)
        else:
            arrays["progress/history"] = np.zeros((0, 2))

    return change


def mutated(data: bytes, rng: np.random.Generator, target: Path, bomb: Path) -> bytes:
    """Damage, and what somebody with a grudge would write."""
    kind = int(rng.integers(10))
    place = int(rng.integers(len(data)))
    if kind < 3:
        changed = bytearray(data)
        for at in rng.integers(len(data), size=[1, 8, 200][kind]):
            changed[at] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 3:
        return data[:place]
    if kind == 4:
        return data[:place] + rng.bytes(int(rng.integers(1, 400))) + data[place:]
    if kind == 5:
        payload = pickle.dumps(_Bomb(bomb))
        member = b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (), }".ljust(117) + b"\n"
        return [
            payload,
            _archive({"checkpoint/data.pkl": payload, "checkpoint/version": b"3"}),
            _archive({"a.npy": member + payload}),
        ][int(rng.integers(3))]
    return _again(data, [_drop, _retype, _reshape, _unprogressed][kind - 6](rng), target)


def _go_on_from(mutations: range, trained: Path, folder: Path, capsys) -> None:
    data = (trained / CHECKPOINT).read_bytes()
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    bomb, refused = folder / "executed", 0
    for seed in mutations:
        changed = mutated(data, np.random.default_rng(seed), folder / CHECKPOINT, bomb)
        shutil.rmtree(folder / "out")
        shutil.copytree(trained / "out", folder / "out")
        (folder / CHECKPOINT).write_bytes(changed)
        before = files(folder)
        status = cli.main([str(folder / "net.ini"), "-learn-epoch", "2", "-learn-resume", "-o", str(folder / "out")])
        seen = capsys.readouterr()
        text = seen.out + seen.err
        assert not bomb.exists(), seed
        if status == 0:
            assert weights(folder / "out") == weights(trained / "whole"), seed
        else:
            assert status == 1 and "N2D2-E433" in text and "Traceback" not in text, (seed, text)
            assert files(folder) == before, seed
            refused += 1
    assert refused >= 0.6 * len(mutations)


@needs_torch
def test_a_training_goes_on_as_if_it_had_not_stopped(trained, tmp_path):
    """Dropout too: what an epoch draws depends on the seed and its number."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    assert cli.main([str(tmp_path / "net.ini"), "-learn-epoch", "2", "-learn-resume", "-o", str(tmp_path / "out")]) == 0
    assert weights(tmp_path / "out") == weights(trained / "whole")


@needs_torch
def test_mutated_checkpoints(trained, tmp_path, capsys):
    _go_on_from(range(20), trained, tmp_path, capsys)


@needs_torch
@pytest.mark.slow
def test_many_mutated_checkpoints(trained, tmp_path, capsys):
    _go_on_from(range(20, 200), trained, tmp_path, capsys)


def test_arrays_are_read_as_they_were_written(tmp_path):
    arrays = {"a/b": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(7, np.int64)}
    path = tmp_path / "training" / "c.npz"
    write_checkpoint(path, arrays)
    found = read_checkpoint(path, {**arrays, "a/b": arrays["a/b"][:0]}, grows="a/b")
    assert sorted(found) == ["a/b", "n"] and all(np.array_equal(found[name], arrays[name]) for name in arrays)
    assert [each.name for each in path.parent.iterdir()] == ["c.npz"]
    for wrong in ({**arrays, "b": arrays["n"]}, {"n": arrays["n"]}, {**arrays, "n": np.zeros(1, np.int64)}):
        assert refused("E433.*does not fit", read_checkpoint, path, wrong)
