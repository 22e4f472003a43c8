"""The file format: what is read is what was written, damaged files give one clear line."""

import dataclasses
import json
from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from support.nvdla_files import SHARED, given, needs_shared, small_relu

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import Loadable, Program, firmware, parse_loadable, read_loadable, write_loadable
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.cli import main
from n2d2py_nvdla.config import config_of
from n2d2py_nvdla.dump import dump, dump_text
from n2d2py_nvdla.model import run_program

STRUCTS = {
    "dla_network_desc": firmware.NETWORK,
    "dla_common_op_desc": firmware.COMMON,
    "dla_consumer": firmware.CONSUMER,
    "dla_cvt_param": firmware.CVT,
    "dla_conv_op_desc": firmware.CONV_OP,
    "dla_sdp_op": firmware.SDP_OP,
    "dla_sdp_op_desc": firmware.SDP_DESC,
    "dla_pdp_op_desc": firmware.PDP_OP,
    "dla_cdp_op_desc": firmware.CDP_OP,
    "dla_rubik_op_desc": firmware.RUBIK_OP,
    "dla_bdma_op_desc": firmware.BDMA_OP,
    "dla_bdma_transfer_desc": firmware.TRANSFER,
    "dla_lut_param": firmware.LUT,
    "dla_sdp_cvt": firmware.SDP_CVT,
}


@pytest.mark.parametrize("abi", ["v10", "v12"])
def test_what_is_written_is_read(abi):
    loadable = small_relu(abi)
    data = write_loadable(loadable)
    assert data[4:8] == b"NVDA"
    again = parse_loadable(data)
    assert again == loadable
    assert write_loadable(again) == data


@pytest.mark.parametrize("abi", ["v10", "v12"])
def test_the_abi_is_detected_without_the_version(abi):
    loadable = small_relu(abi)
    for blob in loadable.blobs:
        blob.version = (1, 3, 0)
    program = Program.of(loadable)
    assert program.abi.name == abi
    assert program.tasks[0].operations[0].surface["dst_data"]["width"] == 5


def test_the_dump_shows_descriptors_and_graph():
    program = Program.of(small_relu())
    text = dump_text(program)
    assert "firmware ABI v12" in text and "op 0 (SDP): waits for 0; nothing follows" in text
    found = json.loads(json.dumps(dump(program)))
    assert found["tasks"][0]["operations"][0]["op"]["x1_op"]["act"] == 1
    assert found["tasks"][0]["operations"][0]["surface"]["src_data"]["line_stride"] == 40


