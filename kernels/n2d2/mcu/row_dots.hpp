// Scalar products of a vector of bytes or 16-bit integers with rows of signed bytes (n2d2/row_dots.hpp), for the DSP extension.
//
// Inputs 0, 2 and 1, 3 of four lie in a word each, for four rows; so do those of a word of weights behind SXTB16. An SMLAD adds two products.
#pragma once

#include "n2d2/mcu/lanes.hpp"
#include "n2d2/row_dots.hpp"

namespace n2d2 {

struct LaneRowDots : PlainRowDots {
    template <class In>
    static N2D2_INLINE void inputs(const In* x, std::uint32_t& even, std::uint32_t& odd) {
        if (sizeof(In) == 1)
            return lanes::halves<std::numeric_limits<In>::is_signed>(lanes::alignedWord(x), even, odd);
        const std::uint32_t first = lanes::alignedWord(x), second = lanes::alignedWord(x + 2);
        even = (first & 0xffffu) | second << 16;
        odd = (second & 0xffff0000u) | first >> 16;
    }
    static N2D2_INLINE void addWord(const std::int8_t* weights, std::uint32_t even, std::uint32_t odd, std::int32_t& sum) {
        std::uint32_t first, second;
        lanes::halves<true>(lanes::alignedWord(weights), first, second);
        __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(first), "r"(even));
        __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(second), "r"(odd));
    }

    // Sums by name: at -O2 an array of them would be in memory.
    template <int Count, class In>
    static N2D2_INLINE void four(const In* x, const std::int8_t* w, std::int32_t* sums) {
        std::int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (const In* const end = x + Count; x != end; x += 4, w += 4) {
            std::uint32_t even, odd;
            inputs(x, even, odd);
            addWord(w, even, odd, s0);
            addWord(w + Count, even, odd, s1);
            addWord(w + 2 * Count, even, odd, s2);
            addWord(w + 3 * Count, even, odd, s3);
        }
        sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
    }

    using PlainRowDots::run;
    template <int Count, int Rows, class In>
    static N2D2_INLINE void run(const In* x, const std::int8_t* weights, std::int32_t (&sums)[Rows]) {
        constexpr bool fits = sizeof(In) == 1 || std::numeric_limits<In>::is_signed;
        if (!fits) {
            PlainRowDots::run<Count>(x, weights, sums);
            return;
        }
        int r = 0;
        const bool words =  // a core may trap other accesses
            Count % 4 == 0 && ((reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(weights)) & 3) == 0;
        for (; words && r + 4 <= Rows; r += 4)
            four<Count>(x, weights + static_cast<long>(r) * Count, sums + r);
        for (; r < Rows; ++r) {
            sums[r] = 0;
            dots<std::int32_t, 1>(Count, x, weights + static_cast<long>(r) * Count, Count, sums + r);
        }
    }
};

}  // namespace n2d2
