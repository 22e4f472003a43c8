"""What is read from elsewhere: regular files, sound headers, sizes in measure; and names of files."""

import io
import os
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image
from support.errors import error_line
from support.tables import every

from n2d2py.data.decode import read_stimulus
from n2d2py.files import (
    DamagedArray,
    file_names,
    map_npy,
    map_npz,
    open_picture,
    plain_file_name,
    read_npy,
    read_npz,
    read_regular,
)
from n2d2py.files.arrays import MAX_BYTES


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"


@every("dtype", ["f4", ">f8", "i1", "u2", "?", "U5", "S3"])
@every("shape", [(), (3,), (2, 3), (0, 4), (2, 3, 4)])
@every("order", ["C", "F"])
def test_what_numpy_writes_is_read(tmp_path, dtype, shape, order):
    array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), order=order).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array, y=array)
    np.savez_compressed(tmp_path / "c.npz", x=array, y=array)
    for found in (read_npy(tmp_path / "a.npy"), map_npy(tmp_path / "a.npy")):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype and found.shape == array.shape
    for read in (read_npz, map_npz):
        for name in ("a.npz", "c.npz"):
            arrays = read(tmp_path / name)
            assert list(arrays) == ["x", "y"]
            np.testing.assert_array_equal(arrays["y"], array)


@every(
    "data, reason",
    [
        (b"", "does not begin"),
        (b"PK\x03\x04", "zip archive"),
        (npy(GOOD)[:9], "header is damaged"),
        (npy(GOOD, bytes(23)), "truncated"),
        (npy(GOOD, version=9), "version"),
        (npy("{'descr': '<f4', 'shape': (2, 3"), "header is damaged"),
        (npy("{'descr': '<f4'\n{"), "header is damaged"),
        (npy("[" * 3000), "header is damaged"),
        (npy("['descr']"), "header is damaged"),
        (npy(GOOD.replace("(2, 3)", "(True, 3)")), "the shape is (True, 3)"),
        (npy(GOOD.replace("(2, 3)", "(-1, 3)")), "the shape is"),
        (npy(GOOD.replace("(2, 3)", "(2**62,)")), "header is damaged"),
        (npy(GOOD.replace("(2, 3)", "(4611686018427387904, 0)")), "the shape is"),
        (npy(GOOD.replace("(2, 3)", "(1000000, 1000000)")), "truncated"),
        (npy(GOOD.replace("False", "'no'")), "header is damaged"),
        (npy(GOOD.replace("'<f4'", "'|O'")), "Python objects"),
        (npy(GOOD.replace("'<f4'", "'<f9'")), "header is damaged"),
        (npy(GOOD.replace("'<f4'", "'(7,)f4'")), "of type"),
        (npy(GOOD.replace("'<f4'", "[('a', '<f4')]")), "of type"),
        (npy(GOOD.replace("'<f4'", "'S0'")), "of type"),
    ],
)
def test_damaged_headers(tmp_path, data, reason):
    (tmp_path / "a.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", data)
    for read, name in ((read_npy, "a.npy"), (map_npy, "a.npy"), (read_npz, "a.npz"), (map_npz, "a.npz")):
        with pytest.raises(DamagedArray) as caught:
            read(tmp_path / name)
        assert reason in str(caught.value)


def test_archives_that_would_fill_the_memory(tmp_path):
    """The size that the archive declares is looked at, nothing is unpacked."""
    shape = (MAX_BYTES // 4 + 1,)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", stream.getvalue())
        archive.filelist[0].file_size = MAX_BYTES + 200
    for read in (read_npz, map_npz):
        with pytest.raises(DamagedArray, match="at most 2,147,483,648") as caught:
            read(tmp_path / "a.npz")
        assert "numpy.savez" in caught.value.remedy


def test_a_wrong_checksum(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(100))
    data = (tmp_path / "a.npz").read_bytes()
    at = data.index(np.arange(100).tobytes()[8:16]) + 400
    (tmp_path / "a.npz").write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(DamagedArray, match="CRC"):
        read_npz(tmp_path / "a.npz")


@every("read", [read_regular, read_npy, map_npy, read_npz, map_npz])
def test_pipes_devices_and_impossible_names(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path / "pipe", "not a regular file"),
        (os.devnull, "not a regular file"),
        (tmp_path, "directory"),
    ):
        with pytest.raises(OSError, match=reason):
            read(path)
    with pytest.raises(OSError, match="NUL"):
        read(tmp_path / "a\0b")


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


