"""Projects of `-export Vulkan`: built, run under the validation layer, several instances, devices that are not there."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.export_build import compare_outputs, make, run_export
from support.export_networks import U8, Builder, chain, random_inputs, request, residual, write_export
from support.kernel_harness import ROOT
from support.ops import Conv
from support.programs import run_command
from support.vulkan_cases import VALIDATION, need_validation, need_vulkan, silent

import n2d2py
from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.exports import StoredStimuli, find_target
from n2d2py.quant.simulator import simulate
from n2d2py_vulkan import dispatch

TWO_INSTANCES = """
#include <cstdio>
#include <cstring>
#include <thread>
#include "residual.hpp"
int main() {
    const residual_device none = {"no such device", nullptr, nullptr, nullptr, 0, 0};
    void* const missing = residual_create(&none);
    std::printf("%d %s\\n", residual_status(missing), residual_status_text(residual_status(missing)));
    residual_destroy(missing);
    const residual_device first = {"0", nullptr, nullptr, nullptr, 0, 0};
    void* const instances[] = {residual_create(nullptr), residual_create(&first)};
    static residual::input_t inputs[2][residual::Input::Elements];
    static residual::output0_t one[3][residual::Output0::Elements];
    static residual::output1_t two[3][residual::Output1::Elements];
    for (int i = 0; i < 2; ++i)
        for (residual::input_t& value : inputs[i])
            value = static_cast<residual::input_t>(37 * (&value - inputs[i]) + 101 * i);
    int status[2] = {-1, -1};
    const auto infer = [&](int i) {
        for (int n = 0; n < 20; ++n)
            status[i] = residual::forward(inputs[i], one[i], two[i], instances[i]);
    };
    std::thread other(infer, 1);
    infer(0);
    other.join();
    residual::forward(inputs[1], one[2], two[2]);
    std::printf("%d %d %d %d\\n", status[0], status[1], std::memcmp(one[1], one[2], sizeof one[1]) != 0,
                std::memcmp(two[0], two[1], sizeof two[0]) != 0);
    for (void* instance : instances)
        residual_destroy(instance);
}
"""


CHAINED = """
#include <cstdio>
#include "n2d2/vulkan/device.hpp"
#include "first.hpp"
#include "second.hpp"
int main() {
    n2d2::vulkan::Device own;
    if (own.open("") != 0)
        return 1;
    const auto visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const auto moved = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    const int at = 64, pixels = first_INPUT_HEIGHT * first_INPUT_WIDTH, results = second_OUTPUT_HEIGHT * second_OUTPUT_WIDTH;
    n2d2::vulkan::Buffer shared = {}, between = {};
    own.allocate(shared, 65536, moved, visible, visible);
    own.allocate(between, 65536, moved, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, visible);
    void* place = nullptr;
    vkMapMemory(own.handle, shared.memory, 0, VK_WHOLE_SIZE, 0, &place);
    unsigned char* const bytes = static_cast<unsigned char*>(place);
    std::FILE* file = std::fopen("input.bin", "rb");
    for (int i = 0; i < pixels; ++i)
        if (std::fread(bytes + at + i * first_INPUT_PIXEL_BYTES, 1, first_INPUT_CHANNELS, file) != first_INPUT_CHANNELS)
            return 2;
    std::fclose(file);

    const first_device device = {nullptr, own.handle, own.physical, own.queue, own.family, own.hasDot};
    void* const one = first_create(&device);
    const second_device same = {nullptr, own.handle, own.physical, own.queue, own.family, own.hasDot};
    void* const two = second_create(&same);
    VkCommandPoolCreateInfo pools = {};
    pools.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pools.queueFamilyIndex = own.family;
    VkCommandPool pool;
    vkCreateCommandPool(own.handle, &pools, nullptr, &pool);
    VkCommandBufferAllocateInfo made = {};
    made.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    made.commandPool = pool;
    made.commandBufferCount = 1;
    VkCommandBuffer commands;
    vkAllocateCommandBuffers(own.handle, &made, &commands);
    VkCommandBufferBeginInfo begin = {};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    vkBeginCommandBuffer(commands, &begin);
    const first_region input = {(uint64_t)shared.buffer, at}, middle = {(uint64_t)between.buffer, 20};
    const second_region inner = {(uint64_t)between.buffer, 20}, output = {(uint64_t)shared.buffer, 32768};
    const int status[] = {first_record(commands, &input, &middle, one), second_record(commands, &inner, &output, two),
                          first_record(commands, &input, &middle, nullptr)};
    vkEndCommandBuffer(commands);
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    for (int i = 0; i < 2; ++i)  // one after the other without a wait
        vkQueueSubmit(own.queue, 1, &submit, VK_NULL_HANDLE);
    vkQueueWaitIdle(own.queue);
    std::printf("%d %d %d\\n", status[0], status[1], status[2]);
    for (int i = 0; i < results * second_OUTPUT_CHANNELS; ++i)
        std::printf("%d ", bytes[32768 + i / second_OUTPUT_CHANNELS * second_OUTPUT_PIXEL_BYTES + i % second_OUTPUT_CHANNELS]);
    vkDestroyCommandPool(own.handle, pool, nullptr);
    first_destroy(one);
    second_destroy(two);
    own.release(shared);
    own.release(between);
    own.destroy();
}
"""


def test_networks_in_buffers_of_an_application(tmp_path):
    """Two networks on the application's VkDevice, recorded into its command buffer, pass a tensor on the device: Python's integers."""
    need_vulkan()
    need_validation()
    graphs = []
    for name, shape, seed in (("first", (1, 3, 12, 10), 3), ("second", (1, 6, 6, 5), 4)):
        builder = Builder(name, shape, True, seed)
        stride = (2, 2) if name == "first" else (1, 1)
        conv = builder.weighted("conv", Conv(stride, (1, 1, 1, 1)), "env", (6, shape[1], 3, 3), U8, fixed=True)
        graphs.append(builder.finish(conv))
        made = request(graphs[-1], targets=(), stimuli=StoredStimuli())
        make(write_export(tmp_path / name, made, "Vulkan"), "OPT=-O1", "lib")
    values = random_inputs(graphs[0], 1)[0]
    (tmp_path / "input.bin").write_bytes(np.moveaxis(values[0], 0, -1).tobytes())
    (tmp_path / "app.cpp").write_text(CHAINED)
    words = "g++ -std=c++11 -Werror -Wall -Wextra -Ifirst/include -Isecond/include -Ifirst/kernels app.cpp first/lib/libfirst.a"
    run_command(*words.split(), *"second/lib/libsecond.a -o app -fopenmp -lvulkan -pthread".split(), cwd=tmp_path)
    done = subprocess.run(["./app"], cwd=tmp_path, env={**os.environ, **VALIDATION}, capture_output=True, text=True)
    silent(done.stdout + done.stderr)
    for graph in graphs:
        values = simulate(graph, [values])["conv"]
    status, printed = done.stdout.splitlines()
    assert status == "0 0 21"
    np.testing.assert_array_equal(np.array(printed.split(), int), np.moveaxis(values[0], 0, -1).reshape(-1))


@pytest.mark.parametrize("copy", ["0", "1"])
def test_layers_on_both_processors(tmp_path, monkeypatch, copy):
    """Layers on the GPU and, for their rescaling, on the CPU, by turns: outputs, and each layer alone, as Python's; -Werror."""
    need_vulkan()
    need_validation()
    graph = residual(True)
    made = request(graph)
    out = write_export(tmp_path / "out", made, "Vulkan")
    monkeypatch.setenv("N2D2_VULKAN_COPY", copy)
    for name, value in VALIDATION.items():
        monkeypatch.setenv(name, value)
    make(out, "OPT=-O1", "all", "lib")
    inputs = list(made.stimuli.inputs)
    compare_outputs(out, graph, inputs)
    done = run_export(out, "-save-outputs")
    silent(done.stdout + done.stderr)
    found, expected = n2d2py.load_export(out).layers(*inputs), simulate(graph, inputs, keep=True)
    for node in graph.nodes:
        np.testing.assert_array_equal(found[node.name], expected[node.output])


