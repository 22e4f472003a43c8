// Runs cases of one layer on a Vulkan device: reads them from a file, writes their arenas to another.
//
// All numbers are 32-bit words: the count of cases; of each the length of the code and the code, the count of specialization constants
// and these, two group counts, five places, the length of the constants and these, the bytes of the arena and the arena, rounded up.
#include <cstdio>
#include <vector>

#include "n2d2/vulkan/engine.hpp"

using namespace n2d2::vulkan;

static std::vector<std::int32_t> words;
static std::size_t at = 0;

static std::size_t number() { return static_cast<std::size_t>(words[at++]); }

static const std::int32_t* take(std::size_t count) {
    at += count;
    return words.data() + at - count;
}

int main(int, char** argv) {
    std::FILE* file = std::fopen(argv[1], "rb");
    for (std::int32_t word; std::fread(&word, sizeof word, 1, file) == 1;)
        words.push_back(word);
    std::fclose(file);
    file = std::fopen(argv[2], "wb");
    for (std::size_t cases = number(); cases > 0; --cases) {
        std::vector<Shader> shaders;
        std::vector<Pipeline> pipelines;
        std::vector<Step> steps;
        for (std::size_t count = number(); count > 0; --count) {
            const std::size_t length = number();
            const std::uint32_t* code = reinterpret_cast<const std::uint32_t*>(take(length));
            shaders.push_back(Shader{code, 4 * length, code, 4 * length});
            const std::size_t constants = number();
            const int index = static_cast<int>(pipelines.size());
            pipelines.push_back(Pipeline{index, take(constants), static_cast<std::uint32_t>(constants)});
            Step step = {};
            step.pipeline = index;
            step.waits = true;
            for (std::uint32_t& group : step.groups)
                group = static_cast<std::uint32_t>(number());
            for (std::int32_t& place : step.places)
                place = words[at++];
            steps.push_back(step);
        }
        const std::size_t length = number();
        const std::int32_t* constants = take(length);
        const std::size_t bytes = number();
        const std::uint32_t size = static_cast<std::uint32_t>(bytes);
        const Port all = {0, 1, 1, size, size, size, size};
        const Network network = {shaders.data(),
                                 shaders.size(),
                                 pipelines.data(),
                                 pipelines.size(),
                                 steps.data(),
                                 steps.size(),
                                 &all,
                                 1,
                                 &all,
                                 1,
                                 constants,
                                 4 * length,
                                 bytes};
        Engine engine(network);
        int status = engine.create(Options{nullptr, nullptr, nullptr, nullptr, 0, false});
        if (status == Ready) {
            std::memcpy(engine.memory(), take((bytes + 3) / 4), bytes);
            status = engine.run();
        }
        if (status != Ready) {
            std::fprintf(stderr, "%s\n", describe(status));
            return 1;
        }
        std::fwrite(engine.memory(), 1, bytes, file);
    }
    return std::fclose(file);
}
