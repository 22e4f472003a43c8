"""The checker: valid files pass, every wrong value is refused with what is wrong."""

import numpy as np
import pytest
from support.nvdla_files import SMALL, change, given, loadable, needs_shared, of_op, of_surface, small_relu
from support.nvdla_networks import typed
from support.ops import Softmax
from support.small_graphs import Net

from n2d2py_nvdla import Program, firmware, parse_loadable, read_loadable, write_loadable
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.cli import main
from n2d2py_nvdla.config import config_of
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.firmware import ABIS, CONV, INT8, PDP, SDP


def of_graph(number: int, field: str, value):
    return "dep_graph", number, firmware.COMMON.itemsize, firmware.COMMON, field, value


WRONG = [
    of_op(0, CONV, "entry_per_slice", 9),
    of_op(0, CONV, "data_bank", 0),
    of_op(0, CONV, "weight_bank", 0),
    of_op(0, CONV, "weight_bank", 32),
    of_op(0, CONV, "bytes_per_kernel", 71),
    of_op(0, CONV, "pad_x_left", 40),
    of_op(0, CONV, "conv_stride_x", 2),
    of_op(0, CONV, "kernel_height_csc", 33),
    of_op(0, CONV, "release", 11),
    of_op(0, CONV, "in_precision", 2),
    of_op(0, CONV, "out_cvt.scale", 2),
    of_op(0, CONV, "input_channel_csc", 16),
    of_op(1, SDP, "y_op.enable", 1),
    of_op(1, SDP, "x1_op.truncate", 64),
    of_op(1, SDP, "batch_num", 2),
    of_surface(2, PDP, "dst_data.width", 600),
    of_op(2, PDP, "pool_width", 9),
    of_op(2, PDP, "stride_y", 1),
    of_op(2, PDP, "precision", 2),
    of_surface(0, CONV, "src_data.line_stride", 84),
    of_surface(0, CONV, "src_data.line_stride", 72),
    of_surface(0, CONV, "src_data.offset", 4),
    of_surface(0, CONV, "src_data.address", 60),
    of_surface(0, CONV, "src_data.channel", 9000),
    of_surface(0, CONV, "weight_data.size", 1100),
    of_surface(0, CONV, "weight_data.size", 1024),
    of_surface(0, CONV, "weight_data.offset", 16),
    of_surface(1, SDP, "dst_data.surf_stride", 400),
    of_surface(1, SDP, "dst_data.offset", 1 << 20),
    of_surface(1, SDP, "dst_data.height", 9),
    of_surface(2, PDP, "src_data.type", 1),
    of_graph(0, "dependency_count", 2),
    of_graph(1, "fused_parent.index", 1),
    of_graph(1, "fused_parent.index", -1),
    of_graph(0, "consumers.2.index", 2),
    of_graph(0, "consumers.1.index", -1),
    of_graph(0, "consumers.2.event", 4),
]


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{w[0]}-{w[4]}-{w[5]}" for w in WRONG])
def test_wrong_values_are_refused(wrong):
    one = loadable()
    change(one, *wrong)
    assert violations(Program.of(one, "net", "v12"), SMALL)


@pytest.mark.parametrize("abi", ["v10", "v12"])
def test_what_the_compiler_writes_is_valid(abi):
    program = Program.of(loadable(abi))
    assert violations(program, SMALL) == []
    assert [op.engine for _, op in program.dla_operations()] == [1, 2, 3, 1, 2, 1, 2]
    assert config_of(program).name == "nv_small"


def test_a_missing_dependency_is_a_race():
    one = loadable()
    change(one, *of_graph(1, "consumers.3.event", firmware.PROGRAMMED))  # the pool no longer waits for the convolution
    found = violations(Program.of(one, "net", "v12"), SMALL)
    assert any("op 2 (PDP) reads what op 1 (SDP) writes, and nothing says that it is complete" in line for line in found)


def test_a_residual_that_is_read_too_early_is_a_race():
    one = loadable()
    change(one, *of_graph(4, "consumers.2.event", firmware.PROGRAMMED))  # the last SDP begins before the pool is known done
    found = violations(Program.of(one, "net", "v12"), SMALL)
    assert any("op 6 (SDP) reads what op 2 (PDP) writes" in line for line in found), found


def test_a_deadlock_is_found():
    one = loadable()
    change(one, *of_graph(0, "fused_parent.index", -1))
    change(one, *of_graph(0, "dependency_count", 1))
    change(one, *of_graph(1, "fused_parent.event", firmware.COMPLETED))  # CONV waits for the end of what waits for it
    found = violations(Program.of(one, "net", "v12"), SMALL)
    assert any(
        "a deadlock after 0 of 7 operations" in line and "op 0 (CONV) waits for 1 of op 1 (SDP) COMPLETED" in line
        for line in found
    ), found


@pytest.mark.parametrize(
    "field, value, text",
    [
        ("address", 90, "its source has address index 90 of"),
        ("size", 1 << 20, "its source ends at byte"),
        ("format", 9, "its formats 9 and 1 differ"),
    ],
)
def test_buffers_of_the_emulator(field, value, text):
    net = Net((6, 1, 1))
    graph = net.done(net.add("s", Softmax(), net.conv("a", "x", 10, kernel=(1, 1))))
    samples = np.random.default_rng(1).standard_normal((2, 6, 1, 1)).astype(np.float32)
    lowered, problems = lower(typed(graph, INT8, samples), SMALL, INT8)
    assert problems == []
    one = parse_loadable(write_loadable(emit(lowered, "v12").loadable))
    assert violations(Program.of(one, "net", "v12"), SMALL) == []
    blob = next(blob for blob in one.blobs if blob.name.endswith("op_buf_list"))
    data = bytearray(blob.data)
    np.frombuffer(data, ABIS["v12"].emu_buffer, 1)[field] = value
    blob.data = bytes(data)
    found = violations(Program.of(one, "net", "v12"), SMALL)
    assert any(text in line for line in found), found


def test_tables_of_the_runtime():
    one = loadable()
    one.memory_list[3].bind_id = 1
    one.memory_list[2].domain = 1
    one.submit_list = []
    for blob in one.blobs:
        blob.name = blob.name.replace("dep_graph", "graph")
    for memory in one.memory_list:
        memory.contents = [name.replace("dep_graph", "graph") for name in memory.contents]
    text = "\n".join(violations(Program.of(one, "net", "v12"), SMALL))
    for part in (
        "submit list is empty",
        "bind ids of the inputs are [1]",
        "memory 2 is in SRAM",
        "no blob is called dep_graph",
    ):
        assert part in text


def test_the_command(tmp_path, capsys):
    (tmp_path / "good.nvdla").write_bytes(write_loadable(loadable()))
    assert main(["check", str(tmp_path / "good.nvdla")]) == 0
    assert "valid for nv_small, firmware ABI v12, 7 operations" in capsys.readouterr().out
    one = small_relu()
    one.blobs[1].data = one.blobs[1].data[:4] + b"\1" + one.blobs[1].data[5:]
    (tmp_path / "bad.nvdla").write_bytes(write_loadable(one))
    assert main(["check", str(tmp_path / "bad.nvdla")]) == 1
    assert "N2D2-E908" in capsys.readouterr().err


@needs_shared
def test_given_files_are_valid():
    for path in given():
        program = Program.of(read_loadable(path), path.name)
        assert violations(program, config_of(program)) == [], path
