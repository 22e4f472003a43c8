"""The functional model against scalar arithmetic, in modes, shapes and extremes that no given vector has."""

import numpy as np
import pytest
from support.nvdla_scalar import clamp, converter, lookup, lrn, pool, wrap, x_unit, y_unit
from support.nvdla_single import Cube, fill, run_one

from n2d2py_nvdla import firmware
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.firmware import ABIS, BDMA, BYTES, CDP, FP16, INT8, INT16, PDP, RUBIK, SDP
from n2d2py_nvdla.model.integers import shift_right
from n2d2py_nvdla.model.lut import CDP_WIDTHS, SDP_WIDTHS, lookup_integers

CASES = [("nv_full", INT8), ("nv_full", INT16), ("nv_large", INT8), ("nv_small", INT8), ("nv_small_256_full", INT8)]
BITS = {INT8: 8, INT16: 16}


def pick(random: np.random.Generator, *values):
    return values[int(random.integers(len(values)))]


def bound(value: int) -> np.uint64:
    return np.uint64(int(value) & (1 << 64) - 1)


def random_lut(random: np.random.Generator, reach: int) -> np.void:
    """A table with bounds within +-2^reach, every method and priority."""
    lut = np.zeros((), firmware.LUT)
    lut["linear_exp_table"] = random.integers(-32768, 32768, 65)
    lut["linear_only_table"] = random.integers(-32768, 32768, 257)
    lut["method"] = random.integers(2)
    for name in ("hybrid_priority", "underflow_priority", "overflow_priority"):
        lut[name] = random.integers(2)
    for name, last in (("linear_exp", 64), ("linear_only", 256)):
        start = int(random.integers(-(1 << reach), 1 << reach))
        number = pick(random, 0, int(random.integers(-3, max(reach - 4, 1))))
        lut[f"{name}_start"], lut[f"{name}_offset"]["value"] = bound(start), number
        lut[f"{name}_end"] = bound(start + (last << number if number >= 0 else last >> -number))
        for side in ("underflow", "overflow"):
            lut[f"{name}_{side}_slope"]["scale"] = random.integers(-32768, 32768) >> int(random.integers(12))
            lut[f"{name}_{side}_slope"]["shifter"] = random.integers(-16, 16)
    return lut[()]


def random_sdp(random: np.random.Generator, precision: int, has_y: bool) -> np.void:
    op = np.zeros((), firmware.SDP_DESC)
    op["src_precision"] = op["dst_precision"] = precision
    op["batch_num"], op["lut_index"] = 1, -1
    equal = has_y and random.integers(4) == 0
    op["out_cvt"]["scale"], op["out_cvt"]["enable"] = 1 if equal else random.integers(-32768, 32768), 1
    op["out_cvt"]["offset"] = random.integers(-(1 << 31), 1 << 31) >> int(random.integers(4, 31))
    op["out_cvt"]["truncate"] = random.integers(0, 40)
    for name in ("x1_op", "x2_op", "y_op") if has_y else ("x1_op", "x2_op"):
        one = op[name]
        one["enable"], one["type"], one["mode"] = random.integers(4) > 0, random.integers(4), random.integers(3)
        one["alu_type"] = 3 if name == "y_op" and equal else random.integers(3)
        one["act"] = pick(random, 0, 3) if name == "y_op" else pick(random, 0, 1, 3)
        one["precision"] = pick(random, INT8, INT16) if precision == INT8 else INT16
        one["truncate"] = random.integers(0, 24)
        if name != "y_op":
            one["shift_value"] = random.integers(0, 24)
        one["alu_operand"], one["mul_operand"] = random.integers(-32768, 32768, 2)
        for cvt in ("alu_cvt", "mul_cvt"):
            one["cvt"][cvt]["enable"] = name == "y_op" and random.integers(2)
            one["cvt"][cvt]["scale"], one["cvt"][cvt]["offset"] = random.integers(-300, 300), random.integers(-300, 300)
            one["cvt"][cvt]["truncate"] = random.integers(0, 8)
    return op[()]


def operands(op: np.void, name: str, cubes: dict, data: dict, c: int, h: int, w: int) -> tuple[int, int]:
    """ALU and multiplier operand of an element, read byte by byte."""
    one = op[name]
    kind, mode, precision = (int(one[field]) for field in ("type", "mode", "precision"))
    if mode == 0 or kind == 0:
        return int(one["alu_operand"]), int(one["mul_operand"])
    raw, components = data[name.replace("_op", "_data")], 2 if kind == 3 else 1
    at = (c * components * BYTES[precision]) if mode == 1 else cubes[name.replace("_op", "_data")].at(c, h, w)
    values = np.frombuffer(raw[at : at + components * BYTES[precision]], "<i1" if precision == INT8 else "<i2")
    return int(values[0]), int(values[-1])


