"""The compiled Vulkan export, built and run by the tool."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from n2d2py.exports.cpp.runner import CompiledExport

_PROBE = """#include <vulkan/vulkan.h>
int main() {
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_1;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    VkInstance instance;
    if (vkCreateInstance(&info, nullptr, &instance) != VK_SUCCESS)
        return 2;
    unsigned count = 0;
    vkEnumeratePhysicalDevices(instance, &count, nullptr);
    return count ? 0 : 2;
}
"""


class VulkanExport(CompiledExport):
    """A built copy of a written Vulkan export, which runs on the device that N2D2_VULKAN_DEVICE names, or on the best one."""

    remedy = "install g++, make, libvulkan-dev and a Vulkan driver (mesa-vulkan-drivers has one for the CPU)"
    needed = "Vulkan driver (mesa-vulkan-drivers has one for the CPU)"

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        """As for CPP; the headers and the loader of Vulkan, and a driver, are needed too."""
        return super().missing(parameters) or missing_vulkan()


@cache
def missing_vulkan() -> str:
    """A Vulkan program cannot be built, or finds no device: the reason; "" where both work."""
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as folder:
        (Path(folder) / "probe.cpp").write_text(_PROBE, encoding="utf-8")
        if shutil.which("g++") is None:
            return "no C++ compiler or make"
        words = ["g++", "probe.cpp", "-o", "probe", "-lvulkan"]
        if subprocess.run(words, cwd=folder, capture_output=True).returncode:
            return "no headers or loader of Vulkan (libvulkan-dev)"
        return "" if subprocess.run(["./probe"], cwd=folder, capture_output=True).returncode == 0 else "no Vulkan driver"
