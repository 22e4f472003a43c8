// The tables of a network that the engine runs: shaders, pipelines and steps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace n2d2 {
namespace vulkan {

// SPIR-V of a shader; `dot` is what runs instead on a device with integer dot products, or null.
struct Shader {
    const std::uint32_t* code;
    std::size_t bytes;
    const std::uint32_t* dot;
    std::size_t dotBytes;
};

// A shader with its specialization constants 0, 1, 2, ...
struct Pipeline {
    int shader;
    const std::int32_t* constants;
    std::uint32_t count;
};

// Bytes [begin, end) of the arena.
struct Range {
    std::uint64_t begin, end;
};

// An input or an output of the network in the arena: `width` x `height` pixels of `bytes` bytes, `stride` and `pitch` apart. In a buffer
// of the application its pixels follow each other, `pixel` bytes apart.
struct Port {
    std::uint64_t place;
    std::uint32_t width, height, bytes, stride, pitch, pixel;
};

enum : int { PlaceCount = 5 };

// Work of a layer: a dispatch, or a function of the CPU where `run` is not null.
struct Step {
    int pipeline;
    std::uint32_t groups[2];
    std::int32_t places[PlaceCount];
    // For the steps since the last one that waited: it uses bytes that one of them wrote, or writes bytes that it read.
    bool waits;
    void (*run)(unsigned char* arena);
    const Range* touched;  // bytes that `run` uses
    std::size_t touchedCount;
};

struct Network {
    const Shader* shaders;
    std::size_t shaderCount;
    const Pipeline* pipelines;
    std::size_t pipelineCount;
    const Step* steps;
    std::size_t stepCount;
    const Port* inputs;
    std::size_t inputCount;
    const Port* outputs;
    std::size_t outputCount;
    const std::int32_t* constants;
    std::size_t constantBytes;
    std::size_t arenaBytes;
};

}  // namespace vulkan
}  // namespace n2d2
