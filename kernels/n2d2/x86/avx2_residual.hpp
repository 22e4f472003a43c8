// The sum in the last stage of a convolution with AVX2: pairs of 16-bit integers, vpmaddwd with the pair of multipliers.
#ifndef N2D2_X86_AVX2_RESIDUAL_HPP
#define N2D2_X86_AVX2_RESIDUAL_HPP

#include "n2d2/x86/avx2.hpp"

namespace n2d2 {
namespace avx2 {

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
    static N2D2_INLINE __m256i wide(__m128i x) {
        return std::numeric_limits<T>::is_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
    }
    // Sixteen elements, of the layer and those at their place.
    static N2D2_INLINE __m128i apply(__m128i own, __m128i old) {
        constexpr std::uint32_t low = static_cast<std::uint16_t>(Operand::weight()), high = static_cast<std::uint16_t>(Operand::oldWeight());
        const __m256i a = wide<typename First::Type>(own), b = wide<typename Operand::Old>(old);
        const __m256i weights = _mm256_set1_epi32(static_cast<int>(low | high << 16)), offset = _mm256_set1_epi32(Operand::offset());
        const Stage8<Last, 8> last(0, 0);
        const __m256i first = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights), offset);
        const __m256i second = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights), offset);
        const __m256i halves = _mm256_packs_epi32(last.template apply<true>(first), last.template apply<true>(second));
        return Stage8<Last, 8>::clampBytes(
            packedBytes<typename Last::Type>(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
    }
};

}  // namespace avx2
}  // namespace n2d2

#endif  // N2D2_X86_AVX2_RESIDUAL_HPP
