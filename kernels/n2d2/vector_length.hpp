// Code that is compiled for vectors of one length (-msve-vector-bits=N) computes something else, without a sign of it, on a processor with
// another one: all of its instructions are there. An inference asks for the length first, and ends the program with a line.
#pragma once

#include "n2d2/env.hpp"

#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 0
#include <cstdio>
#include <cstdlib>
#endif

namespace n2d2 {

N2D2_INLINE void requireVectorLength() {
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 0
    long bytes = 0;
    __asm__("rdvl %0, #1" : "=r"(bytes));  // compilers take svcntb() for the length that they were told
    if (8 * bytes != __ARM_FEATURE_SVE_BITS) {
        std::fprintf(stderr,
                     "n2d2: built for SVE vectors of %d bits, this processor has %ld: build with -msve-vector-bits=%ld\n",
                     __ARM_FEATURE_SVE_BITS, 8 * bytes, 8 * bytes);
        std::abort();
    }
#endif
}

}  // namespace n2d2