@every("side", [8193, 10000, 13000, 20000, 60000])
@pytest.mark.filterwarnings("error")
def test_pictures_without_measure(tmp_path, side):
    (tmp_path / "a.png").write_bytes(png(side, side))
    with pytest.raises(ValueError, match="more than 67,108,864 pixels"), open_picture(tmp_path / "a.png"):
        pass


def test_formats_that_nobody_needs(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n")
    with pytest.raises(OSError, match="cannot identify"), open_picture(tmp_path / "a.png"):
        pass


def test_names_of_files():
    names = [
        *"conv Conv a/b a_b .. con".split(),
        "x" * 300,
        "x" * 299 + "y",
        "é" * 200,
        "a\nb",
        "a\0b",
        "",
        "n\udcff",
        "\u00e9",
        "e\u0301",
    ]
    found = file_names(names)
    assert [found[name] for name in ("conv", "a/b", "..", "con", "")] == ["conv", "a_b", "__", "con_", "_"]
    assert len({text.lower() for text in found.values()}) == len(names)
    assert all(len(text.encode()) <= 120 and not set(text) & set('\\/:*?"<>|\n\0') for text in found.values())
    assert plain_file_name("a b") == "a_b"


@every(
    "name, image, expected",
    [
        ("a.png", Image.new("RGB", (2, 1), (1, 2, 3)), [[[3, 2, 1], [3, 2, 1]]]),  # blue, green, red
        ("a.ppm", Image.new("RGB", (2, 1), (1, 2, 3)), [[[3, 2, 1], [3, 2, 1]]]),
        ("a.png", Image.new("RGBA", (1, 1), (1, 2, 3, 4)), [[[3, 2, 1, 4]]]),
        ("a.png", Image.new("L", (1, 1), 9), [[[9]]]),
        ("a.pgm", Image.new("L", (1, 1), 9), [[[9]]]),
        ("a.png", Image.new("1", (1, 1), 1), [[[255]]]),
        ("a.png", Image.new("RGB", (1, 1), (10, 200, 30)).quantize(2), [[[30, 200, 10]]]),  # a palette
        ("a.png", Image.fromarray(np.array([[1000, 65535]], np.uint16)), np.array([[[1000], [65535]]], np.uint16)),
        ("a.tif", Image.fromarray(np.array([[0.5]], np.float32)), np.array([[[0.5]]], np.float32)),
        ("a.jpg", Image.new("CMYK", (8, 8)), np.full((8, 8, 3), 255, np.uint8)),
    ],
)
def test_kinds_of_pictures(tmp_path, name, image, expected):
    image.save(tmp_path / name)
    result = read_stimulus(tmp_path / name)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == getattr(expected, "dtype", np.uint8)


@pytest.mark.parametrize("shape, image", [((3, 1, 2), (1, 2, 3)), ((4, 5), (4, 5, 1)), ((6,), (1, 6, 1))])
def test_arrays_are_channels_first(tmp_path, shape, image):
    np.save(tmp_path / "a.npy", np.zeros(shape, ">f8"))
    result = read_stimulus(tmp_path / "a.npy")
    assert result.shape == image and result.dtype == np.float32


@every(
    "name, content, message",
    [
        ("a.png", b"", "N2D2-E403: a.png "),
        ("a.jpg", b"\xff\xd8\xff\xe0 nothing", "N2D2-E403: "),
        ("a.npy", b"\x93NUMPY", "N2D2-E402: a.npy "),
        ("a.xyz", b"x", "N2D2-E406: "),
    ],
)
def test_damages(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert error_line(read_stimulus, tmp_path / name, name).startswith(message)
