// The last stage of a run of 32-bit sums to bytes with AVX2.
#ifndef N2D2_X86_AVX2_RUN_HPP
#define N2D2_X86_AVX2_RUN_HPP

#include "n2d2/x86/avx2.hpp"

namespace n2d2 {
namespace avx2 {

template <class Stage, bool Varying>
struct ByteRun {
    typedef typename Stage::Type Out;
    enum : int { Block = 32 };

    static N2D2_INLINE __m256i eightOf(const std::int32_t* sums, int index) {
        const Stage8<Stage, 8> stage(index, Varying ? index + 4 : index);
        return stage.template apply<true>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums)));
    }
    static N2D2_INLINE __m256i halves(const std::int32_t* sums, int index) {
        return _mm256_packs_epi32(eightOf(sums, index), eightOf(sums + 8, Varying ? index + 8 : index));
    }

    // Count sums: 32, then 8 at a time; the last ones in portable form.
    template <int Count>
    static N2D2_INLINE void run(const std::int32_t* sums, int index, Out* out) {
        constexpr int whole = Count / Block * Block, eights = Count / 8 * 8, rest = Count - eights;
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        for (int i = 0; i < whole; i += Block) {
            const int at = Varying ? index + i : index;
            const __m256i low = halves(sums + i, at), high = halves(sums + i + 16, Varying ? at + 16 : at);
            const __m256i bytes = _mm256_permutevar8x32_epi32(packedBytes<Out>(low, high), order);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), Stage8<Stage, 8>::clampBytes(bytes));
        }
        for (int i = whole; i < eights; i += 8) {
            const __m256i eight = eightOf(sums + i, Varying ? index + i : index);
            const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
            storeBytes<8>(Stage8<Stage, 8>::clampBytes(packedBytes<Out>(half, half)), out + i);
        }
        if (rest > 0)
            PortableRun<Stage, Varying>::template run<(rest > 0 ? rest : 1)>(sums + eights, Varying ? index + eights : index,
                                                                              out + eights);
    }
    template <int Count, class Sum>
    static N2D2_INLINE void run(const Sum* sums, int index, Out* out) {
        PortableRun<Stage, Varying>::template run<Count>(sums, index, out);
    }
};

}  // namespace avx2

template <class Rescale, std::int64_t Low, std::int64_t High, int Zero, bool Varying>
struct StageRun<Requantized<std::uint8_t, Rescale, Low, High, Zero>, Varying, Native>
    : Choice<Zero == 0 || InFloat<Rescale>::value, avx2::ByteRun<Requantized<std::uint8_t, Rescale, Low, High, Zero>, Varying>,
             PortableRun<Requantized<std::uint8_t, Rescale, Low, High, Zero>, Varying> >::Type {};

template <class Rescale, std::int64_t Low, std::int64_t High, int Zero, bool Varying>
struct StageRun<Requantized<std::int8_t, Rescale, Low, High, Zero>, Varying, Native>
    : Choice<Zero == 0 || InFloat<Rescale>::value, avx2::ByteRun<Requantized<std::int8_t, Rescale, Low, High, Zero>, Varying>,
             PortableRun<Requantized<std::int8_t, Rescale, Low, High, Zero>, Varying> >::Type {};

}  // namespace n2d2

#endif  // N2D2_X86_AVX2_RUN_HPP