@pytest.mark.parametrize("data", [b"", b"NVDA", b"\0" * 64, b"\xff" * 64, bytes(range(256))])
def test_what_is_no_loadable(data, tmp_path, capsys):
    (tmp_path / "x").write_bytes(data)
    assert main(["dump", str(tmp_path / "x")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error N2D2-E901: ") and error.count("\n") == 1


def test_the_command(tmp_path, capsys):
    (tmp_path / "net.nvdla").write_bytes(write_loadable(small_relu()))
    assert main(["dump", "--json", str(tmp_path / "net.nvdla")]) == 0
    assert json.loads(capsys.readouterr().out)["abi"] == "v12"
    assert main(["dump", str(tmp_path / "missing.nvdla")]) == 1
    assert "N2D2-E902" in capsys.readouterr().err
    assert main(["dump"]) == 2


@needs_shared
@pytest.mark.parametrize("file, abi", [("dla_structs_v10.json", "v10"), ("dla_structs.json", "v12")])
def test_the_structures_are_those_of_nvidia(file, abi):
    table = json.loads((SHARED / file).read_text())
    structs = dict(STRUCTS, dla_data_cube=firmware.ABIS[abi].cube)
    for name, dtype in zip(("bdma", "conv", "sdp", "pdp", "cdp", "rubik"), firmware.ABIS[abi].surfaces, strict=True):
        structs[f"dla_{name}_surface_desc"] = dtype
    for name, dtype in structs.items():
        assert table[name]["size"] == dtype.itemsize, name
        assert [(f[0], f[1]) for f in table[name]["fields"]] == [(n, dtype.fields[n][1]) for n in dtype.names] or [
            f[1] for f in table[name]["fields"]
        ] == [dtype.fields[n][1] for n in dtype.names], name
    assert table["dla_operation_container"]["size"] == firmware.OPERATION_SIZE
    assert table["dla_surface_container"]["size"] == firmware.SURFACE_SIZE


@needs_shared
def test_given_files_are_read_and_written_again():
    files = given()
    assert len(files) >= 58
    for path in files:
        loadable = read_loadable(path)
        assert parse_loadable(write_loadable(loadable)) == loadable, path
        program = Program.of(loadable, str(path))
        assert program.abi.name == ("v12" if path.name == "net.nvdla" else "v10"), path
        assert dump_text(program)


TABLES = ("task_list", "memory_list", "address_list", "blobs", "tensor_desc_list", "submit_list")
NUMBERS = (0, 1, 2, 7, 255, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@lru_cache
def files() -> list[bytes]:
    """A small file of each ABI, and the given ones where they are."""
    return [write_loadable(small_relu(abi)) for abi in ("v10", "v12")] + [path.read_bytes() for path in given()]


def in_bytes(data: bytes, random: np.random.Generator) -> bytes:
    """A cut, a wrong offset, a piece of the file elsewhere, some wrong bytes."""
    bad, kind = bytearray(data), int(random.integers(4))
    if kind == 0:
        bad = bad[: int(random.integers(1, len(bad)))]
    elif kind == 1:
        at = int(random.integers(len(bad) // 4)) * 4
        bad[at : at + 4] = int(random.choice([*NUMBERS, len(bad)])).to_bytes(4, "little")
    elif kind == 2:
        a, b = random.integers(len(bad), size=2)
        bad[a : a + 32] = bad[b : b + 32]
    for _ in range(int(random.integers(1, 8))):
        bad[int(random.integers(len(bad)))] = random.integers(256)
    return bytes(bad)


def in_meaning(data: bytes, random: np.random.Generator) -> bytes:
    """A sound file with wrong values in its tables or descriptors."""
    loadable: Loadable = parse_loadable(data)
    for _ in range(int(random.integers(1, 4))):
        if random.integers(3):
            blobs = [blob for blob in loadable.blobs if 0 < len(blob.data) < 20000]
            blob = blobs[int(random.integers(len(blobs)))]
            bad, size = bytearray(blob.data), int(random.choice([1, 2, 4]))
            at = int(random.integers(len(bad))) // size * size
            bad[at : at + size] = (int(random.choice(NUMBERS)) % (1 << 8 * size)).to_bytes(size, "little")
            blob.data = bytes(bad)
        else:
            tables = [name for name in TABLES if getattr(loadable, name)]
            rows = getattr(loadable, tables[int(random.integers(len(tables)))])
            row = rows[int(random.integers(len(rows)))]
            fields = [one for one in dataclasses.fields(row) if isinstance(getattr(row, one.name), int)]
            one = fields[int(random.integers(len(fields)))]
            bits = 8 * int(one.metadata["kind"][1]) - (one.metadata["kind"][0] == "i")
            setattr(row, one.name, int(random.choice(NUMBERS)) % (1 << bits))
    return write_loadable(loadable)


def outcome(data: bytes) -> str:
    """What comes of dumping, checking and running a file: "runs", or the code of the only error."""
    try:
        program = Program.of(parse_loadable(data, "bad.nvdla"), "bad.nvdla")
        assert dump_text(program) and json.dumps(dump(program))
        config = config_of(program)
        violations(program, config)
        run_program(program, [], config)
    except N2D2Error as error:
        assert "\n" not in error.line() and "bad.nvdla" in error.line(), error.line()
        return error.code
    return "runs"


def damaged(seed: int) -> bytes:
    random = np.random.default_rng(seed)
    data = files()[int(random.integers(len(files())))]
    return (in_bytes if seed % 2 else in_meaning)(data, random)


@pytest.mark.parametrize("first, count", [(0, 60), pytest.param(1000, 3000, marks=pytest.mark.slow)])
def test_damage(first, count):
    found = Counter(outcome(damaged(seed)) for seed in range(first, first + count))
    assert set(found) <= {"runs", "E901", "E903", "E904", "E905", "E906"}, found
    assert found["runs"] > count // 10 and found["E901"] > count // 10, found
