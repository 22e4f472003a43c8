// A network on a Vulkan device: one buffer is the arena of the memory plan, one holds the constants of all layers, and command buffers
// that are recorded once run the layers.
//
// Layers without a shader run on the CPU between two submissions. Where the CPU sees the arena (integrated GPUs, software), they work in
// it. Otherwise their tensors, the inputs and the outputs are copied from and to a second buffer, as part of the command buffers.
//
// An engine serves one inference at a time. Functions return a status and throw nothing.
#pragma once

#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "n2d2/vulkan/device.hpp"
#include "n2d2/vulkan/network.hpp"

namespace n2d2 {
namespace vulkan {

class Engine {
public:
    explicit Engine(const Network& network) : network_(network) {}
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine() { destroy(); }

    // Opens a device, uploads the constants and records the network.
    int create(const Options& options) {
        int status = options.device ? device_.adopt(options) : device_.open(options.name);
        if (status == Ready)
            status = createBuffers();
        if (status == Ready)
            status = createPipelines();
        if (status == Ready)
            status = recordSegments();
        return status;
    }

    // Memory of the CPU where inputs are placed and outputs are found, at their bytes of the arena.
    unsigned char* memory() const { return mapped_; }

    const char* name() const { return device_.properties.deviceName; }

    // One inference.
    int run() {
        for (const Segment& segment : segments_) {
            for (std::size_t i = segment.first; i < segment.stop && !segment.commands; ++i)
                network_.steps[i].run(mapped_);
            const int status = segment.commands ? submit(segment.commands) : Ready;
            if (status != Ready)
                return status;
        }
        return Ready;
    }

    // Records one inference from and to buffers of the application, which submits it: each input and output is a `buffer` and an `offset`.
    template <class Region>
    int record(VkCommandBuffer commands, const Region* inputs, const Region* outputs) const {
        if (std::any_of(segments_.begin(), segments_.end(), [](const Segment& one) { return !one.commands; }))
            return OnCpu;
        const VkPipelineStageFlags everything = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
        const VkAccessFlags moved = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
        barrier(commands, everything, VK_ACCESS_MEMORY_WRITE_BIT, transfer, moved);
        for (std::size_t i = 0; i < network_.inputCount; ++i)
            copyPort(commands, network_.inputs[i], (VkBuffer)inputs[i].buffer, inputs[i].offset, true);
        barrier(commands, transfer, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, ShaderAccess);
        dispatch(commands, 0, network_.stepCount);
        barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, transfer, moved);
        for (std::size_t i = 0; i < network_.outputCount; ++i)
            copyPort(commands, network_.outputs[i], (VkBuffer)outputs[i].buffer, outputs[i].offset, false);
        barrier(commands, transfer, VK_ACCESS_TRANSFER_WRITE_BIT, everything | VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
        return Ready;
    }

    // Steps [first, stop) alone. The whole arena is in `memory()` afterwards.
    int runSteps(std::size_t first, std::size_t stop) {
        const Range all = {0, network_.arenaBytes};
        for (std::size_t i = first; i < stop; ++i) {
            const Step& step = network_.steps[i];
            if (step.run) {
                step.run(mapped_);
                continue;
            }
            const Segment one = {i, i + 1, traced_};
            int status = record(one, &all, 1, &all, 1);
            if (status == Ready)
                status = submit(traced_);
            if (status != Ready)
                return status;
        }
        return Ready;
    }

private:
    struct Segment {
        std::size_t first, stop;
        VkCommandBuffer commands;  // null: steps of the CPU
    };

    const Network& network_;
    Device device_;
    bool copies_ = false;
    Buffer arena_ = {}, constants_ = {}, staging_ = {};
    unsigned char* mapped_ = nullptr;
    VkDescriptorSetLayout setLayout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    std::vector<VkPipeline> pipelines_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer traced_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
    std::vector<Segment> segments_;