def test_instances_and_devices(tmp_path):
    """Two threads with an instance each; a device that is not there is a status of its instance."""
    need_vulkan()
    out = write_export(tmp_path / "out", request(residual(True)), "Vulkan")
    make(out, "OPT=-O1", "lib")
    (out / "two.cpp").write_text(TWO_INSTANCES)
    words = "g++ -std=c++11 -Iinclude two.cpp lib/libresidual.a -o two -fopenmp -lvulkan -pthread"
    run_command(*words.split(), cwd=out)
    printed = run_command("./two", cwd=out).splitlines()
    assert printed == ["17 no Vulkan 1.1 device of that name has a compute queue and 8-bit and 16-bit storage", "0 0 0 1"]
    environment = {**os.environ, "N2D2_VULKAN_DEVICE": "no such device"}
    make(out, "OPT=-O1")
    done = subprocess.run(["bin/run_export"], cwd=out, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "no Vulkan 1.1 device of that name" in done.stderr


def test_two_exports_are_equal(tmp_path):
    need_vulkan()
    folders = [write_export(tmp_path / name, request(chain(True)), "Vulkan") for name in ("a", "b")]
    files = [{path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()} for one in folders]
    assert files[0] == files[1]


def test_refusals(monkeypatch):
    """Floating point is E705; without a compiler of shaders E801, before anything is written."""
    vulkan = find_target("Vulkan")
    real = vulkan.prepare(request(chain(False)))
    assert [one.code for one in real.problems] == ["E705"]
    outside = vulkan.prepare(request(chain(True), external=("fc",)))
    assert [one.code for one in outside.problems] == ["E705"] and "whole tensors in the arena" in str(outside.problems[0])
    monkeypatch.setattr(dispatch.shutil, "which", lambda name: None)
    missing = vulkan.prepare(request(chain(True)))
    assert [one.code for one in missing.problems] == ["E801"] and "apt install glslc" in str(missing.problems[0])


def test_a_compiler_that_refuses_is_an_error(monkeypatch, tmp_path):
    program = tmp_path / "glslc"
    program.write_text("#!/bin/sh\necho 'conv.glsl:3: error: unknown extension' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    dispatch.spirv.cache_clear()
    with pytest.raises(N2D2Error, match="E802") as error:
        dispatch.spirv("conv", 1, False)
    dispatch.spirv.cache_clear()
    assert "conv.glsl:3: error: unknown extension" in str(error.value)


DATA = Path(os.environ.get("N2D2_DATA", ROOT.parent / "shared" / "data"))
NETWORKS = {
    "models/resnet8.onnx": ("cifar10/train",),
    "models/kws_dscnn.onnx": ("kws/kws_mfcc.npz",),
    "models/vww_96.onnx": ("vww",),
    "models/mobilenet_v1_0.5_160.onnx": ("imagenet", "-mean", "0.5", "-std", "0.5"),
    "models/mobilenet_v2_1.0_224.onnx": ("imagenet", "-mean", "0.5", "-std", "0.5"),
    "modern/unet/unet.ts.onnx": ("modern/unet/calib.npy",),
    "modern/yolo/yolo.ts.onnx": ("modern/yolo/calib.npy",),
    "modern/vit/vit.ts.onnx": ("modern/vit/calib.npy",),
}


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_every_layer_of_real_networks(tmp_path, network, capsys, monkeypatch):
    """Every layer is Python's, and the validation layer says nothing about an inference."""
    need_vulkan()
    need_validation()
    if not (DATA / network).is_file():
        pytest.skip(f"{network} is not among the data (N2D2_DATA)")
    folder, *words = NETWORKS[network]
    words = [str(DATA / network), "-calib-data", str(DATA / folder), "-calib", "20", *words, "-export", "Vulkan", "-compare"]
    assert main([*words, "-db-export", "4", "-o", str(tmp_path)]) == 0
    assert "compiled values identical to Python's" in "".join(capsys.readouterr())
    for name, value in VALIDATION.items():
        monkeypatch.setenv(name, value)
    make(tmp_path / "export_Vulkan_int8", "OPT=-O1")
    done = run_export(tmp_path / "export_Vulkan_int8")
    assert done.returncode == 0
    silent(done.stdout + done.stderr)
