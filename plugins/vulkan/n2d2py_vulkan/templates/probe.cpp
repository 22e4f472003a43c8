// Ends with 0 if a Vulkan device is present.
#include <vulkan/vulkan.h>
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