    int createBuffers() {
        const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        const VkMemoryPropertyFlags cached = visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
        const VkBufferUsageFlags moved = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        const bool shared = device_.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU &&
                            device_.memoryType(~0u, local | cached) != VK_MAX_MEMORY_TYPES;
        copies_ = overridden("N2D2_VULKAN_COPY", !shared);
        const std::size_t bytes = (network_.arenaBytes + 3) / 4 * 4 + Behind;
        int status = device_.allocate(arena_, bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | moved,
                                      copies_ ? local : local | cached, copies_ ? local : visible);
        if (status == Ready && copies_)
            status = device_.allocate(staging_, bytes, moved, cached, visible);
        void* place = nullptr;
        const VkDeviceMemory seen = copies_ ? staging_.memory : arena_.memory;
        if (status == Ready && vkMapMemory(device_.handle, seen, 0, VK_WHOLE_SIZE, 0, &place) != VK_SUCCESS)
            status = NoMemory;
        mapped_ = static_cast<unsigned char*>(place);
        return status == Ready ? createCommands() : status;
    }

    int createCommands() {
        const VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                              VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, device_.family};
        const VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
        if (vkCreateCommandPool(device_.handle, &pool, nullptr, &pool_) != VK_SUCCESS ||
            vkCreateFence(device_.handle, &fence, nullptr, &fence_) != VK_SUCCESS || !commandBuffer(traced_))
            return NoMemory;
        return uploadConstants();
    }

    bool commandBuffer(VkCommandBuffer& made) {
        const VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                                  VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
        return vkAllocateCommandBuffers(device_.handle, &info, &made) == VK_SUCCESS;
    }

    // The constants go to the device once, through a buffer that lives as long as that takes.
    int uploadConstants() {
        const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        int status = device_.allocate(constants_, network_.constantBytes,
                                      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT, local, visible);
        Buffer source = {};
        if (status == Ready)
            status = device_.allocate(source, network_.constantBytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, visible, visible);
        void* place = nullptr;
        if (status == Ready && vkMapMemory(device_.handle, source.memory, 0, VK_WHOLE_SIZE, 0, &place) != VK_SUCCESS)
            status = NoMemory;
        if (status == Ready) {
            std::memcpy(place, network_.constants, network_.constantBytes);
            const VkBufferCopy all = {0, 0, network_.constantBytes};
            begin(traced_);
            vkCmdCopyBuffer(traced_, source.buffer, constants_.buffer, 1, &all);
            status = vkEndCommandBuffer(traced_) == VK_SUCCESS ? submit(traced_) : NoMemory;
        }
        device_.release(source);
        return status;
    }

    int createPipelines() {
        const VkDescriptorSetLayoutBinding bindings[2] = {
            {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
            {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
        const VkDescriptorSetLayoutCreateInfo sets = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, 2,
                                                      bindings};
        if (vkCreateDescriptorSetLayout(device_.handle, &sets, nullptr, &setLayout_) != VK_SUCCESS)
            return NoMemory;
        const VkPushConstantRange places = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(std::int32_t) * PlaceCount};
        const VkPipelineLayoutCreateInfo layout = {
            VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &setLayout_, 1, &places};
        const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
        const VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, 1, 1, &size};
        if (vkCreatePipelineLayout(device_.handle, &layout, nullptr, &layout_) != VK_SUCCESS ||
            vkCreateDescriptorPool(device_.handle, &pool, nullptr, &descriptors_) != VK_SUCCESS || !bindBuffers())
            return NoMemory;
        std::vector<VkShaderModule> modules(network_.shaderCount, VkShaderModule(VK_NULL_HANDLE));
        pipelines_.resize(network_.pipelineCount, VkPipeline(VK_NULL_HANDLE));
        int status = Ready;
        for (std::size_t i = 0; i < network_.pipelineCount && status == Ready; ++i)
            status = createPipeline(network_.pipelines[i], modules, pipelines_[i]);
        for (VkShaderModule each : modules)
            vkDestroyShaderModule(device_.handle, each, nullptr);
        return status;
    }

    bool bindBuffers() {
        const VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, descriptors_, 1,
                                                  &setLayout_};
        if (vkAllocateDescriptorSets(device_.handle, &info, &set_) != VK_SUCCESS)
            return false;
        const VkDescriptorBufferInfo buffers[2] = {{arena_.buffer, 0, VK_WHOLE_SIZE}, {constants_.buffer, 0, VK_WHOLE_SIZE}};
        const VkWriteDescriptorSet write = {
            VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set_,    0,      0, 2,  // both bindings
            VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      nullptr, buffers, nullptr};
        vkUpdateDescriptorSets(device_.handle, 1, &write, 0, nullptr);
        return true;
    }

