"""The cores that an export can be built for, the boards of QEMU that run them, and boards that people have.

All that names a core or a board comes from here: the Makefile, the toolchain files of CMake, the linker scripts, the runner.
"""

from dataclasses import dataclass
from typing import Any

from n2d2py.contracts.cpp.isa import CHANNEL_PAIRS, sets_with


@dataclass(frozen=True)
class Board:
    """A board.

    Attributes:
        emulator: QEMU's command without the program; "" for a board on the desk.
        flash, ram: (address, bytes) of the memory that the vector table, code and constants lie in, and of the other.
        slow: the same of a memory for tensors and states that the first one does not hold (`Memories`).
        external: the same of a second memory for constants.
        uart: address of its first serial port.
        counter: address of a counter, and its steps in a microsecond.
        riscv: whether its processor is RISC-V; the others are Arm.
        small: whether `flash` is too small for the constants of many networks, which are all in `external` then.
        chip: what its serial line is programmed like (`export_templates/mcu/boards/uart_*`); `pins` of it, to transmit and to
            receive.
        core: name of its core, for a board on the desk.
        stored: address for programming of `external`, where that is another window of `flash`.
    """

    name: str
    emulator: str
    flash: tuple[int, int]
    ram: tuple[int, int]
    uart: int
    counter: tuple[int, int] = (0, 0)
    slow: tuple[int, int] | None = None
    external: tuple[int, int] | None = None
    riscv: bool = False
    small: bool = False
    text: str = ""
    chip: str = ""
    core: str = ""
    pins: tuple[int, int] = (0, 0)
    stored: int = 0

    @property
    def constants(self) -> str:
        """The region of the linker script with all constants that are not placed."""
        return "EXTERNAL" if self.small else "FLASH"


@dataclass(frozen=True)
class Core:
    """A processor core.

    Attributes:
        prefix, flags: what the names of its compiler begin with, and its flags.
        board: the one whose QEMU runs it.
        isa: the name of its instruction set (`exports.cpp.isa`).
        cxx, cxx_flags: the C++ compiler and its flags, where others than those above compile C++.
    """

    name: str
    prefix: str
    flags: tuple[str, ...]
    board: str
    isa: str
    link: tuple[str, ...]
    processor: str = "arm"
    cxx: str = ""
    cxx_flags: tuple[str, ...] = ()

    @property
    def compiler(self) -> str:
        return self.cxx or f"{self.prefix}g++"


_KB, _MB = 1024, 1024 * 1024


def _halves(begin: int) -> dict[str, Any]:
    """Return the two memories of a board whose RAM of 16 MB they share."""
    return {"slow": (begin, 8 * _MB), "external": (begin + 8 * _MB, 8 * _MB)}


_MPS2 = {"counter": (0x40028018, 25), **_halves(0x21000000)}
_VIRT = {"counter": (0x0200BFF8, 10), **_halves(0x81000000), "riscv": True}
_QEMU_VIRT = "qemu-system-riscv32 -M virt {}-bios none"
_IN_QEMU = """
mps2-an385 - - 0x00000000 4096 0x20000000 4096 0x40004000 Cortex-M3
mps2-an386 - - 0x00000000 4096 0x20000000 4096 0x40004000 Cortex-M4F
mps2-an500 - - 0x00000000 4096 0x20000000 4096 0x40004000 Cortex-M7F
mps2-an505 - - 0x10000000 4096 0x38000000 2048 0x50200000 Cortex-M33, secure
mps3-an547 - - 0x00000000 512 0x21000000 2048 0x59303000 Cortex-M55
riscv-virt - - 0x80000000 8192 0x80800000 8192 0x10000000 RV32
riscv-vectors - - 0x80000000 8192 0x80800000 8192 0x10000000 RV32 with vectors
"""
_ON_DESK = """
nucleo-f446re cortex-m4 stm32f4 0x08000000 512 0x20000000 128 0x40004400 STM32, serial line of ST-LINK
nucleo-h743zi cortex-m7 stm32h7 0x08000000 2048 0x20000000 128 0x40004800 STM32, serial line of ST-LINK
pico2 cortex-m33 rp2350 0x10000000 4096 0x20000000 512 0x40070000 RP2350
esp32-c3 rv32imc esp32c3 0x42000000 1024 0x3FC80000 256 0x60000000 ESP32-C3, direct boot
nrf52840-dk cortex-m4 nrf 0 1024 0x20000000 256 0x40002000 nRF52840
nano33-ble cortex-m4 nrf 0x10000 960 0x20000000 256 0x40002000 nRF52840 after the boot loader of Arduino
microbit cortex-m0 nrf 0 256 0x20000000 16 0x40002000 nRF51822
"""
"""Name, core and chip of a board on the desk, address and kB of the flash, the same of the RAM, address of the serial line, text."""
_MORE: dict[str, dict[str, Any]] = {
    "mps2-an385": _MPS2,
    "mps2-an386": _MPS2,
    "mps2-an500": {**_MPS2, **_halves(0x60000000)},
    "mps2-an505": {"counter": (0x50302018, 20), **_halves(0x80000000)},
    "mps3-an547": {
        "counter": (0x59302018, 20),
        "slow": (0x68000000, 128 * _MB),
        "external": (0x60000000, 128 * _MB),
        "small": True,
    },
    "riscv-virt": {**_VIRT, "emulator": _QEMU_VIRT.format("")},
    "riscv-vectors": {**_VIRT, "emulator": _QEMU_VIRT.format("-cpu rv32,v=true,vlen=128,vext_spec=v1.0 ")},
    "nucleo-h743zi": {"slow": (0x24000000, 512 * _KB)},
    "esp32-c3": {"riscv": True, "small": True, "external": (0x3C100000, 3 * _MB), "stored": 0x42100000},
    "nrf52840-dk": {"pins": (6, 8)},
    "nano33-ble": {"pins": (35, 42)},
    "microbit": {"pins": (24, 25)},
}


