// Sums of two tensors of bytes by MVE, four elements at a time. Other combinations are made as elsewhere, with the epilogue of vectors.
#pragma once

#include "n2d2/mcu/mve_run.hpp"

namespace n2d2 {
namespace mve {

#define N2D2_MVE_SUMS(type)                                                                                           \
    __asm__ volatile(                                                                                                 \
        "vdup.32   q2, %[weight]\n\t"                                                                                 \
        "vdup.32   q3, %[multiplier]\n\t"                                                                             \
        "vdup.32   q4, %[low]\n\t"                                                                                    \
        "vdup.32   q5, %[high]\n\t"                                                                                   \
        "dlstp.32  lr, %[count]\n"                                                                                    \
        "1:\n\t"                                                                                                      \
        "vldrb." type                                                                                                 \
        " q0, [%[a]], #4\n\t"                                                                                         \
        "vldrb." type                                                                                                 \
        " q1, [%[b]], #4\n\t"                                                                                         \
        "vmlas.s32 q0, q2, %[offset]\n\t"                                                                             \
        "vmla.s32  q0, q1, %[other]\n\t"                                                                              \
        "vrmulh.s32 q0, q0, q3\n\t"                                                                                   \
        "vadd.i32  q0, q0, %[zero]\n\t"                                                                               \
        "vmax.s32  q0, q0, q4\n\t"                                                                                    \
        "vmin.s32  q0, q0, q5\n\t"                                                                                    \
        "vstrb.32  q0, [%[out]], #4\n\t"                                                                              \
        "letp      lr, 1b"                                                                                            \
        : [a] "+r"(a), [b] "+r"(b), [out] "+r"(out), [count] "+r"(count)                                              \
        : [weight] "r"(w.weight), [other] "r"(w.otherWeight), [offset] "r"(w.offset), [multiplier] "r"(w.multiplier), \
          [zero] "r"(w.results.zero), [low] "r"(w.results.low), [high] "r"(w.results.high)                            \
        : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "memory")

template <bool Signed>
N2D2_MCU_FAST void sum(const lanes::Weighted& w, const unsigned char* a, const unsigned char* b, unsigned char* out,
                       int count) {
    if (Signed)
        N2D2_MVE_SUMS("s32");
    else
        N2D2_MVE_SUMS("u32");
}
#undef N2D2_MVE_SUMS

}  // namespace mve

template <class Cfg, bool Two = lanes::TwoBytes<Cfg, typename Cfg::Operands>::value>
struct MveElemwise : Elemwise<Cfg, Portable> {};

template <class Cfg>
struct MveElemwise<Cfg, true> {
    static N2D2_INLINE void run(const unsigned char* const* in, unsigned char* out,
                                const Rows& rows = Rows::all<typename Cfg::Output>()) {
        typedef lanes::TwoBytes<Cfg, typename Cfg::Operands> Two;
        Two::run(in, out, rows, mve::sum<std::numeric_limits<typename Two::Type>::is_signed>);
    }
};

}  // namespace n2d2