    int createPipeline(const Pipeline& wanted, std::vector<VkShaderModule>& modules, VkPipeline& made) {
        const std::size_t index = static_cast<std::size_t>(wanted.shader);
        if (!modules[index]) {
            const Shader& shader = network_.shaders[index];
            const bool dot = device_.hasDot && shader.dot;
            const VkShaderModuleCreateInfo module = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                                     dot ? shader.dotBytes : shader.bytes, dot ? shader.dot : shader.code};
            if (vkCreateShaderModule(device_.handle, &module, nullptr, &modules[index]) != VK_SUCCESS)
                return NoPipeline;
        }
        std::vector<VkSpecializationMapEntry> entries(wanted.count);
        for (std::uint32_t i = 0; i < wanted.count; ++i)
            entries[i] = {i, static_cast<std::uint32_t>(i * sizeof(std::int32_t)), sizeof(std::int32_t)};
        const VkSpecializationInfo constants = {wanted.count, entries.data(), wanted.count * sizeof(std::int32_t),
                                                wanted.constants};
        const VkPipelineShaderStageCreateInfo stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                       nullptr,
                                                       0,
                                                       VK_SHADER_STAGE_COMPUTE_BIT,
                                                       modules[index],
                                                       "main",
                                                       &constants};
        const VkComputePipelineCreateInfo info = {
            VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, nullptr, 0, stage, layout_, VK_NULL_HANDLE, 0};
        return vkCreateComputePipelines(device_.handle, VK_NULL_HANDLE, 1, &info, nullptr, &made) == VK_SUCCESS ? Ready :
                                                                                                                  NoPipeline;
    }

    static void begin(VkCommandBuffer commands) {
        const VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
        vkBeginCommandBuffer(commands, &info);
    }

    static void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                        VkAccessFlags used) {
        const VkMemoryBarrier memory = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, written, used};
        vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
    }

    // An input or an output between the arena and a buffer of the application: one copy, or one of each pixel where they have other gaps.
    void copyPort(VkCommandBuffer commands, const Port& port, VkBuffer theirs, VkDeviceSize offset, bool isInput) const {
        const bool whole = port.stride == port.pixel && port.pitch == port.stride * port.width;
        const std::uint32_t pixels = port.width * port.height, count = whole ? 1 : pixels;
        std::vector<VkBufferCopy> parts(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            const VkDeviceSize own = port.place + std::uint64_t(i / port.width) * port.pitch + i % port.width * port.stride;
            const VkDeviceSize other = offset + std::uint64_t(i) * port.pixel;
            const VkDeviceSize bytes = whole ? std::uint64_t(pixels - 1) * port.pixel + port.bytes : port.bytes;
            parts[i] = isInput ? VkBufferCopy{other, own, bytes} : VkBufferCopy{own, other, bytes};
        }
        vkCmdCopyBuffer(commands, isInput ? theirs : arena_.buffer, isInput ? arena_.buffer : theirs, count, parts.data());
    }

    void dispatch(VkCommandBuffer commands, std::size_t first, std::size_t stop) const {
        const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
        for (std::size_t i = first; i < stop; ++i) {
            const Step& step = network_.steps[i];
            if (step.waits && i > first)
                barrier(commands, compute, VK_ACCESS_SHADER_WRITE_BIT, compute, ShaderAccess);
            vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_[static_cast<std::size_t>(step.pipeline)]);
            vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof step.places, step.places);
            vkCmdDispatch(commands, step.groups[0], step.groups[1], 1);
        }
    }

    static void copy(VkCommandBuffer commands, const Buffer& from, const Buffer& to, const Range* ranges, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const VkBufferCopy part = {ranges[i].begin, ranges[i].begin, ranges[i].end - ranges[i].begin};
            vkCmdCopyBuffer(commands, from.buffer, to.buffer, 1, &part);
        }
    }

    // Records the dispatches of a segment, after copies to the device and before copies from it where the CPU has its own buffer.
    int record(const Segment& segment, const Range* up, std::size_t upCount, const Range* down, std::size_t downCount) {
        const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
        const VkCommandBuffer commands = segment.commands;
        begin(commands);
        if (copies_ && upCount > 0) {
            barrier(commands, compute, VK_ACCESS_SHADER_WRITE_BIT, transfer, VK_ACCESS_TRANSFER_WRITE_BIT);
            copy(commands, staging_, arena_, up, upCount);
        }
        barrier(commands, compute | transfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, compute, ShaderAccess);
        dispatch(commands, segment.first, segment.stop);
        if (copies_) {
            barrier(commands, compute, VK_ACCESS_SHADER_WRITE_BIT, transfer,
                    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
            copy(commands, arena_, staging_, down, downCount);
        }
        barrier(commands, copies_ ? transfer : compute, copies_ ? VK_ACCESS_TRANSFER_WRITE_BIT : VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
        return vkEndCommandBuffer(commands) == VK_SUCCESS ? Ready : NoMemory;
    }

    // Steps of one kind that follow each other.
    int recordSegments() {
        std::size_t last = 0;
        for (std::size_t i = 0; i < network_.stepCount; ++i) {
            const bool onCpu = network_.steps[i].run != nullptr;
            if (i == 0 || onCpu != (network_.steps[i - 1].run != nullptr)) {
                Segment next = {i, i, VK_NULL_HANDLE};
                if (!onCpu && !commandBuffer(next.commands))
                    return NoMemory;
                segments_.push_back(next);
            }
            segments_.back().stop = i + 1;
            last = onCpu ? last : segments_.size() - 1;
        }
        bool isFirst = true;
        for (std::size_t i = 0; i < segments_.size(); ++i) {
            if (!segments_[i].commands)
                continue;
            std::vector<Range> up, down;
            if (isFirst)
                addPorts(network_.inputs, network_.inputCount, up);
            if (i > 0)
                addTouched(segments_[i - 1], up);
            if (i + 1 < segments_.size())
                addTouched(segments_[i + 1], down);
            if (i == last)
                addPorts(network_.outputs, network_.outputCount, down);
            isFirst = false;
            merge(up);
            merge(down);
            const int status = record(segments_[i], up.data(), up.size(), down.data(), down.size());
            if (status != Ready)
                return status;
        }
        return Ready;
    }

    void addTouched(const Segment& segment, std::vector<Range>& ranges) const {
        for (std::size_t i = segment.first; i < segment.stop; ++i) {
            const Step& step = network_.steps[i];
            ranges.insert(ranges.end(), step.touched, step.touched + step.touchedCount);
        }
    }

    static void addPorts(const Port* ports, std::size_t count, std::vector<Range>& ranges) {
        for (const Port* port = ports; port != ports + count; ++port) {
            const std::uint64_t last =
                std::uint64_t(port->height - 1) * port->pitch + std::uint64_t(port->width - 1) * port->stride;
            ranges.push_back({port->place, port->place + last + port->bytes});
        }
    }

    // Ranges in ascending order that do not overlap.
    static void merge(std::vector<Range>& ranges) {
        std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
        std::size_t kept = 0;
        for (std::size_t i = 1; i < ranges.size(); ++i)
            if (ranges[i].begin > ranges[kept].end)
                ranges[++kept] = ranges[i];
            else
                ranges[kept].end = std::max(ranges[kept].end, ranges[i].end);
        ranges.resize(ranges.empty() ? 0 : kept + 1);
    }

    int submit(VkCommandBuffer commands) {
        const VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, nullptr, 0, nullptr, nullptr, 1, &commands, 0, nullptr};
        const bool done = vkQueueSubmit(device_.queue, 1, &info, fence_) == VK_SUCCESS &&
                          vkWaitForFences(device_.handle, 1, &fence_, VK_TRUE, UINT64_MAX) == VK_SUCCESS &&
                          vkResetFences(device_.handle, 1, &fence_) == VK_SUCCESS;
        return done ? Ready : DeviceLost;
    }

    void destroy() {
        if (device_.handle) {
            vkDestroyFence(device_.handle, fence_, nullptr);
            vkDestroyCommandPool(device_.handle, pool_, nullptr);
            for (VkPipeline each : pipelines_)
                vkDestroyPipeline(device_.handle, each, nullptr);
            vkDestroyDescriptorPool(device_.handle, descriptors_, nullptr);
            vkDestroyPipelineLayout(device_.handle, layout_, nullptr);
            vkDestroyDescriptorSetLayout(device_.handle, setLayout_, nullptr);
            device_.release(arena_);
            device_.release(constants_);
            device_.release(staging_);
        }
        device_.destroy();
    }

    // Bytes behind the arena, as shaders read the last pixels by quads.
    enum : std::size_t { Behind = 16 };
    enum : VkAccessFlags { ShaderAccess = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT };
};

}  // namespace vulkan
}  // namespace n2d2
