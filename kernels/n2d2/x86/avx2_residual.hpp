// The sum in the last stage of a convolution with AVX2: pairs of 16-bit integers, vpmaddwd with the pair of multipliers.
#ifndef N2D2_X86_AVX2_RESIDUAL_HPP
#define N2D2_X86_AVX2_RESIDUAL_HPP

#include "n2d2/x86/avx2.hpp"

namespace n2d2 {
namespace avx2 {

template <class Stage>
struct ResidualSum;

template <class First, class Operand, class Last>
struct ResidualSum<Added<First, Operand, Last> > {
    typedef typename Last::Type Out;
    const __m256i weights, offset;
    const Stage8<Last, 8> last;
    N2D2_INLINE ResidualSum()
        : weights(_mm256_set1_epi32(pairOf(Operand::weight(), Operand::oldWeight()))), offset(_mm256_set1_epi32(Operand::offset())), last(0, 0) {}

    template <class T>
    static N2D2_INLINE __m256i wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
    }
    N2D2_INLINE __m256i eight(__m256i pairs) const {
        const __m256i products = _mm256_madd_epi16(pairs, weights);
        return last.template apply<true>(Operand::offset() == 0 ? products : _mm256_add_epi32(products, offset));
    }
    template <int Count>
    N2D2_INLINE void sixteen(const typename First::Type* own, Out* out) const {
        const __m256i a = wide<typename First::Type>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(own)));
        const __m256i b = wide<typename Operand::Old>(loadBytes<Count>(out));
        const __m256i halves = _mm256_packs_epi32(eight(_mm256_unpacklo_epi16(a, b)), eight(_mm256_unpackhi_epi16(a, b)));
        const __m128i bytes = packedBytes<Out>(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
        storeBytes<Count>(Stage8<Last, 8>::clampBytes(bytes), out);
    }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_RESIDUAL_HPP