@pytest.mark.parametrize("config, precision", CASES)
def test_sdp(config, precision):
    chosen = CONFIGS[config]
    for seed in range(16):
        random = np.random.default_rng(seed)
        shape = (int(random.integers(1, 40)), int(random.integers(1, 4)), int(random.integers(1, 4)))
        op = random_sdp(random, precision, chosen.has_y).copy()
        luts = []
        if chosen.has_y and random.integers(2):
            op["y_op"]["enable"], op["y_op"]["act"], op["lut_index"] = 1, 2, 0
            luts = [random_lut(random, int(random.integers(6, 31)))]
        gap = (int(random.integers(2)), int(random.integers(2)))
        cubes = {
            "src_data": Cube(shape, precision, chosen.atom, gap),
            "dst_data": Cube(shape, precision, chosen.atom, gap[::-1]),
        }
        lanes = cubes["src_data"].lanes
        for name in ("x1", "x2", "y"):
            one = op[f"{name}_op"]
            if one["enable"] and one["type"] and one["mode"]:
                components = 2 if int(one["type"]) == 3 else 1
                cubes[f"{name}_data"] = Cube(shape, int(one["precision"]), chosen.atom, components=components, lanes=lanes)
        data = {name: fill(max(cube.size, 64 * 4), 100 * seed + i) for i, (name, cube) in enumerate(cubes.items())}
        found = run_one(chosen, SDP, op[()], cubes, data, luts)
        eql = bool(op["y_op"]["enable"]) and int(op["y_op"]["type"]) in (2, 3) and int(op["y_op"]["alu_type"]) == 3
        for c, h, w in np.ndindex(shape):
            x = int(cubes["src_data"].get(data["src_data"], c, h, w))
            for name in ("x1_op", "x2_op"):
                if op[name]["enable"]:
                    x = x_unit(x, op[name], *operands(op, name, cubes, data, c, h, w))
            if op["y_op"]["enable"]:
                x = y_unit(x, op["y_op"], *operands(op, "y_op", cubes, data, c, h, w), int(op["y_op"]["mode"]) > 0)
                x = lookup(x, luts[0], False) if luts else x
            cvt = op["out_cvt"]
            wanted = (
                wrap(x, BITS[precision])
                if eql
                else clamp(converter(x, int(cvt["offset"]), int(cvt["scale"]), int(cvt["truncate"]), 17), BITS[precision])
            )
            assert cubes["dst_data"].get(found, c, h, w) == wanted, (seed, c, h, w)


def test_prelu_passes_large_positive_numbers_as_they_are():
    op = np.zeros((), firmware.SDP_DESC)
    op["src_precision"] = op["dst_precision"] = INT16
    op["batch_num"], op["lut_index"], op["out_cvt"]["scale"], op["out_cvt"]["truncate"] = 1, -1, 1, 16
    one = op["x1_op"]
    one["enable"], one["type"], one["alu_type"], one["act"] = 1, 3, 2, 3
    one["alu_operand"], one["shift_value"], one["mul_operand"] = 32767, 16, 1
    cube = Cube((16, 1, 1), INT16, 32)
    data = np.array([32767, 100, -100, -32768] * 4, "<i2").tobytes()
    two = op["x2_op"]
    two["enable"], two["type"], two["alu_type"], two["act"], two["alu_operand"], two["shift_value"] = 1, 3, 2, 3, 32767, 16
    two["mul_operand"] = 1
    found = np.frombuffer(
        run_one(
            CONFIGS["nv_full"], SDP, op[()], {"src_data": cube, "dst_data": cube}, {"src_data": data, "dst_data": bytes(32)}
        ),
        "<i2",
    )
    wanted = []
    for value in (32767, 100, -100, -32768):
        x = x_unit(x_unit(value, one, 32767, 1), two, 32767, 1)
        wanted.append(converter(x, 0, 1, 16, 16))
    assert found.tolist() == wanted * 4 and wanted[0] < 0  # 33 bits do not fit into 32


