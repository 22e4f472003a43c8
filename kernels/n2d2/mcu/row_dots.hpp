// Scalar products of a vector of bytes or 16-bit integers with rows of signed bytes (n2d2/row_dots.hpp), for the DSP extension.
//
// Inputs 0, 2 and 1, 3 of four lie in a word each, for four rows; so do those of a word of weights behind SXTB16. An SMLAD adds two products.
#pragma once

#include "n2d2/row_dots.hpp"

namespace n2d2 {

struct LaneRowDots : PlainRowDots {
    static N2D2_INLINE bool isAligned(const void* at) { return (reinterpret_cast<std::uintptr_t>(at) & 3) == 0; }
    static N2D2_INLINE std::uint32_t word(const void* aligned) {
        std::uint32_t found;
        __builtin_memcpy(&found, __builtin_assume_aligned(aligned, 4), 4);
        return found;
    }
    // Signed bytes 0 and 2, or 1 and 3, as 16-bit integers. By name: compilers rotate first, in an instruction of its own.
    static N2D2_INLINE std::uint32_t evenBytes(std::uint32_t x) {
        std::uint32_t found;
        __asm__("sxtb16 %0, %1" : "=r"(found) : "r"(x));
        return found;
    }
    static N2D2_INLINE std::uint32_t oddBytes(std::uint32_t x) {
        std::uint32_t found;
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(found) : "r"(x));
        return found;
    }
    static N2D2_INLINE void add(std::int32_t& sum, std::uint32_t a, std::uint32_t b) {
        __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    }

    static N2D2_INLINE void lanes(const std::int8_t* x, std::uint32_t& even, std::uint32_t& odd) {
        const std::uint32_t four = word(x);
        even = evenBytes(four);
        odd = oddBytes(four);
    }
    static N2D2_INLINE void lanes(const std::uint8_t* x, std::uint32_t& even, std::uint32_t& odd) {
        const std::uint32_t four = word(x);
        even = four & 0x00ff00ffu;
        odd = four >> 8 & 0x00ff00ffu;
    }
    static N2D2_INLINE void lanes(const std::int16_t* x, std::uint32_t& even, std::uint32_t& odd) {
        const std::uint32_t first = word(x), second = word(x + 2);
        even = (first & 0xffffu) | second << 16;
        odd = (second & 0xffff0000u) | first >> 16;
    }

    static N2D2_INLINE void addWord(const std::int8_t* weights, std::uint32_t even, std::uint32_t odd, std::int32_t& sum) {
        const std::uint32_t w = word(weights);
        add(sum, evenBytes(w), even);
        add(sum, oddBytes(w), odd);
    }

    // Sums by name: at -O2 an array of them would be in memory.
    template <int Count, class In>
    static N2D2_INLINE void four(const In* x, const std::int8_t* weights, std::int32_t* sums) {
        std::int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        const In* const end = x + Count;
        const std::int8_t* w = weights;
        for (; x != end; x += 4, w += 4) {
            std::uint32_t even, odd;
            lanes(x, even, odd);
            addWord(w, even, odd, s0);
            addWord(w + Count, even, odd, s1);
            addWord(w + 2 * Count, even, odd, s2);
            addWord(w + 3 * Count, even, odd, s3);
        }
        sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
    }
    template <int Count, int Rows, class In>
    static N2D2_INLINE void all(const In* x, const std::int8_t* weights, std::int32_t* sums) {
        int r = 0;
        const bool words = Count % 4 == 0 && isAligned(x) && isAligned(weights);  // a core may trap unaligned accesses
        for (; words && r + 4 <= Rows; r += 4)
            four<Count>(x, weights + static_cast<long>(r) * Count, sums + r);
        for (; r < Rows; ++r) {
            sums[r] = 0;
            dots<std::int32_t, 1>(Count, x, weights + static_cast<long>(r) * Count, Count, sums + r);
        }
    }

    using PlainRowDots::run;
    template <int Count, int Rows>
    static N2D2_INLINE void run(const std::int8_t* x, const std::int8_t* weights, std::int32_t (&sums)[Rows]) {
        all<Count, Rows>(x, weights, sums);
    }
    template <int Count, int Rows>
    static N2D2_INLINE void run(const std::uint8_t* x, const std::int8_t* weights, std::int32_t (&sums)[Rows]) {
        all<Count, Rows>(x, weights, sums);
    }
    template <int Count, int Rows>
    static N2D2_INLINE void run(const std::int16_t* x, const std::int8_t* weights, std::int32_t (&sums)[Rows]) {
        all<Count, Rows>(x, weights, sums);
    }
};

}  // namespace n2d2
