"""The convolution buffer: NVIDIA's right and wrong results, streams of weights against plain bytes, what hangs, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from support.nvdla_files import SHARED, change, loadable, needs_shared, of_op, of_surface
from support.nvdla_networks import compiled, typed
from support.ops import Concat
from support.small_graphs import RELU, Net

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import Program, parse_loadable, read_loadable, write_loadable
from n2d2py_nvdla.check import notes, violations
from n2d2py_nvdla.cli import main
from n2d2py_nvdla.config import CONFIGS, entries_per_slice
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.firmware import BYTES, CONV, FP16, INT8
from n2d2py_nvdla.model import run_program
from n2d2py_nvdla.model.cbuf import ConvolutionBuffer
from n2d2py_nvdla.model.cbuf_use import BufferUse
from n2d2py_nvdla.model.entries import feature_entries, feature_lines, image_entries, image_lines
from n2d2py_nvdla.model.formats import DTYPES

SMALL = CONFIGS["nv_small"]
USE = BufferUse("conv", False, 1, 1, 6, 6, 6, 6, 8, 8, 72, 72, 576, 0)
"""A convolution of 8 kernels of 72 bytes on 6 lines of 6 entries of nv_small."""


@needs_shared
@pytest.mark.parametrize("name", ["t_convconv", "s_first576", "s_exact128", "fix_convconv"])
def test_nvidias_results_right_and_wrong(name):
    folder = SHARED / "cbuf" / name
    program = Program.of(read_loadable(folder / "net.nvdla"), name)
    done = run_program(program, [np.fromfile(folder / "in.bin", np.uint8)])
    assert done.outputs[0].tobytes() == (folder / "out.bin").read_bytes()


@needs_shared
@pytest.mark.parametrize("name, valid", [("t_convconv", 0), ("s_first576", 0), ("s_exact128", 1), ("fix_convconv", 1)])
def test_nvidias_wrong_results_are_refused(name, valid, capsys):
    assert main(["check", str(SHARED / "cbuf" / name / "net.nvdla")]) == 1 - valid
    shown = capsys.readouterr()
    if not valid:
        assert shown.err.count("\n") == 1 and "N2D2-E908" in shown.err
        assert "op 0 (CONV) loads 640 bytes of weights and reads 576; 8 entries stay in the convolution buffer" in shown.err
        assert "op 2 (CONV) takes them for its own" in shown.err


@pytest.mark.parametrize("config", list(CONFIGS))
def test_weights_fill_whole_entries_and_no_more(config):
    one = CONFIGS[config]
    for channels, kernels, size in ((8, 8, 3), (5, 7, 3), (3, 1, 1), (40, 33, 2)):
        net = Net((channels, 5, 5))
        graph = net.done(net.conv("b", net.conv("a", "x", kernels, (size, size)), 3, (1, 1)))
        samples = np.random.default_rng(1).standard_normal((1, channels, 5, 5)).astype(np.float32)
        _, _, program = compiled(graph, config, INT8, samples)
        for _, operation in program.dla_operations():
            if operation.engine == CONV:
                exact = int(operation.op["bytes_per_kernel"]) * int(operation.surface["dst_data"]["channel"])
                assert int(operation.surface["weight_data"]["size"]) == -(-exact // one.width) * one.width


def padded(graph, config: str, samples: np.ndarray, step: int) -> Program:
    """A network compiled with weights padded to multiples of `step` bytes."""
    lowered, problems = lower(typed(graph, INT8, samples), CONFIGS[config], INT8)
    assert problems == []
    for layer in lowered.layers:
        for chain in layer.chains:
            for op in chain:
                if op.engine == CONV:
                    old = op.cubes["weight_data"]
                    op.cubes["weight_data"] = replace(old, data=old.data + bytes(-len(old.data) % step))
    return Program.of(parse_loadable(write_loadable(emit(lowered, "v12").loadable)), "net.nvdla")


def split_layer(net: Net) -> str:
    """One convolution whose weights do not fit, on nv_small."""
    return net.conv("a", "x", 900, pads=(1, 1, 1, 1))


def concatenation(net: Net) -> str:
    return net.add("c", Concat(), net.conv("a", "x", 8, activation=RELU), net.conv("b", "x", 16, activation=RELU))


def two(net: Net) -> str:
    return net.conv("b", net.conv("a", "x", 8, pads=(1, 1, 1, 1), activation=RELU), 8)


@pytest.mark.parametrize("network, channels", [(two, 8), (split_layer, 21), (concatenation, 8)])
@pytest.mark.parametrize("config", ["nv_small", "nv_small_256"])
def test_padding_to_wider_entries_is_seen(network, channels, config):
    net = Net((channels, 6, 6))
    graph = net.done(network(net))
    samples = np.random.default_rng(2).standard_normal((1, channels, 6, 6)).astype(np.float32)
    one = CONFIGS[config]
    right = compiled(graph, config, INT8, samples)[2]
    assert violations(right, one) == [] and notes(right, one) == []
    wrong = padded(graph, config, samples, 128)
    sizes = [int(op.surface["weight_data"]["size"]) for _, op in right.dla_operations() if op.engine == CONV]
    assert any(size % 128 for size in sizes[:-1])
    found = violations(wrong, one)
    assert any("stay in the convolution buffer" in line for line in found)
    x = [np.random.default_rng(3).integers(0, 256, right.memories[right.inputs[0][0]].size, np.uint8)]
    try:
        assert run_program(wrong, x, one).outputs[0].tobytes() != run_program(right, x, one).outputs[0].tobytes()
    except N2D2Error as problem:
        assert problem.code == "E904"


@pytest.mark.parametrize("config", ["nv_small", "nv_small_256", "nv_large", "nv_full"])
def test_weights_are_one_stream(config):
    """Without hangs, a convolution reads what follows what the earlier ones read, whatever they loaded."""
    one, random = CONFIGS[config], np.random.default_rng(5)
    width, capacity = one.width, 2 * one.bank_bytes
    for _ in range(3):
        buffer, stream, at, shifted = ConvolutionBuffer(one), b"", 0, 0
        for number in range(60):
            kernels, size = int(random.integers(1, 40)), int(random.integers(1, 300))
            exact = -(-kernels * size // width) * width
            spare = capacity // 2 - (len(stream) - at)  # of what is left behind
            more = int(random.integers(0, 3)) * width if random.integers(3) == 0 and spare > 3 * width else 0
            data = random.integers(0, 256, exact + more, np.uint8)
            use = BufferUse(
                f"op {number}", False, 1, 2, 1, 1, 1, 1, kernels, one.kernel_group(INT8), size, size, len(data), 64 * number
            )
            lines = random.integers(0, 256, (1, 1, width), np.uint8)
            reading = buffer.run(use, lines, data)
            stream += data.tobytes()
            found = data[: kernels * size] if reading.weights is None else reading.weights
            assert found.tobytes() == stream[at : at + kernels * size]
            assert reading.weight_shift * width == len(stream) - len(data) - at
            at += exact
            shifted += reading.weights is not None
            assert buffer.held * width == len(stream) - at
        assert shifted > 10


def test_weights_larger_than_their_banks_stream_through():
    one, random = SMALL, np.random.default_rng(6)
    kernels, size = 200, 100  # 20,000 bytes in banks of 4,096
    data = random.integers(0, 256, kernels * size, np.uint8)
    use = replace(USE, kernels=kernels, kernel_bytes=size, counted_bytes=size, weight_bytes=len(data))
    buffer = ConvolutionBuffer(one)
    for _ in range(3):
        reading = buffer.run(use, np.zeros((6, 6, 8), np.uint8), data)
        assert reading.weights is None and reading.weight_shift == 0 and buffer.held == 0
    buffer.run(replace(USE, weight_bytes=584), np.zeros((6, 6, 8), np.uint8), data[:584])  # one entry too many
    found = buffer.run(use, np.zeros((6, 6, 8), np.uint8), data).weights
    assert found.tobytes() == data[576:584].tobytes() + data[:-8].tobytes()


def test_weights_can_stay_for_the_next_convolution():
    data, other = (np.random.default_rng(seed).integers(0, 256, 576, np.uint8) for seed in (1, 2))
    lines = np.zeros((6, 6, 8), np.uint8)
    buffer = ConvolutionBuffer(SMALL)
    assert buffer.run(replace(USE, keep_weights=True), lines, data).weights is None
    for keep in (True, True, False):
        assert np.array_equal(buffer.run(replace(USE, keep_weights=keep, reuse_weights=True), lines, other).weights, data)
    assert buffer.held == 0
    assert buffer.run(replace(USE, keep_weights=True), lines, other).weights is None
    assert buffer.run(USE, lines, data).weights is None  # they are released where they are not used again
    assert buffer.held == 0
    buffer.run(replace(USE, keep_weights=True), lines, data)
    assert buffer.run(replace(USE, weight_banks=2, reuse_weights=True), lines, other).weights is None  # not in other banks


def test_data_can_stay_for_the_next_convolution():
    first, second = (np.random.default_rng(seed).integers(0, 256, (6, 6, 8), np.uint8) for seed in (1, 2))
    weights = np.zeros(576, np.uint8)
    buffer = ConvolutionBuffer(SMALL)
    assert buffer.run(replace(USE, keep_data=True), first, weights).data is None
    assert np.array_equal(buffer.run(replace(USE, reuse_data=True, released=4), second, weights).data, first)
    part = buffer.run(replace(USE, reuse_data=True, lines=4), second[:4], weights)  # two lines of the first, four more
    assert np.array_equal(part.data, np.concatenate([first[4:], second[:4]]))
    assert buffer.run(replace(USE, released=1), second, weights).data is None
    for _ in range(30):  # around the end of the bank, with five lines left each time
        assert buffer.run(replace(USE, released=1), first, weights).data is None


@pytest.mark.parametrize(
    "uses, code, text",
    [
        ([replace(USE, weight_bytes=640), replace(USE, weight_banks=2)], "E904", "8 entries of earlier weights"),
        ([replace(USE, weight_bytes=640), replace(USE, data_banks=2)], "E904", "8 entries of earlier weights"),
        ([replace(USE, weight_bytes=4096)] * 3, "E904", "the weights of conv are still loading: 368 entries are not loaded"),
        (
            [replace(USE, weight_bytes=4088), replace(USE, kernel_bytes=100, counted_bytes=100, weight_bytes=800)],
            "E904",
            "it waits for 800 bytes of weights: 28 entries are not loaded, and nothing releases as many",
        ),
        ([replace(USE, weight_bytes=568)], "E904", "it waits for 576 bytes of weights: 568 are loaded"),
        ([replace(USE, wanted=7)], "E904", "it waits for 7 lines, and 6 are loaded"),
        ([replace(USE, weight_bytes=580)], "E903", "580 bytes of weights, not a multiple of the 8 bytes of an entry"),
        ([replace(USE, data_banks=31, weight_banks=2)], "E903", "takes 31 and 2 of 32 banks"),
        ([replace(USE, lines=90)], "E903", "loads 90 lines of 6 entries into 1 banks of 512 entries"),
        ([replace(USE, released=7)], "E903", "releases 7 of 6 lines"),
    ],
)
def test_hangs_are_one_error(uses, code, text):
    buffer = ConvolutionBuffer(SMALL)
    with pytest.raises(N2D2Error) as caught:
        for use in uses:
            buffer.run(use)
    assert caught.value.code == code and text in caught.value.what


def test_the_command_reports_a_hang(tmp_path, capsys):
    one = loadable()
    change(one, *of_surface(0, CONV, "weight_data.size", 1216))
    change(one, *of_op(3, CONV, "weight_bank", 5))
    (tmp_path / "net.nvdla").write_bytes(write_loadable(one))
    for command in ("run", "check"):
        assert main([command, str(tmp_path / "net.nvdla")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "N2D2-E904" in lines[0] and "deadlock at op 3 (CONV): its weights wait until 8 entries" in lines[0]
    assert any("N2D2-E908" in line and "deadlock at op 3 (CONV)" in line for line in lines[1:])


def test_the_last_weights_that_stay_are_a_warning(tmp_path, capsys):
    one = loadable()
    last = max(op.number for _, op in Program.of(one, "net", "v12").dla_operations() if op.engine == CONV)
    change(one, *of_surface(last, CONV, "weight_data.size", 2312))
    (tmp_path / "net.nvdla").write_bytes(write_loadable(one))
    assert main(["check", str(tmp_path / "net.nvdla")]) == 0
    shown = capsys.readouterr()
    assert "N2D2-W702" in shown.err and "a second inference begins with them" in shown.err and "valid" in shown.out


@pytest.mark.parametrize("config", list(CONFIGS))
def test_lines_fit_their_entries_and_come_back(config):
    one, random = CONFIGS[config], np.random.default_rng(7)
    for precision in one.precisions:
        for atoms in range(1, 10):
            for w in (1, 2, 5, 8):
                x = random.integers(-99, 99, (atoms * one.lanes(precision), 3, w)).astype(DTYPES[precision])
                packed = feature_entries(one, x)
                assert packed.shape == (3, entries_per_slice(one, w, len(x), precision), one.width)
                assert np.array_equal(feature_lines(one, packed, atoms, w, x.dtype), x)
        for channels in (1, 3, 4):
            x = random.integers(-99, 99, (channels, 3, 11)).astype(DTYPES[precision])
            packed = image_entries(one, x, 2, 1, 5)
            assert packed.shape[1] == -(-14 * channels * BYTES[precision] // one.width)
            assert np.array_equal(image_lines(packed, channels, 2, 11, x.dtype), x)
            assert np.array_equal(image_lines(packed, channels, 0, 2, x.dtype), np.full((channels, 3, 2), 5))


def test_lines_of_three_atoms_have_an_entry_each():
    x = np.arange(3 * 32 * 2, dtype=np.int8).reshape(96, 1, 2)
    packed = feature_entries(CONFIGS["nv_full"], x)
    assert np.array_equal(packed[0, :, :96].view(np.int8), x[:, 0].T) and not packed[0, :, 96:].any()
    assert FP16 in CONFIGS["nv_full"].precisions