@pytest.mark.parametrize("config, precision", CASES)
def test_cdp(config, precision):
    chosen = CONFIGS[config]
    for seed in range(12):
        random = np.random.default_rng(seed)
        shape = (int(random.integers(1, 40)), int(random.integers(1, 3)), int(random.integers(1, 4)))
        op = np.zeros((), firmware.CDP_OP)
        op["in_precision"] = op["out_precision"] = precision
        op["local_size"] = pick(random, 3, 5, 7, 9)
        op["bypass_sqsum"], op["bypass_out_mul"] = random.integers(4) == 0, random.integers(4) == 0
        op["in_cvt"]["scale"], op["in_cvt"]["offset"], op["in_cvt"]["truncate"] = (
            random.integers(-300, 300),
            random.integers(-128, 128),
            random.integers(0, 9),
        )
        op["out_cvt"]["scale"], op["out_cvt"]["offset"], op["out_cvt"]["truncate"] = (
            random.integers(-300, 300),
            random.integers(-5000, 5000),
            random.integers(0, 20),
        )
        lut = random_lut(random, (20 if precision == INT8 else 36) - 4 * int(random.integers(4)))
        cube = Cube(shape, precision, chosen.atom, (0, int(random.integers(2))))
        data = {"src_data": fill(cube.size, seed), "dst_data": bytes(cube.size)}
        found = run_one(chosen, CDP, op[()], {"src_data": cube, "dst_data": cube}, data, [lut])
        for c, h, w in np.ndindex(cube.surfaces * cube.lanes, *shape[1:]):  # with the lanes behind the last channel
            wanted = lrn(lambda k, h=h, w=w: int(cube.get(data["src_data"], k, h, w)), shape[0], c, op, lut, BITS[precision])
            assert cube.get(found, c, h, w) == wanted, (seed, c, h, w)


@pytest.mark.parametrize("config, precision", CASES)
def test_pdp(config, precision):
    chosen = CONFIGS[config]
    for seed in range(30):
        random = np.random.default_rng(seed)
        kernel = [int(random.integers(1, 9)) for _ in range(2)]
        stride = [int(random.integers(1, 9)) for _ in range(2)]
        before = [int(random.integers(0, min(k, 8))) for k in kernel]
        behind = [int(random.integers(0, min(k, 8))) for k in kernel]
        out = [int(random.integers(1, 4)) for _ in range(2)]
        size = [(n - 1) * s + k - a - b for n, s, k, a, b in zip(out, stride, kernel, before, behind, strict=True)]
        if min(size) < 1:
            continue
        op = np.zeros((), firmware.PDP_OP)
        limit = (1 << BITS[precision] - 1) - 1
        value = int(random.integers(-limit, limit))
        for name, number in {
            "split_num": 1,
            "pool_mode": random.integers(3),
            "pool_width": kernel[1] - 1,
            "pool_height": kernel[0] - 1,
            "stride_x": stride[1],
            "stride_y": stride[0],
            "pad_left": before[1],
            "pad_right": behind[1],
            "pad_top": before[0],
            "pad_bottom": behind[0],
            "precision": precision,
            "padding_value": [value * k for k in range(1, 8)],
        }.items():
            op[name] = number
        c = int(random.integers(1, 40))
        cubes = {
            "src_data": Cube((c, *size), precision, chosen.atom),
            "dst_data": Cube((c, *out), precision, chosen.atom, (1, 0)),
        }
        data = {"src_data": fill(cubes["src_data"].size, seed), "dst_data": bytes(cubes["dst_data"].size)}
        found = run_one(chosen, PDP, op[()], cubes, data)
        for k, h, w in np.ndindex(c, *out):
            wanted = pool(
                lambda y, x, k=k: int(cubes["src_data"].get(data["src_data"], k, y, x)), tuple(size), op, h, w, BITS[precision]
            )
            assert cubes["dst_data"].get(found, k, h, w) == wanted, (seed, k, h, w)


def test_bdma_repeats_lines_and_surfaces():
    surface = np.zeros((), ABIS["v12"].surfaces[BDMA])
    op = np.zeros((), firmware.BDMA_OP)
    op["num_transfers"] = surface["num_transfers"] = 2
    transfers = [(0, 0, 64, 3, 96, 64, 2, 320, 224), (32, 640, 32, 1, 32, 32, 4, 64, 96)]
    source, result = fill(1024, 1), bytearray(fill(1200, 2))
    before = bytes(result)
    for one, (_, _, *values) in zip(surface["transfers"], transfers, strict=False):
        one["source_address"], one["destination_address"] = 1, 2
        for name, value in zip(
            (
                "line_size",
                "line_repeat",
                "source_line",
                "destination_line",
                "surface_repeat",
                "source_surface",
                "destination_surface",
            ),
            values,
            strict=True,
        ):
            one[name] = value
    for _, _, size, lines, source_line, line, surfaces, source_surface, step in transfers:
        for s in range(surfaces):
            for i in range(lines):
                a, b = s * source_surface + i * source_line, s * step + i * line
                result[b : b + size] = source[a : a + size]
    found = run_one(CONFIGS["nv_full"], BDMA, op[()], {}, {"src_data": source, "dst_data": before}, surface=surface[()])
    assert found == bytes(result)


