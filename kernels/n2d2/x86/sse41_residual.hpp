// The sum in the last stage of a convolution with SSE4.1: pairs of 16-bit integers, pmaddwd with the pair of multipliers.
#ifndef N2D2_X86_SSE41_RESIDUAL_HPP
#define N2D2_X86_SSE41_RESIDUAL_HPP

#include "n2d2/x86/sse41.hpp"

namespace n2d2 {
namespace sse41 {

struct ResidualMachine {
    template <class Stage>
    struct Sum;

    template <class Stage, int Count, class Own>
    static N2D2_INLINE void sixteen(const Own* own, typename Stage::Type* out) {
        storeBytes<Count>(Sum<Stage>::apply(_mm_loadu_si128(reinterpret_cast<const __m128i*>(own)), loadBytes<Count>(out)), out);
    }
};

template <class First, class Operand, class Last>
struct ResidualMachine::Sum<Added<First, Operand, Last> > {
    template <class T>
    static N2D2_INLINE __m128i wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm_cvtepi8_epi16(x) : _mm_cvtepu8_epi16(x);
    }
    // Eight elements, of the layer and those at their place, as 16-bit integers.
    static N2D2_INLINE __m128i halves(__m128i own, __m128i old) {
        constexpr std::uint32_t low = static_cast<std::uint16_t>(Operand::weight()), high = static_cast<std::uint16_t>(Operand::oldWeight());
        const __m128i a = wide<typename First::Type>(own), b = wide<typename Operand::Old>(old);
        const __m128i weights = _mm_set1_epi32(static_cast<int>(low | high << 16)), offset = _mm_set1_epi32(Operand::offset());
        const Stage4<Last, 4> last(0);
        return _mm_packs_epi32(last.template apply<true>(_mm_add_epi32(_mm_madd_epi16(_mm_unpacklo_epi16(a, b), weights), offset)),
                               last.template apply<true>(_mm_add_epi32(_mm_madd_epi16(_mm_unpackhi_epi16(a, b), weights), offset)));
    }
    static N2D2_INLINE __m128i apply(__m128i own, __m128i old) {
        return Stage4<Last, 4>::clampBytes(
            packedBytes<typename Last::Type>(halves(own, old), halves(_mm_srli_si128(own, 8), _mm_srli_si128(old, 8))));
    }
};

}  // namespace sse41
}  // namespace n2d2

#endif  // N2D2_X86_SSE41_RESIDUAL_HPP
