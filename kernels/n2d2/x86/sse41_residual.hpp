// The sum in the last stage of a convolution with SSE4.1: pairs of 16-bit integers, pmaddwd with the pair of multipliers.
#ifndef N2D2_X86_SSE41_RESIDUAL_HPP
#define N2D2_X86_SSE41_RESIDUAL_HPP

#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

template <class Stage>
struct ResidualSum;

template <class First, class Operand, class Last>
struct ResidualSum<Added<First, Operand, Last> > {
    typedef typename Last::Type Out;
    const __m128i weights, offset;
    const Stage4<Last, 4> last;
    N2D2_INLINE ResidualSum()
        : weights(_mm_set1_epi32(pairOf(Operand::weight(), Operand::oldWeight()))), offset(_mm_set1_epi32(Operand::offset())), last(0) {}

    template <class T>
    static N2D2_INLINE __m128i wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm_cvtepi8_epi16(x) : _mm_cvtepu8_epi16(x);
    }
    N2D2_INLINE __m128i four(__m128i pairs) const {
        return last.template apply<true>(_mm_add_epi32(_mm_madd_epi16(pairs, weights), offset));
    }
    // Eight elements, of the layer and those at their place, as 16-bit integers.
    N2D2_INLINE __m128i halves(__m128i own, __m128i old) const {
        const __m128i a = wide<typename First::Type>(own), b = wide<typename Operand::Old>(old);
        return _mm_packs_epi32(four(_mm_unpacklo_epi16(a, b)), four(_mm_unpackhi_epi16(a, b)));
    }
    template <int Count>
    N2D2_INLINE void sixteen(const typename First::Type* own, Out* out) const {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(own)), b = loadBytes<Count>(out);
        const __m128i bytes = packedBytes<Out>(halves(a, b), halves(_mm_srli_si128(a, 8), _mm_srli_si128(b, 8)));
        storeBytes<Count>(Stage4<Last, 4>::clampBytes(bytes), out);
    }
};

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_RESIDUAL_HPP