@pytest.mark.parametrize("precision", [INT8, INT16, FP16])
def test_rubik(precision):
    config = CONFIGS["nv_full"]
    op = np.zeros((), firmware.RUBIK_OP)
    op["precision"], op["stride_x"], op["stride_y"] = precision, 3, 2
    lanes, size = config.lanes(precision), BYTES[precision]
    c, h, w = lanes + 5, 2, 3
    step = 2 * lanes
    source, result = Cube((6 * step, h, w), precision, 32, (1, 0)), Cube((c, 2 * h, 3 * w), precision, 32, (0, 1))
    data = {"src_data": fill(source.size, 1), "dst_data": bytes(result.size)}
    found = run_one(config, RUBIK, op[()], {"src_data": source, "dst_data": result}, data)
    for k, y, x in np.ndindex(c, 2 * h, 3 * w):
        a, b = source.at((y % 2 * 3 + x % 3) * step + k, y // 2, x // 3), result.at(k, y, x)
        assert found[b : b + size] == data["src_data"][a : a + size]
    cube = Cube((c, h, w), precision, 32)
    line, plane = 32, 96
    planar = Cube((c, h, w), precision, 32)
    planar.line, planar.surface, planar.size = line, 0, c * plane
    for mode, src, dst in ((1, cube, planar), (2, planar, cube)):
        op["mode"] = mode
        data = {"src_data": fill(src.size, 3), "dst_data": bytes(dst.size)}
        planes = {"dst_data" if mode == 1 else "src_data": plane}
        found = run_one(config, RUBIK, op[()], {"src_data": src, "dst_data": dst}, data, planes=planes)
        for k, y, x in np.ndindex(c, h, w):
            flat, atoms = k * plane + y * line + x * size, cube.at(k, y, x)
            a, b = (atoms, flat) if mode == 1 else (flat, atoms)
            assert found[b : b + size] == data["src_data"][a : a + size]


@pytest.mark.parametrize("cdp", [False, True])
def test_look_up_tables(cdp):
    def interpolate(y0: np.ndarray, y1: np.ndarray, fraction: np.ndarray) -> np.ndarray:
        return (
            y0 + shift_right((y1 - y0) * fraction, 16) if cdp else shift_right(y0 * ((1 << 35) - fraction) + y1 * fraction, 35)
        )

    for seed in range(150):
        random = np.random.default_rng(seed)
        reach = int(random.integers(4, 37 if cdp else 31))
        lut = random_lut(random, reach)
        near = int(lut["linear_exp_start"].astype(np.int64)) + random.integers(-3, 4, 8)
        x = np.concatenate([random.integers(-(2 << reach), 2 << reach, 24), near]).astype(np.int64)
        found = lookup_integers(x, lut, interpolate, CDP_WIDTHS if cdp else SDP_WIDTHS)
        assert found.tolist() == [lookup(int(value), lut, cdp) for value in x], seed


@pytest.mark.parametrize("kernel, negative", [((1, 2), False), ((2, 1), True)])
def test_the_sign_of_a_mean_of_zero(kernel, negative):
    """Along a line the sum so far comes first, downwards the new line does: its sign stays when both cancel."""
    op = np.zeros((), firmware.PDP_OP)
    for name, value in {
        "split_num": 1,
        "pool_height": kernel[0] - 1,
        "pool_width": kernel[1] - 1,
        "stride_x": 1,
        "stride_y": 1,
        "precision": FP16,
    }.items():
        op[name] = value
    source, result = Cube((16, *kernel), FP16, 32), Cube((16, 1, 1), FP16, 32)
    data = np.array([[1.0] * 16, [-1.0] * 16], "<f2").tobytes()
    found = np.frombuffer(
        run_one(
            CONFIGS["nv_full"], PDP, op[()], {"src_data": source, "dst_data": result}, {"src_data": data, "dst_data": bytes(32)}
        ),
        "<f2",
    )
    assert np.all(found == 0) and np.all(np.signbit(found) == negative)
