// The epilogue of a run of sums by MVE: bytes, 32-bit sums and multipliers of 32 bits behind the point; others as portable code.
#pragma once

#include "n2d2/mcu/mve.hpp"
#include "n2d2/mcu/two_bytes.hpp"

namespace n2d2 {
namespace mve {

// out[i] = clamp(zero + ((sums[i] * multiplier + 2^31) >> 32)), with a multiplier for each sum, that `next` loads, or one for all, that `all`
// loads.
#define N2D2_MVE_REQUANTIZE(all, next)                                                                             \
    __asm__ volatile(all                                                                                           \
                     "vdup.32   q2, %[low]\n\t"                                                                    \
                     "vdup.32   q3, %[high]\n\t"                                                                   \
                     "dlstp.32  lr, %[count]\n"                                                                    \
                     "1:\n\t"                                                                                      \
                     "vldrw.32  q0, [%[sums]], #16\n\t" next                                                       \
                     "vrmulh.s32 q0, q0, q1\n\t"                                                                   \
                     "vadd.i32  q0, q0, %[zero]\n\t"                                                               \
                     "vmax.s32  q0, q0, q2\n\t"                                                                    \
                     "vmin.s32  q0, q0, q3\n\t"                                                                    \
                     "vstrb.32  q0, [%[out]], #4\n\t"                                                              \
                     "letp      lr, 1b"                                                                            \
                     : [sums] "+r"(sums), [multipliers] "+r"(multipliers), [out] "+r"(out)                         \
                     : [count] "r"(count), [zero] "r"(stored.zero), [low] "r"(stored.low), [high] "r"(stored.high) \
                     : "lr", "q0", "q1", "q2", "q3", "memory")
template <int = 0>
N2D2_MCU_FAST void requantize(const std::int32_t* sums, const std::int32_t* multipliers, bool varying, const Results& stored,
                              int count, unsigned char* out) {
    if (varying)
        N2D2_MVE_REQUANTIZE("", "vldrw.32  q1, [%[multipliers]], #16\n\t");
    else
        N2D2_MVE_REQUANTIZE("ldr lr, [%[multipliers]]\n\tvdup.32   q1, lr\n\t", "");
}
#undef N2D2_MVE_REQUANTIZE

template <class Epilogue, bool Varying, bool Fits = lanes::Words<Epilogue>::value>
struct Run : PortableRun<Epilogue, Varying> {};

template <class Epilogue, bool Varying>
struct Run<Epilogue, Varying, true> {
    typedef lanes::Words<Epilogue> Constants;

    template <int Count>
    static N2D2_INLINE void run(const std::int32_t* sums, int index, typename Epilogue::Type* out) {
        requantize(sums, Constants::multipliers(index), Varying && int(Constants::Each) > 1, Constants::results(), Count,
                   reinterpret_cast<unsigned char*>(out));
    }
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, typename Epilogue::Type* out) {
        PortableRun<Epilogue, Varying>::template run<Count>(sums, index, out);
    }
};

}  // namespace mve
}  // namespace n2d2
