// exp of n2d2/functions.hpp for four numbers at once with AVX2: the same operations, so the same bits.
#ifndef N2D2_X86_AVX2_EXP_HPP
#define N2D2_X86_AVX2_EXP_HPP

#include "n2d2/x86/intrinsics.hpp"

namespace n2d2 {
namespace avx2 {

// As n2d2::rounded: a product that is not contracted with a sum.
N2D2_INLINE __m256d rounded(__m256d x) {
    __asm__("" : "+x"(x));
    return x;
}

N2D2_INLINE __m256d horner(__m256d, __m256d result) { return result; }
template <class... Rest>
N2D2_INLINE __m256d horner(__m256d x, __m256d result, double next, Rest... rest) {
    return horner(x, _mm256_add_pd(rounded(_mm256_mul_pd(result, x)), _mm256_set1_pd(next)), rest...);
}

// 2^n for whole n of -1022 to 1023.
N2D2_INLINE __m256d powerOfTwo(__m256d n) {
    const __m256i exponent = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_cvttpd_epi32(n)), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(exponent, 52));
}

N2D2_INLINE __m256d exp(__m256d x) {
    const __m256d bounded = _mm256_min_pd(_mm256_max_pd(x, _mm256_set1_pd(-745.5)), _mm256_set1_pd(710.0));
    const __m256d k = _mm256_round_pd(_mm256_mul_pd(bounded, _mm256_set1_pd(1.4426950408889634)),
                                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256d rest = _mm256_sub_pd(_mm256_sub_pd(bounded, rounded(_mm256_mul_pd(k, _mm256_set1_pd(0.6931471803691238)))),
                                       rounded(_mm256_mul_pd(k, _mm256_set1_pd(1.9082149292705877e-10))));
    const __m256d half = _mm256_round_pd(_mm256_mul_pd(k, _mm256_set1_pd(0.5)), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256d series =
        horner(rest, _mm256_set1_pd(1.0 / 6227020800.0), 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
               1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0);
    const __m256d scaled = _mm256_mul_pd(_mm256_mul_pd(series, powerOfTwo(half)), powerOfTwo(_mm256_sub_pd(k, half)));
    const __m256d below = _mm256_cmp_pd(x, _mm256_set1_pd(-745.2), _CMP_LT_OQ);
    const __m256d above = _mm256_cmp_pd(x, _mm256_set1_pd(709.782712893384), _CMP_GT_OQ);
    const __m256d within =
        _mm256_blendv_pd(_mm256_andnot_pd(below, scaled), _mm256_set1_pd(std::numeric_limits<double>::infinity()), above);
    return _mm256_blendv_pd(within, x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}

struct VectorExp {
    template <int Count>
    static N2D2_INLINE int run(const double* in, double* out) {
        int i = 0;
        for (; i + 4 <= Count; i += 4)
            _mm256_storeu_pd(out + i, exp(_mm256_loadu_pd(in + i)));
        return i;
    }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_EXP_HPP
