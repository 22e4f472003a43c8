// A Vulkan device with what the shaders need, and buffers in its memory.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace n2d2 {
namespace vulkan {

enum Status : int { Ready, NoVulkan = 16, NoDevice, NoMemory, NoPipeline, DeviceLost, NotCreated, OnCpu };

inline const char* describe(int status) {
    static const char* const texts[] = {
        "Vulkan 1.1 is not available: no driver is installed",
        "no Vulkan 1.1 device of that name has a compute queue and 8-bit and 16-bit storage",
        "the device has not enough memory",
        "the driver does not accept a shader",
        "the device was lost",
        "the device is not ready",
        "a layer without a shader runs on the CPU, so the application cannot submit the network",
    };
    return status == Ready ? "ready" : texts[status >= NoVulkan && status <= OnCpu ? status - NoVulkan : NotCreated - NoVulkan];
}

// Choice of the device. With `device`, the engine uses what the application has created.
struct Options {
    // Part of the device's name, or its number; null: the environment variable N2D2_VULKAN_DEVICE, else the fastest kind.
    const char* name;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    std::uint32_t family;
    bool hasDot;  // the application has enabled shaderIntegerDotProduct
};

// 1 or 0 where an environment variable says so, else `otherwise`.
inline bool overridden(const char* variable, bool otherwise) {
    const char* const text = std::getenv(variable);
    return text && *text ? *text != '0' : otherwise;
}

struct Buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
};

// A device and a queue of it: the engine's own, or the application's.
class Device {
public:
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties = {};
    VkDevice handle = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    std::uint32_t family = 0;
    bool hasDot = false;

    // A new instance and device: the one that `name` names, else the fastest kind.
    int open(const char* name) {
        const VkApplicationInfo application = {
            VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, nullptr, 0, nullptr, 0, VK_API_VERSION_1_1};
        const VkInstanceCreateInfo info = {
            VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application, 0, nullptr, 0, nullptr};
        if (vkCreateInstance(&info, nullptr, &instance_) != VK_SUCCESS)
            return NoVulkan;
        owned_ = true;
        Found found;
        physical = choose(instance_, name ? name : std::getenv("N2D2_VULKAN_DEVICE"), found);
        if (!physical)
            return NoDevice;
        hasDot = found.hasDot && overridden("N2D2_VULKAN_DOT", found.isFast);
        family = found.family;
        vkGetPhysicalDeviceProperties(physical, &properties);

        const float priority = 1;
        const VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family, 1, &priority};
        Features features(hasDot);
        features.products.shaderIntegerDotProduct = VK_TRUE;
        features.halfwords.storageBuffer16BitAccess = VK_TRUE;
        features.bytes.storageBuffer8BitAccess = VK_TRUE;
        const char* const extensions[] = {VK_KHR_8BIT_STORAGE_EXTENSION_NAME, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME};
        const VkDeviceCreateInfo device = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                           &features.bytes,
                                           0,
                                           1,
                                           &queues,
                                           0,
                                           nullptr,
                                           hasDot ? 2u : 1u,
                                           extensions,
                                           nullptr};
        if (vkCreateDevice(physical, &device, nullptr, &handle) != VK_SUCCESS)
            return NoDevice;
        vkGetDeviceQueue(handle, family, 0, &queue);
        return Ready;
    }

    // The device of the application.
    int adopt(const Options& options) {
        physical = options.physical;
        handle = options.device;
        queue = options.queue;
        family = options.family;
        hasDot = options.hasDot;
        vkGetPhysicalDeviceProperties(physical, &properties);
        return Ready;
    }

    // The first kind of memory of `allowed` that has all of `wanted`; the number of kinds where there is none.
    std::uint32_t memoryType(std::uint32_t allowed, VkMemoryPropertyFlags wanted) const {
        VkPhysicalDeviceMemoryProperties known;
        vkGetPhysicalDeviceMemoryProperties(physical, &known);
        for (std::uint32_t i = 0; i < known.memoryTypeCount; ++i)
            if ((allowed >> i & 1) && (known.memoryTypes[i].propertyFlags & wanted) == wanted)
                return i;
        return VK_MAX_MEMORY_TYPES;
    }

    // A buffer in the first of two kinds of memory that there is.
    int allocate(Buffer& made, VkDeviceSize bytes, VkBufferUsageFlags usage, VkMemoryPropertyFlags first,
                 VkMemoryPropertyFlags second) {
        const VkBufferCreateInfo info = {
            VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, nullptr, 0, bytes, usage, VK_SHARING_MODE_EXCLUSIVE, 0, nullptr};
        if (vkCreateBuffer(handle, &info, nullptr, &made.buffer) != VK_SUCCESS)
            return NoMemory;
        VkMemoryRequirements needed;
        vkGetBufferMemoryRequirements(handle, made.buffer, &needed);
        VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needed.size,
                                       memoryType(needed.memoryTypeBits, first)};
        if (memory.memoryTypeIndex == VK_MAX_MEMORY_TYPES)
            memory.memoryTypeIndex = memoryType(needed.memoryTypeBits, second);
        if (memory.memoryTypeIndex == VK_MAX_MEMORY_TYPES ||
            vkAllocateMemory(handle, &memory, nullptr, &made.memory) != VK_SUCCESS ||
            vkBindBufferMemory(handle, made.buffer, made.memory, 0) != VK_SUCCESS)
            return NoMemory;
        return Ready;
    }

    void release(Buffer& buffer) {
        vkDestroyBuffer(handle, buffer.buffer, nullptr);
        vkFreeMemory(handle, buffer.memory, nullptr);
    }

    void destroy() {
        if (owned_ && handle)
            vkDestroyDevice(handle, nullptr);
        if (owned_)
            vkDestroyInstance(instance_, nullptr);
    }

