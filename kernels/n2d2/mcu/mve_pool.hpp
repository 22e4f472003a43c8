// Sums of average pools of bytes (quad_pool.hpp) by MVE.
#pragma once

#include "n2d2/mcu/mve_run.hpp"
#include "n2d2/mcu/quad_pool.hpp"

namespace n2d2 {
namespace mve {

// `load`: of four bytes to words.
#define N2D2_MVE_ADD_PIXELS(load)                                    \
    __asm__ volatile(                                                \
        "vldrw.32  q0, [%[sums]]\n\t"                                \
        "wls       lr, %[count], 2f\n"                               \
        "1:\n\t" load                                                \
        " q1, [%[from]]\n\t"                                         \
        "add       %[from], %[from], %[stride]\n\t"                  \
        "vadd.i32  q0, q0, q1\n\t"                                   \
        "le        lr, 1b\n"                                         \
        "2:\n\t"                                                     \
        "vstrw.32  q0, [%[sums]]"                                    \
        : [from] "+r"(from)                                          \
        : [stride] "r"(stride), [count] "r"(count), [sums] "r"(sums) \
        : "lr", "q0", "q1", "memory")

// As quads::AddPixels.
struct AddPixels {
    template <class T>
    static N2D2_MCU_FAST void run(const T* from, int stride, int count, std::int32_t* sums) {
        if (std::numeric_limits<T>::is_signed)
            N2D2_MVE_ADD_PIXELS("vldrb.s32");
        else
            N2D2_MVE_ADD_PIXELS("vldrb.u32");
    }
};
#undef N2D2_MVE_ADD_PIXELS

}  // namespace mve
}  // namespace n2d2
