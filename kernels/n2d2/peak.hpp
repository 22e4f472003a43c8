// The most products of bytes that the multiply instructions of the kernels add, when nothing else is done.
//
// MultiplyPeak<Native>: Products, those of a loop, 0 where there is no such measure; run(loops).
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

template <class Isa>
struct MultiplyPeak {
    enum : int { Products = 0 };
    static N2D2_INLINE void run(int) {}
};

}  // namespace n2d2

#define N2D2_BIND_PEAK
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_PEAK
