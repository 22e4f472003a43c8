// The sum in the last stage of a convolution with AVX-512: pairs of 16-bit integers, vpmaddwd with the pair of multipliers.
#ifndef N2D2_X86_AVX512_RESIDUAL_HPP
#define N2D2_X86_AVX512_RESIDUAL_HPP

#include "n2d2/x86/avx512.hpp"

namespace n2d2 {
namespace avx512 {

struct ResidualMachine {
    template <class Stage>
    struct Sum;

    template <class Stage, int Count, class Own>
    static N2D2_INLINE void sixteen(const Own* own, typename Stage::Type* out) {
        store16<Count>(Sum<Stage>::apply(_mm_loadu_si128(reinterpret_cast<const __m128i*>(own)), _mm512_castsi512_si128(loadBytes<Count>(out))),
                       out);
    }
};

template <class First, class Operand, class Last>
struct ResidualMachine::Sum<Added<First, Operand, Last> > {
    template <class T>
    static N2D2_INLINE __m512i wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x);
    }
    // Sixteen elements, of the layer and those at their place, within the limits of the type.
    static N2D2_INLINE __m512i apply(__m128i own, __m128i old) {
        constexpr std::uint32_t low = static_cast<std::uint16_t>(Operand::weight()), high = static_cast<std::uint16_t>(Operand::oldWeight());
        const __m512i pairs = _mm512_mask_blend_epi16(0xaaaaaaaau, wide<typename First::Type>(own),
                                                      _mm512_slli_epi32(wide<typename Operand::Old>(old), 16));
        const __m512i products = _mm512_madd_epi16(pairs, _mm512_set1_epi32(static_cast<int>(low | high << 16)));
        return Stage16<Last>(0, first16(16)).template apply<false>(_mm512_add_epi32(products, _mm512_set1_epi32(Operand::offset())), 16);
    }
};

}  // namespace avx512
}  // namespace n2d2

#endif  // N2D2_X86_AVX512_RESIDUAL_HPP
