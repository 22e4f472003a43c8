// The sum in the last stage of a convolution with AVX-512: pairs of 16-bit integers, vpdpwssd with the pair of multipliers.
#ifndef N2D2_X86_AVX512_RESIDUAL_HPP
#define N2D2_X86_AVX512_RESIDUAL_HPP

#include "n2d2/x86/avx512.hpp"

namespace n2d2 {
namespace avx512 {

template <class Stage>
struct ResidualSum;

template <class First, class Operand, class Last>
struct ResidualSum<Added<First, Operand, Last> > {
    const __m512i weights, offset;
    const Stage16<Last> last;
    N2D2_INLINE ResidualSum()
        : weights(_mm512_set1_epi32(pairOf(Operand::weight(), Operand::oldWeight()))), offset(_mm512_set1_epi32(Operand::offset())),
          last(0, first16(16)) {}

    template <class T>
    static N2D2_INLINE __m512i wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x);
    }
    template <int Count>
    N2D2_INLINE void sixteen(const typename First::Type* own, typename Last::Type* out) const {
        const __m512i a = wide<typename First::Type>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(own)));
        const __m512i b = _mm512_slli_epi32(wide<typename Operand::Old>(_mm512_castsi512_si128(loadBytes<Count>(out))), 16);
        __m512i sums = offset;
        dotPairs(sums, _mm512_mask_blend_epi16(0xaaaaaaaau, a, b), weights);
        store16<Count>(last.template apply<false>(sums, 16), out);
    }
};

}  // namespace avx512
}  // namespace n2d2

#endif  // N2D2_X86_AVX512_RESIDUAL_HPP
