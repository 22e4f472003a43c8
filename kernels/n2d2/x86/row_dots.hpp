// Scalar products of a vector of bytes or 16-bit integers with eight rows of signed bytes, with AVX2 (n2d2/row_dots.hpp).
//
// Bytes are widened to 16 bits, pairs of products added to 32-bit sums. A row that ends within a vector has its last 16 weights loaded, with
// inputs of which those before are set to 0. Shorter rows are added one by one.
#pragma once

#include "n2d2/row_dots.hpp"
#include "n2d2/x86/avx2.hpp"

namespace n2d2 {
namespace avx2 {

struct RowDots : PlainRowDots {
    // The last Count of 16 integers, the others 0.
    template <int Count>
    static N2D2_INLINE __m256i last(__m256i x) {
        alignas(32) static const std::int16_t kept[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                                          -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        return _mm256_and_si256(x, load256(kept + Count));
    }
    // The sums of the vectors.
    static N2D2_INLINE void totals(const __m256i (&s)[8], std::int32_t (&to)[8]) {
        const __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
        const __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));
        store256(to, _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)));
    }

    // Adds the products of 16 inputs with rows that lie Pitch apart.
    template <int Pitch>
    static N2D2_INLINE void add(__m256i x, const std::int8_t* weights, __m256i (&s)[8]) {
        for (int r = 0; r < 8; ++r)
            s[r] = Vec::addPairs(s[r], x, Vec::halfwords<std::int8_t, 16>(weights + static_cast<long>(r) * Pitch));
    }
    template <int Count, class In>
    static N2D2_INLINE void vectors(const In* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        constexpr int rest = Count % 16, end = Count - 16;
        __m256i s[8];
        for (int r = 0; r < 8; ++r)
            s[r] = Vec::zero();
        for (int k = 0; k <= end; k += 16)
            add<Count>(Vec::halfwords<In, 16>(x + k), weights + k, s);
        if (rest > 0)
            add<Count>(last<rest>(Vec::halfwords<In, 16>(x + end)), weights + end, s);
        totals(s, sums);
    }

    using PlainRowDots::run;
    template <int Count, class In>
    static N2D2_INLINE void run(const In* x, const std::int8_t* weights, std::int32_t (&sums)[8]) {
        constexpr bool fits = (sizeof(In) == 1 || (sizeof(In) == 2 && std::numeric_limits<In>::is_signed)) && Count >= 16;
        if (fits)
            vectors<(fits ? Count : 16)>(x, weights, sums);
        else
            PlainRowDots::run<Count>(x, weights, sums);
    }
};

}  // namespace avx2
}  // namespace n2d2
