"""The functional model: the given vectors and goldens byte for byte, deadlocks and wrong files as one line."""

import numpy as np
import pytest
from support.nvdla_files import SHARED, needs_shared, small_relu

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import Program, parse_loadable, read_loadable, write_loadable
from n2d2py_nvdla.cli import main
from n2d2py_nvdla.model import run_program
from n2d2py_nvdla.model.integers import shift_right
from n2d2py_nvdla.tensors import tensor_array, tensor_bytes

VECTORS = sorted(path.name for path in SHARED.glob("vectors/*")) if SHARED.is_dir() else []
GOLDENS = sorted(path.name for path in SHARED.glob("goldens/*_fbuf")) if SHARED.is_dir() else []


@needs_shared
@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    folder = SHARED / "vectors" / name
    expected = (folder / "out.bin").read_bytes()
    for loadable in (read_loadable(folder / "net.nvdla"), parse_loadable(write_loadable(read_loadable(folder / "net.nvdla")))):
        done = run_program(Program.of(loadable, name), [np.fromfile(folder / "in.bin", np.uint8)], exact=True)
        assert done.outputs[0].tobytes() == expected


@needs_shared
@pytest.mark.parametrize("name", [name for name in VECTORS if "fp16" in name])
def test_fast_sums_are_close(name):
    folder = SHARED / "vectors" / name
    program = Program.of(read_loadable(folder / "net.nvdla"), name)
    done = run_program(program, [np.fromfile(folder / "in.bin", np.uint8)])
    tensor = program.outputs[0][1]
    found = tensor_array(tensor, done.outputs[0]).astype(np.float64)
    expected = tensor_array(tensor, np.fromfile(folder / "out.bin", np.uint8)).astype(np.float64)
    assert np.mean(found == expected) > 0.98
    assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max()


@needs_shared
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name, tmp_path):
    assert main(["run", str(SHARED / "goldens" / name), "--output", str(tmp_path / "o.dimg")]) == 0
    golden = SHARED / "goldens" / name.removesuffix("_fbuf") / "o_000000.dimg"
    assert (tmp_path / "o.dimg").read_bytes() == golden.read_bytes()


@needs_shared
def test_the_tutorial_of_onnc(tmp_path):
    folder = SHARED / "onnc" / "tutorial_add"
    words = ["run", folder / "test_Add.nvdla", "--image", folder / "input1x5x7.pgm", "--rawdump", "--output"]
    assert main([*map(str, words), str(tmp_path / "output.dimg")]) == 0
    assert (tmp_path / "output.dimg").read_text() == (folder / "test_Add.output.dimg").read_text()


@pytest.mark.parametrize("abi", ["v10", "v12"])
def test_a_small_loadable(abi):
    program = Program.of(small_relu(abi, c=11, atom=8))
    x = np.random.default_rng(1).integers(-128, 128, (11, 2, 5)).astype(np.int8)
    done = run_program(program, [tensor_bytes(program.inputs[0][1], x)], trace=True)
    assert np.array_equal(tensor_array(program.outputs[0][1], done.outputs[0]), np.maximum(x, 0))
    assert np.array_equal(done.trace[0, 0], np.maximum(x, 0))


def changed(loadable, blob: str, at: int, value: int):
    for one in loadable.blobs:
        if one.name.endswith(blob):
            data = bytearray(one.data)
            data[at] = value
            one.data = bytes(data)
    return loadable


def test_a_deadlock_is_reported(tmp_path, capsys):
    (tmp_path / "net.nvdla").write_bytes(write_loadable(changed(small_relu(), "dep_graph", 4, 1)))
    assert main(["run", str(tmp_path / "net.nvdla")]) == 1
    line = capsys.readouterr().err
    assert "N2D2-E904" in line and "op 0 (SDP) waits for 1 of nothing" in line and line.count("\n") == 1


@pytest.mark.parametrize(
    "blob, at, value, code",
    [
        ("dep_graph", 3, 7, "E901"),
        ("surf_list", 2, 60, "E906"),
        ("surf_list", 21, 9, "E906"),
        ("op_list", 0, 3, "E903"),
        ("addr0", 20, 5, "E903"),
        ("addr0", 0, 90, "E901"),
    ],
)
def test_wrong_descriptors_are_one_error(blob, at, value, code):
    with pytest.raises(N2D2Error) as caught:
        loadable = changed(small_relu(), blob, at, value)
        run_program(Program.of(loadable, "net.nvdla", "v12"), [])
    assert caught.value.code == code


def test_inputs_are_checked(tmp_path, capsys):
    (tmp_path / "net.nvdla").write_bytes(write_loadable(small_relu()))
    np.save(tmp_path / "wide.npy", np.zeros((4, 2, 5)))
    np.save(tmp_path / "large.npy", np.full((3, 2, 5), 200))
    (tmp_path / "x.pgm").write_bytes(b"P2 1 1 255 3")
    (tmp_path / "long.bin").write_bytes(bytes(1000))
    for name in ("wide.npy", "large.npy", "x.pgm", "long.bin"):
        assert main(["run", str(tmp_path / "net.nvdla"), "--input", str(tmp_path / name)]) == 1
        assert "N2D2-E905" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "net.nvdla"), "--input", str(tmp_path / "none.npy")]) == 1
    assert "N2D2-E902" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "net.nvdla"), "--config", "nv_smal"]) == 1
    assert "did you mean 'nv_small'" in capsys.readouterr().err


def test_shifts_round_ties_away_from_zero():
    x = np.array([-6, -5, -3, -2, -1, 0, 1, 2, 3, 5, 6, 7], np.int64)
    assert shift_right(x, 2).tolist() == [-2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2]
    assert shift_right(np.array([1 << 62, -(1 << 62)]), 63).tolist() == [1, -1]
