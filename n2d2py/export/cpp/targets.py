"""Processors that an export can be built for: the toolchain files of CMake; the Makefile has the same list."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """`prefix` of the compiler's name, `flags` separated by semicolons, `emulator` that runs its programs elsewhere."""

    name: str
    processor: str
    flags: str
    prefix: str = ""
    emulator: str = ""


TARGETS = (
    Target("x86-64", "x86_64", "-march=x86-64"),
    Target("x86-64-v2", "x86_64", "-march=x86-64-v2"),
    Target("x86-64-v3", "x86_64", "-march=x86-64-v3"),
    Target("x86-64-v3-vnni", "x86_64", "-march=x86-64-v3;-mavxvnni"),
    Target("x86-64-v4", "x86_64", "-march=x86-64-v4;-mavx512vnni"),
    Target("i686", "i686", "-m32;-march=i686;-mfpmath=sse;-msse2", "i686-linux-gnu-", "qemu-i386"),
    Target("aarch64", "aarch64", "-march=armv8-a", "aarch64-linux-gnu-", "qemu-aarch64"),
    Target("aarch64-dot", "aarch64", "-march=armv8.2-a+dotprod", "aarch64-linux-gnu-", "qemu-aarch64;-cpu;max"),
    Target("armv7", "arm", "-march=armv7-a;-mfpu=neon;-mfloat-abi=hard;-Wno-psabi", "arm-linux-gnueabihf-", "qemu-arm"),
    Target("riscv64", "riscv64", "-march=rv64gc", "riscv64-linux-gnu-", "qemu-riscv64"),
)
