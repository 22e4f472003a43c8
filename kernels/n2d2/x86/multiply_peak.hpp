// Loops of the multiply instructions of x86: twelve sums in registers, as in the tiles.
#pragma once

#include "n2d2/env.hpp"

#define N2D2_PEAK_LOOP(Sum, Left) \
    __asm__ volatile("1:\n" Sum(0) Sum(1) Sum(2) Sum(3) Sum(4) Sum(5) Sum(6) Sum(7) Sum(8) Sum(9) Sum(10) Sum(11)             \
                     "dec %0\n"                                                                                               \
                     "jnz 1b\n"                                                                                               \
                     : "+r"(Left)                                                                                             \
                     :                                                                                                        \
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",      \
                       "xmm12", "xmm13", "xmm14", "xmm15")
#define N2D2_PEAK_DOT512(i) "vpdpbusd %%zmm15, %%zmm15, %%zmm" #i "\n"
#define N2D2_PEAK_DOT256(i) "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm" #i "\n"
#define N2D2_PEAK_PAIRS256(i) "vpmaddwd %%ymm15, %%ymm15, %%ymm14\nvpaddd %%ymm14, %%ymm" #i ", %%ymm" #i "\n"

namespace n2d2 {

// Products of bytes in 512 bits, in 256 bits, and of 16-bit integers in 256 bits.
struct Dot512Peak {
    enum : int { Products = 12 * 64 };
    static N2D2_INLINE void run(int loops) { N2D2_PEAK_LOOP(N2D2_PEAK_DOT512, loops); }
};
struct Dot256Peak {
    enum : int { Products = 12 * 32 };
    static N2D2_INLINE void run(int loops) { N2D2_PEAK_LOOP(N2D2_PEAK_DOT256, loops); }
};
struct Pairs256Peak {
    enum : int { Products = 12 * 16 };
    static N2D2_INLINE void run(int loops) { N2D2_PEAK_LOOP(N2D2_PEAK_PAIRS256, loops); }
};

}  // namespace n2d2

#undef N2D2_PEAK_LOOP
#undef N2D2_PEAK_DOT512
#undef N2D2_PEAK_DOT256
#undef N2D2_PEAK_PAIRS256