def _board(row: str) -> Board:
    name, core, chip, *numbers, text = row.split(maxsplit=8)
    flash, flash_kb, ram, ram_kb, uart = (int(number, 0) for number in numbers)
    facts = {"emulator": f"qemu-system-arm -M {name}"} if chip == "-" else {"emulator": "", "core": core, "chip": chip}
    facts |= {"flash": (flash, flash_kb * _KB), "ram": (ram, ram_kb * _KB), "uart": uart, "text": text}
    return Board(**{"name": name, **facts, **_MORE.get(name, {})})


BOARDS, HARDWARE = (tuple(map(_board, rows.strip().splitlines())) for rows in (_IN_QEMU, _ON_DESK))
"""Boards of QEMU; boards on the desk, for the applications of -app."""

_ALIGNED = ("-mno-unaligned-access", "-fno-tree-loop-distribute-patterns")
"""Words only where their addresses are known; loops that copy stay loops, since the memcpy of newlib reads and writes unaligned words."""


def _arm(name: str, flags: str, board: str, isa: str) -> Core:
    words = (f"-mcpu={name}", "-mthumb", *_ALIGNED, *flags.split())
    return Core(name, "arm-none-eabi-", words, board, isa, ("--specs=nano.specs",))


def _riscv(name: str, arch: str, abi: str, board: str, isa: str, vectors: bool = False) -> Core:
    """Return a core of RISC-V; GCC compiles C for `arch`, and clang C++ for `name` if that has vectors."""
    common = (f"-mabi={abi}", "-mcmodel=medany")
    cxx = ("clang++", ("--target=riscv32-unknown-elf", f"-march={name}", *common)) if vectors else ("", ())
    return Core(
        name, "riscv64-unknown-elf-", (f"-march={arch}", *common, "--specs=picolibc.specs"), board, isa, (), "riscv", *cxx
    )


CORES = (
    _arm("cortex-m0", "", "mps2-an386", "portable"),
    _arm("cortex-m3", "", "mps2-an385", "portable"),
    _arm("cortex-m4", "-mfpu=fpv4-sp-d16 -mfloat-abi=hard", "mps2-an386", "dsp"),
    _arm("cortex-m7", "-mfpu=fpv5-sp-d16 -mfloat-abi=hard", "mps2-an500", "dsp"),
    _arm("cortex-m33", "-mfpu=fpv5-sp-d16 -mfloat-abi=hard", "mps2-an505", "dsp"),
    # GCC's own vectors cost more instructions than they save.
    _arm("cortex-m55", "-mfloat-abi=hard -fno-tree-vectorize", "mps3-an547", "mve"),
    _riscv("rv32imc", "rv32imc", "ilp32", "riscv-virt", "rvm"),
    _riscv("rv32imc_zve32x", "rv32imc", "ilp32", "riscv-vectors", "rvv", vectors=True),
    _riscv("rv32imafc", "rv32imafc", "ilp32f", "riscv-virt", "rvm"),
)

DEFAULT_CORE = "cortex-m4"


def core(name: str) -> Core:
    """Return the core of that name."""
    return next(one for one in CORES if one.name == name)


def board(name: str) -> Board:
    """Return the board of that name."""
    return next(one for one in BOARDS if one.name == name)


def transforming_cores() -> tuple[Core, ...]:
    """Return the cores that have Winograd kernels."""
    return tuple(one for one in CORES if one.isa in sets_with(CHANNEL_PAIRS))