private:
    VkInstance instance_ = VK_NULL_HANDLE;
    bool owned_ = false;

    // The features that shaders use, chained from `bytes` on; `dot`: with integer dot products.
    struct Features {
        VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR products = {};
        VkPhysicalDevice16BitStorageFeatures halfwords = {};
        VkPhysicalDevice8BitStorageFeatures bytes = {};
        explicit Features(bool dot) {
            products.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR;
            halfwords.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
            halfwords.pNext = dot ? &products : nullptr;
            bytes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
            bytes.pNext = &halfwords;
        }
    };

    struct Found {
        bool fits, hasDot, isFast;
        std::uint32_t family;
        int rank;
    };

    // The features of a device that the shaders need, and its rank among others.
    static Found examine(VkPhysicalDevice physical) {
        Found found = {false, false, false, 0, 0};
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(physical, &properties);
        if (properties.apiVersion < VK_API_VERSION_1_1)
            return found;
        const bool dot = extensionOf(physical, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
        Features features(dot);
        VkPhysicalDeviceFeatures2 asked = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features.bytes, {}};
        vkGetPhysicalDeviceFeatures2(physical, &asked);
        if (!extensionOf(physical, VK_KHR_8BIT_STORAGE_EXTENSION_NAME) || !features.bytes.storageBuffer8BitAccess ||
            !features.halfwords.storageBuffer16BitAccess || !computeFamily(physical, found.family))
            return found;
        VkPhysicalDeviceShaderIntegerDotProductPropertiesKHR speeds = {};
        speeds.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES_KHR;
        VkPhysicalDeviceProperties2 more = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, dot ? &speeds : nullptr, {}};
        vkGetPhysicalDeviceProperties2(physical, &more);
        found.fits = true;
        found.hasDot = dot && features.products.shaderIntegerDotProduct;
        found.isFast =
            speeds.integerDotProduct4x8BitPackedSignedAccelerated || properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
        const int ranks[] = {1, 3, 4, 2, 1};  // other, integrated, discrete, virtual, CPU
        found.rank = properties.deviceType <= VK_PHYSICAL_DEVICE_TYPE_CPU ? ranks[properties.deviceType] : 1;
        return found;
    }

    static bool extensionOf(VkPhysicalDevice physical, const char* wanted) {
        std::uint32_t count = 0;
        vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
        std::vector<VkExtensionProperties> all(count);
        vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, all.data());
        for (const VkExtensionProperties& one : all)
            if (std::strcmp(one.extensionName, wanted) == 0)
                return true;
        return false;
    }

    static bool computeFamily(VkPhysicalDevice physical, std::uint32_t& family) {
        std::uint32_t count = 0;
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
        std::vector<VkQueueFamilyProperties> all(count);
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, all.data());
        for (family = 0; family < count; ++family)
            if (all[family].queueFlags & VK_QUEUE_COMPUTE_BIT)
                return true;
        return false;
    }

    // The device that `name` names, or else the one of the highest rank.
    static VkPhysicalDevice choose(VkInstance instance, const char* name, Found& best) {
        std::uint32_t count = 0;
        vkEnumeratePhysicalDevices(instance, &count, nullptr);
        std::vector<VkPhysicalDevice> all(count);
        vkEnumeratePhysicalDevices(instance, &count, all.data());
        VkPhysicalDevice chosen = VK_NULL_HANDLE;
        best = Found();
        for (std::uint32_t i = 0; i < count; ++i) {
            VkPhysicalDeviceProperties properties;
            vkGetPhysicalDeviceProperties(all[i], &properties);
            char* end = nullptr;
            const bool isNumber = name && *name && std::strtoul(name, &end, 10) == i && *end == '\0';
            if (name && *name && !isNumber && !std::strstr(properties.deviceName, name))
                continue;
            const Found found = examine(all[i]);
            if (found.fits && found.rank > best.rank) {
                best = found;
                chosen = all[i];
            }
        }
        return chosen;
    }
};

}  // namespace vulkan
}  // namespace n2d2
